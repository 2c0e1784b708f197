//! Leaves the first slow start at the onset of a queue: the delay along each round's packets gives the alarm, one round
//! at a held window the verdict.
//!
//! HyStart++ (RFC 9406) looks at the packets that open a round. By the time they wait, the window is past what the path
//! holds, and five conservative rounds treble it. In slow start packets leave at twice the rate of the round before, so
//! that the *end* of a round waits as soon as the window has passed half of what the path holds: one round earlier. That
//! wait alone proves little, since the sender's own burst causes it. But while packets wait, acks come at the rate of the
//! bottleneck, and with the smallest round trip that says how much the path holds. So the window goes that far and
//! stays there until packets that left at this window come back. If they did not wait, the alarm was false, and doubling
//! goes on. If they did, a window an eighth larger has the last word: where the path is full they wait longer in
//! proportion, and slow start is over; where delays come from jitter or from others' packets they do not.
//!
//! Where acks take another path back, the queue may be on that one: of acks themselves, where it is thin. Then the word of a packet
//! whose ack came by the own way is taken, and nothing else heard of while it holds.
//!
//! Packets that left before the window was held may be lost yet, and be found lost when the hold is over, where packets come
//! out of order and loss detection waits. They speak of the window at which they left.

use std::time::Duration;

use plait_base::{Instant, PathId};

use crate::controller::{Acked, HomeSample, RttSample};
use crate::hystart::HyStart;

/// Smallest rise that counts. RFC 9406 4.3 has 4 ms; here a false alarm costs a round, not the end of slow start.
const RISE_MIN: Duration = Duration::from_millis(3);
/// RFC 9406 4.3: largest rise that is asked for, but for jitter.
const RISE_MAX: Duration = Duration::from_millis(16);
/// The part of the round trip that counts as a rise.
const RISE_DIVISOR: u32 = 16;
/// Delays that differed by more in the round before raise it, up to this part of the round trip,
const SPREAD_DIVISOR: u32 = 4;
/// but where they went up and down by so many times their difference, as numerator and denominator.
const JITTER: (u32, u32) = (3, 2);
/// RFC 9406 4.3: N_RTT_SAMPLE, samples in a row that must all be above it,
const SAMPLES: u32 = 8;
/// over at least this part of the round trip: acks that come in one bunch are one sample.
const SPAN_DIVISOR: u32 = 8;
/// What the path holds by the rate of the acks, and a fifth for errors of that rate, as numerator and denominator.
const LEVEL: (u128, u128) = (6, 5);
/// Packets count for the verdict that left with this part of the held window in flight.
const FULL: (u64, u64) = (9, 10);

/// By this part a held window grows for the last word; half of it in delay shows a full path.
const PROOF_DIVISOR: u64 = 8;

/// Delays in a round or a run that fall back by more than this part of their rise come from jitter, not from a queue.
const FALL_DIVISOR: u32 = 4;

/// Where the queue is on the way that acks take, a packet is late by its own way by at most this part of what it is late by that one.
const SHARE_DIVISOR: u32 = 4;

/// Round trips by several ways back on one scale, that of the first: the smallest by each way is the same there, so that a change
/// of ways is no delay.
#[derive(Clone, Copy, Debug, Default)]
struct Scale {
    via: Option<PathId>,
    min: Duration,
    /// The smallest by the present way when acks took to it, and what that is on the scale.
    from: Duration,
    to: Duration,
}

impl Scale {
    /// Takes in the way of a sample. True where times by this way are other ones on the scale: mostly there was no other way.
    fn take_in(&mut self, rtt: &RttSample) -> bool {
        // On one way the smallest falls only, but where it is learnt anew.
        let is_other = rtt.via != self.via || rtt.min > self.min;
        if is_other && !self.min.is_zero() {
            (self.from, self.to) = (rtt.min, self.on_scale(self.min));
        }
        (self.via, self.min) = (rtt.via, rtt.min);
        self.from != self.to
    }

    /// A sample by the present way on the scale.
    fn place(&self, rtt: &RttSample) -> RttSample {
        let home = rtt.home.map(|home| HomeSample { other: home.other.map(|other| self.on_scale(other)), ..home });
        RttSample { latest: self.on_scale(rtt.latest), min: self.on_scale(rtt.min), home, ..*rtt }
    }

