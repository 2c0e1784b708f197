//! What the two hosts of a connection tell each other of their addresses, and with Multiflow of the flows that use them.

mod announced;
mod flows;
mod learned;
mod reached;
mod scope;

use std::net::SocketAddr;

use plait_base::{PathId, Violation};
use plait_wire::frame::{
    AddAddress, AdditionalAddresses, AddressForm, InterfaceType, List, PathStatus, RemoveAddress, UniflowInfo, Uniflows,
};
use plait_wire::{FrameWriter, SentFrame};

use crate::frame_state::{FrameState, NewestReport};
use announced::AnnouncedAddresses;
use flows::{PeerFlows, fill_uniflows};
use learned::AddressChange;
pub use learned::LearnedAddresses;
use reached::ReachedAddresses;
pub use scope::AddressScope;

/// How hosts tell each other of their addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Telling {
    pub(crate) words: Words,
    pub(crate) tellers: Tellers,
    /// Addresses of ours that the peer keeps.
    pub(crate) kept: usize,
}

/// In whose frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Words {
    /// ADD_ADDRESS and REMOVE_ADDRESS of this form: one word for each change.
    Each(AddressForm),
    /// ADDITIONAL_ADDRESSES: all but the address of the handshake, each time that one of them changes.
    All,
}

/// Which ends tell of their addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tellers {
    Both,
    Us,
    Peer,
}

/// What each host of a connection knows of the other's addresses.
#[derive(Clone, Debug)]
pub struct Hosts {
    telling: Telling,
    scope: AddressScope,
    ours: AnnouncedAddresses,
    /// The addresses that the peer told.
    pub theirs: LearnedAddresses,
    report: NewestReport,
    peer_flows: PeerFlows,
    reached: ReachedAddresses,
}

impl Hosts {
    /// Nothing is known but our address of the handshake.
    pub(crate) fn new(telling: Telling, scope: AddressScope, first: SocketAddr) -> Self {
        Self {
            telling,
            scope,
            ours: AnnouncedAddresses::new(first),
            theirs: LearnedAddresses::new(scope),
            report: NewestReport::default(),
            peer_flows: PeerFlows::default(),
            reached: ReachedAddresses::default(),
        }
    }

    /// These are our addresses now. The peer hears of those that it may ask.
    pub fn set_local(&mut self, addresses: &[SocketAddr]) {
        if self.telling.tellers == Tellers::Peer {
            return;
        }
        let told: Vec<SocketAddr> = addresses
            .iter()
            .filter(|address| self.ours.id_of(address).is_some() || self.scope.admits(address))
            .take(self.telling.kept)
            .copied()
            .collect();
        if !self.ours.set(&told) {
            return;
        }
        match self.telling.words {
            Words::Each(_) => self.on_flows_changed(),
            Words::All => self.report.is_due_again(),
        }
    }

    /// The address of the handshake, once a datagram shows what the system chose.
    pub fn learn_first(&mut self, first: SocketAddr) {
        self.ours.learn_first(first);
    }

    /// Flows are bound to other addresses than before, or came or went: the peer hears of it by UNIFLOWS, where that is
    /// spoken.
    pub fn on_flows_changed(&mut self) {
        if self.telling.words == Words::Each(AddressForm::Multiflow) {
            self.report.is_due_again();
        }
    }

    /// ADD_ADDRESS; an address without a port has that of the peer's address in the handshake. Where the id had another
    /// address before: those at which nothing may be sent any more.
    ///
    /// # Errors
    /// [`Violation::AddressesNotNegotiated`] for a frame of another extension, [`Violation::AddressDirection`] from an end
    /// that may tell nothing.
    pub fn on_add_address(&mut self, frame: &AddAddress, port: u16) -> Result<Vec<SocketAddr>, Violation> {
        self.check(frame.form)?;
        let address = canonical(SocketAddr::new(frame.ip, frame.port.unwrap_or(port)));
        // An id of NAT traversal is used once: what removes it is newer.
        let sequence = if frame.form == AddressForm::NatTraversal { 0 } else { frame.sequence };
        let AddressChange::Removed(before) = self.theirs.on_added(frame.id, sequence, address) else {
            return Ok(Vec::new());
        };
        let mut gone = self.reached.on_removed(frame.id, address);
        gone.push(before);
        gone.retain(|left| *left != address);
        Ok(gone)
    }

    /// REMOVE_ADDRESS in a packet from `from`; the addresses at which nothing may be sent any more: the one that was told, and
    /// where packets showed it to be.
    ///
    /// # Errors
    /// [`Violation::AddressesNotNegotiated`] for a frame of another extension, [`Violation::AddressDirection`] from an end
    /// that may tell nothing.
    pub fn on_remove_address(&mut self, frame: &RemoveAddress, from: SocketAddr) -> Result<Vec<SocketAddr>, Violation> {
        self.check(frame.form)?;
        let sequence = if frame.form == AddressForm::NatTraversal { 1 } else { frame.sequence };
        if !self.theirs.is_news(frame.id, sequence) {
            return Ok(Vec::new());
        }
        let mut gone = self.reached.on_removed(frame.id, from);
        if let AddressChange::Removed(told) = self.theirs.on_removed(frame.id, sequence) {
            gone.push(told);
        }
        Ok(gone)
    }

    /// ADDITIONAL_ADDRESSES: the addresses at which nothing may be sent any more, since the set lacks them.
    ///
    /// # Errors
    /// [`Violation::AddressesNotNegotiated`] where we did not offer the extension, [`Violation::AddressDirection`] from a
    /// client.
    pub fn on_additional_addresses(&mut self, frame: &AdditionalAddresses<'_>) -> Result<Vec<SocketAddr>, Violation> {
        self.check_words(Words::All)?;
        Ok(self.theirs.on_set(frame.sequence, frame.addresses.iter().map(canonical)))
    }

