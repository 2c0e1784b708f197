//! Application datagrams that were fit to be sent when they were queued, and are not any more (RFC 9221).

use bytes::Bytes;
use plait_base::PathId;
use plait_engine::config::MtuDiscoveryConfig;
use plait_engine::stream::Overflow;
use plait_wire::Frame;

use crate::puppet::{ENGINE, Packet, Rig, Setup, addr, ms, tuple};
use crate::rules::forgotten_session;

/// Sends on path 0 until a probe has shown that it carries 1452 bytes.
fn prove_1452_bytes(rig: &mut Rig) {
    let id = rig.conn().streams().open(plait_base::Dir::Uni).unwrap();
    for _ in 0..20 {
        rig.conn().send_stream(id).write(&[1; 2_500]).unwrap();
        rig.pass(ms(20));
        rig.ack_all();
    }
    let now = rig.now;
    assert_eq!(rig.conn().path_statistics(now, PathId(0)).unwrap().max_datagram_bytes, 1452);
}

/// A server whose path 0 carries 1452 bytes, proven by a probe.
fn large_path() -> Rig {
    let mut setup = Setup::default();
    setup.transport.mtu_discovery_config(Some(MtuDiscoveryConfig::default()));
    setup.habits.params.max_datagram_frame_bytes = 65_535;
    let mut rig = Rig::established_server(setup);
    prove_1452_bytes(&mut rig);
    rig
}

/// Path 0 has no room left, and datagrams of 1400 bytes wait.
fn full() -> Rig {
    let mut rig = large_path();
    for _ in 0..200 {
        rig.conn().datagrams().send(Bytes::from(vec![7; 1400]), Overflow::Refuse).unwrap();
    }
    rig.pump();
    assert!(queued(&mut rig) > 10_000);
    rig
}

/// Bytes that the queue of datagrams took.
fn queued(rig: &mut Rig) -> usize {
    (1 << 20) - rig.conn().datagrams().send_buffer_room()
}

