//! The handshake goes on: keys come and go, the peer's parameters take effect, the handshake is complete, then confirmed.

use std::time::Duration;

use plait_base::probe::{LossTrigger, PathState, TraceEvent};
use plait_base::{CloseCode, Instant, PathId, Space, TransportError, Violation};
use plait_path::addresses::Moved;
use plait_path::table::TableEvent;
use plait_path::{Activity, CidSource, HandshakeState, LostPacket, Paths, PeerLimits, ValidationTimes};
use plait_wire::params::TransportParameters;

use crate::connection::Connection;
use crate::connection::events::{Event, PathEvent};
use crate::connection::handshake::parameters;
use crate::connection::handshake::tokens;
use crate::connection::handshake::{EarlyData, Handshake, Progress, Stage};
use crate::connection::settings::RoleSettings;
use crate::io::EndpointEvent;

/// 0-RTT keys are kept so many probe time-outs after the handshake, for packets that come late (RFC 9001 4.9.3).
const EARLY_KEYS_PTOS: u32 = 3;

impl Connection {
    pub(crate) fn advance_handshake(&mut self, now: Instant) {
        match self.handshake.advance() {
            Ok(progress) => self.on_progress(now, progress),
            Err(error) => self.close_with(now, error),
        }
    }

    /// Takes in what a step of the handshake brought.
    pub(crate) fn on_progress(&mut self, now: Instant, progress: Progress) {
        if let Some(version) = progress.version {
            self.events.observe(now, || TraceEvent::VersionChanged { version: version.0 });
        }
        if let Some(keys) = progress.one_rtt {
            self.keys = Some(keys);
        }
        if progress.data_ready {
            self.events.push(Event::HandshakeDataReady);
        }
        if progress.early == Some(EarlyData::Rejected) {
            // RFC 9001 4.6.2: nothing of it counts; packet numbers go on
            self.streams.on_early_rejected();
            if let Some(path) = self.paths.table.path_mut(PathId::ZERO) {
                path.send.requeue_in_flight(now, Space::Data, &mut self.paths.feedback);
            }
            self.paths.feedback.clear();
        }
        if let Some(params) = progress.params {
            self.on_peer_params(&params);
        }
        if progress.completed {
            self.on_complete(now);
        } else if self.side().is_server() && self.keys.is_some() && !self.handshake.is_complete() {
            // They leave with the server's first flight.
            self.issue_cids_by(Paths::issue_early_cids);
        }
    }

    fn on_peer_params(&mut self, params: &TransportParameters) {
        self.streams.set_peer_limits(&parameters::peer_limits(params));
        self.datagrams.set_peer_frame_max(params.max_datagram_frame_bytes);
        let idle = Some(params.max_idle_timeout_ms).filter(|ms| *ms > 0).map(Duration::from_millis);
        self.lifecycle.negotiate_idle(idle);
        let initial_max_path_id = params.initial_max_path_id.map(|id| id.0);
        self.paths.table.set_peer_limits(PeerLimits { cid_limit: params.active_cid_limit, initial_max_path_id });
        if let Some(token) = params.stateless_reset_token {
            self.paths
                .table
                .set_remote_initial(self.handshake.peer_scid.unwrap_or(self.handshake.ids.remote), Some(token));
        }
        if let Some(path) = self.paths.table.path_mut(PathId::ZERO) {
            path.set_peer_max_datagram(params.max_udp_payload_bytes);
            path.send.set_max_ack_delay(Duration::from_millis(params.acks.max_delay_ms));
        }
        self.paths.table.on_pto_changed();
        // Those queued for 0-RTT went by the limits of the last connection.
        self.drop_unfit_datagrams();
        self.drain_table_events();
    }

    fn on_complete(&mut self, now: Instant) {
        self.lifecycle.on_handshake_complete();
        let multipath = self.paths.table.on_handshake_complete();
        self.events.observe(now, || TraceEvent::HandshakeCompleted { multipath });
        if multipath {
            // Also with bytes in flight: a server has its first 1-RTT packets under way by now.
            let controller = self.controller().build(PathId::ZERO, now, 1200);
            if let Some(path) = self.paths.table.path_mut(PathId::ZERO) {
                path.send.replace_controller(controller);
            }
        }
        self.observe_path(now, PathId::ZERO);
        self.events.push(Event::Connected);
        self.handshake.discard_early_at = Some(now + self.paths.table.max_pto() * EARLY_KEYS_PTOS);
        if self.side().is_server() {
            self.confirm(now);
            self.events.tell_endpoint(EndpointEvent::Established);
            self.issue_tokens(now);
        }
        self.adopt_preferred_address();
        // RFC 10069 3.2.1: the sooner the server has them, the sooner a path can be opened
        self.issue_cids();
    }

