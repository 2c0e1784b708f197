//! Delays of two paths as numbers.

use std::time::Duration;

use super::*;
use crate::facts::{acked, metrics, shared};

const RTT: Duration = Duration::from_millis(100);

fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

fn ack(sent_ms: u64, rtt_ms: u64) -> Acked {
    let mut ack = acked(1000);
    (ack.sent_at, ack.now) = (at(sent_ms), at(sent_ms + rtt_ms));
    ack.rtt = rtt(rtt_ms);
    ack
}

fn rtt(ms: u64) -> RttSample {
    RttSample {
        latest: Duration::from_millis(ms),
        smoothed: RTT,
        min: Duration::from_millis(50),
        ..RttSample::default()
    }
}

/// What path 1 posts: a cut, if any, and samples.
fn posted(cut: Option<Cut>, delays: Delays) -> PathMetrics {
    PathMetrics { cut, delays, shares_with: PathId(0).bit(), ..metrics(1, 50_000, 100) }
}

/// The sibling's cut, of which it felt so many ms.
fn cut(serial: u32, at_ms: u64, fall_ms: Option<f64>) -> SharedPathMetrics {
    let cut = Cut { serial, at: at(at_ms), rtt: RTT, fall_s: fall_ms.map(|ms| ms / 1e3) };
    shared(&[posted(Some(cut), Delays::default())])
}

/// A cut of the sibling at `at_ms` that it felt by 30 ms and this path by `felt_ms`; whether this path follows.
fn one_test(queue: &mut SharedQueue, serial: u32, at_ms: u64, felt_ms: u64) -> bool {
    let shared = cut(serial, at_ms, None);
    for sent in (at_ms..at_ms + 210).step_by(10) {
        queue.on_acked(&ack(sent, 100 - felt_ms), &shared);
    }
    queue.on_acked(&ack(at_ms + 250, 100), &cut(serial, at_ms, Some(30.0)))
}

fn is_shared(queue: &SharedQueue) -> bool {
    queue.is_shared(&posted(None, Delays::default()))
}

/// Two paths for so many round trips of ten samples each: delays in ms at each sample, those of the sibling beside them.
fn run(queue: &mut SharedQueue, rounds: u64, delays: impl Fn(u64) -> [u64; 2]) {
    let mut theirs = Delays::default();
    for i in 0..rounds * 10 {
        let [own, other] = delays(i);
        theirs.note(at(i * 10), Duration::from_millis(other));
        let ack = Acked { now: at(i * 10), sent_at: at(i * 10), rtt: rtt(own), ..acked(1000) };
        queue.on_acked(&ack, &shared(&[posted(None, theirs)]));
    }
}

#[test]
fn a_path_that_was_not_met_is_a_stranger() {
    assert!(!is_shared(&SharedQueue::new(PathId::ZERO)));
}

#[test]
fn paths_are_together_until_a_cut_shows_that_they_are_not() {
    let mut queue = SharedQueue::new(PathId::ZERO);
    assert!(one_test(&mut queue, 1, 1000, 30), "felt, so it is followed");
    assert!(is_shared(&queue));
    assert!(!one_test(&mut queue, 2, 2000, 0), "not felt");
    assert!(!is_shared(&queue));
    // After a change of route they are together: some cuts show it.
    (3..40).for_each(|n| _ = one_test(&mut queue, n, u64::from(n) * 1000, 29));
    assert!(is_shared(&queue));
}

#[test]
fn both_have_to_think_so() {
    let mut queue = SharedQueue::new(PathId::ZERO);
    one_test(&mut queue, 1, 1000, 30);
    assert!(!queue.is_shared(&PathMetrics { shares_with: 0, ..posted(None, Delays::default()) }));
    let mut metrics = PathMetrics::new(PathId::ZERO);
    queue.post(&mut metrics);
    assert_eq!(metrics.shares_with, PathId(1).bit());
}

#[test]
fn a_delay_that_stays_or_falls_much_deeper_is_another_queue() {
    for felt in [0, 3, 60, 90] {
        let mut queue = SharedQueue::new(PathId::ZERO);
        let followed = (1..20).filter(|n| one_test(&mut queue, *n, u64::from(*n) * 1000, felt)).count();
        assert!(!is_shared(&queue) && followed <= 3, "{felt}: {followed}");
    }
}

