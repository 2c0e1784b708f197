//! Reinjection by deadline with a budget, after XLINK (Zheng et al., SIGCOMM 2021): data that is older than it should be.

use std::time::Duration;

use plait_base::Instant;

use super::{Occasion, Outstanding, Reinjection, ReinjectionFactory, Verdict};
use crate::view::PathView;

/// Builds [`Deadline`] with these settings.
#[derive(Clone, Copy, Debug)]
pub struct DeadlineFactory {
    /// No younger packet is copied.
    pub age_min: Duration,
    /// Any older packet is copied.
    pub age_max: Duration,
    /// Between the two: this multiple of the idle path's RTT, in percent.
    pub rtt_percent: u32,
    /// Copied bytes per hundred bytes of new data, at most.
    pub budget_percent: u32,
}

impl Default for DeadlineFactory {
    /// 20 to 500 ms, 110 % of the RTT, a budget of 20 %.
    fn default() -> Self {
        Self {
            age_min: Duration::from_millis(20),
            age_max: Duration::from_millis(500),
            rtt_percent: 110,
            budget_percent: 20,
        }
    }
}

impl ReinjectionFactory for DeadlineFactory {
    fn name(&self) -> &'static str {
        "deadline"
    }

    fn build(&self) -> Box<dyn Reinjection> {
        Box::new(Deadline { settings: *self, new_bytes: FIRST_BYTES, copied_bytes: 0 })
    }
}

/// New data that the budget assumes to have been sent at the start, so that a first request can be saved too.
const FIRST_BYTES: u64 = 64_000;

/// The policy: what was sent so far, to keep to the budget.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    settings: DeadlineFactory,
    new_bytes: u64,
    copied_bytes: u64,
}

impl Reinjection for Deadline {
    fn name(&self) -> &'static str {
        "deadline"
    }

    fn judge(&mut self, idle: &PathView, _: &PathView, packet: &Outstanding, why: Occasion, now: Instant) -> Verdict {
        if matches!(why, Occasion::Held | Occasion::Closing(_)) {
            return Verdict::No;
        }
        let budget = u128::from(self.new_bytes) * u128::from(self.settings.budget_percent);
        if u128::from(self.copied_bytes + packet.bytes) * 100 > budget {
            return Verdict::No;
        }
        let by_rtt = idle.rtt_or_max().min(self.settings.age_max) * self.settings.rtt_percent / 100;
        let due = packet.sent_at + by_rtt.min(self.settings.age_max).max(self.settings.age_min);
        if now >= due { Verdict::Copy } else { Verdict::Later(due) }
    }

    fn on_sent(&mut self, bytes: u64, copied: u64, _now: Instant) {
        self.new_bytes += bytes.saturating_sub(copied);
        self.copied_bytes += copied;
    }
}
