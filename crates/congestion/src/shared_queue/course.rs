//! The course of two paths' delays, in means over a few round trips and as changes against what they were lately.

use std::time::Duration;

use plait_base::Instant;
use plait_base::shared_metrics::Delays;

use super::evidence::{Both, Change};

/// Round trips of the slower path in a mean: shorter ones show packets of one path that the other has not met.
const ROUNDS: u32 = 2;
/// Of a round trip so many times the smallest count, and of the rest, a deep queue, this part: acks that come at the same time left
/// it at the same time, however long they waited.
const MIN_ROUNDS: u32 = 2;
const WAIT_DIVISOR: u32 = 4;
/// Samples of each path in a mean.
const SAMPLES_MIN: u64 = 4;
/// A mean that takes so many times as long says that a path rests.
const LATE: u32 = 4;
/// How fast *lately* follows.
const LATELY_GAIN: f64 = 0.25;

/// How long a round trip of this path counts.
pub(super) fn round(smoothed: Duration, min: Duration) -> Duration {
    let near = smoothed.min(min * MIN_ROUNDS);
    near + (smoothed - near) / WAIT_DIVISOR
}

/// Where the sums of both stood when the present mean began.
#[derive(Clone, Copy, Debug)]
struct Start {
    at: Instant,
    own: Delays,
    other: Delays,
    /// And half way through it.
    half: Option<(Delays, Delays)>,
}

impl Start {
    /// By how much the difference of the two changed from the first half to the second, in squares; nothing where a half has no
    /// samples.
    fn differ_halves(&self, own: &Delays, other: &Delays) -> f64 {
        let change = self.half.and_then(|(own_half, other_half)| {
            let first = own_half.mean_since(&self.own)? - other_half.mean_since(&self.other)?;
            let second = own.mean_since(&own_half)? - other.mean_since(&other_half)?;
            Some(second - first)
        });
        change.map_or(0.0, |change| change * change)
    }
}

/// What was before the present mean.
#[derive(Clone, Copy, Debug)]
struct Past {
    /// Delays as they were lately.
    lately: Both,
    mean: Both,
    /// By how much that mean differed from the one before it; none for the first.
    step: Option<Both>,
}

/// Two delays that are compared.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Course {
    start: Option<Start>,
    past: Option<Past>,
}

impl Course {
    /// An ACK came for the path whose samples are `own`; gives a change when a mean is complete. `rtt` is the longer one of
    /// the two, as [`round`] counts them.
    pub(super) fn on_acked(&mut self, now: Instant, rtt: Duration, own: &Delays, other: &Delays) -> Option<Change> {
        let begin = Start { at: now, own: *own, other: *other, half: None };
        let start = self.start.get_or_insert(begin);
        let time = now.since(start.at);
        if time >= rtt * ROUNDS / 2 {
            start.half.get_or_insert((*own, *other));
        }
        let start = *start;
        if time < rtt * ROUNDS {
            return None;
        }
        if own.samples_since(&start.own).min(other.samples_since(&start.other)) < SAMPLES_MIN {
            if time > rtt * ROUNDS * LATE {
                (self.start, self.past) = (Some(begin), None);
            }
            return None;
        }
        let mean = Both { own: own.mean_since(&start.own)?, other: other.mean_since(&start.other)? };
        let rough = own.roughness_since(&start.own) + other.roughness_since(&start.other);
        let halves = start.differ_halves(own, other);
        self.start = Some(begin);
        let Some(past) = &mut self.past else {
            self.past = Some(Past { lately: mean, mean, step: None });
            return None;
        };
        let step = mean.minus(past.mean);
        let turn = past.step.map_or(0.0, |before| step.minus(before).squared());
        (past.mean, past.step) = (mean, Some(step));
        let change = mean.minus(past.lately);
        past.lately.own += change.own * LATELY_GAIN;
        past.lately.other += change.other * LATELY_GAIN;
        Some(Change { both: change, rough, halves, turn })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn most_of_a_deep_queue_does_not_count_in_a_round_trip() {
        let rounds = [(20, 20), (28, 20), (40, 20), (80, 20), (520, 20), (10, 20)];
        assert_eq!(
            rounds.map(|(smoothed, min)| round(MS * smoothed, MS * min)),
            [20, 28, 40, 50, 160, 10].map(|ms| MS * ms)
        );
    }

    #[test]
    fn what_one_path_alone_sees_within_an_interval_shows_in_its_halves() {
        // How long one path's packets take at some time, ms, where the other's take 20 and as much more as `both`.
        let halves = |own_ms: fn(u32) -> u32, both: fn(u32) -> u32| {
            let (mut course, mut own, mut other) = (Course::default(), Delays::default(), Delays::default());
            let changes = (0..600).step_by(5).filter_map(|ms| {
                let now = Instant::ZERO + MS * ms;
                own.note(now, MS * (own_ms(ms) + both(ms)));
                other.note(now, MS * (20 + both(ms)));
                course.on_acked(now, MS * 100, &own, &other)
            });
            changes.map(|change| (change.halves.sqrt() * 1e3).round()).collect::<Vec<_>>()
        };
        let wait = |ms| if (ms / 100) % 2 == 0 { 20 } else { 30 };
        assert_eq!(halves(wait, |_| 0), [10.0]);
        assert_eq!(halves(wait, |ms| ms), [10.0], "while the queue of both fills");
        assert_eq!(halves(|_| 20, |ms| ms), [0.0]);
    }

    #[test]
    fn a_path_that_pauses_sees_the_same_change() {
        // A queue that fills by 1 ms a millisecond is shorter by 100 ms at 400 ms; the path that made room pauses then.
        let delay = |ms: u32| MS * if ms < 400 { 100 + ms } else { ms };
        let (mut course, mut own, mut other) = (Course::default(), Delays::default(), Delays::default());
        let mut differs = Vec::new();
        for ms in (0..1000).step_by(5) {
            let now = Instant::ZERO + MS * ms;
            own.note(now, delay(ms));
            if !(405..550).contains(&ms) {
                other.note(now, delay(ms));
            }
            let change = course.on_acked(now, MS * 100, &own, &other);
            differs.extend(change.map(|change| (change.both.difference() * 1e3).abs()));
        }
        assert!(differs.len() >= 3 && differs.iter().all(|ms| *ms < 1e-6), "{differs:?}");
    }
}
