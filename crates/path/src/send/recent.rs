//! The largest and the smallest of what was measured lately.

use std::time::Duration;

use plait_base::Instant;

/// Values of so long are remembered, and of as long before.
const WINDOW: Duration = Duration::from_secs(10);

/// The one value that counts of this window and of the one before.
#[derive(Clone, Copy, Debug, Default)]
struct Windows {
    picked: [Option<Duration>; 2],
    since: Instant,
}

impl Windows {
    fn note(&mut self, now: Instant, value: Duration, pick: fn(Duration, Duration) -> Duration) {
        if now.since(self.since) >= WINDOW {
            self.turn(now);
        }
        self.picked[0] = Some(self.picked[0].map_or(value, |picked| pick(picked, value)));
    }

    #[cold]
    fn turn(&mut self, now: Instant) {
        (self.picked, self.since) = ([None, self.picked[0]], now);
    }

    #[inline]
    fn get(&self, pick: fn(Duration, Duration) -> Duration) -> Option<Duration> {
        self.picked.into_iter().flatten().reduce(pick)
    }
}

/// The largest value of the last 10 to 20 seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RecentMax(Windows);

impl RecentMax {
    /// Takes in a value of `now`.
    #[inline]
    pub(crate) fn note(&mut self, now: Instant, value: Duration) {
        self.0.note(now, value, Duration::max);
    }

    /// Zero before the first value.
    #[inline]
    pub(crate) fn get(&self) -> Duration {
        self.0.get(Duration::max).unwrap_or(Duration::ZERO)
    }
}

/// The smallest value of the last 10 to 20 seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RecentMin(Windows);

impl RecentMin {
    /// Takes in a value of `now`; returns the smallest.
    #[inline]
    pub(crate) fn note(&mut self, now: Instant, value: Duration) -> Duration {
        self.0.note(now, value, Duration::min);
        self.0.get(Duration::min).unwrap_or(value)
    }
}
