//! Paths move: our own addresses change, those of the peer, or the server prefers another one.

use std::net::{IpAddr, SocketAddr};

use plait_base::{FourTuple, Instant, PathId};
use plait_path::Moved;
use plait_path::policy::AddressUse;
use plait_path::table::Slot;
use plait_path::{AddressScope, Path, TakeOver};
use plait_wire::frame::{CidForm, NewCid};

use super::{PathControl, PathError, PathNews};
use crate::connection::events::PathEvent;

impl PathControl {
    pub(crate) fn local_addresses(&self) -> &[SocketAddr] {
        self.plan.local()
    }

    pub(crate) fn set_local_addresses(&mut self, addresses: &[SocketAddr]) {
        self.plan.set_local(addresses);
        self.announce_addresses();
    }

    pub(crate) fn set_machine_addresses(&mut self, addresses: &[IpAddr]) {
        self.plan.set_machine(addresses);
        self.announce_addresses();
    }

    /// The network around us may have changed: all paths are asked at once whether they still work, and a client whose
    /// address the operating system chooses takes a fresh connection id for what may be another (RFC 9000 9.5), or stays at the
    /// one that it has until the peer gives such an id.
    pub(crate) fn on_network_change(&mut self, now: Instant) {
        let ids: Vec<PathId> = self.table.open_slots().map(|slot| slot.id).collect();
        for id in ids {
            let Some(path) = self.table.path_mut(id) else { continue };
            path.on_network_change(now);
            if path.is_local_chosen_by_system() && self.may_move(id) {
                let _ = self.renew_cid(id);
            }
            self.ping(id);
        }
    }

    /// RFC 9000 9, 18.2: not before the handshake is confirmed, and not where the server wants no other address of ours.
    pub(super) fn may_move(&self, id: PathId) -> bool {
        let remote = self.table.path(id).map(|path| path.tuple().remote);
        self.side.is_client() && self.is_confirmed() && remote.is_some_and(|to| !self.is_bound_to(to))
    }

    /// A path whose address the operating system chooses takes a fresh connection id for what may be another. Where the peer
    /// gave none it stays at its address until one comes.
    fn renew_cid(&mut self, id: PathId) -> bool {
        let renewed = self.table.renew_cid(id);
        if !renewed {
            self.plan.await_cid();
        }
        self.process_table_events();
        renewed
    }

    /// Paths whose address of ours is gone leave by another, as far as there is one for them and a connection id of the peer
    /// for it. Those that waited for one go on.
    pub(super) fn tend_strays(&mut self, now: Instant) {
        if !self.plan.has_strays() || self.side.is_server() || !self.is_confirmed() {
            return;
        }
        self.plan.settle_strays();
        let stray = |path: &&Path| self.plan.is_stray(path.tuple().local);
        let strays: Vec<PathId> = self.table.open_paths().filter(stray).map(Path::id).collect();
        for id in strays {
            let opens = self.table.is_multipath() && self.plan.address_use() == AddressUse::OpensPaths;
            let known = self.table.path(id).is_some_and(|path| path.is_local_chosen_by_system());
            let refuge = self.refuge(id).filter(|_| self.may_move(id) && (known || !opens));
            if !refuge.is_some_and(|local| self.relocate(now, id, local)) {
                self.on_address_lost(id);
            }
        }
        self.resume_moves(now);
    }

    /// Paths that the system may not send from elsewhere, and those that lead nowhere yet though the peer answered there, take
    /// the connection ids that came.
    fn resume_moves(&mut self, now: Instant) {
        let held = |path: &&Path| path.is_source_held() && !self.plan.is_stray(path.tuple().local);
        let held: Vec<PathId> = self.table.open_paths().filter(held).map(Path::id).collect();
        for id in held {
            if self.renew_cid(id) {
                self.ping(id);
            }
        }
        let proven: Vec<PathId> =
            self.table.open_paths().filter(|path| path.is_candidate_proven()).map(Path::id).collect();
        proven.into_iter().for_each(|id| self.on_candidate_validated(now, id));
    }

    /// Where a path may go whose own address is gone: to an address that no other path to this peer uses, or to any when
    /// nothing else works.
    fn refuge(&self, id: PathId) -> Option<SocketAddr> {
        let tuple = self.table.path(id)?.tuple();
        let others = || self.table.open_slots().filter(|slot| slot.id != id);
        let works =
            others().any(|slot| slot.is_working() && !self.plan.is_stray(local_of(slot).unwrap_or(tuple.local)));
        let is_free = |local: &SocketAddr| !others().filter_map(local_of).any(|other| other.ip() == local.ip());
        let mut found = self.plan.refuges(tuple.remote);
        match works {
            true => found.find(|local| !local.ip().is_unspecified() && is_free(local)),
            false => found.next(),
        }
    }

    /// False where the peer gave no connection id for another address: the path waits for one.
    fn relocate(&mut self, now: Instant, id: PathId, local: SocketAddr) -> bool {
        let times = self.settings.first_validation_times();
        let Some(moved) = self.table.relocate(now, id, local, times) else {
            self.plan.await_cid();
            return false;
        };
        self.on_moved(now, id, moved);
        // RFC 9000 9.3: the server follows packets that hold more than probing frames.
        self.ping(id);
        true
    }

    /// A path's own address is gone, and there is no other for it: it has failed, whatever was heard before.
    fn on_address_lost(&mut self, id: PathId) {
        self.table.hold_source(id);
        let others = self.table.can_take_over_from(id);
        if self.table.is_multipath() {
            self.mark_failed(id, others);
        }
        if others == TakeOver::Alone {
            self.begin_outage(id);
        }
    }

