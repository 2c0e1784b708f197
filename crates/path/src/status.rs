//! What each side advises about the use of a path: PATH_STATUS_AVAILABLE and PATH_STATUS_BACKUP.

use plait_base::PathId;
use plait_wire::frame::PathStatusUpdate;
use plait_wire::{Carried, FrameWriter};

use crate::delivery::Delivery;
use crate::frames;

pub use plait_wire::frame::PathStatus;

/// The advice of both sides for one path id.
#[derive(Clone, Copy, Debug, Default)]
pub struct Status {
    local: Option<PathStatus>,
    next_sequence: u64,
    delivery: Delivery,
    remote: Option<(u64, PathStatus)>,
}

impl Status {
    /// What we advised last.
    pub fn local(&self) -> Option<PathStatus> {
        self.local
    }

    /// What the peer advised last.
    pub fn remote(&self) -> Option<PathStatus> {
        self.remote.map(|(_, status)| status)
    }

    /// Advises the peer; says nothing when that is what we said last.
    pub fn set_local(&mut self, status: PathStatus) {
        if self.local == Some(status) {
            return;
        }
        self.local = Some(status);
        // RFC 10069 4.3: one sequence for both frame types, strictly increasing.
        self.next_sequence += 1;
        self.delivery = Delivery::Due;
    }

    /// The peer's advice arrived; the new status when it is news. Stale sequence numbers are ignored.
    pub fn on_remote(&mut self, status: PathStatus, sequence: u64) -> Option<PathStatus> {
        if self.remote.is_some_and(|(last, _)| sequence <= last) {
            return None;
        }
        let news = self.remote() != Some(status);
        self.remote = Some((sequence, status));
        news.then_some(status)
    }

    /// Sequence number of the latest advice of ours.
    fn sequence(&self) -> u64 {
        self.next_sequence.saturating_sub(1)
    }

    pub(crate) fn wants_frame(&self) -> bool {
        self.delivery.is_due()
    }

    pub(crate) fn fill(&mut self, path: PathId, w: &mut FrameWriter<'_>) {
        let (Some(status), true) = (self.local, self.delivery.is_due()) else { return };
        let sequence = self.sequence();
        if frames::put(w, &PathStatusUpdate { path, sequence, status }) {
            w.note(Carried::PathStatus { path, sequence });
            self.delivery.on_written();
        }
    }

    pub(crate) fn on_acked(&mut self, sequence: u64) {
        if sequence == self.sequence() {
            self.delivery.on_acked();
        }
    }

    /// Repeated only while it is still the latest.
    pub(crate) fn on_lost(&mut self, sequence: u64) {
        if sequence == self.sequence() {
            self.delivery.on_lost();
        }
    }
}
