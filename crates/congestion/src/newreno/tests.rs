//! NewReno against RFC 9002 7.

use super::*;
use crate::controller::NO_THRESHOLD;
use crate::facts::{acked, congestion};

fn reno() -> Box<dyn CongestionController> {
    NewRenoFactory::default().build(PathId::ZERO, Instant::ZERO, 1000)
}

#[test]
fn slow_start_doubles_and_stops_at_the_threshold() {
    // RFC 9002 7.3.1, 7.3.2-1, 7.3.2-2
    let (mut reno, shared) = (reno(), SharedPathMetrics::default());
    assert_eq!((reno.window(), reno.ssthresh()), (10_000, NO_THRESHOLD));
    reno.on_acked(&acked(10_000), &shared);
    assert_eq!(reno.window(), 20_000);
    reno.on_congestion(&congestion(CongestionKind::Loss), &shared);
    assert_eq!((reno.window(), reno.ssthresh()), (10_000, 10_000));
}

#[test]
fn avoidance_adds_one_datagram_per_window() {
    // RFC 9002 7.3.3
    let (mut reno, shared) = (reno(), SharedPathMetrics::default());
    reno.on_congestion(&congestion(CongestionKind::Ecn), &shared);
    assert_eq!(reno.window(), 5000);
    reno.on_acked(&acked(5000), &shared);
    assert_eq!(reno.window(), 6000);
    for _ in 0..6 {
        reno.on_acked(&acked(1000), &shared);
    }
    // Six sixths of a growing window: a little below one datagram.
    assert!((6900..7000).contains(&reno.window()), "{}", reno.window());
}

#[test]
fn growth_beyond_the_threshold_is_avoidance() {
    let (mut reno, shared) = (reno(), SharedPathMetrics::default());
    reno.on_congestion(&congestion(CongestionKind::Loss), &shared);
    reno.on_congestion(&congestion(CongestionKind::Persistent), &shared);
    assert_eq!((reno.window(), reno.ssthresh()), (2000, 5000));
    reno.on_acked(&acked(4000), &shared);
    // 3000 of slow start, then 1000 * 1000 / 5000.
    assert_eq!(reno.window(), 5200);
}

#[test]
fn unused_window_does_not_grow() {
    // RFC 9002 7.8
    let (mut reno, shared) = (reno(), SharedPathMetrics::default());
    reno.on_acked(&Acked { limit: crate::Limit::Application, ..acked(10_000) }, &shared);
    assert_eq!(reno.window(), 10_000);
}

#[test]
fn minimum_window_and_persistent_congestion() {
    // RFC 9002 7.6.2-2
    let (mut reno, shared) = (reno(), SharedPathMetrics::default());
    for _ in 0..10 {
        reno.on_congestion(&congestion(CongestionKind::Loss), &shared);
    }
    assert_eq!(reno.window(), 2000);
    reno.on_congestion(&congestion(CongestionKind::Persistent), &shared);
    assert_eq!(reno.window(), 2000);
}

#[test]
fn spurious_loss_is_taken_back_once() {
    let (mut reno, shared) = (reno(), SharedPathMetrics::default());
    reno.on_congestion(&congestion(CongestionKind::Loss), &shared);
    reno.on_spurious();
    assert_eq!((reno.window(), reno.ssthresh()), (10_000, NO_THRESHOLD));
    reno.on_congestion(&congestion(CongestionKind::Loss), &shared);
    reno.on_congestion(&congestion(CongestionKind::Persistent), &shared);
    reno.on_spurious();
    assert_eq!(reno.window(), 2000);
}
