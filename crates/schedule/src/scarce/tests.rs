//! Which path is chosen where the window that all share is scarce.

use plait_base::Instant;

use super::*;
use crate::candidates::fastest_with_room;
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

/// Where a packet goes that would leave on the path with the smallest smoothed RTT.
fn pick(paths: &[PathView], credit: u64) -> Option<Decision> {
    let usual = fastest_with_room(paths)?.id;
    Some(soonest(usual, paths, &demand(credit), None).unwrap_or(Decision::Send(usual)))
}

const SEND: [Option<Decision>; 2] = [Some(Decision::Send(PathId(0))), Some(Decision::Send(PathId(1)))];

#[test]
fn a_window_with_room_for_all_is_no_reason_to_choose() {
    let unusable = PathView { room: Room::NoCid, ..path(2, 5, 0) };
    let paths = [path(0, 20, 60_000), path(1, 40, 10_000), unusable];
    assert_eq!(pick(&paths, 90_000), SEND[0], "20,000 and 70,000 are free");
    assert_eq!(pick(&paths, 89_999), SEND[1]);
}

#[test]
fn what_is_under_way_is_a_queue_to_come() {
    // The flight has grown by 25,000 bytes, which take 25 ms: an eighth later than by the other path is no difference.
    assert_eq!(pick(&[path(0, 20, 35_000), path(1, 40, 10_000)], 40_000), SEND[0]);
    assert_eq!(pick(&[path(0, 20, 36_000), path(1, 40, 10_000)], 40_000), SEND[1]);
}

#[test]
fn a_queue_that_has_gone_is_none() {
    assert_eq!(pick(&[path(0, 40, 10_000), path(1, 45, 0)], 40_000), SEND[0], "36 ms and 41");
    assert_eq!(pick(&[path(0, 40, 10_000), path(1, 44, 0)], 40_000), SEND[1], "35 ms");
    // It never takes less than the smallest RTT, 5 ms, and the packet itself.
    let idle = PathView { rtt_flight_bytes: 60_000, ..path(1, 45, 0) };
    assert_eq!(pick(&[path(0, 5, 10_000), idle], 40_000), SEND[0]);
    assert_eq!(pick(&[path(0, 6, 10_000), idle], 40_000), SEND[1]);
}

#[test]
fn a_thin_path_takes_its_time_for_a_packet() {
    // At 100 bytes a millisecond 1,000 take 10 ms, which the smallest RTT need not have in it.
    let thin = PathView { delivery_rate_bps: Some(RATE_BPS / 10), rtt_flight_bytes: 60_000, ..path(1, 45, 0) };
    assert_eq!(pick(&[path(0, 16, 10_000), thin], 40_000), SEND[0], "15 ms and 17");
    assert_eq!(pick(&[path(0, 17, 10_000), thin], 40_000), SEND[1]);
}

#[test]
fn without_a_rate_the_smoothed_rtt_counts() {
    let mut paths = [path(0, 20, 79_000), path(1, 40, 0)];
    paths[0].delivery_rate_bps = None;
    paths[1].delivery_rate_bps = None;
    assert_eq!(pick(&paths, 40_000), SEND[0]);
    paths[0].rtt = None;
    assert_eq!(pick(&paths, 40_000), SEND[1], "one without a sample is no choice");
}

#[test]
fn a_pacer_is_waited_for_that_lets_all_out_in_time() {
    let mut paths = [path(0, 20, 10_000), path(1, 30, 10_000)];
    paths[0].room = Room::Paced(Instant::ZERO);
    // 80,000 bytes in four fifths of 20 ms: 50,000 in the 10 ms by which the other path is later.
    assert_eq!(pick(&paths, 50_000), Some(Decision::Wait(WaitReason::Faster(PathId(0)))));
    assert_eq!(pick(&paths, 50_001), SEND[1]);
    // A full window is not waited for here.
    paths[0].room = Room::Window;
    assert_eq!(pick(&paths, 50_000), SEND[1]);
    paths[1].room = Room::Window;
    assert_eq!(pick(&paths, 50_000), None);
}

#[test]
fn a_train_counts_for_what_it_takes() {
    let paths = [path(0, 20, 10_000), path(1, 40, 10_000)];
    let train = |paths: &[PathView], credit| soonest(PathId(0), paths, &demand(credit), Some(PathId(0)));
    assert_eq!(train(&paths, 26_000), None);
    assert_eq!(train(&paths, 27_000), SEND[1]);
    // At 1 Gbit/s all of a train is gone in half a millisecond.
    let fast = paths.map(|path| PathView { delivery_rate_bps: Some(1_000_000_000), window_bytes: 1 << 20, ..path });
    assert_eq!(train(&fast, 1 << 20), None);
}

#[test]
fn minrtt_goes_by_it() {
    let paths = [path(0, 20, 60_000), path(1, 40, 10_000)];
    let mut minrtt = MinRtt::default();
    assert_eq!(Some(minrtt.pick(&paths, &demand(200_000))), SEND[0]);
    assert_eq!(Some(minrtt.pick(&paths, &demand(40_000))), SEND[1]);
    assert!(
        minrtt.keeps_to(PathId(0), &paths, &demand(200_000)) && !minrtt.keeps_to(PathId(0), &paths, &demand(40_000))
    );
    // Datagrams need no credit.
    let datagram = Demand { kind: DemandKind::Datagram, ..demand(40_000) };
    assert_eq!(Some(minrtt.pick(&paths, &datagram)), SEND[0]);
}
