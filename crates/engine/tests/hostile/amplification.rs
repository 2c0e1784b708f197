//! The 3x rule, byte by byte, whatever is lost and however long it lasts (RFC 9000 8.1, 8.2, 9.3).

use plait_base::limits::MAX_EARLY_CHALLENGES;
use plait_base::observe::PathState;
use plait_base::{Dir, Random, Space};
use plait_crypto::ServerTlsConfig;
use plait_crypto::tls::Identity;
use plait_engine::base::PathId;
use plait_wire::frame::AckForm;
use plait_wire::{Frame, PacketKind};

use crate::puppet::{Packet, Rig, Setup, Tls, identity_pem, ms, tuple};

/// A server whose certificates alone fill many datagrams.
fn long_chain() -> Tls {
    let (chain, key) = identity_pem();
    let identity = Identity::from_pem(chain.repeat(24).as_bytes(), key.as_bytes()).unwrap();
    Tls::Server(ServerTlsConfig::builder(identity).alpn(["plait"]).build().unwrap())
}

#[test]
fn handshake_never_exceeds_three_times_under_loss_and_timeouts() {
    // RFC 9000 14.1-4
    // RFC 9000 8.1-1
    for seed in 0..60 {
        let mut random = Random::from_u64(seed);
        let mut rig = Rig::server(Setup { seed, engine_tls: Some(long_chain()), ..Setup::default() });
        rig.deaf = true;
        rig.say_handshake();
        let remote = rig.tuple.remote.to_string();
        rig.assert_amplification(&remote);
        for _ in 0..60 {
            match random.below(6) {
                // The client's own probes: more credit, and something to answer.
                0 => rig.send(Packet::new(PacketKind::Initial, [0x01])),
                1 => rig.send(Packet::new(PacketKind::Initial, [0x00]).padded(1200 + random.below(200) as usize)),
                // Noise from the client's address counts as received, no more.
                2 => {
                    let mut noise = vec![0x43; 20 + random.below(300) as usize];
                    noise[1..9].copy_from_slice(&rig.peer.dcid[..8]);
                    rig.deliver(&noise);
                }
                3 => rig.pass(ms(random.below(50))),
                4 => rig.pass(ms(random.below(3_000))),
                _ => {
                    // An ack of some of the server's packets.
                    rig.send(Packet::new(PacketKind::Initial, [0x02, 0, 0, 0, 0]));
                }
            }
            rig.assert_amplification(&remote);
            if !rig.is_open() {
                break;
            }
        }
    }
}

#[test]
fn handshake_goes_on_when_the_limit_is_lifted() {
    // RFC 9000 8.1-5
    // RFC 9002 6.2.2.1: what was lost at the limit is probed again once the client sends more
    let mut rig = Rig::server(Setup { engine_tls: Some(long_chain()), ..Setup::default() });
    rig.deaf = true;
    rig.say_handshake();
    rig.pass(ms(5_000));
    rig.deaf = false;
    for round in 0..20 {
        rig.say_handshake();
        if rig.peer.is_done() && !rig.conn().is_handshaking() {
            return;
        }
        let acks = rig.peer.ack(Space::Initial, 0, AckForm::Plain).unwrap_or_default();
        rig.send(Packet::new(PacketKind::Initial, [vec![0x01], acks].concat()));
        if round > 5 {
            let acks = rig.peer.ack(Space::Handshake, 0, AckForm::Plain).expect("probes while unproven");
            rig.send(Packet::new(PacketKind::Handshake, acks));
        }
        rig.pass(ms(200));
    }
    panic!("the handshake never finished: {:?}", rig.ledger);
}

#[test]
fn a_servers_bare_ack_spends_no_credit_on_padding() {
    // RFC 9000 14.1-2: only datagrams with ack-eliciting Initials are expanded by servers
    let mut rig = Rig::server(Setup { engine_tls: Some(long_chain()), ..Setup::default() });
    rig.deaf = true;
    rig.say_handshake();
    rig.pass(ms(5_000));
    let wire = rig.wire.len();
    rig.send(Packet::new(PacketKind::Initial, [0x01]));
    let acks: Vec<usize> = rig.wire[wire..].iter().map(|(_, _, d)| d.len()).collect();
    assert!(acks.iter().any(|bytes| *bytes < 200) || acks.len() > 1, "{acks:?}");
}

