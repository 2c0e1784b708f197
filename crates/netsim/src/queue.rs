//! What happens next: events in the order of time, and of their making within an instant.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use plait_base::Instant;

/// What an event is about; the number indexes its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A datagram reaches its next hop.
    Arrive(u32),
    /// The queue of a link has something to do.
    Link(u32),
    /// The deadline of a host may have come.
    Timer(u32),
    /// A scheduled change of the world.
    Action(u32),
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    at: Instant,
    sequence: u64,
    what: What,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.sequence) == (other.at, other.sequence)
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    // Reversed: the heap gives its largest first, we want the earliest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.sequence).cmp(&(self.at, self.sequence))
    }
}

/// Events to come.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    heap: BinaryHeap<Entry>,
    sequence: u64,
}

impl EventQueue {
    pub(crate) fn push(&mut self, at: Instant, what: What) {
        self.sequence += 1;
        self.heap.push(Entry { at, sequence: self.sequence, what });
    }

    /// The next event, unless it is later than `limit`.
    pub(crate) fn pop_until(&mut self, limit: Instant) -> Option<(Instant, What)> {
        if self.heap.peek()?.at > limit {
            return None;
        }
        self.heap.pop().map(|entry| (entry.at, entry.what))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}
