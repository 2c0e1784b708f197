//! What arrives on a lent path: opened, its own frames taken in, the others handed over.

use std::ops::Range;
use std::vec::Drain;

use bytes::{Bytes, BytesMut};
use plait_base::observe::{DropReason, TraceEvent};
use plait_base::{Instant, StreamId, TransportError, Violation};
use plait_path::Eliciting;
use plait_wire::frame::{Frame, Frames, Stream, types};
use plait_wire::header::PacketKind;

use super::lent::{LentPath, ReturnReason, Scratch, ToTell};
use super::messages::{ArrivedRun, Found, HeldPacket, News, UnreadTrain};
use crate::connection::paths::arrival::PathOpener;
use crate::connection::receive::acked::ack_report;
use crate::connection::receive::bulk::{BulkRead, PlacedStream, RunSink, StreamRun};
use crate::connection::receive::dispatch::{Reach, reach};
use crate::connection::receive::open::Refusal;
use crate::connection::receive::opened::TrainPacket;
use crate::connection::receive::train::{is_short, open_all};
use crate::connection::receive::{Arrival, Ending, Envelope};
use crate::io::{Input, InputKind};

/// Datagrams that wait with a path that goes back, at most; more are dropped as a network would.
const MAX_UNREAD_INPUTS: usize = 256;

impl RunSink<Range<usize>> for Vec<Found> {
    fn on_run(
        &mut self,
        id: StreamId,
        range: Range<u64>,
        fin: bool,
        pieces: Drain<'_, Range<usize>>,
    ) -> Result<(), Violation> {
        self.push(Found::Run { id, range, fin, pieces: pieces.collect() });
        Ok(())
    }
}

/// Where `part` lies in `train`, of which it is a part.
fn place_in(train: &[u8], part: &[u8]) -> Range<usize> {
    let start = part.as_ptr().addr().saturating_sub(train.as_ptr().addr());
    start..start + part.len()
}

/// What the frames of a packet are, before any of them was taken in.
struct Contents {
    eliciting: Eliciting,
    /// How far the farthest of them reaches.
    reach: Reach,
    /// Bytes of the application; none where there are none of its frames.
    stream_bytes: Option<u64>,
    /// The peer closes.
    closes: bool,
}

impl Contents {
    fn of(payload: &[u8], at: &Arrival) -> Result<Self, TransportError> {
        let mut contents = Self { eliciting: Eliciting::No, reach: Reach::OwnPath, stream_bytes: None, closes: false };
        for frame in Frames::in_packet(payload, PacketKind::OneRtt) {
            let frame = frame?;
            if types::is_ack_eliciting(frame.frame_type()) {
                contents.eliciting = Eliciting::Yes;
            }
            contents.reach = contents.reach.max(reach(&frame, at.path));
            match &frame {
                Frame::Stream(f) => {
                    *contents.stream_bytes.get_or_insert(0) += f.data.len() as u64;
                }
                Frame::Datagram(_) => {
                    contents.stream_bytes.get_or_insert(0);
                }
                Frame::Close(_) => contents.closes = true,
                _ => {}
            }
        }
        Ok(contents)
    }
}

impl ToTell {
    fn trace_received(&mut self, at: &Arrival) {
        let (path, space, number, bytes) = (at.path, at.space, at.number, at.bytes as u16);
        self.traces.push((at.now, TraceEvent::PacketReceived { path, space, number, bytes }));
    }
}

impl LentPath {
    /// Takes in datagrams that came for one of the connection's paths. Returns the memory that they came in where it was taken
    /// as a whole, as [`Connection::handle_datagram`](crate::Connection::handle_datagram) does.
    pub fn handle_datagram(&mut self, now: Instant, input: Input) -> Option<Bytes> {
        if self.why_back.is_some() {
            if self.unread.inputs.len() < MAX_UNREAD_INPUTS {
                self.unread.inputs.push(input);
            }
            return None;
        }
        if input.kind != InputKind::Packets || input.path != self.id() || !is_short(&input.data) {
            if !self.is_crowded() {
                self.tell(News::Stray { now, input });
            }
            return None;
        }
        let Input { path, tuple, ecn, data, segment_bytes, .. } = input;
        let bytes = data.len() as u64;
        let envelope = Envelope { path, tuple, ecn, bytes, place: None };
        if self.path.is_at(&tuple) {
            self.path.on_datagram(&tuple, bytes);
        }
        let memory = self.read_train(now, &envelope, data, segment_bytes.max(1));
        self.to_tell.is_due = true;
        self.check_keys();
        Some(memory)
    }

