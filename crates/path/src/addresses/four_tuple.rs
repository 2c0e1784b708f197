//! One 4-tuple: its validation by challenge and response, and the credit of an unproven address.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use plait_base::limits::{
    AMPLIFICATION_FACTOR, MAX_EARLY_CHALLENGES, MAX_OUTSTANDING_CHALLENGES, MAX_QUEUED_PATH_RESPONSES,
    MIN_DATAGRAM_BYTES, PATH_RESPONSE_BURST_BYTES,
};
use plait_base::time::earliest;
use plait_base::{FourTuple, Instant, Random};
use plait_wire::frame::{PathChallenge, PathResponse};
use plait_wire::{FrameWriter, SentFrame};

/// The unpredictable bytes of PATH_CHALLENGE and PATH_RESPONSE (RFC 9000 19.17).
pub type ChallengeData = [u8; 8];

/// What is known of the peer's address at the other end of a 4-tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validation {
    /// Nothing was proven; the amplification limit holds, but where we chose the address.
    Unvalidated,
    /// The peer showed that it receives at this address.
    Validated,
    /// Challenges went unanswered for too long.
    Failed,
}

/// Whose idea it was to send to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// We chose it: the amplification limit does not bind us, as it does not bind a client's first flight.
    Ours,
    /// A datagram came from there: at most three times its bytes go back before validation.
    Peers,
    /// The peer named it: anybody may live there. Challenges are few and paced; nothing else leaves before validation
    /// (RFC 9000 21.5.3).
    Named,
}

/// Who decides from which of our addresses a 4-tuple's datagrams leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SourceAddress {
    /// We do: it is the address of the 4-tuple.
    Ours,
    /// The operating system, each time anew by its routes. The 4-tuple's address is what the newest datagram showed.
    System,
    /// The operating system did, and must not now: datagrams leave by the address that it chose last, until the peer gives a
    /// connection id for another (RFC 9000 9.5).
    Held,
}

/// Sequence number that no connection id has (RFC 9000 19.15): the 4-tuple needs one of its own, and the peer gave none yet.
pub(crate) const AWAITED_CID: u64 = u64::MAX;

/// Whether the datagram being built is to be grown to 1200 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pad {
    /// As it is.
    No,
    /// To [`MIN_DATAGRAM_BYTES`] (RFC 9000 8.2.1).
    Full,
}

/// How often challenges are repeated, and when to give up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidationTimes {
    /// Time to the first repetition; doubles each time.
    pub retry: Duration,
    /// Time after which validation has failed.
    pub give_up: Duration,
}

impl ValidationTimes {
    /// From the best known PTO and the PTO that the initial RTT gives.
    pub fn new(pto: Duration, pto_initial: Duration) -> Self {
        // RFC 9000 8.2.4: three times the larger of the current PTO and the PTO of a new path.
        Self { retry: pto.min(pto_initial), give_up: pto.max(pto_initial) * 3 }
    }
}

/// What a 4-tuple's timer did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValidationTimeout {
    /// Neither a challenge nor the end is due.
    Nothing,
    /// A further challenge is due.
    Again,
    /// No response came, but the peer proved the address on another connection.
    Proven,
    /// No response came in time.
    GaveUp,
}

/// What a PATH_RESPONSE means to a 4-tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseOutcome {
    /// It echoes no challenge of this 4-tuple.
    NotOurs,
    /// It validates the 4-tuple.
    Validates,
    /// The 4-tuple was validated before.
    Known,
}

/// Room below which no packet with a challenge fits, bytes.
const MIN_CHALLENGE_BYTES: u64 = 64;

#[derive(Clone, Copy, Debug)]
struct Challenge {
    data: ChallengeData,
    pad: Pad,
    sent_at: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    times: ValidationTimes,
    retry: Duration,
    next: Instant,
    give_up: Instant,
    challenge_due: bool,
    /// The peer was heard since the last challenge left.
    heard: bool,
    /// Repetitions that packets called for and not the clock, and when the next of them is due.
    early: u32,
    early_at: Option<Instant>,
    /// From then on the peer's word on another connection counts for its answer.
    proven_at: Option<Instant>,
}

