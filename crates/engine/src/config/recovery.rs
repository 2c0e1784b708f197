//! Loss recovery, acknowledgements and path MTU, as a connection reads them.

use std::time::Duration;

use plait_base::limits;
use plait_base::units::VARINT_MAX;
use plait_path::AckWish;

use super::Switch;

/// Loss detection (RFC 9002).
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecoveryTuning {
    /// RTT before the first sample.
    pub(crate) initial_rtt: Duration,
    /// Packets acknowledged beyond a missing one after which it counts as lost.
    pub(crate) packet_threshold: u32,
    /// RTTs after which an overtaken packet counts as lost.
    pub(crate) time_threshold: f32,
    /// Whether packets are paced.
    pub(crate) pacing: Switch,
    /// Bytes that pacing lets leave at once; none leaves it to the pacer.
    pub(crate) max_burst_bytes: Option<u32>,
}

impl Default for RecoveryTuning {
    fn default() -> Self {
        Self {
            initial_rtt: limits::INITIAL_RTT,
            packet_threshold: 3,
            time_threshold: 9.0 / 8.0,
            pacing: Switch::On,
            max_burst_bytes: None,
        }
    }
}

/// When and how we acknowledge (RFC 9000 13.2).
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckTuning {
    /// Longest delay of an ACK.
    pub(crate) max_delay: Duration,
    /// Unit of the delay field: 2^exponent microseconds.
    pub(crate) delay_exponent: u8,
    /// Ack-eliciting packets after which an ACK is sent at once.
    pub(crate) eliciting_threshold: u32,
    /// What we ask of the peer's acks; none leaves them to it.
    pub(crate) wish: Option<AckWish>,
}

impl Default for AckTuning {
    fn default() -> Self {
        let wish = Some(AckWish::default());
        Self { max_delay: Duration::from_millis(25), delay_exponent: 3, eliciting_threshold: 2, wish }
    }
}

/// How rarely a peer is asked to acknowledge (draft-ietf-quic-ack-frequency-14).
///
/// Fewer acks cost both ends less, and take less of a thin way back. They also come later: losses are found later, and windows
/// grow in larger steps. By default a peer is asked only where they are many: while we send ten packets or more in
/// each 250 µs (some 500 Mbit/s), for an ack of what is sent in that time.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckFrequencyConfig {
    wish: AckWish,
}

impl AckFrequencyConfig {
    /// Ack-eliciting packets that may arrive without an ack being sent at once; the next one calls for it. 0 to 2^62 - 1.
    /// None, the default: as many as we send in 250 µs, and nothing is asked while those are fewer than ten. No more than a quarter
    /// of the smallest congestion window of the paths in use is asked for.
    pub fn ack_eliciting_threshold(&mut self, packets: Option<u64>) -> &mut Self {
        self.wish.eliciting_threshold = packets.map(|packets| packets.min(VARINT_MAX));
        self
    }

    /// Longest time that an ack is held back. Moved into the range that the peer allows: from its min_ack_delay to 2^14 ms. None,
    /// the default: 1 ms; where another setting of these is made, the smallest smoothed RTT of all paths, asked for anew as that
    /// changes. No longer than the max_ack_delay that the peer announced.
    pub fn max_ack_delay(&mut self, delay: Option<Duration>) -> &mut Self {
        self.wish.max_ack_delay = delay;
        self
    }

    /// Packets by which one may come late before an ack is sent at once; 0 bears with any. 0 to 2^62 - 1. None, the default: as
    /// many as loss detection bears with.
    pub fn reordering_threshold(&mut self, packets: Option<u64>) -> &mut Self {
        self.wish.reordering_threshold = packets.map(|packets| packets.min(VARINT_MAX));
        self
    }

    pub(crate) fn wish(&self) -> AckWish {
        self.wish
    }
}

/// Datagram sizes, UDP payload bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MtuTuning {
    /// Size of a path's first packets.
    pub(crate) initial: u16,
    /// Size that every path carries.
    pub(crate) min: u16,
    /// Largest that we accept.
    pub(crate) max_receive: u16,
    /// The search for more; none keeps `initial`.
    pub(crate) discovery: Option<MtuDiscoveryConfig>,
}

impl MtuTuning {
    /// RFC 9000 14: the least that a path must carry.
    pub(crate) const SMALLEST: u16 = limits::MIN_DATAGRAM_BYTES as u16;
    /// RFC 9000 18.2: the largest UDP payload.
    pub(crate) const LARGEST: u16 = limits::MAX_DATAGRAM_BYTES as u16;

    /// What the first packets of a path may take: at least the minimum.
    pub(crate) fn first(&self) -> u16 {
        self.initial.max(self.min)
    }
}

impl Default for MtuTuning {
    fn default() -> Self {
        Self {
            initial: Self::SMALLEST,
            min: Self::SMALLEST,
            max_receive: Self::LARGEST,
            discovery: Some(MtuDiscoveryConfig::default()),
        }
    }
}

/// The search for a larger MTU by probes (RFC 8899).
#[derive(Clone, Copy, Debug)]
pub struct MtuDiscoveryConfig {
    pub(crate) upper_bound: u16,
    pub(crate) interval: Duration,
    pub(crate) black_hole_cooldown: Duration,
}

impl Default for MtuDiscoveryConfig {
    fn default() -> Self {
        Self { upper_bound: 1452, interval: Duration::from_secs(600), black_hole_cooldown: Duration::from_secs(60) }
    }
}

impl MtuDiscoveryConfig {
    /// Largest UDP payload that is tried. 1200 to 65527 bytes, default 1452: Ethernet with IPv6.
    pub fn upper_bound(&mut self, bytes: u16) -> &mut Self {
        self.upper_bound = bytes.clamp(MtuTuning::SMALLEST, MtuTuning::LARGEST);
        self
    }

    /// Time from the end of one search to the next. Default 10 min (RFC 8899 5.1.1).
    pub fn interval(&mut self, interval: Duration) -> &mut Self {
        self.interval = interval;
        self
    }

    /// Time without searching after a path turned out to swallow large packets. Default 60 s.
    pub fn black_hole_cooldown(&mut self, cooldown: Duration) -> &mut Self {
        self.black_hole_cooldown = cooldown;
        self
    }

    /// Reads the settings back: (upper bound, interval, black hole cooldown).
    pub(crate) fn values(&self) -> (u16, Duration, Duration) {
        (self.upper_bound, self.interval, self.black_hole_cooldown)
    }
}
