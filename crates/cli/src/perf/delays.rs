//! How long things took: a histogram of fixed size, whatever their number.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;

use crate::units::rounded;

/// Buckets of each doubling: a quantile is right to one part in so many.
const STEPS: u64 = 128;
const STEPS_LOG2: u32 = STEPS.ilog2();
/// Doublings above the first, in nanoseconds of 64 bits.
const DOUBLINGS: usize = (u64::BITS - STEPS_LOG2) as usize;

/// Durations, counted by size.
#[derive(Clone, Debug)]
pub(crate) struct Delays {
    buckets: Vec<u64>,
    count: u64,
    sum: Duration,
    least: Duration,
    most: Duration,
}

/// What is told of them, milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct DelaySummary {
    pub(crate) min: f64,
    pub(crate) mean: f64,
    pub(crate) p50: f64,
    pub(crate) p90: f64,
    pub(crate) p99: f64,
    #[serde(rename = "p99.9")]
    pub(crate) p999: f64,
    pub(crate) max: f64,
}

impl Default for Delays {
    fn default() -> Self {
        Self {
            buckets: vec![0; STEPS as usize * (DOUBLINGS + 1)],
            count: 0,
            sum: Duration::ZERO,
            least: Duration::MAX,
            most: Duration::ZERO,
        }
    }
}

/// The bucket of so many nanoseconds: their highest bits.
fn bucket(ns: u64) -> usize {
    let shift = (u64::BITS - ns.leading_zeros()).saturating_sub(STEPS_LOG2 + 1);
    (u64::from(shift) * STEPS + (ns >> shift)) as usize
}

/// The largest number of nanoseconds in a bucket.
fn last_of(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let shift = (bucket / STEPS).saturating_sub(1);
    let top = bucket - shift * STEPS;
    (top << shift) + ((1 << shift) - 1)
}

impl Delays {
    /// Something took so long.
    pub(crate) fn add(&mut self, delay: Duration) {
        let ns = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        if let Some(count) = self.buckets.get_mut(bucket(ns)) {
            *count += 1;
        }
        self.count += 1;
        self.sum += delay;
        (self.least, self.most) = (self.least.min(delay), self.most.max(delay));
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The delay that `share` of them do not exceed, in milliseconds.
    fn quantile(&self, share: f64) -> f64 {
        let rank = ((share * self.count as f64).ceil() as u64).max(1);
        let mut below = 0;
        let at = self.buckets.iter().position(|count| {
            below += count;
            below >= rank
        });
        at.map_or(0.0, |bucket| ms(Duration::from_nanos(last_of(bucket)).clamp(self.least, self.most)))
    }

    /// What is told of them; none without any.
    pub(crate) fn summary(&self) -> Option<DelaySummary> {
        (self.count > 0).then(|| DelaySummary {
            min: ms(self.least),
            mean: ms(self.sum / u32::try_from(self.count).unwrap_or(u32::MAX)),
            p50: self.quantile(0.5),
            p90: self.quantile(0.9),
            p99: self.quantile(0.99),
            p999: self.quantile(0.999),
            max: ms(self.most),
        })
    }
}

/// Durations that several tasks count; copies agree.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedDelays(Arc<Mutex<Delays>>);

impl SharedDelays {
    /// Something took so long.
    pub(crate) fn add(&self, delay: Duration) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).add(delay);
    }

    /// How many there are by now.
    pub(crate) fn count(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).count()
    }

    /// What there is by now.
    pub(crate) fn snapshot(&self) -> Delays {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn ms(time: Duration) -> f64 {
    rounded(time.as_secs_f64() * 1e3, 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_without_gaps() {
        let mut end = 0;
        for bucket_at in 0..STEPS as usize * 20 {
            let last = last_of(bucket_at);
            assert_eq!((bucket(end), bucket(last)), (bucket_at, bucket_at), "{end} to {last}");
            assert!(last - end <= end / STEPS, "{end} to {last}");
            end = last + 1;
        }
        assert!(bucket(u64::MAX) < Delays::default().buckets.len());
    }

    #[test]
    fn quantiles_are_within_a_percent() {
        let mut delays = Delays::default();
        assert_eq!(delays.summary(), None);
        for us in 1..=10_000_u64 {
            delays.add(Duration::from_micros(us));
        }
        let told = delays.summary().unwrap();
        let close = |ms: f64, expected: f64| (ms / expected - 1.0).abs() < 0.01;
        assert!(close(told.p50, 5.0) && close(told.p90, 9.0) && close(told.p99, 9.9) && close(told.p999, 9.99));
        assert_eq!((told.min, told.mean, told.max), (0.001, 5.0005, 10.0));
        assert_eq!(delays.count(), 10_000);
        let mut one = Delays::default();
        one.add(Duration::from_millis(3));
        let told = one.summary().unwrap();
        assert_eq!((told.min, told.p50, told.p999, told.max), (3.0, 3.0, 3.0, 3.0));
    }
}
