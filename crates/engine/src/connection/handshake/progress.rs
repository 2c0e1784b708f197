//! The handshake goes on: keys come and go, the peer's parameters take effect, the handshake is complete, then confirmed.

use std::time::Duration;

use plait_base::observe::TraceEvent;
use plait_base::{Instant, PathId, Space};
use plait_path::HandshakeState;
use plait_wire::params::TransportParameters;

use crate::connection::Connection;
use crate::connection::events::Event;
use crate::connection::handshake::parameters;
use crate::connection::handshake::{EarlyData, Handshake, Progress, Stage};
use crate::connection::settings::RoleSettings;
use crate::io::EndpointEvent;

/// 0-RTT keys are kept so many probe time-outs after the handshake, for packets that come late (RFC 9001 4.9.3).
const EARLY_KEYS_PTOS: u32 = 3;

impl Connection {
    pub(crate) fn advance_handshake(&mut self, now: Instant) {
        if self.handshake.is_at_rest() {
            return;
        }
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
        if progress.early_data == Some(EarlyData::Rejected) {
            // RFC 9001 4.6.2: nothing of it counts; packet numbers go on
            self.streams.on_early_data_rejected();
            if let Some(path) = self.paths.table.path_mut(PathId::ZERO) {
                path.declare_all_lost(now, Space::Data, &mut self.paths.feedback);
            }
            self.paths.feedback.clear();
        }
        if let Some(params) = progress.params {
            self.on_peer_params(now, &params);
        }
        if progress.completed {
            self.on_complete(now);
        } else if self.side().is_server() && self.keys.is_some() && !self.handshake.is_complete() {
            // They leave with the server's first flight.
            self.paths.issue_cids_in_handshake(&mut self.random);
            self.on_path_news(now);
        }
    }

    fn on_peer_params(&mut self, now: Instant, params: &TransportParameters) {
        self.streams.set_peer_limits(&parameters::peer_limits(params));
        self.datagrams.set_peer_frame_max(params.max_datagram_frame_bytes);
        let idle = Some(params.max_idle_timeout_ms).filter(|ms| *ms > 0).map(Duration::from_millis);
        self.lifecycle.negotiate_idle(idle);
        self.paths.on_peer_params(params, self.handshake.peer_scid.unwrap_or(self.handshake.ids.remote));
        self.on_path_news(now);
    }

    fn on_complete(&mut self, now: Instant) {
        self.lifecycle.on_handshake_complete();
        let multipath = self.paths.on_handshake_complete(now);
        self.events.observe(now, || TraceEvent::HandshakeCompleted { multipath });
        self.on_path_news(now);
        self.events.push(Event::Connected);
        self.handshake.zero_rtt.discard_at(now + self.paths.table.max_pto() * EARLY_KEYS_PTOS);
        if self.side().is_server() {
            self.confirm(now);
            // RFC 9001 6.1: a client updates its keys once it knows that the handshake is done. HANDSHAKE_DONE tells it, so that
            // an ack of what left before does not show that it may.
            if let Some(path) = self.paths.table.path_mut(PathId::ZERO) {
                path.forget_sealed();
            }
            self.events.tell_endpoint(EndpointEvent::Established);
            self.issue_tokens(now);
        }
        self.paths.adopt_preferred_address();
        // RFC 10069 3.2.1: the sooner the server has them, the sooner a path can be opened
        self.paths.issue_cids(&mut self.random);
        self.on_path_news(now);
    }

    /// Both sides know that the handshake is done (RFC 9001 4.1.2).
    pub(crate) fn confirm(&mut self, now: Instant) {
        self.handshake.stage = Stage::Confirmed;
        if let Some(keys) = &mut self.keys {
            keys.on_handshake_confirmed(now);
        }
        self.discard_space(now, Space::Initial);
        // RFC 9001 4.9.2
        self.discard_space(now, Space::Handshake);
        self.paths.on_handshake_confirmed(now, &mut self.random);
        self.on_path_news(now);
    }

    /// Drops the Initial or Handshake level with its keys and what is outstanding there (RFC 9001 4.9).
    pub(crate) fn discard_space(&mut self, now: Instant, space: Space) {
        if !self.handshake.has_keys(space) {
            return;
        }
        self.handshake.discard(space);
        if let Some(path) = self.paths.table.path_mut(PathId::ZERO) {
            path.discard(now, space, &mut self.paths.feedback);
            if space == Space::Initial && self.handshake.side.is_client() {
                path.set_handshake(now, HandshakeState::AwaitingValidation);
            }
        }
        let feedback = self.paths.take_feedback();
        self.process_acked_and_lost(now, PathId::ZERO, feedback);
    }

    pub(crate) fn issue_tokens(&mut self, now: Instant) {
        if let RoleSettings::Server(server) = &self.settings.role {
            let Handshake { tokens, versions, .. } = &mut self.handshake;
            let (endpoint, paths) = (&self.settings.endpoint, &self.paths.table);
            tokens.issue(now, server, endpoint, versions.current, paths, &mut self.random);
        }
    }
}
