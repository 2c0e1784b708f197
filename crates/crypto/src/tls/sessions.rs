//! Sessions that a server remembers, so that clients can resume them: in memory that grows with their number.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustls::server::StoresServerSessions;

/// Tickets that TLS draws at random for sessions kept at this end, of so many bytes.
const TICKET_BYTES: usize = 32;

type Ticket = [u8; TICKET_BYTES];

/// The newest sessions, as many as it may keep.
pub(crate) struct Sessions {
    most: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    by_ticket: BTreeMap<Ticket, Box<[u8]>>,
    /// The oldest first.
    order: VecDeque<Ticket>,
}

impl Sessions {
    /// The `most` that come last are kept.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, kept: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StoresServerSessions for Sessions {
    fn put(&self, ticket: Vec<u8>, session: Vec<u8>) -> bool {
        let Ok(ticket) = Ticket::try_from(ticket) else { return false };
        let Kept { by_ticket, order } = &mut *self.lock();
        if by_ticket.insert(ticket, session.into_boxed_slice()).is_none() {
            order.push_back(ticket);
        }
        while order.len() > self.most
            && let Some(oldest) = order.pop_front()
        {
            by_ticket.remove(&oldest);
        }
        true
    }

    fn get(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        self.lock().by_ticket.get(ticket).map(|session| session.to_vec())
    }

    fn take(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let mut kept = self.lock();
        let session = kept.by_ticket.remove(ticket)?;
        kept.order.retain(|kept| kept[..] != *ticket);
        Some(session.into_vec())
    }

    fn can_cache(&self) -> bool {
        true
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").field("most", &self.most).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket(n: u8) -> Vec<u8> {
        vec![n; TICKET_BYTES]
    }

    #[test]
    fn the_newest_are_kept() {
        let sessions = Sessions::new(2);
        assert!(sessions.can_cache());
        (1..=3).for_each(|n| assert!(sessions.put(ticket(n), vec![n, n])));
        assert_eq!([1, 2, 3].map(|n| sessions.get(&ticket(n))), [None, Some(vec![2, 2]), Some(vec![3, 3])]);
        // The same ticket again is no further session.
        assert!(sessions.put(ticket(2), vec![4]));
        assert_eq!((sessions.get(&ticket(2)), sessions.get(&ticket(3))), (Some(vec![4]), Some(vec![3, 3])));
    }

    #[test]
    fn a_session_is_taken_once_and_makes_room() {
        let sessions = Sessions::new(2);
        (1..=2).for_each(|n| assert!(sessions.put(ticket(n), vec![n])));
        assert_eq!((sessions.take(&ticket(1)), sessions.take(&ticket(1))), (Some(vec![1]), None));
        assert!(sessions.put(ticket(3), vec![3]));
        assert_eq!([2, 3].map(|n| sessions.get(&ticket(n))), [Some(vec![2]), Some(vec![3])]);
        assert_eq!((sessions.get(&[2]), sessions.take(&[]), sessions.put(vec![1], vec![1])), (None, None, false));
    }
}
