//! The TLS session of one connection: handshake bytes in and out, keys as they come (RFC 9001 4.1).

use std::fmt;
use std::sync::Arc;

use plait_base::{CloseCode, Side, TransportError};
use rustls::crypto::tls13::OkmBlock;
use rustls::quic;
use rustls_pki_types::{CertificateDer, ServerName};

use super::client::ClientTlsConfig;
use super::exporter::listen;
use super::key_log_capture::{KeyLogCapture, SecretLevel};
use super::options::{CipherSuite, Protection};
use super::retired::{RetiredSession, is_early_data_accepted, is_resumed, server_name};
use super::server::ServerTlsConfig;
use crate::error::{ConfigError, ExportError};
use crate::initial::tls_version;
use crate::keys::{EarlyKeys, PacketKeys};
use crate::nonce::{NonceForm, Nonces};
use crate::one_rtt::OneRttKeys;
use crate::versioned::VersionedSecrets;

/// New keys; handshake bytes written from now on belong to their level.
#[derive(Debug)]
pub enum KeyChange {
    /// Keys of Handshake packets.
    Handshake(PacketKeys),
    /// Keys of 1-RTT packets. A server may send with them at once, but reads nothing before the handshake is
    /// complete (RFC 9001 5.7).
    OneRtt(Box<OneRttKeys>),
}

/// A TLS session of either side.
pub struct TlsSession {
    tls: TlsState,
    side: Side,
    protection: Protection,
    /// Transport parameters of the session that we try to resume with 0-RTT.
    remembered: Option<Vec<u8>>,
    /// What the session needs to end in another version than it began in.
    capture: Option<Arc<KeyLogCapture>>,
    nonces: Nonces,
    /// On a server, what gives keying material once the session's state is gone.
    exporter_secret: Option<OkmBlock>,
}

/// The state of TLS, or what it came to.
enum TlsState {
    Live(Box<quic::Connection>),
    Retired(Box<RetiredSession>),
}

impl TlsSession {
    /// A client's session with the server of `server_name` (DNS name or IP address). `params` are our encoded
    /// transport parameters.
    ///
    /// # Errors
    /// The version is not supported, `server_name` is neither a DNS name nor an address, or rustls refuses.
    pub fn new_client(
        config: &ClientTlsConfig,
        version: u32,
        server_name: &str,
        params: Vec<u8>,
    ) -> Result<Self, ConfigError> {
        let made = config.for_version(version)?.clone();
        Self::client(config.protection(), (made, None), version, server_name, params)
    }

    /// As [`Self::new_client`], for a session that the server may move to another version; see [`Self::move_to`].
    ///
    /// # Errors
    /// As for [`Self::new_client`].
    pub fn new_movable_client(
        config: &ClientTlsConfig,
        version: u32,
        server_name: &str,
        params: Vec<u8>,
    ) -> Result<Self, ConfigError> {
        if !config.may_move() {
            return Self::new_client(config, version, server_name, params);
        }
        let (made, capture) = config.movable(version)?;
        Self::client(config.protection(), (made, Some(capture)), version, server_name, params)
    }

    fn client(
        protection: Protection,
        (config, capture): (Arc<rustls::ClientConfig>, Option<Arc<KeyLogCapture>>),
        version: u32,
        server_name: &str,
        params: Vec<u8>,
    ) -> Result<Self, ConfigError> {
        let name =
            ServerName::try_from(server_name).map_err(|_| ConfigError::ServerName(server_name.into()))?.to_owned();
        let quic_version = tls_version(version).ok_or(ConfigError::Version(version))?;
        let tls = quic::ClientConnection::new(config, quic_version, name, params)?;
        let remembered = match tls.zero_rtt_keys() {
            Some(_) => tls.quic_transport_parameters().map(<[u8]>::to_vec),
            None => None,
        };
        Ok(Self { remembered, ..Self::begun(tls.into(), Side::Client, protection, capture) })
    }

    /// A server's session with a client yet unknown. `params` are our encoded transport parameters.
    ///
    /// # Errors
    /// The version is not supported, or rustls refuses.
    pub fn new_server(config: &ServerTlsConfig, version: u32, params: Vec<u8>) -> Result<Self, ConfigError> {
        let quic_version = tls_version(version).ok_or(ConfigError::Version(version))?;
        let tls = quic::ServerConnection::new(config.for_version(version)?.clone(), quic_version, params)?;
        Ok(Self::server(tls, config.protection(), None))
    }

    /// A server's session with a client whose first packets are of version `from` and which it moves to `to`
    /// (RFC 9368 2.3). 0-RTT and resumption are those of `from`; all other keys, and new tickets, those of `to`.
    ///
    /// # Errors
    /// One of the versions is not supported, or rustls refuses.
    pub fn new_moving_server(
        config: &ServerTlsConfig,
        (from, to): (u32, u32),
        params: Vec<u8>,
    ) -> Result<Self, ConfigError> {
        let quic_version = tls_version(from).ok_or(ConfigError::Version(from))?;
        let (made, capture) = config.moved(from, to)?;
        let tls = quic::ServerConnection::new(made, quic_version, params)?;
        Ok(Self::server(tls, config.protection(), Some(capture)))
    }

