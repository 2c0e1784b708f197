//! The largest of what was measured lately.

use std::time::Duration;

use plait_base::Instant;

/// The largest of so long is remembered, and of as long before.
const WINDOW: Duration = Duration::from_secs(10);

/// The largest value of the last 10 to 20 seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RecentMax {
    /// Of this window and of the one before.
    largest: [Duration; 2],
    since: Instant,
}

impl RecentMax {
    /// Takes in a value of `now`.
    pub(crate) fn note(&mut self, now: Instant, value: Duration) {
        if now.since(self.since) >= WINDOW {
            (self.largest, self.since) = ([Duration::ZERO, self.largest[0]], now);
        }
        self.largest[0] = self.largest[0].max(value);
    }

    /// Zero before the first value.
    #[inline]
    pub(crate) fn get(&self) -> Duration {
        self.largest[0].max(self.largest[1])
    }
}
