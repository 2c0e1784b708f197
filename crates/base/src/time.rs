//! Time as the engine sees it: nanoseconds since an origin that the caller chose.

use std::fmt;
use std::num::NonZeroU64;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// A point in time: whole nanoseconds since the caller's origin. The engine never reads a clock;
/// a runtime maps its clock to this, a simulator counts it up.
///
/// ```
/// use plait_base::Instant;
/// use std::time::Duration;
/// let t = Instant::ZERO + Duration::from_millis(5);
/// assert_eq!(t.since(Instant::ZERO), Duration::from_millis(5));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
// One more than the nanoseconds: an optional time, of which a connection has dozens, takes no more room than a time.
pub struct Instant(NonZeroU64);

impl Default for Instant {
    fn default() -> Self {
        Self::ZERO
    }
}

impl Instant {
    /// The caller's origin of time.
    pub const ZERO: Self = Self(NonZeroU64::MIN);

    /// `nanos` nanoseconds after the origin; the last one is for nobody.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(NonZeroU64::MIN.saturating_add(nanos))
    }

    /// Nanoseconds since the origin.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0.get() - 1
    }

    /// Time since the origin.
    #[inline]
    pub const fn since_origin(self) -> Duration {
        Duration::from_nanos(self.as_nanos())
    }

    /// Time from `earlier` to here; zero when `earlier` is later.
    #[inline]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.get().saturating_sub(earlier.0.get()))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    #[inline]
    fn add(self, d: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl AddAssign<Duration> for Instant {
    #[inline]
    fn add_assign(&mut self, d: Duration) {
        *self = *self + d;
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;
    #[inline]
    fn sub(self, d: Duration) -> Self {
        Self::from_nanos(self.as_nanos().saturating_sub(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub for Instant {
    type Output = Duration;
    #[inline]
    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6}s", self.as_nanos() as f64 / 1e9)
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The earlier of two optional deadlines.
#[inline]
pub fn earliest(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_optional_time_is_as_small_as_a_time() {
        assert_eq!(size_of::<Option<Instant>>(), 8);
    }

    #[test]
    fn the_ends_of_time_hold() {
        let last = Instant::from_nanos(u64::MAX);
        assert_eq!(
            (Instant::ZERO.as_nanos(), Instant::from_nanos(7).as_nanos(), last.as_nanos()),
            (0, 7, u64::MAX - 1)
        );
        assert_eq!((last + Duration::MAX, Instant::ZERO - Duration::MAX), (last, Instant::ZERO));
        assert_eq!(
            (last.since(Instant::ZERO).as_nanos(), Instant::ZERO.since(last)),
            (u128::from(u64::MAX - 1), Duration::ZERO)
        );
        assert_eq!(Instant::default(), Instant::ZERO);
        assert_eq!(format!("{:?}", Instant::from_nanos(1_500_000_000)), "1.500000s");
    }
}
