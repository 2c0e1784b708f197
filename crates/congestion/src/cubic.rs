//! CUBIC (RFC 9438): growth by time since the last congestion event, not by round trips.

use std::time::Duration;

use plait_base::shared_metrics::SharedPathMetrics;
use plait_base::{Instant, PathId};

use crate::controller::{Acked, Congestion, CongestionController, CongestionKind, ControllerFactory, Limit};
use crate::math::cbrt;
use crate::window::{SlowStart, Window};

/// RFC 9438 4.1: C, segments per cubed second.
const C: f64 = 0.4;
/// RFC 9438 4.6: the multiplicative decrease factor.
const BETA: f64 = 0.7;
/// RFC 9438 4.3: additive increase that makes the Reno-friendly estimate as aggressive as Reno with [`BETA`].
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// Builds a [`Cubic`] for each path, with the search for the end of slow start that it is given.
#[derive(Clone, Copy, Debug, Default)]
pub struct CubicFactory {
    /// How the first slow start ends; at the onset of a queue by default.
    pub slow_start: SlowStart,
}

impl ControllerFactory for CubicFactory {
    fn name(&self) -> &'static str {
        "cubic"
    }

    fn build(&self, _path: PathId, _now: Instant, mss: u64) -> Box<dyn CongestionController> {
        Box::new(Cubic::new(mss, self.slow_start))
    }
}

/// How much of one CUBIC flow's growth a path takes: 1 on its own, less among coupled paths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Gain {
    /// Part of [`C`].
    pub(crate) curve: f64,
    /// Part of the Reno-friendly increase, [`ALPHA`] or 1.
    pub(crate) friendly: f64,
    /// Part of the window from which the stage after slow start begins: the path waits until the curve has come up to it.
    pub(crate) start: f64,
}

impl Default for Gain {
    fn default() -> Self {
        Self { curve: 1.0, friendly: 1.0, start: 1.0 }
    }
}

/// A stage of congestion avoidance: the curve and the Reno-friendly estimate. Windows in segments.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Epoch {
    /// t_epoch: when the stage began, moved forward by the time in which the application was the limit.
    began: Instant,
    /// W_max: where the curve has its plateau.
    plateau: f64,
    /// K: seconds from the beginning to the plateau.
    k: f64,
    /// W_est: what Reno would have.
    estimate: f64,
    /// The curve's part of [`C`].
    gain: f64,
}

impl Epoch {
    /// The same on a curve with `gain` times C.
    fn with_gain(began: Instant, window: f64, plateau: f64, gain: f64) -> Self {
        if window < plateau {
            Self { began, plateau, k: cbrt((plateau - window) / (C * gain)), estimate: window, gain }
        } else {
            // RFC 9438 4.8, 4.10: no reduction to recover from, the curve begins at its plateau.
            Self { began, plateau: window, k: 0.0, estimate: window, gain }
        }
    }

    /// RFC 9438 4.2, W_cubic: the curve's window, segments, `t` seconds into the stage.
    fn curve(&self, t: f64) -> f64 {
        let d = t - self.k;
        C * self.gain * d * d * d + self.plateau
    }
}

/// What a false congestion event would have to give back.
#[derive(Clone, Copy, Debug)]
struct Before {
    bytes: u64,
    ssthresh: u64,
    plateau: f64,
    prior: f64,
    epoch: Option<Epoch>,
}

/// The window and the plateau before a part of them was given to others.
#[derive(Clone, Copy, Debug)]
struct Given {
    bytes: u64,
    plateau: f64,
}

/// One path's CUBIC.
#[derive(Clone, Debug)]
pub struct Cubic {
    window: Window,
    /// W_max after the last congestion event, segments; 0 when there is none to return to.
    plateau: f64,
    /// cwnd_prior, segments: the window at the last congestion event.
    prior: f64,
    epoch: Option<Epoch>,
    /// Since when the application, not the window, has been the limit.
    limited_since: Option<Instant>,
    before: Option<Box<Before>>,
    /// What the newest cut left, where a part of that was given to others.
    given: Option<Given>,
}

impl Cubic {
    /// A controller with an initial window for datagrams of `mss` bytes.
    pub fn new(mss: u64, slow_start: SlowStart) -> Self {
        Self {
            window: Window::new(mss, slow_start),
            plateau: 0.0,
            prior: 0.0,
            epoch: None,
            limited_since: None,
            before: None,
            given: None,
        }
    }

    /// Takes in an ACK frame's news; grows by `gain` of what one flow would.
    pub(crate) fn grow(&mut self, ack: &Acked, gain: Gain) {
        let bytes = self.window.slow_start(ack);
        if ack.limit == Limit::Application {
            if self.epoch.is_some() {
                self.limited_since.get_or_insert(ack.now);
            }
        } else if bytes > 0 {
            self.avoid(ack, bytes, gain);
        }
    }

    /// True before the first congestion event.
    pub(crate) fn is_uncut(&self) -> bool {
        self.prior == 0.0
    }