#[test]
fn delays_that_move_together_are_one_queue_though_both_cut_at_once() {
    let mut queue = SharedQueue::new(PathId::ZERO);
    let wave = |i: u64| 50 + i % 150;
    run(&mut queue, 200, |i| [wave(i), wave(i)]);
    assert!(is_shared(&queue));
    // The same waves, but one comes later.
    let mut queue = SharedQueue::new(PathId::ZERO);
    run(&mut queue, 200, |i| [wave(i), wave(i + 70)]);
    assert!(!is_shared(&queue));
}

#[test]
fn jitter_hides_nothing_but_what_is_as_small() {
    let noise = |i: u64| i.wrapping_mul(2_654_435_761) % 1013 % 5;
    let wave = |i: u64| 50 + i % 150 / 8;
    let mut queue = SharedQueue::new(PathId::ZERO);
    run(&mut queue, 400, |i| [wave(i) + noise(i), wave(i) + noise(i + 7777)]);
    assert!(is_shared(&queue));
    let mut queue = SharedQueue::new(PathId::ZERO);
    run(&mut queue, 400, |i| [wave(i) + noise(i), wave(i + 70) + noise(i + 7777)]);
    assert!(!is_shared(&queue));
}

#[test]
fn a_sibling_that_rests_proves_nothing() {
    let mut queue = SharedQueue::new(PathId::ZERO);
    let rests = shared(&[posted(None, Delays::default())]);
    for i in 0..4000 {
        queue.on_acked(&ack(i * 10, 50 + i % 150), &rests);
    }
    assert!(is_shared(&queue));
}

#[test]
fn cuts_at_once_prove_nothing() {
    let mut queue = SharedQueue::new(PathId::ZERO);
    for n in 1..10 {
        queue.on_cut(at(n * 1000 - 50), &rtt(100));
        assert!(!one_test(&mut queue, n as u32, n * 1000, 90));
    }
    assert!(is_shared(&queue));
}

#[test]
fn once_it_is_proven_most_cuts_are_followed_at_once() {
    let mut queue = SharedQueue::new(PathId::ZERO);
    run(&mut queue, 200, |i| [50 + i % 150; 2]);
    // Cut 4 is an experiment, 6 comes within a round trip of this path's own.
    for (serial, followed) in [(3, true), (4, false), (5, true), (6, false)] {
        let ms = 10_000 + u64::from(serial) * 1000;
        if serial == 6 {
            queue.on_cut(at(ms - 50), &rtt(100));
        }
        assert_eq!(queue.on_acked(&ack(ms, 100), &cut(serial, ms, None)), followed, "{serial}");
    }
}

#[test]
fn a_sibling_that_lost_without_a_queue_is_not_followed() {
    let mut queue = SharedQueue::new(PathId::ZERO);
    for n in 1..10 {
        let shared = cut(n, u64::from(n) * 1000, Some(0.5));
        assert!((0..30).all(|i| !queue.on_acked(&ack(u64::from(n) * 1000 + i * 10, 100), &shared)));
    }
}

#[test]
fn a_path_that_loses_without_a_queue_shares_none() {
    let mut queue = SharedQueue::new(PathId::ZERO);
    run(&mut queue, 1, |_| [100, 100]);
    assert!(is_shared(&queue));
    for n in 1..3 {
        let smallest = RttSample { min: RTT, ..rtt(100) };
        queue.on_cut(at(n * 1000), &smallest);
        for sent in (n * 1000..n * 1000 + 300).step_by(10) {
            queue.on_acked(&ack(sent, 100), &SharedPathMetrics::default());
        }
    }
    assert!(!is_shared(&queue));
}

#[test]
fn its_own_fall_is_measured_and_posted() {
    let mut queue = SharedQueue::new(PathId::ZERO);
    queue.on_cut(at(1000), &rtt(100));
    assert_eq!(queue.cut.unwrap().fall_s, None);
    // Packets from before the cut and from long after it do not count.
    (900..1300).step_by(10).for_each(|sent| {
        let rtt = if (1050..=1200).contains(&sent) { 70 } else { 100 };
        queue.on_acked(&ack(sent, rtt), &SharedPathMetrics::default());
    });
    let fall = queue.cut.unwrap().fall_s.unwrap();
    assert!((fall - 0.03).abs() < 1e-9, "{fall}");
}

#[test]
fn memory_is_bounded() {
    let mut queue = SharedQueue::new(PathId::ZERO);
    let many: Vec<_> = (1..40).map(|id| metrics(id, 50_000, 100)).collect();
    queue.on_acked(&ack(1000, 100), &shared(&many));
    assert_eq!(queue.siblings.len(), SIBLINGS_MAX);
}
