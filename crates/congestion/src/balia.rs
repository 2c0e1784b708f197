//! BALIA, the balanced linked adaptation (Peng, Walid, Hwang, Low): between LIA's friendliness and OLIA's speed.

use std::time::Duration;

use plait_base::board::Board;
use plait_base::{Instant, PathId};

use crate::controller::{Acked, Congestion, CongestionController, CongestionKind, ControllerFactory};
use crate::coupled;
use crate::window::{SlowStart, Window};

/// Largest alpha that deepens a reduction: a window keeps at least a quarter.
const ALPHA_LOSS_MAX: f64 = 1.5;

/// Builds [`Balia`].
#[derive(Clone, Copy, Debug, Default)]
pub struct BaliaFactory {
    /// How the first slow start of a path ends; HyStart++ by default.
    pub slow_start: SlowStart,
}

impl ControllerFactory for BaliaFactory {
    fn name(&self) -> &'static str {
        "balia"
    }

    fn build(&self, path: PathId, _now: Instant, mss: u64) -> Box<dyn CongestionController> {
        Box::new(Balia::new(path, mss, self.slow_start))
    }
}

/// One path's BALIA.
#[derive(Clone, Debug)]
pub struct Balia {
    path: PathId,
    window: Window,
    /// Smoothed RTT of the last ACK; zero before it.
    rtt: Duration,
}

/// This path's part in the sum of all rates.
struct Share {
    /// x_r, segments per second.
    rate: f64,
    /// Sum of all x_p.
    rates: f64,
    /// alpha_r = max x_p / x_r, at least 1.
    alpha: f64,
    /// RTT, seconds.
    rtt: f64,
}

impl Balia {
    /// A controller for `path` with an initial window for datagrams of `mss` bytes.
    pub fn new(path: PathId, mss: u64, slow_start: SlowStart) -> Self {
        Self { path, window: Window::new(mss, slow_start), rtt: Duration::ZERO }
    }

    fn share(&self, board: &Board) -> Option<Share> {
        let this = coupled::this(&self.window, self.rtt)?;
        let own = coupled::own(self.path, &self.window, self.rtt, 0, board);
        let rates = coupled::siblings(&own, board).map(|s| s.rate());
        let fastest = rates.clone().fold(this.rate(), f64::max);
        Some(Share { rate: this.rate(), rates: rates.sum(), alpha: fastest / this.rate(), rtt: this.rtt })
    }
}

impl CongestionController for Balia {
    fn name(&self) -> &'static str {
        "balia"
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
        self.rtt = ack.rtt.smoothed;
        let bytes = self.window.slow_start(ack);
        if bytes == 0 {
            return;
        }
        let Some(s) = self.share(board) else { return };
        let increase = s.rate / (s.rtt * s.rates * s.rates) * ((1.0 + s.alpha) / 2.0) * ((4.0 + s.alpha) / 5.0);
        self.window.add(increase * bytes as f64);
    }

    fn on_congestion(&mut self, event: &Congestion, board: &Board) {
        let alpha = self.share(board).map_or(1.0, |s| s.alpha);
        let kept = self.window.bytes() as f64 * (1.0 - alpha.min(ALPHA_LOSS_MAX) / 2.0);
        match event.kind {
            CongestionKind::Loss | CongestionKind::Ecn => self.window.reduce(kept as u64),
            CongestionKind::Persistent => self.window.collapse(kept as u64),
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
#[path = "balia/tests.rs"]
mod tests;
