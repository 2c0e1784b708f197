//! Counts how often keys were used, over all paths together (RFC 9001 6.6).

use plait_base::Violation;

use crate::error::SealError;
use crate::keys::SealKey;

/// How far the current keys are used up (RFC 9001 6.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyUsage {
    /// Far from the limit.
    Fine,
    /// Half of the limit is used, or out for forks: update the keys as soon as that is allowed.
    NearLimit,
    /// The limit is reached: these keys seal nothing more.
    Exhausted,
}

/// Packets sealed with the current key, and packets that failed authentication in the connection's life.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AeadUsage {
    sealed: u64,
    forged: u64,
    confidentiality: u64,
    integrity: u64,
    /// A quota was asked for that would pass half of the limit.
    is_running_out: bool,
}

impl AeadUsage {
    /// Counts for the limits of one AEAD, both in packets.
    pub(crate) fn new(confidentiality: u64, integrity: u64) -> Self {
        Self { sealed: 0, forged: 0, confidentiality, integrity, is_running_out: false }
    }

    /// Counts for the limits of `key`'s AEAD.
    pub(crate) fn for_key(key: &SealKey) -> Self {
        Self::new(key.confidentiality_limit(), key.integrity_limit())
    }

    /// Counts one packet about to be sealed.
    #[inline]
    pub(crate) fn on_seal(&mut self) -> Result<(), SealError> {
        // RFC 9001 6.6: stop before the confidentiality limit is exceeded.
        if self.sealed >= self.confidentiality {
            return Err(SealError::Exhausted);
        }
        self.sealed += 1;
        Ok(())
    }

    /// Counts one packet that failed authentication; counts of former phases stay.
    pub(crate) fn on_forged(&mut self) -> Result<(), Violation> {
        self.forged = self.forged.saturating_add(1);
        // RFC 9001 6.6: close once more than the integrity limit failed, across all keys.
        if self.forged > self.integrity { Err(Violation::AeadIntegrityLimit) } else { Ok(()) }
    }

    /// Splits a quota of packets to seal off, for a fork: they count as sealed here until they come back.
    pub(crate) fn split(&mut self, quota: u64) -> Option<Self> {
        let before = self.sealed;
        // What was sealed before counts there too: the rules ask whether anything was.
        self.take(quota).then_some(Self { sealed: before, confidentiality: self.sealed, ..*self })
    }

    /// Takes `quota` packets out for a fork. False where fewer remain before half of the limit: new keys are wanted from then
    /// on, however many unused ones come back.
    pub(crate) fn take(&mut self, quota: u64) -> bool {
        let sealed = self.sealed.checked_add(quota).filter(|sealed| *sealed < self.confidentiality / 2);
        self.is_running_out |= sealed.is_none();
        self.sealed = sealed.unwrap_or(self.sealed);
        sealed.is_some()
    }

    /// Packets that were taken out are here again, unsealed.
    pub(crate) fn put_back(&mut self, unused: u64) {
        self.sealed = self.sealed.saturating_sub(unused);
    }

    /// A fork's part: `quota` packets more were taken out for it.
    pub(crate) fn extend(&mut self, quota: u64) {
        self.confidentiality = self.confidentiality.saturating_add(quota);
    }

    /// A fork's part is back, split off when `forged_before` had failed. It sealed `beyond` packets that were not counted here,
    /// and `unused` of those that were it did not; what failed there failed here too.
    pub(crate) fn join(&mut self, part: &Self, beyond: u64, unused: u64, forged_before: u64) -> Result<(), Violation> {
        self.sealed = self.sealed.saturating_add(beyond).saturating_sub(unused);
        self.forged = self.forged.saturating_add(part.forged.saturating_sub(forged_before));
        if self.forged > self.integrity { Err(Violation::AeadIntegrityLimit) } else { Ok(()) }
    }

    /// Packets that may still be sealed.
    pub(crate) fn left(&self) -> u64 {
        self.confidentiality.saturating_sub(self.sealed)
    }

    /// New keys: sealing starts from zero.
    pub(crate) fn on_new_phase(&mut self) {
        self.sealed = 0;
        self.is_running_out = false;
    }

    /// How near the count of sealed packets is to the limit.
    #[inline]
    pub(crate) fn key_usage(&self) -> KeyUsage {
        if self.sealed >= self.confidentiality {
            KeyUsage::Exhausted
        } else if self.is_running_out || self.sealed >= self.confidentiality / 2 {
            KeyUsage::NearLimit
        } else {
            KeyUsage::Fine
        }
    }

    /// Packets sealed in this phase.
    #[inline]
    pub(crate) fn sealed(&self) -> u64 {
        self.sealed
    }

    /// Packets that failed authentication so far.
    pub(crate) fn forged(&self) -> u64 {
        self.forged
    }
}
