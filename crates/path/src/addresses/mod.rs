//! The addresses of one path: the 4-tuple in use, one being probed, and one to fall back to.

mod leg;

use std::net::SocketAddr;

use plait_base::time::earliest;
use plait_base::{FourTuple, Instant, Random, Violation, limits};
use plait_wire::FrameWriter;

use leg::{Answer, LegTimeout};
pub use leg::{ChallengeData, Leg, Origin, Pad, Validation, ValidationTimes};

/// Names one of a route's 4-tuples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LegName {
    /// The one that carries the path's packets.
    Current,
    /// A new one being probed, which carries nothing but probing frames.
    Candidate,
    /// The last validated one, kept while the current one is unproven.
    Fallback,
}

impl LegName {
    const ALL: [Self; 3] = [Self::Current, Self::Candidate, Self::Fallback];
}

/// What the peer's packet means for the addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// Nothing changed.
    No,
    /// Only ports changed: keep RTT and congestion state (RFC 9000 9.4).
    Ports,
    /// Another host or network: reset RTT and congestion state (RFC 9000 9.4).
    Hosts,
}

/// What a response or a timer changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteEvent {
    /// The peer's address of this leg is proven.
    Validated(LegName),
    /// The current address stayed unproven; the path is back on the one before.
    FellBack(Moved),
    /// A candidate was not reachable; the current address is untouched. It is kept until [`Route::drop_candidates`]: the
    /// same addresses may be probed again with the same connection id.
    CandidateFailed,
    /// The current address stayed unproven and there is none to go back to: abandon the path.
    Unreachable,
    /// 1200-byte datagrams were never seen to pass, though the address is proven.
    SizeUnproven,
}

/// The addresses of one path.
///
/// ```
/// use plait_base::FourTuple;
/// use plait_path::addresses::{Route, Validation};
/// let tuple = FourTuple { local: "10.0.0.1:1".parse().unwrap(), remote: "10.0.0.2:2".parse().unwrap() };
/// let mut route = Route::new(tuple, Validation::Unvalidated);
/// route.on_received(&tuple, 100);
/// assert_eq!(route.amplification_room(), 300);
/// ```
#[derive(Clone, Debug)]
pub struct Route {
    current: Leg,
    /// Boxed, as the next one: paths that move are few.
    candidate: Option<Box<Leg>>,
    fallback: Option<Box<Leg>>,
    /// Candidates of ours that did not answer, at most `limits::MAX_RESTING_LEGS`. They keep their connection ids, so that
    /// they can be asked again (RFC 9000 9.5).
    resting: Vec<Leg>,
    /// True once any challenge was written: a response before that answers nothing.
    challenged: bool,
}

impl Route {
    /// A route to an address from which the peer's datagrams came: the 3x rule holds until it is validated.
    pub fn new(tuple: FourTuple, validation: Validation) -> Self {
        Self::on_leg(Leg::new(tuple, validation, Origin::Peers))
    }

    /// A route that we open: the client's first flight, or a new path of the client.
    pub fn opened(tuple: FourTuple) -> Self {
        Self::on_leg(Leg::new(tuple, Validation::Unvalidated, Origin::Ours))
    }

    fn on_leg(current: Leg) -> Self {
        Self { current, candidate: None, fallback: None, resting: Vec::new(), challenged: false }
    }

    /// The addresses that carry the path's packets.
    pub fn tuple(&self) -> FourTuple {
        self.current.tuple()
    }

    /// The same addresses to send with: see [`Leg::exit`].
    pub fn exit(&self) -> FourTuple {
        self.current.exit()
    }

    /// One of the legs.
    pub fn leg(&self, name: LegName) -> Option<&Leg> {
        match name {
            LegName::Current => Some(&self.current),
            LegName::Candidate => self.candidate.as_deref(),
            LegName::Fallback => self.fallback.as_deref(),
        }
    }

    /// All legs, the current one first.
    pub fn legs(&self) -> impl Iterator<Item = &Leg> {
        LegName::ALL.into_iter().filter_map(|name| self.leg(name))
    }

    pub(crate) fn leg_mut(&mut self, name: LegName) -> Option<&mut Leg> {
        match name {
            LegName::Current => Some(&mut self.current),
            LegName::Candidate => self.candidate.as_deref_mut(),
            LegName::Fallback => self.fallback.as_deref_mut(),
        }
    }

    /// The leg that a datagram of these addresses belongs to.
    pub fn find(&self, tuple: &FourTuple) -> Option<LegName> {
        LegName::ALL.into_iter().find(|&name| self.leg(name).is_some_and(|l| l.admits(tuple)))
    }

