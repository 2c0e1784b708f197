//! Queues against what is known of them in closed form, or by a recursion that knows nothing of the link's code.

use std::time::Duration;

use plait_base::{Instant, Random};
use plait_netsim::link::{
    Aqm, CoDelConfig, DropCause, Link, LinkConfig, Outcome, QueueLimit, RedConfig, Service, Verdict,
};

const MS: Duration = Duration::from_millis(1);

fn at(us: u64) -> Instant {
    Instant::from_nanos(us * 1000)
}

/// A draw from the exponential distribution with this mean.
fn exponential(random: &mut Random, mean: f64) -> f64 {
    -mean * (1.0 - random.unit()).ln()
}

/// The mean wait in ms of datagrams that come at random to a link that sends 1,250 bytes in 1 ms, at this load.
fn mean_wait(load: f64, service: Service, mut size: impl FnMut(&mut Random) -> usize) -> f64 {
    let config = LinkConfig { mtu_bytes: u32::MAX, ..LinkConfig::new(10_000_000, MS) }.service(service);
    let mut link = Link::new(config, Random::from_u64(1));
    let (mut random, mut now) = (Random::from_u64(2), 0.0);
    for _ in 0..400_000 {
        now += exponential(&mut random, 1e6 / load);
        let now = Instant::from_nanos(now as u64);
        link.offer(now, size(&mut random), None);
        while link.poll(now).is_some() {}
    }
    link.stats().queue_time_mean().as_secs_f64() * 1e3
}

fn assert_near(measured: f64, expected: f64) {
    assert!((measured / expected - 1.0).abs() < 0.04, "{measured}, not {expected}");
}

#[test]
fn equal_datagrams_wait_as_in_an_md1_queue() {
    for service in [Service::Planned, Service::Live] {
        for load in [0.3, 0.6, 0.8] {
            // Pollaczek and Khinchine: load / (2 (1 - load)) service times.
            assert_near(mean_wait(load, service, |_| 1250), load / (2.0 * (1.0 - load)));
        }
    }
}

#[test]
fn datagrams_of_exponential_size_wait_as_in_an_mm1_queue() {
    for load in [0.3, 0.6, 0.8] {
        let wait = mean_wait(load, Service::Planned, |random| exponential(random, 1250.0).round() as usize);
        assert_near(wait, load / (1.0 - load));
    }
}

#[test]
fn a_finite_queue_follows_lindleys_recursion() {
    // 8 Mbit/s: a byte takes a microsecond. A datagram waits as long as what is before it takes, and is refused where
    // that is longer than the limit.
    const LIMIT_US: u64 = 4_000;
    for service in [Service::Planned, Service::Live] {
        let config = LinkConfig::new(8_000_000, Duration::ZERO);
        let config = config.queue(QueueLimit::time(Duration::from_micros(LIMIT_US))).service(service);
        let mut link = Link::new(config, Random::from_u64(1));
        let mut random = Random::from_u64(2);
        let (mut now, mut work, mut refused, mut waited) = (0, 0u64, 0, 0);
        for _ in 0..50_000 {
            let gap = random.below(1_500);
            (now, work) = (now + gap, work.saturating_sub(gap));
            let bytes = 100 + random.below(1_400);
            let verdict = link.offer(at(now), bytes as usize, None);
            let fits = work <= LIMIT_US;
            assert_eq!(verdict == Verdict::Dropped(DropCause::QueueFull), !fits, "at {now}, with {work} us before it");
            if let Verdict::Forward(delivery) = verdict {
                assert_eq!(delivery.departure, at(now + work + bytes));
            }
            (refused, waited, work) =
                if fits { (refused, waited + work, work + bytes) } else { (refused + 1, waited, work) };
        }
        while let Some(end) = link.deadline() {
            while link.poll(end).is_some() {}
        }
        assert!(refused > 1_000);
        assert_eq!(link.stats().drops(DropCause::QueueFull), refused);
        assert_eq!(link.stats().queue_time_sum, Duration::from_micros(waited));
    }
}

