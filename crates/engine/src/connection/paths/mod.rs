//! Opening, failing, recovering, abandoning and closing paths.

pub(crate) mod mobility;
pub(crate) mod policy;
pub(crate) mod reset_tokens;

use std::net::SocketAddr;

use mobility::Outage;
use plait_base::probe::{PathState, TraceEvent};
use plait_base::shared_metrics::SharedPathMetrics;
use plait_base::{CloseCode, FourTuple, Instant, PathId, Space};
use plait_path::policy::{AddressUse, Wish};
use plait_path::table::{AbandonError, Expired, OpenError};
use plait_path::{
    Feedback, FourTupleRole, HandshakeState, PathAddresses, PathStatus, PathTotals, Paths, ProbeTimeout, TakeOver,
    Validation,
};
use plait_wire::SentFrame;
use plait_wire::frame::{CidForm, NewCid};
use plait_wire::params::{ActiveMigration, EarlyPaths, TransportParameters};
use policy::PathPlan;
use reset_tokens::ResetTokens;

use crate::config::Switch;
use crate::connection::Connection;
use crate::connection::events::PathEvent;
use crate::connection::receive::Arrival;

/// How long a client without a path looks for another before it closes, probe time-outs of a path yet unknown.
const CLIENT_PATIENCE_PTOS: u32 = 3;
/// How long a server waits for its client to open one; it cannot do so itself (RFC 10069 3.4).
const SERVER_PATIENCE_PTOS: u32 = 1;

/// Probe time-outs in a row on the only path that works, until nothing is said to get through. The first may only mean
/// that the last packet of a flight was lost.
const OUTAGE_PTOS: u32 = 2;

/// Why a call about a path could not be obeyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The path could not be opened now; the reason says whether trying later helps.
    #[error("the path cannot be opened: {0}")]
    Open(OpenError),
    /// There is no such open path.
    #[error("there is no such open path")]
    NoPath,
    /// Multipath is not in effect on this connection.
    #[error("multipath is not in effect on this connection")]
    NotMultipath,
    /// The server takes clients only at the address of the handshake (disable_active_migration).
    #[error("the server allows no further path to this address of it")]
    MigrationDisabled,
    /// The handshake is not confirmed yet; later it may be tried again.
    #[error("the handshake is not confirmed yet")]
    Unconfirmed,
    /// The connection is closed.
    #[error("the connection is closed")]
    Closed,
}

/// The connection's paths and what is decided about them.
pub(crate) struct PathControl {
    /// The paths themselves.
    pub(crate) table: Paths,
    /// The path policy and the addresses that it knows.
    pub(crate) plan: PathPlan,
    /// What coupled congestion controllers read of each other.
    pub(crate) shared_metrics: SharedPathMetrics,
    /// Stateless reset tokens of the peer's ids in use.
    pub(crate) reset_tokens: ResetTokens,
    /// Set once the last path ended, until another opens or the connection closes.
    pub(crate) no_path: Option<NoPath>,
    /// A server's preferred address, to be probed once the handshake is confirmed.
    pub(crate) preferred: Option<FourTuple>,
    /// What is tried while no path works.
    pub(crate) outage: Option<Outage>,
    /// What paths did that are gone.
    pub(crate) past: PathTotals,
    /// What the last ack or timer said of packets; empty between calls.
    pub(crate) feedback: Feedback,
}

/// A connection whose last path ended, until it closes or another opens.
pub(crate) struct NoPath {
    /// Until when it waits for a path.
    pub(crate) until: Instant,
    /// The path that ended last, while its PATH_ABANDON did not leave.
    pub(crate) abandon_unsent: Option<PathId>,
}

impl PathControl {
    pub(crate) fn new(table: Paths, plan: PathPlan) -> Self {
        Self {
            table,
            plan,
            shared_metrics: SharedPathMetrics::default(),
            reset_tokens: ResetTokens::default(),
            no_path: None,
            preferred: None,
            outage: None,
            past: PathTotals::default(),
            feedback: Feedback::default(),
        }
    }

    pub(crate) fn shrink_to_fit(&mut self) {
        self.feedback.shrink_to_fit();
        self.shared_metrics.shrink_to_fit();
        self.table.shrink_to_fit();
        self.table.slots_mut().filter_map(|slot| slot.path.as_mut()).for_each(|path| path.send.shrink_to_fit());
    }
}

