//! Recorded links in the mahimahi format: one line per chance to send 1,504 bytes, in milliseconds.

use std::sync::Arc;
use std::time::Duration;

/// Bytes that one line of a trace can carry.
pub(crate) const OPPORTUNITY_BYTES: u64 = 1504;
/// Lines accepted; twelve minutes at a gigabit a second.
const MAX_LINES: usize = 60_000_000;

/// A delivery trace that repeats for ever; its period is its last line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    millis: Arc<[u32]>,
}

/// Why a trace cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// Not a whole number of milliseconds.
    #[error("line {0} of the trace is not a whole number of milliseconds")]
    NotANumber(usize),
    /// Later than is kept.
    #[error("line {0} of the trace is too late: at most 4294967295 ms")]
    TooLate(usize),
    /// Times go backwards.
    #[error("line {0} of the trace is earlier than the line before it")]
    Backwards(usize),
    /// No line, or a last line of 0, so that the trace has no length.
    #[error("the trace is empty or lasts 0 ms")]
    Empty,
    /// More lines than are kept.
    #[error("the trace has more than 60,000,000 lines")]
    TooLong,
}

impl Trace {
    /// Reads the text of a trace; blank lines and lines that begin with `#` are skipped.
    ///
    /// # Errors
    /// Names the first line that is no number of milliseconds, is too late or goes back in time; or the trace has no
    /// lines, or too many.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut millis: Vec<u32> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let at: u32 = line.parse().map_err(|error: std::num::ParseIntError| match error.kind() {
                std::num::IntErrorKind::PosOverflow => TraceError::TooLate(index + 1),
                _ => TraceError::NotANumber(index + 1),
            })?;
            if millis.last().is_some_and(|last| at < *last) {
                return Err(TraceError::Backwards(index + 1));
            }
            if millis.len() == MAX_LINES {
                return Err(TraceError::TooLong);
            }
            millis.push(at);
        }
        Self::from_millis(millis)
    }

    /// A trace of these times, in order.
    ///
    /// # Errors
    /// The times go back, or there is none above 0.
    pub fn from_millis(millis: Vec<u32>) -> Result<Self, TraceError> {
        if let Some(at) = millis.windows(2).position(|pair| pair[1] < pair[0]) {
            return Err(TraceError::Backwards(at + 2));
        }
        match millis.last() {
            Some(last) if *last > 0 => Ok(Self { millis: millis.into() }),
            _ => Err(TraceError::Empty),
        }
    }

    /// Time after which it repeats.
    pub(crate) fn period(&self) -> Duration {
        Duration::from_millis(u64::from(self.millis.last().copied().unwrap_or(1)))
    }

    /// Mean rate in bits a second.
    pub fn mean_bps(&self) -> u64 {
        let bits = self.millis.len() as u64 * OPPORTUNITY_BYTES * 8;
        bits * 1000 / u64::try_from(self.period().as_millis()).unwrap_or(1).max(1)
    }

    /// Opportunities a period.
    fn len(&self) -> u64 {
        self.millis.len() as u64
    }

    /// When the `index`-th opportunity comes, in nanoseconds since the trace began.
    fn nanos_of(&self, index: u64) -> u64 {
        let (round, position) = (index / self.len(), (index % self.len()) as usize);
        let period = u64::from(self.millis.last().copied().unwrap_or(1));
        let within = u64::from(self.millis.get(position).copied().unwrap_or(0));
        (round.saturating_mul(period).saturating_add(within)).saturating_mul(1_000_000)
    }

    /// The first opportunity at or after `nanos` since the trace began.
    fn first_from(&self, nanos: u64) -> u64 {
        let period = u64::from(self.millis.last().copied().unwrap_or(1)) * 1_000_000;
        let (round, within) = (nanos / period, nanos % period);
        let within_ms = within.div_ceil(1_000_000);
        let position = self.millis.partition_point(|at| u64::from(*at) < within_ms) as u64;
        let index = round * self.len() + position;
        // The last line of a round falls on the origin of the next one.
        match round.checked_sub(1) {
            Some(before) if within == 0 => {
                let last = u64::from(self.millis.last().copied().unwrap_or(1));
                let first_last = self.millis.partition_point(|at| u64::from(*at) < last) as u64;
                (before * self.len() + first_last).min(index)
            }
            _ => index,
        }
    }
}

/// Where a link stands in its trace.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TraceCursor {
    /// The opportunity in use.
    index: u64,
    /// Bytes of it already used.
    used: u64,
}

impl TraceCursor {
    /// Uses opportunities from `now` on for `bytes` and says when the first and the last of them come; times in
    /// nanoseconds since the trace began.
    pub(crate) fn send(&mut self, trace: &Trace, now: u64, bytes: u64) -> (u64, u64) {
        if self.used >= OPPORTUNITY_BYTES {
            *self = Self { index: self.index + 1, used: 0 };
        }
        // Chances that pass while nothing waits are wasted.
        if trace.nanos_of(self.index) < now {
            *self = Self { index: trace.first_from(now).max(self.index), used: 0 };
        }
        let begin = trace.nanos_of(self.index);
        let mut rest = bytes;
        loop {
            let here = rest.min(OPPORTUNITY_BYTES - self.used);
            self.used += here;
            rest -= here;
            if rest == 0 {
                return (begin, trace.nanos_of(self.index));
            }
            *self = Self { index: self.index + 1, used: 0 };
        }
    }
}
