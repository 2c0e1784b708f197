//! What hosts tell each other of their addresses: which of ours leave the house, and which of theirs are asked.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use plait_base::{CloseCode, ConnectionId, Dir, PathId, ResetToken};
use plait_engine::path::{AddressScope, policy};
use plait_wire::Frame;
use plait_wire::frame::{AddAddress, AddressForm, CidForm, InterfaceType, PathStatus};
use plait_wire::params::PreferredAddress;

use crate::multiflow::{add_address, remove_address, seen_at, two_flows, uniflows};
use crate::puppet::{ENGINE, Rig, Seen, Setup, addr, ms};
use crate::violations::{encoded, raw};

/// Addresses that the engine told of, each once.
fn told(rig: &Rig) -> BTreeSet<SocketAddr> {
    let frames = rig.seen.iter().flat_map(|seen| seen.frames());
    let added =
        frames.filter_map(|f| if let Frame::AddAddress(f) = f { Some(SocketAddr::new(f.ip, f.port?)) } else { None });
    added.collect()
}

/// An end with addresses inside its own network, and one that all the world can reach.
fn with_addresses_inside(setup: Setup) -> Rig {
    let mut rig = Rig::established_client(setup);
    let (now, inside) =
        (rig.now, ["10.1.2.3:443", "192.168.1.1:443", "169.254.1.1:443", "[fd00::1]:443", "[fe80::1]:1"]);
    let own: Vec<SocketAddr> = [ENGINE].into_iter().chain(inside).chain(["198.51.100.9:443"]).map(addr).collect();
    rig.conn().set_local_addresses(now, &own);
    rig.pass(ms(100));
    rig
}

/// What both ends offer where hosts tell each other of addresses beside RFC 10069.
fn announcing() -> Setup {
    let mut setup = Setup::default();
    setup.transport.announce_addresses(true);
    setup.habits.params.announcements.own.addresses = true;
    setup
}

#[test]
fn private_addresses_are_not_told() {
    for setup in [Setup::multiflow(), announcing()] {
        let rig = with_addresses_inside(setup);
        assert_eq!(
            told(&rig),
            [addr("198.51.100.9:443")].into(),
            "the peer could do nothing with the others but learn of them"
        );
    }
    let mut setup = Setup::multiflow();
    setup.transport.address_scope(AddressScope::Any);
    assert_eq!(told(&with_addresses_inside(setup)).len(), 6, "unless it is in the same network");
}

/// RFC 9000 9.1.
fn is_probing(frame: &Frame<'_>) -> bool {
    matches!(frame, Frame::PathChallenge(_) | Frame::PathResponse(_) | Frame::NewCid(_) | Frame::Padding(_))
}

/// ADD_ADDRESS of plait's own extension.
fn add_private(id: u64, sequence: u64, address: &str) -> Vec<u8> {
    let (ip, port) = (addr(address).ip(), Some(addr(address).port()));
    let (form, interface, status) = (AddressForm::Private, InterfaceType::Fixed, PathStatus::Available);
    encoded(&AddAddress { form, id, sequence, ip, port, interface, status, metered: false })
}

#[test]
fn data_waits_until_an_address_that_the_server_names_answers() {
    let mut setup = announcing();
    setup.transport.path_policy(policy::by_name("fullmesh").unwrap());
    let mut rig = Rig::established_client(setup);
    let id = rig.conn().streams().open(Dir::Uni).unwrap();
    rig.conn().send_stream(id).write(&[7; 100_000]).unwrap();
    rig.frames(add_private(1, 0, "203.0.113.5:443"));
    rig.pass(ms(3_000));
    let there: Vec<_> = seen_at(&rig, "203.0.113.5:443").collect();
    assert_eq!(there.len(), 2, "a challenge, and the same once more after a probe time-out");
    for seen in there {
        // RFC 9000 9.1, 21.5.3
        assert!(seen.frames().iter().all(is_probing), "{:?}", seen.frames());
    }
}

#[test]
fn our_own_addresses_are_not_asked() {
    for scope in [AddressScope::Global, AddressScope::Any] {
        let mut setup = Setup::multiflow();
        setup.transport.address_scope(scope);
        let mut rig = Rig::established_server(setup);
        let (now, own) = (rig.now, "198.51.100.9:443");
        rig.conn().set_local_addresses(now, &[addr(ENGINE), addr(own)]);
        for (id, address) in [(1, own), (2, ENGINE), (3, "[::ffff:198.51.100.9]:443")] {
            rig.frames(add_address(id, 0, address));
        }
        rig.pass(ms(5_000));
        let asked: BTreeSet<SocketAddr> = rig.wire.iter().map(|(tuple, ..)| tuple.remote).collect();
        assert_eq!(asked, [rig.tuple.remote].into(), "{scope:?}");
    }
}

