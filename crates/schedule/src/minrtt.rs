//! Lowest RTT first: the path with the smallest smoothed RTT among those that admit a packet.
//!
//! A slow path never holds a fast one back. While the peer's window, or our send buffer, is so small that the fast path alone
//! sends all of it in less than a round trip on the slow one, the fast path is waited for: what the slow one carries would keep
//! the window closed. The question is that of BLEST (Ferlin et al., 2016), the hysteresis that of ECF (Lim et al., 2017).

use plait_base::{PathId, Random};

use crate::candidates::fastest_with_room;
use crate::choice::{Choice, choice};
use crate::decision::{Decision, WaitReason};
use crate::patience::Patience;
use crate::scheduler::{Scheduler, SchedulerFactory};
use crate::view::{Demand, DemandKind, PathView};

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

/// The default scheduler; its state is whether it waits for a fast path.
#[derive(Clone, Copy, Debug, Default)]
pub struct MinRtt {
    patience: Patience,
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
            Err(decision) => return decision,
        };
        if self.patience.would_block(fast, slow, window_bytes(paths, demand)) {
            return Decision::Wait(WaitReason::Faster(fast.id));
        }
        Decision::Send(slow.id)
    }

    fn keeps_to(&self, path: PathId, paths: &[PathView], demand: &Demand) -> bool {
        match choice(paths, demand) {
            Ok(Choice { fast, slow }) => {
                // What a packet takes of the credit it adds to what is under way: the window stays, and so does the answer.
                let would_block = || self.patience.blocks(fast, slow, window_bytes(paths, demand));
                slow.id == path && self.patience == Patience::Sending && !would_block()
            }
            Err(decision) => decision == Decision::Send(path),
        }
    }
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
}
