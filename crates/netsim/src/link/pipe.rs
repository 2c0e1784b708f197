//! The wire behind the queue: delay, jitter, loss, duplicates, damage and disorder.

use std::time::Duration;

use plait_base::{Ecn, Instant, Random};

use crate::link::config::{Jitter, LinkConfig, LossPlace, Order};
use crate::link::loss::LossDraw;
use crate::link::stats::LinkStats;
use crate::link::verdict::{Arrival, Delivery, DropCause, Integrity, Outcome};

/// In how many spreads a drifting delay goes from one draw to the next, which is two spreads away at most.
const DRIFT_SPREADS: u32 = 4;

/// A line between two draws in -1..=1, on which a drifting delay lies.
#[derive(Clone, Copy, Debug, Default)]
struct Drift {
    from: f64,
    to: f64,
    /// When it was at `from`; none before the first datagram.
    since: Option<Instant>,
}

impl Drift {
    /// Where it is at `now`, on lines that each take `span`.
    fn at(&mut self, now: Instant, span: Duration, random: &mut Random) -> f64 {
        let mut draw = || 2.0 * random.unit() - 1.0;
        let passed = |since| now.since(since).as_secs_f64() / span.as_secs_f64();
        let ahead = self.since.map_or(f64::INFINITY, passed);
        if ahead >= 2.0 {
            *self = Self { from: draw(), to: draw(), since: Some(now) };
        } else if let Some(since) = self.since.filter(|_| ahead >= 1.0) {
            *self = Self { from: self.to, to: draw(), since: Some(since + span) };
        }
        let ahead = self.since.map_or(0.0, passed);
        self.from + (self.to - self.from) * ahead
    }
}

/// State of the wire.
#[derive(Clone, Debug)]
pub(crate) struct Pipe {
    random: Random,
    loss: LossDraw,
    drift: Drift,
    last_arrival: Instant,
}

impl Pipe {
    pub(crate) fn new(random: Random) -> Self {
        Self { random, loss: LossDraw::default(), drift: Drift::default(), last_arrival: Instant::ZERO }
    }

    /// True when the loss model takes a datagram at `place`, seen there at this time and with these bytes.
    pub(crate) fn loses(&mut self, config: &LinkConfig, place: LossPlace, datagram: (Instant, u64)) -> bool {
        config.loss_place == place && self.loss.takes(&config.loss, datagram, &mut self.random)
    }

    /// A datagram of `bytes` has left the near end at `departure`.
    pub(crate) fn carry(
        &mut self,
        config: &LinkConfig,
        stats: &mut LinkStats,
        (departure, bytes, ecn): (Instant, u64, Option<Ecn>),
    ) -> Outcome {
        if self.loses(config, LossPlace::Wire, (departure, bytes)) {
            stats.on_drop(DropCause::Loss);
            return Outcome::Dropped(DropCause::Loss);
        }
        stats.forwarded_packets += 1;
        stats.forwarded_bytes += bytes;
        let mut at = departure + self.delay(config, departure);
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

    fn delay(&mut self, config: &LinkConfig, departure: Instant) -> Duration {
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
            Jitter::Drift(spread) if spread.is_zero() => config.delay,
            Jitter::Drift(spread) => {
                let place = self.drift.at(departure, spread * DRIFT_SPREADS, &mut self.random);
                (config.delay + spread.mul_f64(1.0 + place)).saturating_sub(spread)
            }
        }
    }
}
