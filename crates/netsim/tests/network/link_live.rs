//! A link with a real queue: CoDel, and changes that hold for what already waits.

use std::time::Duration;

use plait_base::{Ecn, Instant, Random};
use plait_netsim::link::{
    Aqm, CoDelConfig, DropCause, FqCoDelConfig, Link, LinkConfig, LinkState, Loss, Outcome, QueueLimit, Rate,
    RedConfig, Release, Service, Ticket, Trace, Verdict,
};

const MS: Duration = Duration::from_millis(1);

fn at(us: u64) -> Instant {
    Instant::from_nanos(us * 1000)
}

fn link(config: LinkConfig) -> Link {
    Link::new(config, Random::from_u64(7))
}

/// Everything that leaves by `until`, each polled at its deadline.
fn drain(link: &mut Link, until: Instant) -> Vec<Release> {
    let mut out = Vec::new();
    while let Some(deadline) = link.deadline().filter(|d| *d <= until) {
        out.extend(std::iter::from_fn(|| link.poll(deadline)));
    }
    out
}

fn departures(releases: &[Release]) -> Vec<Instant> {
    let departure = |r: &Release| match r.outcome {
        Outcome::Forward(d) => Some(d.departure),
        Outcome::Dropped(_) => None,
    };
    releases.iter().filter_map(departure).collect()
}

/// Whether the caller serves the live link before it offers the next datagram, or only afterwards.
#[derive(Clone, Copy, PartialEq)]
enum Served {
    Before,
    After,
}

/// Offers the same datagrams (time and size) to a planned link and to a live one.
fn compare(config: &LinkConfig, served: Served, arrivals: impl Iterator<Item = (Instant, usize)>) -> (Link, Link) {
    let mut planned = link(config.clone());
    let mut live = link(config.clone().service(Service::Live));
    let (mut expected, mut got) = (Vec::new(), Vec::new());
    for (now, size) in arrivals {
        if served == Served::Before {
            got.extend(departures(&drain(&mut live, now)));
        }
        let (on_paper, for_real) = (planned.offer(now, size, None), live.offer(now, size, None));
        if let Verdict::Forward(d) = on_paper {
            expected.push(d.departure);
        }
        let refused = [Verdict::Dropped(DropCause::QueueFull), Verdict::Dropped(DropCause::Aqm)];
        assert_eq!(refused.contains(&on_paper), refused.contains(&for_real), "{on_paper:?} {for_real:?} at {now}");
        if served == Served::After {
            got.extend(departures(&drain(&mut live, now)));
        }
    }
    got.extend(departures(&drain(&mut live, at(1_000_000_000))));
    assert!(got == expected, "they part after {}", got.iter().zip(&expected).take_while(|(a, b)| a == b).count());
    assert_eq!(planned.stats().dropped, live.stats().dropped);
    assert_eq!(planned.stats().queue_time_sum, live.stats().queue_time_sum);
    (planned, live)
}

#[test]
fn live_and_planned_service_agree() {
    for rate in [Rate::Fixed(7_000_000), Rate::Trace(Trace::parse("1\n3\n3\n8\n").unwrap())] {
        let config = LinkConfig { rate, delay: 3 * MS, ..LinkConfig::default() }
            .queue(QueueLimit::packets(5))
            .loss(Loss::Bernoulli(0.05));
        for served in [Served::Before, Served::After] {
            let arrivals = (0..500).map(|i| (at(i * 700), 200 + (i as usize * 377) % 1200));
            let (_, live) = compare(&config, served, arrivals);
            assert!(live.stats().drops(DropCause::QueueFull) > 0);
        }
    }
}

#[test]
fn live_and_planned_service_agree_at_one_instant() {
    // A datagram comes in the nanosecond in which the one being sent has left: the queue has room by then.
    let config = LinkConfig::new(10_000_000, MS).queue(QueueLimit::packets(1));
    for served in [Served::Before, Served::After] {
        let (planned, _) = compare(&config, served, (0..100).map(|i| (at(i / 2 * 1000), 1250)));
        assert_eq!(planned.stats().drops(DropCause::QueueFull), 49);
    }
}

#[test]
fn red_is_the_same_on_a_live_link_and_on_a_planned_one() {
    // Load 0.97: the queue often is empty while a datagram is being sent, which is no rest of the link.
    let red = RedConfig { min_bytes: 5_000, max_bytes: 30_000, drop_max: 0.1, weight: 0.002 };
    for loss in [Loss::None, Loss::bursts(0.01, 3.0)] {
        let config = LinkConfig::new(10_000_000, MS).aqm(Aqm::Red(red)).loss(loss);
        let mut random = Random::from_u64(3);
        let mut now = 0.0;
        let arrivals = (0..100_000).map(|_| {
            now -= 1000.0 / 0.97 * (1.0 - random.unit()).ln();
            (at(now as u64), 1250)
        });
        let (planned, _) = compare(&config, Served::After, arrivals);
        assert!(planned.stats().drops(DropCause::Aqm) > 500);
    }
}

