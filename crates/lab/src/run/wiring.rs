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

/// What starts a program that is killed when the thread that started it ends.
const BESIDE: (&str, [&str; 3]) = ("setpriv", ["--pdeathsig", "KILL", "--"]);

impl Site<'_> {
    /// Whether programs can be started beside us.
    ///
    /// # Errors
    /// What is missing for it.
    pub(crate) fn check_here() -> Result<(), LabError> {
        let (tool, args) = BESIDE;
        tool::run(tool, args.into_iter().chain(["true"])).map(|_| ())
    }

    /// A program there, not yet started.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        match self {
            Self::Host(host) => host.command(program),
            Self::Here => {
                let (tool, args) = BESIDE;
                let mut command = Command::new(tool);
                command.args(args).arg(program);
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