    fn server(tls: quic::ServerConnection, protection: Protection, capture: Option<Arc<KeyLogCapture>>) -> Self {
        Self::begun(tls.into(), Side::Server, protection, capture)
    }

    fn begun(tls: quic::Connection, side: Side, protection: Protection, capture: Option<Arc<KeyLogCapture>>) -> Self {
        let tls = TlsState::Live(Box::new(tls));
        Self { tls, side, protection, remembered: None, capture, nonces: Nonces::default(), exporter_secret: None }
    }

    pub(super) fn live(&self) -> Option<&quic::Connection> {
        match &self.tls {
            TlsState::Live(tls) => Some(tls),
            TlsState::Retired(_) => None,
        }
    }

    /// A server whose handshake is complete, and whose tickets were written, gives back the state of TLS: no message of the
    /// client may follow. What may still be asked of the session is kept. Without effect elsewhere, and where rustls does not
    /// tell the exporter's secret: a configuration of [`ServerTlsConfig::from_rustls`].
    pub fn retire(&mut self) {
        let TlsState::Live(tls) = &self.tls else { return };
        if self.side == Side::Client || tls.is_handshaking() {
            return;
        }
        if let Some(session) = self.exporter_secret.take().and_then(|secret| RetiredSession::of(tls, secret)) {
            self.tls = TlsState::Retired(Box::new(session));
            self.capture = None;
        }
    }

    /// The server chose `version`: all keys from here on are that version's, and so are tickets (RFC 9369 4.1, 5). To
    /// be called before there are Handshake keys. False when the session was not made for it.
    pub fn move_to(&mut self, version: u32) -> bool {
        match &self.capture {
            Some(capture) if tls_version(version).is_some() => {
                capture.move_to(version);
                capture.target() == Some(version)
            }
            _ => false,
        }
    }

    /// 1-RTT packets have nonces of these forms, `local` those that we send. To be called before there are 1-RTT keys.
    /// False when rustls keeps the session's secrets to itself: it must have been made to be moved and have been told its
    /// version ([`Self::move_to`]), be it the one in which it began.
    #[must_use]
    pub fn set_nonces(&mut self, local: NonceForm, remote: NonceForm) -> bool {
        self.nonces = Nonces { local, remote };
        self.capture.as_ref().is_some_and(|capture| capture.target().is_some())
    }

    /// Takes in bytes of CRYPTO frames, in order; bytes of different levels in different calls.
    ///
    /// # Errors
    /// The handshake failed: the alert as a CRYPTO_ERROR code, with the words of rustls (RFC 9001 4.8).
    pub fn read_crypto(&mut self, bytes: &[u8]) -> Result<(), TransportError> {
        let TlsState::Live(tls) = &mut self.tls else {
            // RFC 9001 6, 4.4: neither KeyUpdate nor late authentication; and clients have nothing else to say
            let code = CloseCode::crypto(rustls::AlertDescription::UnexpectedMessage.into());
            return Err(TransportError::new(code, "TLS: a message of the client after its handshake"));
        };
        let (read, told) = listen(|| tls.read_hs(bytes));
        if self.side == Side::Server && told.is_some() {
            self.exporter_secret = told;
        }
        read.map_err(|e| {
            // RFC 9001 4.8: a TLS alert becomes a code of its own.
            let code = match (tls.alert(), &e) {
                (Some(alert), _) => CloseCode::crypto(alert.into()),
                (None, rustls::Error::InvalidMessage(_)) => {
                    CloseCode::crypto(rustls::AlertDescription::DecodeError.into())
                }
                (None, _) => CloseCode::PROTOCOL_VIOLATION,
            };
            TransportError::new(code, format!("TLS: {e}"))
        })
    }

    /// Appends bytes to send at the current level. Call again as long as it returns keys: what a later call
    /// appends belongs to the new keys' level.
    pub fn write_crypto(&mut self, out: &mut Vec<u8>) -> Option<KeyChange> {
        let TlsState::Live(tls) = &mut self.tls else { return None };
        match tls.write_hs(out)? {
            quic::KeyChange::Handshake { keys } => {
                let moved = self.moved_secrets(SecretLevel::Handshake);
                if moved.is_none()
                    && let Some(capture) = &self.capture
                {
                    capture.close();
                }
                Some(KeyChange::Handshake(moved.map_or(keys, |secrets| secrets.keys()).into()))
            }
            quic::KeyChange::OneRtt { keys, next } => {
                let moved = self.moved_secrets(SecretLevel::OneRtt);
                let keys = match (self.protection, moved) {
                    (Protection::Tls, None) => OneRttKeys::tls(keys, next),
                    (Protection::Tls, Some(secrets)) => OneRttKeys::versioned(secrets),
                    (Protection::NullAfterHandshake, _) => OneRttKeys::null(self.side),
                };
                Some(KeyChange::OneRtt(Box::new(keys)))
            }
        }
    }

