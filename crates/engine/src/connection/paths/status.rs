//! What either side advises about a path: available or backup (RFC 10069 3.3).

use plait_base::{PathId, Violation};
use plait_path::PathStatus as Advice;
use plait_wire::frame::{PathStatus, PathStatusUpdate};

use super::{PathControl, PathError};
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
}
