//! CUBIC on each path, coupled among the paths that are found to wait in the same queue.
//!
//! Every path begins as a CUBIC of its own, so that short transfers and disjoint paths lose nothing. Once the cuts of one
//! path are felt on another (`shared_queue.rs`), the two act as one CUBIC flow: each grows by its share of what one
//! flow would, and a cut of one is followed by the other, as RFC 8699 does it for media flows. Whether they still share is
//! tested with every cut, also of coupled paths: a path follows only a cut that it felt. Paths that stop feeling each other,
//! after a change of route, are apart again after a few cuts.

use std::time::Duration;

use plait_base::shared_metrics::{PathMetrics, SharedPathMetrics};
use plait_base::{Instant, PathId};

use crate::controller::{Acked, Congestion, CongestionController, CongestionKind, ControllerFactory};
use crate::cubic::{Cubic, Gain};
use crate::shared_queue::SharedQueue;
use crate::window::SlowStart;

/// Builds the controller `auto`.
#[derive(Clone, Copy, Debug, Default)]
pub struct AutoFactory {
    /// How the first slow start of a path ends; at the onset of a queue by default.
    pub slow_start: SlowStart,
}

impl ControllerFactory for AutoFactory {
    fn name(&self) -> &'static str {
        "auto"
    }

    fn build(&self, path: PathId, _now: Instant, mss: u64) -> Box<dyn CongestionController> {
        Box::new(Auto::new(path, mss, self.slow_start))
    }
}

/// One path's CUBIC with what it knows of shared queues.
#[derive(Clone, Debug)]
struct Auto {
    cubic: Cubic,
    queue: SharedQueue,
    path: PathId,
    /// Smoothed RTT of the last ACK; zero before it.
    rtt: Duration,
}

impl Auto {
    /// A controller for `path` with an initial window for datagrams of `mss` bytes.
    fn new(path: PathId, mss: u64, slow_start: SlowStart) -> Self {
        Self { cubic: Cubic::new(mss, slow_start), queue: SharedQueue::new(path), path, rtt: Duration::ZERO }
    }

    /// This path's part in the windows of all that share its queue.
    fn gain(&self, shared: &SharedPathMetrics) -> Gain {
        let own = self.cubic.size().segments();
        let siblings = shared.established().filter(|p| p.path != self.path && self.queue.is_shared(p.path, shared));
        let others: f64 = siblings.map(|p| p.window_bytes as f64 / p.max_datagram_bytes.max(1) as f64).sum();
        let share = own / (own + others);
        Gain { curve: share, friendly: share }
    }
}

impl CongestionController for Auto {
    fn name(&self) -> &'static str {
        "auto"
    }

    fn window(&self) -> u64 {
        self.cubic.window()
    }

    fn ssthresh(&self) -> u64 {
        self.cubic.ssthresh()
    }

    fn pacing_rate(&self, rtt: Duration) -> Option<u64> {
        self.cubic.pacing_rate(rtt)
    }

    fn on_acked(&mut self, ack: &Acked, shared: &SharedPathMetrics) {
        self.rtt = ack.rtt.smoothed;
        if self.queue.on_acked(ack, shared) {
            self.queue.on_reduced(ack.now);
            self.cubic.cut();
        }
        self.cubic.grow(ack, self.gain(shared));
    }

    fn on_congestion(&mut self, event: &Congestion, shared: &SharedPathMetrics) {
        match event.kind {
            CongestionKind::Loss | CongestionKind::Ecn => self.queue.on_cut(event.now, self.rtt),
            CongestionKind::Persistent => self.queue.on_reduced(event.now),
        }
        self.cubic.on_congestion(event, shared);
    }

    fn on_max_datagram_bytes(&mut self, mss: u64) {
        self.cubic.on_max_datagram_bytes(mss);
    }

    fn add_to_metrics(&self, metrics: &mut PathMetrics) {
        (metrics.cut, metrics.shares_with) = (self.queue.cut(), self.queue.shares_with());
    }

    fn on_spurious(&mut self) {
        self.queue.on_undone();
        self.cubic.on_spurious();
    }

    fn is_coupled(&self) -> bool {
        true
    }
}

#[cfg(test)]
#[path = "auto/tests.rs"]
mod tests;
