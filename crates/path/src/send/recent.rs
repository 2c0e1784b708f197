//! The largest and the smallest of what was measured lately.

use std::time::Duration;

use plait_base::Instant;

/// Values of so long are remembered, and of as long before.
const WINDOW: Duration = Duration::from_secs(10);

/// The one value that counts of this window and of the one before, nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Windows {
    picked: [u64; 2],
    since: Instant,
}

impl Windows {
    /// Both windows are empty: `none` is the value that each other one goes before.
    fn new(none: u64) -> Self {
        Self { picked: [none; 2], since: Instant::ZERO }
    }

    #[inline]
    fn note(&mut self, now: Instant, value: Duration, none: u64, pick: fn(u64, u64) -> u64) {
        if now.since(self.since) >= WINDOW {
            self.turn(now, none);
        }
        let nanos = u64::try_from(value.as_nanos()).unwrap_or(u64::MAX);
        self.picked[0] = pick(self.picked[0], nanos);
    }

    #[cold]
    fn turn(&mut self, now: Instant, none: u64) {
        (self.picked, self.since) = ([none, self.picked[0]], now);
    }

    #[inline]
    fn get(&self, pick: fn(u64, u64) -> u64) -> Duration {
        Duration::from_nanos(pick(self.picked[0], self.picked[1]))
    }
}

/// The largest value of the last 10 to 20 seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecentMax(Windows);

impl Default for RecentMax {
    fn default() -> Self {
        Self(Windows::new(0))
    }
}

impl RecentMax {
    /// Takes in a value of `now`.
    #[inline]
    pub(crate) fn note(&mut self, now: Instant, value: Duration) {
        self.0.note(now, value, 0, u64::max);
    }

    /// Zero before the first value.
    #[inline]
    pub(crate) fn get(&self) -> Duration {
        self.0.get(u64::max)
    }
}

/// The smallest value of the last 10 to 20 seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecentMin(Windows);

impl Default for RecentMin {
    fn default() -> Self {
        Self(Windows::new(u64::MAX))
    }
}

impl RecentMin {
    /// Takes in a value of `now`; returns the smallest.
    #[inline]
    pub(crate) fn note(&mut self, now: Instant, value: Duration) -> Duration {
        self.0.note(now, value, u64::MAX, u64::min);
        self.0.get(u64::min)
    }
}
