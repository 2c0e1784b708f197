//! Datagrams that arrive as a train do what they would have done one by one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::{Bytes, BytesMut};
use plait_base::observe::{Observer, TraceEvent};
use plait_base::{CloseCode, Dir, Instant, PathId, Random, Space, StreamId};
use plait_engine::{ConnectionError, Event, Received};
use plait_stream::{Order, Overflow, ReadError};
use plait_wire::frame::Frame;
use plait_wire::{PacketKind, varint};

use crate::puppet::{Packet, Rig, Setup, ms};
use crate::random::rounds;
use crate::violations::raw;

/// Bytes of each datagram of a train.
const SEGMENT: usize = 400;
/// Bytes of a datagram that are not frames: the short header and the tag.
const AROUND: usize = 1 + 8 + 4 + 16;
/// A train has no more datagrams than this.
const MAX_PACKETS: u64 = 24;

/// A STREAM frame to the packet's end, so long that the packet fills its datagram; and how many bytes of data that is.
fn filling(id: u64, offset: u64, fin: bool) -> (Vec<u8>, u64) {
    let head = raw(&[0x0c | u64::from(fin), id, offset], &[]);
    let len = SEGMENT - AROUND - head.len();
    // Each byte tells where it stands, so that bytes in the wrong place are seen.
    let data: Vec<u8> = (offset..).take(len).map(|at| at as u8).collect();
    ([head, data].concat(), len as u64)
}

/// Packets that a peer might send in one train: streams that go on, jump, repeat and end, and other frames between.
fn packets(random: &mut Random) -> Vec<Packet> {
    let mut next = BTreeMap::<u64, u64>::new();
    let mut number = None;
    let mut id = 0;
    (0..2 + random.below(MAX_PACKETS - 2))
        .map(|_| {
            if random.chance(0.2) {
                // Now and then one of ours that does not exist.
                let theirs = [0, 4, 8, 12, 2, 6, 10];
                id = if random.chance(0.03) { 1 + 2 * random.below(2) } else { theirs[random.below(7) as usize] };
            }
            let at = next.entry(id).or_default();
            let payload = match random.below(150) {
                0 => vec![0x01],
                1 => raw(&[0x10, 1 << 30], &[]),
                2 => raw(&[0x04, id, 1, random.below(4_000)], &[]),
                3 => raw(&[0x0c, id, (1 << 62) - 10], &[7; 40]),
                4 => raw(&[0x21, 1], &[]),
                5 => {
                    let short = raw(&[0x0e, id, *at, 20], &[3; 20]);
                    *at += 20;
                    [short, vec![0x01]].concat()
                }
                case => {
                    match case {
                        6 => *at = at.saturating_sub(random.below(900)),
                        7 => *at += random.below(900),
                        8 => *at += random.below(1 << 24),
                        _ => {}
                    }
                    let (frame, len) = filling(id, *at, random.chance(0.03));
                    *at += len;
                    frame
                }
            };
            let mut packet = Packet::one_rtt(payload).padded(SEGMENT);
            packet.number = match (number, random.below(20)) {
                (Some(last), 0) => Some(last),
                (Some(last), 1) => Some(last + 3),
                (Some(last), 2) => Some(last - 1),
                _ => None,
            };
            packet.first_bits = if random.chance(0.3) { 0x20 } else { 0 };
            number = packet.number.or(number);
            packet
        })
        .collect()
}

/// What the engine tells an observer.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<String>>>);

impl Observer for Recorder {
    fn on_event(&mut self, _now: Instant, event: &TraceEvent) {
        self.0.lock().unwrap().push(format!("{event:?}"));
    }
}

/// What can be seen of an engine from outside, after a train.
#[derive(Debug, PartialEq)]
struct Outcome {
    close: Option<CloseCode>,
    /// What the application is told; of a broken rule the violation.
    events: Vec<String>,
    /// What it sent, by frames; acks without their delay, closes without their words.
    frames: Vec<String>,
    /// What an application reads, by stream.
    read: BTreeMap<StreamId, (Vec<u8>, Result<(), ReadError>)>,
    /// Of datagrams, while the connection lives.
    received_bytes: u64,
    /// What an observer was told, where one listened and the connection lives: a run is taken in before it is found to break
    /// a rule.
    observed: Vec<String>,
}