#[test]
fn datagrams_too_large_for_a_new_path_wait_for_the_one_that_carries_them() {
    let mut rig = full();
    let (limit, waiting) = (rig.conn().datagrams().max_size(), queued(&mut rig));
    rig.open_path(1, "192.0.2.2:5000", true);
    assert_eq!(
        (rig.conn().datagrams().max_size(), queued(&mut rig)),
        (limit, waiting),
        "a young path takes nothing away"
    );
    let seen = rig.seen.len();
    rig.conn().datagrams().send(Bytes::from(vec![8; 1000]), Overflow::Refuse).unwrap();
    let id = rig.conn().streams().open(plait_base::Dir::Uni).unwrap();
    rig.conn().send_stream(id).write(&[1; 3_000]).unwrap();
    rig.send_all(tuple("192.0.2.2:5000"), &[Packet::one_rtt([0x01]).on(1)]);
    rig.pass(ms(30));
    let on_path_1 =
        |wanted: fn(&Frame<'_>) -> bool| rig.seen[seen..].iter().any(|s| s.path == PathId(1) && s.has(wanted));
    assert!(on_path_1(|f| matches!(f, Frame::Datagram(_))), "newer ones pass");
    assert!(on_path_1(|f| matches!(f, Frame::Stream(_))), "and so does stream data");
    let acked = |f: &Frame<'_>| matches!(f, Frame::Ack(a) if a.path == PathId(1));
    assert!(rig.seen[seen..].iter().any(|s| s.has(acked)), "and acks");
}

/// Lengths of the datagrams that the puppet got, of those above 1200 bytes.
fn large_ones(rig: &Rig) -> Vec<(PathId, usize)> {
    let lengths = |s: &crate::puppet::Seen| -> Vec<(PathId, usize)> {
        let of = |f: &Frame<'_>| if let Frame::Datagram(d) = f { Some((s.path, d.data.len())) } else { None };
        s.frames().iter().filter_map(of).filter(|(_, len)| *len > 1200).collect()
    };
    rig.seen.iter().flat_map(lengths).collect()
}

#[test]
fn opening_a_path_loses_no_datagram_that_waits() {
    let mut rig = large_path();
    let limit = rig.conn().datagrams().max_size().unwrap();
    rig.seen.clear();
    // Stream data fills the window, and 20 datagrams wait behind it.
    let id = rig.conn().streams().open(plait_base::Dir::Uni).unwrap();
    rig.conn().send_stream(id).write(&[1; 100_000]).unwrap();
    rig.pump();
    for _ in 0..20 {
        rig.conn().datagrams().send(Bytes::from(vec![7; limit]), Overflow::Refuse).unwrap();
    }
    rig.open_path(1, "192.0.2.2:5000", true);
    assert_eq!(rig.conn().datagrams().max_size(), Some(limit));
    for _ in 0..30 {
        rig.pass(ms(20));
        rig.ack_all();
    }
    let arrived = large_ones(&rig);
    assert_eq!((arrived.len(), queued(&mut rig)), (20, 64), "{arrived:?}");
}

/// A client whose address goes while datagrams of 1400 bytes wait: another comes at once, from which the policy opens a
/// path of packets of `initial_mtu` bytes. What waited before and after, and what was dropped.
fn moves_on(initial_mtu: u16) -> (Rig, usize, usize) {
    let mut setup = Setup::default();
    setup.transport.path_policy(plait_engine::path::policy::by_name("fullmesh").unwrap()).initial_mtu(initial_mtu);
    setup.transport.mtu_discovery_config(Some(MtuDiscoveryConfig::default()));
    setup.habits.params.max_datagram_frame_bytes = 65_535;
    let mut rig = Rig::established_client(setup);
    let now = rig.now;
    rig.conn().set_local_addresses(now, &[addr(ENGINE)]);
    prove_1452_bytes(&mut rig);
    for _ in 0..200 {
        rig.conn().datagrams().send(Bytes::from(vec![7; 1400]), Overflow::Refuse).unwrap();
    }
    rig.pump();
    let before = queued(&mut rig);
    assert!(before > 10_000);
    let now = rig.now;
    rig.conn().set_local_addresses(now, &[addr("10.0.0.2:443")]);
    let after = queued(&mut rig);
    (rig, before, after)
}

#[test]
fn a_path_that_opens_as_another_fails_takes_no_datagram_away() {
    for initial_mtu in [1200, 1452] {
        let (mut rig, before, after) = moves_on(initial_mtu);
        assert_eq!(rig.conn().paths().ids(), [PathId(0), PathId(1)], "the policy opened a path");
        assert_eq!((before, rig.conn().dropped_datagrams().unsent), (after, 0), "packets of {initial_mtu} bytes");
        // With the failed path gone, what the new one carries decides.
        let now = rig.now;
        rig.conn().close_path(now, PathId(0), plait_base::CloseCode::APPLICATION_ABANDON_PATH).unwrap();
        let fits = initial_mtu == 1452;
        assert_eq!((queued(&mut rig) == before, rig.conn().dropped_datagrams().unsent == 0), (fits, fits));
    }
}

#[test]
fn a_path_without_data_learns_its_size_and_takes_its_part() {
    let mut rig = large_path();
    rig.open_path(1, "192.0.2.2:5000", true);
    let now = rig.now;
    rig.conn().set_path_status(now, PathId(1), plait_engine::path::PathStatus::Backup).unwrap();
    rig.pass(ms(20));
    rig.ack_all();
    rig.seen.clear();
    let mut small = || {
        rig.conn().datagrams().send(Bytes::from_static(b"x"), Overflow::Refuse).unwrap();
        rig.pass(ms(20));
        rig.ack_all();
    };
    (0..10).for_each(|_| small());
    let now = rig.now;
    assert_eq!(rig.conn().path_statistics(now, PathId(1)).unwrap().max_datagram_bytes, 1452);
    let probing = |s: &&crate::puppet::Seen| s.path == PathId(1) && s.has(|f| matches!(f, Frame::Ping));
    let probes: Vec<usize> = rig.seen.iter().filter(probing).map(|s| s.datagram).collect();
    assert!(probes.len() <= 4 && probes.contains(&1452), "one probe, and one packet behind it: {probes:?}");
    let carried = |f: &Frame<'_>| matches!(f, Frame::Datagram(_) | Frame::Stream(_));
    assert!(!rig.seen.iter().any(|s| s.path == PathId(1) && s.has(carried)), "a backup carries no data meanwhile");
}

#[test]
fn the_end_of_the_widest_path_takes_the_datagrams_that_only_it_could_carry() {
    let mut rig = full();
    rig.open_path(1, "192.0.2.2:5000", true);
    let now = rig.now;
    rig.conn().close_path(now, PathId(0), plait_base::CloseCode::APPLICATION_ABANDON_PATH).unwrap();
    assert!(queued(&mut rig) < 1_000, "{}", queued(&mut rig));
    assert!(rig.conn().datagrams().max_size() < Some(1_200));
}

#[test]
fn a_black_hole_takes_the_queued_datagrams_that_only_fitted_before() {
    let mut rig = full();
    let before = rig.conn().dropped_datagrams().unsent;
    rig.deaf = true;
    rig.pass(ms(20_000));
    let now = rig.now;
    assert!(rig.conn().dropped_datagrams().unsent > before);
    assert_eq!(rig.conn().path_statistics(now, PathId(0)).unwrap().max_datagram_bytes, 1200);
    assert!(queued(&mut rig) < 1_000, "{}", queued(&mut rig));
    // The peer is back: nothing stands in the way.
    rig.deaf = false;
    let id = rig.conn().streams().open(plait_base::Dir::Uni).unwrap();
    rig.conn().send_stream(id).write(&[1; 3_000]).unwrap();
    let seen = rig.seen.len();
    for _ in 0..10 {
        rig.pass(ms(5_000));
        rig.ack_all();
    }
    let fresh = |f: &Frame<'_>| matches!(f, Frame::Stream(f) if f.id == id);
    assert!(rig.seen[seen..].iter().any(|s| s.has(fresh)));
}

#[test]
fn queued_datagrams_obey_the_parameters_that_follow_rejected_early_data() {
    // RFC 9221 3: no DATAGRAM frame to a peer that did not announce any
    let mut second = forgotten_session();
    second.habits.params.max_datagram_frame_bytes = 0;
    let mut rig = Rig::client(second);
    assert!(rig.conn().session().has_0rtt());
    rig.conn().datagrams().send(Bytes::new(), Overflow::Refuse).unwrap();
    for _ in 0..40 {
        rig.conn().datagrams().send(Bytes::from(vec![7; 1000]), Overflow::Refuse).unwrap();
        rig.conn().datagrams().send(Bytes::new(), Overflow::Refuse).unwrap();
    }
    rig.pump();
    assert!(queued(&mut rig) > 10_000, "more than the first window waits");
    rig.shake_hands();
    rig.pass(ms(200));
    assert_eq!(rig.conn().session().accepted_0rtt(), Some(false));
    assert_eq!(rig.count(|f| matches!(f, Frame::Datagram(_))), 0);
    assert!(queued(&mut rig) < 100);
    assert!(rig.is_open());
}
