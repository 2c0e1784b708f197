//! BLEST, blocking estimation (Ferlin et al., 2016): leaves a slow path unused while what it carried could block the
//! send window before it arrives.

use std::time::Duration;

use plait_base::{Instant, PathId, Random};

use crate::choice::{Choice, choice, is_fastest};
use crate::decision::{Decision, WaitReason};
use crate::scheduler::{Scheduler, SchedulerFactory};
use crate::view::{Demand, PathView};

/// The correction factor lambda in hundredths: start, bounds and steps as Linux has them.
const LAMBDA_START: u64 = 120;
const LAMBDA_MIN: u64 = 100;
const LAMBDA_MAX: u64 = 130;
const LAMBDA_UP: u64 = 4;
const LAMBDA_DOWN: u64 = 1;
/// Rounds of doubling beyond which the estimate is out of reach of any window.
const ROUNDS_MAX: u32 = 16;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BlestFactory;

impl SchedulerFactory for BlestFactory {
    fn name(&self) -> &'static str {
        "blest"
    }

    fn build(&self, _random: Random) -> Box<dyn Scheduler> {
        Box::new(Blest::default())
    }
}

/// The scheduler's state: how wrong its estimates proved.
#[derive(Clone, Debug)]
struct Blest {
    /// How far estimates of what a slow path sends are raised: lambda, in hundredths.
    lambda: u64,
    /// When lambda moved last.
    moved_at: Option<Instant>,
    /// True when the window blocked since then.
    blocked: bool,
}

impl Default for Blest {
    fn default() -> Self {
        Self { lambda: LAMBDA_START, moved_at: None, blocked: false }
    }
}

impl Blest {
    /// Once per smallest RTT: up when the window blocked meanwhile, else slowly down.
    fn adapt(&mut self, now: Instant, rtt_min: Duration) {
        let Some(moved_at) = self.moved_at else {
            self.moved_at = Some(now);
            return;
        };
        if now.since(moved_at) < rtt_min {
            return;
        }
        self.lambda = if self.blocked {
            (self.lambda + LAMBDA_UP).min(LAMBDA_MAX)
        } else {
            (self.lambda - LAMBDA_DOWN).max(LAMBDA_MIN)
        };
        (self.moved_at, self.blocked) = (Some(now), false);
    }

    /// Bytes that the fast path could send while a packet on the slow one is under way, lambda applied.
    fn fast_bytes(&self, fast: &PathView, slow: &PathView) -> u64 {
        let rounds = rounds(fast, slow);
        let mss = fast.max_datagram_bytes.max(1);
        let window = fast.window_bytes / mss;
        let packets = if fast.ssthresh_bytes == u64::MAX {
            // First slow start: the window doubles each round.
            window.saturating_mul((1 << rounds.min(ROUNDS_MAX)) - 1)
        } else {
            let window = window.max(fast.ssthresh_bytes / mss + 1);
            (window.saturating_add(u64::from(rounds - 1) / 2)).saturating_mul(u64::from(rounds))
        };
        let bytes = u128::from(packets) * u128::from(mss);
        u64::try_from(bytes.saturating_mul(u128::from(self.lambda)) / 100).unwrap_or(u64::MAX)
    }
}

/// How many rounds of the fast path fit into the time that a packet lingers on the slow one, plus one.
fn rounds(fast: &PathView, slow: &PathView) -> u32 {
    let (mss, window) = (slow.max_datagram_bytes.max(1), slow.window_bytes.max(1));
    // The fuller the slow path's window, the nearer its RTT to the largest seen.
    let fill = slow.in_flight_bytes.saturating_add(mss).min(window);
    let spread = slow.recent_rtt.max.saturating_sub(slow.rtt_min).as_nanos() * u128::from(fill) / u128::from(window);
    let linger = slow.rtt.unwrap_or_default().as_nanos().max(slow.rtt_min.as_nanos() + spread);
    let fast_rtt = ((fast.rtt_min + fast.recent_rtt.max) / 2).as_nanos().max(1);
    u32::try_from(linger / fast_rtt + 1).unwrap_or(u32::MAX)
}

impl Scheduler for Blest {
    fn name(&self) -> &'static str {
        "blest"
    }

    fn pick(&mut self, paths: &[PathView], demand: &Demand) -> Decision {
        if let Some(rtt_min) = paths.iter().filter(|p| p.rtt.is_some()).map(|p| p.rtt_min).min() {
            self.adapt(demand.now, rtt_min);
        }
        let Choice { fast, slow } = match choice(paths, demand) {
            Ok(choice) => choice,
            Err(decision) => return decision,
        };
        // MPTCP's send window spans what is in flight as well as what may follow; so must ours.
        let in_flight = paths.iter().fold(0u64, |sum, p| sum.saturating_add(p.in_flight_bytes));
        let send_window = demand.send_credit_bytes.saturating_add(in_flight);
        let available = send_window.saturating_sub(slow.in_flight_bytes.saturating_add(slow.max_datagram_bytes));
        if self.fast_bytes(fast, slow) > available {
            Decision::Wait(WaitReason::Faster(fast.id))
        } else {
            Decision::Send(slow.id)
        }
    }

    fn keeps_to(&self, path: PathId, paths: &[PathView], _demand: &Demand) -> bool {
        is_fastest(path, paths)
    }

    fn on_credit_blocked(&mut self, _now: Instant) {
        self.blocked = true;
    }
}

#[cfg(test)]
#[path = "blest/tests.rs"]
mod tests;
