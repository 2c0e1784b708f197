//! What RFC 9000 and 9001 demand of an endpoint whose peer does what it likes.

use std::net::SocketAddr;

use plait_base::{ConnectionId, Dir, FourTuple, PathId, Space};
use plait_crypto::NonceForm;
use plait_engine::config::MigrationPolicy;
use plait_engine::connection::PathError;
use plait_engine::path::PathStatus;
use plait_engine::{Event, PathEvent};
use plait_wire::frame::{AckForm, CidForm, NewCid};
use plait_wire::{Frame, PacketKind, Version};

use crate::puppet::{PUPPET, Packet, Rig, Setup, Tls, addr, ms, resuming_client_tls, tuple};
use crate::violations::{encoded, raw, stream};

const ELSEWHERE: &str = "198.51.100.7:9999";

fn remote(rig: &mut Rig) -> SocketAddr {
    let now = rig.now;
    rig.conn().path_statistics(now, PathId(0)).unwrap().tuple.remote
}

fn streams_seen(rig: &Rig) -> usize {
    rig.events.iter().filter(|e| matches!(e, Event::Stream(_))).count()
}

#[test]
fn packets_with_nonces_of_another_form_do_not_open() {
    // RFC 9001 5.3: the nonce is the one agreed on, or the packet is none of the connection's.
    // So many bits that they are not those of a random IV by chance.
    let uniflows = NonceForm::TopBits { max_id: PathId(u32::MAX) };
    for (form, is_heard) in [(NonceForm::PathAndPacketNumber, true), (uniflows, false)] {
        let mut setup = Setup::default();
        setup.habits.moves_to = Some(Version::V1);
        let mut rig = Rig::server(setup);
        let tls = rig.peer.tls.as_mut().unwrap();
        assert!(tls.move_to(Version::V1.0) && tls.set_nonces(form, NonceForm::default()));
        (0..6).for_each(|_| {
            rig.say_handshake();
            rig.pass(ms(5));
        });
        assert!(rig.peer.one_rtt.is_some() && rig.is_open());
        rig.frames([0x21]);
        assert_eq!(rig.is_open(), !is_heard, "{form:?}");
    }
}

#[test]
fn duplicates_are_discarded() {
    // RFC 9000 12.3-4
    let mut rig = Rig::established_server(Setup::default());
    let mut datagram = Vec::new();
    rig.peer.seal(&Packet::one_rtt(raw(&[0x31, 3], b"abc")), &mut datagram);
    (0..5).for_each(|_| rig.deliver(&datagram));
    assert!(rig.conn().datagrams().recv().is_some() && rig.conn().datagrams().recv().is_none());
}

#[test]
fn coalesced_packets_for_other_ids_are_dropped() {
    // RFC 9000 12.2
    let mut rig = crate::violations::half_way();
    let original = rig.peer.original_dcid;
    let stray = ConnectionId::new(&[9; 8]).unwrap();
    let (mut good, mut bad) = (Packet::new(PacketKind::Initial, [0x01]), Packet::new(PacketKind::Initial, [0x1a; 9]));
    (good.dcid, bad.dcid, good.pad_to) = (Some(original), Some(stray), 600);
    let at = rig.tuple;
    rig.send_all(at, &[good, bad]);
    assert!(rig.is_open());
}

#[test]
fn the_peers_source_id_does_not_change() {
    // RFC 9000 7.2-3, 7.2-6
    let mut rig = crate::violations::half_way();
    let mut packet = Packet::new(PacketKind::Initial, [0x1a; 9]);
    packet.scid = ConnectionId::new(&[7; 8]);
    rig.send(packet);
    assert!(rig.is_open());
}

#[test]
fn small_initials_are_discarded_on_connections_too() {
    // RFC 9000 14-4
    // RFC 9000 14.1-3
    let mut rig = crate::violations::half_way();
    rig.send(Packet::new(PacketKind::Initial, [0x1a; 9]).padded(1199));
    assert!(rig.is_open());
    rig.send(Packet::new(PacketKind::Initial, [0x1a; 9]).padded(1200));
    assert!(!rig.is_open());
}

