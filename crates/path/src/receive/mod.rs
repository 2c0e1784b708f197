//! One number space's receiver: what arrived, what of it to report, and when.

mod dedup;
mod schedule;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::time::Duration;

use plait_base::limits::MAX_ACK_RANGES;
use plait_base::units::VARINT_MAX;
use plait_base::{Ecn, EcnCounts, Instant, PathId, RangeSet, Space};
use plait_crypto::PhaseMark;
use plait_wire::FrameWriter;
use plait_wire::frame::{AckForm, OutAck};

use dedup::Dedup;
use schedule::AckSchedule;
pub use schedule::{AckNeed, AckPolicy};

/// Acks sent in a row without one being acknowledged, after which a PING should ride along (RFC 9000 13.2.4).
const ACKS_WITHOUT_ECHO: u32 = 16;

/// Whether a packet asks for an ack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eliciting {
    /// It carries more than ACK, PADDING and CONNECTION_CLOSE.
    Yes,
    /// It does not.
    No,
}

/// The receiver of one number space of one path.
#[derive(Debug)]
pub struct ReceiveFlow {
    space: Space,
    path: PathId,
    dedup: Dedup,
    /// Numbers to report; at most `MAX_ACK_RANGES` ranges, the newest ones.
    to_report: RangeSet,
    /// Smallest number that no ack reported yet.
    unreported_from: Option<u64>,
    /// Largest number received and when it came.
    largest: Option<(u64, Instant)>,
    ecn: EcnCounts,
    schedule: AckSchedule,
    /// Numbers opened under each key phase.
    phase_mark: PhaseMark,
    ack_frames_sent: u64,
    /// Acks sent since one was last acknowledged.
    acks_unechoed: u32,
}

impl ReceiveFlow {
    /// A receiver that got nothing yet.
    pub fn new(path: PathId, space: Space, policy: AckPolicy) -> Self {
        Self {
            space,
            path,
            dedup: Dedup::default(),
            to_report: RangeSet::new(),
            unreported_from: None,
            largest: None,
            ecn: EcnCounts::default(),
            schedule: AckSchedule::new(policy),
            phase_mark: PhaseMark::default(),
            ack_frames_sent: 0,
            acks_unechoed: 0,
        }
    }

    /// The number after the largest received: what truncated numbers are expanded against (RFC 9000 A.3).
    #[inline]
    pub fn expected(&self) -> u64 {
        self.largest.map_or(0, |(n, _)| n + 1)
    }

    /// Largest number received.
    #[inline]
    pub fn largest(&self) -> Option<u64> {
        self.largest.map(|(n, _)| n)
    }

    /// When the packet with the largest number arrived.
    #[inline]
    pub fn heard_at(&self) -> Option<Instant> {
        self.largest.map(|(_, at)| at)
    }

    /// True when `number` was received before, or is too old to tell.
    #[inline]
    pub fn is_duplicate(&self, number: u64) -> bool {
        self.dedup.contains(number)
    }

    /// Takes in a packet that was opened and is not a duplicate.
    pub fn on_packet(&mut self, now: Instant, number: u64, eliciting: Eliciting, ecn: Option<Ecn>) {
        if !self.is_duplicate(number) {
            self.on_packets(now, number..number + 1, eliciting, ecn);
        }
    }

    /// Takes in packets that were opened, one number after the other; none of them was received before.
    pub(crate) fn on_packets(&mut self, now: Instant, numbers: Range<u64>, eliciting: Eliciting, ecn: Option<Ecn>) {
        let Some(last) = numbers.end.checked_sub(1).filter(|last| numbers.contains(last)) else { return };
        self.dedup.insert(numbers.clone());
        self.schedule.on_packets(now, &numbers, eliciting, ecn, &self.dedup);
        self.to_report.insert(numbers.clone());
        self.unreported_from = Some(self.unreported_from.map_or(numbers.start, |from| from.min(numbers.start)));
        // RFC 9000 13.2.3: the oldest ranges may be forgotten; the duplicates' memory takes no more packets in them
        if self.to_report.len() > MAX_ACK_RANGES {
            self.to_report.pop_first();
        }
        if self.largest.is_none_or(|(largest, _)| last > largest) {
            self.largest = Some((last, now));
        }
        // RFC 9000 13.4.1: reported whether or not we mark what we send
        self.ecn.add(ecn, numbers.end - numbers.start);
    }

    /// Whether an ack should leave at `now`.
    #[inline]
    pub fn ack_need(&self, now: Instant) -> AckNeed {
        if self.to_report.is_empty() { AckNeed::None } else { self.schedule.need(now) }
    }

