//! Lowest RTT first: the path with the smallest smoothed RTT among those that admit a packet.
//!
//! A slow path never holds a fast one back. While the peer's window, or our send buffer, is so small that the fast path alone
//! sends all of it in less than a round trip on the slow one, the fast path is waited for: what the slow one carries would keep
//! the window closed. The question is that of BLEST (Ferlin et al., 2016), the hysteresis that of ECF (Lim et al., 2017).
//!
//! Where that window has room for less than the paths' own have, the smallest RTT is that of a packet that would leave now, by what is
//! under way.
//!
//! Nor does the end of all streams go the slow way where it fits into the fast path's window, and that path would be done with it
//! sooner: there the rule is ECF's, and a like one while only the pacer holds the fast path.

use plait_base::{PathId, Random};

use crate::candidates::fastest_with_room;
use crate::choice::{Choice, choice};
use crate::decision::{Decision, WaitReason};
use crate::patience::{Patience, paced_is_sooner};
use crate::scarce::{TRAIN_BYTES, soonest};
use crate::scheduler::{Scheduler, SchedulerFactory};
use crate::view::{Backlog, Demand, DemandKind, PathView, Room};

/// Builds the scheduler `minrtt`, which has no settings.
#[derive(Clone, Copy, Debug, Default)]
pub struct MinRttFactory;

impl SchedulerFactory for MinRttFactory {
    fn name(&self) -> &'static str {
        "minrtt"
    }

    fn build(&self, _random: Random) -> Box<dyn Scheduler> {
        Box::new(MinRtt::default())
    }
}

/// The default scheduler; its state is whether it waits for a fast path: for a window that all paths share, and at the end.
#[derive(Clone, Copy, Debug, Default)]
pub struct MinRtt {
    patience: Patience,
    at_end: Patience,
}

impl Scheduler for MinRtt {
    fn name(&self) -> &'static str {
        "minrtt"
    }

    fn pick(&mut self, paths: &[PathView], demand: &Demand) -> Decision {
        // Datagrams and control frames need no credit.
        if demand.kind != DemandKind::Stream {
            return Decision::send_or_wait(fastest_with_room(paths), paths);
        }
        let Choice { fast, slow } = match choice(paths, demand) {
            Ok(choice) => choice,
            Err(decision) => return by_arrival(decision, paths, demand, None),
        };
        let would_block = self.patience.would_block(fast, slow, window_bytes(paths, demand));
        if would_block || (demand.backlog == Backlog::Final && self.end_is_sooner(fast, slow, demand.unsent_bytes)) {
            return Decision::Wait(WaitReason::Faster(fast.id));
        }
        by_arrival(Decision::Send(slow.id), paths, demand, None)
    }

    fn keeps_to(&self, path: PathId, paths: &[PathView], demand: &Demand) -> bool {
        match choice(paths, demand) {
            Ok(Choice { fast, slow }) => {
                // What a train takes of the credit it adds to what is under way: the window stays, and the slow path's queue grows.
                let would_block = || {
                    let in_flight_bytes = slow.in_flight_bytes.saturating_add(TRAIN_BYTES);
                    self.patience.blocks(fast, &PathView { in_flight_bytes, ..*slow }, window_bytes(paths, demand))
                };
                // What follows leaves less to wait for.
                let rest = demand.unsent_bytes.saturating_sub(TRAIN_BYTES);
                let is_end = || demand.backlog == Backlog::Final && { *self }.end_is_sooner(fast, slow, rest);
                let decision = by_arrival(Decision::Send(slow.id), paths, demand, Some(path));
                decision == Decision::Send(path) && self.patience == Patience::Sending && !would_block() && !is_end()
            }
            Err(decision) => by_arrival(decision, paths, demand, Some(path)) == Decision::Send(path),
        }
    }
}

impl MinRtt {
    /// True when the fast path, which has no room just now, is done with the last `unsent` bytes before the slow one.
    fn end_is_sooner(&mut self, fast: &PathView, slow: &PathView, unsent: u64) -> bool {
        if repairs_are_later(fast, slow) {
            return false;
        }
        match fast.room {
            Room::Paced(_) => paced_is_sooner(fast, slow, unsent),
            // A longer wait counts on a window that may be cut meanwhile.
            _ => unsent <= fast.window_bytes && self.at_end.is_worth_it(fast, slow, unsent),
        }
    }
}

/// The decision by the smallest RTT, or another where the window is scarce.
fn by_arrival(decision: Decision, paths: &[PathView], demand: &Demand, train: Option<PathId>) -> Decision {
    match decision {
        Decision::Send(usual) => soonest(usual, paths, demand, train).unwrap_or(decision),
        _ => decision,
    }
}

/// True where the fast path loses packets, and what it has to send twice more arrives after what leaves on the slow one now: a
/// repair leaves when a packet is overdue (RFC 9002 6.2.1), and may be lost as well.
fn repairs_are_later(fast: &PathView, slow: &PathView) -> bool {
    let repair = fast.rtt_or_max().saturating_add(fast.rtt_var.saturating_mul(4));
    fast.is_lossy() && repair.saturating_mul(2).saturating_add(fast.rtt_or_max()) > slow.rtt_or_max()
}

