//! Paths move: other addresses are challenged, each with a connection id of its own, then used.

use std::net::SocketAddr;

use plait_base::{ConnectionId, FourTuple, Instant, PathId};

use super::{Paths, Slot};
use crate::addresses::{AWAITED_CID, FourTupleRole, FourTupleState, Moved, Validation, ValidationTimes};
use crate::frame_state::FrameState;

/// Whether a move takes a fresh connection id of the peer into use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CidChange {
    /// When a spare is there: the peer changed its id too, our address is another, or we chose to move (RFC 9000 9.5).
    Fresh,
    /// The peer's packets still come to the same id: a NAT moved it, and it may not even know.
    Keep,
}

impl Paths {
    /// Challenges the peer from or at other addresses of an open path, with a connection id of their own. False where there
    /// is no such path, no spare id of the peer (RFC 9000 9.5), or too many validations are under way.
    pub fn challenge_candidate(&mut self, now: Instant, id: PathId, tuple: FourTuple, times: ValidationTimes) -> bool {
        if self.validations() >= self.config.max_validations {
            return false;
        }
        let challenges = self.change_remote(id, |slot| {
            let Some(path) = slot.path.as_mut().filter(|_| slot.closing.is_none()) else { return false };
            let own = path.addresses.asked_with(&tuple);
            let has_own = own.is_some_and(|sequence| slot.remote.cid(sequence).is_some());
            let zero_length = slot.remote.is_zero_length();
            let spare = if has_own || zero_length { None } else { slot.remote.take_spare() };
            if spare.is_none() && !has_own && !zero_length {
                return false;
            }
            path.addresses.challenge_candidate(now, tuple, times);
            if let (Some(sequence), Some(state)) = (spare, path.addresses.get_mut(FourTupleRole::Candidate)) {
                state.cid = Some(sequence);
            }
            slot.assign_cids();
            true
        });
        let challenges = challenges.unwrap_or(false);
        if !challenges {
            self.await_cid(id);
        }
        challenges
    }

    /// Forgets the addresses that an open path challenges beside its own, and retires their connection ids.
    pub fn drop_candidates(&mut self, id: PathId) {
        self.change_remote(id, |slot| {
            slot.path.iter_mut().for_each(|path| path.addresses.drop_candidates());
            slot.assign_cids();
        });
    }

    /// The same for addresses that did not answer, unless they are being asked again.
    pub fn drop_failed_candidate(&mut self, id: PathId) {
        let candidate =
            |slot: &Slot| slot.path.as_ref().and_then(|path| path.addresses.get(FourTupleRole::Candidate)).cloned();
        let failed = self.slot(id).and_then(candidate).is_some_and(|state| state.validation() == Validation::Failed);
        if failed {
            self.drop_candidates(id);
        }
    }

    /// The peer's challenge came from other addresses, to another id of ours or to another address: what goes there gets
    /// another id of the peer, when there is a spare (RFC 9000 9.5). From another address nothing leaves before there is.
    pub fn freshen_candidate(&mut self, id: PathId) {
        self.change_remote(id, |slot| {
            let Some(path) = slot.path.as_mut() else { return };
            let own = path.tuple().local;
            let Some(state) = path.addresses.get_mut(FourTupleRole::Candidate) else { return };
            let is_empty = slot.remote.is_zero_length();
            let without = (state.tuple().local != own && !is_empty).then_some(AWAITED_CID);
            state.cid = state.cid.or_else(|| slot.remote.take_spare()).or(without);
            slot.assign_cids();
        });
    }

    /// Moves an open path to other addresses of ours, with another connection id of the peer; no other path is touched.
    pub fn move_to(&mut self, now: Instant, id: PathId, tuple: FourTuple, times: ValidationTimes) -> Moved {
        // RFC 9000 9.5-1: not without an id for them
        if !self.slot(id).is_some_and(|slot| slot.has_cid_for(&tuple)) {
            self.await_cid(id);
            return Moved::No;
        }
        self.move_path(now, id, tuple, CidChange::Fresh, times)
    }

    /// An open path leaves by another address of ours from now on, because the one before is gone: with the connection id by
    /// which the peer was asked from there, or a fresh one. None where the peer gave no id for it: the path stays as it is.
    pub fn relocate(&mut self, now: Instant, id: PathId, local: SocketAddr, times: ValidationTimes) -> Option<Moved> {
        let relocated = self.change_remote(id, |slot| {
            let tuple = FourTuple { local, ..slot.path.as_deref().filter(|_| slot.closing.is_none())?.tuple() };
            if !slot.has_cid_for(&tuple) {
                return None;
            }
            let own = slot.own_cid_at(&tuple);
            let path = slot.path.as_deref_mut()?;
            let moved = path.relocate(now, local, times);
            if let Some(state) = path.addresses.get_mut(FourTupleRole::Current) {
                state.cid = own.or_else(|| slot.remote.take_spare());
            }
            slot.assign_cids();
            Some(moved)
        });
        let moved = relocated.flatten();
        if moved.is_none() {
            self.await_cid(id);
        }
        moved
    }

