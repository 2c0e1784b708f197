//! Close, drain, reset, silence: every way in which a connection ends, and what must hold then (RFC 9000 10).

use std::time::Duration;

use plait_base::{CloseCode, PathId, Random, ResetToken, Side, Space};
use plait_engine::{ConnectionError, EndpointEvent, Event};
use plait_wire::frame::{AckForm, CidForm};
use plait_wire::params::VersionInfo;
use plait_wire::{Frame, PacketKind, Version};

use crate::puppet::{Habits, Packet, Peer, Rig, Setup, Tls, ms, params, server_tls, tuple};
use crate::violations::{half_way, raw};

fn drained(rig: &Rig) -> usize {
    rig.endpoint_events.iter().filter(|e| **e == EndpointEvent::Drained).count()
}

fn lost(rig: &Rig) -> Vec<ConnectionError> {
    rig.events.iter().filter_map(|e| if let Event::ConnectionLost(e) = e { Some(e.clone()) } else { None }).collect()
}

/// Everything that may still happen to a connection that is over.
fn prod(rig: &mut Rig) {
    let now = rig.now;
    rig.conn().on_timeout(now);
    rig.conn().close(now, 1, "again".into());
    let _ = rig.conn().close_path(now, PathId(1), CloseCode::NO_ERROR);
    let _ = rig.conn().migrate_path(now, PathId(0), tuple("192.0.2.77:1"));
    rig.conn().set_local_addresses(now, &[]);
    rig.frames([0x01]);
    rig.frames(raw(&[0x19, 1], &[]));
    rig.pass(ms(60_000));
}

#[test]
fn drained_comes_once_and_last_after_our_close() {
    let mut rig = Rig::established_server(Setup::default());
    let now = rig.now;
    rig.conn().close(now, 7, "bye".into());
    rig.pump();
    assert_eq!(rig.close_seen(), Some(CloseCode(7)));
    assert_eq!(drained(&rig), 0);
    rig.pass(ms(20_000));
    prod(&mut rig);
    assert_eq!((drained(&rig), rig.endpoint.connections()), (1, 0));
    assert_eq!(lost(&rig), [ConnectionError::LocallyClosed]);
}

#[test]
fn drained_comes_once_and_last_after_the_peers_close() {
    let mut rig = Rig::established_server(Setup::default());
    let wire = rig.wire.len();
    rig.frames(raw(&[0x1d, 9, 0], &[]));
    rig.frames([0x01]);
    // RFC 9000 10.2.2-2: nothing is sent while draining
    assert_eq!(rig.wire.len(), wire);
    rig.pass(ms(20_000));
    prod(&mut rig);
    assert_eq!((drained(&rig), rig.endpoint.connections()), (1, 0));
    assert!(matches!(&lost(&rig)[..], [ConnectionError::ApplicationClosed(c)] if c.code == 9));
}

#[test]
fn drained_comes_once_and_last_after_idle() {
    let mut setup = Setup::default();
    setup.transport.max_idle_timeout(Some(Duration::from_secs(5)));
    let mut rig = Rig::established_server(setup);
    let wire = rig.wire.len();
    rig.pass(ms(4_000));
    assert!(rig.is_open());
    rig.pass(ms(3_000));
    // RFC 9000 10.1: silently
    assert!(rig.wire[wire..].iter().all(|(_, _, d)| d.len() < 1300) && rig.close_seen().is_none());
    prod(&mut rig);
    assert_eq!((drained(&rig), rig.endpoint.connections()), (1, 0));
    assert_eq!(lost(&rig), [ConnectionError::TimedOut]);
}

#[test]
fn drained_comes_once_and_last_after_a_stateless_reset() {
    // RFC 9000 10.3.1-4: by the endpoint, from the token of an id in use
    let mut rig = Rig::established_server(Setup::default());
    rig.open_path(1, "192.0.2.2:5000", true);
    rig.pass(ms(50));
    let token = rig.endpoint_events.iter().rev().find_map(|e| match e {
        EndpointEvent::ResetToken { remote, token } if *remote == tuple("192.0.2.2:5000").remote => Some(*token),
        _ => None,
    });
    let mut reset = vec![0x5a; 40];
    reset.extend_from_slice(&token.expect("a token of path 1").0);
    // From another address the same bytes mean nothing.
    rig.deliver_from(tuple("192.0.2.9:5000"), &reset);
    assert!(rig.is_open());
    rig.deliver_from(tuple("192.0.2.2:5000"), &reset);
    assert!(!rig.is_open());
    // Repeating it prolongs nothing.
    for _ in 0..50 {
        rig.pass(ms(200));
        rig.deliver_from(tuple("192.0.2.2:5000"), &reset);
    }
    assert_eq!(drained(&rig), 1);
    prod(&mut rig);
    assert_eq!((drained(&rig), lost(&rig)), (1, vec![ConnectionError::Reset]));
}

