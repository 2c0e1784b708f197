//! What is done in a run, in words that every contender understands.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use plait_sim::host::app::Load;
use plait_sim::scenario::Endpoints;

/// The two ends of a path. Every path has an address of the client for itself; the server has one address for all of
/// them, as in the simulator, and its host answers each client address by the path that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathEnds {
    /// The client's address.
    pub(crate) client: IpAddr,
    /// The client's device, of which this is the only address.
    pub(crate) device: String,
    /// Where the server listens.
    pub(crate) server: SocketAddr,
}

/// One transfer between the two hosts.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    /// What is transferred.
    pub(crate) load: Load,
    /// The paths, at least one, in the order of the scenario.
    pub(crate) ways: Vec<PathEnds>,
    /// Settings of both ends as the scenario has them: initial path, extension, scheduler, congestion control (none: what
    /// the contender takes by itself, `cubic` for one that has no coupled control), windows and so on.
    pub(crate) endpoints: Endpoints,
    /// A folder of this run alone: certificates, logs. It goes when the run is over.
    pub(crate) files: PathBuf,
    /// After this the run is given up, and the client killed.
    pub(crate) time_limit: Duration,
}

impl Work {
    /// The path of the handshake.
    pub(crate) fn initial(&self) -> &PathEnds {
        let at = self.endpoints.initial_path.min(self.ways.len() - 1);
        &self.ways[at]
    }

    /// All paths, the initial one first, the others in the scenario's order.
    pub(crate) fn ways_in_order(&self) -> impl Iterator<Item = &PathEnds> {
        let initial = self.initial();
        std::iter::once(initial).chain(self.ways.iter().filter(move |way| *way != initial))
    }
}
