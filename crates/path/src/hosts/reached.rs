//! Where the peer's addresses are reached, as its packets show: behind a NAT that is not what its host calls them.

use std::net::SocketAddr;

use plait_base::limits::MAX_HOST_ADDRESSES;

/// One address id of the peer.
#[derive(Clone, Copy, Debug)]
struct Reached {
    id: u64,
    at: SocketAddr,
    /// Where it was reached before. Either it moved, or a flow left it and the peer has not said so yet.
    before: Option<SocketAddr>,
}

/// Addresses at which packets of the peer's flows came in, by the id that UNIFLOWS gives; at most [`MAX_HOST_ADDRESSES`].
#[derive(Clone, Debug, Default)]
pub(super) struct ReachedAddresses {
    entries: Vec<Reached>,
}

impl ReachedAddresses {
    /// A flow that leaves from this address of the peer is heard from `from`.
    pub(super) fn on_heard(&mut self, id: u64, from: SocketAddr) {
        // Packets came in under the id that the flow had before its host told of the new one.
        self.entries.retain_mut(|entry| entry.id == id || entry.at != from || entry.step_back());
        let has_room = self.entries.len() < MAX_HOST_ADDRESSES;
        match self.entries.iter_mut().find(|entry| entry.id == id) {
            Some(entry) if entry.at == from => {}
            Some(entry) => entry.before = Some(std::mem::replace(&mut entry.at, from)),
            None if has_room => self.entries.push(Reached { id, at: from, before: None }),
            None => {}
        }
    }

    /// The peer left the address and said so in a packet from `from`: where nothing is to be sent any more.
    pub(super) fn on_removed(&mut self, id: u64, from: SocketAddr) -> Vec<SocketAddr> {
        let Some(place) = self.entries.iter().position(|entry| entry.id == id) else { return Vec::new() };
        let entry = self.entries.swap_remove(place);
        match entry.before {
            // The flow has moved on already: what it left is gone, not where it is now.
            Some(before) if entry.at == from => vec![before],
            before => [entry.at].into_iter().chain(before).collect(),
        }
    }

    /// Where an address of the peer is reached.
    pub(super) fn of(&self, id: u64) -> Option<SocketAddr> {
        self.entries.iter().find(|entry| entry.id == id).map(|entry| entry.at)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.entries.iter().map(|entry| entry.at)
    }
}

impl Reached {
    /// What was seen last belongs to another id; false where nothing is left.
    fn step_back(&mut self) -> bool {
        let before = self.before.take();
        self.at = before.unwrap_or(self.at);
        before.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(n: u16) -> SocketAddr {
        ([192, 0, 2, 1], n).into()
    }

    #[test]
    fn a_nat_moves_an_address() {
        let mut reached = ReachedAddresses::default();
        reached.on_heard(0, address(1));
        reached.on_heard(0, address(2));
        assert_eq!((reached.of(0), reached.all().count()), (Some(address(2)), 1));
        assert_eq!(reached.on_removed(0, address(9)), [address(2), address(1)], "nothing is left at either");
        assert!(reached.on_removed(0, address(9)).is_empty());
    }

    #[test]
    fn a_flow_that_changed_its_address_is_told_from_an_address_that_moved() {
        // Flow 0 leaves from the address with id 1, and its packets are faster than the word of it.
        let mut reached = ReachedAddresses::default();
        reached.on_heard(0, address(1));
        reached.on_heard(0, address(2));
        reached.on_heard(1, address(2));
        assert_eq!((reached.of(0), reached.of(1)), (Some(address(1)), Some(address(2))));
        // or word of the first address' end is faster still
        let mut reached = ReachedAddresses::default();
        reached.on_heard(0, address(1));
        reached.on_heard(0, address(2));
        assert_eq!(reached.on_removed(0, address(2)), [address(1)]);
    }

    #[test]
    fn ids_are_bounded() {
        let mut reached = ReachedAddresses::default();
        (0..1_000).for_each(|n| reached.on_heard(u64::from(n), address(n)));
        assert_eq!(reached.entries.len(), MAX_HOST_ADDRESSES);
    }
}
