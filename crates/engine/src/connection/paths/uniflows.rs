//! Uniflows (Multiflow QUIC): send flows are bound to pairs of addresses and let them go, receive flows begin with their
//! first packet, and where the peer's packets come from is one more address at which it may be reached.

use std::net::SocketAddr;

use plait_base::observe::PathState;
use plait_base::{CloseCode, FourTuple, Instant, PathId, Random, Violation};
use plait_path::policy::AddressUse;
use plait_path::table::{AbandonError, OpenError, Pairing};
use plait_path::{Path, PathAddresses, Validation};

use plait_wire::frame::{AddAddress, AdditionalAddresses, AddressForm, RemoveAddress, Uniflows};

use super::PathControl;
use crate::connection::receive::Arrival;

/// The first datagram from addresses of the peer, which came before any flow was bound to them.
#[derive(Clone, Copy, Debug)]
pub(super) struct FirstHeard {
    tuple: FourTuple,
    bytes: u64,
}

impl PathControl {
    /// Binds the next free send flow to a pair of addresses.
    pub(super) fn bind_uniflow(
        &mut self,
        now: Instant,
        tuple: FourTuple,
        random: &mut Random,
    ) -> Result<PathId, OpenError> {
        let id = self.table.next_uniflow(tuple.local)?;
        let addresses = self.uniflow_addresses(tuple);
        if self.table.lacks_path(id) {
            let path = self.make_path(now, id, addresses.clone(), self.handshake_state(), random);
            self.table.put_path(Box::new(path));
        }
        let times = self.settings.first_validation_times();
        let (factory, mtu) = (self.controller().clone(), self.settings.mtu().initial);
        self.table.bind(now, id, addresses, times, || factory.build(id, now, u64::from(mtu)));
        self.on_opened(id, tuple, random);
        self.on_flows_changed();
        Ok(id)
    }

    /// Addresses of a send flow. Where nothing but packets says that the peer is there, anybody may be: no more than three
    /// times what came goes back before it answers (RFC 9000 8, 21.5.5).
    fn uniflow_addresses(&self, tuple: FourTuple) -> PathAddresses {
        if self.is_hearsay(tuple.remote) {
            return PathAddresses::named(tuple);
        }
        let told =
            self.plan.is_peer(tuple.remote) || self.table.hosts().is_some_and(|hosts| hosts.is_told(tuple.remote));
        if told || self.table.has_proven_remote(tuple.remote) {
            return PathAddresses::opened(tuple);
        }
        let mut addresses = PathAddresses::new(tuple, Validation::Unvalidated);
        if let Some(first) = self.first_heard.as_deref().filter(|first| first.tuple == tuple) {
            addresses.credit(first.bytes);
        }
        addresses
    }

    /// A send flow lets its addresses go.
    pub(super) fn unbind_uniflow(
        &mut self,
        now: Instant,
        id: PathId,
        code: CloseCode,
        random: &mut Random,
    ) -> Result<(), AbandonError> {
        if !self.table.slot(id).is_some_and(|slot| slot.is_open()) {
            return Err(AbandonError::NoPath);
        }
        self.table.unbind(now, id, &mut self.feedback);
        self.on_sending_ended(now, id, code, PathState::Unused);
        self.on_flows_changed();
        self.issue_cids(random);
        self.check_last_path(now, None);
        Ok(())
    }

    /// The first packet under an id of ours: the peer sends on one more flow.
    pub(super) fn begin_receiving(&mut self, at: &Arrival, random: &mut Random) {
        let nowhere = PathAddresses::new(at.tuple, Validation::Unvalidated);
        let path = self.make_path(at.now, at.path, nowhere, self.handshake_state(), random);
        self.table.put_path(Box::new(path));
        self.tell_state(at.path);
    }

    /// The newest packet of a flow of the peer says from where it sends now: it may be reached there too (Multiflow 4.3.2).
    pub(super) fn on_heard_from(&mut self, at: &Arrival) {
        let is_news = self.table.path_mut(at.path).is_some_and(|path| path.on_heard_from(&at.tuple));
        if is_news {
            self.first_heard = Some(Box::new(FirstHeard { tuple: at.tuple, bytes: at.bytes }));
            if let Some(hosts) = self.table.hosts_mut() {
                hosts.on_heard(at.path, at.tuple.remote);
            }
            self.on_flows_changed();
            self.update_peer_addresses();
        }
    }

    pub(super) fn on_flows_changed(&mut self) {
        if let Some(hosts) = self.table.hosts_mut() {
            hosts.on_flows_changed();
        }
    }

    /// Where the peer may be reached, as far as its packets show and it told.
    pub(super) fn update_peer_addresses(&mut self) {
        let heard = self.table.slots().filter_map(|slot| slot.path.as_deref()?.heard_from());
        let told = self.table.hosts().into_iter().flat_map(|hosts| hosts.peer_addresses());
        self.plan.set_heard(heard.map(|tuple| tuple.remote).chain(told));
    }

