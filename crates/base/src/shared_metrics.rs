//! What the paths of one connection publish for each other: coupled controllers read their siblings here.

use std::time::Duration;

use crate::ids::PathId;
use crate::time::Instant;

/// How long after its newest ack a path still counts as in use, in its round trips and those of the path that asks.
const REST_ROUNDS: u32 = 2;

/// One path's published figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathMetrics {
    /// Whose figures these are.
    pub path: PathId,
    /// Congestion window, bytes.
    pub window_bytes: u64,
    /// Slow start threshold, bytes; `u64::MAX` before the first loss.
    pub ssthresh_bytes: u64,
    /// Smoothed RTT; none before the first sample.
    pub rtt: Option<Duration>,
    /// Smallest RTT over the present way back.
    pub rtt_min: Duration,
    /// How much sooner its acks come than by its own way back; zero where they take that.
    pub ack_shortcut: Duration,
    /// Largest datagram, bytes.
    pub max_datagram_bytes: u64,
    /// True while a loss episode lasts (RFC 9002 recovery period).
    pub in_recovery: bool,
    /// True for paths that carry data now: validated, not failed, not closing.
    pub active: bool,
    /// OLIA's l_r: the larger of the bytes acked since the last loss and between the last two losses.
    pub between_losses_bytes: u64,
    /// The newest probe for more bandwidth, where the controller makes such and tells.
    pub probe: Option<Probe>,
    /// How fast it delivers, where the controller tells; zero else.
    pub rates: DeliveryRates,
    /// The newest cut of its window, where the controller tells.
    pub cut: Option<Cut>,
    /// Its RTT samples in sums, where the controller keeps them.
    pub delays: Delays,
    /// Paths that it takes to wait in the same queue, as [`PathId::bit`]s.
    pub shares_with: u64,
    /// When packets of it were last acked; none before the first.
    pub acked_at: Option<Instant>,
}

/// Rates of delivery, as BBR measures them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeliveryRates {
    /// By the newest sample, bytes per second.
    pub newest_bytes_per_s: u64,
    /// The largest of late, bytes per second.
    pub largest_bytes_per_s: u64,
}

/// A probe for more bandwidth, as BBR makes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// When it began: the same for all paths that probe in step.
    pub began: Instant,
    /// When it was over, where too much was lost.
    pub lost_at: Option<Instant>,
}

/// One cut of a path's window after congestion, and what it did to the path's delay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cut {
    /// How many cuts the path has had, this one included.
    pub serial: u32,
    /// When the window was cut.
    pub at: Instant,
    /// The path's smoothed RTT then.
    pub rtt: Duration,
    /// By how many seconds the RTT fell within the next round trips; none until that is known.
    pub fall_s: Option<f64>,
}

/// The course of a path's RTT so far: what two states of it differ by gives the mean of what came between.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Delays {
    /// Integral of the RTT over time, seconds squared, on straight lines between samples.
    area: f64,
    /// The newest sample, and when it came.
    last: Option<(Instant, Duration)>,
    /// Sum of the squares of differences between samples that follow each other, seconds squared.
    rough: f64,
    samples: u64,
}

impl Delays {
    /// Takes in the sample `rtt`.
    #[inline]
    pub fn note(&mut self, now: Instant, rtt: Duration) {
        if let Some((at, before)) = self.last {
            self.area += now.since(at).as_secs_f64() * (before + rtt).as_secs_f64() / 2.0;
            self.rough += rtt.abs_diff(before).as_secs_f64().powi(2);
        }
        self.last = Some((now, rtt));
        self.samples += 1;
    }

    /// Samples that came after `earlier`.
    #[inline]
    pub fn samples_since(&self, earlier: &Self) -> u64 {
        self.samples.saturating_sub(earlier.samples)
    }

    /// The mean square of differences between samples that follow each other, of those that came after `earlier`.
    pub fn roughness_since(&self, earlier: &Self) -> f64 {
        (self.rough - earlier.rough) / self.samples_since(earlier).max(1) as f64
    }

    /// The mean over the time from the newest sample of `earlier` to that of now, seconds; none where that is no time.
    pub fn mean_since(&self, earlier: &Self) -> Option<f64> {
        let time = self.last?.0.since(earlier.last?.0).as_secs_f64();
        (time > 0.0).then(|| (self.area - earlier.area) / time)
    }
}

/// The metrics of one connection's paths, in order of path id.
///
/// ```
/// use plait_base::shared_metrics::{PathMetrics, SharedPathMetrics};
/// use plait_base::PathId;
/// let mut shared = SharedPathMetrics::default();
/// shared.update(PathMetrics { window_bytes: 12_000, ..PathMetrics::new(PathId(1)) });
/// assert_eq!(shared.iter().count(), 1);
/// ```
#[derive(Clone, Debug, Default)]
pub struct SharedPathMetrics {
    paths: Vec<PathMetrics>,
}

impl PathMetrics {
    /// Figures of a path that has not sent yet.
    pub fn new(path: PathId) -> Self {
        Self {
            path,
            window_bytes: 0,
            ssthresh_bytes: u64::MAX,
            rtt: None,
            rtt_min: Duration::ZERO,
            ack_shortcut: Duration::ZERO,
            max_datagram_bytes: crate::limits::MIN_DATAGRAM_BYTES as u64,
            in_recovery: false,
            active: false,
            between_losses_bytes: 0,
            probe: None,
            rates: DeliveryRates::default(),
            cut: None,
            delays: Delays::default(),
            shares_with: 0,
            acked_at: None,
        }
    }

    /// True where the path was heard of lately, as one with the round trip `rtt` sees it: one that rests has no part in any queue.
    #[inline]
    pub fn is_in_use(&self, now: Instant, rtt: Duration) -> bool {
        let rest = (rtt + self.rtt.unwrap_or_default()) * REST_ROUNDS;
        self.acked_at.is_some_and(|at| at + rest >= now)
    }
}

impl SharedPathMetrics {
    /// Gives back the memory that it does not use.
    pub fn shrink_to_fit(&mut self) {
        self.paths.shrink_to_fit();
    }

    /// Replaces the metrics of a path, or adds them.
    pub fn update(&mut self, metrics: PathMetrics) {
        *self.entry(metrics.path) = metrics;
    }

    /// The metrics of a path, to change or to replace; a path that is not among them is added as one that has not sent yet.
    #[inline]
    pub fn entry(&mut self, path: PathId) -> &mut PathMetrics {
        let found = self.paths.iter().position(|p| p.path >= path).unwrap_or(self.paths.len());
        if self.paths.get(found).is_none_or(|p| p.path != path) {
            self.paths.insert(found, PathMetrics::new(path));
        }
        &mut self.paths[found]
    }

    /// Forgets the metrics of a path that was closed.
    pub fn remove(&mut self, path: PathId) {
        self.paths.retain(|p| p.path != path);
    }

    /// The metrics of every path, in order of path id.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &PathMetrics> + Clone {
        self.paths.iter()
    }

    /// Metrics of active paths with an RTT sample: those that coupled formulas sum over.
    #[inline]
    pub fn established(&self) -> impl Iterator<Item = &PathMetrics> + Clone {
        self.paths.iter().filter(|p| p.active && p.rtt.is_some())
    }

    /// One path's metrics.
    #[inline]
    pub fn get(&self, path: PathId) -> Option<&PathMetrics> {
        self.paths.binary_search_by_key(&path, |p| p.path).ok().map(|i| &self.paths[i])
    }
}
