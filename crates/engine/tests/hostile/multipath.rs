//! RFC 10069 rule by rule: the errors, what is no error, and the known pitfalls.

use std::time::Duration;

use plait_base::limits::{MAX_DEFERRED_PACKETS, MAX_QUEUED_PATH_RESPONSES};
use plait_base::{CloseCode, PathId, Space};
use plait_engine::path::PathStatus;
use plait_engine::{Event, PathEvent};
use plait_wire::frame::{AckForm, CidForm, PathStatus as Advice};
use plait_wire::{Frame, PacketKind, TransportParameters};

use crate::puppet::{Packet, Rig, Setup, addr, ms, tuple};
use crate::violations::{encoded, raw, stream};

const SECOND: &str = "192.0.2.2:5000";
const THIRD: &str = "192.0.2.3:5000";

fn two_paths() -> Rig {
    Rig::server_with_two_paths(Setup::default(), SECOND)
}

/// Frames on path 1 from its own address.
fn on_second(rig: &mut Rig, payload: impl Into<Vec<u8>>) {
    rig.send_all(tuple(SECOND), &[Packet::one_rtt(payload).on(1)]);
}

fn abandons(rig: &Rig, path: u32) -> Vec<CloseCode> {
    let codes = |s: &crate::puppet::Seen| -> Vec<CloseCode> {
        let code = |f: &Frame<'_>| if let Frame::PathAbandon(a) = f { Some((a.path.0, a.code)) } else { None };
        s.frames().iter().filter_map(code).filter(|(p, _)| *p == path).map(|(_, c)| c).collect()
    };
    rig.seen.iter().flat_map(codes).collect()
}

#[test]
fn errors_of_table_2_5_on_other_paths() {
    type Attack = fn(&mut Rig);
    let table: [(&str, u64, Attack); 9] = [
        ("more ids on path 1 than active_connection_id_limit", 0x09, |rig| {
            for sequence in 1..6 {
                let frame = rig.peer.new_cid(CidForm::Path, 1, sequence);
                rig.frames(encoded(&frame));
            }
        }),
        ("the same id on two paths", 0x0a, |rig| {
            let mut frame = rig.peer.new_cid(CidForm::Path, 2, 1);
            rig.frames(encoded(&frame));
            frame.path = PathId(3);
            rig.frames(encoded(&frame));
        }),
        ("the same id under two sequences", 0x0a, |rig| {
            let mut frame = rig.peer.new_cid(CidForm::Path, 2, 1);
            rig.frames(encoded(&frame));
            frame.sequence = 2;
            rig.frames(encoded(&frame));
        }),
        ("the same id with another token", 0x0a, |rig| {
            let mut frame = rig.peer.new_cid(CidForm::Path, 2, 1);
            rig.frames(encoded(&frame));
            frame.token.0[0] ^= 1;
            rig.frames(encoded(&frame));
        }),
        ("an id never issued on path 2 retired", 0x0a, |rig| rig.frames(raw(&[0x3e79, 2, 50], &[]))),
        ("the id in use retired on its own path", 0x0a, |rig| on_second(rig, raw(&[0x3e79, 1, 0], &[]))),
        ("PATH_ACK of an unsent number", 0x0a, |rig| rig.frames(raw(&[0x3e, 1, 9_999, 0, 0, 0], &[]))),
        ("PATH_ACK above the limit", 0x0a, |rig| rig.frames(raw(&[0x3e, 99, 0, 0, 0, 0], &[]))),
        ("PATH_ABANDON above the limit", 0x0a, |rig| rig.frames(raw(&[0x3e75, 99, 0], &[]))),
    ];
    for (what, code, attack) in table {
        let mut rig = two_paths();
        attack(&mut rig);
        assert_eq!(rig.close_seen(), Some(CloseCode(code)), "{what}");
    }
}

