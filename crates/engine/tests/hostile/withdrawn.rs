//! Attempts that a client gave up: what they still say, and what their ends prove of its addresses.

use plait_base::limits::MAX_PROVEN_ADDRESSES;
use plait_base::{CloseCode, ConnectionId, Dir, FourTuple, PathId, Space};
use plait_engine::{ConnectionHandle, EndpointEvent, PathEvent};
use plait_wire::Frame;
use plait_wire::frame::{AckForm, Close};
use plait_wire::header::PacketKind;

use crate::puppet::{Packet, Rig, Seen, Setup, addr, ms, tuple};
use crate::violations::encoded;

const SECOND: &str = "192.0.2.2:5000";
const THIRD: &str = "192.0.2.3:5000";

fn successor() -> ConnectionId {
    ConnectionId::new(&[0xab; 8]).unwrap()
}

/// Reason phrases of the closes that left since `from`, the kinds of their packets and the sizes of their datagrams.
fn closes(rig: &Rig, from: usize) -> Vec<(String, PacketKind, usize)> {
    let reason = |seen: &Seen| {
        seen.frames().into_iter().find_map(|f| match f {
            Frame::Close(Close::Transport { code: CloseCode::NO_ERROR, reason, .. }) => {
                Some(String::from_utf8(reason.to_vec()).unwrap())
            }
            _ => None,
        })
    };
    rig.seen[from..].iter().filter_map(|seen| Some((reason(seen)?, seen.kind, seen.datagram))).collect()
}

fn withdraw(rig: &mut Rig) {
    let now = rig.now;
    rig.conn().withdraw(now, Some(successor()));
    rig.pump();
}

#[test]
fn one_datagram_and_a_short_close_for_a_server_that_answers_late() {
    // RFC 9000 10.2.3
    let mut rig = Rig::client(Setup::default());
    let (sent, from) = (rig.wire.len(), rig.seen.len());
    withdraw(&mut rig);
    // The keys of a server that is not there never come, and no timer sends the first packet again.
    rig.pass(ms(2_000));
    assert_eq!(rig.wire.len(), sent);
    rig.say_handshake();
    let closes = closes(&rig, from);
    assert_eq!(closes.len(), 1, "{closes:?}");
    let (reason, kind, bytes) = &closes[0];
    assert_eq!((reason.as_str(), *kind), ("succeeded by abababababababab", PacketKind::Handshake));
    assert!(*bytes < 120, "{bytes} bytes");
    assert_eq!(rig.wire.len(), sent + 1, "what else was under way draws nothing");
    // RFC 9000 10.2.1: a server that did not hear of it is told again, ever more rarely.
    for _ in 0..20 {
        let ping = Packet::new(PacketKind::Handshake, vec![1]);
        rig.send(ping);
    }
    let repeated = rig.wire.len() - sent - 1;
    assert!((1..=4).contains(&repeated), "{repeated}");
    assert!(rig.wire[sent..].iter().all(|(_, _, datagram)| datagram.len() < 120));
    rig.pass(ms(3_100));
    assert!(rig.conn().is_drained());
}

#[test]
fn an_answer_without_keys_draws_nothing() {
    let mut rig = Rig::client(Setup::default());
    rig.send(Packet::new(PacketKind::Initial, vec![1]).padded(1200));
    assert!(rig.conn().is_heard());
    let sent = rig.wire.len();
    withdraw(&mut rig);
    for _ in 0..5 {
        rig.send(Packet::new(PacketKind::Initial, vec![1]).padded(1200));
    }
    assert_eq!(rig.wire.len(), sent);
    // What breaks a rule brings no keys.
    rig.send(
        Packet::new(PacketKind::Initial, encoded(&plait_wire::frame::Crypto { offset: 0, data: &[2; 90] }))
            .padded(1200),
    );
    rig.pass(ms(20_000));
    assert_eq!(rig.wire.len(), sent);
    assert!(rig.conn().is_drained());
}

