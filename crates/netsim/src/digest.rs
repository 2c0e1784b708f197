//! A running hash over every datagram sent, arrived or lost (`WorldLog::note`), to tell whether two runs were the same.

use std::net::{IpAddr, SocketAddr};

const PRIME: u64 = 0x9e37_79b9_7f4a_7c15;

/// What the digest covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Depth {
    /// Times, addresses, sizes, marks and fates.
    Timing,
    /// These and every payload byte that arrives.
    #[default]
    Payload,
}

/// A 64-bit hash that depends on the order of what it absorbs; not made to resist attackers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0x2d35_8dcc_aa6c_78a5)
    }
}

impl Digest {
    /// The hash so far.
    pub fn value(self) -> u64 {
        let x = (self.0 ^ (self.0 >> 32)).wrapping_mul(PRIME);
        x ^ (x >> 29)
    }

    /// Absorbs a number.
    pub fn word(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(PRIME).rotate_left(23);
    }

    /// Absorbs bytes, in four lanes of eight.
    pub fn bytes(&mut self, bytes: &[u8]) {
        let mut lanes = [1u64, 2, 3, 4];
        let (blocks, rest) = bytes.as_chunks::<32>();
        for block in blocks {
            for (lane, part) in lanes.iter_mut().zip(block.as_chunks::<8>().0) {
                *lane = (*lane ^ u64::from_le_bytes(*part)).wrapping_mul(PRIME).rotate_left(23);
            }
        }
        lanes.iter().for_each(|lane| self.word(*lane));
        for part in rest.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.word(u64::from_le_bytes(word));
        }
        self.word(bytes.len() as u64);
    }

    pub(crate) fn address(&mut self, address: SocketAddr) {
        match address.ip() {
            IpAddr::V4(ip) => self.word(u64::from(ip.to_bits()) << 16 | u64::from(address.port())),
            IpAddr::V6(ip) => {
                let bits = ip.to_bits();
                self.word(bits as u64);
                self.word((bits >> 64) as u64);
                self.word(u64::from(address.port()));
            }
        }
    }
}