    /// Of what the newest cut left, keeps `share`, and aims at as much of its plateau: the rest may be others'.
    pub(crate) fn give_way(&mut self, share: f64) {
        self.given = Some(Given { bytes: self.window.bytes(), plateau: self.plateau });
        self.plateau *= share;
        self.window.reduce((self.window.bytes() as f64 * share) as u64);
    }

    /// Takes back what was given after the newest cut: it was nobody else's.
    pub(crate) fn take_back(&mut self) {
        if let Some(Given { bytes, plateau }) = self.given.take() {
            self.window.restore(bytes, bytes);
            self.plateau = plateau;
            self.epoch = None;
        }
    }

    /// The window with its slow start, in bytes and segments.
    pub(crate) fn size(&self) -> &Window {
        &self.window
    }

    /// Makes all that is kept in segments `times` as large; the stage begins anew.
    fn scale(&mut self, times: f64) {
        self.plateau *= times;
        self.prior *= times;
        (self.epoch, self.limited_since) = (None, None);
        if let Some(given) = &mut self.given {
            given.plateau *= times;
        }
        if let Some(before) = &mut self.before {
            before.plateau *= times;
            before.prior *= times;
            before.epoch = None;
        }
    }

    fn avoid(&mut self, ack: &Acked, bytes: u64, gain: Gain) {
        let window = self.window.segments();
        let start = if self.prior == 0.0 { gain.start } else { 1.0 };
        let fresh = || Epoch::with_gain(ack.now, window * start, self.plateau, gain.curve);
        let mut epoch = self.epoch.filter(|e| !has_moved(e.gain, gain.curve)).unwrap_or_else(fresh);
        if let Some(since) = self.limited_since.take() {
            // RFC 9438 5.8: time without use of the window does not move it along the curve.
            epoch.began = (epoch.began + ack.now.since(since)).min(ack.now);
        }
        let acked = bytes as f64 / self.window.mss() as f64;
        // RFC 9438 4.3: as aggressive as Reno, from cwnd_prior on with Reno's own increase.
        let alpha = if epoch.estimate >= self.prior { 1.0 } else { ALPHA };
        epoch.estimate += alpha * gain.friendly * acked / window;
        let t = seconds(ack.now.since(epoch.began));
        let growth = if epoch.curve(t) < epoch.estimate {
            epoch.estimate - window
        } else {
            // RFC 9438 4.4, 4.5: towards the curve one RTT ahead, at most half a window per RTT.
            let target = epoch.curve(t + seconds(ack.rtt.own())).clamp(window, 1.5 * window);
            (target - window) / window * acked
        };
        self.window.add(growth.max(0.0) * self.window.mss() as f64);
        self.epoch = Some(epoch);
    }

    /// A congestion event that a packet of `sent_at` shows: the window keeps [`BETA`] of what it was then.
    pub(crate) fn cut(&mut self, sent_at: Instant) {
        let window = self.window.segments();
        self.before = Some(Box::new(Before {
            bytes: self.window.bytes(),
            ssthresh: self.window.ssthresh(),
            plateau: self.plateau,
            prior: self.prior,
            epoch: self.epoch,
        }));
        // RFC 9438 4.7: fast convergence gives room to newer flows.
        self.plateau = if window < self.plateau { window * (1.0 + BETA) / 2.0 } else { window };
        self.prior = window;
        self.epoch = None;
        self.limited_since = None;
        self.given = None;
        self.window.reduce(self.window.kept(BETA, sent_at));
    }
}

impl CongestionController for Cubic {
    fn name(&self) -> &'static str {
        "cubic"
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
        self.grow(ack, Gain::default());
    }

    fn on_congestion(&mut self, event: &Congestion, _shared: &SharedPathMetrics) {
        match event.kind {
            CongestionKind::Loss | CongestionKind::Ecn => self.cut(event.sent_at),
            CongestionKind::Persistent => {
                // RFC 9438 4.8: the stage after a time-out begins at its own plateau.
                self.window.collapse((self.window.bytes() as f64 * BETA) as u64);
                (self.plateau, self.epoch, self.limited_since, self.before) = (0.0, None, None, None);
                self.given = None;
            }
        }
    }

    fn on_max_datagram_bytes(&mut self, mss: u64) {
        // What is kept in segments keeps its bytes.
        let scale = self.window.mss() as f64 / mss.max(1) as f64;
        self.window.on_max_datagram_bytes(mss);
        self.scale(scale);
    }

    fn on_longer_way_back(&mut self, times: f64) {
        (self.before, self.given) = (None, None);
        self.window.lengthen(times);
        self.scale(times);
    }

    fn on_spurious(&mut self) {
        // RFC 9438 4.9.1
        if let Some(before) = self.before.take() {
            self.window.restore(before.bytes, before.ssthresh);
            (self.plateau, self.prior, self.epoch) = (before.plateau, before.prior, before.epoch);
            self.given = None;
        }
    }
}

/// True where a stage's part of C no longer fits: other paths joined or left, or their windows moved.
fn has_moved(was: f64, is: f64) -> bool {
    (is - was).abs() > was / 4.0
}

fn seconds(d: Duration) -> f64 {
    d.as_nanos() as f64 / 1e9
}

#[cfg(test)]
#[path = "cubic/tests.rs"]
mod tests;
