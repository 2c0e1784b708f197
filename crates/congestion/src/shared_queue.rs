//! Whether two paths wait in the same queue: when one of them sends less, does the other one's delay fall?
//!
//! RFC 8382 compares skew, variability and frequency of one-way delays over intervals of 350 ms and decides after ten
//! seconds or more; two links that fill and drain alike look shared to it. Here the sender's own cuts are the experiment.
//! After congestion a path takes a good part of its window away, and the queue in front of it gets shorter by a *fall* of
//! delay that it can measure. A path behind the same queue sees the same fall at the same time; any other path sees
//! none. Cuts that both make at once prove nothing and are left out, so that equal links that lose together do not count.
//! Two such cuts are evidence enough. What random loss cuts on an empty queue has no fall and no say.
//!
//! Per sibling it keeps a running score and one test under way; an ACK costs a few comparisons.

use std::time::Duration;

use plait_base::shared_metrics::{Cut, SharedPathMetrics};
use plait_base::{Instant, PathId};

use crate::controller::Acked;

/// Siblings that are watched at a time; more of them stay strangers.
const SIBLINGS_MAX: usize = 8;
/// Smaller falls of delay than this prove nothing, seconds.
const FALL_MIN_S: f64 = 0.001;
/// And so do falls below this part of the RTT.
const FALL_MIN_PART: f64 = 0.02;
/// Samples that a delay after a cut takes.
const SAMPLES_MIN: u32 = 2;
/// Tests before a verdict.
const TESTS_MIN: u32 = 2;
/// Share of tests in favour that makes a path share the queue, and that lets it go again.
const SCORE_SHARED: f64 = 0.6;
const SCORE_APART: f64 = 0.4;
/// Weight of the newest test once there are some.
const NEWEST_WEIGHT: f64 = 0.25;

/// Delay before and after a cut.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Test {
    /// Packets sent within this time show what the cut did.
    from: Instant,
    to: Instant,
    before_s: f64,
    sum_s: f64,
    samples: u32,
    /// A packet from after that time was acked.
    is_over: bool,
}

impl Test {
    fn new(cut: &Cut, before: Duration) -> Self {
        let (from, to) = (cut.at + cut.rtt / 2, cut.at + cut.rtt * 2);
        Self { from, to, before_s: before.as_secs_f64(), sum_s: 0.0, samples: 0, is_over: false }
    }

    fn on_acked(&mut self, ack: &Acked) {
        if (self.from..=self.to).contains(&ack.sent_at) {
            self.sum_s += ack.rtt.latest.as_secs_f64();
            self.samples += 1;
        }
        self.is_over |= ack.sent_at > self.to;
    }

    /// By how much the delay fell; none while the test lasts or when too few samples came.
    fn fall(&self) -> Option<f64> {
        let known = self.is_over && self.samples >= SAMPLES_MIN;
        known.then(|| self.before_s - self.sum_s / f64::from(self.samples))
    }
}

/// What is known of one sibling.
#[derive(Clone, Copy, Debug)]
struct Sibling {
    path: PathId,
    /// Its newest cut that was looked at.
    serial: u32,
    test: Option<Test>,
    /// Share of tests in favour, newer ones counting more.
    score: f64,
    tests: u32,
    is_shared: bool,
}

impl Sibling {
    fn vote(&mut self, vote: f64) {
        self.tests += 1;
        let weight = (1.0 / f64::from(self.tests)).max(NEWEST_WEIGHT);
        self.score += (vote - self.score) * weight;
        let limit = if self.is_shared { SCORE_APART } else { SCORE_SHARED };
        self.is_shared = self.tests >= TESTS_MIN && self.score >= limit;
    }
}

/// How alike two falls are: 1 for equal ones, 0 where the other one is missing or twice as deep.
fn likeness(fall: f64, other: f64) -> f64 {
    (1.0 - (other / fall - 1.0).abs()).max(0.0)
}

/// What one path knows of the queues of its siblings.
#[derive(Clone, Debug)]
pub(crate) struct SharedQueue {
    path: PathId,
    cut: Option<Cut>,
    test: Option<Test>,
    /// When the window was last made smaller, for whatever reason.
    reduced_at: Option<Instant>,
    siblings: Vec<Sibling>,
}

impl SharedQueue {
    /// Knows nothing yet: every other path is a stranger.
    pub(crate) fn new(path: PathId) -> Self {
        Self { path, cut: None, test: None, reduced_at: None, siblings: Vec::new() }
    }

