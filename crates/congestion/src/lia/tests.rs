//! LIA on one path and on several.

use plait_base::shared_metrics::SharedPathMetrics;

use super::*;
use crate::controller::CongestionKind;
use crate::facts::{acked, congestion, metrics, shared};

fn lia(window: u64) -> Lia {
    let mut lia = Lia::new(PathId(0), 1000, SlowStart::Standard);
    lia.window.reduce(window);
    lia
}

#[test]
fn alone_it_is_reno() {
    let mut lia = lia(10_000);
    lia.on_acked(&acked(10_000), &SharedPathMetrics::default());
    assert_eq!(lia.window(), 11_000);
}

#[test]
fn increments_equal_the_formula() {
    // RFC 6356 3, bytes and seconds.
    let paths = [(10_000.0, 0.1), (40_000.0, 0.2), (5_000.0, 0.02)];
    let total: f64 = paths.iter().map(|p| p.0).sum();
    let best = paths.iter().map(|p| p.0 / (p.1 * p.1)).fold(0.0, f64::max);
    let rates: f64 = paths.iter().map(|p| p.0 / p.1).sum();
    let alpha = total * best / (rates * rates);
    let expected = 10_000.0 + f64::min(alpha * 5000.0 * 1000.0 / total, 5000.0 * 1000.0 / 10_000.0);
    let mut lia = lia(10_000);
    lia.on_acked(&acked(5000), &shared(&[metrics(1, 40_000, 200), metrics(2, 5_000, 20)]));
    assert!((lia.window.segments() * 1000.0 - expected).abs() < 1e-6, "{} {expected}", lia.window());
}

#[test]
fn never_faster_than_reno_on_a_path() {
    // The best path's share would be 1 / 2 segments per segment, Reno's is 1 / 20.
    let mut lia = lia(20_000);
    lia.on_acked(&acked(1000), &shared(&[metrics(1, 2_000, 1)]));
    assert_eq!(lia.window(), 20_050);
}

#[test]
fn equal_paths_share_one_reno() {
    let mut lia = lia(10_000);
    lia.on_acked(&acked(10_000), &shared(&[metrics(1, 10_000, 100)]));
    // 1 / 4w per segment
    assert_eq!(lia.window(), 10_250);
}

#[test]
fn congestion_halves_and_the_minimum_holds() {
    let (mut lia, none) = (lia(10_000), SharedPathMetrics::default());
    lia.on_congestion(&congestion(CongestionKind::Loss), &none);
    assert_eq!(lia.window(), 5_000);
    lia.on_congestion(&congestion(CongestionKind::Persistent), &none);
    assert_eq!((lia.window(), lia.ssthresh()), (2_000, 5_000));
}