fn unspecified(local: SocketAddr) -> SocketAddr {
    let any: IpAddr = if local.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    SocketAddr::new(any, local.port())
}

/// One 4-tuple that a path uses or may use.
#[derive(Clone, Debug)]
pub(crate) struct FourTupleState {
    tuple: FourTuple,
    validation: Validation,
    origin: Origin,
    source: SourceAddress,
    /// True once a datagram of 1200 bytes is known to pass (RFC 9000 8.2.1, 14, 14.2).
    full_size_proven: bool,
    received_bytes: u64,
    sent_bytes: u64,
    running: Option<Box<Running>>,
    /// When the newest validation began.
    asked_at: Option<Instant>,
    challenges: VecDeque<Challenge>,
    responses: VecDeque<ChallengeData>,
    /// Bytes of datagrams with responses that may still leave; what comes in earns more.
    response_credit: u64,
    /// Sequence of the peer's connection id used here, or [`AWAITED_CID`]; none means the path's active one.
    pub(crate) cid: Option<u64>,
}

impl FourTupleState {
    /// A 4-tuple in a known state; a validated one counts as full-size proven (the handshake did it).
    pub(crate) fn new(tuple: FourTuple, validation: Validation, origin: Origin) -> Self {
        Self {
            tuple,
            validation,
            origin,
            source: if tuple.local.ip().is_unspecified() { SourceAddress::System } else { SourceAddress::Ours },
            full_size_proven: validation == Validation::Validated,
            received_bytes: 0,
            sent_bytes: 0,
            running: None,
            asked_at: None,
            challenges: VecDeque::new(),
            responses: VecDeque::new(),
            response_credit: PATH_RESPONSE_BURST_BYTES,
            cid: None,
        }
    }

    /// Both addresses; ours is unspecified until a datagram shows it.
    #[inline]
    pub(crate) fn tuple(&self) -> FourTuple {
        self.tuple
    }

    /// The addresses to send with: ours is unspecified where the system chooses it, so that a datagram leaves by the
    /// address that this machine has now, and not by one that it had before.
    pub(crate) fn send_tuple(&self) -> FourTuple {
        match self.source {
            SourceAddress::Ours | SourceAddress::Held => self.tuple,
            SourceAddress::System => self.any_source(),
        }
    }

    fn any_source(&self) -> FourTuple {
        FourTuple { local: unspecified(self.tuple.local), ..self.tuple }
    }

    /// True when datagrams with these addresses belong here: at any address of ours where the system chooses it.
    pub(crate) fn admits(&self, tuple: &FourTuple) -> bool {
        self.tuple.admits(tuple) || (self.source != SourceAddress::Ours && self.any_source().admits(tuple))
    }

    /// What is known of the peer's address.
    pub(crate) fn validation(&self) -> Validation {
        self.validation
    }

    /// True when the peer's address is proven.
    #[inline]
    pub(crate) fn is_validated(&self) -> bool {
        self.validation == Validation::Validated
    }

    /// True while challenges are out or due.
    pub(crate) fn is_validating(&self) -> bool {
        self.running.is_some()
    }

    /// True once 1200-byte datagrams are known to pass.
    pub(crate) fn is_full_size_proven(&self) -> bool {
        self.full_size_proven
    }

    /// Learns our own address once the first datagram shows which one the system chose.
    pub(crate) fn learn_local(&mut self, tuple: &FourTuple) {
        if self.tuple.local.ip().is_unspecified() {
            self.tuple.local = tuple.local;
        }
    }

    /// The peer's newest packet came to `tuple`; true when that is another host address of ours than before.
    pub(crate) fn follow_system(&mut self, tuple: &FourTuple) -> bool {
        let moved = self.source == SourceAddress::System && self.tuple.local.ip() != tuple.local.ip();
        if moved {
            self.tuple.local = tuple.local;
        }
        moved
    }

    /// True where the system chose our address, and a datagram showed which.
    pub(crate) fn is_system_known(&self) -> bool {
        self.source != SourceAddress::Ours && !self.tuple.local.ip().is_unspecified()
    }

