//! OLIA on one path and on several.

use std::time::Duration;

use super::*;
use crate::controller::Acked;
use crate::controller::CongestionController;
use crate::facts::{acked, congestion, metrics, shared};

/// An OLIA on path 0 in congestion avoidance at `window` bytes, whose loss interval is `interval` bytes.
fn olia(window: u64, interval: u64) -> Olia {
    let mut olia = Olia::new(PathId(0), 1000, SlowStart::Standard);
    olia.rule.acked_bytes = interval;
    olia.window.reduce(window);
    olia
}

fn own(window: u64, rtt_ms: u64, interval: u64) -> PathMetrics {
    PathMetrics { between_losses_bytes: interval, ..metrics(0, window, rtt_ms) }
}

fn other(path: u32, window: u64, rtt_ms: u64, interval: u64) -> PathMetrics {
    PathMetrics { between_losses_bytes: interval, ..metrics(path, window, rtt_ms) }
}

#[test]
fn alone_it_is_reno() {
    let mut olia = olia(10_000, 0);
    olia.on_acked(&acked(10_000), &SharedPathMetrics::default());
    assert_eq!(olia.window(), 11_000);
}

#[test]
fn alpha_is_zero_while_the_best_path_has_the_largest_window() {
    let siblings = shared(&[other(1, 10_000, 100, 50_000)]);
    assert_eq!(alpha(&own(20_000, 100, 90_000), &siblings), 0.0);
    assert_eq!(alpha(&own(10_000, 100, 50_000), &siblings), 0.0, "equal paths");
}

#[test]
fn alpha_moves_from_the_largest_to_the_best() {
    // Path 1 has the larger window, path 0 the larger interval: B\M = {0}, M = {1}, N = 2.
    let siblings = shared(&[other(1, 20_000, 100, 50_000)]);
    assert_eq!(alpha(&own(10_000, 100, 90_000), &siblings), 0.5);
    let siblings = shared(&[other(1, 10_000, 100, 90_000)]);
    assert_eq!(alpha(&own(20_000, 100, 50_000), &siblings), -0.5);
}

#[test]
fn alpha_with_four_paths() {
    // l / rtt^2: path 0 and 1 equal and best (10^5 / 100^2 = 4 * 10^5 / 200^2), 2 and 3 have the largest windows.
    let siblings =
        shared(&[other(1, 8_000, 200, 400_000), other(2, 30_000, 100, 50_000), other(3, 30_000, 100, 60_000)]);
    assert_eq!(alpha(&own(10_000, 100, 100_000), &siblings), 1.0 / (4.0 * 2.0));
    // As the third of the largest it pays a share of three.
    let siblings =
        shared(&[other(1, 8_000, 200, 400_000), other(2, 30_000, 100, 50_000), other(3, 30_000, 100, 60_000)]);
    assert_eq!(alpha(&own(30_000, 100, 99_999), &siblings), -1.0 / (4.0 * 3.0));
    // Neither best nor largest.
    assert_eq!(alpha(&own(20_000, 100, 99_999), &siblings), 0.0);
    // Best and largest at once: M decides, the other best path collects.
    assert_eq!(alpha(&own(30_000, 100, 100_000), &siblings), -1.0 / (4.0 * 3.0));
}

#[test]
fn paths_without_a_sample_or_not_active_do_not_count() {
    let unsampled = PathMetrics { rtt: None, ..other(1, 50_000, 1, 1) };
    let inactive = PathMetrics { active: false, ..other(2, 50_000, 1, 1) };
    assert_eq!(alpha(&own(10_000, 100, 90_000), &shared(&[unsampled, inactive])), 0.0);
}

#[test]
fn in_recovery_the_threshold_counts() {
    let recovering = PathMetrics { in_recovery: true, ssthresh_bytes: 8_000, ..other(1, 16_000, 100, 90_000) };
    // Path 0 is the largest (10 000 > 8 000), path 1 the best.
    assert_eq!(alpha(&own(10_000, 100, 50_000), &shared(&[recovering])), -0.5);
}

