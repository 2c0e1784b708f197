//! What can be typed after `plait lab`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use plait_lab::CpuScheduling;
use plait_sim::scenario::TURN_MAX;

use crate::commands::sim::args::ShowArgs;
use crate::units::{parse_mbps, parse_millis, parse_seconds, whole};

/// Reads the turn of a simulated host, 0 to 1,000 ms.
fn parse_turn(text: &str) -> Result<Duration, String> {
    let told = || format!("`{text}` is not a time in milliseconds between 0 and {}", TURN_MAX.as_millis());
    parse_millis(text).ok().filter(|turn| *turn <= TURN_MAX).ok_or_else(told)
}

/// The commands of the laboratory in real time.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Say what this machine can do, which stacks can be compared on it, and how exact its links are
    Doctor(LabDoctorArgs),
    /// Run a scenario file, the same that `plait sim run` takes, with one stack after the other
    Run(LabRunArgs),
    /// Show the figures that can be made and the stacks that can take part
    List,
    /// Make the papers' figures in real time, with kernel TCP, MPTCP and others beside plait
    Figure(Box<LabFigureArgs>),
}

/// `plait lab doctor`.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct LabDoctorArgs {
    /// Leave the measurement of the links out, which takes half a minute
    #[arg(long)]
    pub(crate) quick: bool,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
}

/// How contenders' programs run.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct SchedulingArgs {
    /// How the kernel schedules contenders' programs: in real time below the links (SCHED_RR), where this is allowed, or as plait lab itself
    #[arg(long, value_name = "HOW", default_value = "rr")]
    cpu_scheduling: SchedulingWord,
}

impl SchedulingArgs {
    pub(crate) fn wanted(self) -> CpuScheduling {
        match self.cpu_scheduling {
            SchedulingWord::Rr => CpuScheduling::RoundRobin,
            SchedulingWord::Inherit => CpuScheduling::Inherited,
        }
    }
}

/// The words for [`CpuScheduling`].
#[derive(Clone, Copy, Debug, ValueEnum)]
enum SchedulingWord {
    /// In real time, below the links (SCHED_RR)
    Rr,
    /// As plait lab itself is
    Inherit,
}

/// `plait lab run`.
#[derive(Args, Clone, Debug)]
pub(crate) struct LabRunArgs {
    /// The scenario file to run
    #[arg(value_name = "FILE.toml")]
    pub(crate) file: PathBuf,
    /// Contenders as `plait lab doctor` names them, separated by commas
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "plait,plait-single")]
    pub(crate) contenders: Vec<String>,
    /// Runs of each point and contender, with seeds counted up from the scenario's
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u64>(1..=1_000_000))]
    pub(crate) seeds: u64,
    /// Override a value of the file, as path.0.loss=0.01; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) sets: Vec<String>,
    /// Give up on a run that takes longer, seconds, where its scenario has no shorter limit
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = parse_seconds)]
    pub(crate) max_time: Duration,
    /// IPv6 in place of IPv4
    #[arg(long)]
    pub(crate) ipv6: bool,
    /// Join client and server by a relay on loopback: for UDP stacks, and for who may make no network namespaces
    #[arg(long, conflicts_with = "ipv6")]
    pub(crate) relay: bool,
    #[command(flatten)]
    pub(crate) scheduling: SchedulingArgs,
    /// Folder for rows and a report; what was interrupted goes on there
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Write each plot as a PNG file too, to the folder of --out
    #[arg(long, requires = "out")]
    pub(crate) png: bool,
    /// Let plait's programs write what their connections do (qlog), in a folder for each run below this one; it costs time
    #[arg(long, value_name = "DIR")]
    pub(crate) qlog: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
}

/// `plait lab figure`.
#[derive(Args, Clone, Debug)]
pub(crate) struct LabFigureArgs {
    /// Names, as `plait lab list` shows them, or `all`
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<String>,
    /// Number of points of the design [default: 24]
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1..=253))]
    pub(crate) points: Option<usize>,
    /// Runs of each combination [default: 3 to 5, by figure]
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1..=1000))]
    pub(crate) repetitions: Option<usize>,
    /// Contenders as `plait lab list` names them, separated by commas [default: by figure, as far as they are there]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) contenders: Vec<String>,
    /// Override a value of the figure, as endpoints.scheduler=ecf; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) sets: Vec<String>,
    /// Seed of the order of runs
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = whole::<u64>(0..=u64::MAX))]
    pub(crate) seed: u64,
    /// Runs side by side at most
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<usize>(1..=64))]
    pub(crate) jobs: usize,
    /// Highest sum of the rates of runs side by side, Mbit/s; a run above it runs alone
    #[arg(long, value_name = "MBPS", default_value = "80", value_parser = parse_mbps)]
    pub(crate) budget_mbps: f64,
    #[command(flatten)]
    pub(crate) scheduling: SchedulingArgs,
    /// Processing delay of the hosts in the simulations that the runs are compared with, ms (`added, median` of `plait lab doctor`)
    #[arg(long, value_name = "MS", default_value = "0.08", value_parser = parse_turn)]
    pub(crate) host_turn_ms: Duration,
    /// Folder for rows and reports; what was interrupted goes on there
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Start no runs: report on those in the folder of --out, also of an interrupted figure
    #[arg(long, requires = "out")]
    pub(crate) so_far: bool,
    /// Write each plot as a PNG file too, to the folder of --out
    #[arg(long, requires = "out")]
    pub(crate) png: bool,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
    /// Print the claims as a Markdown table
    #[arg(long, conflicts_with_all = ["json", "json_stream"])]
    pub(crate) markdown: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_those_of_scenarios() {
        assert_eq!(parse_turn("1000"), Ok(TURN_MAX));
        for wrong in ["1000.1", "-1", "nan", "fast"] {
            let told = parse_turn(wrong).unwrap_err();
            assert_eq!(told, format!("`{wrong}` is not a time in milliseconds between 0 and 1000"));
        }
    }
}
