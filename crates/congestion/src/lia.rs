//! LIA, the linked increases algorithm (RFC 6356): as aggressive in sum as one Reno on the best path, in slow start too
//! (`linked_start.rs`).

use plait_base::{Instant, PathId};

use crate::controller::{CongestionController, ControllerFactory};
use crate::coupled::{CoupledPath, Linked, Rule, Sibling};
use crate::window::SlowStart;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LiaFactory {
    /// How the first slow start of a path ends; at the onset of a queue by default.
    pub(crate) slow_start: SlowStart,
}

impl ControllerFactory for LiaFactory {
    fn name(&self) -> &'static str {
        "lia"
    }

    fn build(&self, path: PathId, _now: Instant, mss: u64) -> Box<dyn CongestionController> {
        Box::new(Lia::new(path, mss, self.slow_start))
    }
}

/// One path's LIA.
type Lia = Linked<LiaRule>;

/// Increases by LIA, reductions by half.
#[derive(Clone, Copy, Debug, Default)]
struct LiaRule;

/// RFC 6356 3: alpha divided by the total window: segments per acked segment that all paths grow by.
fn linked_increase(paths: impl Iterator<Item = Sibling> + Clone) -> f64 {
    // alpha / W = max(w_i / rtt_i^2) / (sum of w_i / rtt_i)^2
    let best = paths.clone().map(|s| s.rate() / s.rtt).fold(0.0, f64::max);
    let rates: f64 = paths.map(|s| s.rate()).sum();
    best / (rates * rates)
}

impl Rule for LiaRule {
    const NAME: &'static str = "lia";
    const LINKS_START: bool = true;

    fn increase(&self, own: &CoupledPath<'_>) -> f64 {
        // RFC 6356 3: never more aggressive on a path than Reno alone.
        linked_increase(own.siblings()).min(1.0 / own.this.window)
    }
}

#[cfg(test)]
#[path = "lia/tests.rs"]
mod tests;
