//! Memory for pieces of files on their way to clients: one budget for the whole process.
//!
//! A piece is charged from before it is read until the client has acknowledged it. A client holds at most what its
//! congestion windows let it use soon: one that acknowledges nothing keeps the window that it began with, and little
//! memory. Where the budget is spent a client that holds nothing still gets one small piece, so that hoarders shut
//! nobody out until they are given up. All in all that is at most the budget and `MIN_PIECE_BYTES` for each connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Notify, Semaphore};

/// Bytes of files in memory at most, over all connections.
const BUDGET_BYTES: u64 = 64 << 20;
/// Bytes that a client may hold whatever its congestion windows are.
const AHEAD_BYTES: u64 = 128 << 10;
/// A client may hold this many times its congestion windows: what is on its way, and as much to follow.
const AHEAD_WINDOWS: u64 = 2;
/// Largest piece, bytes. It is charged until the last of it is acknowledged, so that it is also at most a quarter of what a
/// client may hold.
const PIECE_BYTES: u64 = 256 << 10;
/// Smaller pieces, bytes, are not worth a read unless they are the last.
const MIN_PIECE_BYTES: u64 = 16 << 10;
/// Files read at once; more only wait for the same disk.
const READERS: usize = 8;
/// How soon a client looks again whether others left it something.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The budget of a process.
#[derive(Debug)]
pub(crate) struct Budget {
    used: AtomicU64,
    readers: Semaphore,
}

/// What one client holds of the budget.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Arc<Budget>,
    held: AtomicU64,
    given_back: Notify,
}

/// Bytes charged to a client, until they are dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    share: Arc<Share>,
    bytes: u64,
}

/// A part of a file in memory, and what was charged for it.
struct ChargedBytes {
    bytes: Vec<u8>,
    _charge: Charge,
}

impl AsRef<[u8]> for ChargedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Budget {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { used: AtomicU64::new(0), readers: Semaphore::new(READERS) })
    }

    /// A turn at the disk; none when the process ends.
    pub(crate) async fn reader(&self) -> Option<tokio::sync::SemaphorePermit<'_>> {
        self.readers.acquire().await.ok()
    }
}

impl Share {
    pub(crate) fn new(budget: &Arc<Budget>) -> Arc<Self> {
        Arc::new(Self { budget: Arc::clone(budget), held: AtomicU64::new(0), given_back: Notify::new() })
    }

    /// Bytes that the client holds.
    pub(crate) fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// Takes memory for a piece of at most `want` bytes, at least one; `cwnd` is asked for the client's congestion windows.
    pub(crate) async fn charge(self: &Arc<Self>, want: u64, cwnd: impl Fn() -> u64) -> Charge {
        loop {
            let given_back = self.given_back.notified();
            if let Some(charge) = self.try_charge(want, cwnd()) {
                return charge;
            }
            // Others give back too, without a word to us.
            let _ = tokio::time::timeout(LOOK_AGAIN, given_back).await;
        }
    }

    fn try_charge(self: &Arc<Self>, want: u64, cwnd: u64) -> Option<Charge> {
        let allowed = AHEAD_BYTES + AHEAD_WINDOWS.saturating_mul(cwnd);
        let want = want.clamp(1, PIECE_BYTES.min(allowed / 4));
        let least = want.min(MIN_PIECE_BYTES);
        let held = self.held();
        let mut bytes = 0;
        let taken = self.budget.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            let free = BUDGET_BYTES.saturating_sub(used);
            bytes = want.min(allowed.saturating_sub(held)).min(free);
            if held == 0 {
                bytes = bytes.max(least);
            }
            (bytes >= least).then_some(used + bytes)
        });
        taken.ok()?;
        self.held.fetch_add(bytes, Ordering::Relaxed);
        Some(Charge { share: Arc::clone(self), bytes })
    }
}

impl Charge {
    /// Bytes of the piece that may be read.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The piece that was read for it; it gives the memory back when the last part of it is dropped.
    pub(crate) fn piece(self, bytes: Vec<u8>) -> Bytes {
        debug_assert!(bytes.capacity() as u64 <= self.bytes);
        Bytes::from_owner(ChargedBytes { bytes, _charge: self })
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.share.held.fetch_sub(self.bytes, Ordering::Relaxed);
        self.share.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
        self.share.given_back.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes all that it gets.
    fn hoard(share: &Arc<Share>, cwnd: u64) -> Vec<Charge> {
        std::iter::from_fn(|| share.try_charge(u64::MAX, cwnd)).collect()
    }

    #[test]
    fn a_client_holds_what_its_windows_can_use() {
        let share = Share::new(&Budget::new());
        let hoarded = hoard(&share, 12_000);
        let allowed = AHEAD_BYTES + 2 * 12_000;
        assert!((allowed - MIN_PIECE_BYTES..=allowed).contains(&share.held()), "{}", share.held());
        assert_eq!(share.budget.used.load(Ordering::Relaxed), share.held());
        drop(hoarded);
        assert_eq!((share.held(), share.budget.used.load(Ordering::Relaxed)), (0, 0));
        assert_eq!(share.try_charge(9, 0).unwrap().bytes(), 9, "a short end is a piece");
    }

    #[test]
    fn hoarders_stay_within_the_budget_and_leave_something_to_the_next() {
        let budget = Budget::new();
        let hoarders: Vec<_> = (0..1_000).map(|_| Share::new(&budget)).collect();
        let hoarded: Vec<_> = hoarders.iter().map(|share| hoard(share, 1 << 20)).collect();
        assert!(budget.used.load(Ordering::Relaxed) <= BUDGET_BYTES + 1_000 * MIN_PIECE_BYTES);
        let next = Share::new(&budget);
        let first = next.try_charge(u64::MAX, 1 << 20).unwrap();
        assert_eq!(first.bytes(), MIN_PIECE_BYTES);
        assert!(next.try_charge(u64::MAX, 1 << 20).is_none());
        drop((hoarded, first));
        assert_eq!(budget.used.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn waits_for_what_was_given_back() {
        let share = Share::new(&Budget::new());
        let mut hoarded = hoard(&share, 0);
        let waiting = tokio::spawn({
            let share = Arc::clone(&share);
            async move { share.charge(100, || 0).await.bytes() }
        });
        tokio::task::yield_now().await;
        hoarded.pop();
        assert_eq!(waiting.await.unwrap(), 100);
    }
}
