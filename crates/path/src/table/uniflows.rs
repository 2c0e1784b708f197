//! Uniflows: a send flow is bound to addresses, validated and let go again; a receive flow begins with its first packet.
//! Neither asks what the other flow of its number does (Multiflow 4).

use std::net::SocketAddr;
use std::time::Duration;

use plait_base::limits::MAX_HOST_ADDRESSES;
use plait_base::observe::PathState;
use plait_base::{FourTuple, Instant, PathId, Violation};
use plait_congestion::CongestionController;
use plait_wire::FrameWriter;
use plait_wire::frame::{AddressForm, UniflowInfo, Uniflows};
use plait_wire::params::AdditionalAddressesUse;

use super::opening::OpenError;
use super::slot::Binding;
use super::{Negotiated, Pairing, Paths, Slot};
use crate::addresses::{AddressEvent, ChallengeData, PathAddresses, ValidationTimes};
use crate::feedback::Feedback;
use crate::hosts::{AddressScope, Hosts, OwnFlows, Tellers, Telling, Words};
use crate::path::Path;

/// What the hosts tell each other.
impl Paths {
    /// It is known which extension is in effect: with Multiflow the flows of path 0 go their own ways from here on, and
    /// hosts may tell each other of their addresses by it, or of addresses and paths by extensions that both offered beside
    /// RFC 10069.
    pub(super) fn begin_extension(&mut self) {
        let (ours, peers) = (self.config.announcements, self.peer.map(|peer| peer.announcements).unwrap_or_default());
        let both = ours.own.common(peers.own);
        if both.paths && self.extension.credit().is_some() {
            self.reports = Some(Box::default());
        }
        let every = |form| Telling { words: Words::Each(form), tellers: Tellers::Both, kept: MAX_HOST_ADDRESSES };
        let is_client = self.config.side.is_client();
        let by_server = if is_client { Tellers::Peer } else { Tellers::Us };
        // A client alone announces it: a server then tells, if it likes.
        let additional = ours.additional_addresses == AdditionalAddressesUse::Supported
            && (is_client || peers.additional_addresses == AdditionalAddressesUse::Supported);
        let nat_traversal = ours.nat_traversal_addresses.and(peers.nat_traversal_addresses);
        let telling = match (&self.extension, nat_traversal) {
            (Negotiated::Multiflow(_), _) => every(AddressForm::Multiflow),
            (Negotiated::Multipath(_), _) if both.addresses => every(AddressForm::Private),
            (Negotiated::Multipath(_), Some(kept)) => {
                Telling { words: Words::Each(AddressForm::NatTraversal), tellers: by_server, kept: kept.get().into() }
            }
            (Negotiated::Multipath(_) | Negotiated::None, _) if additional => {
                Telling { words: Words::All, tellers: by_server, kept: MAX_HOST_ADDRESSES }
            }
            (Negotiated::Multipath(_) | Negotiated::None, _) => return,
        };
        let (pairing, scope) = (self.pairing(), self.config.address_scope);
        let Some(path) = self.path_mut(PathId::ZERO) else { return };
        let first = path.tuple();
        let mut hosts = Hosts::new(telling, scope, first.local);
        if pairing == Pairing::Uniflows {
            path.set_pairing(pairing);
            path.on_heard_from(&first);
            hosts.on_heard(PathId::ZERO, first.remote);
        }
        self.hosts = Some(Box::new(hosts));
    }

    /// What the hosts tell each other; none where no extension lets them.
    pub fn hosts(&self) -> Option<&Hosts> {
        self.hosts.as_deref()
    }

    /// How far addresses that the peer names must reach.
    pub fn address_scope(&self) -> AddressScope {
        self.config.address_scope
    }

    /// The same, to change.
    pub fn hosts_mut(&mut self) -> Option<&mut Hosts> {
        self.hosts.as_deref_mut()
    }

