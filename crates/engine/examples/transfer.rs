//! One upload between two endpoints in one process, in virtual time: nothing but the engine, for `bench/instructions` and for
//! profilers.
//!
//! `cargo run --release -p plait-engine --example transfer -- 20000000 2` moves 20 MB over two paths of 1 Gbit/s, with round trips
//! of 10 and 12 ms. With a third argument, `null`, a checksum stands in for the AEAD.

mod two_ends;

use std::error::Error;

use bytes::Bytes;
use plait_base::{Dir, FourTuple, StreamId};
use plait_engine::Event;
use plait_engine::crypto::Protection;
use plait_engine::path::PathStatus;
use plait_engine::stream::Order;
use two_ends::{World, address};

/// Most bytes that the application hands over at once.
const CHUNK_BYTES: usize = 256 * 1024;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (bytes, paths, protection) = match &args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [bytes, paths] => (bytes.parse::<u64>()?, paths.parse::<u64>()?, Protection::Tls),
        [bytes, paths, "null"] => (bytes.parse()?, paths.parse()?, Protection::NullAfterHandshake),
        _ => return Err("BYTES PATHS [null], as in: transfer 20000000 2".into()),
    };
    if !(1..=2).contains(&paths) {
        return Err("one path or two".into());
    }
    let mut world = World::new(paths as u32, protection)?;
    let (mut stream, mut left, mut got) = (None, bytes, 0);
    let mut steps = 0_u64;
    while got < bytes {
        steps += 1;
        if steps > 10_000_000 {
            return Err("it does not end".into());
        }
        world.open_second(paths);
        world.send(&mut stream, &mut left);
        got += world.receive()?;
        world.step()?;
    }
    let client = world.ends[0].connection.as_ref().map(|(_, connection)| connection.paths().ids().len());
    if client != Some(paths as usize) {
        return Err(format!("{client:?} paths, not {paths}").into());
    }
    println!("{got} bytes in {:.3} s of virtual time", world.now.since_origin().as_secs_f64());
    Ok(())
}

impl World {
    /// Opens the second path as soon as that is allowed.
    fn open_second(&mut self, paths: u64) {
        let Some((_, connection)) = &mut self.ends[0].connection else { return };
        if paths == 2 && connection.paths().ids().len() == 1 {
            let tuple = FourTuple { local: address(2), remote: address(9) };
            // Refused before the handshake is confirmed and the peer's ids are there; it is tried again.
            let _ = connection.open_path(self.now, tuple, PathStatus::Available);
        }
    }

    /// Hands over what the client's stream has room for.
    fn send(&mut self, stream: &mut Option<StreamId>, left: &mut u64) {
        let Some((_, connection)) = &mut self.ends[0].connection else { return };
        while let Some(event) = connection.poll() {
            if matches!(event, Event::Connected) {
                *stream = connection.streams().open(Dir::Uni);
            }
        }
        let Some(id) = *stream else { return };
        while *left > 0 {
            let mut chunks = [Bytes::from_static(&[7; CHUNK_BYTES]).slice(..CHUNK_BYTES.min(*left as usize))];
            match connection.send_stream(id).write_chunks(&mut chunks) {
                Ok(0) | Err(_) => return,
                Ok(wrote) => *left -= wrote as u64,
            }
        }
    }

    /// Reads what arrived at the server.
    fn receive(&mut self) -> Result<u64, Box<dyn Error>> {
        let Some((_, connection)) = &mut self.ends[1].connection else { return Ok(0) };
        while connection.poll().is_some() {}
        connection.streams().accept(Dir::Uni);
        let (mut stream, mut got) = (connection.recv_stream(StreamId(2)), 0);
        while let Ok(Some(chunk)) = stream.read(usize::MAX, Order::Ordered) {
            if chunk.bytes.iter().step_by(1_000).any(|byte| *byte != 7) {
                return Err("other bytes than were sent".into());
            }
            got += chunk.bytes.len() as u64;
        }
        Ok(got)
    }
}