#[test]
fn a_client_without_ids_knows_a_stateless_reset() {
    // RFC 9000 10.3.1-1: also where the addresses lead to a connection, which then cannot read the packet
    let mut setup = Setup::single_path();
    setup.endpoint_change = |config| {
        config.cid_len(0);
    };
    setup.habits.params.stateless_reset_token = Some(ResetToken([7; 16]));
    let mut rig = Rig::established_client(setup);
    let mut reset = vec![0x5a; 24];
    rig.deliver(&[&reset[..], &[8; 16]].concat());
    assert!(rig.is_open(), "another token");
    reset.extend_from_slice(&[7; 16]);
    rig.deliver_from(tuple("192.0.2.9:5000"), &reset);
    assert!(rig.is_open(), "another address");
    rig.deliver(&reset);
    assert_eq!(lost(&rig), vec![ConnectionError::Reset]);
}

/// Random bytes that end in a token, with the first byte of a long header.
fn long_reset(random: &mut Random, len: usize, token: &ResetToken) -> Vec<u8> {
    let mut reset = vec![0; len - 16];
    random.fill(&mut reset);
    reset[0] |= 0x80;
    if random.below(2) == 0 && reset.len() >= 5 {
        // A version that we speak leads further into the packet.
        reset[1..5].copy_from_slice(&[0, 0, 0, 1]);
    }
    reset.extend_from_slice(&token.0);
    reset
}

#[test]
fn a_stateless_reset_with_a_long_header_is_known_by_its_token() {
    // RFC 9000 10.3.1: every datagram that belongs to no connection or cannot be read, whatever its first bit
    for seed in 0..40 {
        let mut random = Random::from_u64(seed);
        let len = 21 + random.below(60) as usize;
        let mut rig = Rig::established_server(Setup { seed, ..Setup::default() });
        let token = rig.peer.issued.len() as u8;
        let frame = rig.peer.new_cid(CidForm::Path, 0, 2);
        rig.frames(crate::violations::encoded(&frame));
        rig.open_path(1, "192.0.2.2:5000", true);
        rig.pass(ms(50));
        let known = rig.endpoint_events.iter().rev().find_map(|e| match e {
            EndpointEvent::ResetToken { remote, token } if *remote == tuple("192.0.2.2:5000").remote => Some(*token),
            _ => None,
        });
        let known = known.expect("a token of path 1");
        let other = ResetToken([token; 16]);
        rig.deliver_from(tuple("192.0.2.2:5000"), &long_reset(&mut random, len, &other));
        rig.deliver_from(tuple("192.0.2.9:5000"), &long_reset(&mut random, len, &known));
        assert!(rig.is_open(), "seed {seed}: another token, and another address");
        rig.deliver_from(tuple("192.0.2.2:5000"), &long_reset(&mut random, len, &known));
        assert_eq!(lost(&rig), vec![ConnectionError::Reset], "seed {seed}, {len} bytes");

        // Without ids the addresses lead to a connection, which cannot read it.
        let mut setup = Setup::single_path();
        setup.endpoint_change = |config| {
            config.cid_len(0);
        };
        setup.habits.params.stateless_reset_token = Some(ResetToken([7; 16]));
        let mut rig = Rig::established_client(setup);
        rig.deliver(&long_reset(&mut random, len, &ResetToken([8; 16])));
        assert!(rig.is_open(), "seed {seed}: another token");
        rig.deliver(&long_reset(&mut random, len, &ResetToken([7; 16])));
        assert_eq!(lost(&rig), vec![ConnectionError::Reset], "seed {seed}, {len} bytes, no ids");
    }
}

