//! Paths end: PATH_ABANDON of either side, the time after it, and a connection without a path (RFC 10069 3.4).

use plait_base::observe::PathState;
use plait_base::{CloseCode, Instant, PathId, Random, Side, TransportError, Violation};
use plait_path::Path;
use plait_path::table::{AbandonError, AbandonNews, Pairing};
use plait_wire::frame::PathAbandon;

use super::{PathControl, PathNews};
use crate::connection::events::PathEvent;

/// How long a client without a path looks for another before it closes, probe time-outs of a path yet unknown.
const CLIENT_PATIENCE_PTOS: u32 = 3;
/// How long a server waits for its client to open one; it cannot do so itself (RFC 10069 3.4).
const SERVER_PATIENCE_PTOS: u32 = 1;

/// A connection whose last path ended, until it closes or another opens.
pub(crate) struct NoPath {
    /// Until when it waits for a path.
    pub(crate) until: Instant,
    /// The path that ended last, while its PATH_ABANDON did not leave.
    pub(crate) abandon_unsent: Option<PathId>,
}

impl PathControl {
    /// Gives a path up. PATH_ABANDON tells the peer `code`.
    pub(crate) fn abandon(
        &mut self,
        now: Instant,
        id: PathId,
        code: CloseCode,
        random: &mut Random,
    ) -> Result<(), AbandonError> {
        if self.table.pairing() == Pairing::Uniflows {
            return self.unbind_uniflow(now, id, code, random);
        }
        let pto = self.table.max_pto();
        self.table.abandon(now, id, code, pto)?;
        self.on_closing(now, id, code, random);
        Ok(())
    }

    pub(crate) fn on_path_abandon(
        &mut self,
        now: Instant,
        frame: &PathAbandon,
        random: &mut Random,
    ) -> Result<(), Violation> {
        let pto = self.table.max_pto();
        if self.table.on_path_abandon(now, frame, pto)? == AbandonNews::PeerEnds {
            self.on_closing(now, frame.path, frame.code, random);
        }
        Ok(())
    }

    /// A path ends, by our will or the peer's: its frames go elsewhere, nothing more is sent on it.
    fn on_closing(&mut self, now: Instant, id: PathId, code: CloseCode, random: &mut Random) {
        self.process_table_events();
        if let Some(path) = self.table.path_mut(id) {
            path.on_closing(now, &mut self.feedback);
        }
        self.table.on_ack_path_closing(id);
        self.on_sending_ended(now, id, code, PathState::Closing);
        self.issue_cids(random);
        self.check_last_path(now, Some(id));
    }

    /// Nothing leaves on a path any more: what was under way goes elsewhere, and all who counted on it hear of it.
    pub(super) fn on_sending_ended(&mut self, now: Instant, id: PathId, code: CloseCode, state: PathState) {
        let tuple = self.table.path(id).map(Path::tuple);
        if tuple.is_some() {
            self.tell_undelivered(id);
        }
        self.shared_metrics.remove(id);
        self.pings.retain(|ping| *ping != id);
        self.tell(PathNews::Closing { id });
        self.tell(PathNews::RoomShrank);
        self.tell_application(PathEvent::Abandoned { id, code });
        if let Some(tuple) = tuple {
            self.tell(PathNews::State { id, tuple, state });
            self.plan.policy_mut().on_ended(now, tuple, code);
        }
        self.plan.touch();
    }

    /// Without a path left the connection ends, unless another opens in time; `abandoned` is the one whose PATH_ABANDON did
    /// not leave.
    pub(super) fn check_last_path(&mut self, now: Instant, abandoned: Option<PathId>) {
        if !self.table.is_empty() || self.no_path.is_some() {
            return;
        }
        // What the other path takes is unknown: its first packet may be under way.
        let pto = self.table.max_pto().max(self.settings.initial_pto());
        let patience = match self.side {
            Side::Client => CLIENT_PATIENCE_PTOS,
            Side::Server => SERVER_PATIENCE_PTOS,
        };
        self.no_path = Some(NoPath { until: now + pto * patience, abandon_unsent: abandoned });
    }

    /// With its last path gone the connection closes, unless another opened by now.
    pub(crate) fn check_no_path(&mut self, now: Instant) {
        let Some(NoPath { until, .. }) = self.no_path else { return };
        if !self.table.is_empty() {
            self.no_path = None;
        } else if until <= now {
            self.no_path = None;
            let error = TransportError::new(CloseCode::NO_VIABLE_PATH, "no path is left");
            self.tell(PathNews::Close(error));
        }
    }

    /// A path id is forgotten.
    pub(super) fn on_forgotten(&mut self, id: PathId, path: Option<Box<Path>>) {
        if let Some(path) = path {
            self.tell(PathNews::State { id, tuple: path.tuple(), state: PathState::Closed });
            self.tell_application(PathEvent::Closed { id });
        }
        self.plan.touch();
    }
}
