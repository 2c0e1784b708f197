//! What both sides' configurations have in common: suites, ALPN, key log, clock, provider, identity.

use std::fmt;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::time_provider::{DefaultTimeProvider, TimeProvider};
use rustls::{KeyLog, NoKeyLog, ProtocolVersion, SupportedCipherSuite};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::error::ConfigError;
use crate::{backend, records};

/// An AEAD with its hash, as TLS 1.3 negotiates them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CipherSuite {
    /// TLS_AES_128_GCM_SHA256, which every endpoint has.
    Aes128Gcm,
    /// TLS_AES_256_GCM_SHA384, with longer keys.
    Aes256Gcm,
    /// TLS_CHACHA20_POLY1305_SHA256, fast where the processor has no AES.
    ChaCha20Poly1305,
}

impl CipherSuite {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Aes128Gcm, Self::Aes256Gcm, Self::ChaCha20Poly1305];

    /// The registered name (RFC 8446 B.4).
    pub fn name(self) -> &'static str {
        match self {
            Self::Aes128Gcm => "TLS_AES_128_GCM_SHA256",
            Self::Aes256Gcm => "TLS_AES_256_GCM_SHA384",
            Self::ChaCha20Poly1305 => "TLS_CHACHA20_POLY1305_SHA256",
        }
    }

    fn id(self) -> rustls::CipherSuite {
        match self {
            Self::Aes128Gcm => rustls::CipherSuite::TLS13_AES_128_GCM_SHA256,
            Self::Aes256Gcm => rustls::CipherSuite::TLS13_AES_256_GCM_SHA384,
            Self::ChaCha20Poly1305 => rustls::CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
        }
    }

    pub(crate) fn from_tls(suite: SupportedCipherSuite) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.id() == suite.suite())
    }
}

/// How packets are protected once the handshake is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protection {
    /// By the negotiated cipher.
    #[default]
    Tls,
    /// By a checksum only, for fast simulations: no secrecy. The handshake and 0-RTT stay real. Both ends must be
    /// configured so.
    NullAfterHandshake,
}

/// A certificate chain with its private key.
#[derive(Debug)]
pub struct Identity {
    /// The chain, own certificate first.
    pub chain: Vec<CertificateDer<'static>>,
    /// The key of the first certificate.
    pub key: PrivateKeyDer<'static>,
}

impl Identity {
    /// An identity from a certificate chain and a key in DER.
    pub fn new(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Self {
        Self { chain, key }
    }

    /// An identity from PEM text: all certificates of `chain`, the first private key of `key`.
    ///
    /// # Errors
    /// [`ConfigError::Pem`] names what could not be read: the chain, which may not be empty, or the key.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, ConfigError> {
        let wrong = |what: &str, e: rustls_pki_types::pem::Error| ConfigError::Pem(format!("{what}: {e}"));
        let chain = CertificateDer::pem_slice_iter(chain)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|e| wrong("certificate chain", e))?;
        if chain.is_empty() {
            return Err(ConfigError::Pem("certificate chain: no certificate in it".into()));
        }
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|e| wrong("private key", e))?;
        Ok(Self { chain, key })
    }
}

impl Clone for Identity {
    fn clone(&self) -> Self {
        Self { chain: self.chain.clone(), key: self.key.clone_key() }
    }
}

/// Settings of either side.
#[derive(Clone)]
pub(crate) struct Options {
    pub(crate) provider: Arc<CryptoProvider>,
    pub(crate) suites: Vec<CipherSuite>,
    pub(crate) alpn: Vec<Vec<u8>>,
    pub(crate) key_log: Arc<dyn KeyLog>,
    pub(crate) time: Arc<dyn TimeProvider>,
    pub(crate) protection: Protection,
}

/// What sessions are made with, when nothing else is asked for.
fn provider() -> CryptoProvider {
    CryptoProvider { cipher_suites: records::suites(), ..backend::tls::default_provider() }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            provider: Arc::new(provider()),
            suites: Vec::new(),
            alpn: Vec::new(),
            key_log: Arc::new(NoKeyLog),
            time: Arc::new(DefaultTimeProvider),
            protection: Protection::Tls,
        }
    }
}

impl Options {
    /// The provider with only the wished suites, in the wished order.
    pub(crate) fn provider(&self) -> Result<Arc<CryptoProvider>, ConfigError> {
        let mut provider = (*self.provider).clone();
        provider.cipher_suites.retain(usable);
        if !self.suites.is_empty() {
            let offered = std::mem::take(&mut provider.cipher_suites);
            let wished = self.suites.iter().filter_map(|w| offered.iter().find(|s| s.suite() == w.id()));
            provider.cipher_suites = wished.copied().collect();
        }
        if provider.cipher_suites.is_empty() {
            return Err(ConfigError::NoSuite);
        }
        Ok(Arc::new(provider))
    }
}

/// True for TLS 1.3 suites that come with QUIC keys.
fn usable(suite: &SupportedCipherSuite) -> bool {
    suite.tls13().is_some_and(|s| s.quic_suite().is_some())
}

/// Checks that a provider has what QUIC needs.
pub(crate) fn check_provider(provider: &CryptoProvider) -> Result<(), ConfigError> {
    if !provider.cipher_suites.iter().any(|s| s.version().version == ProtocolVersion::TLSv1_3) {
        return Err(ConfigError::NoTls13);
    }
    if provider.cipher_suites.iter().any(usable) { Ok(()) } else { Err(ConfigError::NoSuite) }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("suites", &self.suites)
            .field("protection", &self.protection)
            .finish_non_exhaustive()
    }
}

/// The setters that both builders share.
macro_rules! common_setters {
    () => {
        /// Application protocols, preferred first (RFC 7301; RFC 9000 7, RFC 9001 8.1).
        pub fn alpn<P: Into<Vec<u8>>>(mut self, protocols: impl IntoIterator<Item = P>) -> Self {
            self.options.alpn = protocols.into_iter().map(Into::into).collect();
            self
        }

        /// Only these cipher suites, preferred first; an empty list means all that there are.
        pub fn suites(mut self, suites: impl IntoIterator<Item = CipherSuite>) -> Self {
            self.options.suites = suites.into_iter().collect();
            self
        }

        /// Writes secrets to the file that the variable SSLKEYLOGFILE names, if set, for packet analysers.
        pub fn key_log_file(mut self) -> Self {
            self.options.key_log = Arc::new(rustls::KeyLogFile::new());
            self
        }

        /// Hands secrets to a log of the caller's own.
        pub fn key_log(mut self, log: Arc<dyn rustls::KeyLog>) -> Self {
            self.options.key_log = log;
            self
        }

        /// The clock for certificates and tickets; a simulator gives its own.
        pub fn time_provider(mut self, time: Arc<dyn rustls::time_provider::TimeProvider>) -> Self {
            self.options.time = time;
            self
        }

        /// Another source of cryptography; the default is the one that the crate was built with.
        pub fn provider(mut self, provider: Arc<rustls::crypto::CryptoProvider>) -> Self {
            self.options.provider = provider;
            self
        }

        /// Protection after the handshake; anything but [`Protection::Tls`] is for simulations.
        pub fn protection(mut self, protection: Protection) -> Self {
            self.options.protection = protection;
            self
        }
    };
}
pub(crate) use common_setters;
