//! Bytes that were written and not yet acknowledged, and what is to be sent of them.

use std::cell::Cell;
use std::collections::VecDeque;
use std::ops::Range;

use bytes::{Bytes, BytesMut};

use crate::byte_ranges::ByteRanges;

/// Smallest block that small writes are gathered in, bytes.
const MIN_BLOCK_BYTES: usize = 1024;
/// Largest block that a write is copied into, bytes; memory returns block by block.
const MAX_BLOCK_BYTES: usize = 64 << 10;
/// Chunks below this size are copied into a block rather than kept, bytes.
const MIN_CHUNK_BYTES: usize = 512;

/// Bytes that are shared with the buffer, in order.
pub(crate) type Chunks = VecDeque<Bytes>;

#[derive(Debug)]
struct KeptChunk {
    start: u64,
    bytes: Bytes,
}

/// The send buffer of one stream.
///
/// Every byte below `end` is acked, lost, in flight or, from `sent` on, unsent:
/// `base` and `acked` say what is acked, `lost` what waits to be sent again.
#[derive(Debug, Default)]
pub(crate) struct SendBuffer {
    /// Sorted, without gaps, from `base` or a little below up to the open block.
    kept: VecDeque<KeptChunk>,
    /// Chunks that left the front of `kept` so far.
    released: u64,
    /// The chunk that was read last, counted from the first ever: the next read mostly goes on there.
    read_last: Cell<u64>,
    /// Where small writes gather; begins at `open_start`.
    open: BytesMut,
    open_start: u64,
    base: u64,
    sent: u64,
    end: u64,
    acked: ByteRanges,
    lost: ByteRanges,
}

impl SendBuffer {
    /// Lowest offset that is not acked.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// End of what was ever sent.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// End of what was written.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Bytes never sent.
    pub(crate) fn unsent_bytes(&self) -> u64 {
        self.end - self.sent
    }

    /// Bytes waiting to be sent again.
    pub(crate) fn lost_bytes(&self) -> u64 {
        self.lost.bytes()
    }

