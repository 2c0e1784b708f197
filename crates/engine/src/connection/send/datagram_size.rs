//! What a path carries: datagrams that prove too large, and room for the application's datagrams.

use plait_base::probe::{PathState, TraceEvent};
use plait_base::{FourTuple, Instant, PathId};
use plait_path::{Path, PathIds};
use plait_schedule::{Decision, Demand, DemandKind, PathView};

use crate::config::Switch;
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
    /// The system refused a datagram of `bytes` that was to leave on `route`, as larger than the interface takes
    /// (EMSGSIZE). What it carried leaves again in smaller ones; that says nothing of congestion. Without effect at 1200
    /// bytes and below: an interface that refuses those carries no QUIC (RFC 9000 14).
    pub fn on_too_large(&mut self, now: Instant, route: FourTuple, bytes: usize) {
        let bytes = u16::try_from(bytes).unwrap_or(u16::MAX);
        let hit: PathIds =
            self.paths.table.open_paths().filter(|path| path.addresses.send_tuple() == route).map(Path::id).collect();
        for id in hit {
            let Some(path) = self.paths.table.path_mut(id) else { continue };
            let reduced = path.on_datagram_refused(now, bytes, &mut self.paths.feedback);
            self.process_acked_and_lost(now, id);
            if let Some(mtu) = reduced {
                self.on_shrunk(now, id, mtu);
            }
        }
    }

    /// Tries no larger datagrams from now on, on any path: where the system may fragment them, a probe that arrives proves
    /// nothing (RFC 9000 14).
    pub fn stop_mtu_search(&mut self) {
        self.settings.mtu_search = Switch::Off;
        self.paths.table.slots_mut().filter_map(|slot| slot.path.as_mut()).for_each(|path| path.stop_mtu_search());
    }

    /// A probe time-out passed on a path: its datagrams may be too large for it.
    pub(crate) fn suspect_size(&mut self, now: Instant, id: PathId) {
        if let Some(mtu) = self.paths.table.path_mut(id).and_then(|path| path.suspect_size(now)) {
            self.on_shrunk(now, id, mtu);
        }
    }

    /// The datagrams of a path became smaller.
    pub(crate) fn on_shrunk(&mut self, now: Instant, id: PathId, mtu: u16) {
        self.drop_unfit_datagrams();
        self.events.observe(now, || TraceEvent::Mtu { path: id, bytes: mtu });
    }

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
        self.ping(id);
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
