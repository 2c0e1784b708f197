//! The path table: every path id of a connection, from its first connection id until it is forgotten.

mod ack_frequency;
mod across;
mod closing;
mod credit;
mod extension;
mod frame_room;
mod inbound;
mod lending;
mod loan;
mod moving;
mod opening;
mod outbound;
mod place;
mod reports;
mod shown;
mod slot;
mod slots;
mod snapshot;
mod uniflows;

use std::collections::VecDeque;
use std::time::Duration;

use plait_base::limits::{MAX_PATHS, MAX_VALIDATIONS};
use plait_base::time::earliest;
use plait_base::{ConnectionId, Instant, PathId, RangeSet, ResetToken, Side};
use plait_wire::frame::AckForm;
use plait_wire::params::AnnouncementParameters;
use smallvec::SmallVec;

use crate::ack_frequency::AckRequests;
use crate::addresses::AddressEvent;
use crate::cids::{CidSource, IssuedCid};
use crate::hosts::{AddressScope, Hosts};
use crate::path::Path;
use crate::reports::PathReports;
use crate::stats::PathTotals;

pub use crate::pairing::Pairing;
pub use across::PathIds;
pub use closing::AbandonError;
pub(crate) use closing::PendingAbandon;
use credit::PathCredit;
use extension::{Negotiated, UniflowLimits};
pub use frame_room::frame_room;
pub use inbound::{AbandonNews, AckTarget};
pub use loan::{Appetite, LendingTurn, Loan, LoanRecord, Recall};
pub use opening::{Admission, OpenError};
pub use place::SlotPlace;
pub use reports::{ReportedFailure, ReportedPath};
pub(crate) use slot::Closing;
pub use slot::Slot;
use slots::Slots;
pub use snapshot::{PathRoom, PathSnapshot};

/// Ids issued ahead for a path id that no one uses yet: enough to open it. Its spares follow once it is.
const CIDS_AHEAD: usize = 1;
/// Paths beyond the first for which a server issues a connection id with its first flight.
const PATHS_IN_HANDSHAKE: u32 = 2;

/// What the table must know from the start.
#[derive(Clone, Copy, Debug)]
pub struct TableConfig {
    /// Which end we are.
    pub side: Side,
    /// active_connection_id_limit that we announce, at least 2.
    pub cid_limit: u64,
    /// initial_max_path_id that we announce; none leaves multipath off. Cut to [`MAX_PATHS`] - 1.
    pub initial_max_path_id: Option<u32>,
    /// max_sending_uniflow_id that we announce; none leaves Multiflow off. Cut to [`MAX_PATHS`] - 1.
    pub max_sending_uniflow_id: Option<u32>,
    /// What we wish to tell and to be told beside RFC 10069.
    pub announcements: AnnouncementParameters,
    /// Which addresses that the peer names may be asked.
    pub address_scope: AddressScope,
    /// Path validations under way at once, whoever began them. At most [`MAX_VALIDATIONS`].
    pub max_validations: usize,
}

/// What the peer's transport parameters say.
#[derive(Clone, Copy, Debug)]
pub struct PeerLimits {
    /// Its active_connection_id_limit transport parameter.
    pub cid_limit: u64,
    /// Its initial_max_path_id; none when it does not know multipath.
    pub initial_max_path_id: Option<u32>,
    /// Its max_sending_uniflow_id; none when it does not know Multiflow.
    pub max_sending_uniflow_id: Option<u32>,
    /// What it wishes to tell and to be told beside RFC 10069.
    pub announcements: AnnouncementParameters,
}

/// What the endpoint and the routing of resets must be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableEvent {
    /// A connection id of ours: route it here.
    CidIssued(IssuedCid),
    /// A connection id of ours is no longer used.
    CidRetired {
        /// The path that it belongs to.
        path: PathId,
        /// The id that was retired.
        cid: ConnectionId,
    },
    /// A reset token of the peer counts from now on.
    TokenInUse {
        /// Path of its connection id.
        path: PathId,
        /// The stateless reset token.
        token: ResetToken,
    },
    /// A reset token of the peer no longer counts.
    TokenForgotten {
        /// Path of its connection id.
        path: PathId,
        /// The stateless reset token.
        token: ResetToken,
    },
}

/// What a timer did.
#[derive(Debug)]
pub enum Expired {
    /// A validation ended.
    Address(PathId, AddressEvent),
    /// A path id is forgotten, with the path where there was one.
    Forgotten(PathId, Option<Box<Path>>),
}

