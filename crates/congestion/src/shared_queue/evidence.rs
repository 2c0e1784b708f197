//! What speaks for one queue in front of two paths: changes of delay that both see, against the difference between them.
//!
//! Behind one queue two paths see the same changes, in size too, but for jitter, which has the same size however deep the
//! queue. Of two queues, each has changes of its own. So the sums are of squares: of the changes, and of their differences.
//! Large changes weigh more than small ones, but none more than what is usual allows, so that no single event, such as
//! the end of slow start, speaks for long.
//!
//! How large jitter is, samples that follow each other say, and where it lasts for many packets the halves of each interval. Behind
//! a deep queue, where changes are much larger, two paths of one queue differ by next to nothing while it fills or drains evenly,
//! and by when their packets met it where it turns. So two queues are found apart while they fill, which for both can take a long
//! time and look much alike.

/// Differences up to this come from jitter, seconds, also where none is measured.
const JITTER_S: f64 = 0.0021;
/// Where more is measured, it is this part of what samples that follow each other differ by, in squares: means of them differ by less.
const MEASURED_JITTER_PART: f64 = 1.0 / 7.0;
/// Jitter that lasts for many packets does not show from one sample to the next, but the halves of each interval differ by it: it is
/// so many times the median of that, in squares. Of queues that fill and drain only the halves where they turn do.
const LASTING_JITTER: f64 = 1.4;
/// How fast the median follows: by this factor with each interval.
const MEDIAN_STEP: f64 = 1.25;
/// It falls no further, so that it is back soon: 0.3 ms.
const HALVES_MIN: f64 = 1e-7;
/// Part of the changes (in squares) that may differ where the two paths see them at different times, and twice that where they are
/// as small as jitter,
const DIFFERING_PART: f64 = 1.0 / 48.0;
/// and where neither plays a part: two paths see a queue that fills or drains evenly alike.
const DIFFERING_PART_LARGE: f64 = 1.0 / 1000.0;
/// Where it turns, means differ by when the packets of each met it, though round trips are alike: by so much of their time.
const LATE_PART: f64 = 0.12;
/// The part up to which jitter may be the reason: two that have nothing in common differ by all of it.
const JITTER_PART_MAX: f64 = 0.82;
/// Paths that were found apart need so much of what may differ before to be found together again, where changes are as small as
/// jitter,
const AGAIN: f64 = 0.75;
/// and so much where they are large: queues that both fill grow alike for many seconds, and paths of one queue never differ by
/// much, if they see it at one time.
const AGAIN_LARGE: f64 = 0.2;
/// From this part of a round trip on, two see a change at times that differ too much to tell a large change from a small one.
const SKEW_MAX: f64 = 0.125;
/// What is believed at the beginning, as if so many large changes had been seen by both.
const PRIOR: f64 = 1.0;
/// Evidence from which on it is more than belief.
const PROVEN: f64 = 4.0;
/// And the part of the changes that may differ then: what only might be jitter proves nothing.
const PROVEN_PART: f64 = 0.75;
/// How fast older evidence fades with each change that is compared, and with experiments by what they count.
const FADE: f64 = 1.0 / 32.0;
/// How fast the usual size of changes follows.
const USUAL_GAIN: f64 = 1.0 / 16.0;

/// A delay of each path, or a difference of two, seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Both {
    pub(super) own: f64,
    pub(super) other: f64,
}

impl Both {
    pub(super) fn minus(self, from: Self) -> Self {
        Self { own: self.own - from.own, other: self.other - from.other }
    }

    pub(super) fn squared(self) -> f64 {
        self.own * self.own + self.other * self.other
    }

    pub(super) fn difference(self) -> f64 {
        self.own - self.other
    }
}

/// A change of delay as two paths saw it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Change {
    pub(super) both: Both,
    /// By how much samples of both differ from one to the next, in squares.
    pub(super) rough: f64,
    /// By how much the difference of the two changed within the interval, from its first half to its second, in squares.
    pub(super) halves: f64,
    /// By how much this change differs from the one before it, of both, in squares: nothing while a queue fills evenly.
    pub(super) turn: f64,
}

impl Change {
    /// One that came all at once, by a cause that is known: nothing says how rough samples are, and all of it is a turn.
    pub(super) fn at_once(both: Both) -> Self {
        Self { both, rough: 0.0, halves: 0.0, turn: both.squared() }
    }
}

