//! BBR's phases over a link of 1 MB/s and 100 ms, played ack by ack.

use super::*;
use crate::controller::{RateSample, RttSample};
use crate::facts::congestion;

const MSS: u64 = 1000;
const RTT: Duration = Duration::from_millis(100);
/// Bytes per second of the link, and with its RTT a pipe of 100 datagrams.
const LINK: u64 = 1_000_000;

/// A link that serves datagrams one after another, each acked on its own.
struct Link {
    bbr: Bbr,
    now: Instant,
    /// Send time, deliveries by then, when those were, first of its flight, bytes in flight, losses by then.
    flying: std::collections::VecDeque<(Instant, u64, Instant, Instant, u64, u64)>,
    free_at: Instant,
    next_send: Instant,
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    lost: u64,
    /// Datagrams so many after another of which one is lost; 0 loses none.
    lose_each: u64,
    number: u64,
    /// Datagrams the queue holds.
    queue: u64,
    /// When each is acked, or missed, and whether the window was full when it left.
    arrivals: std::collections::VecDeque<(Instant, bool, Limit)>,
}

impl Link {
    fn new() -> Self {
        let now = Instant::ZERO + Duration::from_secs(1);
        Self {
            bbr: Bbr::new(PathId::ZERO, now, MSS),
            now,
            flying: Default::default(),
            free_at: now,
            next_send: now,
            delivered: 0,
            delivered_at: now,
            first_sent_at: now,
            lost: 0,
            lose_each: 0,
            number: 0,
            queue: 1000,
            arrivals: Default::default(),
        }
    }

    fn in_flight(&self) -> u64 {
        self.flying.len() as u64 * MSS
    }

    fn send(&mut self) {
        if self.flying.is_empty() {
            (self.first_sent_at, self.delivered_at) = (self.now, self.now);
        }
        let backlog = self.free_at.since(self.now).as_nanos() as u64 * LINK / 1_000_000_000 / MSS;
        self.number += 1;
        let is_lost = backlog >= self.queue || (self.lose_each > 0 && self.number.is_multiple_of(self.lose_each));
        let sent = (self.now, self.delivered, self.delivered_at, self.first_sent_at, self.in_flight() + MSS, self.lost);
        self.flying.push_back(sent);
        let service = Duration::from_nanos(MSS * 1_000_000_000 / LINK);
        if backlog < self.queue {
            self.free_at = self.free_at.max(self.now) + service;
        }
        // A lost one is known to be when those around it are acked.
        let limit = if self.in_flight() + MSS > self.bbr.window() { Limit::Window } else { Limit::Application };
        self.arrivals.push_back((self.free_at + RTT, is_lost, limit));
        self.bbr.on_sent(self.now, MSS, self.in_flight(), self.number);
        let rate = self.bbr.pacing_rate(RTT).unwrap();
        self.next_send = self.now + Duration::from_nanos(MSS * 1_000_000_000 / rate);
    }

    fn answer(&mut self) {
        let (sent_at, prior, delivered_at, first_sent_at, flight, lost_before) = self.flying.pop_front().unwrap();
        let (_, is_lost, limit) = self.arrivals.pop_front().unwrap();
        let delivery = |link: &Self, interval| RateSample {
            total_bytes: link.delivered,
            prior_bytes: prior,
            interval,
            flight_bytes: flight,
            lost_bytes: link.lost - lost_before,
            limit: Limit::Window,
        };
        if is_lost {
            self.lost += MSS;
            let delivery = delivery(self, Duration::ZERO);
            self.bbr.on_lost(&Lost { now: self.now, bytes: MSS, in_flight: self.in_flight(), delivery });
            return;
        }
        self.delivered += MSS;
        self.first_sent_at = sent_at;
        let interval = sent_at.since(first_sent_at).max(self.now.since(delivered_at));
        self.delivered_at = self.now;
        let delivery = delivery(self, interval);
        let latest = self.now.since(sent_at);
        let ack = Acked {
            path: PathId::ZERO,
            now: self.now,
            bytes: MSS,
            bytes_total: MSS,
            sent_at,
            largest: self.number,
            next_number: self.number + 1,
            rtt: RttSample { latest, smoothed: latest, min: RTT, ..RttSample::default() },
            in_flight: self.in_flight(),
            limit,
            delivery,
        };
        self.bbr.on_acked(&ack, &SharedPathMetrics::default());
    }

