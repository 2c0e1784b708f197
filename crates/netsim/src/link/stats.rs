//! What a link has carried and dropped so far, and how long its queue was.

use std::time::Duration;

use crate::link::verdict::DropCause;

/// Counters of one direction of a link. Bytes include the header overhead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Datagrams that were offered to the link.
    pub offered_packets: u64,
    /// Bytes that were offered to the link, headers included.
    pub offered_bytes: u64,
    /// Datagrams that get through, not counting duplicates.
    pub forwarded_packets: u64,
    /// Bytes that get through.
    pub forwarded_bytes: u64,
    /// Extra copies made.
    pub duplicates: u64,
    /// Datagrams that were delivered damaged, each copy counted.
    pub corrupted: u64,
    /// Datagrams held back to reorder.
    pub reordered: u64,
    /// Datagrams marked CE.
    pub marked: u64,
    /// Datagrams dropped, by cause in the order of [`DropCause::ALL`].
    pub dropped: [u64; DropCause::ALL.len()],
    /// Most bytes that waited at once.
    pub queue_bytes_max: u64,
    /// Longest wait before sending began.
    pub queue_time_max: Duration,
    /// Sum of all waits.
    pub queue_time_sum: Duration,
    /// Datagrams that were taken from the queue to be sent.
    pub dequeued: u64,
}

impl LinkStats {
    /// Datagrams dropped for `cause`.
    pub fn drops(&self, cause: DropCause) -> u64 {
        self.dropped.get(cause as usize).copied().unwrap_or(0)
    }

    /// Datagrams dropped for any cause.
    pub fn drops_total(&self) -> u64 {
        self.dropped.iter().sum()
    }

    /// Mean wait before sending.
    pub fn queue_time_mean(&self) -> Duration {
        let nanos = self.queue_time_sum.as_nanos() / u128::from(self.dequeued.max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    pub(crate) fn on_drop(&mut self, cause: DropCause) {
        if let Some(count) = self.dropped.get_mut(cause as usize) {
            *count += 1;
        }
    }

    pub(crate) fn on_wait(&mut self, wait: Duration) {
        self.dequeued += 1;
        self.queue_time_sum = self.queue_time_sum.saturating_add(wait);
        self.queue_time_max = self.queue_time_max.max(wait);
    }
}
