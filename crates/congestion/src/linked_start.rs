//! The slow starts of coupled paths, linked: together they grow as one flow's would.
//!
//! RFC 6356 couples congestion avoidance and leaves slow start to each path. Two paths through one queue then begin with two
//! initial windows, are half as large again as a flow beside them when the queue is full, and give that back by an increase as
//! slow as Reno's. LISA (draft-barik-mptcp-lisa) has the remedy: slow start doubles a sum as it doubles its parts, so that only
//! the initial window of a path that comes later is in excess. The paths that are in slow start already go back by what the
//! newcomer brings.
//!
//! Other than in LISA, they do so when the newcomer's first packets are acked: a path that the scheduler does not choose, or a
//! transfer that is over by then, costs nothing. No path gives more than half of its window, and none before the verdict where it
//! waits for one on a queue. Paths with links of their own lose up to a round trip in this, which is the price.

use plait_base::shared_metrics::{PathMetrics, SharedPathMetrics};

use crate::controller::{Acked, NO_THRESHOLD};
use crate::window::{Window, initial_window};

/// What one path's first slow start knows of others.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LinkedStart {
    /// Paths that were in use before this one, or that it has given way to: [`plait_base::PathId::bit`]s.
    met: u64,
    /// The path's first ACK came.
    is_begun: bool,
}

/// In its first slow start, and its window has grown.
fn is_in_use(path: &PathMetrics) -> bool {
    path.ssthresh_bytes == NO_THRESHOLD && path.window_bytes > initial_window(path.max_datagram_bytes)
}

impl LinkedStart {
    /// Takes in an ACK frame of the path whose `window` it is, which gives way to paths that have come into use since the last.
    pub(crate) fn on_acked(&mut self, ack: &Acked, window: &mut Window, shared: &SharedPathMetrics) {
        if !window.is_first_slow_start() || (window.is_holding() && self.is_begun) {
            return;
        }
        let others = shared.established().filter(|p| p.path != ack.path);
        if let Some(part) = self.part_to_give(window.bytes(), others) {
            window.give(part, ack.now);
        }
    }

    /// The part of `own_bytes` of a path in its first slow start that those of its siblings bring that came into use since the
    /// last call, at most a half; none where none did. Those that were there before give in proportion to what they have.
    pub(crate) fn part_to_give<'a>(
        &mut self,
        own_bytes: u64,
        siblings: impl Iterator<Item = &'a PathMetrics> + Clone,
    ) -> Option<f64> {
        let others = siblings.filter(|p| is_in_use(p));
        let used = others.clone().fold(0, |bits, p| bits | p.path.bit());
        if !self.is_begun {
            (self.is_begun, self.met) = (true, used);
        }
        let met = self.met;
        if used & !met == 0 {
            return None;
        }
        let bytes = |is_met: bool| -> u64 {
            others.clone().filter(|p| (p.path.bit() & met != 0) == is_met).map(|p| p.window_bytes).sum()
        };
        self.met |= used;
        Some((bytes(false) as f64 / (bytes(true) + own_bytes).max(1) as f64).min(0.5))
    }
}

#[cfg(test)]
#[path = "linked_start/tests.rs"]
mod tests;
