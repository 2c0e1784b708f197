//! Datagrams on their way from the endpoint to a connection.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use plait_engine::shared::Input;

use crate::sockets::SocketList;

/// Bytes that may wait for a connection, the places of the queue included; more is dropped, as a full socket buffer would.
const MAX_INBOX_BYTES: usize = 16 << 20;
/// Datagrams for which a queue that has become empty keeps room.
const KEPT_PLACES: usize = 256;

/// Bytes that a datagram costs while it waits.
fn cost(input: &Input) -> usize {
    input.size() + size_of::<Input>()
}

/// Gives back the room of a queue after a burst, once it is empty.
pub(super) fn trim(queue: &mut VecDeque<Input>) {
    if queue.is_empty() && queue.capacity() > KEPT_PLACES {
        *queue = VecDeque::with_capacity(KEPT_PLACES);
    }
}

/// The queue. Its lock is held for moments only, so that the endpoint never waits for a connection's work.
#[derive(Debug, Default)]
pub(crate) struct Inbox(Mutex<Contents>);

#[derive(Debug, Default)]
struct Contents {
    inputs: VecDeque<Input>,
    bytes: usize,
    dropped: u64,
    sockets: Option<Arc<SocketList>>,
    driver: Option<Waker>,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Brings a datagram; its connection's driver wakes.
    pub(crate) fn push(&self, input: Input) {
        let mut contents = self.lock();
        if contents.bytes + cost(&input) > MAX_INBOX_BYTES {
            contents.dropped += 1;
            return;
        }
        contents.bytes += cost(&input);
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
        contents.bytes = 0;
        if !contents.driver.as_ref().is_some_and(|kept| kept.will_wake(driver)) {
            contents.driver = Some(driver.clone());
        }
        contents.sockets.take()
    }

    /// Datagrams dropped because the connection could not keep up.
    pub(crate) fn dropped(&self) -> u64 {
        self.lock().dropped
    }
}