#[test]
fn a_newest_non_probing_packet_moves_the_path() {
    // RFC 9000 9-4
    // RFC 9000 9.3-1, 9.3-2
    let mut rig = Rig::established_server(Setup::default());
    let old = rig.peer.next_number(Space::Data, 0);
    rig.send(Packet::one_rtt([0x01]).numbered(old + 5));
    // An older packet from elsewhere moves nothing,
    rig.send_all(tuple(ELSEWHERE), &[Packet::one_rtt([0x01]).numbered(old)]);
    assert_eq!(remote(&mut rig), addr(PUPPET));
    // nor does a probing one.
    let challenge = [vec![0x1a], vec![3; 8]].concat();
    rig.send_all(tuple(ELSEWHERE), &[Packet::one_rtt(challenge).padded(1200)]);
    assert_eq!(remote(&mut rig), addr(PUPPET));
    let from = rig.seen.len();
    rig.send_all(tuple(ELSEWHERE), &[Packet::one_rtt([0x01])]);
    rig.pass(ms(1));
    assert_eq!(remote(&mut rig), addr(ELSEWHERE));
    // RFC 9000 9.3.3: both addresses are challenged, for the packet may have been forwarded by an attacker
    let challenged = |at: &str| {
        rig.seen[from..].iter().any(|s| s.tuple.remote == addr(at) && s.has(|f| matches!(f, Frame::PathChallenge(_))))
    };
    assert!(challenged(ELSEWHERE) && challenged(PUPPET));
}

#[test]
fn a_spoofed_move_is_undone() {
    // RFC 9000 9.3.2-1: without an answer from the new address the path goes back
    let mut rig = Rig::established_server(Setup::default());
    rig.send_all(tuple(ELSEWHERE), &[Packet::one_rtt([0x01])]);
    assert_eq!(remote(&mut rig), addr(ELSEWHERE));
    rig.pass(ms(10_000));
    assert_eq!(remote(&mut rig), addr(PUPPET));
    rig.assert_amplification(ELSEWHERE);
    assert!(rig.is_open());
    // The true peer speaks again and is heard.
    rig.frames(stream(0, 0, false, b"here"));
    assert!(streams_seen(&rig) > 0);
}

#[test]
fn an_attacker_that_forwards_packets_loses_to_the_peer() {
    // RFC 9000 9.3.3: the next packet from the old address takes the path back at once
    let mut rig = Rig::established_server(Setup::default());
    for _ in 0..5 {
        rig.send_all(tuple(ELSEWHERE), &[Packet::one_rtt([0x01])]);
        assert_eq!(remote(&mut rig), addr(ELSEWHERE));
        rig.frames([0x01]);
        assert_eq!(remote(&mut rig), addr(PUPPET));
    }
    assert!(rig.is_open());
}

#[test]
fn a_proven_move_stays() {
    let mut rig = Rig::established_server(Setup::default());
    let from = rig.seen.len();
    rig.send_all(tuple(ELSEWHERE), &[Packet::one_rtt([0x01]).padded(1200)]);
    rig.answer_challenges(from, tuple(ELSEWHERE), 0);
    rig.pass(ms(10_000));
    assert_eq!(remote(&mut rig), addr(ELSEWHERE));
    assert!(rig.events.iter().any(|e| matches!(e, Event::Path(PathEvent::Migrated { .. }))));
}

#[test]
fn no_move_where_migration_is_refused_or_the_handshake_runs() {
    // RFC 9000 9-3, 18.2
    let mut rig = Rig::established_server(Setup { migration: MigrationPolicy::Refused, ..Setup::default() });
    rig.send_all(tuple(ELSEWHERE), &[Packet::one_rtt(stream(0, 0, false, b"x"))]);
    assert_eq!((remote(&mut rig), streams_seen(&rig)), (addr(PUPPET), 0));
    let mut rig = crate::violations::half_way();
    rig.send_all(tuple(ELSEWHERE), &[Packet::new(PacketKind::Initial, [0x1a; 9])]);
    assert!(rig.is_open(), "handshake packets from another address are dropped");
    assert!(!rig.ledger.contains_key(&addr(ELSEWHERE)) || rig.ledger[&addr(ELSEWHERE)].from_engine == 0);
}

#[test]
fn a_client_hears_its_server_only() {
    // RFC 9000 9-5: servers do not move
    let mut rig = Rig::established_client(Setup::default());
    rig.send_all(tuple(ELSEWHERE), &[Packet::one_rtt([0x21])]);
    assert!(rig.is_open());
    assert_eq!(rig.ledger[&addr(ELSEWHERE)].from_engine, 0);
}

