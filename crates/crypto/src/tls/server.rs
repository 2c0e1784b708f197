//! The server's configuration: who we are, whom to let in, what to remember.

use std::fmt;
use std::sync::Arc;

use rustls::quic;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, ResolvesServerCert, StoresServerSessions};

use super::exporter::ExporterLog;
use super::key_log_capture::{KeyLogCapture, ServerTickets};
use super::options::{CipherSuite, Identity, Options, Protection, check_provider, common_setters};
use super::promise::PromisedSessions;
use super::sessions::Sessions;
use crate::error::ConfigError;
use crate::initial::tls_version;

/// RFC 9001 4.6.1: QUIC limits early data by flow control; TLS must say "unlimited".
const UNLIMITED: u32 = u32::MAX;

/// A server's TLS configuration, checked to be fit for QUIC; cheap to clone.
#[derive(Clone)]
pub struct ServerTlsConfig {
    v1: Arc<rustls::ServerConfig>,
    v2: Arc<rustls::ServerConfig>,
    protection: Protection,
}

impl ServerTlsConfig {
    /// Starts with one identity for all names.
    pub fn builder(identity: Identity) -> ServerTlsBuilder {
        ServerTlsBuilder::new(Who::Identity(identity))
    }

    /// Starts with a resolver that picks the certificate by the name that the client asks for.
    pub fn with_resolver(resolver: Arc<dyn ResolvesServerCert>) -> ServerTlsBuilder {
        ServerTlsBuilder::new(Who::Resolver(resolver))
    }

    /// Takes a rustls configuration as it is. Sessions of QUIC v2 are kept apart from its own, in memory.
    ///
    /// # Errors
    /// TLS 1.3 or every cipher suite for QUIC is missing from the provider. Early data that is limited in bytes is refused too
    /// (RFC 9001 4.6.1).
    pub fn from_rustls(config: Arc<rustls::ServerConfig>) -> Result<Self, ConfigError> {
        check_provider(config.crypto_provider())?;
        if ![0, UNLIMITED].contains(&config.max_early_data_size) {
            return Err(ConfigError::EarlyDataLimited);
        }
        let mut v2 = (*config).clone();
        v2.session_storage = Arc::new(Sessions::new(DEFAULT_SESSIONS));
        Ok(Self { v1: config, v2: Arc::new(v2), protection: Protection::Tls })
    }

    /// The same with other protection after the handshake.
    pub fn with_protection(self, protection: Protection) -> Self {
        Self { protection, ..self }
    }

    /// Protection after the handshake.
    pub fn protection(&self) -> Protection {
        self.protection
    }

    /// The same for a connection that announces these limits, always in one order. Where 0-RTT is accepted, sessions that
    /// were given out with larger ones are not resumed, for their clients may go by them (RFC 9000 7.4.1, RFC 9221 3).
    ///
    /// Sessions of stateless tickets, which only [`Self::from_rustls`] can have, are not watched.
    pub fn with_early_limits(&self, limits: &[u64]) -> Self {
        if self.v1.max_early_data_size == 0 {
            return self.clone();
        }
        let promising = |config: &Arc<rustls::ServerConfig>| {
            let mut config = (**config).clone();
            config.session_storage = Arc::new(PromisedSessions::new(config.session_storage, limits));
            Arc::new(config)
        };
        Self { v1: promising(&self.v1), v2: promising(&self.v2), protection: self.protection }
    }

    /// Application protocols, preferred first.
    pub fn alpn(&self) -> &[Vec<u8>] {
        &self.v1.alpn_protocols
    }

    /// The configuration of one session whose client began in `from` and goes on in `to`.
    pub(super) fn moved(
        &self,
        from: u32,
        to: u32,
    ) -> Result<(Arc<rustls::ServerConfig>, Arc<KeyLogCapture>), ConfigError> {
        let mut config = (**self.for_version(from)?).clone();
        let capture = Arc::new(KeyLogCapture::new(config.key_log.clone()));
        capture.move_to(to);
        config.key_log = capture.clone();
        config.session_storage = Arc::new(ServerTickets {
            from: config.session_storage.clone(),
            to: self.for_version(to)?.session_storage.clone(),
        });
        Ok((Arc::new(config), capture))
    }

