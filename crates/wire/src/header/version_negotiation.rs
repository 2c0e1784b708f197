//! Version Negotiation packets (RFC 9000 17.2.1, RFC 8999 6).

use super::out::put_long;
use crate::version::Version;

/// Appends a Version Negotiation packet that answers one with these ids: `dcid` is the client's source id, `scid`
/// its destination id, up to 255 bytes each. The low six bits of `unused` fill the bits without meaning.
pub fn write(buf: &mut Vec<u8>, dcid: &[u8], scid: &[u8], versions: &[Version], unused: u8) {
    // RFC 9000 17.2.1: the bit that is fixed elsewhere should be 1, for those who share the port.
    put_long(buf, 0x40 | unused & 0x3f, Version(0), dcid, scid);
    for version in versions {
        buf.extend_from_slice(&version.0.to_be_bytes());
    }
}

/// The versions in the bytes that [`super::ProtectedHeader::VersionNegotiation`] names.
pub fn versions(list: &[u8]) -> impl Iterator<Item = Version> + Clone + '_ {
    list.chunks_exact(4).map(|v| Version(v.iter().fold(0, |all, &byte| all << 8 | u32::from(byte))))
}
