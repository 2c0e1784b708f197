//! Auto alone is CUBIC; with a sibling behind the same queue it is half of one.

use super::*;
use crate::facts::{acked, congestion, metrics, shared};
use plait_base::shared_metrics::{Cut, Delays};

fn auto(window: u64) -> Auto {
    let mut auto = Auto::new(PathId::ZERO, 1000, SlowStart::HyStart);
    auto.on_acked(&acked(window - 10_000), &SharedPathMetrics::default());
    auto
}

/// A sibling in use that takes path 0 to be behind its queue.
fn neighbour(window: u64) -> PathMetrics {
    let mut delays = Delays::default();
    delays.note(Instant::from_nanos(1_000_000_000), Duration::from_millis(100));
    let acked_at = Some(Instant::from_nanos(1_000_000_000));
    PathMetrics { shares_with: PathId::ZERO.bit(), delays, acked_at, ..metrics(1, window, 100) }
}

#[test]
fn siblings_that_are_apart_do_not_slow_it_down() {
    let (mut auto, mut cubic) = (auto(100_000), Cubic::new(1000, SlowStart::HyStart));
    cubic.on_acked(&acked(90_000), &SharedPathMetrics::default());
    let siblings = shared(&[PathMetrics { shares_with: 0, ..neighbour(100_000) }]);
    auto.on_congestion(&congestion(CongestionKind::Loss), &siblings);
    cubic.on_congestion(&congestion(CongestionKind::Loss), &siblings);
    for i in 0..100 {
        let ack = Acked { now: Instant::from_nanos(1_000_000_000 + i * 50_000_000), ..acked(30_000) };
        auto.on_acked(&ack, &siblings);
        cubic.on_acked(&ack, &siblings);
        assert_eq!(auto.window(), cubic.window());
    }
}

#[test]
fn paths_begin_together_and_share_the_growth() {
    let mut auto = auto(100_000);
    let now = Instant::from_nanos(1_000_000_000);
    let siblings = shared(&[neighbour(300_000)]);
    assert_eq!(auto.gain(now, &siblings), Gain::default(), "not met yet");
    auto.on_acked(&acked(0), &siblings);
    let gain = Gain { curve: 0.25, friendly: 0.25 * FRIENDLY_TOGETHER, start: 0.25 };
    assert_eq!(auto.gain(now, &siblings), gain);
    let closing = PathMetrics { active: false, ..neighbour(300_000) };
    assert_eq!(auto.gain(now, &shared(&[closing])), Gain::default());
    assert_eq!(auto.gain(now + Duration::from_secs(1), &siblings), Gain::default(), "it rests");
}

#[test]
fn behind_a_deep_queue_paths_grow_as_one_flow() {
    let friendly = |rtt_ms| {
        let mut auto = auto(100_000);
        let siblings = shared(&[neighbour(100_000)]);
        auto.on_acked(&Acked { rtt: rtt(rtt_ms), ..acked(0) }, &siblings);
        auto.gain(Instant::from_nanos(1_000_000_000), &siblings).friendly
    };
    assert_eq!(friendly(20), FRIENDLY_TOGETHER / 2.0, "nothing waits");
    assert_eq!(friendly(30), (1.0 + FRIENDLY_TOGETHER) / 4.0);
    assert_eq!(friendly(40), 0.5);
    assert_eq!(friendly(500), 0.5);
}

#[test]
fn slow_start_is_not_slowed() {
    let mut auto = Auto::new(PathId::ZERO, 1000, SlowStart::HyStart);
    let siblings = shared(&[neighbour(300_000)]);
    let before = auto.window();
    auto.on_acked(&acked(8_000), &siblings);
    assert_eq!(auto.window(), before + 8_000);
}

/// Round trips of `ms`, where 20 ms is the least.
fn rtt(ms: u64) -> RttSample {
    let (latest, min) = (Duration::from_millis(ms), Duration::from_millis(20));
    RttSample { latest, smoothed: latest, min, ..RttSample::default() }
}

/// A path with 100 kB beside `other` with as much, whose round trips are `rtt_ms` when the first packet is lost.
fn struck(rtt_ms: u64, other: PathMetrics) -> Auto {
    let mut auto = auto(100_000);
    auto.on_acked(&Acked { rtt: rtt(rtt_ms), ..acked(0) }, &shared(&[other]));
    auto.on_congestion(&congestion(CongestionKind::Loss), &shared(&[other]));
    auto
}

/// A neighbour that was cut before.
fn cut_before(rtt: Duration) -> PathMetrics {
    let at = Instant::from_nanos(500_000_000);
    PathMetrics { cut: Some(Cut { serial: 1, at, rtt, fall_s: None }), ..neighbour(100_000) }
}