    /// The newest cut, to be posted.
    pub(crate) fn cut(&self) -> Option<Cut> {
        self.cut
    }

    /// Siblings that share the queue, as [`PathId::bit`]s, to be posted.
    pub(crate) fn shares_with(&self) -> u64 {
        self.siblings.iter().filter(|s| s.is_shared).map(|s| s.path.bit()).fold(0, |set, bit| set | bit)
    }

    /// True where this path or `other` itself found that they share a queue.
    pub(crate) fn is_shared(&self, other: PathId, shared: &SharedPathMetrics) -> bool {
        let theirs = shared.get(other).is_some_and(|p| p.shares_with & self.path.bit() != 0);
        theirs || self.siblings.iter().any(|s| s.path == other && s.is_shared)
    }

    /// Congestion made this path cut its window, now that its smoothed RTT is `rtt`.
    pub(crate) fn on_cut(&mut self, now: Instant, rtt: Duration) {
        let serial = self.cut.map_or(0, |cut| cut.serial).wrapping_add(1);
        let cut = Cut { serial, at: now, rtt, fall_s: None };
        self.test = Some(Test::new(&cut, rtt));
        self.cut = Some(cut);
        self.on_reduced(now);
    }

    /// The window was made smaller: what the delay does next is no news of others.
    pub(crate) fn on_reduced(&mut self, now: Instant) {
        self.reduced_at = Some(now);
        self.siblings.iter_mut().for_each(|s| s.test = None);
    }

    /// The newest cut was a mistake and taken back.
    pub(crate) fn on_undone(&mut self) {
        self.test = None;
    }

    /// An ACK frame came; true when a sibling that shares the queue was found to have cut on behalf of both.
    pub(crate) fn on_acked(&mut self, ack: &Acked, shared: &SharedPathMetrics) -> bool {
        if let Some(test) = &mut self.test {
            test.on_acked(ack);
            if test.is_over {
                let fall = test.fall();
                self.cut = self.cut.map(|cut| Cut { fall_s: fall, ..cut });
                self.test = None;
            }
        }
        let mut followed = false;
        let own = self.path;
        for metrics in shared.iter().filter(|p| p.path != own) {
            let Some(cut) = metrics.cut else { continue };
            let Some(at) = self.place(metrics.path) else { continue };
            followed |= self.watch(at, &cut, ack) && self.is_shared(metrics.path, shared);
        }
        followed
    }

    /// Where the sibling is kept; none when there are too many.
    fn place(&mut self, path: PathId) -> Option<usize> {
        let found = self.siblings.iter().position(|s| s.path == path);
        if found.is_none() && self.siblings.len() < SIBLINGS_MAX {
            let new = Sibling { path, serial: 0, test: None, score: 0.0, tests: 0, is_shared: false };
            self.siblings.push(new);
            return Some(self.siblings.len() - 1);
        }
        found
    }

    /// One step of the test of a sibling's newest cut; true when it ended in favour.
    fn watch(&mut self, at: usize, cut: &Cut, ack: &Acked) -> bool {
        let reduced_at = self.reduced_at;
        let Some(sibling) = self.siblings.get_mut(at) else { return false };
        if sibling.serial != cut.serial {
            sibling.serial = cut.serial;
            // Both at once, or this one while its own cut shows: whose fall it is cannot be told.
            let own_shows = reduced_at.is_some_and(|own| own + ack.rtt.smoothed * 2 >= cut.at);
            sibling.test = (!own_shows).then(|| Test::new(cut, ack.rtt.smoothed));
            return false;
        }
        let Some(test) = &mut sibling.test else { return false };
        test.on_acked(ack);
        if !test.is_over {
            return false;
        }
        let (Some(other), Some(fall)) = (test.fall(), cut.fall_s) else {
            // The sibling's own figure may come a little later.
            if ack.now > test.to + (cut.rtt + ack.rtt.smoothed) * 2 {
                sibling.test = None;
            }
            return false;
        };
        sibling.test = None;
        if fall < FALL_MIN_S.max(FALL_MIN_PART * cut.rtt.as_secs_f64()) {
            return false;
        }
        let vote = likeness(fall, other);
        sibling.vote(vote);
        vote >= 0.5
    }
}

#[cfg(test)]
#[path = "shared_queue/tests.rs"]
mod tests;
