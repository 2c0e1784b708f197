//! Stateless resets: random bytes that end in a token (RFC 9000 10.3).

use plait_base::{Random, ResetToken};

/// Fewest bytes of a datagram that can be a stateless reset (RFC 9000 10.3: 38 bits and the token).
pub const MIN_LEN: usize = 21;

/// Most bytes that we send: what a short packet with the longest connection id and little in it takes.
const MAX_LEN: usize = 44;

/// Bytes of the reset that answers a datagram of `received` bytes; none when it is too small to answer.
pub fn len_for(received: usize, random: &mut Random) -> Option<usize> {
    // RFC 9000 10.3.3: smaller than what it answers, so that resets never loop; one byte smaller than a small one.
    let len = if received <= MAX_LEN { received.checked_sub(1)? } else { MAX_LEN - random.below(4) as usize };
    (len >= MIN_LEN).then_some(len)
}

/// Appends a stateless reset of `len` bytes, at least [`MIN_LEN`].
pub fn write(buf: &mut Vec<u8>, len: usize, token: &ResetToken, random: &mut Random) {
    let start = buf.len();
    buf.resize(start + len.max(MIN_LEN) - token.0.len(), 0);
    if let Some(noise) = buf.get_mut(start..) {
        random.fill(noise);
        // RFC 9000 10.3: it begins as a short header does, fixed bit set.
        if let Some(first) = noise.first_mut() {
            *first = *first & 0x3f | 0x40;
        }
    }
    buf.extend_from_slice(&token.0);
}

/// The last 16 bytes of a datagram that may be a stateless reset; compare with [`ResetToken::matches`].
pub fn candidate(datagram: &[u8]) -> Option<&[u8]> {
    if datagram.len() < MIN_LEN {
        return None;
    }
    datagram.last_chunk::<16>().map(|token| &token[..])
}