#[test]
fn multipath_frames_belong_in_1_rtt_packets_only() {
    // RFC 10069 4-2
    for frame in [raw(&[0x3e75, 0, 0], &[]), raw(&[0x3e, 0, 0, 0, 0, 0], &[]), raw(&[0x3e7a, 9], &[])] {
        let mut rig = crate::violations::half_way();
        rig.send(Packet::new(PacketKind::Initial, frame));
        assert_eq!(rig.close_seen(), Some(CloseCode::PROTOCOL_VIOLATION));
    }
}

#[test]
fn what_is_no_error() {
    // RFC 9000 13.3-3; RFC 10069 2.3, 4-4
    type Oddity = fn(&mut Rig);
    let table: [(&str, Oddity); 9] = [
        ("PATH_ABANDON of a path never used", |rig| rig.frames(raw(&[0x3e75, 5, 0], &[]))),
        ("PATH_ACK of a path that is gone", |rig| {
            on_second(rig, [0x01]);
            rig.frames(raw(&[0x3e75, 1, 0], &[]));
            rig.pass(ms(20_000));
            rig.frames(raw(&[0x3e, 1, 9_999, 0, 0, 0], &[]));
        }),
        ("frames of a path that is gone", |rig| {
            rig.frames(raw(&[0x3e75, 1, 0], &[]));
            rig.pass(ms(20_000));
            rig.frames(raw(&[0x3e76, 1, 9], &[]));
            rig.frames(raw(&[0x3e79, 1, 9], &[]));
            rig.frames(raw(&[0x3e7c, 1, 9], &[]));
        }),
        ("MAX_PATH_ID that raises nothing", |rig| rig.frames(raw(&[0x3e7a, 7], &[]))),
        ("stale PATH_STATUS", |rig| {
            rig.frames(raw(&[0x3e76, 1, 9], &[]));
            rig.frames(raw(&[0x3e77, 1, 8], &[]));
        }),
        ("PATH_STATUS of an unused path", |rig| rig.frames(raw(&[0x3e76, 6, 0], &[]))),
        ("a first packet without PATH_CHALLENGE", |rig| {
            rig.send_all(tuple(THIRD), &[Packet::one_rtt([0x01]).on(2)]);
            assert_eq!(rig.conn().paths().ids().len(), 3);
        }),
        ("path ids out of order", |rig| {
            rig.open_path(7, "192.0.2.7:1", true);
            rig.open_path(4, "192.0.2.4:1", true);
            assert_eq!(rig.conn().paths().ids(), [PathId(0), PathId(1), PathId(4), PathId(7)]);
        }),
        ("plain ACK and ids for path 0", |rig| {
            let ack = rig.peer.ack(Space::Data, 0, AckForm::Plain).unwrap();
            rig.frames(ack);
            let frame = rig.peer.new_cid(CidForm::Plain, 0, 2);
            rig.frames(encoded(&frame));
        }),
    ];
    for (what, oddity) in table {
        let mut rig = two_paths();
        oddity(&mut rig);
        assert!(rig.is_open(), "{what}: {:?}", rig.close_seen());
        rig.assert_answers(what);
    }
}

#[test]
fn an_initial_max_path_id_of_zero_is_no_error() {
    let mut setup = Setup::default();
    setup.habits.params.initial_max_path_id = Some(PathId(0));
    let mut rig = Rig::server(setup);
    (0..4).for_each(|_| {
        rig.say_handshake();
        rig.pass(ms(5));
    });
    assert!(rig.conn().is_multipath() && rig.is_open());
}

#[test]
fn pitfall_01_we_announce_at_least_one() {
    let mut setup = Setup::default();
    setup.transport.max_concurrent_multipath_paths(2);
    let mut rig = Rig::server(setup);
    rig.say_handshake();
    let params = rig.peer.tls.as_ref().unwrap().peer_params().unwrap();
    let params = TransportParameters::decode(params, plait_base::Side::Server).unwrap();
    assert_eq!(params.initial_max_path_id, Some(PathId(1)));
}

#[test]
fn pitfall_02_limits_are_what_we_announced() {
    // Not the smaller of both sides' limits.
    let mut setup = Setup::default();
    setup.habits.params.initial_max_path_id = Some(PathId(1));
    let mut rig = Rig::established_server(setup);
    rig.frames(raw(&[0x3e76, 5, 0], &[]));
    assert!(rig.is_open());
    rig.frames(raw(&[0x3e76, 8, 0], &[]));
    assert_eq!(rig.close_seen(), Some(CloseCode::PROTOCOL_VIOLATION));
}

