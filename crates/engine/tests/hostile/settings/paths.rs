//! Several paths: how many, who opens them, what they carry.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::num::NonZeroU8;
use std::sync::Arc;

use plait_base::observe::PathState;
use plait_base::{Dir, FourTuple, Instant, PathId};
use plait_crypto::NonceForm;
use plait_engine::TransportConfig;
use plait_engine::config::{Extension, StreamPlacement};
use plait_engine::path::AddressScope;
use plait_engine::path::PathStatus;
use plait_engine::path::{ack_route, policy};
use plait_engine::schedule::{self, reinject};
use plait_wire::Frame;
use plait_wire::frame::{
    AddAddress, AdditionalAddresses, AddressForm, InterfaceType, List, PathCondition, PathStatus as Advice, ReachOut,
    RemoveAddress,
};
use plait_wire::params::AdditionalAddressesUse;

use super::{announced, with};
use crate::multiflow::{add_address, seen_at};
use crate::puppet::{Packet, Rig, Setup, addr, ms, tuple};
use crate::reports::report;
use crate::violations::{encoded, stream};

const SECOND: &str = "192.0.2.2:5000";

/// A server with two paths that have an RTT each.
fn two_paths(change: impl FnOnce(&mut TransportConfig)) -> Rig {
    let mut rig = Rig::established_server(with(change));
    rig.open_path(1, SECOND, true);
    for _ in 0..5 {
        rig.pass(ms(50));
        rig.ack_all();
    }
    assert_eq!(rig.conn().paths().ids().len(), 2);
    rig
}

/// Bytes of stream data that the engine sent since `from`, on one path.
fn stream_bytes(rig: &Rig, from: usize, path: u32) -> usize {
    let sent = |f: &Frame<'_>| if let Frame::Stream(s) = f { s.data.len() } else { 0 };
    let on_path = rig.seen[from..].iter().filter(|s| s.path == PathId(path));
    on_path.map(|s| s.frames().iter().map(sent).sum::<usize>()).sum()
}

fn local(port: u16) -> FourTuple {
    FourTuple { local: format!("10.0.0.2:{port}").parse().unwrap(), ..tuple(crate::puppet::PUPPET) }
}

#[test]
fn max_concurrent_multipath_paths() {
    let max = |count| announced(|t| _ = t.max_concurrent_multipath_paths(count)).initial_max_path_id;
    assert_eq!([max(0), max(1), max(3)], [None, None, Some(PathId(2))]);
}

#[test]
fn max_concurrent_validations() {
    for (count, expected) in [(1, 1), (3, 3)] {
        let mut rig = Rig::established_client(with(|t| {
            t.max_concurrent_validations(count).path_policy(policy::by_name("fullmesh").unwrap());
        }));
        let now = rig.now;
        let addresses: Vec<_> = (2..7).map(|n| addr(&format!("10.0.0.{n}:1"))).collect();
        rig.conn().set_local_addresses(now, &addresses);
        rig.pass(ms(20));
        let tried: BTreeSet<PathId> = rig.seen.iter().map(|s| s.path).filter(|path| *path != PathId(0)).collect();
        assert_eq!(tried.len(), expected);
        // A server refuses what is more.
        let mut rig = Rig::established_server(with(|t| _ = t.max_concurrent_validations(count)));
        (1..6).for_each(|path| rig.open_path(path, &format!("192.0.2.{}:5", 10 + path), false));
        assert_eq!(rig.conn().paths().ids().len(), 1 + expected);
        assert_eq!(rig.count(|f| matches!(f, Frame::PathAbandon(_))), 5 - expected);
    }
}

#[test]
fn active_connection_id_limit() {
    // RFC 9000 18.2-6
    let limit = |count| announced(|t| _ = t.active_connection_id_limit(count)).active_cid_limit;
    assert_eq!([limit(0), limit(3), limit(1_000)], [2, 3, 8]);
}

