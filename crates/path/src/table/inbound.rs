//! The peer's frames about paths: one method for each, with every rule and its named violation.

use std::time::Duration;

use plait_base::{CloseCode, ConnectionId, Instant, PathId, Violation};
use plait_wire::frame::{
    AckForm, CidForm, MaxPathId, NewCid, PathAbandon, PathCidsBlocked, PathStatus, PathStatusUpdate, PathsBlocked,
    RetireCid,
};

use super::{Negotiated, Paths, Slot, SlotPlace, TableEvent};
use crate::addresses::{AddressEvent, ChallengeData};
use crate::cids::check_encoding;
use crate::frame_state::FrameState;

/// What a PATH_ABANDON means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbandonNews {
    /// The peer ends the path; our answer is due.
    PeerEnds,
    /// The peer answers ours.
    Answered,
    /// Known already, or long forgotten.
    Old,
}

/// What a PATH_ACK or ACK is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckTarget {
    /// A path on which packets may have been sent: where its slot was found.
    Path(SlotPlace),
    /// Such a path that somebody else serves, who is to hear of it.
    Lent,
    /// A path that is forgotten: ignore the frame.
    Forgotten,
}

impl Paths {
    /// The slot that a multipath frame names; none for a forgotten id, whose frames are ignored.
    fn named(&mut self, id: PathId) -> Result<Option<&mut Slot>, Violation> {
        let Some(credit) = self.extension.credit() else { return Err(Violation::MultipathNotNegotiated) };
        // RFC 10069 2, 4 and RFC 9000 19.21: held to what we announced, whatever the peer's own limit.
        if id > credit.announced() {
            return Err(Violation::PathIdAboveLimit);
        }
        Ok(self.ensure_slot(id))
    }

    /// The slot of a send flow of ours that a Multiflow frame names.
    fn named_sending(&mut self, id: PathId) -> Result<Option<&mut Slot>, Violation> {
        let limits = self.extension.uniflows().ok_or(Violation::MultiflowNotNegotiated)?;
        // Multiflow 3.1: the peer proposes no more flows than we said that we want
        if id > limits.sending_max {
            return Err(Violation::UniflowIdAboveLimit);
        }
        Ok(self.ensure_slot(id))
    }

    /// The slot of a receive flow of ours that a Multiflow frame names.
    fn named_receiving(&mut self, id: PathId) -> Result<Option<&mut Slot>, Violation> {
        let limits = self.extension.uniflows().ok_or(Violation::MultiflowNotNegotiated)?;
        if id > limits.receiving_max {
            return Err(Violation::UniflowIdAboveLimit);
        }
        Ok(self.ensure_slot(id))
    }

    /// ACK in a 1-RTT packet (path 0) or PATH_ACK; the caller checks packet numbers.
    ///
    /// # Errors
    /// [`Violation::AckOfUnsentPacket`] for a path on which nothing was sent (RFC 9000 13.1). A PATH_ACK without
    /// multipath is [`Violation::MultipathNotNegotiated`], one above our limit [`Violation::PathIdAboveLimit`]. An MP_ACK is
    /// [`Violation::MultiflowNotNegotiated`].
    pub fn on_ack(&mut self, id: PathId, form: AckForm) -> Result<AckTarget, Violation> {
        let id = if form == AckForm::Plain { PathId::ZERO } else { id };
        match (form, &self.extension) {
            (AckForm::Plain, _) | (AckForm::Path, Negotiated::Multipath(_)) => {}
            (AckForm::Uniflow, Negotiated::Multiflow(_)) => {}
            (AckForm::Path, _) => return Err(Violation::MultipathNotNegotiated),
            (AckForm::Uniflow, _) => return Err(Violation::MultiflowNotNegotiated),
        }
        // A path that is there is within every limit.
        if let Some(place) = self.place(id).filter(|place| self.path_at(*place).is_some()) {
            return Ok(AckTarget::Path(place));
        }
        let slot = match form {
            AckForm::Plain => self.slot_mut(id),
            AckForm::Path => self.named(id)?,
            AckForm::Uniflow => self.named_sending(id)?,
        };
        match slot {
            None => Ok(AckTarget::Forgotten),
            Some(slot) if slot.closing.is_some() => Ok(AckTarget::Forgotten),
            Some(slot) if slot.is_lent() => Ok(AckTarget::Lent),
            // RFC 9000 13.1: nothing was ever sent there.
            Some(_) => Err(Violation::AckOfUnsentPacket),
        }
    }

    /// NEW_CONNECTION_ID (path 0, with or without multipath) or PATH_NEW_CONNECTION_ID.
    ///
    /// # Errors
    /// What breaks RFC 9000 19.15 or RFC 10069 4.4: a malformed frame, a path id that we did not allow, an id or a
    /// reset token that was issued before for something else, or more ids than we announced to hold.
    pub fn on_new_cid(&mut self, new: &NewCid) -> Result<(), Violation> {
        check_encoding(new)?;
        let id = new.path;
        match new.form {
            CidForm::Plain => {}
            CidForm::Path => _ = self.named(id)?,
            CidForm::Uniflow => _ = self.named_sending(id)?,
        }
        // RFC 10069 3.2.1: unique per connection over all paths.
        if self.slots.iter().any(|slot| slot.id != id && slot.remote.holds(&new.cid)) {
            return Err(Violation::CidReissued);
        }
        // RFC 9000 10.3.2: one token, one id; else the end of one would take the other's token out of use.
        if self.slots.iter().any(|slot| slot.remote.holds_token(&new.token, &new.cid)) {
            return Err(Violation::ResetTokenReused);
        }
        let limit = self.config.cid_limit;
        let done = self.change_remote(id, |slot| {
            let result = slot.remote.on_new(new);
            debug_assert!(result.is_err() || slot.remote.held() as u64 <= limit, "more ids kept than announced");
            if slot.remote.has_spare() {
                slot.cids_blocked = FrameState::Idle;
            }
            slot.assign_cids();
            result
        });
        done.unwrap_or(Ok(()))
    }

