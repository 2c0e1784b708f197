//! Requests and answers of 750 bytes, each on a stream of its own and one at a time, between two endpoints in one process, in
//! virtual time: nothing but the engine, for `bench/instructions` and for profilers.
//!
//! `cargo run --release -p plait-engine --example requests -- 1000` makes a thousand. With a second argument, `null`, a checksum
//! stands in for the AEAD.

mod two_ends;

use std::error::Error;

use bytes::Bytes;
use plait_base::{Dir, StreamId};
use plait_engine::Connection;
use plait_engine::crypto::Protection;
use plait_engine::stream::Order;
use two_ends::World;

const MESSAGE_BYTES: usize = 750;

/// A stream of one end, and what it has read of it.
#[derive(Clone, Copy, Debug)]
struct Exchange {
    stream: StreamId,
    got: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (requests, protection) = match &args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [requests] => (requests.parse::<u64>()?, Protection::Tls),
        [requests, "null"] => (requests.parse()?, Protection::NullAfterHandshake),
        _ => return Err("REQUESTS [null], as in: requests 1000".into()),
    };
    let mut world = World::new(1, protection)?;
    let (mut client, mut server, mut answered) = (None, None, 0);
    while answered < requests {
        answered += ask(&mut world, &mut client)?;
        answer(&mut world, &mut server)?;
        world.step()?;
    }
    println!("{answered} answers in {:.3} s of virtual time", world.now.since_origin().as_secs_f64());
    Ok(())
}

/// Reads the answer, then asks the next question once the last one is answered: how many were.
fn ask(world: &mut World, exchange: &mut Option<Exchange>) -> Result<u64, Box<dyn Error>> {
    let Some((_, connection)) = &mut world.ends[0].connection else { return Ok(0) };
    while connection.poll().is_some() {}
    let mut answered = 0;
    if let Some(asked) = exchange {
        if !is_complete(connection, asked)? {
            return Ok(0);
        }
        answered = 1;
    }
    *exchange = connection.streams().open(Dir::Bi).map(|stream| Exchange { stream, got: 0 });
    if let Some(Exchange { stream, .. }) = exchange {
        write(connection, *stream)?;
    }
    Ok(answered)
}

/// Answers what has arrived as a whole.
fn answer(world: &mut World, exchange: &mut Option<Exchange>) -> Result<(), Box<dyn Error>> {
    let Some((_, connection)) = &mut world.ends[1].connection else { return Ok(()) };
    while connection.poll().is_some() {}
    if exchange.is_none() {
        *exchange = connection.streams().accept(Dir::Bi).map(|stream| Exchange { stream, got: 0 });
    }
    if let Some(asked) = exchange
        && is_complete(connection, asked)?
    {
        write(connection, asked.stream)?;
        *exchange = None;
    }
    Ok(())
}

fn write(connection: &mut Connection, stream: StreamId) -> Result<(), Box<dyn Error>> {
    let mut stream = connection.send_stream(stream);
    if stream.write_chunks(&mut [Bytes::from_static(&[7; MESSAGE_BYTES])])? < MESSAGE_BYTES {
        return Err("no room for a message".into());
    }
    Ok(stream.finish()?)
}

/// Reads what arrived of a message. True at its end.
fn is_complete(connection: &mut Connection, exchange: &mut Exchange) -> Result<bool, Box<dyn Error>> {
    let mut stream = connection.recv_stream(exchange.stream);
    while let Ok(read) = stream.read(usize::MAX, Order::Ordered) {
        let Some(chunk) = read else {
            let whole = exchange.got == MESSAGE_BYTES;
            return if whole { Ok(true) } else { Err(format!("{} bytes of a message", exchange.got).into()) };
        };
        exchange.got += chunk.bytes.len();
    }
    Ok(false)
}
