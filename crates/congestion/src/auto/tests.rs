//! Auto alone is CUBIC; with a sibling behind the same queue it is half of one.

use super::*;
use crate::facts::{acked, congestion, metrics, shared};
use plait_base::shared_metrics::Delays;

fn auto(window: u64) -> Auto {
    let mut auto = Auto::new(PathId::ZERO, 1000, SlowStart::HyStart);
    auto.on_acked(&acked(window - 10_000), &SharedPathMetrics::default());
    auto
}

/// A sibling in use that takes path 0 to be behind its queue.
fn neighbour(window: u64) -> PathMetrics {
    let mut delays = Delays::default();
    delays.note(Instant::from_nanos(1_000_000_000), Duration::from_millis(100));
    PathMetrics { shares_with: PathId::ZERO.bit(), delays, ..metrics(1, window, 100) }
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
    assert_eq!(auto.gain(now, &siblings), Gain { curve: 0.25, friendly: 0.25, start: 0.25 });
    let closing = PathMetrics { active: false, ..neighbour(300_000) };
    assert_eq!(auto.gain(now, &shared(&[closing])), Gain::default());
    assert_eq!(auto.gain(now + Duration::from_secs(1), &siblings), Gain::default(), "it rests");
}

#[test]
fn slow_start_is_not_slowed() {
    let mut auto = Auto::new(PathId::ZERO, 1000, SlowStart::HyStart);
    let siblings = shared(&[neighbour(300_000)]);
    let before = auto.window();
    auto.on_acked(&acked(8_000), &siblings);
    assert_eq!(auto.window(), before + 8_000);
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
