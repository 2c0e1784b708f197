//! Sockets that are read by another than their endpoint: by whoever serves the path that they belong to.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;

/// Who reads a socket: its endpoint, or one that claimed it.
///
/// A socket remembers one waiting reader, the latest. So the endpoint asks it under this lock, and no more once a claim was taken
/// under it.
#[derive(Debug, Default)]
pub(super) struct Claims {
    is_claimed: Mutex<bool>,
    /// The same, to look at without the lock.
    shown: AtomicBool,
}

impl Claims {
    fn lock(&self) -> MutexGuard<'_, bool> {
        self.is_claimed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads for the endpoint: pending while another reads.
    pub(super) fn read_unclaimed(&self, read: impl FnOnce() -> Poll<io::Result<()>>) -> Poll<io::Result<()>> {
        if self.shown.load(Ordering::Relaxed) {
            return Poll::Pending;
        }
        let is_claimed = self.lock();
        if *is_claimed { Poll::Pending } else { read() }
    }

    /// Says whether another reads from now on; what was so before.
    pub(super) fn set(&self, is_claimed: bool) -> bool {
        let mut kept = self.lock();
        self.shown.store(is_claimed, Ordering::Relaxed);
        std::mem::replace(&mut *kept, is_claimed)
    }
}