#[test]
fn a_server_asks_no_address_beside_rfc_10069() {
    let mut setup = announcing();
    setup.transport.path_policy(policy::by_name("fullmesh").unwrap());
    let mut rig = Rig::established_server(setup);
    (0..200).for_each(|n| rig.frames(add_private(n, 0, &format!("203.0.113.{}:443", n + 1))));
    rig.pass(ms(10_000));
    assert!(rig.is_open() && rig.wire.iter().all(|(tuple, ..)| tuple.remote == rig.tuple.remote));
}

/// Datagrams that left for addresses in 203.0.113.0/24.
fn to_strangers(rig: &Rig) -> usize {
    let is_there = |tuple: &plait_base::FourTuple| tuple.remote.to_string().starts_with("203.0.113.");
    rig.wire.iter().filter(|(tuple, ..)| is_there(tuple)).count()
}

/// The puppet gives one id more for each that it got back from entry `from` on, of flows that had two.
fn replace_retired(rig: &mut Rig, from: usize) {
    let retired = |frame: Frame<'_>| if let Frame::RetireCid(f) = frame { Some((f.path.0, f.sequence)) } else { None };
    let retired: Vec<_> = rig.seen[from..].iter().flat_map(Seen::frames).filter_map(retired).collect();
    for (path, sequence) in retired {
        let cid = rig.peer.new_cid(CidForm::Uniflow, path, sequence + 2);
        rig.frames(encoded(&cid));
    }
}

#[test]
fn addresses_that_never_answer_are_asked_ever_more_rarely() {
    for own in [1, 3] {
        let mut rig = Rig::established_server(Setup::multiflow());
        let now = rig.now;
        let local: Vec<SocketAddr> = (0..own).map(|n| addr(&format!("10.0.0.{}:443", n + 1))).collect();
        rig.conn().set_local_addresses(now, &local);
        // RFC 9000 9.5-1: a flow that is to leave by another address of ours needs an id for that.
        for path in 1..8 {
            let spare = rig.peer.new_cid(CidForm::Uniflow, path, 1);
            rig.frames(encoded(&spare));
        }
        (0..31).for_each(|n| rig.frames(add_address(n + 1, 0, &format!("203.0.113.{}:443", n + 1))));
        let mut by_minute = Vec::new();
        for _ in 0..10 {
            let before = to_strangers(&rig);
            for _ in 0..600 {
                let from = rig.seen.len();
                rig.pass(ms(100));
                rig.ack_all();
                replace_retired(&mut rig, from);
            }
            by_minute.push(to_strangers(&rig) - before);
        }
        // Each pair is asked twice, and then rests for a minute.
        assert!(by_minute.iter().all(|asked| *asked < 300) && by_minute[9] <= 31 * own * 2, "{by_minute:?}");
    }
}

#[test]
fn a_flow_leaves_by_another_address_of_ours_with_another_id() {
    // RFC 9000 9.5-1
    for gives in [false, true] {
        let mut rig = Rig::established_server(Setup::multiflow());
        let now = rig.now;
        let local: Vec<SocketAddr> = (1..4).map(|n| addr(&format!("10.0.0.{n}:443"))).collect();
        rig.conn().set_local_addresses(now, &local);
        if gives {
            for path in 1..8 {
                let spare = rig.peer.new_cid(CidForm::Uniflow, path, 1);
                rig.frames(encoded(&spare));
            }
        }
        (0..31).for_each(|n| rig.frames(add_address(n + 1, 0, &format!("203.0.113.{}:443", n + 1))));
        for _ in 0..300 {
            rig.pass(ms(100));
            rig.ack_all();
        }
        let mut used: BTreeMap<Vec<u8>, BTreeSet<SocketAddr>> = BTreeMap::new();
        for seen in &rig.seen {
            used.entry(seen.dcid.to_vec()).or_default().insert(seen.tuple.local);
        }
        assert!(used.values().all(|locals| locals.len() == 1), "{used:?}");
        assert!(used.len() >= if gives { 12 } else { 7 }, "{} ids", used.len());
    }
}

