//! Wakes whoever sleeps until there is something in a queue, and nobody who is awake.
//!
//! `tests/api/bell.rs` runs this very file through all its interleavings: no sleep with a message in the queue, one wake for one sleep.

use std::task::Waker;

use super::sync::{AtomicBool, Mutex, MutexGuard, Ordering, PoisonError, fence};

/// One sleeper, and any number of those who wake it.
///
/// The sleeper calls [`Self::arm`], looks once more into its queues, and sleeps if they are empty. Who puts something into one of
/// them calls [`Self::ring`] afterwards.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    is_asleep: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Bell {
    fn waker(&self) -> MutexGuard<'_, Option<Waker>> {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next ring wakes `waker`. Whoever waits looks into its queues between this and its sleep.
    pub(crate) fn arm(&self, waker: &Waker) {
        let mut kept = self.waker();
        if !kept.as_ref().is_some_and(|kept| kept.will_wake(waker)) {
            *kept = Some(waker.clone());
        }
        drop(kept);
        self.is_asleep.store(true, Ordering::Release);
        // With the fence of `ring`: either the one that rings sees the sleeper, or the sleeper sees what was put in before.
        fence(Ordering::SeqCst);
    }

    /// The sleeper found something, and does not sleep.
    pub(crate) fn disarm(&self) {
        self.is_asleep.store(false, Ordering::Relaxed);
    }

    /// Wakes the sleeper, if it sleeps.
    pub(crate) fn ring(&self) {
        fence(Ordering::SeqCst);
        if self.is_asleep.load(Ordering::Relaxed)
            && self.is_asleep.swap(false, Ordering::AcqRel)
            && let Some(waker) = self.waker().as_ref()
        {
            waker.wake_by_ref();
        }
    }
}

/// Rings when it is dropped: for the last field of whatever must not vanish unheard.
#[derive(Debug)]
pub(crate) struct RingsAtLast(pub(crate) std::sync::Arc<Bell>);

impl Drop for RingsAtLast {
    fn drop(&mut self) {
        self.0.ring();
    }
}