#[test]
fn key_updates_are_followed_and_answered() {
    // RFC 9001 6.2-1, 6.2-2
    let mut rig = Rig::established_server(Setup::default());
    for phase in 1..6u64 {
        let now = rig.now;
        rig.peer.one_rtt.as_mut().unwrap().advance_to(phase, now, ms(100));
        let from = rig.seen.len();
        rig.frames([0x01]);
        rig.pass(ms(50));
        assert!(rig.seen[from..].iter().any(|s| u64::from(s.first >> 2 & 1) == phase & 1));
        rig.ack_all();
        rig.pass(ms(3_000));
        assert!(rig.is_open() && rig.conn().session().key_phase() == phase);
    }
}

#[test]
fn our_key_update_waits_for_the_peer() {
    // RFC 9001 6.1-2, 6.5
    let mut rig = Rig::established_server(Setup::default());
    let now = rig.now;
    rig.conn().update_keys(now).unwrap();
    rig.pump();
    assert!(rig.conn().update_keys(now).is_err(), "the first is not acknowledged");
    rig.ack_all();
    assert!(rig.conn().update_keys(now).is_err(), "three PTO have to pass");
    rig.pass(ms(5_000));
    let now = rig.now;
    rig.conn().update_keys(now).unwrap();
}

#[test]
fn retire_prior_to_moves_us_to_the_next_id() {
    // RFC 9000 19.16-2
    // RFC 9000 5.1.2-1, 19.15
    let mut rig = Rig::established_server(Setup::default());
    let mut frame = rig.peer.new_cid(CidForm::Path, 0, 2);
    frame.retire_prior_to = 2;
    rig.frames(encoded(&frame));
    rig.frames([0x01]);
    rig.pass(ms(50));
    assert_eq!(rig.seen.last().map(|s| s.dcid), Some(frame.cid));
    let mut retired: Vec<u64> = Vec::new();
    for seen in &rig.seen {
        retired.extend(
            seen.frames().iter().filter_map(|f| if let Frame::RetireCid(r) = f { Some(r.sequence) } else { None }),
        );
    }
    retired.dedup();
    assert_eq!(retired[..2], [0, 1]);
}

#[test]
fn ids_that_were_never_sent_cannot_be_retired() {
    // RFC 9000 19.16-1: greater than any sequence number sent; guessing numbers makes us issue no ids without end
    let mut rig = Rig::established_server(Setup::default());
    let events = rig.endpoint_events.len();
    let flood: Vec<u8> = (1..150).flat_map(|sequence| raw(&[0x19, sequence], &[])).collect();
    rig.frames(flood);
    assert!(!rig.is_open());
    assert!(rig.endpoint_events.len() - events < 32, "{}", rig.endpoint_events.len() - events);
}

#[test]
fn a_retry_is_followed_once_and_only_if_genuine() {
    // RFC 9000 7.2-4, 8.1.2, 8.1.3-6, 17.2.5.1-3, 17.2.5.2-1, 17.2.5.2-2, 17.2.5.2-3, 17.2.5.2-4
    // RFC 9000 17.2.5
    let mut rig = Rig::client(Setup::default());
    let original = rig.peer.original_dcid;
    let retry = |scid: u8, token: &[u8], forged: bool| {
        let mut packet = vec![0xf0, 0, 0, 0, 1, 8];
        packet.extend_from_slice(&rig.wire[0].2[15..23]);
        packet.push(8);
        packet.extend_from_slice(&[scid; 8]);
        packet.extend_from_slice(token);
        let mut tag = plait_crypto::retry::tag(1, &original, &packet).unwrap();
        tag[0] ^= u8::from(forged);
        packet.extend_from_slice(&tag);
        packet
    };
    let (forged, empty) = (retry(5, b"token", true), retry(5, b"", false));
    let (good, second) = (retry(6, b"token", false), retry(7, b"other", false));
    rig.deaf = true;
    let wire = rig.wire.len();
    rig.deliver(&forged);
    rig.deliver(&empty);
    assert_eq!(rig.wire.len(), wire);
    rig.deliver(&good);
    assert_eq!(rig.wire[wire].2[6..14], [6; 8]);
    assert!(rig.wire[wire].2.windows(5).any(|w| w == b"token"));
    let wire = rig.wire.len();
    rig.deliver(&second);
    assert_eq!(rig.wire.len(), wire);
    assert!(rig.is_open());
}

