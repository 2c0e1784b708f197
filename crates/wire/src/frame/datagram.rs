//! DATAGRAM: application data that is sent once (RFC 9221 4).

use plait_base::Violation;

use super::{Encode, put_varints, types};
use crate::varint::{self, Reader};

/// DATAGRAM: data that is sent once, and lost with its packet.
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

    #[inline]
    pub(super) fn decode(r: &mut Reader<'a>, frame_type: u64) -> Result<Self, Violation> {
        let before = r.remaining();
        let data = if frame_type == types::DATAGRAM_LEN { r.prefixed()? } else { r.rest() };
        Ok(Self { data, frame_bytes: 1 + before - r.remaining() })
    }

    fn size_for(len: usize) -> usize {
        1 + varint::size(len as u64) + len
    }
}

impl Encode for Datagram<'_> {
    fn size(&self) -> usize {
        Self::size_for(self.data.len())
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put_head(out, Some(self.data.len()));
        out.extend_from_slice(self.data);
    }
}

/// Appends the type and the length; without a length the data must reach to the end of the packet (RFC 9221 4).
#[inline]
pub(crate) fn put_head(out: &mut Vec<u8>, len: Option<usize>) {
    match len {
        Some(len) => put_varints(out, &[types::DATAGRAM_LEN, len as u64]),
        None => varint::put(out, types::DATAGRAM),
    }
}