impl Outcome {
    fn of(mut rig: Rig, observed: Vec<String>) -> Self {
        let close = rig.close_seen();
        let sent = rig.seen.iter().filter(|seen| seen.kind == PacketKind::OneRtt);
        let frames = sent.flat_map(|seen| seen.frames().iter().map(plain).collect::<Vec<_>>()).collect();
        let events = rig.events.iter().map(told).collect();
        let now = rig.now;
        let conn = rig.conn();
        let mut read = BTreeMap::new();
        for dir in [Dir::Bi, Dir::Uni] {
            while let Some(id) = conn.streams().accept(dir).filter(|_| close.is_none()) {
                let mut bytes = Vec::new();
                let take = |chunk: plait_stream::Chunk| {
                    bytes.extend_from_slice(&chunk.bytes);
                    usize::MAX
                };
                let end = conn.recv_stream(id).read_each(usize::MAX, Order::Ordered, take).map(drop);
                read.insert(id, (bytes, end));
            }
        }
        let live = conn.path_statistics(now, PathId::ZERO).filter(|_| close.is_none());
        let received_bytes = live.map_or(0, |path| path.received_bytes);
        let observed = if close.is_none() { observed } else { Vec::new() };
        Self { close, events, frames, read, received_bytes, observed }
    }
}

/// An event without the flags of a STREAM frame's type, which may be those of any frame of a run.
fn told(event: &Event) -> String {
    match event {
        Event::ConnectionLost(ConnectionError::TransportError(error)) => {
            format!("{:?} {:?}", error.code, error.violation)
        }
        other => format!("{other:?}"),
    }
}

fn plain(frame: &Frame<'_>) -> String {
    match frame {
        Frame::Ack(ack) => format!("ack {:?} {:?}", ack.ranges().collect::<Vec<_>>(), ack.ecn),
        Frame::Close(_) => "close".into(),
        other => format!("{other:?}"),
    }
}

/// Gives both halves of a pair the same packets: one a train, the other datagram by datagram.
fn outcomes(seed: u64) -> [Outcome; 2] {
    [true, false].map(|as_train| {
        let mut rig = Rig::established_server(Setup { seed, ..Setup::default() });
        rig.seen.clear();
        let mut random = Random::from_u64(seed);
        let first = rig.peer.next_number(Space::Data, 0);
        let mut train = Vec::new();
        for mut packet in packets(&mut random) {
            packet.number = packet.number.map(|number| number.max(first));
            rig.peer.seal(&packet, &mut train);
        }
        if random.chance(0.2) {
            let broken = random.below(train.len() as u64) as usize;
            train[broken] ^= 1;
        }
        if random.chance(0.3) {
            train.truncate(train.len() - random.below(SEGMENT as u64) as usize);
        }
        let observer = Recorder::default();
        if seed.is_multiple_of(2) {
            rig.conn().observe_with(Box::new(observer.clone()));
        }
        let (now, tuple, mut reply) = (rig.now, rig.tuple, Vec::new());
        let mut inputs = Vec::new();
        if as_train {
            let mut train = BytesMut::from(&train[..]);
            while !train.is_empty() {
                inputs.push(rig.endpoint.receive_front(now, tuple, None, &mut train, SEGMENT, &mut reply));
            }
            assert!(inputs.len() < 6, "the train stayed in {} pieces", inputs.len());
        } else {
            let datagrams = train.chunks(SEGMENT).map(BytesMut::from);
            inputs.extend(datagrams.map(|datagram| rig.endpoint.receive(now, tuple, None, datagram, &mut reply)));
        }
        for input in inputs {
            if let Received::Connection(_, input) = input {
                rig.conn().handle_datagram(now, input);
            }
        }
        rig.pump();
        let observed = std::mem::take(&mut *observer.0.lock().unwrap());
        Outcome::of(rig, observed)
    })
}

#[test]
fn a_train_does_what_its_datagrams_do_one_by_one() {
    let (mut closes, mut lived, mut bytes, mut dropped) = (0, 0, 0, 0);
    for seed in 0..rounds(400) {
        let [train, datagrams] = outcomes(seed);
        assert_eq!(train, datagrams, "seed {seed}");
        closes += u64::from(train.close.is_some());
        lived += u64::from(train.close.is_none());
        bytes += train.read.values().map(|(bytes, _)| bytes.len()).sum::<usize>();
        dropped += usize::from(train.observed.iter().any(|event| event.contains("Dropped")));
    }
    assert!(closes > 20 && lived > 100 && bytes > 300_000 && dropped > 20, "{closes} {lived} {bytes} {dropped}");
}

