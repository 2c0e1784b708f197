//! Acknowledgements, losses, windows and pace.

use std::sync::Arc;
use std::time::Duration;

use plait_base::{Dir, PathId, RangeSet};
use plait_congestion::ControllerFactory;
use plait_engine::TransportConfig;
use plait_wire::Frame;
use plait_wire::frame::{AckForm, OutAck};

use super::{announced, single, with};
use crate::ack_frequency::{asked, asking};
use crate::puppet::{Rig, Setup, ms};

const RTT: Duration = ms(100);

/// A server with an RTT of 100 ms.
pub fn with_rtt(setup: Setup) -> Rig {
    let mut rig = Rig::established_server(setup);
    for _ in 0..20 {
        rig.frames([0x01]);
        rig.conn().streams().open(Dir::Uni).map(|id| rig.conn().send_stream(id).reset(1));
        rig.pump();
        rig.pass(RTT);
        rig.ack_all();
    }
    rig
}

fn lost(rig: &mut Rig) -> u64 {
    let now = rig.now;
    rig.conn().path_statistics(now, PathId(0)).unwrap().packets_lost
}

/// Sends `count` packets and acknowledges the last of them alone.
fn gap(rig: &mut Rig, count: usize) {
    let id = rig.conn().streams().open(Dir::Uni).unwrap();
    let from = rig.seen.len();
    for _ in 0..count {
        rig.conn().send_stream(id).write(&[1; 100]).unwrap();
        rig.pump();
    }
    assert_eq!(rig.seen.len() - from, count);
    let last = rig.seen.last().unwrap().number;
    let mut ranges = RangeSet::new();
    ranges.insert_one(last);
    let mut ack = Vec::new();
    OutAck { form: AckForm::Plain, path: PathId(0), ranges: &ranges, delay: 0, ecn: None }.encode(1_000, &mut ack);
    rig.pass(RTT);
    rig.frames(ack);
}

#[test]
fn initial_rtt() {
    // The first probe leaves after three of them: smoothed RTT and four times half of it.
    for rtt in [ms(100), ms(400)] {
        let mut rig = Rig::client(with(|t| _ = t.initial_rtt(rtt)));
        rig.deaf = true;
        let sent = rig.wire.len();
        rig.pass(rtt * 3 - ms(2));
        assert_eq!(rig.wire.len(), sent);
        rig.pass(ms(4));
        assert!(rig.wire.len() > sent);
    }
}

#[test]
fn packet_threshold() {
    // A time threshold of eight RTTs leaves the verdict to the numbers.
    for (threshold, expected) in [(3, 3), (5, 1), (20, 0)] {
        let mut rig = with_rtt(single(|t| _ = t.packet_threshold(threshold).time_threshold(8.0)));
        let before = lost(&mut rig);
        gap(&mut rig, 6);
        assert_eq!(lost(&mut rig) - before, expected, "{threshold}");
    }
}

#[test]
fn time_threshold() {
    for (factor, is_lost) in [(1.125, true), (4.0, false)] {
        let mut rig = with_rtt(single(|t| _ = t.packet_threshold(1_000).time_threshold(factor)));
        let before = lost(&mut rig);
        gap(&mut rig, 3);
        rig.pass(RTT / 2);
        assert_eq!(lost(&mut rig) > before, is_lost, "{factor}");
    }
}

/// Datagrams that leave at once after a pause, on a path whose window has room for more than thirty.
fn at_once(setup: Setup) -> usize {
    let mut rig = with_rtt(setup);
    let id = rig.conn().streams().open(Dir::Uni).unwrap();
    // A few windows make it large; then a pause, and one burst.
    rig.conn().send_stream(id).write(&[1; 100_000]).unwrap();
    for _ in 0..40 {
        rig.pass(RTT / 10);
        rig.ack_all();
    }
    let from = rig.wire.len();
    rig.conn().send_stream(id).write(&[1; 60_000]).unwrap();
    rig.pump();
    rig.wire.len() - from
}

#[test]
fn pacing() {
    let [paced, unpaced] = [true, false].map(|on| at_once(single(|t| _ = t.pacing(on))));
    assert!(paced <= 12 && unpaced >= 30, "{paced} {unpaced}");
}

#[test]
fn max_burst_bytes() {
    let [usual, three] = [None, Some(4_000)].map(|bytes| at_once(single(|t| _ = t.max_burst_bytes(bytes))));
    assert!(usual > 3 && (1..=3).contains(&three), "{usual} {three}");
    // Less than a datagram lets one leave, and without pacing it has no effect.
    assert_eq!(at_once(single(|t| _ = t.max_burst_bytes(Some(0)))), 1);
    assert!(at_once(single(|t| _ = t.max_burst_bytes(Some(4_000)).pacing(false))) >= 30);
}

