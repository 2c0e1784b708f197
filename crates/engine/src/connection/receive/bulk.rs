//! Packets of a train that bring stream data and nothing else, in order: what holds for the first of them holds for those
//! behind it, and what they say of their path is taken in once.

use std::ops::Range;
use std::vec::Drain;

use bytes::Bytes;
use plait_base::observe::TraceEvent;
use plait_base::{StreamId, TransportError, Violation};
use plait_stream::Streams;
use plait_wire::frame::{Frame, Stream};

use super::Arrival;
use super::opened::TrainPacket;
use crate::connection::Connection;
use crate::connection::events::Events;

/// Takes in what came for streams, in pieces of some kind.
pub(crate) trait RunSink<P> {
    /// STREAM frames of one stream, each of which goes on where the one before ended: see [`Streams::on_stream_run`].
    fn on_run(&mut self, id: StreamId, range: Range<u64>, fin: bool, pieces: Drain<'_, P>) -> Result<(), Violation>;
}

impl RunSink<Bytes> for Streams {
    fn on_run(
        &mut self,
        id: StreamId,
        range: Range<u64>,
        fin: bool,
        pieces: Drain<'_, Bytes>,
    ) -> Result<(), Violation> {
        self.on_stream_run(id, range, fin, pieces)
    }
}

/// A STREAM frame whose data lies at a place of the memory that it came in.
#[derive(Clone, Debug)]
pub(crate) struct PlacedStream {
    pub(crate) id: StreamId,
    pub(crate) offset: u64,
    pub(crate) fin: bool,
    pub(crate) data: Range<usize>,
}

impl PlacedStream {
    /// True where `next` goes on in the stream and in memory, and neither of them ends the stream: the end may break rules of its own.
    #[inline]
    fn is_followed_by(&self, next: &Self) -> bool {
        next.id == self.id
            && next.offset == self.offset + self.data.len() as u64
            && self.data.end <= next.data.start
            && !self.fin
            && !next.fin
    }
}

/// STREAM frames of one stream, each of which goes on where the one before ended.
pub(crate) struct StreamRun<'a, P> {
    id: StreamId,
    range: Range<u64>,
    fin: bool,
    pieces: &'a mut Vec<P>,
}

impl<'a, P> StreamRun<'a, P> {
    /// Nothing so far; `pieces` is memory to work in.
    pub(crate) fn new(pieces: &'a mut Vec<P>) -> Self {
        Self { id: StreamId(0), range: 0..0, fin: false, pieces }
    }

    #[inline]
    fn goes_on(&self, frame: &PlacedStream) -> bool {
        frame.id == self.id && frame.offset == self.range.end && !self.fin && !frame.fin
    }

    /// Takes a frame in, whose data is `piece`. What does not go on is handed over first, and so is what comes before a
    /// stream's end: the end may break rules of its own.
    #[inline]
    pub(crate) fn add(
        &mut self,
        frame: &PlacedStream,
        piece: P,
        sink: &mut impl RunSink<P>,
    ) -> Result<(), TransportError> {
        if !self.goes_on(frame) {
            self.hand_over(sink)?;
            (self.id, self.range) = (frame.id, frame.offset..frame.offset);
        }
        self.range.end += frame.data.len() as u64;
        self.fin = frame.fin;
        self.pieces.push(piece);
        Ok(())
    }

    /// Gives the sink what was taken in.
    pub(crate) fn hand_over(&mut self, sink: &mut impl RunSink<P>) -> Result<(), TransportError> {
        if self.pieces.is_empty() {
            return Ok(());
        }
        let Self { id, range: Range { start, end }, fin, .. } = *self;
        let read = sink.on_run(id, start..end, fin, self.pieces.drain(..));
        read.map_err(|violation| in_stream_frame(violation, id, start, fin))
    }
}

