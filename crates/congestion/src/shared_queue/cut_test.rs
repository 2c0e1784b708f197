//! One cut as an experiment: the delay before it and after it.

use std::time::Duration;

use plait_base::Instant;
use plait_base::shared_metrics::Cut;

use crate::controller::Acked;

/// Samples that a delay after a cut takes.
const SAMPLES_MIN: u32 = 2;
/// Smaller falls of delay than this prove nothing, seconds.
const FALL_MIN_S: f64 = 0.001;
/// And so do falls below this part of the RTT,
const FALL_MIN_PART: f64 = 0.02;
/// and those below so many times what chance makes of them.
const ERRORS_MIN: f64 = 1.5;
/// Variance of a smoothed RTT next to that of its samples (RFC 9002 5.3: an eighth of each new one).
const BEFORE_VARIANCE: f64 = 1.0 / 15.0;

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
    /// Sum of the squares of what lies above or below the delay before.
    squares: f64,
    samples: u32,
    /// A packet from after that time was acked.
    pub(super) is_over: bool,
}

impl CutTest {
    /// Begins where the delay is `before`.
    pub(super) fn new(cut: &Cut, before: Duration) -> Self {
        let (from, to) = (cut.at + cut.rtt / 2, cut.at + cut.rtt * 2);
        Self { from, to, before_s: before.as_secs_f64(), sum_s: 0.0, squares: 0.0, samples: 0, is_over: false }
    }

    pub(super) fn on_acked(&mut self, ack: &Acked) {
        if (self.from..=self.to).contains(&ack.sent_at) {
            let above = ack.rtt.latest.as_secs_f64() - self.before_s;
            self.sum_s += above;
            self.squares += above * above;
            self.samples += 1;
        }
        self.is_over |= ack.sent_at > self.to;
    }

    /// By how much the delay fell; none while the test lasts or when too few samples came.
    pub(super) fn fall(&self) -> Option<Fall> {
        if !self.is_over || self.samples < SAMPLES_MIN {
            return None;
        }
        let samples = f64::from(self.samples);
        let mean = self.sum_s / samples;
        let variance = (self.squares / samples - mean * mean).max(0.0);
        Some(Fall { by_s: -mean, error_s: (variance / samples + variance * BEFORE_VARIANCE).sqrt() })
    }
}

/// By how much a delay fell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fall {
    pub(super) by_s: f64,
    /// By how much that may be wrong, as a standard deviation.
    error_s: f64,
}

impl Fall {
    /// True where a fall by so many seconds would stand out from what was measured by chance.
    pub(super) fn could_show(&self, by_s: f64) -> bool {
        by_s >= ERRORS_MIN * self.error_s
    }
}
