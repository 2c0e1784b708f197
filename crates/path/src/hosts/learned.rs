//! Addresses that the peer told us: by id, the newest sequence number of each counts.

use std::net::SocketAddr;
use std::time::Duration;

use plait_base::Instant;
use plait_base::limits::MAX_HOST_ADDRESSES;

use super::AddressScope;

/// Addresses of the peer that may be asked one soon after the other.
const BURST: u32 = 8;
/// After those, one more may be asked each time that so much has passed.
const PACE: Duration = Duration::from_secs(1);

/// What the peer said last of one address id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Learned {
    id: u64,
    sequence: u64,
    /// None once it was removed.
    address: Option<SocketAddr>,
    /// Whether we have acted on it. A flood of addresses is acted on at a pace.
    is_offered: bool,
}

/// What a frame about the peer's addresses changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressChange {
    /// Nothing: the frame is old, repeats what is known, or names what we do not ask.
    Nothing,
    /// There is one more address.
    Added,
    /// This address is gone: nothing may be sent there any more.
    Removed(SocketAddr),
}

/// The addresses of the peer, at most [`MAX_HOST_ADDRESSES`], the removed ones that are remembered included.
#[derive(Clone, Debug)]
pub struct LearnedAddresses {
    scope: AddressScope,
    entries: Vec<Learned>,
    /// Number of the newest set, where the peer tells all at once.
    newest_set: Option<u64>,
    /// Addresses that may be acted on at once.
    credit: u32,
    credit_at: Instant,
}

impl LearnedAddresses {
    /// None yet; those beyond `scope` are never asked.
    pub(crate) fn new(scope: AddressScope) -> Self {
        Self { scope, entries: Vec::new(), newest_set: None, credit: BURST, credit_at: Instant::ZERO }
    }

    /// The peer has an address.
    pub(crate) fn on_added(&mut self, id: u64, sequence: u64, address: SocketAddr) -> AddressChange {
        if !self.scope.admits(&address) {
            // Still the newest word on this id: what was known under it holds no longer.
            return self.on_removed(id, sequence);
        }
        let Some(entry) = self.entry(id, sequence) else { return AddressChange::Nothing };
        let before = entry.address.replace(address);
        entry.is_offered &= before == Some(address);
        match before {
            Some(before) if before == address => AddressChange::Nothing,
            Some(before) => AddressChange::Removed(before),
            None => AddressChange::Added,
        }
    }

    /// The peer has lost an address. An id that is not known is remembered too, as far as there is room: the word that the
    /// peer had it may come later, and is older.
    pub(crate) fn on_removed(&mut self, id: u64, sequence: u64) -> AddressChange {
        let removed = self.entry(id, sequence).and_then(|entry| entry.address.take());
        removed.map_or(AddressChange::Nothing, AddressChange::Removed)
    }

    /// These are all addresses of the peer beside that of the handshake; those of the older sets that are gone. An older set
    /// than the newest says nothing.
    pub(crate) fn on_set(
        &mut self,
        sequence: u64,
        addresses: impl Iterator<Item = SocketAddr> + Clone,
    ) -> Vec<SocketAddr> {
        if self.newest_set.is_some_and(|newest| newest >= sequence) {
            return Vec::new();
        }
        self.newest_set = Some(sequence);
        let is_gone = |entry: &mut Learned| !addresses.clone().any(|address| entry.address == Some(address));
        let gone = self.entries.extract_if(.., is_gone).filter_map(|entry| entry.address).collect();
        for address in addresses.take(MAX_HOST_ADDRESSES) {
            if self.entries.iter().all(|entry| entry.address != Some(address)) && self.scope.admits(&address) {
                let id = self.entries.iter().map(|entry| entry.id + 1).max().unwrap_or(0);
                self.entries.push(Learned { id, sequence: 0, address: Some(address), is_offered: false });
            }
        }
        self.entries.truncate(MAX_HOST_ADDRESSES);
        gone
    }

    /// True where a word on this id is newer than what is known, or nothing is.
    pub(crate) fn is_news(&self, id: u64, sequence: u64) -> bool {
        self.entries.iter().find(|entry| entry.id == id).is_none_or(|entry| entry.sequence < sequence)
    }