    /// The secrets of a level, when their keys are to be another version's than TLS was told.
    fn moved_secrets(&self, level: SecretLevel) -> Option<VersionedSecrets> {
        let capture = self.capture.as_ref()?;
        let version = tls_version(capture.target()?)?;
        let side = match self.side {
            Side::Client => rustls::Side::Client,
            Side::Server => rustls::Side::Server,
        };
        let suite = self.live()?.negotiated_cipher_suite()?;
        let secrets = VersionedSecrets::new(version, side, suite, capture.take(level)?)?;
        match level {
            SecretLevel::Handshake => Some(secrets),
            SecretLevel::OneRtt => secrets.with_nonces(suite, self.nonces),
        }
    }

    /// True until the handshake is complete.
    pub fn is_handshaking(&self) -> bool {
        self.live().is_some_and(|tls| tls.is_handshaking())
    }

    /// 0-RTT keys: on a client from the start when a remembered session allows 0-RTT; on a server once it read
    /// a ClientHello whose early data it accepts.
    pub fn early_keys(&self) -> Option<EarlyKeys> {
        let keys = self.live()?.zero_rtt_keys()?;
        match self.side {
            Side::Client => self.remembered.is_some().then(|| EarlyKeys::Seal(keys.into())),
            Side::Server => Some(EarlyKeys::Open(keys.into())),
        }
    }

    /// Whether early data is accepted; on a client known once its handshake is complete, false before.
    pub fn early_data_accepted(&self) -> bool {
        match &self.tls {
            TlsState::Live(tls) => {
                is_early_data_accepted(tls) && (self.side == Side::Server || self.remembered.is_some())
            }
            TlsState::Retired(session) => session.early_data_accepted,
        }
    }

    /// The peer's encoded transport parameters: on a server from the ClientHello on until [`Self::retire`], on a client when
    /// they are authenticated, with the end of the handshake.
    pub fn peer_params(&self) -> Option<&[u8]> {
        match self.side {
            Side::Client if self.is_handshaking() => None,
            _ => self.live()?.quic_transport_parameters(),
        }
    }

    /// On a client that may send 0-RTT: the server's parameters of the remembered session (RFC 9000 7.4.1).
    pub fn remembered_params(&self) -> Option<&[u8]> {
        self.remembered.as_deref()
    }

    /// The application protocol agreed on.
    pub fn alpn(&self) -> Option<&[u8]> {
        match &self.tls {
            TlsState::Live(tls) => tls.alpn_protocol(),
            TlsState::Retired(session) => session.alpn.as_deref(),
        }
    }

    /// On a server: the name that the client asked for.
    pub fn server_name(&self) -> Option<&str> {
        match &self.tls {
            TlsState::Live(tls) => server_name(tls),
            TlsState::Retired(session) => session.server_name.as_deref(),
        }
    }

    /// The peer's certificates, its own first; on resumption those of the first session.
    pub fn peer_identity(&self) -> Option<&[CertificateDer<'static>]> {
        match &self.tls {
            TlsState::Live(tls) => tls.peer_certificates(),
            TlsState::Retired(session) => session.peer_identity.as_deref(),
        }
    }

    /// The negotiated cipher suite, once known.
    pub fn cipher_suite(&self) -> Option<CipherSuite> {
        CipherSuite::from_tls(match &self.tls {
            TlsState::Live(tls) => tls.negotiated_cipher_suite()?,
            TlsState::Retired(session) => session.suite,
        })
    }

    /// True when the handshake resumed an earlier session.
    pub fn is_resumed(&self) -> bool {
        match &self.tls {
            TlsState::Live(tls) => is_resumed(tls),
            TlsState::Retired(session) => session.is_resumed,
        }
    }

    /// Fills `out` with keying material bound to this session (RFC 5705, RFC 8446 7.5).
    ///
    /// # Errors
    /// The handshake is not complete, or `out` is empty or longer than the exporter can fill.
    pub fn export_keying_material(&self, out: &mut [u8], label: &[u8], context: &[u8]) -> Result<(), ExportError> {
        match &self.tls {
            TlsState::Live(tls) => {
                tls.export_keying_material(out, label, Some(context)).map(|_| ()).map_err(|_| ExportError)
            }
            TlsState::Retired(session) => session.exporter.export(out, label, context),
        }
    }
}

impl fmt::Debug for TlsSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsSession")
            .field("side", &self.side)
            .field("handshaking", &self.is_handshaking())
            .finish_non_exhaustive()
    }
}