#[test]
fn our_retry_validates_the_address() {
    // RFC 9000 17.2.5.1-1
    // RFC 9000 8.1.2
    let mut rig = Rig::server(Setup::default());
    rig.accepts = false;
    rig.say_handshake();
    assert!(rig.conn.is_none());
    let retry = rig.replies.pop().unwrap();
    let dcid_len = retry[5] as usize;
    let scid_at = 7 + dcid_len;
    let scid = ConnectionId::new(&retry[scid_at..scid_at + retry[scid_at - 1] as usize]).unwrap();
    let token = retry[scid_at + scid.len()..retry.len() - 16].to_vec();
    rig.peer.after_retry(scid, token);
    rig.accepts = true;
    let hello = rig.peer.crypto_frames(Space::Initial, 0, 1000).concat();
    rig.send(Packet::new(PacketKind::Initial, hello));
    assert!(rig.peer.handshake.is_some());
    // Nothing holds a validated server back.
    rig.pass(ms(30_000));
    let ledger = rig.ledger[&addr(PUPPET)];
    assert!(ledger.from_engine > 3 * 1200, "{ledger:?}");
}

pub fn resumed(change: fn(&mut Setup)) -> Rig {
    let engine = crate::puppet::server_tls();
    let client = resuming_client_tls();
    let setup = || {
        let peer_tls = Some(Tls::Client(client.clone()));
        Setup { peer_tls, engine_tls: Some(Tls::Server(engine.clone())), ..Setup::default() }
    };
    let mut first = Rig::established_server(setup());
    first.pass(ms(100));
    first.ack_all();
    let mut second = setup();
    change(&mut second);
    let rig = Rig::server(second);
    assert!(rig.peer.early.is_some(), "no session was remembered");
    rig
}

#[test]
fn early_data_is_read_also_when_coalesced() {
    // RFC 9000 12.2-1, 12.2-3, RFC 9001 4.6
    let mut rig = resumed(|_| {});
    let hello = rig.peer.crypto_frames(Space::Initial, 0, 1000).concat();
    let early = Packet::new(PacketKind::ZeroRtt, stream(0, 0, false, b"early")).padded(400);
    let at = rig.tuple;
    rig.send_all(at, &[Packet::new(PacketKind::Initial, hello).padded(800), early]);
    assert!(streams_seen(&rig) > 0);
}

#[test]
fn replayed_early_data_is_a_duplicate() {
    // RFC 9000 12.3-5
    // RFC 9001 9.2 speaks of whole connections; within one, packet numbers hold
    let mut rig = resumed(|_| {});
    rig.say_handshake();
    let mut rig = resumed(|_| {});
    let hello = rig.peer.crypto_frames(Space::Initial, 0, 1000).concat();
    rig.send(Packet::new(PacketKind::Initial, hello));
    let mut datagram = Vec::new();
    rig.peer.seal(&Packet::new(PacketKind::ZeroRtt, raw(&[0x31, 3], b"abc")), &mut datagram);
    (0..3).for_each(|_| rig.deliver(&datagram));
    assert!(rig.conn().datagrams().recv().is_some() && rig.conn().datagrams().recv().is_none());
}

#[test]
fn frames_that_have_no_place_in_early_data() {
    // RFC 9001 8.3-2, 9.2-5
    // RFC 9000 12.5-2, RFC 10069 4-2
    let forbidden = [vec![0x02, 0, 0, 0, 0], vec![0x06, 0, 1, 0], vec![0x1e], vec![0x19, 0], raw(&[0x3e75, 0, 0], &[])];
    for frame in forbidden {
        let mut rig = resumed(|_| {});
        let hello = rig.peer.crypto_frames(Space::Initial, 0, 1000).concat();
        rig.send(Packet::new(PacketKind::Initial, hello));
        rig.send(Packet::new(PacketKind::ZeroRtt, frame.clone()));
        assert!(!rig.is_open(), "{frame:?}");
    }
}

/// A client with a session of which its server knows nothing any more, so that 0-RTT is rejected.
pub(crate) fn forgotten_session() -> Setup {
    let client = resuming_client_tls();
    let setup = |tls: plait_crypto::ServerTlsConfig| Setup {
        engine_tls: Some(Tls::Client(client.clone())),
        peer_tls: Some(Tls::Server(tls)),
        ..Setup::default()
    };
    let mut first = Rig::established_client(setup(crate::puppet::server_tls()));
    crate::violations::tickets(&mut first);
    let forgetful = plait_crypto::ServerTlsConfig::builder(crate::puppet::identity()).alpn(["plait"]).build().unwrap();
    setup(forgetful)
}

