//! Room for the application's datagrams on each path.

use plait_base::probe::PathState;
use plait_base::{Instant, PathId};
use plait_schedule::{Decision, Demand, DemandKind, PathView};

use crate::connection::Connection;
use crate::connection::send::purpose::Purpose;
use plait_path::table::Slot;

/// Bytes for frames in a packet of a datagram of `mtu` bytes: what the longest header and the tag leave.
fn frame_room(mtu: u64) -> usize {
    let overhead = 1 + plait_base::limits::MAX_CID_LEN + 4 + plait_crypto::TAG_BYTES;
    usize::try_from(mtu).unwrap_or(usize::MAX).saturating_sub(overhead)
}

/// What a path is good for, the best first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    InUse,
    Backup,
    Failed,
    Unproven,
}

fn standing(slot: &Slot) -> Standing {
    match slot.state() {
        PathState::Active => Standing::InUse,
        // It carries data from the start.
        PathState::Validating if slot.id == PathId::ZERO => Standing::InUse,
        PathState::Backup => Standing::Backup,
        PathState::Failed => Standing::Failed,
        PathState::Validating | PathState::Closing | PathState::Closed => Standing::Unproven,
    }
}

impl Connection {
    /// A path on which nothing is under way learns what it carries without data, where the application sends datagrams:
    /// their size depends on it, and the scheduler may have no use for the path. A search is a few probes, and the next
    /// one is minutes away.
    pub(crate) fn next_idle_search(&mut self, now: Instant, empty: &[(PathId, Purpose)]) -> Option<(PathId, Purpose)> {
        if empty.iter().any(|(_, purpose)| matches!(purpose, Purpose::Mtu(_))) {
            return None;
        }
        if !self.datagrams.is_used() || !self.handshake.is_confirmed() {
            return None;
        }
        let full = &self.scheduling.full_sockets;
        let (id, size) = self.paths.table.slots_mut().filter(|slot| slot.is_open()).find_map(|slot| {
            let usable = standing(slot) <= Standing::Backup && slot.sendable().is_some();
            let path = slot.path.as_mut().filter(|path| usable && path.addresses.is_validated())?;
            let size = path.mtu_probe_while_idle(now)?;
            Some((slot.id, size)).filter(|_| !full.hold(&path.addresses.tuple()))
        })?;
        // RFC 9002 6.1: the ack of a small packet behind it shows the loss of the probe, without a probe time-out.
        self.paths.ping(id);
        Some((id, Purpose::Mtu(size)))
    }

    /// The scheduler's answer. Where the next datagram is too large for packets of some paths, those that can carry it are
    /// offered first; while they are held, all are offered what else waits for them.
    pub(crate) fn decide(&mut self, demand: &Demand) -> Decision {
        let side = self.side();
        let Self { scheduling, paths, datagrams, streams, .. } = self;
        scheduling.look(&mut paths.table, demand.now, side);
        let holds = |view: &PathView, size: usize| datagrams.max_size(frame_room(view.mss_bytes)) >= Some(size);
        let next = datagrams.next_size().filter(|_| demand.kind == DemandKind::Datagram);
        let Some(next) = next.filter(|next| scheduling.views.iter().any(|view| !holds(view, *next))) else {
            return scheduling.pick(demand);
        };
        let all: smallvec::SmallVec<[PathView; 8]> = scheduling.views.iter().copied().collect();
        scheduling.views.retain(|view| holds(view, next));
        let decision = scheduling.pick(demand);
        if decision.primary().is_some() {
            return decision;
        }
        let has_streams = streams.unsent_bytes() > 0;
        let has_some =
            |view: &&PathView| has_streams || datagrams.next_size_within(frame_room(view.mss_bytes)).is_some();
        scheduling.views.clear();
        scheduling.views.extend(all.iter().filter(has_some));
        let kind = if has_streams { DemandKind::Stream } else { DemandKind::Datagram };
        scheduling.pick(&Demand { kind, ..*demand })
    }

    /// Bytes for frames in a packet of a path.
    pub(crate) fn room_on(&self, id: PathId) -> usize {
        self.paths.table.path(id).map_or(0, |path| frame_room(u64::from(path.mtu())))
    }

    /// Bytes for frames in a packet of the widest path in use: active ones, else backups, else failed ones.
    pub(crate) fn datagram_room(&self) -> usize {
        self.widest(self.paths.table.open_slots().map(standing).min())
    }

    /// Bytes for frames in a packet of the widest path that stands as `worst` or better.
    fn widest(&self, worst: Option<Standing>) -> usize {
        let good = self.paths.table.open_slots().filter(|slot| Some(standing(slot)) <= worst);
        let widest = good.filter_map(|slot| slot.path.as_ref()).map(|path| path.mtu()).max();
        frame_room(u64::from(widest.unwrap_or(plait_base::limits::MIN_DATAGRAM_BYTES as u16)))
    }

    /// Paths or their packets became smaller, or the peer's limit did: datagrams that no path can carry any more would hold
    /// up all that comes after them. Failed paths count only where no other is left.
    pub(crate) fn drop_unfit_datagrams(&mut self) {
        if self.datagrams.wants_send() {
            let best = self.paths.table.open_slots().map(standing).min();
            let room = self.widest(best.max(Some(Standing::Backup)));
            let dropped = self.datagrams.drop_larger_than(room);
            if dropped > 0 {
                tracing::debug!(dropped, room, "queued datagrams fit no packet any more");
            }
        }
    }
}
