//! A peer that breaks rules while paths are lent: it hears what it would hear from a connection on one thread.

use bytes::BytesMut;
use plait_base::{CloseCode, PathId, Random, Violation, limits};
use plait_engine::connection::split::ReturnReason;
use plait_engine::{ConnectionError, Event, Received};
use plait_wire::frame::CidForm;

use super::rig::LentRig;
use crate::puppet::{PUPPET, Packet, Rig, Setup, ms, tuple};
use crate::violations::{encoded, raw, stream};

pub const SECOND: &str = "192.0.2.2:5000";

/// An established server with two paths that owes nothing on either.
pub fn two_paths(setup: Setup) -> Rig {
    let mut rig = Rig::server_with_two_paths(setup, SECOND);
    rig.pass(ms(50));
    rig
}

/// The same with both paths lent.
pub fn both_lent(setup: Setup) -> LentRig {
    let mut lent = LentRig::new(two_paths(setup));
    assert_eq!(lent.lend_again(), 2, "both paths are lent");
    lent
}

fn small_windows() -> Setup {
    let mut setup = Setup::default();
    setup.transport.auto_tune_windows(false).stream_receive_window(1_000).receive_window(2_000);
    setup.transport.max_concurrent_bidi_streams(4);
    setup
}

type Answer = (Option<Violation>, Option<CloseCode>);

fn answer(rig: &Rig) -> Answer {
    let told = rig.events.iter().find_map(|event| match event {
        Event::ConnectionLost(ConnectionError::TransportError(error)) => error.violation,
        _ => None,
    });
    (told, rig.close_seen())
}

/// Payloads of packets, each of which, or the last of which, breaks a rule.
fn broken() -> Vec<(&'static str, Vec<Vec<u8>>)> {
    vec![
        // RFC 9000 12.4
        ("a frame cut off", vec![vec![0x06]]),
        ("an unknown frame", vec![vec![0x21]]),
        ("a frame type not minimal", vec![vec![0x40, 0x01]]),
        ("no frame", vec![vec![]]),
        ("a good frame before a bad one", vec![[stream(0, 0, false, &[1; 10]), vec![0x21]].concat()]),
        // RFC 9000 19.3.1, 13.1
        ("PATH_ACK below zero", vec![raw(&[0x3e, 0, 5, 0, 0, 6], &[])]),
        ("PATH_ACK of what was never sent on path 0", vec![raw(&[0x3e, 0, 16_000, 0, 0, 0], &[])]),
        ("PATH_ACK of what was never sent on path 1", vec![raw(&[0x3e, 1, 16_000, 0, 0, 0], &[])]),
        ("PATH_ACK of path 1 from number 0 to one too many", vec![raw(&[0x3e, 1, 200, 0, 0, 200], &[])]),
        ("PATH_ACK above the limit", vec![raw(&[0x3e, 99, 0, 0, 0, 0], &[])]),
        ("PATH_ACK of a path that nobody opened", vec![raw(&[0x3e, 5, 0, 0, 0, 0], &[])]),
        // RFC 9000 19.7-4, 19.20-2
        ("NEW_TOKEN to a server", vec![vec![0x07, 0x01, 0xaa]]),
        ("HANDSHAKE_DONE to a server", vec![vec![0x1e]]),
        ("ACK_FREQUENCY with a delay too short", vec![raw(&[0xaf, 0, 1, 999, 1], &[])]),
        ("a DATAGRAM too large", vec![raw(&[0x31, 1_100], &[7; 1_100])]),
        ("CRYPTO too far ahead", vec![raw(&[0x06, 70_000, 1], &[0])]),
        // RFC 9000 4.1, 4.5, 4.6, 19.8
        ("STREAM beyond any offset", vec![stream(0, (1 << 62) - 1, false, &[1])]),
        ("one byte beyond the stream's limit", vec![stream(0, 1_000, false, &[0])]),
        (
            "one byte beyond the connection's limit",
            vec![stream(0, 0, false, &[0; 900]), stream(4, 0, false, &[0; 900]), stream(8, 0, false, &[0; 201])],
        ),
        ("one stream too many", vec![stream(16, 0, false, &[0])]),
        ("STREAM on a stream of which we only send", vec![stream(3, 0, false, &[0])]),
        ("another final size", vec![stream(0, 0, true, &[0; 5]), raw(&[0x04, 0, 0, 6], &[])]),
        ("data beyond the end", vec![stream(0, 0, true, &[0; 5]), stream(0, 5, false, &[0])]),
        ("an end within the data", vec![stream(0, 0, false, &[0; 10]), raw(&[0x04, 0, 0, 6], &[])]),
        ("STOP_SENDING of a stream never opened", vec![raw(&[0x05, 1, 9], &[])]),
        ("MAX_STREAM_DATA of a stream that only the peer sends on", vec![raw(&[0x11, 2, 9], &[])]),
        // RFC 9000 19.15, 19.16, 19.18; RFC 10069 4
        ("an id of no length", vec![raw(&[0x3e78, 1, 5, 0, 0], &[1; 16])]),
        ("an id never issued is retired", vec![raw(&[0x3e79, 1, 50], &[])]),
        ("the id in use is retired by its own packet", vec![raw(&[0x3e79, 0, 0], &[]), raw(&[0x3e79, 1, 0], &[])]),
        ("a response that nobody asked for", vec![vec![0x1b; 9]]),
        ("PATH_ABANDON above the limit", vec![raw(&[0x3e75, 99, 0], &[])]),
        ("PATH_STATUS above the limit", vec![raw(&[0x3e76, 8, 0], &[])]),
        ("MAX_PATH_ID below what it was", vec![raw(&[0x3e7a, 6], &[])]),
        ("PATHS_BLOCKED above the limit", vec![raw(&[0x3e7b, 8], &[])]),
        ("a frame of Multiflow", vec![raw(&[0x46, 0, 0, 0], &[])]),
    ]
}

