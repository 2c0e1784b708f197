//! Wrong usage in one line that says where to read on.

use std::io::ErrorKind::BrokenPipe;
use std::io::Write;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Command, CommandFactory, FromArgMatches};

use crate::output::{eprint_line, print_json};

/// Reads the arguments of this process; what is wrong with them has been said where there is only an exit code.
pub(crate) fn parse<Line: CommandFactory + FromArgMatches>(program: &str) -> Result<Line, ExitCode> {
    let mut command = heeding_negatives(Line::command());
    let matches = command.try_get_matches_from_mut(std::env::args_os());
    let line = matches.and_then(|matches| Line::from_arg_matches(&matches).map_err(|error| error.format(&mut command)));
    line.map_err(|error| {
        let help =
            [ErrorKind::DisplayHelp, ErrorKind::DisplayVersion, ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand];
        if help.contains(&error.kind()) {
            let printed = error.print().and_then(|()| std::io::stdout().flush());
            // A reader that went away has seen enough.
            if let Err(full) = printed.or_else(|error| if error.kind() == BrokenPipe { Ok(()) } else { Err(error) }) {
                eprint_line(&format!("plait: standard output: {full}; is the disk full?"));
                return ExitCode::FAILURE;
            }
        } else {
            let (what, name) = (one_line(&error.render().to_string()), name::<Line>(program));
            if std::env::args().any(|word| word == "--json" || word == "--json-stream") {
                let command = name.split_once(' ').map_or("", |(_, command)| command);
                // Standard error says it too.
                let _ = print_json(&serde_json::json!({ "command": command, "ok": false, "error": what }));
            }
            eprint_line(&format!("plait: {what} (see `{name} --help`)"));
        }
        ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
    })
}

/// The program with the commands of this process's arguments: `plait sim run`.
pub(crate) fn name<Line: CommandFactory>(program: &str) -> String {
    let command = Line::command();
    let (mut name, mut at) = (program.to_owned(), &command);
    for word in std::env::args().skip(1) {
        let Some(next) = at.find_subcommand(&word) else { break };
        name = format!("{name} {word}");
        at = next;
    }
    name
}

/// What stands for a number in the help.
const NUMBERS: [&str; 8] = ["N", "S", "I/N", "SIZE", "MBPS", "MS", "SHARE", "SECONDS"];

/// Takes `-1` and `-1M` for values, whose range can then be named, not for flags.
fn heeding_negatives(command: Command) -> Command {
    let is_number = |name: &clap::builder::Str| NUMBERS.contains(&name.as_str());
    let command =
        command.mut_args(|arg| match arg.get_value_names().is_some_and(|names| names.iter().any(is_number)) {
            true => arg.allow_hyphen_values(true),
            false => arg,
        });
    command.mut_subcommands(heeding_negatives)
}

/// What clap says on several lines, without its pointers to the help.
fn one_line(text: &str) -> String {
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !(line.is_empty() || line.starts_with("Usage:") || line.starts_with("For more")));
    let mut whole = String::new();
    for line in lines {
        whole.push_str(match line {
            _ if whole.is_empty() => "",
            tip if tip.starts_with("tip:") => "; ",
            _ => " ",
        });
        whole.push_str(line);
    }
    whole.strip_prefix("error: ").map(str::to_owned).unwrap_or(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::CommandLine;

    fn wrong(line: &[&str]) -> String {
        let mut command = heeding_negatives(CommandLine::command());
        let matches = command.try_get_matches_from_mut([&["plait"], line].concat());
        let error = matches.and_then(|matches| CommandLine::from_arg_matches(&matches)).unwrap_err();
        one_line(&error.render().to_string())
    }

    #[test]
    fn one_line_names_what_is_accepted() {
        let lines: [(&[&str], &str); 10] = [
            (&["get"], "the following required arguments were not provided: <URL>..."),
            (&["get", "x", "--scheduler", "bleast"], "'bleast' for '--scheduler <NAME>' [possible values: minrtt,"),
            (
                &["get", "x", "--pth", "a"],
                "unexpected argument '--pth' found; tip: a similar argument exists: '--path'",
            ),
            (&["sim", "run", "f", "--seeds", "-1"], "`-1` is not a whole number from 1 to 1000000"),
            (&["sim", "run", "f", "--jobs", "0"], "`0` is not a whole number from 1 to 1024"),
            (&["sim", "figure", "f", "--points", "0"], "`0` is not a whole number from 1 to"),
            (&["sim", "run", "f", "--shard", "-1/2"], "`-1/2` is not a shard; accepted: i/n"),
            (&["demo", "--bytes", "-1M"], "`-1M` is not a size; write bytes as 1200, 64Ki, 100M or 1.5G, 0 or more"),
            (&["demo", "--a-rate-mbps", "-2"], "`-2` is not a rate; write Mbit/s as 50 or 0.5, above 0"),
            (&["get", "x", "--max-time", "-1"], "`-1` is not a time"),
        ];
        for (line, expected) in lines {
            let text = wrong(line);
            assert!(text.contains(expected) && !text.contains('\n') && !text.contains("Usage"), "{text}");
        }
    }
}
