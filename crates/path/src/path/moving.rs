//! The addresses of one path: what they admit, and what a move to others means for it.

use std::net::SocketAddr;
use std::time::Duration;

use plait_base::limits::TIMER_GRANULARITY;
use plait_base::{ConnectionId, FourTuple, Instant, Side, Violation};
use plait_congestion::CongestionController;

use super::Path;
use crate::addresses::{AddressEvent, ChallengeData, FourTupleRole, Moved, PathAddresses, ValidationTimes};
use crate::pairing::Pairing;
use crate::send::SendRoom;

impl Path {
    /// A datagram arrived; it counts towards the credit of its addresses (RFC 9000 8.1). False where they are none of the
    /// path's.
    pub fn on_datagram(&mut self, tuple: &FourTuple, bytes: u64) -> bool {
        self.addresses.on_received(tuple, bytes).is_some()
    }

    /// All pairs of addresses that its datagrams may leave by: its own first, then those that are being validated.
    pub fn tuples(&self) -> impl Iterator<Item = FourTuple> {
        self.addresses.all().map(|state| state.tuple())
    }

    /// The addresses that carry its packets.
    pub fn tuple(&self) -> FourTuple {
        self.addresses.tuple()
    }

    /// True when the peer's current address is proven.
    pub fn is_validated(&self) -> bool {
        self.addresses.is_validated()
    }

    /// Other addresses that it challenges, while there are any.
    pub fn candidate(&self) -> Option<FourTuple> {
        self.addresses.get(FourTupleRole::Candidate).map(|state| state.tuple())
    }

    /// True while the peer's response at other addresses is awaited.
    pub fn is_challenging_candidate(&self) -> bool {
        self.addresses.get(FourTupleRole::Candidate).is_some_and(|state| state.is_validating())
    }

    /// True where the peer answered at other addresses, and it does not lead there.
    pub fn is_candidate_proven(&self) -> bool {
        self.addresses.get(FourTupleRole::Candidate).is_some_and(|state| state.is_validated())
    }

    /// True where the operating system chose our address, and a datagram showed which.
    pub fn is_local_chosen_by_system(&self) -> bool {
        self.addresses.is_system_known()
    }

    /// True where the system may not choose another address of ours before the peer gives a connection id for it.
    pub fn is_source_held(&self) -> bool {
        self.addresses.get(FourTupleRole::Current).is_some_and(|state| state.is_source_held())
    }

    /// The peer proved its current address by the handshake.
    pub fn on_address_proven(&mut self) {
        if !self.addresses.is_validated() {
            self.addresses.on_address_proven();
            self.lift_probe_gate();
        }
    }

    /// The peer proved its current address between it and another of ours.
    pub(crate) fn on_remote_proven(&mut self) {
        self.addresses.on_remote_proven();
        self.lift_probe_gate();
    }

    /// The peer proved its current address on another connection: that counts where its challenge is not answered for `patience`.
    pub fn on_proven_elsewhere(&mut self, now: Instant, patience: Duration) {
        self.addresses.on_proven_elsewhere(now, patience);
    }

    /// The peer's newest packet came to `tuple`: where the system chooses our address, this shows when it chose another.
    pub fn follow_system(&mut self, tuple: &FourTuple) -> Moved {
        self.addresses.follow_system(tuple)
    }

    /// Starts to validate its current address, unless that is done or under way.
    pub fn challenge(&mut self, now: Instant, times: ValidationTimes) {
        self.addresses.challenge(now, times);
    }

    /// Leaves by another address of ours from now on, because the one before is gone; whether the peer can be reached from
    /// there is asked at once (RFC 9000 9.2).
    pub(crate) fn relocate(&mut self, now: Instant, local: SocketAddr, times: ValidationTimes) -> Moved {
        let moved = self.addresses.relocate(local);
        self.addresses.challenge(now, times);
        self.lift_probe_gate();
        moved
    }

    /// PATH_RESPONSE arrived for it; what that validated, if anything.
    pub(crate) fn on_response(&mut self, now: Instant, data: ChallengeData) -> Result<Option<AddressEvent>, Violation> {
        let asked_at = self.addresses.asked_at(data);
        let event = self.addresses.on_response(now, data)?;
        if let Some(asked_at) = asked_at {
            self.send.on_answer(now, asked_at);
        }
        self.lift_probe_gate();
        Ok(event)
    }

    /// A validation may have ended by now.
    pub(crate) fn on_address_timeout(&mut self, now: Instant) -> Option<AddressEvent> {
        let event = self.addresses.on_timeout(now)?;
        self.lift_probe_gate();
        Some(event)
    }

    /// RFC 9002 6.2.1, 6.2.2.1: where its packets go now, no amplification limit holds the probe timer back any longer.
    fn lift_probe_gate(&mut self) {
        self.open_probe_gate(u64::MAX);
    }

    /// PATH_CHALLENGE arrived from `tuple`, in a datagram of `bytes` to our connection id `cid`. True when it came
    /// from new addresses to another id than before, or to another address of ours: the response takes another id of the
    /// peer (RFC 9000 9.5).
    pub fn on_challenge(&mut self, tuple: FourTuple, cid: &ConnectionId, bytes: u64, data: ChallengeData) -> bool {
        // RFC 9000 8.2.2: the response goes where the challenge came from
        if self.addresses.on_challenge(&tuple, data) {
            return false;
        }
        let needs_cid = self.changed_cid(cid) || self.leaves_elsewhere(&tuple);
        self.addresses.note_candidate(tuple, bytes);
        self.addresses.on_challenge(&tuple, data);
        needs_cid
    }

    /// True for addresses of which ours is another than the path's own, as far as both are known.
    pub(crate) fn leaves_elsewhere(&self, tuple: &FourTuple) -> bool {
        let own = self.tuple().local;
        own != tuple.local && !own.ip().is_unspecified() && !tuple.local.ip().is_unspecified()
    }

