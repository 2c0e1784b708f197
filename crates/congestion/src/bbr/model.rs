//! What BBR believes of its path: rounds, bandwidth, smallest RTT, what loss allows in flight, aggregation of acks.

use std::time::Duration;

use plait_base::Instant;

use crate::controller::{RateSample, RttSample};

/// MinRTTFilterLen: how long a smallest RTT holds.
const MIN_RTT_LIFE: Duration = Duration::from_secs(10);
/// ProbeRTTInterval: how long a path may go without showing its smallest RTT.
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
/// Half of ExtraAckedFilterLen, rounds.
const EXTRA_ROUNDS: u32 = 5;
/// BBR.Beta: what a round with losses leaves of the short-term bounds.
const BETA: f64 = 0.7;
/// LossThresh: more than this share lost in a round is too much.
pub(super) const LOSS_MAX: f64 = 0.02;
/// Standard deviations beyond it that may be chance where no queue shows.
const CHANCE: f64 = 2.0;
/// A queue shows from this part of the smallest RTT on.
const QUEUE_PART: f64 = 0.125;

/// What may be lost of what was in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct LossLimit {
    mss: f64,
    chance: f64,
}

impl LossLimit {
    /// IsInflightTooHigh: whether more than LossThresh is lost, and where no queue shows also more than chance explains: of
    /// fewer than fifty datagrams each single one is over LossThresh.
    pub(super) fn is_passed(self, lost: u64, flight: u64) -> bool {
        let allowed = LOSS_MAX * flight as f64 / self.mss;
        lost as f64 / self.mss > allowed + self.chance * allowed.sqrt()
    }
}

/// Part of `bytes`.
pub(super) fn share(bytes: u64, factor: f64) -> u64 {
    (bytes as f64 * factor) as u64
}

/// Packet-timed round trips: a round ends when a packet is acked that left after it began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rounds {
    end_bytes: u64,
    /// The latest ack began a round.
    pub(super) started: bool,
}

impl Rounds {
    pub(super) fn on_acked(&mut self, delivery: &RateSample) {
        self.started = delivery.prior_bytes >= self.end_bytes;
        if self.started {
            self.restart(delivery.total_bytes);
        }
    }

    /// A round begins now.
    pub(super) fn restart(&mut self, delivered_bytes: u64) {
        // A round without a byte is none.
        self.end_bytes = delivered_bytes.max(1);
    }
}

/// Largest bandwidth of this ProbeBW cycle and the one before (MaxBwFilterLen 2), bytes per second.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MaxBandwidth {
    cycles: [u64; 2],
}

impl MaxBandwidth {
    pub(super) fn get(&self) -> u64 {
        self.cycles[0].max(self.cycles[1])
    }

    pub(super) fn on_sample(&mut self, bytes_per_s: u64) {
        self.cycles[0] = self.cycles[0].max(bytes_per_s);
    }

    /// The path goes on with this part of its rate.
    pub(super) fn scale(&mut self, kept: f64) {
        self.cycles = self.cycles.map(|rate| share(rate, kept));
    }

    /// A cycle ends; an empty one leaves everything as it is.
    pub(super) fn advance(&mut self) {
        if self.cycles[0] > 0 {
            self.cycles = [0, self.cycles[0]];
        }
    }
}

/// The smallest RTT of ten seconds, renewed at least each five.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MinRtt {
    min: Option<Duration>,
    min_at: Instant,
    recent: Option<Duration>,
    smoothed: Duration,
    pub(super) recent_at: Instant,
    /// The latest ack came with no smallest RTT seen for long enough.
    pub(super) expired: bool,
}

impl MinRtt {
    pub(super) fn get(&self) -> Option<Duration> {
        self.min
    }

    /// What may be lost now, in datagrams of `mss` bytes.
    pub(super) fn loss_limit(&self, mss: u64) -> LossLimit {
        let is_short = self.min.is_some_and(|min| self.smoothed <= min.mul_f64(1.0 + QUEUE_PART));
        LossLimit { mss: mss as f64, chance: if is_short { CHANCE } else { 0.0 } }
    }

    pub(super) fn on_sample(&mut self, now: Instant, sample: &RttSample) {
        let rtt = sample.latest;
        self.smoothed = sample.smoothed;
        self.expired = self.recent.is_some() && now.since(self.recent_at) > PROBE_RTT_INTERVAL;
        if self.expired || self.recent.is_none_or(|recent| rtt < recent) {
            (self.recent, self.recent_at) = (Some(rtt), now);
        }
        let stale = now.since(self.min_at) > MIN_RTT_LIFE;
        if stale || self.min.is_none_or(|min| self.recent.is_some_and(|recent| recent < min)) {
            (self.min, self.min_at) = (self.recent, self.recent_at);
        }
    }
}

/// How far acks come in heaps: bytes acked beyond what the bandwidth explains, largest of five to ten rounds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ExtraAcked {
    since: Instant,
    bytes: u64,
    halves: [u64; 2],
    rounds: u32,
}

impl ExtraAcked {
    pub(super) fn get(&self) -> u64 {
        self.halves[0].max(self.halves[1])
    }

