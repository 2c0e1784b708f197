//! One direction of a relay: datagrams wait here until their link lets them out.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use plait_base::{Instant, Random, time};
use plait_netsim::link::{Arrival, Integrity, Link, LinkConfig, LinkState, LinkStats, Outcome, Ticket, Verdict};

use crate::clock::Clock;

/// Where a datagram leaves the relay.
#[derive(Clone, Debug)]
pub(super) enum Exit {
    /// On a socket that is connected.
    Connected(Arc<UdpSocket>),
    /// On this socket, to this address.
    To(Arc<UdpSocket>, SocketAddr),
}

impl Exit {
    fn send(&self, datagram: &[u8]) {
        // A datagram that the operating system does not take is lost, as on any link.
        let _ = match self {
            Self::Connected(socket) => socket.send(datagram),
            Self::To(socket, to) => socket.send_to(datagram, to),
        };
    }
}

/// A datagram and its way out.
#[derive(Clone, Debug)]
struct Parcel {
    exit: Exit,
    bytes: Vec<u8>,
}

/// A parcel that leaves at a known time; earlier ones first, then in the order of arrival.
#[derive(Debug)]
struct Due {
    at: Instant,
    order: u64,
    parcel: Parcel,
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    /// Reversed, so that the top of the heap is the next to leave.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

/// Whether the lane's thread goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunningLane {
    Yes,
    No,
}

/// What a lane holds.
#[derive(Debug)]
pub(super) struct Queue {
    link: Link,
    /// In the link's own queue: their time is not known yet.
    waiting: BTreeMap<Ticket, Parcel>,
    due: BinaryHeap<Due>,
    order: u64,
}

impl Queue {
    pub(super) fn new(config: LinkConfig, random: Random) -> Self {
        Self { link: Link::new(config, random), waiting: BTreeMap::new(), due: BinaryHeap::new(), order: 0 }
    }

    /// A datagram enters at `now`.
    pub(super) fn offer(&mut self, now: Instant, datagram: &[u8], exit: impl FnOnce() -> Exit) {
        let verdict = self.link.offer(now, datagram.len(), None);
        let parcel = || Parcel { exit: exit(), bytes: datagram.to_vec() };
        match verdict {
            Verdict::Dropped(_) => {}
            Verdict::Queued(ticket) => {
                self.waiting.insert(ticket, parcel());
            }
            Verdict::Forward(delivery) => self.schedule(delivery.arrivals(), parcel()),
        }
    }

    fn schedule(&mut self, arrivals: impl Iterator<Item = Arrival>, parcel: Parcel) {
        for arrival in arrivals {
            let mut parcel = parcel.clone();
            if arrival.integrity == Integrity::Corrupted
                && let Some(last) = parcel.bytes.last_mut()
            {
                *last ^= 1;
            }
            self.due.push(Due { at: arrival.at, order: self.order, parcel });
            self.order += 1;
        }
    }

    /// The next datagram to leave by `now`.
    fn pop(&mut self, now: Instant) -> Option<Parcel> {
        while let Some(release) = self.link.poll(now) {
            let parcel = self.waiting.remove(&release.ticket);
            if let (Outcome::Forward(delivery), Some(parcel)) = (release.outcome, parcel) {
                self.schedule(delivery.arrivals(), parcel);
            }
        }
        if self.due.peek()?.at > now {
            return None;
        }
        self.due.pop().map(|due| due.parcel)
    }

    /// Moves what leaves by `now` into `out`.
    fn take_due(&mut self, now: Instant, out: &mut Vec<Parcel>) {
        while let Some(parcel) = self.pop(now) {
            out.push(parcel);
        }
    }

    /// When something leaves next.
    pub(super) fn deadline(&self) -> Option<Instant> {
        time::earliest(self.due.peek().map(|due| due.at), self.link.deadline())
    }

    fn change(&mut self, now: Instant, edit: impl FnOnce(&mut LinkConfig)) {
        self.link.change(now, edit);
        if self.link.config().state == LinkState::Down {
            self.due.clear();
            self.waiting.clear();
        }
    }
}