    /// The entry of an id for news with this sequence number; none for old news, and where there is no room.
    fn entry(&mut self, id: u64, sequence: u64) -> Option<&mut Learned> {
        if let Some(at) = self.entries.iter().position(|entry| entry.id == id) {
            let entry = &mut self.entries[at];
            // The newest wins, whatever the order in which frames arrive.
            if entry.sequence >= sequence {
                return None;
            }
            entry.sequence = sequence;
            return Some(entry);
        }
        if self.entries.len() >= MAX_HOST_ADDRESSES {
            // What is gone makes room, the oldest first.
            let removed = self.entries.iter().position(|entry| entry.address.is_none())?;
            self.entries.remove(removed);
        }
        self.entries.push(Learned { id, sequence, address: None, is_offered: false });
        self.entries.last_mut()
    }

    /// Lets further addresses be acted on, as the pace allows; true where one came.
    pub fn offer(&mut self, now: Instant) -> bool {
        if self.entries.iter().all(|entry| entry.is_offered || entry.address.is_none()) {
            return false;
        }
        let earned = now.since(self.credit_at).as_nanos() / PACE.as_nanos();
        if earned > 0 {
            self.credit = self.credit.saturating_add(u32::try_from(earned).unwrap_or(u32::MAX)).min(BURST);
            self.credit_at = now;
        }
        let mut came = false;
        for entry in self.entries.iter_mut().filter(|entry| !entry.is_offered && entry.address.is_some()) {
            if self.credit == 0 {
                break;
            }
            self.credit -= 1;
            entry.is_offered = true;
            came = true;
        }
        came
    }

    /// Addresses that may be acted on, in the order in which their ids came.
    pub fn offered(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.offered_by_id().map(|(_, address)| address)
    }

