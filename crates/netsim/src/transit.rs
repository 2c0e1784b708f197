//! A datagram's way through the network, hop by hop.

use std::hash::BuildHasher;

use plait_base::Instant;
use rustc_hash::FxBuildHasher;

use crate::capture::{Fate, Lost};
use crate::host::{Datagram, HostId, InterfaceState};
use crate::ids::{BoxId, LinkId, NatId};
use crate::link::{Delivery, DropCause, Integrity, Outcome, Verdict};
use crate::middlebox::{Pass, flip_bit};
use crate::network::{Damage, Hop, Network};
use crate::queue::What;
use crate::table::{AddressKey, WayKey};
use crate::tap::Tapped;

/// The way through a NAT.
#[derive(Clone, Copy, Debug)]
enum Towards {
    Public,
    Inner,
}

impl Network {
    /// A host sends a datagram now, whose payload is taken.
    pub(crate) fn send(&mut self, datagram: &mut Datagram) {
        self.log.note(self.now, Fate::Sent, datagram);
        let (src, dst) = (datagram.src.ip(), datagram.dst.ip());
        if self.interfaces.get(&AddressKey(src)).is_some_and(|i| i.state == InterfaceState::Down) {
            return self.log.note(self.now, Fate::Lost(Lost::InterfaceDown), datagram);
        }
        let route = |src| self.by_pair.get(&WayKey { src, dst });
        let route = route(Some(src)).or_else(|| route(None));
        let Some(route) = route.copied() else {
            return self.log.note(self.now, Fate::Lost(Lost::NoRoute), datagram);
        };
        let index = self.flights.begin(datagram, route, self.now);
        self.advance(index);
    }

    /// A datagram reaches the far end of a link, or the end of its route: then [`Self::deliver`] has it for this host.
    pub(crate) fn arrive(&mut self, index: u32) -> Option<HostId> {
        let flight = self.flights.get_mut(index)?;
        if let Some(link) = flight.link
            && let Some(cut) = self.links.get(link as usize).and_then(|slot| slot.link.cut_at())
            && flight.entered <= cut
            && flight.departure > cut
        {
            self.lose(Lost::Link(LinkId(link), DropCause::Down), index);
            return None;
        }
        let hops = self.routes.get(flight.route as usize).map_or(0, Vec::len);
        if (flight.hop as usize) < hops {
            self.advance(index);
            return None;
        }
        let interface = self.interfaces.get(&AddressKey(flight.datagram.dst.ip()));
        let lost = match interface {
            None => Lost::NoHost,
            Some(i) if i.state == InterfaceState::Down => Lost::InterfaceDown,
            Some(i) => {
                self.log.note(self.now, Fate::Arrived, &flight.datagram);
                return Some(i.host);
            }
        };
        self.lose(lost, index);
        None
    }

    /// Takes a datagram that has arrived.
    #[inline]
    pub(crate) fn deliver(&mut self, index: u32) -> Option<Datagram> {
        self.flights.take(index)
    }

    /// Takes the datagram through its next hops until it is on a link, waits or is lost.
    fn advance(&mut self, index: u32) {
        loop {
            let Some(flight) = self.flights.get_mut(index) else { return };
            let hop = self.routes.get(flight.route as usize).and_then(|hops| hops.get(flight.hop as usize)).copied();
            flight.hop += 1;
            flight.link = None;
            let goes_on = match hop {
                None => return self.events.push(self.now, What::Arrive(index)),
                Some(Hop::Link(link)) => return self.offer(link, index),
                Some(Hop::NatOut(id)) => self.translate(id, index, Towards::Public),
                Some(Hop::NatIn(id)) => self.translate(id, index, Towards::Inner),
                Some(Hop::Middlebox(id)) => self.pass(id, index),
            };
            if goes_on.is_none() {
                return;
            }
        }
    }

    /// Through a NAT; none when it is lost there.
    fn translate(&mut self, id: NatId, index: u32, towards: Towards) -> Option<()> {
        let flight = self.flights.get_mut(index)?;
        let Datagram { src, dst, .. } = flight.datagram;
        let nat = self.nats.get_mut(id.0 as usize);
        let address = match towards {
            Towards::Public => nat.and_then(|nat| nat.outbound(self.now, src, dst)),
            Towards::Inner => nat.and_then(|nat| nat.inbound(self.now, src, dst)),
        };
        match (address, towards) {
            (Some(public), Towards::Public) => flight.datagram.src = public,
            (Some(inner), Towards::Inner) => flight.datagram.dst = inner,
            (None, _) => {
                self.lose(Lost::Nat(id), index);
                return None;
            }
        }
        Some(())
    }

