//! Frames that are to be sent once more on another path: duplicates while an RTT is unknown, and credit on all paths.

use std::collections::VecDeque;

use plait_base::PathId;
use plait_base::limits::MAX_PENDING_COPIES;
use plait_path::table::SlotPlace;
use plait_path::{Paths, TakeOver};
use plait_stream::Streams;
use plait_wire::{FrameWriter, SentFrame};

use crate::config::Switch;
use crate::connection::send::sockets::FullSockets;

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

/// One frame that waits for another path.
#[derive(Clone, Copy, Debug)]
struct PendingCopy {
    frame: SentFrame,
    target: Target,
}

/// Copies that wait, oldest first, bounded.
#[derive(Debug)]
pub(crate) struct PendingCopies {
    waiting: VecDeque<PendingCopy>,
    /// Whether what leaves on a path without an RTT goes on another one too.
    until_rtt: Switch,
    /// Window updates on their way from the streams to here; empty between calls.
    passing: Vec<SentFrame>,
}

impl PendingCopies {
    pub(crate) fn new(until_rtt: Switch) -> Self {
        Self { waiting: VecDeque::new(), until_rtt, passing: Vec::new() }
    }

    pub(crate) fn shrink_to_fit(&mut self) {
        self.waiting.shrink_to_fit();
        self.passing = Vec::new();
    }

    pub(crate) fn push(&mut self, frame: SentFrame, target: Target) {
        if self.waiting.len() < MAX_PENDING_COPIES {
            self.waiting.push_back(PendingCopy { frame, target });
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) fn wants(&self, path: PathId) -> bool {
        self.waiting.iter().any(|copy| copy.target.admits(path))
    }

    /// True where copies wait for this path and no other.
    pub(crate) fn are_for(&self, path: PathId) -> bool {
        self.waiting.iter().any(|copy| copy.target == Target::On(path))
    }

    /// True while what leaves on this path goes on another one too.
    pub(crate) fn doubles(&self, paths: &Paths, place: SlotPlace) -> bool {
        if self.until_rtt == Switch::Off || !paths.is_multipath() {
            return false;
        }
        let measured = paths.path_at(place).is_none_or(|path| path.rtt().is_some());
        !measured && paths.can_take_over_from(place.id()) == TakeOver::Possible
    }

    /// Writes what may go on `path`, as much as fits; what is acked by now is forgotten.
    pub(crate) fn fill(&mut self, path: PathId, streams: &mut Streams, w: &mut FrameWriter<'_>) {
        let mut i = 0;
        while let Some(copy) = self.waiting.get_mut(i) {
            if !copy.target.admits(path) {
                i += 1;
                continue;
            }
            match streams.fill_copy(w, &copy.frame) {
                None => {
                    self.waiting.remove(i);
                }
                Some(rest) => {
                    copy.frame = rest;
                    return;
                }
            }
        }
    }

    /// Window updates just written on path `id` go out on every other path that works too, so that none waits for a slow one
    /// (CoNEXT 2017, section 4.2).
    pub(crate) fn copy_window_updates(&mut self, id: PathId, streams: &mut Streams, paths: &Paths, full: &FullSockets) {
        let mut updates = std::mem::take(&mut self.passing);
        streams.poll_window_updates(&mut updates);
        if !updates.is_empty() && paths.is_multipath() {
            let others = paths.working().filter(|slot| slot.id != id);
            for other in others.filter_map(|slot| slot.path.as_deref()) {
                if !full.hold(&other.tuple()) {
                    updates.iter().for_each(|update| self.push(*update, Target::On(other.id())));
                }
            }
        }
        updates.clear();
        self.passing = updates;
    }

    pub(crate) fn on_path_closing(&mut self, path: PathId) {
        self.waiting.retain(|copy| copy.target != Target::On(path));
    }
}
