//! The addresses of one path: the 4-tuple in use, one being validated, and one to fall back to.

mod four_tuple;

use std::net::SocketAddr;
use std::time::Duration;

use plait_base::time::earliest;
use plait_base::{FourTuple, Instant, Random, Violation, limits};
use plait_wire::FrameWriter;

pub(crate) use four_tuple::AWAITED_CID;
pub(crate) use four_tuple::FourTupleState;
pub(crate) use four_tuple::Origin;
pub use four_tuple::{ChallengeData, Pad, Validation, ValidationTimes};
use four_tuple::{ResponseOutcome, ValidationTimeout};

/// Names one of a path's 4-tuples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FourTupleRole {
    /// The one that carries the path's packets.
    Current,
    /// A new one being validated, which carries nothing but probing frames (RFC 9000 9.1).
    Candidate,
    /// The last validated one, kept while the current one is unproven.
    Previous,
}

impl FourTupleRole {
    const ALL: [Self; 3] = [Self::Current, Self::Candidate, Self::Previous];
}

/// What the peer's packet means for the addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// The path keeps its addresses.
    No,
    /// Only ports changed: keep RTT and congestion state (RFC 9000 9.4).
    Ports,
    /// Another host or network: reset RTT and congestion state (RFC 9000 9.4).
    Hosts,
}

/// What a response or a timer changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressEvent {
    /// The peer's address of this 4-tuple is proven.
    Validated(FourTupleRole),
    /// The current address stayed unproven; the path is back on the one before.
    FellBack(Moved),
    /// A candidate was not reachable; the current address is untouched. It is kept: the same addresses may be
    /// challenged again with the same connection id.
    CandidateFailed,
    /// The current address stayed unproven and there is none to go back to: abandon the path.
    Unreachable,
    /// 1200-byte datagrams were never seen to pass, though the address is proven.
    SizeUnproven,
}

/// The addresses of one path.
#[derive(Clone, Debug)]
pub struct PathAddresses {
    current: FourTupleState,
    /// Boxed, as the next one: paths that move are few.
    candidate: Option<Box<FourTupleState>>,
    previous: Option<Box<FourTupleState>>,
    /// Candidates of ours that did not answer, at most `limits::MAX_RESTING_CANDIDATES`. They keep their connection ids, so that
    /// they can be asked again (RFC 9000 9.5).
    resting: Vec<FourTupleState>,
    /// True once any challenge was written: a response before that answers nothing.
    challenged: bool,
}

impl PathAddresses {
    /// Addresses between which datagrams of the peer came: the 3x rule holds until the peer's is validated.
    pub fn new(tuple: FourTuple, validation: Validation) -> Self {
        Self::on_tuple(FourTupleState::new(tuple, validation, Origin::Peers))
    }

    /// Addresses that we choose: the client's first flight, or a new path of the client.
    pub fn opened(tuple: FourTuple) -> Self {
        Self::on_tuple(FourTupleState::new(tuple, Validation::Unvalidated, Origin::Ours))
    }

    /// Addresses of which the peer named its own.
    pub fn named(tuple: FourTuple) -> Self {
        Self::on_tuple(FourTupleState::new(tuple, Validation::Unvalidated, Origin::Named))
    }

    fn on_tuple(current: FourTupleState) -> Self {
        Self { current, candidate: None, previous: None, resting: Vec::new(), challenged: false }
    }

    /// The addresses that carry the path's packets.
    #[inline]
    pub(crate) fn tuple(&self) -> FourTuple {
        self.current.tuple()
    }

    /// One of the 4-tuples.
    #[inline]
    pub(crate) fn get(&self, role: FourTupleRole) -> Option<&FourTupleState> {
        match role {
            FourTupleRole::Current => Some(&self.current),
            FourTupleRole::Candidate => self.candidate.as_deref(),
            FourTupleRole::Previous => self.previous.as_deref(),
        }
    }

    /// True where there is another 4-tuple than the current one.
    #[inline]
    pub(crate) fn has_others(&self) -> bool {
        self.candidate.is_some() || self.previous.is_some()
    }

