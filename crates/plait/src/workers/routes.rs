//! Where datagrams of lent paths go: to whoever serves them, and not to their connection.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plait_base::PathId;
use plait_engine::Input;

use crate::connection::Inbox;

/// The inboxes of a connection's lent paths.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    inboxes: Mutex<Vec<(PathId, Arc<Inbox>)>>,
    /// How many there are, so that a connection that lends nothing takes no lock.
    count: AtomicUsize,
}

impl Routes {
    fn lock(&self) -> MutexGuard<'_, Vec<(PathId, Arc<Inbox>)>> {
        self.inboxes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on what comes for the path goes to `inbox`.
    pub(super) fn add(&self, id: PathId, inbox: Arc<Inbox>) {
        let mut inboxes = self.lock();
        inboxes.push((id, inbox));
        self.count.store(inboxes.len(), Ordering::Relaxed);
    }

    /// From now on it goes to the connection again. Nothing is put into the path's inbox after this.
    pub(super) fn remove(&self, id: PathId) {
        let mut inboxes = self.lock();
        inboxes.retain(|(other, _)| *other != id);
        self.count.store(inboxes.len(), Ordering::Relaxed);
    }

    /// Brings a datagram to whoever serves its path; gives it back where nobody does.
    pub(crate) fn post(&self, input: Input) -> Option<Input> {
        if self.count.load(Ordering::Relaxed) == 0 {
            return Some(input);
        }
        let inboxes = self.lock();
        match inboxes.iter().find(|(id, _)| *id == input.path()) {
            Some((_, inbox)) => {
                inbox.push(input);
                None
            }
            None => Some(input),
        }
    }
}
