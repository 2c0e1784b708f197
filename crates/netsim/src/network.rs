//! Everything between the hosts: links, NATs, middleboxes and the routes through them.

use std::collections::VecDeque;
use std::net::IpAddr;

use plait_base::{Instant, Random};

use crate::capture::WorldLog;
use crate::flights::Flights;
use crate::host::{HostId, InterfaceState};
use crate::ids::{BoxId, LinkId, NatId};
use crate::link::{Link, LinkConfig, LinkStats, Ticket};
use crate::middlebox::Middlebox;
use crate::nat::{Nat, NatConfig, Rebinding};
use crate::queue::EventQueue;
use crate::table::{ByAddress, ByEnds, WayKey};
use crate::tap::{Tap, Tapped};

/// One stop of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hop {
    /// Through one direction of a link.
    Link(LinkId),
    /// Out through a NAT, which changes the source.
    NatOut(NatId),
    /// In through a NAT, which changes the destination.
    NatIn(NatId),
    /// Past a middlebox.
    Middlebox(BoxId),
}

/// The two directions of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duplex {
    /// From the first address to the second.
    pub forward: LinkId,
    /// From the second address to the first.
    pub backward: LinkId,
}

/// What becomes of datagrams that a link damages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Damage {
    /// They arrive with one bit flipped.
    #[default]
    Flip,
    /// They are dropped, as by the UDP checksum.
    Checksum,
}

/// A link and the datagrams in its queue.
#[derive(Debug)]
pub(crate) struct LinkSlot {
    pub(crate) link: Link,
    pub(crate) waiting: QueuedPayloads,
    /// The earliest event that waits for this link.
    pub(crate) armed: Option<Instant>,
    /// What left the queue, where somebody wants to know.
    pub(crate) tap: Option<Tap>,
}

/// The datagrams in a queue by their tickets, which count up.
#[derive(Debug, Default)]
pub(crate) struct QueuedPayloads {
    slots: VecDeque<Option<u32>>,
    /// The ticket of the first slot.
    first: u64,
}

impl QueuedPayloads {
    pub(crate) fn push(&mut self, ticket: Ticket, index: u32) {
        if self.slots.is_empty() {
            self.first = ticket.0;
        }
        while self.first + (self.slots.len() as u64) < ticket.0 {
            self.slots.push_back(None);
        }
        self.slots.push_back(Some(index));
    }

    pub(crate) fn take(&mut self, ticket: Ticket) -> Option<u32> {
        let at = usize::try_from(ticket.0.checked_sub(self.first)?).ok()?;
        let index = self.slots.get_mut(at)?.take();
        while self.slots.front().is_some_and(Option::is_none) {
            self.slots.pop_front();
            self.first += 1;
        }
        index
    }
}

/// An address and who has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interface {
    pub(crate) host: HostId,
    pub(crate) state: InterfaceState,
}

/// The network. Its methods act at the present time of its world.
pub struct Network {
    pub(crate) now: Instant,
    pub(crate) events: EventQueue,
    pub(crate) flights: Flights,
    pub(crate) links: Vec<LinkSlot>,
    pub(crate) nats: Vec<Nat>,
    pub(crate) boxes: Vec<Box<dyn Middlebox>>,
    pub(crate) routes: Vec<Vec<Hop>>,
    /// Route by source and destination; without a source: for any that has none of its own.
    pub(crate) by_pair: ByEnds<u32>,
    pub(crate) interfaces: ByAddress<Interface>,
    pub(crate) log: WorldLog,
    pub(crate) random: Random,
    pub(crate) damage: Damage,
}

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Network")
            .field("now", &self.now)
            .field("links", &self.links.len())
            .field("in_flight", &self.flights.len())
            .finish_non_exhaustive()
    }
}

impl Network {
    pub(crate) fn new(random: Random) -> Self {
        Self {
            now: Instant::ZERO,
            events: EventQueue::default(),
            flights: Flights::default(),
            links: Vec::new(),
            nats: Vec::new(),
            boxes: Vec::new(),
            routes: Vec::new(),
            by_pair: Default::default(),
            interfaces: Default::default(),
            log: WorldLog::default(),
            random,
            damage: Damage::default(),
        }
    }

    /// Adds one direction of a link, with randomness of its own.
    pub fn add_link(&mut self, config: LinkConfig) -> LinkId {
        let link = Link::new(config, self.random.fork());
        self.links.push(LinkSlot { link, waiting: QueuedPayloads::default(), armed: None, tap: None });
        LinkId(self.links.len() as u32 - 1)
    }