    fn on_scale(&self, rtt: Duration) -> Duration {
        (rtt + self.to).saturating_sub(self.from)
    }

    /// How long by the present way a round trip of the scale is.
    fn by_present_way(&self, rtt: Duration) -> Duration {
        (rtt + self.from).saturating_sub(self.to)
    }
}

/// The delays of a round.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// Packets from this number on belong to the next round.
    end: u64,
    /// Smallest and largest.
    range: Option<(Duration, Duration)>,
    /// Largest since the smallest, and by how much they fell at most after such a one.
    peak: Duration,
    fall: Duration,
}

impl Round {
    fn new(end: u64) -> Self {
        Self { end, ..Self::default() }
    }

    fn note(&mut self, delay: Duration) {
        let (min, max) = self.range.unwrap_or((delay, delay));
        if delay <= min {
            // What is left of the queue of the round before has gone.
            (self.peak, self.fall) = (delay, Duration::ZERO);
        }
        self.peak = self.peak.max(delay);
        self.fall = self.fall.max(self.peak - delay);
        self.range = Some((min.min(delay), max.max(delay)));
    }

    /// Delays go up and hardly down, as in front of a queue that fills.
    fn is_orderly(&self) -> bool {
        let rise = self.range.map_or(Duration::ZERO, |(min, _)| self.peak.saturating_sub(min));
        self.fall <= rise / FALL_DIVISOR
    }
}

/// Samples in a row above the threshold.
#[derive(Clone, Copy, Debug)]
struct Run {
    since: Instant,
    /// Bytes acked since, without those of the first sample.
    bytes: u64,
    samples: u32,
    /// Their largest delay, and by how much they fell at most after such a one.
    peak: Duration,
    fall: Duration,
}

/// The window waits for a verdict.
#[derive(Clone, Copy, Debug)]
struct Hold {
    /// How far the window may go meanwhile, bytes.
    level: u64,
    /// Packets count that left with nearly so much in flight, bytes.
    window: u64,
    /// They have at least this number, once the window is where it should be.
    from: Option<u64>,
    /// When one of at least this number was acked, a round of them is.
    until: Option<u64>,
    /// Their smallest and largest delay.
    least: Duration,
    most: Duration,
    stage: HoldTest,
    alarm: Alarm,
}

/// When a window began to wait.
#[derive(Clone, Copy, Debug)]
struct Alarm {
    at: Instant,
    /// Packets from this number on left since.
    next_number: u64,
    /// A packet that takes so long waits.
    threshold: Duration,
    /// The smallest sample by the path's own way back, where acks took another.
    home_min: Option<Duration>,
}

impl Alarm {
    /// True where one that left since came home by the path's own way without a wait, and waited on the way that acks take: the queue
    /// is on that one. What waited on neither came after a pause, and proves nothing.
    fn is_false(&self, ack: &Acked) -> bool {
        let Some(home) = ack.rtt.home.filter(|home| home.number >= self.next_number && home.is_prompt()) else {
            return false;
        };
        let Some(other) = home.other else { return true };
        let (late, other_late) = (home.rtt.saturating_sub(home.min), other.saturating_sub(ack.rtt.min));
        other >= self.threshold && late <= other_late / SHARE_DIVISOR
    }

    /// True where acks have gone home since, and one that left since did not wait by that way.
    fn is_left_behind(&self, ack: &Acked) -> bool {
        let is_home = ack.rtt.home.is_none() && ack.largest >= self.next_number;
        is_home && self.home_min.is_some_and(|min| HomeSample::is_within(ack.rtt.latest, min))
    }

    /// True while the word of such a packet is waited for.
    fn is_open(&self, ack: &Acked) -> bool {
        ack.rtt.home.is_some_and(|home| home.number < self.next_number && home.is_within_reach(self.at, ack.now))
    }
}

/// What a held window is to show.
#[derive(Clone, Copy, Debug)]
enum HoldTest {
    /// Whether packets wait at all, that is, take this time or more.
    Wait(Duration),
    /// Whether they wait longer than this in proportion to a larger window.
    Proof(Duration),
}

