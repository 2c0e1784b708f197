//! Opening paths: ours, and those that the peer opens.

use std::net::SocketAddr;
use std::sync::Arc;

use plait_base::{FourTuple, Instant, PathId, Random};
use plait_congestion::ControllerFactory;
use plait_path::table::{OpenError, Pairing};
use plait_path::{HandshakeState, Path, PathAddresses, PathConfig, PathStatus, Validation};

use super::{DEFAULT_MAX_ACK_DELAY, PathControl, PathError};
use crate::config::Switch;
use crate::connection::events::PathEvent;
use crate::connection::receive::Arrival;

impl PathControl {
    /// Makes path 0, on which the handshake goes.
    pub(crate) fn open_first(
        &mut self,
        now: Instant,
        addresses: PathAddresses,
        state: HandshakeState,
        random: &mut Random,
    ) {
        let path = self.make_path(now, PathId::ZERO, addresses, state, random);
        // The slot of path 0 is there from the start and unused.
        let opened = self.table.open(Box::new(path));
        debug_assert!(opened.is_ok());
        self.process_table_events();
    }

    /// Opens a path between two addresses. What rides along with its first challenge leaves at once, and so may copies of what
    /// other paths carry; all other data once the peer has answered. The challenge leaves alone on a uniflow, and for an address that the server named and has not
    /// proven. Clients only.
    pub(crate) fn open(
        &mut self,
        now: Instant,
        tuple: FourTuple,
        status: PathStatus,
        random: &mut Random,
    ) -> Result<PathId, PathError> {
        if self.table.open_slots().count() >= self.settings.max_paths() {
            return Err(PathError::Open(OpenError::OwnLimit));
        }
        if self.is_bound_to(tuple.remote) {
            return Err(PathError::MigrationDisabled);
        }
        if self.table.pairing() == Pairing::Uniflows {
            // Multiflow QUIC has no advice to give with it.
            return self.bind_uniflow(now, tuple, random).map_err(PathError::Open);
        }
        let id = self.table.next_id().map_err(PathError::Open)?;
        let addresses =
            if self.is_hearsay(tuple.remote) { PathAddresses::named(tuple) } else { PathAddresses::opened(tuple) };
        let mut path = self.make_path(now, id, addresses, self.handshake_state(), random);
        path.challenge(now, self.settings.first_validation_times());
        self.table.open(Box::new(path)).map_err(PathError::Open)?;
        if status == PathStatus::Backup {
            self.table.advise(id, status);
        }
        self.on_opened(id, tuple, random);
        Ok(id)
    }

    /// True for an address of which nothing but the peer's word says that it is there: it told it, or prefers it.
    pub(super) fn is_hearsay(&self, remote: SocketAddr) -> bool {
        let is_named = self.plan.is_peer(remote) || self.table.hosts().is_some_and(|hosts| hosts.is_told(remote));
        is_named && Some(remote) != self.plan.first_peer() && !self.table.has_proven_remote(remote)
    }

    /// The peer opens a path with its first packet on it. False where that is not possible now.
    pub(super) fn accept(&mut self, at: &Arrival, random: &mut Random) -> bool {
        if self.table.pairing() == Pairing::Uniflows {
            self.begin_receiving(at, random);
            return true;
        }
        let Arrival { now, path: id, tuple, bytes, .. } = *at;
        // RFC 10069 3.1: an address that another path of the client proved need not be proven again
        let proven = self.table.has_proven(&tuple);
        let validation = if proven { Validation::Validated } else { Validation::Unvalidated };
        let addresses = PathAddresses::new(tuple, validation);
        let mut path = self.make_path(now, id, addresses, self.handshake_state(), random);
        path.on_datagram(&tuple, bytes);
        path.challenge(now, self.settings.first_validation_times());
        if self.table.open(Box::new(path)).is_err() {
            return false;
        }
        self.on_opened(id, tuple, random);
        if proven {
            // No challenge leaves whose response would say so.
            self.on_validated(id);
        } else if self.plan.proven.has(now, &tuple) {
            self.count_as_proven(now, id);
        }
        true
    }

    /// What a path beside path 0 is to know of the handshake, which is complete at least.
    pub(super) fn handshake_state(&self) -> HandshakeState {
        if self.is_confirmed() { HandshakeState::Confirmed } else { HandshakeState::Unconfirmed }
    }

    pub(super) fn on_opened(&mut self, id: PathId, tuple: FourTuple, random: &mut Random) {
        self.process_table_events();
        self.no_path = None;
        self.tell_application(PathEvent::Opened { id, tuple });
        self.tell_state(id);
        self.issue_cids(random);
        self.plan.touch();
    }

    /// A path that has sent nothing, set up from the settings and what is known of the peer.
    pub(super) fn make_path(
        &self,
        now: Instant,
        id: PathId,
        addresses: PathAddresses,
        state: HandshakeState,
        random: &mut Random,
    ) -> Path {
        let mtu = self.settings.mtu();
        let max_ack_delay = self.peer.as_ref().map_or(DEFAULT_MAX_ACK_DELAY, |peer| peer.max_ack_delay);
        let send = self.settings.send(state, max_ack_delay, random);
        let controller = self.controller().build(id, now, u64::from(mtu.initial));
        let spin = self.settings.spin(self.side, random);
        let config = PathConfig { mtu, send, acks: self.settings.acks(), spin };
        let mut path = Path::new(id, now, addresses, controller, config);
        if self.settings.mtu_search == Switch::Off {
            path.stop_mtu_search();
        }
        path.set_pairing(self.table.pairing());
        if let Some(peer) = &self.peer {
            path.on_peer_params(peer.max_udp_payload_bytes, peer.max_ack_delay);
        }
        path
    }

    /// The factory of the controller that a path gets now.
    pub(crate) fn controller(&self) -> &Arc<dyn ControllerFactory> {
        match self.table.is_multipath() {
            true => self.settings.multipath_controller(),
            false => self.settings.controller(),
        }
    }

    /// Gives every open path a new controller of this kind, and those that open later too.
    pub(crate) fn set_controller(&mut self, now: Instant, factory: Arc<dyn ControllerFactory>) {
        for path in self.table.open_paths_mut() {
            let id = path.id();
            path.replace_controller(|max_datagram_bytes| factory.build(id, now, max_datagram_bytes));
        }
        self.settings.set_controller(factory);
    }
}
