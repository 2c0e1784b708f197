//! For tests: packets of frames without protection, and a reader for them.

use bytes::Bytes;
use plait_base::{Dir, StreamId, Violation};
use plait_wire::{FrameWriter, SentFrame};

use crate::Streams;

/// What a packet of `room` bytes carries after `fill`.
pub(crate) fn packet(room: usize, fill: impl FnOnce(&mut FrameWriter<'_>)) -> (Bytes, Vec<SentFrame>) {
    let (mut buf, mut carried) = (Vec::new(), Vec::new());
    fill(&mut FrameWriter::new(&mut buf, room, &mut carried));
    assert!(buf.len() <= room, "written past the end");
    (Bytes::from(buf), carried)
}

/// Takes a varint off the front.
pub(crate) fn varint(data: &mut Bytes) -> u64 {
    let len = 1 << (data[0] >> 6);
    let bytes = data.split_to(len);
    bytes.iter().skip(1).fold(u64::from(bytes[0] & 0x3f), |v, &b| v << 8 | u64::from(b))
}

/// One STREAM frame as read from a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) id: StreamId,
    pub(crate) offset: u64,
    pub(crate) fin: bool,
    pub(crate) data: Bytes,
}

/// Reads a STREAM frame whose type was taken off already.
pub(crate) fn stream_frame(kind: u64, packet: &mut Bytes) -> Seen {
    let id = StreamId(varint(packet));
    let offset = if kind & 4 != 0 { varint(packet) } else { 0 };
    let len = if kind & 2 != 0 { varint(packet) as usize } else { packet.len() };
    Seen { id, offset, fin: kind & 1 != 0, data: packet.split_to(len) }
}

/// Hands a packet's frames to `to`; the STREAM frames among them.
pub(crate) fn deliver(mut packet: Bytes, to: &mut Streams) -> Result<Vec<Seen>, Violation> {
    let mut seen = Vec::new();
    while !packet.is_empty() {
        let kind = varint(&mut packet);
        let mut next = || varint(&mut packet);
        match kind {
            0 => {}
            0x04 => to.on_reset_stream(StreamId(next()), next(), next())?,
            0x05 => to.on_stop_sending(StreamId(next()), next())?,
            0x08..=0x0f => {
                let frame = stream_frame(kind, &mut packet);
                to.on_stream(frame.id, frame.offset, frame.fin, frame.data.clone())?;
                seen.push(frame);
            }
            0x10 => to.on_max_data(next()),
            0x11 => to.on_max_stream_data(StreamId(next()), next())?,
            0x12 => to.on_max_streams(Dir::Bi, next())?,
            0x13 => to.on_max_streams(Dir::Uni, next())?,
            0x14 => to.on_data_blocked(next()),
            0x15 => to.on_stream_data_blocked(StreamId(next()), next())?,
            0x16 => to.on_streams_blocked(Dir::Bi, next())?,
            0x17 => to.on_streams_blocked(Dir::Uni, next())?,
            other => panic!("unexpected frame {other:#x}"),
        }
    }
    Ok(seen)
}
