//! The wire behind the queue: delay, jitter, loss, duplicates, damage and disorder.

use std::time::Duration;

use plait_base::{Ecn, Instant, Random};

use crate::link::config::{Jitter, LinkConfig, LossPlace, Order};
use crate::link::loss::LossDraw;
use crate::link::stats::LinkStats;
use crate::link::verdict::{Arrival, Delivery, DropCause, Integrity, Outcome};

/// State of the wire.
#[derive(Clone, Debug)]
pub(crate) struct Pipe {
    random: Random,
    loss: LossDraw,
    last_arrival: Instant,
}

impl Pipe {
    pub(crate) fn new(random: Random) -> Self {
        Self { random, loss: LossDraw::default(), last_arrival: Instant::ZERO }
    }

    /// True when the loss model takes a datagram at `place`.
    pub(crate) fn loses(&mut self, config: &LinkConfig, place: LossPlace, bytes: u64) -> bool {
        config.loss_place == place && self.loss.takes(&config.loss, bytes, &mut self.random)
    }

    /// A datagram of `bytes` has left the near end at `departure`.
    pub(crate) fn carry(
        &mut self,
        config: &LinkConfig,
        stats: &mut LinkStats,
        (departure, bytes, ecn): (Instant, u64, Option<Ecn>),
    ) -> Outcome {
        if self.loses(config, LossPlace::Wire, bytes) {
            stats.on_drop(DropCause::Loss);
            return Outcome::Dropped(DropCause::Loss);
        }
        stats.forwarded_packets += 1;
        stats.forwarded_bytes += bytes;
        let mut at = departure + self.delay(config);
        if config.order == Order::Kept {
            at = at.max(self.last_arrival);
            self.last_arrival = at;
        }
        if self.random.chance(config.reorder.probability) {
            stats.reordered += 1;
            at += config.reorder.extra;
        }
        let first = self.arrival(config, stats, at);
        let second = self.random.chance(config.duplicate).then(|| {
            stats.duplicates += 1;
            self.arrival(config, stats, at)
        });
        Outcome::Forward(Delivery { departure, ecn, first, second })
    }

    fn arrival(&mut self, config: &LinkConfig, stats: &mut LinkStats, at: Instant) -> Arrival {
        let integrity = if self.random.chance(config.corrupt) {
            stats.corrupted += 1;
            Integrity::Corrupted
        } else {
            Integrity::Intact
        };
        Arrival { at, integrity }
    }

    fn delay(&mut self, config: &LinkConfig) -> Duration {
        match config.jitter {
            Jitter::None => config.delay,
            Jitter::Uniform(spread) => {
                let within = spread.mul_f64(2.0 * self.random.unit());
                (config.delay + within).saturating_sub(spread)
            }
            Jitter::Normal(deviation) => {
                // Box-Muller; 1 - u keeps the logarithm finite.
                let radius = (-2.0 * (1.0 - self.random.unit()).ln()).sqrt();
                let z = radius * (std::f64::consts::TAU * self.random.unit()).cos();
                let shift = deviation.mul_f64(z.abs());
                if z < 0.0 { config.delay.saturating_sub(shift) } else { config.delay + shift }
            }
        }
    }
}
