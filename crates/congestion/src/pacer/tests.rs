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

#[test]
fn lost_bursts_without_a_queue_for_them_make_packets_leave_one_by_one() {
    // 127 500 bytes/s in company: one datagram in 9.4 ms, a burst in 94 ms.
    let pace = |idle| {
        let (srtt, window_bytes) = (Duration::from_millis(100), 12_000);
        Pace { srtt, window_bytes, max_datagram_bytes: MSS, rate: None, idle }
    };
    let burst = |pacer: &mut Pacer, now, mut idle| {
        let mut sent = 0;
        loop {
            pacer.refill(now, &pace(idle));
            if pacer.ready_at(now, &pace(idle)).is_some() {
                return sent;
            }
            pacer.on_sent(MSS);
            (sent, idle) = (sent + 1, false);
        }
    };
    let mut pacer = Pacer::new(at(0), None);
    assert_eq!(burst(&mut pacer, at(0), true), 10);
    pacer.on_lost(LossPattern::Scattered, Company::Siblings, Duration::ZERO, &pace(false));
    assert_eq!(burst(&mut pacer, at(40_000), false), 5, "losses here and there are no queue's");
    pacer.on_lost(LossPattern::Burst, Company::Siblings, Duration::from_millis(79), &pace(false));
    assert_eq!(burst(&mut pacer, at(50_000), false), 1);
    assert_eq!(pacer.ready_at(at(50_000), &pace(false)), Some(at(50_000) + Duration::from_nanos(9_411_765)));
    assert!(!pacer.is_rested());
    assert_eq!(burst(&mut pacer, at(300_000), false), 1);
    // A window that leaves at once after a rest does not wait a round trip.
    assert_eq!(burst(&mut pacer, at(600_000), true), 10);
    assert_eq!(burst(&mut pacer, at(900_000), false), 1);
    pacer.on_lost(LossPattern::Burst, Company::Siblings, Duration::from_millis(95), &pace(false));
    assert_eq!(burst(&mut pacer, at(1_200_000), false), 10, "the queue holds a burst");
    pacer.on_lost(LossPattern::Burst, Company::Siblings, Duration::ZERO, &pace(false));
    for left in (0..TIGHT_LOSSES).rev() {
        assert_eq!(burst(&mut pacer, at(1_500_000), false), u64::from(left == TIGHT_LOSSES - 1), "{left}");
        pacer.on_lost(LossPattern::Scattered, Company::Siblings, Duration::ZERO, &pace(false));
    }
    assert_eq!(burst(&mut pacer, at(1_500_000), false), 9, "bursts are tried again");
}

#[test]
fn where_bursts_end_fast_paths_send_in_pairs_if_they_may_meet() {
    // Bytes per second; one datagram of 1200 bytes where 2 ms hold no more, two of them, or half a millisecond.
    let with_siblings = [(150_000, 1), (1_150_000, 1), (1_250_000, 2), (4_000_000, 2), (10_000_000, 4)];
    let alone = [(150_000, 1), (1_250_000, 2), (4_000_000, 6), (10_000_000, 16)];
    let cases = [(Company::Siblings, &with_siblings[..]), (Company::Alone, &alone[..])];
    for (company, rates) in cases {
        for &(rate, expected) in rates {
            let pace =
                Pace { srtt: Duration::ZERO, window_bytes: 0, max_datagram_bytes: MSS, rate: Some(rate), idle: false };
            let mut pacer = Pacer::new(at(0), None);
            pacer.refill(at(0), &pace);
            // Who is there when a loss shows counts, not who was.
            pacer.on_lost(LossPattern::Burst, Company::Alone, Duration::ZERO, &pace);
            pacer.on_lost(LossPattern::Scattered, company, Duration::ZERO, &pace);
            pacer.on_sent(100_000);
            let mut sent = 0;
            pacer.refill(at(2_000_000), &pace);
            while pacer.ready_at(at(2_000_000), &pace).is_none() {
                pacer.on_sent(MSS);
                sent += 1;
            }
            assert_eq!(sent, expected, "{company:?}, {rate} bytes per second");
        }
    }
}

/// Bytes that leave of `pacer` in 10 s, asked each millisecond, of a path that could send 120 000 bytes in each round trip of 100 ms.
fn sent_in_ten_seconds(pacer: &mut Pacer, company: Company) -> u64 {
    let (srtt, window_bytes) = (Duration::from_millis(100), 120_000);
    let pace = Pace { srtt, window_bytes, max_datagram_bytes: MSS, rate: None, idle: false };
    pacer.set_company(company);
    let mut sent = 0;
    for now in (0..10_000).map(|ms| at(ms * 1000)) {
        pacer.refill(now, &pace);
        while pacer.ready_at(now, &pace).is_none() {
            pacer.on_sent(MSS);
            sent += MSS;
        }
    }
    sent
}

#[test]
fn behind_a_short_queue_paths_in_company_send_hardly_more_than_a_window_a_round_trip() {
    let pace = Pace {
        srtt: Duration::from_millis(100),
        window_bytes: 120_000,
        max_datagram_bytes: MSS,
        rate: None,
        idle: false,
    };
    let pacer = |pattern| {
        let mut pacer = Pacer::new(at(0), None);
        pacer.on_lost(pattern, Company::Alone, Duration::ZERO, &pace);
        pacer
    };
    let windows = |pattern, company| sent_in_ten_seconds(&mut pacer(pattern), company) as f64 / 12_000_000.0;
    for (pattern, company, expected) in [
        (LossPattern::Burst, Company::Siblings, 17.0 / 16.0),
        (LossPattern::BesideBursts, Company::Siblings, 17.0 / 16.0),
        (LossPattern::Scattered, Company::Siblings, 5.0 / 4.0),
        (LossPattern::Burst, Company::Alone, 5.0 / 4.0),
    ] {
        let windows = windows(pattern, company);
        assert!((windows / expected - 1.0).abs() < 0.01, "{pattern:?} {company:?}: {windows} a round trip");
    }
}

#[test]
fn a_path_follows_the_bursts_that_another_one_loses_for_a_while() {
    let pace = Pace {
        srtt: Duration::from_millis(100),
        window_bytes: 12_000,
        max_datagram_bytes: MSS,
        rate: None,
        idle: false,
    };
    let mut pacer = Pacer::new(at(0), None);
    pacer.on_lost(LossPattern::BesideBursts, Company::Siblings, Duration::ZERO, &pace);
    assert!(pacer.is_tight() && !pacer.loses_bursts(), "two that follow each other would never end");
    for left in (0..TIGHT_LOSSES).rev() {
        assert!(pacer.is_tight(), "{left}");
        pacer.on_lost(LossPattern::BesideBursts, Company::Siblings, Duration::ZERO, &pace);
    }
    assert!(!pacer.is_tight());
    pacer.on_lost(LossPattern::Burst, Company::Siblings, Duration::ZERO, &pace);
    assert!(pacer.loses_bursts());
    pacer.on_lost(LossPattern::BesideBursts, Company::Siblings, Duration::from_secs(1), &pace);
    assert!(!pacer.is_tight(), "the queue holds a burst");
}