    /// RETIRE_CONNECTION_ID (path 0) or PATH_RETIRE_CONNECTION_ID, in a packet that came to `arrived_on`.
    ///
    /// # Errors
    /// A sequence number that we have not issued, the id that the packet itself came to (RFC 9000 19.16), or a path id
    /// that we did not allow.
    pub fn on_retire_cid(&mut self, frame: &RetireCid, arrived_on: &ConnectionId) -> Result<(), Violation> {
        let (id, sequence) = (frame.path, frame.sequence);
        match frame.form {
            CidForm::Plain => {}
            CidForm::Path => _ = self.named(id)?,
            CidForm::Uniflow => _ = self.named_receiving(id)?,
        }
        let Some(slot) = self.slot_mut(id) else { return Ok(()) };
        if let Some(cid) = slot.local.on_retire(sequence, arrived_on)? {
            self.events.push_back(TableEvent::CidRetired { path: id, cid });
        }
        Ok(())
    }

    /// PATH_ABANDON; `pto` is the largest over all paths.
    ///
    /// # Errors
    /// [`Violation::MultipathNotNegotiated`] without multipath, [`Violation::PathIdAboveLimit`] above our limit.
    pub fn on_path_abandon(
        &mut self,
        now: Instant,
        frame: &PathAbandon,
        pto: Duration,
    ) -> Result<AbandonNews, Violation> {
        let id = frame.path;
        if self.named(id)?.is_none() {
            return Ok(AbandonNews::Old);
        }
        let news = match self.slot(id).and_then(Slot::closing) {
            // RFC 10069 3.4: answered unless ours was first; also for a path that was never used.
            None => {
                // RFC 10069 4.2: NO_ERROR says that no error was met; the answer carries it.
                self.begin_closing(now, id, CloseCode::NO_ERROR, pto);
                AbandonNews::PeerEnds
            }
            Some(closing) if closing.received_at.is_none() => AbandonNews::Answered,
            Some(_) => return Ok(AbandonNews::Old),
        };
        self.on_abandon_received(now, id, pto);
        Ok(news)
    }

    /// PATH_STATUS_AVAILABLE or PATH_STATUS_BACKUP; the new status when it is news.
    ///
    /// # Errors
    /// [`Violation::MultipathNotNegotiated`] without multipath, [`Violation::PathIdAboveLimit`] above our limit.
    pub fn on_path_status(&mut self, frame: &PathStatusUpdate) -> Result<Option<PathStatus>, Violation> {
        let slot = self.named(frame.path)?.filter(|slot| slot.closing.is_none());
        Ok(slot.and_then(|slot| slot.status.on_remote(frame.status, frame.sequence)))
    }

    /// MAX_PATH_ID; true when it raised the peer's limit.
    ///
    /// # Errors
    /// [`Violation::MultipathNotNegotiated`] without multipath, [`Violation::MaxPathIdBelowInitial`] for a limit below the one
    /// that the handshake gave (RFC 10069 4.6).
    pub fn on_max_path_id(&mut self, frame: &MaxPathId) -> Result<bool, Violation> {
        self.extension.credit_mut().ok_or(Violation::MultipathNotNegotiated)?.on_max_path_id(frame.limit)
    }

    /// PATHS_BLOCKED: our limit keeps the peer from opening a path.
    ///
    /// # Errors
    /// [`Violation::MultipathNotNegotiated`] without multipath, [`Violation::PathsBlockedAboveLimit`] for a limit that we never
    /// announced (RFC 10069 4.7).
    pub fn on_paths_blocked(&self, frame: &PathsBlocked) -> Result<(), Violation> {
        self.extension.credit().ok_or(Violation::MultipathNotNegotiated)?.on_paths_blocked(frame.limit)
    }

    /// PATH_CIDS_BLOCKED; the ids that are missing are issued by the next [`Self::issue_cids`].
    ///
    /// # Errors
    /// [`Violation::PathCidsBlockedSequence`] for a sequence number that we have not used; a path id that we did not allow.
    pub fn on_path_cids_blocked(&mut self, frame: &PathCidsBlocked) -> Result<(), Violation> {
        match self.named(frame.path)? {
            // RFC 10069 4.7: it cannot have seen a sequence number that we have not used.
            Some(slot) if frame.next_sequence > slot.local.next_sequence() => Err(Violation::PathCidsBlockedSequence),
            _ => Ok(()),
        }
    }

    /// PATH_RESPONSE for a path; what it validated, if anything.
    ///
    /// # Errors
    /// [`Violation::UnsolicitedPathResponse`] where nothing was asked on the path (RFC 9000 19.18).
    pub fn on_path_response(
        &mut self,
        now: Instant,
        id: PathId,
        data: ChallengeData,
    ) -> Result<Option<AddressEvent>, Violation> {
        let changed = self.change_remote(id, |slot| {
            let Some(path) = slot.path.as_mut().filter(|_| slot.closing.is_none()) else { return Ok(None) };
            let event = path.on_response(now, data)?;
            slot.assign_cids();
            Ok(event)
        });
        changed.unwrap_or(Ok(None))
    }
}
