//! Who gives how much, and when.

use std::time::Duration;

use plait_base::{Instant, PathId};

use super::*;
use crate::facts::{acked, metrics, shared};
use crate::window::SlowStart;

/// A path 0 at so many bytes that has met `siblings`.
fn path(bytes: u64, siblings: &[PathMetrics]) -> (LinkedStart, Window) {
    let (mut start, mut window) = (LinkedStart::default(), Window::new(1000, SlowStart::Standard));
    start.on_acked(&acked(0), &mut window, &shared(siblings));
    window.slow_start(&acked(bytes - window.bytes()));
    assert_eq!(window.bytes(), bytes);
    (start, window)
}

/// The window once its path has heard of `siblings`.
fn left((mut start, mut window): (LinkedStart, Window), siblings: &[PathMetrics]) -> u64 {
    start.on_acked(&acked(1000), &mut window, &shared(siblings));
    let bytes = window.bytes();
    start.on_acked(&acked(1000), &mut window, &shared(siblings));
    assert_eq!(window.bytes(), bytes, "once for each newcomer");
    bytes
}

#[test]
fn what_a_newcomer_brings_is_given_once_it_is_used() {
    let with = |newcomer: PathMetrics| left(path(80_000, &[]), &[newcomer]);
    assert_eq!(with(metrics(1, 20_000, 100)), 60_000);
    assert_eq!(with(metrics(1, 60_000, 100)), 40_000, "half stays");
    assert_eq!(with(metrics(1, 10_000, 100)), 80_000, "an initial window may never be used");
    assert_eq!(with(PathMetrics { active: false, ..metrics(1, 20_000, 100) }), 80_000);
    assert_eq!(with(PathMetrics { ssthresh_bytes: 20_000, ..metrics(1, 20_000, 100) }), 80_000, "no slow start");
}

#[test]
fn those_that_were_there_give_in_proportion() {
    let (old, newcomer) = (metrics(1, 20_000, 100), metrics(2, 20_000, 100));
    assert_eq!(left(path(80_000, &[old]), &[old, newcomer]), 64_000);
    assert_eq!(left(path(80_000, &[old]), &[old]), 80_000, "who was there first is no newcomer");
}

#[test]
fn after_slow_start_nothing_is_given() {
    // RFC 6356 3
    let (start, mut window) = path(80_000, &[]);
    window.reduce(40_000);
    assert_eq!(left((start, window), &[metrics(1, 20_000, 100)]), 40_000);
}

#[test]
fn what_is_under_way_grows_the_smaller_window() {
    let (mut start, mut window) = path(40_000, &[]);
    start.on_acked(&acked(0), &mut window, &shared(&[metrics(1, 20_000, 100)]));
    assert_eq!(window.bytes(), 20_000);
    // 40,000 bytes are under way, and one round doubles.
    window.slow_start(&acked(40_000));
    assert_eq!(window.bytes(), 40_000);
    let later = acked(40_000).now + Duration::from_millis(1);
    window.slow_start(&Acked { sent_at: later, ..acked(40_000) });
    assert_eq!(window.bytes(), 80_000);
}

/// What all paths have after 1.2 s of round trips of 100 ms, of which the second begins after `begins` ms, if it does: bytes.
fn sum_after(begins: Option<usize>, is_linked: bool) -> u64 {
    const RTT: usize = 100;
    let mut starts = [LinkedStart::default(); 2];
    let mut windows = [0, 1].map(|_| Window::new(1000, SlowStart::Standard));
    let (mut sent, mut in_flight) = (vec![[0u64; 2]; 1200], [0u64; 2]);
    let at = |ms: usize| Instant::ZERO + Duration::from_millis(ms as u64);
    for now in 0..sent.len() {
        for id in 0..2 {
            let sent_at = now.saturating_sub(RTT);
            let bytes = if now < RTT { 0 } else { sent[sent_at][id] };
            if bytes > 0 {
                let all = [0, 1].map(|id: usize| metrics(id as u32, windows[id].bytes(), RTT as u64));
                let (path, sent_at, now) = (PathId(id as u32), at(sent_at), at(now));
                let ack = Acked { path, sent_at, now, ..acked(bytes) };
                if is_linked {
                    starts[id].on_acked(&ack, &mut windows[id], &shared(&all));
                }
                windows[id].slow_start(&ack);
            }
            in_flight[id] -= bytes;
            // Paced at two windows a round trip.
            let room = windows[id].bytes().saturating_sub(in_flight[id]).min(windows[id].bytes() * 2 / RTT as u64);
            sent[now][id] = if id == 0 || begins.is_some_and(|begins| now >= begins) { room } else { 0 };
            in_flight[id] += sent[now][id];
        }
    }
    windows[0].bytes() + if begins.is_some() { windows[1].bytes() } else { 0 }
}

#[test]
fn two_paths_grow_about_as_one() {
    // LISA: the sum of all windows doubles as one flow's does, at whatever phase of a round the second begins.
    let one = sum_after(None, true) as f64;
    for begins in (0..400).step_by(10) {
        let [linked, apart] = [true, false].map(|is_linked| sum_after(Some(begins), is_linked) as f64 / one);
        // Of two that begin together one gives half, and has no more.
        assert!(linked < apart && linked <= 1.5, "{begins} ms: {linked}, each on its own {apart}");
        assert!(begins < 100 || (0.9..1.1).contains(&linked), "{begins} ms: {linked}, each on its own {apart}");
    }
}