fn busy_server(seed: u64) -> Rig {
    let mut rig = Rig::established_server(Setup { seed, ..Setup::default() });
    let id = rig.conn().streams().open(Dir::Uni).unwrap();
    rig.conn().send_stream(id).write(&vec![7; 200_000]).unwrap();
    rig.pump();
    rig
}

#[test]
fn new_paths_never_exceed_three_times() {
    // RFC 9000 8
    // RFC 9000 8.1, RFC 10069 3.1: each unvalidated path by itself
    for seed in 0..40 {
        let mut random = Random::from_u64(seed);
        let mut rig = busy_server(seed);
        let remotes: Vec<String> = (1..6).map(|n| format!("192.0.2.{n}:5000")).collect();
        for step in 0..60 {
            let n = random.below(5) as usize;
            let remote = &remotes[n];
            let path = n as u32 + 1;
            match random.below(5) {
                0 | 1 => {
                    let mut payload = vec![0x1a];
                    payload.extend_from_slice(&[step as u8; 8]);
                    let size = random.below(1300) as usize;
                    rig.send_all(tuple(remote), &[Packet::one_rtt(payload).on(path).padded(size)]);
                }
                2 => rig.send_all(tuple(remote), &[Packet::one_rtt([0x01]).on(path)]),
                3 => rig.pass(ms(random.below(400))),
                _ => rig.ack_all(),
            }
            remotes.iter().for_each(|r| rig.assert_amplification(r));
        }
    }
}

#[test]
fn migration_never_exceeds_three_times() {
    // RFC 9000 8.2.2-6, 9.6.3-2
    // RFC 9000 9.3-3: an attacker that moves a busy connection to a victim's address
    for seed in 0..40 {
        let mut random = Random::from_u64(seed);
        let mut rig = busy_server(seed);
        let victims = ["203.0.113.9:53", "203.0.113.10:53"];
        for _ in 0..60 {
            let victim = victims[random.below(2) as usize];
            match random.below(6) {
                0 | 1 => rig.send_all(tuple(victim), &[Packet::one_rtt([0x01]).padded(random.below(1300) as usize)]),
                2 => {
                    let payload = [vec![0x1a], vec![random.below(256) as u8; 8]].concat();
                    rig.send_all(tuple(victim), &[Packet::one_rtt(payload)]);
                }
                3 => rig.pass(ms(random.below(400))),
                4 => rig.frames([0x01]),
                _ => rig.ack_all(),
            }
            victims.iter().for_each(|r| rig.assert_amplification(r));
            if !rig.is_open() {
                break;
            }
        }
    }
}

#[test]
fn close_towards_an_unproven_address_keeps_the_limit() {
    // RFC 9000 10.2.1-1, 10.2.1-2, 8.1
    let mut rig = Rig::server(Setup { engine_tls: Some(long_chain()), ..Setup::default() });
    rig.deaf = true;
    rig.say_handshake();
    let remote = rig.tuple.remote.to_string();
    let now = rig.now;
    rig.conn().close(now, 7, "bye".into());
    rig.pump();
    for _ in 0..200 {
        let mut noise = vec![0x43; 30];
        noise[1..9].copy_from_slice(&rig.peer.dcid[..8]);
        rig.deliver(&noise);
        rig.assert_amplification(&remote);
    }
}

#[test]
fn pitfall_20_credit_is_not_shared_between_paths() {
    // RFC 10069 3.1: anti-amplification holds for each unvalidated path
    let mut rig = busy_server(1);
    rig.open_path(1, "192.0.2.2:5000", false);
    rig.open_path(2, "192.0.2.3:5000", false);
    rig.pass(ms(2_000));
    rig.assert_amplification("192.0.2.2:5000");
    rig.assert_amplification("192.0.2.3:5000");
}

#[test]
fn pitfall_22_no_application_data_on_an_unvalidated_path() {
    // RFC 10069 3.1-4: the server validates the client's address before it sends data there
    let mut rig = busy_server(1);
    rig.open_path(1, "192.0.2.2:5000", false);
    rig.pass(ms(1_000));
    rig.ack_all();
    rig.pass(ms(1_000));
    let data = rig.seen.iter().any(|s| s.path == PathId(1) && s.has(|f| matches!(f, Frame::Stream(_))));
    assert!(!data);
}

