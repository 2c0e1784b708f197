//! Two paths from two local addresses, of which one or both have a socket that takes nothing.

use plait_base::{Dir, FourTuple, PathId, Space};
use plait_engine::{Event, PathEvent};
use plait_wire::{Frame, PacketKind};

use crate::ack_frequency::{asked, asking};
use crate::puppet::{ENGINE, PUPPET, Packet, Rig, Setup, addr, ms, tuple};
use crate::violations::raw;

const OTHER: &str = "10.0.0.2:443";
const SECOND: &str = "192.0.2.2:5000";

/// From our second address to the peer's second one.
fn second() -> FourTuple {
    FourTuple { local: addr(OTHER), remote: addr(SECOND) }
}

/// Path 0 from one of our addresses, path 1 from the other.
fn two_locals() -> Rig {
    two_locals_of(Setup::default())
}

pub fn two_locals_of(setup: Setup) -> Rig {
    let mut rig = Rig::established_server(setup);
    let before = rig.seen.len();
    let challenge = [&[0x1a_u8][..], &[7; 8]].concat();
    rig.send_all(second(), &[Packet::one_rtt(challenge).on(1).padded(1200)]);
    rig.answer_challenges(before, second(), 1);
    rig.pass(ms(50));
    rig.ack_all();
    rig.pass(ms(50));
    rig.ack_all();
    rig.wire.clear();
    rig.seen.clear();
    rig
}

pub fn set_full(rig: &mut Rig, full: &[&str]) {
    let (now, full) = (rig.now, full.iter().map(|f| addr(f)).collect::<Vec<_>>());
    rig.conn().set_full_sockets(now, &full);
    rig.pump();
}

fn write(rig: &mut Rig, bytes: usize) {
    let id = rig.conn().streams().open(Dir::Uni).unwrap();
    assert_eq!(rig.conn().send_stream(id).write(&vec![3; bytes]).unwrap(), bytes);
    rig.pump();
}

/// Datagrams that left from one of our addresses since the last call to `clear`.
fn left(rig: &Rig, local: &str) -> usize {
    rig.wire.iter().filter(|(tuple, ..)| tuple.local == addr(local)).count()
}

fn clear(rig: &mut Rig) {
    rig.wire.clear();
    rig.seen.clear();
}

/// PATH_RESPONSE frames: where they left, and the first byte of what they answer.
fn answers(rig: &Rig) -> Vec<(FourTuple, u8)> {
    let of = |s: &crate::puppet::Seen| -> Vec<(FourTuple, u8)> {
        let data = |f: &Frame<'_>| if let Frame::PathResponse(r) = f { Some((s.tuple, r.data[0])) } else { None };
        s.frames().iter().filter_map(data).collect()
    };
    rig.seen.iter().flat_map(of).collect()
}

fn is_stream(frame: &Frame<'_>) -> bool {
    matches!(frame, Frame::Stream(_))
}

#[test]
fn data_and_acks_leave_on_the_other_path() {
    for (full, open, held) in [(ENGINE, OTHER, 0), (OTHER, ENGINE, 1)] {
        let mut rig = two_locals();
        set_full(&mut rig, &[full]);
        write(&mut rig, 100_000);
        assert!(rig.count(is_stream) > 0 && left(&rig, open) > 5, "data waits for {full}");
        // What both paths bring is acknowledged where there is room.
        rig.send_all(tuple(PUPPET), &[Packet::one_rtt([0x01])]);
        rig.send_all(second(), &[Packet::one_rtt([0x01]).on(1)]);
        rig.pass(ms(30));
        for path in [PathId(0), PathId(1)] {
            assert!(rig.count(|f| matches!(f, Frame::Ack(a) if a.path == path)) > 0, "{path:?} is not acknowledged");
        }
        assert_eq!(left(&rig, full), 0);
        let now = rig.now;
        let fares = rig.conn().path_statistics(now, PathId(held)).unwrap();
        assert_eq!((fares.why_idle, fares.packets_lost), (Some("socket"), 0));

        clear(&mut rig);
        set_full(&mut rig, &[]);
        assert!(left(&rig, full) > 5, "{full} is used again");
    }
}

#[test]
fn a_stuck_path_fails_over_and_its_probes_wait() {
    let mut rig = two_locals();
    set_full(&mut rig, &[OTHER]);
    write(&mut rig, 2000);
    assert_eq!((left(&rig, ENGINE), left(&rig, OTHER)), (2, 0));
    clear(&mut rig);
    // Now the socket of what is under way is stuck.
    set_full(&mut rig, &[ENGINE]);
    rig.pass(ms(1500));
    assert!(rig.events.iter().any(|e| matches!(e, Event::Path(PathEvent::Failed { id: PathId(0) }))));
    assert!(rig.count(is_stream) > 0, "what waits in the stuck socket goes again on the other path");
    assert_eq!(left(&rig, ENGINE), 0, "no probe leaves where there is no room");
    clear(&mut rig);
    set_full(&mut rig, &[]);
    assert!(left(&rig, ENGINE) > 0, "probes leave as soon as they can");
}

