//! Packet numbers on the wire: how few bytes suffice, and how the rest is recovered.

use plait_base::units::VARINT_MAX;

/// Bytes, 1 to 4, that let a peer that has seen at least `largest_acked` recover `number` (RFC 9000 A.2).
#[inline]
pub fn len_for(number: u64, largest_acked: Option<u64>) -> usize {
    let unacked = match largest_acked {
        Some(acked) => number.saturating_sub(acked),
        None => number.saturating_add(1),
    };
    // RFC 9000 17.1: more than twice the range between the largest acknowledged number and this one.
    match unacked {
        0..=0x80 => 1,
        0x81..=0x8000 => 2,
        0x8001..=0x80_0000 => 3,
        _ => 4,
    }
}

/// The low `len` bytes of `number`; `len` is 1 to 4.
#[inline]
pub fn truncate(number: u64, len: usize) -> u32 {
    let keep = 8 * len.clamp(1, 4) as u32;
    (number as u32) & (u32::MAX >> (32 - keep))
}

/// Appends the low `len` bytes of `number`, big endian; `len` is 1 to 4.
#[inline]
pub(crate) fn put(buf: &mut Vec<u8>, number: u64, len: usize) {
    let bytes = (number as u32).to_be_bytes();
    buf.extend_from_slice(&bytes[4 - len.clamp(1, 4)..]);
}

/// The number nearest to `expected` whose low `len` bytes are `truncated` (RFC 9000 A.3); `expected` is one above
/// the largest number that was authenticated in the space, 0 at first.
#[inline]
pub fn expand(truncated: u32, len: usize, expected: u64) -> u64 {
    let window = 1u64 << (8 * len.clamp(1, 4));
    let half = window / 2;
    let candidate = expected & !(window - 1) | u64::from(truncated) & (window - 1);
    if candidate.saturating_add(half) <= expected && candidate <= VARINT_MAX - window {
        candidate + window
    } else if candidate > expected.saturating_add(half) && candidate >= window {
        candidate - window
    } else {
        candidate
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rfc9000_a2_lengths() {
        // RFC 9000 17.1-2
        assert_eq!(len_for(0xac_5c02, Some(0xab_e8b3)), 2);
        assert_eq!(len_for(0xac_e8fe, Some(0xab_e8b3)), 3);
        assert_eq!((len_for(0, None), len_for(127, None), len_for(128, None)), (1, 1, 2));
        assert_eq!(len_for(VARINT_MAX, Some(0)), 4);
        // The last distance that each size covers.
        for (len, most) in [(1, 0x80_u64), (2, 0x8000), (3, 0x80_0000)] {
            assert_eq!((len_for(5 + most, Some(5)), len_for(6 + most, Some(5))), (len, len + 1));
        }
    }

    #[test]
    fn rfc9000_a3_expansion() {
        assert_eq!(expand(0x9b32, 2, 0xa82f_30ea + 1), 0xa82f_9b32);
        assert_eq!(truncate(0xa82f_9b32, 2), 0x9b32);
        assert_eq!(expand(0xff, 1, 0), 0xff);
        assert_eq!(expand(0, 1, VARINT_MAX), VARINT_MAX - 255);
    }

    proptest! {
        #[test]
        fn recovered_by_any_peer_that_saw_what_was_acked(
            acked in 0..VARINT_MAX / 2,
            (ahead, shift) in (0u64..1 << 31, 0u32..31),
            seen in 0u64..1 << 31,
        ) {
            // RFC 9000 17.1-1, 17.1-2
            let ahead = 1 + (ahead >> shift);
            let number = acked + ahead;
            let len = len_for(number, Some(acked));
            let expected = acked + 1 + seen.min(ahead - 1);
            prop_assert_eq!(expand(truncate(number, len), len, expected), number);
        }

        #[test]
        fn stays_a_packet_number(truncated: u32, len in 1usize..=4, expected in 0..=VARINT_MAX) {
            prop_assert!(expand(truncated, len, expected) <= VARINT_MAX);
        }
    }
}