/// One path's first slow start.
#[derive(Clone, Debug, Default)]
pub(crate) struct Onset {
    round: Round,
    /// The round before.
    last: Option<Round>,
    run: Option<Run>,
    hold: Option<Box<Hold>>,
    /// When an alarm last took a part of the window back, and the window until then, bytes.
    peak: Option<(Instant, u64)>,
    /// For queues that do not show in this way.
    hystart: HyStart,
    scale: Scale,
    /// Delays tell of a queue on the way that acks take.
    is_deaf: bool,
    over: bool,
}

impl Onset {
    /// True when slow start is done.
    pub(crate) fn is_over(&self) -> bool {
        self.over
    }

    /// True while the window waits for a verdict.
    pub(crate) fn is_holding(&self) -> bool {
        self.hold.is_some()
    }

    /// The largest window at which a packet of `sent_at` may have left, bytes; at least `window`, that of now.
    pub(crate) fn struck(&self, window: u64, sent_at: Instant) -> u64 {
        self.peak.filter(|(until, _)| sent_at <= *until).map_or(window, |(_, peak)| peak.max(window))
    }

    /// Takes in one ACK frame of which `eligible` bytes may grow the `window`; returns the window after it.
    pub(crate) fn on_acked(&mut self, ack: &Acked, eligible: u64, window: u64) -> u64 {
        if self.over {
            return window.saturating_add(eligible);
        }
        let holds = |home: HomeSample| home.is_prompt() && home.is_within_reach(home.at, ack.now);
        if self.is_deaf && ack.rtt.home.is_some_and(holds) {
            return window.saturating_add(eligible);
        }
        if self.is_deaf {
            self.begin_anew(false);
        }
        let placed;
        let raw = ack;
        let ack = if self.scale.take_in(&ack.rtt) {
            placed = Acked { rtt: self.scale.place(&ack.rtt), ..*ack };
            &placed
        } else {
            ack
        };
        if let Some(hold) = self.hold.as_deref().copied() {
            return self.on_acked_in_hold(ack, raw, hold, eligible, window);
        }
        let eligible = self.hystart.growth(eligible);
        self.over = self.hystart.on_acked(ack).is_over();
        self.note(ack);
        match self.alarm(ack, window) {
            // RFC 9002 7.8: a window that is not in use stays as it is.
            Some(hold) if eligible > 0 && !self.over => {
                let held = hold.window;
                (self.hold, self.run, self.peak) = (Some(Box::new(hold)), None, Some((ack.now, window)));
                held
            }
            _ => window.saturating_add(eligible),
        }
    }

    /// The same while the window is held; `raw` is the ACK with its times as they are.
    #[inline(never)]
    fn on_acked_in_hold(&mut self, ack: &Acked, raw: &Acked, hold: Hold, eligible: u64, window: u64) -> u64 {
        let is_deaf = hold.alarm.is_false(ack);
        if is_deaf || hold.alarm.is_left_behind(raw) {
            self.begin_anew(is_deaf);
            return window.saturating_add(eligible);
        }
        let window = window + eligible.min(hold.level.saturating_sub(window));
        self.judge(ack, hold, window);
        window
    }

    /// Forgets the delays so far.
    #[cold]
    fn begin_anew(&mut self, is_deaf: bool) {
        *self = Self { scale: self.scale, peak: self.peak, is_deaf, ..Self::default() };
    }

    /// RFC 9406 4.2: a round ends when a packet sent after its start is acked.
    fn note(&mut self, ack: &Acked) {
        if ack.largest >= self.round.end {
            self.last = self.round.range.map(|_| self.round);
            self.round = Round::new(ack.next_number);
        }
        self.round.note(ack.rtt.latest);
    }

    /// Counts delays above the threshold; enough of them in a row hold the window.
    fn alarm(&mut self, ack: &Acked, window: u64) -> Option<Hold> {
        let last = self.last?;
        let (base, max) = last.range?;
        let rise = (base / RISE_DIVISOR).clamp(RISE_MIN, RISE_MAX);
        let spread = max - base;
        // By what jitter or others' packets add anyway, this round has to go beyond; a queue of the round before does not.
        let spread = if spread <= rise || last.is_orderly() {
            spread.min(base / SPREAD_DIVISOR)
        } else {
            spread * JITTER.0 / JITTER.1
        };
        let threshold = base + rise.max(spread);
        if ack.rtt.latest < threshold {
            self.run = None;
            return None;
        }
        self.count(ack, window, base, threshold)
    }

