//! Peekaboo (Wu et al., JSAC 2020): learns online whether to wait for the fast path or to use the slow one.
//!
//! Learning: LinUCB over six features of the two paths. Deployment: the learned arm is followed with a probability that
//! grows with the distance between the arms' rewards; when rewards depart from what was learned, learning starts over.
//! The paper's stochastic adjustment is described in words only; the probability and the departure test are our reading.

mod bandit;

use std::collections::VecDeque;
use std::time::Duration;

use plait_base::{Instant, PathId, Random};

use self::bandit::{Arm, Context};
use crate::choice::{Choice, choice};
use crate::decision::{Decision, WaitReason};
use crate::scheduler::{Delivery, Scheduler, SchedulerFactory};
use crate::view::{Demand, DemandKind, PathView};

/// a: weight of uncertainty while learning.
const EXPLORATION: f64 = 0.75;
/// Rewards after which learning ends.
const LEARNING_REWARDS: u32 = 100;
/// Rewards in a row outside the learned spread after which learning starts over.
const DEPARTURES: u32 = 16;
/// Decisions whose rewards are still being collected; further ones are not learned from.
const OPEN_DECISIONS: usize = 32;
/// Features and rewards are packets per millisecond, at most this many, so that the regression stays well conditioned.
const RATE_MAX: f64 = 1000.0;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PeekabooFactory;

impl SchedulerFactory for PeekabooFactory {
    fn name(&self) -> &'static str {
        "peekaboo"
    }

    fn build(&self, random: Random) -> Box<dyn Scheduler> {
        Box::new(Peekaboo::new(random))
    }
}

/// The two arms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    /// Wait for the fast path.
    Wait,
    /// Send on the slow path.
    Send,
}

impl Action {
    fn other(self) -> Self {
        match self {
            Self::Wait => Self::Send,
            Self::Send => Self::Wait,
        }
    }
}

/// Q of one arm: mean and mean deviation of its rewards.
#[derive(Clone, Copy, Debug, Default)]
struct Quality {
    rewards: u32,
    mean: f64,
    spread: f64,
}

impl Quality {
    fn learn(&mut self, reward: f64) {
        self.rewards += 1;
        let weight = 1.0 / f64::from(self.rewards.min(16));
        let off = reward - self.mean;
        self.mean += off * weight;
        let deviation = if self.rewards == 1 { 0.0 } else { off.abs() };
        self.spread += (deviation - self.spread) * weight;
    }

    fn departs(&self, reward: f64) -> bool {
        // A twentieth of the mean is noise even where the learned spread is nil.
        (reward - self.mean).abs() > 2.0 * self.spread + self.mean.abs() / 20.0
    }
}

/// Whether the arms still learn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LearningPhase {
    /// LinUCB explores and learns.
    Learning,
    /// What was learned is followed.
    Deployed,
}

/// A decision whose reward is being collected.
#[derive(Clone, Debug)]
struct Open {
    action: Action,
    context: Context,
    at: Instant,
    /// Tref = max(2 rtt_f, rtt_s).
    reference: Duration,
    mss: f64,
    gain: f64,
    reward: f64,
}

impl Open {
    /// Adds what was acked at `now`; each ACK frame counts as one arrival.
    fn collect(&mut self, now: Instant, bytes: u64) {
        let age = now.since(self.at);
        self.gain *= match age {
            age if age <= self.reference => 0.9,
            age if age <= 2 * self.reference => 0.7,
            _ => 0.5,
        };
        self.reward += self.gain * per_ms(bytes as f64 / self.mss, age);
    }

    fn is_over(&self, now: Instant) -> bool {
        now.since(self.at) > 3 * self.reference
    }
}

fn per_ms(packets: f64, time: Duration) -> f64 {
    (packets / (time.as_nanos().max(1000) as f64 / 1e6)).min(RATE_MAX)
}

#[derive(Debug)]
struct Peekaboo {
    random: Random,
    wait: (Arm, Quality),
    send: (Arm, Quality),
    phase: LearningPhase,
    departures: u32,
    open: VecDeque<Open>,
    /// The path waited for, and until when that decision stands.
    waiting: Option<(PathId, Instant)>,
}

impl Peekaboo {
    /// Begins to learn.
    fn new(random: Random) -> Self {
        Self {
            random,
            wait: Default::default(),
            send: Default::default(),
            phase: LearningPhase::Learning,
            departures: 0,
            open: VecDeque::with_capacity(OPEN_DECISIONS),
            waiting: None,
        }
    }

    fn arm(&mut self, action: Action) -> &mut (Arm, Quality) {
        match action {
            Action::Wait => &mut self.wait,
            Action::Send => &mut self.send,
        }
    }

