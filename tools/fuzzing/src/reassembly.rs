//! Received stream data against a model that keeps every byte: right, in order, once, and within the limits told.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use plait_base::{Dir, Instant, Side, StreamId};
use plait_stream::{Order, ReadError, Streams, StreamsConfig, Window};
use plait_wire::{Frame, FrameWriter, Frames};

use crate::ArbitraryInput;

const WINDOW: u64 = 6_000;
const STREAM_WINDOW: u64 = 2_500;
const STREAMS: u64 = 3;

/// One stream as the peer means it.
#[derive(Default)]
struct Model {
    arrived: BTreeSet<u64>,
    read: BTreeSet<u64>,
    highest: u64,
    limit: u64,
    final_size: Option<u64>,
    unordered: bool,
    reset: bool,
    over: bool,
}

struct World {
    streams: Streams,
    models: BTreeMap<StreamId, Model>,
    limit: u64,
    /// How far the connection's window may grow.
    window_max: u64,
    /// Streams that exist or existed: a stream opens all below it.
    born: u64,
    now: Instant,
}

/// The byte of a stream at an offset.
fn at(id: StreamId, offset: u64) -> u8 {
    (offset as u8).wrapping_mul(29) ^ (offset >> 7) as u8 ^ id.0 as u8
}

/// The input: frames of the peer and reads of the application.
pub fn run(input: &[u8]) {
    let mut input = ArbitraryInput::new(input);
    let grown = if input.flag() { 4 } else { 1 };
    let config = StreamsConfig {
        max_bidi: STREAMS,
        max_uni: STREAMS,
        stream_window: Window { first: STREAM_WINDOW, max: grown * STREAM_WINDOW },
        window: Window { first: WINDOW, max: grown * WINDOW },
        send_window: 1_000,
    };
    let streams = Streams::new(Side::Server, config);
    let mut world = World {
        streams,
        models: BTreeMap::new(),
        limit: WINDOW,
        window_max: grown * WINDOW,
        born: 0,
        now: Instant::ZERO,
    };
    for index in 0..STREAMS {
        let id = StreamId::new(Side::Client, Dir::Uni, index);
        world.models.insert(id, Model { limit: STREAM_WINDOW, ..Model::default() });
    }
    while !input.is_over() {
        if world.step(&mut input).is_none() {
            return;
        }
    }
    world.finish();
}

impl World {
    /// One move; none once the peer broke a rule and the connection would close.
    fn step(&mut self, input: &mut ArbitraryInput<'_>) -> Option<()> {
        let operation = input.byte() % 12;
        let id = StreamId::new(Side::Client, Dir::Uni, input.below(STREAMS as usize) as u64);
        match operation {
            0..=4 => {
                let offset = match input.byte() % 3 {
                    0 => self.models[&id].highest,
                    1 => self.models[&id].highest.saturating_sub(u64::from(input.byte())),
                    _ => u64::from(input.u16() % 4_000),
                };
                let len = u64::from(input.byte()) * if input.flag() { 5 } else { 1 };
                self.data(id, offset, len, input.one_in(16))?;
            }
            5..=8 => self.read(id, 1 + input.below(900), Order::Ordered),
            9 => self.read(id, 1 + input.below(900), Order::Unordered),
            10 => self.control(),
            _ => self.end(id, input)?,
        }
        Some(())
    }

    fn data(&mut self, id: StreamId, offset: u64, len: u64, fin: bool) -> Option<()> {
        let used: u64 = self.models.values().map(|m| m.highest).sum();
        let model = self.models.get_mut(&id)?;
        let end = offset + len;
        let grown = end.saturating_sub(model.highest);
        let wrong_size = match model.final_size {
            Some(size) => end > size || fin && end != size,
            None => fin && end < model.highest,
        };
        let allowed = end.max(model.highest) <= model.limit && used + grown <= self.limit && !wrong_size;
        // Frames for a stream that is over for both sides mean nothing.
        let gone = model.over && model.final_size.is_some();
        let bytes: Bytes = (offset..end).map(|at_offset| at(id, at_offset)).collect();
        let told = self.streams.on_stream(id, offset, fin, bytes);
        assert!(told.is_ok() == allowed || gone, "{told:?} for {offset}..{end} of {id:?}, fin {fin}");
        told.ok()?;
        self.born = self.born.max(id.index() + 1);
        if !gone {
            model.highest = model.highest.max(end);
            model.arrived.extend(offset..end);
            model.final_size = model.final_size.or(fin.then_some(end));
        }
        Some(())
    }

