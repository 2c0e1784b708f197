//! What can go wrong with keys and configurations, one variant each.

use std::fmt;

use plait_base::{Instant, TransportError, Violation};

/// Why a packet could not be sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// The packet is too short to take a header protection sample; pad the payload (RFC 9001 5.4.2).
    #[error("packet too short for a header protection sample")]
    TooShort,
    /// The key reached its confidentiality limit (RFC 9001 6.6).
    #[error("key used up")]
    Exhausted,
    /// The cipher refused, which only an oversized payload can cause.
    #[error("cipher refused the packet")]
    Refused,
}

impl From<SealError> for TransportError {
    fn from(e: SealError) -> Self {
        match e {
            SealError::Exhausted => Violation::AeadConfidentialityLimit.into(),
            e => Self::new(plait_base::CloseCode::INTERNAL_ERROR, e.to_string()),
        }
    }
}

/// Why a packet could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// Too short to be a packet: drop it.
    #[error("packet too short")]
    TooShort,
    /// Keys of its phase are gone: drop it.
    #[error("no keys for the packet's phase")]
    NoKeys,
    /// Authentication failed: drop it.
    #[error("authentication failed")]
    Forged,
    /// The packet is genuine and breaks a rule, or the limit on forgeries is reached: close the connection.
    #[error("{}", .0.text())]
    Violation(Violation),
}

/// Why we may not start a key update now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpdateRefused {
    /// The handshake is not confirmed (RFC 9001 6.1).
    #[error("handshake not confirmed")]
    HandshakeNotConfirmed,
    /// No packet of the current phase was acknowledged yet (RFC 9001 6.1).
    #[error("current keys not confirmed by the peer")]
    Unacknowledged,
    /// The previous update is too recent; allowed from the given time on (RFC 9001 6.5).
    #[error("previous update too recent, wait until {0}")]
    TooSoon(Instant),
}

/// Why a TLS configuration or session cannot be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// The configuration does not offer TLS 1.3.
    #[error("TLS 1.3 is not offered")]
    NoTls13,
    /// No cipher suite is left that QUIC can use.
    #[error("no cipher suite for QUIC")]
    NoSuite,
    /// Early data must be off or unlimited (RFC 9001 4.6.1).
    #[error("early data must be off or unlimited")]
    EarlyDataLimited,
    /// The QUIC version is not supported.
    #[error("QUIC version {0:#x} is not supported")]
    Version(u32),
    /// The server name is neither a DNS name nor an IP address.
    #[error("invalid server name {0:?}")]
    ServerName(String),
    /// No certificates to trust were given.
    #[error("nothing to trust: give roots or a verifier")]
    NoTrust,
    /// A certificate or key could not be read.
    #[error("cannot read {0}")]
    Pem(String),
    /// rustls refused the configuration or the session.
    #[error("{0}")]
    Tls(rustls::Error),
}

impl From<rustls::Error> for ConfigError {
    fn from(e: rustls::Error) -> Self {
        Self::Tls(e)
    }
}

/// Keying material was asked for before the handshake completed, or more of it than there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExportError;

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cannot export keying material")
    }
}

impl std::error::Error for ExportError {}
