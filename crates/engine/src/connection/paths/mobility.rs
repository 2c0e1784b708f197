//! Our own addresses change: paths that lost theirs leave by another, and the peer hears of it.

use std::net::{IpAddr, SocketAddr};

use plait_base::{FourTuple, Instant, PathId};
use plait_path::policy::AddressUse;
use plait_path::{FourTupleRole, TakeOver};

use crate::connection::Connection;
use crate::connection::events::PathEvent;

/// Nothing gets through on any path: other addresses of ours are asked, one after another.
#[derive(Debug)]
pub(crate) struct Outage {
    /// The path that failed last.
    last: PathId,
    /// The address of ours that is asked now.
    asked: Option<SocketAddr>,
}

impl Connection {
    /// Our usable addresses changed: the path policy of a client opens and ends paths accordingly. A path whose address is
    /// not among them moves to one that is, unless the policy opens paths itself.
    pub fn set_local_addresses(&mut self, now: Instant, addresses: &[SocketAddr]) {
        self.paths.plan.set_local(addresses);
        self.maintain_paths(now);
    }

    /// The IP addresses that this machine has, as far as the system tells. A path from an unspecified address or from a
    /// socket that is bound to none leaves by another of them when its own is gone.
    pub fn set_machine_addresses(&mut self, now: Instant, addresses: &[IpAddr]) {
        self.paths.plan.set_machine(addresses);
        self.maintain_paths(now);
    }

    /// The network around us may have changed: all paths are asked at once whether they still work, and a client whose
    /// address the operating system chooses takes a fresh connection id for what may be another (RFC 9000 9.5).
    pub fn handle_network_change(&mut self, now: Instant) {
        let ids: Vec<PathId> = self.paths.table.open_slots().map(|slot| slot.id).collect();
        for id in ids {
            let Some(path) = self.paths.table.path_mut(id) else { continue };
            path.send.on_network_change(now);
            if path.addresses.is_system_known() && self.may_move(id) {
                self.paths.table.renew_cid(id);
                self.drain_table_events();
            }
            self.ping(id);
        }
    }

    /// RFC 9000 9, 18.2: not before the handshake is confirmed, and not where the server wants no other address of ours.
    fn may_move(&self, id: PathId) -> bool {
        let remote = self.paths.table.path(id).map(|path| path.addresses.tuple().remote);
        self.side().is_client() && self.handshake.is_confirmed() && remote.is_some_and(|to| !self.is_bound_to(to))
    }

    /// Paths whose address of ours is gone leave by another, as far as there is one for them.
    pub(crate) fn tend_strays(&mut self, now: Instant) {
        if !self.paths.plan.has_strays() || self.side().is_server() || !self.handshake.is_confirmed() {
            return;
        }
        self.paths.plan.settle_strays();
        let is_stray = |tuple: &FourTuple| self.paths.plan.is_stray(tuple.local);
        let paths = self.paths.table.open_slots().filter_map(|slot| Some((slot.id, slot.path.as_ref()?)));
        let strays: Vec<PathId> = paths.filter(|(_, p)| is_stray(&p.addresses.tuple())).map(|(id, _)| id).collect();
        for id in strays {
            let opens = self.paths.table.is_multipath() && self.paths.plan.address_use() == AddressUse::OpensPaths;
            let known = self.paths.table.path(id).is_some_and(|path| path.addresses.is_system_known());
            match self.refuge(id).filter(|_| self.may_move(id) && (known || !opens)) {
                Some(local) => self.relocate(now, id, local),
                None => self.on_address_lost(now, id),
            }
        }
    }

    /// Where a path may go whose own address is gone: to an address that no other path to this peer uses, or to any when
    /// nothing else works.
    fn refuge(&self, id: PathId) -> Option<SocketAddr> {
        let tuple = self.paths.table.path(id)?.addresses.tuple();
        let others = || self.paths.table.open_slots().filter(|slot| slot.id != id);
        let works =
            others().any(|slot| slot.is_usable() && !self.paths.plan.is_stray(local_of(slot).unwrap_or(tuple.local)));
        let is_free = |local: &SocketAddr| !others().filter_map(local_of).any(|other| other.ip() == local.ip());
        let mut found = self.paths.plan.refuges(tuple.remote);
        match works {
            true => found.find(|local| !local.ip().is_unspecified() && is_free(local)),
            false => found.next(),
        }
    }

