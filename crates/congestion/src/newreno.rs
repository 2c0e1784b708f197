//! NewReno as RFC 9002 appendix B gives it.

use std::time::Duration;

use plait_base::shared_metrics::SharedPathMetrics;
use plait_base::{Instant, PathId};

use crate::controller::{Acked, Congestion, CongestionController, CongestionKind, ControllerFactory};
use crate::window::{SlowStart, Window};

/// Builds the controller `newreno`.
#[derive(Clone, Copy, Debug, Default)]
pub struct NewRenoFactory {
    /// How the first slow start ends; at the onset of a queue by default.
    pub slow_start: SlowStart,
}

impl ControllerFactory for NewRenoFactory {
    fn name(&self) -> &'static str {
        "newreno"
    }

    fn build(&self, _path: PathId, _now: Instant, mss: u64) -> Box<dyn CongestionController> {
        Box::new(NewReno { window: Window::new(mss, self.slow_start), before: None })
    }
}

/// One path's NewReno.
#[derive(Clone, Debug)]
struct NewReno {
    window: Window,
    /// Window and threshold before the last congestion event, bytes.
    before: Option<(u64, u64)>,
}

impl CongestionController for NewReno {
    fn name(&self) -> &'static str {
        "newreno"
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

    fn on_acked(&mut self, ack: &Acked, _shared: &SharedPathMetrics) {
        let bytes = self.window.slow_start(ack);
        if bytes > 0 {
            // RFC 9002 7.3.3: one datagram per window acked.
            self.window.add(self.window.mss() as f64 * bytes as f64 / self.window.bytes() as f64);
        }
    }

    fn on_congestion(&mut self, event: &Congestion, _shared: &SharedPathMetrics) {
        let half = self.window.kept(0.5, event.sent_at);
        match event.kind {
            CongestionKind::Loss | CongestionKind::Ecn => {
                self.before = Some((self.window.bytes(), self.window.ssthresh()));
                self.window.reduce(half);
            }
            CongestionKind::Persistent => {
                self.before = None;
                self.window.collapse(half);
            }
        }
    }

    fn on_max_datagram_bytes(&mut self, mss: u64) {
        self.window.on_max_datagram_bytes(mss);
    }

    fn on_longer_way_back(&mut self, times: f64) {
        self.window.lengthen(times);
        self.before = None;
    }

    fn on_spurious(&mut self) {
        if let Some((bytes, ssthresh)) = self.before.take() {
            self.window.restore(bytes, ssthresh);
        }
    }
}

#[cfg(test)]
#[path = "newreno/tests.rs"]
mod tests;