#[test]
fn rejected_early_data_is_sent_again() {
    // RFC 9001 4.6.2-2
    let mut rig = Rig::client(forgotten_session());
    assert!(rig.conn().session().has_0rtt());
    let id = rig.conn().streams().open(Dir::Uni).unwrap();
    rig.conn().send_stream(id).write(b"early").unwrap();
    rig.pump();
    rig.shake_hands();
    assert_eq!(rig.conn().session().accepted_0rtt(), Some(false));
}

#[test]
fn a_preferred_address_is_validated_before_it_is_used() {
    // RFC 9000 9.6.2-1, 9.6.3-1, 21.5.3
    // RFC 9000 9.6; with multipath too, where the policy leaves paths to the application
    for setup in [Setup::single_path(), Setup::default()] {
        goes_to_the_preferred_address(setup);
    }
}

fn goes_to_the_preferred_address(mut setup: Setup) {
    let cid = ConnectionId::new(&[0x77; 8]).unwrap();
    setup.habits.params.preferred_address = Some(plait_wire::params::PreferredAddress {
        v4: Some("198.51.100.9:443".parse().unwrap()),
        v6: None,
        cid,
        token: plait_base::ResetToken([5; 16]),
    });
    let mut rig = Rig::client(setup);
    rig.peer.ours.insert(cid, PathId(0));
    for _ in 0..8 {
        if !rig.say_handshake() && rig.peer.is_done() {
            break;
        }
        rig.pass(ms(5));
    }
    rig.frames([0x1e]);
    rig.pass(ms(20));
    let there: Vec<_> = rig.seen.iter().filter(|s| s.tuple.remote == addr("198.51.100.9:443")).collect();
    assert!(!there.is_empty() && there.iter().all(|s| s.dcid == cid && s.datagram >= 1200));
    assert!(there.iter().all(|s| s.frames().iter().all(|f| matches!(f, Frame::PathChallenge(_) | Frame::Padding(_)))));
    assert_eq!(remote(&mut rig), addr(PUPPET));
    rig.answer_challenges(0, tuple("198.51.100.9:443"), 0);
    assert_eq!(remote(&mut rig), addr("198.51.100.9:443"));
}

#[test]
fn spin_bit_follows_the_peer() {
    // RFC 9000 17.4-3, 17.4-4: servers reflect, on paths where it is not disabled at random
    let mut reflecting = 0;
    for seed in 0..40 {
        let mut rig = Rig::established_server(Setup { seed, ..Setup::default() });
        let mut follows = true;
        for spin in [1u8, 0, 1, 0, 1, 1, 0, 0] {
            let mut packet = Packet::one_rtt([0x01]);
            packet.first_bits = spin << 5;
            let from = rig.seen.len();
            rig.send(packet);
            rig.pass(ms(30));
            follows &=
                rig.seen[from..].iter().filter(|s| s.kind == PacketKind::OneRtt).all(|s| s.first >> 5 & 1 == spin);
        }
        reflecting += usize::from(follows);
    }
    assert!((30..40).contains(&reflecting), "at least one in sixteen disabled: {reflecting} of 40 spin");
}

#[test]
fn a_client_whose_handshake_packet_was_acked_probes_no_more() {
    // RFC 9002 6.2.2.1: the ack shows that the server validated our address; its HANDSHAKE_DONE may take its time
    let mut rig = Rig::client(Setup::default());
    while rig.say_handshake() || !rig.peer.is_done() {
        rig.pass(ms(5));
    }
    let ack = rig.peer.ack(Space::Handshake, 0, AckForm::Plain).unwrap();
    rig.send(Packet::new(PacketKind::Handshake, ack));
    let from = rig.seen.len();
    rig.pass(ms(5_000));
    assert!(rig.is_open());
    assert_eq!(rig.seen[from..].iter().filter(|s| s.kind == PacketKind::Handshake).count(), 0);
}

#[test]
fn a_client_moves_no_path_where_or_when_it_must_not() {
    // RFC 9000 18.2-2
    // RFC 9000 9-1, 9-2: not before the handshake is confirmed; 18.2: not where the server disabled it
    let other = plait_base::FourTuple { local: addr("10.0.0.2:1"), ..tuple(PUPPET) };
    let mut rig = Rig::client(Setup::single_path());
    while rig.say_handshake() || !rig.peer.is_done() {
        rig.pass(ms(5));
    }
    rig.give_cids();
    let now = rig.now;
    assert_eq!(rig.conn().migrate_path(now, PathId(0), other), Err(PathError::Unconfirmed));
    rig.frames([0x1e]);
    assert_eq!(rig.conn().migrate_path(now, PathId(0), other), Ok(()));
    let mut setup = Setup::single_path();
    setup.habits.params.active_migration = plait_wire::params::ActiveMigration::Disabled;
    let mut rig = Rig::established_client(setup);
    let now = rig.now;
    assert_eq!(rig.conn().migrate_path(now, PathId(0), other), Err(PathError::MigrationDisabled));
}

