//! Packets in turn: the candidate that has carried the fewest packets.

use plait_base::{Instant, PathId, Random};

use crate::candidates::candidates;
use crate::decision::Decision;
use crate::quota::Quotas;
use crate::scheduler::{Scheduler, SchedulerFactory};
use crate::view::{Demand, PathView};

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RoundRobinFactory;

impl SchedulerFactory for RoundRobinFactory {
    fn name(&self) -> &'static str {
        "round-robin"
    }

    fn build(&self, _random: Random) -> Box<dyn Scheduler> {
        Box::new(RoundRobin::default())
    }
}

/// Equal packet counts, as far as windows allow.
#[derive(Clone, Debug, Default)]
struct RoundRobin {
    quotas: Quotas,
}

impl Scheduler for RoundRobin {
    fn name(&self) -> &'static str {
        "round-robin"
    }

    fn pick(&mut self, paths: &[PathView], _demand: &Demand) -> Decision {
        self.quotas.admit(paths, |_, quota, _| quota);
        let least = candidates(paths).min_by_key(|p| (self.quotas.get(p.id), p.id));
        Decision::send_or_wait(least, paths)
    }

    fn on_sent(&mut self, path: PathId, _bytes: u64, _now: Instant) {
        self.quotas.add(path);
    }

    fn on_path_closing(&mut self, path: PathId) {
        self.quotas.remove(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::candidates::tests::{demand, play, view};
    use crate::view::Room;

    #[test]
    fn takes_turns() {
        let mut rr = RoundRobin::default();
        let paths = [view(0, 10), view(1, 90), view(2, 50)];
        assert_eq!(play(&mut rr, &paths, 7), [0, 1, 2, 0, 1, 2, 0]);
    }

    #[test]
    fn a_blocked_path_is_passed_over_and_a_new_one_begins_level() {
        let mut rr = RoundRobin::default();
        let mut paths = [view(0, 10), view(1, 90)];
        paths[1].room = Room::Window;
        assert_eq!(play(&mut rr, &paths[..1], 4), [0, 0, 0, 0]);
        assert_eq!(play(&mut rr, &paths, 2), [0, 0]);
        paths[1].room = Room::Free;
        // Path 1 joined when path 0 had carried four: it owes two.
        assert_eq!(play(&mut rr, &paths, 4), [1, 1, 0, 1]);
        rr.on_path_closing(PathId(0));
        assert_eq!(rr.pick(&[], &demand(1)), Decision::Wait(crate::WaitReason::NoPath));
    }
}
