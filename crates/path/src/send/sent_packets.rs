//! The memory of one number space's sent packets: a ring indexed by packet number, and one ring of their frames.
//!
//! Nothing is allocated for a packet once the rings have grown. Each number goes once from *unresolved* to
//! *resolved*; acks cost O(ranges + newly acked), however often a peer repeats what it acknowledged before.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use plait_base::Instant;
use plait_wire::SentFrame;

use super::PacketInfo;
use super::rate::RateMark;

/// So many runs of numbers are looked through one after another.
const FEW_RUNS: usize = 8;

/// What is known of one packet number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketState {
    /// Sent; neither acked nor lost.
    Outstanding,
    /// An ack named it.
    Acked,
    /// Declared lost at this time; an ack may still come.
    Lost(Instant),
    /// Never sent, on purpose (RFC 9000 21.4).
    Skipped,
}

/// One packet number of the ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentPacket {
    pub(crate) sent_at: Instant,
    pub(crate) state: PacketState,
    /// The facts told when it was sent; they do not change.
    pub(crate) info: PacketInfo,
    /// Bytes still count against this flow's window.
    pub(crate) counted: bool,
    /// The frames were handed over to another path already: a loss does not report them again.
    pub(crate) handed_over: bool,
    /// The frames travel on another path too, or did before.
    pub(crate) copied: bool,
    pub(crate) rate: RateMark,
    frames_at: u64,
    frames: u32,
}

/// The frames that a packet carried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Carried<'a> {
    frames: &'a VecDeque<SentFrame>,
    at: u64,
    left: u32,
}

impl Iterator for Carried<'_> {
    type Item = SentFrame;

    #[inline]
    fn next(&mut self) -> Option<SentFrame> {
        self.left = self.left.checked_sub(1)?;
        let frame = self.frames.get(self.at as usize).copied();
        self.at += 1;
        frame
    }
}

/// Packets whose frames another path carries too, or that have none for it: what was copied once is not copied again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Copied {
    /// All below this number are such.
    pub(super) below: u64,
    /// What of them counts as in flight, bytes.
    pub(super) bytes: u64,
}

impl Copied {
    /// The packet of this `number` is acked or lost, or counts no more for another reason.
    #[inline]
    fn on_resolved(&mut self, number: u64, packet: &SentPacket) {
        if number < self.below && packet.counted {
            self.bytes -= u64::from(packet.info.bytes);
        }
    }
}

/// The sent packets of one space.
#[derive(Debug, Default)]
pub(crate) struct SentPackets {
    entries: VecDeque<SentPacket>,
    /// Number of the first entry.
    base: u64,
    frames: VecDeque<SentFrame>,
    /// Index of the first frame, counted from the first frame ever.
    frames_base: u64,
    /// Numbers outstanding or lost: those whose ack would be news.
    unresolved: VecDeque<Range<u64>>,
    /// Below this number nothing is outstanding.
    pub(super) cursor: u64,
    /// The oldest packets, of which nothing is left for another path to carry too.
    pub(super) copied: Copied,
    /// Largest number acknowledged.
    pub(crate) largest_acked: Option<u64>,
    /// Outstanding ack-eliciting packets.
    pub(crate) eliciting: u64,
    /// Outstanding packets after which no silence counts: mostly acks, and what left between other addresses.
    pub(crate) unawaited: usize,
    /// When the newest ack-eliciting packet left.
    pub(crate) eliciting_sent_at: Option<Instant>,
    /// Send time of the packet that began the present unbroken run of losses.
    pub(super) lost_since: Option<Instant>,
}

impl SentPackets {
    /// The number after the last one used.
    pub(crate) fn next(&self) -> u64 {
        self.base + self.entries.len() as u64
    }

    /// Remembers a packet under the next number.
    #[inline]
    pub(crate) fn push(&mut self, now: Instant, packet: &PacketInfo, rate: RateMark, carried: &[SentFrame]) {
        let number = self.next();
        self.entries.push_back(SentPacket {
            sent_at: now,
            state: PacketState::Outstanding,
            info: *packet,
            counted: packet.in_flight && !packet.elsewhere,
            handed_over: false,
            copied: packet.repeats,
            rate,
            frames_at: self.frames_base + self.frames.len() as u64,
            frames: carried.len() as u32,
        });
        carried.iter().for_each(|frame| self.frames.push_back(*frame));
        match self.unresolved.back_mut() {
            Some(last) if last.end == number => last.end += 1,
            _ => self.unresolved.push_back(number..number + 1),
        }
        self.unawaited += usize::from(!packet.awaits_ack());
        if packet.awaits_ack() {
            self.eliciting += 1;
            self.eliciting_sent_at = Some(now);
        }
    }