impl Connection {
    /// Opens a path between two addresses (clients only). It carries data from its first packet on.
    ///
    /// # Errors
    /// See [`PathError`]. A path that lacks the peer's connection ids may be tried again after a round trip.
    pub fn open_path(&mut self, now: Instant, route: FourTuple, status: PathStatus) -> Result<PathId, PathError> {
        if !self.lifecycle.is_open() {
            return Err(PathError::Closed);
        }
        if self.paths.table.open_slots().count() >= self.max_paths() {
            return Err(PathError::Open(OpenError::OwnLimit));
        }
        if self.is_bound_to(route.remote) {
            return Err(PathError::MigrationDisabled);
        }
        let id = self.paths.table.next_id().map_err(PathError::Open)?;
        let mut path = self.make_path(now, id, PathAddresses::opened(route), HandshakeState::Confirmed);
        let times = self.first_validation_times();
        path.addresses.challenge(now, times);
        self.paths.table.open(Box::new(path)).map_err(PathError::Open)?;
        if status == PathStatus::Backup {
            self.set_status(id, status);
        }
        self.finish_opening(now, id, route);
        Ok(id)
    }

    /// True while the datagrams that open a client's paths wait. On another way than the Finished they may overtake it,
    /// and some servers never recover from that; RFC 9001 5.7 has them keep or drop such packets. Ours say that they do.
    pub(crate) fn holds_openings(&self) -> bool {
        let welcome = |p: &TransportParameters| p.early_paths == EarlyPaths::Welcome;
        self.side().is_client()
            && !self.handshake.is_confirmed()
            && !self.handshake.peer_params.as_ref().is_some_and(welcome)
    }

    /// True when the peer wants nothing from other addresses of ours at this one of its (RFC 9000 18.2, RFC 10069 2.2:
    /// the parameter speaks of the address of the handshake, not of others of the server).
    pub(crate) fn is_bound_to(&self, remote: std::net::SocketAddr) -> bool {
        let params = self.handshake.peer_params.as_ref();
        let disabled = params.is_some_and(|p| p.active_migration == ActiveMigration::Disabled);
        disabled && Some(remote) == self.paths.plan.first_peer()
    }

    fn finish_opening(&mut self, now: Instant, id: PathId, route: FourTuple) {
        self.drain_table_events();
        self.paths.no_path = None;
        self.events.path(PathEvent::Opened { id, route });
        self.observe_path(now, id);
        self.issue_cids();
        self.paths.plan.touch();
    }

    /// The peer opens a path with its first packet on it.
    pub(crate) fn accept_path(&mut self, at: &Arrival) -> bool {
        // RFC 10069 3.1: an address that another path of the client proved need not be proven again
        let proven = self.paths.table.has_proven(&at.route);
        let validation = if proven { Validation::Validated } else { Validation::Unvalidated };
        let mut route = PathAddresses::new(at.route, validation);
        route.on_received(&at.route, at.bytes);
        route.challenge(at.now, self.first_validation_times());
        let path = self.make_path(at.now, at.path, route, HandshakeState::Confirmed);
        if self.paths.table.open(Box::new(path)).is_err() {
            return false;
        }
        self.finish_opening(at.now, at.path, at.route);
        if proven {
            // No challenge leaves whose answer would say so.
            self.on_path_validated(at.now, at.path);
        }
        true
    }

    fn max_paths(&self) -> usize {
        self.settings.transport.paths.max_concurrent.map_or(1, |n| n.get() as usize)
    }

    /// Gives a path up. PATH_ABANDON tells the peer `code`, one of the transport's such as
    /// [`CloseCode::APPLICATION_ABANDON_PATH`] (RFC 10069 4.2.1), at most 2^62 - 1.
    ///
    /// # Errors
    /// There is no such path, or multipath is not in effect.
    pub fn close_path(&mut self, now: Instant, id: PathId, code: CloseCode) -> Result<(), PathError> {
        if !self.lifecycle.is_open() {
            return Err(PathError::Closed);
        }
        if !self.paths.table.is_multipath() {
            return Err(PathError::NotMultipath);
        }
        match self.abandon_path(now, id, CloseCode(code.0.min(plait_base::units::VARINT_MAX))) {
            Ok(()) => Ok(()),
            Err(AbandonError::NotNegotiated) => Err(PathError::NotMultipath),
            Err(AbandonError::NoPath | AbandonError::Closing) => Err(PathError::NoPath),
        }
    }