#[test]
fn a_server_whose_keys_are_there_is_told_at_once() {
    let mut rig = Rig::client(Setup::default());
    let hello = rig.peer.crypto_frames(Space::Initial, 0, 1000).concat();
    rig.send(Packet::new(PacketKind::Initial, hello).padded(1200));
    let (sent, from) = (rig.wire.len(), rig.seen.len());
    withdraw(&mut rig);
    let closes = closes(&rig, from);
    assert_eq!(closes.len(), 1);
    assert!(closes[0].1 == PacketKind::Handshake && closes[0].2 < 120, "{closes:?}");
    assert_eq!(rig.wire.len(), sent + 1);
}

#[test]
fn an_answer_after_all_is_over_is_a_strangers() {
    let mut rig = Rig::client(Setup::default());
    let sent = rig.wire.len();
    withdraw(&mut rig);
    rig.pass(ms(3_100));
    assert!(rig.conn().is_drained());
    rig.say_handshake();
    assert_eq!((rig.wire.len(), rig.replies.len()), (sent, 0));
}

#[test]
fn retry_and_version_negotiation_bring_nothing_to_life() {
    let mut rig = Rig::client(Setup::default());
    let (original, first) = (rig.peer.original_dcid, rig.wire[0].2.clone());
    let ids = [&[8], &first[15..23], &[8]].concat();
    let mut retry = [&[0xf0, 0, 0, 0, 1], &ids[..], &[6; 8], b"token"].concat();
    retry.extend_from_slice(&plait_crypto::retry::tag(1, &original, &retry).unwrap());
    let versions = [&[0xf0, 0, 0, 0, 0], &ids[..], &original[..], &[0x6b, 0x33, 0x43, 0xcf]].concat();
    let nothing_of_ours = [&[0xf0, 0, 0, 0, 0], &ids[..], &original[..], &[9; 4]].concat();
    withdraw(&mut rig);
    let sent = rig.wire.len();
    for answer in [retry, versions, nothing_of_ours] {
        rig.deliver(&answer);
        rig.pass(ms(100));
    }
    assert_eq!(rig.wire.len(), sent);
    rig.say_handshake();
    assert_eq!(rig.wire.len(), sent + 1, "the server that answered the first packet is told");
}

/// A server's connection whose client has Handshake keys and sent nothing since its first packet.
fn answered() -> Rig {
    let mut rig = Rig::server(Setup::default());
    let hello = rig.peer.crypto_frames(Space::Initial, 0, 1000).concat();
    rig.send(Packet::new(PacketKind::Initial, hello).padded(1200));
    assert!(rig.peer.handshake.is_some());
    rig
}

fn named(reason: &str) -> Vec<u8> {
    encoded(&Close::Transport { code: CloseCode::NO_ERROR, frame_type: 0, reason: reason.as_bytes() })
}

fn proofs(rig: &Rig) -> Vec<(ConnectionId, FourTuple)> {
    let proof = |event: &EndpointEvent| match *event {
        EndpointEvent::AddressProven { successor, tuple, .. } => Some((successor, tuple)),
        _ => None,
    };
    rig.endpoint_events.iter().filter_map(proof).collect()
}

#[test]
fn the_close_of_an_attempt_proves_the_address_it_came_from() {
    // RFC 9000 8.1
    let mut rig = answered();
    rig.send(Packet::new(PacketKind::Handshake, named("succeeded by abababababababab")));
    assert_eq!(proofs(&rig), [(successor(), rig.tuple)]);
    assert!(!rig.is_open());
    let sent = rig.wire.len();
    rig.pass(ms(60_000));
    assert_eq!(rig.wire.len(), sent, "the server's state is gone, and with it all that it would repeat");
    assert!(rig.conn().is_drained());
}