    /// Where the system chooses our address, it is the one that was shown last from now on.
    pub(crate) fn hold_source(&mut self) {
        if self.source == SourceAddress::System && self.is_system_known() {
            self.source = SourceAddress::Held;
        }
    }

    /// The system may choose our address again, where it did before.
    pub(crate) fn release_source(&mut self) {
        if self.source == SourceAddress::Held {
            self.source = SourceAddress::System;
        }
    }

    /// True where the system may not choose another address of ours for now.
    pub(crate) fn is_source_held(&self) -> bool {
        self.source == SourceAddress::Held
    }

    /// A datagram of `bytes` came from the peer at this address.
    pub(crate) fn on_received(&mut self, bytes: u64) {
        self.received_bytes = self.received_bytes.saturating_add(bytes);
        let earned = bytes.saturating_mul(AMPLIFICATION_FACTOR);
        self.response_credit = self.response_credit.saturating_add(earned).min(PATH_RESPONSE_BURST_BYTES);
    }

    /// A datagram of `bytes` left on this 4-tuple; counts every datagram, challenges and closes too.
    pub(crate) fn on_sent(&mut self, bytes: u64) {
        self.sent_bytes = self.sent_bytes.saturating_add(bytes);
    }

    /// True as long as there is nothing but the peer's word for it that it is at this address.
    pub(crate) fn is_hearsay(&self) -> bool {
        self.origin == Origin::Named && !self.is_validated()
    }

    /// True where packets alone say that the peer is here.
    pub(crate) fn awaits_proof(&self) -> bool {
        self.origin == Origin::Peers && !self.is_validated()
    }

    /// Bytes that may be sent now: `u64::MAX` once validated and where no datagram of the peer's chose the address, else three times what came
    /// less what went.
    #[inline]
    pub(crate) fn amplification_room(&self) -> u64 {
        match (self.validation, self.origin) {
            (Validation::Validated, _) | (_, Origin::Ours | Origin::Named) => u64::MAX,
            // RFC 9000 8, 8.1, 8.2: never more than three times the bytes received.
            _ => self.received_bytes.saturating_mul(AMPLIFICATION_FACTOR).saturating_sub(self.sent_bytes),
        }
    }

    /// The peer proved this address by other means: a handshake packet or a token.
    pub(crate) fn on_address_proven(&mut self) {
        self.validation = Validation::Validated;
        self.full_size_proven = true;
        self.end_validation();
    }

    /// The peer proved on another connection that it receives here. That counts once the challenge that is under way was not answered
    /// for `patience`; whether full-sized datagrams pass, its answer still has to show.
    pub(crate) fn on_proven_elsewhere(&mut self, now: Instant, patience: Duration) {
        let asked_at = self.asked_at.unwrap_or(now);
        if let Some(running) = &mut self.running {
            running.proven_at = Some((asked_at + patience).max(now));
        }
    }

    /// The peer proved its address between this one and another of ours: what leaves for it needs no credit.
    pub(crate) fn on_remote_proven(&mut self) {
        self.origin = Origin::Ours;
    }

    /// True for an address of ours that did not answer.
    pub(crate) fn is_spent(&self) -> bool {
        self.origin == Origin::Ours && self.validation == Validation::Failed
    }

    /// Starts to validate: a challenge is due at once, and the timer runs.
    pub(crate) fn begin_validation(&mut self, now: Instant, times: ValidationTimes) {
        if self.validation == Validation::Failed {
            self.validation = Validation::Unvalidated;
        }
        self.challenges.clear();
        self.asked_at = Some(now);
        self.running = Some(Box::new(Running {
            times,
            retry: times.retry,
            next: now + times.retry,
            give_up: now + times.give_up,
            challenge_due: true,
            heard: true,
            early: 0,
            early_at: None,
            proven_at: None,
        }));
    }