impl StreamRun<'_, Range<usize>> {
    /// Takes in a frame of `train`. Its data moves to where that of the one before ended, over heads and tags that nobody reads
    /// any more: a run is one piece then.
    pub(crate) fn gather(
        &mut self,
        frame: &PlacedStream,
        train: &mut [u8],
        sink: &mut impl RunSink<Range<usize>>,
    ) -> Result<(), TransportError> {
        let goes_on = self.goes_on(frame);
        match self.pieces.last_mut().filter(|_| goes_on) {
            Some(last) if last.end <= frame.data.start && frame.data.end <= train.len() => {
                train.copy_within(frame.data.clone(), last.end);
                last.end += frame.data.len();
                self.range.end += frame.data.len() as u64;
                Ok(())
            }
            _ => self.add(frame, frame.data.clone(), sink),
        }
    }
}

/// What a STREAM frame broke.
pub(crate) fn in_stream_frame(violation: Violation, id: StreamId, offset: u64, fin: bool) -> TransportError {
    let frame_type = Frame::Stream(Stream { id, offset, fin, data: &[] }).frame_type();
    TransportError::from(violation).in_frame(frame_type)
}

/// Packets of one STREAM frame each that were read together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BulkRead {
    pub(crate) count: u64,
    /// Sum of their datagrams.
    pub(crate) bytes: u64,
    pub(crate) stream_bytes: u64,
}

impl BulkRead {
    /// Reads packets from the first on, as long as each is one STREAM frame and numbered next to the one before, the first as
    /// `is_newest` says; `at` tells of the last of them. `on_packet` hears of each, `take` of its frame.
    #[inline]
    pub(crate) fn read<M: AsRef<[u8]>>(
        at: &mut Arrival,
        (packets, train): (&[TrainPacket], &mut M),
        is_newest: impl Fn(&Arrival, u64) -> bool,
        mut on_packet: impl FnMut(&Arrival),
        mut take: impl FnMut(&mut M, &PlacedStream) -> Result<(), TransportError>,
    ) -> (Self, Result<(), TransportError>) {
        let mut done = Self::default();
        for packet in packets {
            let Some(frame) = done.next(at, packet, train.as_ref(), &is_newest) else { break };
            on_packet(at);
            if let Err(error) = take(train, &frame) {
                return (done, Err(error));
            }
        }
        (done, Ok(()))
    }

    /// The frame of the next packet, if that is one STREAM frame and numbered next to the one before.
    #[inline(always)]
    fn next(
        &mut self,
        at: &mut Arrival,
        packet: &TrainPacket,
        train: &[u8],
        is_newest: impl Fn(&Arrival, u64) -> bool,
    ) -> Option<PlacedStream> {
        let (number, datagram, payload) = packet.read(train)?;
        let Stream { id, offset, fin, data } = Stream::alone_in(payload)?;
        let is_next = if self.count > 0 { number == at.number + 1 } else { is_newest(at, number) };
        if !is_next {
            return None;
        }
        self.count += 1;
        at.number = number;
        at.bytes = datagram.len() as u64;
        at.take_spin(datagram);
        self.bytes += at.bytes;
        self.stream_bytes += data.len() as u64;
        // The frame is all of the payload, and its data the frame's end.
        let end = packet.payload_end();
        Some(PlacedStream { id, offset, fin, data: end - data.len()..end })
    }

    /// Their numbers, where `at` tells of the last.
    pub(crate) fn numbers(&self, at: &Arrival) -> Range<u64> {
        at.number + 1 - self.count..at.number + 1
    }
}

/// Room to work in; empty between two trains.
#[derive(Default)]
pub(super) struct BulkRoom {
    pieces: Vec<Bytes>,
    found: Vec<PlacedStream>,
}

/// Reads the first packets of a train in bulk while they are opened, when the processor has their bytes at hand and nobody else
/// holds their memory: what goes on in a stream becomes one piece, by which reassembly, reader and application have to do once
/// what else they do for each packet.
pub(super) struct Front<'a> {
    at: &'a mut Arrival,
    /// Largest number that the path received before.
    largest: Option<u64>,
    bulk: BulkRead,
    found: &'a mut Vec<PlacedStream>,
    is_over: bool,
}

