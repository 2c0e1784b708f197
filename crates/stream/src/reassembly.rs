//! Puts received pieces of a stream in order, without copying them where that does not waste memory.
//!
//! In-order data costs O(1) for each frame. Memory settles below 1.5 times the flow-control window and a constant, as
//! `piece.rs` shows: small pieces are copied out of their packets, large ones when they were not read soon, touching pieces
//! are joined when there are many, and more fragments (runs of touching pieces) than the bound are the peer's fault.

use std::collections::{BTreeMap, VecDeque};

use bytes::{Buf, Bytes};
use plait_base::Violation;
use plait_base::limits::{MIN_REASSEMBLY_FRAGMENTS, REASSEMBLY_BYTES_PER_FRAGMENT};

use crate::byte_ranges::ByteRanges;
use crate::events::{Chunk, Order};
use crate::piece::{COPY_BELOW_BYTES, Piece, PieceMemory, settle_all, shrink};

/// Small pieces gather in blocks of about this size, bytes. It is also what a block of which all but a byte was read
/// holds for that byte.
const BLOCK_BYTES: usize = 16 << 10;

/// The ordered read was refused: some data was read out of order before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadOutOfOrderBefore;

/// The received and unread data of one stream.
#[derive(Debug, Default)]
pub(crate) struct Reassembly {
    /// Contiguous data from `read` on.
    ready: VecDeque<Piece>,
    /// The end of the contiguous data, where small pieces gather; behind `ready`. At most a quarter too large.
    tail: Vec<u8>,
    /// Offset of the first unread byte; in unordered mode, of the first byte in `ready`.
    read: u64,
    /// End of the contiguous data.
    edge: u64,
    /// Pieces beyond `edge` that do not overlap, by offset; those that touch are one fragment.
    later: BTreeMap<u64, Piece>,
    /// In unordered mode: all that ever arrived.
    seen: Option<Box<ByteRanges>>,
    /// Bytes of `ready` and of `later` that lie in receive buffers.
    lent: Lent,
}

/// Bytes that lie in receive buffers.
#[derive(Clone, Copy, Debug, Default)]
struct Lent {
    ready: u64,
    later: u64,
}

/// How many pieces may wait before those that touch are joined, where so many fragments are allowed.
pub(crate) fn join_above(fragments_max: usize) -> usize {
    fragments_max + fragments_max / 4
}

/// How many fragments beyond a gap a window of this many bytes may be received in.
pub(crate) fn max_fragments(window_bytes: u64) -> usize {
    MIN_REASSEMBLY_FRAGMENTS
        .max(usize::try_from(window_bytes / REASSEMBLY_BYTES_PER_FRAGMENT).unwrap_or(usize::MAX / 2))
}

impl Reassembly {
    /// True when every byte below `size` arrived.
    pub(crate) fn has_all_below(&self, size: u64) -> bool {
        match &self.seen {
            None => self.edge >= size,
            Some(seen) => seen.first_gap(0..size).is_none(),
        }
    }

    /// True when a read in the mode in use would find data.
    pub(crate) fn is_readable(&self) -> bool {
        !self.ready.is_empty() || !self.tail.is_empty() || (self.seen.is_some() && !self.later.is_empty())
    }

    /// True when nothing waits.
    pub(crate) fn is_drained(&self) -> bool {
        self.ready.is_empty() && self.tail.is_empty() && self.later.is_empty()
    }

    /// Takes a piece in; bytes that are known already are dropped.
    pub(crate) fn insert(&mut self, offset: u64, data: Bytes, fragments_max: usize) -> Result<(), Violation> {
        let end = offset + data.len() as u64;
        if self.seen.is_some() {
            return self.insert_unordered(offset, data, fragments_max);
        }
        if end <= self.edge {
            return Ok(());
        }
        if offset > self.edge {
            self.insert_later(offset, data);
            return self.bound(fragments_max);
        }
        let mut data = data;
        data.advance((self.edge - offset) as usize);
        if self.later.is_empty() {
            self.push_ready(Piece { bytes: data, memory: PieceMemory::Lent });
        } else {
            self.insert_at_edge(data);
        }
        Ok(())
    }

    fn push_ready(&mut self, piece: Piece) {
        let bytes = &piece.bytes;
        self.edge += bytes.len() as u64;
        if bytes.len() < COPY_BELOW_BYTES {
            if self.tail.capacity() - self.tail.len() < bytes.len() {
                let more = (self.tail.len() / 4).min(BLOCK_BYTES.saturating_sub(self.tail.len()));
                self.tail.reserve_exact(more.max(bytes.len()));
            }
            self.tail.extend_from_slice(bytes);
            if self.tail.len() >= BLOCK_BYTES {
                self.close_tail();
            }
        } else {
            self.close_tail();
            self.lent.ready += piece.lent();
            self.ready.push_back(piece);
        }
    }

