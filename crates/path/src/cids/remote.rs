//! Connection ids that the peer issued for one path id: which is in use, which are spare, which to retire.

use plait_base::limits::MAX_PENDING_RETIREMENTS;
use plait_base::{ConnectionId, PathId, RangeSet, ResetToken, Violation};
use plait_wire::frame::{CidForm, NewCid, RetireCid};
use plait_wire::{FrameWriter, SentFrame};
use smallvec::SmallVec;

use crate::frame_state::FrameState;

/// Whether packets were sent to an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CidUse {
    /// No packet was sent to it.
    Spare,
    /// In use on one of the path's 4-tuples; its reset token counts (RFC 9000 10.3.1).
    InUse,
    /// In use, and where the path sends; one at most.
    Active,
}

#[derive(Clone, Copy, Debug)]
struct RemoteCid {
    sequence: u64,
    cid: ConnectionId,
    token: Option<ResetToken>,
    used: CidUse,
}

/// Ids that we gave back, or are asked to.
#[derive(Clone, Debug, Default)]
struct Retired {
    numbers: RangeSet,
    /// All below are to be retired.
    prior_to: u64,
    /// Those of which the peer has not acknowledged RETIRE_CONNECTION_ID.
    told: Vec<(u64, FrameState)>,
}

/// The peer's ids of one path.
///
/// Invariants: `entries` is sorted by sequence and no longer than the limit that we announced;
/// retirements that wait for an ack are at most [`MAX_PENDING_RETIREMENTS`].
#[derive(Clone, Debug)]
pub(crate) struct RemoteCids {
    path: PathId,
    /// As many without an allocation as a path id has that nobody uses yet.
    entries: SmallVec<[RemoteCid; 1]>,
    /// One above the largest sequence seen.
    next_expected: u64,
    /// None until the first id is retired: what most path ids never need.
    retired: Option<Box<Retired>>,
    limit: u16,
    closed: bool,
}

impl RemoteCids {
    /// No id yet; `limit` is the active_connection_id_limit that we announced.
    pub(crate) fn new(path: PathId, limit: u64) -> Self {
        Self {
            path,
            entries: SmallVec::new(),
            next_expected: 0,
            retired: None,
            limit: u16::try_from(limit).unwrap_or(u16::MAX),
            closed: false,
        }
    }

    /// The handshake's id (sequence 0 of path 0); replaces it when the peer chose another during the handshake.
    pub(crate) fn set_initial(&mut self, cid: ConnectionId, token: Option<ResetToken>) {
        self.entries.retain(|e| e.sequence != 0);
        self.entries.insert(0, RemoteCid { sequence: 0, cid, token, used: CidUse::InUse });
        self.next_expected = self.next_expected.max(1);
        self.activate(0);
    }

    /// The active id, to which packets of the path go.
    #[inline]
    pub(crate) fn active(&self) -> Option<ConnectionId> {
        self.entries.iter().find(|e| e.used == CidUse::Active).map(|e| e.cid)
    }

    /// Sequence number of the active id.
    pub(crate) fn active_sequence(&self) -> Option<u64> {
        self.entries.iter().find(|e| e.used == CidUse::Active).map(|e| e.sequence)
    }

    /// The id of a sequence number, while it is not retired.
    #[inline(never)]
    pub(crate) fn cid(&self, sequence: u64) -> Option<ConnectionId> {
        self.entries.iter().find(|e| e.sequence == sequence).map(|e| e.cid)
    }

    /// Number of ids held, in use or spare.
    pub(crate) fn held(&self) -> usize {
        self.entries.len()
    }

    /// Number of ids never used.
    #[cfg(test)]
    pub(crate) fn spares(&self) -> usize {
        self.entries.iter().filter(|e| e.used == CidUse::Spare).count()
    }

    /// True where the peer gave an id to which no packet was sent yet.
    pub(crate) fn has_spare(&self) -> bool {
        !self.closed && self.entries.iter().any(|e| e.used == CidUse::Spare)
    }

    /// True where the peer goes without ids: packets to it bear none by whichever addresses they go (RFC 9000 5.1.1).
    pub(crate) fn is_zero_length(&self) -> bool {
        self.entries.first().is_some_and(|e| e.cid.is_empty())
    }

