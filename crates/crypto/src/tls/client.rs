//! The client's configuration: whom to trust, who we are, what to resume.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::{DigitallySignedStruct, RootCertStore, SignatureScheme, quic};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::key_log_capture::{ClientTickets, KeyLogCapture};
use super::options::{CipherSuite, Identity, Options, Protection, check_provider, common_setters};
use super::store::SessionStore;
use crate::error::ConfigError;
use crate::initial::tls_version;

/// A client's TLS configuration, checked to be fit for QUIC; cheap to clone.
#[derive(Clone)]
pub struct ClientTlsConfig {
    v1: Arc<rustls::ClientConfig>,
    v2: Arc<rustls::ClientConfig>,
    protection: Protection,
    tickets: Tickets,
}

/// Where the sessions of a configuration are kept.
#[derive(Clone)]
enum Tickets {
    Nowhere,
    Here(SessionStore),
    /// In a store of the caller's that we cannot reach.
    Elsewhere,
}

impl ClientTlsConfig {
    /// Starts with nothing trusted.
    pub fn builder() -> ClientTlsBuilder {
        ClientTlsBuilder::default()
    }

    /// Trusts certificates that `roots` signed; all else as by default, 0-RTT on.
    ///
    /// # Errors
    /// `roots` is empty, or the provider lacks what QUIC needs.
    pub fn with_roots(roots: RootCertStore) -> Result<Self, ConfigError> {
        Self::builder().roots(roots).build()
    }

    /// Takes a rustls configuration as it is. Sessions of QUIC v2 are kept apart from its own, in memory; therefore a
    /// server cannot move its connections to another version, see [`Self::may_move`] and [`Self::from_rustls_with`].
    ///
    /// # Errors
    /// TLS 1.3 or every cipher suite for QUIC is missing from the provider.
    pub fn from_rustls(config: Arc<rustls::ClientConfig>) -> Result<Self, ConfigError> {
        check_provider(config.crypto_provider())?;
        let mut v2 = (*config).clone();
        v2.resumption = Resumption::default();
        Ok(Self { v1: config, v2: Arc::new(v2), protection: Protection::Tls, tickets: Tickets::Elsewhere })
    }

    /// As [`Self::from_rustls`], with sessions in `store` instead of where `config` says.
    ///
    /// # Errors
    /// TLS 1.3 or every cipher suite for QUIC is missing from the provider.
    pub fn from_rustls_with(config: Arc<rustls::ClientConfig>, store: SessionStore) -> Result<Self, ConfigError> {
        check_provider(config.crypto_provider())?;
        let (mut v1, mut v2) = ((*config).clone(), (*config).clone());
        v1.resumption = Resumption::store(store.v1.clone());
        v2.resumption = Resumption::store(store.v2.clone());
        let tickets = Tickets::Here(store);
        Ok(Self { v1: Arc::new(v1), v2: Arc::new(v2), protection: Protection::Tls, tickets })
    }

    /// The same with other protection after the handshake.
    pub fn with_protection(self, protection: Protection) -> Self {
        Self { protection, ..self }
    }

    /// The same with changes that the builder has no word for, made for every QUIC version alike. Leave
    /// `resumption` as it is. In contrast to a configuration built anew, this one resumes the same sessions.
    pub fn with_changes(mut self, change: impl Fn(&mut rustls::ClientConfig)) -> Self {
        change(Arc::make_mut(&mut self.v1));
        change(Arc::make_mut(&mut self.v2));
        self
    }

    /// Protection after the handshake.
    pub fn protection(&self) -> Protection {
        self.protection
    }

    /// Application protocols, preferred first.
    pub fn alpn(&self) -> &[Vec<u8>] {
        &self.v1.alpn_protocols
    }

    /// True when a connection may end in another version than it began in (RFC 9368 2.3): its tickets then belong to
    /// the version it ends in, and where those go must be ours to say.
    pub fn may_move(&self) -> bool {
        !matches!(self.tickets, Tickets::Elsewhere)
    }

    /// The configuration of one session that begins in `version` and may move.
    pub(super) fn movable(&self, version: u32) -> Result<(Arc<rustls::ClientConfig>, Arc<KeyLogCapture>), ConfigError> {
        let mut config = (**self.for_version(version)?).clone();
        let capture = Arc::new(KeyLogCapture::new(config.key_log.clone()));
        config.key_log = capture.clone();
        if let Tickets::Here(stores) = &self.tickets {
            let tickets = ClientTickets { stores: stores.clone(), from: version, capture: capture.clone() };
            config.resumption = Resumption::store(Arc::new(tickets));
        }
        Ok((Arc::new(config), capture))
    }

    pub(crate) fn for_version(&self, version: u32) -> Result<&Arc<rustls::ClientConfig>, ConfigError> {
        match tls_version(version) {
            Some(quic::Version::V1) => Ok(&self.v1),
            Some(quic::Version::V2) => Ok(&self.v2),
            _ => Err(ConfigError::Version(version)),
        }
    }
}