    /// UNIFLOWS.
    ///
    /// # Errors
    /// [`Violation::MultiflowNotNegotiated`] without Multiflow, [`Violation::UniflowIdAboveLimit`] for a flow that is not
    /// allowed.
    pub fn on_uniflows(&mut self, frame: &Uniflows<'_>) -> Result<(), Violation> {
        let limits = *self.extension.uniflows().ok_or(Violation::MultiflowNotNegotiated)?;
        // What the peer receives is what we send.
        let above = |info: UniflowInfo, max: PathId| info.uniflow > max;
        let is_beyond = frame.receiving.iter().any(|info| above(info, limits.sending_max))
            || frame.sending.iter().any(|info| above(info, limits.receiving_max));
        if is_beyond {
            return Err(Violation::UniflowIdAboveLimit);
        }
        if let Some(hosts) = &mut self.hosts {
            hosts.on_uniflows(frame);
            let heard = self.slots.iter().filter_map(|slot| Some((slot.id, slot.path.as_deref()?.heard_from()?)));
            heard.for_each(|(flow, tuple)| hosts.on_heard(flow, tuple.remote));
        }
        Ok(())
    }

    pub(super) fn fill_hosts(&mut self, w: &mut FrameWriter<'_>) {
        let Some(hosts) = self.hosts.as_mut().filter(|hosts| hosts.wants_frame()) else { return };
        let heard = |slot: &Slot| Some((slot.id, slot.path.as_deref()?.heard_from()?.local));
        let sent = |slot: &Slot| Some((slot.id, slot.path.as_deref().filter(|_| slot.is_open())?.tuple().local));
        let flows = OwnFlows {
            receiving: self.slots.iter().filter_map(heard).collect(),
            sending: self.slots.iter().filter_map(sent).collect(),
        };
        hosts.fill(&flows, w);
    }
}

impl Paths {
    /// The smallest id of a send flow that the peer is ready to receive and that leads nowhere yet, for packets from `local`.
    ///
    /// # Errors
    /// What stands in the way: see [`OpenError`].
    pub fn next_uniflow(&self, local: SocketAddr) -> Result<PathId, OpenError> {
        let Negotiated::Multiflow(limits) = &self.extension else { return Err(OpenError::NotNegotiated) };
        if self.validations() >= self.config.max_validations {
            return Err(OpenError::TooManyValidations);
        }
        // RFC 9000 9.5-1: one that sent from elsewhere goes on with another id
        let sent_elsewhere = |path: &Path| !path.is_fresh() && path.tuple().local != local;
        let has_cid = |slot: &Slot| match slot.path.as_deref().is_some_and(sent_elsewhere) {
            true => slot.remote.has_spare() || slot.remote.is_zero_length(),
            false => slot.remote.held() > 0,
        };
        let is_free = |slot: &&Slot| slot.binding == Binding::Unbound && has_cid(slot);
        let free = self.slots.iter().find(is_free);
        free.map(|slot| slot.id).ok_or(OpenError::NoRemoteCid(limits.sending_max))
    }

    /// The path of an id that had none: a send flow is to be bound, or packets came under an id of ours for the first time,
    /// and then `path` has no addresses to send to.
    pub fn put_path(&mut self, mut path: Box<Path>) {
        path.set_ack_terms(&self.ack_terms());
        if let Some(slot) = self.slot_mut(path.id())
            && slot.path.is_none()
        {
            slot.path = Some(path);
        }
    }

    /// True where nothing was sent or received under the id, so that [`Self::bind`] needs a fresh path for it.
    pub fn lacks_path(&self, id: PathId) -> bool {
        self.slot(id).is_some_and(|slot| slot.path.is_none())
    }

    /// Binds a send flow to addresses: they are asked whether the peer is there, and nothing but that leaves until it
    /// answers. Congestion state begins anew; packet numbers go on (Multiflow 4.3.1). With a fresh connection id where the
    /// peer gave one more, as it did where packets left from elsewhere before: [`Self::next_uniflow`] sees to that.
    pub fn bind(
        &mut self,
        now: Instant,
        id: PathId,
        addresses: PathAddresses,
        times: ValidationTimes,
        controller: impl FnOnce() -> Box<dyn CongestionController>,
    ) {
        let proven = self.has_proven(&addresses.tuple());
        self.change_remote(id, |slot| {
            let Some(path) = slot.path.as_deref_mut() else { return };
            path.bind(now, addresses, controller);
            if proven {
                path.on_address_proven();
            } else {
                path.challenge(now, times);
            }
            slot.binding = Binding::Bound;
            if slot.remote.begin().is_some() && !path.is_fresh() {
                let _ = slot.remote.rotate();
            }
        });
        self.on_pto_changed();
    }

