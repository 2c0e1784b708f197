//! Paths that fall silent: potentially failed, taken over by others, back again.

use plait_base::{CloseCode, Instant, PathId, Random};
use plait_path::{Path, ProbeTimeout, TakeOver};

use super::{PathControl, PathNews};
use crate::config::Switch;
use crate::connection::events::PathEvent;

impl PathControl {
    /// A probe time-out passed on a path. Where another works, that takes over its frames; alone it sends its probes and gives
    /// nothing up, since acks may only be late. With another validated path, even one that counts as failed, it counts as
    /// potentially failed (CoNEXT 2017, section 4.3), or is abandoned where another works and `abandon_after_ptos` time-outs
    /// passed in a row. Neither happens where it only hears, nor where `potentially_failed` is off. From the second time-out on the
    /// peer is told not to use it: after one it may have lost a packet and no more.
    pub(crate) fn on_probe_timeout(&mut self, now: Instant, id: PathId, random: &mut Random) {
        let others = self.table.can_take_over_from(id);
        self.suspect_size(now, id);
        let mut frames = Vec::new();
        let Some(path) = self.table.path_mut(id) else { return };
        let timeout = path.on_probe_timeout(now, others, &mut frames);
        let ProbeTimeout { count, only_hears } = timeout;
        self.tell(PathNews::SendAgain { id, frames });
        self.tell(PathNews::ProbeTimeout { id, count });
        if others == TakeOver::Alone {
            self.on_probe_timeout_alone(id, timeout);
        }
        let may_fail =
            self.settings.potentially_failed() == Switch::On && self.is_confirmed() && self.table.is_multipath();
        if only_hears || !may_fail || !self.table.has_other_validated(id) {
            return;
        }
        if others == TakeOver::Possible && count >= self.settings.abandon_after_ptos() {
            let _ = self.abandon(now, id, CloseCode::PATH_UNSTABLE_OR_POOR, random);
            return;
        }
        if !self.table.path(id).is_some_and(Path::is_validated) {
            // It carries nothing yet, and its validation has an end of its own.
            return;
        }
        self.mark_failed(id, others);
        if count > 1 && others == TakeOver::Possible {
            self.table.demote(id);
        }
    }

    pub(super) fn mark_failed(&mut self, id: PathId, others: TakeOver) {
        if !self.table.fail(id, others) {
            return;
        }
        self.tell(PathNews::RoomShrank);
        self.tell_application(PathEvent::Failed { id });
        self.tell_state(id);
        self.plan.touch();
    }

    /// A failed path answered.
    pub(super) fn on_recovered(&mut self, id: PathId) {
        self.take_over_silent(id);
        self.tell_application(PathEvent::Recovered { id });
        self.tell_state(id);
    }

    /// Path `by` works now: it takes over what is on its way on paths that fell silent while there was no other.
    pub(super) fn take_over_silent(&mut self, by: PathId) {
        for id in self.table.silent_beside(by) {
            let mut frames = Vec::new();
            if let Some(path) = self.table.path_mut(id) {
                path.hand_over_in_flight(&mut frames);
            }
            self.tell(PathNews::SendAgain { id, frames });
        }
    }
}
