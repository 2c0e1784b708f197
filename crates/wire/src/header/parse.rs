//! What a received packet says before its header protection is removed.

#![allow(missing_docs)] // `dcid` and `scid` are the destination's and the source's connection id

use std::fmt;
use std::ops::Range;

use plait_base::ConnectionId;

use super::{LongType, PacketKind};
use crate::varint::{Reader, Truncated};
use crate::version::Version;

/// Bytes of a Retry integrity tag (RFC 9001 5.8).
const RETRY_TAG_LEN: usize = 16;

/// A packet header as far as it can be read without keys. Ranges index the slice that was parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProtectedHeader {
    Initial {
        /// Version 1 or 2.
        version: Version,
        dcid: ConnectionId,
        scid: ConnectionId,
        /// The token, possibly empty.
        token: Range<usize>,
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
    /// Retry; it ends the datagram.
    Retry {
        /// Version 1 or 2.
        version: Version,
        dcid: ConnectionId,
        scid: ConnectionId,
        /// The token, possibly empty (a client drops such a Retry, RFC 9000 17.2.5.2).
        token: Range<usize>,
        /// The 16-byte integrity tag, which ends the packet.
        tag: Range<usize>,
    },
    /// Version Negotiation; it ends the datagram. Ids of other versions may have up to 255 bytes.
    VersionNegotiation {
        dcid: Range<usize>,
        scid: Range<usize>,
        /// The versions, 4 bytes each; at least one.
        versions: Range<usize>,
    },
    /// A 1-RTT packet; it ends the datagram.
    Short {
        /// Destination, of the length that we issue.
        dcid: ConnectionId,
    },
    /// A long header of a version that we do not speak; a server may answer with Version Negotiation.
    UnknownVersion {
        version: Version,
        /// Destination, up to 255 bytes.
        dcid: Range<usize>,
        /// Source, up to 255 bytes.
        scid: Range<usize>,
    },
}

/// Where a packet lies in the slice that was parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketSpan {
    /// Index of the (protected) packet number; `end` where the packet has none.
    pub pn_offset: usize,
    /// Index after the packet; what follows is the next coalesced packet.
    pub end: usize,
}

/// Whether a packet whose fixed bit is 0 is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FixedBitRule {
    /// It must be 1 (RFC 9000 17.2, 17.3.1).
    MustBeSet,
    /// We announced grease_quic_bit, so it means nothing (RFC 9287 3).
    Ignored,
}

/// Why a packet is dropped unread; none of these closes a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HeaderError {
    /// It ends inside its header, or before the end that its length field names.
    Truncated,
    /// Its fixed bit is 0.
    FixedBitClear,
    /// A connection id above 20 bytes in a version that forbids it (RFC 9000 17.2).
    CidTooLong,
    /// A Version Negotiation whose list is empty or no multiple of 4 bytes.
    BadVersionList,
}

impl From<Truncated> for HeaderError {
    fn from(_: Truncated) -> Self {
        Self::Truncated
    }
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Truncated => "the packet is cut short",
            Self::FixedBitClear => "the fixed bit is 0",
            Self::CidTooLong => "a connection id above 20 bytes",
            Self::BadVersionList => "a malformed list of versions",
        })
    }
}

impl std::error::Error for HeaderError {}

impl ProtectedHeader {
    /// Reads the first packet of `datagram`. Ids in our short headers have `local_cid_len` bytes.
    ///
    /// # Errors
    /// The packet is cut short, its fixed bit is 0, or it breaks a rule of its form; such a packet is dropped without an answer.
    #[inline]
    pub fn parse(
        datagram: &[u8],
        local_cid_len: usize,
        fixed_bit: FixedBitRule,
    ) -> Result<(Self, PacketSpan), HeaderError> {
        let mut r = Reader::new(datagram);
        let first = r.u8()?;
        let refused = first & 0x40 == 0 && fixed_bit == FixedBitRule::MustBeSet;
        if first & 0x80 == 0 {
            if refused {
                return Err(HeaderError::FixedBitClear);
            }
            let dcid = ConnectionId::new(r.bytes(local_cid_len)?).ok_or(HeaderError::CidTooLong)?;
            let span = PacketSpan { pn_offset: 1 + local_cid_len, end: datagram.len() };
            return Ok((Self::Short { dcid }, span));
        }
        let version = Version(r.u32()?);
        let dcid = short_prefixed(&mut r, datagram.len())?;
        let scid = short_prefixed(&mut r, datagram.len())?;
        let whole = PacketSpan { pn_offset: datagram.len(), end: datagram.len() };
        // RFC 8999 6: the fixed bit means nothing in Version Negotiation and in other versions.
        if version.0 == 0 {
            let versions = scid.end..datagram.len();
            if versions.is_empty() || !versions.len().is_multiple_of(4) {
                return Err(HeaderError::BadVersionList);
            }
            return Ok((Self::VersionNegotiation { dcid, scid, versions }, whole));
        }
        if !version.is_supported() {
            return Ok((Self::UnknownVersion { version, dcid, scid }, whole));
        }
        if refused {
            return Err(HeaderError::FixedBitClear);
        }
        Self::parse_known(datagram, version, (dcid, scid), r)
    }