    fn close_tail(&mut self) {
        if !self.tail.is_empty() {
            let block = std::mem::take(&mut self.tail).into_boxed_slice();
            self.ready.push_back(Piece { bytes: block.into(), memory: PieceMemory::Own });
        }
    }

    /// Takes the first of the later pieces out, if it begins at `offset` or `offset` is none.
    fn pop_later(&mut self, offset: Option<u64>) -> Option<(u64, Piece)> {
        let entry = self.later.first_entry().filter(|e| offset.is_none_or(|offset| *e.key() == offset))?;
        let (offset, piece) = entry.remove_entry();
        self.lent.later -= piece.lent();
        Some((offset, piece))
    }

    /// Data that begins at `edge` while later pieces wait: those that it reaches follow it.
    fn insert_at_edge(&mut self, mut data: Bytes) {
        let end = self.edge + data.len() as u64;
        while let Some((&start, piece)) = self.later.first_key_value() {
            let piece_end = start + piece.bytes.len() as u64;
            if start > end {
                break;
            }
            if piece_end > end {
                data.truncate((start - self.edge) as usize);
                break;
            }
            self.pop_later(None);
        }
        if !data.is_empty() {
            self.push_ready(Piece { bytes: data, memory: PieceMemory::Lent });
        }
        while let Some((_, piece)) = self.pop_later(Some(self.edge)) {
            self.push_ready(piece);
        }
    }

    /// Data beyond `edge` (or in unordered mode): the parts that no piece covers become pieces.
    fn insert_later(&mut self, offset: u64, data: Bytes) {
        if data.is_empty() {
            return;
        }
        let end = offset + data.len() as u64;
        let last = self.later.last_key_value().filter(|(start, _)| **start < end);
        let last_below = last.or_else(|| self.later.range(..end).next_back());
        let last_below = last_below.map(|(start, piece)| start + piece.bytes.len() as u64);
        if last_below.is_none_or(|known| known <= offset) {
            // Nearly always: nothing of it is known.
            return self.keep(offset, data);
        }
        let mut at = offset;
        if let Some((&start, piece)) = self.later.range(..=offset).next_back() {
            at = at.max(start + piece.bytes.len() as u64);
        }
        while at < end {
            let next = self.later.range(at..).next().map(|(&start, p)| (start, start + p.bytes.len() as u64));
            let (stop, resume) = next.filter(|&(start, _)| start < end).unwrap_or((end, end));
            if stop > at {
                self.keep(at, data.slice((at - offset) as usize..(stop - offset) as usize));
            }
            at = resume;
        }
    }

    fn keep(&mut self, offset: u64, bytes: Bytes) {
        let piece = Piece::arrived(bytes);
        self.lent.later += piece.lent();
        self.later.insert(offset, piece);
    }

    fn insert_unordered(&mut self, offset: u64, data: Bytes, fragments_max: usize) -> Result<(), Violation> {
        let end = offset + data.len() as u64;
        while let Some(gap) = self.seen.as_mut().and_then(|seen| seen.first_gap(offset..end)) {
            let piece = data.slice((gap.start - offset) as usize..(gap.end - offset) as usize);
            self.keep(gap.start, piece);
            if let Some(seen) = &mut self.seen {
                seen.insert(gap);
            }
        }
        if self.seen.as_ref().is_some_and(|seen| seen.len() > fragments_max) {
            return Err(Violation::StreamTooFragmented);
        }
        self.bound(fragments_max)
    }

    /// Keeps the number of pieces near `fragments_max` by joining those that touch.
    ///
    /// The joining copies at most a window, after at least a quarter of `fragments_max` insertions: cheap for each of them.
    fn bound(&mut self, fragments_max: usize) -> Result<(), Violation> {
        if self.later.len() <= join_above(fragments_max) || self.join() <= fragments_max {
            return Ok(());
        }
        Err(Violation::StreamTooFragmented)
    }

    /// Joins later pieces that touch into blocks; how many disjoint ranges there are, those that were read out of order among
    /// them.
    pub(crate) fn join(&mut self) -> usize {
        let mut joined = BTreeMap::new();
        let mut run: Vec<Piece> = Vec::new();
        let (mut run_start, mut run_bytes) = (0, 0);
        let (mut ranges, mut range_end) = (0, None);
        for (start, piece) in std::mem::take(&mut self.later) {
            let goes_on = range_end == Some(start);
            ranges += usize::from(!goes_on);
            range_end = Some(start + piece.bytes.len() as u64);
            if !run.is_empty() && (!goes_on || run_bytes + piece.bytes.len() > BLOCK_BYTES) {
                joined.insert(run_start, concat(&mut run));
                run_bytes = 0;
            }
            if run.is_empty() {
                run_start = start;
            }
            run_bytes += piece.bytes.len();
            run.push(piece);
        }
        if !run.is_empty() {
            joined.insert(run_start, concat(&mut run));
        }
        self.later = joined;
        self.lent.later = self.later.values().map(Piece::lent).sum();
        ranges.max(self.seen_ranges())
    }