    /// All 4-tuples, the current one first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &FourTupleState> {
        FourTupleRole::ALL.into_iter().filter_map(|role| self.get(role))
    }

    /// The same, to change.
    pub(crate) fn all_mut(&mut self) -> impl Iterator<Item = &mut FourTupleState> {
        let others = [self.candidate.as_deref_mut(), self.previous.as_deref_mut()];
        std::iter::once(&mut self.current).chain(others.into_iter().flatten())
    }

    pub(crate) fn get_mut(&mut self, role: FourTupleRole) -> Option<&mut FourTupleState> {
        match role {
            FourTupleRole::Current => Some(&mut self.current),
            FourTupleRole::Candidate => self.candidate.as_deref_mut(),
            FourTupleRole::Previous => self.previous.as_deref_mut(),
        }
    }

    /// The 4-tuple that a datagram of these addresses belongs to.
    fn find(&self, tuple: &FourTuple) -> Option<FourTupleRole> {
        FourTupleRole::ALL.into_iter().find(|&role| self.get(role).is_some_and(|l| l.admits(tuple)))
    }

    /// True when the current address is proven.
    #[inline]
    pub(crate) fn is_validated(&self) -> bool {
        self.current.is_validated()
    }

    /// Validations under way, 0 to 3.
    pub(crate) fn validations(&self) -> usize {
        FourTupleRole::ALL.into_iter().filter(|&n| self.get(n).is_some_and(FourTupleState::is_validating)).count()
    }

    /// So many bytes came from the peer's address before.
    pub fn credit(&mut self, bytes: u64) {
        self.current.on_received(bytes);
    }

    /// A datagram arrived; counts towards the 4-tuple's credit. None when no 4-tuple has these addresses.
    pub(crate) fn on_received(&mut self, tuple: &FourTuple, bytes: u64) -> Option<FourTupleRole> {
        let role = self.find(tuple)?;
        let state = self.get_mut(role)?;
        state.learn_local(tuple);
        state.on_received(bytes);
        Some(role)
    }

    /// The peer's newest packet came from its current address.
    #[inline]
    pub(crate) fn on_heard(&mut self, now: Instant) {
        if self.current.is_validating() {
            self.current.on_heard(now);
        }
    }

    /// The peer's newest packet came to `tuple`. Where the system chooses our address, this shows when it chose another.
    pub(crate) fn follow_system(&mut self, tuple: &FourTuple) -> Moved {
        if self.find(tuple) == Some(FourTupleRole::Current) && self.current.follow_system(tuple) {
            return Moved::Hosts;
        }
        Moved::No
    }

    /// True where the system chose our address, and a datagram showed which.
    pub(crate) fn is_system_known(&self) -> bool {
        self.current.is_system_known()
    }

    /// Leaves by another address of ours from now on, because the one before is gone. What is known of the peer's address
    /// stays known: it is the same (RFC 9000 9.2).
    pub(crate) fn relocate(&mut self, local: SocketAddr) -> Moved {
        let from = self.current.tuple().local;
        let tuple = FourTuple { local, ..self.current.tuple() };
        let validation = if self.current.is_validated() { Validation::Validated } else { Validation::Unvalidated };
        *self = Self {
            challenged: self.challenged,
            ..Self::on_tuple(FourTupleState::new(tuple, validation, Origin::Ours))
        };
        match (from == local, from.ip() == local.ip()) {
            (true, _) => Moved::No,
            (false, true) => Moved::Ports,
            (false, false) => Moved::Hosts,
        }
    }

    /// A datagram left on a 4-tuple; every datagram counts (RFC 9000 8.1).
    pub(crate) fn on_sent(&mut self, role: FourTupleRole, bytes: u64) {
        if let Some(state) = self.get_mut(role) {
            state.on_sent(bytes);
        }
    }

    /// Bytes that may go to the current address now; `u64::MAX` once it is proven, and where we chose it.
    #[inline]
    pub(crate) fn amplification_room(&self) -> u64 {
        self.current.amplification_room()
    }

    /// True where packets alone say that the peer is at its current address.
    pub(crate) fn awaits_proof(&self) -> bool {
        self.current.awaits_proof()
    }

    /// True as long as there is nothing but the peer's word for it that it is at its current address.
    #[inline]
    pub(crate) fn is_hearsay(&self) -> bool {
        self.current.is_hearsay()
    }

    /// The peer proved its current address between it and another of ours.
    pub(crate) fn on_remote_proven(&mut self) {
        self.current.on_remote_proven();
    }

    /// The peer proved its current address on another connection.
    pub(crate) fn on_proven_elsewhere(&mut self, now: Instant, patience: Duration) {
        self.current.on_proven_elsewhere(now, patience);
    }

    /// The peer proved its current address by the handshake or a token.
    pub(crate) fn on_address_proven(&mut self) {
        self.current.on_address_proven();
    }

    /// Starts to validate the current address, unless that is done or under way.
    pub(crate) fn challenge(&mut self, now: Instant, times: ValidationTimes) {
        let done = self.current.is_validated() && self.current.is_full_size_proven();
        if !done && !self.current.is_validating() {
            self.current.begin_validation(now, times);
        }
    }

    /// An authentic packet came from addresses that no 4-tuple has: they become the candidate.
    ///
    /// A later candidate replaces an earlier one that is not proven, so that state stays bounded.
    pub(crate) fn note_candidate(&mut self, tuple: FourTuple, bytes: u64) {
        if self.find(&tuple).is_none() {
            let mut state = FourTupleState::new(tuple, Validation::Unvalidated, Origin::Peers);
            state.on_received(bytes);
            self.candidate = Some(Box::new(state));
        }
    }

    /// Challenges the peer from or at other addresses before moving there.
    pub(crate) fn challenge_candidate(&mut self, now: Instant, tuple: FourTuple, times: ValidationTimes) {
        let room = self.resting.len() < limits::MAX_RESTING_CANDIDATES;
        let before = self.candidate.take().filter(|state| state.tuple() == tuple || (state.is_spent() && room));
        self.resting.extend(before.map(|state| *state));
        let known = self.resting.iter().position(|state| state.tuple() == tuple).map(|at| self.resting.remove(at));
        let mut state =
            Box::new(known.unwrap_or_else(|| FourTupleState::new(tuple, Validation::Unvalidated, Origin::Ours)));
        state.begin_validation(now, times);
        self.candidate = Some(state);
    }

    /// Moves the path to `tuple`: the peer's newest non-probing packet came from there (RFC 9000 9.3), or we decided so. An
    /// address of the peer's must be noted first ([`Self::note_candidate`]), or no amplification limit holds there. The
    /// addresses used until now stay as previous when proven.
    pub(crate) fn move_to(&mut self, now: Instant, tuple: FourTuple, times: ValidationTimes) -> Moved {
        let from = self.current.tuple();
        let role = self.find(&tuple);
        if role == Some(FourTupleRole::Current) {
            return Moved::No;
        }
        let state = match role {
            Some(FourTupleRole::Candidate) => self.candidate.take(),
            Some(FourTupleRole::Previous) => self.previous.take(),
            _ => None,
        };
        let state =
            state.map_or_else(|| FourTupleState::new(tuple, Validation::Unvalidated, Origin::Ours), |state| *state);
        let mut old = std::mem::replace(&mut self.current, state);
        if !self.current.is_validated() && !self.current.is_validating() {
            self.current.begin_validation(now, times);
        }
        if old.is_validated() {
            // RFC 9000 9.3.2, 9.3.3: keep and challenge the address before, in case an attacker forwarded the packet.
            old.begin_to_confirm(now, times);
            self.previous = Some(Box::new(old));
        }
        if self.current.is_validated() {
            self.previous = None;
        }
        moved(&from, &self.current.tuple())
    }

    /// Forgets the candidate and all that were asked before it.
    pub(crate) fn drop_candidates(&mut self) {
        self.candidate = None;
        self.resting.clear();
    }

    /// Connection ids of the peer that addresses other than the current ones use.
    pub(crate) fn other_cids(&self) -> impl Iterator<Item = u64> {
        let tuples = [&self.candidate, &self.previous].into_iter().filter_map(|state| state.as_deref());
        tuples.chain(&self.resting).filter_map(|state| state.cid)
    }

    /// Connection id of the peer with which these addresses were asked before.
    pub(crate) fn asked_with(&self, tuple: &FourTuple) -> Option<u64> {
        self.candidate.as_deref().into_iter().chain(&self.resting).find(|state| state.tuple() == *tuple)?.cid
    }

    /// Connection ids of the peer that these addresses have for themselves.
    pub(crate) fn cids_at(&self, tuple: &FourTuple) -> impl Iterator<Item = u64> {
        self.all().chain(&self.resting).filter(|state| state.tuple() == *tuple).filter_map(|state| state.cid)
    }

    /// PATH_CHALLENGE arrived on these addresses; false when no 4-tuple has them (call [`Self::note_candidate`] first).
    pub(crate) fn on_challenge(&mut self, tuple: &FourTuple, data: ChallengeData) -> bool {
        let state = self.find(tuple).and_then(|role| self.get_mut(role));
        state.map(|state| state.on_challenge(data)).is_some()
    }

    /// When the challenge left on the current addresses that `data` echoes.
    pub(crate) fn asked_at(&self, data: ChallengeData) -> Option<Instant> {
        self.current.asked_at(data)
    }

    /// PATH_RESPONSE arrived for this path id.
    ///
    /// Late responses to challenges that are settled are ignored.
    pub(crate) fn on_response(&mut self, now: Instant, data: ChallengeData) -> Result<Option<AddressEvent>, Violation> {
        if !self.challenged {
            // RFC 9000 19.18: nothing was asked on this path.
            return Err(Violation::UnsolicitedPathResponse);
        }
        for role in FourTupleRole::ALL {
            match self.get_mut(role).map_or(ResponseOutcome::NotOurs, |state| state.on_response(now, data)) {
                ResponseOutcome::NotOurs => {}
                ResponseOutcome::Known => return Ok(None),
                ResponseOutcome::Validates => {
                    if role == FourTupleRole::Current {
                        self.previous = None;
                    }
                    return Ok(Some(AddressEvent::Validated(role)));
                }
            }
        }
        Ok(None)
    }

    /// The packet with challenge `data` was lost, or an answer ought to be here by `at`.
    pub(crate) fn ask_again(&mut self, at: Instant, data: ChallengeData) {
        for role in FourTupleRole::ALL {
            if let Some(state) = self.get_mut(role) {
                state.ask_again(at, data);
            }
        }
    }

    /// True while the current addresses are not settled: others are being validated, answers are due there, or the path may yet
    /// go back to those before.
    pub(crate) fn are_on_trial(&self) -> bool {
        let is_busy = |state: &FourTupleState| state.is_validating() || state.has_frames();
        self.previous.is_some() || self.candidate.as_deref().is_some_and(is_busy)
    }

    /// True when a challenge or response waits for the current addresses and may be sent.
    #[inline]
    pub(crate) fn is_current_due(&self) -> bool {
        self.current.wants_send()
    }

    /// The 4-tuple on which a challenge or response waits and may be sent; the current one first.
    #[cfg(test)]
    pub(crate) fn due(&self) -> Option<FourTupleRole> {
        FourTupleRole::ALL.into_iter().find(|&role| self.get(role).is_some_and(FourTupleState::wants_send))
    }

    /// Writes what waits on a 4-tuple; the packet must then leave on that 4-tuple's addresses.
    pub(crate) fn fill(&mut self, now: Instant, role: FourTupleRole, rng: &mut Random, w: &mut FrameWriter<'_>) -> Pad {
        let Some(state) = self.get_mut(role).filter(|state| state.has_frames()) else { return Pad::No };
        let pad = state.fill(now, rng, w);
        self.challenged |= FourTupleRole::ALL.into_iter().any(|n| self.get(n).is_some_and(FourTupleState::has_asked));
        pad
    }

    /// When [`Self::on_timeout`] wants to be called.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let others = [&self.candidate, &self.previous].into_iter().flatten();
        others.fold(self.current.deadline(), |at, state| earliest(at, state.deadline()))
    }

    /// Repeats challenges and gives up on silent addresses.
    pub(crate) fn on_timeout(&mut self, now: Instant) -> Option<AddressEvent> {
        if self.candidate.as_mut().is_some_and(|l| l.on_timeout(now) == ValidationTimeout::GaveUp)
            && !self.candidate.as_deref().is_some_and(FourTupleState::is_validated)
        {
            return Some(AddressEvent::CandidateFailed);
        }
        if let Some(state) = &mut self.previous {
            // It was proven once, so it stays proven; silence now only shows that the peer really left.
            state.on_timeout(now);
        }
        match self.current.on_timeout(now) {
            ValidationTimeout::Nothing | ValidationTimeout::Again => return None,
            ValidationTimeout::Proven => return Some(AddressEvent::Validated(FourTupleRole::Current)),
            ValidationTimeout::GaveUp => {}
        }
        if self.current.is_validated() {
            return Some(AddressEvent::SizeUnproven);
        }
        match self.previous.take() {
            Some(state) => {
                let from = self.current.tuple();
                let to = state.tuple();
                self.current = *state;
                Some(AddressEvent::FellBack(moved(&from, &to)))
            }
            None => Some(AddressEvent::Unreachable),
        }
    }
}

fn moved(from: &FourTuple, to: &FourTuple) -> Moved {
    if from == to {
        Moved::No
    } else if from.same_hosts(to) {
        Moved::Ports
    } else {
        Moved::Hosts
    }
}

#[cfg(test)]
mod tests;
