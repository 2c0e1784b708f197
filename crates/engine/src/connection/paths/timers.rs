//! Time passes on paths: what is due, and PINGs where nothing was sent or heard for long.

use plait_base::time::earliest;
use plait_base::{FourTuple, Instant, PathId, Random, Space};
use plait_path::table::{Expired, Pairing, Slot};
use plait_path::{Path, PathIds, TimerFired};

use super::PathControl;

impl PathControl {
    /// When something is due on any path, or of the path policy.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        // The policy waits for lent paths that were asked back, and is asked once they are here.
        let plan = self.plan.deadline().filter(|_| !self.table.has_recalled());
        let mut at = earliest(self.table.packet_deadline(), plan);
        if self.no_path.is_none() {
            at = earliest(at, self.table.deadline());
        }
        earliest(at, self.no_path.as_ref().map(|none| none.until))
    }

    /// Validations that ended, ids that are forgotten.
    pub(crate) fn on_timeout(&mut self, now: Instant, random: &mut Random) {
        // Without a path no id is forgotten: the close goes to the last of them.
        if self.no_path.is_some() {
            return;
        }
        while let Some(expired) = self.table.poll_timeout(now) {
            match expired {
                Expired::Address(id, event) => self.on_address_event(now, id, event, random),
                Expired::Forgotten(id, path) => self.on_forgotten(id, path),
            }
            self.process_table_events();
        }
        if self.is_confirmed() {
            self.issue_cids(random);
        }
    }

    /// Asks for a PING on each open path on which nothing left for the keep-alive interval: what others carry keeps no NAT's
    /// memory of this one alive. When the next one is due; none without a keep-alive.
    pub(crate) fn keep_alive(&mut self, now: Instant) -> Option<Instant> {
        let (silent, next) = self.table.keep_alive(now, self.settings.keep_alive_interval()?);
        silent.into_iter().for_each(|id| self.ping(id));
        Some(next)
    }

    /// Asks on paths on which data stopped, once for each pause, while more of it is expected.
    pub(crate) fn ping_after_pauses(&mut self, now: Instant, expects_data: impl FnOnce() -> bool) {
        let silent = self.table.take_pauses(now);
        if !silent.is_empty() && expects_data() {
            silent.into_iter().for_each(|id| self.ping_back(id));
        }
    }

    /// Asks for a PING where it shows the peer the way to us that path `id` takes.
    fn ping_back(&mut self, id: PathId) {
        if self.table.pairing() == Pairing::Paths {
            return self.ping(id);
        }
        // No flow of ours goes with the peer's: any from the same address passes the NAT that may have forgotten us.
        let Some(heard) = self.table.path(id).and_then(|path| path.heard_from()) else { return };
        let is_beside = |slot: &&Slot| slot.path.as_deref().is_some_and(|path| path.tuple().local == heard.local);
        let beside: Vec<PathId> = self.table.open_slots().filter(is_beside).map(|slot| slot.id).collect();
        beside.into_iter().for_each(|id| self.ping(id));
    }

    /// The loss or probe timer of a path may be due; what it found out of packets is in `feedback`. `least_bytes` has the
    /// smallest datagram that would be sent next.
    pub(crate) fn on_packet_timer(&mut self, now: Instant, id: PathId, least_bytes: u64) -> TimerFired {
        match self.table.path_mut(id) {
            Some(path) => path.on_timeout(now, least_bytes, &mut self.shared_metrics, &mut self.feedback),
            None => TimerFired::None,
        }
    }

    /// A time-out of the handshake on path `id` asks for a probe in a 1-RTT packet too. A client sends one even with nothing
    /// in flight there: a server that is done reads nothing else, and finds us by nothing else behind a NAT that forgot us.
    pub(crate) fn request_data_probe(&mut self, id: PathId) {
        let Some(path) = self.table.path_mut(id) else { return };
        path.request_probe(Space::Data);
        let owes = path.owes_probe(Space::Data);
        if !owes && self.side.is_client() {
            self.ping(id);
        }
    }

    /// A time-out of the handshake asks for a datagram on each path that a client opens: it takes along what path 0 may have lost.
    pub(crate) fn ping_openings(&mut self) {
        if self.side.is_client() && !self.holds_openings() {
            let opening: PathIds = self.table.open_paths().filter(|path| path.is_opening()).map(Path::id).collect();
            opening.into_iter().for_each(|id| self.ping(id));
        }
    }

    /// True when this space of path 0 owes probes after a time-out.
    pub(crate) fn owes_probe(&self, space: Space) -> bool {
        self.table.path(PathId::ZERO).is_some_and(|path| path.owes_probe(space))
    }

    /// Asks for a PING on some open path, best on one that works and whose socket has room.
    pub(crate) fn ping_any(&mut self, is_full: impl Fn(&FourTuple) -> bool) {
        let has_room = |id: &PathId| self.table.path(*id).is_none_or(|path| !is_full(&path.tuple()));
        let working = || self.table.working().map(|slot| slot.id);
        let first = working().find(has_room).or_else(|| working().next());
        if let Some(id) = first.or_else(|| self.table.open_slots().next().map(|slot| slot.id)) {
            self.ping(id);
        }
    }

    /// Asks for a PING on a path, if there is one of this id that may carry it: a peer may name ids on which nothing was sent
    /// yet.
    pub(crate) fn ping(&mut self, id: PathId) {
        let is_here = self.table.path(id).is_some_and(|path| !path.takes_only_probes());
        if is_here && !self.pings.contains(&id) {
            self.pings.push(id);
        }
    }
}