#[test]
fn max_ack_delay() {
    assert_eq!(announced(|t| _ = t.max_ack_delay(ms(80))).acks.max_delay_ms, 80);
    let mut rig = Rig::established_server(with(|t| _ = t.max_ack_delay(ms(80))));
    // The first packets of a path are acknowledged at once.
    for _ in 0..200 {
        rig.frames([0x01]);
    }
    rig.pass(ms(1_000));
    let acks = |rig: &Rig| rig.count(|f| matches!(f, Frame::Ack(_)));
    let before = acks(&rig);
    rig.frames([0x01]);
    rig.pass(ms(78));
    assert_eq!(acks(&rig), before);
    rig.pass(ms(4));
    assert!(acks(&rig) > before);
}

#[test]
fn ack_delay_exponent() {
    assert_eq!(announced(|t| _ = t.ack_delay_exponent(9)).acks.delay_exponent, 9);
    for exponent in [0, 9] {
        let mut rig = Rig::established_server(with(|t| _ = t.ack_delay_exponent(exponent)));
        (0..200).for_each(|_| rig.frames([0x01]));
        rig.pass(ms(1_000));
        rig.seen.clear();
        rig.frames([0x01]);
        rig.pass(ms(50));
        let delay = |f: &Frame<'_>| if let Frame::Ack(a) = f { Some(a.delay << exponent) } else { None };
        let delays: Vec<u64> =
            rig.seen.iter().flat_map(|s| s.frames().iter().filter_map(delay).collect::<Vec<_>>()).collect();
        assert!(delays.iter().any(|us| (24_000..26_000).contains(us)), "{delays:?}");
    }
}

#[test]
fn ack_eliciting_threshold() {
    for threshold in [2, 10] {
        let mut rig = Rig::established_server(with(|t| _ = t.ack_eliciting_threshold(threshold)));
        (0..200).for_each(|_| rig.frames([0x01]));
        rig.pass(ms(1_000));
        let acks = |rig: &Rig| rig.count(|f| matches!(f, Frame::Ack(_)));
        let before = acks(&rig);
        (1..threshold).for_each(|_| rig.frames([0x01]));
        assert_eq!(acks(&rig), before, "{threshold}");
        rig.frames([0x01]);
        assert_eq!(acks(&rig), before + 1, "{threshold}");
    }
}

/// The window after a loss of one packet, over the one before.
fn cut(setup: Setup) -> f64 {
    let mut rig = with_rtt(setup);
    let window = |rig: &mut Rig| {
        let now = rig.now;
        rig.conn().path_statistics(now, PathId(0)).unwrap().cwnd_bytes
    };
    let id = rig.conn().streams().open(Dir::Uni).unwrap();
    rig.conn().send_stream(id).write(&[1; 200_000]).unwrap();
    for _ in 0..30 {
        rig.pass(RTT / 10);
        rig.ack_all();
    }
    let before = window(&mut rig);
    gap(&mut rig, 6);
    window(&mut rig) as f64 / before as f64
}

fn named(name: &str) -> Arc<dyn ControllerFactory> {
    plait_congestion::by_name(name).unwrap()
}

#[test]
fn congestion_controller_factory() {
    // CUBIC keeps seven tenths of the window, NewReno half of it.
    let kept = |name: &str| cut(single(|t: &mut TransportConfig| _ = t.congestion_controller_factory(named(name))));
    let (reno, cubic) = (kept("newreno"), kept("cubic"));
    assert!((0.45..0.55).contains(&reno) && (0.65..0.75).contains(&cubic), "{reno} {cubic}");
}

#[test]
fn multipath_controller() {
    let kept = |multipath: Option<&str>, other: &str| {
        cut(with(|t: &mut TransportConfig| {
            t.congestion_controller_factory(named(other)).multipath_controller(multipath.map(named));
        }))
    };
    let named = [kept(Some("newreno"), "cubic"), kept(Some("cubic"), "newreno")];
    assert!((0.45..0.55).contains(&named[0]) && (0.65..0.75).contains(&named[1]), "{named:?}");
    let none = kept(None, "newreno");
    assert!((0.45..0.55).contains(&none), "{none}");
}

#[test]
fn ack_frequency_config() {
    let rig = Rig::established_server(asking(Some(1_000), |_| ()));
    assert!(!asked(&rig).is_empty());
    let mut setup = asking(Some(1_000), |_| ());
    setup.transport.ack_frequency_config(None);
    assert_eq!(asked(&Rig::established_server(setup)), []);
}

#[test]
fn reordering_threshold() {
    let most = (1 << 62) - 1;
    for (set, sent) in [(Some(0), 0), (Some(9), 9), (Some(u64::MAX), most), (None, 3)] {
        let rig = Rig::established_server(asking(Some(1_000), |config| _ = config.reordering_threshold(set)));
        assert!(asked(&rig).iter().all(|frame| frame.3 == sent), "{set:?}: {:?}", asked(&rig));
    }
}