/// All path ids of a connection.
///
/// Invariants: slots are sorted by id; an id is in a slot or among the retired ones, never in both; there are at
/// most [`MAX_PATHS`] slots, since we never allow more ids than that many live ones.
#[derive(Debug)]
pub struct Paths {
    config: TableConfig,
    peer: Option<PeerLimits>,
    extension: Negotiated,
    /// What the hosts tell each other of their addresses; none where no extension lets them.
    hosts: Option<Box<Hosts>>,
    /// What they tell each other of their paths; none where no extension lets them.
    reports: Option<Box<PathReports>>,
    /// What both ends ask of each other's acks.
    ack_requests: AckRequests,
    slots: Slots,
    retired: RangeSet,
    /// Ids that died and for which the peer has no new one yet.
    owed_ids: u32,
    pending_abandons: Vec<PendingAbandon>,
    events: VecDeque<TableEvent>,
    /// Largest probe time-out, as [`Self::on_pto_changed`] found it last.
    max_pto: Duration,
    /// What paths did that are gone.
    past: PathTotals,
    /// Paths that somebody else serves.
    lent: usize,
    /// Loans so far.
    loans: u64,
}

impl Paths {
    /// A table with a slot for path 0.
    pub fn new(config: TableConfig) -> Self {
        let initial_max_path_id = config.initial_max_path_id.map(|max| max.min(MAX_PATHS as u32 - 1));
        let max_validations = config.max_validations.min(MAX_VALIDATIONS);
        let config = TableConfig { initial_max_path_id, max_validations, ..config };
        // RFC 9000 18.2: the peer's limit is 2 until it says otherwise.
        let slots = Slots::new(Slot::new(PathId::ZERO, config.cid_limit, 2));
        Self {
            config,
            peer: None,
            extension: Negotiated::None,
            hosts: None,
            reports: None,
            ack_requests: AckRequests::default(),
            slots,
            retired: RangeSet::new(),
            owed_ids: 0,
            pending_abandons: Vec::new(),
            events: VecDeque::new(),
            max_pto: Duration::from_secs(1),
            past: PathTotals::default(),
            lent: 0,
            loans: 0,
        }
    }

    /// The peer's transport parameters are authenticated.
    pub fn set_peer_limits(&mut self, peer: PeerLimits) {
        self.peer = Some(peer);
        self.slots.all_mut().iter_mut().for_each(|slot| slot.local.set_limit(peer.cid_limit));
    }

    /// The handshake is complete: multipath takes effect if both sides want it; true when it does.
    pub fn on_handshake_complete(&mut self) -> bool {
        let Negotiated::None = self.extension else { return self.is_multipath() };
        let peer = |limit: fn(&PeerLimits) -> Option<u32>| self.peer.as_ref().and_then(limit);
        let multipath = self.config.initial_max_path_id.zip(peer(|peer| peer.initial_max_path_id));
        let multiflow = self.config.max_sending_uniflow_id.zip(peer(|peer| peer.max_sending_uniflow_id));
        self.extension = match (multipath, multiflow) {
            // Where both were offered, the standard wins.
            (Some((local, remote)), _) => Negotiated::Multipath(PathCredit::new(local, remote)),
            (None, Some((ours, peers))) => Negotiated::Multiflow(UniflowLimits::new(ours, peers)),
            (None, None) => Negotiated::None,
        };
        self.begin_extension();
        self.is_multipath()
    }

    /// True once several paths, or several uniflows, may be in use.
    #[inline]
    pub fn is_multipath(&self) -> bool {
        !matches!(self.extension, Negotiated::None)
    }

    /// How the two flows of an id belong together.
    #[inline]
    pub fn pairing(&self) -> Pairing {
        self.extension.pairing()
    }

    /// In which frames acks of 1-RTT packets travel now.
    #[inline]
    pub fn ack_form(&self) -> AckForm {
        self.extension.ack_form()
    }

    /// The slot of an id.
    #[inline]
    pub fn slot(&self, id: PathId) -> Option<&Slot> {
        self.index(id).map(|i| &self.slots[i])
    }

    /// The slot of an id, to change.
    #[inline]
    pub(crate) fn slot_mut(&mut self, id: PathId) -> Option<&mut Slot> {
        let at = self.index(id)?;
        self.slots.get_mut(at)
    }