    /// Leaves the next number unused.
    pub(crate) fn skip(&mut self, now: Instant) {
        self.entries.push_back(SentPacket {
            sent_at: now,
            state: PacketState::Skipped,
            info: PacketInfo::default(),
            counted: false,
            handed_over: false,
            copied: true,
            rate: RateMark::default(),
            frames_at: self.frames_base + self.frames.len() as u64,
            frames: 0,
        });
    }

    /// The entry of `number`, while it is remembered.
    pub(crate) fn get(&self, number: u64) -> Option<&SentPacket> {
        self.entries.get(usize::try_from(number.checked_sub(self.base)?).ok()?)
    }

    /// The entry of `number`, to change it.
    #[inline]
    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut SentPacket> {
        self.entries.get_mut(usize::try_from(number.checked_sub(self.base)?).ok()?)
    }

    /// What a packet carried.
    pub(crate) fn frames_of(&self, entry: &SentPacket) -> impl Iterator<Item = SentFrame> + '_ {
        let from = entry.frames_at.saturating_sub(self.frames_base) as usize;
        (from..from + entry.frames as usize).map_while(|index| self.frames.get(index).copied())
    }

    /// Appends what a packet carried to `out`.
    pub(crate) fn append_frames_of(&self, entry: &SentPacket, out: &mut Vec<SentFrame>) {
        let from = entry.frames_at.saturating_sub(self.frames_base) as usize;
        let to = from + entry.frames as usize;
        let (front, back) = self.frames.as_slices();
        let part = |slice: &[SentFrame], before: usize| {
            let at = |index: usize| index.saturating_sub(before).min(slice.len());
            at(from)..at(to)
        };
        out.extend_from_slice(&front[part(front, 0)]);
        out.extend_from_slice(&back[part(back, front.len())]);
    }

    /// Takes the lowest unresolved run of numbers within `lo..=hi` out of the unresolved ones.
    pub(crate) fn take_unresolved(&mut self, lo: u64, hi: u64) -> Option<Range<u64>> {
        let i = match self.unresolved.front() {
            Some(first) if lo < first.end => 0,
            // Mostly these are what is under way and a few that were lost.
            _ if self.unresolved.len() <= FEW_RUNS => self.unresolved.iter().position(|r| lo < r.end)?,
            _ => self.unresolved.partition_point(|r| r.end <= lo),
        };
        let found = self.unresolved.get(i)?.clone();
        let part = found.start.max(lo)..found.end.min(hi.saturating_add(1));
        if part.is_empty() {
            return None;
        }
        match (found.start == part.start, found.end == part.end) {
            (true, true) => drop(self.unresolved.remove(i)),
            (true, false) => self.unresolved[i].start = part.end,
            (false, true) => self.unresolved[i].end = part.start,
            (false, false) => {
                self.unresolved[i].end = part.start;
                self.unresolved.insert(i + 1, part.end..found.end);
            }
        }
        Some(part)
    }

    /// Marks packets acked that [`Self::take_unresolved`] gave, and shows each as it was before, with what it carried.
    #[inline]
    pub(crate) fn mark_acked(&mut self, run: Range<u64>, mut see: impl FnMut(u64, &SentPacket, Carried<'_>)) {
        let index = |number: u64| (number.saturating_sub(self.base) as usize).min(self.entries.len());
        let run_in_ring = index(run.start)..index(run.end);
        let (mut eliciting, mut unawaited, mut copied) = (0, 0, self.copied);
        for (number, entry) in (run.start.max(self.base)..).zip(self.entries.range_mut(run_in_ring)) {
            see(
                number,
                entry,
                Carried {
                    frames: &self.frames,
                    at: entry.frames_at.saturating_sub(self.frames_base),
                    left: entry.frames,
                },
            );
            match entry.state {
                PacketState::Outstanding => {
                    eliciting += u64::from(entry.info.awaits_ack());
                    unawaited += usize::from(!entry.info.awaits_ack());
                }
                // A hole in the run of losses was none: the run ends here.
                PacketState::Lost(_) => self.lost_since = None,
                PacketState::Acked | PacketState::Skipped => {}
            }
            copied.on_resolved(number, entry);
            entry.state = PacketState::Acked;
            entry.counted = false;
        }
        self.eliciting -= eliciting;
        self.unawaited -= unawaited;
        self.copied = copied;
    }

    /// Marks a packet lost, if it is outstanding; returns what was known of it before.
    pub(crate) fn mark_lost(&mut self, number: u64, now: Instant) -> Option<SentPacket> {
        let entry = self.get_mut(number).filter(|e| e.state == PacketState::Outstanding)?;
        let before = *entry;
        entry.state = PacketState::Lost(now);
        entry.counted = false;
        self.copied.on_resolved(number, &before);
        self.settle(&before.info);
        Some(before)
    }

    /// A packet is outstanding no longer.
    #[inline]
    fn settle(&mut self, packet: &PacketInfo) {
        self.eliciting -= u64::from(packet.awaits_ack());
        self.unawaited -= usize::from(!packet.awaits_ack());
    }

    /// True where a packet is outstanding, or lost and remembered.
    #[inline]
    pub(crate) fn has_unresolved(&self) -> bool {
        !self.unresolved.is_empty()
    }

    /// Forgets packets at the front whose fate no longer matters: acked ones at once, lost ones and those that nobody waits for,
    /// as acks, after `keep`.
    #[inline]
    pub(crate) fn trim(&mut self, now: Instant, keep: Duration) {
        if self.has_unresolved() { self.forget_front(now, keep) } else { self.forget_all() }
    }

    /// All packets were acked: nothing more is to come of any.
    #[inline]
    fn forget_all(&mut self) {
        self.base = self.next();
        self.frames_base += self.frames.len() as u64;
        self.entries.clear();
        self.frames.clear();
        self.cursor = self.base;
    }

    fn forget_front(&mut self, now: Instant, keep: Duration) {
        loop {
            self.forget_settled();
            let gone = self.entries.front().is_some_and(|front| match front.state {
                PacketState::Acked | PacketState::Skipped => true,
                PacketState::Lost(at) => at + keep <= now,
                PacketState::Outstanding => !front.counted && !front.info.awaits_ack() && front.sent_at + keep <= now,
            });
            if !gone {
                break;
            }
            self.pop_front();
        }
        self.cursor = self.cursor.max(self.base);
    }

    /// Forgets the packets at the front of which nothing is to come, all at once: they are in no other list.
    fn forget_settled(&mut self) {
        let settled = |entry: &&SentPacket| matches!(entry.state, PacketState::Acked | PacketState::Skipped);
        let (packets, frames) = self
            .entries
            .iter()
            .take_while(settled)
            .fold((0, 0), |(packets, frames), entry| (packets + 1, frames + entry.frames as usize));
        if packets > 0 {
            // Detection does not pass them any more: a packet that arrived ends the run of losses (RFC 9002 7.6.2).
            let passed = self.cursor.saturating_sub(self.base) as usize;
            let unpassed = self.entries.range(passed.min(packets)..packets);
            if unpassed.into_iter().any(|entry| entry.state == PacketState::Acked) {
                self.lost_since = None;
            }
            self.entries.drain(..packets);
            self.frames.drain(..frames.min(self.frames.len()));
            self.frames_base += frames as u64;
            self.base += packets as u64;
        }
    }

    /// Gives back the memory that it does not use.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.entries.shrink_to_fit();
        self.frames.shrink_to_fit();
        self.unresolved.shrink_to_fit();
    }

    /// Forgets packets below `number`, none of which is outstanding any more.
    pub(crate) fn forget_below(&mut self, number: u64) {
        while self.base < number && self.pop_front() {}
        self.cursor = self.cursor.max(self.base);
    }

    fn pop_front(&mut self) -> bool {
        let Some(front) = self.entries.pop_front() else { return false };
        self.copied.on_resolved(self.base, &front);
        if front.state == PacketState::Outstanding {
            self.settle(&front.info);
        }
        for _ in 0..front.frames {
            self.frames.pop_front();
        }
        self.frames_base += u64::from(front.frames);
        if !matches!(front.state, PacketState::Acked | PacketState::Skipped) {
            self.take_unresolved(self.base, self.base);
        }
        self.base += 1;
        true
    }

    /// True where a packet below `number` is remembered.
    #[inline]
    pub(crate) fn reaches_below(&self, number: u64) -> bool {
        self.base < number
    }

    /// Numbers that are still outstanding, oldest first.
    pub(crate) fn outstanding(&self) -> impl Iterator<Item = (u64, &SentPacket)> + '_ {
        let from = self.cursor.max(self.base);
        let skip = (from - self.base) as usize;
        self.entries
            .iter()
            .enumerate()
            .skip(skip)
            .filter_map(|(i, entry)| (entry.state == PacketState::Outstanding).then_some((self.base + i as u64, entry)))
    }

    /// The numbers among which all outstanding ones are: first, and one above the last.
    pub(crate) fn outstanding_numbers(&self) -> (u64, u64) {
        (self.cursor.max(self.base), self.next())
    }

    /// Lets no outstanding packet count against the window any more.
    pub(crate) fn uncount(&mut self) {
        self.entries.iter_mut().for_each(|entry| entry.counted = false);
        self.copied.bytes = 0;
        self.lost_since = None;
    }

    /// Appends the frames of outstanding packets, each once; an MTU probe keeps its own, for it travels this path alone.
    pub(crate) fn hand_over_outstanding(&mut self, out: &mut Vec<SentFrame>) {
        let skip = (self.cursor.max(self.base) - self.base) as usize;
        for i in skip..self.entries.len() {
            let entry = self.entries[i];
            if entry.state == PacketState::Outstanding && !entry.handed_over && !entry.info.mtu_probe {
                self.entries[i].handed_over = true;
                out.extend(self.frames_of(&entry));
            }
        }
    }

    /// Sum of the counted bytes, for checks.
    pub(crate) fn counted_bytes(&self) -> u64 {
        self.entries.iter().filter(|e| e.counted).map(|e| u64::from(e.info.bytes)).sum()
    }

    /// Runs of unresolved numbers.
    #[cfg(test)]
    pub(super) fn unresolved_runs(&self) -> usize {
        self.unresolved.len()
    }

    /// Entries remembered now.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet() -> PacketInfo {
        PacketInfo { bytes: 100, ack_eliciting: true, in_flight: true, ..PacketInfo::default() }
    }

    #[test]
    fn unresolved_runs_split_and_never_repeat() {
        let mut sent = SentPackets::default();
        for _ in 0..10 {
            sent.push(Instant::ZERO, &packet(), RateMark::default(), &[SentFrame::Ping]);
        }
        assert_eq!(sent.take_unresolved(3, 5), Some(3..6));
        assert_eq!(sent.take_unresolved(3, 5), None);
        assert_eq!(sent.take_unresolved(0, 9), Some(0..3));
        assert_eq!(sent.take_unresolved(0, 9), Some(6..10));
        assert_eq!(sent.take_unresolved(0, u64::MAX), None);
    }

    #[test]
    fn an_ack_ends_the_run_of_losses_though_the_lost_are_forgotten() {
        // RFC 9002 7.6.2
        let (mut sent, keep) = (SentPackets::default(), Duration::from_secs(1));
        for _ in 0..3 {
            sent.push(Instant::ZERO, &packet(), RateMark::default(), &[SentFrame::Ping]);
        }
        sent.mark_lost(0, Instant::ZERO);
        (sent.cursor, sent.lost_since) = (1, Some(Instant::ZERO));
        sent.take_unresolved(1, 1);
        sent.mark_acked(1..2, |_, _, _| {});
        sent.trim(Instant::ZERO, keep);
        assert_eq!((sent.len(), sent.lost_since), (3, Some(Instant::ZERO)));
        sent.trim(Instant::ZERO + keep, keep);
        assert_eq!((sent.len(), sent.cursor, sent.lost_since), (1, 2, None));
    }

    #[test]
    fn rings_shrink_from_the_front_only() {
        let mut sent = SentPackets::default();
        for i in 0..4 {
            sent.push(Instant::ZERO, &packet(), RateMark::default(), &[SentFrame::MaxData(i), SentFrame::Ping]);
        }
        sent.take_unresolved(1, 3);
        let mut seen = Vec::new();
        sent.mark_acked(1..9, |number, before, carried| {
            assert_eq!(before.state, PacketState::Outstanding);
            seen.extend(carried.map(|frame| (number, frame)));
        });
        let carried = |n| [(n, SentFrame::MaxData(n)), (n, SentFrame::Ping)];
        assert_eq!(seen, [carried(1), carried(2), carried(3)].concat(), "what is no packet yet is passed over");
        sent.trim(Instant::ZERO, Duration::ZERO);
        assert_eq!(sent.len(), 4);
        let entry = *sent.get(2).unwrap();
        assert_eq!(sent.frames_of(&entry).collect::<Vec<_>>(), [SentFrame::MaxData(2), SentFrame::Ping]);
        sent.mark_lost(0, Instant::ZERO);
        sent.trim(Instant::ZERO, Duration::from_secs(1));
        assert_eq!(sent.len(), 4, "a lost packet is remembered for a while");
        sent.trim(Instant::ZERO + Duration::from_secs(1), Duration::from_secs(1));
        assert_eq!((sent.len(), sent.next(), sent.eliciting), (0, 4, 0));
        assert!(sent.take_unresolved(0, 10).is_none() && sent.frames.is_empty());
    }
}
