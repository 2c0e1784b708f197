//! When waiting for a fast path is over sooner than sending on a slow one: the rule of ECF (Lim et al., 2017).

use crate::view::PathView;

/// 1 / beta: the hysteresis of beta = 0.25 that keeps a waiting sender waiting.
const HYSTERESIS_DIVISOR: u128 = 4;

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

    /// True when sending all on the fast path, after one RTT of waiting for it, beats a round trip on the slow one.
    fn fast_is_sooner(self, fast: &PathView, slow: &PathView, unsent: u64) -> bool {
        let (window, backlog) = (window(fast), u128::from(unsent).max(window(fast)));
        let bias = if self == Self::Waiting { 1 } else { 0 };
        // rtt_f * (x_f + w_f) / w_f < (1 + beta * waiting) * (rtt_s + delta)
        rtt(fast) * (backlog + window) * HYSTERESIS_DIVISOR
            < (HYSTERESIS_DIVISOR + bias) * (rtt(slow) + delta(fast, slow)) * window
    }

    /// True when the slow path would need longer than waiting one RTT of the fast path and using it.
    fn slow_is_late(fast: &PathView, slow: &PathView, unsent: u64) -> bool {
        let (window, backlog) = (window(slow), u128::from(unsent).max(window(slow)));
        // rtt_s * x_s / w_s >= 2 * rtt_f + delta
        rtt(slow) * backlog >= (2 * rtt(fast) + delta(fast, slow)) * window
    }
}

/// Microseconds; at most 2^32 of them, so that products of RTT and bytes fit.
fn rtt(path: &PathView) -> u128 {
    path.rtt.unwrap_or_default().as_micros().min(u128::from(u32::MAX))
}

fn delta(fast: &PathView, slow: &PathView) -> u128 {
    fast.rtt_var.max(slow.rtt_var).as_micros().min(u128::from(u32::MAX))
}

fn window(path: &PathView) -> u128 {
    u128::from(path.window_bytes.max(1))
}
