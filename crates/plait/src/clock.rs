//! The endpoint's clock: the one place that reads the time.
#![allow(clippy::disallowed_methods)]

use std::time::{Duration, SystemTime};

use plait_base::Instant;

/// Maps the system's monotonic clock to the engine's time: nanoseconds since the endpoint began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: std::time::Instant,
}

impl Clock {
    /// A clock that begins now.
    pub(crate) fn start() -> Self {
        Self { origin: std::time::Instant::now() }
    }

    /// The time as the engine counts it.
    pub(crate) fn now(self) -> Instant {
        Instant::ZERO + self.origin.elapsed()
    }

    /// A time of the engine on tokio's clock.
    pub(crate) fn for_timer(self, at: Instant) -> tokio::time::Instant {
        (self.origin + at.since_origin()).into()
    }
}

/// Time since 1970.
pub(crate) fn unix_time() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}