/// The window that all paths share: what may follow, and what is under way.
fn window_bytes(paths: &[PathView], demand: &Demand) -> u64 {
    paths.iter().fold(demand.send_credit_bytes, |sum, path| sum.saturating_add(path.in_flight_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::candidates::tests::{demand, view};
    use crate::decision::WaitReason;
    use crate::view::Room;
    use plait_base::PathId;
    use std::time::Duration;

    #[test]
    fn picks_the_smallest_rtt_that_is_open() {
        let mut paths = [view(0, 50), view(1, 20), view(2, 30)];
        assert_eq!(MinRtt::default().pick(&paths, &demand(1000)), Decision::Send(PathId(1)));
        paths[1].room = Room::Window;
        assert_eq!(MinRtt::default().pick(&paths, &demand(1000)), Decision::Send(PathId(2)));
        paths[0].rtt = None;
        paths[2].room = Room::Window;
        assert_eq!(
            MinRtt::default().pick(&paths, &demand(1000)),
            Decision::Send(PathId(0)),
            "an unsampled path is the last resort"
        );
        paths[0].room = Room::Window;
        assert_eq!(MinRtt::default().pick(&paths, &demand(1000)), Decision::Wait(WaitReason::Busy));
        assert_eq!(MinRtt::default().pick(&[], &demand(1000)), Decision::Wait(WaitReason::NoPath));
    }

    #[test]
    fn little_credit_waits_for_the_fast_path() {
        let (mut fast, slow) = (view(0, 10), view(1, 100));
        fast.room = Room::Window;
        let paths = [fast, slow];
        let with_credit = |kind, bytes| Demand { kind, send_credit_bytes: bytes, ..demand(1 << 20) };
        let mut minrtt = MinRtt::default();
        // The window of the fast path is 10,000 bytes: 80,000 are gone in 9 of its round trips, before the slow one delivers.
        let little = with_credit(DemandKind::Stream, 80_000);
        assert_eq!(minrtt.pick(&paths, &little), Decision::Wait(WaitReason::Faster(PathId(0))));
        // 150,000 take longer than the slow path's round trip, also with ECF's hysteresis.
        assert_eq!(minrtt.pick(&paths, &with_credit(DemandKind::Stream, 150_000)), Decision::Send(PathId(1)));
        for kind in [DemandKind::Datagram, DemandKind::Control] {
            assert_eq!(minrtt.pick(&paths, &with_credit(kind, 0)), Decision::Send(PathId(1)));
        }
    }

    #[test]
    fn the_end_waits_for_a_pacer_that_is_done_sooner() {
        let last = |unsent_bytes| Demand { unsent_bytes, backlog: Backlog::Final, ..demand(1 << 20) };
        let (mut fast, slow) = (view(0, 20), view(1, 30));
        (fast.room, fast.window_bytes, fast.in_flight_bytes) =
            (Room::Paced(plait_base::Instant::ZERO), 100_000, 20_000);
        let wait = Decision::Wait(WaitReason::Faster(PathId(0)));
        // At 100,000 bytes in four fifths of 20 ms, 62,500 leave in the 10 ms by which the slow path is later.
        let mut minrtt = MinRtt::default();
        assert_eq!(minrtt.pick(&[fast, slow], &last(62_500)), wait);
        assert_eq!(minrtt.pick(&[fast, slow], &last(62_501)), Decision::Send(PathId(1)));
        assert!(minrtt.keeps_to(PathId(1), &[fast, slow], &last(62_501 + TRAIN_BYTES)), "a train leaves more");
        assert!(!minrtt.keeps_to(PathId(1), &[fast, slow], &last(62_500 + TRAIN_BYTES)));
        // An application that may write more would wait without end.
        let more = Demand { backlog: Backlog::Growing, ..last(10_000) };
        assert_eq!(minrtt.pick(&[fast, slow], &more), Decision::Send(PathId(1)));
        // What does not fit into the window waits for acks too.
        fast.in_flight_bytes = 40_000;
        assert_eq!(minrtt.pick(&[fast, slow], &last(62_500)), Decision::Send(PathId(1)));
    }

    #[test]
    fn the_end_waits_for_a_window_as_ecf_does() {
        let last = |unsent_bytes| Demand { unsent_bytes, backlog: Backlog::Final, ..demand(1 << 20) };
        let (mut fast, slow) = (view(0, 20), view(1, 100));
        fast.room = Room::Window;
        (fast.window_bytes, fast.in_flight_bytes) = (50_000, 50_000);
        let wait = Decision::Wait(WaitReason::Faster(PathId(0)));
        assert_eq!(MinRtt::default().pick(&[fast, slow], &last(50_000)), wait);
        assert_eq!(
            MinRtt::default().pick(&[fast, slow], &last(50_001)),
            Decision::Send(PathId(1)),
            "a window and more"
        );
        let more = Demand { backlog: Backlog::Growing, ..last(10_000) };
        assert_eq!(MinRtt::default().pick(&[fast, slow], &more), Decision::Send(PathId(1)), "the end is not known");
        // A round trip of waiting and one of its own take as long as one on the slow path.
        fast.rtt = slow.rtt.map(|rtt| rtt / 2);
        assert_eq!(MinRtt::default().pick(&[fast, slow], &last(10_000)), Decision::Send(PathId(1)));
    }

    #[test]
    fn the_end_does_not_wait_for_a_path_that_loses() {
        let last = Demand { backlog: Backlog::Final, ..demand(10_000) };
        let (mut fast, mut slow) = (view(0, 20), view(1, 60));
        (fast.room, fast.window_bytes, fast.in_flight_bytes) = (Room::Window, 50_000, 50_000);
        let (wait, send) = (Decision::Wait(WaitReason::Faster(PathId(0))), Decision::Send(PathId(1)));
        assert_eq!(MinRtt::default().pick(&[fast, slow], &last), wait);
        fast.loss_per_mille = 50;
        fast.rtt_var = Duration::from_millis(5);
        assert_eq!(MinRtt::default().pick(&[fast, slow], &last), send);
        // Two repairs of 40 ms each and a round trip: they are done before the slow path.
        slow.rtt = Some(Duration::from_millis(101));
        assert_eq!(MinRtt::default().pick(&[fast, slow], &last), wait);
        slow.rtt = Some(Duration::from_millis(99));
        assert_eq!(MinRtt::default().pick(&[fast, slow], &last), send);
    }

    #[test]
    fn a_window_is_what_all_paths_share() {
        let stream = |bytes| Demand { send_credit_bytes: bytes, ..demand(1 << 20) };
        let (mut fast, mut slow) = (view(0, 20), view(1, 41));
        fast.room = Room::Window;
        (fast.window_bytes, fast.in_flight_bytes) = (100_000, 100_000);
        // A window of 200,000 bytes is gone after two round trips of the fast path, just before the slow one delivers.
        let wait = Decision::Wait(WaitReason::Faster(PathId(0)));
        assert_eq!(MinRtt::default().pick(&[fast, slow], &stream(100_000)), wait);
        // What the slow path has under way is part of a larger one.
        slow.in_flight_bytes = 50_000;
        assert_eq!(MinRtt::default().pick(&[fast, slow], &stream(100_000)), Decision::Send(PathId(1)));
        // A round trip of one sample varies by half of it: that is no reason to leave the path untried.
        slow.rtt_var = slow.rtt.unwrap() / 2;
        assert_eq!(MinRtt::default().pick(&[fast, slow], &stream(100_000)), Decision::Send(PathId(1)));
        // A fast path that waits for credit uses less of its window than it has: at this rate 50,000 bytes a round trip.
        (fast.in_flight_bytes, fast.delivery_rate_bps) = (40_000, Some(20_000_000));
        assert_eq!(MinRtt::default().pick(&[fast, slow], &stream(60_000)), Decision::Send(PathId(1)));
        fast.delivery_rate_bps = None;
        assert_eq!(MinRtt::default().pick(&[fast, slow], &stream(60_000)), wait);
    }

    #[test]
    fn a_queue_that_grows_is_longer_than_acks_tell() {
        let stream = |bytes| Demand { send_credit_bytes: bytes, ..demand(1 << 20) };
        let (mut fast, mut slow) = (view(0, 20), view(1, 40));
        fast.room = Room::Window;
        (fast.window_bytes, fast.in_flight_bytes) = (20_000, 20_000);
        // The fast path sends 1,000 bytes a millisecond: 80,000 bytes last longer than 40 ms.
        (slow.in_flight_bytes, slow.delivery_rate_bps) = (20_000, Some(2_000_000));
        let (wait, send) = (Decision::Wait(WaitReason::Faster(PathId(0))), Decision::Send(PathId(1)));
        assert_eq!(
            MinRtt::default().pick(&[fast, slow], &stream(40_000)),
            send,
            "no queue was met: the rate is no bound"
        );
        // At 250 bytes a millisecond what is under way takes 80 ms.
        slow.rtt_min = Duration::from_millis(30);
        assert_eq!(MinRtt::default().pick(&[fast, slow], &stream(39_000)), wait);
        assert_eq!(MinRtt::default().pick(&[fast, slow], &stream(40_000)), send, "as long as the slow path");
        let (minrtt, train) = (MinRtt::default(), stream(40_000 + TRAIN_BYTES));
        assert!(!minrtt.keeps_to(PathId(1), &[fast, slow], &train), "a train more makes the queue longer");
        slow.rtt_min = slow.rtt.unwrap();
        assert!(minrtt.keeps_to(PathId(1), &[fast, slow], &train));
        slow.rtt_min = Duration::from_millis(30);
        // A RTT that is longer than that holds.
        (slow.delivery_rate_bps, slow.rtt) = (Some(2_000_000), Some(Duration::from_millis(81)));
        assert_eq!(MinRtt::default().pick(&[fast, slow], &stream(40_000)), wait);
    }
}
