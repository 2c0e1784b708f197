//! Datagrams that prove too large: what the system refuses, and what is then sent instead (RFC 8899, RFC 9000 14).

use plait_base::{Dir, PathId};
use plait_engine::connection::PathStatistics;
use plait_engine::stream::Overflow;
use plait_wire::Frame;

use crate::puppet::{Rig, Seen, Setup, ms};

/// A server whose first datagrams are of 1400 bytes.
fn large_from_the_start() -> Rig {
    let mut setup = Setup::default();
    setup.transport.initial_mtu(1400);
    Rig::established_server(setup)
}

fn figures(rig: &mut Rig) -> PathStatistics {
    let now = rig.now;
    rig.conn().path_statistics(now, PathId(0)).unwrap()
}

fn write(rig: &mut Rig, bytes: usize) {
    let id = rig.conn().streams().open(Dir::Uni).unwrap();
    assert_eq!(rig.conn().send_stream(id).write(&vec![3; bytes]).unwrap(), bytes);
    rig.pump();
}

#[test]
fn what_the_system_refuses_as_too_large_leaves_again_at_once_in_smaller_datagrams() {
    let mut rig = large_from_the_start();
    let before = figures(&mut rig);
    assert_eq!(before.max_datagram_bytes, 1400);
    // The interface takes 1312 bytes: nothing of this leaves the machine.
    rig.deaf = true;
    let wire = rig.wire.len();
    write(&mut rig, 10_000);
    let refused = rig.wire.split_off(wire).into_iter().find(|(_, _, d)| d.len() > 1312).expect("a full datagram");
    rig.deaf = false;
    let (now, seen) = (rig.now, rig.seen.len());
    rig.conn().on_too_large(now, refused.0, refused.2.len());
    rig.pump();
    let large: Vec<usize> = rig.wire[wire..].iter().map(|(_, _, d)| d.len()).filter(|len| *len > 1200).collect();
    assert!(large.len() <= 1 && large.iter().all(|len| *len < 1400), "no more than a probe of less: {large:?}");
    let stream = |f: &Frame<'_>| if let Frame::Stream(s) = f { s.data.len() } else { 0 };
    let resent: usize = rig.seen[seen..].iter().map(|s| s.frames().iter().map(stream).sum::<usize>()).sum();
    assert!(resent >= 9_000, "{resent} bytes again, without a time-out");
    let after = figures(&mut rig);
    assert_eq!((after.max_datagram_bytes, after.packets_lost), (1200, 0));
    assert!(after.cwnd_bytes >= 10 * 1200, "no sign of congestion: {}", after.cwnd_bytes);
    // The search goes on below what was refused.
    for _ in 0..30 {
        write(&mut rig, 3_000);
        rig.pass(ms(20));
        rig.ack_all();
    }
    let found = figures(&mut rig);
    assert!(found.max_datagram_bytes > 1370 && found.max_datagram_bytes < 1400, "{}", found.max_datagram_bytes);
    assert!(found.packets_lost <= 1, "the small end of what nobody heard: {}", found.packets_lost);
}

#[test]
fn refusals_of_other_routes_and_of_the_smallest_size_change_nothing() {
    let mut rig = large_from_the_start();
    let tuple = rig.tuple;
    write(&mut rig, 5_000);
    let before = figures(&mut rig);
    let elsewhere = plait_base::FourTuple { remote: "192.0.2.77:1".parse().unwrap(), ..tuple };
    let now = rig.now;
    rig.conn().on_too_large(now, elsewhere, 1400);
    rig.conn().on_too_large(now, tuple, 1200);
    rig.conn().on_too_large(now, tuple, 0);
    assert_eq!(figures(&mut rig), before);
    // A size that the system cannot even name in a header counts as the largest.
    rig.conn().on_too_large(now, tuple, 1 << 20);
    assert_eq!(figures(&mut rig).max_datagram_bytes, 1400);
}

#[test]
fn a_first_size_that_never_passes_gives_way_after_one_time_out() {
    let mut rig = large_from_the_start();
    rig.ack_all();
    rig.deaf = true;
    write(&mut rig, 10_000);
    rig.pass(ms(3_000));
    assert_eq!(figures(&mut rig).max_datagram_bytes, 1200);
    rig.deaf = false;
    let wire = rig.wire.len();
    for _ in 0..10 {
        rig.pass(ms(1_000));
        rig.ack_all();
    }
    // Data of 73 cipher blocks, behind a packet number of one byte or two.
    assert!(rig.wire[wire..].iter().any(|(_, _, d)| matches!(d.len(), 1194 | 1195)));
    assert!(rig.is_open());
}

#[test]
fn full_packets_of_stream_data_are_whole_cipher_blocks() {
    for mtu in [1200, 1350, 1443, 1452, 1472] {
        let mut setup = Setup::default();
        setup.transport.initial_mtu(mtu).mtu_discovery_config(None);
        let mut rig = Rig::established_server(setup);
        rig.ack_all();
        write(&mut rig, 200_000);
        for _ in 0..60 {
            rig.pass(ms(5));
            rig.ack_all();
        }
        let bulk = |s: &&Seen| s.has(|f| matches!(f, Frame::Stream(_))) && s.datagram + 16 > usize::from(mtu);
        let sizes: Vec<usize> = rig.seen.iter().filter(bulk).map(|s| s.payload.len()).collect();
        assert!(sizes.len() > 100, "{} of {mtu} bytes", sizes.len());
        // Within a train all datagrams have one size, while the packet number may need a byte more.
        let whole = sizes.iter().filter(|bytes| **bytes % 16 == 0).count();
        assert!(whole * 10 > sizes.len() * 9, "{whole} of {} of {mtu} bytes", sizes.len());
    }
}

#[test]
fn datagrams_of_the_application_have_all_of_the_room() {
    let mut setup = Setup::default();
    setup.transport.initial_mtu(1443).mtu_discovery_config(None);
    let mut rig = Rig::established_server(setup);
    rig.ack_all();
    let most = rig.conn().datagrams().max_size().expect("the peer takes datagrams");
    write(&mut rig, 20_000);
    rig.conn().datagrams().send(vec![7; most].into(), Overflow::Refuse).unwrap();
    write(&mut rig, 20_000);
    (0..20).for_each(|_| rig.ack_all());
    assert_eq!(rig.count(|f| matches!(f, Frame::Datagram(d) if d.data.len() == most)), 1);
}
