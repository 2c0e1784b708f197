//! A whole connection whose peer completed the handshake honestly and obeys no rule from then on.

use std::time::Duration;

use bytes::Bytes;
use plait_base::{CloseCode, ConnectionId, Dir, FourTuple, PathId, Side, StreamId};
use plait_engine::path::PathStatus;
use plait_engine::stream::{Order, Overflow};
use plait_wire::Encode;
use plait_wire::frame::AckForm;

use crate::ArbitraryInput;
use crate::decoders::frames::all_frames;
use crate::puppet::frames::{path_id, put_some};
use crate::puppet::peer::{here, there};
use crate::puppet::{EngineUnderTest, Peer, meet};

/// Moves of one input; more say nothing new.
const MAX_MOVES: usize = 400;
/// Moves after the connection was closed.
const MAX_CLOSED_MOVES: usize = 20;

/// The input: which end is the engine, then moves of its peer, its application, and time.
pub fn run(input: &[u8]) {
    let mut input = ArbitraryInput::new(input);
    let side = if input.flag() { Side::Server } else { Side::Client };
    let (engine, peer) = meet(side);
    let mut driver = Driver { side, engine, peer };
    let mut closed_moves = 0;
    for _ in 0..MAX_MOVES {
        if input.is_over() || closed_moves > MAX_CLOSED_MOVES {
            break;
        }
        driver.step(&mut input);
        driver.settle();
        closed_moves += usize::from(driver.engine.connection.is_closed());
    }
    driver.engine.shut_down();
}

struct Driver {
    side: Side,
    engine: EngineUnderTest,
    peer: Peer,
}

impl Driver {
    fn step(&mut self, input: &mut ArbitraryInput<'_>) {
        match input.byte() % 16 {
            0..=5 => {
                let mut frames = Vec::new();
                put_some(input, &mut frames, 1_100);
                self.send(input, frames);
            }
            6 => {
                let frames = input.piece().to_vec();
                self.send(input, frames);
            }
            7 => self.noise(input),
            8 | 9 => {
                let mut frames = Vec::new();
                self.peer.put_responses(1 + input.below(3), &mut self.engine.watch, &mut frames);
                self.send(input, frames);
            }
            10 | 11 => {
                let mut frames = Vec::new();
                let path = path_id(input);
                let form = if path == PathId::ZERO && input.flag() { AckForm::Plain } else { AckForm::Path };
                self.peer.put_ack(path, form, &mut frames);
                self.send(input, frames);
            }
            12 | 13 => self.pass(input),
            14 => self.application(input),
            _ => self.paths(input),
        }
    }

    /// Takes what the engine says; the peer hears all of it.
    fn settle(&mut self) {
        let Self { engine, peer, .. } = self;
        let now = engine.now;
        engine.settle(&mut |to, data| peer.hear(now, to, data));
    }

    /// Where packets of the peer come from and go to.
    fn tuple(&self, input: &mut ArbitraryInput<'_>) -> FourTuple {
        let (a, b) = (input.byte(), input.byte());
        // Most come the way of the handshake.
        let local = if a < 200 { here(0) } else { here(a % 3) };
        let remote = if b < 128 { there(0) } else { there(b % 9) };
        FourTuple { local, remote }
    }

    fn send(&mut self, input: &mut ArbitraryInput<'_>, mut frames: Vec<u8>) {
        let tuple = self.tuple(input);
        let choice = usize::from(input.byte());
        let Some(to) = self.engine.cids.get(choice % self.engine.cids.len().max(1)).copied() else { return };
        // Room for the sample of header protection; some are as large as probes.
        let size = if choice & 0x80 == 0 { 8 } else { 1_170 };
        frames.resize(frames.len().max(size), 0);
        let packet = self.peer.packet(to, &frames);
        self.engine.receive(tuple, &packet);
        if choice & 0x40 != 0 {
            self.engine.receive(tuple, &packet);
        }
    }

    /// Bytes that no key fits, some with an id of the engine's.
    fn noise(&mut self, input: &mut ArbitraryInput<'_>) {
        let tuple = self.tuple(input);
        let mut data = input.piece().to_vec();
        let known = self.engine.cids.get(input.below(self.engine.cids.len().max(1))).map(|(_, cid)| *cid);
        let cid = known.unwrap_or(ConnectionId::EMPTY);
        match data.first_mut() {
            Some(first) if *first & 0x80 == 0 => {
                *first |= 0x40;
                data.splice(1..1, cid.iter().copied());
            }
            Some(_) => {
                data.splice(1..1, [0, 0, 0, 1, cid.len() as u8].into_iter().chain(cid.iter().copied()));
            }
            None => {}
        }
        if input.flag() {
            data.resize(data.len().max(1_200), 0);
        }
        self.engine.receive(tuple, &data);
    }