#[test]
fn one_address_in_two_forms_is_one_address() {
    let mut rig = Rig::established_server(Setup::multiflow());
    rig.frames(add_address(1, 0, "203.0.113.5:443"));
    rig.frames(add_address(1, 1, "[::ffff:203.0.113.5]:443"));
    rig.frames(add_address(2, 0, "[::ffff:203.0.113.5]:443"));
    rig.pass(ms(500));
    let asked: BTreeSet<SocketAddr> = rig.wire.iter().map(|(tuple, ..)| tuple.remote).collect();
    assert_eq!(asked, [rig.tuple.remote, addr("203.0.113.5:443")].into());
    // Its end in the one form is the end of it.
    rig.frames(remove_address(1, 2));
    rig.frames(remove_address(2, 1));
    let before = to_strangers(&rig);
    rig.pass(ms(5_000));
    assert_eq!(to_strangers(&rig), before);
}

#[test]
fn absurd_numbers_are_numbers_and_absurd_counts_are_errors() {
    let mut rig = two_flows();
    let last = (1 << 62) - 1;
    rig.frames(add_address(2, last, "203.0.113.1:443"));
    rig.frames(remove_address(2, last));
    rig.frames(uniflows(last, &[(7, 255), (7, 255), (6, 255), (0, 0)]));
    rig.frames(uniflows(0, &[]));
    rig.pass(ms(1000));
    rig.ack_all();
    assert!(rig.is_open());
    // more entries than the frame has bytes
    let mut absurd = vec![0x40, 0x46, 0x01];
    absurd.extend([0xff; 8]);
    absurd.push(0);
    rig.frames(absurd);
    assert_eq!(rig.close_seen(), Some(CloseCode::FRAME_ENCODING_ERROR));
}

/// A client with data to send whose server prefers to be elsewhere; what left for there in three seconds.
fn sent_to_preferred(mut setup: Setup, text: &str) -> Vec<Seen> {
    let SocketAddr::V4(v4) = addr(text) else { panic!("of the family of the handshake") };
    let (cid, token) = (ConnectionId::new(&[0x77; 8]).unwrap(), ResetToken([5; 16]));
    setup.habits.params.preferred_address = Some(PreferredAddress { v4: Some(v4), v6: None, cid, token });
    setup.transport.path_policy(policy::by_name("fullmesh").unwrap());
    let mut rig = Rig::client(setup);
    rig.peer.ours.insert(cid, PathId(0));
    while rig.say_handshake() || !rig.peer.is_done() {
        rig.pass(ms(5));
    }
    let mut payload = vec![0x1e];
    if rig.conn().is_multipath() {
        let form = if rig.conn().paths().is_multiflow() { CidForm::Uniflow } else { CidForm::Path };
        payload.extend(encoded(&rig.peer.new_cid(form, 1, 0)));
    }
    rig.frames(payload);
    let id = rig.conn().streams().open(Dir::Uni).unwrap();
    rig.conn().send_stream(id).write(&[7; 10_000]).unwrap();
    rig.pass(ms(3_000));
    seen_at(&rig, text).cloned().collect()
}

#[test]
fn a_server_out_in_the_world_cannot_prefer_what_lies_inside() {
    // RFC 9000 21.5.3, 21.5.6
    let kinds = || [Setup::default(), Setup::multiflow(), Setup::single_path()];
    for text in ["224.0.0.1:443", "255.255.255.255:443", "0.1.1.1:443", "127.0.0.1:443", "192.168.1.1:443"] {
        let sent = kinds().map(|setup| sent_to_preferred(setup, text).len());
        assert_eq!(sent, [0; 3], "{text}");
    }
    for setup in kinds() {
        let sent = sent_to_preferred(setup, "203.0.113.9:443");
        assert!(!sent.is_empty() && sent.iter().all(|seen| seen.frames().iter().all(is_probing)), "{sent:?}");
    }
}

#[test]
fn challenges_draw_nothing_to_an_address_that_the_peer_named() {
    let mut rig = Rig::established_server(Setup::multiflow());
    let victim = "203.0.113.5:443";
    // The flow of the handshake is let go, so that only the one to the victim is left to answer by.
    rig.frames(add_address(1, 0, victim));
    rig.frames(remove_address(0, 1));
    for data in 0..60u64 {
        rig.frames([&[0x1a][..], &data.to_be_bytes()].concat());
    }
    rig.pass(ms(1000));
    let there: Vec<_> = seen_at(&rig, victim).collect();
    assert!(there.len() <= 2, "{} datagrams", there.len());
    let has_challenge = |frame: &Frame<'_>| matches!(frame, Frame::PathChallenge(_));
    assert!(there.iter().all(|seen| seen.has(has_challenge)));
}