    /// When an ack becomes due by itself.
    #[inline]
    pub fn deadline(&self) -> Option<Instant> {
        self.schedule.deadline()
    }

    /// The deadline may have come: an ack is due from now on, whether or not it can leave at once.
    pub fn on_timeout(&mut self, now: Instant) {
        self.schedule.on_timeout(now);
    }

    /// The numbers that an ack reports now.
    #[cfg(test)]
    pub(crate) fn to_report(&self) -> &RangeSet {
        &self.to_report
    }

    /// How long the ack of the largest number is held back already, and nothing besides (RFC 9000 13.2.5).
    pub(crate) fn ack_delay(&self, now: Instant) -> Duration {
        self.largest.map_or(Duration::ZERO, |(_, at)| now.since(at))
    }

    /// The ECN counts to report, once any mark was seen (RFC 9000 13.4.1).
    pub(crate) fn ecn_counts(&self) -> Option<EcnCounts> {
        (self.ecn.total() > 0).then_some(self.ecn)
    }

    /// A packet with an ack left: everything received so far was reported, save old ranges that did not fit.
    pub fn on_ack_sent(&mut self) {
        self.schedule.on_ack_sent(self.largest());
        self.unreported_from = None;
        self.ack_frames_sent += 1;
        self.acks_unechoed = self.acks_unechoed.saturating_add(1);
    }

    /// The peer acknowledged a packet with an ack that reported from `smallest` to `largest`: what lies between need
    /// not be reported again (RFC 9000 13.2.4). What lies below had not fitted and waits for a later ack.
    pub fn on_ack_acked(&mut self, smallest: u64, largest: u64) {
        self.acks_unechoed = 0;
        // What came late, below the largest number of that ack, was not in it and is still to be reported.
        let end = largest.saturating_add(1).min(self.unreported_from.unwrap_or(u64::MAX));
        if smallest < end {
            self.to_report.remove(smallest..end);
        }
    }

    /// True when many acks left and none was acknowledged: add a PING, so that old ranges can be forgotten.
    pub fn wants_ping(&self) -> bool {
        self.acks_unechoed >= ACKS_WITHOUT_ECHO && self.to_report.len() > 1
    }

    /// Packets take a new way from now on: the first acks of it leave at once, so that the peer soon has RTT samples
    /// without ack delay.
    pub(crate) fn on_new_way(&mut self) {
        self.schedule.on_new_way();
    }

    /// The peer asks for acks by another policy.
    pub(crate) fn set_ack_policy(&mut self, policy: AckPolicy) {
        self.schedule.set_policy(policy);
    }

    /// The peer wants an ack of what it sent so far, this packet included.
    pub fn hasten_ack(&mut self) {
        self.schedule.hasten();
    }

    /// The path that carried the last ack may be dead: the ack leaves once more.
    pub(crate) fn repeat_ack(&mut self) {
        self.schedule.repeat();
    }

    /// What this path's numbers say of key phases, for [`OneRttKeys::open`](plait_crypto::OneRttKeys::open).
    pub fn phase_mark_mut(&mut self) -> &mut PhaseMark {
        &mut self.phase_mark
    }

    /// ACK and PATH_ACK frames sent for this space.
    pub(crate) fn ack_frames_sent(&self) -> u64 {
        self.ack_frames_sent
    }

    /// Writes an ack of everything to report, newest ranges first, as many as fit. None when nothing was
    /// written, else the largest number reported. It changes nothing here, so that several paths may
    /// carry the same report: call [`on_ack_sent`](Self::on_ack_sent) once a packet with it is complete.
    ///
    /// `exponent` is our ack_delay_exponent, 3 in Initial and Handshake packets (RFC 9000 18.2).
    pub fn fill_ack(&self, now: Instant, w: &mut FrameWriter<'_>, form: AckForm, exponent: u8) -> Option<u64> {
        let micros = u64::try_from(self.ack_delay(now).as_micros()).unwrap_or(VARINT_MAX).min(VARINT_MAX);
        let delay = micros.checked_shr(exponent.into()).unwrap_or(0);
        let ack = OutAck { form, path: self.path, ranges: &self.to_report, delay, ecn: self.ecn_counts() };
        w.write_ack(self.space, &ack)
    }

    /// Writes it once more, for another path than the first: no [`on_ack_sent`](Self::on_ack_sent) follows.
    pub fn fill_ack_copy(&mut self, now: Instant, w: &mut FrameWriter<'_>, form: AckForm, exponent: u8) {
        self.ack_frames_sent += u64::from(self.fill_ack(now, w, form, exponent).is_some());
    }
}
