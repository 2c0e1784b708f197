//! The stacks that are compared. A new one is a file here and a line in [`all`].
//!
//! A file has a type with the trait [`Contender`]: which program is its server, which its client, and how what the client says
//! is read. Programs of others stay outside: a flag, a variable or the usual place names them, and `availability` says how
//! they are built where they are missing. `example.rs` beside this file is the smallest there can be, of fifty lines: a server and a
//! client of one's own, over plain TCP.
//!
//! What makes a comparison fair is the same for all: the clock starts with the first packet that the emulator sees and ends
//! when the client has the last byte, which it tells by CLOCK_MONOTONIC; windows are those of the scenario; the congestion
//! control is named, and stands in the row.

#[cfg(test)]
mod example;
mod identity;
mod kernel;
mod ours;
mod peers;
mod perf;
mod picoquic;
#[cfg(test)]
mod tests;

use std::fmt::Debug;

use plait_sim::scenario::Scenario;

use crate::error::LabError;
use crate::host::Hosts;
use crate::machine::Machine;
use crate::run::{Answer, ClientOutput, Program, RunFailure, Wiring, Work};

/// A stack under test: how its server and its client are started on the two hosts, and how its answer is read.
///
/// It is told what to do in a [`Work`], and touches nothing but the two hosts, if it has any: these go when the run is
/// over, and with them whatever was set in them. All methods may be called from several threads at once, for runs side by side.
pub(crate) trait Contender: Debug + Send + Sync {
    /// The word by which it is chosen, and that stands in results, without spaces and commas.
    fn name(&self) -> &str;

    /// What it is, in a line.
    fn about(&self) -> &str;

    /// Whether it uses all paths, or the initial one alone.
    fn is_multipath(&self) -> bool;

    /// Whether this machine can run it.
    ///
    /// # Errors
    /// Why not, and what to do.
    fn availability(&self, machine: &Machine) -> Result<(), String>;

    /// Whether it can do this at all: some have no uploads, or few paths only, or are no UDP, which alone a relay carries.
    ///
    /// # Errors
    /// Why not.
    fn accepts(&self, scenario: &Scenario, wiring: Wiring) -> Result<(), String>;

    /// Makes ready before the server starts what is needed beside addresses and routes: files in the run's folder, or settings
    /// of the hosts (`ip mptcp`), of which a relay has none.
    ///
    /// # Errors
    /// A command of the system failed.
    fn prepare(&self, _hosts: Option<&Hosts>, _work: &Work) -> Result<(), LabError> {
        Ok(())
    }

    /// The server. It runs on the server's host until it is killed.
    fn server(&self, work: &Work) -> Program;

    /// The client. It runs on the client's host, and ends by itself when the transfer is done.
    fn client(&self, work: &Work) -> Program;

    /// Reads what the client said.
    ///
    /// # Errors
    /// It failed, by its exit code or by its own word.
    fn outcome(&self, work: &Work, output: &ClientOutput) -> Result<Answer, RunFailure>;
}

/// Every contender, in the order in which tables show them.
pub(crate) fn all() -> Vec<Box<dyn Contender>> {
    vec![
        Box::new(ours::Plait::multipath()),
        Box::new(ours::Plait::single()),
        Box::new(kernel::Kernel::Mptcp),
        Box::new(kernel::Kernel::Tcp),
        Box::new(peers::Foreign::Noq),
        Box::new(picoquic::Picoquic),
        Box::new(peers::Foreign::Quinn),
    ]
}

/// Every contender: its name, and what it is.
pub fn listed() -> Vec<(String, String)> {
    all().iter().map(|one| (one.name().to_owned(), one.about().to_owned())).collect()
}

/// The contenders of these names, each once.
///
/// # Errors
/// There is none of a name, or one is named twice: runs of both would be under one name.
pub(crate) fn by_names(names: &[String]) -> Result<Vec<Box<dyn Contender>>, LabError> {
    if let Some((_, twice)) = names.iter().enumerate().find(|(at, name)| names.iter().take(*at).any(|one| one == *name))
    {
        return Err(LabError::Usage(format!("the contender `{twice}` is there twice; name each once")));
    }
    names.iter().map(|name| by_name(name)).collect()
}

/// The contender of this name, or a variant of ours: `plait:scheduler=ecf+ack_path=own`.
///
/// # Errors
/// There is none.
pub(crate) fn by_name(name: &str) -> Result<Box<dyn Contender>, LabError> {
    if let Some(settings) = name.strip_prefix("plait:") {
        let variant = ours::Plait::variant(name, settings);
        let wrong = |why: String| LabError::BadVariant { name: name.to_owned(), why };
        return variant.map(|variant| Box::new(variant) as Box<dyn Contender>).map_err(wrong);
    }
    let known = || all().iter().map(|contender| contender.name().to_owned()).collect::<Vec<_>>().join(", ");
    let found = all().into_iter().find(|contender| contender.name() == name);
    found.ok_or_else(|| LabError::NoContender { name: name.to_owned(), known: known() })
}
