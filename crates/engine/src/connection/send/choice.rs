//! The next packet: what is bound to one path goes first, then what the scheduler decides, then what fills a pause.

use plait_base::time::earliest;
use plait_base::{Instant, PathId, Side, Space};
use plait_path::{Path, Paths, SendRoom, frame_room};
use plait_schedule::reinject::Occasion;
use plait_schedule::{Backlog, Decision, Demand, DemandKind, PathView, Room, WaitReason, fastest};
use plait_stream::{Datagrams, Streams};

use crate::config::StreamPlacement;
use crate::connection::paths::PathControl;
use crate::connection::send::purpose::{Choice, EmptyChoices, Purpose};
use crate::connection::send::scheduling::{Scheduling, Shown};
use crate::connection::send::sockets::SMALLEST_PACKET_BYTES;

/// What a connection has to send at one moment, and what its handshake lets it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offer {
    pub(crate) now: Instant,
    pub(crate) side: Side,
    pub(crate) keys: DataKeys,
    /// Whether MTU probes may leave: once the handshake is confirmed.
    pub(crate) mtu_probes: Permission,
    /// Whether the first packets of a client's new paths may leave.
    pub(crate) openings: Permission,
    /// What waits for the scheduler.
    pub(crate) demand: Option<Demand>,
    /// The part of it that is stream data, bytes.
    pub(crate) stream_bytes: u64,
    /// Whether connection flow control holds new data back while data is under way.
    pub(crate) is_credit_blocked: bool,
    /// Why an idle path may take over what others have under way; none while there is new data or nothing under way.
    pub(crate) occasion: Option<Occasion>,
}

impl Offer {
    /// True where what waits is the end of all streams in use.
    fn is_final(&self) -> bool {
        self.demand.is_some_and(|demand| demand.kind == DemandKind::Stream && demand.backlog == Backlog::Final)
    }
}

/// The keys that packets of the data space are sealed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DataKeys {
    ZeroRtt,
    OneRtt,
}

/// Whether something may leave already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Permission {
    Given,
    Awaited,
}

impl Permission {
    pub(crate) fn when(given: bool) -> Self {
        if given { Self::Given } else { Self::Awaited }
    }
}

impl Scheduling {
    /// Which path sends next, and what for: none of `empty`, which came to nothing earlier in this poll.
    pub(crate) fn next_packet(
        &mut self,
        paths: &mut PathControl,
        streams: &mut Streams,
        datagrams: &Datagrams,
        offer: &Offer,
        empty: &EmptyChoices,
    ) -> Option<Choice> {
        // Wishes about a packet that was not built after all say nothing about the next one.
        self.copy_to.clear();
        if offer.keys == DataKeys::OneRtt
            && let Some(choice) = self.next_bound(paths, offer, empty)
        {
            return Some(choice);
        }
        let mut occasion = offer.occasion;
        if !empty.has_scheduled() {
            match self.next_scheduled(&mut paths.table, streams, datagrams, offer) {
                Ok(choice) => return Some(choice),
                Err(Some(WaitReason::Faster(_))) if offer.is_final() => occasion = Some(Occasion::Held),
                Err(_) => {}
            }
        }
        if offer.keys == DataKeys::ZeroRtt {
            return None;
        }
        let rest = self.next_reinjection(&mut paths.table, offer, occasion, empty);
        let rest = rest.or_else(|| self.acks.next(offer.now, &paths.table, &self.full_sockets, empty));
        rest.or_else(|| self.next_idle_search(paths, datagrams, offer, empty))
    }

