//! One path at a time: the usable path with the lowest id carries everything, the others stand by.

use plait_base::Random;
use plait_base::observe::PathState;

use crate::candidates::eligible;
use crate::decision::Decision;
use crate::scheduler::{Scheduler, SchedulerFactory};
use crate::view::{Demand, PathView};

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BackupFactory;

impl SchedulerFactory for BackupFactory {
    fn name(&self) -> &'static str {
        "backup"
    }

    fn build(&self, _random: Random) -> Box<dyn Scheduler> {
        Box::new(Backup)
    }
}

/// Handover without aggregation. A full window is waited for; a failed path is left, and returned to once it recovers.
/// Where all paths failed, any that admits a packet may be the one that works.
#[derive(Clone, Copy, Debug, Default)]
struct Backup;

impl Scheduler for Backup {
    fn name(&self) -> &'static str {
        "backup"
    }

    fn pick(&mut self, paths: &[PathView], _demand: &Demand) -> Decision {
        // No ack will open the window of a path that failed.
        let primary = eligible(paths).min_by_key(|p| (p.state == PathState::Failed && !p.has_room(), p.id));
        Decision::send_or_wait(primary.filter(|p| p.has_room()), paths)
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
    fn the_second_path_stands_by_until_the_first_fails() {
        let mut paths = [view(0, 50), view(1, 10)];
        assert_eq!(Backup.pick(&paths, &demand(1000)), Decision::Send(PathId(0)));
        paths[0].room = Room::Window;
        assert_eq!(Backup.pick(&paths, &demand(1000)), Decision::Wait(WaitReason::Busy));
        paths[0].state = PathState::Failed;
        assert_eq!(Backup.pick(&paths, &demand(1000)), Decision::Send(PathId(1)));
        paths[0] = view(0, 50);
        assert_eq!(Backup.pick(&paths, &demand(1000)), Decision::Send(PathId(0)));
    }

    #[test]
    fn where_all_failed_an_open_one_is_tried() {
        let mut paths = [view(0, 50), view(1, 10)];
        paths.iter_mut().for_each(|path| path.state = PathState::Failed);
        assert_eq!(Backup.pick(&paths, &demand(1000)), Decision::Send(PathId(0)));
        paths[0].room = Room::Window;
        assert_eq!(Backup.pick(&paths, &demand(1000)), Decision::Send(PathId(1)));
    }

    #[test]
    fn a_path_marked_backup_comes_after_later_ids() {
        let mut paths = [view(0, 50), view(1, 10)];
        paths[0].state = PathState::Backup;
        assert_eq!(Backup.pick(&paths, &demand(1000)), Decision::Send(PathId(1)));
    }
}
