//! Paths that probe in step, fact by fact.

use super::*;
use crate::facts::{acked, congestion, delivery, metrics, shared};

const MSS: u64 = 1000;
const RTT: Duration = Duration::from_millis(100);

fn second(s: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(s)
}

/// A path in ProbeBW_CRUISE with a window of 100 datagrams.
fn cruising(path: u32) -> CoupledBbr {
    let mut bbr = Bbr::new(PathId(path), Instant::ZERO, MSS);
    bbr.full.set();
    bbr.phase = BbrState::Cruise;
    bbr.window = 100 * MSS;
    bbr.bandwidth.on_sample(1_000_000);
    bbr.cycle.restart(second(1), 0);
    let (queue, rtt) = (SharedQueue::new(PathId(path)), RttSample::default());
    CoupledBbr { bbr, queue, path: PathId(path), rtt, probe: None, start: LinkedStart::default() }
}

/// A sibling that takes path 0 to share its queue, and was heard of at second 1.
fn sibling(probe: Option<Probe>) -> PathMetrics {
    PathMetrics { probe, shares_with: 1, acked_at: Some(second(1)), ..metrics(1, 100_000, 100) }
}

fn ack(path: &mut CoupledBbr, now: Instant, sibling: PathMetrics) {
    let delivery = crate::controller::RateSample { prior_bytes: 1, ..delivery(2 * MSS) };
    let ack = Acked { now, sent_at: now - RTT, in_flight: 100_000, delivery, ..acked(MSS) };
    path.on_acked(&ack, &shared(&[sibling]));
}

#[test]
fn a_probe_of_a_sibling_is_followed_once() {
    let mut path = cruising(0);
    let began = second(1);
    let probe = Some(Probe { began, lost_at: None });
    // The first ACK makes the sibling known.
    ack(&mut path, began, sibling(None));
    assert_eq!(path.bbr.phase, BbrState::Cruise);
    ack(&mut path, began + RTT / 10, sibling(probe));
    assert!(matches!(path.bbr.phase, BbrState::Refill | BbrState::Up), "{:?}", path.bbr.phase);
    let mut told = PathMetrics::new(PathId::ZERO);
    path.add_to_metrics(&mut told);
    assert_eq!(told.probe, probe, "it is the same probe");
    path.bbr.phase = BbrState::Cruise;
    ack(&mut path, began + RTT / 5, sibling(probe));
    assert_eq!(path.bbr.phase, BbrState::Cruise, "the same one is not followed again");
}

#[test]
fn old_probes_and_those_of_other_queues_are_not_followed() {
    let mut path = cruising(0);
    ack(&mut path, second(1), sibling(None));
    let probe = Some(Probe { began: second(1) - RTT * 3, lost_at: None });
    ack(&mut path, second(1) + RTT / 10, sibling(probe));
    assert_eq!(path.bbr.phase, BbrState::Cruise);
    let probe = Some(Probe { began: second(1), lost_at: None });
    ack(&mut path, second(1) + RTT / 10, PathMetrics { shares_with: 0, ..sibling(probe) });
    assert_eq!((path.bbr.phase, path.bbr.cycle.others), (BbrState::Cruise, 0.0));
}

#[test]
fn steps_go_by_the_windows_of_all() {
    let mut path = cruising(0);
    ack(&mut path, second(1), sibling(None));
    ack(&mut path, second(1) + RTT / 10, sibling(None));
    assert!((0.9..1.2).contains(&path.bbr.cycle.others), "{}", path.bbr.cycle.others);
    let climbs = [0.0, 1.0].map(|others| {
        path.bbr.cycle.refill();
        path.bbr.cycle.others = others;
        path.bbr.cycle.steepen(100 * MSS, MSS);
        path.bbr.cycle.climb(400 * MSS, MSS)
    });
    assert_eq!(climbs, [4 * MSS, 2 * MSS]);
    // A flow of twenty datagrams probes after twenty rounds, two of ten too.
    path.bbr.cycle.restart(second(1), 0);
    path.bbr.cycle.rounds = 19;
    assert!(!path.bbr.cycle.is_due(second(1), 10));
    path.bbr.cycle.rounds = 20;
    assert!(path.bbr.cycle.is_due(second(1), 10));
}

#[test]
fn paths_that_probe_in_step_throw_the_same_dice() {
    let dice = [0, 1].map(|id| {
        let mut path = cruising(id);
        path.begin(second(3));
        path.bbr.start_down(second(4), 0);
        path.bbr.dice
    });
    assert_eq!(dice[0], dice[1]);
    let mut other = cruising(0);
    other.begin(second(5));
    other.bbr.start_down(second(6), 0);
    assert_ne!(other.bbr.dice, dice[0]);
}

#[test]
fn a_probe_that_marks_end_is_told_to_siblings() {
    let mut path = cruising(0);
    path.begin(second(1));
    (path.bbr.phase, path.bbr.cycle.probing) = (BbrState::Up, true);
    path.on_congestion(&congestion(CongestionKind::Ecn), &SharedPathMetrics::default());
    assert_eq!(path.bbr.phase, BbrState::Down);
    assert_eq!(path.probe.unwrap().lost_at, Some(second(1)));
}

