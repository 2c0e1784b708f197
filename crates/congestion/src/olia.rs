//! OLIA, the opportunistic linked increases algorithm (Khalili et al., CoNEXT 2012): coupled growth that moves windows
//! from the paths that have them to the paths that deserve them.

use plait_base::shared_metrics::{PathMetrics, SharedPathMetrics};
use plait_base::{Instant, PathId};

use crate::controller::{CongestionController, CongestionKind, ControllerFactory};
use crate::coupled::{self, CoupledPath, Linked, Rule};
use crate::window::SlowStart;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OliaFactory {
    /// How the first slow start of a path ends; at the onset of a queue by default.
    pub(crate) slow_start: SlowStart,
}

impl ControllerFactory for OliaFactory {
    fn name(&self) -> &'static str {
        "olia"
    }

    fn build(&self, path: PathId, _now: Instant, mss: u64) -> Box<dyn CongestionController> {
        Box::new(Olia::new(path, mss, self.slow_start))
    }
}

/// One path's OLIA.
type Olia = Linked<OliaRule>;

/// Increases by OLIA with the bytes between losses that they need, reductions by half.
#[derive(Clone, Copy, Debug, Default)]
struct OliaRule {
    /// c_r: bytes acked so far.
    acked_bytes: u64,
    /// L1: `acked_bytes` at the last loss but one.
    mark_before: u64,
    /// L2: `acked_bytes` at the last loss.
    mark: u64,
    /// Both marks before the last loss, in case it proves false.
    before: Option<(u64, u64)>,
}

/// alpha_r of `own`'s path: positive for good paths with small windows, negative for those with the largest, else 0.
pub(crate) fn alpha(own: &PathMetrics, shared: &SharedPathMetrics) -> f64 {
    let paths = coupled::all_metrics(own, shared);
    let count = paths.clone().count() as f64;
    let largest = paths.clone().map(effective_window).max().unwrap_or(0);
    let is_largest = |p: &PathMetrics| effective_window(p) == largest;
    let is_best = |p: &PathMetrics| paths.clone().all(|q| at_least_as_good(p, q));
    let collected = paths.clone().filter(|p| is_best(p) && !is_largest(p)).count();
    if collected == 0 {
        // B \ M is empty: the best paths have the largest windows already.
        0.0
    } else if is_largest(own) {
        -1.0 / (count * paths.clone().filter(|p| is_largest(p)).count() as f64)
    } else if is_best(own) {
        1.0 / (count * collected as f64)
    } else {
        0.0
    }
}

/// In recovery the threshold stands for the window.
fn effective_window(p: &PathMetrics) -> u64 {
    if p.in_recovery { p.ssthresh_bytes.min(p.window_bytes) } else { p.window_bytes }
}

/// l_p / rtt_p^2 >= l_q / rtt_q^2, cross-multiplied and therefore exact.
fn at_least_as_good(p: &PathMetrics, q: &PathMetrics) -> bool {
    let square = |p: &PathMetrics| {
        // Microseconds, at most 2^32 of them, so that the products fit.
        let us = p.rtt.map_or(1, |r| (r + p.ack_shortcut).as_micros()).clamp(1, u128::from(u32::MAX));
        us * us
    };
    u128::from(p.between_losses_bytes) * square(q) >= u128::from(q.between_losses_bytes) * square(p)
}

impl Rule for OliaRule {
    const NAME: &'static str = "olia";

    fn increase(&self, own: &CoupledPath<'_>) -> f64 {
        // CoNEXT'12 eq. 3: (w_r / rtt_r^2) / (sum of w_p / rtt_p)^2 + alpha_r / w_r per acked segment.
        let rates: f64 = own.siblings().map(|s| s.rate()).sum();
        own.this.rate() / own.this.rtt / (rates * rates) + alpha(&own.metrics, own.shared) / own.this.window
    }

    fn on_acked(&mut self, bytes: u64) {
        self.acked_bytes = self.acked_bytes.saturating_add(bytes);
    }

    fn on_congestion(&mut self, kind: CongestionKind) {
        if kind == CongestionKind::Persistent {
            *self = Self::default();
            return;
        }
        self.before = Some((self.mark_before, self.mark));
        if self.acked_bytes != self.mark {
            (self.mark_before, self.mark) = (self.mark, self.acked_bytes);
        }
    }

    fn on_spurious(&mut self) {
        if let Some(marks) = self.before.take() {
            (self.mark_before, self.mark) = marks;
        }
    }

    fn between_losses_bytes(&self) -> u64 {
        (self.acked_bytes - self.mark).max(self.mark - self.mark_before)
    }
}

#[cfg(test)]
#[path = "olia/tests.rs"]
mod tests;