#[test]
fn a_reset_that_happens_to_bear_our_id_is_one_all_the_same() {
    // RFC 9000 10.3.1: what cannot be decrypted is compared too
    let mut setup = Setup::default();
    setup.habits.params.stateless_reset_token = Some(ResetToken([7; 16]));
    let mut rig = Rig::established_client(setup);
    let mut reset = vec![0x43];
    reset.extend_from_slice(&rig.peer.dcid);
    reset.extend_from_slice(&[0x5a; 20]);
    rig.deliver(&[&reset[..], &[8; 16]].concat());
    assert!(rig.is_open(), "another token");
    rig.deliver(&[&reset[..], &[7; 16]].concat());
    assert_eq!(lost(&rig), vec![ConnectionError::Reset]);
}

#[test]
fn drained_comes_once_when_no_version_fits() {
    // RFC 9000 6.2-1
    let mut rig = Rig::client(Setup::default());
    let vn = version_negotiation(&rig, &[0x0a0a_0a0a, 0x7777_7777]);
    rig.deliver(&vn);
    assert_eq!((drained(&rig), lost(&rig)), (1, vec![ConnectionError::VersionMismatch]));
    rig.deliver(&vn);
    rig.pass(ms(10_000));
    assert_eq!(drained(&rig), 1);
}

pub fn version_negotiation(rig: &Rig, versions: &[u32]) -> Vec<u8> {
    let (_, _, first) = &rig.wire[0];
    let dcid_len = first[5] as usize;
    let dcid = first[6..6 + dcid_len].to_vec();
    let scid_len = first[6 + dcid_len] as usize;
    let scid = first[7 + dcid_len..7 + dcid_len + scid_len].to_vec();
    let mut vn = vec![0xc0, 0, 0, 0, 0, scid_len as u8];
    vn.extend_from_slice(&scid);
    vn.push(dcid_len as u8);
    vn.extend_from_slice(&dcid);
    versions.iter().for_each(|v| vn.extend_from_slice(&v.to_be_bytes()));
    vn
}

#[test]
fn an_established_connection_ignores_version_negotiation() {
    // RFC 9000 6.2-2
    let mut rig = Rig::established_client(Setup::default());
    let vn = version_negotiation(&rig, &[0x7777_7777]);
    rig.deliver(&vn);
    assert!(rig.is_open());
}

#[test]
fn version_negotiation_must_echo_our_ids() {
    // RFC 9000 17.2.1: the source id of the answer is the destination id of our packet
    let mut rig = Rig::client(Setup::default());
    let mut vn = version_negotiation(&rig, &[0x7777_7777]);
    let at = vn.len() - 5;
    vn[at] ^= 1;
    rig.deliver(&vn);
    assert!(rig.is_open());
}

#[test]
fn version_negotiation_is_followed_once() {
    // RFC 9000 6.2-2: a client that acted on one discards all further ones
    let mut rig = Rig::client(Setup::default());
    let to_v2 = version_negotiation(&rig, &[0x6b33_43cf]);
    let to_v1 = version_negotiation(&rig, &[1]);
    rig.deaf = true;
    rig.deliver(&to_v2);
    let wire = rig.wire.len();
    assert_eq!(rig.wire[wire - 1].2[1..5], 0x6b33_43cf_u32.to_be_bytes());
    for _ in 0..10 {
        rig.deliver(&to_v1);
        rig.deliver(&to_v2);
    }
    assert_eq!(rig.wire.len(), wire, "no further first flights");
    assert!(rig.is_open());
}

#[test]
fn closing_answers_ever_more_rarely_and_draining_not_at_all() {
    // RFC 9000 10.2.2-1, 10.2.2-2, 10.2.3-1
    // RFC 9000 10.2.1
    let mut rig = Rig::established_server(Setup::default());
    let now = rig.now;
    rig.conn().close(now, 7, "bye".into());
    rig.pump();
    let wire = rig.wire.len();
    (0..100).for_each(|_| rig.frames([0x01]));
    let answers = rig.wire.len() - wire;
    assert!((5..10).contains(&answers), "{answers}");
    rig.frames(raw(&[0x1c, 0, 0, 0], &[]));
    let wire = rig.wire.len();
    (0..100).for_each(|_| rig.frames([0x01]));
    assert_eq!(rig.wire.len(), wire);
}