impl fmt::Debug for ClientTlsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTlsConfig").field("protection", &self.protection).finish_non_exhaustive()
    }
}

/// Whom to trust; to trust nobody in particular takes a call that says so (RFC 9001 4.4).
#[derive(Clone)]
enum ServerTrust {
    Nobody,
    Roots(Arc<RootCertStore>),
    Verifier(Arc<dyn ServerCertVerifier>),
    Anybody,
}

/// Builds a [`ClientTlsConfig`].
#[derive(Clone)]
pub struct ClientTlsBuilder {
    options: Options,
    trust: ServerTrust,
    identity: Option<Identity>,
    sessions: Option<SessionStore>,
    early_data: bool,
}

impl Default for ClientTlsBuilder {
    fn default() -> Self {
        Self {
            options: Options::default(),
            trust: ServerTrust::Nobody,
            identity: None,
            sessions: Some(SessionStore::default()),
            early_data: true,
        }
    }
}

impl ClientTlsBuilder {
    common_setters!();

    /// Trusts servers whose certificates these roots signed.
    pub fn roots(mut self, roots: RootCertStore) -> Self {
        self.trust = ServerTrust::Roots(Arc::new(roots));
        self
    }

    /// Trusts whom `verifier` accepts: the platform's, a pinned certificate, ...
    pub fn verifier(mut self, verifier: Arc<dyn ServerCertVerifier>) -> Self {
        self.trust = ServerTrust::Verifier(verifier);
        self
    }

    /// DANGER: accepts every certificate of every server, so anybody on the way can pose as it. Only signatures of
    /// the handshake are still checked. For tests and laboratories.
    pub fn accept_any_certificate(mut self) -> Self {
        self.trust = ServerTrust::Anybody;
        self
    }

    /// Who we are, for servers that ask.
    pub fn identity(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Remembers sessions here, together with other configurations that have the same store. A session is resumed
    /// only by configurations with the very same verifier and identity objects: clones of one configuration, or
    /// what [`ClientTlsConfig::with_changes`] made of it.
    pub fn sessions(mut self, store: SessionStore) -> Self {
        self.sessions = Some(store);
        self
    }

    /// Resumes no sessions, hence no 0-RTT.
    pub fn no_resumption(mut self) -> Self {
        self.sessions = None;
        self
    }

    /// Never offers 0-RTT; by default it is offered when a session to resume allows it.
    pub fn no_early_data(mut self) -> Self {
        self.early_data = false;
        self
    }

    /// Checks and builds.
    ///
    /// # Errors
    /// Nothing is trusted, the trusted roots are unusable, or the options leave no cipher suite for QUIC.
    pub fn build(self) -> Result<ClientTlsConfig, ConfigError> {
        let provider = self.options.provider()?;
        let verifier: Arc<dyn ServerCertVerifier> = match self.trust {
            ServerTrust::Nobody => return Err(ConfigError::NoTrust),
            ServerTrust::Roots(roots) => WebPkiServerVerifier::builder_with_provider(roots, provider.clone())
                .build()
                .map_err(|e| ConfigError::Tls(rustls::Error::General(e.to_string())))?,
            ServerTrust::Verifier(verifier) => verifier,
            ServerTrust::Anybody => any_certificate(provider.clone()),
        };
        let wants_identity = rustls::ClientConfig::builder_with_details(provider, self.options.time)
            // RFC 9001 4.2, 8.4: no older version, and no compatibility mode, which rustls leaves out for QUIC
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match self.identity {
            Some(identity) => wants_identity.with_client_auth_cert(identity.chain, identity.key)?,
            None => wants_identity.with_no_client_auth(),
        };
        config.alpn_protocols = self.options.alpn;
        config.key_log = self.options.key_log;
        config.enable_early_data = self.early_data;
        let mut v2 = config.clone();
        let tickets = match self.sessions {
            Some(store) => {
                config.resumption = Resumption::store(store.v1.clone());
                v2.resumption = Resumption::store(store.v2.clone());
                Tickets::Here(store)
            }
            None => {
                (config.resumption, v2.resumption) = (Resumption::disabled(), Resumption::disabled());
                Tickets::Nowhere
            }
        };
        Ok(ClientTlsConfig { v1: Arc::new(config), v2: Arc::new(v2), protection: self.options.protection, tickets })
    }
}

impl fmt::Debug for ClientTlsBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTlsBuilder").field("options", &self.options).finish_non_exhaustive()
    }
}

/// DANGER: accepts every certificate of every server, as [`ClientTlsBuilder::accept_any_certificate`] does, for TLS over
/// another carrier than QUIC. Only signatures of the handshake are checked, by the algorithms of `provider`.
pub fn any_certificate(provider: Arc<CryptoProvider>) -> Arc<dyn ServerCertVerifier> {
    Arc::new(AcceptAny(provider))
}

/// Accepts every certificate, yet checks that the handshake is signed with its key.
#[derive(Debug)]
struct AcceptAny(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAny {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