    /// What the scheduler decides about what waits for it, or why it waits.
    fn next_scheduled(
        &mut self,
        paths: &mut Paths,
        streams: &mut Streams,
        datagrams: &Datagrams,
        offer: &Offer,
    ) -> Result<Choice, Option<WaitReason>> {
        // Asked first: new data without credit is no demand.
        if offer.is_credit_blocked {
            self.scheduler.on_credit_blocked(offer.now);
        }
        let demand = offer.demand.as_ref().ok_or(None)?;
        match self.decide(paths, streams, datagrams, offer, demand) {
            Decision::Send(path) if self.is_for_control_alone(path, offer, demand) => {
                Ok(Choice { path, purpose: Purpose::Control })
            }
            Decision::Send(path) => Ok(self
                .next_ahead(paths, path, offer, demand)
                .unwrap_or_else(|| Choice { path, purpose: data_or_mtu_probe(paths, path, datagrams, offer) })),
            Decision::SendAlso { primary: path, .. } => Ok(Choice { path, purpose: Purpose::Data }),
            Decision::Wait(reason) => Err(Some(reason)),
        }
    }

    /// Copies in place of new data on `path`, where that data would soon meet a limit that something under way elsewhere holds.
    fn next_ahead(&mut self, paths: &mut Paths, path: PathId, offer: &Offer, demand: &Demand) -> Option<Choice> {
        let credit = demand.send_credit_bytes;
        // Where none is left, lost data goes first; where what waits is less than what may leave, or there is no other path,
        // nothing will be held up.
        let is_bound = credit > 0 && credit <= offer.stream_bytes;
        if !is_bound || self.views.list().len() < 2 || offer.keys == DataKeys::ZeroRtt {
            return None;
        }
        let Self { reinjector, views, copies, .. } = self;
        reinjector.next_ahead(offer.now, credit, path, views.list(), paths, copies)
    }

    /// True where control frames, which never wait, leave on a path that stream data would not take: what rode along there would
    /// hold up all that follows it.
    fn is_for_control_alone(&mut self, path: PathId, offer: &Offer, demand: &Demand) -> bool {
        let may_wait = demand.kind == DemandKind::Control
            && offer.stream_bytes > 0
            && fastest(self.views.list()).is_some_and(|fast| fast.id != path);
        let stream = Demand { kind: DemandKind::Stream, ..*demand };
        may_wait && matches!(self.pick(Shown::All, &stream), Decision::Wait(WaitReason::Faster(_)))
    }

    /// The scheduler's answer. Where the next datagram is too large for packets of some paths, those that can carry it are
    /// offered first; while they are held, all are offered what else waits for them.
    pub(crate) fn decide(
        &mut self,
        paths: &mut Paths,
        streams: &mut Streams,
        datagrams: &Datagrams,
        offer: &Offer,
        demand: &Demand,
    ) -> Decision {
        if demand.kind == DemandKind::Stream && self.placement == StreamPlacement::Pinned {
            return self.decide_pinned(paths, streams, offer, demand);
        }
        self.look(paths, offer.now, offer.side);
        let holds =
            |view: &PathView, size: usize| datagrams.max_size(frame_room(view.max_datagram_bytes)) >= Some(size);
        let next = datagrams.next_size().filter(|_| demand.kind == DemandKind::Datagram);
        let Some(next) = next.filter(|next| self.views.list().iter().any(|view| !holds(view, *next))) else {
            return self.pick(Shown::All, demand);
        };
        self.show(|view| holds(view, next));
        let decision = self.pick(Shown::Some, demand);
        if decision.primary().is_some() {
            return decision;
        }
        let has_streams = offer.stream_bytes > 0;
        if has_streams && self.placement == StreamPlacement::Pinned {
            return self.decide_pinned(paths, streams, offer, &Demand { kind: DemandKind::Stream, ..*demand });
        }
        self.show(|view| has_streams || datagrams.next_size_within(frame_room(view.max_datagram_bytes)).is_some());
        let kind = if has_streams { DemandKind::Stream } else { DemandKind::Datagram };
        self.pick(Shown::Some, &Demand { kind, ..*demand })
    }

