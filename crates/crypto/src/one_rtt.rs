//! 1-RTT keys of all paths: one phase for the whole connection, updated by either end (RFC 9001 6, RFC 10069 2.5).

mod fork;

use std::fmt;
use std::time::Duration;

use plait_base::{Instant, PathId, Side, Violation};
use rustls::quic;

use crate::error::{OpenError, SealError, UpdateRefused};
use crate::keys::{HeaderKey, Layout, OpenKey, PHASE_BIT, SealKey, Unmasked, seal_packet};
use crate::null::NullKey;
use crate::usage::{AeadUsage, KeyUsage};
use crate::versioned::VersionedSecrets;

pub use fork::{KeyFork, SealQuota};

/// Which keys open a packet, seen from the current phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyPhase {
    /// Those before the last update; kept for packets that were delayed.
    Previous,
    /// Those of the current phase.
    Current,
    /// Those after the next update, which the peer may start.
    Next,
}

/// What one path's receive flow remembers of key phases: packet numbers opened under them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PhaseMark {
    phase: u64,
    lowest: Option<u64>,
    highest: Option<u64>,
    highest_before: Option<u64>,
}

impl PhaseMark {
    /// Lowest number opened under `phase` on this path.
    #[inline]
    fn lowest(&self, phase: u64) -> Option<u64> {
        self.lowest.filter(|_| self.phase == phase)
    }

    /// Takes note of a packet opened under `phase`; an error when numbers and phases run in opposite directions.
    fn on_opened(&mut self, phase: u64, pn: u64) -> Result<(), Violation> {
        if phase > self.phase {
            let before = self.highest_before.max(self.highest);
            *self = Self { phase, lowest: None, highest: None, highest_before: before };
        }
        // RFC 9001 6.4: a higher packet number never has older keys.
        if phase < self.phase {
            if self.lowest.is_some_and(|lowest| pn > lowest) {
                return Err(Violation::KeyPhaseRegressed);
            }
            self.highest_before = self.highest_before.max(Some(pn));
            return Ok(());
        }
        if self.highest_before.is_some_and(|before| pn < before) {
            return Err(Violation::KeyPhaseRegressed);
        }
        self.lowest = Some(self.lowest.map_or(pn, |lowest| lowest.min(pn)));
        self.highest = self.highest.max(Some(pn));
        Ok(())
    }
}

/// What one path's send flow remembers of key phases: the first packet number sealed under the latest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SealMark {
    phase: u64,
    first: Option<u64>,
}

impl SealMark {
    fn on_sealed(&mut self, phase: u64, pn: u64) {
        if self.first.is_none() || self.phase != phase {
            *self = Self { phase, first: Some(pn) };
        }
    }

    #[inline]
    fn covers(&self, phase: u64, largest_acked: u64) -> bool {
        self.phase == phase && self.first.is_some_and(|first| largest_acked >= first)
    }
}

/// A packet that was opened: what fits into two registers, since a range would be written and read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Bytes of plaintext behind the header.
    pub payload_bytes: usize,
    /// Which keys opened it; `Next` means that the peer started a key update, which is done by now.
    phase: KeyPhase,
}

#[derive(Clone)]
struct Pair {
    seal: SealKey,
    open: OpenKey,
}

/// Derives the keys of one phase after the other.
#[derive(Clone)]
enum KeySource {
    Tls(Box<quic::Secrets>),
    Versioned(Box<VersionedSecrets>),
    Null { side: Side, phase: u64 },
}

impl KeySource {
    fn next(&mut self) -> Pair {
        match self {
            Self::Tls(secrets) => {
                let keys = secrets.next_packet_keys();
                Pair { seal: SealKey::tls(keys.local), open: OpenKey::tls(keys.remote) }
            }
            Self::Versioned(secrets) => {
                let (seal, open) = secrets.next();
                Pair { seal, open }
            }
            Self::Null { side, phase } => {
                let pair = null_pair(*side, *phase);
                *phase += 1;
                pair
            }
        }
    }
}

/// Keys of the next phase, and where those after them come from.
struct Ahead {
    pair: Pair,
    source: KeySource,
}

fn null_pair(side: Side, phase: u64) -> Pair {
    Pair { seal: SealKey::null(NullKey::new(side, phase)), open: OpenKey::null(NullKey::new(side.peer(), phase)) }
}