#[test]
fn potentially_failed() {
    for (on, expected) in [(true, PathState::Failed), (false, PathState::Active)] {
        let mut rig = two_paths(|t| _ = t.potentially_failed(on));
        // Path 1 falls silent with data under way.
        let id = rig.conn().streams().open(Dir::Uni).unwrap();
        rig.conn().send_stream(id).write(&[1; 60_000]).unwrap();
        for _ in 0..10 {
            rig.pass(ms(50));
            let ack = rig.peer.ack(plait_base::Space::Data, 0, plait_wire::frame::AckForm::Path);
            rig.frames(ack.unwrap());
        }
        let now = rig.now;
        assert_eq!(rig.conn().path_statistics(now, PathId(1)).map(|p| p.state), Some(expected));
    }
}

#[test]
fn duplicate_until_rtt() {
    for (on, copied) in [(true, true), (false, false)] {
        let mut rig = Rig::established_client(with(|t| {
            t.duplicate_until_rtt(on).scheduler(schedule::by_name("round-robin").unwrap());
            t.reinjection(reinject::by_name("none").unwrap());
        }));
        let now = rig.now;
        rig.conn().open_path(now, local(1), PathStatus::Available).unwrap();
        let from = rig.seen.len();
        let id = rig.conn().streams().open(Dir::Uni).unwrap();
        rig.conn().send_stream(id).write(&[1; 5_000]).unwrap();
        rig.pump();
        let (first, second) = (stream_bytes(&rig, from, 0), stream_bytes(&rig, from, 1));
        assert!(second > 0, "the new path carries data");
        assert_eq!(first + second > 5_000, copied, "{first} {second}");
    }
}

#[test]
fn abandon_after_ptos() {
    for (count, abandoned) in [(2, true), (30, false)] {
        let mut rig = two_paths(|t| _ = t.abandon_after_ptos(count));
        let id = rig.conn().streams().open(Dir::Uni).unwrap();
        rig.conn().send_stream(id).write(&[1; 60_000]).unwrap();
        for _ in 0..60 {
            rig.pass(ms(50));
            let ack = rig.peer.ack(plait_base::Space::Data, 0, plait_wire::frame::AckForm::Path);
            rig.frames(ack.unwrap());
        }
        let said = rig.count(|f| matches!(f, Frame::PathAbandon(a) if a.path == PathId(1)));
        assert_eq!(said > 0, abandoned, "{count}");
    }
}

#[test]
fn ack_route() {
    for (name, both) in [("own", false), ("all", true)] {
        let mut rig = two_paths(|t| _ = t.ack_route(ack_route::by_name(name).unwrap()));
        rig.seen.clear();
        for i in 0..6 {
            rig.send_all(tuple(SECOND), &[Packet::one_rtt(stream(0, 10 * i, false, &[1; 10])).on(1)]);
        }
        rig.pass(ms(100));
        let of_second = |f: &Frame<'_>| matches!(f, Frame::Ack(a) if a.path == PathId(1));
        let ways: BTreeSet<u32> = rig.seen.iter().filter(|s| s.has(of_second)).map(|s| s.path.0).collect();
        assert!(ways.contains(&1));
        assert_eq!(ways.contains(&0), both, "{name}");
    }
}

#[test]
fn reinjection() {
    for (name, again) in [("none", false), ("tail", true)] {
        let mut rig = two_paths(|t| _ = t.reinjection(reinject::by_name(name).unwrap()));
        // Path 1 has the end of the data under way when path 0 has nothing left.
        let from = rig.seen.len();
        let id = rig.conn().streams().open(Dir::Uni).unwrap();
        rig.conn().send_stream(id).write(&[1; 20_000]).unwrap();
        rig.conn().send_stream(id).finish().unwrap();
        rig.pump();
        let second = stream_bytes(&rig, from, 1);
        let sent = stream_bytes(&rig, from, 0) + second;
        assert!(sent >= 20_000 && second > 0);
        let ack = rig.peer.ack(plait_base::Space::Data, 0, plait_wire::frame::AckForm::Path).unwrap();
        rig.pass(ms(30));
        rig.frames(ack);
        rig.pass(ms(30));
        let all = stream_bytes(&rig, from, 0) + stream_bytes(&rig, from, 1);
        assert_eq!(all > 20_000, again, "{name}: {sent} then {all}");
    }
}

