//! Puts received pieces of a stream in order, without copying them where that does not waste memory.
//!
//! In-order data costs O(1) for each frame. Memory stays within a small multiple of the flow-control window:
//! small pieces are copied out of their packets, touching pieces are joined when there are many, and more
//! disjoint pieces than the bound are the peer's fault.

use std::collections::{BTreeMap, VecDeque};

use bytes::{Buf, Bytes, BytesMut};
use plait_base::Violation;
use plait_base::limits::{MIN_REASSEMBLY_FRAGMENTS, REASSEMBLY_BYTES_PER_FRAGMENT};

use crate::byte_ranges::ByteRanges;
use crate::events::{Chunk, Order};

/// Pieces below this size are copied, so that they do not keep a whole datagram alive, bytes.
const COPY_BELOW_BYTES: usize = 512;

/// Small pieces in order gather in blocks of about this size, bytes.
const MAX_TAIL_BYTES: usize = 64 << 10;

/// The ordered read was refused: some data was read out of order before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadOutOfOrderBefore;

/// The received and unread data of one stream.
#[derive(Debug, Default)]
pub(crate) struct Reassembly {
    /// Contiguous data from `read` on.
    ready: VecDeque<Bytes>,
    /// The end of the contiguous data, where small pieces gather; behind `ready`.
    tail: BytesMut,
    /// Offset of the first unread byte; in unordered mode, of the first byte in `ready`.
    read: u64,
    /// End of the contiguous data.
    edge: u64,
    /// Disjoint pieces beyond `edge`, by offset; they may touch.
    later: BTreeMap<u64, Bytes>,
    /// In unordered mode: all that ever arrived.
    seen: Option<Box<ByteRanges>>,
}

/// How many disjoint pieces a window of this many bytes may be received in.
pub(crate) fn max_fragments(window_bytes: u64) -> usize {
    MIN_REASSEMBLY_FRAGMENTS
        .max(usize::try_from(window_bytes / REASSEMBLY_BYTES_PER_FRAGMENT).unwrap_or(usize::MAX / 2))
}

