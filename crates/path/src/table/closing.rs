//! The end of a path id: abandoned, answered, drained for three PTO, gone.

use std::time::Duration;

use plait_base::limits::MAX_PATHS;
use plait_base::{CloseCode, Instant, PathId};

use super::{Closing, Expired, Negotiated, Paths, Slot, TableEvent};
use crate::addresses::FourTupleRole;
use crate::frame_state::FrameState;

/// A PATH_ABANDON of ours; outlives its slot until the peer acknowledges it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingAbandon {
    pub(crate) id: PathId,
    pub(crate) code: CloseCode,
    pub(crate) delivery: FrameState,
}

/// Why a path cannot be abandoned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbandonError {
    /// Multipath is not in effect: close the connection instead.
    NotNegotiated,
    /// No such path id, or it is gone.
    NoPath,
    /// It is closing already.
    Closing,
}

impl Paths {
    /// Ends a path, or refuses an id that the peer wants to use. PATH_ABANDON is due; from now on nothing is
    /// sent on the path and the peer's ids of it count as retired (RFC 10069 3.4). `pto` is the largest over all paths.
    ///
    /// # Errors
    /// The path is not known, is gone or is closing already, or multipath is not in effect: see [`AbandonError`].
    pub fn abandon(&mut self, now: Instant, id: PathId, code: CloseCode, pto: Duration) -> Result<(), AbandonError> {
        if self.extension.credit().is_none() {
            return Err(AbandonError::NotNegotiated);
        }
        match self.slot(id) {
            None => Err(AbandonError::NoPath),
            Some(slot) if slot.closing.is_some() => Err(AbandonError::Closing),
            Some(_) => {
                self.begin_closing(now, id, code, pto);
                Ok(())
            }
        }
    }

    pub(super) fn begin_closing(&mut self, now: Instant, id: PathId, code: CloseCode, pto: Duration) {
        if self.pending_abandons.len() >= 2 * MAX_PATHS {
            self.pending_abandons.remove(0);
        }
        self.pending_abandons.push(PendingAbandon { id, code, delivery: FrameState::Due });
        self.change_remote(id, |slot| {
            // An answer may take a while; twice the drain time for a peer that never gives one.
            let linger = pto * 6;
            let last_remote_cid = slot.dcid(FourTupleRole::Current);
            let closing = Closing { received_at: None, forget_at: now + linger, linger, last_remote_cid };
            slot.closing = Some(Box::new(closing));
            slot.remote.close();
            slot.local.close();
            slot.cids_blocked = FrameState::Idle;
        });
        self.on_pto_changed();
    }

    pub(super) fn on_abandon_received(&mut self, now: Instant, id: PathId, pto: Duration) {
        let Some(closing) = self.slot_mut(id).and_then(|slot| slot.closing.as_mut()) else { return };
        let first = closing.received_at.replace(now).is_none();
        // RFC 10069 3.4: our ids and the receive space stay for three PTO after the peer's PATH_ABANDON.
        closing.forget_at = now + pto * 3;
        if first {
            self.owed_ids += 1;
            self.pay_credit();
        }
    }

    /// Allows the peer a new id for each that died, as long as the ids that may be alive stay bounded.
    fn pay_credit(&mut self) {
        let Negotiated::Multipath(credit) = &mut self.extension else { return };
        while self.owed_ids > 0 {
            let alive = u64::from(credit.wanted().0) + 1 - self.retired.count();
            if alive >= MAX_PATHS as u64 {
                return;
            }
            self.owed_ids -= 1;
            credit.raise();
        }
    }

    /// A peer that knows nothing of the end still uses the path: without its ids the endpoint would answer with a
    /// stateless reset, which ends the whole connection.
    fn linger(&mut self, now: Instant) {
        let Self { slots, pending_abandons, .. } = self;
        for slot in slots.awake_mut() {
            let unheard = pending_abandons.iter().any(|f| f.id == slot.id);
            let Some(closing) = slot.closing.as_mut().filter(|c| c.forget_at <= now) else { continue };
            if unheard && closing.received_at.is_none() {
                closing.forget_at = now + closing.linger;
            }
        }
    }

    pub(super) fn take_forgotten(&mut self, now: Instant) -> Option<Expired> {
        self.linger(now);
        let due = |slot: &Slot| slot.closing.as_ref().is_some_and(|c| c.forget_at <= now);
        let at = self.slots().position(due)?;
        let mut slot = self.slots.remove(at);
        self.on_pto_changed();
        self.retired.insert_one(u64::from(slot.id.0));
        for cid in slot.local.take_all() {
            self.events.push_back(TableEvent::CidRetired { path: slot.id, cid });
        }
        if slot.closing.as_ref().is_some_and(|c| c.received_at.is_none()) {
            // The peer never answered; its id is gone all the same.
            self.owed_ids += 1;
        }
        self.pay_credit();
        if let Some(path) = &slot.path {
            self.past = self.past + path.totals();
        }
        Some(Expired::Forgotten(slot.id, slot.path))
    }
}
