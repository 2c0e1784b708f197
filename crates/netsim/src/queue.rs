//! What happens next: events in the order of time, and of their making within an instant.
//!
//! Most events of a link come in order already. They wait in a lane of their own, and only the first of each lane
//! takes part in the order, which so stays as small as the network instead of growing with what is in flight. Few events
//! are cheapest kept sorted; what goes beyond them waits in a heap.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

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

/// In no lane.
const ALONE: u32 = u32::MAX;
/// Events that are kept sorted, at most.
const NEAR_MAX: usize = 32;

#[derive(Clone, Copy, Debug)]
struct QueuedEvent {
    at: Instant,
    sequence: u64,
    what: What,
    lane: u32,
}

impl PartialEq for QueuedEvent {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.sequence) == (other.at, other.sequence)
    }
}

impl Eq for QueuedEvent {}

impl PartialOrd for QueuedEvent {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for QueuedEvent {
    // Reversed: a heap gives its largest first, we want the earliest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.sequence).cmp(&(self.at, self.sequence))
    }
}

/// Events in order behind one that takes part in the order of all.
#[derive(Debug, Default)]
struct Lane {
    rest: VecDeque<QueuedEvent>,
    /// Time of the last event, while one takes part.
    last: Option<Instant>,
}

/// The first event of each lane, and those of none.
#[derive(Debug, Default)]
struct Upcoming {
    /// The next ones, the very next last.
    near: Vec<QueuedEvent>,
    /// All later ones; none while few wait.
    far: BinaryHeap<QueuedEvent>,
}

impl Upcoming {
    fn push(&mut self, event: QueuedEvent) {
        // Reversed: what comes later is less.
        let place = self.near.partition_point(|other| *other <= event);
        if place == 0 && !self.far.is_empty() {
            return self.far.push(event);
        }
        self.near.insert(place, event);
        if self.near.len() > NEAR_MAX {
            self.far.push(self.near.remove(0));
        }
    }

    fn first(&self) -> Option<&QueuedEvent> {
        self.near.last()
    }

    fn pop(&mut self) {
        self.near.pop();
        if self.near.is_empty() && !self.far.is_empty() {
            self.near.extend(std::iter::from_fn(|| self.far.pop()).take(NEAR_MAX / 2));
            self.near.reverse();
        }
    }
}

/// Events to come.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    order: Upcoming,
    lanes: Vec<Lane>,
    sequence: u64,
}

impl EventQueue {
    /// An event on its own.
    pub(crate) fn push(&mut self, at: Instant, what: What) {
        self.sequence += 1;
        self.order.push(QueuedEvent { at, sequence: self.sequence, what, lane: ALONE });
    }

    /// An event that mostly comes after the others of its lane; where it does not, nothing but speed is lost.
    pub(crate) fn push_in_lane(&mut self, lane: u32, at: Instant, what: What) {
        let index = lane as usize;
        if index >= self.lanes.len() {
            self.lanes.resize_with(index + 1, Lane::default);
        }
        let Some(place) = self.lanes.get_mut(index) else { return };
        match place.last {
            Some(last) if at < last => self.push(at, what),
            last => {
                self.sequence += 1;
                place.last = Some(at);
                let entry = QueuedEvent { at, sequence: self.sequence, what, lane };
                match last {
                    Some(_) => place.rest.push_back(entry),
                    None => self.order.push(entry),
                }
            }
        }
    }

    /// The next event, unless it is later than `limit`.
    pub(crate) fn pop_until(&mut self, limit: Instant) -> Option<(Instant, What)> {
        let event = *self.order.first().filter(|event| event.at <= limit)?;
        self.order.pop();
        if let Some(lane) = self.lanes.get_mut(event.lane as usize) {
            match lane.rest.pop_front() {
                Some(next) => self.order.push(next),
                None => lane.last = None,
            }
        }
        Some((event.at, event.what))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.order.near.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use plait_base::Random;

    use super::*;

    #[test]
    fn lanes_change_nothing_but_speed() {
        let mut random = Random::from_u64(1);
        let (mut plain, mut laned) = (EventQueue::default(), EventQueue::default());
        let mut now = Instant::ZERO;
        for n in 0..20_000 {
            let at = Instant::from_nanos(now.as_nanos() + random.below(200));
            plain.push(at, What::Arrive(n));
            match random.below(4) {
                3 => laned.push(at, What::Arrive(n)),
                lane => laned.push_in_lane(lane as u32, at, What::Arrive(n)),
            }
            if random.chance(0.45) {
                let (expected, got) = (plain.pop_until(at), laned.pop_until(at));
                assert_eq!(expected, got);
                now = expected.map_or(now, |(at, _)| at);
            }
        }
        let end = Instant::from_nanos(u64::MAX);
        while let Some(expected) = plain.pop_until(end) {
            assert_eq!(laned.pop_until(end), Some(expected));
        }
        assert!(laned.is_empty());
    }
}