#[test]
fn no_ids_for_paths_beyond_the_peers_own_limit() {
    // RFC 10069 4-3: the peer may give ids up to our limit, and closes for ids beyond its own.
    for begin in [Rig::established_server, Rig::established_client] {
        let mut setup = Setup::default();
        setup.habits.params.initial_max_path_id = Some(PathId(2));
        let mut rig = begin(setup);
        for sequence in 0..4 {
            rig.frames(raw(&[0x3e79, 2, sequence], &[]));
            rig.pass(ms(20));
            rig.ack_all();
        }
        let issued = |id: u32| rig.peer.engine_cid(PathId(id)).is_some();
        assert!((0..3).all(issued) && !(3..8).any(issued));
    }
}

#[test]
fn pitfall_03_acks_of_never_used_and_of_dropped_paths_differ() {
    let mut rig = two_paths();
    rig.frames(raw(&[0x3e75, 1, 0], &[]));
    rig.pass(ms(20_000));
    rig.frames(raw(&[0x3e, 1, 0, 0, 0, 0], &[]));
    assert!(rig.is_open());
    rig.frames(raw(&[0x3e, 5, 0, 0, 0, 0], &[]));
    assert_eq!(rig.close_seen(), Some(CloseCode::PROTOCOL_VIOLATION));
}

#[test]
fn pitfall_04_no_ack_of_a_path_on_which_nothing_came() {
    let mut rig = Rig::established_client(Setup::default());
    let now = rig.now;
    let other = plait_base::FourTuple { local: addr("10.0.0.2:1"), ..rig.tuple };
    rig.conn().open_path(now, other, PathStatus::Available).unwrap();
    rig.pass(ms(500));
    rig.frames([0x01]);
    assert!(rig.seen.iter().any(|s| s.path == PathId(1)), "the path is used");
    assert_eq!(rig.count(|f| matches!(f, Frame::Ack(a) if a.path == PathId(1))), 0);
}

#[test]
fn pitfall_05_path_response_on_the_same_path_and_addresses() {
    // RFC 9000 19.17; RFC 10069 3.1-5
    // RFC 9000 8.2.2-1, 8.2.2-2, 8.2.2-3, 8.2.2-5, 8.2.2-7
    let mut rig = two_paths();
    for (path, remote) in [(1, SECOND), (1, "192.0.2.77:9"), (0, crate::puppet::PUPPET)] {
        let from = rig.seen.len();
        let mut payload = vec![0x1a];
        payload.extend_from_slice(b"01234567");
        rig.send_all(tuple(remote), &[Packet::one_rtt(payload).on(path).padded(1200)]);
        let answers: Vec<_> =
            rig.seen[from..].iter().filter(|s| s.has(|f| matches!(f, Frame::PathResponse(_)))).collect();
        assert_eq!(answers.len(), 1);
        assert_eq!((answers[0].path, answers[0].tuple.remote), (PathId(path), addr(remote)));
        assert!(answers[0].datagram >= 1200, "RFC 9000 8.2.2");
    }
}

#[test]
fn pitfall_06_ids_for_paths_never_opened_and_none_means_no() {
    let rig = Rig::established_server(Setup::default());
    for path in 1..8 {
        assert!(rig.peer.engine_cid(PathId(path)).is_some(), "an id for path {path} ahead of its use");
    }
    let mut rig = Rig::server(Setup::default());
    (0..4).for_each(|_| {
        rig.say_handshake();
        rig.pass(ms(5));
    });
    rig.frames([0x01]);
    rig.open_path(1, SECOND, false);
    rig.pass(ms(50));
    // They may come late over a slower path: we ask for them, and wait a little.
    assert!(abandons(&rig, 1).is_empty());
    assert!(rig.count(|f| matches!(f, Frame::PathCidsBlocked(b) if b.path == PathId(1))) > 0);
    rig.pass(ms(5_000));
    rig.open_path(1, SECOND, false);
    rig.pass(ms(10));
    assert_eq!(abandons(&rig, 1), [CloseCode::NO_CID_AVAILABLE_FOR_PATH]);
    assert!(rig.is_open() && rig.conn().paths().ids().len() == 1);
}

