//! The window that all controllers share: growth, loss, bounds.

use super::*;
use crate::controller::RttSample;
use crate::facts::acked;

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
    window.on_max_datagram_bytes(1472);
    assert_eq!(window.bytes(), 14_720);
    window.reduce(5000);
    window.on_max_datagram_bytes(4000);
    assert_eq!(window.bytes(), 8000);
    window.on_max_datagram_bytes(1200);
    assert_eq!(window.bytes(), 8000);
}

#[test]
fn a_loss_after_slow_start_took_a_part_back_is_cut_from_what_the_window_was() {
    // RFC 9002 7.3.2
    let (base, mut peak) = (Duration::from_millis(80), 0);
    let mut window = Window::new(1000, SlowStart::Onset);
    for i in 0..120 {
        let mut ack = acked(1000);
        // An ack a millisecond of a packet that did not wait, in rounds of 20; after five rounds packets wait.
        ack.now += Duration::from_millis(i);
        (ack.largest, ack.next_number) = (i, i / 20 * 20 + 20);
        let wait = if i < 100 { Duration::ZERO } else { Duration::from_millis(6) };
        ack.rtt = RttSample { latest: base + wait, smoothed: base, min: base, shortcut: Duration::ZERO };
        ack.delivery.flight_bytes = window.bytes();
        assert_eq!(window.kept(0.5), window.bytes().max(peak) / 2);
        let before = window.bytes();
        window.slow_start(&ack);
        if window.bytes() < before {
            peak = before;
        }
    }
    // 1000 bytes a millisecond in 80 ms, and a fifth.
    assert!(window.bytes() == 96_000 && peak == 120_000, "{} {peak}", window.bytes());
    assert_eq!((window.kept(0.5), window.kept(0.7), window.kept(0.9)), (60_000, 84_000, 96_000));
    window.reduce(window.kept(0.7));
    assert_eq!((window.bytes(), window.ssthresh(), window.kept(0.5)), (84_000, 84_000, 42_000));
}

#[test]
fn a_cut_is_deeper_where_acks_take_a_shortcut_past_a_queue() {
    let ms = Duration::from_millis;
    let kept = |min: u64, queue: u64, shortcut: u64| {
        let (min, smoothed) = (ms(min), ms(min + queue));
        kept_beside_own_way(0.7, &RttSample { latest: smoothed, smoothed, min, shortcut: ms(shortcut) })
    };
    let close = |a: f64, b: f64| (a - b).abs() < 0.001;
    assert!(close(kept(150, 60, 0), 0.7), "acks come by the own way");
    assert!(close(kept(85, 0, 65), 0.7), "no queue: losses are not ours, and the rate falls with the window");
    // Own way: 150 ms and a queue of 60; 0.7 of 210 keeps a rate of 0.98 alone and of 0.7 among many: 0.84.
    assert!(close(kept(85, 60, 65), 0.7 - 0.14 * 65.0 / 145.0));
    // Own way: 2010 ms and a queue of 500, of which the shortcut counts as three RTTs of the acks at most.
    assert!(close(kept(10, 500, 2000), 0.7 - 0.0871 * 3.0));
    assert_eq!(kept_beside_own_way(0.7, &RttSample::default()), 0.7, "nothing is known yet");
}

#[test]
fn slow_start_doubles_once_per_round_trip_of_the_own_way() {
    let ms = Duration::from_millis;
    for (smoothed, shortcut, rounds) in [(100, 0, 1), (50, 50, 2), (25, 75, 4)] {
        let mut window = Window::new(1000, SlowStart::Standard);
        for _ in 0..rounds {
            let mut ack = acked(window.bytes());
            ack.rtt = RttSample { smoothed: ms(smoothed), shortcut: ms(shortcut), ..ack.rtt };
            assert_eq!(window.slow_start(&ack), 0);
        }
        assert!(window.bytes().abs_diff(20_000) <= rounds, "{rounds} rounds of acks: {}", window.bytes());
    }
}

#[test]
fn slow_start_is_paced_at_two_windows_per_rtt() {
    let mut window = Window::new(1000, SlowStart::Standard);
    assert_eq!(window.pacing_rate(Duration::from_millis(100)), Some(200_000));
    assert_eq!(window.pacing_rate(Duration::ZERO), None);
    window.reduce(5000);
    assert_eq!(window.pacing_rate(Duration::from_millis(100)), None);
}
