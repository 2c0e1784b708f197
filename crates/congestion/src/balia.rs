//! BALIA, the balanced linked adaptation (Peng, Walid, Hwang, Low): between LIA's friendliness and OLIA's speed.

use plait_base::{Instant, PathId};

use crate::controller::{CongestionController, ControllerFactory};
use crate::coupled::{CoupledPath, Linked, Rule};
use crate::window::SlowStart;

/// Largest alpha that deepens a reduction: a window keeps at least a quarter.
const ALPHA_LOSS_MAX: f64 = 1.5;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BaliaFactory {
    /// How the first slow start of a path ends; at the onset of a queue by default.
    pub(crate) slow_start: SlowStart,
}

impl ControllerFactory for BaliaFactory {
    fn name(&self) -> &'static str {
        "balia"
    }

    fn build(&self, path: PathId, _now: Instant, mss: u64) -> Box<dyn CongestionController> {
        Box::new(Balia::new(path, mss, self.slow_start))
    }
}

/// One path's BALIA.
type Balia = Linked<BaliaRule>;

/// Increases and reductions by BALIA.
#[derive(Clone, Copy, Debug, Default)]
struct BaliaRule;

/// Sum of all x_p, and alpha_r = max x_p / x_r, at least 1.
fn rates(own: &CoupledPath<'_>) -> (f64, f64) {
    let rates = own.siblings().map(|s| s.rate());
    let fastest = rates.clone().fold(own.this.rate(), f64::max);
    (rates.sum(), fastest / own.this.rate())
}

impl Rule for BaliaRule {
    const NAME: &'static str = "balia";

    fn increase(&self, own: &CoupledPath<'_>) -> f64 {
        let (sum, alpha) = rates(own);
        own.this.rate() / (own.this.rtt * sum * sum) * ((1.0 + alpha) / 2.0) * ((4.0 + alpha) / 5.0)
    }

    fn kept(&self, own: &CoupledPath<'_>) -> f64 {
        1.0 - rates(own).1.min(ALPHA_LOSS_MAX) / 2.0
    }
}

#[cfg(test)]
#[path = "balia/tests.rs"]
mod tests;