#[test]
fn close_in_every_state_reaches_the_peer() {
    // RFC 9000 12.5-1
    // RFC 9000 10.2.3-2, 10.2.3-3: in Initial and Handshake packets while the peer may lack keys
    let mut rig = half_way();
    let now = rig.now;
    rig.conn().close(now, 7, "private".into());
    rig.deaf = false;
    rig.pump();
    let kinds = |rig: &Rig| -> Vec<PacketKind> {
        let closes = rig.wire.last().map(|(r, _, d)| (*r, d.clone())).unwrap();
        let now = rig.now;
        let _ = closes;
        rig.seen.iter().filter(|s| s.at == now && s.has(|f| matches!(f, Frame::Close(_)))).map(|s| s.kind).collect()
    };
    assert!(kinds(&rig).contains(&PacketKind::Initial));
    assert_eq!(rig.close_seen(), Some(CloseCode::APPLICATION_ERROR), "the application's code stays private");

    // A client that has Handshake keys, whose server may or may not.
    let mut rig = Rig::client(Setup::default());
    let now = rig.now;
    rig.conn().close(now, 7, "private".into());
    rig.pump();
    assert_eq!(rig.close_seen(), Some(CloseCode::APPLICATION_ERROR));
    assert!(rig.wire.last().unwrap().2.len() >= 1200, "RFC 9000 14.1-1");
}

#[test]
fn a_servers_early_close_travels_at_both_levels() {
    // RFC 9000 10.2.3: a client may have dropped its Initial keys already
    let mut rig = half_way();
    let now = rig.now;
    rig.conn().close(now, 7, "private".into());
    // The puppet hears the flight first, so that it has Handshake keys.
    let flight = rig.wire.clone();
    rig.deaf = true;
    rig.pump();
    let close = rig.wire[flight.len()..].to_vec();
    for (tuple, _, data) in flight.iter().chain(&close) {
        let now = rig.now;
        let seen = rig.peer.open(now, *tuple, data);
        rig.seen.extend(seen);
    }
    let has = |kind| rig.seen.iter().any(|s| s.kind == kind && s.has(|f| matches!(f, Frame::Close(_))));
    assert!(has(PacketKind::Initial) && has(PacketKind::Handshake));
}

#[test]
fn idle_timeout_is_at_least_three_probe_timeouts() {
    // RFC 9000 10.1
    let mut setup = Setup::default();
    setup.transport.max_idle_timeout(Some(Duration::from_millis(1)));
    let mut rig = Rig::established_server(setup);
    rig.frames([0x01]);
    rig.pass(ms(20));
    assert!(rig.is_open());
    rig.pass(ms(30_000));
    assert!(!rig.is_open());
}

#[test]
fn pitfall_12_close_goes_out_on_all_open_paths() {
    let mut rig = Rig::established_server(Setup::default());
    rig.open_path(1, "192.0.2.2:5000", true);
    rig.open_path(2, "192.0.2.3:5000", true);
    let now = rig.now;
    rig.conn().close(now, 7, "bye".into());
    rig.pump();
    let mut on: Vec<u32> =
        rig.seen.iter().filter(|s| s.has(|f| matches!(f, Frame::Close(_)))).map(|s| s.path.0).collect();
    on.sort_unstable();
    assert_eq!(on, [0, 1, 2]);
}

#[test]
fn pitfall_17_idle_timer_is_global() {
    // RFC 10069 5.9: silence on one path ends nothing while another is alive
    let mut setup = Setup::default();
    setup.transport.max_idle_timeout(Some(Duration::from_secs(3)));
    let mut rig = Rig::established_server(setup);
    rig.open_path(1, "192.0.2.2:5000", true);
    for _ in 0..20 {
        rig.pass(ms(500));
        rig.send_all(tuple("192.0.2.2:5000"), &[Packet::one_rtt([0x01]).on(1)]);
        let ack = rig.peer.ack(Space::Data, 1, AckForm::Path).unwrap();
        rig.send_all(tuple("192.0.2.2:5000"), &[Packet::one_rtt(ack).on(1)]);
    }
    assert!(rig.is_open());
}

/// A client that a Version Negotiation moved to version 2, and a server that says these versions are available.
fn moved_to_v2(available: Option<Vec<Version>>) -> Rig {
    let mut rig = Rig::client(Setup::default());
    let vn = version_negotiation(&rig, &[0x6b33_43cf]);
    let mut habits = Habits { params: params(), ..Habits::default() };
    habits.params.version_info = available.map(|available| VersionInfo { chosen: Version::V2, available });
    rig.peer = Peer::new(Side::Server, Tls::Server(server_tls()), habits, 5);
    rig.peer.version = Version::V2;
    rig.deliver(&vn);
    (0..4).for_each(|_| {
        rig.say_handshake();
        rig.pass(ms(5));
    });
    rig
}

