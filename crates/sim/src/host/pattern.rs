//! Bytes that depend on their position, so that a byte in the wrong place is noticed.

use std::ops::Range;
use std::sync::OnceLock;

use bytes::{Bytes, BytesMut};
use plait_base::Random;

/// Bytes after which the pattern repeats: a prime, so that no size of packet or window divides it.
const PERIOD_BYTES: usize = 262_139;
/// Longest slice that [`slice`] gives.
const SLICE_BYTES: usize = 65_536;

fn tape() -> &'static Bytes {
    static TAPE: OnceLock<Bytes> = OnceLock::new();
    TAPE.get_or_init(|| {
        let mut bytes = BytesMut::with_capacity(PERIOD_BYTES + SLICE_BYTES);
        bytes.resize(PERIOD_BYTES, 0);
        Random::from_u64(0x0070_6174_7465_726e).fill(&mut bytes);
        let head = bytes[..SLICE_BYTES].to_vec();
        bytes.extend_from_slice(&head);
        bytes.freeze()
    })
}

/// Where on the tape the pattern from `offset` on lies, at most `limit` bytes and at most 64 KiB of it.
fn place(offset: u64, limit: u64) -> Range<usize> {
    let at = (offset % PERIOD_BYTES as u64) as usize;
    at..at + usize::try_from(limit).unwrap_or(usize::MAX).min(SLICE_BYTES)
}

/// The pattern from `offset` on, at most `limit` bytes and at most 64 KiB; no copy.
pub(crate) fn slice(offset: u64, limit: u64) -> Bytes {
    tape().slice(place(offset, limit))
}

/// Where `data`, which begins at `offset`, first differs from the pattern.
pub(crate) fn mismatch(offset: u64, data: &[u8]) -> Option<u64> {
    let mut done = 0;
    while done < data.len() {
        let expected = &tape()[place(offset + done as u64, (data.len() - done) as u64)];
        let got = &data[done..done + expected.len()];
        if got != expected {
            let at = got.iter().zip(expected.iter()).position(|(a, b)| a != b).unwrap_or(0);
            return Some(offset + (done + at) as u64);
        }
        done += expected.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_out_of_place_is_found() {
        let whole: Vec<u8> = (0..3).flat_map(|i| slice(i * 65_536, 65_536).to_vec()).collect();
        assert_eq!(mismatch(0, &whole), None);
        let wrap = PERIOD_BYTES as u64 - 10;
        assert_eq!(mismatch(wrap, &slice(wrap, 40_000)), None);
        let mut damaged = whole.clone();
        damaged[100_000] ^= 1;
        assert_eq!(mismatch(0, &damaged), Some(100_000));
        assert!(mismatch(1452, &whole[..1452]).is_some());
    }
}