    fn choose(&mut self, x: &Context) -> Action {
        let bonus = if self.phase == LearningPhase::Learning { EXPLORATION } else { 0.0 };
        let score = |arm: &Arm| arm.predicted(x) + bonus * arm.uncertainty(x);
        let best = if score(&self.wait.0) > score(&self.send.0) { Action::Wait } else { Action::Send };
        if self.phase == LearningPhase::Deployed && !self.random.chance(self.confidence()) {
            best.other()
        } else {
            best
        }
    }

    /// Probability with which the learned arm is followed: from 1/2 where the arms' rewards overlap, to 1.
    fn confidence(&self) -> f64 {
        let (w, s) = (&self.wait.1, &self.send.1);
        if w.rewards == 0 || s.rewards == 0 {
            return 1.0;
        }
        let (gap, spread) = ((w.mean - s.mean).abs(), w.spread + s.spread);
        if gap + spread == 0.0 { 1.0 } else { 1.0 - spread / (gap + spread) / 2.0 }
    }

    fn settle(&mut self, now: Instant) {
        // References differ, so decisions need not end in the order in which they began.
        let mut at = 0;
        while let Some(decision) = self.open.get(at) {
            if !decision.is_over(now) {
                at += 1;
            } else if let Some(done) = self.open.remove(at) {
                self.learn(&done);
            }
        }
    }

    fn learn(&mut self, done: &Open) {
        let reward = done.reward.min(RATE_MAX);
        if self.phase == LearningPhase::Deployed {
            let departs = self.arm(done.action).1.departs(reward);
            self.departures = if departs { self.departures + 1 } else { 0 };
            if self.departures >= DEPARTURES {
                (self.wait, self.send) = Default::default();
                (self.phase, self.departures) = (LearningPhase::Learning, 0);
            }
            return;
        }
        let (arm, quality) = self.arm(done.action);
        arm.learn(&done.context, reward);
        quality.learn(reward);
        if self.wait.1.rewards + self.send.1.rewards >= LEARNING_REWARDS {
            self.phase = LearningPhase::Deployed;
        }
    }
}

/// (w_f, inflight_f, sendwin) / rtt_f and (w_s, inflight_s, sendwin) / rtt_s, packets per millisecond.
fn context(fast: &PathView, slow: &PathView, credit: u64) -> Context {
    let rate = |path: &PathView, bytes: u64| {
        per_ms(bytes as f64 / path.max_datagram_bytes.max(1) as f64, path.rtt.unwrap_or_default())
    };
    [
        rate(fast, fast.window_bytes),
        rate(fast, fast.in_flight_bytes),
        rate(fast, credit),
        rate(slow, slow.window_bytes),
        rate(slow, slow.in_flight_bytes),
        rate(slow, credit),
    ]
}

impl Scheduler for Peekaboo {
    fn name(&self) -> &'static str {
        "peekaboo"
    }

    fn pick(&mut self, paths: &[PathView], demand: &Demand) -> Decision {
        self.settle(demand.now);
        let Choice { fast, slow } = match choice(paths, demand) {
            Ok(choice) => choice,
            Err(decision) => {
                if demand.kind != DemandKind::Control {
                    self.waiting = None;
                }
                return decision;
            }
        };
        // One decision to wait covers every call until the fast path opens or its RTT has passed.
        if self.waiting.is_some_and(|(id, until)| id == fast.id && demand.now < until) {
            return Decision::Wait(WaitReason::Faster(fast.id));
        }
        let context = context(fast, slow, demand.send_credit_bytes);
        let action = self.choose(&context);
        let (rtt_fast, rtt_slow) = (fast.rtt.unwrap_or_default(), slow.rtt.unwrap_or_default());
        if self.open.len() < OPEN_DECISIONS {
            self.open.push_back(Open {
                action,
                context,
                at: demand.now,
                reference: rtt_slow.max(2 * rtt_fast),
                mss: slow.max_datagram_bytes.max(1) as f64,
                gain: 1.0,
                reward: 0.0,
            });
        }
        self.waiting = None;
        match action {
            Action::Send => Decision::Send(slow.id),
            Action::Wait => {
                self.waiting = Some((fast.id, demand.now + rtt_fast));
                Decision::Wait(WaitReason::Faster(fast.id))
            }
        }
    }

    fn on_acked(&mut self, _path: PathId, delivery: &Delivery) {
        self.settle(delivery.now);
        for decision in &mut self.open {
            decision.collect(delivery.now, delivery.bytes);
        }
    }

    fn on_path_closing(&mut self, path: PathId) {
        if self.waiting.is_some_and(|(id, _)| id == path) {
            self.waiting = None;
        }
        // What is being collected was decided about paths that are no longer the same.
        self.open.clear();
    }
}

#[cfg(test)]
mod tests;
