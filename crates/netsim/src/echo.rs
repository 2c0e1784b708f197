//! The smallest host: sends back whatever it gets.

use std::collections::VecDeque;
use std::net::SocketAddr;

use bytes::BytesMut;
use plait_base::Instant;

use crate::host::{Datagram, Host};

/// Answers each datagram with itself; keeps no copy.
#[derive(Clone, Debug, Default)]
pub struct Echo {
    out: VecDeque<Datagram>,
    received: u64,
}

impl Echo {
    /// Sends `payload` of its own accord.
    pub fn send(&mut self, src: SocketAddr, dst: SocketAddr, payload: &[u8]) {
        self.out.push_back(Datagram { src, dst, ecn: None, payload: BytesMut::from(payload) });
    }

    /// Datagrams received so far.
    pub fn received(&self) -> u64 {
        self.received
    }
}

impl Host for Echo {
    fn on_datagram(&mut self, _now: Instant, datagram: Datagram) {
        self.received += 1;
        self.out.push_back(Datagram { src: datagram.dst, dst: datagram.src, ..datagram });
    }

    fn on_timeout(&mut self, _now: Instant) {}

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn poll_transmit(&mut self, _now: Instant, out: &mut VecDeque<Datagram>) {
        out.append(&mut self.out);
    }
}