#[test]
fn a_server_that_refuses_migration_is_reached_at_its_preferred_address() {
    // RFC 9000 18.2: disable_active_migration does not speak of the preferred address
    let mut setup = Setup::single_path();
    setup.migration = MigrationPolicy::Refused;
    setup.server_change = |server| {
        server.preferred_address_v4(Some("10.0.0.99:443".parse().unwrap()));
    };
    let mut rig = Rig::established_server(setup);
    rig.send_all(tuple(ELSEWHERE), &[Packet::one_rtt([0x01])]);
    assert_eq!(remote(&mut rig), addr(PUPPET), "refused");
    let there = plait_base::FourTuple { local: addr("10.0.0.99:443"), remote: addr(PUPPET) };
    let from = rig.wire.len();
    rig.send_all(there, &[Packet::one_rtt([0x01])]);
    assert!(rig.wire[from..].iter().any(|(tuple, _, _)| *tuple == there));
    let now = rig.now;
    assert_eq!(rig.conn().path_statistics(now, PathId(0)).unwrap().tuple, there);
}

#[test]
fn a_client_that_moves_to_another_id_is_answered_at_another_id() {
    // RFC 9000 9.5-2: so that observers cannot link the two addresses
    for probes_first in [false, true] {
        let mut rig = Rig::established_server(Setup::single_path());
        rig.frames([0x01]);
        let before = rig.seen.last().unwrap().dcid;
        let spare = rig.peer.issued.iter().find(|((_, sequence), _)| *sequence > 0).map(|(_, (cid, _))| *cid).unwrap();
        let mut packets = vec![Packet::one_rtt([0x01]).to(spare)];
        if probes_first {
            packets.insert(0, Packet::one_rtt(*b"\x1a01234567").to(spare).padded(1200));
        }
        for packet in packets {
            rig.send_all(tuple(ELSEWHERE), &[packet]);
            rig.pass(ms(50));
        }
        assert_eq!(remote(&mut rig), addr(ELSEWHERE));
        let there: Vec<_> = rig.seen.iter().filter(|s| s.tuple.remote == addr(ELSEWHERE)).map(|s| s.dcid).collect();
        assert!(!there.is_empty() && there.iter().all(|cid| *cid != before), "{probes_first}");
        // Whoever keeps its id was moved by a NAT, and keeps ours.
        let mut rig = Rig::established_server(Setup::single_path());
        rig.send_all(tuple(ELSEWHERE), &[Packet::one_rtt([0x01])]);
        let mut there = rig.seen.iter().filter(|s| s.tuple.remote == addr(ELSEWHERE)).map(|s| s.dcid);
        assert!(there.next() == Some(before) && there.all(|cid| cid == before));
    }
}

/// Ids of the puppet by which packets left from an address of ours.
fn ids_from(rig: &Rig, own: &str) -> Vec<ConnectionId> {
    let mut ids: Vec<ConnectionId> = Vec::new();
    for seen in rig.seen.iter().filter(|seen| seen.tuple.local == addr(own)) {
        if !ids.contains(&seen.dcid) {
            ids.push(seen.dcid);
        }
    }
    ids
}

/// This client has these addresses from now on; some time passes.
fn has_addresses(rig: &mut Rig, own: &[&str]) {
    let (now, own): (_, Vec<SocketAddr>) = (rig.now, own.iter().map(|own| addr(own)).collect());
    rig.conn().set_local_addresses(now, &own);
    rig.pump();
    rig.pass(ms(50));
}

const OWN: [&str; 4] = ["10.0.0.2:1", "10.0.0.3:1", "10.0.0.4:1", "10.0.0.5:1"];

