//! Whether two paths wait in the same queue: does what happens to the delay of one happen to the other?
//!
//! RFC 8382 compares skew, variability and frequency of one-way delays over intervals of 350 ms and decides after ten
//! seconds or more; two links that fill and drain alike look shared to it. Here two kinds of evidence go into one sum
//! (`evidence.rs`), and paths are taken to share a queue until it speaks against it:
//!
//! - *The course of things* (`course.rs`). Every two round trips, by how much has the delay of each path changed? Behind one
//!   queue both see the same changes, whoever causes them. This works where the cut of one path is a drop in the ocean,
//!   between many flows, and where all flows lose at once, as behind a deep queue.
//! - *The sender's own cuts* (`cut_test.rs`). After congestion a path takes a good part of its window away, and the queue in
//!   front of it gets shorter by a *fall* of delay that it can measure. A path behind the same queue sees the same fall at
//!   the same time; any other path sees none. Cuts that both make at once are no such experiment, and where much evidence
//!   says already that the queue is one, most cuts are followed at once and only some are experiments.
//!
//! A path whose losses come while its delay is at its smallest, or that sees no fall after its cuts, does not lose to a
//! queue, and shares none with anybody. Each path keeps its own sums about each sibling, a dozen numbers, and an
//! ACK costs a few comparisons; two paths share a queue while both think so.

use plait_base::shared_metrics::{Cut, Delays, PathMetrics, SharedPathMetrics};
use plait_base::{Instant, PathId};

use crate::controller::{Acked, RttSample};

mod course;
mod cut_test;
mod evidence;

use course::Course;
use cut_test::{CutTest, least_fall};
use evidence::{Both, Change, Evidence};

/// Siblings that are watched at a time; more of them stay strangers.
const SIBLINGS_MAX: usize = 8;
/// What an experiment counts, in changes without a known cause.
const EXPERIMENT_WEIGHT: f64 = 4.0;
/// Where it is proven that paths share a queue, a cut is followed at once, which ends the experiment, but one of so many.
const EXPERIMENT_EVERY: u32 = 4;
/// What a loss counts that came while the delay was at its smallest.
const EMPTY_QUEUE_WEIGHT: f64 = 8.0;
/// What a cut counts after which the delay did not fall.
const NO_FALL_WEIGHT: f64 = 2.0;

/// What is known of one sibling.
#[derive(Clone, Debug)]
struct Sibling {
    path: PathId,
    /// Its newest cut that was looked at.
    serial: u32,
    test: Option<CutTest>,
    course: Course,
    evidence: Evidence,
}

/// How alike two falls are: 1 for equal ones, 0 where the other one is missing or twice as deep.
fn likeness(fall: f64, other: f64) -> f64 {
    (1.0 - (other / fall - 1.0).abs()).max(0.0)
}

/// What one path knows of the queues of its siblings.
#[derive(Clone, Debug)]
pub(crate) struct SharedQueue {
    path: PathId,
    delays: Delays,
    cut: Option<Cut>,
    /// The test of the path's own newest cut, and by how much the delay then was above the smallest, seconds.
    test: Option<Box<CutTest>>,
    wait_s: f64,
    /// When the window was last made smaller, for whatever reason.
    reduced_at: Option<Instant>,
    siblings: Vec<Sibling>,
}

impl SharedQueue {
    /// Knows nothing yet.
    pub(crate) fn new(path: PathId) -> Self {
        Self {
            path,
            delays: Delays::default(),
            cut: None,
            test: None,
            wait_s: 0.0,
            reduced_at: None,
            siblings: Vec::new(),
        }
    }

    /// What siblings are told.
    pub(crate) fn post(&self, metrics: &mut PathMetrics) {
        let together = self.siblings.iter().filter(|s| s.evidence.is_together());
        metrics.shares_with = together.map(|s| s.path.bit()).fold(0, |set, bit| set | bit);
        (metrics.cut, metrics.delays) = (self.cut, self.delays);
    }

    /// True where neither this path nor the other one has found that they are apart.
    pub(crate) fn is_shared(&self, other: &PathMetrics) -> bool {
        let ours = self.siblings.iter().any(|s| s.path == other.path && s.evidence.is_together());
        ours && other.shares_with & self.path.bit() != 0
    }

    /// True where it was found that they share a queue, and is not only believed.
    pub(crate) fn is_proven(&self, other: PathId) -> bool {
        self.siblings.iter().any(|s| s.path == other && s.evidence.is_proven())
    }

    /// When congestion last made this path cut its window.
    pub(crate) fn cut_at(&self) -> Option<Instant> {
        self.cut.map(|cut| cut.at)
    }

