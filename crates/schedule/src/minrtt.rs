//! Lowest RTT first: the path with the smallest smoothed RTT among those that admit a packet.
//!
//! A slow path never holds a fast one back. While the peer's window, or our send buffer, leaves so little room that the
//! fast path could send it all before the slow one has delivered, the fast path is waited for: what the slow one
//! carries would keep the window closed. The rule is that of ECF (Lim et al., 2017) with the room as the backlog.

use plait_base::Random;

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
        if self.patience.is_worth_it(fast, slow, demand.send_credit_bytes) {
            return Decision::Wait(WaitReason::Faster(fast.id));
        }
        Decision::Send(slow.id)
    }
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
}