impl Reassembly {
    /// End of the data that arrived without gaps (ordered mode).
    pub(crate) fn edge(&self) -> u64 {
        self.edge
    }

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
            self.push_ready(data);
        } else {
            self.insert_at_edge(data);
        }
        Ok(())
    }

    fn push_ready(&mut self, data: Bytes) {
        self.edge += data.len() as u64;
        if data.len() < COPY_BELOW_BYTES {
            self.tail.extend_from_slice(&data);
            if self.tail.len() >= MAX_TAIL_BYTES {
                self.close_tail();
            }
        } else {
            self.close_tail();
            self.ready.push_back(data);
        }
    }

    fn close_tail(&mut self) {
        if !self.tail.is_empty() {
            self.ready.push_back(self.tail.split().freeze());
        }
    }

    /// Data that begins at `edge` while later pieces wait: those that it reaches follow it.
    fn insert_at_edge(&mut self, mut data: Bytes) {
        let end = self.edge + data.len() as u64;
        while let Some(entry) = self.later.first_entry() {
            let start = *entry.key();
            let piece_end = start + entry.get().len() as u64;
            if start > end {
                break;
            }
            if piece_end > end {
                data.truncate((start - self.edge) as usize);
                break;
            }
            entry.remove();
        }
        if !data.is_empty() {
            self.push_ready(data);
        }
        while let Some(entry) = self.later.first_entry().filter(|e| *e.key() == self.edge) {
            let piece = entry.remove();
            self.push_ready(piece);
        }
    }

    /// Data beyond `edge` (or in unordered mode): the parts that no piece covers become pieces.
    fn insert_later(&mut self, offset: u64, data: Bytes) {
        let end = offset + data.len() as u64;
        let mut at = offset;
        if let Some((&start, piece)) = self.later.range(..=offset).next_back() {
            at = at.max(start + piece.len() as u64);
        }
        while at < end {
            let next = self.later.range(at..).next().map(|(&start, piece)| (start, start + piece.len() as u64));
            let (stop, resume) = next.filter(|&(start, _)| start < end).unwrap_or((end, end));
            if stop > at {
                self.keep(at, data.slice((at - offset) as usize..(stop - offset) as usize));
            }
            at = resume;
        }
    }

    fn keep(&mut self, offset: u64, piece: Bytes) {
        let piece = if piece.len() < COPY_BELOW_BYTES { Bytes::copy_from_slice(&piece) } else { piece };
        self.later.insert(offset, piece);
    }

    fn insert_unordered(&mut self, offset: u64, data: Bytes, fragments_max: usize) -> Result<(), Violation> {
        let Some(seen) = &mut self.seen else { return Ok(()) };
        let end = offset + data.len() as u64;
        while let Some(gap) = seen.first_gap(offset..end) {
            seen.insert(gap.clone());
            let piece = data.slice((gap.start - offset) as usize..(gap.end - offset) as usize);
            let piece = if piece.len() < COPY_BELOW_BYTES { Bytes::copy_from_slice(&piece) } else { piece };
            self.later.insert(gap.start, piece);
        }
        if seen.len() > fragments_max {
            return Err(Violation::StreamTooFragmented);
        }
        self.bound(fragments_max)
    }

    /// Keeps the number of pieces within twice `fragments_max` by joining those that touch.
    ///
    /// The joining copies at most a window, after at least `fragments_max` insertions: cheap for each of them.
    fn bound(&mut self, fragments_max: usize) -> Result<(), Violation> {
        if self.later.len() <= 2 * fragments_max {
            return Ok(());
        }
        self.join();
        if self.later.len() > fragments_max { Err(Violation::StreamTooFragmented) } else { Ok(()) }
    }

    fn join(&mut self) {
        let mut joined = BTreeMap::new();
        let mut run: Vec<Bytes> = Vec::new();
        let (mut run_start, mut run_end) = (0, 0);
        for (start, piece) in std::mem::take(&mut self.later) {
            if !run.is_empty() && start != run_end {
                joined.insert(run_start, concat(&mut run));
            }
            if run.is_empty() {
                run_start = start;
            }
            run_end = start + piece.len() as u64;
            run.push(piece);
        }
        if !run.is_empty() {
            joined.insert(run_start, concat(&mut run));
        }
        self.later = joined;
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
        if let Some(front) = self.ready.front_mut() {
            let bytes = if front.len() > max_len { front.split_to(max_len) } else { std::mem::take(front) };
            if front.is_empty() {
                self.ready.pop_front();
            }
            let offset = self.read;
            self.read += bytes.len() as u64;
            return Ok(Some(Chunk { offset, bytes }));
        }
        if order == Order::Ordered {
            return Ok(None);
        }
        let Some((offset, mut bytes)) = self.later.pop_first() else { return Ok(None) };
        if bytes.len() > max_len {
            let rest = bytes.split_off(max_len);
            self.later.insert(offset + max_len as u64, rest);
        }
        Ok(Some(Chunk { offset, bytes }))
    }

    fn start_unordered(&mut self) {
        let mut seen = ByteRanges::default();
        seen.insert(0..self.edge);
        for (&start, piece) in &self.later {
            seen.insert(start..start + piece.len() as u64);
        }
        self.seen = Some(Box::new(seen));
    }

    /// Drops all data.
    pub(crate) fn clear(&mut self) {
        *self = Self { read: self.read, edge: self.edge, ..Self::default() };
    }

    /// Disjoint or touching pieces that are held beyond the contiguous data.
    #[cfg(test)]
    pub(crate) fn pieces(&self) -> usize {
        self.later.len()
    }
}

/// Joins pieces into one; a lone piece stays as it is.
fn concat(run: &mut Vec<Bytes>) -> Bytes {
    if run.len() == 1 {
        return run.pop().unwrap_or_default();
    }
    let mut joined = BytesMut::with_capacity(run.iter().map(Bytes::len).sum());
    run.drain(..).for_each(|piece| joined.extend_from_slice(&piece));
    joined.freeze()
}

#[cfg(test)]
mod tests;
