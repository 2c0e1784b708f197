//! Receive buffers that were handed on, for use again once nobody reads in them any more.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};

/// Largest UDP payload, and so the size of one receive slot.
pub(super) const SLOT_BYTES: usize = 65_536;
/// Smaller messages are copied out, and their buffer is used again.
pub(super) const COPY_BELOW_BYTES: usize = SLOT_BYTES / 2;
/// Buffers remembered, at most, 4 MiB: of a stream over several paths much waits behind what another is still to bring.
const MAX_KEPT: usize = 64;

/// Buffers that may be free again. New ones would have to be cleared, page by page.
#[derive(Debug, Default)]
pub(crate) struct SpareBuffers {
    /// The latest last. Others may still read in them.
    kept: Mutex<VecDeque<Bytes>>,
}

impl SpareBuffers {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Bytes>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers `memory` where it is a receive buffer; the oldest goes where there are too many.
    pub(crate) fn keep(&self, memory: Bytes) {
        if memory.len() < COPY_BELOW_BYTES {
            return;
        }
        let mut kept = self.lock();
        let oldest = if kept.len() < MAX_KEPT { None } else { kept.pop_front() };
        kept.push_back(memory);
        drop(kept);
        drop(oldest);
    }

    /// A buffer of a whole slot that nobody else holds, the latest first: its memory is likely to be in a cache.
    pub(super) fn take(&self) -> Option<BytesMut> {
        let mut kept = self.lock();
        while let Some(at) = kept.iter().rposition(Bytes::is_unique) {
            let mut buffer = kept.remove(at)?.try_into_mut().ok()?;
            // Part of a buffer that was divided is not worth the copy.
            if buffer.capacity() >= SLOT_BYTES {
                buffer.resize(SLOT_BYTES, 0);
                return Some(buffer);
            }
        }
        None
    }

    /// Gives the memory of all back.
    pub(crate) fn clear(&self) {
        *self.lock() = VecDeque::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(len: usize) -> Bytes {
        let mut buffer = BytesMut::zeroed(SLOT_BYTES);
        buffer.truncate(len);
        buffer.freeze()
    }

    #[test]
    fn a_buffer_is_used_again_once_nobody_reads_in_it() {
        let spare = SpareBuffers::default();
        let memory = received(60_000);
        let (place, read_later) = (memory.as_ptr(), memory.slice(100..200));
        spare.keep(memory);
        assert!(spare.take().is_none(), "it is still read");
        drop(read_later);
        let buffer = spare.take().unwrap();
        assert_eq!((buffer.as_ptr(), buffer.len()), (place, SLOT_BYTES));
        assert!(spare.take().is_none(), "it was taken");
    }

    #[test]
    fn the_latest_comes_first_and_small_ones_are_not_kept() {
        let spare = SpareBuffers::default();
        let (first, second) = (received(40_000), received(50_000));
        let latest = second.as_ptr();
        for memory in [first, second, received(COPY_BELOW_BYTES - 1)] {
            spare.keep(memory);
        }
        assert_eq!(spare.take().map(|buffer| buffer.as_ptr()), Some(latest));
        assert!(spare.take().is_some() && spare.take().is_none());
    }

    #[test]
    fn a_part_of_a_buffer_is_let_go() {
        let spare = SpareBuffers::default();
        spare.keep(received(60_000).slice(10_000..));
        assert!(spare.take().is_none());
        assert!(spare.lock().is_empty());
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let spare = SpareBuffers::default();
        for _ in 0..3 * MAX_KEPT {
            spare.keep(received(SLOT_BYTES));
        }
        assert_eq!(spare.lock().len(), MAX_KEPT);
        spare.clear();
        assert!(spare.take().is_none());
    }
}
