//! Connection ids that we issue for one path id: how many, under which numbers, and when the peer retires them.

use plait_base::limits::MAX_LOCAL_CIDS_PER_PATH;
use plait_base::{ConnectionId, PathId, ResetToken, Violation};
use plait_wire::frame::{CidForm, NewCid};
use plait_wire::{FrameWriter, SentFrame};
use smallvec::SmallVec;

use super::{CidSource, IssuedCid};
use crate::frame_state::FrameState;

#[derive(Clone, Copy, Debug)]
struct LocalCid {
    sequence: u64,
    cid: ConnectionId,
    token: ResetToken,
    delivery: FrameState,
}

/// The ids of ours that the peer may use to reach us on one path.
///
/// Invariant: at most `min(peer's active_connection_id_limit, MAX_LOCAL_CIDS_PER_PATH)` are active.
#[derive(Clone, Debug)]
pub(crate) struct LocalCids {
    path: PathId,
    /// As many without an allocation as a path id has that nobody uses yet.
    entries: SmallVec<[LocalCid; 1]>,
    next_sequence: u64,
    /// One above the largest sequence that the peer was told.
    told: u64,
    limit: u8,
    closed: bool,
    /// True while a frame waits: asked for at every packet, and nearly always false.
    wants_frame: bool,
}

impl LocalCids {
    /// No id yet. `peer_limit` is the peer's active_connection_id_limit, per path id.
    pub(crate) fn new(path: PathId, peer_limit: u64) -> Self {
        let entries = SmallVec::new();
        let mut cids = Self { path, entries, next_sequence: 0, told: 0, limit: 0, closed: false, wants_frame: false };
        cids.set_limit(peer_limit);
        cids
    }

    /// The peer's active_connection_id_limit became known.
    pub(crate) fn set_limit(&mut self, peer_limit: u64) {
        let limit = usize::try_from(peer_limit).unwrap_or(usize::MAX).min(MAX_LOCAL_CIDS_PER_PATH);
        self.limit = u8::try_from(limit).unwrap_or(u8::MAX);
    }

    /// An id that the peer learned without a frame: the handshake's, or the preferred address's (sequence 1).
    pub(crate) fn add_known(&mut self, cid: ConnectionId, token: ResetToken) {
        self.told = self.next_sequence + 1;
        self.push(cid, token, FrameState::Acked);
    }

    fn push(&mut self, cid: ConnectionId, token: ResetToken, delivery: FrameState) -> IssuedCid {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        self.entries.push(LocalCid { sequence, cid, token, delivery });
        self.look_for_due();
        IssuedCid { path: self.path, sequence, cid }
    }

    /// How many ids may be issued to have `wanted` active.
    pub(crate) fn need(&self, wanted: usize) -> usize {
        let zero_length = self.entries.first().is_some_and(|e| e.cid.is_empty());
        if self.closed || zero_length {
            0
        } else {
            wanted.min(usize::from(self.limit)).saturating_sub(self.entries.len())
        }
    }

    /// Makes one more id; its frame is due.
    pub(crate) fn issue(&mut self, source: &mut dyn CidSource) -> Option<IssuedCid> {
        if self.closed || self.entries.len() >= usize::from(self.limit) {
            return None;
        }
        let (cid, token) = source.issue(self.path);
        Some(self.push(cid, token, FrameState::Due))
    }

    /// Sequence number that the next id will have.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// Ids that the peer may use now, oldest first.
    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = IssuedCid> + '_ {
        self.entries.iter().map(|e| IssuedCid { path: self.path, sequence: e.sequence, cid: e.cid })
    }

    /// Number of active ids.
    pub(crate) fn active(&self) -> usize {
        self.entries.len()
    }

    /// The peer retires an id in a packet that came to `arrived_on`; the id when it was still active.
    pub(crate) fn on_retire(
        &mut self,
        sequence: u64,
        arrived_on: &ConnectionId,
    ) -> Result<Option<ConnectionId>, Violation> {
        // RFC 9000 19.16: never sent; by guessing numbers a peer would make us issue ids without end.
        if sequence >= self.told {
            return Err(Violation::RetireUnissuedCid);
        }
        let Some(at) = self.entries.iter().position(|e| e.sequence == sequence) else { return Ok(None) };
        let cid = self.entries[at].cid;
        if cid.is_empty() {
            return Err(Violation::CidForZeroLength);
        }
        // RFC 9000 19.16: not the id of the packet that says so.
        if cid == *arrived_on {
            return Err(Violation::RetireCidInUse);
        }
        self.entries.remove(at);
        self.look_for_due();
        Ok(Some(cid))
    }

    /// The path is abandoned: no further ids, no further frames. Active ids stay until `take_all`.
    pub(crate) fn close(&mut self) {
        self.closed = true;
        self.look_for_due();
    }

    /// Takes every active id off, for the endpoint to forget.
    pub(crate) fn take_all(&mut self) -> SmallVec<[ConnectionId; 4]> {
        self.close();
        self.entries.drain(..).map(|e| e.cid).collect()
    }

    pub(crate) fn shrink_to_fit(&mut self) {
        self.entries.shrink_to_fit();
    }

    /// True when a frame waits.
    #[inline]
    pub(crate) fn wants_frame(&self) -> bool {
        debug_assert_eq!(self.wants_frame, self.has_due(), "an id changed without look_for_due");
        self.wants_frame
    }

    fn has_due(&self) -> bool {
        !self.closed && self.entries.iter().any(|e| e.delivery.is_due())
    }

    /// After each change: whether a frame waits now.
    fn look_for_due(&mut self) {
        self.wants_frame = self.has_due();
    }

    /// Writes the frames that wait, as many as fit.
    pub(crate) fn fill(&mut self, form: CidForm, w: &mut FrameWriter<'_>) {
        if self.wants_frame {
            self.write(form, w, FrameState::is_due);
        }
    }

    /// Writes every id that the peer is not known to have, also those whose frames are under way elsewhere.
    pub(crate) fn fill_unconfirmed(&mut self, form: CidForm, w: &mut FrameWriter<'_>) {
        if !self.closed {
            self.write(form, w, |delivery| delivery != FrameState::Acked);
        }
    }

    fn write(&mut self, form: CidForm, w: &mut FrameWriter<'_>, wanted: fn(FrameState) -> bool) {
        for entry in self.entries.iter_mut().filter(|e| wanted(e.delivery)) {
            let (path, sequence, cid, token) = (self.path, entry.sequence, entry.cid, entry.token);
            // RFC 9000 19.15-5: no id of ours is ever asked back.
            let new = NewCid { form, path, sequence, retire_prior_to: 0, cid, token };
            if !w.write(&new, SentFrame::NewCid { path, sequence }) {
                break;
            }
            entry.delivery.on_written();
            self.told = self.told.max(entry.sequence + 1);
        }
        self.look_for_due();
    }

    /// A packet with the id's frame was acknowledged.
    pub(crate) fn on_acked(&mut self, sequence: u64) {
        if let Some(entry) = self.entries.iter_mut().find(|e| e.sequence == sequence) {
            entry.delivery.on_acked();
        }
        self.look_for_due();
    }

    /// A packet with the id's frame was lost: again, unless retired or abandoned (RFC 9000 13.3, RFC 10069 4.5).
    pub(crate) fn on_lost(&mut self, sequence: u64) {
        if let Some(entry) = self.entries.iter_mut().find(|e| e.sequence == sequence) {
            entry.delivery.on_lost();
        }
        self.look_for_due();
    }
}
