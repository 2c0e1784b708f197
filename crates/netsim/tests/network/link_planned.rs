//! A link whose answers are known on entry: rate, delay, queue bounds, loss and disorder.

use std::time::Duration;

use plait_base::{Ecn, Instant, Random};
use plait_netsim::link::{
    Aqm, DropCause, Integrity, Jitter, Link, LinkConfig, LinkState, Loss, LossPlace, Order, QueueLimit, Rate,
    RedConfig, Reorder, Trace, TraceError, Verdict,
};

const MS: Duration = Duration::from_millis(1);

fn at(us: u64) -> Instant {
    Instant::from_nanos(us * 1000)
}

fn link(config: LinkConfig) -> Link {
    config.check().unwrap();
    Link::new(config, Random::from_u64(7))
}

fn arrival(verdict: Verdict) -> Option<Instant> {
    match verdict {
        Verdict::Forward(delivery) => Some(delivery.first.at),
        _ => None,
    }
}

/// Arrivals of `count` datagrams of 1,250 bytes, one a millisecond.
fn arrivals(link: &mut Link, count: u64) -> Vec<Option<Instant>> {
    (0..count).map(|i| arrival(link.offer(at(i * 1000), 1250, None))).collect()
}

#[test]
fn serialization_and_delay() {
    // 10 Mbit/s: 1 ms for 1,250 bytes.
    let mut l = link(LinkConfig::new(10_000_000, 20 * MS));
    assert_eq!(arrival(l.offer(at(0), 1250, None)), Some(at(21_000)));
    assert_eq!(arrival(l.offer(at(0), 1250, None)), Some(at(22_000)));
    assert_eq!((l.queued_packets(at(999)), l.queued_packets(at(1000))), (1, 0));
    assert_eq!(l.queue_time(at(500)), Duration::from_micros(1500));
    assert_eq!(arrival(l.offer(at(5_000), 1250, None)), Some(at(26_000)));
    assert_eq!(l.stats().queue_time_max, MS);
}

#[test]
fn overhead_counts_for_rate_and_mtu() {
    let mut l = link(LinkConfig::new(10_000_000, Duration::ZERO).sizes(1500, 28));
    assert_eq!(arrival(l.offer(at(0), 1222, None)), Some(at(1000)));
    assert_eq!(l.offer(at(0), 1473, None), Verdict::Dropped(DropCause::TooBig));
    assert!(arrival(l.offer(at(0), 1472, None)).is_some());
}

#[test]
fn queue_bounds_hold_behind_the_datagram_in_service() {
    for limit in [QueueLimit::packets(3), QueueLimit::bytes(3750), QueueLimit::time(3 * MS)] {
        let mut l = link(LinkConfig::new(10_000_000, MS).queue(limit));
        let through = (0..10).filter(|_| arrival(l.offer(at(0), 1250, None)).is_some()).count();
        assert_eq!(through, 4, "{limit:?}: one in service and three waiting");
        assert_eq!(l.stats().drops(DropCause::QueueFull), 6);
        assert_eq!(l.queued_bytes(at(0)), 3750);
        assert_eq!(l.stats().queue_bytes_max, 3750);
    }
}

#[test]
fn an_idle_link_takes_what_its_queue_could_not() {
    let mut l = link(LinkConfig::new(10_000_000, MS).queue(QueueLimit::bytes(100)));
    assert!(arrival(l.offer(at(0), 1250, None)).is_some());
    assert!(arrival(l.offer(at(0), 1250, None)).is_none());
}

#[test]
fn bernoulli_loss_has_its_mean_and_uses_the_wire() {
    let mut l = link(LinkConfig::new(10_000_000, MS).loss(Loss::Bernoulli(0.1)));
    let got = arrivals(&mut l, 20_000).iter().flatten().count();
    assert!((17_700..18_300).contains(&got), "{got}");
    // Wire losses keep the link busy, entry losses do not.
    for (place, free) in [(LossPlace::Wire, 10 * MS), (LossPlace::Entry, Duration::ZERO)] {
        let config = LinkConfig { loss_place: place, ..LinkConfig::new(10_000_000, MS).loss(Loss::Bernoulli(1.0)) };
        let mut l = link(config);
        (0..10).for_each(|_| assert_eq!(l.offer(at(0), 1250, None), Verdict::Dropped(DropCause::Loss)));
        assert_eq!(l.queue_time(at(0)), free);
    }
}

