//! The largest datagram of each path, where it changes.

use plait_base::{FourTuple, Instant, PathId};
use plait_path::{FourTupleRole, LostPacket, Path, PathIds};

use super::{PathControl, PathNews};
use crate::config::Switch;

impl PathControl {
    /// The system refused a datagram of `bytes` that was to leave on `tuple`, as larger than the interface takes.
    pub(crate) fn on_too_large(&mut self, now: Instant, tuple: FourTuple, bytes: u16) {
        let current = |path: &Path| path.departure(FourTupleRole::Current);
        let leaves_by = |path: &&Path| current(path).is_some_and(|departure| departure.tuple == tuple);
        let ids: PathIds = self.table.open_paths().filter(leaves_by).map(Path::id).collect();
        for id in ids {
            let Some(path) = self.table.path_mut(id) else { continue };
            let reduced = path.on_too_large(now, bytes, &mut self.feedback);
            self.tell_undelivered(id);
            if let Some(bytes) = reduced {
                self.tell_shrunk(id, bytes);
            }
        }
    }

    /// Tries no larger datagrams from now on, on any path.
    pub(crate) fn stop_mtu_search(&mut self) {
        self.settings.mtu_search = Switch::Off;
        self.table.slots_mut().filter_map(|slot| slot.path.as_mut()).for_each(|path| path.stop_mtu_search());
    }

    /// A probe time-out passed on a path: its datagrams may be too large for it.
    pub(crate) fn suspect_size(&mut self, now: Instant, id: PathId) {
        if let Some(bytes) = self.table.path_mut(id).and_then(|path| path.suspect_size(now)) {
            self.tell_shrunk(id, bytes);
        }
    }

    /// A 1-RTT packet was lost, for its size perhaps: the largest datagram where that became smaller.
    pub(crate) fn on_packet_lost(&mut self, now: Instant, id: PathId, lost: &LostPacket) -> Option<u16> {
        self.table.path_mut(id)?.on_packet_lost(now, lost.number, lost.bytes)
    }

    /// The largest datagram where it grew.
    pub(crate) fn on_mtu_probe_acked(&mut self, now: Instant, id: PathId, size: u16) -> Option<u16> {
        self.table.path_mut(id)?.on_mtu_probe_acked(now, size)
    }

    pub(crate) fn on_mtu_probe_lost(&mut self, now: Instant, id: PathId, size: u16) {
        if let Some(path) = self.table.path_mut(id) {
            path.on_mtu_probe_lost(now, size);
        }
    }

    fn tell_shrunk(&mut self, id: PathId, bytes: u16) {
        self.tell(PathNews::RoomShrank);
        self.tell(PathNews::Mtu { id, bytes });
    }
}