    /// The peer gave no connection id for another address of ours, and hears of it where it can (RFC 10069 4.7).
    fn await_cid(&mut self, id: PathId) {
        let tells = self.extension.credit().is_some();
        if let Some(slot) = self.slot_mut(id).filter(|slot| slot.is_open())
            && tells
            && slot.cids_blocked == FrameState::Idle
        {
            slot.cids_blocked = FrameState::Due;
        }
    }

    /// RFC 9000 9.5-1: a path whose address of ours the system chooses leaves by no other than that of now, as long as it has
    /// no connection id for another.
    pub fn hold_source(&mut self, id: PathId) {
        let path = self.path_mut(id).and_then(|path| path.addresses.get_mut(FourTupleRole::Current));
        path.into_iter().for_each(FourTupleState::hold_source);
    }

    /// Moves an open path to other addresses; no other path is touched (RFC 10069 3.1.2, RFC 9000 9.3).
    ///
    /// With `CidChange::Fresh` a new connection id of the peer is taken into use when there is a spare.
    fn move_path(
        &mut self,
        now: Instant,
        id: PathId,
        tuple: FourTuple,
        cid: CidChange,
        times: ValidationTimes,
    ) -> Moved {
        self.change_remote(id, |slot| {
            let own = slot.own_cid_at(&tuple);
            let Some(path) = slot.path.as_mut().filter(|_| slot.closing.is_none()) else { return Moved::No };
            let old = slot.remote.active_sequence();
            let moved = path.addresses.move_to(now, tuple, times);
            if moved == Moved::No {
                return moved;
            }
            if let Some(state) = path.addresses.get_mut(FourTupleRole::Previous) {
                state.cid = state.cid.or(old);
            }
            if let Some(state) = path.addresses.get_mut(FourTupleRole::Current)
                && state.cid.is_none()
                && cid == CidChange::Fresh
            {
                state.cid = own.or_else(|| slot.remote.take_spare());
            }
            Slot::assign_cids(slot);
            moved
        })
        .unwrap_or(Moved::No)
    }

    /// The peer's newest packet with more than probing frames came from other addresses, in a datagram of `bytes` to our
    /// connection id `cid`: the path goes there (RFC 9000 9.3), with another id of the peer where that changed ours. It leaves
    /// by another address of ours with another id only.
    pub fn follow(
        &mut self,
        now: Instant,
        id: PathId,
        tuple: FourTuple,
        cid: ConnectionId,
        bytes: u64,
        times: ValidationTimes,
    ) -> Moved {
        let Some(path) = self.path_mut(id) else { return Moved::No };
        path.addresses.note_candidate(tuple, bytes);
        let leaves_elsewhere = path.leaves_elsewhere(&tuple);
        let change = if leaves_elsewhere || path.changed_cid(&cid) { CidChange::Fresh } else { CidChange::Keep };
        // RFC 9000 9.5-1
        if leaves_elsewhere && !self.slot(id).is_some_and(|slot| slot.has_cid_for(&tuple)) {
            self.freshen_candidate(id);
            self.await_cid(id);
            return Moved::No;
        }
        let moved = self.move_path(now, id, tuple, change, times);
        if let Some(path) = self.path_mut(id) {
            path.on_heard_at(&tuple, cid);
        }
        moved
    }

    /// Takes a fresh connection id of the peer into use on a path and retires the one before: the path may leave by another
    /// address of ours, where the system chooses (RFC 9000 9.5). False where there is no spare: it stays where it is until then.
    pub fn renew_cid(&mut self, id: PathId) -> bool {
        let renewed = self.change_remote(id, |slot| {
            let renewed = slot.remote.is_zero_length() || slot.remote.rotate();
            let state = slot.path.as_mut().and_then(|path| path.addresses.get_mut(FourTupleRole::Current));
            if let Some(state) = state.filter(|_| renewed) {
                state.release_source();
            }
            slot.assign_cids();
            renewed
        });
        if renewed == Some(false) {
            self.hold_source(id);
            self.await_cid(id);
        }
        renewed.unwrap_or(false)
    }
}
