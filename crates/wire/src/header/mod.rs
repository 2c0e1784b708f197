//! Packet headers: parsed as far as header protection allows, and written before it is applied.

mod out;
pub mod packet_number;
mod parse;
pub mod retry;
pub mod stateless_reset;
pub mod version_negotiation;

#[cfg(test)]
mod tests;

pub use out::{FixedBit, HeaderMarks, MAX_LONG_PACKET_BYTES, OutHeader};
pub use parse::{FixedBitRule, HeaderError, PacketSpan, ProtectedHeader};

use plait_base::Space;

use crate::version::Version;

/// The four kinds of packets that carry frames (RFC 9000 12.4, table 3).
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PacketKind {
    Initial,
    ZeroRtt,
    Handshake,
    OneRtt,
}

impl PacketKind {
    /// The packet number space of these packets.
    #[inline]
    pub fn space(self) -> Space {
        match self {
            Self::Initial => Space::Initial,
            Self::Handshake => Space::Handshake,
            Self::ZeroRtt | Self::OneRtt => Space::Data,
        }
    }
}

/// What the two type bits of a long header mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LongType {
    Initial,
    ZeroRtt,
    Handshake,
    Retry,
}

impl LongType {
    const ALL: [Self; 4] = [Self::Initial, Self::ZeroRtt, Self::Handshake, Self::Retry];

    /// The type bits, at their place in the first byte.
    #[inline]
    fn bits(self, version: Version) -> u8 {
        // RFC 9000 17.2, table 5; RFC 9369 3.2: version 2 turns the types by one.
        let turn = u8::from(version == Version::V2);
        ((self as u8 + turn) & 0b11) << 4
    }

    #[inline]
    fn from_first_byte(first: u8, version: Version) -> Self {
        let turn = u8::from(version == Version::V2);
        Self::ALL[usize::from((first >> 4).wrapping_sub(turn) & 0b11)]
    }
}
