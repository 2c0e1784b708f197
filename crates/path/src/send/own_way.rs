//! How much sooner acks come than by the path's own way back.
//!
//! RFC 10069 lets acks take any path, and each sample of the RTT is then this path's way there plus another one's way back.
//! Loss recovery and scheduling want just that. A congestion controller does not: a flow whose acks are home sooner grows
//! faster, and takes more of a queue than a single-path flow beside it. So the difference is kept: from the samples before
//! and after acks took another way, and from acks that come by the own way as well, a little late.

use std::collections::VecDeque;
use std::time::Duration;

use plait_base::limits::MAX_RTT_MARKS;
use plait_base::{Instant, PathId};
use plait_congestion::HomeSample;

use super::early_acks::EarlyAcks;

/// Samples that are remembered for acks that come later by the own way are so many to an RTT at most.
const MARKS_PER_RTT: u32 = 8;
/// Between samples that are so many times as far apart the sender paused.
const PAUSE_SPACINGS: u32 = 2;
/// The smallest difference of so long is believed, and of as long again: a queue on the way back comes and goes.
const WINDOW: Duration = Duration::from_secs(10);

/// A sample by the way that acks take.
#[derive(Clone, Copy, Debug)]
struct Mark {
    number: u64,
    sent_at: Instant,
    rtt: Duration,
}

/// A sample of the RTT: of which packet, and which way its ack came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sampled {
    pub(crate) number: u64,
    pub(crate) sent_at: Instant,
    /// The sample, less the peer's ack delay.
    pub(crate) rtt: Duration,
    pub(crate) via: PathId,
}

/// What is known of the path's own way back.
#[derive(Clone, Debug)]
pub(crate) struct OwnWay {
    /// The path whose way back is the own one; none for uniflows, which have no such.
    own: Option<PathId>,
    /// The path that brings the acks.
    via: Option<PathId>,
    /// Samples have shown how much longer the RTT is by it; until then it is taken for as long.
    is_known: bool,
    /// The newest sample by the own way.
    home: Option<HomeSample>,
    /// None while acks have never taken another way, as those of most connections never do.
    away: Option<Box<Away>>,
    /// What was acked before it would have been by the own way: asked for with each packet.
    pub(super) early_acks: EarlyAcks,
}

/// How the own way compares with another one, since acks took that first.
#[derive(Clone, Debug)]
struct Away {
    /// How much longer the RTT is by the own way, the smallest of this window and of the one before; zero where acks take
    /// that.
    differences: [Duration; 2],
    /// The smaller of the two, which is asked for with each packet.
    difference: Duration,
    since: Instant,
    /// An answer to a challenge has told of the own way before samples did.
    is_told: bool,
    /// The smallest sample by the way that acks take.
    other_min: Duration,
    /// Acks went home before it was known: the round trip by the own way, next to the one before.
    longer: Option<f64>,
    /// The newest sample came by the own way, though acks took another, and the smoothed RTT without it: the next one tells whether
    /// they have moved.
    came_home: Option<Duration>,
    marks: VecDeque<Mark>,
}

impl Default for Away {
    fn default() -> Self {
        Self {
            differences: [Duration::ZERO; 2],
            difference: Duration::ZERO,
            since: Instant::ZERO,
            is_told: false,
            other_min: Duration::MAX,
            longer: None,
            came_home: None,
            marks: VecDeque::new(),
        }
    }
}

impl Away {
    fn start_with(&mut self, now: Instant, difference: Duration) {
        (self.differences, self.difference, self.since) = ([difference; 2], difference, now);
    }

    fn learn(&mut self, now: Instant, difference: Duration) {
        if now.since(self.since) >= WINDOW {
            (self.differences, self.since) = ([difference, self.differences[0]], now);
        }
        self.differences[0] = self.differences[0].min(difference);
        self.difference = self.differences[0].min(self.differences[1]);
    }

    /// A sample by another way than the own one, the first by this way or one more.
    fn on_sample(&mut self, sample: &Sampled) {
        self.other_min = self.other_min.min(sample.rtt);
        let spacing = sample.rtt / MARKS_PER_RTT;
        if self.marks.back().is_none_or(|last| sample.sent_at.since(last.sent_at) >= spacing) {
            if self.marks.len() == MAX_RTT_MARKS {
                self.marks.pop_front();
            }
            self.marks.push_back(Mark { number: sample.number, sent_at: sample.sent_at, rtt: sample.rtt });
        }
    }

