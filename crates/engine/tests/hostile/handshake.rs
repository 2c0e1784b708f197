//! What RFC 9000 and 9001 demand from the first packet to the confirmed handshake: ids, keys, levels, early data.

use std::collections::BTreeMap;

use plait_base::{CloseCode, ConnectionId, Dir, PathId, ResetToken, Space};
use plait_crypto::UpdateRefused;
use plait_engine::Event;
use plait_wire::frame::AckForm;
use plait_wire::header::FixedBitRule;
use plait_wire::params::PreferredAddress;
use plait_wire::{Frame, PacketKind, ProtectedHeader};

use crate::endings::version_negotiation;
use crate::puppet::{PUPPET, Packet, Rig, Setup, Tls, addr, ms, resuming_client_tls, tuple};
use crate::rules::resumed;
use crate::violations::{half_way, raw, stream, tickets};

/// A frame that no Initial, Handshake or 0-RTT packet may carry: who reads it closes.
const FORBIDDEN: [u8; 1] = [0x1e];

pub(crate) fn streams_seen(rig: &Rig) -> usize {
    rig.events.iter().filter(|e| matches!(e, Event::Stream(_))).count()
}

/// Kinds of the packets in a datagram of the engine.
fn kinds(datagram: &[u8]) -> Vec<PacketKind> {
    let mut rest = datagram;
    let mut kinds = Vec::new();
    while let Ok((header, span)) = ProtectedHeader::parse(rest, 8, FixedBitRule::Ignored) {
        kinds.extend(header.kind());
        rest = &rest[span.end.min(rest.len())..];
    }
    kinds
}

/// Says the ClientHello, and the client's Finished once the server has answered.
pub(crate) fn finish(rig: &mut Rig) {
    (0..4).for_each(|_| {
        rig.say_handshake();
        rig.pass(ms(5));
    });
    assert!(rig.peer.is_done());
}

#[test]
fn a_servers_first_flight_is_read_whole_from_one_datagram() {
    // RFC 9000 12.2, RFC 9001 5.7: the Initial brings the keys of the Handshake packet, that brings those of the 1-RTT packet
    let mut rig = Rig::client(Setup::default());
    rig.pass(ms(1));
    let mut flight: Vec<Packet> = Vec::new();
    for (space, kind) in [(Space::Initial, PacketKind::Initial), (Space::Handshake, PacketKind::Handshake)] {
        flight.extend(rig.peer.crypto_frames(space, 0, 4_000).into_iter().map(|frame| Packet::new(kind, frame)));
    }
    flight.push(Packet::one_rtt(stream(1, 0, true, b"early")));
    let at = rig.tuple;
    rig.send_all(at, &flight);
    assert!(rig.events.iter().any(|event| matches!(event, Event::Connected)));
    assert!(streams_seen(&rig) > 0, "{:?}", rig.events);
}

#[test]
fn what_waits_for_1_rtt_rides_behind_the_handshake() {
    // RFC 9000 12.2, 14.1: connection ids of further paths, where padding would be
    let mut rig = Rig::server(Setup::default());
    rig.say_handshake();
    let (_, _, flight) = &rig.wire[0];
    assert_eq!(kinds(flight), [PacketKind::Initial, PacketKind::Handshake, PacketKind::OneRtt]);
    assert_eq!(flight.len(), 1_200);
    assert!(rig.seen.iter().any(|s| s.has(|f| matches!(f, Frame::NewCid(new) if new.path == PathId(1)))));
    // A client's go with its Finished.
    let mut rig = Rig::client(Setup::default());
    finish(&mut rig);
    let with_finished = |datagram: &&Vec<u8>| kinds(datagram).contains(&PacketKind::Handshake);
    let mut datagrams = rig.wire.iter().map(|(_, _, datagram)| datagram).filter(with_finished);
    assert!(datagrams.any(|datagram| kinds(datagram).ends_with(&[PacketKind::Handshake, PacketKind::OneRtt])));
    let first =
        rig.seen.iter().find(|s| s.kind == PacketKind::OneRtt && s.number == 0).expect("the first 1-RTT packet");
    assert!(first.has(|f| matches!(f, Frame::NewCid(_))) && first.datagram > first.payload.len() + 60);
}

