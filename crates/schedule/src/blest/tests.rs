//! BLEST: when waiting for the fast path is worth it.

use super::*;
use crate::candidates::tests::{demand, view};
use crate::view::{DemandKind, Room};
use plait_base::PathId;

const WAIT: Decision = Decision::Wait(WaitReason::Faster(PathId(0)));
const SLOW: Decision = Decision::Send(PathId(1));

/// A full fast path (20 ms, 10 packets) and an empty slow one (100 ms, 10 packets).
fn paths() -> [PathView; 2] {
    let (mut fast, slow) = (view(0, 20), view(1, 100));
    fast.room = Room::Window;
    fast.in_flight_bytes = 10_000;
    [fast, slow]
}

fn with_credit(bytes: u64) -> Demand {
    Demand { send_credit_bytes: bytes, ..demand(1 << 20) }
}

#[test]
fn slow_start_by_hand() {
    // linger 100 ms / 20 ms + 1 = 6 rounds: 10 * (2^6 - 1) = 630 packets, * 1.2 = 756 000 bytes.
    let paths = paths();
    let blest = Blest::default();
    assert_eq!(rounds(&paths[0], &paths[1]), 6);
    assert_eq!(blest.fast_bytes(&paths[0], &paths[1]), 756_000);
    // The window: credit + 10 000 in flight, less one packet on the slow path.
    assert_eq!(Blest::default().pick(&paths, &with_credit(747_000)), SLOW);
    assert_eq!(Blest::default().pick(&paths, &with_credit(746_999)), WAIT);
}

#[test]
fn avoidance_by_hand() {
    // max(10, 8 + 1) + (6 - 1) / 2 = 12 packets a round, 6 rounds: 72 packets, * 1.2 = 86 400 bytes.
    let mut paths = paths();
    paths[0].ssthresh_bytes = 8_000;
    assert_eq!(Blest::default().fast_bytes(&paths[0], &paths[1]), 86_400);
    // 4000 bytes on the slow path count on both sides.
    paths[1].in_flight_bytes = 4_000;
    assert_eq!(Blest::default().pick(&paths, &with_credit(77_400)), SLOW);
    assert_eq!(Blest::default().pick(&paths, &with_credit(77_399)), WAIT);
}

#[test]
fn a_full_slow_path_lingers_for_its_largest_rtt() {
    let mut paths = paths();
    paths[1].recent_rtt.max = Duration::from_millis(300);
    // (4 + 1) / 10 of the spread: 100 + 100 ms.
    paths[1].in_flight_bytes = 4_000;
    assert_eq!(rounds(&paths[0], &paths[1]), 11);
    paths[1].in_flight_bytes = 20_000;
    assert_eq!(rounds(&paths[0], &paths[1]), 16);
    // min(1, ...) holds, and doubling stops at sixteen rounds.
    paths[0].rtt_min = Duration::ZERO;
    paths[0].recent_rtt.max = Duration::from_micros(1);
    assert_eq!(Blest::default().fast_bytes(&paths[0], &paths[1]), 10_000 * 65_535 * 12 / 10);
}

#[test]
fn the_fast_path_goes_first_and_control_never_waits() {
    let mut paths = paths();
    let control = Demand { kind: DemandKind::Control, ..with_credit(0) };
    assert_eq!(Blest::default().pick(&paths, &control), SLOW);
    paths[0].room = Room::Free;
    assert_eq!(Blest::default().pick(&paths, &with_credit(0)), Decision::Send(PathId(0)));
}

#[test]
fn lambda_rises_when_blocked_and_decays_once_per_rtt() {
    let paths = paths();
    let mut blest = Blest::default();
    let at = |blest: &mut Blest, ms: u64| {
        let now = Instant::from_nanos(ms * 1_000_000);
        blest.pick(&paths, &Demand { now, ..with_credit(1) });
        blest.lambda
    };
    assert_eq!(at(&mut blest, 0), 120);
    assert_eq!(at(&mut blest, 19), 120);
    assert_eq!(at(&mut blest, 20), 119);
    blest.on_credit_blocked(Instant::ZERO);
    assert_eq!(at(&mut blest, 39), 119);
    assert_eq!(at(&mut blest, 40), 123);
    for i in 0..100 {
        blest.on_credit_blocked(Instant::ZERO);
        at(&mut blest, 60 + i * 20);
    }
    assert_eq!(blest.lambda, 130);
    for i in 0..100 {
        at(&mut blest, 10_000 + i * 20);
    }
    assert_eq!(blest.lambda, 100);
}