#[test]
fn packets_that_overtake_the_ids_of_their_path_are_read_when_those_come() {
    let mut rig = Rig::server(Setup::default());
    (0..4).for_each(|_| {
        rig.say_handshake();
        rig.pass(ms(5));
    });
    rig.frames([0x01]);
    let challenge = |n: u8| [&[0x1a][..], &[n; 8]].concat();
    let count = MAX_DEFERRED_PACKETS as u8 + 20;
    for n in 0..count {
        // Each comes twice.
        let packet = Packet::one_rtt(challenge(n)).on(1).numbered(n.into()).padded(1200);
        for _ in 0..2 {
            rig.send_all(tuple(SECOND), std::slice::from_ref(&packet));
        }
    }
    assert_eq!(rig.count(|f| matches!(f, Frame::PathResponse(_))), 0);

    let frame = rig.peer.new_cid(CidForm::Path, 1, 0);
    rig.frames(encoded(&frame));
    rig.pass(ms(1));
    let answered = |n: u8| rig.count(|f| matches!(f, Frame::PathResponse(r) if r.data == [n; 8]));
    let got: Vec<_> = (0..count).map(|n| (n, answered(n))).filter(|(_, times)| *times > 0).collect();
    // As many as may wait were kept, each number was read once, and the last few are answered.
    let most = MAX_DEFERRED_PACKETS as u8;
    let last: Vec<_> = (most / 2 - MAX_QUEUED_PATH_RESPONSES as u8..most / 2).map(|n| (n, 1)).collect();
    assert_eq!(got, last);
    assert!(abandons(&rig, 1).is_empty() && rig.is_open());
}

/// Each datagram looks at what waits: a peer that never names its ids must not make it wait for ever.
#[test]
fn packets_wait_for_the_ids_of_their_path_no_longer_than_three_probe_timeouts() {
    let mut rig = Rig::server(Setup::default());
    (0..4).for_each(|_| {
        rig.say_handshake();
        rig.pass(ms(5));
    });
    rig.frames([0x01]);
    for n in 0..3 {
        let challenge = [&[0x1a][..], &[n; 8]].concat();
        rig.send_all(tuple(SECOND), &[Packet::one_rtt(challenge).on(1).numbered(n.into()).padded(1200)]);
    }
    rig.pass(ms(5_000));
    // The first datagram after that time lets them go.
    rig.frames([0x01]);
    let frame = rig.peer.new_cid(CidForm::Path, 1, 0);
    rig.frames(encoded(&frame));
    rig.pass(ms(1));
    assert_eq!(rig.count(|f| matches!(f, Frame::PathResponse(_))), 0);
    assert!(rig.is_open());
}

#[test]
fn pitfall_07_a_retired_id_is_replaced() {
    let mut rig = two_paths();
    let before = rig.peer.issued.range((PathId(1), 0)..(PathId(2), 0)).count();
    assert!(before >= 2, "a spare for rebinding");
    rig.frames(raw(&[0x3e79, 1, 0], &[]));
    rig.pass(ms(50));
    let after = rig.peer.issued.range((PathId(1), 0)..(PathId(2), 0)).count();
    assert_eq!(after, before + 1);
}

#[test]
fn pitfall_08_max_path_id_rises_as_paths_die() {
    let mut rig = two_paths();
    for path in 1..6 {
        rig.frames(raw(&[0x3e75, path, 0], &[]));
        rig.pass(ms(50));
        rig.ack_all();
    }
    let limit = |f: &Frame<'_>| if let Frame::MaxPathId(m) = f { Some(m.limit.0) } else { None };
    let highest = rig.seen.iter().flat_map(|s| s.frames().iter().filter_map(limit).collect::<Vec<_>>()).max();
    assert_eq!(highest, Some(12));
}

