//! CRYPTO: a piece of the TLS handshake (RFC 9000 19.6).

use plait_base::Violation;

use super::stream::{check_end, fit_prefixed};
use super::{put_varints, types, varints_size};
use crate::sink::Sink;
use crate::varint::{self, Reader};

/// CRYPTO.
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

    fn fields(&self) -> [u64; 3] {
        [types::CRYPTO, self.offset, self.data.len() as u64]
    }

    /// Writes the frame.
    pub fn encode<S: Sink>(&self, out: &mut S) {
        put_varints(out, &self.fields());
        out.put_bytes(self.data);
    }

    /// Bytes that [`Crypto::encode`] writes.
    pub fn size(&self) -> usize {
        varints_size(&self.fields()) + self.data.len()
    }

    /// How many bytes of data at `offset`, up to `wanted`, a frame holds in `room_bytes`; none when not even an
    /// empty frame fits.
    pub fn fit(offset: u64, wanted: usize, room_bytes: usize) -> Option<usize> {
        fit_prefixed(room_bytes.checked_sub(1 + varint::size(offset))?, wanted)
    }

    /// Writes all that comes before `len` bytes of data; the caller writes them behind it.
    pub fn encode_head<S: Sink>(out: &mut S, offset: u64, len: usize) {
        put_varints(out, &[types::CRYPTO, offset, len as u64]);
    }
}