    /// Congestion made this path cut its window.
    pub(crate) fn on_cut(&mut self, now: Instant, rtt: &RttSample) {
        let serial = self.cut.map_or(0, |cut| cut.serial).wrapping_add(1);
        let cut = Cut { serial, at: now, rtt: rtt.smoothed, fall_s: None };
        self.test = Some(Box::new(CutTest::new(&cut, rtt.smoothed)));
        self.wait_s = rtt.wait().as_secs_f64();
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
        self.delays.note(ack.now, ack.rtt.latest);
        self.watch_own(ack);
        let mut followed = false;
        let own = self.path;
        for metrics in shared.iter().filter(|p| p.path != own) {
            let (Some(rtt), Some(at)) = (metrics.rtt, self.place(metrics.path)) else { continue };
            let sibling = &mut self.siblings[at];
            let rtt = course::round(rtt, metrics.rtt_min).max(course::round(ack.rtt.smoothed, ack.rtt.min));
            if let Some(change) = sibling.course.on_acked(ack.now, rtt, &self.delays, &metrics.delays) {
                let apart = ack.rtt.min.abs_diff(metrics.rtt_min).as_secs_f64();
                let skew = apart / rtt.as_secs_f64().max(f64::MIN_POSITIVE);
                sibling.evidence.on_change(change, skew);
            }
            let Some(cut) = metrics.cut else { continue };
            followed |= self.watch(at, &cut, ack) && self.is_shared(metrics);
        }
        followed
    }

    /// One step of the test of the newest cut of this path.
    fn watch_own(&mut self, ack: &Acked) {
        let (Some(test), Some(cut)) = (&mut self.test, &mut self.cut) else { return };
        test.on_acked(ack);
        if !test.is_over {
            return;
        }
        cut.fall_s = test.fall();
        let least = least_fall(cut.rtt);
        let weight = match cut.fall_s {
            _ if self.wait_s < least => EMPTY_QUEUE_WEIGHT,
            Some(fall) if fall < least => NO_FALL_WEIGHT,
            _ => 0.0,
        };
        self.test = None;
        self.siblings.iter_mut().for_each(|s| s.evidence.on_loss_without_queue(weight));
    }

    /// Where the sibling is kept; none when there are too many.
    fn place(&mut self, path: PathId) -> Option<usize> {
        let found = self.siblings.iter().position(|s| s.path == path);
        if found.is_none() && self.siblings.len() < SIBLINGS_MAX {
            let (course, evidence) = (Course::default(), Evidence::default());
            self.siblings.push(Sibling { path, serial: 0, test: None, course, evidence });
            return Some(self.siblings.len() - 1);
        }
        found
    }

    /// One step of what is made of a sibling's newest cut; true when those that share the queue are to follow it now.
    fn watch(&mut self, at: usize, cut: &Cut, ack: &Acked) -> bool {
        let reduced_at = self.reduced_at;
        let Some(sibling) = self.siblings.get_mut(at) else { return false };
        if sibling.serial != cut.serial {
            sibling.serial = cut.serial;
            let shows_for = |round_trips| reduced_at.is_some_and(|own| own + ack.rtt.smoothed * round_trips >= cut.at);
            if shows_for(1) {
                // RFC 9002 7.3.2: one cut a round trip, for both.
                sibling.test = None;
                return false;
            }
            let is_proven = sibling.evidence.is_proven();
            // While this one's own cut shows, whose fall it is cannot be told.
            if shows_for(2) || (is_proven && !cut.serial.is_multiple_of(EXPERIMENT_EVERY)) {
                sibling.test = None;
                return is_proven;
            }
            sibling.test = Some(CutTest::new(cut, ack.rtt.smoothed));
            return false;
        }
        let Some(test) = &mut sibling.test else { return false };
        test.on_acked(ack);
        if !test.is_over {
            return false;
        }
        let (Some(own), Some(fall)) = (test.fall(), cut.fall_s) else {
            // The sibling's own figure may come a little later.
            if ack.now > test.to + (cut.rtt + ack.rtt.smoothed) * 2 {
                sibling.test = None;
            }
            return false;
        };
        sibling.test = None;
        if fall < least_fall(cut.rtt) {
            // Among many flows a cut does not show.
            return sibling.evidence.is_proven();
        }
        sibling.evidence.on_experiment(Change::at_once(Both { own, other: fall }), EXPERIMENT_WEIGHT);
        likeness(fall, own) >= 0.5 || sibling.evidence.is_proven()
    }
}

#[cfg(test)]
#[path = "shared_queue/tests.rs"]
mod tests;
