//! BALIA on one path and on several.

use std::time::Duration;

use plait_base::shared_metrics::SharedPathMetrics;

use super::*;
use crate::controller::CongestionKind;
use crate::facts::{acked, congestion, metrics, shared};

/// A BALIA on path 0 with RTT 100 ms in congestion avoidance.
fn balia(window: u64) -> Balia {
    let mut balia = Balia::new(PathId(0), 1000, SlowStart::Standard);
    balia.window.reduce(window);
    balia.rtt.smoothed = Duration::from_millis(100);
    balia
}

#[test]
fn alone_it_is_reno() {
    let (mut balia, none) = (balia(10_000), SharedPathMetrics::default());
    balia.on_acked(&acked(10_000), &none);
    assert_eq!(balia.window(), 11_000);
    balia.on_congestion(&congestion(CongestionKind::Loss), &none);
    assert_eq!(balia.window(), 5_500);
}

#[test]
fn increments_equal_the_formula() {
    // x = 100, 200, 250 segments/s; alpha_0 = 2.5.
    let siblings = shared(&[metrics(1, 40_000, 200), metrics(2, 5_000, 20)]);
    let increase = 100.0 / (0.1 * 550.0 * 550.0) * ((1.0 + 2.5) / 2.0) * ((4.0 + 2.5) / 5.0);
    let mut balia = balia(10_000);
    balia.on_acked(&acked(5000), &siblings);
    let (got, expected) = (balia.window.segments() * 1000.0, 10_000.0 + 5000.0 * increase);
    assert!((got - expected).abs() < 1e-6, "{got} {expected}");
}

#[test]
fn agrees_with_the_ack_counting_form() {
    // Linux: one segment per 10 * (sum x)^2 * w_r / ((x_r + x_max)(4 x_r + x_max) ...) ACKs, here per acked segment.
    let siblings = shared(&[metrics(1, 30_000, 100)]);
    let (x, fastest, sum, w) = (100.0f64, 300.0, 400.0, 10.0);
    let acks = 10.0 * sum * sum * w / ((x + fastest) * (4.0 * x + fastest));
    let mut balia = balia(10_000);
    balia.on_acked(&acked(1000), &siblings);
    let got = balia.window.segments() - w;
    assert!((got - 1.0 / acks).abs() < 1e-9, "{got} {}", 1.0 / acks);
}

#[test]
fn a_slow_path_yields_up_to_three_quarters() {
    let mut slow = balia(10_000);
    // alpha = 1.2
    slow.on_congestion(&congestion(CongestionKind::Loss), &shared(&[metrics(1, 12_000, 100)]));
    assert_eq!(slow.window(), 4_000);
    let mut slow = balia(10_000);
    slow.on_congestion(&congestion(CongestionKind::Ecn), &shared(&[metrics(1, 90_000, 100)]));
    assert_eq!((slow.window(), slow.ssthresh()), (2_500, 2_500));
    slow.on_congestion(&congestion(CongestionKind::Persistent), &shared(&[metrics(1, 90_000, 100)]));
    assert_eq!((slow.window(), slow.ssthresh()), (2_000, 2_500));
}
