//! DATAGRAM: application data that is sent once (RFC 9221 4).

use plait_base::Violation;

use super::{put_varints, types, varints_size};
use crate::sink::Sink;
use crate::varint::{self, Reader};

/// DATAGRAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// The bytes, possibly none.
    pub data: &'a [u8],
    /// Bytes of the whole frame as received, which max_datagram_frame_size limits; not used in writing.
    pub frame_bytes: usize,
}

impl<'a> Datagram<'a> {
    /// A datagram to write.
    pub fn new(data: &'a [u8]) -> Self {
        Self { data, frame_bytes: Self::size_for(data.len()) }
    }

    pub(super) fn decode(r: &mut Reader<'a>, frame_type: u64) -> Result<Self, Violation> {
        let before = r.remaining();
        let data = if frame_type == types::DATAGRAM_LEN { r.prefixed()? } else { r.rest() };
        Ok(Self { data, frame_bytes: 1 + before - r.remaining() })
    }

    /// Writes the frame with its length.
    pub fn encode<S: Sink>(&self, out: &mut S) {
        put_varints(out, &self.fields());
        out.put_bytes(self.data);
    }

    /// Writes the frame without a length: it must be the last of its packet.
    pub fn encode_to_end<S: Sink>(&self, out: &mut S) {
        out.put_varint(types::DATAGRAM);
        out.put_bytes(self.data);
    }

    /// Bytes that [`Datagram::encode`] writes.
    pub fn size(&self) -> usize {
        varints_size(&self.fields()) + self.data.len()
    }

    /// Bytes of a frame with a length around `len` bytes of data.
    pub fn size_for(len: usize) -> usize {
        1 + varint::size(len as u64) + len
    }

    fn fields(&self) -> [u64; 2] {
        [types::DATAGRAM_LEN, self.data.len() as u64]
    }
}
