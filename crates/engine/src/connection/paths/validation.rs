//! Whether the peer can be reached where a path leads: what becomes of its challenges (RFC 9000 8.2).

use plait_base::{CloseCode, Instant, PathId, Random, TransportError, Violation};
use plait_path::ChallengeData;
use plait_path::table::{Pairing, Slot};
use plait_path::{AddressEvent, FourTupleRole, ValidationTimes};

use super::{PathControl, PathNews};
use crate::connection::events::PathEvent;
use crate::connection::receive::Arrival;

impl PathControl {
    /// How often challenges on a path are repeated, and when to give up.
    pub(crate) fn validation_times(&self, id: PathId) -> ValidationTimes {
        let path = self.table.path(id);
        path.map_or(self.settings.first_validation_times(), |path| path.validation_times(self.settings.initial_pto()))
    }

    pub(crate) fn on_challenge(&mut self, at: &Arrival, data: ChallengeData) {
        if self.table.pairing() == Pairing::Uniflows {
            return self.table.on_uniflow_challenge(at.tuple.local, data);
        }
        let path = self.table.path_mut(at.path);
        if path.is_some_and(|path| path.on_challenge(at.tuple, &at.dcid, at.bytes, data)) {
            self.table.freshen_candidate(at.path);
            self.process_table_events();
        }
    }

    pub(crate) fn on_response(
        &mut self,
        now: Instant,
        id: PathId,
        data: ChallengeData,
        random: &mut Random,
    ) -> Result<(), Violation> {
        let answered = match self.table.pairing() {
            Pairing::Paths => self.table.on_path_response(now, id, data)?.map(|event| (id, event)),
            // Multiflow 4.3.2: the answer may come by any flow
            Pairing::Uniflows => self.table.on_uniflow_response(now, data)?,
        };
        if let Some((id, event)) = answered {
            self.on_address_event(now, id, event, random);
        }
        Ok(())
    }

    /// The packet with this challenge of ours was acked.
    pub(crate) fn on_challenge_acked(&mut self, now: Instant, id: PathId, data: ChallengeData) {
        if let Some(path) = self.table.path_mut(id) {
            path.on_challenge_acked(now, data);
        }
    }

    /// The packet with this challenge of ours was lost.
    pub(crate) fn on_challenge_lost(&mut self, now: Instant, id: PathId, data: ChallengeData) {
        if let Some(path) = self.table.path_mut(id) {
            path.on_challenge_lost(now, data);
        }
    }

    /// What a response or a timer changed about a path's addresses.
    pub(super) fn on_address_event(&mut self, now: Instant, id: PathId, event: AddressEvent, random: &mut Random) {
        match event {
            AddressEvent::Validated(FourTupleRole::Current) => {
                self.renew(now, id);
                self.on_validated(id);
            }
            AddressEvent::Validated(FourTupleRole::Candidate) => self.on_candidate_validated(now, id),
            AddressEvent::Validated(FourTupleRole::Previous) => {}
            AddressEvent::FellBack(moved) => self.on_moved(now, id, moved),
            AddressEvent::CandidateFailed => self.on_candidate_failed(now, id),
            AddressEvent::Unreachable => self.on_unreachable(now, id, random),
            AddressEvent::SizeUnproven => self.on_size_unproven(now, id, random),
        }
    }

    /// The path's current address is proven.
    pub(super) fn on_validated(&mut self, id: PathId) {
        let is_new_host = self.table.is_new_host(id);
        self.take_over_silent(id);
        self.tell_state(id);
        if id != PathId::ZERO || self.is_confirmed() {
            self.tell_application(PathEvent::Established { id });
        }
        if is_new_host && self.is_confirmed() {
            self.tell(PathNews::HostProven);
        }
        self.plan.touch();
    }

    /// Nothing answers at the path's address: it is abandoned, or with it the connection. While all others are silent nothing is
    /// gained by that, and the peer might not even hear of it: the path is asked again, until the connection is idle for too long.
    fn on_unreachable(&mut self, now: Instant, id: PathId, random: &mut Random) {
        let is_multipath = self.table.is_multipath();
        if is_multipath && self.is_needed(id) {
            self.validate_anew(now, id);
        } else if is_multipath {
            let _ = self.abandon(now, id, CloseCode::PATH_UNSTABLE_OR_POOR, random);
        } else {
            let error = TransportError::new(CloseCode::NO_VIABLE_PATH, "the peer's address could not be validated");
            self.tell(PathNews::Close(error));
        }
    }

    /// True where each other path that works is silent after a probe time-out. An address that the peer merely named is not asked again.
    fn is_needed(&self, id: PathId) -> bool {
        let is_heard = |slot: &Slot| slot.id != id && slot.path.as_deref().is_none_or(|path| !path.is_silent());
        let is_named = self.table.path(id).is_some_and(|path| self.is_hearsay(path.tuple().remote));
        !is_named && !self.table.working().any(is_heard)
    }

    /// The address answers, but no full-sized datagram came through yet: a path among others is given up; the only one
    /// is asked again, for as long as the peer is heard at all.
    fn on_size_unproven(&mut self, now: Instant, id: PathId, random: &mut Random) {
        if self.table.open_slots().any(|slot| slot.id != id) {
            return self.on_unreachable(now, id, random);
        }
        self.validate_anew(now, id);
    }

    /// A path is challenged as if it were new.
    fn validate_anew(&mut self, now: Instant, id: PathId) {
        let times = self.validation_times(id);
        if let Some(path) = self.table.path_mut(id) {
            path.challenge(now, times);
        }
    }
}
