//! The pacer: bursts, rates and idle times.

use super::*;
use proptest::prelude::*;

const MSS: u64 = 1200;

fn at(micros: u64) -> Instant {
    Instant::from_nanos(micros * 1000)
}

/// Refills and asks, as a sender does.
fn refilled(
    pacer: &mut Pacer,
    now: Instant,
    srtt: Duration,
    window_bytes: u64,
    max_datagram_bytes: u64,
    rate: Option<u64>,
) -> Option<Instant> {
    let pace = Pace { srtt, window_bytes, max_datagram_bytes, rate, idle: false };
    let before = pacer.ready_at(now, &pace);
    pacer.refill(now, &pace);
    assert_eq!(pacer.ready_at(now, &pace), before, "asking shows what refilling gives");
    let has_credit = pacer.has_credit(now, max_datagram_bytes);
    // Without any pace nothing is credited, and nothing held.
    assert!(has_credit == before.is_none() || (before.is_none() && srtt.is_zero()), "{has_credit} but {before:?}");
    before
}

#[test]
fn a_burst_of_ten_then_the_rate() {
    // RFC 9002 7.7
    let mut pacer = Pacer::new(at(0), None);
    // 12 000 bytes in 100 ms at 5/4: 150 000 bytes/s, one datagram in 8 ms.
    let ask = |pacer: &mut Pacer, now| refilled(pacer, now, Duration::from_millis(100), 12_000, MSS, None);
    for _ in 0..10 {
        assert_eq!(ask(&mut pacer, at(0)), None);
        pacer.on_sent(MSS);
    }
    assert_eq!(ask(&mut pacer, at(0)), Some(at(8000)));
    assert_eq!(ask(&mut pacer, at(7999)), Some(at(8000)));
    assert_eq!(ask(&mut pacer, at(8000)), None);
    pacer.on_sent(MSS);
    assert_eq!(ask(&mut pacer, at(8000)), Some(at(16_000)));
}

#[test]
fn the_controllers_rate_wins_and_fast_paths_burst_two_milliseconds() {
    let mut pacer = Pacer::new(at(0), None);
    let rate = Some(100_000_000);
    assert_eq!(refilled(&mut pacer, at(0), Duration::from_millis(100), 1, MSS, rate), None);
    assert_eq!(pacer.burst_left(), 200_000);
    pacer.on_sent(200_000);
    // Waits for half a millisecond's worth, not for one datagram.
    assert_eq!(refilled(&mut pacer, at(0), Duration::ZERO, 1, MSS, rate), Some(at(500)));
    assert_eq!(refilled(&mut pacer, at(500), Duration::ZERO, 1, MSS, rate), None);
}

#[test]
fn idle_time_fills_one_burst_only_and_debt_is_bounded() {
    let mut pacer = Pacer::new(at(0), None);
    let ask = |pacer: &mut Pacer, now| refilled(pacer, now, Duration::from_millis(100), 12_000, MSS, None);
    assert_eq!(ask(&mut pacer, at(0)), None);
    assert_eq!(ask(&mut pacer, at(60_000_000)), None);
    assert_eq!(pacer.burst_left(), 12_000);
    pacer.on_sent(1_000_000);
    assert_eq!(ask(&mut pacer, at(60_000_000)), Some(at(60_000_000 + 80_000 + 8000)));
}

#[test]
fn a_bound_holds_for_each_burst_and_not_for_the_rate() {
    let rate = Some(100_000_000);
    let mut pacer = Pacer::new(at(0), Some(3 * MSS));
    let (mut sent, mut now) = (0u64, at(0));
    while now < at(100_000) {
        let mut burst = 0;
        while refilled(&mut pacer, now, Duration::ZERO, 1, MSS, rate).is_none() {
            pacer.on_sent(MSS);
            burst += MSS;
        }
        assert!(burst <= 3 * MSS, "{burst}");
        sent += burst;
        now = refilled(&mut pacer, now, Duration::ZERO, 1, MSS, rate).unwrap();
    }
    assert!(sent >= 9_900_000, "{sent} of 10,000,000 bytes in 100 ms");
    // Less than a datagram lets one leave.
    let mut pacer = Pacer::new(at(0), Some(1));
    assert_eq!(refilled(&mut pacer, at(0), Duration::ZERO, 1, MSS, rate), None);
    pacer.on_sent(MSS);
    assert_eq!(refilled(&mut pacer, at(0), Duration::ZERO, 1, MSS, rate), Some(at(12)));
}

