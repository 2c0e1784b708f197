//! ACK_FREQUENCY and IMMEDIATE_ACK: what the peer may ask of our acks, and how little it can make of it.

use std::collections::BTreeSet;
use std::time::Duration;

use plait_base::PathId;
use plait_base::units::VARINT_MAX;
use plait_engine::config::{AckFrequencyConfig, MtuDiscoveryConfig};
use plait_wire::Frame;

use crate::puppet::{PUPPET, Packet, Rig, Setup, ms, tuple};
use crate::settings::announced;
use crate::split::attacks::{SECOND, both_lent};
use crate::violations::raw;

const PING: [u8; 1] = [0x01];
const IMMEDIATE_ACK: u8 = 0x1f;

/// ACK_FREQUENCY with this number.
fn asks(sequence: u64, threshold: u64, delay_ms: u64, reordering: u64) -> Vec<u8> {
    raw(&[0xaf, sequence, threshold, delay_ms * 1_000, reordering], &[])
}

fn acks_of(rig: &Rig, path: u32) -> usize {
    rig.count(|f| matches!(f, Frame::Ack(ack) if ack.path == PathId(path)))
}

/// How many acks of the path so many PINGs draw that come together.
fn drawn(rig: &mut Rig, path: u32, remote: &str, pings: usize) -> usize {
    let before = acks_of(rig, path);
    (0..pings).for_each(|_| rig.send_all(tuple(remote), &[Packet::one_rtt(PING).on(path)]));
    acks_of(rig, path) - before
}

/// An established server that owes no ack.
fn quiet() -> Rig {
    let mut rig = Rig::established_server(Setup::default());
    rig.pass(ms(1_000));
    rig
}

#[test]
fn the_peer_chooses_how_many_packets_an_ack_is_for() {
    for (threshold, expected) in [(0, 200), (1, 100), (9, 20), (99, 2), (VARINT_MAX, 0)] {
        let mut rig = quiet();
        rig.frames(asks(0, threshold, 10_000, 1));
        let drawn = drawn(&mut rig, 0, PUPPET, 200);
        assert!(drawn.abs_diff(expected) <= 1, "{threshold}: {drawn}");
        let before = acks_of(&rig, 0);
        rig.pass(ms(11_000));
        assert!(acks_of(&rig, 0) - before <= 1, "{threshold}");
        rig.frames(asks(1, 1, 25, 1));
        rig.assert_answers("ACK_FREQUENCY");
    }
}

#[test]
fn the_peer_chooses_how_long_an_ack_waits() {
    let mut rig = quiet();
    rig.frames(asks(0, 1_000, 200, 1));
    rig.pass(ms(1_000));
    let mut before = acks_of(&rig, 0);
    rig.frames(PING);
    rig.pass(ms(199));
    assert_eq!(acks_of(&rig, 0), before);
    rig.pass(ms(2));
    assert_eq!(acks_of(&rig, 0), before + 1);
    // The bounds of what may be asked: our min_ack_delay, and 2^14 ms.
    for (sequence, delay_us) in [(1, 1_000), (2, 16_383_999)] {
        rig.frames(raw(&[0xaf, sequence, 1_000, delay_us, 1], &[]));
        rig.pass(ms(20_000));
        before = acks_of(&rig, 0);
        rig.frames(PING);
        rig.pass(ms(delay_us / 1_000 - 1));
        assert_eq!(acks_of(&rig, 0), before, "{delay_us}");
        rig.pass(ms(2));
        assert_eq!(acks_of(&rig, 0), before + 1, "{delay_us}");
    }
    assert!(rig.is_open());
}

#[test]
fn only_a_greater_number_counts() {
    let mut rig = quiet();
    rig.frames(asks(5, 9, 10_000, 1));
    for stale in [5, 4, 0] {
        rig.frames(asks(stale, 0, 10_000, 1));
        assert!(drawn(&mut rig, 0, PUPPET, 100) <= 10, "{stale}");
    }
    // All in one packet, in whatever order they are read.
    rig.frames([asks(9, 9, 10_000, 1), asks(8, 0, 10_000, 1)].concat());
    assert!(drawn(&mut rig, 0, PUPPET, 100) <= 10);
    rig.frames(asks(VARINT_MAX, 0, 10_000, 1));
    assert_eq!(drawn(&mut rig, 0, PUPPET, 100), 100);
    assert!(rig.is_open());
}

