//! When waiting for a fast path is over sooner than sending on a slow one: the rule of ECF (Lim et al., 2017), and a like one
//! for a window that all paths share.

use std::time::Duration;

use crate::view::{PathView, Room};

/// 1 / beta: the hysteresis of beta = 0.25 that keeps a waiting sender waiting.
const HYSTERESIS_DIVISOR: u128 = 4;

/// How much faster than a window a round trip packets are paced, as numerator and denominator (RFC 9002 7.7).
const PACER_GAIN: (u128, u128) = (5, 4);

/// Whether the last decision was to wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Patience {
    /// The slow path was used, or there was no choice.
    #[default]
    Sending,
    /// The fast path was waited for.
    Waiting,
}

impl Patience {
    /// True when a backlog of so many bytes is over sooner on the fast path alone, after a wait for it, than with the
    /// slow path's help.
    pub(crate) fn is_worth_it(&mut self, fast: &PathView, slow: &PathView, backlog: u64) -> bool {
        if !self.fast_is_sooner(fast, slow, backlog) {
            *self = Self::Sending;
            return false;
        }
        let is_late = Self::slow_is_late(fast, slow, backlog);
        if is_late {
            *self = Self::Waiting;
        }
        is_late
    }

    /// True when the fast path alone sends a `send_window` of bytes that all paths share in less than a round trip on the slow
    /// one. Together they would send no more than that: the window opens when the oldest byte of it has arrived. Unlike in
    /// [`Self::is_worth_it`], how soon the slow path delivers does not matter, because all that follows waits for it; nor does
    /// the variation, which stays large of a path that is never tried.
    pub(crate) fn would_block(&mut self, fast: &PathView, slow: &PathView, send_window: u64) -> bool {
        let would_block = self.blocks(fast, slow, send_window);
        *self = if would_block { Self::Waiting } else { Self::Sending };
        would_block
    }

    /// The same, without taking note of the answer.
    pub(crate) fn blocks(self, fast: &PathView, slow: &PathView, send_window: u64) -> bool {
        self.fast_is_done_before(fast, rtt_now(slow), send_window.into(), used_window(fast))
    }

    /// True when sending all on the fast path, after one RTT of waiting for it, beats a round trip on the slow one.
    fn fast_is_sooner(self, fast: &PathView, slow: &PathView, unsent: u64) -> bool {
        let (window, backlog) = (window(fast), u128::from(unsent).max(window(fast)));
        // rtt_f * (x_f + w_f) / w_f < (1 + beta * waiting) * (rtt_s + delta)
        self.fast_is_done_before(fast, rtt(slow) + delta(fast, slow), backlog + window, window)
    }

    /// True when the fast path, with a `window` a round trip, has sent so many bytes after `micros`.
    fn fast_is_done_before(self, fast: &PathView, micros: u128, bytes: u128, window: u128) -> bool {
        let bias = if self == Self::Waiting { 1 } else { 0 };
        rtt(fast) * bytes * HYSTERESIS_DIVISOR < (HYSTERESIS_DIVISOR + bias) * micros * window
    }

    /// True when the slow path would need longer than waiting one RTT of the fast path and using it.
    fn slow_is_late(fast: &PathView, slow: &PathView, unsent: u64) -> bool {
        let (window, backlog) = (window(slow), u128::from(unsent).max(window(slow)));
        // rtt_s * x_s / w_s >= 2 * rtt_f + delta
        rtt(slow) * backlog >= (2 * rtt(fast) + delta(fast, slow)) * window
    }
}

/// Microseconds; at most 2^32 of them, so that products of times and bytes fit.
fn micros(time: Duration) -> u64 {
    time.as_micros().min(u128::from(u32::MAX)) as u64
}

/// The smoothed RTT of a path, microseconds.
fn rtt(path: &PathView) -> u128 {
    micros(path.rtt.unwrap_or_default()).into()
}

/// The round trip of what leaves now, microseconds: where a queue stands on the path, as long as what is under way takes at the
/// rate of delivery. The RTT tells of the queue that packets met a round trip ago, and it may have doubled since. Without a queue a
/// rate is no more than what was sent.
fn rtt_now(path: &PathView) -> u128 {
    let acked = rtt(path);
    let has_queue = acked * 4 > path.rtt_min.as_micros() * 5;
    match path.delivery_rate_bps {
        Some(bps) if has_queue => {
            let queued = u128::from(path.in_flight_bytes) * 8_000_000 / u128::from(bps.max(1));
            acked.max(queued.min(u128::from(u32::MAX)))
        }
        _ => acked,
    }
}

/// The same of the last of so many `bytes` that leave now, microseconds, where the window that all paths share is scarce, so that
/// the flight on each comes and goes: the smoothed RTT tells of packets that left with another flight than there is now, and each
/// byte more or less takes its time at the rate of delivery. The smallest RTT may be that of a packet of a few bytes.
pub(crate) fn rtt_ahead(path: &PathView, bytes: u64) -> u64 {
    let acked = micros(path.rtt.unwrap_or_default());
    let Some(bps) = path.delivery_rate_bps else { return acked };
    let time = |bytes: u64| bytes.min(u32::MAX.into()) * 8_000_000 / bps.max(1);
    let flight = path.in_flight_bytes.saturating_add(bytes);
    let longer = time(flight.saturating_sub(path.rtt_flight_bytes));
    let shorter = time(path.rtt_flight_bytes.saturating_sub(flight));
    let least = micros(path.rtt_min) + time(bytes);
    (acked + longer).saturating_sub(shorter).max(least).min(u32::MAX.into())
}

fn delta(fast: &PathView, slow: &PathView) -> u128 {
    micros(fast.rtt_var.max(slow.rtt_var)).into()
}

fn window(path: &PathView) -> u128 {
    u128::from(path.window_bytes.max(1))
}

/// What of its window a path uses: one that waits for credit, and not for its window, keeps a window that it has no use for.
fn used_window(path: &PathView) -> u128 {
    let carried = path.delivery_rate_bps.map_or(u128::MAX, |bps| rtt(path) * u128::from(bps) / 8_000_000);
    carried.max(u128::from(path.in_flight_bytes)).clamp(1, window(path))
}

/// True where the pacer alone holds the fast path, and lets out all that waits in less time than the slow path's round trip is
/// longer: then whatever goes the slow way arrives last.
pub(crate) fn paced_is_sooner(fast: &PathView, slow: &PathView, unsent: u64) -> bool {
    paced_is_done_in(rtt(slow).saturating_sub(rtt(fast)), fast, unsent)
}

/// True where the pacer alone holds a path, and lets out all that waits within `micros`.
pub(crate) fn paced_is_done_in(micros: u128, path: &PathView, unsent: u64) -> bool {
    let fits = path.in_flight_bytes.saturating_add(unsent) <= path.window_bytes;
    matches!(path.room, Room::Paced(_))
        && fits
        && u128::from(unsent) * rtt(path) * PACER_GAIN.1 <= window(path) * micros * PACER_GAIN.0
}
