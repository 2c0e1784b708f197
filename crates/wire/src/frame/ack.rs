//! ACK, PATH_ACK and MP_ACK: one value for all, ranges read straight from the packet (RFC 9000 19.3, RFC 10069 4.1,
//! Multiflow).

use std::iter::FusedIterator;
use std::ops::RangeInclusive;

use plait_base::{EcnCounts, PathId, RangeSet, Violation};

use super::{Encode, read_path_id, types, varint_frame};
use crate::varint::{self, Reader};

/// Which frame carries an acknowledgment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AckForm {
    /// ACK: any space; in 1-RTT packets it speaks of path 0.
    Plain,
    /// PATH_ACK: names its path.
    Path,
    /// MP_ACK of Multiflow: names the sending uniflow of the packets.
    Uniflow,
}

/// A received ACK, PATH_ACK or MP_ACK, checked down to packet number 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack<'a> {
    /// Path or uniflow whose packets are acknowledged; 0 in the plain form.
    pub path: PathId,
    /// Largest packet number acknowledged.
    pub largest: u64,
    /// Ack delay as sent: microseconds, shifted right by the sender's ack_delay_exponent.
    pub delay: u64,
    /// ECN counts of the space, where the frame has them.
    pub ecn: Option<EcnCounts>,
    /// Which frame it was.
    pub form: AckForm,
    first_range: u64,
    range_count: u64,
    /// Gap and length pairs, checked.
    blocks: &'a [u8],
}

/// The acknowledged packet numbers, newest range first.
#[derive(Clone, Debug)]
pub struct AckRanges<'a> {
    next: Option<(u64, u64)>,
    blocks: Reader<'a>,
}

impl<'a> Ack<'a> {
    pub(super) fn decode(r: &mut Reader<'a>, form: AckForm, frame_type: u64) -> Result<Self, Violation> {
        let path = match form {
            AckForm::Plain => PathId::ZERO,
            AckForm::Path | AckForm::Uniflow => read_path_id(r)?,
        };
        let largest = r.varint()?;
        let delay = r.varint()?;
        let range_count = r.varint()?;
        let first_range = r.varint()?;
        let mut smallest = largest.checked_sub(first_range).ok_or(Violation::AckRangeUnderflow)?;
        let from = r.peek();
        // Bounded by the packet: each turn takes two bytes or ends.
        for _ in 0..range_count {
            let gap = r.varint()?;
            let len = r.varint()?;
            smallest = before(smallest, gap, len).ok_or(Violation::AckRangeUnderflow)?.0;
        }
        // Kept as bytes and read again by `ranges`, so that an ack of many ranges needs no allocation.
        let blocks = from.get(..from.len() - r.remaining()).unwrap_or_default();
        let ecn = match frame_type {
            types::ACK_ECN | types::PATH_ACK_ECN | types::MP_ACK_ECN => {
                Some(EcnCounts { ect0: r.varint()?, ect1: r.varint()?, ce: r.varint()? })
            }
            _ => None,
        };
        Ok(Self { path, largest, delay, ecn, form, first_range, range_count, blocks })
    }

    /// The acknowledged numbers, newest range first.
    #[inline]
    pub fn ranges(&self) -> AckRanges<'a> {
        let smallest = self.largest.saturating_sub(self.first_range);
        AckRanges { next: Some((smallest, self.largest)), blocks: Reader::new(self.blocks) }
    }

    /// How many ranges there are, at least 1.
    #[inline]
    pub fn range_count(&self) -> u64 {
        self.range_count + 1
    }

    /// The frame type that it had.
    pub(crate) fn frame_type(&self) -> u64 {
        type_of(self.form, self.ecn.is_some())
    }
}

impl Encode for Ack<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        put_start(out, self.form, self.path, self.ecn.is_some());
        for field in [self.largest, self.delay, self.range_count, self.first_range] {
            varint::put(out, field);
        }
        out.extend_from_slice(self.blocks);
        put_ecn(out, self.ecn);
    }

    fn size(&self) -> usize {
        let fields = [self.largest, self.delay, self.range_count, self.first_range];
        start_size(self.form, self.path)
            + fields.iter().map(|&f| varint::size(f)).sum::<usize>()
            + self.blocks.len()
            + ecn_size(self.ecn)
    }
}

impl Iterator for AckRanges<'_> {
    type Item = RangeInclusive<u64>;

    #[inline]
    fn next(&mut self) -> Option<RangeInclusive<u64>> {
        let (smallest, largest) = self.next.take()?;
        if let (Ok(gap), Ok(len)) = (self.blocks.varint(), self.blocks.varint()) {
            self.next = before(smallest, gap, len);
        }
        Some(smallest..=largest)
    }
}

impl FusedIterator for AckRanges<'_> {}

/// The range that lies `gap` below one that begins at `smallest` (RFC 9000 19.3.1).
#[inline]
fn before(smallest: u64, gap: u64, len: u64) -> Option<(u64, u64)> {
    let largest = smallest.checked_sub(gap)?.checked_sub(2)?;
    Some((largest.checked_sub(len)?, largest))
}