    /// HANDSHAKE_DONE: the client's handshake is confirmed (RFC 9001 4.1.2, RFC 9000 19.20).
    pub(crate) fn on_handshake_done(&mut self, now: Instant) -> Result<(), Violation> {
        if self.side().is_server() {
            return Err(Violation::HandshakeDoneFromClient);
        }
        if self.handshake.stage == Stage::Complete {
            self.confirm(now);
        }
        Ok(())
    }

    fn confirm(&mut self, now: Instant) {
        self.handshake.stage = Stage::Confirmed;
        if let Some(keys) = &mut self.keys {
            keys.on_handshake_confirmed(now);
        }
        self.discard_space(now, Space::Initial);
        // RFC 9001 4.9.2
        self.discard_space(now, Space::Handshake);
        if let Some(path) = self.paths.table.path_mut(PathId::ZERO) {
            path.send.set_handshake(now, HandshakeState::Confirmed);
        }
        self.issue_cids();
        self.paths.plan.touch();
    }

    /// Drops an early level with its keys and what is outstanding there (RFC 9001 4.9).
    pub(crate) fn discard_space(&mut self, now: Instant, space: Space) {
        if !self.handshake.has_keys(space) {
            return;
        }
        self.handshake.discard(space);
        if let Some(path) = self.paths.table.path_mut(PathId::ZERO) {
            path.send.discard(now, space, &mut self.paths.feedback);
            if space == Space::Initial && self.handshake.side.is_client() {
                path.send.set_handshake(now, HandshakeState::AwaitingValidation);
            }
        }
        self.process_acked_and_lost(now, PathId::ZERO);
    }

    fn issue_tokens(&mut self, now: Instant) {
        if let RoleSettings::Server(server) = &self.settings.role {
            let Handshake { tokens, versions, .. } = &mut self.handshake;
            let (endpoint, paths) = (&self.settings.endpoint, &self.paths.table);
            tokens.issue(now, server, endpoint, versions.current, paths, &mut self.random);
        }
    }

    pub(crate) fn on_rtt_updated(&mut self, now: Instant, id: PathId) {
        if let Some(rtt) = self.paths.table.max_rtt() {
            self.streams.on_rtt(rtt);
        }
        let Some(path) = self.paths.table.path(id) else { return };
        let (rtt, send) = (path.send.rtt(), &path.send);
        self.events.observe(now, || TraceEvent::Metrics {
            path: id,
            rtt: rtt.smoothed(),
            rtt_min: rtt.min(),
            rtt_var: rtt.var(),
            window_bytes: send.window(),
            in_flight_bytes: send.in_flight(),
            ssthresh_bytes: send.ssthresh(),
        });
    }

    pub(crate) fn on_packet_lost(&mut self, now: Instant, id: PathId, lost: &LostPacket) {
        let LostPacket { space, number, trigger, bytes } = *lost;
        self.events.observe(now, || TraceEvent::PacketLost { path: id, space, number, trigger });
        if space != Space::Data || trigger == LossTrigger::Discarded {
            return;
        }
        self.scheduling.scheduler.on_lost(id, u64::from(bytes), now);
        if let Some(mtu) = self.paths.table.path_mut(id).and_then(|path| path.on_packet_lost(now, number, bytes)) {
            self.on_shrunk(now, id, mtu);
        }
    }

    pub(crate) fn on_mtu_probe_acked(&mut self, now: Instant, id: PathId, size: u16) {
        if let Some(mtu) = self.paths.table.path_mut(id).and_then(|path| path.on_mtu_probe_acked(now, size)) {
            self.events.observe(now, || TraceEvent::Mtu { path: id, bytes: mtu });
        }
    }

    /// The path's current address is proven.
    pub(crate) fn on_path_validated(&mut self, now: Instant, id: PathId) {
        let new_address = tokens::is_new_address(&self.paths.table, id);
        self.take_over_silent(now, id);
        self.observe_path(now, id);
        if id != PathId::ZERO || self.handshake.is_confirmed() {
            self.events.path(PathEvent::Established { id });
        }
        if self.side().is_server() && new_address && self.handshake.is_confirmed() {
            self.issue_tokens(now);
        }
        self.paths.plan.touch();
    }