#[test]
fn a_version_negotiation_that_lists_our_version_is_ignored() {
    // RFC 9000 6.2-3, 17.2.1-1: whatever its unused bits say
    let mut rig = Rig::client(Setup::default());
    let mut negotiation = version_negotiation(&rig, &[0x6b33_43cf, 1]);
    negotiation[0] |= 0x7f;
    let wire = rig.wire.len();
    rig.deliver(&negotiation);
    assert!(rig.is_open() && rig.wire.len() == wire);
    rig.shake_hands();
}

#[test]
fn a_client_keeps_its_first_ids_until_the_server_speaks() {
    let mut rig = Rig::client(Setup::default());
    rig.deaf = true;
    rig.pass(ms(5_000));
    assert!(rig.wire.len() > 3, "it asks again");
    // RFC 9000 7.2-1, 7.2-2, 8.1-3: the same ids of 8 bytes, each time in 1200 bytes
    for (_, _, datagram) in &rig.wire {
        assert_eq!((datagram[5], &datagram[6..23]), (8, &rig.wire[0].2[6..23]));
        assert!(datagram.len() >= 1200);
    }
}

#[test]
fn what_a_client_keeps_after_a_retry() {
    let mut rig = Rig::client(Setup::default());
    let first = rig.wire[0].2.clone();
    let original = rig.peer.original_dcid;
    let retry = |scid: &ConnectionId, first_byte: u8| {
        let mut packet = vec![first_byte, 0, 0, 0, 1, 8];
        packet.extend_from_slice(&first[15..23]);
        packet.push(8);
        packet.extend_from_slice(scid);
        packet.extend_from_slice(b"token");
        let tag = plait_crypto::retry::tag(1, &original, &packet).unwrap();
        packet.extend_from_slice(&tag);
        packet
    };
    rig.deaf = true;
    let wire = rig.wire.len();
    // RFC 9000 17.2.5.1-2: a server that chose the client's own id is not followed
    rig.deliver(&retry(&original, 0xf0));
    assert_eq!(rig.wire.len(), wire);
    // RFC 9000 17.2.5-1: the unused bits mean nothing
    let scid = ConnectionId::new(&[6; 8]).unwrap();
    rig.deliver(&retry(&scid, 0xff));
    let second = rig.wire[wire].2.clone();
    // RFC 9000 17.2.5.2-5: the same source id
    assert_eq!((&second[6..14], &second[15..23]), (&scid[..], &first[15..23]));
    rig.peer.initial = plait_crypto::initial_keys(1, &scid, plait_base::Side::Server);
    let (now, at) = (rig.now, rig.tuple);
    let again = rig.peer.open(now, at, &second);
    let hello = |seen: &crate::puppet::Seen| {
        seen.frames()
            .iter()
            .find_map(|f| if let Frame::Crypto(c) = f { Some((c.offset, c.data.to_vec())) } else { None })
    };
    // RFC 9000 17.2.5.3-1, 17.2.5.3-2: the same ClientHello, and packet numbers that go on
    assert_eq!(hello(&again[0]), hello(&rig.seen[0]));
    assert!(hello(&again[0]).is_some() && again[0].number > rig.seen[0].number);
}

#[test]
fn what_follows_an_unreadable_packet_is_read() {
    // RFC 9000 12.2-4
    let mut rig = half_way();
    let mut datagram = Vec::new();
    rig.peer.seal(&Packet::new(PacketKind::Initial, [0x01]).padded(600), &mut datagram);
    *datagram.last_mut().unwrap() ^= 1;
    rig.peer.seal(&Packet::new(PacketKind::Initial, FORBIDDEN).padded(700), &mut datagram);
    rig.deliver(&datagram);
    assert!(!rig.is_open());
}

#[test]
fn a_packet_that_breaks_a_rule_is_not_acknowledged() {
    // RFC 9000 13.1-1
    let mut rig = Rig::established_server(Setup::default());
    let number = rig.peer.next_number(Space::Data, 0);
    rig.frames([0x01, 0x21]);
    rig.pass(ms(1_000));
    assert!(!rig.is_open());
    assert_eq!(rig.count(|f| matches!(f, Frame::Ack(a) if a.path == PathId(0) && a.largest >= number)), 0);
}