    /// A server's preferred address becomes one more address that paths may lead to. Path 0 moves there on connections
    /// without multipath, and where the path policy opens no paths (RFC 9000 9.6, 9.6.1).
    pub(crate) fn adopt_preferred_address(&mut self) {
        if self.side.is_server() {
            return;
        }
        let Some(preferred) = self.peer.as_ref().and_then(|peer| peer.preferred_address.as_deref()) else { return };
        let Some(tuple) = self.table.path(PathId::ZERO).map(Path::tuple) else { return };
        let same_family = match tuple.remote {
            SocketAddr::V4(_) => preferred.v4.map(SocketAddr::V4),
            SocketAddr::V6(_) => preferred.v6.map(SocketAddr::V6),
        };
        let new = NewCid {
            form: CidForm::Plain,
            path: PathId::ZERO,
            sequence: 1,
            retire_prior_to: 0,
            cid: preferred.cid,
            token: preferred.token,
        };
        let _ = self.table.on_new_cid(&new);
        if let Some(remote) = same_family.filter(|remote| self.may_prefer(&tuple.remote, remote)) {
            self.plan.add_peer(remote);
            // RFC 9000 9.6.1: a policy that opens no paths leaves it to us to go there.
            if !self.table.is_multipath() || self.plan.address_use() == AddressUse::LeavesPaths {
                self.plan.preferred = Some(Box::new(FourTuple { remote, ..tuple }));
            }
        }
    }

    /// RFC 9000 21.5.6: a server out in the world may not send us to what lies inside our own network, nor any to a group.
    fn may_prefer(&self, first: &SocketAddr, preferred: &SocketAddr) -> bool {
        let is_outside = AddressScope::Global.admits(first);
        let scope = if is_outside { self.table.address_scope() } else { AddressScope::Any };
        scope.admits(preferred)
    }

    /// RFC 9000 9.6.2, 21.5.3: nothing but probing frames goes to a preferred address before it is proven.
    pub(super) fn challenge_preferred(&mut self, now: Instant) {
        let Some(tuple) = self.plan.preferred.take().map(|tuple| *tuple) else { return };
        let times = self.validation_times(PathId::ZERO);
        self.table.challenge_candidate(now, PathId::ZERO, tuple, times);
        self.process_table_events();
    }

    /// Moves a path to other addresses of ours once they are validated, which begins now (RFC 9000 9.2).
    pub(crate) fn begin_migration(&mut self, now: Instant, id: PathId, tuple: FourTuple) -> Result<(), PathError> {
        // RFC 9000 9: no migration before the handshake is confirmed
        if !self.is_confirmed() {
            return Err(PathError::Unconfirmed);
        }
        if self.is_bound_to(tuple.remote) {
            return Err(PathError::MigrationDisabled);
        }
        let times = self.validation_times(id);
        if !self.table.challenge_candidate(now, id, tuple, times) {
            return Err(PathError::NoPath);
        }
        self.process_table_events();
        Ok(())
    }

    /// The peer responded at a candidate address of ours, or at the one that it prefers: the path moves there
    /// (RFC 9000 9.6.3).
    pub(super) fn on_candidate_validated(&mut self, now: Instant, id: PathId) {
        if self.side.is_server() {
            return;
        }
        let Some(tuple) = self.table.path(id).and_then(Path::candidate) else { return };
        let times = self.validation_times(id);
        let moved = self.table.move_to(now, id, tuple, times);
        if moved == Moved::No {
            // The peer wanted the id back by which it was asked, and gave no other yet.
            self.plan.await_cid();
        }
        self.on_moved(now, id, moved);
    }

    /// No response came at other addresses that a path challenged.
    pub(super) fn on_candidate_failed(&mut self, now: Instant, id: PathId) {
        self.ask_elsewhere(now);
        self.table.drop_failed_candidate(id);
        self.process_table_events();
    }

    /// The address to which the peer moved is proven: RTT, window and MTU begin anew (RFC 9000 9.4).
    pub(super) fn renew(&mut self, now: Instant, id: PathId) {
        let factory = self.controller().clone();
        if let Some(path) = self.table.path_mut(id) {
            path.renew(now, || factory.build(id, now, plait_base::limits::MIN_DATAGRAM_BYTES as u64));
            self.table.on_pto_changed();
            self.tell(PathNews::RoomShrank);
        }
    }

    /// The path's addresses changed: its RTT, window and MTU begin anew unless only ports did (RFC 9000 9.4).
    pub(crate) fn on_moved(&mut self, now: Instant, id: PathId, moved: Moved) {
        if moved == Moved::No {
            return;
        }
        let factory = self.controller().clone();
        let Some(path) = self.table.path_mut(id) else { return };
        path.on_moved(now, moved, || factory.build(id, now, plait_base::limits::MIN_DATAGRAM_BYTES as u64));
        let tuple = path.tuple();
        self.table.on_pto_changed();
        self.reset_tokens.on_moved(id, tuple.remote, |event| self.news.push_back(PathNews::Endpoint(event)));
        self.tell_application(PathEvent::Migrated { id, tuple });
        self.tell(PathNews::RoomShrank);
        self.process_table_events();
        self.tell_state(id);
        self.on_flows_changed();
        self.plan.touch();
    }
}

fn local_of(slot: &Slot) -> Option<SocketAddr> {
    slot.path.as_ref().map(|path| path.tuple().local)
}