#[test]
fn path_policy() {
    for (name, paths) in [("manual", 1), ("fullmesh", 2)] {
        let mut rig = Rig::established_client(with(|t| _ = t.path_policy(policy::by_name(name).unwrap())));
        let now = rig.now;
        rig.conn().set_local_addresses(now, &[addr(crate::puppet::ENGINE), addr("10.0.0.2:1")]);
        rig.pass(ms(50));
        assert_eq!(rig.conn().paths().ids().len(), paths, "{name}");
    }
}

#[test]
fn scheduler() {
    for (name, twice) in [("minrtt", false), ("redundant", true)] {
        let factory: Arc<_> = schedule::by_name(name).unwrap();
        let mut rig = two_paths(|t| _ = t.scheduler(factory).reinjection(reinject::by_name("none").unwrap()));
        let from = rig.seen.len();
        let id = rig.conn().streams().open(Dir::Uni).unwrap();
        rig.conn().send_stream(id).write(&[1; 5_000]).unwrap();
        rig.pump();
        rig.pass(ms(80));
        let all = stream_bytes(&rig, from, 0) + stream_bytes(&rig, from, 1);
        assert_eq!(all, if twice { 10_000 } else { 5_000 }, "{name}");
    }
}

#[test]
fn a_timer_that_fires_late_costs_no_part_of_the_pace() {
    let leaves_at = |late| {
        let mut rig = two_paths(|t| {
            t.scheduler(schedule::by_name("round-robin").unwrap()).reinjection(reinject::by_name("none").unwrap());
        });
        let id = rig.conn().streams().open(Dir::Uni).unwrap();
        rig.conn().send_stream(id).write(&[1; 20_000]).unwrap();
        rig.pump();
        let from = rig.seen.len();
        let now = rig.conn().deadline().unwrap() + late;
        rig.now = now;
        rig.conn().on_timeout(now);
        rig.pump();
        stream_bytes(&rig, from, 0) + stream_bytes(&rig, from, 1)
    };
    let (on_time, late) = (leaves_at(ms(0)), leaves_at(ms(20)));
    assert!(on_time > 0 && on_time <= 4 * 1500, "{on_time}: a pair of each path at most");
    // 20 ms of 50 at a window of ten packets or more on each path.
    assert!(late >= 8 * 1000, "{late} bytes");
}

#[test]
fn stream_placement() {
    for (placement, keeps) in [(StreamPlacement::Pooled, false), (StreamPlacement::Pinned, true)] {
        // In turns, one stream would use both paths.
        let mut rig = two_paths(|t| {
            t.stream_placement(placement).scheduler(schedule::by_name("round-robin").unwrap());
            t.reinjection(reinject::by_name("none").unwrap());
        });
        let from = rig.seen.len();
        for bytes in [5_000, 3_000] {
            let id = rig.conn().streams().open(Dir::Uni).unwrap();
            rig.conn().send_stream(id).write(&vec![1; bytes]).unwrap();
        }
        rig.pump();
        rig.pass(ms(50));
        let by_path = [stream_bytes(&rig, from, 0), stream_bytes(&rig, from, 1)];
        assert_eq!(by_path == [5_000, 3_000], keeps, "{placement:?}: {by_path:?}");
        assert_eq!(by_path.iter().sum::<usize>(), 8_000, "{placement:?}");
    }
}

#[test]
fn extension() {
    let mut setup = Setup::multiflow();
    setup.habits.params.initial_max_path_id = Some(PathId(7));
    setup.transport.extension(Extension::Either);
    let mut rig = Rig::established_server(setup);
    assert!(rig.conn().is_multipath() && !rig.conn().paths().is_multiflow());
    // and where the peer knows Multiflow alone, an end that offers both speaks it
    let mut setup = Setup::multiflow();
    setup.transport.extension(Extension::Either);
    assert!(Rig::established_server(setup).conn().paths().is_multiflow());
    // an end that was not told to offer it does not
    let mut setup = Setup::multiflow();
    setup.transport.extension(Extension::Multipath);
    assert!(!Rig::established_server(setup).conn().is_multipath());
}

