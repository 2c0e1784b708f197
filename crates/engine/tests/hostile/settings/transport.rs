//! Timers and habits on the wire.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use plait_base::observe::{Observer, ObserverFactory, TraceEvent};
use plait_base::{Dir, Instant, Space};
use plait_engine::More;
use plait_wire::params::GreaseQuicBit;
use plait_wire::{Frame, PacketKind};

use super::{announced, announced_by, with};
use crate::puppet::{Packet, Rig, ms};

#[test]
fn max_idle_timeout() {
    let wanted = Some(Duration::from_millis(12_345));
    assert_eq!(announced(|t| _ = t.max_idle_timeout(wanted)).max_idle_timeout_ms, 12_345);
    assert_eq!(announced(|t| _ = t.max_idle_timeout(None)).max_idle_timeout_ms, 0);
    let mut rig = Rig::established_server(with(|t| _ = t.max_idle_timeout(wanted)));
    rig.pass(ms(12_000));
    assert!(rig.is_open());
    rig.pass(ms(1_000));
    assert!(!rig.is_open());
}

#[test]
fn handshake_timeout() {
    for timeout in [ms(2_000), ms(6_000)] {
        let mut rig = Rig::client(with(|t| _ = t.handshake_timeout(Some(timeout))));
        rig.deaf = true;
        rig.pass(timeout - ms(10));
        assert!(rig.is_open());
        rig.pass(ms(20));
        assert!(!rig.is_open());
    }
}

#[test]
fn keep_alive_interval() {
    for (interval, expected) in [(None, 0), (Some(ms(2_000)), 1)] {
        let mut rig = Rig::established_server(with(|t| _ = t.keep_alive_interval(interval)));
        rig.pass(ms(500));
        rig.ack_all();
        rig.pass(ms(500));
        rig.seen.clear();
        rig.pass(ms(1_600));
        let pings = rig.count(|f| matches!(f, Frame::Ping));
        assert_eq!(pings.min(1), expected, "{pings}");
    }
}

#[test]
fn key_update_interval() {
    for (interval, updates) in [(None, false), (Some(ms(4_000)), true)] {
        let mut rig = Rig::established_server(with(|t| _ = t.key_update_interval(interval)));
        for _ in 0..20 {
            rig.frames([0x01]);
            rig.pass(ms(500));
            rig.ack_all();
        }
        let flipped = rig.seen.iter().any(|s| s.kind == PacketKind::OneRtt && s.first & 0x04 != 0);
        assert_eq!((flipped, rig.conn().session().key_phase() > 0), (updates, updates));
    }
}

#[test]
fn keys_are_updated_by_an_end_that_always_has_more_to_send() {
    // RFC 9001 6.6-3: it may not wait until nothing can leave
    let mut rig = Rig::established_server(with(|t| _ = t.key_update_interval(Some(ms(1_000)))));
    rig.frames([0x01]);
    rig.pass(ms(500));
    rig.ack_all();
    assert_eq!(rig.conn().session().key_phase(), 0);
    let now = rig.now + ms(1_000);
    let stream = rig.conn().streams().open(Dir::Uni).expect("a stream");
    rig.conn().send_stream(stream).write(&[7; 9_000]).expect("room");
    let mut buf = Vec::new();
    let first = rig.conn().poll_transmit(now, 1, &mut buf).expect("a packet");
    assert_eq!((first.more, rig.conn().session().key_phase()), (More::Possible, 1));
}

#[test]
fn ecn() {
    for (on, marked) in [(true, true), (false, false)] {
        let rig = Rig::established_server(with(|t| _ = t.ecn(on)));
        assert_eq!(rig.wire.iter().any(|(_, mark, _)| mark.is_some()), marked);
    }
}

#[test]
fn allow_spin() {
    // RFC 9000 17.4-2
    for (on, spinning) in [(true, 5..21), (false, 0..1)] {
        let follows = |seed| {
            let mut setup = with(|t| _ = t.allow_spin(on));
            setup.seed = seed;
            let mut rig = Rig::established_server(setup);
            [1u8, 0, 1, 0, 1].iter().all(|spin| {
                let mut packet = Packet::one_rtt([0x01]);
                packet.first_bits = spin << 5;
                let from = rig.seen.len();
                rig.send(packet);
                rig.pass(ms(30));
                rig.seen[from..].iter().all(|s| s.first >> 5 & 1 == *spin)
            })
        };
        let following = (0..20).filter(|seed| follows(*seed)).count();
        assert!(spinning.contains(&following), "{on}: {following} of 20");
    }
}

#[test]
fn grease_quic_bit() {
    for (on, rule) in [(true, GreaseQuicBit::Supported), (false, GreaseQuicBit::Unsupported)] {
        let mut setup = with(|t| _ = t.grease_quic_bit(on));
        setup.endpoint_change = |e| _ = e.grease_quic_bit(true);
        assert_eq!(announced_by(setup).fixed_bit, rule);
        // The peer allows it: we make use of it where it is switched on.
        let mut setup = with(|t| _ = t.grease_quic_bit(on));
        setup.habits.params.fixed_bit = GreaseQuicBit::Supported;
        let mut rig = Rig::established_server(setup);
        for _ in 0..40 {
            rig.frames([0x01]);
            rig.pass(ms(30));
        }
        assert_eq!(rig.wire.iter().any(|(_, _, d)| d[0] & 0x40 == 0), on);
    }
}

#[test]
fn enable_segmentation_offload() {
    for on in [true, false] {
        let mut rig = Rig::established_server(with(|t| _ = t.enable_segmentation_offload(on)));
        let id = rig.conn().streams().open(Dir::Uni).unwrap();
        rig.conn().send_stream(id).write(&[1; 9_000]).unwrap();
        let (now, mut buf) = (rig.now, Vec::new());
        let transmit = rig.conn().poll_transmit(now, 10, &mut buf).unwrap();
        assert_eq!((transmit.segment_size.is_some(), transmit.size > 1_500), (on, on), "{transmit:?}");
    }
}

#[derive(Debug, Default)]
struct Counting(AtomicUsize);

#[derive(Debug)]
struct Counter(Arc<Counting>);

struct Watcher(Arc<Counting>);

impl ObserverFactory for Counter {
    fn observer(&self) -> Box<dyn Observer> {
        Box::new(Watcher(self.0.clone()))
    }
}

impl Observer for Watcher {
    fn on_event(&mut self, _now: Instant, event: &TraceEvent) {
        if matches!(event, TraceEvent::PacketReceived { space: Space::Data, .. }) {
            self.0.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[test]
fn observer_factory() {
    let counting = Arc::new(Counting::default());
    let factory: Arc<dyn ObserverFactory> = Arc::new(Counter(counting.clone()));
    let mut rig = Rig::established_server(with(|t| _ = t.observer_factory(Some(factory))));
    let before = counting.0.load(Ordering::Relaxed);
    (0..5).for_each(|_| rig.frames([0x01]));
    assert_eq!(counting.0.load(Ordering::Relaxed), before + 5);
}