    /// Starts to validate an address that was proven: a challenge is due once a probe time-out has passed since the last
    /// validation began, so that a peer that moves to and fro draws no challenge by each packet.
    pub(crate) fn begin_to_confirm(&mut self, now: Instant, times: ValidationTimes) {
        // RFC 9000 8.2.1: challenges are no more frequent than Initial packets would be.
        match self.asked_at.map(|at| at + times.retry).filter(|next| *next > now) {
            None => self.begin_validation(now, times),
            Some(next) => {
                // Nor by each packet that is lost or acked without an answer.
                let (retry, challenge_due, early) = (times.retry, self.wants_challenge(), MAX_EARLY_CHALLENGES);
                let give_up = now + times.give_up;
                let (heard, early_at, proven_at) = (true, None, None);
                let running = Running { times, retry, next, give_up, challenge_due, heard, early, early_at, proven_at };
                self.running = Some(Box::new(running));
            }
        }
    }

    /// The packet with challenge `data` was lost, or was acked and an answer ought to be here by `at`: the answer was lost
    /// then, which nobody sends twice, and a new challenge leaves. As an Initial packet's loss is found by acks and repaired
    /// before its probe time-out (RFC 9000 8.2.1).
    /// To an address that the peer merely named its word for that draws none.
    pub(crate) fn ask_again(&mut self, at: Instant, data: ChallengeData) {
        let is_latest = !self.is_hearsay() && self.challenges.back().is_some_and(|challenge| challenge.data == data);
        let Some(running) = self.running.as_mut().filter(|r| is_latest && r.early < MAX_EARLY_CHALLENGES) else {
            return;
        };
        if !running.challenge_due && at < running.next {
            running.early_at = Some(at);
            running.early += 1;
        }
    }

    /// A packet of the peer's came from here. Where it is the first for long since a challenge, the way was dead when that left:
    /// another one leaves now, and patience does not end before its answer may be here.
    pub(crate) fn on_heard(&mut self, now: Instant) {
        let Some(running) = self.running.as_mut().filter(|running| !running.heard) else { return };
        running.heard = true;
        let silence = running.times.retry / 2;
        if !running.challenge_due && self.challenges.back().is_some_and(|last| now >= last.sent_at + silence) {
            running.challenge_due = true;
            running.early_at = None;
            running.next = running.next.max(now + running.times.retry);
            running.give_up = running.give_up.max(now + running.times.retry);
        }
    }

    /// PATH_CHALLENGE arrived here: a response is due here and nowhere else (RFC 9000 8.2.2).
    pub(crate) fn on_challenge(&mut self, data: ChallengeData) {
        if self.responses.contains(&data) {
            return;
        }
        if self.responses.len() >= MAX_QUEUED_PATH_RESPONSES {
            self.responses.pop_front();
        }
        self.responses.push_back(data);
    }

    /// When the challenge left that `data` echoes here.
    pub(crate) fn asked_at(&self, data: ChallengeData) -> Option<Instant> {
        self.challenges.iter().find(|c| c.data == data).map(|c| c.sent_at)
    }

    /// Which challenge `data` echoes here, if any; the 4-tuple is then validated.
    pub(crate) fn on_response(&mut self, now: Instant, data: ChallengeData) -> ResponseOutcome {
        let Some(challenge) = self.challenges.iter().find(|c| c.data == data).copied() else {
            return ResponseOutcome::NotOurs;
        };
        let news = !self.is_validated();
        self.validation = Validation::Validated;
        self.full_size_proven |= challenge.pad == Pad::Full;
        if self.full_size_proven {
            self.end_validation();
        } else if let Some(running) = &mut self.running {
            // RFC 9000 8.2.1, 8.2.3: the address is proven but not the size; validate again with a full datagram.
            self.challenges.clear();
            running.challenge_due = true;
            // It is a validation of its own: what is left of the first one's time may be next to nothing.
            running.retry = running.times.retry;
            running.next = now + running.retry;
            running.early_at = None;
            running.give_up = now + running.times.give_up;
        }
        if news { ResponseOutcome::Validates } else { ResponseOutcome::Known }
    }

    fn end_validation(&mut self) {
        self.running = None;
        self.challenges.clear();
    }

    /// True when a challenge or a response waits and at least some of it may be sent.
    #[inline]
    pub(crate) fn wants_send(&self) -> bool {
        (self.wants_response() || self.wants_challenge()) && self.amplification_room() >= MIN_CHALLENGE_BYTES
    }

