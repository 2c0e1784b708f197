//! On which paths the acknowledgements of a path travel.

use std::fmt::Debug;
use std::time::Duration;

use plait_base::observe::PathState;
use plait_base::{Instant, PathId};
use smallvec::SmallVec;

pub use fastest::Fastest;

/// What an ack route sees of a path that may carry acks now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckCarrier {
    /// The path id.
    pub id: PathId,
    /// State as the table sees it.
    pub state: PathState,
    /// Both its directions are one path, by which acks of what comes on it go home (RFC 10069). Flows without pairs have no such.
    pub is_paired: bool,
    /// Smoothed RTT; none before the first sample.
    pub rtt: Option<Duration>,
    /// Smallest RTT ever, whichever way its acks came: the path without queues.
    pub rtt_least: Option<Duration>,
    /// Newest RTT sample.
    pub rtt_latest: Option<Duration>,
    /// The same without the time for which the peer held the ack, and when the ack came.
    pub rtt_at: Option<(Duration, Instant)>,
    /// The path that brought that ack.
    pub rtt_via: Option<PathId>,
    /// When a packet last arrived on it.
    pub heard_at: Option<Instant>,
    /// When the packet left whose ack it waits for; none where it waits for none, or for several.
    pub asked_at: Option<Instant>,
    /// All bytes sent on it.
    pub sent_bytes: u64,
    /// All bytes received on it.
    pub received_bytes: u64,
}

/// Paths chosen, in the order of preference.
pub type AckPaths = SmallVec<[PathId; 4]>;

/// Chooses where the acks of a path travel (RFC 10069 3.1: any open path may carry them).
pub trait AckRoute: Send + Debug {
    /// Its name in configurations and results.
    fn name(&self) -> &'static str;

    /// The paths that carry the acks of `of`, out of `carriers`; what is not among them counts as not chosen.
    ///
    /// Carriers are open and can send a small packet now; they may not be validated yet. A path that was silent for a probe
    /// time-out longer than `of` is left out, unless no other path can carry acks. Nothing chosen means: wait until a path can.
    /// An ack of `of` on `of` beside another path asks the peer for an answer, which measures that way.
    fn choose(&mut self, now: Instant, of: PathId, carriers: &[AckCarrier]) -> AckPaths;

    /// Nothing is sent on a path any more: forget it.
    fn on_path_closing(&mut self, _path: PathId) {}
}

/// Makes one policy for each connection.
pub trait AckRouteFactory: Send + Sync + Debug {
    /// Name of the policy that it makes.
    fn name(&self) -> &'static str;

    /// A fresh policy.
    fn build(&self) -> Box<dyn AckRoute>;
}

plait_base::policies! {
    dyn AckRouteFactory, default "fastest";
    "own" => Own,
    "fastest" => Fastest::default(),
    "all" => All,
}

macro_rules! factory {
    ($policy:ident, $name:literal, $fresh:expr) => {
        impl AckRouteFactory for $policy {
            fn name(&self) -> &'static str {
                $name
            }
            fn build(&self) -> Box<dyn AckRoute> {
                Box::new($fresh)
            }
        }
    };
}

factory!(Own, "own", Own);
factory!(Fastest, "fastest", Fastest::default());
factory!(All, "all", All);

/// How good a carrier's state is; lower is better.
fn rank(state: PathState) -> u8 {
    match state {
        PathState::Active => 0,
        PathState::Backup => 1,
        PathState::Failed => 2,
        PathState::Validating => 3,
        PathState::Unused | PathState::Closing | PathState::Closed => 4,
    }
}

fn can_carry(carrier: &&AckCarrier) -> bool {
    rank(carrier.state) < 4
}

/// The best carrier: by state, then RTT, then id.
fn best(carriers: &[AckCarrier]) -> Option<&AckCarrier> {
    let key = |c: &AckCarrier| (rank(c.state), c.rtt.unwrap_or(Duration::MAX), c.id);
    carriers.iter().filter(can_carry).reduce(|best, c| if key(c) < key(best) { c } else { best })
}

/// Acks travel on the path that they acknowledge; RTT samples stay clean.
#[derive(Clone, Copy, Debug, Default)]
struct Own;

impl AckRoute for Own {
    fn name(&self) -> &'static str {
        "own"
    }

    fn choose(&mut self, _now: Instant, of: PathId, carriers: &[AckCarrier]) -> AckPaths {
        let own = carriers.iter().filter(can_carry).find(|c| c.id == of && c.state != PathState::Failed);
        own.or_else(|| best(carriers)).map(|c| c.id).into_iter().collect()
    }
}

/// Acks travel on every path that works: the first copy to arrive counts.
#[derive(Clone, Copy, Debug, Default)]
struct All;

impl AckRoute for All {
    fn name(&self) -> &'static str {
        "all"
    }

    fn choose(&mut self, _now: Instant, _of: PathId, carriers: &[AckCarrier]) -> AckPaths {
        let working = |c: &&AckCarrier| matches!(c.state, PathState::Active | PathState::Backup);
        let all: AckPaths = carriers.iter().filter(working).map(|c| c.id).collect();
        if all.is_empty() { best(carriers).map(|c| c.id).into_iter().collect() } else { all }
    }
}

mod fastest;
#[cfg(test)]
mod tests;
