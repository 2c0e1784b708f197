//! Frames that are to be sent once more on another path: duplicates while an RTT is unknown, and credit on all paths.

use std::collections::VecDeque;

use plait_base::PathId;
use plait_base::limits::MAX_PENDING_COPIES;
use plait_stream::{CopyOutcome, Streams};
use plait_wire::{FrameWriter, SentFrame};

/// Where a copy may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// On this path only.
    On(PathId),
    /// On any path but this one.
    NotOn(PathId),
}

impl Target {
    fn admits(self, path: PathId) -> bool {
        match self {
            Self::On(id) => id == path,
            Self::NotOn(id) => id != path,
        }
    }
}

/// Copies that wait, oldest first, bounded.
#[derive(Debug, Default)]
pub(crate) struct PendingCopies {
    waiting: VecDeque<(SentFrame, Target)>,
}

impl PendingCopies {
    pub(crate) fn shrink_to_fit(&mut self) {
        self.waiting.shrink_to_fit();
    }

    pub(crate) fn push(&mut self, frame: SentFrame, target: Target) {
        if self.waiting.len() < MAX_PENDING_COPIES {
            self.waiting.push_back((frame, target));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) fn wants(&self, path: PathId) -> bool {
        self.waiting.iter().any(|(_, target)| target.admits(path))
    }

    /// Writes what may go on `path`, as much as fits; what is acked by now is forgotten.
    pub(crate) fn fill(&mut self, path: PathId, streams: &mut Streams, w: &mut FrameWriter<'_>) {
        let mut i = 0;
        while let Some(&(frame, target)) = self.waiting.get(i) {
            if !target.admits(path) {
                i += 1;
                continue;
            }
            match streams.fill_copy(w, &frame) {
                CopyOutcome::Obsolete | CopyOutcome::Written => {
                    self.waiting.remove(i);
                }
                CopyOutcome::Left(rest) => {
                    self.waiting[i].0 = rest;
                    return;
                }
            }
        }
    }

    pub(crate) fn on_path_gone(&mut self, path: PathId) {
        self.waiting.retain(|(_, target)| *target != Target::On(path));
    }
}
