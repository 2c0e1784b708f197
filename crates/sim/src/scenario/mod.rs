//! Scenarios: networks, transfers and endpoints as a TOML file describes them.

pub mod boxes;
pub mod changes;
mod duplex;
pub mod error;
pub mod link;
pub mod origin;
pub(crate) mod read;
pub(crate) mod reader;
pub mod sweep;
#[cfg(test)]
mod tests;
pub mod topology;
pub mod traces;
pub mod tree;
mod words;
pub mod workers;

use std::collections::BTreeSet;
use std::time::Duration;

use plait_base::limits::MAX_PATHS;
use plait_engine::config::StreamPlacement;
use plait_engine::congestion::ControllerFactory;
use plait_engine::crypto::Protection;
use plait_engine::schedule::SchedulerFactory;
use plait_netsim::InterfaceState;

pub use boxes::{NatPlan, Rebind, RulePlan, Sides};
pub use error::ScenarioError;
pub use link::{AqmPlan, JitterKind, LinkEdit, LinkPlan, QueuePlan, RedPlan};
pub use topology::{CrossLoad, CrossPlan, Direction, NamedLink, Packets, Place};
pub use traces::Traces;
pub use tree::Tree;
pub use workers::{Ends, Lending, WORKERS_MAX, WorkerFault, WorkerFaultKind, Workers};

use crate::host::app::Load;
use crate::policies::Chosen;

/// Paths that a scenario may have.
pub const PATHS_MAX: usize = MAX_PATHS;

/// The longest turn of a host.
pub const TURN_MAX: Duration = Duration::from_secs(1);

/// Random values that are drawn anew at an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Vary {
    /// From one draw to the next.
    pub interval: Duration,
    /// Mbit/s towards the client, and towards the server too where nothing else limits that way.
    pub rate_mbps: Option<(f64, f64)>,
    /// One-way delay each way, ms.
    pub delay_ms: Option<(f64, f64)>,
    /// Share of datagrams lost, towards the client.
    pub loss: Option<(f64, f64)>,
    /// Share of bytes lost, towards the client.
    pub loss_per_byte: Option<(f64, f64)>,
    /// Whether delays are cut to whole milliseconds.
    pub whole_ms: bool,
}

/// Both directions of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct DuplexPlan {
    /// From client to server.
    pub up: LinkPlan,
    /// From server to client.
    pub down: LinkPlan,
    /// What changes at random.
    pub vary: Option<Vary>,
}

/// A path: its own link, and what lies beyond it.
#[derive(Clone, Debug, PartialEq)]
pub struct PathPlan {
    /// The link that it has for itself, next to the client.
    pub own: DuplexPlan,
    /// The named links beyond it on the way to the server, by their place in the file.
    pub via: Vec<usize>,
    /// The NAT in front of the client's address.
    pub nat: Option<NatPlan>,
}

/// A change at a time.
#[derive(Clone, Debug, PartialEq)]
pub struct EventPlan {
    /// Virtual time since the start of the run.
    pub at: Duration,
    /// The link that changes.
    pub place: Place,
    /// From client to server.
    pub up: LinkEdit,
    /// From server to client.
    pub down: LinkEdit,
    /// New random ranges.
    pub vary: Option<Vary>,
    /// The client's interface goes up or down.
    pub interface: Option<InterfaceState>,
    /// The path's NAT forgets its mappings.
    pub rebind: Option<Rebind>,
    /// What happens to a worker that serves the path.
    pub worker: Option<WorkerFault>,
}

/// Whether several paths are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extension {
    /// Multiple paths, RFC 10069.
    Multipath,
    /// Uniflows, Multiflow QUIC.
    Multiflow,
    /// One path, the initial one.
    None,
}

/// What both ends ask each other for beside the extension.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    /// Whether the ends tell each other how their paths do.
    pub tell_paths: bool,
    /// Whether nonces are those that Multiflow's draft has, with its extension alone.
    pub uniflow_nonces: bool,
    /// Which acks they ask each other for; none leaves them as they are.
    pub ack_frequency: Option<AckFrequency>,
}

