//! How late the loop was: how long after its due time each packet was handed over.

use std::time::Duration;

/// Packets by whole microseconds that they were late, and one more count for all that were later.
const MICROS: usize = 20_000;

/// A histogram of fixed size.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    counts: Vec<u32>,
    total: u64,
    most: Duration,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; MICROS + 1], total: 0, most: Duration::ZERO }
    }
}

impl Histogram {
    /// One more packet.
    pub(crate) fn add(&mut self, late: Duration) {
        let at = usize::try_from(late.as_micros()).unwrap_or(MICROS).min(MICROS);
        if let Some(count) = self.counts.get_mut(at) {
            *count = count.saturating_add(1);
        }
        self.total += 1;
        self.most = self.most.max(late);
    }

    /// The latest packet's.
    pub(crate) fn most(&self) -> Duration {
        self.most
    }

    /// What `share` of the packets do not exceed, to the microsecond above; the most where that is beyond the scale.
    pub(crate) fn quantile(&self, share: f64) -> Duration {
        let rank = ((share * self.total as f64).ceil() as u64).max(1);
        let mut below = 0;
        let at = self.counts.iter().take(MICROS).position(|count| {
            below += u64::from(*count);
            below >= rank
        });
        at.map_or(self.most, |micros| Duration::from_micros(micros as u64 + 1).min(self.most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles() {
        let mut lateness = Histogram::default();
        assert_eq!((lateness.quantile(0.99), lateness.most()), (Duration::ZERO, Duration::ZERO));
        (0..100).for_each(|micros| lateness.add(Duration::from_micros(micros)));
        assert_eq!(
            (lateness.quantile(0.5), lateness.quantile(0.99)),
            (Duration::from_micros(50), Duration::from_micros(99))
        );
        assert_eq!(lateness.quantile(1.0), Duration::from_micros(99));
        (0..100).for_each(|_| lateness.add(Duration::from_secs(1)));
        assert_eq!((lateness.quantile(0.99), lateness.most()), (Duration::from_secs(1), Duration::from_secs(1)));
    }
}
