//! STREAM, RESET_STREAM and STOP_SENDING (RFC 9000 19.4, 19.5, 19.8).

use plait_base::units::VARINT_MAX;
use plait_base::{StreamId, Violation};

use super::{put_varints, types, varints_size};
use crate::sink::Sink;
use crate::varint::{self, Reader};

/// STREAM: a piece of a stream's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream<'a> {
    /// Which stream.
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
pub struct StreamHead {
    /// Which stream.
    pub id: StreamId,
    /// Offset of the first byte.
    pub offset: u64,
    /// True when the stream ends with this data.
    pub fin: bool,
    /// Bytes of data; none when the data reaches to the end of the packet and no length is written.
    pub len: Option<usize>,
}

impl<'a> Stream<'a> {
    pub(super) fn decode(r: &mut Reader<'a>, frame_type: u64) -> Result<Self, Violation> {
        let id = StreamId(r.varint()?);
        let offset = if frame_type & types::STREAM_OFF != 0 { r.varint()? } else { 0 };
        let data = if frame_type & types::STREAM_LEN != 0 { r.prefixed()? } else { r.rest() };
        check_end(offset, data)?;
        Ok(Self { id, offset, fin: frame_type & types::STREAM_FIN != 0, data })
    }

    /// The type that [`Stream::encode`] writes.
    pub fn frame_type(&self) -> u64 {
        self.head().frame_type()
    }

    fn head(&self) -> StreamHead {
        StreamHead { id: self.id, offset: self.offset, fin: self.fin, len: Some(self.data.len()) }
    }

    /// Writes the frame with its length.
    pub fn encode<S: Sink>(&self, out: &mut S) {
        self.head().encode(out);
        out.put_bytes(self.data);
    }

    /// Bytes that [`Stream::encode`] writes.
    pub fn size(&self) -> usize {
        self.head().size() + self.data.len()
    }
}

impl StreamHead {
    /// Writes the head; the caller writes the data behind it.
    pub fn encode<S: Sink>(&self, out: &mut S) {
        out.put_varint(self.frame_type());
        out.put_varint(self.id.0);
        if self.offset > 0 {
            out.put_varint(self.offset);
        }
        if let Some(len) = self.len {
            out.put_varint(len as u64);
        }
    }

    /// Bytes that [`StreamHead::encode`] writes.
    pub fn size(&self) -> usize {
        let offset = if self.offset > 0 { varint::size(self.offset) } else { 0 };
        1 + varint::size(self.id.0) + offset + self.len.map_or(0, |len| varint::size(len as u64))
    }

    /// The type, 0x08 to 0x0f.
    pub fn frame_type(&self) -> u64 {
        let bit = |on: bool, bit: u64| if on { bit } else { 0 };
        types::STREAM
            | bit(self.fin, types::STREAM_FIN)
            | bit(self.len.is_some(), types::STREAM_LEN)
            | bit(self.offset > 0, types::STREAM_OFF)
    }

    /// How many bytes of data at `offset`, up to `wanted`, a frame with a length holds in `room_bytes`; none when
    /// not even an empty frame fits.
    pub fn fit(id: StreamId, offset: u64, wanted: usize, room_bytes: usize) -> Option<usize> {
        let without_len = Self { id, offset, fin: false, len: None }.size();
        fit_prefixed(room_bytes.checked_sub(without_len)?, wanted)
    }
}

/// How many bytes, up to `wanted`, fit in `room` together with the varint that counts them.
pub(super) fn fit_prefixed(room: usize, wanted: usize) -> Option<usize> {
    // The most that a count of each size can name; frames end far below the largest varint.
    let sizes = [(1, 0x3f), (2, 0x3fff), (4, 0x3fff_ffff)];
    sizes.into_iter().filter_map(|(count, most)| Some(wanted.min(most).min(room.checked_sub(count)?))).max()
}

/// RFC 9000 19.8: no data beyond offset 2^62 - 1.
pub(super) fn check_end(offset: u64, data: &[u8]) -> Result<(), Violation> {
    match offset.checked_add(data.len() as u64) {
        Some(end) if end <= VARINT_MAX => Ok(()),
        _ => Err(Violation::OffsetTooLarge),
    }
}

/// RESET_STREAM: the sender gives a stream up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResetStream {
    /// Which stream.
    pub id: StreamId,
    /// The application's reason.
    pub code: u64,
    /// Bytes that the stream has in all, sent or not, for flow control.
    pub final_size: u64,
}

impl ResetStream {
    pub(super) fn decode(r: &mut Reader<'_>) -> Result<Self, Violation> {
        Ok(Self { id: StreamId(r.varint()?), code: r.varint()?, final_size: r.varint()? })
    }

    fn fields(&self) -> [u64; 4] {
        [types::RESET_STREAM, self.id.0, self.code, self.final_size]
    }

    /// Writes the frame.
    pub fn encode<S: Sink>(&self, out: &mut S) {
        put_varints(out, &self.fields());
    }

    /// Bytes that [`ResetStream::encode`] writes.
    pub fn size(&self) -> usize {
        varints_size(&self.fields())
    }
}

/// STOP_SENDING: the receiver wants no more of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopSending {
    /// Which stream.
    pub id: StreamId,
    /// The application's reason.
    pub code: u64,
}

impl StopSending {
    pub(super) fn decode(r: &mut Reader<'_>) -> Result<Self, Violation> {
        Ok(Self { id: StreamId(r.varint()?), code: r.varint()? })
    }

    fn fields(&self) -> [u64; 3] {
        [types::STOP_SENDING, self.id.0, self.code]
    }

    /// Writes the frame.
    pub fn encode<S: Sink>(&self, out: &mut S) {
        put_varints(out, &self.fields());
    }

    /// Bytes that [`StopSending::encode`] writes.
    pub fn size(&self) -> usize {
        varints_size(&self.fields())
    }
}