    /// Plays until `end`; calls `look` after each ack.
    fn play(&mut self, end: Duration, mut look: impl FnMut(&Bbr, Instant)) {
        let end = Instant::ZERO + Duration::from_secs(1) + end;
        while self.now < end {
            let can_send = self.in_flight() + MSS <= self.bbr.window();
            let ack_at = self.arrivals.front().map_or(end, |(at, ..)| *at);
            if can_send && self.next_send.max(self.now) <= ack_at {
                self.now = self.now.max(self.next_send);
                self.send();
            } else {
                self.now = self.now.max(ack_at);
                if !self.flying.is_empty() {
                    self.answer();
                    look(&self.bbr, self.now);
                }
            }
        }
    }
}

#[test]
fn startup_finds_the_bandwidth_and_drains_its_queue() {
    let mut link = Link::new();
    let mut seen = Vec::new();
    link.play(Duration::from_secs(3), |bbr, _| {
        if seen.last() != Some(&bbr.phase) {
            seen.push(bbr.phase);
        }
    });
    assert_eq!(seen[..3], [BbrState::Startup, BbrState::Drain, BbrState::Cruise], "{seen:?}");
    let bandwidth = link.bbr.bandwidth();
    assert!((950_000..=1_010_000).contains(&bandwidth), "{bandwidth}");
    assert_eq!(link.bbr.ssthresh(), link.bbr.window());
}

#[test]
fn a_steady_flow_keeps_its_queue_short_and_goes_round_its_cycle() {
    let mut link = Link::new();
    link.play(Duration::from_secs(2), |_, _| {});
    let (delivered, mut seen, mut queues) = (link.delivered, std::collections::BTreeSet::new(), (0, 0));
    for step in 0..280 {
        link.play(Duration::from_millis(2000 + step * 100), |bbr, _| {
            seen.insert(format!("{:?}", bbr.phase));
        });
        let queue = link.free_at.since(link.now);
        queues = (queues.0 + u32::from(queue > RTT / 2), queues.1 + 1);
    }
    for phase in ["Cruise", "Down", "ProbeRtt", "Refill", "Up"] {
        assert!(seen.contains(phase), "{phase}: {seen:?}");
    }
    let share = (link.delivered - delivered) as f64 / (28.0 * LINK as f64);
    assert!(share > 0.95, "{share}");
    // Probing for bandwidth makes a queue for a few of the twenty or thirty rounds of a cycle.
    assert!(queues.0 * 4 < queues.1, "{queues:?}");
}

#[test]
fn probe_rtt_lets_the_pipe_run_dry_for_a_moment() {
    let mut link = Link::new();
    let (mut began, mut ended, mut least) = (None, None, u64::MAX);
    link.play(Duration::from_secs(12), |bbr, now| match bbr.phase {
        BbrState::ProbeRtt if ended.is_none() => {
            began.get_or_insert(now);
            least = least.min(bbr.window());
        }
        _ => ended = ended.or(began.map(|_| now)),
    });
    let took = ended.unwrap().since(began.unwrap());
    assert!((PROBE_RTT_TIME..PROBE_RTT_TIME + RTT * 3).contains(&took), "{took:?}");
    assert!((4 * MSS..=52 * MSS).contains(&least), "{least}");
}

#[test]
fn one_percent_of_loss_costs_little() {
    let mut link = Link::new();
    link.lose_each = 100;
    link.play(Duration::from_secs(20), |_, _| {});
    let share = link.delivered as f64 / (20.0 * LINK as f64);
    assert!(share > 0.85, "{share}");
}

#[test]
fn chance_is_allowed_for_while_no_queue_shows() {
    let mut rtt = MinRtt::default();
    let mut is_too_much = |rtt_ms: u64, lost: u64, flight: u64| {
        let sample = Duration::from_millis(rtt_ms);
        let sample = RttSample { latest: sample, smoothed: sample, min: RTT, ..RttSample::default() };
        rtt.on_sample(Instant::ZERO, &sample);
        rtt.loss_limit(MSS).is_passed(lost * MSS, flight * MSS)
    };
    assert_eq!(
        [(1, 20), (2, 20), (4, 100), (5, 100)].map(|(lost, of)| is_too_much(100, lost, of)),
        [false, true, false, true]
    );
    assert_eq!([(1, 20), (2, 100), (3, 100)].map(|(lost, of)| is_too_much(120, lost, of)), [true, false, true]);
}

#[test]
fn a_short_queue_bounds_what_is_in_flight() {
    let mut link = Link::new();
    link.queue = 20;
    link.play(Duration::from_secs(20), |_, _| {});
    assert!(link.bbr.bounds.inflight_long < 160 * MSS, "{}", link.bbr.bounds.inflight_long);
    let lost = link.lost as f64 / (link.lost + link.delivered) as f64;
    assert!(lost < 0.02, "{lost}");
    let share = link.delivered as f64 / (20.0 * LINK as f64);
    assert!(share > 0.85, "{share}");
}