    pub(crate) fn for_version(&self, version: u32) -> Result<&Arc<rustls::ServerConfig>, ConfigError> {
        match tls_version(version) {
            Some(quic::Version::V1) => Ok(&self.v1),
            Some(quic::Version::V2) => Ok(&self.v2),
            _ => Err(ConfigError::Version(version)),
        }
    }
}

impl fmt::Debug for ServerTlsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTlsConfig").field("protection", &self.protection).finish_non_exhaustive()
    }
}

const DEFAULT_SESSIONS: usize = 4096;

/// Who we are.
#[derive(Clone)]
enum Who {
    Identity(Identity),
    Resolver(Arc<dyn ResolvesServerCert>),
}

/// Builds a [`ServerTlsConfig`].
#[derive(Clone)]
pub struct ServerTlsBuilder {
    options: Options,
    who: Who,
    clients: Option<Arc<dyn ClientCertVerifier>>,
    sessions: usize,
    early_data: bool,
    tickets: usize,
}

impl ServerTlsBuilder {
    fn new(who: Who) -> Self {
        Self {
            options: Options::default(),
            who,
            clients: None,
            sessions: DEFAULT_SESSIONS,
            early_data: false,
            tickets: 1,
        }
    }

    common_setters!();

    /// Asks clients for certificates and lets in whom `verifier` accepts.
    pub fn client_verifier(mut self, verifier: Arc<dyn ClientCertVerifier>) -> Self {
        self.clients = Some(verifier);
        self
    }

    /// Accepts 0-RTT. Early data can be replayed; the application must be able to bear it (RFC 9001 9.2).
    pub fn early_data(mut self) -> Self {
        self.early_data = true;
        self
    }

    /// How many sessions to remember for resumption; 0 turns resumption off. Each serves one 0-RTT attempt.
    pub fn sessions(mut self, count: usize) -> Self {
        self.sessions = count;
        self
    }

    /// How many tickets a client gets, 1 by default: each serves one further connection, which brings the next one.
    pub fn tickets(mut self, count: usize) -> Self {
        self.tickets = count;
        self
    }

    /// Checks and builds.
    ///
    /// # Errors
    /// Certificate and key do not fit, or the options leave no cipher suite for QUIC.
    pub fn build(self) -> Result<ServerTlsConfig, ConfigError> {
        let provider = self.options.provider()?;
        let wants_verifier = rustls::ServerConfig::builder_with_details(provider, self.options.time)
            .with_protocol_versions(&[&rustls::version::TLS13])?;
        let wants_identity = match self.clients {
            Some(verifier) => wants_verifier.with_client_cert_verifier(verifier),
            None => wants_verifier.with_no_client_auth(),
        };
        let mut config = match self.who {
            Who::Identity(identity) => wants_identity.with_single_cert(identity.chain, identity.key)?,
            Who::Resolver(resolver) => wants_identity.with_cert_resolver(resolver),
        };
        config.alpn_protocols = self.options.alpn;
        config.key_log = Arc::new(ExporterLog::new(self.options.key_log));
        config.max_early_data_size = if self.early_data && self.sessions > 0 { UNLIMITED } else { 0 };
        config.send_tls13_tickets = if self.sessions > 0 { self.tickets } else { 0 };
        // RFC 9369 4.1: a session must not be resumed in another version, hence two stores.
        let mut v2 = config.clone();
        config.session_storage = storage(self.sessions);
        v2.session_storage = storage(self.sessions);
        Ok(ServerTlsConfig { v1: Arc::new(config), v2: Arc::new(v2), protection: self.options.protection })
    }
}

fn storage(sessions: usize) -> Arc<dyn StoresServerSessions> {
    if sessions == 0 { Arc::new(NoServerSessionStorage {}) } else { Arc::new(Sessions::new(sessions)) }
}

impl fmt::Debug for ServerTlsBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTlsBuilder").field("options", &self.options).finish_non_exhaustive()
    }
}