#[test]
fn every_packet_is_acknowledged_however_rarely_the_peer_wants_to_hear() {
    let mut rig = quiet();
    rig.frames(asks(0, VARINT_MAX, 16_000, 0));
    let (from, first) = (rig.seen.len(), rig.peer.next_number(plait_base::Space::Data, 0));
    // Every second number is missing, so that each packet is a range of its own.
    let numbers: BTreeSet<u64> = (0..3_000).map(|n| first + 2 * n).collect();
    numbers.iter().for_each(|n| rig.send(Packet::one_rtt(PING).numbered(*n)));
    rig.pass(ms(17_000));
    let frames = rig.seen[from..].iter().flat_map(|seen| seen.frames());
    let (mut acked, mut acks) = (BTreeSet::new(), 0);
    for frame in frames {
        if let Frame::Ack(ack) = frame {
            acks += 1;
            assert!(ack.ranges().count() <= plait_base::limits::MAX_ACK_RANGES);
            acked.extend(ack.ranges().flatten());
        }
    }
    assert!(numbers.is_subset(&acked), "{} of {}", numbers.intersection(&acked).count(), numbers.len());
    assert!(acks <= 3_000 / 30, "{acks}");
}

#[test]
fn what_is_asked_holds_on_every_path() {
    // RFC 10069 has one max_ack_delay for all paths
    let mut rig = quiet();
    rig.open_path(1, SECOND, true);
    rig.pass(ms(1_000));
    rig.ack_all();
    drawn(&mut rig, 1, SECOND, 20);
    assert!(drawn(&mut rig, 1, SECOND, 100) >= 45);
    rig.frames(asks(0, 24, 10_000, 1));
    assert!(drawn(&mut rig, 1, SECOND, 100) <= 5);
    // And on those that open later, once their first acks have given RTT samples.
    let third = "192.0.2.3:6000";
    rig.open_path(2, third, true);
    rig.pass(ms(1_000));
    rig.ack_all();
    drawn(&mut rig, 2, third, 20);
    assert!(drawn(&mut rig, 2, third, 100) <= 5);
}

#[test]
fn what_is_asked_holds_on_lent_paths() {
    let mut lent = both_lent(Setup::default());
    let acks = |lent: &crate::split::rig::LentRig, path| acks_of(&lent.rig, path);
    let returns = lent.returns.len();
    for (sequence, threshold, bounds) in [(0, 24, 0..=5), (1, 0, 90..=100)] {
        lent.frames_on(sequence as u32, [PUPPET, SECOND][sequence as usize], asks(sequence, threshold, 10_000, 1));
        for (path, remote) in [(0, PUPPET), (1, SECOND)] {
            (0..20).for_each(|_| lent.frames_on(path, remote, PING));
            let before = acks(&lent, path);
            (0..100).for_each(|_| lent.frames_on(path, remote, PING));
            let drawn = acks(&lent, path) - before;
            assert!(bounds.contains(&drawn), "path {path}, threshold {threshold}: {drawn}");
        }
    }
    // IMMEDIATE_ACK is read where the path is.
    lent.frames_on(0, PUPPET, asks(2, 1_000, 10_000, 1));
    for (path, remote) in [(0, PUPPET), (1, SECOND)] {
        let before = acks(&lent, path);
        lent.frames_on(path, remote, PING);
        assert_eq!(acks(&lent, path), before);
        lent.frames_on(path, remote, [IMMEDIATE_ACK]);
        assert_eq!(acks(&lent, path), before + 1, "path {path}");
    }
    assert_eq!(lent.returns[returns..], [], "none of this is a reason to go back");
}