    /// Adds a NAT.
    pub fn add_nat(&mut self, config: NatConfig) -> NatId {
        self.nats.push(Nat::new(config));
        NatId(self.nats.len() as u32 - 1)
    }

    /// Adds a middlebox.
    pub fn add_middlebox(&mut self, middlebox: impl Middlebox + 'static) -> BoxId {
        self.boxes.push(Box::new(middlebox));
        BoxId(self.boxes.len() as u32 - 1)
    }

    /// Datagrams from `src` to `dst` go through `hops`; replaces an earlier route.
    pub fn route(&mut self, src: IpAddr, dst: IpAddr, hops: &[Hop]) {
        self.set_route(Some(src), dst, hops);
    }

    /// Datagrams to `dst` from sources without a route of their own go through `hops`.
    pub fn route_from_any(&mut self, dst: IpAddr, hops: &[Hop]) {
        self.set_route(None, dst, hops);
    }

    fn set_route(&mut self, src: Option<IpAddr>, dst: IpAddr, hops: &[Hop]) {
        self.routes.push(hops.to_vec());
        self.by_pair.insert(WayKey { src, dst }, self.routes.len() as u32 - 1);
    }

    /// Two addresses with a link of their own, the same settings each way.
    pub fn connect(&mut self, a: IpAddr, b: IpAddr, config: LinkConfig) -> Duplex {
        self.connect_asymmetric(a, b, config.clone(), config)
    }

    /// Two addresses with a link of their own.
    fn connect_asymmetric(&mut self, a: IpAddr, b: IpAddr, forward: LinkConfig, backward: LinkConfig) -> Duplex {
        let duplex = Duplex { forward: self.add_link(forward), backward: self.add_link(backward) };
        self.route(a, b, &[Hop::Link(duplex.forward)]);
        self.route(b, a, &[Hop::Link(duplex.backward)]);
        duplex
    }

    /// Changes the settings of a link now.
    pub fn change_link(&mut self, id: LinkId, edit: impl FnOnce(&mut LinkConfig)) {
        if let Some(slot) = self.links.get_mut(id.0 as usize) {
            slot.link.change(self.now, edit);
            if let (Some(tap), Some(at)) = (&mut slot.tap, slot.link.cut_at().filter(|at| *at == self.now)) {
                tap.cut(at);
            }
            self.serve_link(id);
        }
    }

    /// Changes both directions of a link now.
    pub fn change_duplex(&mut self, duplex: Duplex, edit: impl Fn(&mut LinkConfig)) {
        self.change_link(duplex.forward, &edit);
        self.change_link(duplex.backward, &edit);
    }

    /// A link, to read it.
    pub fn link(&self, id: LinkId) -> Option<&Link> {
        self.links.get(id.0 as usize).map(|slot| &slot.link)
    }

    /// What a link has done so far.
    pub fn link_stats(&self, id: LinkId) -> LinkStats {
        self.link(id).map(|link| *link.stats()).unwrap_or_default()
    }

    /// From now on the datagrams that leave this link's queue are kept for [`Network::take_tapped`].
    pub fn tap(&mut self, id: LinkId) {
        if let Some(slot) = self.links.get_mut(id.0 as usize) {
            slot.tap.get_or_insert_default();
        }
    }

    /// What has left the queue of a tapped link by now and was not taken yet, in the order of time.
    ///
    /// What the link loses is not in it, be it in the queue, on the wire or because the link went down meanwhile. A
    /// duplicate made on the wire is in it once, and damage done there not yet.
    pub fn take_tapped(&mut self, id: LinkId) -> Vec<Tapped> {
        let tap = self.links.get_mut(id.0 as usize).and_then(|slot| slot.tap.as_mut());
        tap.map(|tap| tap.take(self.now)).unwrap_or_default()
    }

    /// A NAT loses its mappings now.
    pub fn rebind(&mut self, id: NatId, rebinding: Rebinding) {
        if let Some(nat) = self.nats.get_mut(id.0 as usize) {
            nat.rebind(rebinding);
        }
    }

    /// What becomes of damaged datagrams from now on.
    pub fn set_damage(&mut self, damage: Damage) {
        self.damage = damage;
    }

    /// Datagrams on their way.
    pub fn in_flight(&self) -> usize {
        self.flights.len()
    }
}