#[test]
fn a_forged_version_negotiation_is_found_out() {
    // RFC 9368 4: the server would have taken the version that the client tried first
    let mut rig = moved_to_v2(Some(vec![Version::V2, Version::V1]));
    assert_eq!(rig.close_seen(), Some(CloseCode::VERSION_NEGOTIATION_ERROR));
    assert!(!rig.is_open());
    let mut rig = moved_to_v2(None);
    assert!(!rig.is_open(), "RFC 9368 4: the parameter is missing");
    let mut rig = moved_to_v2(Some(vec![Version::V2]));
    assert!(rig.is_open() && !rig.conn().is_handshaking());
}

/// PATH_ABANDON for path 0, and the code it gives.
fn abandoned(rig: &Rig, from: usize) -> Vec<CloseCode> {
    let codes = |s: &crate::puppet::Seen| -> Vec<CloseCode> {
        let of = |f| if let Frame::PathAbandon(f) = f { Some(f) } else { None };
        s.frames().into_iter().filter_map(of).filter(|f| f.path == PathId(0)).map(|f| f.code).collect()
    };
    rig.seen[from..].iter().flat_map(codes).collect()
}

#[test]
fn a_peer_that_abandons_its_only_path_is_answered_and_told_of_the_end() {
    // RFC 10069 3.4: PATH_ABANDON is answered, and without a path left the connection ends
    let mut rig = Rig::established_server(Setup::default());
    let id = rig.conn().streams().open(plait_base::Dir::Uni).unwrap();
    rig.conn().send_stream(id).write(&[1; 50_000]).unwrap();
    rig.pump();
    let (wire, seen) = (rig.wire.len(), rig.seen.len());
    rig.frames(raw(&[0x3e75, 0, 0], &[]));
    assert_eq!(abandoned(&rig, seen), [CloseCode::NO_ERROR], "answered on the path itself, there is no other");
    assert!(rig.is_open(), "the client may still open another path");
    let late = rig.wire.len();
    // A server cannot open paths: it waits for one probe time-out of a path that it knows nothing of.
    rig.pass(ms(990));
    assert!(rig.is_open() && rig.close_seen().is_none());
    rig.pass(ms(20));
    assert_eq!(rig.close_seen(), Some(CloseCode::NO_VIABLE_PATH));
    assert_eq!(rig.wire.len() - late, 1, "nothing but the close");
    rig.pass(ms(60_000));
    assert_eq!(rig.wire.len() - wire, 2, "nothing else leaves on an abandoned path");
    assert_eq!(drained(&rig), 1);
}

#[test]
fn an_application_that_closes_without_a_path_is_heard() {
    let mut rig = Rig::established_server(Setup::default());
    rig.frames(raw(&[0x3e75, 0, 0], &[]));
    let now = rig.now;
    rig.conn().close(now, 7, "bye".into());
    rig.pump();
    assert_eq!(rig.close_seen(), Some(CloseCode(7)));
    // The peer missed it and goes on: it is told again.
    let wire = rig.wire.len();
    rig.frames([0x01]);
    assert_eq!(rig.wire.len() - wire, 1);
    assert_eq!(lost(&rig), [ConnectionError::LocallyClosed]);
}

#[test]
fn a_client_that_gives_its_only_path_up_says_so_and_closes() {
    let mut rig = Rig::established_client(Setup::default());
    let (now, seen) = (rig.now, rig.seen.len());
    rig.conn().close_path(now, PathId(0), CloseCode::APPLICATION_ABANDON_PATH).unwrap();
    rig.pump();
    assert_eq!(abandoned(&rig, seen), [CloseCode::APPLICATION_ABANDON_PATH]);
    assert!(rig.is_open(), "it may open another");
    rig.pass(ms(4_000));
    assert_eq!(rig.close_seen(), Some(CloseCode::NO_VIABLE_PATH));
    rig.pass(ms(60_000));
    assert_eq!(drained(&rig), 1);
}

