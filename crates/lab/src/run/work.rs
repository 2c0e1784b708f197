//! What is done in a run, in words that every contender understands.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use plait_sim::host::app::Load;
use plait_sim::scenario::Endpoints;

use crate::host::PathEnds;

/// One transfer between a client and its server.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    /// What is transferred.
    pub(crate) load: Load,
    /// The paths, at least one, in the order of the scenario.
    pub(crate) ways: Vec<PathEnds>,
    /// Where the server listens.
    pub(crate) listen: SocketAddr,
    /// Settings of both ends as the scenario has them: initial path, extension, scheduler, congestion control (none: what
    /// the contender takes by itself, `cubic` for one that has no coupled control), windows and so on.
    pub(crate) endpoints: Endpoints,
    /// A folder of this run alone: certificates, logs. It goes when the run is over.
    pub(crate) files: PathBuf,
    /// A folder for qlog, of those who write it; it stays.
    pub(crate) qlog: Option<PathBuf>,
    /// After this the run is given up, and the client killed.
    pub(crate) time_limit: Duration,
}

impl Work {
    /// The path of the handshake.
    pub(crate) fn initial(&self) -> &PathEnds {
        let at = self.endpoints.handshake.initial_path.min(self.ways.len() - 1);
        &self.ways[at]
    }

    /// All paths, the initial one first, the others in the scenario's order.
    pub(crate) fn ways_in_order(&self) -> impl Iterator<Item = &PathEnds> {
        let initial = self.initial();
        std::iter::once(initial).chain(self.ways.iter().filter(move |way| *way != initial))
    }
}
