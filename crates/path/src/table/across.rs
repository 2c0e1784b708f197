//! What needs several paths at once: which of them work, the longest probe time-out, whom to ask.

use std::time::Duration;

use plait_base::observe::PathState;
use plait_base::shared_metrics::SharedPathMetrics;
use plait_base::time::earliest;
use plait_base::{FourTuple, Instant, PathId, Side};
use smallvec::SmallVec;

use super::{Paths, Slot};
use crate::addresses::FourTupleRole;
use crate::path::{Path, TakeOver};
use crate::stats::PathTotals;
use crate::status::PathStatus;

/// Ids of some paths.
pub type PathIds = SmallVec<[PathId; 8]>;

/// Probe time-out before there is any path.
const PTO_WITHOUT_PATH: Duration = Duration::from_secs(1);

impl Slot {
    /// True for a path that carries data now: validated and not failed.
    #[inline]
    pub fn is_working(&self) -> bool {
        self.is_open() && matches!(self.state(), PathState::Active | PathState::Backup)
    }

    /// The path, while it is open and the peer gave a connection id to send to.
    #[inline]
    pub fn sendable(&self) -> Option<&Path> {
        self.path.as_deref().filter(|_| self.is_open() && self.dcid(FourTupleRole::Current).is_some())
    }
}

impl Paths {
    /// Open paths, by id.
    #[inline]
    pub fn open_paths(&self) -> impl DoubleEndedIterator<Item = &Path> + Clone {
        self.open_slots().filter_map(|slot| slot.path.as_deref())
    }

    /// Open paths, by id, to change.
    pub fn open_paths_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Path> {
        self.slots_mut().filter(|slot| slot.is_open()).filter_map(|slot| slot.path.as_deref_mut())
    }

    /// Paths that carry data now: open, validated and not failed.
    #[inline]
    pub fn working(&self) -> impl DoubleEndedIterator<Item = &Slot> + Clone {
        self.slots().filter(|slot| slot.is_working())
    }

    /// Whether another path works that can take over from this one.
    pub fn can_take_over_from(&self, id: PathId) -> TakeOver {
        if self.working().any(|slot| slot.id != id) { TakeOver::Possible } else { TakeOver::Alone }
    }

    /// True when another open path is validated, whether or not it works now.
    pub fn has_other_validated(&self, id: PathId) -> bool {
        self.open_slots().any(|slot| slot.id != id && slot.state() != PathState::Validating)
    }

    /// True when no path is open.
    pub fn is_empty(&self) -> bool {
        self.open_slots().next().is_none()
    }

    /// Paths on which the peer may hear that the connection ends: every open one, since some may be dead; with none open,
    /// the one that ended last (RFC 10069 2.6).
    pub fn close_targets(&self) -> Vec<PathId> {
        let open: Vec<PathId> = self.open_slots().map(|slot| slot.id).collect();
        if !open.is_empty() {
            return open;
        }
        self.slots().filter(|slot| slot.last_remote_cid().is_some()).map(|slot| slot.id).collect()
    }

    /// Open paths but this one that had a probe time-out without an ack since.
    pub fn silent_beside(&self, id: PathId) -> PathIds {
        self.open_paths().filter(|path| path.id() != id && path.is_silent()).map(Path::id).collect()
    }

    /// A path counts as potentially failed from now on; true when that is news. Where another can take over, the peer hears the
    /// newest acks of the others again: they may have died with it, and a peer whose window is full of what they report would
    /// wait for its probe time-out. It is told not to answer there, unless MPX_PATHS says how the path does: a peer that is
    /// told so may still send copies there.
    pub fn fail(&mut self, id: PathId, others: TakeOver) -> bool {
        let reports = self.reports.is_some();
        let Some(slot) = self.slot_mut(id) else { return false };
        let is_news = slot.path.as_mut().is_some_and(|path| path.fail());
        if is_news && others == TakeOver::Possible {
            if !reports {
                slot.status.demote();
            }
            self.open_paths_mut().filter(|path| path.id() != id).for_each(|path| path.receive.repeat_ack());
        }
        is_news
    }

    /// A path that failed stays silent: the peer is told not to answer there (RFC 10069 3.3).
    pub fn demote(&mut self, id: PathId) {
        if let Some(slot) = self.slot_mut(id) {
            slot.status.demote();
        }
    }

    /// An ack shows that a path works; true when it counted as failed. What the peer was told of the failure is taken back.
    pub fn recover(&mut self, id: PathId) -> bool {
        let Some(slot) = self.slot_mut(id) else { return false };
        let was_failed = slot.path.as_mut().is_some_and(|path| path.recover());
        if was_failed {
            slot.status.restore();
        }
        was_failed
    }