#[test]
fn a_client_sends_from_no_address_by_the_id_of_another() {
    // RFC 9000 9.5-1
    for setup in [Setup::single_path(), Setup::default()] {
        let mut rig = Rig::established_client(setup);
        rig.pass(ms(200));
        rig.ack_all();
        // The server gave one spare, and gives no other for the one that it gets back.
        (0..3).for_each(|at| has_addresses(&mut rig, &OWN[at..=at]));
        let before = ids_from(&rig, crate::puppet::ENGINE);
        let moved = ids_from(&rig, OWN[0]);
        assert!(moved.len() == 1 && !before.contains(&moved[0]));
        rig.pass(ms(5_000));
        assert!(ids_from(&rig, OWN[1]).is_empty() && ids_from(&rig, OWN[2]).is_empty());
        // It comes late: the path leaves by the address that there is by now.
        rig.tuple.local = addr(OWN[0]);
        let form = if rig.conn().is_multipath() { CidForm::Path } else { CidForm::Plain };
        let cid = rig.peer.new_cid(form, 0, 2);
        rig.frames(encoded(&cid));
        rig.tuple.local = addr(OWN[2]);
        rig.pass(ms(50));
        assert_eq!((ids_from(&rig, OWN[1]), ids_from(&rig, OWN[2])), (vec![], vec![cid.cid]));
        let there = rig.tuple;
        rig.answer_challenges(0, there, 0);
        rig.ack_all();
        rig.assert_answers("a move that had to wait");
        assert_eq!(ids_from(&rig, OWN[2]), [cid.cid]);
    }
}

#[test]
fn a_client_without_an_id_for_it_leaves_the_system_no_choice_of_address() {
    // RFC 9000 9.5-1
    let (any, chosen) = ("0.0.0.0:9", "10.0.0.9:9");
    let mut rig = Rig::established_client(Setup::single_path());
    rig.ack_all();
    has_addresses(&mut rig, &[any]);
    rig.tuple.local = addr(chosen);
    rig.ack_all();
    rig.assert_answers("a move");
    let (ids, from) = (ids_from(&rig, any), rig.wire.len());
    assert!(ids.len() == 1 && ids_from(&rig, chosen).is_empty(), "the one spare: {ids:?}");
    let now = rig.now;
    rig.conn().handle_network_change(now);
    rig.assert_answers("a change of the network");
    assert!(rig.wire[from..].iter().all(|(tuple, ..)| tuple.local == addr(chosen)));
    assert_eq!(ids_from(&rig, chosen), ids);
    let cid = rig.peer.new_cid(CidForm::Plain, 0, 2);
    let from = rig.seen.len();
    rig.frames(encoded(&cid));
    rig.assert_answers("a new id");
    let left = rig.seen[from..].iter().map(|seen| (seen.tuple.local, seen.dcid));
    assert!(left.len() > 0 && left.into_iter().all(|left| left == (addr(any), cid.cid)));
}

#[test]
fn a_proven_move_waits_where_the_server_took_its_id_back() {
    // RFC 9000 9.5-1, 5.1.2-1
    let mut rig = Rig::established_client(Setup::single_path());
    rig.ack_all();
    let (now, home) = (rig.now, rig.tuple);
    let there = FourTuple { local: addr(OWN[0]), ..home };
    rig.conn().migrate_path(now, PathId(0), there).unwrap();
    rig.pump();
    let asked = ids_from(&rig, OWN[0]);
    assert_eq!(asked.len(), 1);
    let give = |rig: &mut Rig, sequence| {
        let cid = rig.peer.new_cid(CidForm::Plain, 0, sequence);
        rig.frames(encoded(&NewCid { retire_prior_to: 2, ..cid }));
        cid.cid
    };
    give(&mut rig, 2);
    rig.answer_challenges(0, there, 0);
    rig.pass(ms(50));
    let now = rig.now;
    assert_eq!(rig.conn().path_statistics(now, PathId(0)).unwrap().tuple, home);
    assert_eq!(ids_from(&rig, OWN[0]), asked);
    let second = give(&mut rig, 3);
    rig.pass(ms(50));
    assert_eq!(rig.conn().path_statistics(now, PathId(0)).unwrap().tuple, there);
    rig.tuple = there;
    rig.assert_answers("a move that had to wait");
    assert_eq!(ids_from(&rig, OWN[0]), [asked[0], second]);
}

