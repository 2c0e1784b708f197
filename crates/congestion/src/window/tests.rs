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
        ack.rtt = RttSample { latest: base + wait, smoothed: base, min: base, ..RttSample::default() };
        ack.delivery.flight_bytes = window.bytes();
        assert_eq!(window.kept(0.5, ack.sent_at), window.bytes().max(peak) / 2);
        let before = window.bytes();
        window.slow_start(&ack);
        if window.bytes() < before {
            peak = before;
        }
    }
    // 1000 bytes a millisecond in 80 ms, and a fifth.
    assert!(window.bytes() == 96_000 && peak == 120_000, "{} {peak}", window.bytes());
    let (before, after) = (acked(0).sent_at, acked(0).now + base * 2);
    assert_eq!([0.5, 0.7, 0.9].map(|part| window.kept(part, before)), [60_000, 84_000, 96_000]);
    assert_eq!(window.kept(0.5, after), 48_000, "it left at the window of now");
    window.reduce(window.kept(0.7, before));
    assert_eq!((window.bytes(), window.ssthresh(), window.kept(0.5, after)), (84_000, 84_000, 42_000));
}

#[test]
fn slow_start_doubles_the_rate_once_per_round_trip_of_the_own_way() {
    let ms = Duration::from_millis;
    for (smoothed, shortcut) in [(100u64, 0u64), (50, 50), (25, 75)] {
        let mut window = Window::new(1000, SlowStart::Standard);
        // What was sent in each ms is acked after `smoothed`, and makes room for itself a shortcut later.
        let (mut sent, mut in_flight) = (vec![0u64; 1000], 0u64);
        for now in 0..1000usize {
            let acked_bytes = now.checked_sub(smoothed as usize).map_or(0, |at| sent[at]);
            if acked_bytes > 0 {
                let mut ack = acked(acked_bytes);
                ack.rtt = RttSample { smoothed: ms(smoothed), shortcut: ms(shortcut), ..ack.rtt };
                assert_eq!(window.slow_start(&ack), 0);
            }
            in_flight -= now.checked_sub((smoothed + shortcut) as usize).map_or(0, |at| sent[at]);
            // Without bunches: the first window is spread over a round trip.
            let room = window.bytes().saturating_sub(in_flight);
            sent[now] = if now < 100 { room.min(100) } else { room };
            in_flight += sent[now];
        }
        let rate = |span: std::ops::Range<usize>| sent[span].iter().sum::<u64>() as f64;
        let growth = rate(900..1000) / rate(800..900);
        assert!((growth - 2.0).abs() < 0.1, "acks after {smoothed} ms: {growth}");
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