#[test]
fn ids_for_newly_allowed_paths_come_at_once() {
    // RFC 10069 3.2.1: one at least for each id that both sides allow; no timer has to fire for it
    let setup = |max: u32| {
        let mut setup = Setup::default();
        setup.habits.params.initial_max_path_id = Some(PathId(max));
        setup
    };
    let mut rig = Rig::established_server(setup(1));
    assert!(rig.peer.engine_cid(PathId(1)).is_some() && rig.peer.engine_cid(PathId(2)).is_none());
    rig.frames(raw(&[0x3e7a, 3], &[]));
    assert!(rig.peer.engine_cid(PathId(3)).is_some(), "the peer allows more");
    let mut rig = Rig::established_server(setup(15));
    assert!(rig.peer.engine_cid(PathId(7)).is_some() && rig.peer.engine_cid(PathId(8)).is_none());
    rig.frames(raw(&[0x3e75, 1, 0], &[]));
    assert_eq!(rig.count(|f| matches!(f, Frame::MaxPathId(m) if m.limit == PathId(8))), 1);
    assert!(rig.peer.engine_cid(PathId(8)).is_some(), "we allow more");
}

#[test]
fn a_small_copy_makes_no_train_of_small_packets() {
    let mut setup = Setup::default();
    setup.transport.auto_tune_windows(false).receive_window(20_000).stream_receive_window(1_000);
    let mut rig = Rig::server_with_two_paths(setup, SECOND);
    (0..20).for_each(|i| rig.frames(stream(2 + 4 * i, 0, false, &[3; 1_000])));
    rig.pass(ms(50));
    rig.ack_all();
    // Both windows are full, more data waits, and credit is due.
    let ours = rig.conn().streams().open(plait_base::Dir::Uni).unwrap();
    rig.conn().send_stream(ours).write(&[1; 80_000]).unwrap();
    rig.pump();
    while let Some(theirs) = rig.conn().streams().accept(plait_base::Dir::Uni) {
        assert!(rig.conn().recv_stream(theirs).read(4_000, plait_engine::stream::Order::Ordered).is_ok());
    }
    rig.seen.clear();
    // The first path is free again, and then the second.
    for path in [0, 1] {
        let ack = rig.peer.ack(Space::Data, path, AckForm::Path).unwrap();
        rig.frames(ack);
        rig.pass(ms(10));
    }
    let on_second: Vec<&crate::puppet::Seen> = rig.seen.iter().filter(|s| s.path == PathId(1)).collect();
    assert!(on_second.iter().any(|s| s.has(|f| matches!(f, Frame::MaxData(_)))), "credit is copied");
    let small = |s: &&&crate::puppet::Seen| s.datagram < 1_000 && s.has(|f| matches!(f, Frame::Stream(_)));
    let sizes: Vec<usize> = on_second.iter().map(|s| s.datagram).collect();
    assert!(on_second.len() > 3 && on_second.iter().filter(small).count() <= 1, "{sizes:?}");
}

#[test]
fn datagrams_of_one_size_still_leave_in_trains() {
    let mut rig = two_paths();
    for _ in 0..8 {
        rig.conn().datagrams().send(vec![1; 800].into(), plait_engine::stream::Overflow::Refuse).unwrap();
    }
    let (now, mut buf) = (rig.now, Vec::new());
    let transmit = rig.conn().poll_transmit(now, 10, &mut buf).unwrap();
    assert!(transmit.segment_size.is_some_and(|segment| transmit.size >= 4 * segment), "{transmit:?}");
}

#[test]
fn a_path_is_closed_with_the_code_that_the_application_gives() {
    let mut rig = two_paths();
    rig.open_path(2, THIRD, true);
    let now = rig.now;
    rig.conn().close_path(now, PathId(1), CloseCode::PATH_UNSTABLE_OR_POOR).unwrap();
    // More than the wire can say becomes the most that it can.
    rig.conn().close_path(now, PathId(2), CloseCode(u64::MAX)).unwrap();
    rig.pump();
    assert_eq!(abandons(&rig, 1), [CloseCode::PATH_UNSTABLE_OR_POOR]);
    assert_eq!(abandons(&rig, 2), [CloseCode((1 << 62) - 1)]);
    assert!(rig.is_open());
}

