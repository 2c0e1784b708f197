//! Variable-length integers (RFC 9000 16), and the reader of all wire fields.

use std::fmt;

use plait_base::Violation;

/// Appends `value`, which must not exceed 2^62 - 1.
#[inline]
pub fn put(buf: &mut Vec<u8>, value: u64) {
    debug_assert!(value <= plait_base::units::VARINT_MAX);
    match size(value) {
        1 => buf.push(value as u8),
        2 => buf.extend_from_slice(&((value as u16) | 0x4000).to_be_bytes()),
        4 => buf.extend_from_slice(&((value as u32) | 0x8000_0000).to_be_bytes()),
        _ => buf.extend_from_slice(&(value | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

/// Bytes that `value` takes: 1, 2, 4 or 8.
#[inline]
pub fn size(value: u64) -> usize {
    match value {
        0..=0x3f => 1,
        0x40..=0x3fff => 2,
        0x4000..=0x3fff_ffff => 4,
        _ => 8,
    }
}

/// The bytes end before the field does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncated;

impl From<Truncated> for Violation {
    fn from(_: Truncated) -> Self {
        Self::TruncatedFrame
    }
}

impl fmt::Display for Truncated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes end before the field does")
    }
}

impl std::error::Error for Truncated {}

/// Reads fields from the front of a slice, borrowing from it; a failed read takes nothing.
///
/// ```
/// use plait_wire::varint::Reader;
/// let mut r = Reader::new(&[0x7b, 0xbd, 9]);
/// assert_eq!((r.varint(), r.varint()), (Ok(15_293), Ok(9)));
/// assert!(r.varint().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads `bytes` from their start.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Reads a variable-length integer.
    ///
    /// # Errors
    /// [`Truncated`] when fewer bytes are left; then nothing is taken.
    #[inline]
    pub fn varint(&mut self) -> Result<u64, Truncated> {
        let first = *self.rest.first().ok_or(Truncated)?;
        // RFC 9000 16: the first two bits tell the length, 1, 2, 4 or 8 bytes.
        match first >> 6 {
            0 => {
                self.bytes(1)?;
                Ok(u64::from(first))
            }
            1 => Ok(u64::from(self.u16()? & 0x3fff)),
            2 => Ok(u64::from(self.u32()? & 0x3fff_ffff)),
            _ => Ok(u64::from_be_bytes(self.array()?) & plait_base::units::VARINT_MAX),
        }
    }

    /// Reads a variable-length integer of one byte; takes nothing where there is none.
    #[inline]
    pub(crate) fn one_byte_varint(&mut self) -> Option<u64> {
        let (first, rest) = self.rest.split_first().filter(|(first, _)| *first >> 6 == 0)?;
        self.rest = rest;
        Some(u64::from(*first))
    }

    /// Reads one byte.
    ///
    /// # Errors
    /// [`Truncated`] when fewer bytes are left; then nothing is taken.
    #[inline]
    pub(crate) fn u8(&mut self) -> Result<u8, Truncated> {
        let [byte] = self.array()?;
        Ok(byte)
    }

    /// Reads two bytes, big endian.
    ///
    /// # Errors
    /// [`Truncated`] when fewer bytes are left; then nothing is taken.
    #[inline]
    pub(crate) fn u16(&mut self) -> Result<u16, Truncated> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    /// Reads four bytes, big endian.
    ///
    /// # Errors
    /// [`Truncated`] when fewer bytes are left; then nothing is taken.
    #[inline]
    pub(crate) fn u32(&mut self) -> Result<u32, Truncated> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    /// Reads `n` bytes.
    ///
    /// # Errors
    /// [`Truncated`] when fewer bytes are left; then nothing is taken.
    #[inline]
    pub(crate) fn bytes(&mut self, n: usize) -> Result<&'a [u8], Truncated> {
        let (head, rest) = self.rest.split_at_checked(n).ok_or(Truncated)?;
        self.rest = rest;
        Ok(head)
    }

    /// A varint that counts bytes, then those bytes.
    #[inline]
    pub(crate) fn prefixed(&mut self) -> Result<&'a [u8], Truncated> {
        let mut ahead = *self;
        let len = ahead.varint()?;
        let bytes = ahead.bytes(usize::try_from(len).map_err(|_| Truncated)?)?;
        *self = ahead;
        Ok(bytes)
    }

    /// Reads `N` bytes, by value.
    ///
    /// # Errors
    /// [`Truncated`] when fewer bytes are left; then nothing is taken.
    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Truncated> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(Truncated)?;
        self.rest = rest;
        Ok(*head)
    }

    /// Takes all that is left.
    #[inline]
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// All that is left, without taking it.
    #[inline]
    pub(crate) fn peek(&self) -> &'a [u8] {
        self.rest
    }

    /// How many bytes are left.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// True when nothing is left.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plait_base::units::VARINT_MAX;
    use proptest::prelude::*;

    #[test]
    fn rfc9000_a1_vectors() {
        // RFC 9000 A.1: sample varint decodings
        let cases: [(&[u8], u64); 5] = [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
            (&[0x40, 0x25], 37),
        ];
        for (bytes, value) in cases {
            let mut r = Reader::new(bytes);
            assert_eq!(r.varint(), Ok(value));
            assert!(r.is_empty());
            for cut in 0..bytes.len() {
                assert_eq!(Reader::new(&bytes[..cut]).varint(), Err(Truncated));
            }
            let mut out = Vec::new();
            put(&mut out, value);
            if bytes.len() == size(value) {
                assert_eq!(out, bytes);
            }
        }
    }

    #[test]
    fn a_failed_read_takes_nothing() {
        let mut r = Reader::new(&[3, 1, 2]);
        assert_eq!(r.prefixed(), Err(Truncated));
        assert_eq!(r.bytes(4), Err(Truncated));
        assert_eq!((r.remaining(), r.rest()), (3, &[3, 1, 2][..]));
    }

    proptest! {
        #[test]
        fn round_trip(value in 0..=VARINT_MAX, shift in 0u32..62) {
            let value = value >> shift;
            let mut out = Vec::new();
            put(&mut out, value);
            prop_assert_eq!(out.len(), size(value));
            prop_assert_eq!(Reader::new(&out).varint(), Ok(value));
        }
    }
}