/// The 1-RTT keys of a connection.
///
/// Every path uses the same keys; nonces differ by path id. What belongs to one path ([`PhaseMark`],
/// [`SealMark`]) is kept by that path's flows and handed in.
pub struct OneRttKeys {
    local_header: HeaderKey,
    remote_header: HeaderKey,
    phase: u64,
    current: Pair,
    /// Derived ahead of use, so that a packet of the next phase takes no longer to open (RFC 9001 6.3, 9.5). None while the
    /// peer cannot have updated yet, and while the connection rests.
    next: Option<Box<Ahead>>,
    previous: Option<OpenKey>,
    previous_ends: Option<Instant>,
    source: KeySource,
    peer: PeerPhase,
    /// Since when the present phase is in use; none before the handshake is confirmed.
    in_use_since: Option<Instant>,
    /// From when on we may update; none until a packet of this phase was acknowledged.
    update_from: Option<Instant>,
    usage: AeadUsage,
}

/// The phase in which the peer sends, as far as we know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PeerPhase {
    /// We updated the keys, and no packet of the new phase came yet.
    Previous,
    Current,
}

impl OneRttKeys {
    pub(crate) fn tls(keys: quic::Keys, next: quic::Secrets) -> Self {
        let current = Pair { seal: SealKey::tls(keys.local.packet), open: OpenKey::tls(keys.remote.packet) };
        let headers = (HeaderKey::tls(keys.local.header), HeaderKey::tls(keys.remote.header));
        Self::new(headers, current, KeySource::Tls(Box::new(next)))
    }

    /// Keys of another version than that of the session that made the secrets.
    pub(crate) fn versioned(secrets: VersionedSecrets) -> Self {
        let keys = secrets.keys();
        let current = Pair { seal: SealKey::tls(keys.local.packet), open: OpenKey::tls(keys.remote.packet) };
        let headers = (HeaderKey::tls(keys.local.header), HeaderKey::tls(keys.remote.header));
        Self::new(headers, current, KeySource::Versioned(Box::new(secrets)))
    }

    /// Keys without secrecy, for simulations only; both ends must use them.
    pub fn null(side: Side) -> Self {
        Self::new((HeaderKey::null(), HeaderKey::null()), null_pair(side, 0), KeySource::Null { side, phase: 1 })
    }

    fn new((local_header, remote_header): (HeaderKey, HeaderKey), current: Pair, source: KeySource) -> Self {
        Self {
            local_header,
            remote_header,
            phase: 0,
            usage: AeadUsage::for_key(&current.seal),
            current,
            next: None,
            previous: None,
            previous_ends: None,
            source,
            peer: PeerPhase::Current,
            in_use_since: None,
            update_from: None,
        }
    }

    /// Updates so far, from 0.
    #[inline]
    pub fn phase(&self) -> u64 {
        self.phase
    }

    /// Packets that were sealed, or lent to be sealed, with the keys of this phase.
    pub fn packets_sealed(&self) -> u64 {
        self.usage.sealed()
    }

    /// The key phase bit of packets that we send now.
    #[inline]
    fn phase_bit(&self) -> bool {
        self.phase & 1 == 1
    }

    /// Lowers the AEAD's limits, packets sealed and packets that fail authentication, to what a test can reach.
    pub fn lower_limits(&mut self, confidentiality: u64, integrity: u64) {
        self.usage = AeadUsage::new(confidentiality, integrity);
    }

    /// What the counts advise now.
    #[inline]
    pub(crate) fn key_usage(&self) -> KeyUsage {
        self.usage.key_usage()
    }

    /// Seals the packet that fills `buf` from `layout.start` to its end, and sets its key phase bit; the rest is
    /// as in [`crate::SealKeys::seal_packet`]. `mark` belongs to the path's send flow.
    ///
    /// # Errors
    /// [`SealError::Exhausted`] once the key's confidentiality limit is reached; the others as in
    /// [`crate::SealKeys::seal_packet`].
    pub fn seal_packet(
        &mut self,
        buf: &mut Vec<u8>,
        layout: Layout,
        path: PathId,
        pn: u64,
        mark: &mut SealMark,
    ) -> Result<(), SealError> {
        self.usage.on_seal()?;
        let bit = if self.phase_bit() { PHASE_BIT } else { 0 };
        // The header was written without knowing the phase.
        let first = buf.get_mut(layout.start).ok_or(SealError::TooShort)?;
        *first = *first & !PHASE_BIT | bit;
        seal_packet(&self.current.seal, &self.local_header, buf, layout, path, pn)?;
        mark.on_sealed(self.phase, pn);
        self.keep_ahead();
        Ok(())
    }

