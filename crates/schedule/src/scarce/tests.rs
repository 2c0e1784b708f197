//! Which path is chosen where the window that all share is scarce.

use plait_base::Instant;

use super::*;
use crate::candidates::tests::view;
use crate::minrtt::MinRtt;
use crate::scheduler::Scheduler;
use crate::view::{Backlog, DemandKind};

const RATE_BPS: u64 = 8_000_000;

/// 8 Mbit/s, that is 1,000 bytes a millisecond, with a window of 80,000 bytes; `flight` is under way, and packets of a flight of
/// 10,000 bytes took so long.
fn path(id: u32, rtt_ms: u64, flight: u64) -> PathView {
    PathView {
        rtt_min: Duration::from_millis(5),
        rtt_flight_bytes: 10_000,
        window_bytes: 80_000,
        in_flight_bytes: flight,
        delivery_rate_bps: Some(RATE_BPS),
        ..view(id, rtt_ms)
    }
}

/// New data for all of the credit.
fn demand(credit: u64) -> Demand {
    Demand {
        now: Instant::ZERO,
        kind: DemandKind::Stream,
        unsent_bytes: credit,
        send_credit_bytes: credit,
        backlog: Backlog::Growing,
    }
}

fn pick(paths: &[PathView], credit: u64) -> Option<Decision> {
    soonest(paths, &demand(credit), None)
}

const SEND: [Decision; 2] = [Decision::Send(PathId(0)), Decision::Send(PathId(1))];

#[test]
fn a_window_with_room_for_all_is_no_reason_to_choose() {
    let paths = [path(0, 20, 30_000), path(1, 40, 50_000)];
    assert_eq!(pick(&paths, 80_000), None, "50,000 and 30,000 are free");
    assert_eq!(pick(&paths, 79_999), Some(SEND[0]));
    // What no path of this tier may carry does not count.
    let mut paths = paths;
    paths[1].room = Room::NoCid;
    assert_eq!(pick(&paths, 60_000), None);
}

#[test]
fn what_is_under_way_is_a_queue_to_come() {
    // The flight has grown by 20,000 bytes, which take 20 ms.
    assert_eq!(pick(&[path(0, 20, 29_999), path(1, 40, 10_000)], 40_000), Some(SEND[0]));
    assert_eq!(pick(&[path(0, 20, 31_000), path(1, 40, 10_000)], 40_000), Some(SEND[1]));
}

#[test]
fn a_queue_that_has_gone_is_none() {
    assert_eq!(pick(&[path(0, 40, 10_000), path(1, 45, 4_000)], 40_000), Some(SEND[1]), "39 ms");
    // It never takes less than the smallest RTT, and ties go to the lower id.
    let mut paths = [path(0, 6, 9_000), path(1, 45, 0)];
    paths[1].rtt_flight_bytes = 60_000;
    assert_eq!(pick(&paths, 40_000), Some(SEND[0]));
    paths[0].in_flight_bytes = 9_500;
    assert_eq!(pick(&paths, 40_000), Some(SEND[1]));
}

#[test]
fn without_a_rate_the_smoothed_rtt_counts() {
    let mut paths = [path(0, 20, 79_000), path(1, 40, 0)];
    paths[0].delivery_rate_bps = None;
    paths[1].delivery_rate_bps = None;
    assert_eq!(pick(&paths, 40_000), Some(SEND[0]));
    paths[0].rtt = None;
    assert_eq!(pick(&paths, 40_000), Some(SEND[1]), "one without a sample is no choice");
}

#[test]
fn a_pacer_is_waited_for_that_lets_all_out_in_time() {
    let mut paths = [path(0, 20, 10_000), path(1, 30, 10_000)];
    paths[0].room = Room::Paced(Instant::ZERO);
    // 80,000 bytes in four fifths of 20 ms: 50,000 in the 10 ms by which the other path is later.
    assert_eq!(pick(&paths, 50_000), Some(Decision::Wait(WaitReason::Faster(PathId(0)))));
    assert_eq!(pick(&paths, 50_001), Some(SEND[1]));
    // A full window is not waited for here.
    paths[0].room = Room::Window;
    assert_eq!(pick(&paths, 50_000), Some(SEND[1]));
    paths[1].room = Room::Window;
    assert_eq!(pick(&paths, 50_000), None);
}

#[test]
fn a_train_counts_for_what_it_takes() {
    let paths = [path(0, 20, 10_000), path(1, 40, 10_000)];
    let train = |paths: &[PathView], credit| soonest(paths, &demand(credit), Some(PathId(0)));
    assert_eq!(train(&paths, 20_000), Some(SEND[0]));
    assert_eq!(train(&paths, 20_001), Some(SEND[1]));
    // At 1 Gbit/s all of a train is gone in half a millisecond.
    let fast = paths.map(|path| PathView { delivery_rate_bps: Some(1_000_000_000), window_bytes: 1 << 20, ..path });
    assert_eq!(train(&fast, 1 << 20), Some(SEND[0]));
}

#[test]
fn minrtt_goes_by_it() {
    let paths = [path(0, 20, 60_000), path(1, 40, 10_000)];
    let mut minrtt = MinRtt::default();
    assert_eq!(minrtt.pick(&paths, &demand(200_000)), SEND[0]);
    assert_eq!(minrtt.pick(&paths, &demand(40_000)), SEND[1]);
    assert!(
        minrtt.keeps_to(PathId(0), &paths, &demand(200_000)) && !minrtt.keeps_to(PathId(0), &paths, &demand(40_000))
    );
    // Datagrams need no credit.
    let datagram = Demand { kind: DemandKind::Datagram, ..demand(40_000) };
    assert_eq!(minrtt.pick(&paths, &datagram), SEND[0]);
}
