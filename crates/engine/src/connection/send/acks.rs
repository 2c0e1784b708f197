//! Acks on their way out: on which paths they travel, and which of them wait for a packet there.

use std::time::Duration;

use plait_base::observe::PathState;
use plait_base::{Instant, PathId};
use plait_path::policy::ack_route::AckPaths;
use plait_path::table::{Pairing, Slot, SlotPlace};
use plait_path::{AckCarrier, AckNeed, AckRoute, Paths};
use plait_wire::FrameWriter;

use crate::connection::send::purpose::{Choice, EmptyChoices, Purpose};
use crate::connection::send::sockets::FullSockets;

/// Room that a packet with acks alone wants at an address that is not proven, bytes.
const ACK_PACKET_BYTES: u64 = 100;

/// An ack that the policy wants on one more path than the one that carried it first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct AckCopy {
    carrier: PathId,
    of: PathId,
    kind: CopyKind,
}

/// What a copy of an ack is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CopyKind {
    /// The first to arrive counts.
    Spare,
    /// It asks for an answer as well, which measures the way.
    Question,
}

/// How often an ack goes by its own path as well where acks take another: so that the peer's congestion control knows how much
/// longer that way is.
const HOME_INTERVAL: Duration = Duration::from_secs(1);

/// What the policy answered when the packet that is about to be filled was chosen.
#[derive(Clone, Debug)]
struct Chosen {
    at: Instant,
    of: PathId,
    carriers: AckPaths,
}

/// The policy that routes acks, and the acks that wait for further paths.
#[derive(Debug)]
pub(crate) struct Acks {
    pub(crate) route: Box<dyn AckRoute>,
    /// Our ack_delay_exponent (RFC 9000 18.2).
    delay_exponent: u8,
    copies: Vec<AckCopy>,
    /// When an ack last went home as well, for each path whose acks take another.
    home_at: Vec<(PathId, Instant)>,
    /// The answer for which a packet of acks alone was chosen: the policy may be one that takes turns, and is asked once.
    chosen: Option<Chosen>,
    /// Paths that can carry acks, as of the last look; empty before one.
    carriers: Vec<AckCarrier>,
    /// When each of them showed last that it works, and its probe time-out.
    heard: Vec<(Option<Instant>, Duration)>,
    /// Those that are not silent, where some are.
    lively: Vec<AckCarrier>,
}

impl Acks {
    pub(crate) fn new(route: Box<dyn AckRoute>, delay_exponent: u8) -> Self {
        Self {
            route,
            delay_exponent,
            copies: Vec::new(),
            home_at: Vec::new(),
            chosen: None,
            carriers: Vec::new(),
            heard: Vec::new(),
            lively: Vec::new(),
        }
    }

    pub(crate) fn shrink_to_fit(&mut self) {
        self.copies.shrink_to_fit();
        self.home_at.shrink_to_fit();
        // Refilled whenever they are looked at.
        self.carriers = Vec::new();
        self.heard = Vec::new();
        self.lively = Vec::new();
    }

    pub(crate) fn on_path_closing(&mut self, id: PathId) {
        self.route.on_path_closing(id);
        self.copies.retain(|copy| copy.carrier != id && copy.of != id);
        self.home_at.retain(|(of, _)| *of != id);
    }

    /// An ack of `of` has left by another path; true once an interval: it goes home as well.
    fn wants_home(&mut self, now: Instant, of: PathId) -> bool {
        let Some((_, at)) = self.home_at.iter_mut().find(|(path, _)| *path == of) else {
            // Until now they did.
            self.home_at.push((of, now));
            return false;
        };
        let is_due = now.since(*at) >= HOME_INTERVAL;
        if is_due {
            *at = now;
        }
        is_due
    }

    /// True where an ack of `of` that leaves by `carrier`, another path, goes home as well: a path that fell silent a moment ago may
    /// have lost a packet and no more, at either end.
    fn goes_home_too(&mut self, now: Instant, of: &Slot, carrier: &Slot) -> bool {
        of.is_suspect(now) && of.sendable().is_some()
            || may_take_home(of) && (self.wants_home(now, of.id) || is_outlived(carrier, of))
    }

    /// The paths that can carry acks are looked for anew: other packets left, or it is another moment.
    fn forget_look(&mut self) {
        self.carriers.clear();
        self.heard.clear();
    }

