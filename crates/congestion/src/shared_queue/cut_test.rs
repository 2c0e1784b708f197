//! One cut as an experiment: the delay before it and after it.

use std::time::Duration;

use plait_base::Instant;
use plait_base::shared_metrics::Cut;

use crate::controller::Acked;

/// Samples that a delay after a cut takes.
const SAMPLES_MIN: u32 = 2;
/// Smaller falls of delay than this prove nothing, seconds.
const FALL_MIN_S: f64 = 0.001;
/// And so do falls below this part of the RTT.
const FALL_MIN_PART: f64 = 0.02;

/// The smallest fall of delay that shows, seconds, on a path with this RTT.
pub(super) fn least_fall(rtt: Duration) -> f64 {
    FALL_MIN_S.max(FALL_MIN_PART * rtt.as_secs_f64())
}

/// Delay before and after a cut.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CutTest {
    /// Packets sent within this time show what the cut did.
    from: Instant,
    pub(super) to: Instant,
    before_s: f64,
    sum_s: f64,
    samples: u32,
    /// A packet from after that time was acked.
    pub(super) is_over: bool,
}

impl CutTest {
    /// Begins where the delay is `before`.
    pub(super) fn new(cut: &Cut, before: Duration) -> Self {
        let (from, to) = (cut.at + cut.rtt / 2, cut.at + cut.rtt * 2);
        Self { from, to, before_s: before.as_secs_f64(), sum_s: 0.0, samples: 0, is_over: false }
    }

    pub(super) fn on_acked(&mut self, ack: &Acked) {
        if (self.from..=self.to).contains(&ack.sent_at) {
            self.sum_s += ack.rtt.latest.as_secs_f64();
            self.samples += 1;
        }
        self.is_over |= ack.sent_at > self.to;
    }

    /// By how much the delay fell; none while the test lasts or when too few samples came.
    pub(super) fn fall(&self) -> Option<f64> {
        let known = self.is_over && self.samples >= SAMPLES_MIN;
        known.then(|| self.before_s - self.sum_s / f64::from(self.samples))
    }
}
