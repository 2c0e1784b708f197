//! Received bytes that wait for a reader, and whose memory they lie in.
//!
//! What flow control promised the peer bounds what is held:
//!
//! - Bytes that just arrived are *lent*: a slice of the buffer that their datagram came in, which stays allocated as
//!   long as one slice of it. A reader that keeps up takes them without a copy.
//! - Soon after (`limits::LOAN_TIME`) the connection settles: what is still unread is copied to an allocation of its own
//!   size. A buffer that is kept for its slices was therefore received no longer ago than that. It is at least half full,
//!   because fuller than half is what the sockets' receive batches lend, so lent memory is at most twice what the network
//!   brought in that time, however few of those bytes wait.
//! - A piece of its own costs at most `PIECE_OVERHEAD_BYTES` beyond its bytes. What settles without a gap becomes blocks of
//!   8 KiB and more, but for the last of a stream; where small pieces gather, at most a quarter of them is spare.
//! - Pieces beyond gaps are counted: at most one for `limits::REASSEMBLY_BYTES_PER_FRAGMENT` bytes of window and a quarter
//!   more (and 1024 where the window is small), over the connection as on each stream.
//!
//! For a window of n bytes the blocks cost at most n / 64 beyond their bytes or n / 4 where they still gather, the pieces
//! beyond gaps 1.25 * n * 128/512. What is held settles below 1.5 n and a constant: where the
//! window is small, 1.25 * 1024 * 128 bytes (160 KiB) once for the connection, and the last block of each stream that is open,
//! about 16 KiB.

use std::collections::VecDeque;

use bytes::Bytes;

/// Pieces below this size are copied at once, bytes.
pub(crate) const COPY_BELOW_BYTES: usize = 512;
/// What a piece costs beyond its bytes, at most: its place in a queue that is at most twice too large or in a tree that is
/// at least half full, and the allocator's own.
pub(crate) const PIECE_OVERHEAD_BYTES: usize = 128;
/// Queues below this many places are not worth shrinking.
const SMALL_QUEUE: usize = 64;

/// Whose memory a piece lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PieceMemory {
    /// A receive buffer's, which lives as long as the piece.
    Lent,
    /// Its own, of its own size.
    Own,
}

/// Some bytes and where they lie.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) bytes: Bytes,
    pub(crate) memory: PieceMemory,
}

impl Piece {
    /// A slice of a datagram; small ones are copied.
    pub(crate) fn arrived(bytes: Bytes) -> Self {
        if bytes.len() < COPY_BELOW_BYTES { Self::copy_of(&bytes) } else { Self { bytes, memory: PieceMemory::Lent } }
    }

    /// A copy of its own.
    pub(crate) fn copy_of(bytes: &[u8]) -> Self {
        Self { bytes: Bytes::copy_from_slice(bytes), memory: PieceMemory::Own }
    }

    /// Bytes that keep a receive buffer alive.
    pub(crate) fn lent(&self) -> u64 {
        match self.memory {
            PieceMemory::Lent => self.bytes.len() as u64,
            PieceMemory::Own => 0,
        }
    }

    /// Copies what is lent.
    pub(crate) fn settle(&mut self) {
        if self.memory == PieceMemory::Lent {
            *self = Self::copy_of(&self.bytes);
        }
    }
}

/// Settles the newest of `pieces` first, until nothing of `lent` bytes is left.
pub(crate) fn settle_all<'a>(newest_first: impl Iterator<Item = &'a mut Piece>, lent: &mut u64) {
    for piece in newest_first {
        if *lent == 0 {
            return;
        }
        *lent -= piece.lent();
        piece.settle();
    }
    debug_assert_eq!(*lent, 0);
}

/// Gives back the places of a queue that was much longer once; costs O(1) for each piece taken from it.
#[inline]
pub(crate) fn shrink<T>(queue: &mut VecDeque<T>) {
    if queue.capacity() > SMALL_QUEUE && queue.len() < queue.capacity() / 4 {
        shrink_now(queue);
    }
}

#[cold]
fn shrink_now<T>(queue: &mut VecDeque<T>) {
    queue.shrink_to(SMALL_QUEUE.max(2 * queue.len()));
}
