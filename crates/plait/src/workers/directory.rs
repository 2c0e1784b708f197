//! Connections by their ids, for a thread that reads a socket: found without the endpoint's lock.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::BytesMut;
use plait_base::{ConnectionId, Ecn, FourTuple, Instant, PathId};
use plait_engine::endpoint::KnownIds;
use plait_engine::{ConnectionHandle, EndpointEvent, Input};
use rustc_hash::FxHashMap;

use crate::connection::Shared;

/// The connections whose datagrams are to arrive at one thread.
///
/// Its lock is taken by that thread for what arrives, and by the connections, of which most live on the same thread, when an id comes
/// or goes. Who holds it may take the endpoint's lock, and not the other way round.
#[derive(Debug)]
pub(crate) struct Directory {
    entries: Mutex<Entries>,
}

/// What a directory holds.
#[derive(Debug)]
pub(crate) struct Entries {
    ids: KnownIds,
    connections: FxHashMap<ConnectionHandle, Arc<Shared>>,
}

impl Directory {
    /// Nobody's yet, of an endpoint whose ids have `cid_len` bytes.
    pub(super) fn new(cid_len: usize) -> Self {
        Self { entries: Mutex::new(Entries { ids: KnownIds::new(cid_len), connections: FxHashMap::default() }) }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    /// Datagrams with this id are a connection's from now on.
    pub(super) fn enter(
        &mut self,
        (handle, shared): (ConnectionHandle, &Arc<Shared>),
        (cid, path): (ConnectionId, PathId),
    ) {
        self.connections.entry(handle).or_insert_with(|| shared.clone());
        self.ids.register(handle, cid, path);
    }

    /// An id of a connection is nobody's any more.
    pub(super) fn retire(&mut self, handle: ConnectionHandle, cid: ConnectionId) {
        self.ids.on_connection_event(handle, EndpointEvent::Retire { cid });
    }

    /// A connection is over. Told before the endpoint is, which may give its handle to another then.
    pub(super) fn forget(&mut self, handle: ConnectionHandle) {
        self.ids.forget(handle);
        self.connections.remove(&handle);
    }

    /// How many connections are known.
    #[cfg(test)]
    pub(super) fn connections(&self) -> usize {
        self.connections.len()
    }

    /// The connection, path and datagrams at the front of a train; none where they are not known here.
    pub(crate) fn receive_front(
        &self,
        now: Instant,
        (tuple, ecn): (FourTuple, Option<Ecn>),
        train: &mut BytesMut,
        segment_bytes: usize,
    ) -> Option<(ConnectionHandle, Input, &Arc<Shared>)> {
        let (handle, input) = self.ids.receive_front(now, tuple, ecn, train, segment_bytes)?;
        Some((handle, input, self.connections.get(&handle)?))
    }
}
