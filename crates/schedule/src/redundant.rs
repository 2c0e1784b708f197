//! Everything everywhere: each packet leaves on the fastest open path, and its frames again on every other open one.

use plait_base::Random;

use crate::candidates::{Tier, fastest_with_room};
use crate::decision::{Copies, Decision};
use crate::scheduler::{Scheduler, SchedulerFactory};
use crate::view::{Demand, PathView, Room};

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RedundantFactory;

impl SchedulerFactory for RedundantFactory {
    fn name(&self) -> &'static str {
        "redundant"
    }

    fn build(&self, _random: Random) -> Box<dyn Scheduler> {
        Box::new(Redundant)
    }
}

/// Trades capacity for delay and resilience. A path whose window is full when a packet leaves gets no copy of it, so a slow
/// path does not hold back a fast one; for one that its pacer holds the copy waits. The sender leaves out of a copy what has
/// been acked meanwhile.
#[derive(Clone, Copy, Debug, Default)]
struct Redundant;

impl Scheduler for Redundant {
    fn name(&self) -> &'static str {
        "redundant"
    }

    fn pick(&mut self, paths: &[PathView], _demand: &Demand) -> Decision {
        let Some(primary) = fastest_with_room(paths) else { return Decision::send_or_wait(None, paths) };
        let best = Tier::of(primary.state);
        let mut copies = Copies::default();
        for (place, path) in paths.iter().enumerate() {
            let takes_copy = matches!(path.room, Room::Free | Room::Paced(_));
            if path.id != primary.id && takes_copy && Tier::of(path.state) == best {
                copies.insert(place);
            }
        }
        if copies.is_empty() { Decision::Send(primary.id) } else { Decision::SendAlso { primary: primary.id, copies } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::candidates::tests::{demand, view};
    use crate::decision::WaitReason;
    use plait_base::observe::PathState;
    use plait_base::{Instant, PathId};

    #[test]
    fn copies_go_to_every_other_open_path() {
        let mut paths = [view(0, 50), view(3, 10), view(4, 30), view(9, 20)];
        let Decision::SendAlso { primary, copies } = Redundant.pick(&paths, &demand(1)) else { panic!() };
        assert_eq!(primary, PathId(3));
        assert_eq!(copies.ids(&paths).collect::<Vec<_>>(), [PathId(0), PathId(4), PathId(9)]);
        paths[0].room = Room::Paced(Instant::ZERO);
        let Decision::SendAlso { copies, .. } = Redundant.pick(&paths, &demand(1)) else { panic!() };
        assert_eq!(copies.ids(&paths).collect::<Vec<_>>(), [PathId(0), PathId(4), PathId(9)], "it waits for the pacer");
        paths[0].room = Room::Window;
        paths[2].state = PathState::Backup;
        paths[3].state = PathState::Failed;
        assert_eq!(Redundant.pick(&paths, &demand(1)), Decision::Send(PathId(3)));
        paths[1].room = Room::Window;
        assert_eq!(Redundant.pick(&paths, &demand(1)), Decision::Wait(WaitReason::Busy));
    }

    #[test]
    fn places_beyond_the_set_are_ignored() {
        let mut copies = Copies::default();
        copies.insert(64);
        assert!(copies.is_empty());
        copies.insert(63);
        assert_eq!(copies.ids(&[view(0, 1)]).count(), 0);
    }
}
