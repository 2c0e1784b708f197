//! Stream data on loan: ranges of streams with their bytes, for whoever serves a path.
//!
//! For the streams a byte is sent when it is lent. It was paid for then, in credit of its stream and of the connection, so that
//! whoever has it need not ask again; and it comes back, if it never leaves, as a frame that was lost.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use bytes::Buf;
use plait_base::StreamId;
use plait_wire::frame::OutStream;
use plait_wire::{FrameWriter, SentFrame};

use crate::send_buffer::{Chunks, SendBuffer};
use crate::sink::StreamSink;

/// What a lease costs beside its bytes, as a frame's head would: many small streams do not make a lease endless.
const HEAD_BYTES: usize = 16;

/// A range of one stream with its bytes, to be sent in any number of packets.
#[derive(Debug)]
pub struct Lease {
    id: StreamId,
    /// What is left of it.
    range: Range<u64>,
    /// Where the stream ends, if that is the end of this lease.
    final_size: Option<u64>,
    /// Leases that it was made of.
    parts: u32,
    /// The end, too, has been written.
    is_over: bool,
    chunks: Chunks,
}

impl Lease {
    /// The stream that it is of.
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// Bytes of it that no packet took; a stream's end counts as one.
    pub fn unsent_bytes(&self) -> u64 {
        self.range.end - self.range.start + u64::from(self.final_size.is_some() && !self.is_over)
    }

    /// Leases that it was made of.
    pub fn parts(&self) -> u32 {
        self.parts
    }

    /// True once packets have taken all of it.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Writes a STREAM frame with the next of its bytes; false when too little fits.
    pub fn fill(&mut self, w: &mut FrameWriter<'_>) -> bool {
        let stream = OutStream { id: self.id, range: self.range.clone(), final_size: self.final_size };
        let chunks = &mut self.chunks;
        let Some(sent) = w.write_stream(&stream, |part, packet| put(chunks, part.end - part.start, packet)) else {
            return false;
        };
        self.range.start = sent.end;
        self.is_over = self.range.is_empty();
        true
    }

    /// Goes on with a lease of the same stream that begins where this one ends; any other comes back.
    ///
    /// # Errors
    /// The lease that cannot be joined.
    pub fn join(&mut self, next: Self) -> Result<(), Self> {
        if next.id != self.id || next.range.start != self.range.end || self.final_size.is_some() || self.is_over {
            return Err(next);
        }
        self.range.end = next.range.end;
        self.final_size = next.final_size;
        self.parts += next.parts;
        self.chunks.extend(next.chunks);
        Ok(())
    }

    /// What of it never left, as frames that were lost.
    pub fn unsent(&self) -> impl Iterator<Item = SentFrame> + use<> {
        const PART: u64 = u32::MAX as u64;
        let (id, Range { start, end }, final_size) = (self.id, self.range.clone(), self.final_size);
        let parts = (end - start).div_ceil(PART).max(1);
        (0..parts).filter(move |_| start < end || final_size.is_some()).map(move |part| {
            let offset = start + part * PART;
            let part_end = (offset + PART).min(end);
            SentFrame::Stream { id, offset, len: (part_end - offset) as u32, fin: final_size == Some(part_end) }
        })
    }
}

/// Moves the next `len` bytes to the packet.
fn put(chunks: &mut Chunks, mut len: u64, packet: &mut Vec<u8>) {
    while len > 0 {
        let Some(first) = chunks.front_mut() else { return };
        let now = first.len().min(usize::try_from(len).unwrap_or(usize::MAX));
        packet.extend_from_slice(&first[..now]);
        // Not `split_to`: it counts one more owner of memory that all threads share, for each packet.
        first.advance(now);
        len -= now as u64;
        if first.is_empty() {
            chunks.pop_front();
        }
    }
}

/// Collects leases, up to a number of bytes.
#[derive(Debug)]
pub struct LeaseWriter {
    room: usize,
    leases: Vec<Lease>,
}

impl LeaseWriter {
    /// Leases of `room` bytes together, what their frames' heads take included.
    pub fn new(room: usize) -> Self {
        Self { room, leases: Vec::new() }
    }

    /// What was lent so far.
    pub fn leases(&self) -> &[Lease] {
        &self.leases
    }

    /// What was lent.
    pub fn into_leases(self) -> Vec<Lease> {
        self.leases
    }
}

impl StreamSink for LeaseWriter {
    fn remaining(&self) -> usize {
        self.room
    }

    fn take(&mut self, stream: &OutStream, buffer: &mut SendBuffer) -> Option<Range<u64>> {
        let OutStream { id, ref range, final_size } = *stream;
        let room = self.room.checked_sub(HEAD_BYTES).filter(|room| *room > 0)? as u64;
        let taken = range.start..range.end.min(range.start.saturating_add(room));
        let mut chunks = Chunks::new();
        buffer.share(taken.clone(), &mut chunks);
        let final_size = final_size.filter(|size| *size == taken.end);
        self.room -= HEAD_BYTES + (taken.end - taken.start) as usize;
        self.leases.push(Lease { id, range: taken.clone(), final_size, parts: 1, is_over: false, chunks });
        Some(taken)
    }
}

/// Streams of which leases are out, and what waits for them.
#[derive(Debug, Default)]
pub(crate) struct Leased {
    out: BTreeMap<StreamId, u32>,
    /// Streams that were reset meanwhile.
    resets: BTreeSet<StreamId>,
    /// Those of them whose leases nobody asked back yet.
    recalls: Vec<StreamId>,
}

impl Leased {
    pub(crate) fn begin(&mut self, id: StreamId) {
        *self.out.entry(id).or_default() += 1;
    }

    /// True when these were the last ones of a stream that was reset.
    pub(crate) fn end(&mut self, id: StreamId, count: u32) -> bool {
        let Some(out) = self.out.get_mut(&id) else {
            debug_assert!(count == 0, "a lease of {id:?} ended twice");
            return false;
        };
        debug_assert!(count <= *out, "a lease of {id:?} ended twice");
        *out = out.saturating_sub(count);
        *out == 0 && self.out.remove(&id).is_some() && self.resets.remove(&id)
    }

    /// How many are out.
    pub(crate) fn count(&self) -> u64 {
        self.out.values().copied().map(u64::from).sum()
    }

    /// True where the reset of a stream has to wait.
    pub(crate) fn hold_reset(&mut self, id: StreamId) -> bool {
        let is_out = self.out.contains_key(&id);
        if is_out && self.resets.insert(id) {
            self.recalls.push(id);
        }
        is_out
    }

    pub(crate) fn poll_recall(&mut self) -> Option<StreamId> {
        self.recalls.pop()
    }
}
