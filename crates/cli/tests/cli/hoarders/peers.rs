//! The hoarders.

use std::fs::File;
use std::sync::OnceLock;
use std::time::Duration;

use plait::{ClientConfig, Endpoint, EndpointConfig};
use plait_base::Space;
use plait_wire::frame::{AckForm, Crypto};
use plait_wire::{Encode, PacketKind, varint};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::server::{DATAGRAMS, Server, WINDOW};
use super::wire::{Wire, params};
use super::{Hoard, Scale};
use crate::puppet::{Packet, client_tls};

/// Bytes of the file that is asked for.
const FILE_BYTES: u64 = 64 << 20;
/// Frames of one packet, bytes.
const PAYLOAD_BYTES: usize = 1_150;

/// `plait serve` of a large file.
pub fn serve_files() -> Server {
    serve_files_with(&[])
}

/// The same with more flags.
pub fn serve_files_with(flags: &[&str]) -> Server {
    static ROOT: OnceLock<TempDir> = OnceLock::new();
    let root = ROOT.get_or_init(|| {
        let root = tempfile::tempdir().unwrap();
        File::create(root.path().join("big.bin")).unwrap().set_len(FILE_BYTES).unwrap();
        root
    });
    Server::command(root.path(), flags)
}

/// A connection that asks for nothing.
pub fn honest(server: &Server) -> Wire {
    Wire::connect(server.address, server.alpn, params(1 << 20), 1)
}

fn frame(fields: &[u64], bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    fields.iter().for_each(|field| varint::put(&mut out, *field));
    out.extend_from_slice(bytes);
    out
}

/// STREAM with offset and length.
fn stream(id: u64, offset: u64, bytes: &[u8]) -> Vec<u8> {
    frame(&[0x0e, id, offset, bytes.len() as u64], bytes)
}

/// Sends frames, as many as fit a packet at once.
fn send_all(wire: &mut Wire, frames: impl Iterator<Item = Vec<u8>>) {
    let mut payload = Vec::new();
    for frame in frames {
        if !payload.is_empty() && payload.len() + frame.len() > PAYLOAD_BYTES {
            wire.frames(std::mem::take(&mut payload));
        }
        payload.extend(frame);
    }
    wire.frames(payload);
}

/// The n-th stream that a client opens in one direction.
fn uni(n: u64) -> u64 {
    4 * n + 2
}

fn connections(server: &Server, count: u64, window: u64, mut act: impl FnMut(&mut Wire)) -> Vec<Wire> {
    (0..count)
        .map(|i| {
            let mut wire = Wire::connect(server.address, server.alpn, params(window), 100 + i);
            act(&mut wire);
            wire.listen(Duration::from_millis(20));
            assert_eq!(wire.closed, None, "a hoarder that is closed holds nothing");
            wire
        })
        .collect()
}

/// Windows filled in order with pieces of every awkward size, down to one byte.
pub fn small_pieces(server: &Server, scale: Scale) -> Hoard {
    let count = scale.of(2, 10);
    let ends = connections(server, count, 0, |wire| {
        for n in 0..4 {
            let sizes = [1, 511, 512, 3, 900, 1, 1, 600].into_iter().cycle();
            let pieces = sizes.scan(0, |offset, size| {
                let at = *offset;
                *offset += size;
                (*offset <= WINDOW / 4).then(|| stream(uni(n), at, &vec![7; size as usize]))
            });
            send_all(wire, pieces);
        }
    });
    Hoard { connections: count, promised: count * WINDOW, ends: Box::new(ends) }
}

/// Windows with holes: as many crumbs as are let in, and large pieces behind them.
pub fn gaps(server: &Server, scale: Scale) -> Hoard {
    let count = scale.of(2, 10);
    let ends = connections(server, count, 0, |wire| {
        send_all(wire, (0..4_000).map(|i| stream(uni(i % 200), 1 + 2 * (i / 200), &[7])));
        send_all(wire, (0..700).map(|i| stream(uni(200), 1_000 + 1_200 * i, &[7; 1_100])));
    });
    Hoard { connections: count, promised: count * WINDOW, ends: Box::new(ends) }
}

/// Runs our own client, which sends in trains as the system allows.
fn with_client<T>(server: &Server, act: impl AsyncFnOnce(plait::Connection) -> T) -> (Runtime, Endpoint, T) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let address = server.address;
    let (endpoint, result) = runtime.block_on(async {
        let endpoint = Endpoint::new(
            EndpointConfig::fresh().unwrap(),
            None,
            ["127.0.0.1:0".parse::<std::net::SocketAddr>().unwrap()],
        )
        .unwrap();
        let config = ClientConfig::new(client_tls());
        let connection = endpoint.connect_with(config, address, "localhost").unwrap().await.unwrap();
        let result = act(connection).await;
        (endpoint, result)
    });
    (runtime, endpoint, result)
}

/// Crumbs of a stream that nobody reads, each in a train of one that is read at once.
pub fn unread_beside_busy(server: &Server, scale: Scale) -> Hoard {
    let busy_bytes = scale.of(40 << 20, 400 << 20);
    let pieces = 1_400;
    let ends = with_client(server, async |connection| {
        let (mut busy, _) = connection.open_bi().await.unwrap();
        let mut idle = connection.open_uni().await.unwrap();
        idle.set_priority(1).unwrap();
        let block = vec![7; (busy_bytes / pieces) as usize];
        for _ in 0..pieces {
            idle.write_all(&block[..600]).await.unwrap();
            busy.write_all(&block).await.unwrap();
        }
        busy.finish().unwrap();
        busy.stopped().await.unwrap();
        (connection, idle)
    });
    Hoard { connections: 1, promised: WINDOW, ends: Box::new(ends) }
}