#[test]
fn what_ended_a_probe_elsewhere_ends_it_here() {
    let mut path = cruising(0);
    path.begin(second(1));
    path.bbr.phase = BbrState::Up;
    let now = second(1) + RTT;
    let ack = Acked { now, in_flight: 90_000, ..acked(MSS) };
    path.follow(&ack, &Siblings { lost_at: Some(second(1) - RTT), ..Siblings::default() });
    assert_eq!(path.bbr.phase, BbrState::Up, "that was another probe");
    path.follow(&ack, &Siblings { lost_at: Some(now), ..Siblings::default() });
    assert_eq!((path.bbr.phase, path.probe.unwrap().lost_at), (BbrState::Down, Some(now)));
    assert_eq!(path.bbr.bounds.inflight_long, 90_000);
}

#[test]
fn what_stands_besides_the_pipe_is_divided() {
    let besides = |others: f64| {
        let mut path = cruising(0);
        let now = second(1);
        path.bbr.rtt.on_sample(now, &RttSample { latest: RTT, smoothed: RTT, min: RTT, ..RttSample::default() });
        path.bbr.cycle.others = others;
        // A heap of 30 datagrams, once.
        path.bbr.extra.on_acked(now, 30 * MSS, 1_000_000, 100 * MSS, true);
        path.bbr.window = 1000 * MSS;
        path.bbr.set_window(&acked(MSS));
        path.bbr.window - path.bbr.inflight(1_000_000, 2.0)
    };
    assert_eq!([0.0, 1.0, 2.0].map(besides), [30 * MSS, 15 * MSS, 10 * MSS]);
}

#[test]
fn a_path_in_startup_goes_back_by_what_a_newcomer_brings() {
    let mut path = CoupledBbr { bbr: Bbr::new(PathId::ZERO, Instant::ZERO, MSS), ..cruising(0) };
    // The first ACK makes the sibling known, and there is a rate.
    ack(&mut path, second(1), PathMetrics { window_bytes: 0, ..sibling(None) });
    path.bbr.window = 60 * MSS;
    let (rate, pacing) = (path.bbr.bandwidth.get(), path.bbr.pacing);
    assert!(rate > 0 && pacing > 0);
    let newcomer = PathMetrics { window_bytes: 20 * MSS, ..sibling(None) };
    path.give_way(&shared(&[newcomer]));
    assert_eq!(path.bbr.window, 40 * MSS);
    assert!((path.bbr.bandwidth.get() * 3).abs_diff(rate * 2) < 4 && (path.bbr.pacing * 3).abs_diff(pacing * 2) < 4);
    path.give_way(&shared(&[newcomer]));
    assert_eq!(path.bbr.window, 40 * MSS, "once for each newcomer");
    // What left before says nothing of the rate that is left.
    let delivered = path.bbr.bounds.delivered_bytes();
    let sample = |prior_bytes| crate::controller::RateSample { prior_bytes, ..delivery(2 * MSS) };
    assert!(!path.bbr.together.is_of_this_share(&sample(delivered - 1)));
    assert!(path.bbr.together.is_of_this_share(&sample(delivered)));
}

#[test]
fn past_startup_and_for_paths_of_other_queues_nothing_is_given() {
    let newcomer = PathMetrics { window_bytes: 20 * MSS, ..sibling(None) };
    let left = |is_starting: bool, newcomer: PathMetrics| {
        let mut path = cruising(0);
        if is_starting {
            path.bbr = Bbr::new(PathId::ZERO, Instant::ZERO, MSS);
        }
        ack(&mut path, second(1), PathMetrics { window_bytes: 0, ..newcomer });
        path.bbr.window = 60 * MSS;
        path.give_way(&shared(&[newcomer]));
        path.bbr.window
    };
    assert_eq!(left(true, newcomer), 40 * MSS);
    assert_eq!(left(false, newcomer), 60 * MSS);
    assert_eq!(left(true, PathMetrics { shares_with: 0, ..newcomer }), 60 * MSS);
}

#[test]
fn rates_of_siblings_are_told_and_heard() {
    let mut path = cruising(0);
    let rates = DeliveryRates { newest_bytes_per_s: 400_000, largest_bytes_per_s: 900_000 };
    ack(&mut path, second(1), PathMetrics { rates, ..sibling(None) });
    ack(&mut path, second(1) + RTT / 10, PathMetrics { rates, ..sibling(None) });
    assert_eq!(path.bbr.together.others, rates);
    let mut told = PathMetrics::new(PathId::ZERO);
    path.add_to_metrics(&mut told);
    // 1,999 bytes in 100 ms, and what the path knew before.
    assert_eq!(told.rates, DeliveryRates { newest_bytes_per_s: 19_990, largest_bytes_per_s: 1_000_000 });
    assert_eq!(path.bbr.bandwidth(), 1_000_000 * 419_990 / 1_900_000, "they never delivered more at one time");
    // A sibling that rests has no part in the queue.
    ack(&mut path, second(1) + RTT * 10, PathMetrics { rates, ..sibling(None) });
    assert_eq!(path.bbr.together.others, DeliveryRates::default());
    assert_eq!(path.bbr.bandwidth(), 1_000_000);
}
