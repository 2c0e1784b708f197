//! The one clock that all processes of a machine share.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// A point of CLOCK_MONOTONIC, since its origin: the same clock for the emulator, clients and servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClockPoint(pub(crate) Duration);

impl ClockPoint {
    /// Now. A clock that cannot be read, which Linux does not have, stands at its origin.
    pub(crate) fn now() -> Self {
        Self(clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from).unwrap_or_default())
    }

    /// Seconds of the clock, as a client's JSON says them.
    pub(crate) fn from_seconds(seconds: f64) -> Option<Self> {
        Duration::try_from_secs_f64(seconds).ok().map(Self)
    }

    /// Time from `earlier` to here; none passes backwards.
    pub(crate) fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// Waits so long.
#[expect(clippy::disallowed_methods, reason = "real time passes here, and nothing else is waited for")]
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}