    /// When packet `number` left, as far as marks tell, and the last mark up to it.
    fn sent_at(&self, number: u64) -> Option<(Instant, Mark)> {
        let after = self.marks.partition_point(|mark| mark.number <= number);
        let mark = *self.marks.get(after.checked_sub(1)?)?;
        let sent_at = match self.marks.get(after).filter(|_| number > mark.number) {
            // The sender paused, before the packet left or after it.
            Some(next) if next.sent_at.since(mark.sent_at) > mark.rtt * PAUSE_SPACINGS / MARKS_PER_RTT => return None,
            // Packets between two marks left at an even pace.
            Some(next) => {
                let part = (number - mark.number) as f64 / (next.number - mark.number) as f64;
                mark.sent_at + next.sent_at.since(mark.sent_at).mul_f64(part)
            }
            None => mark.sent_at,
        };
        Some((sent_at, mark))
    }

    /// The last mark of a packet that had left at `at`, or else the first one.
    fn mark_at(&self, at: Instant) -> Option<Mark> {
        let after = self.marks.partition_point(|mark| mark.sent_at <= at);
        self.marks.get(after.saturating_sub(1)).copied()
    }
}

impl OwnWay {
    pub(crate) fn new(own: Option<PathId>) -> Self {
        Self { own, via: None, is_known: false, home: None, away: None, early_acks: EarlyAcks::default() }
    }

    pub(crate) fn own(&self) -> Option<PathId> {
        self.own
    }

    /// How much longer the RTT is by the own way than by the one that acks take.
    #[inline]
    pub(crate) fn difference(&self) -> Duration {
        self.away.as_ref().map_or(Duration::ZERO, |away| away.difference)
    }

    /// The newest sample by the own way while acks take another.
    #[inline]
    pub(crate) fn home(&self) -> Option<HomeSample> {
        self.home.filter(|_| self.via != self.own)
    }

    /// A sample by the own way, the longest that it may be where that is not known exactly, and that by the way that acks take.
    fn note_home(&mut self, at: Instant, number: u64, rtt: Duration, longest: Duration, other: Option<Duration>) {
        let min = self.home.map_or(longest, |home| home.min.min(longest));
        self.home = Some(HomeSample { number, at, rtt, min, other });
    }

    /// A sample at `now`; `before` is the smoothed RTT without it.
    pub(crate) fn on_sample(&mut self, now: Instant, sample: Sampled, before: Duration) {
        if self.own.is_none() {
            return;
        }
        if Some(sample.via) == self.own {
            self.note_home(now, sample.number, sample.rtt, sample.rtt, None);
            match &self.away {
                Some(_) => self.on_home_again(now, &sample, before),
                None => (self.via, self.is_known) = (self.own, true),
            }
        } else {
            self.on_away(now, &sample, before);
        }
    }

    /// A sample by the own way, where acks have taken another before.
    #[inline(never)]
    fn on_home_again(&mut self, now: Instant, sample: &Sampled, before: Duration) {
        let told = self.told();
        let Some(away) = &mut self.away else { return };
        let has_moved = self.via.is_none_or(|via| via == sample.via) || away.came_home.is_some();
        if has_moved {
            if let Some(smoothed) = away.came_home.filter(|_| !self.is_known) {
                let own = told.map_or(sample.rtt, |told| sample.rtt.min(smoothed + told));
                away.longer = Some(times(own, smoothed));
            }
            (self.via, self.is_known) = (self.own, true);
            away.start_with(now, Duration::ZERO);
            away.marks.clear();
        } else {
            away.learn(now, sample.rtt.saturating_sub(before));
        }
        away.came_home = (!has_moved).then_some(before);
    }

    /// A sample by another way.
    #[inline(never)]
    fn on_away(&mut self, now: Instant, sample: &Sampled, before: Duration) {
        let away = self.away.get_or_insert_default();
        away.came_home = None;
        if self.via != Some(sample.via) {
            if self.via.is_some() {
                away.start_with(now, (away.difference + before).saturating_sub(sample.rtt));
            }
            self.via = Some(sample.via);
            away.marks.clear();
            away.other_min = sample.rtt;
        }
        away.on_sample(sample);
    }