    /// The same with their ids.
    pub(super) fn offered_by_id(&self) -> impl Iterator<Item = (u64, SocketAddr)> + '_ {
        let offered = self.entries.iter().filter(|entry| entry.is_offered);
        offered.filter_map(|entry| Some((entry.id, entry.address?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(n: u8) -> SocketAddr {
        ([192, 0, 2, n], 443).into()
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn the_newest_word_on_an_id_counts() {
        let mut learned = LearnedAddresses::new(AddressScope::Global);
        assert_eq!(learned.on_added(1, 3, address(1)), AddressChange::Added);
        assert_eq!(learned.on_added(1, 3, address(2)), AddressChange::Nothing, "the same number again");
        assert_eq!(learned.on_removed(1, 2), AddressChange::Nothing, "overtaken");
        assert!(learned.offer(at(0)));
        assert_eq!(learned.offered().collect::<Vec<_>>(), [address(1)]);
        assert_eq!(learned.on_added(1, 4, address(2)), AddressChange::Removed(address(1)));
        assert_eq!(learned.offered().count(), 0, "the new one waits for its turn");
        assert!(learned.offer(at(0)));
        assert_eq!(learned.on_removed(1, 5), AddressChange::Removed(address(2)));
        assert_eq!(learned.on_added(1, 4, address(2)), AddressChange::Nothing, "added before it was removed");
        assert_eq!(learned.on_added(1, 6, address(2)), AddressChange::Added, "back again");
    }

    #[test]
    fn a_removal_that_overtakes_the_address_wins() {
        let mut learned = LearnedAddresses::new(AddressScope::Global);
        assert_eq!(learned.on_removed(1, 1), AddressChange::Nothing, "nothing is known of it");
        assert_eq!(learned.on_added(1, 0, address(1)), AddressChange::Nothing, "older than its end");
        assert_eq!(learned.on_added(1, 2, address(1)), AddressChange::Added);
        // A flood of ends takes no more room than addresses do, and none from them.
        (100..10_000).for_each(|id| assert_eq!(learned.on_removed(id, 1), AddressChange::Nothing));
        assert_eq!(learned.entries.len(), MAX_HOST_ADDRESSES);
        assert_eq!(learned.on_added(9_999, 0, address(9)), AddressChange::Nothing, "the newest ends are remembered");
        let others = 2..=MAX_HOST_ADDRESSES as u64;
        others.for_each(|id| assert_eq!(learned.on_added(id, 0, address(id as u8)), AddressChange::Added));
        assert_eq!(learned.on_removed(99, 1), AddressChange::Nothing, "there is no room left");
        assert_eq!(learned.entries.iter().filter(|entry| entry.address.is_some()).count(), MAX_HOST_ADDRESSES);
    }

    #[test]
    fn what_may_not_be_asked_ends_what_was_known() {
        let mut learned = LearnedAddresses::new(AddressScope::Global);
        let private = ([10, 0, 0, 1], 443).into();
        assert_eq!(learned.on_added(0, 1, private), AddressChange::Nothing);
        assert_eq!(learned.on_added(1, 1, address(1)), AddressChange::Added);
        assert_eq!(learned.on_added(1, 2, private), AddressChange::Removed(address(1)));
        assert!(!learned.offer(at(0)));
    }

    #[test]
    fn a_flood_is_bounded_and_acted_on_at_a_pace() {
        let mut learned = LearnedAddresses::new(AddressScope::Global);
        for n in 0..10_000u64 {
            let _ = learned.on_added(n, 0, address((n % 251) as u8));
        }
        assert_eq!(learned.entries.len(), MAX_HOST_ADDRESSES);
        assert!(learned.offer(at(0)));
        assert_eq!(learned.offered().count(), BURST as usize);
        assert!(!learned.offer(at(500)));
        assert!(learned.offer(at(1000)));
        assert_eq!(learned.offered().count(), BURST as usize + 1);
        // Each address that is taken back and named again waits for its turn too.
        let mut acted = 0;
        for turn in 1..1000 {
            let _ = learned.on_removed(0, turn * 2);
            let _ = learned.on_added(0, turn * 2 + 1, address(1));
            acted += u32::from(learned.offer(at(1000)));
        }
        assert_eq!(acted, 0);
    }

    #[test]
    fn the_newest_set_takes_the_place_of_all_before() {
        let mut learned = LearnedAddresses::new(AddressScope::Global);
        let set = |learned: &mut LearnedAddresses, sequence, hosts: &[u8]| {
            let gone = learned.on_set(sequence, hosts.iter().map(|n| address(*n)));
            let _ = learned.offer(at(0));
            (gone, learned.offered().collect::<Vec<_>>())
        };
        assert_eq!(set(&mut learned, 1, &[1, 2, 2]), (vec![], vec![address(1), address(2)]));
        assert_eq!(set(&mut learned, 0, &[3]).0, [], "overtaken");
        assert_eq!(set(&mut learned, 1, &[3]).0, [], "the same number again");
        assert_eq!(set(&mut learned, 2, &[2, 3]), (vec![address(1)], vec![address(2), address(3)]));
        assert_eq!(set(&mut learned, u64::MAX >> 2, &[]), (vec![address(2), address(3)], vec![]));
        assert_eq!(set(&mut learned, 3, &[1]), (vec![], vec![]), "nothing is newer than the last number");
        // Bounds: of a huge set, and of sets that change all the time.
        let mut learned = LearnedAddresses::new(AddressScope::Global);
        let _ = learned.on_set(0, (0..=255).map(address));
        assert_eq!(learned.entries.len(), MAX_HOST_ADDRESSES);
        assert!(learned.on_set(1, (100..=255).map(address)).len() == MAX_HOST_ADDRESSES && learned.offer(at(0)));
        let mut acted = 0;
        for sequence in 2..1000 {
            let _ = learned.on_set(sequence, [address((sequence % 2) as u8)].into_iter());
            acted += u32::from(learned.offer(at(0)));
        }
        assert_eq!(acted, 0, "each new address waits for its turn");
    }

    #[test]
    fn removed_ones_make_room() {
        let mut learned = LearnedAddresses::new(AddressScope::Global);
        (0..MAX_HOST_ADDRESSES as u64).for_each(|n| _ = learned.on_added(n, 0, address(n as u8)));
        assert_eq!(learned.on_added(99, 0, address(99)), AddressChange::Nothing);
        assert_eq!(learned.on_removed(5, 1), AddressChange::Removed(address(5)));
        assert_eq!(learned.on_added(99, 0, address(99)), AddressChange::Added);
    }
}