    /// Packets bound to one path: PTO probes, validation, pings, copies.
    fn next_bound(&mut self, paths: &mut PathControl, offer: &Offer, empty: &EmptyChoices) -> Option<Choice> {
        let PathControl { table, pings, .. } = paths;
        let owes = |path: &Path| path.owes_probe(Space::Data) || path.owes_validation();
        // Nearly always none.
        if table.slots().any(|slot| slot.path.as_deref().is_some_and(owes)) {
            let owed = self.next_owed(table, offer, empty);
            if owed.is_some() {
                return owed;
            }
        } else {
            self.responses_at = None;
        }
        let purpose = Purpose::Ping;
        let mut pings = pings.iter().rev().copied();
        // RFC 9002 7: the window bounds them too; where it is full, what fills it speaks for the path. A peer may ask for many.
        let has_window = |id| table.path(id).is_none_or(|path| path.has_window(offer.now, SMALLEST_PACKET_BYTES));
        let may_leave = |id| !empty.holds(id, purpose) && self.full_sockets.admit(table, id) && has_window(id);
        if let Some(path) = pings.find(|id| may_leave(*id)) {
            return Some(Choice { path, purpose });
        }
        self.next_copy(table, offer, empty)
    }

    /// A probe or a path's validation.
    #[cold]
    fn next_owed(&mut self, table: &mut Paths, offer: &Offer, empty: &EmptyChoices) -> Option<Choice> {
        let found = self.next_pto_probe(table, empty).or_else(|| self.next_validation(table, offer, empty));
        let choice = found?;
        if table.path(choice.path).is_some_and(Path::is_fresh) {
            // The first packet of a path is full-sized, and takes along what waits on another one.
            let _ = self.next_reinjection(table, offer, offer.occasion, empty);
        }
        let takes_copies = choice.purpose == Purpose::Validation && self.copies.are_for(choice.path);
        let takes_copies = takes_copies && !empty.holds(choice.path, Purpose::Copies);
        Some(if takes_copies { Choice { purpose: Purpose::Copies, ..choice } } else { choice })
    }

    /// A path that owes a probe after a time-out.
    fn next_pto_probe(&self, paths: &Paths, empty: &EmptyChoices) -> Option<Choice> {
        let purpose = Purpose::PtoProbe;
        let owes = |path: &&Path| path.owes_probe(Space::Data) && !empty.holds(path.id(), purpose);
        // A path to which the peer gave no id can send nothing, whatever it owes.
        let due = paths.slots().filter(|slot| slot.path.as_deref().as_ref().is_some_and(owes));
        let mut open = due.filter_map(|slot| slot.sendable());
        let has_room = |path: &&Path| {
            let may_send = path.may_send(SMALLEST_PACKET_BYTES) && !path.takes_only_probes();
            may_send && !self.full_sockets.hold(&path.tuple())
        };
        open.find(has_room).map(|path| Choice { path: path.id(), purpose })
    }

    /// A path that owes a challenge or a response on its own addresses, and has room for it.
    fn next_validation(&mut self, paths: &mut Paths, offer: &Offer, empty: &EmptyChoices) -> Option<Choice> {
        let (now, purpose) = (offer.now, Purpose::Validation);
        self.responses_at = None;
        for slot in paths.slots_mut() {
            if slot.path.as_deref().is_none_or(|path| !path.owes_validation()) || slot.sendable().is_none() {
                continue;
            }
            let Some(path) = slot.path.as_deref_mut() else { continue };
            let choice = Choice { path: path.id(), purpose };
            let admits = path.may_send(SMALLEST_PACKET_BYTES) && !self.full_sockets.hold(&path.tuple());
            let must_wait = offer.openings == Permission::Awaited && path.is_fresh();
            if !admits || must_wait || empty.holds(choice.path, purpose) {
                continue;
            }
            match path.validation_room(now) {
                SendRoom::Free => return Some(choice),
                SendRoom::Paced(at) => self.responses_at = earliest(self.responses_at, Some(at)),
                SendRoom::Window => {}
            }
        }
        None
    }

