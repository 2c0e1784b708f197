//! The one place that reads the clock.

use std::time::Duration;

use plait_base::Instant;

/// A clock that counts from its making; copies agree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(std::time::Instant);

impl Clock {
    /// Its origin is now.
    pub(crate) fn start() -> Self {
        #[allow(clippy::disallowed_methods, reason = "the command line lives in real time")]
        Self(std::time::Instant::now())
    }

    /// Time since the origin.
    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }

    /// Now, as links know time.
    pub(crate) fn now(self) -> Instant {
        Instant::ZERO + self.elapsed()
    }

    /// Seconds since the origin.
    pub(crate) fn seconds(self) -> f64 {
        self.elapsed().as_secs_f64()
    }
}
