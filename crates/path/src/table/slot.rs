//! Everything known of one path id, opened or not.

use std::time::Duration;

use plait_base::observe::PathState;
use plait_base::{ConnectionId, FourTuple, Instant, PathId, Random, Side};
use plait_wire::FrameWriter;
use plait_wire::frame::CidForm;
use smallvec::SmallVec;

use super::{LendingTurn, Loan};
use crate::addresses::{FourTupleRole, FourTupleState, Pad};
use crate::cids::{LocalCids, RemoteCids};
use crate::frame_state::FrameState;
use crate::path::Path;
use crate::reports::PeerWord;
use crate::status::{PathStatus, Status};

/// A path id between PATH_ABANDON and the time when it is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Closing {
    /// When the peer's PATH_ABANDON arrived.
    pub(crate) received_at: Option<Instant>,
    /// When the id is forgotten.
    pub(crate) forget_at: Instant,
    /// How much longer it stays each time while the peer has neither acknowledged nor answered PATH_ABANDON.
    pub(crate) linger: Duration,
    /// The peer's id that was in use last. It counts as retired: it serves to end the connection where no path is left.
    pub(crate) last_remote_cid: Option<ConnectionId>,
}

/// Whether the send flow of an id leads anywhere. Where the two flows of an id are one path it does as soon as the path is
/// there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binding {
    /// UNUSED, as Multiflow calls it: packets may arrive under the id, none leaves.
    Unbound,
    /// Packets leave to the addresses of the path.
    Bound,
}

/// One path id: connection ids both ways, advice, and the path once it is opened.
#[derive(Debug)]
pub struct Slot {
    /// The path id itself.
    pub id: PathId,
    /// Ids of ours, by which the peer reaches us on this path.
    pub(crate) local: LocalCids,
    /// Ids of the peer, to which we send on this path.
    pub(crate) remote: RemoteCids,
    /// Advice of both sides.
    pub(crate) status: Status,
    /// What the peer told of how it does.
    pub(super) peer_word: PeerWord,
    /// The path, once opened by either side; none while somebody else serves it.
    pub path: Option<Box<Path>>,
    /// What is known of it while somebody else serves it: then it is not in `path`.
    pub(super) loan: Option<Box<Loan>>,
    /// Whether it carries enough to be served elsewhere; none until somebody asks.
    pub lending: Option<Box<LendingTurn>>,
    pub(super) binding: Binding,
    pub(super) closing: Option<Box<Closing>>,
    pub(super) cids_blocked: FrameState,
    /// When the peer first used this path without having given connection ids for it.
    pub(super) wanted_since: Option<Instant>,
}

impl Slot {
    pub(super) fn new(id: PathId, local_limit: u64, remote_limit: u64) -> Self {
        Self {
            id,
            local: LocalCids::new(id, remote_limit),
            remote: RemoteCids::new(id, local_limit),
            status: Status::default(),
            peer_word: PeerWord::default(),
            path: None,
            loan: None,
            lending: None,
            binding: Binding::Unbound,
            closing: None,
            cids_blocked: FrameState::Idle,
            wanted_since: None,
        }
    }

    /// True while neither side used or ended the id and nothing is to be said of it: no walk over paths finds anything here.
    #[inline]
    pub(super) fn is_dormant(&self) -> bool {
        self.is_untouched()
            && self.binding == Binding::Unbound
            && self.lending.is_none()
            && self.wanted_since.is_none()
            && !self.local.wants_frame()
            && !self.remote.wants_frame()
            && !self.status.wants_frame()
            && !self.cids_blocked.is_due()
    }

    /// The end of the path, once it has begun.
    #[inline]
    pub(crate) fn closing(&self) -> Option<&Closing> {
        self.closing.as_deref()
    }

    /// Where the last packets of a closing path go, if any path was there.
    pub fn last_remote_cid(&self) -> Option<ConnectionId> {
        self.closing.as_ref()?.last_remote_cid.filter(|_| self.path.is_some())
    }