#[test]
fn acks_leave_in_the_space_of_what_they_acknowledge() {
    // Each space counts from another number, so that an ack says which one it is of.
    let mut rig = resumed(|_| {});
    let hello = rig.peer.crypto_frames(Space::Initial, 0, 1000).concat();
    rig.send(Packet::new(PacketKind::Initial, hello).numbered(100));
    rig.send(Packet::new(PacketKind::ZeroRtt, stream(0, 0, false, b"early")).numbered(300));
    let finished = rig.peer.crypto_frames(Space::Handshake, 0, 1000).concat();
    rig.send(Packet::new(PacketKind::Handshake, finished).numbered(200));
    rig.frames([0x01]);
    rig.pass(ms(100));
    let mut early = false;
    for seen in &rig.seen {
        for frame in seen.frames() {
            let Frame::Ack(ack) = frame else { continue };
            let mine = match seen.kind {
                PacketKind::Initial => 100..200,
                PacketKind::Handshake => 200..300,
                _ => 300..400,
            };
            // RFC 9000 13.2.6-1, 13.2.6-2, 17.2.3-3
            assert!(
                ack.ranges().all(|r| mine.contains(r.start()) && mine.contains(r.end())),
                "{:?} {ack:?}",
                seen.kind
            );
            // RFC 9000 13.2.6-3
            early |= seen.kind == PacketKind::OneRtt && ack.ranges().any(|r| r.contains(&300));
        }
    }
    assert!(early && streams_seen(&rig) > 0);
}

#[test]
fn handshake_done_is_repeated_until_acknowledged() {
    let done = |rig: &Rig| rig.count(|f| matches!(f, Frame::HandshakeDone));
    let mut rig = Rig::server(Setup::default());
    let hello = rig.peer.crypto_frames(Space::Initial, 0, 1000).concat();
    rig.send(Packet::new(PacketKind::Initial, hello));
    // RFC 9000 19.20-1: not before the handshake is complete,
    assert!(rig.peer.one_rtt.is_some() && done(&rig) == 0);
    let finished = rig.peer.crypto_frames(Space::Handshake, 0, 1000).concat();
    rig.send(Packet::new(PacketKind::Handshake, finished));
    // RFC 9001 4.1.2: but then at once,
    assert_eq!(done(&rig), 1);
    // RFC 9000 13.3-2: and again until it is acknowledged.
    rig.pass(ms(5_000));
    assert!(done(&rig) > 1);
    rig.ack_all();
    rig.pass(ms(100));
    rig.ack_all();
    let said = done(&rig);
    rig.pass(ms(10_000));
    assert_eq!(done(&rig), said);
}

#[test]
fn the_clients_keys_may_change_once_it_heard_that_the_handshake_is_done() {
    // RFC 9001 6.1
    let mut rig = Rig::server(Setup::default());
    let hello = rig.peer.crypto_frames(Space::Initial, 0, 1000).concat();
    rig.send(Packet::new(PacketKind::Initial, hello));
    let early = rig.peer.ack(Space::Data, 0, AckForm::Plain).expect("1-RTT packets go along with the first flight");
    let finished = rig.peer.crypto_frames(Space::Handshake, 0, 1000).concat();
    rig.send(Packet::new(PacketKind::Handshake, finished));
    rig.frames(early);
    let now = rig.now;
    assert_eq!(rig.conn().update_keys(now), Err(UpdateRefused::Unacknowledged), "the client may not know yet");
    rig.ack_all();
    let now = rig.now;
    assert_eq!(rig.conn().update_keys(now), Ok(()));
}

#[test]
fn what_only_servers_send() {
    // RFC 9000 19.7-3; a client's HANDSHAKE_DONE would end the connection too
    let mut rig = Rig::established_client(Setup::default());
    rig.pass(ms(5_000));
    assert_eq!(rig.count(|f| matches!(f, Frame::NewToken(_) | Frame::HandshakeDone)), 0);
}

