//! Peers that want us to hold much for little: what was promised holds on the wire, and nothing waits for ever.

use bytes::BytesMut;
use plait_base::{Dir, PathId, Side, StreamId};
use plait_engine::{Connection, Event, Received};
use plait_stream::{Order, ReadError};
use plait_wire::{Frame, PacketKind};

use crate::puppet::{Packet, Rig, Seen, Setup, ms};
use crate::violations::{raw, stream};

/// What a peer that fills every window sees of ours while the application reads at once: the largest credit on a stream
/// and on the connection ahead of what was read.
fn windows_on_the_wire(setup: Setup) -> (u64, u64) {
    let mut rig = Rig::established_server(setup);
    let params = rig.peer.tls.as_ref().and_then(|tls| tls.peer_params().map(<[u8]>::to_vec)).unwrap();
    let params = plait_wire::TransportParameters::decode(&params, Side::Server).unwrap();
    let id = StreamId::new(Side::Client, Dir::Uni, 0);
    let (mut stream_limit, mut limit) = (params.limits.max_stream_data_uni, params.limits.max_data);
    let (mut sent, mut read) = (0, 0);
    let mut widest = (stream_limit, limit);
    for _ in 0..60 {
        // All that the credit allows within one round trip, read at once.
        while sent < stream_limit.min(limit) {
            let data = vec![0; (stream_limit.min(limit) - sent).min(1_000) as usize];
            rig.frames(stream(id.0, sent, false, &data));
            sent += data.len() as u64;
        }
        while let Ok(Some(chunk)) = rig.conn().recv_stream(id).read(usize::MAX, Order::Ordered) {
            read += chunk.bytes.len() as u64;
        }
        let seen = rig.seen.len();
        rig.pump();
        rig.pass(ms(1));
        for frame in rig.seen[seen..].iter().flat_map(|s| s.frames()) {
            match frame {
                Frame::MaxData(f) => limit = limit.max(f.limit),
                Frame::MaxStreamData(f) => stream_limit = stream_limit.max(f.limit),
                _ => {}
            }
        }
        rig.ack_all();
        widest = (widest.0.max(stream_limit - read), widest.1.max(limit - read));
    }
    assert!(rig.is_open() && read > 200_000, "{read} bytes read");
    widest
}

#[test]
fn a_window_that_was_set_holds_on_the_wire() {
    let mut setup = Setup::default();
    setup.transport.stream_receive_window(64 << 10).receive_window(128 << 10);
    assert_eq!(windows_on_the_wire(setup), (64 << 10, 128 << 10));
}

#[test]
fn a_window_grows_to_the_maximum_that_was_set() {
    let mut setup = Setup::default();
    setup.transport.stream_receive_window(32 << 10).receive_window(48 << 10);
    setup.transport.max_stream_receive_window(200 << 10).max_receive_window(300 << 10);
    assert_eq!(windows_on_the_wire(setup), (200 << 10, 300 << 10));
}

#[test]
fn tuning_that_is_off_keeps_the_first_window() {
    let mut setup = Setup::default();
    setup.transport.auto_tune_windows(false).stream_receive_window(40 << 10).receive_window(60 << 10);
    setup.transport.max_stream_receive_window(200 << 10).max_receive_window(300 << 10);
    assert_eq!(windows_on_the_wire(setup), (40 << 10, 60 << 10));
}

#[test]
fn a_handshake_without_end_is_given_up_while_the_peer_talks() {
    for timeout in [None, Some(ms(2_000))] {
        let mut setup = Setup::default();
        setup.transport.handshake_timeout(timeout);
        let mut rig = Rig::server(setup);
        let hello = rig.peer.crypto_frames(plait_base::Space::Initial, 0, 1_000).concat();
        rig.send(Packet::new(PacketKind::Initial, hello));
        let began = rig.now;
        while !rig.conn().is_drained() && rig.now.since(began) < ms(40_000) {
            // RFC 9000 10.1: each packet restarts the idle timer
            rig.send(Packet::new(PacketKind::Initial, [0x01]));
            rig.pass(ms(500));
        }
        match timeout {
            Some(timeout) => {
                assert!(rig.conn().is_drained() && rig.now.since(began) <= timeout + ms(500));
                assert!(rig.events.iter().any(|event| matches!(event, Event::ConnectionLost(_))));
            }
            None => assert!(!rig.conn().is_drained()),
        }
    }
}

#[test]
fn a_finished_handshake_does_not_time_out() {
    let mut setup = Setup::default();
    setup.transport.handshake_timeout(Some(ms(1_000))).max_idle_timeout(None);
    let mut rig = Rig::established_server(setup);
    for _ in 0..10 {
        rig.pass(ms(500));
        rig.ack_all();
    }
    assert!(rig.is_open());
}

/// Delivers a datagram as a slice at the front of `buffer`.
fn deliver_slice(rig: &mut Rig, packet: &Packet, buffer: &mut BytesMut) {
    let mut datagram = Vec::new();
    rig.peer.seal(packet, &mut datagram);
    let mut slice = buffer.split_to(datagram.len());
    slice.copy_from_slice(&datagram);
    match rig.endpoint.receive(rig.now, rig.tuple, None, slice, &mut Vec::new()) {
        Received::Connection(_, input) => {
            let now = rig.now;
            rig.conn().handle_datagram(now, input);
        }
        other => panic!("{other:?}"),
    }
    rig.pump();
}