    /// True for an opened path that is not being closed: what is sent may go there.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.binding == Binding::Bound && self.closing.is_none()
    }

    /// True for the path of the handshake: see [`Path::is_first`].
    #[inline]
    pub(super) fn is_first(&self) -> bool {
        self.path.as_deref().is_some_and(Path::is_first)
    }

    /// True while neither side used or ended the id.
    pub fn is_untouched(&self) -> bool {
        !self.is_opened() && self.closing.is_none()
    }

    /// True once either side opened the path, whoever serves it.
    #[inline]
    pub fn is_opened(&self) -> bool {
        self.path.is_some() || self.loan.is_some()
    }

    /// The state of the path; an id without one counts as validating.
    #[inline]
    pub fn state(&self) -> PathState {
        if self.closing.is_some() {
            return PathState::Closing;
        }
        match &self.path {
            // What is lent is validated and works.
            None if self.loan.is_some() && self.is_backup() => PathState::Backup,
            None if self.loan.is_some() => PathState::Active,
            None => PathState::Validating,
            Some(_) if self.binding == Binding::Unbound => PathState::Unused,
            Some(path) if !path.addresses.is_validated() => PathState::Validating,
            Some(path) if path.is_failed() => PathState::Failed,
            Some(_) if self.is_backup() => PathState::Backup,
            Some(_) => PathState::Active,
        }
    }

    /// True when either side advised to keep the path as a backup.
    #[inline]
    fn is_backup(&self) -> bool {
        [self.status.local(), self.status.remote()].contains(&Some(PathStatus::Backup))
    }

    /// The connection id to send to on a 4-tuple; none while the peer gave none. RFC 9000 9.5-1: one that needs an id of its
    /// own does not go by the active one meanwhile.
    #[inline]
    pub fn dcid(&self, role: FourTupleRole) -> Option<ConnectionId> {
        match self.path.as_ref().and_then(|p| p.addresses.get(role)).and_then(|l| l.cid) {
            Some(sequence) => self.remote.cid(sequence),
            None => self.remote.active(),
        }
    }

    /// The sequence number of the peer's id that these addresses, others than the path's own, have for themselves.
    pub(super) fn own_cid_at(&self, tuple: &FourTuple) -> Option<u64> {
        let addresses = &self.path.as_deref()?.addresses;
        addresses.cids_at(tuple).find(|sequence| self.remote.cid(*sequence).is_some())
    }

    /// True where packets may go by these other addresses: with an id of the peer that they have or may get, or without ids.
    pub(super) fn has_cid_for(&self, tuple: &FourTuple) -> bool {
        self.own_cid_at(tuple).is_some() || self.remote.has_spare() || self.remote.is_zero_length()
    }

    /// Other addresses than the path's own on which a challenge or a response waits, have credit for `least_bytes`, and are
    /// not held.
    #[inline]
    pub fn other_addresses_due(&self, least_bytes: u64, is_held: impl Fn(&FourTuple) -> bool) -> Option<FourTupleRole> {
        let addresses = &self.path.as_deref()?.addresses;
        if addresses.has_others() && self.is_open() { self.due_elsewhere(least_bytes, is_held) } else { None }
    }

    #[cold]
    fn due_elsewhere(&self, least_bytes: u64, is_held: impl Fn(&FourTuple) -> bool) -> Option<FourTupleRole> {
        let addresses = &self.path.as_deref()?.addresses;
        let is_due = |state: &FourTupleState| {
            state.wants_send() && state.amplification_room() >= least_bytes && !is_held(&state.tuple())
        };
        let mut others = [FourTupleRole::Candidate, FourTupleRole::Previous].into_iter();
        others.find(|role| addresses.get(*role).is_some_and(is_due) && self.dcid(*role).is_some())
    }

    /// Writes what waits on a pair of the path's addresses; the packet must then leave by it. A client's first packets on a
    /// new path also say by which ids of ours the peer reaches us there, unless it is known to have them: they may be under
    /// way on a slower path (RFC 10069 3).
    pub fn fill_validation(
        &mut self,
        now: Instant,
        role: FourTupleRole,
        side: Side,
        random: &mut Random,
        w: &mut FrameWriter<'_>,
    ) -> Pad {
        let Some(path) = self.path.as_deref_mut() else { return Pad::No };
        let pad = path.addresses.fill(now, role, random, w);
        let is_opening = side.is_client() && !path.is_first() && !path.is_uniflow() && !path.is_validated();
        if is_opening && role == FourTupleRole::Current {
            self.local.fill_unconfirmed(CidForm::Path, w);
        }
        pad
    }

    /// Makes connection ids follow the 4-tuples: the current 4-tuple's id is the active one; ids of 4-tuples that are
    /// gone are retired (RFC 9000 9.5: an id is used with one pair of addresses). Those that lack an id of their own, perhaps
    /// since the peer wanted theirs back (RFC 9000 5.1.2), get a spare.
    pub(super) fn assign_cids(&mut self) {
        let Some(path) = &mut self.path else { return };
        for state in path.addresses.all_mut() {
            if state.cid.is_some_and(|sequence| self.remote.cid(sequence).is_none()) {
                state.cid = self.remote.take_spare().or(state.cid);
            }
        }
        if let Some(sequence) = path.addresses.get_mut(FourTupleRole::Current).and_then(|l| l.cid.take()) {
            self.remote.activate(sequence);
        }
        let needed: SmallVec<[u64; 2]> = path.addresses.other_cids().collect();
        self.remote.keep_only(&needed);
        if self.remote.active_sequence().is_none() {
            self.remote.resume();
        }
    }
}