#[test]
fn no_rtt_and_no_rate_do_not_hold() {
    let mut pacer = Pacer::new(at(0), None);
    pacer.on_sent(1 << 40);
    assert_eq!(refilled(&mut pacer, at(0), Duration::ZERO, 12_000, MSS, None), None);
}

#[test]
fn extremes_do_not_overflow() {
    let mut pacer = Pacer::new(at(0), None);
    let end = Instant::from_nanos(u64::MAX);
    assert_eq!(refilled(&mut pacer, end, Duration::from_nanos(1), u64::MAX, 65_527, Some(u64::MAX)), None);
    assert_eq!(refilled(&mut pacer, end, Duration::from_nanos(1), u64::MAX, 65_527, None), None);
    pacer.on_sent(u64::MAX);
    assert!(refilled(&mut pacer, at(0), Duration::MAX, 1, 65_527, None).is_some());
}

proptest! {
    #[test]
    fn never_exceeds_rate_times_time_plus_burst(
        rate in 1_000u64..1_000_000_000,
        steps in proptest::collection::vec(0u64..5_000_000, 1..200),
    ) {
        let mut pacer = Pacer::new(at(0), None);
        let (mut now, mut sent) = (0u64, 0u128);
        let burst = u128::from((10 * MSS).max(rate / 500));
        for step in steps {
            now += step;
            let t = Instant::from_nanos(now);
            while refilled(&mut pacer, t, Duration::ZERO, 0, MSS, Some(rate)).is_none() {
                pacer.on_sent(MSS);
                sent += u128::from(MSS);
            }
            prop_assert!(sent * NANOS <= u128::from(rate) * u128::from(now) + burst * NANOS);
        }
    }

    #[test]
    fn the_instant_it_names_is_enough(rate in 1_000u64..10_000_000_000, mss in 100u64..9000) {
        let mut pacer = Pacer::new(at(0), None);
        let mut now = at(0);
        for _ in 0..50 {
            if let Some(then) = refilled(&mut pacer, now, Duration::ZERO, 0, mss, Some(rate)) {
                prop_assert!(then > now);
                now = then;
                prop_assert_eq!(refilled(&mut pacer, now, Duration::ZERO, 0, mss, Some(rate)), None);
            }
            pacer.on_sent(mss);
        }
    }
}

/// A path of `rate` bytes per second in company, that has sent all it may and then some.
fn in_company(rate: u64) -> (Pacer, Pace) {
    let pace = Pace { srtt: Duration::ZERO, window_bytes: 0, max_datagram_bytes: MSS, rate: Some(rate), idle: false };
    let mut pacer = Pacer::new(at(0), None);
    pacer.set_company(Company::Siblings);
    pacer.refill(at(0), &pace);
    (pacer, pace)
}

/// How many datagrams leave at `now`.
fn sent_at(pacer: &mut Pacer, now: Instant, mut pace: Pace) -> u64 {
    let mut sent = 0;
    loop {
        pacer.refill(now, &pace);
        if pacer.ready_at(now, &pace).is_some() {
            return sent;
        }
        pacer.on_sent(MSS);
        (sent, pace.idle) = (sent + 1, false);
    }
}

#[test]
fn in_company_packets_leave_in_pairs_or_what_a_millisecond_holds() {
    for (rate, expected) in [(150_000, 2), (1_250_000, 2), (4_000_000, 3), (10_000_000, 8), (100_000_000, 83)] {
        let (mut pacer, pace) = in_company(rate);
        assert_eq!(sent_at(&mut pacer, at(0), pace), expected, "{rate} bytes per second");
        // The window was full for two seconds: that is no reason for more.
        assert_eq!(sent_at(&mut pacer, at(2_000_000), pace), expected, "{rate} bytes per second");
    }
}