#[test]
fn rules_hold_on_lent_paths_as_on_one_thread() {
    // RFC 9000 11.1: an end that finds a broken rule says so
    let setup = || {
        let mut setup = small_windows();
        setup.transport.datagram_receive_buffer_size(Some(1_000));
        setup
    };
    let mut faults = Vec::new();
    for (what, payloads) in broken() {
        for (path, remote) in [(0, PUPPET), (1, SECOND)] {
            let mut usual = two_paths(setup());
            for payload in &payloads {
                usual.send_all(tuple(remote), &[Packet::one_rtt(payload.clone()).on(path)]);
            }
            let mut lent = both_lent(setup());
            payloads.iter().for_each(|payload| lent.frames_on(path, remote, payload.clone()));
            lent.pass(ms(5));
            let (expected, got) = (answer(&usual), answer(&lent.rig));
            // To a path that was challenged, any response may be an old one.
            assert!(expected.1.is_some() || path == 1, "{what} on path {path} is no violation");
            if got != expected {
                faults.push(format!("{what} on path {path}: {got:?} in the place of {expected:?}"));
            }
            if got.1.is_some() && !(lent.lent.is_empty() && lent.coordinator.connection().is_closed()) {
                faults.push(format!("{what} on path {path}: paths are still lent"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn reserved_bits_close_on_lent_paths_too() {
    // RFC 9000 17.3.1-3
    let mut lent = both_lent(Setup::default());
    let mut packet = Packet::one_rtt([0x01]).on(1);
    packet.first_bits = 0x08;
    lent.send(SECOND, packet);
    assert_eq!(answer(&lent.rig).0, Some(Violation::ReservedBitsSet));
}

#[test]
fn long_headers_do_not_go_round_and_what_is_coalesced_behind_them_is_read() {
    // RFC 9000 12.2
    let mut lent = both_lent(Setup::default());
    for (remote, path) in [(PUPPET, 0), (SECOND, 1)] {
        let data = stream(u64::from(path) * 4, 0, true, &[1; 100]);
        let short = lent.sealed(Packet::one_rtt(data).on(path));
        let dcid = lent.rig.peer.engine_cid(PathId(path)).expect("an id");
        // A Handshake packet that nobody can open any more; alone, cut short, and before one that the path reads.
        let head = [&[0xe0, 0, 0, 0, 1, dcid.len() as u8][..], &dcid, &[0, 30]].concat();
        let long = [&head[..], &[7; 30]].concat();
        let other = [&[0xe0, 0, 0, 0, 1, dcid.len() as u8][..], &vec![9; dcid.len()], &[0, 30], &[7; 30]].concat();
        let before = lent.messages;
        lent.deliver(tuple(remote), &long);
        lent.deliver(tuple(remote), &head);
        lent.deliver(tuple(remote), &[&long[..], &other, &short].concat());
        assert!(lent.coordinator.streams().accept(plait_base::Dir::Bi).is_none(), "not the first one's connection id");
        lent.deliver(tuple(remote), &[&long[..], &long, &short].concat());
        assert!(lent.messages - before < 30, "{} messages", lent.messages - before);
        assert!(lent.coordinator.streams().accept(plait_base::Dir::Bi).is_some(), "path {path}");
    }
    assert_eq!(lent.lent.len(), 2, "nothing of this is a reason to go back: {:?}", lent.returns);
    assert_eq!(answer(&lent.rig), (None, None));
}

#[test]
fn nothing_leaves_a_lent_path_after_the_peers_close() {
    // RFC 9000 10.2.2
    let mut lent = both_lent(Setup::default());
    let payload = [stream(0, 0, true, &[1; 100]), raw(&[0x1c, 0, 0, 0], &[])].concat();
    // Two packets that want an ack at once.
    let packets = [stream(4, 0, true, &[1; 100]), payload].map(|payload| lent.sealed(Packet::one_rtt(payload).on(1)));
    let LentRig { rig, coordinator, lent, .. } = &mut lent;
    let path = lent.iter_mut().find(|path| path.id() == PathId(1)).expect("it is lent");
    let mut buf = Vec::new();
    for packet in &packets {
        let data = BytesMut::from(&packet[..]);
        let Received::Connection(_, input) = rig.endpoint.receive(rig.now, tuple(SECOND), None, data, &mut buf) else {
            panic!("it is the connection's")
        };
        path.handle_datagram(rig.now, input);
    }
    assert_eq!(path.wants_back(), Some(&ReturnReason::Closed));
    assert!(path.poll_transmit(rig.now, 10, &mut buf).is_none());
    assert!(!coordinator.is_halted());
    while let Some(message) = path.poll_message(rig.now) {
        coordinator.handle_message(rig.now, PathId(1), message);
    }
    assert!(coordinator.is_halted(), "whoever serves the others looks at this before each train");
    assert!(coordinator.poll_transmit(rig.now, 10, &mut buf).is_none());
}

#[test]
fn forged_doubled_and_old_packets_change_nothing() {
    // RFC 9000 12.3: a number counts once
    let mut lent = both_lent(Setup::default());
    let data: Vec<u8> = (0..200).map(|at| at as u8).collect();
    let packets: Vec<Vec<u8>> =
        (0..20).map(|n| lent.sealed(Packet::one_rtt(stream(0, n * 200, n == 19, &data)).on(1))).collect();
    let mut random = Random::from_u64(7);
    for round in 0..20 {
        // Each packet again and again, the newest first, with bits turned, cut, and with garbage behind a good header.
        for packet in packets.iter().rev() {
            let mut bad = packet.clone();
            let at = 9 + random.below(bad.len() as u64 - 9) as usize;
            bad[at] ^= 1 << random.below(8);
            lent.deliver(tuple(SECOND), &bad);
            lent.deliver(tuple(SECOND), &packet[..1 + random.below(packet.len() as u64 - 1) as usize]);
            if round > 0 {
                lent.deliver(tuple(SECOND), packet);
            }
        }
        if round == 0 {
            packets.iter().rev().for_each(|packet| lent.deliver(tuple(SECOND), packet));
        }
    }
    assert_eq!(lent.lent.len(), 2, "nothing of this is a reason to go back: {:?}", lent.returns);
    let read = |lent: &mut LentRig| {
        let id = lent.coordinator.streams().accept(plait_base::Dir::Bi).expect("the stream");
        let order = plait_engine::stream::Order::Ordered;
        let mut bytes = Vec::new();
        while let Ok(Some(chunk)) = lent.coordinator.recv_stream(id).read(usize::MAX, order) {
            bytes.extend_from_slice(&chunk.bytes);
        }
        bytes
    };
    assert_eq!(read(&mut lent), data.repeat(20));
    assert!(lent.coordinator.streams().accept(plait_base::Dir::Bi).is_none());
    assert_eq!(answer(&lent.rig), (None, None));
}

#[test]
fn packets_from_elsewhere_send_the_path_back_and_no_more() {
    // RFC 9000 9.3: the peer moved, or somebody copies its packets
    let mut lent = both_lent(Setup::default());
    for round in 0..30u16 {
        let packet = lent.sealed(Packet::one_rtt([0x01]).on(1));
        lent.deliver(tuple(&format!("203.0.113.7:{}", 1_000 + round)), &packet);
        lent.pass(ms(3));
        lent.lend();
    }
    assert!(!lent.coordinator.connection().is_closed());
    assert!(lent.returns.len() <= 31 && lent.returns.contains(&ReturnReason::PathMatter), "{:?}", lent.returns);
}

#[test]
fn a_path_that_was_once_asked_from_elsewhere_is_lent_again() {
    // RFC 9000 9.1: probing frames move no path
    let mut lent = both_lent(Setup::default());
    let packet = lent.sealed(Packet::one_rtt([0x00]).on(1));
    lent.deliver(tuple("203.0.113.7:1000"), &packet);
    assert_eq!(lent.returns, [ReturnReason::PathMatter]);
    lent.pass(ms(30));
    lent.lend();
    assert_eq!(lent.lent.len(), 1, "other addresses are being validated: {:?}", lent.returns);
    // Nobody answers there.
    lent.pass(ms(3_000));
    lent.ack_all();
    assert_eq!(lent.lend_again(), 2, "{:?}", lent.returns);
}

#[test]
fn a_storm_of_path_abandon_ends_what_it_names() {
    // RFC 10069 3.4
    let storm: Vec<u8> = (1..8).rev().flat_map(|id| raw(&[0x3e75, id, 0], &[])).collect();
    let mut usual = two_paths(Setup::default());
    let mut lent = both_lent(Setup::default());
    for _ in 0..200 {
        usual.frames(storm.clone());
        lent.frames_on(0, PUPPET, storm.clone());
        lent.lend();
    }
    usual.pass(ms(3_000));
    lent.pass(ms(3_000));
    assert_eq!(lent.coordinator.connection().paths().ids(), [PathId::ZERO]);
    assert_eq!(usual.conn().paths().ids(), [PathId::ZERO]);
    assert!(lent.coordinator.connection().paths().ids_with_closing().len() <= limits::MAX_PATHS);
    assert!(lent.returns.len() < 210, "{}", lent.returns.len());
}

#[test]
fn ids_that_change_all_the_time_are_followed() {
    // RFC 9000 5.1.2, 19.15
    let mut lent = both_lent(Setup::default());
    for sequence in 1..40 {
        let mut frame = lent.rig.peer.new_cid(CidForm::Path, 1, sequence);
        frame.retire_prior_to = sequence;
        lent.frames_on(1, SECOND, encoded(&frame));
        lent.pass(ms(20));
        lent.ack_all();
        lent.lend_again();
    }
    assert_eq!(answer(&lent.rig), (None, None));
    assert_eq!(lent.coordinator.connection().paths().ids().len(), 2);
    // What leaves on the path leaves under the newest id.
    let before = lent.rig.seen.len();
    lent.frames_on(1, SECOND, [0x01]);
    lent.frames_on(1, SECOND, [0x01]);
    lent.pass(ms(50));
    assert!(lent.rig.seen[before..].iter().any(|seen| seen.path == PathId(1)), "it is acknowledged on its path");
}

#[test]
fn keys_that_change_twice_in_a_row_close_or_open_nothing() {
    // RFC 9001 6.2
    let twice = |second: (u32, &str)| {
        let mut lent = both_lent(Setup::default());
        for (phase, (path, remote)) in [(1, (0, PUPPET)), (2, second)] {
            let now = lent.rig.now;
            lent.rig.peer.one_rtt.as_mut().expect("keys").advance_to(phase, now, ms(300));
            lent.frames_on(path, remote, [0x00]);
        }
        lent.pass(ms(5));
        (answer(&lent.rig), lent.coordinator.connection().session().key_phase())
    };
    let too_soon = Violation::KeyUpdateTooSoon;
    assert_eq!(twice((0, PUPPET)), ((Some(too_soon), Some(too_soon.code())), 1));
    // Whoever has the other path knows of neither: the second has the bit of the phase before the first.
    assert_eq!(twice((1, SECOND)), ((None, None), 1));
}

#[test]
fn keys_that_change_once_are_followed_on_all_paths() {
    // RFC 9001 6.1
    let mut lent = both_lent(Setup::default());
    let now = lent.rig.now;
    lent.rig.peer.one_rtt.as_mut().expect("keys").advance_to(1, now, ms(300));
    lent.frames_on(1, SECOND, [0x01]);
    lent.frames_on(0, PUPPET, [0x01]);
    lent.pass(ms(50));
    assert_eq!(lent.coordinator.connection().session().key_phase(), 1);
    assert!(lent.returns.contains(&ReturnReason::NewPhase), "{:?}", lent.returns);
    assert_eq!(answer(&lent.rig), (None, None));
}

#[test]
fn a_flood_on_lent_paths_is_held_within_bounds() {
    // RFC 9000 21: nobody reads, nothing is acknowledged that was not handed over, and nothing grows
    let mut lent = both_lent(small_windows());
    let before = lent.messages;
    for round in 0..2_000u64 {
        // Resets, stops, blocked streams, limits that change nothing, pings, small pieces again and again.
        let frames = [
            raw(&[0x05, 0, 1], &[]),
            raw(&[0x15, 0, 900], &[]),
            raw(&[0x10, 1 << 20], &[]),
            raw(&[0x14, round], &[]),
            stream(0, round % 900, false, &[1; 3]),
            vec![0x01],
        ];
        let payload = if round % 7 == 0 { frames.concat() } else { frames[round as usize % 6].clone() };
        let (path, remote) = if round % 2 == 0 { (0, PUPPET) } else { (1, SECOND) };
        lent.frames_on(path, remote, payload);
    }
    assert_eq!(answer(&lent.rig).1, None);
    let messages = lent.messages - before;
    assert!(messages < 2_000 * 6, "{messages} messages for 2,000 packets");
}