#[test]
fn gilbert_elliott_loses_in_bursts() {
    let mut l = link(LinkConfig::new(1_000_000_000, MS).loss(Loss::bursts(0.05, 5.0)));
    let got = arrivals(&mut l, 100_000);
    let lost = got.iter().filter(|a| a.is_none()).count();
    let bursts = got.windows(2).filter(|w| w[0].is_some() && w[1].is_none()).count();
    assert!((4_200..5_800).contains(&lost), "{lost}");
    let mean = lost as f64 / bursts as f64;
    assert!((4.3..5.7).contains(&mean), "{mean}");
}

#[test]
fn timed_bursts_last_as_long_at_any_rate() {
    // 5 % of the time is bad, 10 ms at once; of a gap that lasts 1 / rate the state remembers exp(-gap / 9.5 ms).
    for (gap, count) in [(1_000, 400_000), (20_000, 100_000)] {
        let mut l = link(LinkConfig::new(1_000_000_000, MS).loss(Loss::timed_bursts(0.05, 10 * MS)));
        let got: Vec<bool> = (0..count).map(|i| arrival(l.offer(at(i * gap), 1250, None)).is_some()).collect();
        let share = got.iter().filter(|through| !**through).count() as f64 / count as f64;
        assert!((0.045..0.055).contains(&share), "{share}");
        let bursts = got.windows(2).filter(|w| w[0] && !w[1]).count();
        let memory = (-(gap as f64) / 9_500.0).exp();
        let expected = 1.0 / ((1.0 - 0.05) * (1.0 - memory));
        let mean = share * count as f64 / bursts as f64;
        assert!((mean / expected - 1.0).abs() < 0.05, "{mean} datagrams a burst, not {expected}");
    }
    for (mean, lost) in [(0.0, 0), (1.0, 1000)] {
        let mut l = link(LinkConfig::new(1_000_000_000, MS).loss(Loss::timed_bursts(mean, 10 * MS)));
        assert_eq!(arrivals(&mut l, 1000).iter().filter(|a| a.is_none()).count(), lost);
    }
}

#[test]
fn loss_per_byte_grows_with_size() {
    let mut l = link(LinkConfig::new(1_000_000_000, MS).loss(Loss::PerByte(8e-6)));
    let lost =
        |l: &mut Link, size| (0..50_000).filter(|i| arrival(l.offer(at(i * 1000), size, None)).is_none()).count();
    let (small, large) = (lost(&mut l, 100), lost(&mut l, 1500));
    assert!((15..80).contains(&small), "{small}");
    assert!((500..700).contains(&large), "about 1.2 %: {large}");
}

#[test]
fn jitter_keeps_or_breaks_order() {
    for jitter in [Jitter::Uniform(8 * MS), Jitter::Normal(4 * MS)] {
        for order in [Order::Kept, Order::Free] {
            let mut l = link(LinkConfig::new(1_000_000_000, 10 * MS).jitter(jitter, order));
            let got: Vec<_> = arrivals(&mut l, 1000).into_iter().flatten().collect();
            assert_eq!(got.windows(2).all(|w| w[0] <= w[1]), order == Order::Kept);
            assert_eq!(got.len(), 1000);
        }
    }
}

#[test]
fn uniform_jitter_stays_within_its_spread() {
    let mut l = link(LinkConfig::default().jitter(Jitter::Uniform(MS), Order::Free));
    l.change(at(0), |c| c.delay = 5 * MS);
    for (i, a) in arrivals(&mut l, 1000).into_iter().flatten().enumerate() {
        let delay = a.since(at(i as u64 * 1000));
        assert!((4 * MS..=6 * MS).contains(&delay), "{delay:?}");
    }
}