#[test]
fn data_left_over_at_a_change_of_level_is_a_violation() {
    // RFC 9001 4.1.3-3: CRYPTO bytes of the Initial level beyond the ClientHello, with a hole before them
    let mut rig = Rig::server(Setup::default());
    let end = rig.peer.crypto_out[&Space::Initial].len() as u64;
    let mut payload = raw(&[0x06, end + 4, 4], &[1, 2, 3, 4]);
    payload.extend(rig.peer.crypto_frames(Space::Initial, 0, 1000).concat());
    rig.send(Packet::new(PacketKind::Initial, payload));
    assert!(!rig.is_open());
    assert_eq!(rig.close_seen(), Some(CloseCode::PROTOCOL_VIOLATION));
}

/// Bytes of CRYPTO frames by level and offset, with how often each was seen. Another byte at the same place fails.
fn crypto_seen(rig: &Rig) -> BTreeMap<(Space, u64), (u8, u32)> {
    let mut seen = BTreeMap::new();
    for packet in &rig.seen {
        for frame in packet.frames() {
            let Frame::Crypto(crypto) = frame else { continue };
            for (offset, byte) in (crypto.offset..).zip(crypto.data.iter().copied()) {
                let entry = seen.entry((packet.kind.space(), offset)).or_insert((byte, 0));
                assert_eq!(entry.0, byte, "{:?} at {offset}", packet.kind);
                entry.1 += 1;
            }
        }
    }
    seen
}

/// True where all CRYPTO data of a level was seen more than once.
fn goes_again(rig: &Rig, space: Space) -> bool {
    let seen = crypto_seen(rig);
    let mut counts = seen.iter().filter(|((of, _), _)| *of == space).map(|(_, (_, count))| *count).peekable();
    counts.peek().is_some() && counts.all(|count| count > 1)
}

#[test]
fn crypto_data_goes_again_at_the_level_that_it_was_first_sent_at() {
    // RFC 9001 4.9-1: a server that has Handshake and 1-RTT keys, first at one level, then at the next,
    let mut server = Rig::server(Setup::default());
    let hello = server.peer.crypto_frames(Space::Initial, 0, 1000).concat();
    server.send(Packet::new(PacketKind::Initial, hello).padded(1200));
    server.pass(ms(3_000));
    assert!(goes_again(&server, Space::Initial));
    let acked = server.peer.ack(Space::Initial, 0, AckForm::Plain).unwrap();
    server.send(Packet::new(PacketKind::Initial, acked).padded(1200));
    server.pass(ms(10_000));
    assert!(goes_again(&server, Space::Handshake));
    // a server whose session tickets nobody acknowledges,
    let mut server = Rig::server(Setup::default());
    finish(&mut server);
    server.pass(ms(3_000));
    assert!(goes_again(&server, Space::Data));
    // and a client that is done with its Initial keys and says its Finished.
    let mut client = Rig::client(Setup::default());
    while client.say_handshake() || !client.peer.is_done() {}
    client.pass(ms(3_000));
    assert!(goes_again(&client, Space::Handshake));
    assert!(crypto_seen(&client).keys().all(|(space, _)| *space != Space::Data));
}

#[test]
fn initial_keys_end_with_the_first_handshake_packet() {
    // RFC 9001 4.9.1-1, 4.9.1-3: of a client when it sends one,
    let mut client = Rig::client(Setup::default());
    while client.say_handshake() || !client.peer.is_done() {
        client.pass(ms(5));
    }
    // RFC 9001 4.9.1-2, 4.9.1-3: and of a server when it reads one.
    let mut server = Rig::server(Setup::default());
    finish(&mut server);
    for rig in [&mut client, &mut server] {
        let from = rig.seen.len();
        rig.send(Packet::new(PacketKind::Initial, FORBIDDEN));
        rig.pass(ms(3_000));
        assert!(rig.is_open());
        assert!(rig.seen[from..].iter().all(|s| s.kind != PacketKind::Initial));
    }
}

#[test]
fn handshake_keys_end_with_the_confirmation() {
    // RFC 9001 4.9.2
    for mut rig in [Rig::established_client(Setup::default()), Rig::established_server(Setup::default())] {
        let from = rig.seen.len();
        rig.send(Packet::new(PacketKind::Handshake, FORBIDDEN));
        rig.pass(ms(3_000));
        assert!(rig.is_open());
        assert!(rig.seen[from..].iter().all(|s| s.kind != PacketKind::Handshake));
    }
}

