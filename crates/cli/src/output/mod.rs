//! What people and programs read: results on standard output, progress on standard error.

pub(crate) mod progress;
pub(crate) mod summary;
pub(crate) mod table;

use std::io::Write;

use serde::Serialize;

use crate::args::OutputArgs;

/// Who reads standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// People.
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
pub(crate) fn print_json(value: &impl Serialize) {
    match serde_json::to_string(value) {
        Ok(line) => print_line(&line),
        Err(error) => eprintln!("plait: the result cannot be written as JSON: {error}"),
    }
}

/// Prints a line on standard output; a reader that went away is no error of ours.
pub(crate) fn print_line(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
