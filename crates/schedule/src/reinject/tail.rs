//! Tail duplication: what would arrive later than a copy of it, is overdue, or lies on a path that loses packets.
//!
//! With it a path that is done with its share takes over what a slower one still holds, so that a transfer over several
//! paths takes no longer than the best of them needs for all of it.

use plait_base::Instant;

use super::{Occasion, Outstanding, Reinjection, ReinjectionFactory, Verdict};
use crate::view::PathView;

/// Share of lost packets above which a path's last data is doubled at once, in parts per thousand.
const LOSSY_PER_MILLE: u32 = 20;

/// Builds [`Tail`].
#[derive(Clone, Copy, Debug, Default)]
pub struct TailFactory;

impl ReinjectionFactory for TailFactory {
    fn name(&self) -> &'static str {
        "tail"
    }

    fn build(&self) -> Box<dyn Reinjection> {
        Box::new(Tail)
    }
}

/// The default policy; keeps no state.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tail;

impl Reinjection for Tail {
    fn name(&self) -> &'static str {
        "tail"
    }

    fn judge(&mut self, idle: &PathView, busy: &PathView, packet: &Outstanding, _: Occasion, now: Instant) -> Verdict {
        // Nothing says that an idle path without a round trip yet is the better one.
        let Some(back) = idle.rtt else { return Verdict::No };
        let (Some(expected), Some(overdue)) = (packet.expected_ack(busy, now), packet.overdue_at(busy)) else {
            return Verdict::Copy;
        };
        // An eighth of a round trip in favour of what is under way already.
        let copied = now + back + back / 8 + idle.rtt_var;
        if expected > copied || now >= overdue || busy.loss_per_mille > LOSSY_PER_MILLE {
            return Verdict::Copy;
        }
        Verdict::Later(overdue)
    }
}
