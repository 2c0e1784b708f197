//! The largest datagram of a path: probed upwards, and given up when large packets vanish (RFC 8899).

use std::time::Duration;

use plait_base::Instant;
use plait_base::limits::MIN_DATAGRAM_BYTES;

/// Losses of MTU probes of one size before it counts as too large (RFC 8899 5.1.2 MAX_PROBES).
const MAX_MTU_PROBES: u8 = 3;
/// The search ends when sizes that differ by less are left, bytes.
const GRANULARITY: u16 = 20;
/// Separate loss episodes of large packets only, with no large packet acked since, that reveal a black hole.
const BLACK_HOLE_EPISODES: usize = 3;
/// Consecutive probe time-outs after which large packets are suspected, where such were seen to pass.
const BLACK_HOLE_PTOS: u32 = 3;
/// The same for a size that was assumed and never seen to pass.
const UNPROVEN_PTOS: u32 = 1;
/// UDP payload that fits nearly every Ethernet path over IPv6: the first guess when more is allowed.
const ETHERNET: u16 = 1452;

/// In which order sizes are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MtuSearch {
    /// 1452 first where more is allowed, then the ceiling, then halves of what is left: few MTU probes.
    Binary,
    /// No MTU probes at all; the base is used.
    Off,
}

/// How the search goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MtuConfig {
    /// Size that every path carries, UDP payload bytes; at least 1200 (RFC 8899 5.1.2 BASE_PLPMTU).
    pub base: u16,
    /// Size of the first datagrams, assumed to pass until something shows that it does not; at least `base`.
    pub initial: u16,
    /// Largest size tried, UDP payload bytes; up to 65527.
    pub max: u16,
    /// Order of the sizes.
    pub search: MtuSearch,
    /// Pause before larger sizes are tried again (RFC 8899 5.1.1 PMTU_RAISE_TIMER).
    pub raise_after: Duration,
    /// Pause after a black hole.
    pub black_hole_pause: Duration,
}

