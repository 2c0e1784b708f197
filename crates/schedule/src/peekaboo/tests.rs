//! Peekaboo learns when to wait.

use super::*;
use crate::candidates::tests::{demand, view};
use crate::view::{DemandKind, Room};

/// Solves m y = v by elimination, for comparison with the running inverse.
fn solve(mut m: [Context; 6], mut v: Context) -> Context {
    for i in 0..6 {
        for j in i + 1..6 {
            let factor = m[j][i] / m[i][i];
            let pivot = m[i];
            m[j].iter_mut().zip(pivot).for_each(|(a, b)| *a -= factor * b);
            v[j] -= factor * v[i];
        }
    }
    for i in (0..6).rev() {
        let tail: f64 = (i + 1..6).map(|k| m[i][k] * v[k]).sum();
        v[i] = (v[i] - tail) / m[i][i];
    }
    v
}

#[test]
fn theta_is_the_inverse_times_b() {
    let mut random = Random::from_u64(7);
    let (mut arm, mut a, mut b) = (Arm::default(), [[0.0; 6]; 6], [0.0; 6]);
    a.iter_mut().enumerate().for_each(|(i, row)| row[i] = 1.0);
    for _ in 0..50 {
        let x: Context = std::array::from_fn(|_| random.unit() * 10.0);
        let reward = random.unit();
        arm.learn(&x, reward);
        for i in 0..6 {
            (0..6).for_each(|j| a[i][j] += x[i] * x[j]);
            b[i] += reward * x[i];
        }
        let probe: Context = std::array::from_fn(|_| random.unit());
        let dot = |p: &Context, q: &Context| p.iter().zip(q).map(|(p, q)| p * q).sum::<f64>();
        assert!((arm.predicted(&probe) - dot(&solve(a, b), &probe)).abs() < 1e-9);
        assert!((arm.uncertainty(&probe) - dot(&probe, &solve(a, probe)).sqrt()).abs() < 1e-9);
    }
}

#[test]
fn context_by_hand() {
    // 10 packets / 20 ms, 4 / 20, 100 / 20; 10 / 100, 0, 100 / 100.
    let (mut fast, slow) = (view(0, 20), view(1, 100));
    fast.in_flight_bytes = 4_000;
    assert_eq!(context(&fast, &slow, 100_000), [0.5, 0.2, 5.0, 0.1, 0.0, 1.0]);
}

#[test]
fn reward_by_hand() {
    let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
    let mut open = Open {
        action: Action::Send,
        context: [0.0; 6],
        at: at(0),
        reference: Duration::from_millis(100),
        mss: 1000.0,
        gain: 1.0,
        reward: 0.0,
    };
    open.collect(at(50), 5_000);
    // 0.9 * 5 / 50
    assert!((open.reward - 0.09).abs() < 1e-12);
    open.collect(at(200), 2_000);
    // + 0.63 * 2 / 200
    assert!((open.reward - 0.0963).abs() < 1e-12);
    open.collect(at(300), 3_000);
    // + 0.315 * 3 / 300
    assert!((open.reward - 0.09945).abs() < 1e-12);
    assert!(!open.is_over(at(300)) && open.is_over(at(301)));
}

/// Plays `decisions` rounds of a world in which ACKs come `after_wait_ms` or `after_send_ms` after the decision; counts
/// how often it waited.
fn world(peekaboo: &mut Peekaboo, start_ms: u64, rounds: u64, after_wait_ms: u64, after_send_ms: u64) -> u64 {
    let mut paths = [view(0, 20), view(1, 100)];
    paths[0].room = Room::Window;
    let mut waits = 0;
    for i in 0..rounds {
        let start = start_ms + i * 1000;
        let at = |ms: u64| Instant::from_nanos((start + ms) * 1_000_000);
        let decision = peekaboo.pick(&paths, &Demand { now: at(0), ..demand(1 << 20) });
        let after = match decision {
            Decision::Wait(_) => after_wait_ms,
            _ => after_send_ms,
        };
        waits += u64::from(decision.primary().is_none());
        let delivery = Delivery { bytes: 1000, sent_at: at(0), now: at(after) };
        peekaboo.on_acked(PathId(0), &delivery);
    }
    waits
}

#[test]
fn it_learns_to_wait_where_waiting_pays_and_to_send_where_it_does_not() {
    let mut patient = Peekaboo::new(Random::from_u64(1));
    world(&mut patient, 0, 110, 2, 80);
    assert_eq!(patient.phase, LearningPhase::Deployed);
    assert!(world(&mut patient, 200_000, 100, 2, 80) > 90);
    let mut eager = Peekaboo::new(Random::from_u64(1));
    world(&mut eager, 0, 110, 80, 2);
    assert_eq!(eager.phase, LearningPhase::Deployed);
    assert!(world(&mut eager, 200_000, 100, 80, 2) < 10);
}

#[test]
fn it_learns_anew_when_the_world_changes() {
    let mut peekaboo = Peekaboo::new(Random::from_u64(2));
    world(&mut peekaboo, 0, 110, 2, 80);
    assert_eq!(peekaboo.phase, LearningPhase::Deployed);
    world(&mut peekaboo, 200_000, 40, 80, 2);
    assert_eq!(peekaboo.phase, LearningPhase::Learning);
    world(&mut peekaboo, 300_000, 120, 80, 2);
    assert!(world(&mut peekaboo, 500_000, 100, 80, 2) < 10);
}

#[test]
fn the_same_seed_decides_the_same() {
    let play = |seed| {
        let mut peekaboo = Peekaboo::new(Random::from_u64(seed));
        (0..50).map(|i| world(&mut peekaboo, i * 5000, 5, 30, 40)).collect::<Vec<_>>()
    };
    assert_eq!(play(3), play(3));
}

#[test]
fn a_wait_stands_until_the_fast_path_opens_or_its_rtt_passes() {
    let mut peekaboo = Peekaboo::new(Random::from_u64(1));
    world(&mut peekaboo, 0, 110, 2, 80);
    let mut paths = [view(0, 20), view(1, 100)];
    paths[0].room = Room::Window;
    let mut base = 1_000_000;
    let mut pick = |paths: &[PathView], ms: u64, kind| {
        peekaboo.pick(paths, &Demand { now: Instant::from_nanos(ms * 1_000_000), kind, ..demand(1 << 20) })
    };
    let wait = Decision::Wait(WaitReason::Faster(PathId(0)));
    while pick(&paths, base, DemandKind::Stream) != wait {
        base += 1000;
    }
    assert!((0..20).all(|ms| pick(&paths, base + ms, DemandKind::Stream) == wait));
    assert_eq!(pick(&paths, base, DemandKind::Control), Decision::Send(PathId(1)));
    paths[0].room = Room::Free;
    assert_eq!(pick(&paths, base + 5, DemandKind::Stream), Decision::Send(PathId(0)));
}

#[test]
fn open_decisions_are_bounded() {
    let mut peekaboo = Peekaboo::new(Random::from_u64(1));
    let mut paths = [view(0, 20), view(1, 100)];
    paths[0].room = Room::Window;
    for i in 0..1000 {
        peekaboo.pick(&paths, &Demand { now: Instant::from_nanos(i), ..demand(1 << 20) });
    }
    assert!(peekaboo.open.len() <= OPEN_DECISIONS);
    peekaboo.on_path_closing(PathId(0));
    assert!(peekaboo.open.is_empty());
}
