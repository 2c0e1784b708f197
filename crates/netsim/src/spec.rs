//! A path in the words of a scenario file: rate, round trip, queue and loss.

use std::time::Duration;

use crate::link::{LinkConfig, Loss, QueueLimit};

/// UDP and IPv4 headers.
const HEADERS_BYTES: u32 = 28;
/// The usual Ethernet MTU.
const MTU_BYTES: u32 = 1500;
/// A shorter queue turns a handshake's burst into loss.
const QUEUE_PACKETS_MIN: u64 = 10;

/// A symmetric path between two hosts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathSpec {
    /// Bits a second, each way.
    pub rate_bps: u64,
    /// Round trip without queues; half of it each way.
    pub rtt: Duration,
    /// Longest time in the queue; the queue holds at least ten full datagrams.
    pub queue: Duration,
    /// Share of datagrams lost each way, 0 to 1.
    pub loss: f64,
}

impl PathSpec {
    /// A path of `rate_mbps` and `rtt_ms` with a queue of 50 ms and no loss.
    pub fn new(rate_mbps: u64, rtt_ms: u64) -> Self {
        Self {
            rate_bps: rate_mbps * 1_000_000,
            rtt: Duration::from_millis(rtt_ms),
            queue: Duration::from_millis(50),
            loss: 0.0,
        }
    }

    /// With this share lost each way.
    pub fn loss(self, loss: f64) -> Self {
        Self { loss, ..self }
    }

    /// With this queue.
    pub fn queue(self, queue: Duration) -> Self {
        Self { queue, ..self }
    }

    /// One direction of it.
    pub fn link(&self) -> LinkConfig {
        let bytes = (self.rate_bps as f64 / 8.0 * self.queue.as_secs_f64()) as u64;
        let queue = QueueLimit::bytes(bytes.max(QUEUE_PACKETS_MIN * u64::from(MTU_BYTES)));
        LinkConfig::new(self.rate_bps, self.rtt / 2)
            .queue(queue)
            .loss(if self.loss > 0.0 { Loss::Bernoulli(self.loss) } else { Loss::None })
            .sizes(MTU_BYTES, HEADERS_BYTES)
    }
}
