//! Opportunistic retransmission (Raiciu et al., NSDI 2012): the oldest data of a slow path, when it holds the window.

use plait_base::Instant;

use super::{Occasion, Outstanding, Reinjection, ReinjectionFactory, Verdict};
use crate::view::PathView;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OpportunisticFactory;

impl ReinjectionFactory for OpportunisticFactory {
    fn name(&self) -> &'static str {
        "opportunistic"
    }

    fn build(&self) -> Box<dyn Reinjection> {
        Box::new(Opportunistic)
    }
}

/// Copies only where the receiver's window is full and the idle path is the faster one; keeps no state.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Opportunistic;

impl Reinjection for Opportunistic {
    fn name(&self) -> &'static str {
        "opportunistic"
    }

    fn judge(&mut self, idle: &PathView, busy: &PathView, _: &Outstanding, occasion: Occasion, _: Instant) -> Verdict {
        let faster = idle.rtt_or_max() < busy.rtt_or_max();
        if occasion == Occasion::Blocked && faster { Verdict::Copy } else { Verdict::No }
    }
}