    #[inline]
    fn index(&self, id: PathId) -> Option<usize> {
        // Those in use mostly follow each other from the first on: a search would touch slots that nobody uses.
        let first = self.slots.first()?.id;
        let at = id.0.checked_sub(first.0)? as usize;
        match self.slots.get(at) {
            Some(slot) if slot.id == id => Some(at),
            _ => self.search(id),
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn search(&self, id: PathId) -> Option<usize> {
        self.slots.binary_search_by_key(&id, |slot| slot.id).ok()
    }

    /// The path of an id, open or closing.
    #[inline]
    pub fn path(&self, id: PathId) -> Option<&Path> {
        self.slot(id)?.path.as_deref()
    }

    /// The path of an id, open or closing, to change.
    #[inline]
    pub fn path_mut(&mut self, id: PathId) -> Option<&mut Path> {
        self.slot_mut(id)?.path.as_deref_mut()
    }

    /// Slots by id, perhaps without those at the end whose ids nobody used or ended, and about which nothing is to be said.
    #[inline]
    pub fn slots(&self) -> impl DoubleEndedIterator<Item = &Slot> + Clone {
        self.slots.awake().iter()
    }

    /// The same slots, to change.
    #[inline]
    pub fn slots_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Slot> {
        self.slots.awake_mut().iter_mut()
    }

    /// Slots of open paths that are not closing, by id.
    #[inline]
    pub fn open_slots(&self) -> impl DoubleEndedIterator<Item = &Slot> + Clone {
        self.slots().filter(|slot| slot.is_open())
    }

    /// True when the id was used and is forgotten: what comes for it is ignored.
    pub(crate) fn is_retired(&self, id: PathId) -> bool {
        self.retired.contains(u64::from(id.0))
    }

    /// Path validations under way.
    pub fn validations(&self) -> usize {
        self.slots().filter_map(|slot| slot.path.as_ref()).map(|path| path.addresses.validations()).sum()
    }

    /// Installs what the handshake gave path 0: our own id, known to the peer.
    pub fn set_local_initial(&mut self, cid: ConnectionId, token: ResetToken) {
        if let Some(first) = self.slots.get_mut(0) {
            first.local.add_known(cid, token);
        }
    }

    /// Installs or replaces the peer's handshake id of path 0; the token comes with a server's parameters.
    pub fn set_remote_initial(&mut self, cid: ConnectionId, token: Option<ResetToken>) {
        self.change_remote(PathId::ZERO, |slot| slot.remote.set_initial(cid, token));
    }

    /// Issues the connection ids that are missing: for every id in use up to the peer's limit, for every id that
    /// may be opened a few ahead. Each comes out as [`TableEvent::CidIssued`].
    pub fn issue_cids(&mut self, source: &mut dyn CidSource) {
        if self.peer.is_none() {
            return;
        }
        if let Some(max) = self.extension.issued_max() {
            let here = || self.slots.iter().map(|slot| slot.id).filter(|id| *id <= max);
            // Sorted as they are, nothing is missing where each has its place.
            let is_full = self.slots.get(max.0 as usize).is_some_and(|slot| slot.id == max);
            if !is_full && !not_retired(&self.retired, max).eq(here()) {
                let ids: SmallVec<[PathId; MAX_PATHS]> = not_retired(&self.retired, max).collect();
                for id in ids {
                    self.ensure_slot(id);
                }
            }
        }
        // The peer may give ids for more than it takes: nothing is issued beyond its own limit.
        let is_taken = |id: PathId| self.extension.issued_max().is_none_or(|max| id <= max);
        let wanted = |slot: &Slot| if slot.is_opened() { usize::MAX } else { CIDS_AHEAD };
        for at in 0..self.slots.len() {
            let taken = self.slots.get(at).filter(|slot| is_taken(slot.id));
            let need = taken.map_or(0, |slot| slot.local.need(wanted(slot)));
            // What lacks nothing is left alone.
            let Some(slot) = (need > 0).then(|| self.slots.get_mut(at)).flatten() else { continue };
            for _ in 0..need {
                if let Some(issued) = slot.local.issue(source) {
                    self.events.push_back(TableEvent::CidIssued(issued));
                }
            }
        }
    }

    /// Issues one connection id for each of the first paths before the handshake is complete: a server knows from the
    /// client's parameters that both want multipath, and a client that has these ids need not wait a round trip more.
    pub fn issue_cids_in_handshake(&mut self, source: &mut dyn CidSource) {
        let both = (self.config.initial_max_path_id, self.peer.and_then(|p| p.initial_max_path_id));
        let (Some(local), Some(remote)) = both else { return };
        for id in (1..=local.min(remote).min(PATHS_IN_HANDSHAKE)).map(PathId) {
            let Some(slot) = self.ensure_slot(id) else { continue };
            if slot.local.need(1) > 0
                && let Some(issued) = slot.local.issue(source)
            {
                self.events.push_back(TableEvent::CidIssued(issued));
            }
        }
    }

    /// The slot of an id that is not retired; made when missing. The caller checked the id against our limit.
    fn ensure_slot(&mut self, id: PathId) -> Option<&mut Slot> {
        if self.is_retired(id) {
            return None;
        }
        let at = match self.slots.binary_search_by_key(&id, |slot| slot.id) {
            Ok(at) => at,
            Err(at) => {
                let peer_limit = self.peer.map_or(2, |p| p.cid_limit);
                self.slots.insert(at, Slot::new(id, self.config.cid_limit, peer_limit));
                at
            }
        };
        self.slots.get_mut(at)
    }

    /// Changes a slot's remote ids and reports which reset tokens came into or went out of use.
    fn change_remote<T>(&mut self, id: PathId, change: impl FnOnce(&mut Slot) -> T) -> Option<T> {
        let at = self.index(id)?;
        let slot = self.slots.get_mut(at)?;
        let before: SmallVec<[ResetToken; 4]> = slot.remote.tokens_in_use().collect();
        let active = slot.remote.active_sequence();
        let out = change(slot);
        debug_assert!(!self.retired.contains(u64::from(id.0)), "in use and retired");
        if slot.remote.active_sequence() != active {
            // RFC 9000 17.4: the spin bit starts at 0 under each connection id
            slot.path.iter_mut().for_each(|path| path.spin.on_new_cid());
        }
        let after: SmallVec<[ResetToken; 4]> = slot.remote.tokens_in_use().collect();
        for &token in before.iter().filter(|t| !after.contains(t)) {
            self.events.push_back(TableEvent::TokenForgotten { path: id, token });
        }
        for &token in after.iter().filter(|t| !before.contains(t)) {
            self.events.push_back(TableEvent::TokenInUse { path: id, token });
        }
        Some(out)
    }

    /// Gives back the memory that it does not use.
    pub fn shrink_to_fit(&mut self) {
        self.slots.shrink_to_fit();
        self.pending_abandons.shrink_to_fit();
        self.events.shrink_to_fit();
        // Those that nobody touched have what they need.
        for slot in self.slots_mut() {
            slot.local.shrink_to_fit();
            slot.remote.shrink_to_fit();
            slot.path.iter_mut().for_each(|path| path.shrink_to_fit());
        }
    }

    /// What the endpoint must be told next.
    pub fn poll_event(&mut self) -> Option<TableEvent> {
        self.events.pop_front()
    }

    /// When [`Self::poll_timeout`] wants to be called; covers validations and closing ids, not the flows.
    pub fn deadline(&self) -> Option<Instant> {
        let of = |slot: &Slot| match &slot.closing {
            Some(closing) => Some(closing.forget_at),
            None => slot.path.as_ref().and_then(|path| path.addresses.deadline()),
        };
        self.slots().fold(None, |first, slot| earliest(first, of(slot)))
    }

    /// What time has brought by `now`; call until none.
    pub fn poll_timeout(&mut self, now: Instant) -> Option<Expired> {
        if let Some(forgotten) = self.take_forgotten(now) {
            return Some(forgotten);
        }
        let open = self.slots_mut().filter(|slot| slot.closing.is_none()).filter_map(|slot| slot.path.as_mut());
        let (id, event) =
            open.map(|path| (path.id(), path.on_address_timeout(now))).find(|(_, event)| event.is_some())?;
        self.change_remote(id, Slot::assign_cids);
        Some(Expired::Address(id, event?))
    }
}

/// Ids up to `max` that are not retired, ascending; costs no more than their number and that of retired ranges.
fn not_retired(retired: &RangeSet, max: PathId) -> impl Iterator<Item = PathId> + '_ {
    let end = u64::from(max.0) + 1;
    let starts = std::iter::once(0).chain(retired.iter().map(|r| r.end));
    let ends = retired.iter().map(|r| r.start).chain(std::iter::once(end));
    starts.zip(ends).flat_map(move |(start, stop)| start..stop.min(end)).map(|id| PathId(id as u32))
}

#[cfg(test)]
mod tests;
