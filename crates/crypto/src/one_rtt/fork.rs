//! Keys on loan: whoever serves a path seals and opens with a fork, within a quota, and gives it back.

use std::time::Duration;

use plait_base::{Instant, Violation};

use super::{OneRttKeys, PeerPhase};

/// The keys of one phase for one path, with a quota of packets to seal.
#[derive(Debug)]
pub struct KeyFork {
    /// The keys themselves.
    pub keys: OneRttKeys,
    phase: u64,
    sealed: u64,
    forged: u64,
}

/// Packets that a fork may seal beyond those it began with.
#[derive(Clone, Copy, Debug)]
pub struct SealQuota {
    phase: u64,
    packets: u64,
}

impl KeyFork {
    /// True once the peer was found in another phase than the fork began in: it is to go back at once.
    pub fn has_moved_on(&self) -> bool {
        self.keys.phase != self.phase
    }

    /// Packets that it sealed since it began.
    pub fn packets_sealed(&self) -> u64 {
        self.keys.usage.sealed().saturating_sub(self.sealed)
    }

    /// As many packets more may be sealed.
    pub fn extend(&mut self, quota: SealQuota) {
        // One of another phase is worth nothing in this one.
        if quota.phase == self.keys.phase {
            self.keys.usage.extend(quota.packets);
        }
    }

    /// True once its quota is used up, or nearly: `reserve` packets are to remain.
    pub fn is_used_up(&self, reserve: u64) -> bool {
        self.keys.usage.left() < reserve
    }
}

impl OneRttKeys {
    /// Keys for somebody else who serves one path, good for `quota` packets. They open packets of the phase before for as long as
    /// these do. None while no packet of the present phase was sent, and once an update is wanted (RFC 9001 6.6) or would be
    /// with these packets.
    pub fn fork(&mut self, quota: u64) -> Option<KeyFork> {
        let (sealed, forged) = (self.usage.sealed(), self.usage.forged());
        let usage = if sealed > 0 { self.usage.split(quota)? } else { return None };
        let keys = Self {
            local_header: self.local_header.clone(),
            remote_header: self.remote_header.clone(),
            phase: self.phase,
            current: self.current.clone(),
            next: None,
            previous: self.previous.clone(),
            previous_ends: self.previous_ends,
            source: self.source.clone(),
            peer: self.peer,
            in_use_since: self.in_use_since,
            update_from: self.update_from,
            usage,
        };
        Some(KeyFork { keys, phase: self.phase, sealed, forged })
    }

    /// `packets` more for a fork of this phase to seal. None as for [`Self::fork`].
    pub fn more_quota(&mut self, packets: u64) -> Option<SealQuota> {
        self.usage.take(packets).then_some(SealQuota { phase: self.phase, packets })
    }

    /// A quota that did not reach its fork may be sealed here.
    pub fn return_quota(&mut self, quota: SealQuota) {
        if quota.phase == self.phase {
            self.usage.put_back(quota.packets);
        }
    }

    /// A fork comes back: what it did not seal may be sealed here, and what it learned of the peer is known here. `guard` is
    /// three times the largest probe time-out.
    ///
    /// # Errors
    /// [`Violation::AeadIntegrityLimit`] where too many packets failed authentication in all.
    pub fn take_back(&mut self, fork: &KeyFork, now: Instant, guard: Duration) -> Result<(), Violation> {
        let KeyFork { keys, phase, forged, .. } = fork;
        // The quota of a phase that is over, here or there, is gone with its keys.
        let unused = if *phase == self.phase && keys.phase == *phase { keys.usage.left() } else { 0 };
        let beyond = if keys.phase > *phase { keys.usage.sealed() } else { 0 };
        if keys.phase == self.phase {
            self.update_from = match (self.update_from, keys.update_from) {
                (Some(ours), Some(theirs)) => Some(ours.min(theirs)),
                (ours, theirs) => ours.or(theirs),
            };
            if self.peer == PeerPhase::Previous && keys.peer == PeerPhase::Current {
                // Our update was answered on its path.
                self.peer = PeerPhase::Current;
                self.previous_ends = Some(keys.previous_ends.unwrap_or(now));
            }
        }
        self.advance_to(keys.phase, now, guard);
        self.usage.join(&keys.usage, beyond, unused, *forged)
    }
}

#[cfg(test)]
mod tests;