#[test]
fn a_train_that_leaves_after_a_rest_leaves_at_once_in_company_too() {
    let (mut pacer, pace) = in_company(150_000);
    assert_eq!(sent_at(&mut pacer, at(0), pace), 2);
    // The credit that the train goes by until something else is looked at.
    let now = at(600_000);
    pacer.refill(now, &Pace { idle: true, ..pace });
    assert!(pacer.has_credit(now, 10 * MSS) && !pacer.has_credit(now, 10 * MSS + 1));
    pacer.on_sent(5 * MSS);
    assert_eq!(sent_at(&mut pacer, now, pace), 2, "the rest of the burst is over with the train");
}

#[test]
fn a_host_that_wakes_up_late_loses_none_of_the_rate() {
    // One datagram in 0.3 ms, two in 0.6 ms.
    let sent_by = |late_us| {
        let late = Duration::from_micros(late_us);
        let (mut pacer, pace) = in_company(4_000_000);
        let (mut now, mut sent) = (at(0), 0);
        while now < at(1_000_000) {
            sent += sent_at(&mut pacer, now, pace);
            now = pacer.ready_at(now, &pace).unwrap() + late;
            pacer.on_late(late);
        }
        sent
    };
    // A millisecond and as much as it is late hold less than the ten datagrams that leave at once at most.
    for late_us in [0, 300, 1100, 1900] {
        let sent = sent_by(late_us);
        assert!((3325..=3345).contains(&sent), "{sent} of 3,333 packets in a second, {late_us} us late each time");
    }
    assert!(sent_by(6000) < 1700, "a longer sleep fills one bucket");
}

#[test]
fn bursts_go_on_where_losses_show_a_queue_that_holds_them() {
    // Ten datagrams leave in 80 ms.
    let (mut pacer, pace) = in_company(150_000);
    let second = Duration::from_secs(1);
    let (mut now, mut leaves) = (at(0), Vec::new());
    let mut lost = |queued_ms, times| {
        for _ in 0..times {
            pacer.on_lost(Duration::from_millis(queued_ms), &pace);
        }
        now += second;
        leaves.push(sent_at(&mut pacer, now, pace));
    };
    for (queued_ms, times) in [(79, 1), (80, 1), (79, LOSSES_TO_EVEN - 1), (80, 1), (0, LOSSES_TO_EVEN - 1), (0, 1)] {
        lost(queued_ms, times);
    }
    assert_eq!(leaves, [2, 10, 10, 10, 10, 2]);
}

#[test]
fn an_empty_bucket_fills_to_what_was_waited_for_before_more_leaves() {
    // A millisecond holds ten datagrams.
    let (mut pacer, pace) = in_company(12_000_000);
    assert_eq!(sent_at(&mut pacer, at(0), pace), 10);
    assert_eq!(pacer.ready_at(at(0), &pace), Some(at(1000)));
    for early in [200, 400, 999] {
        assert_eq!(sent_at(&mut pacer, at(early), pace), 0, "an ack wakes the sender up after {early} us");
        assert_eq!(pacer.ready_at(at(early), &pace), Some(at(1000)));
    }
    assert_eq!(sent_at(&mut pacer, at(1000), pace), 10);
}

#[test]
fn paths_in_company_send_hardly_more_than_a_window_a_round_trip() {
    let srtt = Duration::from_millis(100);
    let pace = Pace { srtt, window_bytes: 120_000, max_datagram_bytes: MSS, rate: None, idle: false };
    for (company, expected) in [(Company::Siblings, 17.0 / 16.0), (Company::Alone, 5.0 / 4.0)] {
        let mut pacer = Pacer::new(at(0), None);
        pacer.set_company(company);
        let bytes: u64 = (0..10_000).map(|ms| sent_at(&mut pacer, at(ms * 1000), pace) * MSS).sum();
        let windows = bytes as f64 / 12_000_000.0;
        assert!((windows / expected - 1.0).abs() < 0.01, "{company:?}: {windows} a round trip");
    }
}
