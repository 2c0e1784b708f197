//! Reinjection: whether data on its way on one path is sent again on another that has nothing better to carry.
//!
//! A policy of its own beside the scheduler: it is asked when a path stands open and no new data may leave, so a copy takes
//! the place of new data only where a limit will soon stop that. Every packet is copied at most once, and copies are not copied again.
//!
//! ```
//! use plait_base::{Instant, PathId};
//! use plait_schedule::reinject::{self, Occasion, Outstanding, Verdict};
//! use plait_schedule::PathView;
//! use std::time::Duration;
//! let mut policy = reinject::by_name("tail").unwrap().build();
//! let idle = PathView { rtt: Some(Duration::from_millis(10)), ..PathView::new(PathId(0)) };
//! let slow = PathView { rtt: Some(Duration::from_millis(400)), ..PathView::new(PathId(1)) };
//! let now = Instant::ZERO;
//! let packet = Outstanding { sent_at: now, bytes: 1200, ahead_bytes: 1200 };
//! assert_eq!(policy.judge(&idle, &slow, &packet, Occasion::Drained, now), Verdict::Copy);
//! ```

mod deadline;
mod opportunistic;
mod tail;

use std::fmt::Debug;
use std::time::Duration;

use plait_base::Instant;

pub use deadline::{Deadline, DeadlineFactory};
use opportunistic::OpportunisticFactory;
pub use tail::{Tail, TailFactory};

use crate::view::PathView;

/// Why a path stands open with nothing new to carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// All data was sent and no stream goes on: what is outstanding is the end of it.
    Drained,
    /// All data was sent, but more may follow at any time: the application is the slower one just now.
    Paused,
    /// What is left was dealt to a faster path, which is waited for, and no stream goes on.
    Held,
    /// The peer's flow control or our own send buffer lets nothing new out until the oldest data arrives.
    Blocked,
    /// New data may leave for so long yet; then such a limit is reached, if the packet that is judged has not arrived.
    Closing(Duration),
}

/// One packet on its way on another path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outstanding {
    /// When it was sent.
    pub sent_at: Instant,
    /// Its size, bytes.
    pub bytes: u64,
    /// Bytes of its path's flight up to and including it.
    pub ahead_bytes: u64,
}

impl Outstanding {
    /// When its ack should come: a round trip after it left, or when all that is ahead of it on `path` has drained at
    /// the measured rate, whichever is later. None while nothing is known of the path.
    pub fn expected_ack(&self, path: &PathView, now: Instant) -> Option<Instant> {
        let rtt = path.rtt?;
        let by_rtt = self.sent_at + rtt;
        let Some(rate) = path.delivery_rate_bps else { return Some(by_rtt) };
        // A rate measured while little was sent says little: it delays by twice the longest round trip seen at most.
        let limit = path.recent_rtt.max.max(rtt).saturating_mul(2);
        Some(by_rtt.max(now + drain(self.ahead_bytes, rate).min(limit)))
    }

    /// When it is late: an eighth more than a round trip after it left (RFC 9002 6.1.2).
    pub(crate) fn late_at(&self, path: &PathView) -> Option<Instant> {
        path.rtt.map(|rtt| self.sent_at + rtt + rtt / 8)
    }

    /// When it is overdue: a round trip and four times its variation after it left (RFC 9002 6.2.1, without the time
    /// that a receiver may hold its ack back).
    pub fn overdue_at(&self, path: &PathView) -> Option<Instant> {
        Some(self.sent_at + path.rtt? + path.rtt_var.saturating_mul(4).max(Duration::from_millis(1)))
    }
}

/// The round trip of the next packet on `path`: the smoothed one, or what the path's own flight takes to drain where that
/// is less. A path that stood idle has no queue of its own any more, whatever its last samples said.
pub fn next_round_trip(path: &PathView) -> Option<Duration> {
    let rtt = path.rtt?;
    Some(flight_drained(path).map_or(rtt, |drained| rtt.min(drained)))
}

/// How long a packet more takes behind the flight of `path` at its measured rate, but no less than its least round trip; none
/// while no rate was measured.
pub fn flight_drained(path: &PathView) -> Option<Duration> {
    let rate = path.delivery_rate_bps?;
    Some(drain(path.in_flight_bytes.saturating_add(path.max_datagram_bytes), rate).max(path.rtt_min))
}

/// How long `bytes` take at a rate of `bps`.
fn drain(bytes: u64, bps: u64) -> Duration {
    let nanos = u128::from(bytes) * 8_000_000_000 / u128::from(bps.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// What a policy says of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Send its data again on the idle path now.
    Copy,
    /// Not now; ask again at that time, if the path is still idle.
    Later(Instant),
    /// Not unless something else changes.
    No,
}

/// Judges packets, one at a time.
pub trait Reinjection: Send + Debug {
    /// The name that configuration and results use.
    fn name(&self) -> &'static str;

    /// Whether `packet`, on its way on `busy`, is sent again on `idle`, which admits a packet.
    ///
    /// Asked for the newest packets of `busy` first when the data is drained, the oldest first otherwise, until
    /// the answer is not [`Verdict::Copy`]; then from the other end. For [`Occasion::Closing`] it is asked from the oldest on alone, and past
    /// [`Verdict::Later`] only where a packet that left now would be copied.
    fn judge(
        &mut self,
        idle: &PathView,
        busy: &PathView,
        packet: &Outstanding,
        occasion: Occasion,
        now: Instant,
    ) -> Verdict;

    /// A packet of `bytes` with data left; `copied` of them are data sent before.
    fn on_sent(&mut self, _bytes: u64, _copied: u64, _now: Instant) {}
}

/// Makes one policy for each connection.
pub trait ReinjectionFactory: Send + Sync + Debug {
    /// Name of what it builds.
    fn name(&self) -> &'static str;

    /// A policy for a new connection, in its first state.
    fn build(&self) -> Box<dyn Reinjection>;
}

#[derive(Clone, Copy, Debug, Default)]
struct NeverFactory;

impl ReinjectionFactory for NeverFactory {
    fn name(&self) -> &'static str {
        "none"
    }

    fn build(&self) -> Box<dyn Reinjection> {
        Box::new(Never)
    }
}

/// Copies nothing: lost data alone is sent again.
#[derive(Clone, Copy, Debug, Default)]
struct Never;

impl Reinjection for Never {
    fn name(&self) -> &'static str {
        "none"
    }

    fn judge(&mut self, _: &PathView, _: &PathView, _: &Outstanding, _: Occasion, _: Instant) -> Verdict {
        Verdict::No
    }
}

plait_base::policies! {
    dyn ReinjectionFactory, default "tail";
    "tail" => TailFactory,
    "none" => NeverFactory,
    "opportunistic" => OpportunisticFactory,
    "deadline" => DeadlineFactory::default(),
}

#[cfg(test)]
mod tests;