    /// The packet with this challenge of ours was acked: the answer, if it comes, is not far behind.
    pub fn on_challenge_acked(&mut self, now: Instant, data: ChallengeData) {
        // RFC 9002 6.1.2: what came an eighth of a round trip later than the rest counts as lost
        let patience = (self.send.rtt().latest() / 8).max(TIMER_GRANULARITY);
        self.addresses.ask_again(now + patience, data);
    }

    /// The packet with this challenge of ours was lost.
    pub fn on_challenge_lost(&mut self, now: Instant, data: ChallengeData) {
        self.addresses.ask_again(now, data);
    }

    /// The addresses changed: RTT, window, ECN and MTU begin anew unless only ports did (RFC 9000 9.4).
    pub fn on_moved(&mut self, now: Instant, moved: Moved, controller: impl FnOnce() -> Box<dyn CongestionController>) {
        if moved == Moved::Hosts {
            self.receive.on_new_way();
            self.renew(now, controller);
        }
    }

    /// Begins anew where the addresses are others than those that RTT and window were learned at. An address from which
    /// packets came has to be proven first (RFC 9000 9.4): copies of packets would give a fresh window each time, and a path
    /// that comes back knows its way.
    pub fn renew(&mut self, now: Instant, controller: impl FnOnce() -> Box<dyn CongestionController>) {
        let tuple = self.tuple();
        if self.addresses.awaits_proof() || self.learned_at.same_hosts(&tuple) {
            return;
        }
        self.learned_at = tuple;
        self.restart_sending(now, controller());
    }

    /// Sends to other addresses from now on. Nothing that was learned holds there; packet numbers go on.
    pub(crate) fn bind(
        &mut self,
        now: Instant,
        addresses: PathAddresses,
        controller: impl FnOnce() -> Box<dyn CongestionController>,
    ) {
        self.addresses = addresses;
        self.learned_at = self.tuple();
        let _ = self.recover();
        if !self.is_fresh() {
            self.pair_rtts = None;
            self.restart_sending(now, controller());
        }
    }

    fn restart_sending(&mut self, now: Instant, controller: Box<dyn CongestionController>) {
        self.mtu.reset();
        self.send.set_max_datagram_bytes(self.mtu());
        self.send.reset_for_new_address(now, controller);
    }

    /// A packet arrived under its id from `tuple`; true where the one before came from elsewhere.
    pub fn on_heard_from(&mut self, tuple: &FourTuple) -> bool {
        let is_news = self.heard_from.as_deref() != Some(tuple);
        if is_news {
            self.heard_from = Some(Box::new(*tuple));
        }
        is_news
    }

    /// True where the newest packet under its id came from one of these.
    pub fn is_heard_from_any(&self, remotes: &[SocketAddr]) -> bool {
        self.heard_from.as_ref().is_some_and(|tuple| remotes.contains(&tuple.remote))
    }

    /// The peer left the address from which the newest packet came.
    pub fn forget_heard_from(&mut self) -> Option<FourTuple> {
        self.heard_from.take().map(|tuple| *tuple)
    }

    /// Where the newest packet under its id came from, and to which of our addresses; known for uniflows.
    pub fn heard_from(&self) -> Option<FourTuple> {
        self.heard_from.as_deref().copied()
    }

    /// True where the amplification limit lets a datagram of `bytes` leave.
    #[inline]
    pub fn may_send(&self, bytes: u64) -> bool {
        self.addresses.amplification_room() >= bytes
    }

    /// True where one more full datagram of data may leave for a proven address, by window and pace.
    #[inline]
    pub(crate) fn admits_datagram(&self, now: Instant) -> bool {
        self.addresses.is_validated() && self.send.room(now, u64::from(self.mtu())) == SendRoom::Free
    }

    /// True where the window has room for `bytes` more.
    #[inline]
    pub fn has_window_for(&self, bytes: u64) -> bool {
        self.send.in_flight() + bytes <= self.send.window()
    }

    /// RFC 10069 3.1: a server sends no data on a new path before the client's address there is proven, in PTO probes neither.
    /// On path 0, and on one that moved, what the client sends is credit for it (RFC 9000 8.1, 9.3). A uniflow of either side
    /// waits for the proof (Multiflow 4.3.1), and so does a client at an address that the server named (RFC 9000 21.5.3).
    #[inline]
    pub fn awaits_proof(&self, side: Side) -> bool {
        let must_wait = side.is_server() || self.pairing == Pairing::Uniflows || self.addresses.is_hearsay();
        must_wait && !self.is_first() && !self.addresses.is_validated()
    }

    /// True where data may ride along with validation: a client's in the first packet of a new path to where it knows the
    /// server, a server's once the address is proven; and only where the window has room for it.
    pub fn may_validate_with_data(&self, side: Side) -> bool {
        self.may_lead(side) || self.has_window_for(u64::from(self.mtu())) && self.addresses.is_validated()
    }

    /// True for a client that may send to the server's address before that answers to this path, where the window has room.
    pub(crate) fn may_lead(&self, side: Side) -> bool {
        side.is_client() && !self.takes_only_probes() && self.has_window_for(u64::from(self.mtu()))
    }

    /// True while it may yet change its addresses: others are being validated, or those before are kept in case these fail. A
    /// candidate that is settled, proven or not, changes nothing until the peer sends from there again.
    pub fn has_addresses_on_trial(&self) -> bool {
        self.addresses.are_on_trial()
    }

    /// True where a response to a challenge, or a challenge, waits for the current addresses.
    #[inline]
    pub fn owes_validation(&self) -> bool {
        self.addresses.is_current_due()
    }
}