#[test]
fn an_ack_that_is_asked_for_leaves_at_once() {
    let mut rig = quiet();
    rig.frames([IMMEDIATE_ACK]);
    let before = acks_of(&rig, 0);
    rig.frames([IMMEDIATE_ACK]);
    assert_eq!(acks_of(&rig, 0), before + 1, "also without ACK_FREQUENCY");
    rig.frames(asks(0, VARINT_MAX, 16_000, 0));
    assert_eq!(drawn(&mut rig, 0, PUPPET, 50), 0);
    rig.frames([IMMEDIATE_ACK]);
    assert_eq!(acks_of(&rig, 0), before + 2);
}

#[test]
fn floods_of_both_draw_an_ack_a_packet_at_most() {
    let mut rig = quiet();
    let before = (rig.wire.len(), acks_of(&rig, 0));
    (0..500).for_each(|_| rig.frames([IMMEDIATE_ACK; 1_000]));
    let mut sequence = 0;
    for _ in 0..500 {
        let mut payload = Vec::new();
        while payload.len() < 1_100 {
            payload.extend(asks(sequence, sequence % 3, 1 + sequence % 16_000, sequence % 5));
            payload.push(IMMEDIATE_ACK);
            sequence += 1;
        }
        rig.frames(payload);
    }
    assert!(acks_of(&rig, 0) - before.1 <= 1_000 && rig.wire.len() - before.0 <= 1_000);
    assert!(rig.is_open());
    rig.frames(asks(VARINT_MAX, 9, 10_000, 1));
    assert!(drawn(&mut rig, 0, PUPPET, 100) <= 10, "the newest counts");
}

#[test]
fn we_announce_what_our_timers_keep_to() {
    let acks = |delay| {
        let acks = announced(|t| _ = t.max_ack_delay(delay)).acks;
        (acks.min_delay_us, acks.max_delay_ms)
    };
    assert_eq!(acks(ms(25)), (Some(1_000), 25));
    // It must not be above max_ack_delay.
    assert_eq!(acks(Duration::from_micros(10)), (Some(1_000), 1));
}

/// An engine that asks for an ack of 25 packets, and a puppet that lets it where `min_delay_us` says so.
pub fn asking(min_delay_us: Option<u64>, change: impl FnOnce(&mut AckFrequencyConfig)) -> Setup {
    let mut setup = Setup::default();
    let mut config = AckFrequencyConfig::default();
    config.ack_eliciting_threshold(Some(24));
    change(&mut config);
    setup.transport.ack_frequency_config(Some(config)).mtu_discovery_config(Some(MtuDiscoveryConfig::default()));
    setup.habits.params.acks.min_delay_us = min_delay_us;
    setup
}

/// What the engine asked for: sequence, packets, delay in microseconds, reordering.
pub fn asked(rig: &Rig) -> Vec<(u64, u64, u64, u64)> {
    let frames = rig.seen.iter().flat_map(|seen| seen.frames());
    let asked = |f: Frame<'_>| match f {
        Frame::AckFrequency(f) => {
            Some((f.sequence, f.ack_eliciting_threshold, f.max_ack_delay_us, f.reordering_threshold))
        }
        _ => None,
    };
    frames.filter_map(asked).collect()
}

fn immediate_acks(rig: &Rig) -> usize {
    rig.count(|f| matches!(f, Frame::ImmediateAck))
}

#[test]
fn we_ask_where_both_wish_it() {
    // No round trip takes less than the 5 ms that the puppet takes in the handshake; the first window is ten packets.
    let stated = |config: &mut AckFrequencyConfig| {
        config.ack_eliciting_threshold(Some(1)).max_ack_delay(Some(ms(7))).reordering_threshold(Some(0));
    };
    for server in [true, false] {
        let establish = |setup| if server { Rig::established_server(setup) } else { Rig::established_client(setup) };
        let [first] = asked(&establish(asking(Some(1_000), stated)))[..] else { panic!("not once") };
        assert_eq!(first, (0, 1, 7_000, 0));
        let usual = asked(&establish(asking(Some(1_000), |_| ())));
        assert!(matches!(usual[..], [(0, 1..=24, 1_000..=25_000, 3), ..]), "{usual:?}");
        // The peer's min_ack_delay is the least.
        let [slow] = asked(&establish(asking(Some(20_000), stated)))[..] else { panic!("not once") };
        assert_eq!(slow, (0, 1, 20_000, 0));
        let nobody = establish(asking(None, stated));
        assert_eq!((asked(&nobody), immediate_acks(&nobody)), (vec![], 0), "the peer did not announce it");
        let mut unasked = asking(Some(1_000), stated);
        unasked.transport.ack_frequency_config(None);
        assert_eq!(asked(&establish(unasked)), [], "nobody set it");
    }
}

