//! When to acknowledge: at once, with the next packet, or at a deadline (RFC 9000 13.2, ACK_FREQUENCY).

use std::ops::Range;
use std::time::Duration;

use plait_base::limits::MAX_ACK_RANGES;
use plait_base::{Ecn, Instant};

use super::Eliciting;
use super::dedup::Dedup;

/// So many acks of a new way leave at once: the peer's first RTT samples are free of ack delay.
const PROMPT_ACKS: u64 = 4;

/// An ack that waited for this part of its longest delay joins acks of other paths. If it joined them sooner, a sender would hear of
/// its packets one by one, not by twos as over a single path, and with its smaller bursts take more than its share of a full queue.
const SOON_DIVISOR: u32 = 2;

/// Packets that elicit no ack are reported beside others, or once so many came since the last ack: acks of acks, which only tell
/// the peer which ranges it need not repeat (RFC 9000 13.2.4).
const MANY_SILENT: u64 = 16;

/// Packets that came out of order since the last ack, after which it is due whatever the peer bears with: each may begin a range,
/// and none may be forgotten before it was reported (ACK_FREQUENCY draft, section 6).
const MANY_JUMPS: u64 = MAX_ACK_RANGES as u64 / 4;

/// How eagerly a receiver acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckPolicy {
    /// So many ack-eliciting packets may arrive without an immediate ack; the next one calls for it.
    /// RFC 9000 13.2.2 recommends 1: every second packet.
    pub eliciting_threshold: u64,
    /// Longest time that an ack is held back: the max_ack_delay that we announced or the peer asked for.
    pub max_ack_delay: Duration,
    /// 0: disorder does not hasten acks. 1: any disorder does (RFC 9000 13.2.1). Above: a gap does once numbers
    /// so far above it arrived.
    pub reordering_threshold: u64,
    /// Which congestion marks call for an ack at once.
    pub(crate) marks: UrgentMarks,
}

/// Which packets marked CE call for an ack at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UrgentMarks {
    /// Each of them (RFC 9000 13.2.1).
    Each,
    /// The first after one without the mark (ACK_FREQUENCY draft, section 6.3).
    First,
}

impl AckPolicy {
    /// Every second packet, or after `max_ack_delay` (RFC 9000 13.2.2).
    pub fn delayed(max_ack_delay: Duration) -> Self {
        Self { eliciting_threshold: 1, max_ack_delay, reordering_threshold: 1, marks: UrgentMarks::Each }
    }

    /// At once, as Initial and Handshake packets need it (RFC 9000 13.2.1).
    pub fn immediate() -> Self {
        Self::delayed(Duration::ZERO).with_eliciting_threshold(0)
    }

    /// The same, with another [`eliciting_threshold`](Self::eliciting_threshold).
    pub fn with_eliciting_threshold(self, eliciting_threshold: u64) -> Self {
        Self { eliciting_threshold, ..self }
    }

    /// As an ACK_FREQUENCY frame asks.
    pub fn requested(eliciting_threshold: u64, max_ack_delay: Duration, reordering_threshold: u64) -> Self {
        let marks = if eliciting_threshold > 1 { UrgentMarks::First } else { UrgentMarks::Each };
        Self { eliciting_threshold, max_ack_delay, reordering_threshold, marks }
    }
}

/// Whether an ack should leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AckNeed {
    /// Nothing new to report.
    None,
    /// If a packet with more than acks leaves anyway, let it carry an ack.
    Piggyback,
    /// If any packet leaves anyway, let it carry an ack.
    Soon,
    /// Send one now, alone if need be.
    Now,
}

/// What is still unreported, and when it has to be.
#[derive(Clone, Debug)]
pub(crate) struct AckSchedule {
    policy: AckPolicy,
    /// Packets of any kind received since the last ack.
    unreported: u64,
    /// Ack-eliciting packets received since the last ack.
    eliciting: u64,
    /// Of these, such as did not follow the largest number.
    jumps: u64,
    /// An ack is due now.
    due: bool,
    /// When the first ack-eliciting packet since then came, while the ack waits for its time.
    waits_since: Option<Instant>,
    /// So many acks more leave at once, because the way that the packets take is new.
    prompt_acks: u64,
    /// Largest ack-eliciting number received.
    largest_eliciting: Option<u64>,
    /// Largest number that an ack of ours reported.
    largest_reported: Option<u64>,
    /// The ack-eliciting packet that came last was marked CE.
    after_mark: bool,
}

