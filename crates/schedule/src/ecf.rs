//! ECF, earliest completion first (Lim et al., 2017): waits for the fast path when that finishes the backlog sooner.

use plait_base::{PathId, Random};

use crate::choice::{Choice, choice, is_fastest};
use crate::decision::{Decision, WaitReason};
use crate::patience::Patience;
use crate::scheduler::{Scheduler, SchedulerFactory};
use crate::view::{Demand, PathView};

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EcfFactory;

impl SchedulerFactory for EcfFactory {
    fn name(&self) -> &'static str {
        "ecf"
    }

    fn build(&self, _random: Random) -> Box<dyn Scheduler> {
        Box::new(Ecf::default())
    }
}

/// The scheduler's state: whether it is waiting.
#[derive(Clone, Debug, Default)]
struct Ecf {
    patience: Patience,
}

impl Scheduler for Ecf {
    fn name(&self) -> &'static str {
        "ecf"
    }

    fn pick(&mut self, paths: &[PathView], demand: &Demand) -> Decision {
        let Choice { fast, slow } = match choice(paths, demand) {
            Ok(choice) => choice,
            Err(decision) => return decision,
        };
        if self.patience.is_worth_it(fast, slow, demand.unsent_bytes) {
            return Decision::Wait(WaitReason::Faster(fast.id));
        }
        Decision::Send(slow.id)
    }

    fn keeps_to(&self, path: PathId, paths: &[PathView], _demand: &Demand) -> bool {
        is_fastest(path, paths)
    }
}

#[cfg(test)]
#[path = "ecf/tests.rs"]
mod tests;