#[test]
fn increments_equal_the_formula_on_three_paths() {
    let cases = [
        (10_000u64, 20u64, 90_000u64, [(20_000u64, 100u64, 50_000u64), (30_000, 50, 700_000)]),
        (64_000, 100, 10_000, [(20_000, 10, 50_000), (3_000, 500, 900_000)]),
        (4_000, 300, 5_000_000, [(9_000, 30, 1_000), (9_000, 30, 1_000)]),
        (90_000, 50, 1_000, [(20_000, 20, 50_000), (10_000, 20, 50_000)]),
    ];
    for (window, rtt_ms, interval, others) in cases {
        let siblings: Vec<_> = others.iter().zip(1..).map(|(o, id)| other(id, o.0, o.1, o.2)).collect();
        let siblings = shared(&siblings);
        let mut olia = olia(window, interval);
        let mut ack = acked(3000);
        ack.rtt.smoothed = Duration::from_millis(rtt_ms);
        olia.on_acked(&ack, &siblings);

        // Directly, in segments and seconds; the interval includes this ACK's bytes.
        let all = [(window, rtt_ms, interval + 3000), others[0], others[1]];
        let seg = |p: (u64, u64, u64)| (p.0 as f64 / 1000.0, p.1 as f64 / 1000.0);
        let sum: f64 = all.iter().map(|p| seg(*p).0 / seg(*p).1).sum();
        let quality = |p: &(u64, u64, u64)| p.2 as f64 / (p.1 * p.1) as f64;
        let best = all.iter().map(quality).fold(0.0, f64::max);
        let largest = all.iter().map(|p| p.0).max().unwrap();
        let in_b = |p: &(u64, u64, u64)| quality(p) == best;
        let in_m = |p: &(u64, u64, u64)| p.0 == largest;
        let collected = all.iter().filter(|p| in_b(p) && !in_m(p)).count() as f64;
        let alpha = match (collected > 0.0, in_m(&all[0]), in_b(&all[0])) {
            (true, true, _) => -1.0 / (3.0 * all.iter().filter(|p| in_m(p)).count() as f64),
            (true, false, true) => 1.0 / (3.0 * collected),
            _ => 0.0,
        };
        let (w, rtt) = seg(all[0]);
        let segments = 3.0 * (w / (rtt * rtt) / (sum * sum) + alpha / w);
        let expected = window as f64 + segments * 1000.0;
        let got = olia.window.segments() * 1000.0;
        assert!((got - expected).abs() < 1e-6, "{got} {expected}");
    }
}

#[test]
fn two_equal_paths_grow_together_like_one_reno() {
    // Each: (w/r^2) / (2w/r)^2 = 1 / 4w per segment: a quarter datagram per RTT and path.
    let mut olia = olia(20_000, 50_000);
    olia.on_acked(&acked(20_000), &shared(&[other(1, 20_000, 100, 70_000)]));
    assert_eq!(olia.window(), 20_250);
}

#[test]
fn a_negative_increment_stops_at_the_minimum() {
    let mut olia = olia(2_000, 1_000);
    let siblings = shared(&[other(1, 2_000, 1, 900_000_000), other(2, 1_999, 1, 990_000_000)]);
    for _ in 0..100 {
        olia.on_acked(&acked(1000), &siblings);
    }
    assert_eq!(olia.window(), 2000);
    // While from above it does shrink: path 1 is far better, the window of path 0 the largest.
    let mut olia = self::olia(20_000, 1_000);
    olia.on_acked(&acked(20_000), &shared(&[other(1, 2_000, 1, 900_000_000)]));
    assert!(olia.window() < 20_000, "{}", olia.window());
}

#[test]
fn loss_intervals() {
    let mut olia = Olia::new(PathId(0), 1000, SlowStart::Standard);
    let none = SharedPathMetrics::default();
    olia.on_acked(&acked(8_000), &none);
    assert_eq!(olia.between_losses_bytes(), 8_000);
    olia.on_congestion(&congestion(CongestionKind::Loss), &none);
    assert_eq!((olia.window(), olia.between_losses_bytes()), (9_000, 8_000));
    // No byte between two events: the marks stay, the window halves.
    olia.on_congestion(&congestion(CongestionKind::Ecn), &none);
    assert_eq!((olia.window(), olia.between_losses_bytes()), (4_500, 8_000));
    olia.on_acked(&acked(3_000), &none);
    assert_eq!(olia.between_losses_bytes(), 8_000);
    olia.on_congestion(&congestion(CongestionKind::Loss), &none);
    assert_eq!(olia.between_losses_bytes(), 3_000);
    // Bytes acked in recovery count for the interval, not for the window.
    let window = olia.window();
    olia.on_acked(&Acked { bytes: 0, bytes_total: 4_000, ..acked(0) }, &none);
    assert_eq!((olia.window(), olia.between_losses_bytes()), (window, 4_000));
    olia.on_congestion(&congestion(CongestionKind::Persistent), &none);
    assert_eq!((olia.window(), olia.between_losses_bytes()), (2_000, 0));
}

#[test]
fn a_false_loss_ends_no_interval() {
    let mut olia = Olia::new(PathId(0), 1000, SlowStart::Standard);
    let none = SharedPathMetrics::default();
    olia.on_acked(&acked(8_000), &none);
    olia.on_congestion(&congestion(CongestionKind::Loss), &none);
    olia.on_acked(&acked(3_000), &none);
    olia.on_congestion(&congestion(CongestionKind::Loss), &none);
    olia.on_acked(&acked(1_000), &none);
    assert_eq!(olia.between_losses_bytes(), 3_000);
    olia.on_spurious();
    assert_eq!(olia.between_losses_bytes(), 8_000, "4000 since the first loss, 8000 before it");
    olia.on_acked(&acked(5_000), &none);
    assert_eq!(olia.between_losses_bytes(), 9_000);
}

#[test]
fn a_stale_metrics_of_its_own_is_not_read() {
    let mut olia = olia(10_000, 0);
    olia.on_acked(&acked(10_000), &shared(&[metrics(0, 999_000, 1)]));
    assert_eq!(olia.window(), 11_000);
}