    /// Finds the paths that can carry acks.
    fn look(&mut self, paths: &Paths, full: &FullSockets) {
        for slot in paths.open_slots() {
            let Some(path) = slot.sendable().filter(|path| !path.takes_only_probes()) else { continue };
            // A short packet with an ack must fit into the credit of an address that is not proven.
            if path.may_send(ACK_PACKET_BYTES) && !full.hold(&path.tuple()) {
                let carrier = path.ack_carrier(slot.state());
                // An ack of what we sent there shows as well that it works: what it brings may take another way.
                self.heard.push((carrier.heard_at.max(carrier.rtt_at.map(|(_, at)| at)), path.pto()));
                self.carriers.push(carrier);
            }
        }
    }

    /// The paths that carry the acks of `of`, as the policy chooses among those that can.
    fn paths_for(&mut self, now: Instant, paths: &Paths, full: &FullSockets, of: &Slot) -> AckPaths {
        if self.carriers.is_empty() {
            self.look(paths, full);
        }
        let pairing = paths.pairing();
        self.lively.clear();
        // Where there is one, it is taken, silent or not.
        if self.carriers.len() > 1 {
            self.leave_out_silent(pairing, of);
        }
        let Self { route, carriers, lively, .. } = self;
        // Where all are silent: no other path can, and a silent one is better than none.
        let usable = if lively.is_empty() { &*carriers } else { &*lively };
        if carriers.len() > 1 && usable.iter().all(|carrier| carrier.state == PathState::Failed) {
            // Each end may send on a path that leads there and ack on one that does not: the first ack that arrives on
            // any of them ends that, and nothing else would.
            return carriers.iter().map(|carrier| carrier.id).collect();
        }
        let own = match pairing {
            Pairing::Paths => of.id,
            Pairing::Uniflows => paths.way_back(of).unwrap_or(PathId::MAX),
        };
        let mut chosen = route.choose(now, own, usable);
        // An application's policy may name any id: what cannot carry an ack now counts as not chosen.
        chosen.retain(|id| usable.iter().any(|carrier| carrier.id == *id));
        chosen
    }

    /// A receiver sends nothing that shows it the death of a path: one that fell silent while `of` goes on must not swallow the
    /// acks of `of` as well.
    #[inline(never)]
    fn leave_out_silent(&mut self, pairing: Pairing, of: &Slot) {
        let of_heard = of.path.as_deref().and_then(|path| path.receive.heard_at());
        let Some(of_heard) = of_heard.filter(|_| pairing == Pairing::Paths) else { return };
        let is_silent = |one: &(&AckCarrier, &(Option<Instant>, Duration))| {
            let (carrier, (heard_at, pto)) = *one;
            carrier.id != of.id && heard_at.map_or(Duration::MAX, |own| of_heard.since(own)) > *pto
        };
        let known = || self.carriers.iter().zip(&self.heard);
        if known().any(|one| is_silent(&one)) {
            self.lively.extend(known().filter(|one| !is_silent(one)).map(|(carrier, _)| *carrier));
        }
    }

    /// An ack that is due, on the path that the policy wants it on.
    pub(crate) fn next(
        &mut self,
        now: Instant,
        paths: &Paths,
        full: &FullSockets,
        empty: &EmptyChoices,
    ) -> Option<Choice> {
        let purpose = Purpose::Acks;
        self.chosen = None;
        self.forget_look();
        while let Some(&AckCopy { carrier: path, .. }) = self.copies.first() {
            if !empty.holds(path, purpose) && full.admit(paths, path) {
                return Some(Choice { path, purpose });
            }
            self.copies.remove(0);
        }
        for of in paths.slots().filter(|slot| ack_need(slot, now) == AckNeed::Now) {
            let carriers = self.paths_for(now, paths, full, of);
            if let Some(&path) = carriers.first().filter(|id| !empty.holds(**id, purpose)) {
                self.chosen = Some(Chosen { at: now, of: of.id, carriers });
                return Some(Choice { path, purpose });
            }
        }
        None
    }