    /// An ack came by `via` at `now`, held back for `delay`, that has no news: its largest number was acked before. It may be
    /// told again long after, so that the delay has no bound here.
    pub(crate) fn on_old_ack(&mut self, now: Instant, largest: u64, delay: Duration, via: PathId) {
        if Some(via) != self.own || self.via == self.own {
            return;
        }
        let Some((sent_at, mark)) = self.away.as_ref().and_then(|away| away.sent_at(largest)) else { return };
        let own_since = |sent_at| now.since(sent_at).saturating_sub(delay);
        let (own, longest) = (own_since(sent_at), own_since(mark.sent_at));
        self.on_heard(now, largest, own, longest, mark.rtt);
    }

    /// The answer to a challenge of `asked_at` came, which takes the path's own way back (RFC 9000 8.2.2). It is no sample of the
    /// RTT (RFC 9002 6.2.2), but all that is heard of the own way of a path whose acks have always taken another.
    pub(crate) fn on_answer(&mut self, now: Instant, asked_at: Instant) {
        if self.own.is_none() || self.via == self.own {
            return;
        }
        let Some(mark) = self.away.as_ref().and_then(|away| away.mark_at(asked_at)) else { return };
        let own = now.since(asked_at);
        self.on_heard(now, mark.number, own, own, mark.rtt);
        if let Some(away) = &mut self.away {
            away.is_told = true;
        }
    }

    /// The own way took `own`, or `longest` at most, for packet `number`, and the way that acks take `other`.
    fn on_heard(&mut self, now: Instant, number: u64, own: Duration, longest: Duration, other: Duration) {
        self.note_home(now, number, own, longest, Some(other));
        if let Some(away) = self.away.as_mut().filter(|_| self.is_known) {
            away.learn(now, own.saturating_sub(other));
        }
    }

    /// The difference, as far as it was told, while it is taken for none all the same. A full-sized answer takes longer on a thin
    /// way than an ack, and either may meet a queue: the smallest of what came by each way tells most.
    #[inline]
    pub(crate) fn told(&self) -> Option<Duration> {
        let away = self.away.as_ref().filter(|away| away.is_told && !self.is_known)?;
        Some(self.home?.min.saturating_sub(away.other_min))
    }

    /// From now on what was told counts; says by how many times the round trip is longer than one of `rtt`. None where nothing was
    /// told, or it counts already.
    pub(crate) fn believe(&mut self, now: Instant, rtt: Duration) -> Option<f64> {
        let told = self.told()?;
        self.away.as_mut()?.start_with(now, told);
        self.is_known = true;
        Some(times(rtt + told, rtt))
    }

    /// Acks went home, and it was not known that this way is so many times as long as the one before; said once.
    #[inline]
    pub(crate) fn take_longer(&mut self) -> Option<f64> {
        self.away.as_mut()?.longer.take()
    }

    /// The path that carried the acks died.
    pub(crate) fn forget_via(&mut self, path: PathId) {
        if let Some(away) = self.away.as_mut().filter(|_| self.via == Some(path)) {
            away.marks.clear();
        }
    }
}

