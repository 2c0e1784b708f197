//! Cross traffic: packets of nobody on this machine that take up room on the links, and connections between hosts of their own.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use plait_base::{Instant, Random};
use plait_netsim::link::{Jitter, LinkConfig};
use plait_netsim::{Host, Source};
use plait_sim::run::cross;
use plait_sim::scenario::{CrossLoad, CrossPlan, Direction, Packets, Place};

use super::packet::{Facts, V4_UDP_BYTES, write_v4_udp};

/// Packets that the loop itself sends.
#[derive(Debug)]
struct Sending {
    source: Source,
    /// What each of its packets is.
    packet: Vec<u8>,
    facts: Facts,
}

/// A stream of cross traffic, with its way.
#[derive(Debug)]
pub(super) struct CrossStream {
    /// None for a connection, whose packets come from hosts.
    sending: Option<Sending>,
    /// Through which links, in the order from clients to servers.
    pub(super) via: Vec<Place>,
    /// A link of its own behind these.
    pub(super) access: Option<LinkConfig>,
    pub(super) direction: Direction,
    count: CrossCount,
}

/// What a stream of cross traffic did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CrossCount {
    /// Packets that it sent in its direction.
    pub(crate) sent_packets: u64,
    /// Payload that came to its end, bytes: of datagrams, whatever they carry.
    pub(crate) arrived_bytes: u64,
    /// When it first sent, in either direction.
    pub(crate) first: Option<Instant>,
}

/// The link that a connection has for itself: half of its own round trip each way, with its jitter.
fn access(plan: &CrossPlan) -> Option<LinkConfig> {
    let CrossLoad::Flow { rtt, jitter, .. } = plan.load else { return None };
    let spread = if jitter.is_zero() { Jitter::None } else { Jitter::Uniform(jitter) };
    let is_there = !(rtt.is_zero() && jitter.is_zero());
    is_there.then(|| LinkConfig { delay: rtt / 2, jitter: spread, ..LinkConfig::default() })
}

impl Sending {
    fn new(plan: &CrossPlan, packets: &Packets, index: usize, random: Random) -> Option<Self> {
        let address = |side| SocketAddrV4::new(Ipv4Addr::new(10, side, index as u8 + 1, 2), 5000);
        let (from, to) = match plan.direction {
            Direction::Up => (address(1), address(2)),
            Direction::Down => (address(2), address(1)),
        };
        let end = plan.stop.map_or(Instant::from_nanos(u64::MAX), |stop| Instant::ZERO + stop);
        let route = (SocketAddr::from(from), SocketAddr::from(to));
        let source = cross::source(packets, route, (Instant::ZERO + plan.start, end), random);
        let payload = packets.packet_bytes as usize;
        let mut packet = vec![0; V4_UDP_BYTES + payload];
        write_v4_udp(&mut packet, (from, to), 0, payload);
        let facts = Facts::read(&packet)?;
        Some(Self { source, packet, facts })
    }
}

impl CrossStream {
    /// The streams of these plans, in their order.
    pub(super) fn all(plans: &[CrossPlan], random: &mut Random) -> Vec<Self> {
        let of = |(index, plan): (usize, &CrossPlan)| {
            let mut random = random.fork();
            let sending = match &plan.load {
                CrossLoad::Packets(packets) => Sending::new(plan, packets, index, random.fork()),
                CrossLoad::Flow { .. } => None,
            };
            let (via, count) = (plan.via.clone(), CrossCount::default());
            Self { sending, via, access: access(plan), direction: plan.direction, count }
        };
        plans.iter().enumerate().map(of).collect()
    }

    /// When its next packet leaves that the loop sends.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.sending.as_ref()?.source.deadline()
    }

    /// A packet that its hosts have sent.
    pub(super) fn on_sent(&mut self, now: Instant, direction: Direction) {
        self.count.first.get_or_insert(now);
        self.count.sent_packets += u64::from(direction == self.direction);
    }

    /// A packet of it has come to its end.
    pub(super) fn on_arrival(&mut self, direction: Direction, payload_bytes: usize) {
        if direction == self.direction {
            self.count.arrived_bytes += payload_bytes as u64;
        }
    }

    /// Whether its packets are for hosts.
    pub(super) fn has_hosts(&self) -> bool {
        self.sending.is_none()
    }

    /// What it did.
    pub(super) fn count(&self) -> CrossCount {
        self.count
    }

    /// The packets that the loop sends by `now`.
    pub(super) fn poll(&mut self, now: Instant) -> Vec<(Facts, Vec<u8>)> {
        let Some(Sending { source, packet, facts }) = &mut self.sending else { return Vec::new() };
        let mut out = VecDeque::new();
        source.poll_transmit(now, &mut out);
        let packets = vec![(*facts, packet.clone()); out.len()];
        packets.iter().for_each(|_| self.on_sent(now, self.direction));
        packets
    }
}