    fn read_train(&mut self, now: Instant, envelope: &Envelope, mut train: BytesMut, segment_bytes: usize) -> Bytes {
        let mut packets = std::mem::take(&mut self.scratch.packets);
        let Self { path, keys, terms, .. } = self;
        let mut opener = PathOpener::new(path, &mut keys.keys, now, terms.guard);
        open_all(&mut train, segment_bytes, terms.short, &mut opener, &mut packets, |_, _| ());
        let mut at = Arrival::of_train(now, envelope, &train, self.terms.short);
        // Only an address that the path is known to have is its own; the others are for the connection, once a packet proves
        // to be the peer's.
        let is_here = self.path.tuple() == at.tuple;
        let mut read = 0;
        while let Some(rest) = packets.get(read..).filter(|rest| !rest.is_empty()) {
            read += match (rest[0].opened.is_ok(), is_here) {
                (true, false) => {
                    self.go_back(ReturnReason::PathMatter);
                    0
                }
                (true, true) => self.read_some(&mut at, rest, &mut train),
                (false, _) => self.on_unopened(&at, &rest[0], &train),
            };
            if self.why_back.is_some() {
                break;
            }
        }
        let memory = train.freeze();
        self.tell_found(now, &memory);
        if read < packets.len() {
            let packets = packets.split_off(read);
            let bytes = packets.iter().map(|packet| packet.place.len() as u64).sum();
            self.unread.train = Some(UnreadTrain { at, bytes, packets, memory: memory.clone() });
        }
        packets.clear();
        self.scratch.packets = packets;
        memory
    }

    /// Reads one packet that was opened, or several of stream data; how many.
    fn read_some(&mut self, at: &mut Arrival, packets: &[TrainPacket], train: &mut BytesMut) -> usize {
        let Self { path, scratch, to_tell, terms, .. } = self;
        let largest = path.receive.largest();
        let is_newest = |number| largest.is_none_or(|largest| number > largest);
        let Scratch { pieces, found, .. } = scratch;
        let mut run = StreamRun::new(pieces);
        let (bulk, read) = BulkRead::read(
            at,
            (packets, train),
            |_, number| is_newest(number),
            |at| {
                if terms.is_observed {
                    to_tell.trace_received(at);
                }
            },
            |train, frame| run.gather(frame, train, found),
        );
        let read = read.and_then(|()| run.hand_over(found));
        debug_assert!(read.is_ok(), "nothing is checked before the streams are");
        if bulk.count > 0 {
            self.note(at, bulk.numbers(at), Eliciting::Yes, (bulk.bytes, Some(bulk.stream_bytes)), true);
            return bulk.count as usize;
        }
        let Some((number, datagram, payload)) = packets.first().and_then(|packet| packet.read(train)) else {
            return 1;
        };
        at.bytes = datagram.len() as u64;
        at.take_spin(datagram);
        if path.receive.is_duplicate(number) {
            let (now, bytes) = (at.now, datagram.len());
            self.observe(now, || TraceEvent::PacketDropped { bytes, why: DropReason::Duplicate });
            return 1;
        }
        (at.number, at.newest) = (number, is_newest(number));
        match self.read_packet(at, payload, train) {
            Ok(()) => usize::from(self.why_back.is_none()),
            Err(error) => {
                self.go_back(ReturnReason::Fault(error));
                1
            }
        }
    }

