//! ECF, earliest completion first (Lim et al., 2017): waits for the fast path when that finishes the backlog sooner.

use plait_base::Random;

use crate::choice::{Choice, choice};
use crate::decision::{Decision, WaitReason};
use crate::scheduler::{Scheduler, SchedulerFactory};
use crate::view::{Demand, PathView};

/// 1 / beta: the hysteresis of beta = 0.25 that keeps a waiting sender waiting.
const HYSTERESIS_DIVISOR: u128 = 4;

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

/// Whether the last decision was to wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mood {
    #[default]
    Sending,
    Waiting,
}

/// The scheduler's state: whether it is waiting.
#[derive(Clone, Debug, Default)]
struct Ecf {
    mood: Mood,
}

impl Ecf {
    /// True when sending all on the fast path, after one RTT of waiting for it, beats a round trip on the slow one.
    fn fast_is_sooner(&self, fast: &PathView, slow: &PathView, unsent: u64) -> bool {
        let (window, backlog) = (window(fast), u128::from(unsent).max(window(fast)));
        let bias = if self.mood == Mood::Waiting { 1 } else { 0 };
        // rtt_f * (x_f + w_f) / w_f < (1 + beta * waiting) * (rtt_s + delta)
        rtt(fast) * (backlog + window) * HYSTERESIS_DIVISOR
            < (HYSTERESIS_DIVISOR + bias) * (rtt(slow) + delta(fast, slow)) * window
    }

    /// True when the slow path would need longer than waiting one RTT of the fast path and using it.
    fn slow_is_late(fast: &PathView, slow: &PathView, unsent: u64) -> bool {
        let (window, backlog) = (window(slow), u128::from(unsent).max(window(slow)));
        // rtt_s * x_s / w_s >= 2 * rtt_f + delta
        rtt(slow) * backlog >= (2 * rtt(fast) + delta(fast, slow)) * window
    }
}

/// Microseconds; at most 2^32 of them, so that products of RTT and bytes fit.
fn rtt(path: &PathView) -> u128 {
    path.rtt.unwrap_or_default().as_micros().min(u128::from(u32::MAX))
}

fn delta(fast: &PathView, slow: &PathView) -> u128 {
    fast.rtt_var.max(slow.rtt_var).as_micros().min(u128::from(u32::MAX))
}

fn window(path: &PathView) -> u128 {
    u128::from(path.window_bytes.max(1))
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
        if !self.fast_is_sooner(fast, slow, demand.unsent_bytes) {
            self.mood = Mood::Sending;
        } else if Self::slow_is_late(fast, slow, demand.unsent_bytes) {
            self.mood = Mood::Waiting;
            return Decision::Wait(WaitReason::Faster(fast.id));
        }
        Decision::Send(slow.id)
    }
}

#[cfg(test)]
#[path = "ecf/tests.rs"]
mod tests;