    fn read(&mut self, id: StreamId, max_len: usize, order: Order) {
        let Some(model) = self.models.get_mut(&id) else { return };
        match self.streams.read(id, max_len, order) {
            Ok(Some(chunk)) => {
                let end = chunk.offset + chunk.bytes.len() as u64;
                assert!(!chunk.bytes.is_empty() && chunk.bytes.len() <= max_len && !model.over);
                for (offset, byte) in (chunk.offset..end).zip(chunk.bytes.iter()) {
                    assert_eq!(*byte, at(id, offset));
                    assert!(model.arrived.contains(&offset) && model.read.insert(offset), "each byte once");
                }
                if order == Order::Ordered {
                    assert_eq!(model.read.len() as u64, end, "in order");
                }
                model.unordered |= order == Order::Unordered;
            }
            Ok(None) => {
                assert_eq!(Some(model.read.len() as u64), model.final_size, "all of it was read");
                model.over = true;
            }
            Err(ReadError::Blocked) => {
                let next = model.read.len() as u64;
                let missed = match order {
                    Order::Ordered => model.arrived.contains(&next),
                    Order::Unordered => model.arrived.len() > model.read.len(),
                };
                assert!(!missed, "data at {next} was withheld");
                model.unordered |= order == Order::Unordered;
            }
            Err(ReadError::IllegalOrderedRead) => assert!(model.unordered && order == Order::Ordered),
            Err(ReadError::Reset(_)) => {
                assert!(model.reset);
                model.over = true;
            }
            Err(ReadError::ClosedStream) => assert!(model.over || id.index() >= self.born),
        }
    }

    /// Writes control frames and learns the new limits from them.
    fn control(&mut self) {
        self.now += Duration::from_millis(7);
        let (mut buf, mut carried) = (Vec::new(), Vec::new());
        self.streams.fill_control(self.now, &mut FrameWriter::new(&mut buf, 1_000, &mut carried));
        for frame in Frames::new(&buf).filter(|_| !buf.is_empty()) {
            match frame.expect("we write frames") {
                Frame::MaxData(frame) => {
                    assert!(frame.limit >= self.limit);
                    self.limit = frame.limit;
                }
                Frame::MaxStreamData(frame) => {
                    let Some(model) = self.models.get_mut(&frame.id) else { continue };
                    assert!(frame.limit >= model.limit);
                    model.limit = frame.limit;
                }
                _ => {}
            }
        }
        // Never more ahead of the reader than the largest window.
        let consumed: u64 =
            self.models.values().map(|m| if m.over || m.reset { m.highest } else { m.read.len() as u64 }).sum();
        assert!(self.limit <= consumed + self.window_max);
    }

    /// The peer resets the stream, or the application stops it.
    fn end(&mut self, id: StreamId, input: &mut ArbitraryInput<'_>) -> Option<()> {
        let model = self.models.get_mut(&id)?;
        if input.flag() {
            if self.streams.stop(id, 3).is_ok() {
                model.over = true;
            }
            return Some(());
        }
        let gone = model.over && model.final_size.is_some();
        let size = model.highest + u64::from(input.byte() % 4);
        let told = self.streams.on_reset_stream(id, 5, size);
        if told.is_ok() && !gone {
            assert!(model.final_size.is_none_or(|known| known == size), "the size changed");
            model.final_size = Some(size);
            model.highest = size;
            model.reset = true;
        }
        told.ok()?;
        self.born = self.born.max(id.index() + 1);
        Some(())
    }

    /// What arrived and was not read yet can all be read.
    fn finish(&mut self) {
        let ids: Vec<StreamId> = self.models.keys().copied().collect();
        for id in ids {
            let order = if self.models[&id].unordered { Order::Unordered } else { Order::Ordered };
            for _ in 0..10_000 {
                let before = self.models[&id].read.len();
                self.read(id, 1_000, order);
                if self.models[&id].read.len() == before {
                    break;
                }
            }
        }
    }
}

/// In order, out of order, overlapping, and ended in every way.
pub fn seeds() -> Vec<Vec<u8>> {
    vec![
        vec![0, 0, 0, 0, 100, 0, 1, 5, 0, 0, 200, 0, 0, 0, 50, 0, 0, 5, 0, 0, 255, 5, 0, 0, 255],
        (0..60u8).flat_map(|i| [0, i % 3, 2, i / 4, i.wrapping_mul(37), 80, 0, 1, 5, i % 3, 1, 0, 10, 0]).collect(),
        (0..60).flat_map(|i| [0, 1, 1, i, 90, 1, 1, 9, 1, 2, 0]).collect(),
        vec![0, 0, 0, 0, 100, 0, 1, 11, 0, 0, 0, 0, 1, 0, 30, 0, 1, 11, 1, 1],
    ]
}