/// An established server with windows of `window` bytes gets a train of these STREAM frames, each a packet of its own.
fn closed_by(window: u64, frames: &[Vec<u8>]) -> Option<CloseCode> {
    let mut setup = Setup::default();
    setup.transport.auto_tune_windows(false).stream_receive_window(window).receive_window(window);
    let mut rig = Rig::established_server(setup);
    let mut train = Vec::new();
    frames.iter().for_each(|f| rig.peer.seal(&Packet::one_rtt(f.clone()).padded(SEGMENT), &mut train));
    let mut train = BytesMut::from(&train[..]);
    let (now, tuple) = (rig.now, rig.tuple);
    let received = rig.endpoint.receive_front(now, tuple, None, &mut train, SEGMENT, &mut Vec::new());
    let Received::Connection(_, input) = received else { panic!("{received:?}") };
    assert!(rig.conn().handle_datagram(now, input).is_some(), "the train was read as one");
    rig.pump();
    rig.close_seen()
}

#[test]
fn a_run_of_packets_is_read_as_one_piece() {
    let mut rig = Rig::established_server(Setup::default());
    let (mut train, mut ends) = (Vec::new(), [0; 2]);
    // Of two streams by turns: how far each of their runs goes.
    let runs = [(0, 4), (1, 3), (0, 2)].map(|(stream, packets)| {
        let start = ends[stream];
        for _ in 0..packets {
            let (frame, len) = filling(4 * stream as u64, ends[stream], false);
            rig.peer.seal(&Packet::one_rtt(frame).padded(SEGMENT), &mut train);
            ends[stream] += len;
        }
        ends[stream] - start
    });
    let mut train = BytesMut::from(&train[..]);
    let (now, tuple) = (rig.now, rig.tuple);
    let received = rig.endpoint.receive_front(now, tuple, None, &mut train, SEGMENT, &mut Vec::new());
    let Received::Connection(_, input) = received else { panic!("{received:?}") };
    rig.conn().handle_datagram(now, input);
    let mut pieces = |id| {
        let mut pieces = Vec::new();
        while let Ok(Some(chunk)) = rig.conn().recv_stream(StreamId(id)).read(usize::MAX, Order::Ordered) {
            let is_whole = (chunk.offset..).zip(&chunk.bytes).all(|(at, &byte)| byte == at as u8);
            assert!(is_whole, "stream {id} from {}", chunk.offset);
            pieces.push(chunk.bytes.len() as u64);
        }
        pieces
    };
    assert_eq!((pieces(0), pieces(4)), (vec![runs[0], runs[2]], vec![runs[1]]));
}

/// RFC 9000 4.1, 4.5, 4.6, 19.8: what a run of packets breaks is broken as by one packet.
#[test]
fn a_run_that_breaks_a_rule_closes_with_its_code() {
    let run = |from: u64, packets: usize, fin: bool| {
        let mut at = from;
        let mut frames = Vec::new();
        for index in 1..=packets {
            let (frame, len) = filling(0, at, fin && index == packets);
            frames.push(frame);
            at += len;
        }
        (frames, at)
    };
    let within = run(0, 4, false).0;
    assert_eq!(closed_by(4_000, &within), None);
    assert_eq!(closed_by(1_000, &within), Some(CloseCode::FLOW_CONTROL_ERROR));
    // The final size is known in the middle of the run.
    let (mut beyond, end) = run(0, 2, true);
    assert_eq!(closed_by(4_000, &beyond), None);
    beyond.push(filling(0, end, false).0);
    assert_eq!(closed_by(4_000, &beyond), Some(CloseCode::FINAL_SIZE_ERROR));
    // Behind good packets one for a stream that the peer may not send on, or not open.
    for (id, code) in [(3, CloseCode::STREAM_STATE_ERROR), (4_000_000, CloseCode::STREAM_LIMIT_ERROR)] {
        let frames = [&within[..2], &[filling(id, 0, false).0], &within[2..]].concat();
        assert_eq!(closed_by(4_000, &frames), Some(code), "stream {id}");
    }
    let mut far = Vec::new();
    varint::put(&mut far, 0x0c);
    let far = [far, raw(&[0, (1 << 62) - 3], &[0; 8])].concat();
    assert_eq!(closed_by(4_000, &[within[0].clone(), far]), Some(CloseCode::FRAME_ENCODING_ERROR));
}

/// One stream, as its writer or its reader has it.
#[derive(Debug, Default, PartialEq)]
struct Written {
    bytes: Vec<u8>,
    is_finished: bool,
    is_reset: bool,
}

