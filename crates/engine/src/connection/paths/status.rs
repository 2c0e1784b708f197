//! What either side advises about a path, available or backup (RFC 10069 3.3), and tells of how it does (MPX_PATHS).

use plait_base::{PathId, Violation};
use plait_path::PathStatus as Advice;
use plait_path::table::{ReportedFailure, ReportedPath};
use plait_wire::frame::{PathStatus, PathStatusUpdate, PathsInfo};

use super::{PathControl, PathError, PathNews};
use crate::connection::events::PathEvent;

impl PathControl {
    /// Tells the peer how this path is to be used.
    pub(crate) fn set_status(&mut self, id: PathId, status: Advice) -> Result<(), PathError> {
        if !self.table.is_multipath() {
            return Err(PathError::NotMultipath);
        }
        if !self.table.slot(id).is_some_and(|slot| slot.is_open()) {
            return Err(PathError::NoPath);
        }
        self.table.advise(id, status);
        self.tell_state(id);
        Ok(())
    }

    pub(crate) fn on_path_status(&mut self, frame: &PathStatusUpdate) -> Result<(), Violation> {
        if self.table.on_path_status(frame)?.is_some() {
            let available = frame.status == PathStatus::Available;
            self.tell_application(PathEvent::RemoteStatus { id: frame.path, available });
            if !available {
                // The peer may have found the path dead: who only receives learns so by asking.
                self.ping(frame.path);
            }
        }
        Ok(())
    }

    /// How paths do that the peer sends on. That one failed is believed by schedulers alone, until something is acked there.
    pub(crate) fn on_paths_info(&mut self, frame: &PathsInfo<'_>) -> Result<(), Violation> {
        for ReportedPath { id, report, failed } in self.table.on_paths_info(frame)? {
            self.tell(PathNews::Reported { id, report });
            if failed == ReportedFailure::New {
                // Nothing may be under way there that an ack could speak for.
                self.ping(id);
            }
        }
        Ok(())
    }
}