    /// Takes in the frames of a packet that are its path's own, and hands over the packet where there are others. One that is
    /// about paths sends the path back, and is read there.
    fn read_packet(&mut self, at: &Arrival, payload: &[u8], train: &[u8]) -> Result<(), TransportError> {
        let Contents { eliciting, reach: farthest, stream_bytes, closes } = Contents::of(payload, at)?;
        if farthest == Reach::Paths {
            self.go_back(ReturnReason::PathMatter);
            return Ok(());
        }
        if self.terms.is_observed {
            self.to_tell.trace_received(at);
        }
        let mut pieces = std::mem::take(&mut self.scratch.pieces);
        let mut run = StreamRun::new(&mut pieces);
        for frame in Frames::in_packet(payload, PacketKind::OneRtt) {
            let frame = frame?;
            match &frame {
                Frame::Ack(ack) if reach(&frame, at.path) == Reach::OwnPath => {
                    let report = ack_report(ack, self.terms.peer_ack_exponent, at.path);
                    self.take_ack(at.now, &report, ack.ranges());
                }
                Frame::Stream(Stream { id, offset, fin, data }) if farthest == Reach::Stream => {
                    let data = place_in(train, data);
                    let frame = PlacedStream { id: *id, offset: *offset, fin: *fin, data: data.clone() };
                    run.add(&frame, data, &mut self.scratch.found)?;
                }
                Frame::ImmediateAck => self.path.receive.hasten_ack(),
                _ => {}
            }
        }
        run.hand_over(&mut self.scratch.found)?;
        self.scratch.pieces = pieces;
        if matches!(self.why_back, Some(ReturnReason::Fault(_))) {
            return Ok(());
        }
        if farthest == Reach::Connection {
            self.scratch.found.push(Found::Packet { at: *at, payload: place_in(train, payload) });
        }
        self.note(at, at.number..at.number + 1, eliciting, (at.bytes, stream_bytes), at.newest);
        if closes {
            // RFC 9000 10.2.2: nothing leaves any more
            self.go_back(ReturnReason::Closed);
        }
        Ok(())
    }

    /// Packets were read: they are acknowledged, and the path is known to work.
    fn note(
        &mut self,
        at: &Arrival,
        numbers: Range<u64>,
        eliciting: Eliciting,
        (bytes, stream_bytes): (u64, Option<u64>),
        is_newest: bool,
    ) {
        let Self { path, terms, .. } = self;
        if eliciting == Eliciting::Yes && terms.side.is_client() {
            path.expect_more(at.now);
        }
        path.on_packets_received(at.now, numbers, eliciting, at.ecn, bytes, stream_bytes);
        if is_newest {
            path.on_newest_packet(at.now, &at.tuple, at.dcid, at.spin);
        }
        self.to_tell.heard_at = Some(at.now);
        self.active_at = at.now;
    }

    /// Tells what was found in a train, in the order in which it came.
    fn tell_found(&mut self, now: Instant, memory: &Bytes) {
        let mut found = std::mem::take(&mut self.scratch.found);
        let mut runs = Vec::new();
        for one in found.drain(..) {
            match one {
                Found::Run { id, range, fin, pieces } => {
                    let pieces = pieces.into_iter().map(|place| memory.slice(place)).collect();
                    runs.push(ArrivedRun { id, range, fin, pieces });
                }
                Found::Packet { at, payload } => {
                    if !runs.is_empty() {
                        self.tell(News::Runs { now, runs: std::mem::take(&mut runs) });
                    }
                    self.tell(News::Packet(HeldPacket { at, payload: memory.slice(payload) }));
                }
            }
        }
        if !runs.is_empty() {
            self.tell(News::Runs { now, runs });
        }
        self.scratch.found = found;
    }

    /// A datagram that did not open may be a stateless reset: the connection knows the tokens.
    fn on_unopened(&mut self, at: &Arrival, packet: &TrainPacket, train: &[u8]) -> usize {
        let datagram = train.get(packet.place.clone()).unwrap_or_default();
        let why = match packet.opened.as_ref().map_err(|error| Refusal::from(*error)) {
            Err(Refusal::Close(error)) => {
                self.go_back(ReturnReason::Fault(error));
                return 1;
            }
            Err(Refusal::Drop(why)) => why,
            Ok(_) => DropReason::Malformed,
        };
        if !self.is_crowded() {
            let (now, ending, bytes) = (at.now, Ending::of(at.tuple, datagram), datagram.len());
            self.tell(News::Unread { now, ending, bytes, why });
        }
        1
    }
}