/// Reads the streams out of what an engine sent: each byte must be there, and be the same whenever it comes again.
fn received(rig: &Rig) -> BTreeMap<StreamId, Written> {
    let mut pieces = BTreeMap::<StreamId, BTreeMap<u64, u8>>::new();
    let mut streams = BTreeMap::<StreamId, Written>::new();
    for seen in rig.seen.iter().filter(|seen| seen.kind == PacketKind::OneRtt) {
        for frame in seen.frames() {
            match frame {
                Frame::Stream(frame) => {
                    let stream = pieces.entry(frame.id).or_default();
                    for (at, byte) in (frame.offset..).zip(frame.data) {
                        assert_eq!(*stream.entry(at).or_insert(*byte), *byte, "{:?} at {at}", frame.id);
                    }
                    streams.entry(frame.id).or_default().is_finished |= frame.fin;
                }
                Frame::ResetStream(reset) => streams.entry(reset.id).or_default().is_reset = true,
                _ => {}
            }
        }
    }
    for (id, bytes) in pieces {
        let stream = streams.entry(id).or_default();
        let is_whole = bytes.keys().copied().eq(0..bytes.len() as u64);
        assert!(is_whole || stream.is_reset, "{id:?} has gaps");
        stream.bytes = bytes.into_values().collect();
    }
    streams
}

/// The puppet forgets that it received packets whose number leaves `lost` by 50, and acknowledges the others.
fn acknowledge_most(rig: &mut Rig, lost: u64) {
    let ranges = rig.peer.received.entry((Space::Data, PathId::ZERO)).or_default();
    let kept = std::mem::take(ranges).iter().flatten().filter(|number| number % 50 != lost).collect::<Vec<_>>();
    for number in kept {
        ranges.insert_one(number);
    }
    rig.ack_all();
}

/// Streams written at random, ended, reset and re-ordered, to a peer that loses some packets: what was written, and how many
/// datagrams were full.
fn write_at_random(seed: u64, max_segments: usize) -> (Rig, BTreeMap<StreamId, Written>) {
    let mut rig = Rig::established_server(Setup { seed, ..Setup::default() });
    rig.max_segments = max_segments;
    rig.seen.clear();
    let mut random = Random::from_u64(seed);
    let lost = 5 + random.below(40);
    let mut written = BTreeMap::<StreamId, Written>::new();
    for step in 0..60 {
        let stream = written.iter_mut().nth(random.below(6) as usize);
        match (random.below(12), stream) {
            (0, _) | (1..6, None) => {
                written.extend(rig.conn().streams().open(Dir::Uni).map(|id| (id, Written::default())))
            }
            (1..6, Some((id, stream))) => {
                let most = 1 << (4 + random.below(14));
                let bytes: Vec<u8> = (0..random.below(most)).map(|at| (at + step) as u8).collect();
                let taken = rig.conn().send_stream(*id).write(&bytes).unwrap_or(0);
                stream.bytes.extend_from_slice(&bytes[..taken]);
            }
            (6, Some((id, stream))) => stream.is_finished |= rig.conn().send_stream(*id).finish().is_ok(),
            (7, Some((id, stream))) if random.chance(0.3) => {
                stream.is_reset |= rig.conn().send_stream(*id).reset(9).is_ok();
            }
            (8, Some((id, _))) => drop(rig.conn().send_stream(*id).set_priority(random.below(3) as i32)),
            (9, _) => {
                let datagram = Bytes::from(vec![1; random.below(900) as usize]);
                drop(rig.conn().datagrams().send(datagram, Overflow::DropOldest));
            }
            (10, _) => acknowledge_most(&mut rig, lost),
            _ => rig.pass(ms(random.below(30))),
        }
        rig.pump();
    }
    for _ in 0..200 {
        rig.pass(ms(20));
        rig.ack_all();
    }
    (rig, written)
}

#[test]
fn trains_bring_what_was_written_as_single_datagrams_do() {
    let mut full = 0;
    for seed in 0..rounds(40) {
        for max_segments in [1, 10, 64] {
            let (rig, mut written) = write_at_random(seed, max_segments);
            let mut received = received(&rig);
            written.retain(|_, stream| !stream.bytes.is_empty() || stream.is_finished || stream.is_reset);
            for (id, stream) in &mut written {
                let arrived = received.remove(id).unwrap_or_else(|| panic!("{id:?} did not arrive, seed {seed}"));
                if stream.is_reset {
                    assert!(arrived.is_reset, "{id:?} is reset, seed {seed}");
                } else {
                    assert!(arrived == *stream, "{id:?} differs with {max_segments} datagrams, seed {seed}");
                }
            }
            assert!(received.is_empty(), "{:?} were never written, seed {seed}", received.keys());
            // Data of 73 cipher blocks, behind a packet number of one byte or two.
            full += rig.seen.iter().filter(|seen| matches!(seen.datagram, 1_194 | 1_195)).count();
        }
    }
    assert!(full > 1_000, "{full} full datagrams");
}