#[test]
fn pitfall_22_probes_bring_no_application_data_there_either() {
    // RFC 10069 3.1: a client that sends on a new path, and acknowledges nothing there, gets probes, but no data.
    let mut rig = busy_server(1);
    rig.open_path(1, "192.0.2.2:5000", false);
    for _ in 0..28 {
        rig.send_all(tuple("192.0.2.2:5000"), &[Packet::one_rtt([0x01]).on(1).padded(1_200)]);
        rig.pass(ms(100));
    }
    let there: Vec<_> = rig.seen.iter().filter(|s| s.path == PathId(1)).collect();
    assert!(there.iter().any(|s| s.has(|f| matches!(f, Frame::Ping))), "probe time-outs passed");
    assert!(!there.iter().any(|s| s.has(|f| matches!(f, Frame::Stream(_)))));
}

#[test]
fn acked_challenges_without_an_answer_are_repeated_early_and_seldom() {
    // RFC 9000 8.2.1
    let mut rig = busy_server(1);
    rig.open_path(1, "192.0.2.2:5000", false);
    rig.pass(ms(20));
    let asked = |rig: &Rig| {
        let there = rig.seen.iter().filter(|s| s.path == PathId(1));
        there.filter(|s| s.has(|f| matches!(f, Frame::PathChallenge(_)))).count()
    };
    assert_eq!(asked(&rig), 1);
    let from = tuple("192.0.2.2:5000");
    rig.send_all(from, &[Packet::one_rtt([0x01]).on(1).padded(1_200)]);
    rig.ack_all();
    rig.pass(ms(50));
    assert_eq!(asked(&rig), 2, "the answer was lost, or it would have come with the ack");
    for _ in 0..10 {
        rig.send_all(from, &[Packet::one_rtt([0x01]).on(1).padded(1_200)]);
        rig.ack_all();
        rig.pass(ms(50));
    }
    assert_eq!(asked(&rig), 1 + MAX_EARLY_CHALLENGES as usize, "a peer that only acks waits for the clock");
    rig.assert_amplification("192.0.2.2:5000");
}

/// Challenges that left on path 1 since the packet of this index.
fn asked_since(rig: &Rig, from: usize) -> usize {
    let there = rig.seen[from..].iter().filter(|s| s.path == PathId(1));
    there.filter(|s| s.has(|f| matches!(f, Frame::PathChallenge(_)))).count()
}

fn state(rig: &mut Rig, path: u32) -> Option<PathState> {
    let now = rig.now;
    rig.conn().path_statistics(now, PathId(path)).map(|path| path.state)
}

#[test]
fn a_path_that_was_dead_when_it_was_challenged_is_asked_again_when_it_is_heard() {
    let mut rig = busy_server(1);
    let there = "192.0.2.2:5000";
    rig.open_path(1, there, false);
    rig.pass(ms(1_900));
    let from = rig.seen.len();
    rig.send_all(tuple(there), &[Packet::one_rtt([0x01]).on(1).padded(1_200)]);
    rig.pass(ms(1));
    assert_eq!(asked_since(&rig, from), 1, "it works again");
    rig.assert_amplification(there);
    rig.answer_challenges(from, tuple(there), 1);
    assert_eq!(state(&mut rig, 1), Some(PathState::Active));
}

#[test]
fn a_path_that_does_not_answer_is_given_up_only_where_another_works() {
    let there = "192.0.2.2:5000";
    for works in [true, false] {
        let mut rig = busy_server(1);
        rig.open_path(1, there, false);
        let from = rig.seen.len();
        for _ in 0..100 {
            if works {
                rig.ack_all();
            }
            rig.pass(ms(100));
        }
        let is_there = matches!(state(&mut rig, 1), Some(PathState::Validating));
        assert_eq!(is_there, !works);
        rig.assert_amplification(there);
        if !works {
            assert!((2..=12).contains(&asked_since(&rig, from)), "{}", asked_since(&rig, from));
            rig.send_all(tuple(there), &[Packet::one_rtt([0x01]).on(1).padded(1_200)]);
            let before = rig.seen.len();
            rig.pass(ms(3_100));
            rig.answer_challenges(before, tuple(there), 1);
            assert_eq!(state(&mut rig, 1), Some(PathState::Active));
        }
    }
}
