//! RED (Floyd and Jacobson 1993, gentle variant): signals at random as the mean queue grows.

use std::time::Duration;

use plait_base::{Instant, Random};

use super::Care;

/// Settings of RED.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedConfig {
    /// Mean queue in bytes below which nothing is signalled.
    pub min_bytes: u64,
    /// Mean queue in bytes at which the share of signals reaches `drop_max`; everything is dropped at twice this.
    pub max_bytes: u64,
    /// Share signalled at `max_bytes`, 0 to 1.
    pub drop_max: f64,
    /// Weight of a new sample in the mean, 0 to 1.
    pub weight: f64,
}

impl Default for RedConfig {
    fn default() -> Self {
        Self { min_bytes: 15_000, max_bytes: 45_000, drop_max: 0.1, weight: 0.002 }
    }
}

/// State of the mean and of the spacing between signals.
#[derive(Clone, Debug)]
pub(crate) struct Red {
    mean: f64,
    /// Datagrams since the last signal.
    since: u64,
    /// Its own, so that what it draws does not hang on when the wire behind the queue draws.
    random: Random,
}

impl Red {
    pub(crate) fn new(random: Random) -> Self {
        Self { mean: 0.0, since: 0, random }
    }

    /// A datagram enters behind `queued_bytes`. The link may have been idle since `idle_since`, sending nothing; a
    /// typical datagram would have taken `slot` to send.
    pub(crate) fn on_enqueue(
        &mut self,
        c: &RedConfig,
        (now, idle_since, slot): (Instant, Option<Instant>, Duration),
        queued_bytes: u64,
    ) -> Care {
        if let Some(since) = idle_since {
            // The mean decays as if empty slots had been sampled.
            let slots = now.since(since).as_secs_f64() / slot.as_secs_f64().max(1e-9);
            self.mean *= (1.0 - c.weight).powf(slots);
        } else {
            self.mean += c.weight * (queued_bytes as f64 - self.mean);
        }
        let (low, high) = (c.min_bytes as f64, c.max_bytes as f64);
        if self.mean < low {
            self.since = 0;
            return Care::Pass;
        }
        if self.mean >= 2.0 * high {
            self.since = 0;
            return Care::Drop;
        }
        let base = if self.mean < high {
            c.drop_max * (self.mean - low) / (high - low)
        } else {
            c.drop_max + (1.0 - c.drop_max) * (self.mean - high) / high
        };
        let spaced = base / (1.0 - self.since as f64 * base).max(1e-9);
        self.since += 1;
        if self.random.chance(spaced) {
            self.since = 0;
            return Care::Signal;
        }
        Care::Pass
    }
}
