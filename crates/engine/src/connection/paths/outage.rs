//! Nothing gets through on any path: other addresses of ours are asked, one after another.

use std::net::SocketAddr;

use plait_base::{FourTuple, Instant, PathId};
use plait_path::ProbeTimeout;
use plait_path::policy::AddressUse;

use super::PathControl;
use crate::connection::events::PathEvent;

/// Probe time-outs in a row on the only path that works, after which we say that nothing gets through. The first may only mean
/// that the last packet of a flight was lost.
const OUTAGE_PTOS: u32 = 2;

/// What is known while no path works.
#[derive(Debug)]
pub(super) struct Outage {
    /// The path that failed last.
    last: PathId,
    /// The address of ours that is asked now.
    asked: Option<SocketAddr>,
}

impl PathControl {
    /// A probe time-out passed on the last path that worked.
    pub(super) fn on_probe_timeout_alone(&mut self, id: PathId, timeout: ProbeTimeout) {
        if timeout.count >= OUTAGE_PTOS && !timeout.only_hears {
            self.begin_outage(id);
        }
    }

    pub(super) fn begin_outage(&mut self, id: PathId) {
        if self.outage.is_none() && self.is_confirmed() {
            self.outage = Some(Outage { last: id, asked: None });
            self.tell_application(PathEvent::AllFailed { last: id });
        }
    }

    /// The peer acknowledged something on a path.
    pub(super) fn end_outage(&mut self, id: PathId) {
        let Some(Outage { last, asked }) = self.outage.take() else { return };
        if asked.is_some() {
            // A path that works again has no reason to move.
            self.table.drop_candidates(last);
            self.process_table_events();
        }
        self.tell_application(PathEvent::Restored { id });
    }

    /// During an outage the path that failed last asks from another address of ours whether the peer can be reached, and
    /// moves there when it can (RFC 9000 9.1, 9.2). The addresses have their turns for as long as the outage lasts.
    pub(super) fn ask_elsewhere(&mut self, now: Instant) {
        let Some(&Outage { last, asked }) = self.outage.as_ref() else { return };
        let Some(path) = self.table.path(last).filter(|_| self.may_move(last)) else { return };
        // A policy that opens paths of its own has its turn first.
        let opens = self.table.is_multipath() && self.plan.address_use() == AddressUse::OpensPaths;
        if opens && self.table.validations() > 0 {
            return;
        }
        // Challenges that the application asked for, or to the address that the server prefers, go on.
        if path.is_challenging_candidate() {
            return;
        }
        let (tuple, by_system) = (path.tuple(), path.is_local_chosen_by_system());
        let others: Vec<SocketAddr> = self.plan.refuges(tuple.remote).collect();
        let turn = others.iter().position(|local| Some(*local) == asked).map_or(0, |at| at + 1);
        // Where the system chooses the address, it has chosen already.
        let is_other = |local: &&SocketAddr| **local != tuple.local && !(by_system && local.ip().is_unspecified());
        // Not the path's own times: those have grown with its silence.
        let times = self.settings.first_validation_times();
        // RFC 9000 9.5: an address without a connection id of its own has no turn until the peer gives one
        let mut turns = others.iter().cycle().skip(turn).take(others.len()).filter(is_other);
        let asked =
            turns.find(|local| self.table.challenge_candidate(now, last, FourTuple { local: **local, ..tuple }, times));
        if let Some(&local) = asked {
            self.outage = Some(Outage { last, asked: Some(local) });
            self.process_table_events();
        }
    }
}