    /// Lets the path policy see the addresses that the peer told, at the pace at which they may be asked.
    pub(super) fn offer_peer_addresses(&mut self, now: Instant) {
        if self.table.hosts_mut().is_some_and(|hosts| hosts.theirs.offer(now)) {
            self.update_peer_addresses();
        }
    }

    /// Tells the peer our addresses, where an extension lets us.
    pub(super) fn announce_addresses(&mut self) {
        let local = self.plan.concrete_local();
        let first = self.table.path(PathId::ZERO).map(|path| path.tuple().local);
        let Some(hosts) = self.table.hosts_mut() else { return };
        first.into_iter().for_each(|first| hosts.learn_first(first));
        if !local.is_empty() {
            hosts.set_local(&local);
        }
    }

    pub(crate) fn on_add_address(
        &mut self,
        now: Instant,
        frame: &AddAddress,
        random: &mut Random,
    ) -> Result<(), Violation> {
        let port = self.plan.first_peer().map_or(0, |first| first.port());
        let hosts = self.table.hosts_mut().ok_or(not_negotiated(frame.form))?;
        let gone = hosts.on_add_address(frame, port)?;
        gone.into_iter().for_each(|address| self.stop_sending_to(now, address, random));
        Ok(())
    }

    pub(crate) fn on_remove_address(
        &mut self,
        at: &Arrival,
        frame: &RemoveAddress,
        random: &mut Random,
    ) -> Result<(), Violation> {
        let hosts = self.table.hosts_mut().ok_or(not_negotiated(frame.form))?;
        let gone = hosts.on_remove_address(frame, at.tuple.remote)?;
        for slot in self.table.slots_mut() {
            if let Some(path) = slot.path.as_deref_mut().filter(|path| path.is_heard_from_any(&gone)) {
                path.forget_heard_from();
            }
        }
        gone.into_iter().for_each(|address| self.stop_sending_to(at.now, address, random));
        Ok(())
    }

    /// ADDITIONAL_ADDRESSES: the path policy may open paths to those that are new; those that are gone lose theirs.
    pub(crate) fn on_additional_addresses(
        &mut self,
        now: Instant,
        frame: &AdditionalAddresses<'_>,
        random: &mut Random,
    ) -> Result<(), Violation> {
        let hosts = self.table.hosts_mut().ok_or(Violation::AddressesNotNegotiated)?;
        let gone = hosts.on_additional_addresses(frame)?;
        gone.into_iter().for_each(|address| self.stop_sending_to(now, address, random));
        Ok(())
    }

    /// UNIFLOWS: where the addresses are that the peer's flows use.
    pub(crate) fn on_uniflows(&mut self, frame: &Uniflows<'_>) -> Result<(), Violation> {
        self.table.on_uniflows(frame)?;
        self.update_peer_addresses();
        Ok(())
    }

    /// A server knows its client by the packets alone: a NAT may take the address of the handshake away.
    pub(super) fn begin_uniflows(&mut self) {
        if self.table.pairing() == Pairing::Uniflows && self.side.is_server() {
            self.plan.forget_peers();
            self.update_peer_addresses();
        }
    }

    /// The peer has left an address: flows that lead there let it go (Multiflow 5.5), paths that lead there end.
    fn stop_sending_to(&mut self, now: Instant, address: SocketAddr, random: &mut Random) {
        let there: Vec<PathId> =
            self.table.open_paths().filter(|path| path.tuple().remote == address).map(Path::id).collect();
        for id in there {
            let _ = self.abandon(now, id, CloseCode::PATH_UNSTABLE_OR_POOR, random);
        }
        self.update_peer_addresses();
    }

    /// No send flow is free for a new pair of addresses: one that failed, at an address from which nothing comes any more,
    /// is let go for it.
    pub(super) fn let_go_failed(&mut self, now: Instant, random: &mut Random) -> bool {
        if self.table.pairing() == Pairing::Paths || self.plan.address_use() == AddressUse::LeavesPaths {
            return false;
        }
        let is_stale = |path: &&Path| path.is_failed() && !self.plan.knows_peer(path.tuple().remote);
        let Some(id) = self.table.open_paths().find(is_stale).map(Path::id) else { return false };
        self.unbind_uniflow(now, id, CloseCode::PATH_UNSTABLE_OR_POOR, random).is_ok()
    }
}

/// What a frame about addresses breaks where nothing lets hosts speak of them.
fn not_negotiated(form: AddressForm) -> Violation {
    match form {
        AddressForm::Multiflow => Violation::MultiflowNotNegotiated,
        AddressForm::Private | AddressForm::NatTraversal => Violation::AddressesNotNegotiated,
    }
}
