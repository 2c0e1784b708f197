//! CUBIC on each path, coupled among the paths that may wait in the same queue.
//!
//! Paths that share a queue act as one CUBIC flow: each grows by its share of what one flow would, and a cut of one is
//! followed by the other, as RFC 8699 does it for media flows. They begin as if they shared one, since two CUBIC flows would
//! have taken their double share by the time it is known. Slow start is left alone, so that short transfers lose nothing, but
//! the first cut behind a deep queue leaves each path only its part of one flow. What happens to their delays soon tells
//! (`shared_queue.rs`) where they share none: they are apart from then on, what was left comes back, and they are together again
//! after a change of route. A path follows a cut that it felt; once it is proven that they share, most cuts at once.

use std::time::Duration;

use plait_base::shared_metrics::{PathMetrics, SharedPathMetrics};
use plait_base::{Instant, PathId};

use crate::controller::{Acked, Congestion, CongestionController, CongestionKind, ControllerFactory, RttSample};
use crate::cubic::{Cubic, Gain};
use crate::shared_queue::SharedQueue;
use crate::window::SlowStart;

/// Part of one flow's Reno-friendly increase that paths have together while they may share a short queue. Several paced windows
/// that are cut together lose fewer packets there than one flow does, 0.20 % and not 0.27 behind 8 ms, and with all of
/// the increase they would take 1.15 of its share. The longer packets wait, the less losses depend on bursts: where they wait as
/// long as the rest of the round trip takes, the paths have all of the increase.
const FRIENDLY_TOGETHER: f64 = 0.8;

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

/// A window before the first congestion event, bytes.
#[derive(Clone, Copy, Debug)]
struct Uncut {
    window: u64,
    /// Of it, what slow start found.
    found: u64,
}

/// One path's CUBIC with what it knows of shared queues.
#[derive(Clone, Debug)]
struct Auto {
    cubic: Cubic,
    queue: SharedQueue,
    path: PathId,
    /// As of the last ACK; zero before it.
    rtt: RttSample,
    /// When the last cut of a sibling was followed.
    followed_at: Option<Instant>,
}

impl Auto {
    /// A controller for `path` with an initial window for datagrams of `mss` bytes.
    fn new(path: PathId, mss: u64, slow_start: SlowStart) -> Self {
        let rtt = RttSample::default();
        Self { cubic: Cubic::new(mss, slow_start), queue: SharedQueue::new(path), path, rtt, followed_at: None }
    }

    /// Siblings that may wait in the same queue.
    fn sharers<'a>(&'a self, shared: &'a SharedPathMetrics) -> impl Iterator<Item = &'a PathMetrics> {
        shared.established().filter(|p| p.path != self.path && self.queue.is_shared(p))
    }

    /// This path's part in the windows of all that share its queue.
    fn gain(&self, now: Instant, shared: &SharedPathMetrics) -> Gain {
        let own = self.cubic.size().segments();
        let sending = self.sharers(shared).filter(|p| p.is_in_use(now, self.rtt.smoothed));
        let others: f64 = sending.map(|p| p.window_bytes as f64 / p.max_datagram_bytes.max(1) as f64).sum();
        let share = own / (own + others);
        let friendly = if share < 1.0 { self.friendly_together() * share } else { 1.0 };
        Gain { curve: share, friendly, start: share }
    }

    /// The part of one flow's Reno-friendly increase for all that share the queue.
    fn friendly_together(&self) -> f64 {
        let waiting = (self.rtt.wait().as_secs_f64() / self.rtt.min.as_secs_f64().max(f64::MIN_POSITIVE)).min(1.0);
        FRIENDLY_TOGETHER + (1.0 - FRIENDLY_TOGETHER) * waiting
    }

    /// None once there was a congestion event.
    fn uncut(&self) -> Option<Uncut> {
        let (window, found) = (self.window(), self.ssthresh().min(self.window()));
        self.cubic.is_uncut().then_some(Uncut { window, found })
    }