    /// True when a challenge or a response waits, whether or not it may be sent.
    #[inline]
    pub(crate) fn has_frames(&self) -> bool {
        !self.responses.is_empty() || self.wants_challenge()
    }

    /// True when a challenge of ours waits.
    #[inline]
    pub(crate) fn wants_challenge(&self) -> bool {
        self.running.as_ref().is_some_and(|r| r.challenge_due)
    }

    /// True when a response waits that may be sent: what came from here pays for its full size. To an address that the
    /// peer merely named it goes along with a challenge of ours, or any number of challenges would draw datagrams there.
    #[inline]
    pub(crate) fn wants_response(&self) -> bool {
        let may_leave = || !self.is_hearsay() || self.wants_challenge();
        !self.responses.is_empty() && may_leave() && self.response_credit >= MIN_DATAGRAM_BYTES as u64
    }

    /// Writes the waiting responses and a due challenge. Says whether the datagram must be grown.
    ///
    /// `w` must not extend beyond the amplification room: the caller cuts it.
    pub(crate) fn fill(&mut self, now: Instant, rng: &mut Random, w: &mut FrameWriter<'_>) -> Pad {
        let room = if self.amplification_room() >= MIN_DATAGRAM_BYTES as u64 { Pad::Full } else { Pad::No };
        let mut wrote = false;
        let may_respond = self.wants_response();
        while let Some(&data) = self.responses.front().filter(|_| may_respond) {
            if !w.write(&PathResponse { data }, SentFrame::PathResponse) {
                break;
            }
            self.responses.pop_front();
            wrote = true;
        }
        if may_respond && wrote {
            self.response_credit = self.response_credit.saturating_sub(MIN_DATAGRAM_BYTES as u64);
        }
        if let Some(running) = self.running.as_mut().filter(|r| r.challenge_due) {
            let mut data = ChallengeData::default();
            rng.fill(&mut data);
            if w.write(&PathChallenge { data }, SentFrame::PathChallenge(data)) {
                (running.challenge_due, running.heard) = (false, false);
                if self.challenges.len() >= MAX_OUTSTANDING_CHALLENGES {
                    self.challenges.pop_front();
                }
                self.challenges.push_back(Challenge { data, pad: room, sent_at: now });
                wrote = true;
            }
        }
        // RFC 9000 8.2.1, 8.2.2: both frames travel in 1200 bytes unless the amplification limit forbids.
        if wrote { room } else { Pad::No }
    }

    /// True while a response of the peer is awaited.
    pub(crate) fn has_asked(&self) -> bool {
        !self.challenges.is_empty()
    }

    /// When the next challenge or the end of patience is due.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let next = |r: &Running| r.early_at.unwrap_or(r.next).min(r.next);
        let challenge = |r: &Running| if r.challenge_due { r.give_up } else { next(r).min(r.give_up) };
        self.running.as_ref().and_then(|r| earliest(r.proven_at, Some(challenge(r))))
    }

    pub(crate) fn on_timeout(&mut self, now: Instant) -> ValidationTimeout {
        let Some(running) = &mut self.running else { return ValidationTimeout::Nothing };
        if running.proven_at.take_if(|at| *at <= now).is_some() && self.validation == Validation::Unvalidated {
            self.validation = Validation::Validated;
            return ValidationTimeout::Proven;
        }
        if now >= running.give_up {
            self.end_validation();
            if self.validation != Validation::Validated {
                self.validation = Validation::Failed;
            }
            return ValidationTimeout::GaveUp;
        }
        if running.early_at.take_if(|at| *at <= now).is_some() {
            // The clock goes on by itself, or many losses would leave it few times to ask until patience ends.
            running.next = running.next.max(now + running.retry);
            running.challenge_due = true;
            return ValidationTimeout::Again;
        }
        if now < running.next {
            return ValidationTimeout::Nothing;
        }
        running.early_at = None;
        running.retry = running.retry.saturating_mul(2);
        running.next = now + running.retry;
        running.challenge_due = true;
        ValidationTimeout::Again
    }
}