#[test]
fn a_new_rate_holds_at_once() {
    let mut l = link(LinkConfig::new(10_000_000, Duration::ZERO).service(Service::Live));
    (0..3).for_each(|i| assert_eq!(l.offer(at(0), 1250, None), Verdict::Queued(Ticket(i))));
    // Half of the first is sent; the rest takes ten times as long.
    l.change(at(500), |c| c.rate = Rate::Fixed(1_000_000));
    assert_eq!(departures(&drain(&mut l, at(40_000))), [at(5_500), at(15_500), at(25_500)]);
}

#[test]
fn a_link_that_stands_still_waits_for_its_rate() {
    let mut l = link(LinkConfig::new(0, Duration::ZERO));
    assert_eq!(l.offer(at(0), 1250, None), Verdict::Queued(Ticket(0)));
    assert_eq!(l.deadline(), None);
    l.change(at(50_000), |c| c.rate = Rate::Fixed(10_000_000));
    assert_eq!(departures(&drain(&mut l, at(60_000))), [at(51_000)]);
    // With nothing left the link plans again.
    assert!(matches!(l.offer(at(60_000), 1250, None), Verdict::Forward(_)));
}

#[test]
fn what_was_planned_leaves_before_what_is_queued() {
    let mut l = link(LinkConfig::new(10_000_000, Duration::ZERO));
    assert!(matches!(l.offer(at(0), 1250, None), Verdict::Forward(_)));
    l.change(at(100), |c| c.service = Service::Live);
    l.offer(at(200), 1250, None);
    assert_eq!(departures(&drain(&mut l, at(9_000))), [at(2_000)]);
}

#[test]
fn down_loses_what_waits() {
    let mut l = link(LinkConfig::new(10_000_000, MS).service(Service::Live));
    (0..4).for_each(|_| _ = l.offer(at(0), 1250, None));
    assert_eq!(departures(&drain(&mut l, at(1_500))), [at(1_000)]);
    l.change(at(1_500), |c| c.state = LinkState::Down);
    let gone = drain(&mut l, at(1_500));
    assert_eq!(gone.len(), 3);
    assert!(gone.iter().all(|r| r.outcome == Outcome::Dropped(DropCause::Down)));
    assert_eq!(l.stats().drops(DropCause::Down), 3);
}

/// Offers `load` times the rate for `seconds`; answers the waits (in ms) of what got through in the last half.
fn codel_run(load: f64, seconds: u64, ecn: Option<Ecn>) -> (Link, Vec<f64>) {
    let config = LinkConfig::new(10_000_000, Duration::ZERO).aqm(Aqm::CoDel(CoDelConfig::default()));
    let mut l = link(config);
    let (mut entered, mut waits) = (Vec::new(), Vec::new());
    let count = (seconds as f64 * 1000.0 * load) as u64;
    for i in 0..count {
        let now = at((i as f64 * 1000.0 / load) as u64);
        for release in drain(&mut l, now) {
            if let Outcome::Forward(d) = release.outcome {
                let start: Instant = entered[release.ticket.0 as usize];
                if start > at(seconds * 500_000) {
                    waits.push(d.departure.since(start).as_secs_f64() * 1000.0 - 1.0);
                }
            }
        }
        entered.push(now);
        assert!(matches!(l.offer(now, 1250, ecn), Verdict::Queued(_)));
    }
    (l, waits)
}

#[test]
fn codel_lets_a_light_load_and_a_burst_pass() {
    let (l, waits) = codel_run(0.9, 20, None);
    assert_eq!(l.stats().drops_total(), 0);
    assert!(waits.iter().all(|w| *w < 0.01));
    let mut l = link(LinkConfig::new(10_000_000, MS).aqm(Aqm::CoDel(CoDelConfig::default())));
    (0..60).for_each(|_| _ = l.offer(at(0), 1250, None));
    assert_eq!(departures(&drain(&mut l, at(1_000_000))).len(), 60, "a burst shorter than an interval is not punished");
}

#[test]
fn codel_drops_under_overload_and_more_as_time_goes_on() {
    let (l, _) = codel_run(1.1, 10, None);
    let drops = l.stats().drops(DropCause::Aqm);
    assert!((100..1200).contains(&drops), "{drops}");
    let (longer, waits) = codel_run(1.1, 60, None);
    assert!(longer.stats().drops(DropCause::Aqm) > 6 * drops, "the control law speeds up");
    // 10 % too much is 6,000 datagrams in a minute: without drops the wait would reach 6 s.
    let worst = waits.iter().cloned().fold(0.0, f64::max);
    assert!(worst < 1000.0, "{worst}");
}