/// A peer that announces 7 uniflows and wishes these nonces, and makes them whether they are agreed on or not.
fn with_nonces(nonces: Option<NonceForm>, change: impl FnOnce(&mut TransportConfig)) -> Setup {
    let mut setup = Setup::multiflow();
    setup.habits.nonces = nonces;
    setup.habits.params.announcements.own.uniflow_nonces = true;
    change(&mut setup.transport);
    setup
}

#[test]
fn uniflow_nonces() {
    let strict = Some(NonceForm::TopBits { max_id: PathId(7) });
    // Both ends speak, each way, on uniflow 0 and on others, and in the next key phase.
    let mut rig = Rig::established_server(with_nonces(strict, |t| _ = t.uniflow_nonces(true)));
    rig.send_all(tuple(SECOND), &[Packet::one_rtt(stream(0, 0, false, b"GET")).on(3)]);
    rig.pass(ms(30));
    assert!(
        rig.conn().path_statistics(Instant::ZERO, PathId(3)).is_some() && rig.count(|f| matches!(f, Frame::Ack(_))) > 0
    );
    assert!(seen_at(&rig, SECOND).any(|seen| seen.path == PathId(1)), "its packets open too");
    rig.ack_all();
    rig.pass(ms(2_000));
    let now = rig.now;
    rig.conn().update_keys(now).unwrap();
    let before = rig.seen.len();
    rig.frames([0x01]);
    rig.pass(ms(30));
    assert!(rig.seen.len() > before && rig.is_open());
    let mut rig = Rig::established_client(with_nonces(strict, |t| _ = t.uniflow_nonces(true)));
    rig.frames([0x21]);
    assert!(!rig.is_open(), "a client reads what it is told");
    // Off, not answered, or with RFC 10069 in use, nonces are those of RFC 10069.
    let usual: [fn(&mut Setup); 3] = [
        |s| _ = s.transport.uniflow_nonces(false),
        |s| s.habits.params.announcements.own.uniflow_nonces = false,
        |s| {
            s.habits.params.initial_max_path_id = Some(PathId(7));
            s.transport.extension(Extension::Either);
        },
    ];
    for (case, change) in usual.into_iter().enumerate() {
        for start in [Rig::established_server, Rig::established_client] {
            let mut setup = with_nonces(None, |t| _ = t.uniflow_nonces(true));
            change(&mut setup);
            let mut rig = start(setup);
            rig.frames([0x21]);
            assert!(!rig.is_open(), "case {case}: the packet was not read");
        }
    }
}

#[test]
fn uniflow_nonces_are_not_offered_without_uniflows() {
    let announces = |extension| announced(|t| _ = t.extension(extension).uniflow_nonces(true)).announcements.own;
    assert!(announces(Extension::Either).uniflow_nonces && announces(Extension::Multiflow).uniflow_nonces);
    assert!(!announces(Extension::Multipath).uniflow_nonces);
}

#[test]
fn address_scope() {
    for (scope, asked) in [(AddressScope::Global, 0), (AddressScope::Any, 3)] {
        let mut setup = Setup::multiflow();
        setup.transport.address_scope(scope);
        let mut rig = Rig::established_server(setup);
        let inside = ["127.0.0.1:5000", "10.1.1.1:5000", "169.254.1.1:5000"];
        let never = ["224.0.0.1:5000", "255.255.255.255:5000", "0.0.0.0:5000"];
        for (id, address) in (1..).zip(inside.iter().chain(&never)) {
            rig.frames(add_address(id, 0, address));
        }
        rig.pass(ms(50));
        let count = |addresses: [&str; 3]| addresses.iter().filter(|a| seen_at(&rig, a).next().is_some()).count();
        assert_eq!((count(inside), count(never)), (asked, 0), "{scope:?}");
        assert!(rig.is_open());
    }
}

