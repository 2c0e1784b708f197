//! CRYPTO: a piece of the TLS handshake (RFC 9000 19.6).

use plait_base::Violation;

use super::data::fit_split;
use super::stream::check_end;
use super::{Encode, put_varints, types, varints_size};
use crate::varint::{self, Reader};

/// CRYPTO: a piece of the handshake bytes of one packet number space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crypto<'a> {
    /// Offset of the first byte in its space; `offset + data.len()` is at most 2^62 - 1.
    pub offset: u64,
    /// The bytes, possibly none.
    pub data: &'a [u8],
}

impl<'a> Crypto<'a> {
    pub(super) fn decode(r: &mut Reader<'a>) -> Result<Self, Violation> {
        let offset = r.varint()?;
        let data = r.prefixed()?;
        check_end(offset, data)?;
        Ok(Self { offset, data })
    }
}

impl Encode for Crypto<'_> {
    fn size(&self) -> usize {
        varints_size(&fields(self.offset, self.data.len())) + self.data.len()
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put_head(out, self.offset, self.data.len());
        out.extend_from_slice(self.data);
    }
}

fn fields(offset: u64, len: usize) -> [u64; 3] {
    [types::CRYPTO, offset, len as u64]
}

/// How many bytes of data at `offset`, up to `wanted`, a frame holds in `room` bytes; none when too few to be worth one.
#[inline]
pub(crate) fn fit(offset: u64, wanted: usize, room: usize) -> Option<usize> {
    fit_split(room.checked_sub(1 + varint::size(offset))?, wanted)
}

/// Appends all that comes before `len` bytes of data.
#[inline]
pub(crate) fn put_head(out: &mut Vec<u8>, offset: u64, len: usize) {
    put_varints(out, &fields(offset, len));
}