#[test]
fn codel_marks_instead_of_dropping() {
    let (l, _) = codel_run(1.1, 10, Some(Ecn::Ect0));
    assert_eq!(l.stats().drops(DropCause::Aqm), 0);
    assert!(l.stats().marked > 100);
}

#[test]
fn codel_signals_come_faster_by_the_square_root() {
    // The first signals of RFC 8289: an interval after the target is crossed, then interval / sqrt(count).
    let mut l = link(LinkConfig::new(10_000_000, Duration::ZERO).aqm(Aqm::CoDel(CoDelConfig::default())));
    (0..1000).for_each(|_| _ = l.offer(at(0), 1250, None));
    let mut drops = Vec::new();
    while let Some(deadline) = l.deadline() {
        let now = deadline.max(drops.last().copied().unwrap_or(Instant::ZERO));
        while let Some(release) = l.poll(now) {
            if release.outcome == Outcome::Dropped(DropCause::Aqm) {
                drops.push(now);
            }
        }
    }
    // The 6th datagram waits 5 ms at 5 ms; the first drop comes at 105 ms, then after 100, 70.7, 57.7 ms.
    let expected = [105_000, 205_000, 276_000, 334_000];
    assert_eq!(&drops[..4], expected.map(at));
}

/// Two flows into 10 Mbit/s for 5 s: 15 Mbit/s of flow 1 and 1 Mbit/s of flow 2. Bytes sent and longest wait of each.
fn two_flows(fq: FqCoDelConfig) -> [(u64, f64); 2] {
    let mut l = link(LinkConfig::new(10_000_000, Duration::ZERO).aqm(Aqm::FqCoDel(fq)));
    let (mut offered, mut flows) = (Vec::new(), [(0, 0.0f64); 2]);
    let mut note = |l: &mut Link, until, offered: &Vec<(usize, Instant)>| {
        for release in drain(l, until) {
            let (flow, entered) = offered[release.ticket.0 as usize];
            if let Outcome::Forward(delivery) = release.outcome {
                flows[flow].0 += 1250;
                flows[flow].1 = flows[flow].1.max(delivery.departure.since(entered).as_secs_f64() * 1e3);
            }
        }
    };
    for n in 0..8_000u64 {
        let now = at(n * 625);
        note(&mut l, now, &offered);
        let flow = usize::from(n % 16 == 0);
        let verdict = l.offer_flow(now, 1250, None, 17 + flow as u64);
        assert_eq!(verdict, Verdict::Queued(Ticket(offered.len() as u64)));
        offered.push((flow, now));
    }
    note(&mut l, at(60_000_000), &offered);
    let s = *l.stats();
    assert_eq!(s.offered_packets, s.forwarded_packets + s.drops_total(), "nothing is left: {s:?}");
    assert_eq!((l.pending(), l.queued_bytes(at(60_000_000))), (0, 0));
    flows
}

#[test]
fn fq_codel_serves_flows_in_turns() {
    let [greedy, modest] = two_flows(FqCoDelConfig::default());
    assert_eq!(modest.0, 500 * 1250, "the modest flow loses nothing");
    assert!(modest.1 < 3.1, "and waits for one frame of the other: {} ms", modest.1);
    assert!(greedy.0 > 5_000_000 && greedy.1 > 20.0, "{greedy:?}");
}

#[test]
fn a_device_queue_delays_every_flow() {
    let [_, modest] = two_flows(FqCoDelConfig { device_packets: 100, ..FqCoDelConfig::default() });
    assert_eq!(modest.0, 500 * 1250);
    assert!(modest.1 > 99.0 && modest.1 < 104.0, "100 packets of 1 ms are before it: {} ms", modest.1);
}

#[test]
fn fq_codel_drops_from_the_fattest() {
    let fq = FqCoDelConfig { packets: 10, ..FqCoDelConfig::default() };
    let mut l = link(LinkConfig::new(1_000_000, Duration::ZERO).aqm(Aqm::FqCoDel(fq)));
    (0..11).for_each(|_| assert!(matches!(l.offer_flow(at(0), 1250, None, 1), Verdict::Queued(_))));
    assert!(matches!(l.offer_flow(at(0), 1250, None, 2), Verdict::Queued(_)));
    let gone = l.poll(at(0)).unwrap();
    assert_eq!(gone, Release { ticket: Ticket(1), outcome: Outcome::Dropped(DropCause::QueueFull) });
    assert_eq!(departures(&drain(&mut l, at(1_000_000))).len(), 11);
    let mut l = link(LinkConfig::new(1_000_000, Duration::ZERO).aqm(Aqm::FqCoDel(fq)));
    (0..9).for_each(|flow| assert!(matches!(l.offer_flow(at(0), 1250, None, flow), Verdict::Queued(_))));
    l.change(at(1), |config| config.state = LinkState::Down);
    assert_eq!(drain(&mut l, at(2)).len(), 9);
    assert_eq!(l.stats().drops_total(), 9);
}