/// Tells of so many lost datagrams of the newest flight, in passes of one each, the first of which begins an episode.
fn lose(link: &mut Link, datagrams: u64) {
    for pass in 0..datagrams {
        let delivery = RateSample {
            total_bytes: link.delivered,
            prior_bytes: link.delivered.saturating_sub(20 * MSS),
            interval: Duration::ZERO,
            flight_bytes: link.in_flight(),
            lost_bytes: (pass + 1) * MSS,
            limit: Limit::Window,
        };
        link.bbr.on_lost(&Lost { now: link.now, bytes: MSS, in_flight: link.in_flight(), delivery });
        if pass == 0 {
            link.bbr.on_congestion(&congestion(CongestionKind::Loss), &SharedPathMetrics::default());
        }
    }
}

#[test]
fn a_false_loss_in_startup_gives_everything_back() {
    let mut link = Link::new();
    link.play(RTT * 5 / 2, |_, _| {});
    assert_eq!(link.bbr.phase, BbrState::Startup);
    let window = link.bbr.window();
    lose(&mut link, 12);
    let lost = link.bbr.window();
    link.play(RTT * 7 / 2, |_, _| {});
    assert_eq!(lost, window - 12 * MSS);
    assert_ne!(link.bbr.phase, BbrState::Startup, "it is believed at first");
    link.bbr.on_spurious();
    assert_eq!((link.bbr.phase, link.bbr.bounds.inflight_long), (BbrState::Startup, u64::MAX));
    assert!(!link.bbr.full.reached && link.bbr.window() >= window);
    link.play(Duration::from_secs(3), |_, _| {});
    let bandwidth = link.bbr.bandwidth();
    assert!((950_000..=1_010_000).contains(&bandwidth), "{bandwidth}");
}

#[test]
fn a_false_loss_does_not_end_a_probe_for_bandwidth() {
    let mut link = Link::new();
    let mut until = Duration::from_secs(3);
    while link.bbr.phase != BbrState::Up || !link.bbr.cycle.probing {
        until += Duration::from_millis(1);
        link.play(until, |_, _| {});
        assert!(until < Duration::from_secs(30), "it never probes");
    }
    let bounds = link.bbr.bounds.inflight_long;
    lose(&mut link, 20);
    assert_eq!(link.bbr.phase, BbrState::Down);
    assert!(link.bbr.bounds.inflight_long < u64::MAX);
    link.bbr.on_spurious();
    assert_eq!((link.bbr.phase, link.bbr.bounds.inflight_long), (BbrState::Up, bounds));
    // Once given back, it is not given back again.
    lose(&mut link, 20);
    link.bbr.on_congestion(&congestion(CongestionKind::Persistent), &SharedPathMetrics::default());
    link.bbr.on_spurious();
    assert_eq!(link.bbr.window(), 2 * MSS);
}

#[test]
fn marks_end_startup_and_bound_the_flight() {
    let mut link = Link::new();
    link.play(RTT * 5 / 2, |_, _| {});
    assert_eq!(link.bbr.phase, BbrState::Startup);
    let event = Congestion { in_flight: link.in_flight(), ..congestion(CongestionKind::Ecn) };
    link.bbr.on_congestion(&event, &SharedPathMetrics::default());
    assert!(link.bbr.full.reached && link.bbr.bounds.inflight_long < u64::MAX);
    link.play(RTT * 4, |_, _| {});
    assert_ne!(link.bbr.phase, BbrState::Startup);
}

#[test]
fn persistent_congestion_leaves_two_datagrams_and_it_comes_back() {
    let mut link = Link::new();
    link.play(Duration::from_secs(3), |_, _| {});
    link.bbr.on_congestion(&congestion(CongestionKind::Persistent), &SharedPathMetrics::default());
    assert_eq!(link.bbr.window(), 2 * MSS);
    link.play(Duration::from_secs(4), |_, _| {});
    assert!(link.bbr.window() > 100 * MSS, "{}", link.bbr.window());
}

#[test]
fn a_sender_with_little_to_say_does_not_lower_the_estimate() {
    let mut link = Link::new();
    link.play(Duration::from_secs(3), |_, _| {});
    let bandwidth = link.bbr.bandwidth();
    let mut ack = crate::facts::acked(MSS);
    ack.delivery = RateSample {
        total_bytes: link.delivered + MSS,
        prior_bytes: link.delivered,
        interval: Duration::from_secs(1),
        flight_bytes: MSS,
        lost_bytes: 0,
        limit: Limit::Application,
    };
    link.bbr.on_acked(&ack, &SharedPathMetrics::default());
    assert_eq!(link.bbr.bandwidth(), bandwidth);
}