#[test]
fn red_drops_its_share_of_a_steady_queue() {
    // Drops are spaced evenly over 1 to 1/p datagrams, so that one in (1/p + 1) / 2 is dropped.
    let red = RedConfig { min_bytes: 5_000, max_bytes: 25_000, drop_max: 0.1, weight: 1.0 };
    for (queue_bytes, expected) in [
        (3_750, 0.0),
        (15_000, 2.0 / (1.0 / 0.05 + 1.0)),
        (20_000, 1.0 / (0.075 * (1..=13).map(f64::from).sum::<f64>() + 14.0 * (1.0 - 13.0 * 0.075))),
        // Gentle: between the upper threshold and twice that, p goes from 0.1 to 1; here it is 0.55.
        (37_500, 1.0 / (0.55 + 2.0 * 0.45)),
    ] {
        let mut link = Link::new(LinkConfig::new(10_000_000, MS).aqm(Aqm::Red(red)), Random::from_u64(1));
        let through = |verdict| matches!(verdict, Verdict::Forward(_));
        while link.queued_bytes(at(0)) < queue_bytes {
            link.offer(at(0), 1250, None);
        }
        let before = *link.stats();
        // Each time that one begins to be sent another takes its place, after as many tries as that takes.
        for slot in 1..=20_000 {
            while !through(link.offer(at(slot * 1000 - 1), 1250, None)) {}
            assert_eq!(link.queued_bytes(at(slot * 1000)), queue_bytes);
        }
        let offered = link.stats().offered_packets - before.offered_packets;
        let dropped = link.stats().drops(DropCause::Aqm) - before.drops(DropCause::Aqm);
        let share = dropped as f64 / offered as f64;
        assert!((share - expected).abs() < 0.01, "{share} at {queue_bytes} bytes, not {expected}");
    }
}

/// When CoDel drops, in ms, of datagrams that take 1 ms each and come 600 at once at these times.
fn codel_drops(bursts_ms: &[u64], packets: u64) -> Vec<u64> {
    let config = LinkConfig::new(10_000_000, Duration::ZERO).aqm(Aqm::CoDel(CoDelConfig::default()));
    let mut link = Link::new(config, Random::from_u64(1));
    let mut drops = Vec::new();
    for (index, burst) in bursts_ms.iter().enumerate() {
        (0..packets).for_each(|_| _ = link.offer(at(burst * 1000), 1250, None));
        let until = bursts_ms.get(index + 1).map_or(Instant::from_nanos(u64::MAX), |next| at(next * 1000));
        let mut now = at(burst * 1000);
        while let Some(deadline) = link.deadline().filter(|deadline| *deadline < until) {
            now = now.max(deadline);
            while let Some(release) = link.poll(now) {
                if release.outcome == Outcome::Dropped(DropCause::Aqm) {
                    drops.push(now.as_nanos() / 1_000_000);
                }
            }
        }
    }
    drops
}

/// From one drop at `next` on, the times of those with these counts; a datagram is taken each millisecond.
fn control_law(mut next: f64, counts: impl Iterator<Item = u32>) -> Vec<u64> {
    let drop = |count| {
        let at = next.ceil() as u64;
        // RFC 8289 5.2: the next drop comes interval / sqrt(count) later.
        next += 100.0 / f64::from(count).sqrt();
        at
    };
    counts.map(drop).collect()
}

#[test]
fn codel_drops_when_rfc_8289_says() {
    // The sixth datagram has waited 5 ms, and an interval of 100 ms later the first is dropped.
    let drops = codel_drops(&[0], 3_000);
    assert_eq!(drops[..100], control_law(105.0, 1..=100));
}

#[test]
fn codel_goes_on_near_its_rate_when_the_queue_is_back_soon() {
    // The first burst ends after ten drops. Drops of the second go on from nine, the steps since dropping began.
    let expected = [control_law(105.0, 1..=10), control_law(805.0, 9..=20)].concat();
    assert_eq!(codel_drops(&[0, 700], 600)[..14], expected[..14]);
    // After more than 16 intervals the control law begins anew.
    let expected = [control_law(105.0, 1..=10), control_law(3_105.0, 1..=10)].concat();
    assert_eq!(codel_drops(&[0, 3_000], 600), expected);
}
