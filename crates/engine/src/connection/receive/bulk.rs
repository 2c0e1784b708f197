//! Packets of a train that bring stream data and nothing else, in order: what holds for the first of them holds for those
//! behind it, and what they say of their path is taken in once.

use std::ops::Range;

use bytes::Bytes;
use plait_base::observe::TraceEvent;
use plait_base::{StreamId, TransportError};
use plait_stream::Streams;
use plait_wire::frame::{Frame, Stream};

use super::Arrival;
use super::opened::TrainPacket;
use crate::connection::Connection;

/// STREAM frames of one stream, each of which goes on where the one before ended.
struct StreamRun<'a> {
    id: StreamId,
    range: Range<u64>,
    fin: bool,
    pieces: &'a mut Vec<Bytes>,
}

impl StreamRun<'_> {
    /// Takes a frame in, whose data lies in `memory`. What does not go on is handed over first, and so is what comes before a
    /// stream's end: the end may break rules of its own.
    fn add(&mut self, frame: &Stream<'_>, memory: &Bytes, streams: &mut Streams) -> Result<(), TransportError> {
        let goes_on = frame.id == self.id && frame.offset == self.range.end && !self.fin && !frame.fin;
        if !goes_on {
            self.hand_over(streams)?;
            (self.id, self.range) = (frame.id, frame.offset..frame.offset);
        }
        self.range.end += frame.data.len() as u64;
        self.fin = frame.fin;
        self.pieces.push(memory.slice_ref(frame.data));
        Ok(())
    }

    /// Gives the streams what was taken in.
    fn hand_over(&mut self, streams: &mut Streams) -> Result<(), TransportError> {
        if self.pieces.is_empty() {
            return Ok(());
        }
        let Self { id, range: Range { start, end }, fin, .. } = *self;
        let read = streams.on_stream_run(id, start..end, fin, self.pieces.drain(..));
        read.map_err(|violation| {
            let frame_type = Frame::Stream(Stream { id, offset: start, fin, data: &[] }).frame_type();
            TransportError::from(violation).in_frame(frame_type)
        })
    }
}

impl Connection {
    /// Reads packets from the first on, as long as each is one STREAM frame and numbered next to the one before, above all that
    /// came earlier, and came to where the path is. Says how many; others are read one by one.
    pub(super) fn read_bulk(&mut self, at: &mut Arrival, packets: &[TrainPacket], memory: &Bytes) -> usize {
        if !self.lifecycle.is_open() || !self.paths.is_bulk_path(at) {
            return 0;
        }
        let is_observed = self.events.is_observed();
        let mut pieces = std::mem::take(&mut self.receive.pieces);
        let mut run = StreamRun { id: StreamId(0), range: 0..0, fin: false, pieces: &mut pieces };
        let (mut count, mut bytes, mut stream_bytes, mut fault) = (0, 0, 0, None);
        for packet in packets {
            let Some((number, datagram, payload)) = packet.read(memory) else { break };
            let Some(frame) = Stream::alone_in(payload) else { break };
            let is_next = if count > 0 { number == at.number + 1 } else { self.paths.is_newest(at, number) };
            if !is_next {
                break;
            }
            count += 1;
            at.number = number;
            at.bytes = datagram.len() as u64;
            at.take_spin(datagram);
            if is_observed {
                let (path, space, bytes) = (at.path, at.space, datagram.len() as u16);
                self.events.observe(at.now, || TraceEvent::PacketReceived { path, space, number, bytes });
            }
            bytes += at.bytes;
            stream_bytes += frame.data.len() as u64;
            if let Err(error) = run.add(&frame, memory, &mut self.streams) {
                fault = Some(error);
                break;
            }
        }
        let read = fault.map_or_else(|| run.hand_over(&mut self.streams), Err);
        pieces.clear();
        self.receive.pieces = pieces;
        match read {
            Ok(()) if count == 0 => {}
            Ok(()) => {
                at.newest = true;
                self.paths.on_bulk_received(at, at.number + 1 - count..at.number + 1, bytes, stream_bytes);
                self.lifecycle.on_heard(at.now, self.paths.table.max_pto());
                self.paths.on_newest_packet(at);
                self.on_path_news(at.now);
            }
            Err(error) => self.close_with(at.now, error),
        }
        count as usize
    }
}