#[test]
fn early_keys_end_soon() {
    // RFC 9001 4.9.3: what comes a little late is read, what comes much later is not
    let mut rig = resumed(|_| {});
    finish(&mut rig);
    rig.frames([0x01]);
    rig.send(Packet::new(PacketKind::ZeroRtt, stream(0, 0, false, b"late")));
    assert!(streams_seen(&rig) > 0);
    rig.pass(ms(10_000));
    rig.send(Packet::new(PacketKind::ZeroRtt, FORBIDDEN));
    assert!(rig.is_open());
}

#[test]
fn a_client_waits_for_the_end_of_the_handshake() {
    // RFC 9001 5.7-3
    let mut rig = Rig::client(Setup::default());
    assert!(rig.peer.one_rtt.is_some(), "the server has its keys already");
    rig.frames(stream(1, 0, false, b"0.5-RTT"));
    assert_eq!((rig.conn().is_handshaking(), streams_seen(&rig)), (true, 0));
    rig.say_handshake();
    assert!(streams_seen(&rig) > 0);
}

#[test]
fn a_tls_key_update_is_refused() {
    // RFC 9001 6-2: unexpected_message
    // The last is a server whose client has all that TLS said, and that gave its spare memory back.
    let mut idle = Rig::established_server(Setup::default());
    idle.ack_all();
    idle.conn().shrink_to_fit();
    for mut rig in [Rig::established_client(Setup::default()), Rig::established_server(Setup::default()), idle] {
        let offset = rig.peer.crypto_out.get(&Space::Data).map_or(0, Vec::len) as u64;
        tickets(&mut rig);
        rig.frames(raw(&[0x06, offset, 5], &[24, 0, 0, 1, 0]));
        assert_eq!(rig.close_seen(), Some(CloseCode(0x010a)));
    }
}

/// A client that remembers what its server of `first` allowed, and meets that of `second`.
pub(crate) fn two_visits(first: fn(&mut Setup), second: fn(&mut Setup)) -> Rig {
    let tls = resuming_client_tls();
    let setup = |change: fn(&mut Setup)| {
        let mut setup = Setup { engine_tls: Some(Tls::Client(tls.clone())), ..Setup::default() };
        change(&mut setup);
        setup
    };
    let mut rig = Rig::established_client(setup(first));
    tickets(&mut rig);
    let mut rig = Rig::client(setup(second));
    assert!(rig.conn().session().has_0rtt(), "no session was remembered");
    rig
}

#[test]
fn only_limits_are_remembered() {
    const TOKEN: ResetToken = ResetToken([0x5a; 16]);
    let mut rig = two_visits(
        |s| {
            let params = &mut s.habits.params;
            params.limits.max_stream_data_uni = 3_000;
            params.limits.max_streams_uni = 2;
            params.acks.delay_exponent = 20;
            params.stateless_reset_token = Some(TOKEN);
        },
        |s| {
            s.habits.params.limits.max_stream_data_uni = 9_000;
            s.habits.params.initial_max_path_id = None;
        },
    );
    // RFC 9000 7.4.1-4, 7.4.1-8: 0-RTT goes by the limits of the visit before,
    let id = rig.conn().streams().open(Dir::Uni).unwrap();
    assert_eq!(rig.conn().send_stream(id).write(&[1; 20_000]).ok(), Some(3_000));
    assert!(rig.conn().streams().open(Dir::Uni).is_some() && rig.conn().streams().open(Dir::Uni).is_none());
    // RFC 9000 7.4.1-2: but no token of then resets,
    let mut reset = vec![0x40; 40];
    reset.extend_from_slice(&TOKEN.0);
    rig.deliver(&reset);
    assert!(rig.is_open());
    // RFC 9000 7.4.1-3, RFC 10069 2.1-6: and the rest is what the new handshake says.
    rig.shake_hands();
    assert!(!rig.conn().is_multipath());
    assert_eq!(rig.conn().send_stream(id).write(&[1; 20_000]).ok(), Some(6_000));
    assert_eq!(rig.conn().session().accepted_0rtt(), Some(true));
}

