//! Why a path carries no data, in the words that results use.

use plait_base::observe::PathState;

use crate::candidates::Tier;
use crate::view::{Demand, PathView, PeerAdvice, Room};

/// One reason for a path to be idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WhyIdle {
    /// Its address is not validated yet.
    NotValidated,
    /// We keep it as a backup.
    Backup,
    /// Its congestion window is full.
    Window,
    /// Its pacer holds it.
    Paced,
    /// The socket that it leaves by is full.
    Socket,
    /// The anti-amplification limit holds it.
    Amplification,
    /// No connection id of the peer is left for it.
    NoCid,
    /// The peer asked to keep it as a backup.
    PeerBackup,
    /// It is potentially failed.
    Failed,
    /// It could send, but the scheduler chose otherwise.
    Scheduler,
    /// Nothing waits that flow control lets out.
    NoData,
}

impl WhyIdle {
    /// The word that programs read.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotValidated => "not-validated",
            Self::Backup => "backup",
            Self::Window => "cwnd",
            Self::Paced => "paced",
            Self::Socket => "socket",
            Self::Amplification => "amplification",
            Self::NoCid => "no-cid",
            Self::PeerBackup => "peer-backup",
            Self::Failed => "failed",
            Self::Scheduler => "scheduler",
            Self::NoData => "no-data",
        }
    }
}

/// Why `path`, one of `paths`, does not send now; none for a path that is closing or closed.
pub fn why_idle(path: &PathView, paths: &[PathView], demand: &Demand) -> Option<WhyIdle> {
    let tier = match path.state {
        PathState::Unused | PathState::Closing | PathState::Closed => return None,
        PathState::Validating => return Some(WhyIdle::NotValidated),
        state => Tier::of(state),
    };
    // RFC 10069 3.3: a better tier has a usable path.
    if Tier::best(paths).is_some_and(|best| Some(best) < tier) {
        return Some(match (path.state, path.peer_advice) {
            (PathState::Failed, _) => WhyIdle::Failed,
            (_, PeerAdvice::Backup) => WhyIdle::PeerBackup,
            (_, PeerAdvice::Available) => WhyIdle::Backup,
        });
    }
    Some(match path.room {
        Room::NotValidated | Room::CopiesOnly => WhyIdle::NotValidated,
        Room::NoCid => WhyIdle::NoCid,
        Room::Amplification => WhyIdle::Amplification,
        _ if demand.unsent_bytes == 0 => WhyIdle::NoData,
        Room::Window => WhyIdle::Window,
        Room::Paced(_) => WhyIdle::Paced,
        Room::Socket(_) | Room::Stuck => WhyIdle::Socket,
        Room::Free => WhyIdle::Scheduler,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::candidates::tests::{demand, view};
    use plait_base::Instant;

    #[test]
    fn every_reason_has_its_case() {
        let word = |change: &dyn Fn(&mut PathView), unsent| {
            let mut paths = [view(0, 10), view(1, 20)];
            change(&mut paths[1]);
            why_idle(&paths[1], &paths, &demand(unsent)).map(WhyIdle::name)
        };
        assert_eq!(word(&|_| {}, 1), Some("scheduler"));
        assert_eq!(word(&|_| {}, 0), Some("no-data"));
        assert_eq!(word(&|p| p.room = Room::Window, 1), Some("cwnd"));
        assert_eq!(word(&|p| p.room = Room::Paced(Instant::ZERO), 1), Some("paced"));
        assert_eq!(word(&|p| p.room = Room::Socket(Instant::ZERO), 1), Some("socket"));
        assert_eq!(word(&|p| p.room = Room::Stuck, 1), Some("socket"));
        assert_eq!(word(&|p| p.room = Room::Amplification, 1), Some("amplification"));
        assert_eq!(word(&|p| p.room = Room::NoCid, 1), Some("no-cid"));
        assert_eq!(word(&|p| p.room = Room::NotValidated, 1), Some("not-validated"));
        assert_eq!(word(&|p| p.state = PathState::Validating, 1), Some("not-validated"));
        assert_eq!(word(&|p| p.state = PathState::Failed, 1), Some("failed"));
        assert_eq!(word(&|p| p.state = PathState::Backup, 1), Some("backup"));
        let peer = |p: &mut PathView| (p.state, p.peer_advice) = (PathState::Backup, PeerAdvice::Backup);
        assert_eq!(word(&peer, 1), Some("peer-backup"));
        assert_eq!(word(&|p| p.state = PathState::Closed, 1), None);
    }

    #[test]
    fn a_backup_in_use_is_not_idle_for_being_a_backup() {
        let mut path = view(0, 10);
        path.state = PathState::Backup;
        assert_eq!(why_idle(&path, &[path], &demand(0)), Some(WhyIdle::NoData));
    }
}
