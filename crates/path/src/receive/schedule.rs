//! When to acknowledge: at once, with the next packet, or at a deadline (RFC 9000 13.2, ACK_FREQUENCY).

use std::ops::Range;
use std::time::Duration;

use plait_base::{Ecn, Instant};

use super::Eliciting;
use super::dedup::Dedup;

/// So many acks of a new way leave at once: the peer's first RTT samples are free of ack delay.
const PROMPT_ACKS: u64 = 4;

/// Packets that elicit no ack are reported beside others, or once so many came since the last ack: acks of acks, which only tell
/// the peer which ranges it need not repeat (RFC 9000 13.2.4).
const MANY_SILENT: u64 = 16;

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
}

impl AckPolicy {
    /// Every second packet, or after `max_ack_delay` (RFC 9000 13.2.2).
    pub fn delayed(max_ack_delay: Duration) -> Self {
        Self { eliciting_threshold: 1, max_ack_delay, reordering_threshold: 1 }
    }

    /// At once, as Initial and Handshake packets need it (RFC 9000 13.2.1).
    pub fn immediate() -> Self {
        Self { eliciting_threshold: 0, max_ack_delay: Duration::ZERO, reordering_threshold: 1 }
    }
}

/// Whether an ack should leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AckNeed {
    /// Nothing new to report.
    None,
    /// If a packet leaves anyway, let it carry an ack.
    Piggyback,
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
    /// An ack is due now.
    due: bool,
    deadline: Option<Instant>,
    /// So many acks more leave at once, because the way that the packets take is new.
    prompt_acks: u64,
    /// Largest ack-eliciting number received.
    largest_eliciting: Option<u64>,
    /// Largest number that an ack of ours reported.
    largest_reported: Option<u64>,
}

impl AckSchedule {
    pub(crate) fn new(policy: AckPolicy) -> Self {
        Self {
            policy,
            unreported: 0,
            eliciting: 0,
            due: false,
            deadline: None,
            prompt_acks: 0,
            largest_eliciting: None,
            largest_reported: None,
        }
    }

    /// The packets take a way of which the peer has no RTT sample yet.
    pub(crate) fn on_new_way(&mut self) {
        self.prompt_acks = PROMPT_ACKS;
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
        if self.deadline.is_none() && !self.due {
            self.deadline = Some(now + self.policy.max_ack_delay);
        }
        let disorder = self.is_disorder(numbers, seen);
        self.largest_eliciting = self.largest_eliciting.max(numbers.end.checked_sub(1));
        // RFC 9000 13.2.1: CE marks are reported at once; 13.2.2: every so many packets
        let hasty = disorder || ecn == Some(Ecn::Ce) || self.prompt_acks > 0;
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
            threshold => {
                // ACK_FREQUENCY: the smallest gap not reported yet is `threshold` below the largest number
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
        (self.unreported, self.eliciting, self.due, self.deadline) = (0, 0, false, None);
        self.largest_reported = self.largest_reported.max(largest);
    }

    #[inline]
    pub(crate) fn need(&self, now: Instant) -> AckNeed {
        if self.due || self.deadline.is_some_and(|at| at <= now) {
            AckNeed::Now
        } else if self.eliciting > 0 || self.unreported >= MANY_SILENT {
            AckNeed::Piggyback
        } else {
            AckNeed::None
        }
    }

    /// A deadline that passed leaves a need and no further time-out: what hinders the ack now ends by another event.
    pub(crate) fn on_timeout(&mut self, now: Instant) {
        if self.deadline.is_some_and(|at| at <= now) {
            self.deadline = None;
            self.due = true;
        }
    }

    #[inline]
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }
}
