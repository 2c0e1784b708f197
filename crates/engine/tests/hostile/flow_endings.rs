//! How connections end whose flows or paths are not alike: the first address is gone, or one flow alone is busy.

use std::time::Duration;

use plait_base::{PathId, Space};
use plait_engine::{ConnectionError, EndpointEvent, Event};
use plait_wire::Frame;
use plait_wire::frame::AckForm;

use crate::multiflow::{add_address, answer_by_the_first_flow, remove_address, two_flows};
use crate::puppet::{ENGINE, PUPPET, Packet, Rig, Seen, Setup, addr, ms, tuple};

const SECOND: &str = "192.0.2.2:5000";
const OTHER: &str = "198.51.100.9:4000";

/// Where a close was sent from, and to.
fn closes(rig: &Rig, from: usize) -> Vec<plait_base::FourTuple> {
    let closing = rig.seen[from..].iter().filter(|seen| seen.has(|frame| matches!(frame, Frame::Close(_))));
    closing.map(|seen| seen.tuple).collect()
}

fn drained(rig: &Rig) -> usize {
    rig.endpoint_events.iter().filter(|event| **event == EndpointEvent::Drained).count()
}

#[test]
fn a_close_after_the_peers_first_address_went_leaves_for_the_others() {
    let mut rig = two_flows();
    rig.send_all(tuple(SECOND), &[Packet::one_rtt(remove_address(0, 1)).on(2)]);
    rig.tuple = tuple(SECOND);
    rig.pass(ms(50));
    let (now, seen, wire) = (rig.now, rig.seen.len(), rig.wire.len());
    rig.conn().close(now, 7, "bye".into());
    rig.pump();
    assert_eq!(closes(&rig, seen), [tuple(SECOND)]);
    // What the peer still sends is answered by further closes, there alone too.
    for _ in 0..64 {
        rig.send_all(tuple(SECOND), &[Packet::one_rtt([0x01]).on(2)]);
    }
    assert!((2..10).contains(&(rig.wire.len() - wire)), "ever more rarely");
    assert!(rig.wire[wire..].iter().all(|(to, ..)| to.remote == addr(SECOND)));
    rig.pass(ms(20_000));
    assert_eq!((drained(&rig), rig.endpoint.connections()), (1, 0));
}

#[test]
fn the_peers_close_after_its_first_address_went_is_heard_on_any_flow() {
    let mut rig = two_flows();
    rig.send_all(tuple(SECOND), &[Packet::one_rtt(remove_address(0, 1)).on(2)]);
    let wire = rig.wire.len();
    // From an address of which nothing is known.
    rig.send_all(tuple("192.0.2.7:9"), &[Packet::one_rtt([0x1d, 9, 0]).on(3)]);
    let lost =
        |event: &Event| matches!(event, Event::ConnectionLost(ConnectionError::ApplicationClosed(c)) if c.code == 9);
    assert!(rig.events.iter().any(lost) && rig.wire.len() == wire, "nothing is sent while draining");
}

/// A client with a second address, by which it reaches its server too; its first one is gone since.
fn client_without_its_first_address(setup: Setup) -> Rig {
    let mut rig = Rig::established_client(setup);
    let now = rig.now;
    rig.conn().set_local_addresses(now, &[addr(ENGINE), addr(OTHER)]);
    rig.pass(ms(30));
    let challenges: Vec<Vec<u8>> = rig
        .seen
        .iter()
        .filter(|seen| seen.tuple.local == addr(OTHER))
        .flat_map(Seen::frames)
        .filter_map(|frame| if let Frame::PathChallenge(f) = frame { Some(f.data) } else { None })
        .map(|data| [&[0x1b][..], &data].concat())
        .collect();
    assert!(!challenges.is_empty(), "a path from the second address");
    let mut other = rig.tuple;
    other.local = addr(OTHER);
    for frame in challenges {
        rig.send_all(other, &[Packet::one_rtt(frame).on(1)]);
    }
    rig.pass(ms(50));
    rig.ack_all();
    let now = rig.now;
    rig.conn().set_local_addresses(now, &[addr(OTHER)]);
    rig
}