impl Default for MtuConfig {
    fn default() -> Self {
        Self {
            base: MIN_DATAGRAM_BYTES as u16,
            initial: MIN_DATAGRAM_BYTES as u16,
            max: ETHERNET,
            search: MtuSearch::Binary,
            raise_after: Duration::from_secs(600),
            black_hole_pause: Duration::from_secs(60),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MtuProbe {
    size: u16,
    losses: u8,
    in_flight: bool,
}

/// A run of lost packets with consecutive numbers.
#[derive(Clone, Copy, Debug)]
struct Episode {
    last: u64,
    smallest: u16,
}

/// The search state of one path.
#[derive(Clone, Debug)]
pub(crate) struct Mtu {
    config: MtuConfig,
    current: u16,
    /// Largest size that was seen to pass.
    proven: u16,
    /// Largest size that may still pass.
    ceiling: u16,
    /// What the peer accepts (max_udp_payload_size).
    peer_max: u16,
    mtu_probe: Option<MtuProbe>,
    /// No MTU probe before this.
    paused_until: Option<Instant>,
    episodes: Vec<Episode>,
    largest_acked: Option<u64>,
}

impl Mtu {
    /// Starts at the initial size, ready to search.
    pub(crate) fn new(config: MtuConfig) -> Self {
        let base = config.base.max(MIN_DATAGRAM_BYTES as u16);
        let initial = config.initial.max(base);
        let config = MtuConfig { base, initial, max: config.max.max(initial), ..config };
        Self {
            config,
            current: initial,
            proven: base,
            ceiling: config.max,
            peer_max: u16::MAX,
            mtu_probe: None,
            paused_until: None,
            episodes: Vec::new(),
            largest_acked: None,
        }
    }

    /// Largest datagram to send now, UDP payload bytes.
    pub(crate) fn current(&self) -> u16 {
        self.current
    }

    /// The peer's max_udp_payload_size (RFC 9000 18.2); values above 65527 mean no limit.
    pub(crate) fn set_peer_max(&mut self, bytes: u64) {
        self.peer_max = u16::try_from(bytes).unwrap_or(u16::MAX).max(MIN_DATAGRAM_BYTES as u16);
        self.ceiling = self.ceiling.min(self.peer_max);
        self.current = self.current.min(self.peer_max);
        self.mtu_probe = self.mtu_probe.filter(|p| p.size <= self.ceiling);
    }

    /// Where every fall ends: no peer and no path may take less.
    fn floor(&self) -> u16 {
        self.config.base.min(self.peer_max)
    }

    /// The system refused a datagram of `bytes` as too large for the interface (EMSGSIZE), perhaps because of an ICMP
    /// message: the ceiling falls, never below 1200 bytes, and nothing rises (RFC 9000 14.2.1). The reduced size where
    /// datagrams in use are as large; what fits is then searched for between the base and what was refused.
    pub(crate) fn on_too_large(&mut self, now: Instant, bytes: u16) -> Option<u16> {
        if bytes <= self.floor() {
            return None;
        }
        self.ceiling = self.ceiling.min(bytes - 1);
        self.mtu_probe = self.mtu_probe.filter(|p| p.size <= self.ceiling);
        if bytes > self.current {
            self.settle_if_done(now);
            return None;
        }
        self.paused_until = None;
        Some(self.fall())
    }

    fn fall(&mut self) -> u16 {
        self.episodes.clear();
        self.current = self.floor();
        self.proven = self.current;
        self.mtu_probe = None;
        self.current
    }

    /// The addresses changed: nothing known holds any longer.
    pub(crate) fn reset(&mut self) {
        let peer_max = self.peer_max;
        *self = Self::new(self.config);
        self.set_peer_max(u64::from(peer_max));
    }

    /// No larger size is tried from now on; the one in use stays until something shows that it does not pass.
    pub(crate) fn stop_search(&mut self) {
        self.config.search = MtuSearch::Off;
        self.mtu_probe = None;
    }

    /// Size of the MTU probe to send now; the caller sends only when the window has room and data is flowing.
    pub(crate) fn mtu_probe_due(&mut self, now: Instant) -> Option<u16> {
        if self.paused_until.is_some_and(|until| now < until) || self.config.search == MtuSearch::Off {
            return None;
        }
        if self.paused_until.take().is_some() {
            // RFC 8899 5.3.2: the raise timer starts a new search to the full height.
            self.ceiling = self.config.max.min(self.peer_max);
            self.mtu_probe = None;
        }
        if self.mtu_probe.is_none() {
            self.mtu_probe = self.next_size().map(|size| MtuProbe { size, losses: 0, in_flight: false });
        }
        if self.mtu_probe.is_none() {
            self.settle_if_done(now);
        }
        self.mtu_probe.filter(|p| !p.in_flight).map(|p| p.size)
    }

    fn next_size(&self) -> Option<u16> {
        let (low, high) = (self.current, self.ceiling);
        if high <= low || (high - low < GRANULARITY && high != self.config.max.min(self.peer_max)) {
            return None;
        }
        let untouched = high == self.config.max.min(self.peer_max);
        if untouched && low < ETHERNET && high > ETHERNET {
            return Some(ETHERNET);
        }
        Some(if untouched { high } else { low + (high - low).div_ceil(2) })
    }

    fn settle_if_done(&mut self, now: Instant) {
        if self.mtu_probe.is_none() && self.paused_until.is_none() && self.next_size().is_none() {
            self.paused_until = Some(now + self.config.raise_after);
        }
    }

    /// An MTU probe of `size` left.
    pub(crate) fn on_mtu_probe_sent(&mut self, size: u16) {
        if let Some(probe) = self.mtu_probe.as_mut().filter(|p| p.size == size) {
            probe.in_flight = true;
        }
    }

    /// An MTU probe arrived; the new size when it grew.
    pub(crate) fn on_mtu_probe_acked(&mut self, now: Instant, size: u16) -> Option<u16> {
        if self.mtu_probe.is_some_and(|p| p.size == size) {
            self.mtu_probe = None;
        }
        if size <= self.current || size > self.peer_max || size > self.config.max {
            return None;
        }
        self.proven = self.proven.max(size);
        self.current = size;
        self.ceiling = self.ceiling.max(size);
        self.settle_if_done(now);
        Some(size)
    }

    /// An MTU probe was lost: that says nothing of congestion (RFC 9000 14.4).
    pub(crate) fn on_mtu_probe_lost(&mut self, now: Instant, size: u16) {
        let Some(probe) = self.mtu_probe.as_mut().filter(|p| p.size == size) else { return };
        probe.in_flight = false;
        probe.losses += 1;
        if probe.losses >= MAX_MTU_PROBES {
            self.mtu_probe = None;
            self.ceiling = self.ceiling.min(size - 1).max(self.current);
            self.settle_if_done(now);
        }
    }

    /// An ordinary packet arrived: large ones pass, so earlier losses were not a black hole.
    pub(crate) fn on_acked(&mut self, number: u64, bytes: u16) {
        self.on_size_proven(bytes);
        if bytes <= self.config.base && self.current > self.config.base {
            return;
        }
        if self.largest_acked.is_none_or(|n| n < number) {
            self.largest_acked = Some(number);
        }
        self.episodes.retain(|e| e.smallest > bytes || e.last > number);
    }

    /// A packet of `bytes` arrived that is numbered apart from those of [`Self::on_acked`]: of the handshake.
    pub(crate) fn on_size_proven(&mut self, bytes: u16) {
        self.proven = self.proven.max(bytes);
    }

    /// An ordinary packet was lost; the reduced size when this reveals a black hole.
    pub(crate) fn on_lost(&mut self, now: Instant, number: u64, bytes: u16) -> Option<u16> {
        if self.current <= self.floor() || self.largest_acked.is_some_and(|n| n > number) {
            return None;
        }
        match self.episodes.last_mut().filter(|e| number <= e.last + 1) {
            Some(episode) => {
                episode.last = episode.last.max(number);
                episode.smallest = episode.smallest.min(bytes);
            }
            None => self.episodes.push(Episode { last: number, smallest: bytes }),
        }
        // An episode that took small packets as well is congestion, and says nothing about size.
        let suspicious = self.episodes.iter().filter(|e| e.smallest > self.config.base).count();
        if suspicious >= BLACK_HOLE_EPISODES {
            return self.enter_black_hole(now);
        }
        if self.episodes.len() > BLACK_HOLE_EPISODES {
            let base = self.config.base;
            self.episodes.retain(|e| e.smallest > base);
        }
        None
    }

    /// The `count`-th probe time-out in a row; the reduced size when large packets are to blame, perhaps.
    pub(crate) fn on_pto(&mut self, now: Instant, count: u32) -> Option<u16> {
        let patience = if self.current > self.proven { UNPROVEN_PTOS } else { BLACK_HOLE_PTOS };
        let suspect = count >= patience && self.current > self.floor();
        if suspect { self.enter_black_hole(now) } else { None }
    }

    /// RFC 8899 4.3: fall back to the base. Sizes that passed once are searched for again later, a size that was only
    /// assumed gives way to a search at once.
    fn enter_black_hole(&mut self, now: Instant) -> Option<u16> {
        // A search that had nothing left to try may have paused by now.
        self.paused_until = (self.current <= self.proven).then(|| now + self.config.black_hole_pause);
        Some(self.fall())
    }
}

#[cfg(test)]
mod tests;