    /// A flow of the peer is heard from an address: the one that it has behind a NAT, where there is one.
    pub fn on_heard(&mut self, flow: PathId, from: SocketAddr) {
        if let Some(id) = self.peer_flows.address_of(flow) {
            self.reached.on_heard(id, from);
        }
    }

    /// Addresses at which the peer may be asked: where its packets showed one to be, else what it calls it.
    pub fn peer_addresses(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        let told = self.theirs.offered_by_id().filter(|(id, _)| self.reached.of(*id).is_none());
        told.map(|(_, address)| address).chain(self.reached.all())
    }

    /// True for an address that the peer told and that may be asked.
    pub fn is_told(&self, address: SocketAddr) -> bool {
        self.theirs.offered().any(|told| told == address)
    }

    /// UNIFLOWS: which addresses the peer's flows use, as far as the frame is news.
    pub(crate) fn on_uniflows(&mut self, frame: &Uniflows<'_>) {
        self.peer_flows.on_report(frame);
    }

    fn check(&self, form: AddressForm) -> Result<(), Violation> {
        self.check_words(Words::Each(form))
    }

    fn check_words(&self, words: Words) -> Result<(), Violation> {
        match self.telling.tellers {
            _ if words != self.telling.words => Err(Violation::AddressesNotNegotiated),
            Tellers::Us => Err(Violation::AddressDirection),
            Tellers::Both | Tellers::Peer => Ok(()),
        }
    }

    /// REACH_OUT: a client wishes to be probed. Nothing is: it opens paths to us by itself, or not at all.
    ///
    /// # Errors
    /// [`Violation::AddressesNotNegotiated`] without NAT traversal, [`Violation::AddressDirection`] from a server.
    pub fn on_reach_out(&self) -> Result<(), Violation> {
        match self.telling.tellers {
            _ if self.telling.words != Words::Each(AddressForm::NatTraversal) => Err(Violation::AddressesNotNegotiated),
            Tellers::Us => Ok(()),
            Tellers::Both | Tellers::Peer => Err(Violation::AddressDirection),
        }
    }

    pub(crate) fn wants_frame(&self) -> bool {
        self.ours.wants_frame() || self.report.is_due()
    }

    /// Writes what is due: words on our addresses first, since UNIFLOWS names their ids. `flows` are ours: those that we
    /// receive, and those that we send, each with its address here.
    pub(crate) fn fill(&mut self, flows: &OwnFlows, w: &mut FrameWriter<'_>) {
        match self.telling.words {
            Words::Each(form) => self.fill_each(form, flows, w),
            Words::All => self.fill_all(w),
        }
    }

    fn fill_all(&mut self, w: &mut FrameWriter<'_>) {
        self.ours.due().for_each(|entry| entry.delivery = FrameState::Idle);
        if !self.report.is_due() {
            return;
        }
        let (mut buf, sequence) = (Vec::new(), self.report.next());
        let addresses = List::of(self.ours.beside_first(), &mut buf);
        let frame = AdditionalAddresses { sequence, addresses };
        let _ = self.report.write(&frame, SentFrame::AdditionalAddresses(sequence), w);
    }

    fn fill_each(&mut self, form: AddressForm, flows: &OwnFlows, w: &mut FrameWriter<'_>) {
        for entry in self.ours.due() {
            let Some((id, sequence)) = entry.number(form) else {
                entry.delivery = FrameState::Idle;
                continue;
            };
            let sent = SentFrame::HostAddress { id: entry.id, sequence: entry.sequence };
            let written = match entry.address {
                None => w.write(&RemoveAddress { form, id, sequence }, sent),
                Some(address) => {
                    let (ip, port, interface) = (address.ip(), Some(address.port()), InterfaceType::Fixed);
                    let status = PathStatus::Available;
                    w.write(&AddAddress { form, id, sequence, ip, port, interface, status, metered: false }, sent)
                }
            };
            if written {
                entry.delivery.on_written();
            }
        }
        if self.report.is_due() {
            // An address that is not known is the one that the system chose for the handshake, as long as that is there.
            let first = self.ours.first_id();
            let named = |&(uniflow, address): &(PathId, SocketAddr)| {
                let address = self.ours.id_of(&address).or(first)?;
                Some(UniflowInfo { uniflow, address })
            };
            let receiving = flows.receiving.iter().filter_map(named);
            fill_uniflows(&mut self.report, receiving, flows.sending.iter().filter_map(named), w);
        }
    }

    pub(crate) fn on_acked(&mut self, frame: &SentFrame) {
        match *frame {
            SentFrame::HostAddress { id, sequence } => self.ours.on_acked(id, sequence),
            SentFrame::Uniflows(sequence) | SentFrame::AdditionalAddresses(sequence) => self.report.on_acked(sequence),
            _ => {}
        }
    }

    pub(crate) fn on_lost(&mut self, frame: &SentFrame) {
        match *frame {
            SentFrame::HostAddress { id, sequence } => self.ours.on_lost(id, sequence),
            SentFrame::Uniflows(sequence) | SentFrame::AdditionalAddresses(sequence) => self.report.on_lost(sequence),
            _ => {}
        }
    }
}

/// An IPv4 address in its own form, also where the peer wrote it as an IPv6 address: both are one.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Our flows, each with the address of ours that it uses.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnFlows {
    pub(crate) receiving: Vec<(PathId, SocketAddr)>,
    pub(crate) sending: Vec<(PathId, SocketAddr)>,
}
