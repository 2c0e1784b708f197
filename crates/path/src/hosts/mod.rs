//! What the two hosts of a connection tell each other of their addresses, and with Multiflow of the flows that use them.

mod announced;
mod flows;
mod learned;
mod scope;

use std::net::SocketAddr;

use plait_base::{PathId, Violation};
use plait_wire::frame::{AddAddress, AddressForm, InterfaceType, PathStatus, RemoveAddress, UniflowInfo, Uniflows};
use plait_wire::{FrameWriter, SentFrame};

use announced::AnnouncedAddresses;
use flows::{PeerFlows, UniflowsReport};
pub use learned::{AddressChange, LearnedAddresses};
pub use scope::AddressScope;

/// What each host of a connection knows of the other's addresses.
#[derive(Clone, Debug)]
pub struct Hosts {
    form: AddressForm,
    scope: AddressScope,
    ours: AnnouncedAddresses,
    /// The addresses that the peer told.
    pub theirs: LearnedAddresses,
    report: UniflowsReport,
    peer_flows: PeerFlows,
}

impl Hosts {
    /// Nothing is known but our address of the handshake; what is told travels in frames of this form.
    pub(crate) fn new(form: AddressForm, scope: AddressScope, first: SocketAddr) -> Self {
        Self {
            form,
            scope,
            ours: AnnouncedAddresses::new(first),
            theirs: LearnedAddresses::new(scope),
            report: UniflowsReport::default(),
            peer_flows: PeerFlows::default(),
        }
    }

    /// These are our addresses now. The peer hears of those that it may ask.
    pub fn set_local(&mut self, addresses: &[SocketAddr]) {
        let told: Vec<SocketAddr> = addresses
            .iter()
            .filter(|address| self.ours.id_of(address).is_some() || self.scope.admits(address))
            .copied()
            .collect();
        if self.ours.set(&told) {
            self.on_flows_changed();
        }
    }

    /// The address of the handshake, once a datagram shows what the system chose.
    pub fn learn_first(&mut self, first: SocketAddr) {
        self.ours.learn_first(first);
    }

    /// Flows are bound to other addresses than before, or came or went: the peer hears of it by UNIFLOWS, where that is
    /// spoken.
    pub fn on_flows_changed(&mut self) {
        if self.form == AddressForm::Multiflow {
            self.report.is_due_again();
        }
    }

    /// ADD_ADDRESS; an address without a port has that of the peer's address in the handshake.
    ///
    /// # Errors
    /// [`Violation::AddressesNotNegotiated`] for a frame of another extension.
    pub fn on_add_address(&mut self, frame: &AddAddress, port: u16) -> Result<AddressChange, Violation> {
        self.check(frame.form)?;
        let address = SocketAddr::new(frame.ip, frame.port.unwrap_or(port));
        Ok(self.theirs.on_added(frame.id, frame.sequence, address))
    }

    /// REMOVE_ADDRESS; the address at which nothing may be sent any more, and the flows of the peer that it used there.
    ///
    /// # Errors
    /// [`Violation::AddressesNotNegotiated`] for a frame of another extension.
    pub fn on_remove_address(&mut self, frame: &RemoveAddress) -> Result<(AddressChange, Vec<PathId>), Violation> {
        self.check(frame.form)?;
        let flows = self.peer_flows.of_address(frame.id).collect();
        Ok((self.theirs.on_removed(frame.id, frame.sequence), flows))
    }

    /// UNIFLOWS: which addresses the peer's flows use, as far as the frame is news.
    pub(crate) fn on_uniflows(&mut self, frame: &Uniflows<'_>) {
        self.peer_flows.on_report(frame);
    }

    fn check(&self, form: AddressForm) -> Result<(), Violation> {
        if form == self.form { Ok(()) } else { Err(Violation::AddressesNotNegotiated) }
    }

    pub(crate) fn wants_frame(&self) -> bool {
        self.ours.wants_frame() || self.report.is_due()
    }

    /// Writes what is due: words on our addresses first, since UNIFLOWS names their ids. `flows` are ours: those that we
    /// receive, and those that we send, each with its address here.
    pub(crate) fn fill(&mut self, flows: &OwnFlows, w: &mut FrameWriter<'_>) {
        let form = self.form;
        for entry in self.ours.due() {
            let (id, sequence) = (u64::from(entry.id), entry.sequence);
            let sent = SentFrame::HostAddress { id: entry.id, sequence };
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
            let named = |(uniflow, address): &(PathId, SocketAddr)| UniflowInfo {
                uniflow: *uniflow,
                address: self.ours.id_of(address).unwrap_or(0),
            };
            let receiving = flows.receiving.iter().map(named);
            self.report.fill(receiving, flows.sending.iter().map(named), w);
        }
    }

    pub(crate) fn on_acked(&mut self, frame: &SentFrame) {
        match *frame {
            SentFrame::HostAddress { id, sequence } => self.ours.on_acked(id, sequence),
            SentFrame::Uniflows(sequence) => self.report.on_acked(sequence),
            _ => {}
        }
    }

    pub(crate) fn on_lost(&mut self, frame: &SentFrame) {
        match *frame {
            SentFrame::HostAddress { id, sequence } => self.ours.on_lost(id, sequence),
            SentFrame::Uniflows(sequence) => self.report.on_lost(sequence),
            _ => {}
        }
    }
}

/// Our flows, each with the address of ours that it uses.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnFlows {
    pub(crate) receiving: Vec<(PathId, SocketAddr)>,
    pub(crate) sending: Vec<(PathId, SocketAddr)>,
}
