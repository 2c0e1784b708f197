//! Null protection for simulations: a checksum where a cipher would be, no secrecy at all.
//!
//! A packet opened with the wrong path, number, phase or direction still fails, so a simulation sees the same
//! mistakes as with a cipher.

use plait_base::{PathId, Side};

const K0: u64 = 0x9e37_79b9_7f4a_7c15;
const K1: u64 = 0xd6e8_feb8_6659_fd93;

/// The checksum of one direction and one phase.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NullKey {
    seed: u64,
}

impl NullKey {
    /// The key of what `sender` sends in `phase`.
    pub(crate) fn new(sender: Side, phase: u64) -> Self {
        Self { seed: phase << 1 | u64::from(sender.is_server()) }
    }

    /// The 16 bytes that stand where the tag would.
    pub(crate) fn tag(&self, path: PathId, pn: u64, header: &[u8], payload: &[u8]) -> [u8; 16] {
        let mut sum = Sum { a: K0 ^ self.seed, b: K1 ^ u64::from(path.0) };
        sum.word(pn);
        sum.bytes(header);
        sum.bytes(payload);
        let mut tag = [0; 16];
        tag[..8].copy_from_slice(&fold(sum.a, K1).to_le_bytes());
        tag[8..].copy_from_slice(&fold(sum.b ^ sum.a, K0).to_le_bytes());
        tag
    }
}

/// Two running lanes, each folded by a wide multiplication.
struct Sum {
    a: u64,
    b: u64,
}

impl Sum {
    #[inline]
    fn word(&mut self, w: u64) {
        self.a = fold(self.a ^ w, K0);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u64);
        let (pairs, tail) = bytes.as_chunks::<16>();
        for pair in pairs {
            let both = u128::from_le_bytes(*pair);
            self.a = fold(self.a ^ both as u64, K0);
            self.b = fold(self.b ^ (both >> 64) as u64, K1);
        }
        for part in tail.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.word(u64::from_le_bytes(word));
        }
    }
}

#[inline]
fn fold(x: u64, k: u64) -> u64 {
    // Adding before the product keeps a lane from sticking at zero.
    let wide = u128::from(x.wrapping_add(k)) * u128::from(k);
    (wide as u64) ^ ((wide >> 64) as u64)
}