    /// A send flow lets its addresses go: it is UNUSED again, and what is under way counts as lost.
    pub fn unbind(&mut self, now: Instant, id: PathId, feedback: &mut Feedback) {
        let Some(slot) = self.slot_mut(id).filter(|slot| slot.binding == Binding::Bound) else { return };
        slot.binding = Binding::Unbound;
        if let Some(path) = slot.path.as_deref_mut() {
            path.on_closing(now, feedback);
        }
        self.on_pto_changed();
    }

    /// PATH_RESPONSE for whichever send flow asked; what it validated, if anything. It may come by any flow
    /// (Multiflow 4.3.2).
    ///
    /// # Errors
    /// [`Violation::UnsolicitedPathResponse`] where no flow has asked (RFC 9000 19.18).
    pub fn on_uniflow_response(
        &mut self,
        now: Instant,
        data: ChallengeData,
    ) -> Result<Option<(PathId, AddressEvent)>, Violation> {
        let mut has_asked = false;
        for at in 0..self.slots.len() {
            let id = self.slots[at].id;
            match self.on_path_response(now, id, data) {
                Ok(Some(event)) => {
                    self.on_remote_proven(id);
                    return Ok(Some((id, event)));
                }
                Ok(None) => has_asked |= self.slots[at].path.is_some(),
                Err(_) => {}
            }
        }
        if has_asked { Ok(None) } else { Err(Violation::UnsolicitedPathResponse) }
    }

    /// True where the peer proved this address between it and any of ours.
    pub fn has_proven_remote(&self, remote: SocketAddr) -> bool {
        self.open_paths().any(|path| path.addresses.is_validated() && path.tuple().remote == remote)
    }

    /// A flow's address may be proven: then that holds for all flows that lead there.
    fn on_remote_proven(&mut self, id: PathId) {
        let Some(remote) = self.path(id).map(|path| path.tuple().remote).filter(|to| self.has_proven_remote(*to))
        else {
            return;
        };
        for path in self.open_paths_mut().filter(|path| path.tuple().remote == remote) {
            path.on_remote_proven();
        }
    }

    /// PATH_CHALLENGE arrived at `local`: the answer leaves on the send flow that answers soonest, wherever that leads. Where
    /// none works, one from `local` comes first: the peer reaches us there, so we may reach it from there.
    pub fn on_uniflow_challenge(&mut self, local: SocketAddr, data: ChallengeData) {
        let rank = |slot: &&mut Slot| {
            let path = slot.path.as_deref();
            let rtt = path.and_then(|path| path.send.rtt().measured());
            let fails = slot.state() != PathState::Active || path.is_some_and(Path::is_silent);
            let is_elsewhere = fails && path.is_none_or(|path| path.tuple().local != local);
            (fails, is_elsewhere, rtt.unwrap_or(Duration::MAX))
        };
        let open = self.slots_mut().filter(|slot| slot.sendable().is_some());
        if let Some(path) = open.min_by_key(rank).and_then(|slot| slot.path.as_deref_mut()) {
            let tuple = path.tuple();
            path.addresses.on_challenge(&tuple, data);
        }
    }

    /// The send flow that leads back to where the packets under an id come from: where one does, and its round trip is known.
    pub fn way_back(&self, of: &Slot) -> Option<PathId> {
        let tuple = of.path.as_deref()?.heard_from()?;
        let leads_there = |path: &&Path| path.tuple() == tuple && path.send.rtt().measured().is_some();
        self.open_paths().find(leads_there).map(Path::id)
    }

    /// A datagram of `bytes` came from `tuple`: what leaves for there, on whichever flow, has credit for it.
    pub fn on_received_from(&mut self, tuple: &FourTuple, bytes: u64) {
        for path in self.open_paths_mut() {
            if path.addresses.on_received(tuple, bytes).is_some() {
                return;
            }
        }
    }
}
