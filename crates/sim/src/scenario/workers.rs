//! Workers that serve paths beside their connection, and what befalls them.

use std::time::Duration;

use super::ScenarioError;
use super::reader::Reader;

/// Workers at one end, at most: with so many each path has one of its own.
pub const WORKERS_MAX: u64 = 64;

/// Who serves paths beside a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workers {
    /// How many there are at each end.
    pub count: usize,
    /// Which paths they get.
    pub lending: Lending,
}

/// Which paths are lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lending {
    /// Every one, as soon as it may be.
    Eager,
    /// Those that have become busy.
    OnDemand,
}

/// Something that befalls a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerFault {
    /// What befalls it.
    pub kind: WorkerFaultKind,
    /// At which end.
    pub ends: Ends,
}

/// What befalls a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerFaultKind {
    /// It has no turn for so long.
    Stalls(Duration),
    /// It falls in the middle of a turn, with the paths that it has, and its end sees it.
    DiesSeen,
    /// It falls, and nobody sees it.
    DiesUnseen,
}

/// One end of a connection, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// The end that began it.
    Client,
    /// The end that was called.
    Server,
    /// Client and server.
    Both,
}

/// `workers` and `lending` of the endpoints.
pub(super) fn read_workers(reader: &Reader<'_>) -> Result<Option<Workers>, ScenarioError> {
    let count = reader.whole("workers", 0..=WORKERS_MAX, "")?.unwrap_or(0) as usize;
    let lending = reader.choice("lending", &[("eager", Lending::Eager), ("on-demand", Lending::OnDemand)])?;
    if lending.is_some() && count == 0 {
        return Err(reader.complain("lending", "nobody is there to lend to", "it beside workers = 1 or more"));
    }
    Ok((count > 0).then(|| Workers { count, lending: lending.unwrap_or(Lending::OnDemand) }))
}

/// `worker_stalls_ms` and `worker_dies` of an event, with `end`.
pub(super) fn read_fault(event: &Reader<'_>) -> Result<Option<WorkerFault>, ScenarioError> {
    let stalls = event.millis("worker_stalls_ms", 0.0..=60_000.0)?.map(WorkerFaultKind::Stalls);
    let deaths = [("seen", WorkerFaultKind::DiesSeen), ("unseen", WorkerFaultKind::DiesUnseen)];
    let dies = event.choice("worker_dies", &deaths)?;
    let ends = event.choice("end", &[("client", Ends::Client), ("server", Ends::Server), ("both", Ends::Both)])?;
    let kind = match (stalls, dies) {
        (Some(_), Some(_)) => {
            return Err(event.complain("worker_dies", "stands beside worker_stalls_ms", "one of them in an event"));
        }
        (stalls, dies) => stalls.or(dies),
    };
    if kind.is_none() && ends.is_some() {
        return Err(event.complain("end", "nothing happens at an end", "it with worker_stalls_ms or worker_dies"));
    }
    Ok(kind.map(|kind| WorkerFault { kind, ends: ends.unwrap_or(Ends::Both) }))
}