#[test]
fn announce_addresses() {
    // The puppet server tells a client of a second address; told only where both wish it, and a word taken back counts.
    let second = "192.0.2.2:5000";
    for (ours, theirs) in [(true, true), (true, false), (false, true)] {
        let mut setup = with(|t| {
            t.announce_addresses(ours).path_policy(policy::by_name("fullmesh").unwrap());
        });
        setup.habits.params.announcements.own.addresses = theirs;
        let mut rig = Rig::established_client(setup);
        let now = rig.now;
        rig.conn().set_local_addresses(now, &[addr(crate::puppet::ENGINE), addr("198.51.100.9:4000")]);
        rig.pump();
        let told = |f: &Frame<'_>| matches!(f, Frame::AddAddress(f) if f.form == AddressForm::Private);
        assert_eq!(rig.count(told) > 0, ours && theirs, "{ours} {theirs}");
        if !(ours && theirs) {
            continue;
        }
        let (ip, port) = (addr(second).ip(), Some(addr(second).port()));
        let (form, interface, status) = (AddressForm::Private, InterfaceType::Fixed, Advice::Available);
        let add = AddAddress { form, id: 1, sequence: 0, ip, port, interface, status, metered: false };
        rig.frames(encoded(&add));
        rig.pass(ms(30));
        let challenged = seen_at(&rig, second).filter(|s| s.has(|f| matches!(f, Frame::PathChallenge(_)))).count();
        assert!(challenged > 0, "a path leads to the address that the server told");
        rig.frames(encoded(&RemoveAddress { form, id: 1, sequence: 1 }));
        rig.pass(ms(30));
        assert!(rig.count(|f| matches!(f, Frame::PathAbandon(_))) > 0, "an address that is taken back loses its paths");
        let before = rig.seen.len();
        rig.pass(ms(3_000));
        assert!(rig.seen[before..].iter().all(|seen| seen.tuple.remote != addr(second)));
    }
}

#[test]
fn tell_paths() {
    for (ours, theirs) in [(true, true), (true, false), (false, true)] {
        let mut setup = with(|t| _ = t.tell_paths(ours));
        setup.habits.params.announcements.own.paths = theirs;
        let mut rig = Rig::established_server(setup);
        rig.ack_all();
        rig.pump();
        let told = rig.count(|f| matches!(f, Frame::PathsInfo(_)));
        assert_eq!(told > 0, ours && theirs, "{ours} {theirs}");
        rig.frames(report(0, &[(0, PathCondition::Backup)]));
        assert_eq!(rig.is_open(), ours && theirs);
        let reported = rig.conn().paths().peer_report(PathId(0));
        assert_eq!(reported.map(|report| report.state), (ours && theirs).then_some(PathState::Backup));
    }
}

#[test]
fn additional_addresses() {
    let told = |f: &Frame<'_>| matches!(f, Frame::AdditionalAddresses(_));
    for (ours, theirs) in [(true, true), (true, false), (false, true)] {
        let setup = || {
            let mut setup =
                with(|t| _ = t.additional_addresses(ours).path_policy(policy::by_name("fullmesh").unwrap()));
            if theirs {
                setup.habits.params.announcements.additional_addresses = AdditionalAddressesUse::Supported;
            }
            setup
        };
        // A server tells all but the address of the handshake, and all again when one of them goes.
        let mut rig = Rig::established_server(setup());
        let now = rig.now;
        let engine = addr(crate::puppet::ENGINE);
        let ends = ["198.51.100.1:443", "[2001:db8::1]:443", "198.51.100.2:443"].map(addr);
        rig.conn().set_local_addresses(now, &[&[engine], &ends[..]].concat());
        rig.pump();
        assert_eq!(rig.count(told), usize::from(ours && theirs), "{ours} {theirs}");
        if ours && theirs {
            rig.ack_all();
            rig.conn().set_local_addresses(now, &[&[engine], &ends[1..]].concat());
            rig.pump();
            let frames = rig.seen.iter().flat_map(|seen| seen.frames());
            let sets = frames.filter_map(|f| if let Frame::AdditionalAddresses(f) = f { Some(f) } else { None });
            let sets: Vec<_> = sets.map(|f| (f.sequence, f.addresses.iter().collect::<Vec<_>>())).collect();
            assert_eq!(sets, [(0, ends.to_vec()), (1, ends[1..].to_vec())]);
        }
        // A client opens a path to what the server tells, and ends it when a newer set lacks it. It tells nothing itself.
        let mut rig = Rig::established_client(setup());
        let now = rig.now;
        rig.conn().set_local_addresses(now, &[engine, addr("198.51.100.9:4000")]);
        rig.pump();
        assert_eq!(rig.count(told), 0, "a client tells nothing");
        let second = addr("192.0.2.2:5000");
        let set = |sequence, addresses: &[SocketAddr]| {
            let mut buf = Vec::new();
            encoded(&AdditionalAddresses { sequence, addresses: List::of(addresses.iter().copied(), &mut buf) })
        };
        rig.frames(set(4, &[second]));
        rig.pass(ms(30));
        assert_eq!(rig.is_open(), ours, "only what was offered may come");
        if !ours {
            continue;
        }
        let to_second = |f: &Frame<'_>| matches!(f, Frame::PathChallenge(_));
        assert!(seen_at(&rig, "192.0.2.2:5000").any(|s| s.has(to_second)));
        rig.frames(set(3, &[]));
        rig.pass(ms(30));
        assert_eq!(rig.count(|f| matches!(f, Frame::PathAbandon(_))), 0, "an older set");
        rig.frames(set(5, &[]));
        rig.pass(ms(30));
        assert!(rig.count(|f| matches!(f, Frame::PathAbandon(_))) > 0, "what is taken back loses its paths");
    }
}

