//! ECF: when waiting for the fast path is worth it.

use super::*;
use crate::candidates::tests::{demand, view};
use crate::view::{DemandKind, Room};
use plait_base::PathId;
use std::time::Duration;

const WAIT: Decision = Decision::Wait(WaitReason::Faster(PathId(0)));
const SLOW: Decision = Decision::Send(PathId(1));

/// A full fast path (10 ms, 10 packets) and an open slow one (100 ms, 10 packets).
fn paths() -> [PathView; 2] {
    let (mut fast, slow) = (view(0, 10), view(1, 100));
    fast.room = Room::Window;
    [fast, slow]
}

#[test]
fn a_short_tail_waits_for_the_fast_path() {
    // k = 5 packets: x_f = w_f, 10 * 20 / 10 = 20 ms < 100 ms; 100 * 10 / 10 = 100 ms >= 20 ms.
    assert_eq!(Ecf::default().pick(&paths(), &demand(5_000)), WAIT);
}

#[test]
fn a_long_backlog_uses_both() {
    // k = 100 packets: 10 * 110 / 10 = 110 ms >= 100 ms.
    assert_eq!(Ecf::default().pick(&paths(), &demand(100_000)), SLOW);
    // 89 packets: 99 ms < 100 ms, 890 ms >= 20 ms.
    assert_eq!(Ecf::default().pick(&paths(), &demand(89_000)), WAIT);
    assert_eq!(Ecf::default().pick(&paths(), &demand(90_000)), SLOW);
}

#[test]
fn waiting_has_hysteresis() {
    let mut ecf = Ecf::default();
    assert_eq!(ecf.pick(&paths(), &demand(50_000)), WAIT);
    // Up to 1.25 * 100 ms while waiting: k = 114 packets is 124 ms, 115 is 125 ms.
    assert_eq!(ecf.pick(&paths(), &demand(114_000)), WAIT);
    assert_eq!(ecf.pick(&paths(), &demand(115_000)), SLOW);
    assert_eq!(ecf.pick(&paths(), &demand(114_000)), SLOW);
}

#[test]
fn variation_widens_both_sides() {
    let mut paths = paths();
    paths[1].rtt_var = Duration::from_millis(30);
    // delta = 30 ms: k = 119 packets is 129 ms < 130 ms.
    assert_eq!(Ecf::default().pick(&paths, &demand(119_000)), WAIT);
    assert_eq!(Ecf::default().pick(&paths, &demand(120_000)), SLOW);
}

#[test]
fn a_slow_path_that_is_hardly_slower_is_used() {
    let mut paths = paths();
    // 19 ms < 2 * 10 ms: waiting for the fast path gains nothing, though its completion looks earlier.
    paths[1].rtt = Some(Duration::from_millis(19));
    paths[0].window_bytes = 100_000;
    assert_eq!(Ecf::default().pick(&paths, &demand(5_000)), SLOW);
    paths[1].rtt = Some(Duration::from_millis(20));
    // 10 * (100 + 100) / 100 = 20 is not below 20.
    assert_eq!(Ecf::default().pick(&paths, &demand(5_000)), SLOW);
    paths[1].rtt = Some(Duration::from_millis(21));
    assert_eq!(Ecf::default().pick(&paths, &demand(5_000)), WAIT);
}

#[test]
fn no_choice_no_wait() {
    let mut paths = paths();
    let control = control_demand();
    assert_eq!(Ecf::default().pick(&paths, &control), SLOW);
    paths[1].rtt = None;
    assert_eq!(Ecf::default().pick(&paths, &demand(5_000)), SLOW, "a path without a sample is tried");
    paths[1].room = Room::Window;
    assert_eq!(Ecf::default().pick(&paths, &demand(5_000)), Decision::Wait(WaitReason::Busy));
    paths[0].room = Room::Free;
    assert_eq!(Ecf::default().pick(&paths, &demand(5_000)), Decision::Send(PathId(0)));
}

fn control_demand() -> Demand {
    Demand { kind: DemandKind::Control, ..demand(5_000) }
}
