//! STREAM, RESET_STREAM and STOP_SENDING (RFC 9000 19.4, 19.5, 19.8).

#![allow(missing_docs)] // fields mean what the RFC's figure says of that name

use std::ops::Range;

use plait_base::units::VARINT_MAX;
use plait_base::{StreamId, Violation};

use super::{Encode, types, varint_frame};
use crate::varint::{self, Reader};

/// STREAM: a piece of a stream's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream<'a> {
    pub id: StreamId,
    /// Offset of the first byte; `offset + data.len()` is at most 2^62 - 1.
    pub offset: u64,
    /// True when the stream ends with this data.
    pub fin: bool,
    /// The bytes, possibly none.
    pub data: &'a [u8],
}

/// All of a STREAM frame that comes before its data; the data is written right behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamHead {
    pub(crate) id: StreamId,
    /// Offset of the first byte.
    pub(crate) offset: u64,
    /// True when the stream ends with this data.
    pub(crate) fin: bool,
    /// Bytes of data; none when the data reaches to the end of the packet and no length is written.
    pub(crate) len: Option<usize>,
}

impl<'a> Stream<'a> {
    #[inline]
    pub(super) fn decode(r: &mut Reader<'a>, frame_type: u64) -> Result<Self, Violation> {
        let id = StreamId(r.varint()?);
        let offset = if frame_type & types::STREAM_OFF != 0 { r.varint()? } else { 0 };
        let data = if frame_type & types::STREAM_LEN != 0 { r.prefixed()? } else { r.rest() };
        check_end(offset, data)?;
        Ok(Self { id, offset, fin: frame_type & types::STREAM_FIN != 0, data })
    }

    /// True where the first frame of a payload is a STREAM frame, as far as its type says.
    #[inline]
    pub fn begins(payload: &[u8]) -> bool {
        payload.first().is_some_and(|first| (types::STREAM..=types::STREAM_LAST).contains(&u64::from(*first)))
    }

    /// The STREAM frame that is all of a payload; none where there is anything else, or anything wrong.
    // It has one caller, once a packet: whether it is inlined there must not depend on what stands beside it.
    #[inline(always)]
    pub fn alone_in(payload: &'a [u8]) -> Option<Self> {
        if !Self::begins(payload) {
            return None;
        }
        let (&first, rest) = payload.split_first()?;
        let mut r = Reader::new(rest);
        Self::decode(&mut r, u64::from(first)).ok().filter(|_| r.remaining() == 0)
    }

    /// The type that [`Encode::encode`] writes.
    pub(crate) fn frame_type(&self) -> u64 {
        self.head().frame_type()
    }

    fn head(&self) -> StreamHead {
        StreamHead { id: self.id, offset: self.offset, fin: self.fin, len: Some(self.data.len()) }
    }
}

impl Encode for Stream<'_> {
    fn size(&self) -> usize {
        self.head().size() + self.data.len()
    }

    fn encode(&self, out: &mut Vec<u8>) {
        self.head().encode(out);
        out.extend_from_slice(self.data);
    }
}

/// A STREAM frame to write: as much of `range` as fits, from its first byte on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutStream {
    pub id: StreamId,
    /// Offsets of the data, in bytes; empty for a frame that only ends the stream.
    pub range: Range<u64>,
    /// The stream's final size in bytes, where the peer is to be told: the frame that reaches it has the FIN bit.
    pub final_size: Option<u64>,
}

impl Encode for StreamHead {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        varint::put(out, self.frame_type());
        varint::put(out, self.id.0);
        if self.offset > 0 {
            varint::put(out, self.offset);
        }
        if let Some(len) = self.len {
            varint::put(out, len as u64);
        }
    }

    #[inline]
    fn size(&self) -> usize {
        let offset = if self.offset > 0 { varint::size(self.offset) } else { 0 };
        1 + varint::size(self.id.0) + offset + self.len.map_or(0, |len| varint::size(len as u64))
    }
}

impl StreamHead {
    /// The type, 0x08 to 0x0f.
    #[inline]
    pub(crate) fn frame_type(&self) -> u64 {
        let bit = |on: bool, bit: u64| if on { bit } else { 0 };
        types::STREAM
            | bit(self.fin, types::STREAM_FIN)
            | bit(self.len.is_some(), types::STREAM_LEN)
            | bit(self.offset > 0, types::STREAM_OFF)
    }
}

/// RFC 9000 19.8: no data beyond offset 2^62 - 1.
#[inline]
pub(super) fn check_end(offset: u64, data: &[u8]) -> Result<(), Violation> {
    match offset.checked_add(data.len() as u64) {
        Some(end) if end <= VARINT_MAX => Ok(()),
        _ => Err(Violation::OffsetTooLarge),
    }
}

/// RESET_STREAM: the sender gives a stream up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResetStream {
    pub id: StreamId,
    /// The application's reason.
    pub code: u64,
    /// Bytes that the stream has in all, sent or not, for flow control.
    pub final_size: u64,
}

impl ResetStream {
    #[inline]
    pub(super) fn decode(r: &mut Reader<'_>) -> Result<Self, Violation> {
        Ok(Self { id: StreamId(r.varint()?), code: r.varint()?, final_size: r.varint()? })
    }
}

varint_frame!(ResetStream, |f| [types::RESET_STREAM, f.id.0, f.code, f.final_size]);

/// STOP_SENDING: the receiver wants no more of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopSending {
    pub id: StreamId,
    /// The application's reason.
    pub code: u64,
}

impl StopSending {
    #[inline]
    pub(super) fn decode(r: &mut Reader<'_>) -> Result<Self, Violation> {
        Ok(Self { id: StreamId(r.varint()?), code: r.varint()? })
    }
}

varint_frame!(StopSending, |f| [types::STOP_SENDING, f.id.0, f.code]);