/// A queue with the thread that empties it.
#[derive(Debug)]
pub(super) struct Lane {
    clock: Clock,
    state: Mutex<(Queue, RunningLane)>,
    changed: Condvar,
}

impl Lane {
    pub(super) fn new(config: LinkConfig, random: Random, clock: Clock) -> Self {
        Self { clock, state: Mutex::new((Queue::new(config, random), RunningLane::Yes)), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, (Queue, RunningLane)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A datagram enters now.
    pub(super) fn offer(&self, datagram: &[u8], exit: impl FnOnce() -> Exit) {
        let mut state = self.lock();
        let before = state.0.deadline();
        // Read under the lock, so that the link sees time go forward only.
        state.0.offer(self.clock.now(), datagram, exit);
        let earlier = match (before, state.0.deadline()) {
            (Some(before), Some(after)) => after < before,
            (None, after) => after.is_some(),
            (Some(_), None) => false,
        };
        drop(state);
        if earlier {
            self.changed.notify_one();
        }
    }

    /// Changes the link.
    pub(super) fn change(&self, edit: impl FnOnce(&mut LinkConfig)) {
        self.lock().0.change(self.clock.now(), edit);
        self.changed.notify_one();
    }

    /// The link's counters.
    pub(super) fn stats(&self) -> LinkStats {
        *self.lock().0.link.stats()
    }

    /// Makes [`Lane::run`] return.
    pub(super) fn stop(&self) {
        self.lock().1 = RunningLane::No;
        self.changed.notify_all();
    }

    /// Sends what is due, until stopped.
    pub(super) fn run(&self) {
        let mut out = Vec::new();
        let mut state = self.lock();
        while state.1 == RunningLane::Yes {
            let now = self.clock.now();
            state.0.take_due(now, &mut out);
            if !out.is_empty() {
                drop(state);
                out.drain(..).for_each(|parcel| parcel.exit.send(&parcel.bytes));
                state = self.lock();
                continue;
            }
            state = match state.0.deadline() {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(at) => self.changed.wait_timeout(state, at.since(now)).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use plait_netsim::link::QueueLimit;

    use super::*;

    fn exit() -> Exit {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        Exit::Connected(Arc::new(socket))
    }

    fn at(us: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(us)
    }

    #[test]
    fn leaves_in_order_at_the_rate_of_the_link() {
        // 12 Mbit/s: 1500 bytes take 1 ms; 5 ms of delay.
        let mut queue = Queue::new(LinkConfig::new(12_000_000, Duration::from_millis(5)), Random::from_u64(1));
        (0..10).for_each(|n| queue.offer(at(0), &[n; 1500], exit));
        let mut out = Vec::new();
        for n in 0..10 {
            let due = at(6000 + 1000 * n);
            assert_eq!(queue.deadline(), Some(due));
            queue.take_due(due - Duration::from_nanos(1), &mut out);
            assert_eq!(out.len(), n as usize);
            queue.take_due(due, &mut out);
            assert_eq!(out.last().map(|parcel| parcel.bytes[0]), Some(n as u8));
        }
        assert_eq!(queue.deadline(), None);
    }

    #[test]
    fn late_wakes_cost_no_rate() {
        let mut queue = Queue::new(LinkConfig::new(12_000_000, Duration::ZERO), Random::from_u64(1));
        (0..10).for_each(|n| queue.offer(at(0), &[n; 1500], exit));
        let mut out = Vec::new();
        queue.take_due(at(4500), &mut out);
        assert_eq!(out.len(), 4);
        assert_eq!(queue.deadline(), Some(at(5000)));
    }

    #[test]
    fn dead_links_forget_what_is_under_way() {
        let config =
            LinkConfig::new(12_000_000, Duration::from_millis(5)).queue(QueueLimit::time(Duration::from_millis(3)));
        let mut queue = Queue::new(config, Random::from_u64(1));
        (0..10).for_each(|n| queue.offer(at(0), &[n; 1500], exit));
        assert_eq!(queue.due.len(), 4);
        queue.change(at(10), |config| config.state = LinkState::Down);
        queue.offer(at(20), &[1; 100], exit);
        assert_eq!((queue.due.len(), queue.deadline()), (0, None));
    }
}
