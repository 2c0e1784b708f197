//! Sockets that take nothing now: what would leave by them waits where it was asked for, and all else goes on.

use std::net::SocketAddr;
use std::time::Duration;

use plait_base::{FourTuple, Instant, PathId};
use plait_schedule::Room;

use crate::connection::Connection;

/// The local addresses whose sockets are full, each with the time since when. Nearly always none.
#[derive(Debug, Default)]
pub(crate) struct FullSockets {
    since: Vec<(SocketAddr, Instant)>,
}

impl FullSockets {
    fn set(&mut self, now: Instant, full: &[SocketAddr]) {
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
    pub(crate) fn hold(&self, route: &FourTuple) -> bool {
        !self.since.is_empty() && self.since_when(route.local).is_some()
    }

    /// What a scheduler sees of a path that is held; it waits for the socket no longer than `patience`.
    pub(crate) fn room(&self, now: Instant, route: &FourTuple, patience: impl FnOnce() -> Duration) -> Option<Room> {
        let until = self.since_when(route.local)? + patience();
        Some(if until > now { Room::Socket(until) } else { Room::Stuck })
    }
}

impl Connection {
    /// The pairs of addresses that datagrams may leave by: those of each path, and those that are being validated.
    pub fn routes(&self) -> impl Iterator<Item = FourTuple> + '_ {
        let paths = self.paths.table.slots().filter_map(|slot| slot.path.as_deref());
        paths.flat_map(|path| path.addresses.all().map(|state| state.tuple()))
    }

    /// Says which of our addresses have a socket that takes nothing now, in place of what was said before. Until it is
    /// said that they have room again, [`Self::poll_transmit`] makes nothing that would leave from them.
    pub fn set_full_sockets(&mut self, now: Instant, full: &[SocketAddr]) {
        self.scheduling.full_sockets.set(now, full);
    }

    /// True where the socket of a path's own address is full.
    pub(crate) fn is_held(&self, id: PathId) -> bool {
        self.paths.table.path(id).is_some_and(|path| self.scheduling.full_sockets.hold(&path.addresses.tuple()))
    }
}
