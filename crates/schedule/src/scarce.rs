//! The choice of a path where all of them share a window with room for less than theirs have: the peer's, or our send buffer.
//!
//! What goes one way is missing on another then, and the smoothed RTT is a bad guide: it tells of a queue that packets met a round
//! trip ago. A whole window leaves on the path with the smallest one and fills its queue, while the other path, on which nothing is
//! under way, is still known for the queue that it had; a round trip later they change places, and two paths carry little more than
//! one. So the path counts on which a packet would arrive first, by what is under way on it now.

use std::time::Duration;

use plait_base::PathId;
use plait_base::limits::TIMER_GRANULARITY;

use crate::candidates::eligible;
use crate::decision::{Decision, WaitReason};
use crate::patience::{paced_is_done_in, rtt_ahead};
use crate::view::{Demand, PathView, Room};

/// More than one train of packets carries.
pub(crate) const TRAIN_BYTES: u64 = 65_536;

/// Where a packet arrives first, or the path whose pacer is waited for; none where the window is not scarce. `train` is the path that
/// is about to carry a train of packets.
pub(crate) fn soonest(paths: &[PathView], demand: &Demand, train: Option<PathId>) -> Option<Decision> {
    let room = |path: &PathView| path.window_bytes.saturating_sub(path.in_flight_bytes);
    let rooms = eligible(paths).fold(0u64, |sum, path| sum.saturating_add(room(path)));
    if paths.len() < 2 || demand.send_credit_bytes >= rooms {
        return None;
    }
    let sampled = || eligible(paths).filter(|path| path.rtt.is_some());
    let arrival = |path: &&PathView| (arrival(path, demand, train), path.id);
    let open = sampled().filter(|path| path.has_room()).min_by_key(arrival)?;
    let first = sampled().filter(|path| matches!(path.room, Room::Free | Room::Paced(_))).min_by_key(arrival)?;
    let unsent = demand.unsent_bytes.min(demand.send_credit_bytes);
    let ahead = rtt_ahead(open).saturating_sub(rtt_ahead(first));
    Some(if first.id != open.id && paced_is_done_in(ahead, first, unsent) {
        Decision::Wait(WaitReason::Faster(first.id))
    } else {
        Decision::Send(open.id)
    })
}

/// The round trip of a packet that leaves now, and behind a train where this path carries it, microseconds.
fn arrival(path: &PathView, demand: &Demand, train: Option<PathId>) -> u128 {
    if train != Some(path.id) {
        return rtt_ahead(path);
    }
    let train = TRAIN_BYTES.min(demand.send_credit_bytes);
    let rate = path.delivery_rate_bps.unwrap_or(0).max(1);
    let time = Duration::from_micros(train.saturating_mul(8_000_000) / rate);
    // One that is gone as fast as timers go off delays nobody.
    let train = if time < TIMER_GRANULARITY { 0 } else { train };
    rtt_ahead(&PathView { in_flight_bytes: path.in_flight_bytes.saturating_add(train), ..*path })
}

#[cfg(test)]
#[path = "scarce/tests.rs"]
mod tests;
