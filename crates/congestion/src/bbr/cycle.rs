//! The states of BBR and the clockwork of its bandwidth probing.

use std::time::Duration;

use plait_base::Instant;

use super::model::share;

/// ProbeBW_UP may double its step so often.
const SLOPE_ROUNDS_MAX: u32 = 30;
/// Rounds after which a flow probes however long they last, so that Reno and CUBIC get along with it.
const RENO_ROUNDS_MAX: u64 = 63;
/// Startup ends after so many rounds without growth by a quarter.
const FULL_ROUNDS: u32 = 3;
const FULL_GROWTH: f64 = 1.25;

/// Where BBR stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum BbrState {
    /// Doubling per round until the bandwidth no longer grows.
    #[default]
    Startup,
    /// Letting the queue of that go.
    Drain,
    /// ProbeBW_DOWN: sending less than arrives, until the queue is gone.
    Down,
    /// ProbeBW_CRUISE: as fast as bytes are delivered, with headroom for others.
    Cruise,
    /// ProbeBW_REFILL: one round that fills the pipe again.
    Refill,
    /// ProbeBW_UP: more and more, until losses or a queue show.
    Up,
    /// ProbeRTT: next to nothing in flight, so that the smallest RTT shows.
    ProbeRtt,
}

impl BbrState {
    /// What the paced rate is of the bandwidth.
    pub(super) fn pacing_gain(self) -> f64 {
        match self {
            Self::Startup => 2.77,
            Self::Drain => 0.5,
            Self::Down => 0.9,
            Self::Cruise | Self::Refill | Self::ProbeRtt => 1.0,
            Self::Up => 1.25,
        }
    }

    /// Congestion window gain.
    pub(super) fn window_gain(self) -> f64 {
        match self {
            Self::ProbeRtt => 0.5,
            Self::Up => 2.25,
            _ => 2.0,
        }
    }

    /// One of the four of ProbeBW.
    pub(super) fn is_probe_bandwidth(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }

    /// Seeking more bandwidth: losses now say nothing of the bounds below it.
    pub(super) fn is_seeking(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }
}

/// Which acks come in: those of a probe, or of what went before and after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum AckPhase {
    #[default]
    Init,
    Refilling,
    Starting,
    Feedback,
    Stopping,
}

/// Whether the pipe is full: the bandwidth stopped growing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    bytes_per_s: u64,
    rounds: u32,
    /// It is, as far as this probe could tell.
    pub(super) now: bool,
    /// It was once since Startup.
    pub(super) reached: bool,
}

impl FullPipe {
    /// A new probe, from this rate on.
    pub(super) fn restart(&mut self, bytes_per_s: u64) {
        (self.bytes_per_s, self.rounds, self.now) = (bytes_per_s, 0, false);
    }

    /// The rate sample of an ack that began a round.
    pub(super) fn on_round(&mut self, bytes_per_s: u64) {
        if bytes_per_s as f64 >= self.bytes_per_s as f64 * FULL_GROWTH {
            return self.restart(bytes_per_s);
        }
        self.rounds += 1;
        self.now = self.rounds >= FULL_ROUNDS;
        self.reached |= self.now;
    }

    /// The path goes on with this part of its rate.
    pub(super) fn scale(&mut self, kept: f64) {
        self.bytes_per_s = share(self.bytes_per_s, kept);
    }

    /// Losses or marks said so.
    pub(super) fn set(&mut self) {
        (self.now, self.reached) = (true, true);
    }
}

/// When to probe next, and how fast the upper bound may grow meanwhile.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cycle {
    pub(super) since: Instant,
    wait: Duration,
    pub(super) rounds: u64,
    /// Losses now are the probe's.
    pub(super) probing: bool,
    pub(super) acks: AckPhase,
    up_rounds: u32,
    up_bytes: u64,
    up_step_bytes: u64,
    /// What the paths that probe in step with this one have in flight, in parts of what this one has.
    pub(super) others: f64,
}

impl Cycle {
    /// PickProbeWait: two to three seconds, a round more or less; `dice` is any number.
    pub(super) fn restart(&mut self, now: Instant, dice: u64) {
        self.since = now;
        self.rounds = dice & 1;
        self.wait = Duration::from_secs(2) + Duration::from_millis((dice >> 1) % 1000);
        self.acks = AckPhase::Stopping;
    }

    /// IsTimeToProbeBW; a flow of so many packets in flight, besides those of others.
    pub(super) fn is_due(&self, now: Instant, flight_packets: u64) -> bool {
        let flight_packets = self.of_all(flight_packets);
        now.since(self.since) > self.wait || self.rounds >= flight_packets.min(RENO_ROUNDS_MAX)
    }

    /// So much of this path is so much of all that probe in step.
    fn of_all(&self, own: u64) -> u64 {
        share(own, 1.0 + self.others)
    }

    /// This path's part of what all may have together that probe in step.
    pub(super) fn part(&self, all: u64) -> u64 {
        share(all, 1.0 / (1.0 + self.others))
    }

    pub(super) fn refill(&mut self) {
        (self.up_rounds, self.up_bytes, self.acks) = (0, 0, AckPhase::Refilling);
    }

    /// RaiseInflightLongtermSlope: twice as steep each round.
    pub(super) fn steepen(&mut self, window: u64, mss: u64) {
        self.up_step_bytes = (self.of_all(window) / (1 << self.up_rounds)).max(mss);
        self.up_rounds = (self.up_rounds + 1).min(SLOPE_ROUNDS_MAX);
    }

    /// How far the upper bound moves for so many acked bytes.
    pub(super) fn climb(&mut self, acked: u64, mss: u64) -> u64 {
        self.up_bytes += acked;
        let steps = self.up_bytes / self.up_step_bytes.max(1);
        self.up_bytes %= self.up_step_bytes.max(1);
        steps * mss
    }
}
