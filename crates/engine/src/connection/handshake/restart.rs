//! A client's first packet was answered by a Retry or a Version Negotiation: the handshake begins again.

use bytes::Bytes;
use plait_base::{CloseCode, ConnectionId, Instant, PathId, Random, Side, Space, TransportError};
use plait_wire::Version;

use super::session::{Tls, client_session, client_switching};
use super::uniflows::UniflowOffer;
use super::versions::Versions;
use super::{Beginning, Handshake, parameters};
use crate::config::token_name;
use crate::connection::Connection;
use crate::connection::lifecycle::ConnectionError;
use crate::connection::settings::{ClientSettings, RoleSettings, Settings};

/// What a Version Negotiation packet comes to.
enum Negotiated {
    /// It is void, or no answer to what we sent.
    Nothing,
    /// The server speaks nothing that we speak.
    NoVersion,
    /// To go on with.
    Version(Version),
}

impl Handshake {
    /// True once the server's first packet was opened, or a Retry or Version Negotiation of its was followed.
    pub(crate) fn is_heard(&self) -> bool {
        self.peer_scid.is_some() || self.ids.retry_scid.is_some() || self.versions.was_negotiated()
    }

    /// What the versions in a Version Negotiation packet come to (RFC 9000 6.2); `ours` are in order of preference.
    fn negotiate(&self, versions: &[u8], ours: &[Version]) -> Negotiated {
        // Any packet processed before, another Version Negotiation included, makes this one void.
        if self.side.is_server() || self.is_heard() {
            return Negotiated::Nothing;
        }
        let (fields, _) = versions.as_chunks::<4>();
        let offers = |version: Version| fields.iter().any(|field| u32::from_be_bytes(*field) == version.0);
        // A list with the version that we asked for is to be ignored, and so is one that offers nothing.
        if fields.is_empty() || offers(self.versions.original) {
            return Negotiated::Nothing;
        }
        let best = ours.iter().copied().find(|version| offers(*version));
        best.map_or(Negotiated::NoVersion, Negotiated::Version)
    }

    /// The handshake of a client once more, in another version.
    fn again(&self, version: Version, settings: &Settings, random: &mut Random) -> Result<Self, TransportError> {
        let RoleSettings::Client(client) = &settings.role else {
            return Err(TransportError::new(CloseCode::INTERNAL_ERROR, "only clients choose a version"));
        };
        let ClientSettings { tls, server_name, token_store } = &**client;
        let ids = self.ids;
        let params = parameters::announced_by_client(settings, &ids, version);
        let (uniflows, params) = (UniflowOffer::of(&params), params.encode(Side::Client, random));
        let versions = Versions::new(version, settings.endpoint.versions.clone(), client_switching(tls));
        let session = client_session(tls, &versions, &uniflows, server_name, params)
            .map_err(|e| TransportError::new(CloseCode::INTERNAL_ERROR, e.to_string()))?;
        // Tokens are good for one version (RFC 9369 5).
        let (before, name) = (token_name(server_name, self.versions.original), token_name(server_name, version));
        let token = match before == name {
            true => self.token.clone(),
            false => token_store.take(&name).unwrap_or_default(),
        };
        let tls = Tls { session, deferred: None, uniflows };
        let mut handshake = Self::new(Beginning::Client { token }, versions, tls, ids);
        handshake.versions.before_negotiation = self.versions.before_negotiation;
        Ok(handshake)
    }

    /// True for a Retry that is to be followed (RFC 9000 17.2.5).
    fn wants_retry(&self, version: Version, scid: ConnectionId, token: &[u8], packet: &[u8]) -> bool {
        let is_wanted = self.side.is_client()
            && version == self.versions.original
            && self.peer_scid.is_none()
            && self.ids.retry_scid.is_none()
            && !token.is_empty()
            && scid != self.ids.remote;
        // RFC 9001 5.8: only a genuine one counts
        is_wanted && plait_crypto::retry::verify(version.0, &self.ids.original_dcid, packet)
    }
}

impl Connection {
    /// Version Negotiation answered a client's first packet: the whole handshake once more, in another version.
    pub(crate) fn on_version_negotiation(&mut self, now: Instant, versions: &[u8]) {
        if !self.lifecycle.is_open() {
            return;
        }
        let version = match self.handshake.negotiate(versions, &self.settings.endpoint.versions) {
            Negotiated::Nothing => return,
            Negotiated::NoVersion => return self.abort(now, ConnectionError::VersionMismatch),
            Negotiated::Version(version) => version,
        };
        match self.handshake.again(version, &self.settings, &mut self.random) {
            Ok(handshake) => {
                self.handshake = handshake;
                self.paths.declare_first_flight_lost(now);
                let feedback = self.paths.take_feedback();
                self.process_acked_and_lost(now, PathId::ZERO, feedback);
                self.advance_handshake(now);
            }
            Err(error) => self.close_with(now, error),
        }
    }

    /// A Retry asks for a token (RFC 9000 17.2.5).
    pub(crate) fn on_retry(&mut self, now: Instant, version: Version, scid: ConnectionId, token: Bytes, packet: &[u8]) {
        if !self.lifecycle.is_open() || !self.handshake.wants_retry(version, scid, &token, packet) {
            return;
        }
        self.handshake.adopt_retry(scid, token);
        self.paths.table.set_remote_initial(scid, None);
        self.handshake.crypto(Space::Initial).into_iter().for_each(|stream| stream.resend_unacked());
        self.paths.declare_first_flight_lost(now);
        let feedback = self.paths.take_feedback();
        self.process_acked_and_lost(now, PathId::ZERO, feedback);
    }
}
