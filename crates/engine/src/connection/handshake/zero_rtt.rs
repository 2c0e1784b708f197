//! 0-RTT of one connection: its keys while they live, and what became of it (RFC 9001 4.6).

use plait_base::Instant;
use plait_crypto::{EarlyKeys, OpenKeys, SealKeys};

/// What became of 0-RTT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EarlyData {
    None,
    Offered,
    Accepted,
    Rejected,
}

/// A client seals with its keys until 1-RTT keys are there; a server opens with them until late packets are too late.
pub(crate) struct ZeroRtt {
    keys: Option<Box<EarlyKeys>>,
    outcome: EarlyData,
    /// When the keys are dropped.
    discard_at: Option<Instant>,
}

impl ZeroRtt {
    /// With the keys of a client that resumes a session; a server gets its own by the ClientHello.
    pub(crate) fn new(keys: Option<EarlyKeys>) -> Self {
        let outcome = if keys.is_some() { EarlyData::Offered } else { EarlyData::None };
        Self { keys: keys.map(Box::new), outcome, discard_at: None }
    }

    pub(crate) fn outcome(&self) -> EarlyData {
        self.outcome
    }

    pub(crate) fn has_keys(&self) -> bool {
        self.keys.is_some()
    }

    /// A server's keys; clients get no 0-RTT packets (RFC 9001 5.6).
    pub(crate) fn open_keys(&self) -> Option<&OpenKeys> {
        match self.keys.as_deref() {
            Some(EarlyKeys::Open(keys)) => Some(keys),
            _ => None,
        }
    }

    /// A client's keys, while it may send with them: until 1-RTT keys are there (RFC 9001 5.6, RFC 9000 17.2.3).
    pub(crate) fn seal_keys(&self) -> Option<&SealKeys> {
        match self.keys.as_deref() {
            Some(EarlyKeys::Seal(keys)) if self.outcome == EarlyData::Offered => Some(keys),
            _ => None,
        }
    }

    /// A server takes what its client sends in 0-RTT, where TLS gave keys for it.
    pub(crate) fn on_accepted(&mut self, keys: Option<EarlyKeys>) {
        if keys.is_some() {
            (self.keys, self.outcome) = (keys.map(Box::new), EarlyData::Accepted);
        }
    }

    /// A client hears whether the server took it.
    pub(crate) fn on_answer(&mut self, outcome: EarlyData) {
        (self.keys, self.outcome) = (None, outcome);
    }

    /// The handshake is complete: the keys are kept until `at` for packets that come late (RFC 9001 4.9.3).
    pub(crate) fn discard_at(&mut self, at: Instant) {
        self.discard_at = Some(at);
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.discard_at
    }

    pub(crate) fn on_timeout(&mut self, now: Instant) {
        if self.discard_at.is_some_and(|at| at <= now) {
            (self.keys, self.discard_at) = (None, None);
        }
    }
}
