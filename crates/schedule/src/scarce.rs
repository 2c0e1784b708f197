//! The choice of a path where all of them share a window with room for less than theirs have: the peer's, or our send buffer.
//!
//! What goes one way is missing on another then, and the smoothed RTT is a bad guide: it tells of a queue that packets met a round
//! trip ago. A whole window leaves on the path with the smallest one and fills its queue, while the other path, on which nothing is
//! under way, is still known for the queue that it had; a round trip later they change places, and two paths carry little more than
//! one. So the path counts on which a packet would arrive first, by what is under way on it now.

use std::time::Duration;

use plait_base::PathId;
use plait_base::limits::TIMER_GRANULARITY;

use crate::candidates::Tier;
use crate::decision::{Decision, WaitReason};
use crate::patience::{paced_is_done_in, rtt_ahead};
use crate::view::{Demand, PathView, Room};

/// More than one train of packets carries.
pub(crate) const TRAIN_BYTES: u64 = 65_536;

/// Where a packet arrives clearly sooner than on the `usual` path, by the smoothed RTT, or the path whose pacer is waited for; none
/// where the window is not scarce or the usual path will do. `train` is the path that is about to carry a train of packets.
#[inline]
pub(crate) fn soonest(usual: PathId, paths: &[PathView], demand: &Demand, train: Option<PathId>) -> Option<Decision> {
    // Mostly there is more than all paths have room for, whichever of them may be used.
    let rooms = || paths.iter().fold(0u64, |sum, path| sum.saturating_add(room(path)));
    if paths.len() < 2 || demand.send_credit_bytes >= rooms() {
        return None;
    }
    soonest_of(usual, paths, demand, train)
}

/// What the window of a path has room for, bytes.
#[inline]
fn room(path: &PathView) -> u64 {
    path.window_bytes.saturating_sub(path.in_flight_bytes)
}

#[inline(never)]
fn soonest_of(usual: PathId, paths: &[PathView], demand: &Demand, train: Option<PathId>) -> Option<Decision> {
    let tier = Tier::best(paths);
    let (mut rooms, mut usual_at) = (0u64, None);
    // The first of all, and the first of those that admit a packet now; ties go to the lower id.
    let mut first: Option<(u64, &PathView)> = None;
    let mut open: Option<(u64, &PathView)> = None;
    let is_sooner = |at: u64, than: Option<(u64, &PathView)>| than.is_none_or(|(least, _)| at < least);
    for path in paths.iter().filter(|path| path.is_usable() && Tier::of(path.state) == tier) {
        rooms = rooms.saturating_add(room(path));
        if path.rtt.is_none() {
            continue;
        }
        let at = arrival(path, demand, train);
        usual_at = if path.id == usual { Some(at) } else { usual_at };
        if path.room == Room::Free && is_sooner(at, open) {
            open = Some((at, path));
        }
        if matches!(path.room, Room::Free | Room::Paced(_)) && is_sooner(at, first) {
            first = Some((at, path));
        }
    }
    let ((first_at, first), (_, open)) = (first?, open?);
    // Small differences are within the error of the estimate.
    if demand.send_credit_bytes >= rooms || first_at * 8 >= usual_at? * 7 {
        return None;
    }
    let unsent = demand.unsent_bytes.min(demand.send_credit_bytes);
    let ahead = arrival(open, demand, None).saturating_sub(arrival(first, demand, None));
    Some(if first.id != open.id && paced_is_done_in(ahead.into(), first, unsent) {
        Decision::Wait(WaitReason::Faster(first.id))
    } else {
        Decision::Send(open.id)
    })
}

/// The round trip of a packet that leaves now, and behind a train where this path carries it, microseconds.
fn arrival(path: &PathView, demand: &Demand, train: Option<PathId>) -> u64 {
    let packet = path.max_datagram_bytes;
    if train != Some(path.id) {
        return rtt_ahead(path, packet);
    }
    let train = TRAIN_BYTES.min(demand.send_credit_bytes);
    let rate = path.delivery_rate_bps.unwrap_or(0).max(1);
    let time = Duration::from_micros(train.saturating_mul(8_000_000) / rate);
    // One that is gone as fast as timers go off delays nobody.
    rtt_ahead(path, if time < TIMER_GRANULARITY { packet } else { train.max(packet) })
}

#[cfg(test)]
#[path = "scarce/tests.rs"]
mod tests;