#[test]
fn drift_spreads_the_delay_and_keeps_packets_apart() {
    // 10,000 packets/s, each 0.1 ms after the one before it; a spread of 40 of these gaps.
    let run = |jitter, order| -> Vec<Duration> {
        let mut l = link(LinkConfig::new(10_000_000_000, 10 * MS).jitter(jitter, order));
        let delay = |i: u64| Some(arrival(l.offer(at(i * 100), 1250, None))?.since(at(i * 100)));
        (0..100_000).filter_map(delay).collect()
    };
    let gap = Duration::from_micros(100);
    let bunched = |delays: &[Duration]| delays.windows(2).filter(|w| w[1] + gap == w[0]).count();
    let share = bunched(&run(Jitter::Uniform(4 * MS), Order::Kept)) as f64 / 1e5;
    assert!((0.8..0.95).contains(&share), "each with its own delay: {share} arrive with the one before");
    for order in [Order::Kept, Order::Free] {
        let drift = run(Jitter::Drift(4 * MS), order);
        assert!(drift.windows(2).all(|w| (w[1] + gap).saturating_sub(w[0]) >= gap / 2));
        let (low, high) = (*drift.iter().min().unwrap(), *drift.iter().max().unwrap());
        assert!(low >= 6 * MS && low < 7 * MS, "{low:?}");
        assert!(high <= 14 * MS + MS / 100 && high > 13 * MS, "{high:?}");
        let mean = drift.iter().sum::<Duration>() / 100_000;
        assert!((9 * MS..11 * MS).contains(&mean), "{mean:?}");
    }
}

#[test]
fn reorder_duplicate_and_corrupt() {
    let config = LinkConfig {
        reorder: Reorder { probability: 0.1, extra: 5 * MS },
        duplicate: 0.2,
        corrupt: 0.3,
        ..LinkConfig::new(1_000_000_000, 10 * MS)
    };
    let mut l = link(config);
    let (mut twice, mut damaged, mut copies) = (0, 0, 0);
    for i in 0..10_000 {
        let Verdict::Forward(d) = l.offer(at(i * 1000), 1250, None) else { panic!("nothing drops here") };
        twice += usize::from(d.second.is_some());
        copies += d.arrivals().count();
        damaged += d.arrivals().filter(|a| a.integrity == Integrity::Corrupted).count();
    }
    assert!((1_800..2_200).contains(&twice), "{twice}");
    assert!((0.28..0.32).contains(&(damaged as f64 / copies as f64)));
    let s = *l.stats();
    assert!((850..1150).contains(&s.reordered));
    assert_eq!((s.duplicates, s.corrupted), (twice as u64, damaged as u64));
}

#[test]
fn down_drops_and_cuts_what_has_not_departed() {
    let mut l = link(LinkConfig::new(10_000_000, 20 * MS));
    (0..5).for_each(|_| assert!(arrival(l.offer(at(0), 1250, None)).is_some()));
    l.change(at(2_500), |c| c.state = LinkState::Down);
    assert_eq!(l.cut_at(), Some(at(2_500)));
    assert_eq!(l.offer(at(2_500), 1250, None), Verdict::Dropped(DropCause::Down));
    l.change(at(9_000), |c| c.state = LinkState::Up);
    assert_eq!(arrival(l.offer(at(9_000), 1250, None)), Some(at(30_000)));
}

#[test]
fn a_new_rate_holds_for_what_comes_after() {
    let mut l = link(LinkConfig::new(10_000_000, Duration::ZERO));
    assert_eq!(arrival(l.offer(at(0), 1250, None)), Some(at(1_000)));
    l.change(at(0), |c| c.rate = Rate::Fixed(1_000_000));
    assert_eq!(arrival(l.offer(at(0), 1250, None)), Some(at(11_000)));
}