#[test]
fn nobody_else_proves_an_address() {
    // Whoever saw the first packet can make an Initial packet.
    let mut rig = answered();
    rig.send(Packet::new(PacketKind::Initial, named("succeeded by abababababababab")).padded(1200));
    assert_eq!(proofs(&rig), []);
    // What the server sent went to the address of the first packet, not to the one that this packet claims.
    let mut rig = answered();
    rig.send_all(tuple(SECOND), &[Packet::new(PacketKind::Handshake, named("succeeded by abababababababab"))]);
    assert_eq!(proofs(&rig), []);
    assert!(rig.is_open(), "no packet from elsewhere counts before the handshake is confirmed");
    // A connection that moved, to an address that is not proven yet.
    let mut rig = Rig::established_server(Setup::default());
    rig.send_all(tuple(SECOND), &[Packet::one_rtt(named("succeeded by abababababababab"))]);
    assert_eq!(proofs(&rig), []);
    for reason in ["", "succeeded by ", "succeeded by ab0", "succeeded by nobody", &"succeeded by ab".repeat(30)] {
        let mut rig = answered();
        rig.send(Packet::new(PacketKind::Handshake, named(reason)));
        assert_eq!((proofs(&rig), rig.is_open()), (vec![], false), "{reason}");
    }
    // A server names nobody.
    let mut rig = Rig::established_client(Setup::default());
    rig.frames(named("succeeded by abababababababab"));
    assert_eq!((proofs(&rig), rig.is_open()), (vec![], false));
}

/// A server's connection hears that its client is proven to receive at an address.
fn vouch(rig: &mut Rig, tuple: FourTuple) {
    let successor = rig.peer.engine_cid(PathId::ZERO).unwrap();
    let event = EndpointEvent::AddressProven { successor, tuple, at: rig.now };
    let other = ConnectionHandle(77);
    let (handle, word) = rig.endpoint.on_connection_event(other, event).expect("word for the connection");
    assert_eq!(Some(handle), rig.handle);
    let now = rig.now;
    rig.conn().handle_datagram(now, word);
    rig.pump();
}

/// A server with as much to send as leaves.
fn busy() -> Rig {
    let mut rig = Rig::established_server(Setup::default());
    let id = rig.conn().streams().open(Dir::Uni).unwrap();
    rig.conn().send_stream(id).write(&[7; 200_000]).unwrap();
    rig.pump();
    rig
}

fn stream_bytes(rig: &Rig, to: &str) -> usize {
    let bytes = |f: &Frame<'_>| if let Frame::Stream(s) = f { s.data.len() } else { 0 };
    let there = rig.seen.iter().filter(|seen| seen.tuple.remote == addr(to));
    there.flat_map(|seen| seen.frames().iter().map(bytes).collect::<Vec<_>>()).sum()
}

fn established(rig: &Rig) -> usize {
    let is_it =
        |e: &&plait_engine::Event| matches!(e, plait_engine::Event::Path(PathEvent::Established { id: PathId(1) }));
    rig.events.iter().filter(is_it).count()
}

#[test]
fn a_proven_address_carries_data_whichever_came_first() {
    // RFC 10069 3.1-4
    for path_first in [true, false] {
        let mut rig = busy();
        if !path_first {
            vouch(&mut rig, tuple(SECOND));
        }
        rig.open_path(1, SECOND, false);
        if path_first {
            assert_eq!(stream_bytes(&rig, SECOND), 0);
            rig.assert_amplification(SECOND);
            vouch(&mut rig, tuple(SECOND));
        }
        assert_eq!(stream_bytes(&rig, SECOND), 0, "the answer has a probe time-out to come");
        rig.assert_amplification(SECOND);
        rig.pass(ms(200));
        assert!(stream_bytes(&rig, SECOND) > 3_600, "{path_first}: {}", stream_bytes(&rig, SECOND));
        assert_eq!(established(&rig), 1);
        // RFC 10069 3.1-6, 3.1-8: the challenge left all the same, and unanswered it ends the path.
        assert!(
            rig.seen.iter().any(|s| s.tuple.remote == addr(SECOND) && s.has(|f| matches!(f, Frame::PathChallenge(_))))
        );
        for _ in 0..100 {
            let acks = rig.peer.ack(Space::Data, 0, AckForm::Path).unwrap();
            rig.frames(acks);
            rig.pass(ms(100));
        }
        assert!(rig.count(|f| matches!(f, Frame::PathAbandon(a) if a.path == PathId(1))) > 0, "{path_first}");
    }
}