#[test]
fn what_we_ask_is_asked_again_until_it_arrives() {
    let mut rig = Rig::established_server(asking(Some(1_000), |config| {
        config.max_ack_delay(Some(ms(7)));
    }));
    rig.pass(ms(1_000));
    rig.ack_all();
    let before = asked(&rig).len();
    // The window grows, which calls for another frame; it is lost, and acks of later packets show it.
    rig.deaf = true;
    for round in 0..40 {
        let id = rig.conn().streams().open(plait_base::Dir::Uni).unwrap();
        rig.conn().send_stream(id).write(&[1; 12_000]).unwrap();
        rig.pump();
        rig.pass(ms(20));
        rig.deaf = round < 1;
        rig.ack_all();
    }
    let all = asked(&rig);
    assert!(all.len() > before, "{all:?}");
    assert!(all.is_sorted_by(|a, b| a.0 < b.0), "no number twice: {all:?}");
    assert!(rig.is_open());
}

#[test]
fn probes_ask_for_their_ack_at_once_where_acks_are_asked_for() {
    let probes = |setup: Setup| {
        let mut rig = Rig::established_server(setup);
        rig.pass(ms(1_000));
        rig.ack_all();
        // Larger datagrams are tried beside data, and then probe time-outs pass that nobody answers.
        for _ in 0..10 {
            let id = rig.conn().streams().open(plait_base::Dir::Uni).unwrap();
            rig.conn().send_stream(id).write(&[1; 8_000]).unwrap();
            rig.pump();
            rig.pass(ms(5));
            rig.ack_all();
        }
        let id = rig.conn().streams().open(plait_base::Dir::Uni).unwrap();
        rig.conn().send_stream(id).write(&[1; 8_000]).unwrap();
        rig.pump();
        let is_mtu_probe = |s: &&crate::puppet::Seen| {
            s.datagram > 1_200 && !s.has(|f| !matches!(f, Frame::Ping | Frame::ImmediateAck | Frame::Padding(_)))
        };
        let mtu = rig.seen.iter().filter(is_mtu_probe).map(|s| s.has(|f| matches!(f, Frame::ImmediateAck)));
        let mtu: Vec<bool> = mtu.collect();
        let before = immediate_acks(&rig);
        rig.pass(ms(3_000));
        (mtu, immediate_acks(&rig) - before)
    };
    let (mtu, pto) = probes(asking(Some(1_000), |_| ()));
    assert!(!mtu.is_empty() && mtu.iter().all(|has| *has) && pto >= 2, "{mtu:?} {pto}");
    let (mtu, pto) = probes(asking(None, |_| ()));
    assert!(!mtu.is_empty() && !mtu.contains(&true) && pto == 0, "{mtu:?} {pto}");
}

#[test]
fn probe_time_outs_allow_for_the_delay_that_was_asked_for() {
    // ACK_FREQUENCY draft, section 7
    let quiet_for = |delay: u64| {
        let mut rig = Rig::established_server(asking(Some(1_000), |config| {
            config.max_ack_delay(Some(ms(delay)));
        }));
        rig.pass(ms(2_000));
        rig.ack_all();
        rig.pass(ms(10));
        let id = rig.conn().streams().open(plait_base::Dir::Uni).unwrap();
        rig.conn().send_stream(id).write(&[1; 10]).unwrap();
        rig.pump();
        let (from, before) = (rig.now, rig.seen.len());
        while rig.seen.len() == before {
            rig.pass(ms(1));
        }
        rig.now.since(from)
    };
    let (short, usual, long) = (quiet_for(1), quiet_for(25), quiet_for(500));
    assert!(long >= usual + ms(460) && usual >= short + ms(20), "{short:?} {usual:?} {long:?}");
}