    /// Bytes held in memory: from the lowest unacked one to the end.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.end - self.base
    }

    /// True when all that was written is acked.
    pub(crate) fn is_all_acked(&self) -> bool {
        self.base == self.end
    }

    /// Appends a copy of `data`.
    pub(crate) fn write(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            let spare = self.open.capacity() - self.open.len();
            if spare == 0 {
                self.close_block();
                let size = data.len().next_power_of_two().clamp(MIN_BLOCK_BYTES, MAX_BLOCK_BYTES);
                self.open = BytesMut::with_capacity(size);
                continue;
            }
            let (now, later) = data.split_at(data.len().min(spare));
            self.open.extend_from_slice(now);
            self.end += now.len() as u64;
            data = later;
        }
    }

    /// Appends `bytes` without copying them, unless they are few.
    pub(crate) fn write_chunk(&mut self, bytes: Bytes) {
        if bytes.len() < MIN_CHUNK_BYTES {
            return self.write(&bytes);
        }
        self.close_block();
        self.end += bytes.len() as u64;
        self.open_start = self.end;
        self.kept.push_back(KeptChunk { start: self.end - bytes.len() as u64, bytes });
    }

    fn close_block(&mut self) {
        if !self.open.is_empty() {
            self.kept.push_back(KeptChunk { start: self.open_start, bytes: self.open.split().freeze() });
            self.open_start = self.end;
        }
    }

    /// The next range to send: lost bytes first, then at most `fresh_max` unsent ones.
    pub(crate) fn next(&self, fresh_max: u64) -> Option<Range<u64>> {
        if let Some(lost) = self.lost.first() {
            return Some(lost);
        }
        let len = self.unsent_bytes().min(fresh_max);
        (len > 0).then(|| self.sent..self.sent + len)
    }

    /// Notes that `range` was just sent; bytes of it that were never sent before.
    pub(crate) fn on_sent(&mut self, range: Range<u64>) -> u64 {
        if !self.lost.is_empty() {
            self.lost.remove(range.clone());
        }
        let fresh = range.end.saturating_sub(self.sent);
        self.sent = self.sent.max(range.end);
        fresh
    }

    /// Notes that `range` arrived.
    pub(crate) fn on_acked(&mut self, range: Range<u64>) {
        let range = range.start.max(self.base)..range.end.min(self.sent);
        if range.is_empty() {
            return;
        }
        if !self.lost.is_empty() {
            self.lost.remove(range.clone());
        }
        if range.start > self.base {
            self.acked.insert(range);
            return;
        }
        self.base = range.end;
        while let Some(first) = self.acked.first().filter(|r| r.start <= self.base) {
            self.acked.remove(first.clone());
            self.base = self.base.max(first.end);
        }
        self.release();
    }

    /// Drops chunks that are acked to their end.
    fn release(&mut self) {
        while self.kept.front().is_some_and(|k| k.start + k.bytes.len() as u64 <= self.base) {
            self.kept.pop_front();
            self.released += 1;
        }
        if self.base == self.end {
            self.open = BytesMut::new();
            self.open_start = self.end;
        }
    }

    /// Notes that `range` was lost; what is neither acked nor waiting already is sent again.
    pub(crate) fn on_lost(&mut self, range: Range<u64>) {
        let end = range.end.min(self.sent);
        let mut start = range.start.max(self.base);
        while let Some(gap) = self.acked.first_gap(start..end) {
            start = gap.end;
            self.lost.insert(gap);
        }
    }

    /// The first part of `range` that was sent and is not acked.
    pub(crate) fn first_unacked(&self, range: Range<u64>) -> Option<Range<u64>> {
        self.acked.first_gap(range.start.max(self.base)..range.end.min(self.sent))
    }

    /// Index of the kept chunk that holds the byte at this offset; their number where it lies behind them.
    fn chunk_of(&self, at: u64) -> usize {
        let last = self.read_last.get().saturating_sub(self.released) as usize;
        let holds = |index: &usize| {
            let chunk = self.kept.get(*index);
            chunk.is_some_and(|k| k.start <= at && at < k.start + k.bytes.len() as u64)
        };
        let near = (last..last + 2).find(holds);
        near.unwrap_or_else(|| self.kept.partition_point(|k| k.start + k.bytes.len() as u64 <= at))
    }

    /// Copies `range`, which must lie between `base` and `end`, to the end of the packet.
    pub(crate) fn put(&self, range: Range<u64>, packet: &mut Vec<u8>) {
        debug_assert!(range.start >= self.base && range.end <= self.end);
        let mut at = range.start;
        let first = self.chunk_of(at);
        self.read_last.set(self.released + first as u64);
        if let Some(k) = self.kept.get(first) {
            // Mostly it holds all of them.
            let place = (at - k.start) as usize..(range.end - k.start) as usize;
            if let Some(bytes) = k.bytes.get(place) {
                return packet.extend_from_slice(bytes);
            }
        }
        for k in self.kept.range(first..) {
            if at >= range.end {
                return;
            }
            let from = (at - k.start) as usize;
            let to = ((range.end - k.start) as usize).min(k.bytes.len());
            packet.extend_from_slice(&k.bytes[from..to]);
            at = k.start + to as u64;
        }
        if at < range.end {
            let (from, to) = ((at - self.open_start) as usize, (range.end - self.open_start) as usize);
            packet.extend_from_slice(&self.open[from..to]);
        }
    }

    /// Appends the bytes of `range`, which must lie between `base` and `end`, to `out`, without copying them.
    pub(crate) fn share(&mut self, range: Range<u64>, out: &mut Chunks) {
        debug_assert!(range.start >= self.base && range.end <= self.end);
        if range.end > self.open_start {
            self.close_block();
        }
        let mut at = range.start;
        for k in self.kept.range(self.chunk_of(at)..) {
            if at >= range.end {
                return;
            }
            let from = (at - k.start) as usize;
            let to = ((range.end - k.start) as usize).min(k.bytes.len());
            out.push_back(k.bytes.slice(from..to));
            at = k.start + to as u64;
        }
    }

    /// Forgets all bytes; the offsets stay.
    pub(crate) fn clear(&mut self) {
        self.kept = VecDeque::new();
        self.open = BytesMut::new();
        self.lost.clear();
        self.acked.clear();
        self.end = self.sent;
        self.base = self.sent;
        self.open_start = self.end;
    }
}

#[cfg(test)]
mod tests;
