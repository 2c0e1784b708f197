//! A datagram's way through the network, hop by hop.

use plait_base::Instant;
use plait_link::{Delivery, Integrity, Outcome, Verdict};

use crate::capture::{Fate, Lost};
use crate::flights::Flight;
use crate::host::{Datagram, HostId, InterfaceState};
use crate::middlebox::{Pass, flip_bit};
use crate::network::{Damage, Hop, LinkId, Network};
use crate::queue::What;

impl Network {
    /// A host sends a datagram now.
    pub(crate) fn send(&mut self, datagram: Datagram) {
        self.observer.note(self.now, Fate::Sent, &datagram);
        let (src, dst) = (datagram.src.ip(), datagram.dst.ip());
        if self.interfaces.get(&src).is_some_and(|i| i.state == InterfaceState::Down) {
            return self.lose(Lost::InterfaceDown, &datagram);
        }
        let route = self.by_pair.get(&(Some(src), dst)).or_else(|| self.by_pair.get(&(None, dst)));
        let Some(route) = route.copied() else {
            return self.lose(Lost::NoRoute, &datagram);
        };
        let flight = Flight { datagram, route, hop: 0, link: None, entered: self.now, departure: self.now };
        self.advance(flight);
    }

    /// A datagram reaches the far end of a link, or the end of its route: then it is given to a host.
    pub(crate) fn arrive(&mut self, index: u32) -> Option<(HostId, Datagram)> {
        let flight = self.flights.take(index)?;
        if let Some(link) = flight.link
            && let Some(cut) = self.links.get(link as usize).and_then(|slot| slot.link.cut_at())
            && flight.entered <= cut
            && flight.departure > cut
        {
            self.lose(Lost::Link(LinkId(link), plait_link::DropCause::Down), &flight.datagram);
            return None;
        }
        let hops = self.routes.get(flight.route as usize).map_or(0, Vec::len);
        if (flight.hop as usize) < hops {
            self.advance(flight);
            return None;
        }
        self.deliver(flight.datagram)
    }

    fn deliver(&mut self, datagram: Datagram) -> Option<(HostId, Datagram)> {
        match self.interfaces.get(&datagram.dst.ip()) {
            None => self.lose(Lost::NoHost, &datagram),
            Some(i) if i.state == InterfaceState::Down => self.lose(Lost::InterfaceDown, &datagram),
            Some(i) => {
                let host = i.host;
                self.observer.note(self.now, Fate::Arrived, &datagram);
                return Some((host, datagram));
            }
        }
        None
    }

    /// Takes the datagram through its next hops until it is on a link, waits or is lost.
    fn advance(&mut self, mut flight: Flight) {
        loop {
            let hop = self.routes.get(flight.route as usize).and_then(|hops| hops.get(flight.hop as usize)).copied();
            flight.hop += 1;
            flight.link = None;
            match hop {
                None => return self.schedule(self.now, flight),
                Some(Hop::Link(link)) => return self.offer(link, flight),
                Some(Hop::NatOut(id)) => {
                    let Datagram { src, dst, .. } = flight.datagram;
                    match self.nats.get_mut(id.0 as usize).and_then(|nat| nat.outbound(self.now, src, dst)) {
                        Some(public) => flight.datagram.src = public,
                        None => return self.lose(Lost::Nat(id), &flight.datagram),
                    }
                }
                Some(Hop::NatIn(id)) => {
                    let Datagram { src, dst, .. } = flight.datagram;
                    match self.nats.get_mut(id.0 as usize).and_then(|nat| nat.inbound(self.now, src, dst)) {
                        Some(inner) => flight.datagram.dst = inner,
                        None => return self.lose(Lost::Nat(id), &flight.datagram),
                    }
                }
                Some(Hop::Middlebox(id)) => {
                    let Some(middlebox) = self.boxes.get_mut(id.0 as usize) else { continue };
                    match middlebox.pass(self.now, &mut flight.datagram, &mut self.random) {
                        Pass::On => {}
                        Pass::Drop => return self.lose(Lost::Middlebox(id), &flight.datagram),
                        Pass::Later(delay) => return self.schedule(self.now + delay, flight),
                        Pass::Twice => self.schedule(self.now, flight.clone()),
                    }
                }
            }
        }
    }

    fn offer(&mut self, id: LinkId, mut flight: Flight) {
        let Some(slot) = self.links.get_mut(id.0 as usize) else {
            return self.lose(Lost::NoRoute, &flight.datagram);
        };
        flight.link = Some(id.0);
        flight.entered = self.now;
        match slot.link.offer(self.now, flight.datagram.payload.len(), flight.datagram.ecn) {
            Verdict::Forward(delivery) => self.forward(id, flight, &delivery),
            Verdict::Dropped(cause) => self.lose(Lost::Link(id, cause), &flight.datagram),
            Verdict::Queued(ticket) => {
                slot.waiting.push_back((ticket, self.flights.insert(flight)));
                self.serve_link(id);
            }
        }
    }

    /// The link has let the datagram through: one or two copies are on their way.
    fn forward(&mut self, id: LinkId, mut flight: Flight, delivery: &Delivery) {
        flight.departure = delivery.departure;
        flight.datagram.ecn = delivery.ecn;
        if let Some(second) = delivery.second {
            self.land(id, flight.clone(), second.at, second.integrity);
        }
        self.land(id, flight, delivery.first.at, delivery.first.integrity);
    }

    fn land(&mut self, id: LinkId, mut flight: Flight, at: Instant, integrity: Integrity) {
        if integrity == Integrity::Corrupted {
            match self.damage {
                Damage::Flip => flip_bit(&mut flight.datagram.payload, &mut self.random),
                Damage::Checksum => return self.lose(Lost::Checksum(id), &flight.datagram),
            }
        }
        self.schedule(at, flight);
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
            // Tickets leave in the order of their making, except that a drop overtakes the datagram being sent.
            let Some(position) = slot.waiting.iter().position(|(ticket, _)| *ticket == release.ticket) else {
                continue;
            };
            let Some(flight) = slot.waiting.remove(position).and_then(|(_, index)| self.flights.take(index)) else {
                continue;
            };
            match release.outcome {
                Outcome::Forward(delivery) => self.forward(id, flight, &delivery),
                Outcome::Dropped(cause) => self.lose(Lost::Link(id, cause), &flight.datagram),
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

    fn schedule(&mut self, at: Instant, flight: Flight) {
        let index = self.flights.insert(flight);
        self.events.push(at, What::Arrive(index));
    }

    fn lose(&mut self, lost: Lost, datagram: &Datagram) {
        self.observer.note(self.now, Fate::Lost(lost), datagram);
    }
}
