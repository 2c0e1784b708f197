//! What TLS agreed on: version, application protocol, certificates, 0-RTT, keying material.

use plait_base::ConnectionId;
use plait_crypto::{CipherSuite, ExportError, OneRttKeys};
use plait_wire::Version;

use crate::connection::handshake::{EarlyData, Handshake};

/// What the handshake agreed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandshakeSummary {
    /// The application protocol.
    pub alpn: Option<Vec<u8>>,
    /// On a server: the name that the client asked for.
    pub server_name: Option<String>,
    /// The QUIC version; while the handshake goes on, the server may still change it (RFC 9368 2.3).
    pub version: Version,
    /// The cipher suite.
    pub cipher_suite: Option<CipherSuite>,
    /// True when an earlier session was resumed.
    pub resumed: bool,
}

/// The TLS session of a connection, borrowed from it.
pub struct Session<'a> {
    pub(crate) handshake: &'a Handshake,
    /// 1-RTT keys, once TLS has them.
    pub(crate) keys: Option<&'a OneRttKeys>,
}

impl Session<'_> {
    /// True once the handshake is confirmed (RFC 9001 4.1.2): from then on a client may leave for another address.
    pub fn is_confirmed(&self) -> bool {
        self.handshake.is_confirmed()
    }

    /// The connection id by which the server knows a client's connection since its first packet; none before that, and on servers.
    pub fn peer_cid(&self) -> Option<ConnectionId> {
        self.handshake.peer_scid.filter(|_| self.handshake.side.is_client())
    }

    /// What the handshake agreed on, as far as it is known.
    pub fn summary(&self) -> HandshakeSummary {
        let tls = &self.handshake.tls;
        HandshakeSummary {
            alpn: tls.alpn().map(<[u8]>::to_vec),
            server_name: tls.server_name().map(str::to_owned),
            version: self.handshake.versions.current,
            cipher_suite: tls.cipher_suite(),
            resumed: tls.is_resumed(),
        }
    }

    /// The peer's certificates in DER, its own first, once they are known.
    pub fn peer_certificates(&self) -> Option<Vec<Vec<u8>>> {
        let chain = self.handshake.tls.peer_identity()?;
        Some(chain.iter().map(|certificate| certificate.as_ref().to_vec()).collect())
    }

    /// Whether 0-RTT was accepted: none while unknown or not tried. What was sent in 0-RTT may have been replayed by an
    /// attacker; servers must not act on it in ways that a repetition would harm (RFC 9001 9.2).
    pub fn accepted_0rtt(&self) -> Option<bool> {
        match self.handshake.zero_rtt.outcome() {
            EarlyData::Accepted => Some(true),
            EarlyData::Rejected => Some(false),
            EarlyData::None | EarlyData::Offered => None,
        }
    }

    /// True while a client may send 0-RTT data.
    pub fn has_0rtt(&self) -> bool {
        self.handshake.zero_rtt.seal_keys().is_some()
    }

    /// Fills `out` with keying material bound to this session.
    ///
    /// # Errors
    /// The handshake is not complete, or more is asked for than there is.
    pub fn export_keying_material(&self, out: &mut [u8], label: &[u8], context: &[u8]) -> Result<(), ExportError> {
        self.handshake.tls.export_keying_material(out, label, context)
    }

    /// Packets sealed with the 1-RTT keys of this phase; those that somebody may seal on a lent path count.
    pub fn packets_sealed(&self) -> u64 {
        self.keys.map_or(0, |keys| keys.packets_sealed())
    }

    /// Key updates so far, by either side.
    pub fn key_phase(&self) -> u64 {
        self.keys.map_or(0, |keys| keys.phase())
    }
}