    /// True when the current address is proven.
    pub fn is_validated(&self) -> bool {
        self.current.is_validated()
    }

    /// Validations under way, 0 to 3.
    pub fn validations(&self) -> usize {
        LegName::ALL.into_iter().filter(|&n| self.leg(n).is_some_and(Leg::is_validating)).count()
    }

    /// A datagram arrived; counts towards the leg's credit. None when no leg has these addresses.
    pub fn on_received(&mut self, tuple: &FourTuple, bytes: u64) -> Option<LegName> {
        let name = self.find(tuple)?;
        let leg = self.leg_mut(name)?;
        leg.learn_local(tuple);
        leg.on_received(bytes);
        Some(name)
    }

    /// The peer's newest packet came to `tuple`. Where the system chooses our address, this shows when it chose another.
    pub fn follow_system(&mut self, tuple: &FourTuple) -> Moved {
        if self.find(tuple) == Some(LegName::Current) && self.current.follow_system(tuple) {
            return Moved::Hosts;
        }
        Moved::No
    }

    /// True where the system chose our address, and a datagram showed which.
    pub fn is_system_known(&self) -> bool {
        self.current.is_system_known()
    }

    /// Leaves by another address of ours from now on, because the one before is gone. What is known of the peer's address
    /// stays known: it is the same (RFC 9000 9.2).
    pub fn relocate(&mut self, local: SocketAddr) -> Moved {
        let from = self.current.tuple().local;
        let tuple = FourTuple { local, ..self.current.tuple() };
        let validation = if self.current.is_validated() { Validation::Validated } else { Validation::Unvalidated };
        *self = Self { challenged: self.challenged, ..Self::on_leg(Leg::new(tuple, validation, Origin::Ours)) };
        match (from == local, from.ip() == local.ip()) {
            (true, _) => Moved::No,
            (false, true) => Moved::Ports,
            (false, false) => Moved::Hosts,
        }
    }

    /// A datagram left on a leg; every datagram counts (RFC 9000 8.1).
    pub fn on_sent(&mut self, name: LegName, bytes: u64) {
        if let Some(leg) = self.leg_mut(name) {
            leg.on_sent(bytes);
        }
    }

    /// Bytes that may go to the current address now; `u64::MAX` once it is proven.
    pub fn amplification_room(&self) -> u64 {
        self.current.amplification_room()
    }

    /// The peer proved its current address by the handshake or a token.
    pub fn on_address_proven(&mut self) {
        self.current.on_address_proven();
    }

    /// Starts to validate the current address, unless that is done or under way.
    pub fn challenge(&mut self, now: Instant, times: ValidationTimes) {
        let done = self.current.is_validated() && self.current.is_full_size_proven();
        if !done && !self.current.is_validating() {
            self.current.begin_validation(now, times);
        }
    }

    /// An authentic packet came from addresses that no leg has: they become the candidate.
    ///
    /// A later candidate replaces an earlier one that is not proven, so that state stays bounded.
    pub fn admit(&mut self, tuple: FourTuple, bytes: u64) -> LegName {
        if let Some(name) = self.find(&tuple) {
            return name;
        }
        let mut leg = Leg::new(tuple, Validation::Unvalidated, Origin::Peers);
        leg.on_received(bytes);
        self.candidate = Some(Box::new(leg));
        LegName::Candidate
    }

    /// Probes other addresses of ours or of the peer before moving there.
    pub fn probe(&mut self, now: Instant, tuple: FourTuple, times: ValidationTimes) {
        let room = self.resting.len() < limits::MAX_RESTING_LEGS;
        let before = self.candidate.take().filter(|leg| leg.tuple() == tuple || (leg.is_spent() && room));
        self.resting.extend(before.map(|leg| *leg));
        let known = self.resting.iter().position(|leg| leg.tuple() == tuple).map(|at| self.resting.remove(at));
        let mut leg = Box::new(known.unwrap_or_else(|| Leg::new(tuple, Validation::Unvalidated, Origin::Ours)));
        leg.begin_validation(now, times);
        self.candidate = Some(leg);
    }

