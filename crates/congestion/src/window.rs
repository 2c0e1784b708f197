//! The window that all loss-based controllers share: slow start, thresholds, floors and fractions of a byte.

use std::time::Duration;

use plait_base::Instant;

use crate::controller::{Acked, Limit, NO_THRESHOLD};
use crate::hystart::HyStart;
use crate::hystart_linux::LinuxHyStart;
use crate::onset::Onset;

/// How a controller leaves its first slow start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlowStart {
    /// On loss or ECN only (RFC 9002 7.3.1).
    Standard,
    /// Also when the RTT rises from round to round: HyStart++ (RFC 9406).
    HyStart,
    /// Also when the acks of a round keep coming or its RTT is above the smallest, at once: Linux's HyStart, to compare with.
    LinuxHyStart,
    /// Also when a queue sets in, along a round or from round to round (`onset.rs`).
    #[default]
    Onset,
}

/// What watches for the end of the first slow start.
#[derive(Clone, Debug)]
enum Watch {
    Standard,
    HyStart(HyStart),
    LinuxHyStart(LinuxHyStart),
    Onset(Box<Onset>),
}

/// RFC 9002 7.2: ten datagrams, at most 14720 bytes or two datagrams.
pub fn initial_window(mss: u64) -> u64 {
    (10 * mss).min(14_720.max(2 * mss))
}

/// RFC 9002 7.2: two datagrams.
pub fn minimum_window(mss: u64) -> u64 {
    2 * mss
}

/// A congestion window in bytes with what all loss-based controllers do to it alike.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    bytes: u64,
    ssthresh: u64,
    mss: u64,
    /// Growth (or shrinkage) of less than a byte that has not been applied yet, in (-1, 1).
    fraction: f64,
    watch: Watch,
    /// When slow start last gave a part to another path, and the part that it kept.
    given: Option<(Instant, f64)>,
}

impl Window {
    /// The initial window for datagrams of `mss` bytes.
    pub(crate) fn new(mss: u64, slow_start: SlowStart) -> Self {
        let mss = mss.max(1);
        Self {
            bytes: initial_window(mss),
            ssthresh: NO_THRESHOLD,
            mss,
            fraction: 0.0,
            watch: match slow_start {
                SlowStart::Standard => Watch::Standard,
                SlowStart::HyStart => Watch::HyStart(HyStart::default()),
                SlowStart::LinuxHyStart => Watch::LinuxHyStart(LinuxHyStart::default()),
                SlowStart::Onset => Watch::Onset(Box::default()),
            },
            given: None,
        }
    }

    /// The window, bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The window in datagrams, with its fraction.
    pub(crate) fn segments(&self) -> f64 {
        (self.bytes as f64 + self.fraction) / self.mss as f64
    }

    /// The threshold, bytes.
    pub(crate) fn ssthresh(&self) -> u64 {
        self.ssthresh
    }

    /// Largest datagram, bytes.
    pub(crate) fn mss(&self) -> u64 {
        self.mss
    }

    /// True while the window is below the threshold.
    pub(crate) fn in_slow_start(&self) -> bool {
        self.bytes < self.ssthresh
    }

    /// True in slow start before any threshold is known.
    pub(crate) fn is_first_slow_start(&self) -> bool {
        self.ssthresh == NO_THRESHOLD
    }

    /// True while the window waits for a verdict on a queue.
    pub(crate) fn is_holding(&self) -> bool {
        matches!(&self.watch, Watch::Onset(onset) if onset.is_holding())
    }

    /// Leaves `part` of the window, at most half of it, to another path. What is under way left at the larger window, and
    /// grows the smaller one in proportion.
    pub(crate) fn give(&mut self, part: f64, now: Instant) {
        let kept = 1.0 - part.clamp(0.0, 0.5);
        self.bytes = ((self.bytes as f64 * kept) as u64).max(minimum_window(self.mss));
        self.given = Some((now, kept));
    }