    /// Unmasks the header of `packet` in place; `pn_at` is the offset of the packet number in it.
    ///
    /// # Errors
    /// [`OpenError::TooShort`] when the packet has no room for a header protection sample.
    #[inline]
    pub fn unmask(&self, packet: &mut [u8], pn_at: usize) -> Result<Unmasked, OpenError> {
        self.remote_header.unmask(packet, pn_at)
    }

    /// The phase of a packet, from its phase bit and its number (RFC 9001 6.3, 6.5).
    ///
    /// The bit alone only tells whether it is the current phase. If it is not, the packet is an old one when its number
    /// is below the first of the current phase on its path. On a path that has no packet of the current phase yet, the
    /// packet counts as old while the old keys are kept, and as the first of the next phase afterwards.
    #[inline]
    fn phase_of(&self, phase_bit: bool, pn: u64, mark: &PhaseMark) -> KeyPhase {
        if phase_bit == self.phase_bit() {
            return KeyPhase::Current;
        }
        match (mark.lowest(self.phase), self.peer) {
            (Some(lowest), _) if pn < lowest => KeyPhase::Previous,
            (Some(_), _) => KeyPhase::Next,
            // The peer cannot be a phase ahead before it answered our update.
            (None, PeerPhase::Previous) => KeyPhase::Previous,
            (None, PeerPhase::Current) if self.previous.is_some() => KeyPhase::Previous,
            (None, PeerPhase::Current) => KeyPhase::Next,
        }
    }

    /// Opens the unmasked short header `packet` in place. `header_len` counts the packet number. `mark` belongs
    /// to the path's receive flow. When the peer turns out to have updated its keys, ours follow at once, and
    /// the old ones live for `guard` more (three times the largest PTO of all paths).
    ///
    /// # Errors
    /// [`OpenError::NoKeys`] and [`OpenError::Forged`] for packets to drop. [`OpenError::Violation`] when the peer updated its
    /// keys too soon, used old keys for a new number, or reached the limit on forgeries.
    #[allow(clippy::too_many_arguments)]
    pub fn open(
        &mut self,
        packet: &mut [u8],
        header_len: usize,
        path: PathId,
        pn: u64,
        mark: &mut PhaseMark,
        now: Instant,
        guard: Duration,
    ) -> Result<Opened, OpenError> {
        let bit = packet.first().is_some_and(|first| first & PHASE_BIT != 0);
        let phase = self.phase_of(bit, pn, mark);
        // Before it is known whether the packet is of the next phase: after a rest each takes as long.
        self.keep_ahead();
        if phase == KeyPhase::Next {
            self.prepare();
        }
        let key = match phase {
            KeyPhase::Previous => self.previous.as_ref(),
            KeyPhase::Current => Some(&self.current.open),
            KeyPhase::Next => self.next.as_ref().map(|next| &next.pair.open),
        };
        // RFC 9001 5.5: what the key of its phase does not open changes nothing
        let payload_bytes = match key.ok_or(OpenError::NoKeys)?.open_payload(packet, header_len, path, pn) {
            Ok(bytes) => bytes,
            Err(error) => {
                if error == OpenError::Forged {
                    self.usage.on_forged().map_err(OpenError::Violation)?;
                }
                return Err(error);
            }
        };
        self.on_opened(phase, now, guard).map_err(OpenError::Violation)?;
        let number = if phase == KeyPhase::Previous { self.phase.saturating_sub(1) } else { self.phase };
        mark.on_opened(number, pn).map_err(OpenError::Violation)?;
        Ok(Opened { payload_bytes, phase })
    }

    fn on_opened(&mut self, phase: KeyPhase, now: Instant, guard: Duration) -> Result<(), Violation> {
        match phase {
            KeyPhase::Previous => {}
            KeyPhase::Current if self.peer == PeerPhase::Previous => {
                // Our update is answered: packets of the old phase can only be late ones now.
                self.peer = PeerPhase::Current;
                self.previous_ends = Some(now + guard);
            }
            KeyPhase::Current => {}
            KeyPhase::Next => {
                // RFC 9001 6.2: two updates without a packet of ours in between to acknowledge the first.
                if self.phase > 0 && self.usage.sealed() == 0 {
                    return Err(Violation::KeyUpdateTooSoon);
                }
                self.rotate(now, PeerPhase::Current);
                self.previous_ends = Some(now + guard);
            }
        }
        Ok(())
    }

