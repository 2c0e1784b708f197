//! QUIC versions: those we speak, and how to tell the reserved ones.

use std::fmt;

use plait_base::Random;

/// A QUIC version number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version(pub u32);

impl Version {
    /// QUIC version 1 (RFC 9000 15).
    pub const V1: Self = Self(0x0000_0001);
    /// QUIC version 2 (RFC 9369 3.1).
    pub const V2: Self = Self(0x6b33_43cf);
    /// The versions that we speak, in the order in which we prefer them.
    pub const SUPPORTED: [Self; 2] = [Self::V1, Self::V2];

    /// True for versions that we speak.
    #[inline]
    pub fn is_supported(self) -> bool {
        Self::SUPPORTED.contains(&self)
    }

    /// True for the versions that exist to force version negotiation, 0x?a?a?a?a (RFC 9000 15).
    pub fn is_reserved(self) -> bool {
        self.0 & 0x0f0f_0f0f == 0x0a0a_0a0a
    }

    /// A random reserved version.
    pub fn reserved(random: &mut Random) -> Self {
        Self(random.next_u32() & 0xf0f0_f0f0 | 0x0a0a_0a0a)
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::V1 => f.write_str("v1"),
            Self::V2 => f.write_str("v2"),
            Self(other) => write!(f, "{other:#010x}"),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_versions_are_told_apart() {
        assert!(Version(0x1a2a_3a4a).is_reserved());
        assert!(!Version::V1.is_reserved() && !Version::V2.is_reserved());
        assert!(Version::reserved(&mut Random::from_u64(1)).is_reserved());
        assert!(Version::V2.is_supported() && !Version(2).is_supported());
    }
}