    /// Acks of every path whose acks the policy wants here, if their need is `least` or more: of 0-RTT and 1-RTT packets, in 1-RTT
    /// packets alone (RFC 9000 13.2.6, 17.2.3).
    pub(crate) fn fill(
        &mut self,
        now: Instant,
        carrier: SlotPlace,
        least: AckNeed,
        paths: &mut Paths,
        full: &FullSockets,
        w: &mut FrameWriter<'_>,
    ) {
        // RFC 9001 5.7: a client's acks of 0.5-RTT data wait for keys, which are there
        let form = paths.ack_form();
        let exponent = self.delay_exponent;
        if !self.copies.is_empty() {
            self.fill_copies(now, carrier, paths, w);
        }
        let mut chosen = self.chosen.take().filter(|chosen| chosen.carriers.first() == Some(&carrier.id()));
        let mut at = 0;
        if chosen.as_ref().is_none_or(|chosen| chosen.at != now) {
            self.forget_look();
        }
        while let Some(of) = paths.next_slot(at, |slot| ack_need(slot, now) >= least) {
            at = of.index() + 1;
            let Some(slot) = paths.slot_at(of) else { continue };
            let carriers = match chosen.take_if(|chosen| chosen.of == of.id()) {
                Some(chosen) => chosen.carriers,
                None => self.paths_for(now, paths, full, slot),
            };
            if !carriers.contains(&carrier.id()) {
                continue;
            }
            let Some(path) = paths.path_at_mut(of) else { continue };
            if path.receive.fill_ack(now, w, form, exponent).is_none() {
                continue;
            }
            path.receive.on_ack_sent();
            // A path that carries the acks of others is heard of once a round trip, so that its death is noticed. One PING
            // under way is enough (RFC 9000 13.2.4).
            let wanted = path.receive.wants_ping() || carrier.id() != of.id();
            if wanted && paths.path_at(carrier).is_some_and(|path| !path.is_awaiting_ack()) {
                w.write_ping();
            }
            if carriers.len() > 1 || carrier.id() != of.id() {
                self.note_copies(now, of, carrier, &carriers, paths);
            }
        }
    }

    /// Copies of acks that wait for this carrier.
    #[inline(never)]
    fn fill_copies(&mut self, now: Instant, carrier: SlotPlace, paths: &mut Paths, w: &mut FrameWriter<'_>) {
        let (form, exponent) = (paths.ack_form(), self.delay_exponent);
        self.copies.retain(|copy| {
            if copy.carrier == carrier.id()
                && let Some(path) = paths.path_mut(copy.of)
            {
                path.receive.fill_ack_copy(now, w, form, exponent);
                // RFC 9000 13.2.4: one PING under way is enough
                if copy.kind == CopyKind::Question && !path.is_awaiting_ack() {
                    w.write_ping();
                }
            }
            copy.carrier != carrier.id()
        });
    }

    /// An ack of `of` leaves by `carrier`: the other paths that are to carry it as well.
    #[inline(never)]
    fn note_copies(&mut self, now: Instant, of: SlotPlace, carrier: SlotPlace, carriers: &AckPaths, paths: &Paths) {
        let home = (paths.pairing() == Pairing::Paths && carrier.id() != of.id()).then_some(of.id()).filter(|_| {
            let slots = paths.slot_at(of).zip(paths.slot_at(carrier));
            slots.is_some_and(|(slot, carrier)| self.goes_home_too(now, slot, carrier))
        });
        let kind = |id| if id == of.id() { CopyKind::Question } else { CopyKind::Spare };
        let others = carriers.iter().map(|id| (*id, kind(*id))).chain(home.map(|id| (id, CopyKind::Spare)));
        for (id, kind) in others.filter(|(id, _)| *id != carrier.id()) {
            match self.copies.iter_mut().find(|copy| (copy.carrier, copy.of) == (id, of.id())) {
                Some(copy) if kind == CopyKind::Question => copy.kind = kind,
                Some(_) => {}
                None => self.copies.push(AckCopy { carrier: id, of: of.id(), kind }),
            }
        }
    }

    /// Acks of `carrier` itself, beside a challenge or a response, whichever way they go otherwise. The peer measures a new path
    /// by them from the first round trip on, even where the other way back is silent.
    pub(crate) fn fill_own(&self, now: Instant, carrier: SlotPlace, paths: &mut Paths, w: &mut FrameWriter<'_>) {
        let (form, exponent) = (paths.ack_form(), self.delay_exponent);
        if paths.slot_at(carrier).is_some_and(|slot| ack_need(slot, now) != AckNeed::None)
            && let Some(path) = paths.path_at_mut(carrier)
        {
            path.receive.fill_ack_copy(now, w, form, exponent);
        }
    }
}

fn may_take_home(slot: &Slot) -> bool {
    slot.state() == PathState::Active && slot.sendable().is_some_and(|path| path.may_send(ACK_PACKET_BYTES))
}

/// True where `of` has brought packets for a round trip of `carrier` in which that one brought none: it may be dead, which is
/// known a probe time-out later, and take the acks of `of` along.
fn is_outlived(carrier: &Slot, of: &Slot) -> bool {
    let heard_at = |slot: &Slot| slot.path.as_deref().and_then(|path| path.receive.heard_at());
    heard_at(carrier).zip(carrier.rtt()).zip(heard_at(of)).is_some_and(|((last, rtt), at)| at.since(last) > rtt)
}

fn ack_need(slot: &Slot, now: Instant) -> AckNeed {
    slot.path.as_deref().map_or(AckNeed::None, |path| path.receive.ack_need(now))
}
