//! Retry packets, all but their integrity tag (RFC 9000 17.2.5).

use plait_base::ConnectionId;

use super::LongType;
use super::out::put_long;
use crate::version::Version;

/// Appends a Retry packet up to its tag. `dcid` is the client's source id, `scid` the id that it shall use next;
/// the low four bits of `unused` fill the bits without meaning.
pub fn write(buf: &mut Vec<u8>, version: Version, dcid: &ConnectionId, scid: &ConnectionId, token: &[u8], unused: u8) {
    put_long(buf, 0x40 | LongType::Retry.bits(version) | unused & 0x0f, version, dcid, scid);
    buf.extend_from_slice(token);
}
