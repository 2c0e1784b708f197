//! Where datagrams of lent paths go: to whoever serves them, and not to their connection.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plait_base::PathId;
use plait_engine::Input;

use super::tally::WorkerTally;
use crate::connection::Inbox;

/// Paths that are not lent of which it is remembered where their datagrams arrive, at most.
const MAX_ARRIVALS: usize = 64;

/// The inboxes of a connection's lent paths, and where datagrams of the others arrive.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    table: Mutex<RouteTable>,
    /// How many are lent, so that a connection that lends nothing takes no lock.
    count: AtomicUsize,
}

#[derive(Debug, Default)]
struct RouteTable {
    lent: Vec<Route>,
    /// The thread whose socket brought the last datagram of a path; the latest last.
    arrivals: Vec<(PathId, usize)>,
}

/// Whoever serves a lent path.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) id: PathId,
    pub(super) inbox: Arc<Inbox>,
    /// The thread, and what it did.
    pub(super) thread: usize,
    pub(super) tally: Arc<WorkerTally>,
}

impl RouteTable {
    fn on_arrival(&mut self, id: PathId, thread: usize) {
        if let Some(known) = self.arrivals.iter_mut().find(|(other, _)| *other == id) {
            known.1 = thread;
            return;
        }
        if self.arrivals.len() >= MAX_ARRIVALS {
            self.arrivals.remove(0);
        }
        self.arrivals.push((id, thread));
    }
}

impl Routes {
    fn lock(&self) -> MutexGuard<'_, RouteTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on what comes for a path goes that way.
    pub(super) fn add(&self, route: Route) {
        let mut table = self.lock();
        table.lent.push(route);
        self.count.store(table.lent.len(), Ordering::Relaxed);
    }

    /// From now on it goes to the connection again. Nothing is put into the path's inbox after this.
    pub(super) fn remove(&self, id: PathId) {
        let mut table = self.lock();
        table.lent.retain(|route| route.id != id);
        self.count.store(table.lent.len(), Ordering::Relaxed);
    }

    /// The thread whose socket brought the last datagram of a path, as long as that was not lent.
    pub(super) fn arrived_at(&self, id: PathId) -> Option<usize> {
        self.lock().arrivals.iter().find(|(other, _)| *other == id).map(|(_, thread)| *thread)
    }

    /// Brings a datagram to whoever serves its path; gives it back where nobody does. `thread` is the one whose socket
    /// brought it.
    pub(crate) fn post(&self, thread: Option<usize>, input: Input) -> Option<Input> {
        if thread.is_none() && self.count.load(Ordering::Relaxed) == 0 {
            return Some(input);
        }
        let mut table = self.lock();
        let Some(route) = table.lent.iter().find(|route| route.id == input.path()) else {
            if let Some(thread) = thread {
                table.on_arrival(input.path(), thread);
            }
            return Some(input);
        };
        if thread.is_some_and(|thread| thread != route.thread) {
            route.tally.on_handed_over(input.datagrams());
        }
        route.inbox.push(input);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_remembered_where_a_path_arrives_for_so_many_paths_and_no_more() {
        let mut table = RouteTable::default();
        for id in 0..3 * MAX_ARRIVALS as u32 {
            table.on_arrival(PathId(id), 0);
            table.on_arrival(PathId(id), id as usize % 3);
        }
        assert_eq!(table.arrivals.len(), MAX_ARRIVALS);
        let routes = Routes { table: Mutex::new(table), count: AtomicUsize::new(0) };
        let last = 3 * MAX_ARRIVALS as u32 - 1;
        assert_eq!((routes.arrived_at(PathId(0)), routes.arrived_at(PathId(last))), (None, Some(last as usize % 3)));
    }
}