    /// Copies that wait, on the fastest path that may carry them.
    fn next_copy(&mut self, paths: &mut Paths, offer: &Offer, empty: &EmptyChoices) -> Option<Choice> {
        if self.copies.is_empty() { None } else { self.next_of_copies(paths, offer, empty) }
    }

    #[inline(never)]
    fn next_of_copies(&mut self, paths: &mut Paths, offer: &Offer, empty: &EmptyChoices) -> Option<Choice> {
        self.look(paths, offer.now, offer.side);
        let purpose = Purpose::Copies;
        let open = plait_schedule::candidates(self.views.list()).filter(|view| self.copies.wants(view.id));
        let is_opening = |view: &&PathView| view.room == Room::CopiesOnly && self.copies.are_for(view.id);
        let opening = self.views.list().iter().filter(is_opening);
        let new = open.chain(opening).filter(|view| !empty.holds(view.id, purpose));
        let best = new.min_by_key(|view| (view.rtt_or_max(), view.id))?;
        Some(Choice { path: best.id, purpose })
    }

    /// With nothing new to send, an idle path may take over what others still hold.
    fn next_reinjection(
        &mut self,
        paths: &mut Paths,
        offer: &Offer,
        occasion: Option<Occasion>,
        empty: &EmptyChoices,
    ) -> Option<Choice> {
        self.reinjector.forget_next_look();
        let occasion = occasion?;
        if !paths.is_multipath() || offer.openings == Permission::Awaited || paths.open_slots().nth(1).is_none() {
            return None;
        }
        self.reinject(paths, offer, occasion, empty)
    }

    #[inline(never)]
    fn reinject(
        &mut self,
        paths: &mut Paths,
        offer: &Offer,
        occasion: Occasion,
        empty: &EmptyChoices,
    ) -> Option<Choice> {
        self.look(paths, offer.now, offer.side);
        let Self { reinjector, views, copies, .. } = self;
        reinjector.next(offer.now, occasion, views.list(), paths, copies, empty)
    }

    /// A path on which nothing is under way learns what it carries without data, where the application sends datagrams:
    /// their size depends on it, and the scheduler may have no use for the path. A search is a few MTU probes, and the next
    /// one is minutes away.
    fn next_idle_search(
        &mut self,
        paths: &mut PathControl,
        datagrams: &Datagrams,
        offer: &Offer,
        empty: &EmptyChoices,
    ) -> Option<Choice> {
        if empty.has_mtu_probe() || !datagrams.is_used() || offer.mtu_probes == Permission::Awaited {
            return None;
        }
        self.search_idle(paths, offer)
    }

    #[inline(never)]
    fn search_idle(&mut self, paths: &mut PathControl, offer: &Offer) -> Option<Choice> {
        let full = &self.full_sockets;
        let choice = paths.table.slots_mut().filter(|slot| slot.is_working()).find_map(|slot| {
            slot.sendable()?;
            let path = slot.path.as_deref_mut()?;
            let size = path.mtu_probe_while_idle(offer.now)?;
            let choice = Choice { path: path.id(), purpose: Purpose::MtuProbe(size) };
            Some(choice).filter(|_| !full.hold(&path.tuple()))
        })?;
        // RFC 9002 6.1: the ack of a small packet behind it shows the loss of the MTU probe, without a probe time-out.
        paths.ping(choice.path);
        Some(choice)
    }
}

/// A larger datagram instead of data, while data flows and an MTU probe is due. Where the application sends datagrams, which cannot
/// be cut, their size is reason enough.
fn data_or_mtu_probe(paths: &mut Paths, id: PathId, datagrams: &Datagrams, offer: &Offer) -> Purpose {
    let is_wanted = |bytes| datagrams.is_used() || offer.stream_bytes > bytes;
    let path = paths.path_mut(id).filter(|_| offer.mtu_probes == Permission::Given);
    path.and_then(|path| path.mtu_probe_beside_data(offer.now, is_wanted)).map_or(Purpose::Data, Purpose::MtuProbe)
}
