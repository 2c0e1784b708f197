//! What a handshake came to: all that is asked of a server's session when its TLS state is gone.

use rustls::crypto::tls13::OkmBlock;
use rustls::{HandshakeKind, SupportedCipherSuite, quic};
use rustls_pki_types::CertificateDer;

use super::exporter::Exporter;

/// Of a server, as its configuration and its client had it.
pub(super) struct RetiredSession {
    pub(super) alpn: Option<Box<[u8]>>,
    pub(super) server_name: Option<Box<str>>,
    pub(super) peer_identity: Option<Box<[CertificateDer<'static>]>>,
    pub(super) suite: SupportedCipherSuite,
    pub(super) is_resumed: bool,
    pub(super) early_data_accepted: bool,
    pub(super) exporter: Exporter,
}

impl RetiredSession {
    /// Of a complete handshake, and the exporter's secret; none before there is a suite.
    pub(super) fn of(tls: &quic::Connection, secret: OkmBlock) -> Option<Self> {
        let suite = tls.negotiated_cipher_suite()?;
        Some(Self {
            alpn: tls.alpn_protocol().map(Into::into),
            server_name: server_name(tls).map(Into::into),
            peer_identity: tls.peer_certificates().map(Into::into),
            suite,
            is_resumed: is_resumed(tls),
            early_data_accepted: is_early_data_accepted(tls),
            exporter: Exporter::new(secret, suite)?,
        })
    }
}

/// The name that a client asked for.
pub(super) fn server_name(tls: &quic::Connection) -> Option<&str> {
    match tls {
        quic::Connection::Client(_) => None,
        quic::Connection::Server(tls) => tls.server_name(),
    }
}

pub(super) fn is_resumed(tls: &quic::Connection) -> bool {
    tls.handshake_kind() == Some(HandshakeKind::Resumed)
}

/// On a client without meaning before its handshake is complete.
pub(super) fn is_early_data_accepted(tls: &quic::Connection) -> bool {
    match tls {
        quic::Connection::Client(tls) => tls.is_early_data_accepted(),
        quic::Connection::Server(tls) => tls.zero_rtt_keys().is_some(),
    }
}