    pub(crate) fn abandon_path(&mut self, now: Instant, id: PathId, code: CloseCode) -> Result<(), AbandonError> {
        let pto = self.paths.table.max_pto();
        self.paths.table.abandon(now, id, code, pto)?;
        self.on_path_closing(now, id, code);
        Ok(())
    }

    /// A path ends, by our will or the peer's: its frames go elsewhere, nothing more is sent on it.
    pub(crate) fn on_path_closing(&mut self, now: Instant, id: PathId, code: CloseCode) {
        self.drain_table_events();
        let route = self.paths.table.path(id).map(|p| p.addresses.tuple());
        if let Some(path) = self.paths.table.path_mut(id) {
            path.send.on_path_gone(now, &mut self.paths.feedback);
        }
        self.process_acked_and_lost(now, id);
        self.paths.shared_metrics.remove(id);
        self.paths.table.on_ack_path_gone(id);
        self.scheduling.on_path_gone(id);
        self.drop_unfit_datagrams();
        self.events.path(PathEvent::Abandoned { id, code });
        if let Some(route) = route {
            self.events.observe(now, || TraceEvent::Path { path: id, route, state: PathState::Closing });
            self.paths.plan.policy_mut().on_ended(now, route, code);
        }
        self.paths.plan.touch();
        self.issue_cids();
        self.last_path_check(now, id);
    }

    /// RFC 10069 3.4: without a path left, the connection ends, unless the client opens another in time.
    fn last_path_check(&mut self, now: Instant, id: PathId) {
        if !self.paths.table.is_empty() || !self.lifecycle.is_open() || self.paths.no_path.is_some() {
            return;
        }
        // What the other path takes is unknown: its first packet may be under way.
        let pto = self.paths.table.max_pto().max(self.settings.transport.recovery.initial_rtt * 3);
        let patience = if self.side().is_client() { CLIENT_PATIENCE_PTOS } else { SERVER_PATIENCE_PTOS };
        self.paths.no_path = Some(NoPath { until: now + pto * patience, abandon_unsent: Some(id) });
    }

    /// Tells the peer how this path is to be used.
    ///
    /// # Errors
    /// There is no such open path, or multipath is not in effect.
    pub fn set_path_status(&mut self, now: Instant, id: PathId, status: PathStatus) -> Result<(), PathError> {
        if !self.lifecycle.is_open() {
            return Err(PathError::Closed);
        }
        if !self.paths.table.is_multipath() {
            return Err(PathError::NotMultipath);
        }
        if !self.paths.table.slot(id).is_some_and(|slot| slot.is_open()) {
            return Err(PathError::NoPath);
        }
        self.set_status(id, status);
        self.observe_path(now, id);
        Ok(())
    }

    fn set_status(&mut self, id: PathId, status: PathStatus) {
        if let Some(slot) = self.paths.table.slot_mut(id) {
            slot.status.set_local(status);
        }
    }

    /// The addresses that the path policy knows of ours.
    pub fn local_addresses(&self) -> &[SocketAddr] {
        self.paths.plan.local()
    }

    /// A server's preferred address becomes one more address that paths may lead to. Path 0 moves there on connections
    /// without multipath, and where the path policy opens no paths (RFC 9000 9.6, 9.6.1).
    pub(crate) fn adopt_preferred_address(&mut self) {
        if self.side().is_server() {
            return;
        }
        let Some(preferred) = self.handshake.peer_params.as_ref().and_then(|p| p.preferred_address) else { return };
        let Some(tuple) = self.paths.table.path(PathId::ZERO).map(|p| p.addresses.tuple()) else { return };
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
        let _ = self.paths.table.on_new_cid(&new);
        if let Some(remote) = same_family.filter(|remote| remote.port() != 0 && !remote.ip().is_unspecified()) {
            self.paths.plan.add_peer(remote);
            // RFC 9000 9.6.1: a policy that opens no paths leaves it to us to go there.
            if !self.paths.table.is_multipath() || self.paths.plan.address_use() == AddressUse::LeavesPaths {
                self.paths.preferred = Some(FourTuple { remote, ..tuple });
            }
        }
    }

