//! Opening paths: which id is next, what is missing, and whom to let in.

use std::time::Duration;

use plait_base::limits::MAX_PATHS;
use plait_base::{CloseCode, Instant, PathId, Side};

use super::slot::Binding;
use super::{Negotiated, Paths, SlotPlace, not_retired};
use crate::frame_state::FrameState;
use crate::path::Path;

/// Why a path cannot be opened now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// Multipath is not negotiated, or the handshake is not complete.
    NotNegotiated,
    /// Only clients open paths.
    ServerSide,
    /// The peer allows no further path id; PATHS_BLOCKED is due.
    PeerLimit,
    /// Our own limit allows no further path id.
    OwnLimit,
    /// The peer gave no connection id for the next path id; PATH_CIDS_BLOCKED is due.
    NoRemoteCid(PathId),
    /// We have issued no connection id of ours for the next path id yet.
    NoLocalCid(PathId),
    /// Too many validations are under way.
    TooManyValidations,
    /// The id was used before.
    NotUnused(PathId),
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotNegotiated => f.write_str("multipath is not negotiated"),
            Self::ServerSide => f.write_str("only clients open paths"),
            Self::PeerLimit => f.write_str("the peer allows no further path"),
            Self::OwnLimit => f.write_str("our own limit allows no further path"),
            Self::NoRemoteCid(id) => write!(f, "the peer gave no connection id for path {id}"),
            Self::NoLocalCid(id) => write!(f, "no connection ids of ours are issued for path {id} yet"),
            Self::TooManyValidations => f.write_str("too many path validations are under way"),
            Self::NotUnused(id) => write!(f, "path {id} was used before"),
        }
    }
}

impl std::error::Error for OpenError {}

/// What to do with an authentic packet for a path id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The path is there.
    Open,
    /// The peer opens a path with this packet: make it, then [`Paths::open`].
    New,
    /// The path is closing: read and acknowledge, elsewhere, but send nothing on it.
    Closing,
    /// We cannot take the path: abandon it with this code.
    Refuse(CloseCode),
    /// The id is forgotten or never allowed: drop the packet.
    Unknown,
}

impl Paths {
    /// The smallest unused id that both sides allow and have connection ids for (RFC 10069 3, 3.2.1).
    ///
    /// When the peer stands in the way, the frame that tells it so is queued.
    ///
    /// # Errors
    /// What stands in the way: see [`OpenError`].
    pub fn next_id(&mut self) -> Result<PathId, OpenError> {
        let Some(credit) = self.extension.credit_mut() else { return Err(OpenError::NotNegotiated) };
        if self.config.side == Side::Server {
            return Err(OpenError::ServerSide);
        }
        let used = |id: &PathId| self.slots.iter().any(|s| s.id == *id && !s.is_untouched());
        let id = not_retired(&self.retired, PathId::MAX).find(|id| !used(id)).ok_or(OpenError::OwnLimit)?;
        if id > credit.remote_max() {
            credit.on_blocked();
            return Err(OpenError::PeerLimit);
        }
        if id > credit.announced() {
            return Err(OpenError::OwnLimit);
        }
        if self.validations() >= self.config.max_validations {
            return Err(OpenError::TooManyValidations);
        }
        let Some(slot) = self.ensure_slot(id) else { return Err(OpenError::NotUnused(id)) };
        if slot.remote.held() == 0 {
            if slot.cids_blocked == FrameState::Idle {
                slot.cids_blocked = FrameState::Due;
            }
            return Err(OpenError::NoRemoteCid(id));
        }
        // RFC 10069 3: the server needs our ids too; those that it is not known to have ride in the first packet.
        if slot.local.active() == 0 {
            return Err(OpenError::NoLocalCid(id));
        }
        Ok(id)
    }

    /// Puts a path in its slot and takes a connection id of the peer into use.
    ///
    /// For path 0, for an id from [`Self::next_id`], or one that [`Self::admission_at`] called new.
    ///
    /// # Errors
    /// [`OpenError::NotUnused`] where the id was used before.
    pub fn open(&mut self, mut path: Box<Path>) -> Result<(), OpenError> {
        let id = path.id();
        path.set_ack_terms(&self.ack_terms());
        match self.slot(id) {
            Some(slot) if slot.is_untouched() => {}
            _ => return Err(OpenError::NotUnused(id)),
        }
        self.change_remote(id, |slot| {
            slot.path = Some(path);
            slot.binding = Binding::Bound;
            slot.cids_blocked = FrameState::Idle;
            slot.remote.begin();
        });
        self.on_pto_changed();
        Ok(())
    }

    /// What to do with an authentic packet for `id`.
    #[cfg(test)]
    pub(crate) fn admission(&self, id: PathId) -> Admission {
        self.admission_at(self.place(id))
    }

    /// What to do with an authentic packet for the id whose slot was found; none is not in the table.
    pub fn admission_at(&self, place: Option<SlotPlace>) -> Admission {
        let Some(slot) = place.and_then(|place| self.slot_at(place)) else { return Admission::Unknown };
        if slot.closing.is_some() {
            // Without a receive space nothing tells duplicates apart (RFC 9000 12.3).
            return if slot.path.is_some() { Admission::Closing } else { Admission::Unknown };
        }
        if slot.path.is_some() {
            return Admission::Open;
        }
        if slot.is_lent() {
            // Whoever serves it reads what comes for it.
            return Admission::Unknown;
        }
        match &self.extension {
            // Multiflow 4.4: connection ids are issued for flows that we are ready to receive.
            Negotiated::Multiflow(limits) if slot.id <= limits.receiving_max => return Admission::New,
            // RFC 10069 3: servers open no paths.
            Negotiated::Multipath(_) if self.config.side == Side::Server => {}
            _ => return Admission::Unknown,
        }
        if slot.remote.held() == 0 {
            return Admission::Refuse(CloseCode::NO_CID_AVAILABLE_FOR_PATH);
        }
        let open = self.slots().filter(|s| s.is_opened()).count();
        if open >= MAX_PATHS || self.validations() >= self.config.max_validations {
            return Admission::Refuse(CloseCode::PATH_RESOURCE_LIMIT_REACHED);
        }
        Admission::New
    }

    /// A packet on a new path came before the peer's connection ids for it, which may be under way on a slower path:
    /// true while it is worth waiting for them, until `patience` after the first such packet.
    pub fn awaits_cids(&mut self, now: Instant, id: PathId, patience: Duration) -> bool {
        let Some(slot) = self.slot_mut(id) else { return false };
        if slot.cids_blocked == FrameState::Idle {
            slot.cids_blocked = FrameState::Due;
        }
        now < *slot.wanted_since.get_or_insert(now) + patience
    }
}