    /// Advises the peer how to use a path; says nothing when that is what we said last.
    pub fn advise(&mut self, id: PathId, status: PathStatus) {
        if let Some(slot) = self.slot_mut(id) {
            slot.status.set_local(status);
        }
    }

    /// Acks that came back over path `id` will no more.
    pub fn on_ack_path_closing(&mut self, id: PathId) {
        let paths = self.slots_mut().filter_map(|slot| slot.path.as_deref_mut());
        paths.filter(|path| path.id() != id).for_each(|path| path.send.on_ack_path_closing(id));
    }

    /// True when no other open path has proven the host at which path `id` leads to the peer.
    pub fn is_new_host(&self, id: PathId) -> bool {
        let Some(host) = self.path(id).map(|path| path.tuple().remote.ip()) else { return false };
        let others = self.open_slots().filter(|slot| slot.id != id && slot.is_validated());
        !others.filter_map(Slot::tuple).any(|tuple| tuple.remote.ip() == host)
    }

    /// Shows the controllers of other paths how path `id` fares; the state that it is in.
    pub fn share_metrics(&mut self, id: PathId, shared: &mut SharedPathMetrics) -> Option<PathState> {
        let slot = self.slot_mut(id)?;
        let state = slot.state();
        slot.path.as_mut()?.share_metrics(state, shared);
        Some(state)
    }

    /// What all paths did so far, those that are gone included. No figure ever decreases.
    pub fn totals(&self) -> PathTotals {
        self.slots().filter_map(Slot::totals).fold(self.past, |sum, totals| sum + totals)
    }

    /// True when the peer proved these addresses on some open path (RFC 10069 3.1: they need not be proven again).
    pub fn has_proven(&self, tuple: &FourTuple) -> bool {
        let is_same = |own: FourTuple| own.remote == tuple.remote && own.local == tuple.local;
        self.open_slots().filter(|slot| slot.is_validated()).filter_map(Slot::tuple).any(is_same)
    }

    /// Largest probe time-out of all open paths, of those that end where none is open; a second before there is any.
    #[inline]
    pub fn max_pto(&self) -> Duration {
        debug_assert_eq!(self.max_pto, self.longest_pto(), "a path's probe time-out changed without on_pto_changed");
        self.max_pto
    }

    /// The probe time-out of a path changed, or a path came or went.
    pub fn on_pto_changed(&mut self) {
        self.max_pto = self.longest_pto();
    }

    pub(super) fn longest_pto(&self) -> Duration {
        let paths = |open| self.slots().filter(move |s| s.is_open() == open);
        let longest = |open| paths(open).filter_map(Slot::pto).max();
        longest(true).or_else(|| longest(false)).unwrap_or(PTO_WITHOUT_PATH)
    }

    /// The slowest open path's smoothed RTT; none before any sample.
    pub fn max_rtt(&self) -> Option<Duration> {
        self.open_slots().filter_map(Slot::rtt).max()
    }

    /// When an ack, a loss timer, a probe or a question after a pause is due.
    pub fn packet_deadline(&self) -> Option<Instant> {
        let of = |slot: &Slot| {
            let path = slot.path.as_deref()?;
            // A closing path acknowledges what still comes, and sends nothing.
            earliest(path.receive.deadline(), path.deadline().filter(|_| slot.is_open()))
        };
        self.slots().fold(None, |first, slot| earliest(first, of(slot)))
    }

    /// Acks whose time has come are due from now on, whether or not a path has room for them.
    pub fn on_ack_timeouts(&mut self, now: Instant) {
        self.slots_mut().filter_map(|slot| slot.path.as_mut()).for_each(|path| path.receive.on_timeout(now));
    }

    /// Paths on which what the peer sent has stopped, each once a pause.
    pub fn take_pauses(&mut self, now: Instant) -> PathIds {
        let paths = self.slots_mut().filter_map(|slot| slot.path.as_deref_mut());
        paths.filter_map(|path| path.take_pause(now).then_some(path.id())).collect()
    }

    /// Open paths on which nothing left for `interval`, and when the next one will have been silent for as long.
    pub fn keep_alive(&self, now: Instant, interval: Duration) -> (PathIds, Instant) {
        let at = |path: &Path| path.keep_alive_at(now, interval);
        let silent = self.open_paths().filter(|path| at(path) <= now).map(Path::id).collect();
        let next = self.open_paths().map(at).filter(|at| *at > now).min();
        (silent, next.map_or(now + interval, |at| at.min(now + interval)))
    }

    /// Packets may be chosen for every open path whose addresses are not held: see [`Slot::prepare_to_send`].
    pub fn prepare_to_send(&mut self, now: Instant, side: Side, is_held: impl Fn(&FourTuple) -> bool) {
        self.slots.settle();
        self.slots_mut().for_each(|slot| slot.prepare_to_send(now, side, &is_held));
    }
}
