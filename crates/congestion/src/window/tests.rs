//! The window that all controllers share: growth, loss, bounds.

use super::*;

#[test]
fn initial_and_minimum_windows() {
    // RFC 9002 7.2
    assert_eq!(initial_window(1200), 12_000);
    assert_eq!(initial_window(1472), 14_720);
    assert_eq!(initial_window(1500), 14_720);
    assert_eq!(initial_window(9000), 18_000);
    assert_eq!(minimum_window(1200), 2400);
}

#[test]
fn fractions_add_up_and_the_floor_holds() {
    let mut window = Window::new(1000, SlowStart::Standard);
    for _ in 0..8 {
        window.add(0.25);
    }
    assert_eq!(window.bytes(), 10_002);
    for _ in 0..8 {
        window.add(-0.25);
    }
    assert_eq!(window.bytes(), 10_000);
    window.add(-1e9);
    assert_eq!(window.bytes(), 2000);
    window.reduce(1);
    assert_eq!((window.bytes(), window.ssthresh()), (2000, 2000));
}

#[test]
fn datagram_size_moves_an_untouched_window_only() {
    let mut window = Window::new(1200, SlowStart::Standard);
    window.on_mss(1472);
    assert_eq!(window.bytes(), 14_720);
    window.reduce(5000);
    window.on_mss(4000);
    assert_eq!(window.bytes(), 8000);
    window.on_mss(1200);
    assert_eq!(window.bytes(), 8000);
}

#[test]
fn slow_start_is_paced_at_two_windows_per_rtt() {
    let mut window = Window::new(1000, SlowStart::Standard);
    assert_eq!(window.pacing_rate(Duration::from_millis(100)), Some(200_000));
    assert_eq!(window.pacing_rate(Duration::ZERO), None);
    window.reduce(5000);
    assert_eq!(window.pacing_rate(Duration::from_millis(100)), None);
}