#[test]
fn an_answer_to_the_challenge_keeps_the_path() {
    let mut rig = busy();
    let from = rig.seen.len();
    rig.open_path(1, SECOND, false);
    vouch(&mut rig, tuple(SECOND));
    rig.answer_challenges(from, tuple(SECOND), 1);
    for _ in 0..100 {
        rig.ack_all();
        rig.pass(ms(100));
    }
    assert_eq!(rig.count(|f| matches!(f, Frame::PathAbandon(_))), 0);
    assert_eq!(established(&rig), 1, "told once");
}

#[test]
fn word_of_another_address_proves_nothing() {
    let elsewhere = FourTuple { local: addr("10.0.0.9:443"), ..tuple(SECOND) };
    for other in [tuple(THIRD), tuple("192.0.2.2:5001"), elsewhere] {
        let mut rig = busy();
        vouch(&mut rig, other);
        rig.open_path(1, SECOND, false);
        vouch(&mut rig, other);
        rig.pass(ms(500));
        assert_eq!(stream_bytes(&rig, SECOND), 0, "{other:?}");
        rig.assert_amplification(SECOND);
    }
}

#[test]
fn proofs_are_few_and_recent() {
    let open = |rig: &mut Rig| {
        rig.open_path(1, SECOND, false);
        rig.pass(ms(200));
        stream_bytes(rig, SECOND) > 0
    };
    let flood = |rig: &mut Rig, count: usize| {
        (0..count).for_each(|n| vouch(rig, tuple(&format!("198.51.100.7:{}", 1024 + n))));
    };
    for (others, holds) in [(MAX_PROVEN_ADDRESSES - 1, true), (MAX_PROVEN_ADDRESSES, false), (3_000, false)] {
        let mut rig = busy();
        vouch(&mut rig, tuple(SECOND));
        flood(&mut rig, others);
        assert_eq!(open(&mut rig), holds, "after {others} others");
    }
    let mut rig = busy();
    flood(&mut rig, 3_000);
    vouch(&mut rig, tuple(SECOND));
    assert!(open(&mut rig));
    for (after, holds) in [(9_000, true), (10_001, false)] {
        let mut rig = Rig::established_server(Setup::default());
        vouch(&mut rig, tuple(SECOND));
        rig.pass(ms(after));
        let id = rig.conn().streams().open(Dir::Uni).unwrap();
        rig.conn().send_stream(id).write(&[7; 200_000]).unwrap();
        assert_eq!(open(&mut rig), holds, "after {after} ms");
    }
}

#[test]
fn word_goes_to_others_that_exist() {
    let mut rig = Rig::established_server(Setup::default());
    let (known, handle, at) = (rig.peer.engine_cid(PathId::ZERO).unwrap(), rig.handle.unwrap(), rig.now);
    let event = |successor| EndpointEvent::AddressProven { successor, tuple: tuple(SECOND), at };
    assert!(rig.endpoint.on_connection_event(handle, event(known)).is_none(), "a connection has no word for itself");
    let other = ConnectionHandle(77);
    for nobody in [ConnectionId::EMPTY, successor(), ConnectionId::new(&[1; 20]).unwrap()] {
        assert!(rig.endpoint.on_connection_event(other, event(nobody)).is_none(), "{nobody}");
    }
    let now = rig.now;
    rig.endpoint.let_go(handle, now, now + ms(1_000));
    assert!(rig.endpoint.on_connection_event(other, event(known)).is_none(), "it has departed");
}

#[test]
fn a_client_heeds_no_word() {
    let mut rig = Rig::established_client(Setup::default());
    let successor = rig.peer.engine_cid(PathId::ZERO).unwrap();
    let event = EndpointEvent::AddressProven { successor, tuple: rig.tuple, at: rig.now };
    let (_, word) = rig.endpoint.on_connection_event(ConnectionHandle(77), event).unwrap();
    let (sent, now) = (rig.wire.len(), rig.now);
    rig.conn().handle_datagram(now, word);
    rig.pump();
    assert_eq!(rig.wire.len(), sent);
    rig.assert_answers("word");
}
