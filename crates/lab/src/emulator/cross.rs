//! Cross traffic: packets of nobody on this machine that take up room on the links.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use plait_base::{Instant, Random};
use plait_netsim::{Host, Source};
use plait_sim::run::cross;
use plait_sim::scenario::{CrossLoad, CrossPlan, Direction, Place};

use super::packet::{Facts, V4_UDP_BYTES, write_v4_udp};

/// A source of packets, with their way.
#[derive(Debug)]
pub(super) struct CrossStream {
    source: Source,
    /// Through which links, in the order from clients to servers.
    pub(super) via: Vec<Place>,
    pub(super) direction: Direction,
    /// What each of its packets is.
    packet: Vec<u8>,
    pub(super) facts: Facts,
    /// What has come to its end.
    arrived_packets: u64,
}

/// What a stream of cross traffic did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CrossCount {
    /// Packets that it sent.
    pub(crate) sent_packets: u64,
    /// Payload that came to its end, bytes.
    pub(crate) arrived_bytes: u64,
}

impl CrossStream {
    /// The streams of these plans; those that are connections were refused before.
    pub(super) fn all(plans: &[CrossPlan], random: &mut Random) -> Vec<Self> {
        let of = |(index, plan): (usize, &CrossPlan)| {
            let mut random = random.fork();
            let CrossLoad::Packets(packets) = plan.load else { return None };
            let address = |side| SocketAddrV4::new(Ipv4Addr::new(10, side, index as u8 + 1, 2), 5000);
            let (from, to) = match plan.direction {
                Direction::Up => (address(1), address(2)),
                Direction::Down => (address(2), address(1)),
            };
            let end = plan.stop.map_or(Instant::from_nanos(u64::MAX), |stop| Instant::ZERO + stop);
            let route = (SocketAddr::from(from), SocketAddr::from(to));
            let source = cross::source(&packets, route, (Instant::ZERO + plan.start, end), random.fork());
            let payload = packets.packet_bytes as usize;
            let mut packet = vec![0; V4_UDP_BYTES + payload];
            write_v4_udp(&mut packet, (from, to), 0, payload);
            let facts = Facts::read(&packet)?;
            Some(Self { source, via: plan.via.clone(), direction: plan.direction, packet, facts, arrived_packets: 0 })
        };
        plans.iter().enumerate().filter_map(of).collect()
    }

    /// When its next packet leaves.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.source.deadline()
    }

    /// One of its packets has come to its end.
    pub(super) fn on_arrival(&mut self) {
        self.arrived_packets += 1;
    }

    /// What it did.
    pub(super) fn count(&self) -> CrossCount {
        let arrived_bytes = self.arrived_packets * self.facts.payload_bytes as u64;
        CrossCount { sent_packets: self.source.sent(), arrived_bytes }
    }

    /// The packets that leave by `now`: their number, and what each of them is.
    pub(super) fn poll(&mut self, now: Instant) -> (usize, &[u8]) {
        let mut out = VecDeque::new();
        self.source.poll_transmit(now, &mut out);
        (out.len(), &self.packet)
    }
}