impl<'a> Front<'a> {
    pub(super) fn new(at: &'a mut Arrival, largest: Option<u64>, room: &'a mut BulkRoom) -> Self {
        Self { at, largest, bulk: BulkRead::default(), found: &mut room.found, is_over: false }
    }

    /// The next packet of `train`; what follows it there is not opened yet.
    #[inline]
    pub(super) fn read(&mut self, train: &mut [u8], packet: &TrainPacket) {
        if self.is_over {
            return;
        }
        let Self { at, largest, bulk, found, .. } = self;
        let is_newest = |_: &Arrival, number| largest.is_none_or(|largest| number > largest);
        let Some(frame) = bulk.next(at, packet, train, is_newest) else {
            self.is_over = true;
            return;
        };
        match found.last_mut() {
            // Its data moves to where that of the one before ended, over heads and tags that nobody reads any more.
            Some(last) if last.is_followed_by(&frame) && frame.data.end <= train.len() => {
                let bytes = frame.data.len();
                train.copy_within(frame.data, last.data.end);
                last.data.end += bytes;
            }
            _ => found.push(frame),
        }
    }

    /// Which packets it read, of which its arrival is the last.
    pub(super) fn finish(self) -> BulkRead {
        self.bulk
    }
}

impl BulkRoom {
    /// Gives the streams what was found in packets that lie in `memory` now.
    fn hand_over(&mut self, memory: &Bytes, streams: &mut Streams) -> Result<(), TransportError> {
        self.found.drain(..).try_for_each(|PlacedStream { id, offset, fin, data }| {
            let range = offset..offset + data.len() as u64;
            let read = streams.on_stream_run(id, range, fin, [memory.slice(data)]);
            read.map_err(|violation| in_stream_frame(violation, id, offset, fin))
        })
    }
}

impl Connection {
    /// Reads packets from the first on, as long as each is one STREAM frame and numbered next to the one before, above all that
    /// came earlier, and came to where the path is. Says how many; others are read one by one. `front` are those that were
    /// read while they were opened, of which `at` is the last.
    #[inline(never)]
    pub(super) fn read_bulk(
        &mut self,
        at: &mut Arrival,
        packets: &[TrainPacket],
        memory: &Bytes,
        front: BulkRead,
    ) -> usize {
        let Self { receive, events, paths, streams, lifecycle, .. } = self;
        let (bulk, read) = if front.count > 0 {
            if events.is_observed() {
                for (number, packet) in front.numbers(at).zip(packets) {
                    trace_received(events, &Arrival { number, bytes: packet.place.len() as u64, ..*at });
                }
            }
            (front, receive.bulk.hand_over(memory, streams))
        } else if lifecycle.is_open() && paths.is_bulk_path(at) {
            let mut run = StreamRun::new(&mut receive.bulk.pieces);
            let (bulk, read) = BulkRead::read(
                at,
                (packets, &mut &**memory),
                |at, number| paths.is_newest(at, number),
                |at| trace_received(events, at),
                |_, frame| run.add(frame, memory.slice(frame.data.clone()), streams),
            );
            let read = read.and_then(|()| run.hand_over(streams));
            receive.bulk.pieces.clear();
            (bulk, read)
        } else {
            return 0;
        };
        match read {
            Ok(()) if bulk.count == 0 => {}
            Ok(()) => {
                at.newest = true;
                self.paths.on_bulk_received(at, bulk.numbers(at), bulk.bytes, bulk.stream_bytes);
                self.lifecycle.on_heard(at.now, self.paths.table.max_pto());
                self.paths.on_newest_packet(at);
                self.on_path_news(at.now);
            }
            Err(error) => self.close_with(at.now, error),
        }
        bulk.count as usize
    }
}

#[inline]
fn trace_received(events: &mut Events, at: &Arrival) {
    let (path, space, number, bytes) = (at.path, at.space, at.number, at.bytes as u16);
    events.observe(at.now, || TraceEvent::PacketReceived { path, space, number, bytes });
}