    fn relocate(&mut self, now: Instant, id: PathId, local: SocketAddr) {
        let times = self.first_validation_times();
        let Some(path) = self.paths.table.path_mut(id) else { return };
        let moved = path.addresses.relocate(local);
        path.addresses.challenge(now, times);
        self.paths.table.renew_cid(id);
        self.on_path_moved(now, id, moved);
        // RFC 9000 9.3: the server follows packets that are no mere probes.
        self.ping(id);
    }

    /// A path's own address is gone, and there is no other for it: it has failed, whatever was heard before.
    fn on_address_lost(&mut self, now: Instant, id: PathId) {
        let others = self.paths.table.take_over_from(id);
        if self.paths.table.is_multipath() {
            self.mark_failed(now, id, others);
        }
        if others == TakeOver::Alone {
            self.note_outage(id);
        }
    }

    /// Asks on paths on which data stopped, once for each pause.
    pub(crate) fn ping_after_pauses(&mut self, now: Instant) {
        let silent = self.paths.table.take_pauses(now);
        if !silent.is_empty() && self.streams.expects_data() {
            silent.into_iter().for_each(|id| self.ping(id));
        }
    }

    /// Two probe time-outs in a row on the last path that worked: nothing gets through.
    pub(crate) fn note_outage(&mut self, id: PathId) {
        if self.paths.outage.is_none() && self.handshake.is_confirmed() {
            self.paths.outage = Some(Outage { last: id, asked: None });
            self.events.path(PathEvent::AllFailed { last: id });
        }
    }

    /// During an outage the path that failed last asks from another address of ours whether the peer can be reached, and
    /// moves there when it can (RFC 9000 9.1, 9.2). The addresses have their turns for as long as the outage lasts.
    pub(crate) fn ask_elsewhere(&mut self, now: Instant) {
        let Some(&Outage { last, asked }) = self.paths.outage.as_ref() else { return };
        let Some(path) = self.paths.table.path(last).filter(|_| self.may_move(last)) else { return };
        // A policy that opens paths of its own has its turn first.
        let opens = self.paths.table.is_multipath() && self.paths.plan.address_use() == AddressUse::OpensPaths;
        if opens && self.paths.table.validations() > 0 {
            return;
        }
        // A probe of the application's, or of the address that the server prefers, goes on.
        if path.addresses.get(FourTupleRole::Candidate).is_some_and(|state| state.is_validating()) {
            return;
        }
        let (tuple, by_system) = (path.addresses.tuple(), path.addresses.is_system_known());
        let others: Vec<SocketAddr> = self.paths.plan.refuges(tuple.remote).collect();
        let turn = others.iter().position(|local| Some(*local) == asked).map_or(0, |at| at + 1);
        // Where the system chooses the address, it has chosen already.
        let is_other = |local: &&SocketAddr| **local != tuple.local && !(by_system && local.ip().is_unspecified());
        // Not the path's own times: those have grown with its silence.
        let times = self.first_validation_times();
        // RFC 9000 9.5: an address without a connection id of its own has no turn until the peer gives one
        let mut turns = others.iter().cycle().skip(turn).take(others.len()).filter(is_other);
        let asked =
            turns.find(|local| self.paths.table.probe(now, last, FourTuple { local: **local, ..tuple }, times).is_ok());
        if let Some(&local) = asked {
            self.paths.outage = Some(Outage { last, asked: Some(local) });
            self.drain_table_events();
        }
    }

    /// Nothing answered at other addresses that a path asked from.
    pub(crate) fn on_candidate_failed(&mut self, now: Instant, id: PathId) {
        self.ask_elsewhere(now);
        self.paths.table.drop_failed_candidate(id);
        self.drain_table_events();
    }

    /// The peer answered on a path.
    pub(crate) fn end_outage(&mut self, id: PathId) {
        let Some(Outage { last, asked }) = self.paths.outage.take() else { return };
        if asked.is_some() {
            // A path that works again has no reason to move.
            self.paths.table.drop_candidates(last);
            self.drain_table_events();
        }
        self.events.path(PathEvent::Restored { id });
    }
}

fn local_of(slot: &plait_path::table::Slot) -> Option<SocketAddr> {
    slot.path.as_ref().map(|path| path.addresses.tuple().local)
}
