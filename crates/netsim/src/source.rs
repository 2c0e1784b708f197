//! Hosts for cross traffic: a source that heeds nobody, all the time or on and off, and a sink.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::BytesMut;
use plait_base::{Instant, Random};

use crate::host::{Datagram, Host};

/// Datagrams that share an allocation.
const DATAGRAMS_PER_BUFFER: usize = 16;

/// How long a source is on and off, each time drawn anew from these ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnOff {
    /// Shortest and longest time on.
    pub on: (Duration, Duration),
    /// Shortest and longest time off.
    pub off: (Duration, Duration),
}

/// Sends datagrams of one size at one interval from `start` on, until `end`.
#[derive(Clone, Debug)]
pub struct Source {
    /// From and to.
    route: (SocketAddr, SocketAddr),
    bytes: usize,
    interval: Duration,
    next: Instant,
    end: Instant,
    on_off: Option<OnOff>,
    /// When the present time on ends.
    on_until: Instant,
    random: Random,
    buffer: BytesMut,
    sent: u64,
}

impl Source {
    /// A source of datagrams of `bytes` from the first address to the second, one each `interval`.
    pub fn new(route: (SocketAddr, SocketAddr), bytes: usize, interval: Duration) -> Self {
        Self {
            route,
            bytes,
            interval: interval.max(Duration::from_nanos(1)),
            next: Instant::ZERO,
            end: Instant::from_nanos(u64::MAX),
            on_off: None,
            on_until: Instant::from_nanos(u64::MAX),
            random: Random::from_u64(0),
            buffer: BytesMut::new(),
            sent: 0,
        }
    }

    /// Within these times.
    pub fn between(mut self, start: Instant, end: Instant) -> Self {
        (self.next, self.end) = (start, end);
        self
    }

    /// On and off in turns.
    pub fn on_off(mut self, on_off: OnOff, mut random: Random) -> Self {
        self.on_until = self.next + draw(on_off.on, &mut random);
        self.on_off = Some(on_off);
        self.random = random;
        self
    }

    /// Datagrams sent so far.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    fn step(&mut self) {
        self.next += self.interval;
        if let Some(on_off) = self.on_off.filter(|_| self.next >= self.on_until) {
            self.next = self.on_until + draw(on_off.off, &mut self.random);
            self.on_until = self.next + draw(on_off.on, &mut self.random);
        }
    }
}

fn draw((low, high): (Duration, Duration), random: &mut Random) -> Duration {
    low + high.saturating_sub(low).mul_f64(random.unit())
}

impl Host for Source {
    fn on_datagram(&mut self, _now: Instant, _datagram: Datagram) {}

    fn on_timeout(&mut self, _now: Instant) {}

    fn deadline(&self) -> Option<Instant> {
        (self.next < self.end).then_some(self.next)
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut VecDeque<Datagram>) {
        while self.next <= now && self.next < self.end {
            self.step();
            self.sent += 1;
            if self.buffer.capacity() < self.bytes {
                // Datagrams of one allocation: it is free again when the last of them has arrived.
                self.buffer = BytesMut::with_capacity(self.bytes * DATAGRAMS_PER_BUFFER);
            }
            self.buffer.resize(self.bytes, 7);
            let payload = self.buffer.split();
            out.push_back(Datagram { src: self.route.0, dst: self.route.1, ecn: None, payload });
        }
    }
}

/// Takes everything and counts it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sink {
    received: u64,
    bytes: u64,
}

impl Sink {
    /// Datagrams so far.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Payload bytes so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Host for Sink {
    fn on_datagram(&mut self, _now: Instant, datagram: Datagram) {
        self.received += 1;
        self.bytes += datagram.payload.len() as u64;
    }

    fn on_timeout(&mut self, _now: Instant) {}

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn poll_transmit(&mut self, _now: Instant, _out: &mut VecDeque<Datagram>) {}
}