    /// A delay above the threshold.
    #[inline(never)]
    fn count(&mut self, ack: &Acked, window: u64, base: Duration, threshold: Duration) -> Option<Hold> {
        let Some(run) = &mut self.run else {
            self.run = Some(Run { since: ack.now, bytes: 0, samples: 1, peak: ack.rtt.latest, fall: Duration::ZERO });
            return None;
        };
        run.bytes += ack.bytes_total;
        run.samples += 1;
        run.peak = run.peak.max(ack.rtt.latest);
        run.fall = run.fall.max(run.peak - ack.rtt.latest);
        let time = ack.now.since(run.since);
        if run.samples < SAMPLES || time < base / SPAN_DIVISOR || run.fall > (run.peak - base) / FALL_DIVISOR {
            return None;
        }
        // All of them waited, so the bottleneck was busy: they came at its rate.
        let round = self.scale.by_present_way(base) + ack.rtt.shortcut;
        let held = (u128::from(run.bytes) * round.as_nanos() * LEVEL.0).checked_div(time.as_nanos() * LEVEL.1);
        let held = u64::try_from(held.unwrap_or(0)).unwrap_or(u64::MAX);
        // Acks in bunches may show less, but what is in flight now did find room.
        let level = held.max(ack.in_flight + ack.bytes_total);
        let (from, stage) = (Some(ack.next_number), HoldTest::Wait(threshold));
        Some(Hold {
            level,
            window: window.min(level),
            from,
            until: None,
            least: Duration::MAX,
            most: Duration::ZERO,
            stage,
            alarm: Alarm {
                at: ack.now,
                next_number: ack.next_number,
                threshold,
                home_min: ack.rtt.home.map(|home| home.min),
            },
        })
    }

    /// Ends a stage of the hold when packets that left at the held window have come back; others prove nothing.
    fn judge(&mut self, ack: &Acked, mut hold: Hold, window: u64) {
        let Some(from) = hold.from else {
            // Packets that leave once all that is in flight now has been acked found the queue as it will stay.
            let flight = ack.next_number - ack.largest.min(ack.next_number);
            hold.from = (window >= hold.level).then_some(ack.next_number + flight);
            self.hold = Some(Box::new(hold));
            return;
        };
        let full = ack.delivery.flight_bytes.saturating_mul(FULL.1) >= hold.window.saturating_mul(FULL.0);
        if ack.largest < from || !full {
            return;
        }
        (hold.least, hold.most) = (hold.least.min(ack.rtt.latest), hold.most.max(ack.rtt.latest));
        let over = ack.largest >= *hold.until.get_or_insert(ack.next_number);
        self.hold = Some(Box::new(hold));
        match hold.stage {
            HoldTest::Wait(threshold) if hold.least < threshold => self.resume(ack, None),
            HoldTest::Wait(_) if over => {
                let (level, stage) = (window.saturating_add(window / PROOF_DIVISOR), HoldTest::Proof(hold.least));
                self.hold = Some(Box::new(Hold {
                    level,
                    window: level,
                    from: None,
                    until: None,
                    least: Duration::MAX,
                    most: Duration::ZERO,
                    stage,
                    alarm: hold.alarm,
                }));
            }
            HoldTest::Proof(before) if over && !hold.alarm.is_open(ack) => {
                let longer = before + before / (2 * PROOF_DIVISOR as u32);
                // Delays that vary by more than half of their rise prove nothing.
                let base = self.last.and_then(|last| last.range).map_or(before, |(base, _)| base);
                if hold.least < longer || hold.most - hold.least > hold.least.saturating_sub(base) / 2 {
                    self.resume(
                        ack,
                        Some(Round { range: Some((hold.least, hold.most)), peak: hold.most, ..Round::default() }),
                    );
                } else {
                    (self.hold, self.over) = (None, true);
                }
            }
            _ => {}
        }
    }

    /// Back to doubling; delays compare with those of `last`, or with those they did before.
    fn resume(&mut self, ack: &Acked, last: Option<Round>) {
        (self.hold, self.last) = (None, last.or(self.last));
        self.round = Round::new(ack.next_number);
        self.hystart = HyStart::default();
    }
}

#[cfg(test)]
#[path = "onset/tests.rs"]
mod tests;
