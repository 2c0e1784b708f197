//! How paths do, as both ends tell by MPX_PATHS: when it is told, and what is made of what the peer tells.

use std::time::Duration;

use plait_base::limits::{MAX_PATHS, MAX_PATHS_TOLD};
use plait_base::observe::{PathState, PeerReport};
use plait_base::{Instant, PathId, Violation};
use plait_wire::FrameWriter;
use plait_wire::frame::{PathInfo, PathsInfo};

use super::{Paths, Slot};
use crate::path::TakeOver;
use crate::reports;

/// Time between two reports of figures before any RTT is known.
const INTERVAL_WITHOUT_RTT: Duration = Duration::from_secs(1);

/// What the peer told of one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportedPath {
    /// The path of which it told.
    pub id: PathId,
    /// How it does for the peer.
    pub report: PeerReport,
    /// Whether it has failed for the peer, who said otherwise before.
    pub failed: ReportedFailure,
}

/// Whether the peer reports a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportedFailure {
    /// None, or the one that it reported before.
    None,
    /// A new one.
    New,
}

impl Slot {
    /// What we tell of the path.
    fn told(&self) -> Option<PathInfo> {
        let path = self.path.as_deref()?;
        let condition = reports::condition(self.state())?;
        let figures = path.send.stats();
        let micros = |time: Duration| time.as_micros() as u64;
        Some(PathInfo {
            path: self.id,
            condition,
            srtt_us: figures.rtt.map_or(0, micros),
            rttvar_us: figures.rtt.map_or(0, |_| micros(figures.rtt_var)),
            delivered_bytes_per_s: figures.delivery_rate_bps.unwrap_or(0) / 8,
            loss_ppm: u64::from(figures.loss_per_mille) * 1_000,
        })
    }

    /// What the peer told last of how the path does for it.
    pub fn peer_report(&self) -> Option<PeerReport> {
        self.peer_word.report()
    }

    /// True for a path that works as far as we see, and failed as the peer says.
    #[inline]
    fn is_doubtful(&self) -> bool {
        self.peer_word.says_failed() && self.is_working()
    }
}

fn told(slots: &[Slot]) -> impl Iterator<Item = PathInfo> + Clone + '_ {
    slots.iter().rev().filter_map(Slot::told).take(MAX_PATHS_TOLD)
}

impl Paths {
    /// Something happened, or time has passed: the peer is to hear how our paths do where it was told otherwise.
    pub fn review_report(&mut self, now: Instant) {
        let interval = self.reports.as_ref().and_then(|_| self.max_rtt()).unwrap_or(INTERVAL_WITHOUT_RTT);
        if let Some(reports) = &mut self.reports {
            reports.review(now, interval, told(self.slots.awake()));
        }
    }

    pub(super) fn fill_report(&mut self, w: &mut FrameWriter<'_>) {
        if let Some(reports) = self.reports.as_mut().filter(|reports| reports.wants_frame()) {
            reports.fill(told(self.slots.awake()), w);
        }
    }

    /// MPX_PATHS; what is news in it, of the paths that we know.
    ///
    /// # Errors
    /// [`Violation::AddressesNotNegotiated`] where both did not offer it.
    pub fn on_paths_info(&mut self, frame: &PathsInfo<'_>) -> Result<Vec<ReportedPath>, Violation> {
        let reports = self.reports.as_mut().ok_or(Violation::AddressesNotNegotiated)?;
        if !reports.admit(frame.sequence) {
            return Ok(Vec::new());
        }
        let mut news = Vec::new();
        for info in frame.paths.iter().take(MAX_PATHS) {
            let Some(slot) = self.slot_mut(info.path).filter(|slot| slot.is_open()) else { continue };
            let report = reports::report(&info);
            if slot.peer_word.report() == Some(report) {
                continue;
            }
            let failed = if slot.peer_word.on_report(report) { ReportedFailure::New } else { ReportedFailure::None };
            news.push(ReportedPath { id: info.path, report, failed });
        }
        Ok(news)
    }

    /// Packets that left on a path were acked: it leads to the peer, whatever that said before.
    #[inline]
    pub fn on_report_refuted(&mut self, id: PathId) {
        if self.reports.is_some()
            && let Some(slot) = self.slot_mut(id)
        {
            slot.peer_word.on_acked();
        }
    }

    /// True for a path that may carry copies of what others carry and nothing else: it failed a moment ago, here or as the peer
    /// says, while another works.
    #[inline]
    pub fn takes_copies_only(&self, slot: &Slot, now: Instant) -> bool {
        match slot.state() {
            PathState::Active => self.is_avoided(slot),
            PathState::Failed => slot.is_suspect(now) && self.can_take_over_from(slot.id) == TakeOver::Possible,
            _ => false,
        }
    }

    /// True for a path that schedulers are to leave alone since the peer says that it failed, while another works of which
    /// it does not say so.
    #[inline]
    pub fn is_avoided(&self, slot: &Slot) -> bool {
        slot.is_doubtful() && self.working().any(|other| !other.is_doubtful())
    }
}
