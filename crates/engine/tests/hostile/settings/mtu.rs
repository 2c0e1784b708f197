//! Sizes of datagrams.

use std::time::Duration;

use plait_base::{Dir, PathId};
use plait_engine::TransportConfig;
use plait_engine::config::MtuDiscoveryConfig;
use plait_engine::stream::Overflow;

use super::{announced, single};
use crate::puppet::{Rig, ms};

/// Largest datagram of a server that has much to send, and the MTU that it found.
fn sizes(change: impl FnOnce(&mut TransportConfig), time: Duration) -> (usize, u16) {
    let mut rig = Rig::established_server(single(change));
    let id = rig.conn().streams().open(Dir::Uni).unwrap();
    rig.conn().send_stream(id).write(&[1; 30_000]).unwrap();
    let mut passed = Duration::ZERO;
    while passed < time {
        rig.pass(ms(20));
        rig.ack_all();
        passed += ms(20);
    }
    let now = rig.now;
    let mtu = rig.conn().path_statistics(now, PathId(0)).unwrap().max_datagram_bytes;
    (rig.wire.iter().map(|(_, _, d)| d.len()).max().unwrap(), mtu)
}

fn search(upper: u16) -> MtuDiscoveryConfig {
    let mut config = MtuDiscoveryConfig::default();
    config.upper_bound(upper);
    config
}

#[test]
fn initial_mtu() {
    assert_eq!(sizes(|_| {}, ms(100)), (1_200, 1_200));
    // the data of whole cipher blocks is 12 bytes less
    assert_eq!(sizes(|t| _ = t.initial_mtu(1_350), ms(100)), (1_338, 1_350));
}

#[test]
fn min_mtu() {
    assert_eq!(sizes(|t| _ = t.min_mtu(1_300), ms(100)), (1_290, 1_300));
}

#[test]
fn mtu_discovery_config() {
    assert_eq!(sizes(|t| _ = t.mtu_discovery_config(None), ms(1_000)), (1_200, 1_200));
    let (largest, mtu) = sizes(|t| _ = t.mtu_discovery_config(Some(search(1_452))), ms(1_000));
    assert!(largest > 1_200 && usize::from(mtu) == largest, "{largest} {mtu}");
}

#[test]
fn what_fits_into_two_datagrams_is_no_reason_to_look_for_a_larger_one() {
    for (bytes, largest) in [(2_300, 1_200), (2_500, 1_452)] {
        let mut rig = Rig::established_server(single(|t| _ = t.mtu_discovery_config(Some(search(1_452)))));
        let id = rig.conn().streams().open(Dir::Uni).unwrap();
        for _ in 0..20 {
            rig.conn().send_stream(id).write(&vec![1; bytes]).unwrap();
            rig.pass(ms(20));
            rig.ack_all();
        }
        assert_eq!(rig.wire.iter().map(|(_, _, d)| d.len()).max(), Some(largest), "writes of {bytes} bytes");
    }
}

#[test]
fn small_application_datagrams_are_reason_enough_to_look_for_larger_ones() {
    let mut setup = single(|t| _ = t.mtu_discovery_config(Some(search(1_452))));
    setup.habits.params.max_datagram_frame_bytes = 65_535;
    let mut rig = Rig::established_server(setup);
    // One is under way all the time, so that the path is never idle.
    for _ in 0..3 {
        rig.conn().datagrams().send(vec![7; 100].into(), Overflow::Refuse).unwrap();
        rig.pass(ms(20));
    }
    assert!(large(&rig) > 0);
}

#[test]
fn upper_bound() {
    for upper in [1_280, 1_400] {
        assert_eq!(sizes(|t| _ = t.mtu_discovery_config(Some(search(upper))), ms(1_000)), (upper.into(), upper));
    }
}

/// Acknowledges all but what came in large datagrams, as if these had vanished.
fn answer_small(rig: &mut Rig) {
    let lost: Vec<u64> = rig.seen.iter().filter(|s| s.datagram > 1_200).map(|s| s.number).collect();
    if let Some(received) = rig.peer.received.get_mut(&(plait_base::Space::Data, PathId(0))) {
        lost.iter().for_each(|n| _ = received.remove(*n..*n + 1));
    }
    rig.ack_all();
}

fn large(rig: &Rig) -> usize {
    rig.wire.iter().filter(|(_, _, d)| d.len() > 1_200).count()
}

#[test]
fn black_hole_cooldown() {
    for (cooldown, probes_again) in [(ms(2_000), true), (Duration::from_secs(600), false)] {
        let mut config = search(1_400);
        config.black_hole_cooldown(cooldown);
        let mut rig = Rig::established_server(single(|t| _ = t.mtu_discovery_config(Some(config))));
        let id = rig.conn().streams().open(Dir::Uni).unwrap();
        for _ in 0..5 {
            rig.conn().send_stream(id).write(&[1; 2_500]).unwrap();
            rig.pass(ms(20));
            rig.ack_all();
        }
        let mtu = |rig: &mut Rig| {
            let now = rig.now;
            rig.conn().path_statistics(now, PathId(0)).unwrap().max_datagram_bytes
        };
        assert_eq!(mtu(&mut rig), 1_400);
        // From here on large datagrams vanish, until that is noticed.
        for _ in 0..100 {
            if mtu(&mut rig) == 1_200 {
                break;
            }
            rig.conn().send_stream(id).write(&[1; 2_500]).unwrap();
            rig.pass(ms(100));
            answer_small(&mut rig);
        }
        assert_eq!(mtu(&mut rig), 1_200);
        let before = large(&rig);
        for _ in 0..20 {
            rig.conn().send_stream(id).write(&[1; 2_500]).unwrap();
            rig.pass(ms(400));
            answer_small(&mut rig);
        }
        assert_eq!(large(&rig) > before, probes_again, "{cooldown:?}");
    }
}

#[test]
fn interval() {
    // Large datagrams vanish, so that the search ends below them; the next one begins after the interval.
    for (interval, probes_again) in [(ms(10_000), true), (Duration::from_secs(600), false)] {
        let mut config = search(1_452);
        config.interval(interval);
        let mut rig = Rig::server(single(|t| _ = t.mtu_discovery_config(Some(config))));
        (0..4).for_each(|_| {
            rig.say_handshake();
            rig.pass(ms(5));
        });
        let id = rig.conn().streams().open(Dir::Uni).unwrap();
        let answer = |rig: &mut Rig, rounds: usize| {
            for _ in 0..rounds {
                answer_small(rig);
                rig.conn().send_stream(id).write(&[1; 2_450]).unwrap();
                rig.pass(ms(300));
            }
        };
        answer(&mut rig, 30);
        let first = large(&rig);
        assert!(first > 0);
        answer(&mut rig, 40);
        assert_eq!(large(&rig) > first, probes_again, "{first} {}", large(&rig));
    }
}

#[test]
fn max_udp_payload_size() {
    assert_eq!(announced(|t| _ = t.max_udp_payload_size(1_300)).max_udp_payload_bytes, 1_300);
}