/// Sums over the changes that were compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence {
    all: f64,
    differing: f64,
    /// What may differ since the queue turned.
    turns: f64,
    jitter: f64,
    /// What is left of the belief of the beginning.
    prior: f64,
    /// Usual size of a change, seconds squared; none before the first.
    usual: Option<f64>,
    /// Usual [`Change::rough`]; none before the first.
    rough: Option<f64>,
    /// Median of [`Change::halves`], nearly; the square of [`JITTER_S`] at first.
    halves: f64,
    /// Of the newest change: what happens in one queue is seen at two times.
    skew: f64,
    is_together: bool,
}

impl Default for Evidence {
    fn default() -> Self {
        Self {
            all: PRIOR,
            differing: 0.0,
            turns: 0.0,
            jitter: 0.0,
            prior: PRIOR,
            usual: None,
            rough: None,
            halves: JITTER_S * JITTER_S,
            skew: 0.0,
            is_together: true,
        }
    }
}

impl Evidence {
    /// True until the paths are shown to be apart.
    pub(super) fn is_together(&self) -> bool {
        self.is_together
    }

    /// True where they were shown to be together, and it is not only believed.
    pub(super) fn is_proven(&self) -> bool {
        self.is_together && self.all >= PROVEN && self.differing <= PROVEN_PART * self.all
    }

    /// A change in the course of things; `skew` is the part of a round trip by which those of the two paths differ without a queue.
    pub(super) fn on_change(&mut self, change: Change, skew: f64) {
        self.skew = skew;
        let size = change.both.squared();
        let usual = self.usual.get_or_insert(size);
        *usual += (size - *usual) * USUAL_GAIN;
        let rough = self.rough.get_or_insert(change.rough);
        *rough += (change.rough - *rough) * USUAL_GAIN;
        let median = self.halves * if change.halves > self.halves { MEDIAN_STEP } else { 1.0 / MEDIAN_STEP };
        self.halves = median.max(HALVES_MIN);
        self.fade(1.0);
        self.weigh(change, 1.0);
    }

    /// A change with a cause that is known counts like so many of the others.
    pub(super) fn on_experiment(&mut self, change: Change, weight: f64) {
        self.fade(weight);
        self.weigh(change, weight);
    }

    /// Losses that no queue was the reason for: as if `weight` changes of the usual size had been seen by one path alone.
    pub(super) fn on_loss_without_queue(&mut self, weight: f64) {
        let size = self.usual.unwrap_or(0.0).max(JITTER_S * JITTER_S);
        self.weigh(Change::at_once(Both { own: size.sqrt(), other: 0.0 }), weight);
    }

    /// So many changes are compared now.
    fn fade(&mut self, changes: f64) {
        let left = (1.0 - FADE).powf(changes);
        for sum in [&mut self.all, &mut self.differing, &mut self.turns, &mut self.jitter, &mut self.prior] {
            *sum *= left;
        }
    }

