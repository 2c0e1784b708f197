//! Our frames about paths: written when due, repeated when lost and still true.

use plait_base::PathId;
use plait_wire::frame::{CidForm, PathAbandon, PathCidsBlocked};
use plait_wire::{FrameWriter, SentFrame};

use super::{PathCredit, Paths, Slot};
use crate::frame_state::FrameState;

impl Paths {
    /// True when [`Self::fill_control`] has something to write.
    pub fn wants_control(&self) -> bool {
        let credit = self.extension.credit();
        self.pending_abandons.iter().any(|f| f.delivery.is_due())
            || credit.is_some_and(|c| c.wants_frame())
            || self.hosts.as_ref().is_some_and(|hosts| hosts.wants_frame())
            || self.reports.as_ref().is_some_and(|reports| reports.wants_frame())
            || self.ack_requests.wants_frame()
            || self.slots().any(|slot| {
                slot.local.wants_frame()
                    || slot.remote.wants_frame()
                    || slot.status.wants_frame() && credit.is_some() && slot.closing.is_none()
                    || slot.cids_blocked.is_due()
            })
    }

    /// Writes what is due, as much as fits: any open path may carry it (1-RTT packets only). True where the peer may use
    /// more path ids by it, for which connection ids are to be issued.
    pub fn fill_control(&mut self, w: &mut FrameWriter<'_>) -> bool {
        if !self.wants_control() {
            return false;
        }
        let allowed_before = self.extension.credit().map(PathCredit::allowed_max);
        let form = self.extension.cid_form();
        for pending in self.pending_abandons.iter_mut().filter(|f| f.delivery.is_due()) {
            let abandon = PathAbandon { path: pending.id, code: pending.code };
            if w.write(&abandon, SentFrame::PathAbandon(pending.id)) {
                pending.delivery.on_written();
            }
        }
        let multipath = self.extension.credit().is_some();
        for slot in self.slots.awake_mut() {
            slot.remote.fill(form, w);
            slot.local.fill(form, w);
            if multipath && slot.closing.is_none() {
                slot.status.fill(slot.id, w);
            }
            let blocked = PathCidsBlocked { path: slot.id, next_sequence: slot.remote.next_expected() };
            if slot.cids_blocked.is_due() && w.write(&blocked, SentFrame::PathCidsBlocked(slot.id)) {
                slot.cids_blocked.on_written();
            }
        }
        if let Some(credit) = self.extension.credit_mut() {
            credit.fill(w);
        }
        self.fill_hosts(w);
        self.fill_report(w);
        self.fill_ack_request(w);
        self.extension.credit().map(PathCredit::allowed_max) != allowed_before
    }

    /// Writes our PATH_ABANDON of this path, which stays due: nothing says whether the path's last packet arrived.
    pub fn fill_abandon(&self, id: PathId, w: &mut FrameWriter<'_>) {
        if let Some(pending) = self.pending_abandons.iter().find(|f| f.id == id) {
            let _ = w.write(&PathAbandon { path: id, code: pending.code }, SentFrame::PathAbandon(id));
        }
    }

    /// True when [`Self::fill_control_in_handshake`] has something to write.
    pub fn wants_control_in_handshake(&self) -> bool {
        self.slots().any(|slot| slot.id != PathId::ZERO && slot.local.wants_frame())
    }

    /// Writes, before the handshake is complete, the connection ids of paths that may be opened as soon as it is.
    pub fn fill_control_in_handshake(&mut self, w: &mut FrameWriter<'_>) {
        for slot in self.slots_mut().filter(|slot| slot.id != PathId::ZERO) {
            slot.local.fill(CidForm::Path, w);
        }
    }

    /// A frame of this home arrived.
    pub fn on_acked(&mut self, frame: &SentFrame) {
        match *frame {
            SentFrame::NewCid { path, sequence } => self.with(path, |slot| slot.local.on_acked(sequence)),
            SentFrame::RetireCid { path, sequence } => self.with(path, |slot| slot.remote.on_acked(sequence)),
            SentFrame::PathStatus { path, sequence } => self.with(path, |slot| slot.status.on_acked(sequence)),
            SentFrame::PathCidsBlocked(path) => self.with(path, |slot| slot.cids_blocked.on_acked()),
            SentFrame::PathAbandon(path) => self.pending_abandons.retain(|f| f.id != path),
            SentFrame::MaxPathId(_) | SentFrame::PathsBlocked(_) => {
                if let Some(credit) = self.extension.credit_mut() {
                    credit.on_acked(frame);
                }
            }
            SentFrame::HostAddress { .. } | SentFrame::Uniflows(_) | SentFrame::AdditionalAddresses(_) => {
                self.hosts.iter_mut().for_each(|hosts| hosts.on_acked(frame));
            }
            SentFrame::PathsInfo(sequence) => {
                self.reports.iter_mut().for_each(|reports| reports.on_acked(sequence));
            }
            SentFrame::AckFrequency(sequence) => self.on_ack_request_acked(sequence),
            _ => {}
        }
    }

    /// A frame of this home was lost: repeated where it is still true (RFC 9000 13.3, RFC 10069 4.2 to 4.7).
    pub fn on_lost(&mut self, frame: &SentFrame) {
        match *frame {
            SentFrame::NewCid { path, sequence } => self.with(path, |slot| slot.local.on_lost(sequence)),
            SentFrame::RetireCid { path, sequence } => self.with(path, |slot| slot.remote.on_lost(sequence)),
            SentFrame::PathStatus { path, sequence } => self.with(path, |slot| slot.status.on_lost(sequence)),
            SentFrame::PathCidsBlocked(path) => self.with(path, |slot| {
                // Only while still blocked.
                if slot.remote.has_spare() {
                    slot.cids_blocked = FrameState::Idle;
                } else {
                    slot.cids_blocked.on_lost();
                }
            }),
            SentFrame::PathAbandon(path) => {
                self.pending_abandons.iter_mut().filter(|f| f.id == path).for_each(|f| f.delivery.on_lost());
            }
            SentFrame::MaxPathId(_) | SentFrame::PathsBlocked(_) => {
                if let Some(credit) = self.extension.credit_mut() {
                    credit.on_lost(frame);
                }
            }
            SentFrame::HostAddress { .. } | SentFrame::Uniflows(_) | SentFrame::AdditionalAddresses(_) => {
                self.hosts.iter_mut().for_each(|hosts| hosts.on_lost(frame));
            }
            SentFrame::PathsInfo(sequence) => {
                self.reports.iter_mut().for_each(|reports| reports.on_lost(sequence));
            }
            SentFrame::AckFrequency(sequence) => {
                self.ack_requests.ours_mut().into_iter().for_each(|ours| ours.on_lost(sequence));
            }
            _ => {}
        }
    }

    fn with(&mut self, id: PathId, change: impl FnOnce(&mut Slot)) {
        if let Some(slot) = self.slot_mut(id) {
            change(slot);
        }
    }
}