/// An ACK, PATH_ACK or MP_ACK to write from the set of received numbers.
#[derive(Clone, Copy, Debug)]
pub struct OutAck<'a> {
    /// Which frame to write.
    pub form: AckForm,
    /// Path or uniflow whose packets are acknowledged.
    pub path: PathId,
    /// What was received.
    pub ranges: &'a RangeSet,
    /// Ack delay as sent: microseconds, shifted right by our ack_delay_exponent.
    pub delay: u64,
    /// Counts to report, where the path's marks are readable.
    pub ecn: Option<EcnCounts>,
}

impl OutAck<'_> {
    /// Writes the newest ranges, as many as fit in `budget_bytes`; the smallest and the largest number reported, or
    /// none where there is nothing to report or not even one range fits (then nothing is written).
    pub fn encode(&self, budget_bytes: usize, out: &mut Vec<u8>) -> Option<RangeInclusive<u64>> {
        let newest = self.ranges.last()?;
        let (first, largest) = (newest.end - 1 - newest.start, newest.end - 1);
        let older = self.ranges.len() as u64 - 1;
        let fixed = start_size(self.form, self.path)
            + varint::size(largest)
            + varint::size(self.delay)
            + varint::size(first)
            + ecn_size(self.ecn)
            + varint::size(older);
        let room = budget_bytes.checked_sub(fixed)?;
        // The count was reckoned at its largest size above. Mostly there is one range.
        let count = if older > 0 { self.blocks_within(room) } else { 0 };
        put_start(out, self.form, self.path, self.ecn.is_some());
        for field in [largest, self.delay, count as u64, first] {
            varint::put(out, field);
        }
        let smallest = if count > 0 { self.put_blocks(count, out)? } else { newest.start };
        put_ecn(out, self.ecn);
        Some(smallest..=largest)
    }

    /// How many older ranges fit.
    #[inline(never)]
    fn blocks_within(&self, mut room: usize) -> usize {
        let fitting = self.blocks().take_while(|&(gap, len)| {
            let size = varint::size(gap) + varint::size(len);
            let fits = size <= room;
            room = room.saturating_sub(size);
            fits
        });
        fitting.count()
    }

    /// Writes so many older ranges; the smallest number in them.
    #[inline(never)]
    fn put_blocks(&self, count: usize, out: &mut Vec<u8>) -> Option<u64> {
        for (gap, len) in self.blocks().take(count) {
            varint::put(out, gap);
            varint::put(out, len);
        }
        Some(self.ranges.iter().rev().nth(count)?.start)
    }

    /// Gap and length of each range below the newest.
    fn blocks(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let above = self.ranges.iter().rev();
        let below = self.ranges.iter().rev().skip(1);
        // Ranges are half-open and never touch, so at least one number is missing between two of them.
        above.zip(below).map(|(a, b)| (a.start - b.end - 1, b.end - b.start - 1))
    }
}

#[inline]
fn type_of(form: AckForm, with_ecn: bool) -> u64 {
    match (form, with_ecn) {
        (AckForm::Plain, false) => types::ACK,
        (AckForm::Plain, true) => types::ACK_ECN,
        (AckForm::Path, false) => types::PATH_ACK,
        (AckForm::Path, true) => types::PATH_ACK_ECN,
        (AckForm::Uniflow, false) => types::MP_ACK,
        (AckForm::Uniflow, true) => types::MP_ACK_ECN,
    }
}

#[inline]
fn put_start(out: &mut Vec<u8>, form: AckForm, path: PathId, with_ecn: bool) {
    varint::put(out, type_of(form, with_ecn));
    if form != AckForm::Plain {
        varint::put(out, path.0.into());
    }
}

#[inline]
fn start_size(form: AckForm, path: PathId) -> usize {
    match form {
        AckForm::Plain => 1,
        AckForm::Path => 1 + varint::size(path.0.into()),
        AckForm::Uniflow => 2 + varint::size(path.0.into()),
    }
}

#[inline]
fn put_ecn(out: &mut Vec<u8>, ecn: Option<EcnCounts>) {
    if let Some(counts) = ecn {
        varint::put(out, counts.ect0);
        varint::put(out, counts.ect1);
        varint::put(out, counts.ce);
    }
}

#[inline]
fn ecn_size(ecn: Option<EcnCounts>) -> usize {
    ecn.map_or(0, |c| varint::size(c.ect0) + varint::size(c.ect1) + varint::size(c.ce))
}

/// ACK_FREQUENCY (draft-ietf-quic-ack-frequency): how often the sender wishes to be acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckFrequency {
    /// Counts up with each frame; older ones are ignored.
    pub sequence: u64,
    /// Ack-eliciting packets that may arrive without an ack being sent at once.
    pub ack_eliciting_threshold: u64,
    /// The max_ack_delay asked for, microseconds; not below the receiver's min_ack_delay.
    pub max_ack_delay_us: u64,
    /// Reordering, in packets, beyond which an ack is sent at once; 0 turns that off.
    pub reordering_threshold: u64,
}

impl AckFrequency {
    pub(super) fn decode(r: &mut Reader<'_>) -> Result<Self, Violation> {
        Ok(Self {
            sequence: r.varint()?,
            ack_eliciting_threshold: r.varint()?,
            max_ack_delay_us: r.varint()?,
            reordering_threshold: r.varint()?,
        })
    }
}

varint_frame!(AckFrequency, |f| [
    types::ACK_FREQUENCY,
    f.sequence,
    f.ack_eliciting_threshold,
    f.max_ack_delay_us,
    f.reordering_threshold
]);