#[test]
fn the_first_cut_behind_a_deep_queue_leaves_a_part() {
    let second = cut_before(Duration::from_millis(100));
    let mut auto = struck(100, second);
    assert_eq!(auto.window(), 28_823, "70 of both paths' 170 kB, of seven tenths");
    auto.on_congestion(&congestion(CongestionKind::Loss), &shared(&[second]));
    assert_eq!(auto.window(), 20_176, "only the first cut does");
    assert_eq!(struck(100, neighbour(100_000)).window(), 49_411, "who is cut first leaves half as much");
}

#[test]
fn what_the_paths_found_after_slow_start_is_theirs() {
    let second = shared(&[cut_before(Duration::from_millis(100))]);
    let now = Instant::from_nanos(1_000_000_000);
    let left_of = |found| {
        let mut auto = auto(100_000);
        auto.on_acked(&Acked { rtt: rtt(100), ..acked(0) }, &second);
        auto.cubic.cut(now);
        auto.give_way(Uncut { window: 100_000, found }, now, &second);
        auto.window()
    };
    assert_eq!(left_of(100_000), 28_823, "all of it from slow start");
    assert_eq!(left_of(10_000), 65_882, "a tenth of what the other path's part was");
    assert_eq!(left_of(0), 70_000);
}

#[test]
fn what_fills_the_link_is_not_left() {
    let second = cut_before(Duration::from_millis(40));
    assert_eq!(struck(40, second).window(), 50_000, "a round trip of the link is half of one with its queue");
    assert_eq!(struck(25, second).window(), 70_000, "a queue so shallow is empty after any cut");
}

#[test]
fn what_was_left_comes_back_to_paths_that_are_apart() {
    let second = cut_before(Duration::from_millis(100));
    let mut auto = struck(100, second);
    auto.on_acked(&acked(0), &shared(&[second]));
    assert_eq!(auto.window(), 28_823);
    let apart = shared(&[PathMetrics { shares_with: 0, ..second }]);
    auto.on_acked(&acked(0), &apart);
    assert_eq!(auto.window(), 70_000);
    // Once: a later cut is not undone by it.
    auto.on_congestion(&congestion(CongestionKind::Loss), &shared(&[second]));
    auto.on_acked(&acked(0), &apart);
    assert_eq!(auto.window(), 49_000);
}

#[test]
fn what_a_siblings_slow_start_costs_is_answered_once() {
    // The sibling, with round trips of 100 ms, is in slow start; this path, with 20 ms, is cut at one second.
    let cut_at = |ms: u64| {
        let at = Instant::from_nanos(ms * 1_000_000);
        let cut = Cut { serial: 1, at, rtt: Duration::from_millis(100), fall_s: None };
        PathMetrics { cut: Some(cut), ssthresh_bytes: 70_000, ..neighbour(100_000) }
    };
    let starting = neighbour(100_000);
    assert_eq!((starting.rtt, starting.ssthresh_bytes), (Some(Duration::from_millis(100)), u64::MAX));
    let counts = |sibling: PathMetrics, ms: u64| {
        let mut auto = struck(20, starting);
        let before = auto.window();
        let now = Instant::from_nanos(ms * 1_000_000);
        auto.on_congestion(&Congestion { now, ..congestion(CongestionKind::Loss) }, &shared(&[sibling]));
        auto.window() < before
    };
    assert_eq!([1040, 1120, 1121].map(|ms| counts(starting, ms)), [false, false, true], "until it must have heard");
    assert_eq!([1150, 1180, 1181].map(|ms| counts(cut_at(1080), ms)), [false, false, true], "until its cut shows");
    assert!(counts(cut_at(900), 1040), "it had answered before");
    assert!(counts(cut_at(1121), 1130), "that is another event");
    assert!(counts(PathMetrics { ssthresh_bytes: 70_000, ..starting }, 1040), "its slow start is over");
    assert!(counts(PathMetrics { shares_with: 0, ..starting }, 1040), "it waits in another queue");
}

#[test]
fn its_cut_is_posted() {
    let mut auto = auto(100_000);
    let mut metrics = PathMetrics::new(PathId::ZERO);
    auto.add_to_metrics(&mut metrics);
    assert_eq!(metrics.cut, None);
    auto.on_congestion(&congestion(CongestionKind::Loss), &SharedPathMetrics::default());
    auto.add_to_metrics(&mut metrics);
    assert_eq!(metrics.cut.map(|cut| (cut.serial, cut.fall_s)), Some((1, None)));
}