#[test]
fn a_path_on_proven_addresses_is_established_at_once() {
    // RFC 10069 3.1-3, 3.1-4
    // RFC 10069 5.2, 3.1: two paths may share their addresses, and what one proved the other need not prove again
    let mut rig = Rig::established_server(Setup::default());
    let established = |rig: &Rig, id: u32| {
        let of = |e: &&Event| matches!(e, Event::Path(PathEvent::Established { id: it }) if *it == PathId(id));
        rig.events.iter().filter(of).count()
    };
    rig.open_path(1, crate::puppet::PUPPET, false);
    assert_eq!(established(&rig, 1), 1, "on the addresses of path 0");
    let seen = rig.seen.len();
    rig.open_path(2, SECOND, false);
    assert_eq!(established(&rig, 2), 0, "elsewhere nothing is proven yet");
    rig.answer_challenges(seen, tuple(SECOND), 2);
    rig.pass(ms(50));
    rig.ack_all();
    rig.open_path(3, SECOND, true);
    rig.pass(ms(50));
    assert_eq!([1, 2, 3].map(|id| established(&rig, id)), [1; 3]);
}

#[test]
fn keep_alive_reaches_each_silent_path_whatever_else_is_due() {
    let mut setup = Setup::default();
    setup.transport.keep_alive_interval(Some(Duration::from_secs(5)));
    let mut rig = Rig::server_with_two_paths(setup, SECOND);
    rig.pass(ms(100));
    // Both paths are silent for long enough, and path 0 owes a response.
    rig.now = rig.conn().deadline().unwrap();
    let now = rig.now;
    rig.conn().on_timeout(now);
    rig.seen.clear();
    rig.frames([vec![0x1a], vec![9; 8]].concat());
    let pinged = |path: u32| rig.seen.iter().any(|s| s.path == PathId(path) && s.has(|f| matches!(f, Frame::Ping)));
    assert!(rig.count(|f| matches!(f, Frame::PathResponse(_))) == 1 && pinged(0) && pinged(1));
}

#[test]
fn pitfall_09_abandon_is_answered_and_late_packets_acked_elsewhere() {
    // RFC 10069 3.4-3
    let mut rig = two_paths();
    rig.frames(raw(&[0x3e75, 1, 0], &[]));
    assert_eq!(abandons(&rig, 1), [CloseCode::NO_ERROR]);
    let from = rig.seen.len();
    let number = rig.peer.next_number(Space::Data, 1);
    on_second(&mut rig, stream(0, 0, false, b"late"));
    rig.pass(ms(50));
    let acked = |f: &Frame<'_>| matches!(f, Frame::Ack(a) if a.path == PathId(1) && a.largest == number);
    assert!(rig.seen[from..].iter().any(|s| s.path == PathId(0) && s.has(acked)));
    assert!(rig.seen[from..].iter().all(|s| s.path != PathId(1)), "nothing leaves on an abandoned path");
    rig.pass(ms(20_000));
    let from = rig.seen.len();
    on_second(&mut rig, [0x01]);
    rig.pass(ms(50));
    assert!(!rig.seen[from..].iter().any(|s| s.has(|f| matches!(f, Frame::Ack(a) if a.path == PathId(1)))));
    assert!(rig.is_open());
}

#[test]
fn pitfall_10_stale_packets_of_a_slow_path_survive_a_key_update() {
    let mut rig = two_paths();
    let mut stale = Vec::new();
    rig.peer.seal(&Packet::one_rtt(stream(0, 0, false, b"slow")).on(1), &mut stale);
    let now = rig.now;
    rig.peer.one_rtt.as_mut().unwrap().advance_to(1, now, ms(300));
    rig.frames([0x01]);
    assert_eq!(rig.conn().session().key_phase(), 1);
    rig.pass(ms(10));
    rig.deliver_from(tuple(SECOND), &stale);
    assert!(rig.events.iter().any(|e| matches!(e, Event::Stream(_))), "the stale packet was read");
    on_second(&mut rig, [0x01]);
    assert!(rig.is_open() && rig.conn().session().key_phase() == 1);
}