#[test]
fn a_server_that_lowered_its_limits_refuses_early_data() {
    // RFC 9000 7.4.1-5, 7.4.1-6, 7.4.1-7, RFC 9001 4.6.2-1, RFC 9221 3-5
    type Change = fn(&mut Setup);
    let changes: [(bool, Change); 5] = [
        (true, |_| {}),
        (true, |s| _ = s.transport.max_concurrent_uni_streams(1_000)),
        (false, |s| _ = s.transport.max_concurrent_uni_streams(10)),
        (false, |s| _ = s.transport.datagram_receive_buffer_size(Some(100))),
        (false, |s| _ = s.transport.auto_tune_windows(false).stream_receive_window(1_000)),
    ];
    for (accepts, change) in changes {
        let mut rig = resumed(change);
        let hello = rig.peer.crypto_frames(Space::Initial, 0, 1000).concat();
        rig.send(Packet::new(PacketKind::Initial, hello));
        rig.send(Packet::new(PacketKind::ZeroRtt, stream(0, 0, false, b"early")));
        assert_eq!(streams_seen(&rig) > 0, accepts);
        finish(&mut rig);
        assert!(rig.is_open() && rig.peer.tls.as_ref().unwrap().early_data_accepted() == accepts);
    }
}

#[test]
fn early_packets_count_on() {
    let mut rig = two_visits(|_| {}, |_| {});
    let id = rig.conn().streams().open(Dir::Uni).unwrap();
    rig.conn().send_stream(id).write(&[1; 5_000]).unwrap();
    rig.pump();
    let early =
        |rig: &Rig| rig.wire.iter().flat_map(|(_, _, d)| kinds(d)).filter(|k| *k == PacketKind::ZeroRtt).count();
    let sent = early(&rig);
    assert!(sent >= 4, "{sent}");
    rig.shake_hands();
    rig.conn().send_stream(id).write(&[1; 5_000]).unwrap();
    rig.pass(ms(100));
    // RFC 9000 17.2.3-1: 0-RTT and 1-RTT share their numbers
    let later = rig.seen.iter().filter(|s| s.kind == PacketKind::OneRtt).map(|s| s.number).min();
    assert!(later >= Some(sent as u64), "{later:?}");
    // RFC 9000 17.2.3-2, RFC 9001 5.6-6
    assert_eq!(early(&rig), sent);
}

#[test]
fn a_preferred_address_that_is_silent_is_left_alone() {
    // RFC 9000 9.6.1
    let mut setup = Setup::single_path();
    setup.habits.params.preferred_address = Some(PreferredAddress {
        v4: Some("198.51.100.9:443".parse().unwrap()),
        v6: None,
        cid: ConnectionId::new(&[0x77; 8]).unwrap(),
        token: ResetToken([5; 16]),
    });
    let mut rig = Rig::client(setup);
    finish(&mut rig);
    rig.frames([0x1e]);
    let there = |rig: &Rig| rig.wire.iter().filter(|(at, ..)| at.remote == addr("198.51.100.9:443")).count();
    rig.pass(ms(10_000));
    let probes = there(&rig);
    assert!(probes > 0);
    let now = rig.now;
    assert_eq!(rig.conn().path_statistics(now, PathId(0)).unwrap().tuple, tuple(PUPPET));
    let ack = rig.peer.ack(Space::Data, 0, AckForm::Plain).unwrap();
    rig.frames(ack);
    rig.pass(ms(10_000));
    assert!(rig.is_open());
    assert_eq!(there(&rig), probes, "it was given up");
}

#[test]
fn a_client_whose_finished_is_not_acknowledged_probes_with_1_rtt_packets_too() {
    // RFC 9002 6.2.4: a server that confirmed the handshake, but was not heard, reads nothing else
    let mut rig = Rig::client(Setup::default());
    while rig.say_handshake() || !rig.peer.is_done() {
        rig.pass(ms(5));
    }
    let id = rig.conn().streams().open(Dir::Bi).unwrap();
    rig.conn().send_stream(id).write(b"hello").unwrap();
    rig.pump();
    let from = rig.seen.len();
    rig.pass(ms(20_000));
    let count = |kind| rig.seen[from..].iter().filter(|s| s.kind == kind && !s.frames().is_empty()).count();
    let (handshake, one_rtt) = (count(PacketKind::Handshake), count(PacketKind::OneRtt));
    assert!(handshake >= 4 && one_rtt >= 2, "{handshake} Handshake packets, {one_rtt} 1-RTT packets");
}
