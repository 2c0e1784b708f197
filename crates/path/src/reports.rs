//! How paths do, as hosts tell each other by MPX_PATHS: what we tell and when, and what the peer told of each path.

use std::time::Duration;

use plait_base::Instant;
use plait_base::observe::{PathState, PeerReport};
use plait_wire::frame::{List, PathCondition, PathInfo, PathsInfo};
use plait_wire::{FrameWriter, SentFrame};

use crate::frame_state::NewestReport;

/// An RTT that moved by less than this is told only with other news.
const RTT_NOTICED_US: u64 = 1_000;
/// The same of the share of lost packets, of a million.
const LOSS_NOTICED_PPM: u64 = 10_000;

/// What we tell of our paths, and the number of what the peer told last.
#[derive(Clone, Debug, Default)]
pub(crate) struct PathReports {
    delivery: NewestReport,
    /// What the newest report told.
    told: Vec<PathInfo>,
    /// When a report was asked for last.
    asked_at: Option<Instant>,
    /// Number of the peer's newest report.
    theirs: Option<u64>,
}

impl PathReports {
    /// Asks for a report where `paths` differ from what was told: at once for a condition, for figures once `interval` has
    /// passed since the last.
    pub(crate) fn review(&mut self, now: Instant, interval: Duration, paths: impl Iterator<Item = PathInfo> + Clone) {
        if self.delivery.is_due() {
            return;
        }
        let before = |info: &PathInfo| self.told.iter().find(|told| told.path == info.path);
        let has_turned =
            |info: &PathInfo| before(info).map_or(PathCondition::Active, |b| b.condition) != info.condition;
        let has_moved = |info: &PathInfo| match before(info) {
            Some(before) => is_noticeable(before, info),
            None => info.srtt_us > 0,
        };
        let may_tell_figures = self.asked_at.is_none_or(|at| now.since(at) >= interval);
        let mut of_each = paths;
        if of_each.any(|info| has_turned(&info) || may_tell_figures && has_moved(&info)) {
            self.asked_at = Some(now);
            self.delivery.is_due_again();
        }
    }

    pub(crate) fn wants_frame(&self) -> bool {
        self.delivery.is_due()
    }

    /// Tells how `paths` do now.
    pub(crate) fn fill(&mut self, paths: impl Iterator<Item = PathInfo> + Clone, w: &mut FrameWriter<'_>) {
        let (sequence, mut entries) = (self.delivery.next(), Vec::new());
        let list = List::of(paths.clone(), &mut entries);
        if self.delivery.write(&PathsInfo { sequence, paths: list }, SentFrame::PathsInfo(sequence), w) {
            self.told.clear();
            self.told.extend(paths);
        }
    }

    pub(crate) fn on_acked(&mut self, sequence: u64) {
        self.delivery.on_acked(sequence);
    }

    pub(crate) fn on_lost(&mut self, sequence: u64) {
        self.delivery.on_lost(sequence);
    }

    /// True for a report of the peer that none overtook.
    pub(crate) fn admit(&mut self, sequence: u64) -> bool {
        let is_news = self.theirs.is_none_or(|newest| sequence > newest);
        if is_news {
            self.theirs = Some(sequence);
        }
        is_news
    }
}

/// True where figures differ by more than a quarter, and by more than noise.
fn is_noticeable(before: &PathInfo, after: &PathInfo) -> bool {
    let moved = |a: u64, b: u64, least: u64| a.abs_diff(b) > (a.max(b) / 4).max(least);
    moved(before.srtt_us, after.srtt_us, RTT_NOTICED_US)
        || moved(before.delivered_bytes_per_s, after.delivered_bytes_per_s, 0)
        || before.loss_ppm.abs_diff(after.loss_ppm) > LOSS_NOTICED_PPM
}

/// How a path in this state is told of; none while it is of no use to either end.
pub(crate) fn condition(state: PathState) -> Option<PathCondition> {
    match state {
        PathState::Active => Some(PathCondition::Active),
        PathState::Backup => Some(PathCondition::Backup),
        PathState::Failed => Some(PathCondition::PotentiallyFailed),
        PathState::Closing => Some(PathCondition::Abandoned),
        PathState::Validating | PathState::Unused | PathState::Closed => None,
    }
}

/// What an entry of the peer's report says.
pub(crate) fn report(info: &PathInfo) -> PeerReport {
    PeerReport {
        state: match info.condition {
            PathCondition::Active => PathState::Active,
            PathCondition::Backup => PathState::Backup,
            PathCondition::PotentiallyFailed => PathState::Failed,
            PathCondition::Abandoned => PathState::Closing,
        },
        rtt: Duration::from_micros(info.srtt_us),
        rtt_var: Duration::from_micros(info.rttvar_us),
        delivered_bytes_per_s: info.delivered_bytes_per_s,
        loss_ppm: info.loss_ppm,
    }
}

/// What the peer told last of one path on which it sends.
#[derive(Clone, Debug, Default)]
pub(crate) struct PeerWord {
    report: Option<Box<PeerReport>>,
    /// It says that the path failed, and nothing has shown otherwise since.
    says_failed: bool,
}