impl AckSchedule {
    pub(crate) fn new(policy: AckPolicy) -> Self {
        Self {
            policy,
            unreported: 0,
            eliciting: 0,
            jumps: 0,
            due: false,
            waits_since: None,
            prompt_acks: 0,
            largest_eliciting: None,
            largest_reported: None,
            after_mark: false,
        }
    }

    /// The packets take a way of which the peer has no RTT sample yet.
    pub(crate) fn on_new_way(&mut self) {
        self.prompt_acks = PROMPT_ACKS;
    }

    /// The peer asks for acks by another policy, which holds for what is unreported too.
    pub(crate) fn set_policy(&mut self, policy: AckPolicy) {
        self.policy = policy;
        self.due |= self.eliciting > policy.eliciting_threshold;
    }

    /// What is unreported is due now.
    pub(crate) fn hasten(&mut self) {
        self.due = true;
    }

    /// The last ack may be lost: it is due once more, where it reported anything.
    pub(crate) fn repeat(&mut self) {
        self.due |= self.largest_eliciting.is_some();
    }

    /// New packets arrived, one number after the other; `seen` has them already.
    pub(crate) fn on_packets(
        &mut self,
        now: Instant,
        numbers: &Range<u64>,
        eliciting: Eliciting,
        ecn: Option<Ecn>,
        seen: &Dedup,
    ) {
        let count = numbers.end - numbers.start;
        self.unreported += count;
        if eliciting == Eliciting::No {
            return;
        }
        self.eliciting += count;
        if self.waits_since.is_none() && !self.due {
            self.waits_since = Some(now);
        }
        let disorder = self.is_disorder(numbers, seen);
        self.jumps += u64::from(self.largest_eliciting.is_some_and(|largest| numbers.start != largest + 1));
        self.largest_eliciting = self.largest_eliciting.max(numbers.end.checked_sub(1));
        // RFC 9000 13.2.1: CE marks are reported at once; 13.2.2: every so many packets
        let is_mark = ecn == Some(Ecn::Ce);
        let follows_mark = std::mem::replace(&mut self.after_mark, is_mark);
        let is_urgent = is_mark && (self.policy.marks == UrgentMarks::Each || !follows_mark);
        let hasty = disorder || is_urgent || self.prompt_acks > 0 || self.jumps >= MANY_JUMPS;
        if hasty || self.eliciting > self.policy.eliciting_threshold {
            self.due = true;
        }
    }

    /// RFC 9000 13.2.1: below the largest ack-eliciting number, or above it with numbers missing between.
    fn is_disorder(&self, numbers: &Range<u64>, seen: &Dedup) -> bool {
        let Some(largest) = self.largest_eliciting else { return false };
        match self.policy.reordering_threshold {
            0 => false,
            1 if numbers.start < largest => true,
            1 => !seen.contains_all(largest + 1, numbers.start),
            // ACK_FREQUENCY draft, section 6.2: the sender has given it up already, and is to hear that it came
            threshold if self.largest_reported.is_some_and(|n| numbers.start.saturating_add(threshold) <= n) => true,
            threshold => {
                // The same: the smallest gap not reported yet is `threshold` below the largest number
                let from = self.largest_reported.map_or(0, |n| (n + 1).saturating_sub(threshold));
                let largest = largest.max(numbers.end.saturating_sub(1));
                seen.first_missing(from, largest).is_some_and(|gap| largest - gap >= threshold)
            }
        }
    }

    pub(crate) fn on_ack_sent(&mut self, largest: Option<u64>) {
        if self.eliciting > 0 {
            self.prompt_acks = self.prompt_acks.saturating_sub(1);
        }
        (self.unreported, self.eliciting, self.jumps) = (0, 0, 0);
        (self.due, self.waits_since) = (false, None);
        self.largest_reported = self.largest_reported.max(largest);
    }

    #[inline]
    pub(crate) fn need(&self, now: Instant) -> AckNeed {
        if self.due || self.deadline().is_some_and(|at| at <= now) {
            AckNeed::Now
        } else if self.waits_since.is_some_and(|since| now.since(since) >= self.policy.max_ack_delay / SOON_DIVISOR) {
            AckNeed::Soon
        } else if self.eliciting > 0 || self.unreported >= MANY_SILENT {
            AckNeed::Piggyback
        } else {
            AckNeed::None
        }
    }

    /// A deadline that passed leaves a need and no further time-out: what hinders the ack now ends by another event.
    pub(crate) fn on_timeout(&mut self, now: Instant) {
        if self.deadline().is_some_and(|at| at <= now) {
            self.waits_since = None;
            self.due = true;
        }
    }

    #[inline]
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.waits_since.map(|since| since + self.policy.max_ack_delay)
    }
}