    pub(super) fn on_acked(&mut self, now: Instant, bytes: u64, bytes_per_s: u64, limit: u64, round: bool) {
        self.rounds += u32::from(round);
        if self.rounds >= EXTRA_ROUNDS {
            self.rounds = 0;
            self.halves = [0, self.halves[0]];
        }
        let expected = share(bytes_per_s, now.since(self.since).as_secs_f64());
        let explained = self.bytes <= expected;
        if explained {
            (self.since, self.bytes) = (now, 0);
        }
        self.bytes += bytes;
        let extra = self.bytes - if explained { 0 } else { expected };
        self.halves[0] = self.halves[0].max(extra.min(limit));
    }
}

/// What losses say: upper bound from probing, lower bounds until the next probe, signals of the present round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// inflight_longterm: most that may be in flight without losing too much, bytes; all ones before it is known.
    pub(super) inflight_long: u64,
    inflight_short: u64,
    bandwidth_short: u64,
    inflight_latest: u64,
    bandwidth_latest: u64,
    round_end_bytes: u64,
    delivered_bytes: u64,
    /// Bytes lost in the present round; all ones after a mark.
    lost_bytes: u64,
    round_started: bool,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            inflight_long: u64::MAX,
            inflight_short: u64::MAX,
            bandwidth_short: u64::MAX,
            inflight_latest: 0,
            bandwidth_latest: 0,
            round_end_bytes: 0,
            delivered_bytes: 0,
            lost_bytes: 0,
            round_started: false,
        }
    }
}

impl Bounds {
    /// Bytes delivered within the present round, at most.
    pub(super) fn inflight_latest(&self) -> u64 {
        self.inflight_latest
    }

    /// Short-term bound on what is in flight.
    pub(super) fn inflight_short(&self) -> u64 {
        self.inflight_short
    }

    /// The bandwidth to reckon with, given the largest one.
    pub(super) fn bandwidth(&self, max: u64) -> u64 {
        max.min(self.bandwidth_short)
    }

    /// UpdateLatestDeliverySignals: the most that this round delivered, as a rate and in bytes.
    pub(super) fn on_acked(&mut self, delivery: &RateSample, bytes_per_s: u64) {
        self.bandwidth_latest = self.bandwidth_latest.max(bytes_per_s);
        self.inflight_latest = self.inflight_latest.max(delivery.bytes());
        self.delivered_bytes = delivery.total_bytes;
        self.round_started = delivery.prior_bytes >= self.round_end_bytes;
        if self.round_started {
            self.round_end_bytes = delivery.total_bytes.max(1);
        }
    }

    /// Bytes delivered by the newest ack.
    pub(super) fn delivered_bytes(&self) -> u64 {
        self.delivered_bytes
    }

    /// Bytes lost, or all ones for a mark: the round that the first of them show ends with what was delivered by now.
    pub(super) fn on_congestion(&mut self, bytes: u64) {
        if self.lost_bytes == 0 {
            self.round_end_bytes = self.delivered_bytes.max(1);
        }
        self.lost_bytes = self.lost_bytes.saturating_add(bytes);
    }

    /// AdaptLowerBoundsFromCongestion, at the end of a round; not while probing for more.
    pub(super) fn adapt(&mut self, probing: bool, max_bandwidth: u64, window: u64, limit: LossLimit) {
        if !self.round_started {
            return;
        }
        if limit.is_passed(self.lost_bytes, self.inflight_latest) && !probing {
            let bandwidth = if self.bandwidth_short == u64::MAX { max_bandwidth } else { self.bandwidth_short };
            let inflight = if self.inflight_short == u64::MAX { window } else { self.inflight_short };
            self.bandwidth_short = self.bandwidth_latest.max(share(bandwidth, BETA));
            self.inflight_short = self.inflight_latest.max(share(inflight, BETA));
        }
        self.lost_bytes = 0;
    }

    /// AdvanceLatestDeliverySignals: a new round begins with the sample at hand.
    pub(super) fn advance(&mut self, delivery: &RateSample, bytes_per_s: u64) {
        if self.round_started {
            (self.bandwidth_latest, self.inflight_latest) = (bytes_per_s, delivery.bytes());
        }
    }

    /// ResetShortTermModel: the newest losses bind no longer.
    pub(super) fn reset_short(&mut self) {
        (self.bandwidth_short, self.inflight_short) = (u64::MAX, u64::MAX);
    }

    /// The newest losses were none: bounds are at least what they were, and the round has lost nothing.
    pub(super) fn restore(&mut self, before: &Self) {
        self.inflight_long = self.inflight_long.max(before.inflight_long);
        self.inflight_short = self.inflight_short.max(before.inflight_short);
        self.bandwidth_short = self.bandwidth_short.max(before.bandwidth_short);
        self.lost_bytes = 0;
    }

    /// ResetCongestionSignals: forgets the losses and the deliveries of the round.
    pub(super) fn reset_signals(&mut self) {
        (self.lost_bytes, self.bandwidth_latest, self.inflight_latest) = (0, 0, 0);
    }
}
