//! Synthetic bodies: bytes that depend on their position, cut from one block without copies.

use std::sync::OnceLock;

use bytes::Bytes;
use sha2::{Digest, Sha256};

/// The pattern repeats after so many bytes; a prime, so that data moved by whole packets or pages shows.
const PERIOD: usize = 1_048_573;
/// Largest piece, bytes.
const PIECE_BYTES: u64 = 256 * 1024;

/// The endless body of which `/bytes/N` gives the first N bytes.
#[derive(Clone, Debug)]
pub(crate) struct Pattern(Bytes);

impl Pattern {
    /// The block; the first call makes it, which takes about a millisecond.
    pub(crate) fn new() -> Self {
        static BLOCK: OnceLock<Bytes> = OnceLock::new();
        Self(BLOCK.get_or_init(Self::block).clone())
    }

    fn block() -> Bytes {
        // The high bytes of a multiplicative generator (Lehmer, modulus 2^64).
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let next = || {
            state = state.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
            (state >> 56) as u8
        };
        std::iter::repeat_with(next).take(PERIOD).collect::<Vec<_>>().into()
    }

    /// The next piece of a body of `len` bytes from `offset` on; empty at its end.
    pub(crate) fn piece(&self, offset: u64, len: u64) -> Bytes {
        let start = (offset % PERIOD as u64) as usize;
        let left = len.saturating_sub(offset).min(PIECE_BYTES).min((PERIOD - start) as u64) as usize;
        self.0.slice(start..start + left)
    }

    /// The SHA-256 of a body of `len` bytes.
    pub(crate) fn sha256(&self, len: u64) -> String {
        let mut hash = Sha256::new();
        let mut offset = 0;
        while offset < len {
            let piece = self.piece(offset, len);
            hash.update(&piece);
            offset += piece.len() as u64;
        }
        hex(hash)
    }
}

/// The digest as lower-case hexadecimal digits.
pub(crate) fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_join_to_the_body() {
        let pattern = Pattern::new();
        let len = 3 * PERIOD as u64 + 17;
        let (mut offset, mut count) = (0, 0);
        while offset < len {
            let piece = pattern.piece(offset, len);
            assert!(!piece.is_empty() && piece.len() as u64 <= PIECE_BYTES);
            assert_eq!(piece[0], pattern.piece(offset % PERIOD as u64, u64::MAX)[0]);
            offset += piece.len() as u64;
            count += 1;
        }
        assert_eq!((offset, pattern.piece(len, len).len()), (len, 0));
        assert!(count >= 12);
    }

    #[test]
    fn position_matters() {
        let pattern = Pattern::new();
        assert_ne!(pattern.piece(0, 64), pattern.piece(1, 65));
        assert_ne!(pattern.piece(0, 64), pattern.piece(65_536, 65_600));
        assert_eq!(pattern.sha256(0), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_ne!(pattern.sha256(1000), pattern.sha256(1001));
    }
}
