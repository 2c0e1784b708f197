//! Packets in turn by weight: the candidate that has carried the fewest packets for its window or its RTT.

use std::time::Duration;

use plait_base::{Instant, PathId, Random};

use crate::candidates::candidates;
use crate::decision::Decision;
use crate::quota::Quotas;
use crate::scheduler::{Scheduler, SchedulerFactory};
use crate::view::{Demand, PathView};

/// Weights beyond this (bytes or microseconds) count as this, so that products with quotas fit.
const WEIGHT_MAX: u128 = u32::MAX as u128;

/// What a path's share is in proportion to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weight {
    /// Its congestion window: quota / cwnd is levelled.
    #[default]
    Window,
    /// The inverse of its smoothed RTT: quota * srtt is levelled.
    Rtt,
}

impl Weight {
    /// The weight as a fraction, numerator and denominator, both above 0.
    fn of(self, path: &PathView) -> (u128, u128) {
        match self {
            Self::Window => (u128::from(path.window_bytes).clamp(1, WEIGHT_MAX), 1),
            Self::Rtt => (1, path.rtt.unwrap_or(Duration::from_secs(1)).as_micros().clamp(1, WEIGHT_MAX)),
        }
    }
}

/// Builds the scheduler `weighted`.
#[derive(Clone, Copy, Debug, Default)]
pub struct WeightedFactory {
    /// What a path's share of the packets follows.
    pub weight: Weight,
}

impl SchedulerFactory for WeightedFactory {
    fn name(&self) -> &'static str {
        "weighted"
    }

    fn build(&self, _random: Random) -> Box<dyn Scheduler> {
        Box::new(Weighted { weight: self.weight, quotas: Quotas::default() })
    }
}

/// Packet counts in proportion to weights, as far as windows allow.
#[derive(Clone, Debug, Default)]
struct Weighted {
    weight: Weight,
    quotas: Quotas,
}

impl Scheduler for Weighted {
    fn name(&self) -> &'static str {
        "weighted"
    }

    fn pick(&mut self, paths: &[PathView], _demand: &Demand) -> Decision {
        let weight = self.weight;
        self.quotas.admit(paths, |path, quota, other| {
            let ((a, b), (c, d)) = (weight.of(path), weight.of(other));
            u64::try_from(u128::from(quota) * a * d / (b * c)).unwrap_or(u64::MAX)
        });
        // quota / (n / d) compared by cross-multiplication; 64 + 32 bits fit.
        let least = candidates(paths).min_by(|a, b| {
            let ((an, ad), (bn, bd)) = (weight.of(a), weight.of(b));
            let left = u128::from(self.quotas.get(a.id)).saturating_mul(ad * bn);
            let right = u128::from(self.quotas.get(b.id)).saturating_mul(bd * an);
            left.cmp(&right).then(a.id.cmp(&b.id))
        });
        Decision::send_or_wait(least, paths)
    }

    fn on_sent(&mut self, path: PathId, _bytes: u64, _now: Instant) {
        self.quotas.add(path);
    }

    fn on_path_closing(&mut self, path: PathId) {
        self.quotas.remove(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::candidates::tests::{play, view};

    #[test]
    fn shares_follow_windows() {
        let mut paths = [view(0, 10), view(1, 10)];
        (paths[0].window_bytes, paths[1].window_bytes) = (30_000, 10_000);
        let picked = play(&mut Weighted::default(), &paths, 400);
        assert_eq!(picked.iter().filter(|p| **p == 0).count(), 300);
        // and evenly: each run of four has one of path 1
        assert!(picked.chunks(4).all(|run| run.iter().sum::<u32>() == 1));
    }

    #[test]
    fn shares_follow_inverse_rtts() {
        let mut weighted = Weighted { weight: Weight::Rtt, quotas: Quotas::default() };
        let picked = play(&mut weighted, &[view(0, 10), view(1, 40)], 500);
        assert_eq!(picked.iter().filter(|p| **p == 0).count(), 400);
    }

    #[test]
    fn a_newcomer_begins_level() {
        let mut weighted = Weighted::default();
        let mut paths = [view(0, 10), view(1, 10)];
        paths[0].window_bytes = 20_000;
        play(&mut weighted, &paths[..1], 100);
        let picked = play(&mut weighted, &paths, 30);
        assert_eq!(picked.iter().filter(|p| **p == 1).count(), 10);
    }
}
