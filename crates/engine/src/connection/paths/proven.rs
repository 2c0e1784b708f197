//! Addresses that a client proved by attempts at a connection, which it gave up in favour of this one.
//!
//! The attempt's handshake ran between the addresses, and its end, in a Handshake packet, shows that the client received there what
//! the server sent (RFC 9000 8.1). It names this connection, so that nobody but whoever receives there can have it send there. The order in which
//! that close and the first packet of a path come does not matter.

use std::time::Duration;

use plait_base::limits::MAX_PROVEN_ADDRESSES;
use plait_base::{FourTuple, Instant, PathId, Side, Space};
use plait_path::table::Pairing;
use plait_path::{Path, PathIds};
use plait_wire::frame::Close;

use super::{PathControl, PathNews};
use crate::connection::lifecycle::successor_in;
use crate::connection::receive::Arrival;
use crate::io::EndpointEvent;

/// For so long a proven address waits for a path: an attempt ends when another has succeeded, and paths open then (RFC 9000 9.3: seen
/// recently).
const RECENT: Duration = Duration::from_secs(10);

/// Addresses that were proven of late, the newest last.
#[derive(Debug, Default)]
pub(crate) struct ProvenAddresses(Vec<(Instant, FourTuple)>);

impl ProvenAddresses {
    fn note(&mut self, now: Instant, tuple: FourTuple) {
        self.0.retain(|(at, known)| now < *at + RECENT && *known != tuple);
        if self.0.len() >= MAX_PROVEN_ADDRESSES {
            self.0.remove(0);
        }
        self.0.push((now, tuple));
    }

    pub(super) fn has(&self, now: Instant, tuple: &FourTuple) -> bool {
        self.0.iter().any(|(at, known)| now < *at + RECENT && known == tuple)
    }
}

impl PathControl {
    /// The peer closes. A client that gave up this attempt names the connection that goes on in its place; where only somebody who receives
    /// at the address of this one can have said so, that one hears of the address.
    pub(crate) fn on_close(&mut self, at: &Arrival, close: &Close<'_>) {
        let Close::Transport { reason, .. } = close else { return };
        let Some(successor) = successor_in(reason).filter(|_| self.side.is_server() && at.space != Space::Initial)
        else {
            return;
        };
        let is_here = |path: &&Path| path.is_validated() && path.tuple() == at.tuple;
        if let Some(path) = self.table.path(PathId::ZERO).filter(is_here) {
            let event = EndpointEvent::AddressProven { successor, tuple: path.tuple(), at: at.now };
            self.tell(PathNews::Endpoint(event));
        }
    }

    /// This server's client proved that it receives at `tuple.remote`.
    pub(crate) fn on_proven_elsewhere(&mut self, now: Instant, tuple: FourTuple) {
        if self.side.is_client() || self.table.pairing() == Pairing::Uniflows {
            return;
        }
        self.plan.proven.note(now, tuple);
        let waits = |path: &&Path| path.tuple() == tuple && path.awaits_proof(Side::Server);
        let ids: PathIds = self.table.open_paths().filter(waits).map(Path::id).collect();
        ids.into_iter().for_each(|id| self.count_as_proven(now, id));
    }

    /// RFC 10069 3.1-4: the addresses of this path are proven, so it may carry data. Where the answer to its challenge is about to come
    /// nothing is gained by that, and two slow starts at one moment meet in a queue that they may share: the answer is awaited first, for the
    /// shortest probe time-out of the paths that work. The challenge stays after that. It shows that the addresses still are the client's and
    /// that datagrams of 1200 bytes pass (RFC 10069 3.1-6); unanswered it ends the path.
    pub(super) fn count_as_proven(&mut self, now: Instant, id: PathId) {
        let working = self.table.open_paths().filter(|path| path.is_validated());
        let patience = working.map(Path::pto).min().unwrap_or_default();
        if let Some(path) = self.table.path_mut(id) {
            path.on_proven_elsewhere(now, patience);
        }
    }
}