    fn weigh(&mut self, change: Change, weight: f64) {
        let size = change.both.squared();
        let scale = size + self.usual.unwrap_or(size);
        if scale <= 0.0 {
            return;
        }
        let difference = change.both.difference();
        self.all += weight * size / scale;
        self.differing += weight * difference * difference / scale;
        self.turns += weight * LATE_PART * LATE_PART * change.turn / scale;
        let rough = self.rough.map_or(0.0, |rough| rough * MEASURED_JITTER_PART);
        let jitter = rough.max(self.halves * LASTING_JITTER).max(JITTER_S * JITTER_S);
        self.jitter += weight * jitter / scale;
        // How small changes are: where one is no larger than what samples differ by, all of it may be jitter.
        let small = (self.rough.unwrap_or(size) / self.usual.unwrap_or(size)).min(1.0);
        let vague = (self.skew / SKEW_MAX).powi(4).clamp(small, 1.0);
        let even = DIFFERING_PART_LARGE + (DIFFERING_PART - DIFFERING_PART_LARGE) * vague;
        let part = even * (1.0 + small) * self.all;
        let jitter = (self.jitter + self.prior * small).min(JITTER_PART_MAX * self.all);
        let again = AGAIN_LARGE + (AGAIN - AGAIN_LARGE) * vague;
        self.is_together = self.differing <= (part + self.turns + jitter) * if self.is_together { 1.0 } else { again };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After how many changes, ms, paths are found apart, or back together; none within 200.
    fn changes_until(evidence: &mut Evidence, is_together: bool, own_ms: f64, other_ms: f64) -> Option<usize> {
        skewed_changes_until(evidence, is_together, [own_ms, other_ms], 0.0)
    }

    fn skewed_changes_until(evidence: &mut Evidence, is_together: bool, ms: [f64; 2], skew: f64) -> Option<usize> {
        let [own, other] = ms.map(|ms| ms / 1e3);
        (1..=200).find(|_| {
            evidence.on_change(Change { both: Both { own, other }, rough: 30e-6, halves: 0.0, turn: 0.0 }, skew);
            evidence.is_together() == is_together
        })
    }

    #[test]
    fn large_changes_that_differ_by_more_than_jitter_are_two_queues_at_once() {
        // Both queues fill, one a third faster.
        let apart = |own| changes_until(&mut Evidence::default(), false, own, own * 0.75);
        assert_eq!([apart(60.0), apart(30.0)], [Some(1), Some(2)]);
        assert_eq!(apart(8.0), None, "it may be jitter");
        assert_eq!(changes_until(&mut Evidence::default(), false, 60.0, 55.0), Some(6), "while both fill evenly");
        assert_eq!(changes_until(&mut Evidence::default(), false, 60.0, 58.0), None, "nearly the same");
    }

    #[test]
    fn where_a_queue_turns_its_paths_may_differ_for_a_while() {
        // It fills, drains and fills: one path sees a tenth of each turn later.
        let apart = |turn_ms: f64| {
            let mut evidence = Evidence::default();
            (0..200).find(|n| {
                let [own, other] = if n % 4 < 2 { [60.0, 52.0] } else { [-52.0, -60.0] }.map(|ms: f64| ms / 1e3);
                let turn = if n % 2 == 0 { 2.0 * (turn_ms / 1e3).powi(2) } else { 0.0 };
                evidence.on_change(Change { both: Both { own, other }, rough: 30e-6, halves: 0.0, turn }, 0.0);
                !evidence.is_together()
            })
        };
        assert_eq!([apart(112.0), apart(0.0)], [None, Some(1)]);
    }

    #[test]
    fn jitter_that_lasts_for_many_packets_is_no_second_queue() {
        // Means differ by 5 ms, samples that follow each other by as much; the halves of each interval, or of each eighth one.
        let is_together = |halves_ms: f64, each: usize| {
            let mut evidence = Evidence::default();
            for n in 0..400 {
                let [own, other] = if n % 2 == 0 { [10.0, 5.0] } else { [-10.0, -5.0] }.map(|ms: f64| ms / 1e3);
                let halves = if n % each == 0 { (halves_ms / 1e3).powi(2) } else { 0.0 };
                evidence.on_change(Change { both: Both { own, other }, rough: 30e-6, halves, turn: 0.0 }, 0.0);
            }
            evidence.is_together()
        };
        assert_eq!(
            [(0.0, 1), (4.0, 1), (8.0, 1), (8.0, 8)].map(|(ms, each)| is_together(ms, each)),
            [false, false, true, false]
        );
    }

    #[test]
    fn queues_that_fill_alike_for_a_while_do_not_bring_paths_together_again() {
        let apart = || {
            let mut evidence = Evidence::default();
            assert_eq!(changes_until(&mut evidence, false, 60.0, 20.0), Some(1));
            evidence
        };
        assert_eq!(changes_until(&mut apart(), true, 60.0, 50.0), None, "less alike than those of one queue");
        assert_eq!(changes_until(&mut apart(), true, 60.0, 60.0), Some(114));
    }

    #[test]
    fn paths_that_see_one_queue_at_two_times_are_back_together_sooner() {
        let again = |skew| {
            let mut evidence = Evidence::default();
            assert_eq!(skewed_changes_until(&mut evidence, false, [60.0, 20.0], skew), Some(1));
            skewed_changes_until(&mut evidence, true, [60.0, 60.0], skew)
        };
        assert_eq!([0.0, 0.06, 0.125, 0.5].map(again), [Some(114), Some(96), Some(15), Some(15)]);
    }

    #[test]
    fn what_experiments_showed_fades_with_experiments() {
        let mut evidence = Evidence::default();
        evidence.on_experiment(Change::at_once(Both { own: 0.03, other: 0.0 }), 4.0);
        assert!(!evidence.is_together());
        let is_back = |_: &u32| {
            evidence.on_experiment(
                Change { both: Both { own: 0.03, other: 0.029 }, rough: 0.0, halves: 0.0, turn: 9e-4 },
                4.0,
            );
            evidence.is_together()
        };
        assert_eq!((1..100).find(is_back), Some(9));
    }
}