#[test]
fn pitfall_11_1_rtt_before_the_end_of_the_handshake_waits() {
    // RFC 9001 5.7-1, 5.7-2
    let mut rig = Rig::server(Setup::default());
    let initial = rig.peer.crypto_frames(Space::Initial, 0, 1000).concat();
    rig.send(Packet::new(PacketKind::Initial, initial));
    assert!(rig.peer.is_done());
    rig.frames(stream(0, 0, false, b"early"));
    assert!(rig.conn().is_handshaking() && !rig.events.iter().any(|e| matches!(e, Event::Stream(_))));
    let finished = rig.peer.crypto_frames(Space::Handshake, 0, 1000).concat();
    rig.send(Packet::new(PacketKind::Handshake, finished));
    assert!(rig.events.iter().any(|e| matches!(e, Event::Stream(_))));
}

#[test]
fn the_first_packets_of_a_path_are_acknowledged_at_once() {
    // Else the peer's first RTT samples hold our ack delay (RFC 9002 5.3).
    let mut rig = Rig::established_server(Setup::default());
    rig.open_path(1, SECOND, true);
    rig.ack_all();
    let mut acks = Vec::new();
    for _ in 0..5 {
        let (from, number) = (rig.seen.len(), rig.peer.next_number(Space::Data, 1));
        on_second(&mut rig, [0x01]);
        let acked = |f: &Frame<'_>| matches!(f, Frame::Ack(a) if a.path == PathId(1) && a.largest == number);
        acks.push(rig.seen[from..].iter().any(|s| s.has(acked)));
    }
    // The challenge and its response had the first two.
    assert!(acks[0] && acks[1]);
    assert!(!acks[4], "then acks are delayed (RFC 9000 13.2.2)");
}

#[test]
fn pitfall_13_rebinding_of_one_path_touches_no_other() {
    // RFC 10069 3.1.2-1
    let mut rig = two_paths();
    rig.send_all(tuple("192.0.2.2:6000"), &[Packet::one_rtt([0x01]).on(1)]);
    let now = rig.now;
    let mut remote = |id| rig.conn().path_statistics(now, PathId(id)).unwrap().tuple.remote;
    assert_eq!((remote(0), remote(1)), (addr(crate::puppet::PUPPET), addr("192.0.2.2:6000")));
}

#[test]
fn pitfall_14_two_ids_on_the_same_addresses() {
    let mut rig = Rig::established_server(Setup::default());
    rig.open_path(1, crate::puppet::PUPPET, true);
    rig.open_path(2, crate::puppet::PUPPET, true);
    assert_eq!(rig.conn().paths().ids().len(), 3);
    assert!(rig.is_open());
}

#[test]
fn pitfall_15_long_headers_travel_without_packets_of_other_paths() {
    // RFC 9000 12.2-2
    for rig in [two_paths(), Rig::established_client(Setup::default())] {
        for (_, _, data) in rig.wire.iter().filter(|(_, _, d)| d[0] & 0x80 != 0) {
            let in_it = rig.seen.iter().filter(|s| s.datagram == data.len() && s.kind == PacketKind::OneRtt);
            assert!(in_it.filter(|s| s.path != PathId(0)).all(|s| s.at > plait_base::Instant::ZERO + ms(30)));
        }
    }
}

#[test]
fn pitfall_16_reset_tokens_end_with_their_path() {
    // RFC 9000 10.3.1-2
    let mut rig = two_paths();
    let token = rig.endpoint_events.iter().find_map(|e| match e {
        plait_engine::EndpointEvent::ResetToken { remote, token } if *remote == addr(SECOND) => Some(*token),
        _ => None,
    });
    rig.frames(raw(&[0x3e75, 1, 0], &[]));
    let mut reset = vec![0x5a; 40];
    reset.extend_from_slice(&token.unwrap().0);
    rig.deliver_from(tuple(SECOND), &reset);
    assert!(rig.is_open());
}

