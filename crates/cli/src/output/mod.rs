//! What people and programs read: results on standard output, progress on standard error.

pub(crate) mod progress;
pub(crate) mod summary;
pub(crate) mod table;

use std::io::{ErrorKind, Write};

use serde::Serialize;
use serde_json::json;

use crate::args::OutputArgs;
use crate::error::CliError;

/// Who reads standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Tables and sentences for people.
    Human,
    /// Programs, at the end.
    Json,
    /// Programs, all the time.
    JsonStream,
}

impl Format {
    /// As the flags say.
    pub(crate) fn of(args: OutputArgs) -> Self {
        match (args.json_stream, args.json) {
            (true, _) => Self::JsonStream,
            (false, true) => Self::Json,
            (false, false) => Self::Human,
        }
    }

    /// True when standard output carries JSON.
    pub(crate) fn is_json(self) -> bool {
        self != Self::Human
    }
}

/// Prints `value` as one line of JSON on standard output.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), CliError> {
    let line = serde_json::to_string(value)
        .map_err(|error| CliError::running(format!("the result is no JSON: {error}"), "this is a fault of plait"))?;
    print_line(&line)
}

/// Tells programs of a failure that comes before there is anything to report; gives the failure back.
pub(crate) fn refused(command: &str, args: OutputArgs, fail: CliError) -> CliError {
    if Format::of(args).is_json() {
        // The failure that is there already is the one to tell.
        let _ = print_json(&json!({ "command": command, "ok": false, "error": fail.to_string() }));
    }
    fail
}

/// Whether somebody reads standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readership {
    There,
    /// It was closed: `| head`, say.
    Gone,
}

/// Prints `value` as [`print_json`] does, for a reader that may have gone away.
pub(crate) fn print_event(value: &impl Serialize) -> Readership {
    // What cannot be printed now cannot be at the end either, and is told then.
    let line = serde_json::to_string(value).unwrap_or_default();
    write_text(&format!("{line}\n")).unwrap_or(Readership::There)
}

/// Prints a line on standard output; a reader that went away is no error of ours.
pub(crate) fn print_line(line: &str) -> Result<(), CliError> {
    print_text(&format!("{line}\n"))
}

/// Prints text as it is, as [`print_line`] does.
pub(crate) fn print_text(text: &str) -> Result<(), CliError> {
    let failed = |error| CliError::running(format!("standard output: {error}"), "is the disk full?");
    write_text(text).map(|_| ()).map_err(failed)
}

fn write_text(text: &str) -> std::io::Result<Readership> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(Readership::There),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Readership::Gone),
        Err(error) => Err(error),
    }
}

/// Says something on standard error; there is nobody to tell when that fails.
pub(crate) fn eprint_line(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