#[test]
fn nat_traversal() {
    let form = AddressForm::NatTraversal;
    let told = |f: &Frame<'_>| matches!(f, Frame::AddAddress(f) if f.form == AddressForm::NatTraversal);
    for (ours, theirs) in [(true, true), (true, false), (false, true)] {
        let setup = || {
            let mut setup = with(|t| _ = t.nat_traversal(ours).path_policy(policy::by_name("fullmesh").unwrap()));
            setup.habits.params.announcements.nat_traversal_addresses = NonZeroU8::new(2).filter(|_| theirs);
            setup
        };
        // A server tells no more than the client keeps, and of that a client asks it nothing comes.
        let mut rig = Rig::established_server(setup());
        let now = rig.now;
        let ends: Vec<_> = (1..9).map(|n| addr(&format!("198.51.100.{n}:443"))).collect();
        rig.conn().set_local_addresses(now, &[&[addr(crate::puppet::ENGINE)], &ends[..]].concat());
        rig.pump();
        assert_eq!((1..=2).contains(&rig.count(told)), ours && theirs, "{ours} {theirs}");
        if !(ours && theirs) {
            continue;
        }
        rig.frames(encoded(&ReachOut { round: 0, addr: addr("203.0.113.9:9") }));
        rig.pass(ms(100));
        assert!(rig.is_open() && seen_at(&rig, "203.0.113.9:9").count() == 0);
        // A client opens a path to what the server tells, and ends it when that is taken back; the number never counts again.
        let mut rig = Rig::established_client(setup());
        let now = rig.now;
        rig.conn().set_local_addresses(now, &[addr(crate::puppet::ENGINE), addr("198.51.100.9:4000")]);
        rig.pump();
        assert_eq!(rig.count(told), 0, "a client tells nothing");
        let second = addr("192.0.2.2:5000");
        let (interface, status) = (InterfaceType::Fixed, Advice::Available);
        let (ip, port) = (second.ip(), Some(second.port()));
        let add = AddAddress { form, id: 1, sequence: 0, ip, port, interface, status, metered: false };
        rig.frames(encoded(&add));
        rig.pass(ms(30));
        assert!(seen_at(&rig, SECOND).any(|s| s.has(|f| matches!(f, Frame::PathChallenge(_)))));
        rig.frames(encoded(&RemoveAddress { form, id: 1, sequence: 0 }));
        rig.frames(encoded(&add));
        rig.pass(ms(30));
        assert!(rig.count(|f| matches!(f, Frame::PathAbandon(_))) > 0);
        let before = rig.seen.len();
        rig.pass(ms(3_000));
        assert!(rig.is_open() && rig.seen[before..].iter().all(|seen| seen.tuple.remote != second));
    }
}
