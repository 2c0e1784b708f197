//! Layout of the frames that carry stream and CRYPTO data: what fits, and in which form.

use std::ops::Range;

use plait_base::StreamId;
use plait_wire::{FrameWriter, varint};

pub(crate) const RESET_STREAM: u64 = 0x04;
pub(crate) const STOP_SENDING: u64 = 0x05;
pub(crate) const CRYPTO: u64 = 0x06;
const STREAM: u64 = 0x08;
const STREAM_FIN: u64 = 0x01;
const STREAM_LEN: u64 = 0x02;
const STREAM_OFF: u64 = 0x04;
pub(crate) const MAX_DATA: u64 = 0x10;
pub(crate) const MAX_STREAM_DATA: u64 = 0x11;
pub(crate) const MAX_STREAMS_BIDI: u64 = 0x12;
pub(crate) const DATA_BLOCKED: u64 = 0x14;
pub(crate) const STREAM_DATA_BLOCKED: u64 = 0x15;
pub(crate) const STREAMS_BLOCKED_BIDI: u64 = 0x16;
pub(crate) const DATAGRAM: u64 = 0x30;

/// A frame is not split so that fewer bytes than this go into a packet's tail.
const MIN_SPLIT_BYTES: u64 = 16;

/// How a piece of data goes into the room that is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// PADDING bytes before the frame, so that it ends with the packet.
    pub(crate) pad: usize,
    /// Data bytes that fit.
    pub(crate) len: u64,
    /// Whether the frame says its length.
    pub(crate) length: Length,
}

/// Whether a frame says where it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// A length field.
    Explicit,
    /// The end of the packet, which the frame reaches exactly.
    ToEnd,
}

/// Fits up to `len` bytes behind a header of `head` bytes into `room`; none when it is not worth it.
///
/// A frame goes without its length only when it takes all of the room to the last byte.
pub(crate) fn layout(room: usize, head: usize, len: u64) -> Option<Layout> {
    let space = room.checked_sub(head)? as u64;
    if len >= space {
        let worth = space == len || space >= MIN_SPLIT_BYTES;
        return worth.then_some(Layout { pad: 0, len: space, length: Length::ToEnd });
    }
    let spare = space - len;
    if spare < varint::size(len) as u64 {
        return Some(Layout { pad: spare as usize, len, length: Length::ToEnd });
    }
    Some(Layout { pad: 0, len, length: Length::Explicit })
}

/// The same for frames that always say their length (CRYPTO).
pub(crate) fn layout_explicit(room: usize, head: usize, len: u64) -> Option<u64> {
    let space = room.checked_sub(head + 1)? as u64;
    // A length below 64 takes one byte, below 2^14 two, else four.
    let one = len.min(space).min(63);
    let two = len.min(space.saturating_sub(1)).min((1 << 14) - 1);
    let four = len.min(space.saturating_sub(3));
    let best = if four >= 1 << 14 { four } else { two.max(one) };
    (best == len || best >= MIN_SPLIT_BYTES).then_some(best)
}

/// Bytes of a STREAM frame before its length field.
pub(crate) fn stream_head(id: StreamId, offset: u64) -> usize {
    1 + varint::size(id.0) + if offset > 0 { varint::size(offset) } else { 0 }
}

/// Whether a STREAM frame ends its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fin {
    /// It does.
    Yes,
    /// It does not.
    No,
}

impl Fin {
    pub(crate) fn is_yes(self) -> bool {
        self == Self::Yes
    }

    pub(crate) fn when(condition: bool) -> Self {
        if condition { Self::Yes } else { Self::No }
    }
}

/// Writes the header of a STREAM frame that carries `range` (RFC 9000 19.8); the data follows.
pub(crate) fn put_stream_head(w: &mut FrameWriter<'_>, id: StreamId, range: &Range<u64>, fin: Fin, layout: &Layout) {
    w.pad(layout.pad);
    let mut kind = STREAM;
    if fin.is_yes() {
        kind |= STREAM_FIN;
    }
    if range.start > 0 {
        kind |= STREAM_OFF;
    }
    if layout.length == Length::Explicit {
        kind |= STREAM_LEN;
    }
    w.put_varint(kind);
    w.put_varint(id.0);
    if range.start > 0 {
        w.put_varint(range.start);
    }
    if layout.length == Length::Explicit {
        w.put_varint(range.end - range.start);
    }
}

/// Writes a frame made of varints only; false when it does not fit.
pub(crate) fn put_fields(w: &mut FrameWriter<'_>, fields: &[u64]) -> bool {
    let size: usize = fields.iter().map(|&f| varint::size(f)).sum();
    if size > w.remaining() {
        return false;
    }
    fields.iter().for_each(|&f| w.put_varint(f));
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout_never_wastes_and_never_overruns() {
        for room in 0..300usize {
            for len in 0..300u64 {
                let head = 5;
                let Some(l) = layout(room, head, len) else {
                    assert!(room < head || (room - head) < len as usize && room - head < MIN_SPLIT_BYTES as usize);
                    continue;
                };
                let field = if l.length == Length::Explicit { varint::size(l.len) } else { 0 };
                let total = l.pad + head + field + l.len as usize;
                assert!(total <= room && l.len <= len);
                assert!(l.len == len || total == room);
                assert!(l.length == Length::Explicit || total == room, "a frame without length reaches the end");
            }
        }
    }

    #[test]
    fn explicit_layout_fits() {
        for room in (0..300usize).chain(16_300..16_500) {
            for len in (1..200u64).chain(16_370..16_400) {
                if let Some(l) = layout_explicit(room, 3, len) {
                    assert!(l > 0 && l <= len && 3 + varint::size(l) + l as usize <= room, "{room} {len} {l}");
                } else {
                    assert!(room < 4 + MIN_SPLIT_BYTES as usize, "{room} {len}");
                }
            }
        }
    }
}
