//! Bytes that depend on their position, so that a byte in the wrong place is noticed.

/// The eight bytes at `8 * index` of the pattern `seed`.
fn block(seed: u64, index: u64) -> [u8; 8] {
    let mut x = seed.wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    x = (x ^ (x >> 31)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (x ^ (x >> 32)).to_le_bytes()
}

/// Fills `out` with the pattern from `offset` on.
pub fn fill(seed: u64, offset: u64, out: &mut [u8]) {
    let mut at = offset;
    let mut rest = out;
    while !rest.is_empty() {
        let (bytes, skip) = (block(seed, at / 8), (at % 8) as usize);
        let count = rest.len().min(8 - skip);
        let (head, tail) = rest.split_at_mut(count);
        head.copy_from_slice(&bytes[skip..skip + count]);
        at += count as u64;
        rest = tail;
    }
}

/// Where `data`, which begins at `offset`, first differs from the pattern.
pub fn mismatch(seed: u64, offset: u64, data: &[u8]) -> Option<u64> {
    let (mut at, mut rest) = (offset, data);
    while !rest.is_empty() {
        let (bytes, skip) = (block(seed, at / 8), (at % 8) as usize);
        let (head, tail) = rest.split_at(rest.len().min(8 - skip));
        if head != &bytes[skip..skip + head.len()] {
            return Some(at);
        }
        at += head.len() as u64;
        rest = tail;
    }
    None
}