#[test]
fn pitfall_23_status_sequence_is_per_path_and_shared_by_both_types() {
    // RFC 10069 4.3-1
    let mut rig = two_paths();
    let news = |rig: &mut Rig| {
        let status = |e: Event| {
            if let Event::Path(PathEvent::RemoteStatus { id, available }) = e { Some((id.0, available)) } else { None }
        };
        std::mem::take(&mut rig.events).into_iter().filter_map(status).collect::<Vec<_>>()
    };
    rig.frames(raw(&[0x3e76, 1, 5], &[]));
    rig.frames(raw(&[0x3e77, 1, 4], &[]));
    rig.frames(raw(&[0x3e77, 1, 5], &[]));
    rig.frames(raw(&[0x3e76, 0, 0], &[]));
    assert_eq!(news(&mut rig), [(1, false), (0, false)]);
    rig.frames(raw(&[0x3e77, 1, 6], &[]));
    assert_eq!(news(&mut rig), [(1, true)]);
    let _ = Advice::Available;
}

#[test]
fn pitfall_24_path_cids_blocked_names_the_next_sequence() {
    let mut rig = Rig::client(Setup::default());
    for _ in 0..8 {
        if !rig.say_handshake() && rig.peer.is_done() {
            break;
        }
        rig.pass(ms(5));
    }
    rig.frames([0x1e]);
    rig.pass(ms(50));
    let now = rig.now;
    let other = plait_base::FourTuple { local: addr("10.0.0.2:1"), ..rig.tuple };
    assert!(rig.conn().open_path(now, other, PathStatus::Available).is_err());
    rig.pump();
    assert_eq!(rig.count(|f| matches!(f, Frame::PathCidsBlocked(b) if b.path == PathId(1) && b.next_sequence == 0)), 1);
}

/// Where the pitfalls that are no matter of one connection alone are tested.
#[test]
fn packets_of_a_refused_path_are_not_read_twice() {
    // RFC 9000 12.3: a duplicate is discarded, also where there is no receive space
    let mut rig = Rig::established_server(Setup::default());
    rig.frames(raw(&[0x3e75, 3, 0], &[]));
    let mut datagram = Vec::new();
    rig.peer.seal(&Packet::one_rtt(raw(&[0x31, 3], b"abc")).on(3), &mut datagram);
    (0..3).for_each(|_| rig.deliver_from(tuple(THIRD), &datagram));
    assert!(rig.conn().datagrams().recv().is_none());
}

#[test]
fn a_client_without_ids_meets_a_multipath_server() {
    // RFC 10069 2.1-3: the extension is not offered to a peer with zero-length ids
    let mut setup = Setup::default();
    setup.habits.scid_len = Some(0);
    setup.habits.params.initial_max_path_id = None;
    let mut rig = Rig::server(setup);
    (0..4).for_each(|_| {
        rig.say_handshake();
        rig.pass(ms(5));
    });
    let params = rig.peer.tls.as_ref().unwrap().peer_params().unwrap();
    let params = TransportParameters::decode(params, plait_base::Side::Server).unwrap();
    assert_eq!(params.initial_max_path_id, None);
    assert!(rig.is_open() && !rig.conn().is_multipath());
}

#[test]
fn a_path_that_the_peer_avoids_is_asked_whether_it_works() {
    // RFC 10069 3.3: who only receives learns of a dead path by the other end's advice, and then by its own silence.
    let mut rig = two_paths();
    let from = rig.seen.len();
    rig.frames(raw(&[0x3e76, 1, 1], &[]));
    rig.pass(ms(1));
    let asks = |s: &&crate::puppet::Seen| s.path == PathId(1) && s.has(|f| matches!(f, Frame::Ping));
    assert_eq!(rig.seen[from..].iter().filter(asks).count(), 1);
    rig.pass(ms(5_000));
    let failed = |e: &Event| matches!(e, Event::Path(PathEvent::Failed { id: PathId(1) }));
    assert!(rig.events.iter().any(failed), "{:?}", rig.events);
}
