//! Coupled BBR: paths that wait in one queue probe it in step, and so take together what one BBR would.
//!
//! What a flow of BBR has in a queue that others share is what its probes win and the probes of others take. Two paths that
//! probe at different times win more than one flow, as the smaller one of two flows does; two that probe at the same time win
//! what one flow of both sizes would. Coupled BBR (Han et al., IEEE Transactions on Wireless Communications, 2021) and MPTCP-BBR
//! (Wei et al., IEEE Transactions on Vehicular Technology, 2021) scale the rates of the paths instead; what paths have here is
//! theirs to divide, and where each has a queue of its own, probing in step costs nothing.
//!
//! - A path that begins to probe is followed by those that share its queue (`shared_queue.rs`), as far as they are ready.
//! - Times that count packets in flight, and steps of the upper bound, go by what all of them have in flight.
//! - Where it is proven that they share, a probe that lost too much on one path is over on all.

use std::time::Duration;

use plait_base::shared_metrics::{PathMetrics, Probe, SharedPathMetrics};
use plait_base::{Instant, PathId};

use super::{Bbr, BbrState, DICE};
use crate::controller::{
    Acked, Congestion, CongestionController, CongestionKind, ControllerFactory, Limit, Lost, RttSample,
};
use crate::shared_queue::{SharedQueue, is_in_use};

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CoupledBbrFactory;

impl ControllerFactory for CoupledBbrFactory {
    fn name(&self) -> &'static str {
        "coupled-bbr"
    }

    fn build(&self, path: PathId, now: Instant, mss: u64) -> Box<dyn CongestionController> {
        Box::new(CoupledBbr {
            bbr: Bbr::new(path, now, mss),
            queue: SharedQueue::new(path),
            path,
            rtt: RttSample::default(),
            probe: None,
        })
    }
}

/// One path's BBR among those that share its queue.
#[derive(Clone, Debug)]
struct CoupledBbr {
    bbr: Bbr,
    queue: SharedQueue,
    path: PathId,
    /// As of the last ACK; zero before it.
    rtt: RttSample,
    /// The newest probe, which may have been a sibling's first.
    probe: Option<Probe>,
}

/// What the siblings behind the same queue are about.
#[derive(Clone, Copy, Debug, Default)]
struct Siblings {
    window_bytes: u64,
    /// Their newest probe.
    probe: Option<Probe>,
    /// When one of them that is proven to share the queue lost too much in a probe.
    lost_at: Option<Instant>,
}

impl CoupledBbr {
    fn siblings(&self, now: Instant, shared: &SharedPathMetrics) -> Siblings {
        let mut siblings = Siblings::default();
        let is_sibling = |p: &&PathMetrics| p.path != self.path && self.queue.is_shared(p);
        for path in shared.established().filter(is_sibling).filter(|p| is_in_use(p, now, self.rtt.smoothed)) {
            siblings.window_bytes += path.window_bytes;
            if path.probe.map(|p| p.began) > siblings.probe.map(|p| p.began) {
                siblings.probe = path.probe;
            }
            if self.queue.is_proven(path.path) {
                siblings.lost_at = siblings.lost_at.max(path.probe.and_then(|p| p.lost_at));
            }
        }
        siblings
    }

    /// Does what siblings did first: begins a probe, or ends one that lost too much.
    fn follow(&mut self, ack: &Acked, siblings: &Siblings) {
        let own = self.probe.map(|probe| probe.began);
        let is_fresh = |probe: &Probe| Some(probe.began) > own && ack.now <= probe.began + ack.rtt.smoothed * 2;
        match self.bbr.phase {
            BbrState::Down | BbrState::Cruise => {
                if let Some(probe) = siblings.probe.filter(is_fresh) {
                    self.bbr.start_refill(ack.delivery.total_bytes);
                    self.begin(probe.began);
                }
            }
            BbrState::Up if siblings.lost_at > own && siblings.lost_at.is_some() => {
                self.end_probe(siblings.lost_at);
                self.bbr.on_too_much(ack.now, ack.delivery.total_bytes, ack.in_flight, Limit::Window);
            }
            _ => {}
        }
    }

    /// Notes a probe. Those that share it throw the same dice for the time of the next one.
    fn begin(&mut self, began: Instant) {
        self.probe = Some(Probe { began, lost_at: None });
        self.bbr.dice = began.as_nanos().wrapping_mul(DICE) | 1;
    }

    fn end_probe(&mut self, lost_at: Option<Instant>) {
        if let Some(probe) = &mut self.probe {
            probe.lost_at = lost_at;
        }
    }

    /// Lets BBR act; a probe that it ends at once has lost too much.
    fn losing(&mut self, now: Instant, act: impl FnOnce(&mut Bbr)) {
        let was_up = self.bbr.phase == BbrState::Up;
        act(&mut self.bbr);
        if was_up && self.bbr.phase == BbrState::Down {
            self.end_probe(Some(now));
        }
    }
}

impl CongestionController for CoupledBbr {
    fn name(&self) -> &'static str {
        "coupled-bbr"
    }

    fn window(&self) -> u64 {
        self.bbr.window()
    }

    fn ssthresh(&self) -> u64 {
        self.bbr.ssthresh()
    }

    fn pacing_rate(&self, rtt: Duration) -> Option<u64> {
        self.bbr.pacing_rate(rtt)
    }

    fn is_ack_clocked(&self) -> bool {
        false
    }

    fn on_sent(&mut self, now: Instant, bytes: u64, in_flight: u64, number: u64) {
        self.bbr.on_sent(now, bytes, in_flight, number);
    }

    fn on_acked(&mut self, ack: &Acked, shared: &SharedPathMetrics) {
        self.rtt = ack.rtt;
        self.queue.on_acked(ack, shared);
        let siblings = self.siblings(ack.now, shared);
        self.bbr.cycle.others = siblings.window_bytes as f64 / self.bbr.window.max(1) as f64;
        self.follow(ack, &siblings);
        let before = self.bbr.phase;
        self.bbr.on_acked(ack, shared);
        if self.bbr.phase == BbrState::Refill && before != BbrState::Refill {
            self.begin(ack.now);
        }
    }

    fn on_lost(&mut self, lost: &Lost) {
        self.losing(lost.now, |bbr| bbr.on_lost(lost));
    }

    fn on_congestion(&mut self, event: &Congestion, shared: &SharedPathMetrics) {
        if event.kind == CongestionKind::Persistent {
            self.queue.on_reduced(event.now);
        }
        self.losing(event.now, |bbr| bbr.on_congestion(event, shared));
    }

    fn on_max_datagram_bytes(&mut self, mss: u64) {
        self.bbr.on_max_datagram_bytes(mss);
    }

    fn add_to_metrics(&self, metrics: &mut PathMetrics) {
        self.queue.post(metrics);
        metrics.probe = self.probe;
    }

    fn on_spurious(&mut self) {
        self.bbr.on_spurious();
    }

    fn is_coupled(&self) -> bool {
        true
    }
}

#[cfg(test)]
#[path = "coupled/tests.rs"]
mod tests;
