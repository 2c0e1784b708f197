//! How many path ids each side allows: MAX_PATH_ID and PATHS_BLOCKED, both ways.

use plait_base::{PathId, Violation};
use plait_wire::frame::{MaxPathId, PathsBlocked};
use plait_wire::{FrameWriter, SentFrame};

use crate::frame_state::FrameState;

/// Path id limits of both sides (RFC 10069 4.5 to 4.7).
#[derive(Clone, Debug)]
pub(crate) struct PathCredit {
    /// Largest id that we want to accept.
    local_max: u32,
    /// Largest id that we have told the peer: the limit it is held to.
    announced: u32,
    max_delivery: FrameState,
    /// The peer's initial_max_path_id.
    remote_initial: u32,
    remote_max: u32,
    /// The peer's limit that stopped us from opening a path.
    blocked_at: Option<(u32, FrameState)>,
}

impl PathCredit {
    /// Limits from both transport parameters.
    pub(crate) fn new(local_initial: u32, remote_initial: u32) -> Self {
        Self {
            local_max: local_initial,
            announced: local_initial,
            max_delivery: FrameState::Idle,
            remote_initial,
            remote_max: remote_initial,
            blocked_at: None,
        }
    }

    /// Largest id that the peer may name: what we announced, not what we intend (RFC 10069 4).
    pub(crate) fn announced(&self) -> PathId {
        PathId(self.announced)
    }

    /// Largest id that we mean to announce.
    pub(super) fn wanted(&self) -> PathId {
        PathId(self.local_max)
    }

    /// Largest id that the peer accepts.
    pub(crate) fn remote_max(&self) -> PathId {
        PathId(self.remote_max)
    }

    /// Largest id that both sides accept.
    pub(crate) fn allowed_max(&self) -> PathId {
        PathId(self.announced.min(self.remote_max))
    }

    /// Allows one more id, in place of one that died.
    pub(crate) fn raise(&mut self) {
        if let Some(next) = self.local_max.checked_add(1) {
            self.local_max = next;
            self.max_delivery = FrameState::Due;
        }
    }

    /// MAX_PATH_ID arrived; true when it raised the limit.
    pub(crate) fn on_max_path_id(&mut self, max: PathId) -> Result<bool, Violation> {
        let max = max.0;
        if max < self.remote_initial {
            return Err(Violation::MaxPathIdBelowInitial);
        }
        if max <= self.remote_max {
            return Ok(false);
        }
        self.remote_max = max;
        self.blocked_at = None;
        Ok(true)
    }

    /// The peer says that our limit holds it back.
    pub(crate) fn on_paths_blocked(&self, limit: PathId) -> Result<(), Violation> {
        if limit.0 > self.announced {
            return Err(Violation::PathsBlockedAboveLimit);
        }
        Ok(())
    }

    /// We wanted to open a path above the peer's limit: tell it once for each limit.
    pub(crate) fn on_blocked(&mut self) {
        if self.blocked_at.is_none_or(|(limit, _)| limit != self.remote_max) {
            self.blocked_at = Some((self.remote_max, FrameState::Due));
        }
    }

    #[inline]
    pub(crate) fn wants_frame(&self) -> bool {
        self.max_delivery.is_due() || self.blocked_at.is_some_and(|(_, d)| d.is_due())
    }

    pub(crate) fn fill(&mut self, w: &mut FrameWriter<'_>) {
        let limit = PathId(self.local_max);
        if self.max_delivery.is_due() && w.write(&MaxPathId { limit }, SentFrame::MaxPathId(limit)) {
            self.announced = self.local_max;
            self.max_delivery.on_written();
        }
        if let Some((limit, delivery)) = self.blocked_at.as_mut().filter(|(_, d)| d.is_due()) {
            let limit = PathId(*limit);
            if w.write(&PathsBlocked { limit }, SentFrame::PathsBlocked(limit)) {
                delivery.on_written();
            }
        }
    }

    pub(crate) fn on_acked(&mut self, frame: &SentFrame) {
        match (frame, &mut self.blocked_at) {
            (SentFrame::MaxPathId(max), _) if max.0 == self.local_max => self.max_delivery.on_acked(),
            (SentFrame::PathsBlocked(at), Some((limit, delivery))) if at.0 == *limit => delivery.on_acked(),
            _ => {}
        }
    }

    /// MAX_PATH_ID is repeated only as the latest, PATHS_BLOCKED only while still blocked there.
    pub(crate) fn on_lost(&mut self, frame: &SentFrame) {
        match (frame, &mut self.blocked_at) {
            (SentFrame::MaxPathId(max), _) if max.0 == self.local_max => self.max_delivery.on_lost(),
            (SentFrame::PathsBlocked(at), Some((limit, delivery))) if at.0 == *limit => delivery.on_lost(),
            _ => {}
        }
    }
}
