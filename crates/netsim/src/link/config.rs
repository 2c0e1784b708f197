//! Everything that can be set on a link, with the ranges it accepts.

use std::time::Duration;

use crate::link::aqm::{CoDelConfig, FqCoDelConfig, RedConfig};
use crate::link::loss::Loss;
use crate::link::rate::Rate;

/// Whether datagrams may overtake each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// First in, first out, whatever jitter or a shorter delay would do; only [`Reorder`] overtakes. What would overtake
    /// arrives together with the datagram before it: where the spread is many gaps long, most do.
    #[default]
    Kept,
    /// Each datagram arrives when its own delay says.
    Free,
}

/// Random variation of the delay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Jitter {
    /// Every datagram takes the same time.
    #[default]
    None,
    /// Uniform between `delay - spread` (not below zero) and `delay + spread`.
    Uniform(Duration),
    /// Normal with this standard deviation, cut at zero delay.
    Normal(Duration),
    /// Wanders slowly between `delay - spread` (not below zero) and `delay + spread`: from one uniform draw to the next
    /// in a straight line that takes four spreads, so that gaps between datagrams shrink to half at most and none
    /// catches up with another.
    Drift(Duration),
}

/// Datagrams that are held back so that later ones overtake them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reorder {
    /// Share of datagrams held back, 0 to 1.
    pub probability: f64,
    /// How much longer they take.
    pub extra: Duration,
}

/// Where the loss model takes datagrams away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossPlace {
    /// On the wire: a lost datagram has used queue and rate (radio; error model of a receiver).
    #[default]
    Wire,
    /// Before the queue: a lost datagram costs nothing (netem in front of a shaper).
    Entry,
}

/// Whether the link carries anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkState {
    /// It carries datagrams.
    #[default]
    Up,
    /// It does not; whatever waits in its queue is lost.
    Down,
}

/// The bound of the queue behind the datagram being sent; each limit that is present holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueLimit {
    /// Bytes that may wait, header overhead included.
    pub bytes: Option<u64>,
    /// Datagrams that may wait.
    pub packets: Option<usize>,
    /// Longest wait before sending begins.
    pub time: Option<Duration>,
}

impl QueueLimit {
    /// A queue that holds whatever comes.
    pub const NONE: Self = Self { bytes: None, packets: None, time: None };

    /// At most `bytes` wait.
    pub const fn bytes(bytes: u64) -> Self {
        Self { bytes: Some(bytes), ..Self::NONE }
    }

    /// At most `packets` wait.
    pub const fn packets(packets: usize) -> Self {
        Self { packets: Some(packets), ..Self::NONE }
    }

    /// Nothing waits longer than `time`.
    pub const fn time(time: Duration) -> Self {
        Self { time: Some(time), ..Self::NONE }
    }
}

/// What the queue does besides refusing what does not fit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Aqm {
    /// Nobody manages the queue: it drops what finds no room.
    #[default]
    DropTail,
    /// Controlled delay (RFC 8289), decided when a datagram is taken from the queue.
    CoDel(CoDelConfig),
    /// Random early detection, decided when a datagram enters.
    Red(RedConfig),
    /// Fair queuing by flow with CoDel in each (RFC 8290): see [`crate::link::Link::offer_flow`].
    FqCoDel(FqCoDelConfig),
}

/// When the fate of a datagram is settled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Service {
    /// On entry where the queue discipline allows it: no event per datagram. A change of rate then holds for
    /// datagrams offered after it; those that wait keep their times.
    #[default]
    Planned,
    /// When sending ends: the queue is real and a change of rate or state holds at once for what waits.
    Live,
}

/// The settings of one direction of a link. Any may change at any time through [`crate::link::Link::change`].
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// How fast bits leave.
    pub rate: Rate,
    /// Time from the last bit's departure to its arrival.
    pub delay: Duration,
    /// Variation of the delay.
    pub jitter: Jitter,
    /// Whether jitter and changes of delay may reorder.
    pub order: Order,
    /// Bound of the queue.
    pub queue: QueueLimit,
    /// Who manages the queue.
    pub aqm: Aqm,
    /// Which datagrams are lost at random.
    pub loss: Loss,
    /// Where it acts.
    pub loss_place: LossPlace,
    /// Which datagrams are held back so that later ones overtake them.
    pub reorder: Reorder,
    /// Share of datagrams that arrive twice, 0 to 1.
    pub duplicate: f64,
    /// Share of datagrams that arrive damaged, 0 to 1; each copy draws on its own.
    pub corrupt: f64,
    /// Largest datagram carried, header overhead included.
    pub mtu_bytes: u32,
    /// Added to the size of every datagram for rate, queue and MTU: 28 for UDP over IPv4, 48 over IPv6.
    pub overhead_bytes: u32,
    /// Up or down.
    pub state: LinkState,
    /// When fates are settled.
    pub service: Service,
}

