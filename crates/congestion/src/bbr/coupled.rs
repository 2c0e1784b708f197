//! Coupled BBR: paths that wait in one queue take together what one BBR would.
//!
//! What a flow of BBR has in a queue that others share is what its probes win and the probes of others take, and how much it
//! puts there at most. Two paths that probe at different times win more than one flow, as the smaller one of two flows does; two
//! that probe at the same time win what one flow of both sizes would. Coupled BBR (Han et al., IEEE Transactions on Wireless
//! Communications, 2021) and MPTCP-BBR (Wei et al., IEEE Transactions on Vehicular Technology, 2021) scale the rates of the
//! paths instead; what paths have here is theirs to divide, and where each has a queue of its own, it costs next to nothing.
//! Paths are taken to share one until it is known better (`shared_queue.rs`). Those that do:
//!
//! - begin to probe when one of them does, as far as they are ready, and throw the same dice for the time of the next probe;
//! - count packets in flight, and steps of the upper bound, by what all of them have in flight;
//! - are all done with a probe that lost too much on one, where it is proven that they share;
//! - divide what a flow has in flight besides the pipe, for acks that come in heaps, and do not have it each. Of what two paths
//!   had more than one, this was the half;
//! - believe of their bandwidth what they delivered at one time, not what each did at its best (`together.rs`);
//! - go through Startup as one (`linked_start.rs`): those that are in it go back by what a newcomer brings.
//!
//! In a queue that holds few packets a path has no part of a packet to give, and two take more than one.

use std::time::Duration;

use plait_base::shared_metrics::{DeliveryRates, PathMetrics, Probe, SharedPathMetrics};
use plait_base::{Instant, PathId};

use super::{Bbr, BbrState, DICE};
use crate::controller::{
    Acked, Congestion, CongestionController, CongestionKind, ControllerFactory, Limit, Lost, RttSample,
};
use crate::linked_start::LinkedStart;
use crate::shared_queue::SharedQueue;

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
            start: LinkedStart::default(),
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
    start: LinkedStart,
}

/// What the siblings behind the same queue are about.
#[derive(Clone, Copy, Debug, Default)]
struct Siblings {
    window_bytes: u64,
    rates: DeliveryRates,
    /// Their newest probe.
    probe: Option<Probe>,
    /// When one of them that is proven to share the queue lost too much in a probe.
    lost_at: Option<Instant>,
}

impl CoupledBbr {
    fn siblings(&self, now: Instant, shared: &SharedPathMetrics) -> Siblings {
        let mut siblings = Siblings::default();
        let is_sibling = |p: &&PathMetrics| p.path != self.path && self.queue.is_shared(p);
        for path in shared.established().filter(is_sibling).filter(|p| p.is_in_use(now, self.rtt.smoothed)) {
            siblings.window_bytes += path.window_bytes;
            siblings.rates.newest_bytes_per_s += path.rates.newest_bytes_per_s;
            siblings.rates.largest_bytes_per_s += path.rates.largest_bytes_per_s;
            if path.probe.map(|p| p.began) > siblings.probe.map(|p| p.began) {
                siblings.probe = path.probe;
            }
            if self.queue.is_proven(path.path) {
                siblings.lost_at = siblings.lost_at.max(path.probe.and_then(|p| p.lost_at));
            }
        }
        siblings
    }

    /// In Startup, for paths behind the same queue that have begun to send since the last ACK.
    fn give_way(&mut self, shared: &SharedPathMetrics) {
        if self.bbr.full.reached {
            return;
        }
        let siblings = shared.established().filter(|p| p.path != self.path && self.queue.is_shared(p));
        if let Some(part) = self.start.part_to_give(self.bbr.window, siblings) {
            self.bbr.give(part);
        }
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
        self.give_way(shared);
        let siblings = self.siblings(ack.now, shared);
        self.bbr.together.others = siblings.rates;
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
        metrics.rates = self.bbr.together.rates(self.bbr.bandwidth.get());
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
