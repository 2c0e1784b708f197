//! On which paths the acknowledgements of a path travel.

use std::fmt::Debug;
use std::time::Duration;

use plait_base::observe::PathState;
use plait_base::{Instant, PathId};
use smallvec::SmallVec;

/// What an ack route sees of a path that may carry acks now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckCarrier {
    /// The path id.
    pub id: PathId,
    /// State as the table sees it.
    pub state: PathState,
    /// Smoothed RTT; none before the first sample.
    pub rtt: Option<Duration>,
    /// Smallest RTT ever, whichever way its acks came: the path without queues.
    pub rtt_least: Option<Duration>,
    /// Newest RTT sample.
    pub rtt_latest: Option<Duration>,
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

/// How long acks keep to their own paths after they crowded the fastest one, round trips of that one then.
const HOME_ROUND_TRIPS: u32 = 32;

/// An RTT that is so many times that of another path is no queue of data any more.
const ANOTHER_PATH: u32 = 8;

/// Acks travel on the path of the smallest RTT, and stay there until another is clearly faster.
///
/// The smallest RTT may belong to a thin path. Where the acks of others fill it, as its RTT shows, or where its queue is
/// longer than the way home, all acks keep to their own paths for a while.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fastest {
    last: Option<PathId>,
    /// Until when acks keep to their own paths.
    home_until: Option<Instant>,
    /// Bytes sent and received on that path when its RTT last was what it can be.
    calm: (u64, u64),
}

impl Fastest {
    /// True where the queue on `last` may be our own: its RTT is not what it can be, and what we sent there since it was
    /// is no small part of what came.
    fn is_crowded(&mut self, last: &AckCarrier) -> bool {
        let (Some(latest), Some(least)) = (last.rtt_latest, last.rtt_least) else { return false };
        if latest <= least * 2 {
            self.calm = (last.sent_bytes, last.received_bytes);
            return false;
        }
        let (sent, received) = self.calm;
        last.sent_bytes.saturating_sub(sent) > last.received_bytes.saturating_sub(received) / 2
    }
}

impl AckRoute for Fastest {
    fn name(&self) -> &'static str {
        "fastest"
    }

    fn choose(&mut self, now: Instant, of: PathId, carriers: &[AckCarrier]) -> AckPaths {
        let unmeasured = |c: &&AckCarrier| c.id == of && c.rtt.is_none() && rank(c.state) <= rank(PathState::Backup);
        if let Some(own) = carriers.iter().find(unmeasured) {
            // It may be the fastest of all: an ack that went elsewhere would hide that, and slow its first round trips.
            return std::iter::once(own.id).collect();
        }
        let Some(mut chosen) = best(carriers) else { return AckPaths::new() };
        let as_good = |c: &&AckCarrier| rank(c.state) == rank(chosen.state);
        let own = carriers.iter().filter(as_good).find(|c| c.id == of);
        if chosen.rtt.is_none() {
            // Nothing measured yet: the path that brought the data works.
            chosen = carriers.iter().filter(can_carry).find(|c| c.id == of).unwrap_or(chosen);
        }
        let last = carriers.iter().filter(as_good).find(|c| Some(c.id) == self.last);
        if let Some((last, rtt)) = last.and_then(|c| Some((c, c.rtt?))) {
            let is_crowded = self.is_crowded(last);
            let is_late =
                |own: &AckCarrier| is_crowded && last.rtt_latest > own.rtt || is_far_behind(last, own.rtt_least);
            if last.id != of && own.is_some_and(is_late) {
                self.home_until = last.rtt_latest.map(|latest| now + latest * HOME_ROUND_TRIPS);
                self.last = None;
            }
            if chosen.rtt.is_none_or(|fastest| !is_faster(chosen, fastest, last, rtt, is_crowded)) {
                chosen = last;
            }
        }
        if let Some(own) = own.filter(|_| self.home_until.is_some_and(|until| now < until)) {
            return std::iter::once(own.id).collect();
        }
        if chosen.rtt.is_some() {
            self.last = Some(chosen.id);
        }
        std::iter::once(chosen.id).collect()
    }

    fn on_path_closing(&mut self, path: PathId) {
        self.last = self.last.filter(|&last| last != path);
    }
}

/// True where the queue on `last` costs acks more than the whole way of their own, whoever filled it.
///
/// Who receives sends so little beside what comes that bytes do not tell a thin way back full of acks from a way here full of
/// data. Behind the second, acks that go home come later by less than the own round trip; in the first they would wait for more.
/// `own` is the smallest round trip: those measured since may hold the same queue.
fn is_far_behind(last: &AckCarrier, own: Option<Duration>) -> bool {
    let queue = last.rtt_latest.zip(last.rtt_least).map(|(latest, least)| latest.saturating_sub(least));
    queue.zip(own).is_some_and(|(queue, own)| queue > own)
}

/// True where acks had better move from `last` to `chosen`.
///
/// RFC 10069 5.4: a stable way back keeps RTT samples comparable; an eighth at least must be gained. And an RTT is two
/// ways: that of a path whose other way is full of its own data says nothing of the way that acks go, so that a path
/// which is longer without queues takes over only where the queue may be ours, or where the last one has become another
/// path altogether.
fn is_faster(chosen: &AckCarrier, fastest: Duration, last: &AckCarrier, rtt: Duration, is_crowded: bool) -> bool {
    let may_move = is_crowded || chosen.rtt_least <= last.rtt_least;
    fastest < if may_move { rtt - rtt / 8 } else { rtt / ANOTHER_PATH }
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

#[cfg(test)]
mod tests;
