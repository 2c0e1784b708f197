//! What can be typed: the commands.

use clap::{Parser, Subcommand};

use crate::args::{DemoArgs, GetArgs, ServeArgs};
#[cfg(target_os = "linux")]
use crate::commands::lab::args::LabCommand;
use crate::commands::sim::args::SimCommand;
use crate::perf::args::PerfCommand;

/// Multipath QUIC: one connection over several networks at once.
#[derive(Clone, Debug, Parser)]
#[command(name = "plait", version, about, arg_required_else_help = true, max_term_width = 100)]
#[command(
    after_help = "Exit code: 0 done, 1 failed, 2 wrong usage. docs/json.md describes --json, sizes and variables."
)]
pub(crate) struct CommandLine {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// `plait sim` as a program of its own, with that program's schedulers and controllers.
#[derive(Clone, Debug, Parser)]
#[command(version, about, arg_required_else_help = true, max_term_width = 100)]
pub(crate) struct SimLine {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: SimCommand,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Command {
    /// Show on this machine what a second path adds: downloads over A, B and both, then path A dies
    Demo(DemoArgs),
    /// Serve files and synthetic bodies (/bytes/100M)
    Serve(ServeArgs),
    /// Download over one or several paths
    Get(GetArgs),
    /// Measure what a network and two hosts can do: bytes, requests, connections, datagrams
    #[command(subcommand)]
    Perf(PerfCommand),
    /// Simulate networks in virtual time: scenarios, campaigns and the papers' figures
    #[command(subcommand)]
    Sim(SimCommand),
    /// Run scenarios in real time between network namespaces of this machine, against what kernels have (Linux)
    #[cfg(target_os = "linux")]
    #[command(subcommand)]
    Lab(LabCommand),
    /// Be an endpoint of the public interop runner; its environment says what to do
    #[command(hide = true)]
    Interop,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::ExtensionName;
    use crate::names::{AckPathName, CongestionName, PathPolicyName, ReinjectionName, SchedulerName};

    #[test]
    fn the_commands_are_well_formed() {
        CommandLine::command().debug_assert();
    }

    /// The help of every command, as a terminal of so many columns shows it.
    fn helps(columns: usize) -> Vec<(String, String)> {
        fn collect(command: clap::Command, columns: usize, out: &mut Vec<(String, String)>) {
            for text in [command.clone().render_help(), command.clone().render_long_help()] {
                out.push((command.get_name().to_owned(), text.to_string()));
            }
            for sub in command.get_subcommands() {
                collect(sub.clone().term_width(columns), columns, out);
            }
        }
        let mut all = Vec::new();
        collect(CommandLine::command().term_width(columns), columns, &mut all);
        all
    }

    #[test]
    fn help_fits_the_terminal() {
        for (name, help) in helps(80) {
            let longest = help.lines().max_by_key(|line| line.chars().count()).unwrap_or("");
            assert!(longest.chars().count() <= 80, "{name}: {longest}");
        }
    }

    #[test]
    fn help_names_the_defaults() {
        for (name, help) in helps(100).into_iter().filter(|(name, _)| ["get", "serve", "demo"].contains(&name.as_str()))
        {
            let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
            let [scheduler, ack_path, reinjection] =
                [SchedulerName::DEFAULT.name(), AckPathName::DEFAULT.name(), ReinjectionName::DEFAULT.name()];
            let [many, one] = [CongestionName::MULTIPATH_DEFAULT, CongestionName::DEFAULT].map(CongestionName::name);
            let congestion = format!("{many} over several paths, {one} over one and in the demo");
            let path_policy = PathPolicyName::OPENING.name();
            let only_get = Some(path_policy).filter(|_| name == "get");
            for default in [scheduler, ack_path, reinjection, &congestion].into_iter().chain(only_get) {
                assert!(help.contains(&format!("[default: {default}]")), "{name}: {default}\n{help}");
            }
        }
    }

    #[test]
    fn defaults() {
        let Command::Demo(demo) = CommandLine::parse_from(["plait", "demo"]).command else { panic!() };
        assert_eq!((demo.bytes, demo.a_rate_mbps, demo.b_rate_mbps), (20_000_000, 50.0, 30.0));
        assert_eq!((demo.a_rtt_ms.as_millis(), demo.b_rtt_ms.as_millis()), (20, 40));
        assert!(demo.loss == 0.0 && demo.kill_at == 0.5);
        let Command::Get(get) = CommandLine::parse_from(["plait", "get", "https://x/"]).command else { panic!() };
        assert_eq!((get.connect.connect_timeout.as_secs(), get.connect.extension), (10, ExtensionName::Multipath));
    }

    #[test]
    fn wrong_usage() {
        let wrong: [&[&str]; 13] = [
            &["plait"],
            &["plait", "perf", "client"],
            &["plait", "get"],
            &["plait", "get", "x", "--single", "--path", "127.0.0.1"],
            &["plait", "get", "x", "--scheduler", "best"],
            &["plait", "get", "x", "--cc", "magic"],
            &["plait", "get", "x", "--path-policy", "some"],
            &["plait", "get", "x", "--insecure", "--ca", "f"],
            &["plait", "get", "x", "--max-time", "0"],
            &["plait", "serve", "--cert", "c"],
            &["plait", "serve", "--listen", "nowhere"],
            &["plait", "serve", "--max-paths", "0"],
            &["plait", "demo", "--bytes", "many"],
        ];
        for line in wrong {
            let error = CommandLine::try_parse_from(line).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{line:?}");
        }
    }
}
