//! Our addresses as the peer is told of them: each has an id, and each word on it a number.

use std::net::SocketAddr;

use plait_base::limits::MAX_HOST_ADDRESSES;
use plait_wire::frame::AddressForm;

use crate::frame_state::FrameState;

/// One address id of ours.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Announced {
    /// 0 to 255.
    pub(crate) id: u8,
    /// Number of the newest word on it.
    pub(crate) sequence: u64,
    /// None once it is gone.
    pub(crate) address: Option<SocketAddr>,
    pub(crate) delivery: FrameState,
}

/// Our addresses, at most [`MAX_HOST_ADDRESSES`]. Id 0 is that of the handshake, of which the peer knows without a word.
#[derive(Clone, Debug)]
pub(crate) struct AnnouncedAddresses {
    entries: Vec<Announced>,
}

impl AnnouncedAddresses {
    /// Nothing but the address of the handshake.
    pub(crate) fn new(first: SocketAddr) -> Self {
        let known = Announced { id: 0, sequence: 0, address: Some(first), delivery: FrameState::Idle };
        Self { entries: vec![known] }
    }

    /// The address of the handshake, once a datagram shows what the system chose.
    pub(crate) fn learn_first(&mut self, first: SocketAddr) {
        if let Some(entry) = self.entries.first_mut().filter(|entry| entry.sequence == 0) {
            entry.address = Some(first);
        }
    }

    /// These are our addresses now; true where the peer is to hear of a change.
    pub(crate) fn set(&mut self, addresses: &[SocketAddr]) -> bool {
        let mut changed = false;
        for entry in &mut self.entries {
            if entry.address.is_some_and(|address| !addresses.contains(&address)) {
                entry.say(None);
                changed = true;
            }
        }
        for &address in addresses {
            if self.id_of(&address).is_none() && self.add(address) {
                changed = true;
            }
        }
        changed
    }

    fn add(&mut self, address: SocketAddr) -> bool {
        // An id that was removed is taken again only once the peer knows of its removal.
        let is_free = |entry: &&mut Announced| entry.address.is_none() && entry.delivery == FrameState::Idle;
        if let Some(entry) = self.entries.iter_mut().find(is_free) {
            entry.say(Some(address));
            return true;
        }
        if self.entries.len() >= MAX_HOST_ADDRESSES {
            return false;
        }
        let id = self.entries.len() as u8;
        self.entries.push(Announced { id, sequence: 0, address: Some(address), delivery: FrameState::Due });
        true
    }

    /// The id of an address of ours that is not gone.
    pub(crate) fn id_of(&self, address: &SocketAddr) -> Option<u8> {
        self.entries.iter().find(|entry| entry.address == Some(*address)).map(|entry| entry.id)
    }

    /// The id of the address of the handshake, as long as it is not gone.
    pub(crate) fn first_id(&self) -> Option<u8> {
        self.entries.first().filter(|entry| entry.address.is_some()).map(|entry| entry.id)
    }

    /// Our addresses but the one of the handshake.
    pub(crate) fn beside_first(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        let is_first = |entry: &&Announced| entry.id == 0 && entry.sequence == 0;
        self.entries.iter().filter(move |entry| !is_first(entry)).filter_map(|entry| entry.address)
    }

    pub(crate) fn due(&mut self) -> impl Iterator<Item = &mut Announced> {
        self.entries.iter_mut().filter(|entry| entry.delivery.is_due())
    }

    pub(crate) fn wants_frame(&self) -> bool {
        self.entries.iter().any(|entry| entry.delivery.is_due())
    }

    /// The newest word on an id arrived, or was lost; an older one is of no interest (the newest alone is repeated).
    fn newest(&mut self, id: u8, sequence: u64) -> Option<&mut Announced> {
        self.entries.iter_mut().find(|entry| entry.id == id && entry.sequence == sequence)
    }

    pub(crate) fn on_acked(&mut self, id: u8, sequence: u64) {
        if let Some(entry) = self.newest(id, sequence) {
            entry.delivery = FrameState::Idle;
        }
    }

    pub(crate) fn on_lost(&mut self, id: u8, sequence: u64) {
        if let Some(entry) = self.newest(id, sequence) {
            entry.delivery.on_lost();
        }
    }
}

impl Announced {
    /// The id and the number of its newest word in frames of this form. NAT traversal numbers each address anew, and never
    /// hears of that of the handshake; its frames have no number beside the id.
    pub(super) fn number(&self, form: AddressForm) -> Option<(u64, u64)> {
        let id = u64::from(self.id);
        if form != AddressForm::NatTraversal {
            return Some((id, self.sequence));
        }
        // An address and its removal are two words.
        let turn = self.sequence / 2;
        (id > 0 || turn > 0).then_some((id + turn * MAX_HOST_ADDRESSES as u64, 0))
    }

    fn say(&mut self, address: Option<SocketAddr>) {
        self.address = address;
        self.sequence += 1;
        self.delivery = FrameState::Due;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(n: u8) -> SocketAddr {
        ([192, 0, 2, n], 1000).into()
    }

    fn said(announced: &mut AnnouncedAddresses) -> Vec<(u8, u64, Option<SocketAddr>)> {
        let said = |entry: &mut Announced| {
            entry.delivery.on_written();
            (entry.id, entry.sequence, entry.address)
        };
        announced.due().map(said).collect()
    }

    #[test]
    fn changes_are_told_once_and_the_newest_word_is_repeated() {
        let mut announced = AnnouncedAddresses::new(address(0));
        assert!(!announced.set(&[address(0)]), "the handshake told of it");
        assert!(announced.set(&[address(0), address(1)]));
        assert_eq!(said(&mut announced), [(1, 0, Some(address(1)))]);
        assert!(announced.set(&[address(1)]));
        assert_eq!(said(&mut announced), [(0, 1, None)]);
        announced.on_lost(0, 0);
        assert!(!announced.wants_frame(), "an older word than the newest");
        announced.on_lost(0, 1);
        assert_eq!(said(&mut announced), [(0, 1, None)]);
        // the id is taken again only when its removal is known
        assert!(announced.set(&[address(1), address(2)]));
        assert_eq!(said(&mut announced), [(2, 0, Some(address(2)))]);
        announced.on_acked(0, 1);
        assert!(announced.set(&[address(1), address(2), address(0)]));
        assert_eq!(said(&mut announced), [(0, 2, Some(address(0)))]);
        assert_eq!((announced.id_of(&address(2)), announced.id_of(&address(9))), (Some(2), None));
    }

    #[test]
    fn nat_traversal_uses_a_number_once() {
        let number = |id, sequence| {
            let entry = Announced { id, sequence, address: None, delivery: FrameState::Due };
            entry.number(AddressForm::NatTraversal).map(|(number, _)| number)
        };
        assert_eq!([0, 1, 2, 3, 4].map(|n| number(0, n)), [None, None, Some(32), Some(32), Some(64)]);
        assert_eq!([0, 1, 2, 3, 4].map(|n| number(7, n)), [7, 7, 39, 39, 71].map(Some));
    }

    #[test]
    fn ids_are_bounded() {
        let mut announced = AnnouncedAddresses::new(address(0));
        let all: Vec<SocketAddr> = (0..100).map(address).collect();
        assert!(announced.set(&all));
        assert_eq!(announced.entries.len(), MAX_HOST_ADDRESSES);
    }
}
