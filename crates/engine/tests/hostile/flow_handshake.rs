//! Multiflow QUIC and how connections begin: Retry, and 0-RTT by what a client remembers (RFC 9000 7.4.1).

use plait_base::{CloseCode, ConnectionId, PathId, Space};
use plait_wire::{Frame, PacketKind};

use crate::handshake::{finish, streams_seen, two_visits};
use crate::multiflow::{add_address, answer_by_the_first_flow, busy_at, remove_address, uniflows};
use crate::puppet::{Packet, Rig, Setup, ms};
use crate::rules::resumed;
use crate::violations::{encoded, raw, stream};

const SECOND: &str = "192.0.2.2:5000";

/// Both ends speak Multiflow; the TLS of the setup stays.
fn speaks_multiflow(setup: &mut Setup) {
    let multiflow = Setup::multiflow();
    setup.habits = multiflow.habits;
    setup.transport = multiflow.transport;
}

fn speaks_neither(setup: &mut Setup) {
    speaks_multiflow(setup);
    setup.habits.params.max_sending_uniflow_id = None;
}

fn is_of_multiflow(frame: &Frame<'_>) -> bool {
    matches!(frame.frame_type(), 0x40..=0x46)
}

#[test]
fn a_retry_changes_nothing_in_what_is_negotiated() {
    let mut rig = Rig::server(Setup::multiflow());
    rig.accepts = false;
    rig.say_handshake();
    let retry = rig.replies.pop().unwrap();
    let at = 7 + usize::from(retry[5]);
    let scid = ConnectionId::new(&retry[at..at + usize::from(retry[at - 1])]).unwrap();
    rig.peer.after_retry(scid, retry[at + scid.len()..retry.len() - 16].to_vec());
    rig.accepts = true;
    let hello = rig.peer.crypto_frames(Space::Initial, 0, 1000).concat();
    rig.send(Packet::new(PacketKind::Initial, hello));
    rig.shake_hands();
    assert!(rig.conn().paths().is_multiflow());
    rig.frames(add_address(1, 0, SECOND));
    answer_by_the_first_flow(&mut rig, SECOND);
    assert!(busy_at(&mut rig, SECOND) > 0);
}

/// A client of these two visits, early data sent in the second.
fn visits(first: fn(&mut Setup), second: fn(&mut Setup)) -> Rig {
    let mut rig = two_visits(first, second);
    let id = rig.conn().streams().open(plait_base::Dir::Uni).unwrap();
    rig.conn().send_stream(id).write(b"early").unwrap();
    rig.pump();
    // Nothing but the handshake of this visit lets a client have uniflows.
    assert!(!rig.conn().paths().is_multiflow() && rig.conn().is_handshaking());
    rig.shake_hands();
    assert_eq!(rig.conn().session().accepted_0rtt(), Some(true));
    rig
}

#[test]
fn a_client_remembers_no_uniflows() {
    // the number of then is not that of now,
    let rig = visits(speaks_multiflow, |setup| {
        speaks_multiflow(setup);
        setup.habits.params.max_sending_uniflow_id = Some(PathId(2));
    });
    let issued = |id: u32| rig.peer.engine_cid(PathId(id)).is_some();
    assert!((0..3).all(issued) && !(3..8).any(issued));
    // a server that no longer speaks of them gets none,
    let mut rig = visits(speaks_multiflow, speaks_neither);
    rig.pass(ms(500));
    assert!(rig.is_open() && !rig.conn().paths().is_multiflow() && rig.count(is_of_multiflow) == 0);
    // and one that begins to gets them.
    let mut rig = visits(speaks_neither, speaks_multiflow);
    assert!(rig.conn().paths().is_multiflow() && rig.count(is_of_multiflow) > 0);
}

#[test]
fn frames_of_multiflow_have_no_place_in_early_data() {
    // Multiflow 5: 1-RTT packets alone
    let id = |rig: &mut Rig| encoded(&rig.peer.new_cid(plait_wire::frame::CidForm::Uniflow, 1, 0));
    let mut frames = vec![
        raw(&[0x41, 0, 0], &[]),
        raw(&[0x42, 0, 0, 0, 0, 0], &[]),
        raw(&[0x43, 0, 0, 0, 0, 0, 0, 0, 0], &[]),
        add_address(1, 0, SECOND),
        remove_address(0, 1),
        uniflows(0, &[(0, 0)]),
    ];
    frames.push(id(&mut resumed(speaks_multiflow)));
    for frame in frames {
        let mut rig = resumed(speaks_multiflow);
        let hello = rig.peer.crypto_frames(Space::Initial, 0, 1000).concat();
        rig.send(Packet::new(PacketKind::Initial, hello));
        rig.send(Packet::new(PacketKind::ZeroRtt, stream(0, 0, false, b"early")));
        assert!(rig.is_open() && streams_seen(&rig) > 0);
        rig.send(Packet::new(PacketKind::ZeroRtt, frame.clone()));
        assert!(!rig.is_open(), "{frame:?}");
        assert_eq!(rig.close_seen(), Some(CloseCode::PROTOCOL_VIOLATION), "{frame:?}");
    }
}

#[test]
fn early_data_is_of_uniflow_0() {
    // Packets under any other id come before it was issued: they are of nobody, and the handshake goes on.
    let mut rig = resumed(speaks_multiflow);
    let hello = rig.peer.crypto_frames(Space::Initial, 0, 1000).concat();
    rig.send(Packet::new(PacketKind::Initial, hello));
    let strange =
        Packet::new(PacketKind::ZeroRtt, stream(0, 0, false, b"early")).to(ConnectionId::new(&[7; 8]).unwrap());
    rig.send(strange);
    assert_eq!(streams_seen(&rig), 0);
    finish(&mut rig);
    assert!(rig.is_open());
}

#[test]
fn ids_that_a_server_keeps_may_not_become_fewer() {
    // RFC 9000 7.4.1: active_connection_id_limit is remembered, and counts for each flow.
    let mut rig = two_visits(speaks_multiflow, |setup| {
        speaks_multiflow(setup);
        setup.habits.params.active_cid_limit = 2;
    });
    for _ in 0..4 {
        rig.say_handshake();
        rig.pass(ms(5));
    }
    assert_eq!(rig.close_seen(), Some(CloseCode::PROTOCOL_VIOLATION));
}