/// How many times as long `own` is as `other`, one at least.
fn times(own: Duration, other: Duration) -> f64 {
    if own <= other || other.is_zero() { 1.0 } else { own.as_secs_f64() / other.as_secs_f64() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const OWN: PathId = PathId(3);
    const OTHER: PathId = PathId(1);

    fn at(ms: u32) -> Instant {
        Instant::ZERO + MS * ms
    }

    fn sample(number: u64, ms: u32, rtt: u32, via: PathId) -> Sampled {
        Sampled { number, sent_at: at(ms), rtt: MS * rtt, via }
    }

    #[test]
    fn acks_that_take_another_way_show_the_difference() {
        let mut way = OwnWay::new(Some(OWN));
        way.on_sample(at(70), sample(0, 0, 70, OWN), MS * 333);
        way.on_sample(at(140), sample(1, 70, 70, OWN), MS * 70);
        assert_eq!(way.difference(), Duration::ZERO);
        way.on_sample(at(180), sample(2, 140, 40, OTHER), MS * 70);
        assert_eq!(way.difference(), MS * 30);
        way.on_sample(at(190), sample(3, 150, 40, OTHER), MS * 66);
        assert_eq!(way.difference(), MS * 30);
        // a third way, longer than the second
        way.on_sample(at(260), sample(4, 200, 60, PathId(2)), MS * 40);
        assert_eq!(way.difference(), MS * 10);
        // and home again: one ack may have been a copy, two were not
        way.on_sample(at(370), sample(5, 300, 70, OWN), MS * 60);
        assert_eq!(way.difference(), MS * 10);
        way.on_sample(at(380), sample(6, 310, 70, OWN), MS * 60);
        assert_eq!(way.difference(), Duration::ZERO);
    }

    #[test]
    fn copies_by_the_own_way_keep_it_true() {
        let mut way = OwnWay::new(Some(OWN));
        way.on_sample(at(70), sample(0, 0, 70, OWN), MS * 333);
        let mut number = 0;
        // A packet a millisecond, a sample of each tenth; a copy each second, by an own way of `own` ms with `delay`.
        let mut seconds = |way: &mut OwnWay, count: u64, own: u32, delay: u32| {
            for _ in 0..count * 100 {
                number += 10;
                way.on_sample(at(number as u32 + 40), sample(number, number as u32, 40, OTHER), MS * 70);
                if number % 1000 == 0 {
                    let largest = number - 15;
                    way.on_old_ack(at(largest as u32 + own + delay), largest, MS * delay, OWN);
                }
            }
            way.difference()
        };
        assert_eq!(seconds(&mut way, 3, 70, 5), MS * 30);
        // a queue on it comes and goes, or an old ack is told again after a long time
        assert_eq!(seconds(&mut way, 1, 500, 5), MS * 30);
        assert_eq!(seconds(&mut way, 1, 70, 5000), MS * 30);
        // a shorter way back is believed at once, a longer one once no sample says otherwise
        assert_eq!(seconds(&mut way, 1, 55, 5), MS * 15);
        assert_eq!(seconds(&mut way, 30, 90, 5), MS * 50);
        // older than what is remembered, or by another way: nothing
        way.on_old_ack(at(90_000), 1, Duration::ZERO, OWN);
        way.on_old_ack(at(90_000), 30_000, Duration::ZERO, OTHER);
        assert_eq!(way.difference(), MS * 50);
    }

    #[test]
    fn nothing_is_learnt_of_a_packet_that_left_before_or_after_a_pause() {
        for (pause, difference) in [(10, 30), (11, 40)] {
            let mut way = OwnWay::new(Some(OWN));
            way.on_sample(at(80), sample(0, 0, 80, OWN), MS * 333);
            way.on_sample(at(140), sample(1, 100, 40, OTHER), MS * 80);
            assert_eq!(way.difference(), MS * 40);
            // The next sample is of a packet that left a quarter of a round trip later, or after a pause.
            way.on_sample(at(140 + pause), sample(11, 100 + pause, 40, OTHER), MS * 40);
            // At an even pace the one half way between them left after 5 ms.
            way.on_old_ack(at(175), 6, Duration::ZERO, OWN);
            assert_eq!(way.difference(), MS * difference, "{pause} ms");
            // Of one that was sampled it is known when it left.
            way.on_old_ack(at(165), 1, Duration::ZERO, OWN);
            assert_eq!(way.difference(), MS * 25);
        }
    }

    #[test]
    fn what_comes_home_while_acks_take_another_way_is_kept() {
        let mut way = OwnWay::new(Some(OWN));
        way.on_sample(at(70), sample(0, 0, 70, OWN), MS * 333);
        assert_eq!(way.home(), None, "acks take that way");
        way.on_sample(at(140), sample(1, 100, 40, OTHER), MS * 70);
        let home = |number, at_ms, rtt, min, other| {
            Some(HomeSample { number, at: at(at_ms), rtt: MS * rtt, min: MS * min, other })
        };
        assert_eq!(way.home(), home(0, 70, 70, 70, None));
        // A copy of that ack, held for 5 ms; then one that is the first to arrive.
        way.on_old_ack(at(190), 1, MS * 5, OWN);
        assert_eq!(way.home(), home(1, 190, 85, 70, Some(MS * 40)));
        // Of a packet between two that are known it is not known when it left.
        way.on_sample(at(160), sample(5, 110, 50, OTHER), MS * 40);
        way.on_old_ack(at(176), 3, Duration::ZERO, OWN);
        assert_eq!(way.home(), home(3, 176, 71, 70, Some(MS * 40)));
        way.on_old_ack(at(192), 5, MS * 36, OWN);
        assert_eq!(way.home(), home(5, 192, 46, 46, Some(MS * 50)));
        way.on_sample(at(272), sample(2, 200, 72, OWN), MS * 40);
        assert_eq!(way.home(), home(2, 272, 72, 46, None));
    }

    /// A path whose acks have always come by another way, a packet each 10 ms, until its challenge of the first one was answered.
    fn answered() -> OwnWay {
        let mut way = OwnWay::new(Some(OWN));
        way.on_answer(at(1), at(0));
        assert_eq!((way.told(), way.home()), (None, None), "nothing to compare it with");
        (0..10).for_each(|n| way.on_sample(at(n as u32 * 10 + 180), sample(n, n as u32 * 10, 180, OTHER), MS * 180));
        way.on_answer(at(360), at(0));
        way
    }

    #[test]
    fn an_answer_tells_of_the_own_way_and_counts_once_it_is_believed() {
        let mut way = answered();
        assert_eq!((way.told(), way.difference()), (Some(MS * 180), Duration::ZERO));
        let home = way.home().unwrap();
        assert_eq!((home.number, home.rtt, home.other), (0, MS * 360, Some(MS * 180)));
        // The shortest of several, and of acks, which are small.
        way.on_answer(at(400), at(20));
        assert_eq!(way.told(), Some(MS * 180));
        way.on_answer(at(420), at(70));
        assert_eq!(way.told(), Some(MS * 170));
        way.on_old_ack(at(425), 9, MS * 5, OWN);
        assert_eq!((way.told(), way.difference()), (Some(MS * 150), Duration::ZERO));
        // A queue on the way that acks take makes it no shorter.
        way.on_sample(at(600), sample(10, 300, 300, OTHER), MS * 180);
        way.on_old_ack(at(660), 10, Duration::ZERO, OWN);
        assert_eq!(way.told(), Some(MS * 150));
        assert_eq!(way.believe(at(660), MS * 150), Some(2.0));
        assert_eq!((way.told(), way.difference()), (None, MS * 150));
        assert_eq!(way.believe(at(660), MS * 150), None, "once");
        // From then on an answer is one more sample.
        way.on_answer(at(800), at(300));
        assert_eq!((way.told(), way.difference()), (None, MS * 150));
        way.on_answer(at(740), at(300));
        assert_eq!(way.difference(), MS * 140);
    }

    #[test]
    fn acks_that_go_home_by_an_unknown_way_say_how_much_longer_it_is() {
        // The first sample by the own way met a queue: what was told is the shorter.
        for (told, own, times) in [(true, 900, 2.0), (true, 315, 1.75), (false, 450, 2.5), (false, 90, 1.0)] {
            let mut way = if told { answered() } else { OwnWay::new(Some(OWN)) };
            way.on_sample(at(600), sample(20, 410, 190, OTHER), MS * 180);
            assert_eq!(way.take_longer(), None);
            way.away.as_mut().unwrap().came_home = Some(MS * 180);
            way.on_sample(at(1400), sample(21, 1400 - own, own, OWN), MS * 180);
            assert_eq!((way.take_longer(), way.take_longer()), (Some(times), None), "{told} {own}");
            assert_eq!((way.told(), way.difference()), (None, Duration::ZERO));
            // Away and home again, it is known.
            way.on_sample(at(1500), sample(22, 1310, 190, OTHER), MS * 360);
            way.away.as_mut().unwrap().came_home = Some(MS * 190);
            way.on_sample(at(1900), sample(23, 1530, 370, OWN), MS * 190);
            assert_eq!(way.take_longer(), None);
        }
    }

    #[test]
    fn no_way_is_shorter_than_itself_nor_longer_without_end() {
        let ms = |own, other| times(MS * own, MS * other);
        assert_eq!([ms(3, 2), ms(2, 2), ms(1, 2), ms(0, 0), ms(5, 0)], [1.5, 1.0, 1.0, 1.0, 1.0]);
    }

    #[test]
    fn marks_are_bounded_and_uniflows_have_no_own_way() {
        let mut way = OwnWay::new(Some(OWN));
        (0..10_000).for_each(|n| way.on_sample(at(n as u32 * 10 + 40), sample(n, n as u32 * 10, 40, OTHER), MS * 40));
        assert_eq!(way.away.unwrap().marks.len(), MAX_RTT_MARKS);
        let mut way = OwnWay::new(None);
        way.on_sample(at(70), sample(0, 0, 70, OWN), MS * 333);
        way.on_sample(at(110), sample(1, 70, 40, OTHER), MS * 70);
        assert!(way.difference().is_zero() && way.away.is_none());
    }
}
