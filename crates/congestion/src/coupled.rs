//! What coupled controllers have in common: Reno's window, and what they read of their siblings: all established paths,
//! this one with its live figures.

use std::fmt::Debug;
use std::time::Duration;

use plait_base::PathId;
use plait_base::shared_metrics::{PathMetrics, SharedPathMetrics};

use crate::controller::{Acked, Congestion, CongestionController, CongestionKind, RttSample};
use crate::linked_start::LinkedStart;
use crate::window::{SlowStart, Window};

/// The formulas that tell one coupled controller from another.
pub(crate) trait Rule: Debug + Default + Send {
    /// The controller's name.
    const NAME: &'static str;
    /// Whether the slow starts of all paths together grow as one flow's would.
    const LINKS_START: bool = false;

    /// Segments by which the window grows for each segment acked in congestion avoidance; may be negative.
    fn increase(&self, own: &CoupledPath<'_>) -> f64;

    /// The part of the window that a congestion event leaves.
    fn kept(&self, _own: &CoupledPath<'_>) -> f64 {
        0.5
    }

    /// So many bytes were acked.
    fn on_acked(&mut self, _bytes: u64) {}

    /// A congestion event.
    fn on_congestion(&mut self, _kind: CongestionKind) {}

    /// The last congestion event proved false.
    fn on_spurious(&mut self) {}

    /// OLIA's l_r, bytes.
    fn between_losses_bytes(&self) -> u64 {
        0
    }
}

/// A path among its siblings.
#[derive(Debug)]
pub(crate) struct CoupledPath<'a> {
    /// Its metrics as they are now; the shared ones may lag behind the controller.
    pub(crate) metrics: PathMetrics,
    pub(crate) this: Sibling,
    pub(crate) shared: &'a SharedPathMetrics,
}

impl CoupledPath<'_> {
    /// All established paths, this one among them, in the formulas' units.
    pub(crate) fn siblings(&self) -> impl Iterator<Item = Sibling> + Clone + '_ {
        siblings(&self.metrics, self.shared)
    }
}

/// One path's coupled controller: slow start, thresholds and floors like Reno's, growth and cuts by its rule.
#[derive(Clone, Debug)]
pub(crate) struct Linked<R> {
    path: PathId,
    pub(crate) window: Window,
    pub(crate) rule: R,
    start: LinkedStart,
    /// As of the last ACK.
    pub(crate) rtt: RttSample,
    /// Window and threshold before the last congestion event, bytes.
    before: Option<(u64, u64)>,
}

impl<R: Rule> Linked<R> {
    /// A controller for `path` with an initial window for datagrams of `mss` bytes.
    pub(crate) fn new(path: PathId, mss: u64, slow_start: SlowStart) -> Self {
        let window = Window::new(mss, slow_start);
        let start = LinkedStart::default();
        Self { path, window, rule: R::default(), start, rtt: RttSample::default(), before: None }
    }

    fn place<'a>(&self, shared: &'a SharedPathMetrics) -> Option<CoupledPath<'a>> {
        let this = this(&self.window, &self.rtt)?;
        let metrics = PathMetrics {
            between_losses_bytes: self.rule.between_losses_bytes(),
            ..own(self.path, &self.window, &self.rtt, shared)
        };
        Some(CoupledPath { metrics, this, shared })
    }
}

impl<R: Rule> CongestionController for Linked<R> {
    fn name(&self) -> &'static str {
        R::NAME
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

    fn on_acked(&mut self, ack: &Acked, shared: &SharedPathMetrics) {
        self.rtt = ack.rtt;
        self.rule.on_acked(ack.bytes_total.max(ack.bytes));
        if R::LINKS_START {
            self.start.on_acked(ack, &mut self.window, shared);
        }
        let bytes = self.window.slow_start(ack);
        if bytes > 0
            && let Some(place) = self.place(shared)
        {
            self.window.add(self.rule.increase(&place) * bytes as f64);
        }
    }

    fn on_congestion(&mut self, event: &Congestion, shared: &SharedPathMetrics) {
        let kept = self.place(shared).map_or(0.5, |place| self.rule.kept(&place));
        let bytes = self.window.kept(kept, event.sent_at);
        match event.kind {
            CongestionKind::Loss | CongestionKind::Ecn => {
                self.before = Some((self.window.bytes(), self.window.ssthresh()));
                self.window.reduce(bytes);
            }
            CongestionKind::Persistent => {
                self.before = None;
                self.window.collapse(bytes);
            }
        }
        self.rule.on_congestion(event.kind);
    }

    fn on_max_datagram_bytes(&mut self, mss: u64) {
        self.window.on_max_datagram_bytes(mss);
    }

    fn on_longer_way_back(&mut self, times: f64) {
        self.window.lengthen(times);
        self.before = None;
    }

    fn between_losses_bytes(&self) -> u64 {
        self.rule.between_losses_bytes()
    }

    fn on_spurious(&mut self) {
        if let Some((bytes, ssthresh)) = self.before.take() {
            self.window.restore(bytes, ssthresh);
            self.rule.on_spurious();
        }
    }

    fn is_coupled(&self) -> bool {
        true
    }
}

/// One path in the units of the coupled formulas.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sibling {
    /// Window, segments of the path's own datagram size.
    pub(crate) window: f64,
    /// Smoothed RTT of the path itself, seconds; above zero.
    pub(crate) rtt: f64,
}

impl Sibling {
    /// Segments per second.
    pub(crate) fn rate(&self) -> f64 {
        self.window / self.rtt
    }

    fn of(metrics: &PathMetrics) -> Option<Self> {
        let window = metrics.window_bytes as f64 / metrics.max_datagram_bytes.max(1) as f64;
        Self::new(window, metrics.rtt? + metrics.ack_shortcut)
    }

    fn new(window: f64, rtt: Duration) -> Option<Self> {
        (!rtt.is_zero()).then(|| Self { window, rtt: rtt.as_nanos() as f64 / 1e9 })
    }
}

/// This path's metrics as they are now; the shared ones may lag behind the controller.
pub(crate) fn own(path: PathId, window: &Window, rtt: &RttSample, shared: &SharedPathMetrics) -> PathMetrics {
    PathMetrics {
        window_bytes: window.bytes(),
        ssthresh_bytes: window.ssthresh(),
        max_datagram_bytes: window.mss(),
        rtt: Some(rtt.smoothed),
        ack_shortcut: rtt.shortcut,
        active: true,
        in_recovery: shared.get(path).is_some_and(|p| p.in_recovery),
        ..PathMetrics::new(path)
    }
}

/// Postings of all established paths, with `own` in the place of this path's.
pub(crate) fn all_metrics<'a>(
    own: &'a PathMetrics,
    shared: &'a SharedPathMetrics,
) -> impl Iterator<Item = &'a PathMetrics> + Clone {
    shared.established().filter(move |p| p.path != own.path).chain(std::iter::once(own))
}

/// The same in the formulas' units.
pub(crate) fn siblings<'a>(
    own: &'a PathMetrics,
    shared: &'a SharedPathMetrics,
) -> impl Iterator<Item = Sibling> + Clone + 'a {
    all_metrics(own, shared).filter_map(Sibling::of)
}

/// This path in the formulas' units, with the fraction of a byte that its window holds back.
pub(crate) fn this(window: &Window, rtt: &RttSample) -> Option<Sibling> {
    Sibling::new(window.segments(), rtt.own())
}