    /// Past a middlebox; none when it does not go on now.
    fn pass(&mut self, id: BoxId, index: u32) -> Option<()> {
        let flight = self.flights.get_mut(index)?;
        let Some(middlebox) = self.boxes.get_mut(id.0 as usize) else { return Some(()) };
        match middlebox.pass(self.now, &mut flight.datagram, &mut self.random) {
            Pass::On => return Some(()),
            Pass::Drop => self.lose(Lost::Middlebox(id), index),
            Pass::Later(delay) => self.events.push(self.now + delay, What::Arrive(index)),
            Pass::Twice => {
                let copy = flight.clone();
                let copy = self.flights.double(copy);
                self.log.totals.doubled += 1;
                self.events.push(self.now, What::Arrive(copy));
                return Some(());
            }
        }
        None
    }

    fn offer(&mut self, id: LinkId, index: u32) {
        let Some(flight) = self.flights.get_mut(index) else { return };
        let Some(slot) = self.links.get_mut(id.0 as usize) else {
            return self.lose(Lost::NoRoute, index);
        };
        flight.link = Some(id.0);
        flight.entered = self.now;
        let Datagram { src, dst, ecn, ref payload } = flight.datagram;
        let flow = if slot.link.heeds_flows() { FxBuildHasher.hash_one((src, dst)) } else { 0 };
        match slot.link.offer_flow(self.now, payload.len(), ecn, flow) {
            Verdict::Forward(delivery) => self.forward(id, index, &delivery),
            Verdict::Dropped(cause) => self.lose(Lost::Link(id, cause), index),
            Verdict::Queued(ticket) => {
                slot.waiting.push(ticket, index);
                self.serve_link(id);
            }
        }
    }

    /// The link has let the datagram through: one or two copies are on their way.
    fn forward(&mut self, id: LinkId, index: u32, delivery: &Delivery) {
        let Some(flight) = self.flights.get_mut(index) else { return };
        flight.departure = delivery.departure;
        flight.datagram.ecn = delivery.ecn;
        if let Some(tap) = self.links.get_mut(id.0 as usize).and_then(|slot| slot.tap.as_mut()) {
            tap.push(Tapped { at: delivery.departure, datagram: flight.datagram.clone() });
        }
        if let Some(second) = delivery.second {
            let copy = flight.clone();
            let copy = self.flights.double(copy);
            self.log.totals.doubled += 1;
            self.land(id, copy, second.at, second.integrity);
        }
        self.land(id, index, delivery.first.at, delivery.first.integrity);
    }

    fn land(&mut self, id: LinkId, index: u32, at: Instant, integrity: Integrity) {
        if integrity == Integrity::Corrupted {
            match self.damage {
                Damage::Checksum => return self.lose(Lost::Checksum(id), index),
                Damage::Flip => {
                    if let Some(flight) = self.flights.get_mut(index) {
                        flip_bit(&mut flight.datagram.payload, &mut self.random);
                    }
                }
            }
        }
        self.events.push_in_lane(id.0, at, What::Arrive(index));
    }

    /// Takes what the queue of a link has released by now, and sees to its next event.
    pub(crate) fn serve_link(&mut self, id: LinkId) {
        loop {
            let Some(slot) = self.links.get_mut(id.0 as usize) else { return };
            let Some(release) = slot.link.poll(self.now) else {
                let due = slot.link.deadline().map(|at| at.max(self.now));
                if let Some(at) = due.filter(|at| slot.armed.is_none_or(|armed| *at < armed)) {
                    slot.armed = Some(at);
                    self.events.push(at, What::Link(id.0));
                }
                return;
            };
            let Some(index) = slot.waiting.take(release.ticket) else { continue };
            match release.outcome {
                Outcome::Forward(delivery) => self.forward(id, index, &delivery),
                Outcome::Dropped(cause) => self.lose(Lost::Link(id, cause), index),
            }
        }
    }

    /// The event that a link asked for.
    pub(crate) fn on_link_event(&mut self, link: u32) {
        if let Some(slot) = self.links.get_mut(link as usize)
            && slot.armed == Some(self.now)
        {
            slot.armed = None;
            self.serve_link(LinkId(link));
        }
    }

    fn lose(&mut self, lost: Lost, index: u32) {
        if let Some(datagram) = self.flights.take(index) {
            self.log.note(self.now, Fate::Lost(lost), &datagram);
        }
    }
}
