//! What is measured of a transfer: stalls, first byte, and what several paths gained over one.

use std::time::Duration;

/// Times of a body that arrives in pieces, as time since the transfer began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrivals {
    first: Option<Duration>,
    last: Option<Duration>,
    longest_gap: Duration,
}

impl Arrivals {
    /// A piece of the body arrived.
    pub(crate) fn on_chunk(&mut self, at: Duration) {
        if let Some(last) = self.last {
            self.longest_gap = self.longest_gap.max(at.saturating_sub(last));
        }
        self.first.get_or_insert(at);
        self.last = Some(at);
    }

    /// When the first piece came.
    pub(crate) fn first(&self) -> Option<Duration> {
        self.first
    }

    /// It broke off: the time since the last piece was a stall too.
    pub(crate) fn on_broken_off(&mut self, at: Duration) {
        if let Some(last) = self.last {
            self.longest_gap = self.longest_gap.max(at.saturating_sub(last));
        }
    }

    /// Longest time between two pieces.
    pub(crate) fn longest_gap(&self) -> Duration {
        self.longest_gap
    }
}

/// Experimental aggregation benefit (De Coninck and Bonaventure, CoNEXT 2017, 4.1): 0 when several paths are as good as
/// the best one alone, 1 when they reach the sum of all, negative when they are worse than the best.
pub(crate) fn aggregation_benefit(together: f64, alone: &[f64]) -> f64 {
    let best = alone.iter().copied().fold(0.0, f64::max);
    let sum: f64 = alone.iter().sum();
    if together >= best {
        if sum > best { (together - best) / (sum - best) } else { 0.0 }
    } else {
        (together - best) / best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn benefit() {
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(close(aggregation_benefit(80.0, &[50.0, 30.0]), 1.0));
        assert!(close(aggregation_benefit(50.0, &[50.0, 30.0]), 0.0));
        assert!(close(aggregation_benefit(65.0, &[30.0, 50.0]), 0.5));
        assert!(close(aggregation_benefit(25.0, &[50.0, 30.0]), -0.5));
        assert!(close(aggregation_benefit(0.0, &[50.0, 30.0]), -1.0));
        assert!(close(aggregation_benefit(88.0, &[50.0, 30.0]), 38.0 / 30.0));
        assert!(close(aggregation_benefit(50.0, &[50.0, 0.0]), 0.0));
    }

    #[test]
    fn gaps() {
        let mut arrivals = Arrivals::default();
        assert_eq!((arrivals.first(), arrivals.longest_gap()), (None, Duration::ZERO));
        for ms in [40, 41, 300, 301] {
            arrivals.on_chunk(Duration::from_millis(ms));
        }
        assert_eq!(arrivals.first(), Some(Duration::from_millis(40)));
        assert_eq!(arrivals.longest_gap(), Duration::from_millis(259));
        arrivals.on_broken_off(Duration::from_millis(1301));
        assert_eq!(arrivals.longest_gap(), Duration::from_millis(1000));
    }
}
