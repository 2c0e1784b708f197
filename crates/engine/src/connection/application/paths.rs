//! Paths, as applications and the runtime ask for them.

use std::net::{IpAddr, SocketAddr};

use plait_base::observe::PeerReport;
use plait_base::{CloseCode, FourTuple, Instant, PathId};
use plait_path::table::{AbandonError, Pairing};
use plait_path::{PathStatus, PathTotals};

use crate::connection::Connection;
use crate::connection::lifecycle::Closed;
use crate::connection::paths::{PathControl, PathError};

/// A look at the paths of a connection; [`Connection`] has the calls that change them.
#[derive(Clone, Copy)]
pub struct ConnectionPaths<'a> {
    paths: &'a PathControl,
}

impl<'a> ConnectionPaths<'a> {
    /// Ids of the open paths, ascending.
    pub fn ids(self) -> Vec<PathId> {
        self.paths.table.open_slots().map(|slot| slot.id).collect()
    }

    /// Ids of all paths that still have state, ascending: open and closing ones.
    pub fn ids_with_closing(self) -> Vec<PathId> {
        self.paths.table.slots().filter(|slot| slot.is_opened()).map(|slot| slot.id).collect()
    }

    /// True once Multiflow is in effect: the flows of each direction have addresses of their own.
    pub fn is_multiflow(self) -> bool {
        self.paths.table.pairing() == Pairing::Uniflows
    }

    /// What all paths did so far, those that are gone included. No figure ever decreases.
    pub fn totals(self) -> PathTotals {
        self.paths.table.totals()
    }

    /// How a path does for the peer, as it told last; none where the two do not tell each other.
    pub fn peer_report(self, id: PathId) -> Option<PeerReport> {
        self.paths.table.slot(id)?.peer_report()
    }

    /// The addresses that the path policy knows of ours.
    pub fn local_addresses(self) -> &'a [SocketAddr] {
        self.paths.local_addresses()
    }

    /// The pairs of addresses that datagrams may leave by: those of each path, and those that are being validated.
    pub fn tuples(self) -> impl Iterator<Item = FourTuple> {
        let slots = self.paths.table.slots();
        let lent = slots.clone().filter(|slot| slot.is_lent()).filter_map(|slot| slot.tuple());
        slots.filter_map(|slot| slot.path.as_deref()).flat_map(|path| path.tuples()).chain(lent)
    }
}

impl From<Closed> for PathError {
    fn from(_: Closed) -> Self {
        Self::Closed
    }
}

impl Connection {
    /// Its paths, to look at.
    pub fn paths(&self) -> ConnectionPaths<'_> {
        ConnectionPaths { paths: &self.paths }
    }

    /// Opens a path between two addresses (clients only). It carries data from its first packet on.
    ///
    /// # Errors
    /// See [`PathError`]. A path that lacks the peer's connection ids may be tried again after a round trip.
    pub fn open_path(&mut self, now: Instant, tuple: FourTuple, status: PathStatus) -> Result<PathId, PathError> {
        self.lifecycle.check_open()?;
        let opened = self.paths.open(now, tuple, status, &mut self.random);
        self.on_path_news(now);
        opened
    }

    /// Gives a path up. PATH_ABANDON tells the peer `code`, one of the transport's such as
    /// [`CloseCode::APPLICATION_ABANDON_PATH`] (RFC 10069 4.2.1), at most 2^62 - 1.
    ///
    /// # Errors
    /// There is no such path, or multipath is not in effect.
    pub fn close_path(&mut self, now: Instant, id: PathId, code: CloseCode) -> Result<(), PathError> {
        self.lifecycle.check_open()?;
        let code = CloseCode(code.0.min(plait_base::units::VARINT_MAX));
        let abandoned = self.paths.abandon(now, id, code, &mut self.random);
        self.on_path_news(now);
        abandoned.map_err(|error| match error {
            AbandonError::NotNegotiated => PathError::NotMultipath,
            AbandonError::NoPath | AbandonError::Closing => PathError::NoPath,
        })
    }

    /// Tells the peer how this path is to be used.
    ///
    /// # Errors
    /// There is no such open path, or multipath is not in effect.
    pub fn set_path_status(&mut self, now: Instant, id: PathId, status: PathStatus) -> Result<(), PathError> {
        self.lifecycle.check_open()?;
        let set = self.paths.set_status(id, status);
        self.on_path_news(now);
        set
    }

    /// Moves a path to other addresses of ours: challenges the peer from them and goes there once it responds (RFC 9000 9.2).
    ///
    /// # Errors
    /// There is no such open path, or no spare connection id for the new addresses; the handshake is not confirmed, or
    /// the server wants no client to move at this address of it.
    pub fn migrate_path(&mut self, now: Instant, id: PathId, tuple: FourTuple) -> Result<(), PathError> {
        self.lifecycle.check_open()?;
        let outcome = self.paths.begin_migration(now, id, tuple);
        self.on_path_news(now);
        outcome
    }

    /// The addresses to send from changed: the path policy of a client opens and ends paths accordingly. A path whose address is
    /// not among them moves to one that is, unless the policy opens paths itself. Where the server gave no spare connection id
    /// for that path it waits for one (RFC 9000 9.5).
    pub fn set_local_addresses(&mut self, now: Instant, addresses: &[SocketAddr]) {
        self.paths.set_local_addresses(addresses);
        self.maintain_paths(now);
    }

    /// The IP addresses that this machine has, as far as the system tells. A path from an unspecified address or from a
    /// socket that is bound to none leaves by another of them when its own is gone.
    pub fn set_machine_addresses(&mut self, now: Instant, addresses: &[IpAddr]) {
        self.paths.set_machine_addresses(addresses);
        self.maintain_paths(now);
    }

    /// The network around us may have changed: all paths are asked at once whether they still work, and a client whose
    /// address the operating system chooses takes a fresh connection id for what may be another (RFC 9000 9.5), or stays at the
    /// one that it has until the server gives such an id.
    pub fn handle_network_change(&mut self, now: Instant) {
        self.paths.on_network_change(now);
        self.on_path_news(now);
    }

    /// The system refused a datagram of `bytes` that was to leave on `tuple`, as larger than the interface takes
    /// (EMSGSIZE). What it carried leaves again in smaller ones; that says nothing of congestion. Without effect at 1200
    /// bytes and below: an interface that refuses those carries no QUIC (RFC 9000 14).
    pub fn on_too_large(&mut self, now: Instant, tuple: FourTuple, bytes: usize) {
        self.paths.on_too_large(now, tuple, u16::try_from(bytes).unwrap_or(u16::MAX));
        self.on_path_news(now);
    }

    /// Tries no larger datagrams from now on, on any path: where the system may fragment them, a probe that arrives proves
    /// nothing (RFC 9000 14).
    pub fn stop_mtu_search(&mut self) {
        self.paths.stop_mtu_search();
        self.scheduling.views.expire();
    }

    /// Sees after the paths once more, since something changed.
    pub(crate) fn maintain_paths(&mut self, now: Instant) {
        if self.lifecycle.is_open() {
            self.paths.maintain(now, &mut self.random);
            self.on_path_news(now);
        }
    }
}