#[test]
fn a_client_of_a_server_without_ids_moves_as_it_likes() {
    // RFC 9000 5.1.1: packets to such a server bear no id, whichever way they go
    let mut setup = Setup::single_path();
    setup.habits.scid_len = Some(0);
    let mut rig = Rig::client(setup);
    for _ in 0..6 {
        rig.say_handshake();
        rig.pass(ms(5));
    }
    rig.frames([0x1e]);
    rig.ack_all();
    for own in OWN {
        has_addresses(&mut rig, &[own]);
        assert_eq!(ids_from(&rig, own), [ConnectionId::EMPTY]);
        rig.tuple.local = addr(own);
        rig.assert_answers("a move");
    }
}

#[test]
fn a_path_without_an_id_for_another_address_asks_by_the_path_that_works() {
    // RFC 10069 4.7
    // RFC 9000 9.5-1
    let mut rig = Rig::established_client(Setup::default());
    has_addresses(&mut rig, &[crate::puppet::ENGINE, OWN[0]]);
    let (now, second) = (rig.now, FourTuple { local: addr(OWN[0]), ..rig.tuple });
    rig.conn().open_path(now, second, PathStatus::Available).unwrap();
    rig.pass(ms(10));
    rig.answer_challenges(0, second, 1);
    rig.pass(ms(50));
    rig.tuple = second;
    rig.ack_all();
    has_addresses(&mut rig, &[OWN[0], OWN[1]]);
    assert_eq!(ids_from(&rig, OWN[1]).len(), 1, "path 0 moved with the one spare that it has");
    let asks = |f: &Frame<'_>| matches!(f, Frame::PathCidsBlocked(f) if f.path == PathId(0) && f.next_sequence == 2);
    assert_eq!(rig.count(asks), 0);
    has_addresses(&mut rig, &[OWN[0], OWN[2]]);
    let asked = rig.seen.iter().filter(|seen| seen.has(asks)).map(|seen| seen.tuple.local).collect::<Vec<_>>();
    assert!(asked.contains(&addr(OWN[0])), "{asked:?}");
    assert!(ids_from(&rig, OWN[2]).is_empty());
    // Data has its way meanwhile.
    let id = rig.conn().streams().open(Dir::Uni).unwrap();
    rig.conn().send_stream(id).write(&[7; 5_000]).unwrap();
    let from = rig.seen.len();
    rig.pump();
    let data = |seen: &&crate::puppet::Seen| seen.has(|f| matches!(f, Frame::Stream(_)));
    assert!(rig.seen[from..].iter().filter(data).count() > 3);
    assert!(rig.seen[from..].iter().filter(data).all(|seen| seen.tuple == second));
    let cid = rig.peer.new_cid(CidForm::Path, 0, 2);
    rig.send_all(second, &[Packet::one_rtt(encoded(&cid)).on(1)]);
    rig.pass(ms(50));
    assert_eq!(ids_from(&rig, OWN[2]), [cid.cid]);
    assert_eq!(rig.conn().paths().ids(), [PathId(0), PathId(1)]);
}

#[test]
fn a_server_answers_from_another_address_by_another_id() {
    // RFC 9000 9.5-1: as at its preferred address
    let mut rig = Rig::established_server(Setup::single_path());
    let at = |own: &str| FourTuple { local: addr(own), remote: addr(PUPPET) };
    for own in &OWN[..2] {
        // A client that changes its own id each time or not: our address is another.
        rig.send_all(at(own), &[Packet::one_rtt(*b"\x1a01234567").padded(1200)]);
        rig.send_all(at(own), &[Packet::one_rtt([0x01])]);
        rig.pass(ms(50));
    }
    let before = ids_from(&rig, crate::puppet::ENGINE);
    let moved = ids_from(&rig, OWN[0]);
    assert!(moved.len() == 1 && !before.contains(&moved[0]), "the one spare: {moved:?} {before:?}");
    assert!(ids_from(&rig, OWN[1]).is_empty());
    let cid = rig.peer.new_cid(CidForm::Plain, 0, 2);
    let from = rig.seen.len();
    rig.send_all(at(OWN[1]), &[Packet::one_rtt(encoded(&cid))]);
    let answers = rig.seen[from..].iter().filter(|seen| seen.has(|f| matches!(f, Frame::PathResponse(_))));
    assert_eq!(answers.map(|seen| seen.tuple).collect::<Vec<_>>(), [at(OWN[1])]);
    rig.send_all(at(OWN[1]), &[Packet::one_rtt([0x01])]);
    rig.pass(ms(50));
    assert_eq!(ids_from(&rig, OWN[1]), [cid.cid]);
    let now = rig.now;
    assert_eq!(rig.conn().path_statistics(now, PathId(0)).unwrap().tuple, at(OWN[1]));
}