    /// The path's addresses changed: its RTT, window and MTU begin anew unless only ports did (RFC 9000 9.4).
    pub(crate) fn on_path_moved(&mut self, now: Instant, id: PathId, moved: Moved) {
        if moved == Moved::No {
            return;
        }
        let factory = self.controller();
        let Some(path) = self.paths.table.path_mut(id) else { return };
        path.on_moved(now, moved, || factory.build(id, now, plait_base::limits::MIN_DATAGRAM_BYTES as u64));
        let route = path.addresses.tuple();
        self.paths.table.on_pto_changed();
        self.paths.reset_tokens.on_moved(id, route.remote, &mut self.events);
        self.events.path(PathEvent::Migrated { id, route });
        self.drop_unfit_datagrams();
        self.drain_table_events();
        self.observe_path(now, id);
        self.paths.plan.touch();
    }

    /// Nothing answers at the path's address: it is abandoned, or with it the connection.
    pub(crate) fn on_path_unreachable(&mut self, now: Instant, id: PathId) {
        if self.paths.table.is_multipath() {
            let _ = self.abandon_path(now, id, CloseCode::PATH_UNSTABLE_OR_POOR);
        } else {
            let error = TransportError::new(CloseCode::NO_VIABLE_PATH, "the peer's address could not be validated");
            self.close_with(now, error);
        }
    }

    /// The address answers, but no full-sized datagram came through yet: a path among others is given up; the only one
    /// is asked again, for as long as the peer is heard at all.
    pub(crate) fn on_size_unproven(&mut self, now: Instant, id: PathId) {
        if self.paths.table.open_slots().any(|slot| slot.id != id) {
            return self.on_path_unreachable(now, id);
        }
        let times = self.validation_times(id);
        if let Some(path) = self.paths.table.path_mut(id) {
            path.addresses.challenge(now, times);
        }
    }

    pub(crate) fn observe_path(&mut self, now: Instant, id: PathId) {
        let Some(slot) = self.paths.table.slot_mut(id) else { return };
        let state = slot.state();
        let activity = if state == PathState::Active { Activity::Active } else { Activity::Idle };
        let Some(path) = slot.path.as_mut() else { return };
        path.send.set_activity(&mut self.paths.shared_metrics, activity);
        let route = path.addresses.tuple();
        self.events.observe(now, || TraceEvent::Path { path: id, route, state });
    }

    /// Times for a path of which nothing is known: its challenges are as rare as Initial packets (RFC 9000 8.2.1), since
    /// a slow one would choke on more.
    pub(crate) fn first_validation_times(&self) -> ValidationTimes {
        let initial = self.settings.transport.recovery.initial_rtt * 3;
        ValidationTimes::new(initial, initial)
    }

    pub(crate) fn validation_times(&self, id: PathId) -> ValidationTimes {
        let initial = self.settings.transport.recovery.initial_rtt * 3;
        let path = self.paths.table.path(id);
        path.map_or(ValidationTimes::new(initial, initial), |path| path.validation_times(initial))
    }

    /// Passes on what the path table wants the endpoint to know.
    pub(crate) fn drain_table_events(&mut self) {
        while let Some(event) = self.paths.table.poll_event() {
            match event {
                TableEvent::CidIssued(issued) => {
                    self.events.tell_endpoint(EndpointEvent::Register { cid: issued.cid, path: issued.path });
                }
                TableEvent::CidRetired { cid, .. } => self.events.tell_endpoint(EndpointEvent::Retire { cid }),
                TableEvent::TokenInUse { path, token } => {
                    let remote = self.paths.table.path(path).map(|p| p.addresses.tuple().remote);
                    if let Some(remote) = remote {
                        self.paths.reset_tokens.watch(path, token, remote, &mut self.events);
                    }
                }
                TableEvent::TokenForgotten { path, token } => {
                    self.paths.reset_tokens.forget(path, token, &mut self.events);
                }
            }
        }
    }

    /// Issues the connection ids that the peer lacks.
    pub(crate) fn issue_cids(&mut self) {
        self.issue_cids_by(Paths::issue_cids);
    }

    fn issue_cids_by(&mut self, issue: fn(&mut Paths, &mut dyn CidSource)) {
        let len = self.handshake.cid_len();
        if len == 0 {
            return;
        }
        let Self { paths, random, settings, .. } = self;
        issue(&mut paths.table, &mut |_| {
            let cid = random.connection_id(len);
            (cid, settings.endpoint.reset_key.token(&cid))
        });
        self.drain_table_events();
    }
}