#[test]
fn a_close_after_our_first_address_went_leaves_by_the_others() {
    use plait_engine::path::policy;
    for gap in [0, 5, 100, 5_000] {
        let mut fullmesh = Setup::default();
        fullmesh.transport.path_policy(policy::by_name("fullmesh").unwrap());
        for setup in [fullmesh, Setup::multiflow()] {
            let mut rig = client_without_its_first_address(setup);
            rig.pass(ms(gap));
            let (now, seen, wire) = (rig.now, rig.seen.len(), rig.wire.len());
            rig.conn().close(now, 7, "bye".into());
            rig.pump();
            let by: Vec<_> = closes(&rig, seen).iter().map(|tuple| tuple.local).collect();
            assert!(!by.is_empty() && by.iter().all(|local| *local == addr(OTHER)), "{by:?} after {gap} ms");
            assert!(rig.wire[wire..].iter().all(|(tuple, ..)| tuple.local == addr(OTHER)));
            rig.pass(ms(20_000));
            assert_eq!(drained(&rig), 1);
        }
    }
}

/// Three seconds of idleness end it.
fn impatient() -> Rig {
    let mut setup = Setup::multiflow();
    setup.transport.max_idle_timeout(Some(Duration::from_secs(3)));
    let mut rig = Rig::established_server(setup);
    rig.frames(add_address(1, 0, SECOND));
    answer_by_the_first_flow(&mut rig, SECOND);
    rig.pass(ms(50));
    rig.ack_all();
    rig
}

fn timed_out(rig: &Rig) -> bool {
    rig.events.iter().any(|event| matches!(event, Event::ConnectionLost(ConnectionError::TimedOut)))
}

#[test]
fn one_flow_of_the_peer_keeps_the_connection() {
    // RFC 9000 10.1: any packet of the peer that is read restarts the timer, whatever flow it came by.
    let mut rig = impatient();
    for _ in 0..20 {
        rig.pass(ms(2_000));
        rig.send_all(tuple("192.0.2.5:5000"), &[Packet::one_rtt([0x01]).on(6)]);
    }
    assert!(rig.is_open());
    // Packets of others, and copies of the peer's own, keep nothing.
    let mut copy = Vec::new();
    rig.peer.seal(&Packet::one_rtt([0x01]).on(6), &mut copy);
    rig.deliver_from(tuple(SECOND), &copy);
    let mut noise = copy.clone();
    let at = noise.len() - 20;
    noise[at] ^= 1;
    for _ in 0..10 {
        rig.pass(ms(1_000));
        rig.deliver_from(tuple(SECOND), &copy);
        rig.deliver_from(tuple(PUPPET), &noise);
    }
    assert!(timed_out(&rig) && rig.close_seen().is_none(), "silently");
}

#[test]
fn flows_of_ours_alone_keep_no_connection() {
    // RFC 9000 10.1: only the first packet that asks for an ack restarts the timer, not the probes after it.
    let mut rig = impatient();
    let id = rig.conn().streams().open(plait_base::Dir::Uni).unwrap();
    let (began, wire) = (rig.now, rig.wire.len());
    for _ in 0..40 {
        let _ = rig.conn().send_stream(id).write(&[7; 2_000]);
        rig.pump();
        rig.pass(ms(500));
        if timed_out(&rig) {
            break;
        }
    }
    assert!(timed_out(&rig));
    let lasted = rig.now.since(began);
    assert!(lasted <= Duration::from_secs(6), "{lasted:?}");
    let sent: usize = rig.wire[wire..].iter().map(|(_, _, datagram)| datagram.len()).sum();
    assert!(sent < 100_000, "{sent} bytes to nobody");
}

#[test]
fn acks_of_one_flow_do_not_hide_that_another_is_dead() {
    // The timer is one for all: flow 1 gets no acks for a minute, and the connection lives by flow 0.
    let mut rig = impatient();
    let id = rig.conn().streams().open(plait_base::Dir::Uni).unwrap();
    rig.strangers.push(addr(SECOND));
    let mut there = Vec::new();
    for _ in 0..60 {
        let before = rig.wire.len();
        for _ in 0..10 {
            let _ = rig.conn().send_stream(id).write(&[7; 1_000]);
            rig.pump();
            rig.pass(ms(100));
            if let Some(ack) = rig.peer.ack(Space::Data, 0, AckForm::Uniflow) {
                rig.frames(ack);
            }
        }
        there.push(rig.wire[before..].iter().filter(|(to, ..)| to.remote == addr(SECOND)).count());
    }
    assert!(rig.is_open());
    assert!(there[30..].iter().sum::<usize>() <= 30, "it is asked rarely: {there:?}");
    let now = rig.now;
    assert!(rig.conn().path_statistics(now, PathId::ZERO).is_some());
}
