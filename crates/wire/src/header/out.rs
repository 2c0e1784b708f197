//! Headers of packets that we send, written before their payload.

#![allow(missing_docs)] // `dcid` and `scid` are the destination's and the source's connection id

use plait_base::ConnectionId;

use super::{LongType, packet_number};
use crate::varint;
use crate::version::Version;

/// Bytes of the length field; two, so that it can be written before the payload is known.
const LENGTH_FIELD_LEN: usize = 2;

/// Most bytes from packet number to tag that a long header's length field can name.
pub const MAX_LONG_PACKET_BYTES: usize = (1 << 14) - 1;

/// The header of a packet to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutHeader<'a> {
    Initial {
        /// Version 1 or 2.
        version: Version,
        dcid: ConnectionId,
        scid: ConnectionId,
        /// Token of a Retry or NEW_TOKEN; empty from a server (RFC 9000 17.2.2).
        token: &'a [u8],
    },
    ZeroRtt {
        /// Version 1 or 2.
        version: Version,
        dcid: ConnectionId,
        scid: ConnectionId,
    },
    Handshake {
        /// Version 1 or 2.
        version: Version,
        dcid: ConnectionId,
        scid: ConnectionId,
    },
    Short {
        dcid: ConnectionId,
        /// The latency spin bit (RFC 9000 17.4).
        spin: bool,
        /// The key phase bit (RFC 9001 6).
        key_phase: bool,
    },
}

/// The second bit of the first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FixedBit {
    /// 1, as RFC 9000 asks.
    Set,
    /// 0; only towards a peer that announced grease_quic_bit (RFC 9287 3.1).
    Clear,
}

/// Where the fields of a written header lie, as absolute indices of the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderMarks {
    /// First byte of the packet.
    pub start: usize,
    /// The two-byte length field of a long header.
    pub length_at: Option<usize>,
    /// First byte of the packet number.
    pub pn_at: usize,
    /// Bytes of the packet number, 1 to 4.
    pub pn_len: usize,
}

impl OutHeader<'_> {
    /// Appends the header with the low `pn_len` (1 to 4) bytes of `number`; a length field stays 0 until
    /// [`HeaderMarks::set_length`].
    // Once a packet: whether it is inlined there must not depend on what stands beside it.
    #[inline(always)]
    pub fn write(&self, buf: &mut Vec<u8>, number: u64, pn_len: usize, fixed_bit: FixedBit) -> HeaderMarks {
        let pn_len = pn_len.clamp(1, 4);
        let start = buf.len();
        let fixed = if fixed_bit == FixedBit::Set { 0x40 } else { 0 };
        let first = fixed | (pn_len as u8 - 1);
        let mut length_at = None;
        match *self {
            Self::Short { dcid, spin, key_phase } => {
                buf.push(first | u8::from(spin) << 5 | u8::from(key_phase) << 2);
                buf.extend_from_slice(&dcid);
            }
            Self::Initial { version, dcid, scid, token } => {
                put_long(buf, first | LongType::Initial.bits(version), version, &dcid, &scid);
                varint::put(buf, token.len() as u64);
                buf.extend_from_slice(token);
                length_at = Some(reserve_length(buf));
            }
            Self::ZeroRtt { version, dcid, scid } => {
                put_long(buf, first | LongType::ZeroRtt.bits(version), version, &dcid, &scid);
                length_at = Some(reserve_length(buf));
            }
            Self::Handshake { version, dcid, scid } => {
                put_long(buf, first | LongType::Handshake.bits(version), version, &dcid, &scid);
                length_at = Some(reserve_length(buf));
            }
        }
        let pn_at = buf.len();
        packet_number::put(buf, number, pn_len);
        HeaderMarks { start, length_at, pn_at, pn_len }
    }

    /// Bytes that [`OutHeader::write`] appends.
    #[inline]
    pub fn size(&self, pn_len: usize) -> usize {
        let pn_len = pn_len.clamp(1, 4);
        let long = |dcid: &ConnectionId, scid: &ConnectionId| 7 + dcid.len() + scid.len() + LENGTH_FIELD_LEN + pn_len;
        match self {
            Self::Short { dcid, .. } => 1 + dcid.len() + pn_len,
            Self::Initial { dcid, scid, token, .. } => {
                long(dcid, scid) + varint::size(token.len() as u64) + token.len()
            }
            Self::ZeroRtt { dcid, scid, .. } | Self::Handshake { dcid, scid, .. } => long(dcid, scid),
        }
    }
}

impl HeaderMarks {
    /// Index of the first payload byte.
    #[inline]
    pub fn payload_at(&self) -> usize {
        self.pn_at + self.pn_len
    }

    /// Bytes of the header, packet number included.
    #[inline]
    pub fn header_len(&self) -> usize {
        self.payload_at() - self.start
    }

    /// Fills a long header's length field: the packet will end, tag included, at the absolute index `end`, at most
    /// [`MAX_LONG_PACKET_BYTES`] after `pn_at`.
    #[inline]
    pub fn set_length(&self, buf: &mut [u8], end: usize) {
        let Some(at) = self.length_at else { return };
        let len = end.saturating_sub(self.pn_at);
        debug_assert!(len <= MAX_LONG_PACKET_BYTES);
        if let Some(field) = buf.get_mut(at..at + LENGTH_FIELD_LEN) {
            field.copy_from_slice(&(0x4000 | len as u16).to_be_bytes());
        }
    }
}

/// First byte, version and ids of any long header.
pub(super) fn put_long(buf: &mut Vec<u8>, first: u8, version: Version, dcid: &[u8], scid: &[u8]) {
    buf.push(0x80 | first);
    buf.extend_from_slice(&version.0.to_be_bytes());
    for id in [dcid, scid] {
        debug_assert!(id.len() <= 255);
        buf.push(id.len() as u8);
        buf.extend_from_slice(id);
    }
}

/// Appends an empty length field; its index.
fn reserve_length(buf: &mut Vec<u8>) -> usize {
    let at = buf.len();
    buf.extend_from_slice(&0x4000u16.to_be_bytes());
    at
}
