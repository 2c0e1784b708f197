//! Auto alone is CUBIC; with a sibling behind the same queue it is half of one.

use super::*;
use crate::facts::{acked, congestion, metrics, shared};

fn auto(window: u64) -> Auto {
    let mut auto = Auto::new(PathId::ZERO, 1000, SlowStart::HyStart);
    auto.on_acked(&acked(window - 10_000), &SharedPathMetrics::default());
    auto
}

#[test]
fn strangers_do_not_slow_it_down() {
    let (mut auto, mut cubic) = (auto(100_000), Cubic::new(1000, SlowStart::HyStart));
    cubic.on_acked(&acked(90_000), &SharedPathMetrics::default());
    let siblings = shared(&[metrics(1, 100_000, 100)]);
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
fn a_sibling_that_says_so_takes_its_share_of_the_growth() {
    let auto = auto(100_000);
    let says_so = PathMetrics { shares_with: PathId::ZERO.bit(), ..metrics(1, 300_000, 100) };
    assert_eq!(auto.gain(&shared(&[says_so])), Gain { curve: 0.25, friendly: 0.25 });
    assert_eq!(auto.gain(&shared(&[PathMetrics { active: false, ..says_so }])), Gain::default());
    assert_eq!(auto.gain(&shared(&[metrics(1, 300_000, 100)])), Gain::default());
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