#[test]
fn a_stuck_path_allows_for_the_delay_that_another_asks_for() {
    // The first round trips take 5 ms, which the delay asked for is no longer than; the later ones take longer.
    let mut rig = two_locals_of(asking(Some(1_000), |_| ()));
    let longest = |rig: &Rig| asked(rig).iter().map(|(_, _, delay_us, _)| *delay_us).max();
    for _ in 0..20 {
        write(&mut rig, 12_000);
        rig.pass(ms(2));
        rig.ack_all();
    }
    let before = longest(&rig);
    for _ in 0..60 {
        // Full since just now, so that the path still waits for it.
        set_full(&mut rig, &[]);
        set_full(&mut rig, &[OTHER]);
        write(&mut rig, 60_000);
        rig.pass(ms(20));
        rig.ack_all();
    }
    assert!(longest(&rig) > before, "{before:?}");
    assert!(rig.is_open());
}

#[test]
fn answers_to_challenges_wait_for_their_own_socket_only() {
    let mut rig = two_locals();
    set_full(&mut rig, &[ENGINE]);
    rig.send_all(tuple(PUPPET), &[Packet::one_rtt([&[0x1a_u8][..], &[1; 8]].concat())]);
    rig.send_all(second(), &[Packet::one_rtt([&[0x1a_u8][..], &[2; 8]].concat()).on(1)]);
    // Another address pair of path 0, which leaves by the socket that has room.
    let pair = FourTuple { local: addr(OTHER), remote: addr(PUPPET) };
    rig.send_all(pair, &[Packet::one_rtt([&[0x1a_u8][..], &[3; 8]].concat()).padded(1200)]);
    assert_eq!(answers(&rig), [(second(), 2), (pair, 3)]);
    set_full(&mut rig, &[]);
    assert_eq!(answers(&rig), [(second(), 2), (pair, 3), (tuple(PUPPET), 1)]);

    // The other way round.
    clear(&mut rig);
    set_full(&mut rig, &[OTHER]);
    rig.send_all(pair, &[Packet::one_rtt([&[0x1a_u8][..], &[4; 8]].concat()).padded(1200)]);
    rig.send_all(tuple(PUPPET), &[Packet::one_rtt([&[0x1a_u8][..], &[5; 8]].concat())]);
    assert_eq!(answers(&rig), [(tuple(PUPPET), 5)]);
    set_full(&mut rig, &[]);
    assert_eq!(answers(&rig), [(tuple(PUPPET), 5), (pair, 4)]);
}

#[test]
fn the_handshake_waits_for_its_socket() {
    let mut rig = Rig::server(Setup::default());
    for hello in rig.peer.crypto_frames(Space::Initial, 0, 2000) {
        rig.send(Packet::new(PacketKind::Initial, hello));
    }
    clear(&mut rig);
    set_full(&mut rig, &[ENGINE]);
    rig.pass(ms(2500));
    assert!(rig.wire.is_empty() && rig.is_open());
    set_full(&mut rig, &[]);
    assert!(left(&rig, ENGINE) > 0, "what a probe time-out asked for leaves now");
    rig.shake_hands();
}

#[test]
fn with_all_full_nothing_is_made_and_nothing_spins() {
    let mut rig = two_locals();
    // A probe time-out, acks, a response and data: there is always something to say.
    write(&mut rig, 5000);
    clear(&mut rig);
    set_full(&mut rig, &[ENGINE, OTHER]);
    write(&mut rig, 50_000);
    for (tuple, path) in [(tuple(PUPPET), 0), (second(), 1)] {
        rig.send_all(tuple, &[Packet::one_rtt([&[0x1a_u8][..], &[1; 8]].concat()).on(path)]);
    }
    let end = rig.now + ms(5000);
    let mut timers = 0;
    while let Some(at) = rig.conn().deadline().filter(|at| *at <= end) {
        assert!(at > rig.now, "a deadline that has passed stays");
        rig.now = at;
        rig.pump();
        timers += 1;
    }
    assert!(timers < 60, "{timers} timers in five seconds");
    assert!(rig.wire.is_empty() && rig.is_open());
    set_full(&mut rig, &[]);
    assert!(left(&rig, ENGINE) > 0 && left(&rig, OTHER) > 0);
    assert!(rig.count(is_stream) > 0);
}

#[test]
fn a_backup_is_not_used_for_a_moment_but_for_a_socket_that_stays_full() {
    let mut rig = two_locals();
    rig.frames(raw(&[0x3e76, 1, 1], &[]));
    rig.pass(ms(100));
    rig.ack_all();
    clear(&mut rig);
    set_full(&mut rig, &[ENGINE]);
    write(&mut rig, 5000);
    assert!(rig.wire.is_empty(), "a full socket is waited for first");
    rig.pass(ms(1500));
    assert!(rig.count(is_stream) > 0 && left(&rig, ENGINE) == 0);
}

#[test]
fn the_close_leaves_at_once_where_it_can() {
    let mut rig = two_locals();
    set_full(&mut rig, &[ENGINE]);
    let now = rig.now;
    rig.conn().close(now, 5, bytes::Bytes::new());
    rig.pump();
    assert_eq!((left(&rig, ENGINE), left(&rig, OTHER)), (0, 1));
    // It is repeated for what comes, whatever still waits for the full socket.
    rig.send_all(second(), &[Packet::one_rtt([0x01]).on(1)]);
    assert_eq!((left(&rig, ENGINE), left(&rig, OTHER)), (0, 2));
    set_full(&mut rig, &[]);
    assert_eq!((left(&rig, ENGINE), left(&rig, OTHER)), (1, 2));
}
