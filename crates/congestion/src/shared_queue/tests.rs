//! One cut at a time: delays of two paths as numbers.

use super::*;
use crate::facts::{acked, metrics, shared};
use plait_base::shared_metrics::PathMetrics;

const RTT: Duration = Duration::from_millis(100);

fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

fn ack(sent_ms: u64, rtt_ms: u64) -> Acked {
    let mut ack = acked(1000);
    (ack.sent_at, ack.now) = (at(sent_ms), at(sent_ms + rtt_ms));
    (ack.rtt.latest, ack.rtt.smoothed) = (Duration::from_millis(rtt_ms), RTT);
    ack
}

/// The sibling's cut at 1 s, of which it felt so many ms.
fn cut(serial: u32, at_ms: u64, fall_ms: Option<f64>) -> SharedPathMetrics {
    let cut = Cut { serial, at: at(at_ms), rtt: RTT, fall_s: fall_ms.map(|ms| ms / 1e3) };
    shared(&[PathMetrics { cut: Some(cut), ..metrics(1, 50_000, 100) }])
}

/// A cut of the sibling at `at_ms` that it felt by 30 ms and this path by `felt_ms`; whether this path follows.
fn one_test(queue: &mut SharedQueue, serial: u32, at_ms: u64, felt_ms: u64) -> bool {
    let shared = cut(serial, at_ms, None);
    for sent in (at_ms..at_ms + 210).step_by(10) {
        queue.on_acked(&ack(sent, 100 - felt_ms), &shared);
    }
    queue.on_acked(&ack(at_ms + 250, 100), &cut(serial, at_ms, Some(30.0)))
}

#[test]
fn two_falls_alike_are_a_shared_queue() {
    let mut queue = SharedQueue::new(PathId::ZERO);
    let nobody = SharedPathMetrics::default();
    assert!(!one_test(&mut queue, 1, 1000, 30), "one test is no verdict");
    assert!(!queue.is_shared(PathId(1), &nobody));
    assert!(one_test(&mut queue, 2, 2000, 25));
    assert!(queue.is_shared(PathId(1), &nobody) && queue.shares_with() == PathId(1).bit());
    // A cut that was not felt is not followed; some of them, and the paths are apart.
    assert!(!one_test(&mut queue, 3, 3000, 0));
    assert!(queue.is_shared(PathId(1), &nobody));
    (4..7).for_each(|n| assert!(!one_test(&mut queue, n, u64::from(n) * 1000, 0)));
    assert!(!queue.is_shared(PathId(1), &nobody));
}

#[test]
fn a_delay_that_stays_or_falls_much_deeper_is_another_queue() {
    for felt in [0, 3, 60, 90] {
        let mut queue = SharedQueue::new(PathId::ZERO);
        (1..20).for_each(|n| assert!(!one_test(&mut queue, n, u64::from(n) * 1000, felt), "{felt}"));
        assert_eq!(queue.shares_with(), 0, "{felt}");
    }
}

#[test]
fn cuts_at_once_prove_nothing() {
    let mut queue = SharedQueue::new(PathId::ZERO);
    for n in 1..10 {
        queue.on_cut(at(n * 1000 - 50), RTT);
        one_test(&mut queue, n as u32, n * 1000, 30);
    }
    assert_eq!(queue.siblings[0].tests, 0);
}

#[test]
fn a_cut_without_a_fall_proves_nothing() {
    // Random loss on an empty queue.
    let mut queue = SharedQueue::new(PathId::ZERO);
    for n in 1..10 {
        let shared = cut(n, u64::from(n) * 1000, Some(0.5));
        assert!((0..30).all(|i| !queue.on_acked(&ack(u64::from(n) * 1000 + i * 10, 100), &shared)));
    }
    assert_eq!(queue.siblings[0].tests, 0);
}

#[test]
fn its_own_fall_is_measured_and_posted() {
    let mut queue = SharedQueue::new(PathId::ZERO);
    queue.on_cut(at(1000), RTT);
    assert_eq!(queue.cut().unwrap().fall_s, None);
    // Packets from before the cut and from long after it do not count.
    (900..1300).step_by(10).for_each(|sent| {
        let rtt = if (1050..=1200).contains(&sent) { 70 } else { 100 };
        queue.on_acked(&ack(sent, rtt), &SharedPathMetrics::default());
    });
    let fall = queue.cut().unwrap().fall_s.unwrap();
    assert!((fall - 0.03).abs() < 1e-9, "{fall}");
}

#[test]
fn memory_is_bounded() {
    let mut queue = SharedQueue::new(PathId::ZERO);
    let many: Vec<_> = (1..40)
        .map(|id| {
            let cut = Cut { serial: 1, at: at(1000), rtt: RTT, fall_s: None };
            PathMetrics { cut: Some(cut), ..metrics(id, 50_000, 100) }
        })
        .collect();
    queue.on_acked(&ack(1000, 100), &shared(&many));
    assert_eq!(queue.siblings.len(), SIBLINGS_MAX);
}
