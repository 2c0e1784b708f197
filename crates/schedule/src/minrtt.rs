//! Lowest RTT first: the path with the smallest smoothed RTT among those that admit a packet.

use plait_base::Random;

use crate::candidates::fastest_with_room;
use crate::decision::Decision;
use crate::scheduler::{Scheduler, SchedulerFactory};
use crate::view::{Demand, PathView};

/// Builds the scheduler `minrtt`, which has no settings.
#[derive(Clone, Copy, Debug, Default)]
pub struct MinRttFactory;

impl SchedulerFactory for MinRttFactory {
    fn name(&self) -> &'static str {
        "minrtt"
    }

    fn build(&self, _random: Random) -> Box<dyn Scheduler> {
        Box::new(MinRtt)
    }
}

/// The default scheduler; keeps no state.
#[derive(Clone, Copy, Debug, Default)]
pub struct MinRtt;

impl Scheduler for MinRtt {
    fn name(&self) -> &'static str {
        "minrtt"
    }

    fn pick(&mut self, paths: &[PathView], _demand: &Demand) -> Decision {
        Decision::send_or_wait(fastest_with_room(paths), paths)
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
        assert_eq!(MinRtt.pick(&paths, &demand(1000)), Decision::Send(PathId(1)));
        paths[1].room = Room::Window;
        assert_eq!(MinRtt.pick(&paths, &demand(1000)), Decision::Send(PathId(2)));
        paths[0].rtt = None;
        paths[2].room = Room::Window;
        assert_eq!(
            MinRtt.pick(&paths, &demand(1000)),
            Decision::Send(PathId(0)),
            "an unsampled path is the last resort"
        );
        paths[0].room = Room::Window;
        assert_eq!(MinRtt.pick(&paths, &demand(1000)), Decision::Wait(WaitReason::Busy));
        assert_eq!(MinRtt.pick(&[], &demand(1000)), Decision::Wait(WaitReason::NoPath));
    }
}
