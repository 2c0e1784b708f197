//! A program on one of the hosts, and what it left when it ended.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::clock::ClockPoint;

/// When a server is ready for its client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ready {
    /// When a line with these words is on its standard output or standard error.
    Says(&'static str),
    /// When a socket of its host listens on this UDP port.
    Udp(u16),
    /// When a socket of its host listens on this TCP port.
    #[allow(dead_code, reason = "for servers that say nothing, as the example among the tests")]
    Tcp(u16),
}

/// A program, with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// The file to run.
    pub(crate) file: PathBuf,
    /// The arguments that follow it.
    pub(crate) args: Vec<OsString>,
    /// Variables of its environment, beside ours.
    pub(crate) env: Vec<(String, String)>,
    /// When it is ready; heeded of servers alone.
    pub(crate) ready: Ready,
}

impl Program {
    /// This program with these arguments, ready when it says `listening`.
    pub(crate) fn new(file: impl Into<PathBuf>, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        let args = args.into_iter().map(Into::into).collect();
        Self { file: file.into(), args, env: Vec::new(), ready: Ready::Says("listening") }
    }

    /// The same, ready when this says.
    pub(crate) fn ready(mut self, ready: Ready) -> Self {
        self.ready = ready;
        self
    }

    /// With one more variable.
    pub(crate) fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }
}

/// What a client left when it ended, or was made to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientOutput {
    /// Its exit code; none where a signal ended it.
    pub(crate) code: Option<i32>,
    /// True when it was killed at the time limit.
    pub(crate) timed_out: bool,
    /// All of its standard output.
    pub(crate) stdout: String,
    /// All of its standard error.
    pub(crate) stderr: String,
    /// What the server said on standard error until then.
    pub(crate) server_stderr: String,
    /// When the client had ended.
    pub(crate) ended: ClockPoint,
}

impl ClientOutput {
    /// The exit code in words.
    pub(crate) fn code_name(&self) -> String {
        code_name(self.code)
    }

    /// The last line of standard output, where programs put their JSON.
    pub(crate) fn last_line(&self) -> &str {
        self.stdout.trim_end().lines().next_back().unwrap_or_default()
    }

    /// What it complained of on standard error.
    pub(crate) fn complaint(&self) -> &str {
        complaint(&self.stderr)
    }
}

/// An exit code in words; none where a signal ended the program.
pub(super) fn code_name(code: Option<i32>) -> String {
    code.map_or_else(|| "a signal".to_owned(), |code| format!("code {code}"))
}

/// What a program complained of: its last line with words that is not a hint of Rust's runtime.
pub(super) fn complaint(said: &str) -> &str {
    let is_of_it = |line: &&str| !line.is_empty() && !line.starts_with("note: ");
    said.lines().rev().map(str::trim).find(is_of_it).unwrap_or("it said nothing")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complaint_is_the_last_thing_said_by_the_program() {
        let panic = "one\nthread 'main' panicked at src/lib.rs:7:5:\na certificate: no such file\nnote: run with `RUST_BACKTRACE=1`\n";
        assert_eq!(complaint(panic), "a certificate: no such file");
        assert_eq!((complaint("bad port\n\n"), complaint(" \n")), ("bad port", "it said nothing"));
    }
}