    /// After the first cut: of what slow start found, the part that this path has beyond its share of one flow is left to whoever
    /// else waits in the queue, since each of the paths found as much room in its slow start as one flow would have. What
    /// came later they found together, as one flow. The path keeps what fills its link with an empty queue, and all of it comes
    /// back once the paths are found apart. The one that is cut before the others leaves half as much: equal paths that are
    /// cut alike go on alike, and seem to share a queue when they do not.
    fn give_way(&mut self, before: Uncut, now: Instant, shared: &SharedPathMetrics) {
        // The latest, since the smoothed round trip follows a queue late that slow start has filled.
        let rtt = self.rtt.latest.max(self.rtt.smoothed).max(self.rtt.min).as_secs_f64();
        let filling = before.window as f64 * self.rtt.min.as_secs_f64() / rtt.max(f64::MIN_POSITIVE);
        let part = self.gain(now, shared).curve.max(filling / self.cubic.window() as f64).min(1.0);
        let was_other_cut = self.sharers(shared).any(|p| p.cut.is_some());
        let part = if was_other_cut { part } else { (1.0 + part) / 2.0 };
        self.cubic.give_way(1.0 - (1.0 - part) * before.found as f64 / before.window as f64);
    }

    /// True for losses of packets that left before this path followed a cut, whose answer that was (RFC 9002 7.3.2), and for those
    /// that the end of a sibling's slow start costs once this path has answered it. The sibling hears of the full queue a round
    /// trip of its own later, and fills it until then; one flow would be cut once for that.
    fn is_answered(&self, now: Instant, shared: &SharedPathMetrics) -> bool {
        let own = self.rtt.smoothed;
        let follows = self.followed_at.is_some_and(|at| now <= at + own);
        follows || self.queue.cut_at().is_some_and(|at| self.overshooting(at, shared).any(|until| now <= until))
    }

    /// Until when losses are to be put down to the first slow start of a sibling in the same queue, where this path was cut at `at`.
    fn overshooting<'a>(&'a self, at: Instant, shared: &'a SharedPathMetrics) -> impl Iterator<Item = Instant> {
        let own = self.rtt.smoothed;
        self.sharers(shared).filter_map(move |p| {
            let rtt = p.rtt?;
            let hears_until = at + rtt + own;
            match p.cut {
                None => (p.ssthresh_bytes == u64::MAX).then_some(hears_until),
                Some(cut) => (cut.serial == 1 && (at..=hears_until).contains(&cut.at)).then(|| cut.at + rtt.max(own)),
            }
        })
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
        self.rtt = ack.rtt;
        if self.queue.on_acked(ack, shared) && !self.cubic.size().in_slow_start() {
            self.queue.on_reduced(ack.now);
            self.followed_at = Some(ack.now);
            let uncut = self.uncut();
            self.cubic.cut(ack.now);
            if let Some(before) = uncut {
                self.give_way(before, ack.now, shared);
            }
        }
        let gain = self.gain(ack.now, shared);
        if gain.curve >= 1.0 {
            self.cubic.take_back();
        }
        self.cubic.grow(ack, gain);
    }

    fn on_congestion(&mut self, event: &Congestion, shared: &SharedPathMetrics) {
        match event.kind {
            CongestionKind::Loss | CongestionKind::Ecn if self.is_answered(event.now, shared) => return,
            CongestionKind::Loss | CongestionKind::Ecn => self.queue.on_cut(event.now, &self.rtt),
            CongestionKind::Persistent => self.queue.on_reduced(event.now),
        }
        let uncut = self.uncut().filter(|_| event.kind != CongestionKind::Persistent);
        self.cubic.on_congestion(event, shared);
        if let Some(before) = uncut {
            self.give_way(before, event.now, shared);
        }
    }

    fn on_max_datagram_bytes(&mut self, mss: u64) {
        self.cubic.on_max_datagram_bytes(mss);
    }

    fn add_to_metrics(&self, metrics: &mut PathMetrics) {
        self.queue.post(metrics);
    }

    fn on_longer_way_back(&mut self, times: f64) {
        self.cubic.on_longer_way_back(times);
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