    /// Moves the path to `tuple`, admitted before when the peer moved: the peer's newest non-probing packet came from there (RFC 9000 9.3), or we
    /// decided so. The addresses used until now stay as fallback when proven.
    pub fn migrate(&mut self, now: Instant, tuple: FourTuple, times: ValidationTimes) -> Moved {
        let from = self.current.tuple();
        let name = self.find(&tuple);
        if name == Some(LegName::Current) {
            return Moved::No;
        }
        let leg = match name {
            Some(LegName::Candidate) => self.candidate.take(),
            Some(LegName::Fallback) => self.fallback.take(),
            _ => None,
        };
        let leg = leg.map_or_else(|| Leg::new(tuple, Validation::Unvalidated, Origin::Ours), |leg| *leg);
        let mut old = std::mem::replace(&mut self.current, leg);
        if !self.current.is_validated() && !self.current.is_validating() {
            self.current.begin_validation(now, times);
        }
        if old.is_validated() {
            // RFC 9000 9.3.2, 9.3.3: keep and challenge the address before, in case an attacker forwarded the packet.
            old.begin_validation(now, times);
            self.fallback = Some(Box::new(old));
        }
        if self.current.is_validated() {
            self.fallback = None;
        }
        moved(&from, &self.current.tuple())
    }

    /// Forgets the candidate and all that were asked before it.
    pub fn drop_candidates(&mut self) {
        self.candidate = None;
        self.resting.clear();
    }

    /// Connection ids of the peer that addresses other than the current ones use.
    pub(crate) fn other_cids(&self) -> impl Iterator<Item = u64> {
        let legs = [&self.candidate, &self.fallback].into_iter().filter_map(|leg| leg.as_deref());
        legs.chain(&self.resting).filter_map(|leg| leg.cid)
    }

    /// Connection id of the peer with which these addresses were asked before.
    pub(crate) fn asked_with(&self, tuple: &FourTuple) -> Option<u64> {
        self.candidate.as_deref().into_iter().chain(&self.resting).find(|leg| leg.tuple() == *tuple)?.cid
    }

    /// PATH_CHALLENGE arrived on these addresses; false when no leg has them (call [`Self::admit`] first).
    pub fn on_challenge(&mut self, tuple: &FourTuple, data: ChallengeData) -> bool {
        let leg = self.find(tuple).and_then(|name| self.leg_mut(name));
        leg.map(|leg| leg.on_challenge(data)).is_some()
    }

    /// PATH_RESPONSE arrived for this path id.
    ///
    /// Late answers to challenges that are settled are ignored.
    pub fn on_response(&mut self, now: Instant, data: ChallengeData) -> Result<Option<RouteEvent>, Violation> {
        if !self.challenged {
            // RFC 9000 19.18: nothing was asked on this path.
            return Err(Violation::UnsolicitedPathResponse);
        }
        for name in LegName::ALL {
            match self.leg_mut(name).map_or(Answer::NotOurs, |leg| leg.on_response(now, data)) {
                Answer::NotOurs => {}
                Answer::Known => return Ok(None),
                Answer::Validates => {
                    if name == LegName::Current {
                        self.fallback = None;
                    }
                    return Ok(Some(RouteEvent::Validated(name)));
                }
            }
        }
        Ok(None)
    }

    /// The leg on which a challenge or response waits and may be sent; the current one first.
    pub fn due(&self) -> Option<LegName> {
        LegName::ALL.into_iter().find(|&name| self.leg(name).is_some_and(Leg::wants_probe))
    }

    /// Writes what waits on a leg; the packet must then leave on that leg's addresses.
    pub fn fill(&mut self, name: LegName, rng: &mut Random, w: &mut FrameWriter<'_>) -> Pad {
        let Some(leg) = self.leg_mut(name) else { return Pad::No };
        let pad = leg.fill(rng, w);
        self.challenged |= LegName::ALL.into_iter().any(|n| self.leg(n).is_some_and(Leg::has_asked));
        pad
    }

    /// When [`Self::on_timeout`] wants to be called.
    pub fn deadline(&self) -> Option<Instant> {
        LegName::ALL.into_iter().filter_map(|name| self.leg(name)?.deadline()).fold(None, |a, b| earliest(a, Some(b)))
    }

    /// Repeats challenges and gives up on silent addresses.
    pub fn on_timeout(&mut self, now: Instant) -> Option<RouteEvent> {
        if self.candidate.as_mut().is_some_and(|l| l.on_timeout(now) == LegTimeout::GaveUp)
            && !self.candidate.as_deref().is_some_and(Leg::is_validated)
        {
            return Some(RouteEvent::CandidateFailed);
        }
        if let Some(leg) = &mut self.fallback {
            // It was proven once, so it stays proven; silence now only shows that the peer really left.
            leg.on_timeout(now);
        }
        if self.current.on_timeout(now) != LegTimeout::GaveUp {
            return None;
        }
        if self.current.is_validated() {
            return Some(RouteEvent::SizeUnproven);
        }
        match self.fallback.take() {
            Some(leg) => {
                let from = self.current.tuple();
                let to = leg.tuple();
                self.current = *leg;
                Some(RouteEvent::FellBack(moved(&from, &to)))
            }
            None => Some(RouteEvent::Unreachable),
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
