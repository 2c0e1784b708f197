//! Initial keys, derived from the client's first destination connection id (RFC 9001 5.2, RFC 9369 3.3.1).

use plait_base::Side;
use rustls::quic;

use crate::backend;
use crate::keys::PacketKeys;

/// Version number of QUIC v1 (RFC 9000).
pub(crate) const V1: u32 = 1;
/// Version number of QUIC v2 (RFC 9369).
pub(crate) const V2: u32 = 0x6b33_43cf;

/// The version as rustls names it; none when unsupported.
pub(crate) fn tls_version(version: u32) -> Option<quic::Version> {
    match version {
        V1 => Some(quic::Version::V1),
        V2 => Some(quic::Version::V2),
        // RFC 9000 6.3: a first packet that no server can read, as well as the next
        grease if grease & 0x0f0f_0f0f == 0x0a0a_0a0a => Some(quic::Version::V1),
        _ => None,
    }
}

/// Keys of Initial packets for `side`; `dcid` is the destination connection id of the client's first Initial
/// (after a Retry: of its next one). None for an unsupported version.
pub fn initial_keys(version: u32, dcid: &[u8], side: Side) -> Option<PacketKeys> {
    let version = tls_version(version)?;
    let suite = backend::tls::cipher_suite::TLS13_AES_128_GCM_SHA256.tls13()?.quic_suite()?;
    let side = match side {
        Side::Client => rustls::Side::Client,
        Side::Server => rustls::Side::Server,
    };
    Some(suite.keys(dcid, side, version).into())
}