    /// Lets the policy have its way, where limits allow.
    pub(crate) fn maintain_paths(&mut self, now: Instant) {
        if !self.lifecycle.is_open() || !self.handshake.is_complete() {
            return;
        }
        // RFC 9000 9: no migration before the handshake is confirmed
        if self.handshake.is_confirmed() {
            self.probe_preferred(now);
        }
        self.tend_strays(now);
        if self.paths.table.is_multipath() {
            self.run_path_policy(now);
        }
        self.ask_elsewhere(now);
    }

    /// Opens and ends paths as the path policy wishes.
    fn run_path_policy(&mut self, now: Instant) {
        let limits = (self.max_paths(), self.settings.transport.paths.max_validations);
        let wishes = self.paths.plan.wishes(now, self.handshake.side, &self.paths.table, limits);
        for wish in wishes {
            match wish {
                Wish::Open { route, status } => {
                    // What stands in the way is told to the peer; the policy is asked again when that changes.
                    if let Err(error) = self.open_path(now, route, status) {
                        tracing::debug!(%error, %route, "path not opened");
                    }
                }
                Wish::Abandon { id, code } => {
                    let _ = self.abandon_path(now, id, code);
                }
            }
        }
    }

    /// RFC 9000 9.6.2, 21.5.3: nothing but probes goes to a preferred address before it is proven.
    fn probe_preferred(&mut self, now: Instant) {
        let Some(tuple) = self.paths.preferred.take() else { return };
        let times = self.validation_times(PathId::ZERO);
        let _ = self.paths.table.probe(now, PathId::ZERO, tuple, times);
        self.drain_table_events();
    }

    /// Moves a path to other addresses of ours: probes them and goes there once they answer (RFC 9000 9.2).
    ///
    /// # Errors
    /// There is no such open path, or no spare connection id for the new addresses; the handshake is not confirmed, or
    /// the server wants no client to move at this address of it.
    pub fn migrate_path(&mut self, now: Instant, id: PathId, route: FourTuple) -> Result<(), PathError> {
        if !self.lifecycle.is_open() {
            return Err(PathError::Closed);
        }
        // RFC 9000 9: no migration before the handshake is confirmed
        if !self.handshake.is_confirmed() {
            return Err(PathError::Unconfirmed);
        }
        if self.is_bound_to(route.remote) {
            return Err(PathError::MigrationDisabled);
        }
        let times = self.validation_times(id);
        self.paths.table.probe(now, id, route, times).map_err(|_| PathError::NoPath)?;
        self.drain_table_events();
        Ok(())
    }

    /// A candidate address of ours, or a preferred one of the server, answered: the path moves there (RFC 9000 9.6.3).
    pub(crate) fn on_candidate_validated(&mut self, now: Instant, id: PathId) {
        if self.side().is_server() {
            return;
        }
        let Some(tuple) =
            self.paths.table.path(id).and_then(|p| p.addresses.get(FourTupleRole::Candidate)).map(|l| l.tuple())
        else {
            return;
        };
        let times = self.validation_times(id);
        let moved = self.paths.table.migrate(now, id, tuple, plait_path::table::CidChange::Fresh, times);
        self.on_path_moved(now, id, moved);
    }

    /// A probe time-out passed on a path. Where another works, that takes over its frames, and this one counts as
    /// potentially failed (CoNEXT 2017, section 4.3). Alone it sends its probes and gives nothing up: acks may only be late.
    pub(crate) fn on_probe_timeout(&mut self, now: Instant, id: PathId) {
        let others = self.paths.table.take_over_from(id);
        self.suspect_size(now, id);
        let mut again = std::mem::take(&mut self.scheduling.frames);
        again.clear();
        let Some(path) = self.paths.table.path_mut(id) else { return };
        let ProbeTimeout { count, brings_data } = path.on_probe_timeout(now, others, &mut again);
        self.send_again(now, id, again);
        self.events.observe(now, || TraceEvent::ProbeTimeout { path: id, count });
        if count >= OUTAGE_PTOS && others == TakeOver::Alone && !brings_data {
            self.note_outage(id);
        }
        let may_fail = self.settings.transport.paths.potentially_failed == Switch::On
            && self.handshake.is_confirmed()
            && self.paths.table.is_multipath();
        if brings_data || !may_fail || !self.paths.table.has_other_validated(id) {
            return;
        }
        if others == TakeOver::Possible && count >= self.settings.transport.paths.abandon_after_probes {
            let _ = self.abandon_path(now, id, CloseCode::PATH_UNSTABLE_OR_POOR);
            return;
        }
        self.mark_failed(now, id, others);
    }

