//! LIA, the linked increases algorithm (RFC 6356): as aggressive in sum as one Reno on the best path.

use std::time::Duration;

use plait_base::board::Board;
use plait_base::{Instant, PathId};

use crate::controller::{Acked, Congestion, CongestionController, CongestionKind, ControllerFactory};
use crate::coupled::{self, Sibling};
use crate::window::{SlowStart, Window};

/// Builds [`Lia`].
#[derive(Clone, Copy, Debug, Default)]
pub struct LiaFactory {
    /// How the first slow start of a path ends; HyStart++ by default.
    pub slow_start: SlowStart,
}

impl ControllerFactory for LiaFactory {
    fn name(&self) -> &'static str {
        "lia"
    }

    fn build(&self, path: PathId, _now: Instant, mss: u64) -> Box<dyn CongestionController> {
        Box::new(Lia::new(path, mss, self.slow_start))
    }
}

/// One path's LIA.
#[derive(Clone, Debug)]
pub struct Lia {
    path: PathId,
    window: Window,
}

impl Lia {
    /// A controller for `path` with an initial window for datagrams of `mss` bytes.
    pub fn new(path: PathId, mss: u64, slow_start: SlowStart) -> Self {
        Self { path, window: Window::new(mss, slow_start) }
    }
}

/// RFC 6356 3: alpha divided by the total window: segments per acked segment that all paths grow by.
fn linked_increase(paths: impl Iterator<Item = Sibling> + Clone) -> f64 {
    // alpha / W = max(w_i / rtt_i^2) / (sum of w_i / rtt_i)^2
    let best = paths.clone().map(|s| s.rate() / s.rtt).fold(0.0, f64::max);
    let rates: f64 = paths.map(|s| s.rate()).sum();
    best / (rates * rates)
}

impl CongestionController for Lia {
    fn name(&self) -> &'static str {
        "lia"
    }

    fn window(&self) -> u64 {
        self.window.bytes()
    }

    fn ssthresh(&self) -> u64 {
        self.window.ssthresh()
    }

    fn pacing_rate(&self, rtt: Duration) -> Option<u64> {
        self.window.pacing_rate(rtt)
    }

    fn on_acked(&mut self, ack: &Acked, board: &Board) {
        let bytes = self.window.slow_start(ack);
        let Some(this) = coupled::this(&self.window, ack.rtt.smoothed) else { return };
        if bytes > 0 {
            let own = coupled::own(self.path, &self.window, ack.rtt.smoothed, 0, board);
            // RFC 6356 3: never more aggressive on a path than Reno alone.
            let increase = linked_increase(coupled::siblings(&own, board)).min(1.0 / this.window);
            self.window.add(increase * bytes as f64);
        }
    }

    fn on_congestion(&mut self, event: &Congestion, _board: &Board) {
        let half = self.window.bytes() / 2;
        match event.kind {
            CongestionKind::Loss | CongestionKind::Ecn => self.window.reduce(half),
            CongestionKind::Persistent => self.window.collapse(half),
        }
    }

    fn on_mss(&mut self, mss: u64) {
        self.window.on_mss(mss);
    }

    fn is_coupled(&self) -> bool {
        true
    }
}

#[cfg(test)]
#[path = "lia/tests.rs"]
mod tests;