    /// Takes note that an ACK covers `largest_acked` on the path of `mark`. Once it covers a packet of the current
    /// phase, we may update again: at once the first time, else after `guard` (three times the largest PTO).
    pub fn on_acked(&mut self, mark: &SealMark, largest_acked: u64, now: Instant, guard: Duration) {
        if self.update_from.is_none() && mark.covers(self.phase, largest_acked) {
            // RFC 9001 6.5: wait three PTO after the update was confirmed.
            self.update_from = Some(if self.phase == 0 { now } else { now + guard });
        }
    }

    /// The handshake is confirmed: key updates may begin (RFC 9001 6.1).
    pub fn on_handshake_confirmed(&mut self, now: Instant) {
        self.in_use_since = Some(now);
    }

    /// True when new keys are wanted: the AEAD's limit comes near (RFC 9001 6.6), or the present phase has been in use for
    /// `longest`.
    pub fn wants_update(&self, now: Instant, longest: Option<Duration>) -> bool {
        self.key_usage() != KeyUsage::Fine || longest.is_some_and(|longest| self.age(now) >= longest)
    }

    /// For how long the present phase is in use; zero before the handshake is confirmed.
    fn age(&self, now: Instant) -> Duration {
        self.in_use_since.map_or(Duration::ZERO, |since| now.since(since))
    }

    fn may_update(&self, now: Instant) -> Result<(), UpdateRefused> {
        if self.in_use_since.is_none() {
            return Err(UpdateRefused::HandshakeNotConfirmed);
        }
        match self.update_from {
            None => Err(UpdateRefused::Unacknowledged),
            Some(from) if from > now => Err(UpdateRefused::TooSoon(from)),
            Some(_) => Ok(()),
        }
    }

    /// Starts a key update; the next packet that we seal on any path tells the peer.
    ///
    /// # Errors
    /// Too early; the refusal says why, and from when on an update is allowed where that is known.
    pub fn update(&mut self, now: Instant) -> Result<(), UpdateRefused> {
        self.may_update(now)?;
        // Old keys are kept until `guard` after the peer's answer.
        self.rotate(now, PeerPhase::Previous);
        Ok(())
    }

    /// Goes to `phase` without asking whether an update is allowed now: a fork found the peer there, or a test plays an end
    /// that breaks the rules.
    pub fn advance_to(&mut self, phase: u64, now: Instant, guard: Duration) {
        while self.phase < phase {
            self.rotate(now, PeerPhase::Current);
            self.previous_ends = Some(now + guard);
        }
    }

    fn rotate(&mut self, now: Instant, peer: PeerPhase) {
        self.prepare();
        let Some(next) = self.next.take() else { return };
        let Ahead { pair, source } = *next;
        let old = std::mem::replace(&mut self.current, pair);
        self.source = source;
        self.previous = Some(old.open);
        self.previous_ends = None;
        self.phase += 1;
        self.peer = peer;
        self.in_use_since = self.in_use_since.map(|_| now);
        self.update_from = None;
        self.usage.on_new_phase();
    }

    /// Derives the next phase's keys where the peer may use them. Sealing and opening call this, so that opening a packet
    /// of the next phase takes no longer than any other: the time must not tell an attacker the phase (RFC 9001 9.5).
    /// Nobody updates before packets of the first phase were acknowledged (RFC 9001 6.1): a connection that ends by then
    /// derives none.
    #[inline]
    fn keep_ahead(&mut self) {
        if self.next.is_none() && (self.phase > 0 || self.update_from.is_some()) {
            self.prepare();
        }
    }

    #[inline(never)]
    fn prepare(&mut self) {
        if self.next.is_none() {
            let mut source = self.source.clone();
            let pair = source.next();
            self.next = Some(Box::new(Ahead { pair, source }));
        }
    }

    /// Drops what the next packet derives again: the keys of the next phase.
    pub fn rest(&mut self) {
        self.next = None;
    }

    /// When old keys are to be dropped.
    #[inline]
    pub fn deadline(&self) -> Option<Instant> {
        self.previous_ends
    }

    /// Drops old keys when their time is over.
    pub fn on_timeout(&mut self, now: Instant) {
        if self.previous_ends.is_some_and(|end| end <= now) {
            self.previous = None;
            self.previous_ends = None;
        }
    }
}

impl fmt::Debug for OneRttKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OneRttKeys").field("phase", &self.phase).field("usage", &self.usage).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
