//! Paths move: other addresses are challenged, each with a connection id of its own, then used.

use plait_base::{ConnectionId, FourTuple, Instant, PathId};

use super::{Paths, Slot};
use crate::addresses::{FourTupleRole, Moved, Validation, ValidationTimes};

/// Whether a move takes a fresh connection id of the peer into use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CidChange {
    /// When a spare is there: the peer changed its id too, or we chose to move (RFC 9000 9.5).
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
            let zero_length = slot.remote.active().is_some_and(|cid| cid.is_empty());
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
        challenges.unwrap_or(false)
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

    /// The peer's challenge came from other addresses, to another id of ours: what goes there gets another id of the peer,
    /// when there is a spare (RFC 9000 9.5).
    pub fn freshen_candidate(&mut self, id: PathId) {
        self.change_remote(id, |slot| {
            let Some(state) = slot.path.as_mut().and_then(|path| path.addresses.get_mut(FourTupleRole::Candidate))
            else {
                return;
            };
            state.cid = state.cid.or_else(|| slot.remote.take_spare());
            slot.assign_cids();
        });
    }

    /// Moves an open path to other addresses of ours, with another connection id of the peer when there is a spare
    /// (RFC 9000 9.5); no other path is touched.
    pub fn move_to(&mut self, now: Instant, id: PathId, tuple: FourTuple, times: ValidationTimes) -> Moved {
        self.move_path(now, id, tuple, CidChange::Fresh, times)
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
                state.cid = slot.remote.take_spare();
            }
            Slot::assign_cids(slot);
            moved
        })
        .unwrap_or(Moved::No)
    }

    /// The peer's newest packet with more than probing frames came from other addresses, in a datagram of `bytes` to our
    /// connection id `cid`: the path goes there (RFC 9000 9.3), with another id of the peer where that changed ours.
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
        let change = if path.changed_cid(&cid) { CidChange::Fresh } else { CidChange::Keep };
        let moved = self.move_path(now, id, tuple, change, times);
        if let Some(path) = self.path_mut(id) {
            path.on_heard_at(&tuple, cid);
        }
        moved
    }

    /// Takes a fresh connection id of the peer into use on a path and retires the one before, where there is a spare: the
    /// path leaves by another address of ours, or may (RFC 9000 9.5).
    pub fn renew_cid(&mut self, id: PathId) {
        self.change_remote(id, |slot| {
            slot.remote.rotate();
            slot.assign_cids();
        });
    }
}