    /// Lets slow start take its part of the acked bytes; returns what is left for congestion avoidance.
    pub(crate) fn slow_start(&mut self, ack: &Acked) -> u64 {
        let eligible = if ack.limit == Limit::Window { ack.bytes } else { 0 };
        if !self.in_slow_start() {
            return eligible;
        }
        // Twice the rate per round trip of the path's own: what is acked grows the window at once, and makes room for itself
        // once its ack would have come by the own way.
        let eligible = (eligible as f64 * (ack.rtt.ack_part() - 1.0).exp2()) as u64;
        // RFC 9406 4.3: only the first slow start, before any threshold is known.
        if self.ssthresh != NO_THRESHOLD {
            let growth = eligible.min(self.ssthresh - self.bytes);
            self.bytes += growth;
            return eligible - growth;
        }
        let eligible = match self.given.filter(|(at, _)| ack.sent_at < *at) {
            Some((_, kept)) => (eligible as f64 * kept) as u64,
            None => eligible,
        };
        let by_own_way = || Acked { rtt: ack.rtt.by_own_way(), ..*ack };
        let over = match &mut self.watch {
            Watch::Standard => {
                self.bytes = self.bytes.saturating_add(eligible);
                false
            }
            Watch::HyStart(hystart) => {
                self.bytes = self.bytes.saturating_add(hystart.growth(eligible));
                hystart.on_acked(&by_own_way()).is_over()
            }
            Watch::LinuxHyStart(hystart) => {
                self.bytes = self.bytes.saturating_add(eligible);
                hystart.on_acked(&by_own_way(), self.bytes / self.mss)
            }
            Watch::Onset(onset) => {
                self.bytes = onset.on_acked(ack, eligible, self.bytes).max(minimum_window(self.mss));
                onset.is_over()
            }
        };
        if over {
            self.ssthresh = self.bytes;
        }
        0
    }

    /// Adds `bytes`, which may be negative or below one; the floor of two datagrams holds.
    pub(crate) fn add(&mut self, bytes: f64) {
        let sum = self.fraction + bytes;
        let whole = sum.trunc();
        self.fraction = sum - whole;
        let floor = minimum_window(self.mss);
        if whole >= 0.0 {
            self.bytes = self.bytes.saturating_add(whole as u64);
        } else {
            self.bytes = self.bytes.saturating_sub((-whole) as u64);
        }
        if self.bytes < floor {
            (self.bytes, self.fraction) = (floor, 0.0);
        }
    }

    /// What a congestion event that keeps `part` of the window leaves, bytes. The packets that show it, of which the newest left
    /// at `sent_at`, may have left at a larger window, of which slow start has taken a part back since: then it is `part` of that
    /// one, at most all of this one, since one round's packets are a reason for one cut (RFC 9002 7.3.2).
    pub(crate) fn kept(&self, part: f64, sent_at: Instant) -> u64 {
        let struck = match &self.watch {
            Watch::Onset(onset) => onset.struck(self.bytes, sent_at),
            _ => self.bytes,
        };
        ((struck as f64 * part) as u64).min(self.bytes)
    }

    /// A congestion event: window and threshold become `bytes`, but at least two datagrams.
    pub(crate) fn reduce(&mut self, bytes: u64) {
        self.bytes = bytes.max(minimum_window(self.mss));
        self.ssthresh = self.bytes;
        self.fraction = 0.0;
    }

    /// RFC 9002 7.6.2: persistent congestion leaves two datagrams; a threshold that no loss has set yet becomes
    /// `threshold`.
    pub(crate) fn collapse(&mut self, threshold: u64) {
        if self.ssthresh == NO_THRESHOLD {
            self.ssthresh = threshold.max(minimum_window(self.mss));
        }
        self.bytes = minimum_window(self.mss);
        self.fraction = 0.0;
    }

    /// Window and threshold are `times` as large.
    pub(crate) fn lengthen(&mut self, times: f64) {
        let longer = |bytes: u64| (bytes as f64 * times).round() as u64;
        self.bytes = longer(self.bytes);
        if self.ssthresh != NO_THRESHOLD {
            self.ssthresh = longer(self.ssthresh);
        }
    }

    /// Takes a false reduction back: window and threshold are at least what they were.
    pub(crate) fn restore(&mut self, bytes: u64, ssthresh: u64) {
        self.bytes = self.bytes.max(bytes);
        self.ssthresh = self.ssthresh.max(ssthresh);
    }

    /// RFC 9002 7.2: an untouched initial window follows the datagram size; a used one only keeps its floor.
    pub(crate) fn on_max_datagram_bytes(&mut self, mss: u64) {
        let mss = mss.max(1);
        let untouched = self.ssthresh == NO_THRESHOLD && self.bytes == initial_window(self.mss);
        self.mss = mss;
        self.bytes = if untouched { initial_window(mss) } else { self.bytes.max(minimum_window(mss)) };
    }

    /// Two windows per RTT in slow start, so that pacing does not hold back its doubling; else, and while slow start
    /// holds the window, the pacer's default.
    pub(crate) fn pacing_rate(&self, rtt: Duration) -> Option<u64> {
        if !self.in_slow_start() || rtt.is_zero() || (self.is_holding() && self.ssthresh == NO_THRESHOLD) {
            return None;
        }
        let rate = u128::from(self.bytes) * 2 * 1_000_000_000 / rtt.as_nanos();
        Some(u64::try_from(rate).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
#[path = "window/tests.rs"]
mod tests;