    /// Frames of packets under way on path `id` are to be sent again, there or elsewhere.
    fn send_again(&mut self, now: Instant, id: PathId, mut frames: Vec<SentFrame>) {
        frames.iter().for_each(|frame| self.on_frame_lost(now, id, frame));
        frames.clear();
        self.scheduling.frames = frames;
    }

    pub(crate) fn mark_failed(&mut self, now: Instant, id: PathId, others: TakeOver) {
        if !self.paths.table.fail(id, others) {
            return;
        }
        self.drop_unfit_datagrams();
        self.events.path(PathEvent::Failed { id });
        self.observe_path(now, id);
        self.paths.plan.touch();
    }

    /// Path `by` works now: it takes over what is on its way on paths that fell silent while there was no other.
    pub(crate) fn take_over_silent(&mut self, now: Instant, by: PathId) {
        for id in self.paths.table.silent_beside(by) {
            let mut frames = std::mem::take(&mut self.scheduling.frames);
            frames.clear();
            if let Some(path) = self.paths.table.path_mut(id) {
                path.send.take_in_flight_frames(&mut frames);
            }
            self.send_again(now, id, frames);
        }
    }

    /// A failed path answered.
    pub(crate) fn on_path_recovered(&mut self, now: Instant, id: PathId) {
        self.take_over_silent(now, id);
        if let Some(slot) = self.paths.table.slot_mut(id) {
            slot.status.restore();
        }
        self.events.path(PathEvent::Recovered { id });
        self.observe_path(now, id);
    }

    /// Timers of the path table: validations that ended, ids that are forgotten.
    pub(crate) fn poll_path_timers(&mut self, now: Instant) {
        while let Some(expired) = self.paths.table.poll_timeout(now) {
            match expired {
                Expired::Address(id, event) => self.on_address_event(now, id, Some(event)),
                Expired::Gone(id, path) => {
                    if let Some(path) = path {
                        self.paths.past = self.paths.past + path.totals();
                        let route = path.addresses.tuple();
                        self.events.observe(now, || TraceEvent::Path { path: id, route, state: PathState::Closed });
                        self.events.path(PathEvent::Closed { id });
                    }
                    self.paths.plan.touch();
                }
            }
            self.drain_table_events();
        }
        self.issue_cids_if_due();
    }

    fn issue_cids_if_due(&mut self) {
        if self.handshake.is_confirmed() {
            self.issue_cids();
        }
    }

    /// Asks for a PING on some open path, best on one that works and whose socket has room.
    pub(crate) fn request_ping(&mut self) {
        let usable = || self.paths.table.usable().map(|slot| slot.id);
        let first = usable().find(|id| !self.is_held(*id)).or_else(|| usable().next());
        if let Some(id) = first.or_else(|| self.paths.table.open_slots().next().map(|slot| slot.id)) {
            self.ping(id);
        }
    }

    /// A PING on each open path on which nothing left for the keep-alive interval. What others carry keeps no NAT's
    /// memory of this one alive.
    pub(crate) fn keep_alive(&mut self, now: Instant) {
        let Some(interval) = self.settings.transport.timing.keep_alive_interval else { return };
        let (silent, next) = self.paths.table.keep_alive(now, interval);
        self.lifecycle.set_keep_alive(next);
        silent.into_iter().for_each(|id| self.ping(id));
    }

    /// Asks for a PING on a path, if there is one of this id: a peer may name ids on which nothing was sent yet.
    pub(crate) fn ping(&mut self, id: PathId) {
        if self.paths.table.path(id).is_some() && !self.scheduling.pings.contains(&id) {
            self.scheduling.pings.push(id);
        }
    }

    /// True when an early level or the data space of path 0 owes probes after a time-out.
    pub(crate) fn owes_probe(&self, space: Space) -> bool {
        self.paths.table.path(PathId::ZERO).is_some_and(|p| p.send.probes_due(space) > 0)
    }
}