/// Datagrams that nobody reads, in trains of a stream that is read at once.
pub fn unread_datagrams(server: &Server, scale: Scale) -> Hoard {
    let busy_bytes = scale.of(20 << 20, 200 << 20);
    let count = 4_000;
    let ends = with_client(server, async |connection| {
        let (mut busy, _) = connection.open_bi().await.unwrap();
        let block = vec![7; (busy_bytes / count) as usize];
        for i in 0..count {
            let size = if i % 4 == 0 { 1 } else { 700 };
            connection.send_datagram_wait(vec![7; size].into()).await.unwrap();
            busy.write_all(&block).await.unwrap();
        }
        busy.finish().unwrap();
        busy.stopped().await.unwrap();
        connection
    });
    Hoard { connections: 1, promised: WINDOW + DATAGRAMS, ends: Box::new(ends) }
}

/// ClientHellos, and nothing after them.
pub fn half_open(server: &Server, scale: Scale) -> Hoard {
    let count = scale.of(100, 1_000);
    let ends: Vec<Wire> = (0..count)
        .map(|i| {
            let mut wire = Wire::new(server.address, server.alpn, params(0), 100 + i);
            wire.say_handshake();
            wire.listen(Duration::from_millis(1));
            wire
        })
        .collect();
    Hoard { connections: count, promised: 0, ends: Box::new(ends) }
}

/// Half-open handshakes with crumbs of CRYPTO data beyond a gap, and packets for which there are no keys yet.
pub fn before_keys(server: &Server, scale: Scale) -> Hoard {
    let count = scale.of(20, 200);
    let ends: Vec<Wire> = (0..count)
        .map(|i| {
            let mut wire = Wire::new(server.address, server.alpn, params(0), 100 + i);
            // A ClientHello without an end: its level stays open.
            let hello = wire.peer.crypto_frames(Space::Initial, 0, 100).swap_remove(0);
            wire.send(&[Packet::new(PacketKind::Initial, hello)]);
            wire.listen(Duration::from_millis(20));
            let crypto = |offset, data: &[u8]| {
                let mut out = Vec::new();
                Crypto { offset, data }.encode(&mut out);
                out
            };
            let crumbs: Vec<u8> = (0..100).flat_map(|n| crypto(1_000 + 2 * n, &[1])).collect();
            wire.send(&[Packet::new(PacketKind::Initial, crumbs)]);
            for n in 0..55 {
                wire.send(&[Packet::new(PacketKind::Initial, crypto(2_000 + 1_100 * n, &[1; 1_000]))]);
            }
            // Short headers with the id that the server chose.
            let mut early = vec![0x40; 1_400];
            early[1..9].copy_from_slice(&wire.peer.dcid);
            for _ in 0..20 {
                wire.raw(&early);
            }
            wire.listen(Duration::from_millis(5));
            assert_eq!(wire.closed, None, "a hoarder that is closed holds nothing");
            wire
        })
        .collect();
    let promised = plait_base::limits::MAX_CRYPTO_BUFFER_BYTES + plait_base::limits::MAX_SAVED_BYTES as u64;
    Hoard { connections: count, promised: count * promised, ends: Box::new(ends) }
}

/// Connections that say nothing more.
pub fn idle(server: &Server, scale: Scale) -> Hoard {
    let count = scale.of(100, 1_000);
    let ends = connections(server, count, 0, |_| {});
    Hoard { connections: count, promised: 0, ends: Box::new(ends) }
}

/// A request on the n-th bidirectional stream.
pub fn get(n: u64) -> Vec<u8> {
    let line = b"GET /big.bin\r\n";
    frame(&[0x0b, 4 * n, line.len() as u64], line)
}

/// A large file, 256 times, without credit for a byte of it.
pub fn without_credit(server: &Server, scale: Scale) -> Hoard {
    let count = scale.of(3, 10);
    let ends = connections(server, count, 0, |wire| send_all(wire, (0..256).map(get)));
    Hoard { connections: count, promised: count * (128 << 10), ends: Box::new(ends) }
}

/// A large file, 20 times, with every window open and no ack for anything.
pub fn without_acks(server: &Server, scale: Scale) -> Hoard {
    let count = scale.of(3, 10);
    let ends = connections(server, count, 1 << 40, |wire| send_all(wire, (0..20).map(get)));
    Hoard { connections: count, promised: count * (160 << 10), ends: Box::new(ends) }
}

/// Requests that are taken back at once.
pub fn stopped(server: &Server, scale: Scale) -> Hoard {
    let count = scale.of(1_000, 8_000);
    let before = server.ticks();
    let mut wire = Wire::connect(server.address, server.alpn, params(1 << 40), 100);
    for n in 0..count {
        let mut payload = get(n);
        payload.extend(frame(&[0x05, 4 * n, 9], &[]));
        if n % 50 == 49 {
            // New streams are let in as the old ones end, which takes the server's resets acknowledged.
            wire.listen(Duration::from_millis(2));
            payload.extend(wire.peer.ack(Space::Data, 0, AckForm::Plain).unwrap_or_default());
        }
        wire.frames(payload);
    }
    wire.listen(Duration::from_millis(100));
    assert_eq!(wire.closed, None, "every request was heard");
    if let (Some(before), Some(after)) = (before, server.ticks()) {
        println!("{count} requests that were stopped: {} ms of processor time", 10 * (after - before));
    }
    Hoard { connections: 1, promised: 128 << 10, ends: Box::new(wire) }
}