    /// The sequence number to name in PATH_CIDS_BLOCKED: the next one expected from the peer, 0 if none was seen.
    pub(crate) fn next_expected(&self) -> u64 {
        self.next_expected
    }

    /// Reset tokens of the ids in use.
    pub(crate) fn tokens_in_use(&self) -> impl Iterator<Item = ResetToken> + '_ {
        self.entries.iter().filter(|e| e.used != CidUse::Spare).filter_map(|e| e.token)
    }

    /// True when `cid` is held under any sequence.
    pub(crate) fn holds(&self, cid: &ConnectionId) -> bool {
        self.entries.iter().any(|e| e.cid == *cid)
    }

    /// True when `token` is that of another id than `cid`.
    pub(crate) fn holds_token(&self, token: &ResetToken, cid: &ConnectionId) -> bool {
        self.entries.iter().any(|e| e.token.as_ref() == Some(token) && e.cid != *cid)
    }

    /// Starts to use the path: the lowest id becomes active. None without an id.
    pub(crate) fn begin(&mut self) -> Option<ConnectionId> {
        if self.active_sequence().is_none() {
            self.activate_spare();
        }
        self.active()
    }

    /// Marks the lowest spare as in use, for another 4-tuple of the path (RFC 9000 9.5: an id for each address).
    pub(crate) fn take_spare(&mut self) -> Option<u64> {
        if self.closed {
            return None;
        }
        let entry = self.entries.iter_mut().find(|e| e.used == CidUse::Spare)?;
        entry.used = CidUse::InUse;
        Some(entry.sequence)
    }

    /// Makes an id in use the active one; the former active one stays in use until [`Self::retire`].
    pub(crate) fn activate(&mut self, sequence: u64) {
        if self.cid(sequence).is_none() {
            return;
        }
        for entry in &mut self.entries {
            entry.used = match entry.used {
                _ if entry.sequence == sequence => CidUse::Active,
                CidUse::Active => CidUse::InUse,
                used => used,
            };
        }
    }

    fn activate_spare(&mut self) {
        if let Some(sequence) = self.take_spare() {
            self.activate(sequence);
        }
    }

    /// Changes to the next spare of the same path id and retires the active id (RFC 10069 3.2.2). False where there is no
    /// spare: then nothing changes.
    #[must_use]
    pub(crate) fn rotate(&mut self) -> bool {
        let Some(next) = self.take_spare() else { return false };
        let old = self.active_sequence();
        self.activate(next);
        if let Some(old) = old {
            self.retire(old);
        }
        true
    }

    /// Stops using an id; RETIRE_CONNECTION_ID is due.
    fn retire(&mut self, sequence: u64) {
        if self.cid(sequence).is_none() {
            return;
        }
        self.entries.retain(|e| e.sequence != sequence);
        self.queue(sequence);
    }

    fn queue(&mut self, sequence: u64) {
        let retired = self.retired.get_or_insert_default();
        retired.numbers.insert_one(sequence);
        while retired.numbers.len() > MAX_PENDING_RETIREMENTS {
            retired.numbers.pop_first();
        }
        if !self.closed && !retired.told.iter().any(|(s, _)| *s == sequence) {
            retired.told.push((sequence, FrameState::Due));
        }
    }

    /// RETIRE_CONNECTION_ID frames that the peer has not acknowledged.
    #[inline]
    fn retirements(&self) -> &[(u64, FrameState)] {
        self.retired.as_deref().map_or(&[], |retired| &retired.told)
    }

    /// NEW_CONNECTION_ID or PATH_NEW_CONNECTION_ID arrived for this path (RFC 9000 19.15).
    pub(crate) fn on_new(&mut self, new: &NewCid) -> Result<(), Violation> {
        check_encoding(new)?;
        if self.is_zero_length() {
            return Err(Violation::CidForZeroLength);
        }
        if self.closed {
            return Ok(());
        }
        let mut known = self.retired.as_ref().is_some_and(|retired| retired.numbers.contains(new.sequence));
        for e in &self.entries {
            match (e.sequence == new.sequence, e.cid == new.cid) {
                // A handshake id may have come without a token, and never comes in a frame.
                (true, true) if e.token == Some(new.token) => known = true,
                (false, false) => {}
                _ => return Err(Violation::CidReissued),
            }
        }
        self.next_expected = self.next_expected.max(new.sequence + 1);
        if !known {
            let at = self.entries.partition_point(|e| e.sequence < new.sequence);
            let entry = RemoteCid { sequence: new.sequence, cid: new.cid, token: Some(new.token), used: CidUse::Spare };
            self.entries.insert(at, entry);
        }
        if new.retire_prior_to > 0 {
            let retired = self.retired.get_or_insert_default();
            retired.prior_to = retired.prior_to.max(new.retire_prior_to);
        }
        self.retire_below();
        // RFC 9000 5.1.1: counted after retiring.
        if self.entries.len() > usize::from(self.limit) {
            return Err(Violation::CidLimit);
        }
        // RFC 9000 5.1.2: a bound on retirements that the peer has not acknowledged.
        if self.retirements().len() > MAX_PENDING_RETIREMENTS {
            return Err(Violation::TooManyRetirements);
        }
        Ok(())
    }

    fn retire_below(&mut self) {
        let Some(prior_to) = self.retired.as_ref().map(|retired| retired.prior_to) else { return };
        let was_active = self.active_sequence().is_some();
        while let Some(sequence) = self.entries.first().map(|e| e.sequence).filter(|&s| s < prior_to) {
            self.retire(sequence);
        }
        if was_active && self.active_sequence().is_none() {
            self.activate_spare();
        }
    }

    /// Retires ids in use that neither the path nor one of its 4-tuples needs any longer.
    pub(crate) fn keep_only(&mut self, needed: &[u64]) {
        let stale: SmallVec<[u64; 4]> = self
            .entries
            .iter()
            .filter(|e| e.used == CidUse::InUse && !needed.contains(&e.sequence))
            .map(|e| e.sequence)
            .collect();
        stale.into_iter().for_each(|sequence| self.retire(sequence));
    }

    /// Supplies an active id again once a spare came, after the last one had to be retired.
    pub(crate) fn resume(&mut self) -> Option<ConnectionId> {
        self.begin()
    }

    /// Gives back memory that no id needs.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.entries.shrink_to_fit();
    }

    /// The path is abandoned: all ids count as retired, without frames (RFC 10069 3.4).
    pub(crate) fn close(&mut self) {
        self.closed = true;
        self.entries.clear();
        self.retired.iter_mut().for_each(|retired| retired.told.clear());
    }

    /// True when a frame waits.
    #[inline]
    pub(crate) fn wants_frame(&self) -> bool {
        self.retired.as_deref().is_some_and(|retired| retired.told.iter().any(|(_, d)| d.is_due()))
    }

    /// Writes the frames that wait, as many as fit.
    pub(crate) fn fill(&mut self, form: CidForm, w: &mut FrameWriter<'_>) {
        let path = self.path;
        let told = self.retired.iter_mut().flat_map(|retired| &mut retired.told);
        for &mut (sequence, ref mut delivery) in told.filter(|(_, d)| d.is_due()) {
            if !w.write(&RetireCid { form, path, sequence }, SentFrame::RetireCid { path, sequence }) {
                return;
            }
            delivery.on_written();
        }
    }

    /// A packet with the retirement was acknowledged.
    pub(crate) fn on_acked(&mut self, sequence: u64) {
        self.retired.iter_mut().for_each(|retired| retired.told.retain(|(s, _)| *s != sequence));
    }

    /// A packet with the retirement was lost: again.
    pub(crate) fn on_lost(&mut self, sequence: u64) {
        let mut told = self.retired.iter_mut().flat_map(|retired| &mut retired.told);
        if let Some((_, delivery)) = told.find(|(s, _)| *s == sequence) {
            delivery.on_lost();
        }
    }
}

/// What no path id can excuse: checked even for paths that are gone.
pub(crate) fn check_encoding(new: &NewCid) -> Result<(), Violation> {
    if new.cid.is_empty() {
        return Err(Violation::CidLength);
    }
    if new.retire_prior_to > new.sequence {
        return Err(Violation::RetirePriorToTooLarge);
    }
    Ok(())
}