    /// Ranges that are remembered in unordered mode, whether their bytes were read or not.
    fn seen_ranges(&self) -> usize {
        self.seen.as_ref().map_or(0, |seen| seen.len())
    }

    /// Bytes that keep receive buffers alive.
    pub(crate) fn lent(&self) -> u64 {
        self.lent.ready + self.lent.later
    }

    /// Pieces beyond a gap, which cost memory of their own beside the bytes; in unordered mode the ranges, where there are more:
    /// joining leaves hardly more pieces than ranges.
    pub(crate) fn pieces(&self) -> usize {
        self.later.len().max(self.seen_ranges())
    }

    /// Gives the receive buffers back: what is unread is copied, contiguous data into blocks.
    pub(crate) fn settle(&mut self) {
        settle_all(self.later.values_mut().rev(), &mut self.lent.later);
        let mut newest_first = Vec::new();
        // Small blocks before what is lent join it, so that a stream that grows slowly does not end in crumbs.
        while let Some(newest) = self.ready.back() {
            let is_crumb = !newest_first.is_empty() && newest.bytes.len() < BLOCK_BYTES / 2;
            if self.lent.ready == 0 && !is_crumb {
                break;
            }
            self.lent.ready -= newest.lent();
            newest_first.extend(self.ready.pop_back());
        }
        let mut run: Vec<Piece> = Vec::new();
        let mut run_bytes = 0;
        while let Some(piece) = newest_first.pop() {
            if !run.is_empty() && run_bytes + piece.bytes.len() > BLOCK_BYTES {
                self.push_settled(&mut run);
                run_bytes = 0;
            }
            run_bytes += piece.bytes.len();
            run.push(piece);
        }
        if !run.is_empty() {
            self.push_settled(&mut run);
        }
        shrink(&mut self.ready);
    }

    fn push_settled(&mut self, run: &mut Vec<Piece>) {
        let mut block = concat(run);
        block.settle();
        self.ready.push_back(block);
    }

    /// Takes up to `max_len` bytes out; `Ok(None)` when none are there in this order.
    pub(crate) fn read(&mut self, max_len: usize, order: Order) -> Result<Option<Chunk>, ReadOutOfOrderBefore> {
        match (order, &self.seen) {
            (Order::Ordered, Some(_)) => return Err(ReadOutOfOrderBefore),
            (Order::Unordered, None) => self.start_unordered(),
            _ => {}
        }
        if max_len == 0 {
            return Ok(None);
        }
        if self.ready.is_empty() {
            self.close_tail();
        }
        if let Some(Piece { bytes: front, memory }) = self.ready.front_mut() {
            let bytes = if front.len() > max_len { front.split_to(max_len) } else { std::mem::take(front) };
            if *memory == PieceMemory::Lent {
                self.lent.ready -= bytes.len() as u64;
            }
            if front.is_empty() {
                self.ready.pop_front();
                shrink(&mut self.ready);
            }
            let offset = self.read;
            self.read += bytes.len() as u64;
            return Ok(Some(Chunk { offset, bytes }));
        }
        if order == Order::Ordered {
            return Ok(None);
        }
        let Some((offset, Piece { mut bytes, memory })) = self.pop_later(None) else { return Ok(None) };
        if bytes.len() > max_len {
            let rest = Piece { bytes: bytes.split_off(max_len), memory };
            self.lent.later += rest.lent();
            self.later.insert(offset + max_len as u64, rest);
        }
        Ok(Some(Chunk { offset, bytes }))
    }

    fn start_unordered(&mut self) {
        let mut seen = ByteRanges::default();
        seen.insert(0..self.edge);
        for (&start, piece) in &self.later {
            seen.insert(start..start + piece.bytes.len() as u64);
        }
        self.seen = Some(Box::new(seen));
    }

    /// Drops all data.
    pub(crate) fn clear(&mut self) {
        *self = Self { read: self.read, edge: self.edge, ..Self::default() };
    }
}

/// Joins pieces into one; a lone piece stays as it is.
fn concat(run: &mut Vec<Piece>) -> Piece {
    if run.len() == 1
        && let Some(lone) = run.pop()
    {
        return lone;
    }
    let mut joined = Vec::with_capacity(run.iter().map(|piece| piece.bytes.len()).sum());
    run.drain(..).for_each(|piece| joined.extend_from_slice(&piece.bytes));
    Piece { bytes: joined.into(), memory: PieceMemory::Own }
}

#[cfg(test)]
mod tests;