impl PeerWord {
    pub(crate) fn report(&self) -> Option<PeerReport> {
        self.report.as_deref().copied()
    }

    #[inline]
    pub(crate) fn says_failed(&self) -> bool {
        self.says_failed
    }

    /// True where a path failed of which the peer said otherwise before.
    pub(crate) fn on_report(&mut self, report: PeerReport) -> bool {
        let before = self.report.replace(Box::new(report)).map(|before| before.state);
        let has_failed = report.state == PathState::Failed;
        let is_news = has_failed && before != Some(PathState::Failed);
        // An ack since counts more than the same word again.
        self.says_failed = is_news || has_failed && self.says_failed;
        is_news
    }

    /// An ack shows that what we send on the path arrives.
    #[inline]
    pub(crate) fn on_acked(&mut self) {
        self.says_failed = false;
    }
}

#[cfg(test)]
mod tests {
    use plait_base::PathId;
    use plait_wire::frame::{Frame, Frames};

    use super::*;

    fn info(path: u32, condition: PathCondition, srtt_ms: u64) -> PathInfo {
        let srtt_us = srtt_ms * 1_000;
        PathInfo { path: PathId(path), condition, srtt_us, rttvar_us: 0, delivered_bytes_per_s: 1_000_000, loss_ppm: 0 }
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    const SRTT: Duration = Duration::from_millis(100);

    /// The number of the report that is due, and the paths that it tells of.
    fn written(reports: &mut PathReports, paths: &[PathInfo]) -> Option<(u64, Vec<PathInfo>)> {
        if !reports.wants_frame() {
            return None;
        }
        let (mut bytes, mut sent) = (Vec::new(), Vec::new());
        reports.fill(paths.iter().copied(), &mut FrameWriter::new(&mut bytes, 1200, &mut sent));
        let frame = Frames::new(&bytes).next().unwrap().unwrap();
        let Frame::PathsInfo(f) = frame else { panic!("{frame:?}") };
        assert_eq!(sent, [SentFrame::PathsInfo(f.sequence)]);
        Some((f.sequence, f.paths.iter().collect()))
    }

    #[test]
    fn a_condition_is_told_at_once_and_figures_at_a_pace() {
        use PathCondition::*;
        let mut reports = PathReports::default();
        let mut next = |ms: u64, paths: &[PathInfo]| {
            reports.review(at(ms), SRTT, paths.iter().copied());
            written(&mut reports, paths).map(|(sequence, _)| sequence)
        };
        assert_eq!(next(0, &[info(0, Active, 0)]), None, "there is nothing to tell");
        assert_eq!(next(1, &[info(0, Active, 20)]), Some(0));
        assert_eq!(next(50, &[info(0, Active, 80)]), None, "too soon");
        assert_eq!(next(101, &[info(0, Active, 80)]), Some(1));
        assert_eq!(next(300, &[info(0, Active, 81)]), None, "hardly moved");
        assert_eq!(next(301, &[info(0, PotentiallyFailed, 81)]), Some(2));
        assert_eq!(next(302, &[info(0, Active, 81), info(1, Active, 0)]), Some(3), "at once");
        assert_eq!(next(303, &[info(0, Active, 81), info(1, Backup, 0)]), Some(4));
        assert_eq!(next(900, &[info(0, Active, 81)]), None, "one that is gone was told of before");
    }

    #[test]
    fn a_lost_report_gives_way_to_a_newer_one() {
        let mut reports = PathReports::default();
        reports.review(at(0), SRTT, [info(0, PathCondition::Active, 20)].into_iter());
        assert!(written(&mut reports, &[info(0, PathCondition::Active, 20)]).is_some());
        reports.on_lost(0);
        let now = [info(0, PathCondition::Backup, 30)];
        assert_eq!(written(&mut reports, &now), Some((1, now.to_vec())), "as things are now");
        reports.on_lost(0);
        assert!(!reports.wants_frame(), "an older one than the newest");
        reports.on_acked(1);
        reports.on_lost(1);
        assert!(!reports.wants_frame(), "it arrived");
    }

    #[test]
    fn what_the_peer_says_holds_until_an_ack() {
        let mut reports = PathReports::default();
        assert_eq!([3, 3, 2, 4].map(|sequence| reports.admit(sequence)), [true, false, false, true]);
        let said = |condition| report(&info(0, condition, 20));
        let mut word = PeerWord::default();
        assert!(!word.on_report(said(PathCondition::Active)));
        assert!(word.on_report(said(PathCondition::PotentiallyFailed)) && word.says_failed());
        word.on_acked();
        assert!(!word.says_failed());
        assert!(!word.on_report(said(PathCondition::PotentiallyFailed)) && !word.says_failed(), "the same again");
        assert!(!word.on_report(said(PathCondition::Backup)));
        assert!(word.on_report(said(PathCondition::PotentiallyFailed)) && word.says_failed());
    }
}