#[test]
fn red_marks_or_drops_as_the_mean_grows() {
    let red = RedConfig { min_bytes: 10_000, max_bytes: 40_000, drop_max: 0.1, weight: 0.05 };
    for ecn in [None, Some(Ecn::Ect0)] {
        let mut l = link(LinkConfig::new(10_000_000, MS).aqm(Aqm::Red(red)));
        // Two datagrams a slot: the queue grows by one a millisecond.
        let mut ce = 0;
        for i in 0..40 {
            for _ in 0..2 {
                if let Verdict::Forward(d) = l.offer(at(i * 1000), 1250, ecn) {
                    ce += usize::from(d.ecn == Some(Ecn::Ce));
                }
            }
        }
        let signals = l.stats().marked + l.stats().drops(DropCause::Aqm);
        assert!((1..30).contains(&signals), "{signals}");
        assert_eq!(ce > 0, ecn.is_some());
        assert_eq!(l.stats().drops(DropCause::Aqm) == 0, ecn.is_some());
        // After a long rest the mean has decayed and nothing is signalled.
        let before = l.stats().marked + l.stats().drops(DropCause::Aqm);
        (0..20).for_each(|i| _ = l.offer(at(5_000_000 + i * 2000), 1250, ecn));
        assert_eq!(l.stats().marked + l.stats().drops(DropCause::Aqm), before);
    }
}

#[test]
fn trace_sends_at_its_moments_and_repeats() {
    let trace = Trace::parse("# two chances at 1 ms, one at 4 ms\n1\n1\n\n4\n").unwrap();
    assert_eq!(trace.mean_bps(), 3 * 1504 * 8 * 250);
    let mut l = link(LinkConfig { rate: Rate::Trace(trace), ..LinkConfig::default() });
    let got: Vec<_> = (0..5).map(|_| arrival(l.offer(at(0), 1504, None)).unwrap()).collect();
    assert_eq!(got, [at(1000), at(1000), at(4000), at(5000), at(5000)]);
    // Chances that pass unused are gone.
    assert_eq!(arrival(l.offer(at(8_001), 1504, None)), Some(at(9_000)));
    // Small datagrams share a chance; large ones need two.
    assert_eq!(arrival(l.offer(at(8_001), 1000, None)), Some(at(9_000)));
    assert_eq!(arrival(l.offer(at(8_001), 504, None)), Some(at(9_000)));
    assert_eq!(arrival(l.offer(at(8_001), 1505, None)), Some(at(13_000)));
}

#[test]
fn trace_rate_is_met_over_a_long_time() {
    let trace = Trace::from_millis((1..=100).map(|i| i / 2 * 2 + 1).collect()).unwrap();
    let bps = trace.mean_bps();
    let mut l = link(LinkConfig { rate: Rate::Trace(trace), ..LinkConfig::default() });
    let last = (0..10_000).filter_map(|_| arrival(l.offer(at(0), 1200, None))).last().unwrap();
    let measured = 10_000.0 * 1200.0 * 8.0 / last.since_origin().as_secs_f64();
    assert!((measured / bps as f64 - 1.0).abs() < 0.02, "{measured} {bps}");
}

#[test]
fn bad_traces_are_named() {
    assert_eq!(Trace::parse("1\nx\n"), Err(TraceError::NotANumber(2)));
    assert_eq!(Trace::parse("1\n4294967296\n"), Err(TraceError::TooLate(2)));
    assert_eq!(Trace::parse("5\n4\n"), Err(TraceError::Backwards(2)));
    assert_eq!(Trace::parse("# nothing\n"), Err(TraceError::Empty));
    assert_eq!(Trace::parse("0\n0\n"), Err(TraceError::Empty));
}

#[test]
fn bad_settings_are_named() {
    assert!(LinkConfig { duplicate: 1.5, ..LinkConfig::default() }.check().is_err());
    assert!(LinkConfig::default().loss(Loss::Bernoulli(-0.1)).check().is_err());
    assert!(LinkConfig::default().sizes(28, 28).check().is_err());
    let red = RedConfig { min_bytes: 2, max_bytes: 1, ..RedConfig::default() };
    assert!(LinkConfig::default().aqm(Aqm::Red(red)).check().is_err());
}

#[test]
fn same_seed_same_answers() {
    let config = LinkConfig { duplicate: 0.1, corrupt: 0.1, ..LinkConfig::new(10_000_000, 5 * MS) }
        .loss(Loss::bursts(0.02, 3.0))
        .jitter(Jitter::Normal(MS), Order::Free);
    let run = |seed| {
        let mut l = Link::new(config.clone(), Random::from_u64(seed));
        (0..1000).map(|i| l.offer(at(i * 700), 1200, None)).collect::<Vec<_>>()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}
