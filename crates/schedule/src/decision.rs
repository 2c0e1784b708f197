//! A scheduler's answer for one packet.

use plait_base::PathId;

use crate::view::PathView;

/// Why nothing is sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitReason {
    /// No offered path is usable.
    NoPath,
    /// All usable paths are held by their window or pacer.
    Busy,
    /// A slower path is open, but waiting for this one gets the data there sooner.
    Faster(PathId),
}

/// A set of offered paths by their place in the slice that was offered; holds the first 64 places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copies(u64);

impl Copies {
    /// Adds the path at `place` of the offered slice; places from 64 on are ignored.
    pub fn insert(&mut self, place: usize) {
        if place < 64 {
            self.0 |= 1 << place;
        }
    }

    /// True when no path is in it.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The ids, given the same slice that was offered.
    pub fn ids(self, paths: &[PathView]) -> impl Iterator<Item = PathId> + '_ {
        paths.iter().take(64).enumerate().filter(move |(i, _)| self.0 >> i & 1 == 1).map(|(_, p)| p.id)
    }
}

/// What to do with the next packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Send it on this path.
    Send(PathId),
    /// Send it on `primary` and what it carried again on each path of `copies`, which admit a packet too, now or at
    /// their pace.
    SendAlso {
        /// Carries the packet.
        primary: PathId,
        /// Carry the same frames; never contains `primary`, never empty.
        copies: Copies,
    },
    /// Send nothing on the offered paths until an ack, a timer or a path changes something.
    Wait(WaitReason),
}

impl Decision {
    /// The path that carries the packet first.
    pub fn primary(self) -> Option<PathId> {
        match self {
            Self::Send(id) | Self::SendAlso { primary: id, .. } => Some(id),
            Self::Wait(_) => None,
        }
    }

    /// Sends on `path` if there is one, else waits; `Busy` if some path of `paths` is usable.
    pub(crate) fn send_or_wait(path: Option<&PathView>, paths: &[PathView]) -> Self {
        match path {
            Some(path) => Self::Send(path.id),
            None if crate::candidates::eligible(paths).next().is_some() => Self::Wait(WaitReason::Busy),
            None => Self::Wait(WaitReason::NoPath),
        }
    }
}
