//! How long a datagram takes to leave: fixed rate, no limit, or a recorded trace.

use std::time::Duration;

use plait_base::Instant;

use crate::link::trace::{Trace, TraceCursor};

/// How fast bits leave a link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Rate {
    /// Datagrams leave as they come.
    #[default]
    Unlimited,
    /// Bits a second; 0 stands still until the rate changes.
    Fixed(u64),
    /// At the moments of a trace, which begins when it is set.
    Trace(Trace),
}

impl Rate {
    /// Mean bits a second; none where there is no limit.
    pub fn mean_bps(&self) -> Option<u64> {
        match self {
            Self::Unlimited => None,
            Self::Fixed(bps) => Some(*bps),
            Self::Trace(trace) => Some(trace.mean_bps()),
        }
    }

    /// Time that `bytes` take at the mean rate.
    pub(crate) fn time_of(&self, bytes: u64) -> Duration {
        self.mean_bps().map_or(Duration::ZERO, |bps| time_at(bps, bytes))
    }
}

/// Time that `bytes` take at `bps`, rounded to the nearest nanosecond.
fn time_at(bps: u64, bytes: u64) -> Duration {
    if bps == 0 {
        return Duration::from_nanos(u64::MAX);
    }
    if bytes == 0 {
        return Duration::ZERO;
    }
    let nanos = match bytes.checked_mul(8_000_000_000) {
        Some(product) => product.saturating_add(bps / 2) / bps,
        None => u64::try_from(u128::from(bytes) * 8_000_000_000 / u128::from(bps)).unwrap_or(u64::MAX),
    };
    Duration::from_nanos(nanos)
}

/// The near end of the link: begins and ends the sending of datagrams.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transmitter {
    cursor: TraceCursor,
    trace_began: Instant,
    /// What a fixed rate took last: most datagrams have the size of the one before.
    last: LastTime,
}

/// Bits a second, bytes and the time that these took.
#[derive(Clone, Copy, Debug, Default)]
struct LastTime {
    bps: u64,
    bytes: u64,
    took: Duration,
}

impl Transmitter {
    /// Sends `bytes` from `start` on; says when sending begins and when it ends.
    pub(crate) fn send(&mut self, rate: &Rate, start: Instant, bytes: u64) -> (Instant, Instant) {
        match rate {
            Rate::Unlimited => (start, start),
            Rate::Fixed(bps) => {
                if (self.last.bps, self.last.bytes) != (*bps, bytes) || *bps == 0 {
                    self.last = LastTime { bps: *bps, bytes, took: time_at(*bps, bytes) };
                }
                (start, start + self.last.took)
            }
            Rate::Trace(trace) => {
                let (begin, end) = self.cursor.send(trace, start.since(self.trace_began).as_nanos() as u64, bytes);
                (self.trace_began + Duration::from_nanos(begin), self.trace_began + Duration::from_nanos(end))
            }
        }
    }

    /// When sending could begin, from `start` on.
    pub(crate) fn peek(&self, rate: &Rate, start: Instant) -> Instant {
        match rate {
            Rate::Trace(_) => self.clone().send(rate, start, 1).0.max(start),
            _ => start,
        }
    }

    /// A trace begins at `now`.
    pub(crate) fn restart(&mut self, now: Instant) {
        *self = Self { cursor: TraceCursor::default(), trace_began: now, ..*self };
    }
}