impl Default for LinkConfig {
    /// An unlimited, instant, perfect link for IP packets of up to 65,535 bytes.
    fn default() -> Self {
        Self {
            rate: Rate::Unlimited,
            delay: Duration::ZERO,
            jitter: Jitter::None,
            order: Order::Kept,
            queue: QueueLimit::NONE,
            aqm: Aqm::DropTail,
            loss: Loss::None,
            loss_place: LossPlace::Wire,
            reorder: Reorder::default(),
            duplicate: 0.0,
            corrupt: 0.0,
            mtu_bytes: 65_535,
            overhead_bytes: 0,
            state: LinkState::Up,
            service: Service::Planned,
        }
    }
}

impl LinkConfig {
    /// A lossless link of `bits_per_second` and one-way `delay`, with an unbounded queue.
    pub fn new(bits_per_second: u64, delay: Duration) -> Self {
        Self { rate: Rate::Fixed(bits_per_second), delay, ..Self::default() }
    }

    /// With this bound of the queue.
    pub fn queue(mut self, queue: QueueLimit) -> Self {
        self.queue = queue;
        self
    }

    /// With this queue management.
    pub fn aqm(mut self, aqm: Aqm) -> Self {
        self.aqm = aqm;
        self
    }

    /// With this loss model.
    pub fn loss(mut self, loss: Loss) -> Self {
        self.loss = loss;
        self
    }

    /// With this jitter.
    pub fn jitter(mut self, jitter: Jitter, order: Order) -> Self {
        self.jitter = jitter;
        self.order = order;
        self
    }

    /// With this largest datagram and overhead, both in bytes.
    pub fn sizes(mut self, mtu_bytes: u32, overhead_bytes: u32) -> Self {
        self.mtu_bytes = mtu_bytes;
        self.overhead_bytes = overhead_bytes;
        self
    }

    /// With fates settled when.
    pub fn service(mut self, service: Service) -> Self {
        self.service = service;
        self
    }

    /// Says what is out of range. A link given such values still works: probabilities act as if cut to 0..=1.
    ///
    /// # Errors
    /// The first setting that is out of range.
    pub fn check(&self) -> Result<(), ConfigError> {
        let share = |name, p: f64| if (0.0..=1.0).contains(&p) { Ok(()) } else { Err(ConfigError::Share(name, p)) };
        share("duplicate", self.duplicate)?;
        share("corrupt", self.corrupt)?;
        share("reorder", self.reorder.probability)?;
        for (name, p) in self.loss.shares() {
            share(name, p)?;
        }
        if self.overhead_bytes >= self.mtu_bytes {
            return Err(ConfigError::Mtu { mtu_bytes: self.mtu_bytes, overhead_bytes: self.overhead_bytes });
        }
        if let Aqm::FqCoDel(FqCoDelConfig { quantum_bytes: 0, .. } | FqCoDelConfig { queues: 0, .. }) = &self.aqm {
            return Err(ConfigError::NoTurns);
        }
        if let Aqm::Red(red) = &self.aqm {
            share("red weight", red.weight)?;
            share("red drop_max", red.drop_max)?;
            if red.min_bytes >= red.max_bytes {
                return Err(ConfigError::RedThresholds { min_bytes: red.min_bytes, max_bytes: red.max_bytes });
            }
        }
        Ok(())
    }
}

/// A setting out of range.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// A probability outside 0..=1.
    #[error("{0} is {1}, not a share between 0 and 1")]
    Share(&'static str, f64),
    /// No room for a payload.
    #[error("an MTU of {mtu_bytes} bytes leaves no room beside {overhead_bytes} bytes of headers")]
    Mtu {
        /// Largest IP packet that was asked for, bytes.
        mtu_bytes: u32,
        /// Bytes of headers that were asked for.
        overhead_bytes: u32,
    },
    /// FQ-CoDel without queues, or with turns of no bytes.
    #[error("FQ-CoDel needs at least one queue and one byte a turn")]
    NoTurns,
    /// RED's lower threshold is not below the upper.
    #[error("RED thresholds {min_bytes} and {max_bytes} bytes are not in order")]
    RedThresholds {
        /// The lower threshold, bytes.
        min_bytes: u64,
        /// The upper threshold, bytes.
        max_bytes: u64,
    },
}
