//! The trait of all schedulers, and of the factories that the configuration holds.

use std::fmt::Debug;

use plait_base::{Instant, PathId, Random};

use crate::decision::Decision;
use crate::view::{Demand, PathView};

/// One ACK frame's news about a path, in sums over the packets it acknowledged for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Bytes of the packets that it acknowledged.
    pub bytes: u64,
    /// When the newest acked packet was sent.
    pub sent_at: Instant,
    /// When the ACK arrived.
    pub now: Instant,
}

/// Chooses the path of each packet.
pub trait Scheduler: Send + Debug {
    /// The name that configuration and results use.
    fn name(&self) -> &'static str;

    /// Decides for one packet. `paths` are in order of id; the answer names only paths that are open.
    fn pick(&mut self, paths: &[PathView], demand: &Demand) -> Decision;

    /// Whether [`pick`](Self::pick) would name `path` again for whatever stream data follows on it at this moment, as long as
    /// it has room: then it is not asked about each packet of a train. Asked after a packet that it sent there; a scheduler
    /// that does not say is asked about each.
    fn keeps_to(&self, _path: PathId, _paths: &[PathView], _demand: &Demand) -> bool {
        false
    }

    /// A packet of `bytes` left on `path` as this scheduler decided. It is not told of packets that it is never asked
    /// about: those of acks alone, probes, copies, packets of the handshake and of path validation.
    fn on_sent(&mut self, _path: PathId, _bytes: u64, _now: Instant) {}

    /// Packets of `path` were acked; once per ACK frame.
    fn on_acked(&mut self, _path: PathId, _delivery: &Delivery) {}

    /// `bytes` of `path` were declared lost.
    fn on_lost(&mut self, _path: PathId, _bytes: u64, _now: Instant) {}

    /// Connection flow control ran out while data was still in flight: a slow path held the window (BLEST's signal).
    fn on_credit_blocked(&mut self, _now: Instant) {}

    /// Nothing is sent on `path` any more.
    fn on_path_closing(&mut self, _path: PathId) {}
}

/// Makes one scheduler for each connection; sits in the configuration and is shared by connections.
pub trait SchedulerFactory: Send + Sync + Debug {
    /// Name of what it builds.
    fn name(&self) -> &'static str;

    /// A scheduler; `random` is its own from now on.
    fn build(&self, random: Random) -> Box<dyn Scheduler>;
}