/// A frame of each kind that speaks of addresses, with the form in which it may be spoken and who may.
fn words_of_addresses() -> [(Vec<u8>, &'static str); 9] {
    let ip = [203, 0, 113, 5, 1, 187];
    [
        (raw(&[0x44], &[0x14, 1, 0, 0, 203, 0, 113, 5, 1, 187]), "multiflow"),
        (raw(&[0x45], &[1, 0]), "multiflow"),
        (uniflows(0, &[(0, 0)]), "multiflow"),
        (add_private(1, 0, "203.0.113.5:443"), "own"),
        (raw(&[0x2d50_5811, 1, 0], &[]), "own"),
        (raw(&[0x3d_7f90, 0], &ip), "server, nat"),
        (raw(&[0x3d_7f94, 0], &[]), "server, nat"),
        (raw(&[0x3d_7f92, 0], &ip), "client, nat"),
        (raw(&[0x9_25ad_da04, 0, 0], &[]), "server, set"),
    ]
}

#[test]
fn words_of_addresses_are_heard_from_whom_and_where_they_were_agreed() {
    let setups: [(MakeSetup, &str); 6] = [
        (Setup::multiflow, "multiflow"),
        (announcing, "own"),
        (Setup::nat_traversal, "nat"),
        (Setup::additional_addresses, "set"),
        (Setup::default, "none"),
        (Setup::single_path, "none"),
    ];
    for (setup, agreed) in setups {
        for (frame, word) in words_of_addresses() {
            for (puppet, begin) in [("client", Rig::established_server as Begin), ("server", Rig::established_client)] {
                let mut rig = begin(setup());
                let before = rig.wire.len();
                rig.frames(frame.clone());
                let (speaker, form) = word.split_once(", ").unwrap_or((puppet, word));
                let expected = match (form == agreed, speaker == puppet) {
                    (true, true) => None,
                    (true, false) => Some(CloseCode::PROTOCOL_VIOLATION),
                    (false, _) => Some(CloseCode::FRAME_ENCODING_ERROR),
                };
                assert_eq!(rig.close_seen(), expected, "{word} from the {puppet}, {agreed} agreed");
                let is_known = |tuple: &plait_base::FourTuple| tuple.remote == rig.tuple.remote;
                assert!(expected.is_none() || rig.wire[before..].iter().all(|(tuple, ..)| is_known(tuple)));
            }
        }
    }
}

type MakeSetup = fn() -> Setup;
type Begin = fn(Setup) -> Rig;

#[test]
fn frames_of_other_nat_traversals_are_unknown() {
    // draft-seemann-quic-nat-traversal: ADD_ADDRESS, PUNCH_ME_NOW, REMOVE_ADDRESS
    for setup in [Setup::nat_traversal, Setup::multiflow, Setup::default] {
        for kind in 0x3d_7e90..=0x3d_7e94 {
            for begin in [Rig::established_server, Rig::established_client] {
                let mut rig = begin(setup());
                rig.frames(raw(&[kind, 0, 0], &[203, 0, 113, 5, 1, 187]));
                assert_eq!((rig.close_seen(), to_strangers(&rig)), (Some(CloseCode::FRAME_ENCODING_ERROR), 0));
            }
        }
    }
}

#[test]
fn a_client_that_asks_to_be_reached_moves_nobody() {
    let mut rig = Rig::established_server(Setup::nat_traversal());
    for round in 0..500u64 {
        let ip = [203, 0, 113, round as u8, 0, 53];
        rig.frames(raw(&[0x3d_7f92, round * (u64::MAX >> 12)], &ip));
        rig.frames(raw(&[0x3d_7f93, round], &[&[0x20; 16][..], &[0, 53]].concat()));
    }
    rig.pass(ms(5_000));
    assert!(rig.is_open() && rig.wire.iter().all(|(tuple, ..)| tuple.remote == rig.tuple.remote));
}

#[test]
fn a_server_that_tells_of_strangers_has_its_client_ask_few_of_them() {
    let mut setup = Setup::nat_traversal();
    setup.transport.path_policy(policy::by_name("fullmesh").unwrap());
    let mut rig = Rig::established_client(setup);
    for id in 0..500u64 {
        rig.frames(raw(&[0x3d_7f90, id], &[203, 0, 113, id as u8, 0, 53]));
        rig.frames(raw(&[0x3d_7f94, id], &[]));
        rig.frames(raw(&[0x3d_7f90, (1 << 62) - 1 - id], &[203, 0, 113, id as u8, 0, 54]));
    }
    rig.pass(ms(10_000));
    assert!(rig.is_open());
    // Eight at once, one more each second, each two times.
    assert!((1..=2 * (8 + 10)).contains(&to_strangers(&rig)), "{}", to_strangers(&rig));
}
