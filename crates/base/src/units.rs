//! Small measured quantities: ECN marks and counts, and the wire's varint ceiling.

/// The largest value of a QUIC variable-length integer, 2^62 - 1 (RFC 9000 16).
pub const VARINT_MAX: u64 = (1 << 62) - 1;

/// An ECN codepoint of an IP header (RFC 3168).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ecn {
    /// ECN-capable, codepoint 0b10.
    Ect0 = 0b10,
    /// ECN-capable, codepoint 0b01.
    Ect1 = 0b01,
    /// Congestion experienced, codepoint 0b11.
    Ce = 0b11,
}

impl Ecn {
    /// Reads the low two bits of a traffic class; none for Not-ECT.
    #[inline]
    pub fn from_bits(bits: u8) -> Option<Self> {
        match bits & 0b11 {
            0b10 => Some(Self::Ect0),
            0b01 => Some(Self::Ect1),
            0b11 => Some(Self::Ce),
            _ => None,
        }
    }
}

/// How many packets of a space arrived with each mark (RFC 9000 19.3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EcnCounts {
    /// Packets marked ECT(0).
    pub ect0: u64,
    /// Packets marked ECT(1).
    pub ect1: u64,
    /// Packets marked CE.
    pub ce: u64,
}

impl EcnCounts {
    /// Counts so many packets with this mark.
    #[inline]
    pub fn add(&mut self, mark: Option<Ecn>, packets: u64) {
        match mark {
            Some(Ecn::Ect0) => self.ect0 += packets,
            Some(Ecn::Ect1) => self.ect1 += packets,
            Some(Ecn::Ce) => self.ce += packets,
            None => {}
        }
    }

    /// Packets with any mark.
    #[inline]
    pub fn total(&self) -> u64 {
        self.ect0.saturating_add(self.ect1).saturating_add(self.ce)
    }
}
