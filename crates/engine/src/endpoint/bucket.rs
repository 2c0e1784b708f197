//! A token bucket: bounds how often the endpoint answers strangers.

use plait_base::{Instant, limits};

/// Allows `per_second` answers on average and a burst of at most `limits::MAX_QUEUED_REPLIES`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    per_second: u32,
    /// Nanoseconds of credit; one answer costs a second's worth over `per_second`.
    credit_nanos: u64,
    seen: Instant,
}

const SECOND_NANOS: u64 = 1_000_000_000;

impl Bucket {
    /// A full bucket.
    pub(crate) fn new(per_second: u32) -> Self {
        let mut bucket = Self { per_second, credit_nanos: 0, seen: Instant::ZERO };
        bucket.credit_nanos = bucket.most();
        bucket
    }

    fn cost(&self) -> u64 {
        SECOND_NANOS / u64::from(self.per_second.max(1))
    }

    fn most(&self) -> u64 {
        let burst = u64::from(self.per_second).min(limits::MAX_QUEUED_REPLIES as u64);
        self.cost().saturating_mul(burst)
    }

    /// Takes one answer; false when there is none left at `now`.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        if self.per_second == 0 {
            return false;
        }
        let earned = u64::try_from(now.since(self.seen).as_nanos()).unwrap_or(u64::MAX);
        self.seen = self.seen.max(now);
        self.credit_nanos = self.credit_nanos.saturating_add(earned).min(self.most());
        match self.credit_nanos.checked_sub(self.cost()) {
            Some(left) => {
                self.credit_nanos = left;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn burst_then_rate() {
        let mut bucket = Bucket::new(1_000);
        let now = Instant::ZERO + Duration::from_secs(100);
        assert_eq!((0..1_000).filter(|_| bucket.take(now)).count(), limits::MAX_QUEUED_REPLIES);
        let later = now + Duration::from_millis(10);
        assert_eq!((0..1_000).filter(|_| bucket.take(later)).count(), 10);
    }

    #[test]
    fn time_that_runs_back_earns_nothing() {
        let mut bucket = Bucket::new(1);
        let now = Instant::ZERO + Duration::from_secs(100);
        assert!(bucket.take(now));
        assert!(!bucket.take(now - Duration::from_secs(50)));
        assert!(!bucket.take(now + Duration::from_millis(999)));
        assert!(bucket.take(now + Duration::from_secs(1)));
    }

    #[test]
    fn zero_allows_nothing() {
        assert!(!Bucket::new(0).take(Instant::ZERO + Duration::from_secs(9)));
    }
}
