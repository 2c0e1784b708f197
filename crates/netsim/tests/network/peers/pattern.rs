//! Bytes that depend on their position, so that a byte in the wrong place is noticed.

use std::sync::OnceLock;

use plait_base::Random;

/// Bytes after which a pattern repeats: a prime, so that no size of packet or window divides it.
const PERIOD_BYTES: u64 = 1_048_573;
/// Longest slice that [`slice`] gives.
const SLICE_BYTES: u64 = 65_536;

/// All patterns are this one, each from a place of its own: slices are written and compared at the speed of memory.
fn tape() -> &'static [u8] {
    static TAPE: OnceLock<Vec<u8>> = OnceLock::new();
    TAPE.get_or_init(|| {
        let mut bytes = vec![0; PERIOD_BYTES as usize];
        Random::from_u64(0x0070_6174_7465_726e).fill(&mut bytes);
        bytes.extend_from_within(..SLICE_BYTES as usize);
        bytes
    })
}

/// The pattern `seed` from `offset` on, at most `limit` bytes and at most 64 KiB.
pub fn slice(seed: u64, offset: u64, limit: u64) -> &'static [u8] {
    let start = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) % PERIOD_BYTES;
    let at = ((start + offset % PERIOD_BYTES) % PERIOD_BYTES) as usize;
    &tape()[at..at + limit.min(SLICE_BYTES) as usize]
}

/// Where `data`, which begins at `offset`, first differs from the pattern.
pub fn mismatch(seed: u64, offset: u64, data: &[u8]) -> Option<u64> {
    let mut done = 0;
    while done < data.len() {
        let expected = slice(seed, offset + done as u64, (data.len() - done) as u64);
        let got = &data[done..done + expected.len()];
        if got != expected {
            let at = got.iter().zip(expected).position(|(a, b)| a != b).unwrap_or(0);
            return Some(offset + (done + at) as u64);
        }
        done += expected.len();
    }
    None
}

#[test]
fn a_byte_out_of_place_is_found() {
    let offset = PERIOD_BYTES - 40_000;
    let mut whole = [slice(17, offset, u64::MAX), slice(17, offset + SLICE_BYTES, 34_464)].concat();
    assert_eq!((whole.len(), mismatch(17, offset, &whole)), (100_000, None));
    assert_eq!(mismatch(17, offset + 70_000, &whole[70_000..]), None);
    assert!(mismatch(18, offset, &whole).is_some() && mismatch(17, offset + 1, &whole).is_some());
    whole[70_000] ^= 1;
    assert_eq!(mismatch(17, offset, &whole), Some(offset + 70_000));
}
