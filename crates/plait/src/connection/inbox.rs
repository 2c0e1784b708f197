//! Datagrams on their way from the endpoint to a connection.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use plait_base::limits::{MAX_ENDPOINT_INBOX_BYTES, MAX_INBOX_BYTES};
use plait_engine::Input;

use crate::sockets::SocketList;

/// Datagrams for which a queue that has become empty keeps room.
const KEPT_PLACES: usize = 256;

/// Bytes that a datagram costs while it waits.
pub(crate) fn cost(input: &Input) -> usize {
    input.size() + size_of::<Input>()
}

/// Gives back the room of a queue after a burst, once it is empty.
pub(super) fn trim(queue: &mut VecDeque<Input>) {
    if queue.is_empty() && queue.capacity() > KEPT_PLACES {
        *queue = VecDeque::with_capacity(KEPT_PLACES);
    }
}

/// What the inboxes of an endpoint may hold together.
#[derive(Debug)]
pub(crate) struct InboxBudget {
    limit: usize,
    held: AtomicUsize,
}

impl Default for InboxBudget {
    fn default() -> Self {
        Self { limit: MAX_ENDPOINT_INBOX_BYTES, held: AtomicUsize::new(0) }
    }
}

impl InboxBudget {
    /// Takes `bytes`; false where they are not left.
    fn take(&self, bytes: usize) -> bool {
        let more = |held: usize| held.checked_add(bytes).filter(|sum| *sum <= self.limit);
        self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// The queue. Its lock is held for moments only, so that the endpoint never waits for a connection's work.
#[derive(Debug)]
pub(crate) struct Inbox {
    contents: Mutex<Contents>,
    budget: Arc<InboxBudget>,
}

#[derive(Debug, Default)]
struct Contents {
    inputs: VecDeque<Input>,
    /// What waits here, and what the driver took and has not told to be absorbed.
    bytes: usize,
    dropped: u64,
    sockets: Option<Arc<SocketList>>,
    driver: Option<Waker>,
}

impl Inbox {
    /// An empty one that shares `budget` with the endpoint's others.
    pub(crate) fn new(budget: Arc<InboxBudget>) -> Self {
        Self { contents: Mutex::default(), budget }
    }

    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Brings a datagram; its connection's driver wakes.
    pub(crate) fn push(&self, input: Input) {
        let mut contents = self.lock();
        let bytes = cost(&input);
        if contents.bytes + bytes > MAX_INBOX_BYTES || !self.budget.take(bytes) {
            contents.dropped += input.datagrams() as u64;
            return;
        }
        contents.bytes += bytes;
        contents.inputs.push_back(input);
        let driver = contents.driver.take();
        drop(contents);
        if let Some(driver) = driver {
            driver.wake();
        }
    }

    /// Tells of a change of the endpoint's sockets.
    pub(crate) fn set_sockets(&self, sockets: Arc<SocketList>) {
        let mut contents = self.lock();
        contents.sockets = Some(sockets);
        if let Some(driver) = contents.driver.take() {
            driver.wake();
        }
    }

    /// Moves all that waits to `into`, which must be empty, and the latest list of sockets if it changed. The driver
    /// is woken by what comes later.
    pub(crate) fn take(&self, into: &mut VecDeque<Input>, driver: &Waker) -> Option<Arc<SocketList>> {
        let mut contents = self.lock();
        std::mem::swap(&mut contents.inputs, into);
        if !contents.driver.as_ref().is_some_and(|kept| kept.will_wake(driver)) {
            contents.driver = Some(driver.clone());
        }
        contents.sockets.take()
    }

    /// Datagrams that cost `bytes` are absorbed.
    pub(crate) fn on_absorbed(&self, bytes: usize) {
        if bytes > 0 {
            self.lock().bytes -= bytes;
            self.budget.give_back(bytes);
        }
    }

    /// Gives back the queue's room where nothing waits.
    pub(crate) fn shrink_to_fit(&self) {
        self.lock().inputs.shrink_to_fit();
    }

    /// The connection takes nothing any more, neither from here nor of what its driver took.
    pub(crate) fn clear(&self) {
        let mut contents = self.lock();
        contents.inputs = VecDeque::new();
        self.budget.give_back(std::mem::take(&mut contents.bytes));
    }

    /// Datagrams dropped because the connection, or the endpoint's connections together, could not keep up.
    pub(crate) fn dropped(&self) -> u64 {
        self.lock().dropped
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests;