    /// The rest of a long header of version 1 or 2; `r` stands behind the source id.
    fn parse_known(
        datagram: &[u8],
        version: Version,
        (dcid, scid): (Range<usize>, Range<usize>),
        mut r: Reader<'_>,
    ) -> Result<(Self, PacketSpan), HeaderError> {
        let id = |range: Range<usize>| datagram.get(range).and_then(ConnectionId::new).ok_or(HeaderError::CidTooLong);
        let (dcid, scid) = (id(dcid)?, id(scid)?);
        let first = datagram.first().copied().ok_or(HeaderError::Truncated)?;
        let at = |r: &Reader<'_>| datagram.len() - r.remaining();
        let header = match LongType::from_first_byte(first, version) {
            LongType::Retry => {
                let start = at(&r);
                let end = datagram.len().checked_sub(RETRY_TAG_LEN).filter(|&end| end >= start);
                let end = end.ok_or(HeaderError::Truncated)?;
                let header = Self::Retry { version, dcid, scid, token: start..end, tag: end..datagram.len() };
                return Ok((header, PacketSpan { pn_offset: datagram.len(), end: datagram.len() }));
            }
            LongType::Initial => {
                let len = r.prefixed()?.len();
                let end = at(&r);
                Self::Initial { version, dcid, scid, token: end - len..end }
            }
            LongType::ZeroRtt => Self::ZeroRtt { version, dcid, scid },
            LongType::Handshake => Self::Handshake { version, dcid, scid },
        };
        let body = r.prefixed()?.len();
        let end = at(&r);
        Ok((header, PacketSpan { pn_offset: end - body, end }))
    }

    /// The destination id; `datagram` is the slice that was parsed.
    pub fn dcid<'a>(&'a self, datagram: &'a [u8]) -> &'a [u8] {
        match self {
            Self::Initial { dcid, .. }
            | Self::ZeroRtt { dcid, .. }
            | Self::Handshake { dcid, .. }
            | Self::Retry { dcid, .. }
            | Self::Short { dcid } => dcid,
            Self::VersionNegotiation { dcid, .. } | Self::UnknownVersion { dcid, .. } => {
                datagram.get(dcid.clone()).unwrap_or_default()
            }
        }
    }

    /// The source id, empty in a short header; `datagram` is the slice that was parsed.
    pub fn scid<'a>(&'a self, datagram: &'a [u8]) -> &'a [u8] {
        match self {
            Self::Initial { scid, .. }
            | Self::ZeroRtt { scid, .. }
            | Self::Handshake { scid, .. }
            | Self::Retry { scid, .. } => scid,
            Self::Short { .. } => &[],
            Self::VersionNegotiation { scid, .. } | Self::UnknownVersion { scid, .. } => {
                datagram.get(scid.clone()).unwrap_or_default()
            }
        }
    }

    /// The kind of a packet that carries frames; none for the others.
    pub fn kind(&self) -> Option<PacketKind> {
        match self {
            Self::Initial { .. } => Some(PacketKind::Initial),
            Self::ZeroRtt { .. } => Some(PacketKind::ZeroRtt),
            Self::Handshake { .. } => Some(PacketKind::Handshake),
            Self::Short { .. } => Some(PacketKind::OneRtt),
            Self::Retry { .. } | Self::VersionNegotiation { .. } | Self::UnknownVersion { .. } => None,
        }
    }

    /// The version in a long header.
    pub fn version(&self) -> Option<Version> {
        match *self {
            Self::Initial { version, .. }
            | Self::ZeroRtt { version, .. }
            | Self::Handshake { version, .. }
            | Self::Retry { version, .. }
            | Self::UnknownVersion { version, .. } => Some(version),
            Self::VersionNegotiation { .. } => Some(Version(0)),
            Self::Short { .. } => None,
        }
    }
}

/// A one-byte length and that many bytes, as their range (RFC 8999 5.1).
fn short_prefixed(r: &mut Reader<'_>, total: usize) -> Result<Range<usize>, Truncated> {
    let len = usize::from(r.u8()?);
    r.bytes(len)?;
    let end = total - r.remaining();
    Ok(end - len..end)
}
