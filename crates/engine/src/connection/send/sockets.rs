//! Sockets that take nothing now: what would leave by them waits where it was asked for, and all else goes on.

use std::net::SocketAddr;
use std::time::Duration;

use plait_base::{FourTuple, Instant, PathId};
use plait_path::{FourTupleRole, Paths};
use plait_schedule::Room;

/// Credit below which nothing is sent to an address that is not proven: no packet of use is smaller, bytes.
pub(crate) const SMALLEST_PACKET_BYTES: u64 = 60;

/// The local addresses whose sockets are full, each with the time since when. Nearly always none.
#[derive(Debug, Default)]
pub(crate) struct FullSockets {
    since: Vec<(SocketAddr, Instant)>,
}

impl FullSockets {
    pub(crate) fn set(&mut self, now: Instant, full: &[SocketAddr]) {
        self.since.retain(|(local, _)| full.contains(local));
        for &local in full {
            if self.since_when(local).is_none() {
                self.since.push((local, now));
            }
        }
    }

    fn since_when(&self, local: SocketAddr) -> Option<Instant> {
        self.since.iter().find(|(full, _)| *full == local).map(|(_, since)| *since)
    }

    /// True where nothing may leave from this address now.
    pub(crate) fn hold(&self, tuple: &FourTuple) -> bool {
        !self.since.is_empty() && self.since_when(tuple.local).is_some()
    }

    /// True where the socket of a path's own address is full.
    pub(crate) fn hold_path(&self, paths: &Paths, id: PathId) -> bool {
        !self.since.is_empty() && paths.path(id).is_some_and(|path| self.hold(&path.tuple()))
    }

    /// True where at least a small packet can leave on a path: the peer gave an id, its address is proven or gave credit,
    /// and our socket has room.
    pub(crate) fn admit(&self, paths: &Paths, id: PathId) -> bool {
        let slot = paths.slot(id).filter(|slot| slot.dcid(FourTupleRole::Current).is_some());
        let path = slot.and_then(|slot| slot.path.as_deref());
        path.is_some_and(|path| path.may_send(SMALLEST_PACKET_BYTES) && !self.hold(&path.tuple()))
    }

    /// What a scheduler sees of a path that is held; it waits for the socket no longer than `patience`.
    pub(crate) fn room(&self, now: Instant, tuple: &FourTuple, patience: impl FnOnce() -> Duration) -> Option<Room> {
        if self.since.is_empty() {
            return None;
        }
        let until = self.since_when(tuple.local)? + patience();
        Some(if until > now { Room::Socket(until) } else { Room::Stuck })
    }
}