#[test]
fn a_path_that_opens_in_time_keeps_the_connection() {
    // RFC 10069 3.4: the end of the last path may be followed by a new one
    let mut rig = Rig::established_client(Setup::default());
    let now = rig.now;
    rig.conn().close_path(now, PathId(0), CloseCode::APPLICATION_ABANDON_PATH).unwrap();
    rig.conn().open_path(now, tuple("192.0.2.9:443"), plait_engine::path::PathStatus::Available).unwrap();
    let seen = rig.seen.len();
    rig.pump();
    assert!(rig.seen[seen..].iter().all(|s| s.path == PathId(1)), "the path that is open carries the end of the other");
    assert_eq!(abandoned(&rig, seen), [CloseCode::APPLICATION_ABANDON_PATH]);
    rig.answer_challenges(seen, tuple("192.0.2.9:443"), 1);
    rig.pass(ms(5_000));
    assert!(rig.is_open() && rig.close_seen().is_none());
}

#[test]
fn a_path_whose_ids_are_all_retired_stops_no_other() {
    // RFC 9000 5.1.2: nothing to address packets to is the peer's loss on that path only
    let mut rig = Rig::established_server(Setup::default());
    rig.open_path(1, "192.0.2.2:5000", true);
    let mut frame = rig.peer.new_cid(CidForm::Path, 1, 1);
    rig.frames(crate::violations::encoded(&frame));
    frame.retire_prior_to = 1;
    rig.frames(crate::violations::encoded(&frame));
    let mut next = rig.peer.new_cid(CidForm::Path, 1, 2);
    next.retire_prior_to = 2;
    rig.frames(crate::violations::encoded(&next));
    let id = rig.conn().streams().open(plait_base::Dir::Uni).unwrap();
    let from = rig.seen.len();
    rig.conn().send_stream(id).write(&[1; 5_000]).unwrap();
    rig.pass(ms(100));
    assert!(rig.seen[from..].iter().any(|s| s.has(|f| matches!(f, Frame::Stream(_)))));
    assert!(rig.is_open());
}

#[test]
fn a_path_without_an_id_of_the_peer_holds_up_no_other() {
    // RFC 9000 5.1.2: an id that failed with the address it was for, named again, retires the one in use
    let mut rig = Rig::established_client(Setup::default());
    let second = plait_base::FourTuple { local: crate::puppet::addr("10.0.0.2:1"), ..rig.tuple };
    let elsewhere = plait_base::FourTuple { local: crate::puppet::addr("10.0.0.3:1"), ..rig.tuple };
    let (now, seen) = (rig.now, rig.seen.len());
    let path = rig.conn().open_path(now, second, plait_engine::path::PathStatus::Available).unwrap();
    assert_eq!(path, PathId(1));
    rig.pump();
    rig.answer_challenges(seen, second, 1);
    let mut spare = rig.peer.new_cid(CidForm::Path, 1, 1);
    rig.frames(crate::violations::encoded(&spare));
    rig.ack_all();
    let now = rig.now;
    rig.conn().migrate_path(now, path, elsewhere).unwrap();
    rig.pass(ms(10_000));
    rig.ack_all();
    let unanswered = rig.seen.len();
    spare.retire_prior_to = 1;
    rig.frames(crate::violations::encoded(&spare));
    // Path 1 owes a response, and later probes; it has no id to send them to.
    rig.send_all(second, &[Packet::one_rtt([vec![0x1a], vec![9; 8]].concat()).on(1).padded(1200)]);
    let id = rig.conn().streams().open(plait_base::Dir::Uni).unwrap();
    rig.conn().send_stream(id).write(&[1; 3_000]).unwrap();
    rig.pass(ms(10));
    let of = |path: u32| rig.seen[unanswered..].iter().filter(|s| s.path == PathId(path)).count();
    assert_eq!(of(1), 0);
    assert!(rig.seen[unanswered..].iter().any(|s| s.has(|f| matches!(f, Frame::Stream(f) if f.id == id))));
    // With an id it goes on.
    let fresh = rig.peer.new_cid(CidForm::Path, 1, 2);
    rig.frames(crate::violations::encoded(&fresh));
    rig.pass(ms(50));
    let answered = |s: &crate::puppet::Seen| s.path == PathId(1) && s.has(|f| matches!(f, Frame::PathResponse(_)));
    assert!(rig.seen[unanswered..].iter().any(answered));
}
