//! Which paths may be chosen from at all.

use std::time::Duration;

use plait_base::{Instant, PathId};

use super::*;
use crate::decision::Decision;
use crate::scheduler::Scheduler;
use crate::view::{Backlog, Demand, DemandKind, RecentRtt, Room};

/// An open, active path with a steady RTT and datagrams of 1000 bytes.
pub(crate) fn view(id: u32, rtt_ms: u64) -> PathView {
    let rtt = Duration::from_millis(rtt_ms);
    PathView {
        rtt: Some(rtt),
        rtt_min: rtt,
        recent_rtt: RecentRtt { max: rtt, ..RecentRtt::default() },
        max_datagram_bytes: 1000,
        window_bytes: 10_000,
        ..PathView::new(PathId(id))
    }
}

/// Stream data of `unsent` bytes under ample flow control.
pub(crate) fn demand(unsent: u64) -> Demand {
    let (now, backlog) = (Instant::from_nanos(1), Backlog::Growing);
    Demand { now, kind: DemandKind::Stream, unsent_bytes: unsent, send_credit_bytes: 1 << 30, backlog }
}

/// Sends `packets` and lists the paths they went to.
pub(crate) fn play(scheduler: &mut dyn Scheduler, paths: &[PathView], packets: usize) -> Vec<u32> {
    let mut picked = Vec::new();
    for _ in 0..packets {
        let Decision::Send(id) = scheduler.pick(paths, &demand(1 << 20)) else { break };
        scheduler.on_sent(id, 1000, Instant::from_nanos(1));
        picked.push(id.0);
    }
    picked
}

fn ids<'a>(paths: impl Iterator<Item = &'a PathView>) -> Vec<u32> {
    paths.map(|p| p.id.0).collect()
}

#[test]
fn backups_and_failed_paths_wait_for_their_turn() {
    let mut paths = [view(0, 10), view(1, 20), view(2, 5), view(3, 1)];
    paths[1].state = PathState::Backup;
    paths[2].state = PathState::Failed;
    paths[3].state = PathState::Validating;
    assert_eq!(ids(candidates(&paths)), [0]);
    // A full window is no reason to turn to a backup.
    paths[0].room = Room::Window;
    assert_eq!(ids(candidates(&paths)), [0; 0]);
    assert_eq!(ids(eligible(&paths)), [0]);
    // Neither is a full socket, unless it stays full for long.
    paths[0].room = Room::Socket(Instant::from_nanos(5));
    assert_eq!((ids(candidates(&paths)), ids(eligible(&paths))), (vec![], vec![0]));
    paths[0].room = Room::Stuck;
    assert_eq!(ids(candidates(&paths)), [1]);
    paths[0].room = Room::NoCid;
    assert_eq!(ids(candidates(&paths)), [1]);
    paths[1].state = PathState::Closing;
    assert_eq!(ids(candidates(&paths)), [2]);
    paths[2].room = Room::NotValidated;
    assert_eq!(Tier::best(&paths), None);
    assert_eq!(ids(eligible(&paths)), [0; 0]);
}

#[test]
fn fastest_counts_full_paths_too() {
    let mut paths = [view(0, 10), view(1, 20)];
    paths[0].room = Room::Paced(Instant::from_nanos(5));
    assert_eq!(fastest(&paths).map(|p| p.id.0), Some(0));
    assert_eq!(fastest_with_room(&paths).map(|p| p.id.0), Some(1));
}
