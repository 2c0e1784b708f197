//! What each side advises about the use of a path: PATH_STATUS_AVAILABLE and PATH_STATUS_BACKUP.

use plait_base::PathId;
use plait_wire::frame::PathStatusUpdate;
use plait_wire::{FrameWriter, SentFrame};

use crate::frame_state::FrameState;

pub use plait_wire::frame::PathStatus;

/// The advice of both sides for one path id.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Status {
    local: Option<PathStatus>,
    /// BACKUP is ours for as long as the path counts as failed; the application did not ask for it.
    demoted: bool,
    next_sequence: u64,
    delivery: FrameState,
    remote: Option<PathStatus>,
    /// Sequence number of the peer's advice, once there is one.
    remote_sequence: u64,
}

impl Status {
    /// What we advised last.
    #[inline]
    pub(crate) fn local(&self) -> Option<PathStatus> {
        self.local
    }

    /// What the peer advised last.
    #[inline]
    pub(crate) fn remote(&self) -> Option<PathStatus> {
        self.remote
    }

    /// True where either side wants the path as a backup, other than since we found that it failed.
    pub(crate) fn is_wished_backup(&self) -> bool {
        let ours = self.local.filter(|_| !self.demoted);
        [ours, self.remote].contains(&Some(PathStatus::Backup))
    }

    /// Advises the peer as the application wishes; says nothing when that is what we said last.
    pub(crate) fn set_local(&mut self, status: PathStatus) {
        self.demoted = false;
        self.announce(status);
    }

    /// Advises the peer to avoid a path that failed, unless the application keeps it as a backup anyway.
    pub(crate) fn demote(&mut self) {
        if self.local != Some(PathStatus::Backup) {
            self.announce(PathStatus::Backup);
            self.demoted = true;
        }
    }

    /// The path works again: takes back what `demote` said, not what the application advised.
    pub(crate) fn restore(&mut self) {
        if std::mem::take(&mut self.demoted) {
            self.announce(PathStatus::Available);
        }
    }

    fn announce(&mut self, status: PathStatus) {
        if self.local == Some(status) {
            return;
        }
        self.local = Some(status);
        // RFC 10069 4.3: one sequence for both frame types, strictly increasing.
        self.next_sequence += 1;
        self.delivery = FrameState::Due;
    }

    /// The peer's advice arrived; the new status when it is news. Stale sequence numbers are ignored.
    pub(crate) fn on_remote(&mut self, status: PathStatus, sequence: u64) -> Option<PathStatus> {
        if self.remote.is_some() && sequence <= self.remote_sequence {
            return None;
        }
        let news = self.remote != Some(status);
        (self.remote, self.remote_sequence) = (Some(status), sequence);
        news.then_some(status)
    }

    /// Sequence number of the latest advice of ours.
    fn sequence(&self) -> u64 {
        self.next_sequence.saturating_sub(1)
    }

    #[inline]
    pub(crate) fn wants_frame(&self) -> bool {
        self.delivery.is_due()
    }

    pub(crate) fn fill(&mut self, path: PathId, w: &mut FrameWriter<'_>) {
        let (Some(status), true) = (self.local, self.delivery.is_due()) else { return };
        let sequence = self.sequence();
        if w.write(&PathStatusUpdate { path, sequence, status }, SentFrame::PathStatus { path, sequence }) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_application_advised_outlives_a_failure() {
        use PathStatus::{Available, Backup};
        // What was advised before the failure, what while it lasted, and what stands after it.
        let cases = [
            (None, None, Some(Available)),
            (Some(Available), None, Some(Available)),
            (Some(Backup), None, Some(Backup)),
            (None, Some(Backup), Some(Backup)),
            (Some(Available), Some(Backup), Some(Backup)),
            (Some(Backup), Some(Available), Some(Available)),
        ];
        for (before, during, after) in cases {
            let mut status = Status::default();
            before.into_iter().for_each(|advice| status.set_local(advice));
            status.demote();
            assert_eq!(status.local(), Some(Backup), "{before:?}");
            during.into_iter().for_each(|advice| status.set_local(advice));
            status.restore();
            assert_eq!(status.local(), after, "{before:?}, then {during:?}");
            status.restore();
            assert_eq!(status.local(), after);
        }
    }
}
