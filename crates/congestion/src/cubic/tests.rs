//! CUBIC against the formulas of RFC 9438.

use super::*;
use crate::controller::{NO_THRESHOLD, RttSample};
use crate::facts::{acked, congestion};

const MSS: u64 = 1000;

fn cubic() -> Cubic {
    Cubic::new(MSS, SlowStart::Standard)
}

fn at_ms(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

fn ack(now_ms: u64, bytes: u64, rtt_ms: u64) -> Acked {
    let rtt = Duration::from_millis(rtt_ms);
    Acked {
        now: at_ms(now_ms),
        rtt: RttSample { latest: rtt, smoothed: rtt, min: rtt, ..RttSample::default() },
        ..acked(bytes)
    }
}

/// A CUBIC that lost at `segments` segments.
fn after_loss_at(segments: u64) -> Cubic {
    let mut cubic = cubic();
    cubic.on_acked(&acked((segments - 10) * MSS), &SharedPathMetrics::default());
    assert_eq!(cubic.window(), segments * MSS);
    cubic.on_congestion(&congestion(CongestionKind::Loss), &SharedPathMetrics::default());
    cubic
}

#[test]
fn constants() {
    assert!((ALPHA - 0.529_411_764_7).abs() < 1e-9);
    // RFC 9438 4.2: W_max 100 segments, window 70: K = cbrt(30 / 0.4) = 4.2172 s.
    let epoch = Epoch::with_gain(at_ms(0), 70.0, 100.0, 1.0);
    assert!((epoch.k - 4.217_163).abs() < 1e-6, "{}", epoch.k);
    assert!((epoch.curve(0.0) - 70.0).abs() < 1e-9);
    assert!((epoch.curve(epoch.k) - 100.0).abs() < 1e-12);
    assert!((epoch.curve(epoch.k + 5.0) - 150.0).abs() < 1e-9);
}

#[test]
fn loss_keeps_seven_tenths() {
    let cubic = after_loss_at(100);
    assert_eq!((cubic.window(), cubic.ssthresh()), (70_000, 70_000));
    assert!((cubic.plateau - 100.0).abs() < 1e-9);
}

#[test]
fn the_window_follows_the_closed_formula() {
    // A long fat path: at 1000 segments the cubic region rules (K = cbrt(300 / 0.4) = 9.086 s).
    let mut cubic = after_loss_at(1000);
    let rtt_ms = 100;
    let mut now = 10_000;
    let began = now;
    let epoch = Epoch::with_gain(at_ms(began), 700.0, 1000.0, 1.0);
    while now <= began + 15_000 {
        // A window of bytes is acked in ten pieces per RTT.
        let bytes = cubic.window() / 10;
        cubic.on_acked(&ack(now, bytes, rtt_ms), &SharedPathMetrics::default());
        let t = (now - began) as f64 / 1000.0;
        let (low, high) = (epoch.curve(t), epoch.curve(t + 0.1));
        let window = cubic.window.segments();
        // Within a segment of the curve, between now and one RTT ahead, once the first RTT has passed.
        if t > 0.5 {
            assert!(window > low - 1.5 && window < high + 1.5, "t={t} window={window} curve {low}..{high}");
        }
        now += 10;
    }
    assert!(cubic.window() > 1_000_000, "beyond the plateau after K");
}

#[test]
fn small_windows_follow_the_reno_friendly_estimate() {
    // RFC 9438 4.3: on a short path Reno is faster than the curve.
    let mut cubic = after_loss_at(20);
    let mut estimate = 14.0;
    let mut now = 1000;
    for _ in 0..30 {
        let before = cubic.window.segments();
        cubic.on_acked(&ack(now, cubic.window(), 10), &SharedPathMetrics::default());
        let alpha = if estimate >= 20.0 { 1.0 } else { ALPHA };
        estimate += alpha * (before * MSS as f64).trunc() / MSS as f64 / before;
        now += 10;
        assert!((cubic.window.segments() - estimate).abs() < 0.01, "{} {estimate}", cubic.window.segments());
    }
    // 12 rounds to 20 at 0.529, then one segment per round.
    assert!(cubic.window() > 36_000);
}

#[test]
fn growth_is_at_most_half_a_window_per_rtt() {
    let mut cubic = after_loss_at(100);
    cubic.on_acked(&ack(1000, MSS, 100), &SharedPathMetrics::default());
    // A minute later the curve is far above.
    let window = cubic.window();
    cubic.on_acked(&ack(61_000, window, 100), &SharedPathMetrics::default());
    assert!(cubic.window() <= window * 3 / 2 + 1 && cubic.window() > window * 149 / 100, "{}", cubic.window());
}

#[test]
fn fast_convergence_lowers_the_plateau() {
    // RFC 9438 4.7
    let mut cubic = after_loss_at(100);
    cubic.on_congestion(&congestion(CongestionKind::Loss), &SharedPathMetrics::default());
    assert!((cubic.plateau - 70.0 * 0.85).abs() < 1e-9);
    assert_eq!(cubic.window(), 49_000);
}

#[test]
fn application_limited_time_does_not_count() {
    // RFC 9438 5.8
    let mut cubic = after_loss_at(100);
    let shared = SharedPathMetrics::default();
    cubic.on_acked(&ack(1000, MSS, 100), &shared);
    let limited = |now| Acked { limit: Limit::Application, ..ack(now, MSS, 100) };
    let window = cubic.window();
    cubic.on_acked(&limited(2000), &shared);
    cubic.on_acked(&limited(30_000), &shared);
    assert_eq!(cubic.window(), window);
    cubic.on_acked(&ack(32_000, MSS, 100), &shared);
    // Thirty seconds of thirty-one were idle.
    assert_eq!(cubic.epoch.unwrap().began, at_ms(31_000));
    assert!(cubic.window() < window + MSS, "{}", cubic.window());
}

#[test]
fn persistent_congestion_begins_anew() {
    // RFC 9438 4.8
    let mut cubic = after_loss_at(100);
    let shared = SharedPathMetrics::default();
    cubic.on_congestion(&congestion(CongestionKind::Persistent), &shared);
    assert_eq!((cubic.window(), cubic.ssthresh()), (2000, 70_000));
    cubic.on_acked(&ack(1000, 68_000, 100), &shared);
    assert_eq!(cubic.window(), 70_000);
    cubic.on_acked(&ack(1100, MSS, 100), &shared);
    let epoch = cubic.epoch.unwrap();
    assert_eq!((epoch.k, epoch.plateau), (0.0, 70.0));
}

#[test]
fn without_a_loss_the_plateau_is_where_slow_start_ended() {
    let mut cubic = Cubic::new(MSS, SlowStart::HyStart);
    let shared = SharedPathMetrics::default();
    let round = |cubic: &mut Cubic, index: u64, rtt_ms: u64| {
        for i in 0..10 {
            let mut facts =
                Acked { largest: index * 10 + i, next_number: index * 10 + 10, ..ack(index * 100, MSS, rtt_ms) };
            facts.rtt.min = Duration::from_millis(100);
            cubic.on_acked(&facts, &shared);
        }
    };
    round(&mut cubic, 0, 100);
    assert_eq!((cubic.window(), cubic.ssthresh()), (20_000, NO_THRESHOLD));
    (1..7).for_each(|i| round(&mut cubic, i, 200));
    assert!(!cubic.window.in_slow_start());
    assert!(cubic.ssthresh() < 50_000, "{}", cubic.ssthresh());
    let epoch = cubic.epoch.unwrap();
    assert_eq!((epoch.k, epoch.plateau), (0.0, cubic.ssthresh() as f64 / MSS as f64));
}

#[test]
fn spurious_loss_is_taken_back() {
    // RFC 9438 4.9.1
    let mut cubic = after_loss_at(100);
    cubic.on_spurious();
    assert_eq!((cubic.window(), cubic.ssthresh()), (100_000, NO_THRESHOLD));
    assert_eq!(cubic.plateau, 0.0);
}

#[test]
fn the_window_never_falls_below_two_datagrams() {
    let mut cubic = cubic();
    for _ in 0..20 {
        cubic.on_congestion(&congestion(CongestionKind::Ecn), &SharedPathMetrics::default());
    }
    assert_eq!(cubic.window(), 2000);
}

#[test]
fn a_new_datagram_size_keeps_bytes_and_what_a_false_loss_gives_back() {
    let mut cubic = after_loss_at(100);
    cubic.on_max_datagram_bytes(2 * MSS);
    assert!((cubic.plateau - 50.0).abs() < 1e-9);
    cubic.on_spurious();
    assert_eq!((cubic.window(), cubic.ssthresh()), (100_000, NO_THRESHOLD));
}
