//! A link together with what it carries: payloads wait here until the link lets them out.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};

use plait_base::{Ecn, Instant, Random, time};

use crate::link::config::LinkConfig;
use crate::link::one_way::Link;
use crate::link::verdict::{Delivery, Integrity, Outcome, Ticket, Verdict};

/// One direction of a link, with the payloads on it: for callers that live in real time and have no queue of events.
#[derive(Clone, Debug)]
pub struct Conveyor<P> {
    link: Link,
    /// In the link's own queue: their time is not known yet.
    waiting: BTreeMap<Ticket, P>,
    due: BinaryHeap<Due<P>>,
    order: u64,
}

/// A payload at the far end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conveyed<P> {
    /// When its last bit arrives.
    pub at: Instant,
    /// The mark that it carries now.
    pub ecn: Option<Ecn>,
    /// Whether it is to be damaged.
    pub integrity: Integrity,
    /// What entered at the near end.
    pub payload: P,
}

/// A payload that leaves at a known time; earlier ones first, then in the order of arrival.
#[derive(Clone, Debug)]
struct Due<P> {
    order: u64,
    departure: Instant,
    conveyed: Conveyed<P>,
}

impl<P> Due<P> {
    fn key(&self) -> (Instant, u64) {
        (self.conveyed.at, self.order)
    }
}

impl<P> PartialEq for Due<P> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<P> Eq for Due<P> {}

impl<P> PartialOrd for Due<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> Ord for Due<P> {
    /// Reversed, so that the top of the heap is the next to leave.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl<P: Clone> Conveyor<P> {
    /// An empty one.
    pub fn new(config: LinkConfig, random: Random) -> Self {
        Self { link: Link::new(config, random), waiting: BTreeMap::new(), due: BinaryHeap::new(), order: 0 }
    }

    /// The link, for its settings and counters.
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// A datagram of `size` bytes enters at `now`, with its mark and a hash of its flow; gives its payload back where it is
    /// dropped at once. Calls come with non-decreasing `now`.
    pub fn offer(&mut self, now: Instant, size: usize, (ecn, flow): (Option<Ecn>, u64), payload: P) -> Option<P> {
        match self.link.offer_flow(now, size, ecn, flow) {
            Verdict::Dropped(_) => return Some(payload),
            Verdict::Queued(ticket) => _ = self.waiting.insert(ticket, payload),
            Verdict::Forward(delivery) => self.schedule(&delivery, payload),
        }
        None
    }

    fn schedule(&mut self, delivery: &Delivery, payload: P) {
        let second = delivery.second.map(|arrival| (arrival, payload.clone()));
        for (arrival, payload) in std::iter::once((delivery.first, payload)).chain(second) {
            let conveyed = Conveyed { at: arrival.at, ecn: delivery.ecn, integrity: arrival.integrity, payload };
            self.due.push(Due { order: self.order, departure: delivery.departure, conveyed });
            self.order += 1;
        }
    }

    /// The next to arrive by `now`.
    pub fn pop(&mut self, now: Instant) -> Option<Conveyed<P>> {
        while let Some(release) = self.link.poll(now) {
            let payload = self.waiting.remove(&release.ticket);
            if let (Outcome::Forward(delivery), Some(payload)) = (release.outcome, payload) {
                self.schedule(&delivery, payload);
            }
        }
        if self.due.peek()?.conveyed.at > now {
            return None;
        }
        self.due.pop().map(|due| due.conveyed)
    }

    /// When something arrives next, or the link's queue has something to do.
    pub fn deadline(&self) -> Option<Instant> {
        time::earliest(self.due.peek().map(|due| due.conveyed.at), self.link.deadline())
    }

    /// Changes the link's settings. One that goes down loses what waits and what is being sent; what has left its near end
    /// arrives.
    pub fn change(&mut self, now: Instant, edit: impl FnOnce(&mut LinkConfig)) {
        let before = self.link.cut_at();
        self.link.change(now, edit);
        if let Some(cut) = self.link.cut_at().filter(|_| self.link.cut_at() != before) {
            self.due.retain(|due| due.departure <= cut);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::link::{LinkState, QueueLimit, Service};

    use super::*;

    fn at(us: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(us)
    }

    /// 12 Mbit/s, where 1500 bytes take 1 ms.
    fn conveyor(config: LinkConfig, packets: u8) -> Conveyor<u8> {
        let mut conveyor = Conveyor::new(config, Random::from_u64(1));
        (0..packets).for_each(|n| _ = conveyor.offer(at(0), 1500, (None, 0), n));
        conveyor
    }

    #[test]
    fn leaves_in_order_at_the_rate_of_the_link() {
        for service in [Service::Planned, Service::Live] {
            let config = LinkConfig::new(12_000_000, Duration::from_millis(5)).service(service);
            let mut conveyor = conveyor(config, 10);
            for n in 0..10 {
                let due = at(6000 + 1000 * u64::from(n));
                assert_eq!(conveyor.pop(due - Duration::from_nanos(1)), None);
                assert_eq!(conveyor.deadline(), Some(due));
                let conveyed = conveyor.pop(due).unwrap();
                assert_eq!((conveyed.at, conveyed.payload, conveyed.integrity), (due, n, Integrity::Intact));
            }
            assert_eq!(conveyor.deadline(), None);
        }
    }

    #[test]
    fn late_calls_cost_no_rate() {
        let mut conveyor = conveyor(LinkConfig::new(12_000_000, Duration::ZERO), 10);
        let late: Vec<u8> = std::iter::from_fn(|| conveyor.pop(at(4500))).map(|conveyed| conveyed.payload).collect();
        assert_eq!((late, conveyor.deadline()), (vec![0, 1, 2, 3], Some(at(5000))));
    }

    #[test]
    fn a_link_that_goes_down_keeps_what_is_on_the_wire() {
        let queue = QueueLimit::time(Duration::from_millis(3));
        let mut conveyor = conveyor(LinkConfig::new(12_000_000, Duration::from_millis(5)).queue(queue), 10);
        conveyor.change(at(1500), |config| config.state = LinkState::Down);
        assert_eq!(conveyor.offer(at(1600), 100, (None, 0), 99), Some(99));
        // A change of something else loses nothing more.
        conveyor.change(at(1700), |config| config.delay = Duration::ZERO);
        assert_eq!(conveyor.pop(at(60_000)).map(|conveyed| conveyed.payload), Some(0));
        assert_eq!((conveyor.pop(at(60_000)), conveyor.deadline()), (None, None));
    }

    #[test]
    fn doubles_and_damage_are_told() {
        let config = LinkConfig { duplicate: 1.0, corrupt: 1.0, ..LinkConfig::default() };
        let mut conveyor = conveyor(config, 1);
        for _ in 0..2 {
            assert_eq!(conveyor.pop(at(0)).unwrap().integrity, Integrity::Corrupted);
        }
        assert_eq!(conveyor.pop(at(0)), None);
    }
}
