//! What lies between a client and its server.

use std::ffi::OsStr;
use std::process::Command;

use crate::error::LabError;
use crate::host::{Family, Namespace};
use crate::tool;

/// How a client and its server are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wiring {
    /// Each is on a host of its own, a network namespace with a device for every path.
    Namespaces(Family),
    /// Both are on this machine's loopback, and a relay lies between their sockets: for everybody, and for datagrams alone.
    Relay,
}

impl Wiring {
    /// The word for it in rows.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Namespaces(_) => "namespaces",
            Self::Relay => "relay",
        }
    }
}

/// Where a program runs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Site<'a> {
    /// On a host of its own.
    Host(&'a Namespace),
    /// Here, beside us; it ends when we do.
    Here,
}

/// What starts a program that is killed when the thread that started it ends. Where that ended before the kernel was told so, nothing
/// is started: the parent of the process is another one then. `$0` has the id of the right one.
const BESIDE: (&str, [&str; 6]) =
    ("setpriv", ["--pdeathsig", "KILL", "--", "sh", "-c", "[ $PPID = $0 ] && exec \"$@\""]);

/// [`BESIDE`] for programs of the process `parent`.
fn child_of(parent: u32) -> Command {
    let (tool, args) = BESIDE;
    let mut command = Command::new(tool);
    command.args(args).arg(parent.to_string());
    command
}

impl Site<'_> {
    /// Whether programs can be started beside us.
    ///
    /// # Errors
    /// What is missing for it.
    pub(crate) fn check_here() -> Result<(), LabError> {
        tool::run(BESIDE.0, Self::Here.command("true").get_args()).map(|_| ())
    }

    /// A program there, not yet started.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        match self {
            Self::Host(host) => host.command(program),
            Self::Here => {
                let mut command = child_of(std::process::id());
                command.arg(program);
                command
            }
        }
    }

    /// Runs `ss` there to its end; gives what it says.
    ///
    /// # Errors
    /// It is missing, or refused.
    pub(crate) fn sockets(&self, args: &[&str]) -> Result<String, LabError> {
        match self {
            Self::Host(host) => host.run("ss", args),
            Self::Here => tool::run("ss", args),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_started_for_a_parent_that_is_gone() {
        let words = ["echo", "two words", "$0"];
        let ours = Site::Here.command(words[0]).args(&words[1..]).output().unwrap();
        assert_eq!((ours.status.code(), ours.stdout.as_slice()), (Some(0), b"two words $0\n".as_slice()));
        // No process has that id.
        let orphan = child_of(u32::MAX).args(words).output().unwrap();
        assert_eq!((orphan.status.code(), orphan.stdout.as_slice()), (Some(1), b"".as_slice()));
    }
}
