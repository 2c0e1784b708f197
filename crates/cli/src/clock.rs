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

    /// Now on the clock that every process of this machine reads (CLOCK_MONOTONIC), seconds; none where there is none.
    pub(crate) fn shared_seconds() -> Option<f64> {
        #[cfg(unix)]
        {
            use nix::time::{ClockId, clock_gettime};
            clock_gettime(ClockId::CLOCK_MONOTONIC).ok().map(|time| Duration::from(time).as_secs_f64())
        }
        #[cfg(not(unix))]
        None
    }

    /// Seconds since the origin.
    pub(crate) fn seconds(self) -> f64 {
        self.elapsed().as_secs_f64()
    }
}