/// Which acks an end asks its peer for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckFrequency {
    /// An ack is for so many packets at most.
    pub packets: u32,
    /// How long one waits; none: a round trip.
    pub delay: Option<Duration>,
}

/// What both ends are set to.
#[derive(Clone, Debug, PartialEq)]
pub struct Endpoints {
    /// Where the handshake begins.
    pub handshake: HandshakePlan,
    /// Multipath or not.
    pub extension: Extension,
    /// The scheduler of both ends.
    pub scheduler: Chosen<dyn SchedulerFactory>,
    /// Congestion controller; none leaves cubic on one path and the engine's choice on several.
    pub congestion: Option<Chosen<dyn ControllerFactory>>,
    /// Where acks travel.
    pub ack_path: &'static str,
    /// Packet protection after the handshake.
    pub protection: Protection,
    /// Largest window of connection and stream, bytes.
    pub receive_window_bytes: u64,
    /// Whether a new path carries copies until its RTT is known.
    pub duplicate_until_rtt: bool,
    /// Silence after which an end sends something of its own accord.
    pub keep_alive: Option<Duration>,
    /// Name of the reinjection policy.
    pub reinjection: &'static str,
    /// Name of the policy by which the client opens paths.
    pub path_policy: &'static str,
    /// Bytes that leave at once at most; none leaves it to the pacer.
    pub max_burst_bytes: Option<u32>,
    /// What they ask each other for.
    pub wishes: Wishes,
    /// Which paths carry the data of a stream.
    pub placement: StreamPlacement,
    /// Who serves paths beside each end's connection; none leaves them with it.
    pub workers: Option<Workers>,
    /// How long a host takes from a datagram to its turn, and its application from that turn to its own, at most [`TURN_MAX`].
    pub turn: Duration,
}

/// Over which paths a client tries to connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandshakePlan {
    /// Path of the first attempt.
    pub initial_path: usize,
    /// Whether it is the only one; otherwise another begins on the next path where none is answered within 10 ms (RFC 8305 8).
    /// Without an extension it is.
    pub first_path_only: bool,
}

/// Everything about a run but its seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The name that reports show.
    pub name: String,
    /// The seed of the first run.
    pub seed: u64,
    /// When a run is given up.
    pub time_limit: Duration,
    /// The paths, at least one.
    pub paths: Vec<PathPlan>,
    /// Links that have a name: paths and cross traffic may share them.
    pub links: Vec<NamedLink>,
    /// What else is on the links.
    pub cross: Vec<CrossPlan>,
    /// Rules of the middleboxes on the way.
    pub rules: Vec<RulePlan>,
    /// Changes, in order of time.
    pub events: Vec<EventPlan>,
    /// What is transferred.
    pub load: Load,
    /// Settings of both ends.
    pub endpoints: Endpoints,
}

impl Scenario {
    /// Every link: those of the paths first, then those with names. [`Place`] counts in this order.
    pub fn duplexes(&self) -> impl Iterator<Item = &DuplexPlan> {
        self.paths.iter().map(|path| &path.own).chain(self.links.iter().map(|link| &link.duplex))
    }

    /// The links of a path, from the client to the server.
    pub fn way(&self, path: usize) -> Vec<Place> {
        let via = self.paths.get(path).map_or(&[][..], |plan| &plan.via);
        std::iter::once(Place::path(path)).chain(via.iter().map(|link| Place::link(self.paths.len(), *link))).collect()
    }

    /// Named links that no path and no cross traffic goes through, by their place in the file.
    pub(crate) fn unused_links(&self) -> BTreeSet<usize> {
        let is_crossed = |link: usize| {
            let place = Place::link(self.paths.len(), link);
            self.paths.iter().any(|path| path.via.contains(&link))
                || self.cross.iter().any(|cross| cross.via.contains(&place))
        };
        (0..self.links.len()).filter(|link| !is_crossed(*link)).collect()
    }
}