/// True when nobody holds a slice of the buffer of 64 KiB of which `rest` is the end.
fn is_free(rest: &mut BytesMut) -> bool {
    rest.clear();
    rest.try_reclaim(64 << 10)
}

#[test]
fn unread_data_leaves_the_receive_buffer_soon() {
    let uni = StreamId::new(Side::Client, Dir::Uni, 0);
    let frames: [(&str, Vec<u8>); 4] = [
        ("a stream", stream(uni.0, 0, false, &[1; 600])),
        ("beyond a gap", stream(uni.0, 5_000, false, &[1; 900])),
        ("small", stream(uni.0, 0, false, &[1; 20])),
        ("a datagram", raw(&[0x31, 700], &[2; 700])),
    ];
    for (what, payload) in frames {
        let mut rig = Rig::established_server(Setup::default());
        let mut buffer = BytesMut::zeroed(64 << 10);
        deliver_slice(&mut rig, &Packet::one_rtt(payload), &mut buffer);
        rig.pass(plait_base::limits::LOAN_TIME);
        assert!(is_free(&mut buffer), "{what} keeps 64 KiB");
        let read = rig.conn().recv_stream(uni).read(usize::MAX, Order::Ordered);
        let datagram = rig.conn().datagrams().recv();
        assert!(read.is_ok() || datagram.is_some() || matches!(read, Err(ReadError::Blocked)), "{what}: {read:?}");
    }
}

#[test]
fn a_reader_that_keeps_up_gets_the_datagram_itself() {
    let uni = StreamId::new(Side::Client, Dir::Uni, 0);
    let mut rig = Rig::established_server(Setup::default());
    let mut offset = 0;
    // Longer than a loan lasts, with pauses in which nothing is lent.
    for pause in [1, 2, 30, 1, 1, 15, 3, 9] {
        let mut buffer = BytesMut::zeroed(64 << 10);
        let place = buffer.as_ptr() as usize..buffer.as_ptr() as usize + (64 << 10);
        deliver_slice(&mut rig, &Packet::one_rtt(stream(uni.0, offset, false, &[1; 1_000])), &mut buffer);
        let chunk = rig.conn().recv_stream(uni).read(usize::MAX, Order::Ordered).unwrap().unwrap();
        assert!(place.contains(&(chunk.bytes.as_ptr() as usize)), "copied after a pause of {pause} ms");
        offset += 1_000;
        rig.pass(ms(pause));
    }
}

#[test]
fn packets_before_their_keys_are_bounded_in_bytes() {
    let mut rig = Rig::server(Setup::default());
    let hello = rig.peer.crypto_frames(plait_base::Space::Initial, 0, 1_000).concat();
    rig.send(Packet::new(PacketKind::Initial, hello));
    for path in [PathId::ZERO; 16] {
        let datagram = raw(&[0x31, 16_000], &[9; 16_000]);
        rig.send(Packet::one_rtt(datagram).on(path.0));
    }
    let finished = rig.peer.crypto_frames(plait_base::Space::Handshake, 0, 1_000).concat();
    rig.send(Packet::new(PacketKind::Handshake, finished));
    let mut bytes = 0;
    while let Some(datagram) = rig.conn().datagrams().recv() {
        bytes += datagram.len();
    }
    assert!(bytes > 0 && bytes <= plait_base::limits::MAX_SAVED_BYTES, "{bytes}");
}

/// What a server says, handshake bytes aside, that is asked and answers on several streams while packets are lost.
fn said(between: fn(&mut Connection)) -> Vec<String> {
    let mut rig = Rig::established_server(Setup::default());
    rig.open_path(1, "198.51.100.7:4000", true);
    for n in 0..60 {
        between(rig.conn());
        let id = StreamId::new(Side::Client, Dir::Bi, n / 4);
        rig.frames(stream(id.0, n % 4 * 700, n % 4 == 3, &[n as u8; 700]));
        between(rig.conn());
        while let Ok(Some(chunk)) = rig.conn().recv_stream(id).read(usize::MAX, Order::Ordered) {
            rig.conn().send_stream(id).write(&chunk.bytes).unwrap();
        }
        rig.pump();
        between(rig.conn());
        rig.pass(ms(if n % 20 == 19 { 3_000 } else { 7 }));
        if n % 5 == 0 {
            rig.ack_all();
        }
    }
    assert!(rig.is_open(), "{:?}", rig.close_seen());
    let data = rig.seen.iter().filter(|s| s.kind == PacketKind::OneRtt && !s.has(|f| matches!(f, Frame::Crypto(_))));
    // Without PADDING: what fills up a datagram of the handshake is as long as the certificate's signature lets it.
    let padding = |s: &Seen| s.payload.iter().rev().take_while(|byte| **byte == 0).count();
    let said = |s: &Seen| s.payload[..s.payload.len() - padding(s)].to_vec();
    data.map(|s| format!("{:?} {:?} {} {:?}", s.at, s.path, s.number, said(s))).collect()
}

#[test]
fn memory_that_was_given_back_changes_nothing_that_is_said() {
    let plain = said(|_| {});
    assert!(plain.len() > 60, "{}", plain.len());
    assert_eq!(plain, said(Connection::shrink_to_fit));
}
