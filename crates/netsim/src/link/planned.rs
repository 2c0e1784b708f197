//! A queue on paper: datagrams whose sending times are known already, kept only to know how many still wait.

use std::collections::VecDeque;
use std::time::Duration;

use plait_base::Instant;

use crate::link::config::QueueLimit;

/// Datagrams that have been given a time to be sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlannedQueue {
    waiting: VecDeque<(Instant, u64)>,
    bytes: u64,
}

impl PlannedQueue {
    /// Forgets what has begun to be sent by `now`.
    pub(crate) fn advance(&mut self, now: Instant) {
        while let Some((begin, bytes)) = self.waiting.front()
            && *begin <= now
        {
            self.bytes -= bytes;
            self.waiting.pop_front();
        }
    }

    /// Bytes that wait.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Datagrams that wait.
    pub(crate) fn packets(&self) -> usize {
        self.waiting.len()
    }

    /// One more, which begins at `begin`.
    pub(crate) fn push(&mut self, begin: Instant, bytes: u64) {
        self.waiting.push_back((begin, bytes));
        self.bytes += bytes;
    }

    /// Everything is gone.
    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
        self.bytes = 0;
    }
}

/// True when a datagram of `bytes` fits behind what waits already.
pub(crate) fn fits(
    limit: &QueueLimit,
    bytes: u64,
    (queued, packets): (u64, usize),
    wait: impl FnOnce() -> Duration,
) -> bool {
    limit.bytes.is_none_or(|max| queued + bytes <= max)
        && limit.packets.is_none_or(|max| packets < max)
        && limit.time.is_none_or(|max| wait() <= max)
}