    fn pass(&mut self, input: &mut ArbitraryInput<'_>) {
        let time = match input.byte() % 5 {
            0 => Duration::from_millis(u64::from(input.byte())),
            1 => Duration::from_micros(u64::from(input.u16())),
            2 => Duration::from_millis(u64::from(input.u16() % 8_000)),
            3 => {
                self.peer.update_keys(self.engine.now);
                Duration::ZERO
            }
            _ => self.engine.connection.deadline().map_or(Duration::ZERO, |at| at.since(self.engine.now)),
        };
        self.engine.pass(time);
    }

    fn application(&mut self, input: &mut ArbitraryInput<'_>) {
        let dir = if input.flag() { Dir::Uni } else { Dir::Bi };
        let initiator = if input.flag() { self.side } else { self.side.peer() };
        let id = StreamId::new(initiator, dir, input.below(5) as u64);
        let connection = &mut self.engine.connection;
        match input.byte() % 12 {
            0 => {
                connection.streams().open(dir);
            }
            1 => while connection.streams().accept(dir).is_some() {},
            2 | 3 => {
                let _ = connection.send_stream(id).write(&vec![7; usize::from(input.u16() % 20_000)]);
            }
            4 => {
                let _ = connection.send_stream(id).finish();
            }
            5 => {
                let _ = connection.send_stream(id).reset(1);
            }
            6 => {
                let _ = connection.recv_stream(id).stop(2);
            }
            7 => {
                let _ = connection
                    .datagrams()
                    .send(Bytes::from(vec![1; usize::from(input.u16() % 1_500)]), Overflow::DropOldest);
            }
            8 => while connection.datagrams().recv().is_some() {},
            9 => {
                let _ = connection.send_stream(id).set_priority(i32::from(input.byte()) - 100);
            }
            _ => {
                let order = if input.one_in(8) { Order::Unordered } else { Order::Ordered };
                while let Ok(Some(_)) = connection.recv_stream(id).read(4_000, order) {}
            }
        }
    }

    fn paths(&mut self, input: &mut ArbitraryInput<'_>) {
        let (id, now) = (path_id(input), self.engine.now);
        let tuple = FourTuple { local: here(input.byte() % 3), remote: there(input.byte() % 9) };
        let status = if input.flag() { PathStatus::Backup } else { PathStatus::Available };
        let connection = &mut self.engine.connection;
        match input.byte() % 8 {
            0..=3 if self.side.is_client() => {
                let _ = connection.open_path(now, tuple, status);
                // A client chose the address.
                self.engine.watch.on_proven(tuple.remote);
            }
            4 => {
                let _ = connection.close_path(now, id, CloseCode::APPLICATION_ABANDON_PATH);
            }
            5 => {
                let _ = connection.set_path_status(now, id, status);
            }
            6 => {
                let _ = connection.update_keys(now);
            }
            7 if input.byte() < 32 => connection.close(now, 9, Bytes::from_static(b"done")),
            _ => {
                let _ = connection.path_statistics(now, id);
            }
        }
    }
}

/// Quiet exchanges, paths opened and closed, and each frame once.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut raw = vec![1];
    for frame in all_frames().iter().filter(|frame| !matches!(frame, plait_wire::Frame::Close(_))) {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        raw.extend([6, bytes.len() as u8]);
        raw.extend(bytes);
        raw.extend([0, 0, 0]);
    }
    let server_paths =
        [1].into_iter().chain((0..30).flat_map(|i| [0, 5, 9, 0, 0, 128 + i % 9, 128 + i, 8, 1, 0, 0, i]));
    let client_paths =
        [0].into_iter().chain((0..20).flat_map(|i| [15, 1, i % 3, i % 9, 0, 0, 8, 1, 0, 0, i, 10, 1, 0, 0, i, 12, 4]));
    let streams = [1, 14, 1, 1, 0, 0].into_iter().chain((0..20).flat_map(|i| {
        [0, 1, 0, 0, 0, 5, i * 4, 1, 30, 0, 0, 0, 0, 14, 0, 1, 0, 2, 9, i, 10, 0, 0, 0, 0, 0, 12, 0, 30]
    }));
    vec![raw, server_paths.collect(), client_paths.collect(), streams.collect()]
}
