//! The world of a scenario: one server address, one client address per path, and the links between them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use plait_base::{FourTuple, Instant, Random};
use plait_netsim::link::{LinkStats, Loss, Rate, Service};
use plait_netsim::{BoxId, Duplex, Hop, LinkId, NatConfig, NatId, Network, Rebinding, Rule, World};

use crate::scenario::{Direction, DuplexPlan, EventPlan, LinkPlan, Place, Rebind, Scenario, Sides, Vary};

/// The port of every client address.
const CLIENT_PORT: u16 = 5000;
/// Where the server listens, on every path.
const SERVER: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 9, 0, 1), 4433);

/// The server's address.
pub fn server_address() -> SocketAddr {
    SERVER.into()
}

/// The client's address on a path.
pub fn client_address(path: usize) -> SocketAddr {
    (Ipv4Addr::new(10, 0, path as u8 + 1, 2), CLIENT_PORT).into()
}

/// The second byte of public addresses of NATs.
const NAT: u8 = 100;

/// A public address of a path's NAT; there is a new one after each change.
fn public_address(path: usize, change: u8) -> IpAddr {
    Ipv4Addr::new(10, NAT, path as u8 + 1, change).into()
}

/// Which path of the scenario a route runs over.
pub(crate) fn path_of(route: &FourTuple) -> Option<usize> {
    let client = if route.local == server_address() { route.remote } else { route.local };
    match client.ip() {
        IpAddr::V4(ip) => match ip.octets() {
            [10, 0 | NAT, path, _] if path > 0 => Some(usize::from(path) - 1),
            _ => None,
        },
        IpAddr::V6(_) => None,
    }
}

/// Everything between the ends: links in the order of their places, middleboxes before them, NATs of paths.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wires {
    pub(crate) links: Vec<Duplex>,
    /// Before each link: towards the server, and towards the client.
    boxes: Vec<(Vec<BoxId>, Vec<BoxId>)>,
    nats: Vec<Option<NatId>>,
}

impl Wires {
    /// Adds all of them to a network, and the routes of the paths through them.
    pub(crate) fn build(net: &mut Network, scenario: &Scenario) -> Self {
        let mut wires = Self::default();
        for (plan, service) in scenario.duplexes().zip(services(scenario)) {
            let (forward, backward) = (net.add_link(plan.up.config(service)), net.add_link(plan.down.config(service)));
            wires.links.push(Duplex { forward, backward });
            wires.boxes.push((Vec::new(), Vec::new()));
        }
        for rule in &scenario.rules {
            let Some((up, down)) = wires.boxes.get_mut(rule.place.0) else { continue };
            let mut add = |to: &mut Vec<BoxId>| to.push(net.add_middlebox(Rule::new(rule.when.clone(), rule.treat)));
            if rule.sides != Sides::Down {
                add(up);
            }
            if rule.sides != Sides::Up {
                add(down);
            }
        }
        for (path, plan) in scenario.paths.iter().enumerate() {
            let (client, server) = (client_address(path).ip(), server_address().ip());
            let (mut there, mut back) = wires.hops(&scenario.way(path));
            let nat = plan.nat.map(|nat| {
                let public = public_address(path, 1);
                let (timeout, mapping, filtering) = (nat.timeout, nat.mapping, nat.filtering);
                net.add_nat(NatConfig { public, timeout, mapping, filtering })
            });
            if let Some(nat) = nat {
                there.insert(0, Hop::NatOut(nat));
                back.push(Hop::NatIn(nat));
                net.route(server, public_address(path, 1), &back);
            }
            wires.nats.push(nat);
            net.route(client, server, &there);
            net.route(server, client, &back);
        }
        wires
    }

    /// Stops through the links at these places, from the first to the last and back.
    pub(crate) fn hops(&self, places: &[Place]) -> (Vec<Hop>, Vec<Hop>) {
        let hops =
            |boxes: &[BoxId], link| boxes.iter().map(|id| Hop::Middlebox(*id)).chain([Hop::Link(link)]).collect();
        let at = |place: &Place| Some((self.links.get(place.0)?, self.boxes.get(place.0)?));
        let there = places.iter().filter_map(at).flat_map(|(link, (up, _))| -> Vec<Hop> { hops(up, link.forward) });
        let back = places.iter().rev().filter_map(at);
        let back = back.flat_map(|(link, (_, down))| -> Vec<Hop> { hops(down, link.backward) });
        (there.collect(), back.collect())
    }

    /// One direction of a link.
    pub(crate) fn link(&self, place: Place, direction: Direction) -> Option<LinkId> {
        let duplex = self.links.get(place.0)?;
        Some(if direction == Direction::Up { duplex.forward } else { duplex.backward })
    }

    /// The links of a path.
    pub(crate) fn way(&self, scenario: &Scenario, path: usize) -> impl Iterator<Item = &Duplex> {
        scenario.way(path).into_iter().filter_map(|place| self.links.get(place.0))
    }

    fn rebind(&self, net: &mut Network, scenario: &Scenario, path: usize, rebinding: Rebinding) {
        let Some(nat) = self.nats.get(path).copied().flatten() else { return };
        if let Rebinding::Address(public) = rebinding {
            let (_, mut back) = self.hops(&scenario.way(path));
            back.push(Hop::NatIn(nat));
            net.route(server_address().ip(), public, &back);
        }
        net.rebind(nat, rebinding);
    }
}

/// Of each link: its queue is real where something changes what its datagrams meet when they leave; else it plans ahead,
/// which is faster.
fn services(scenario: &Scenario) -> Vec<Service> {
    let touches = |event: &EventPlan| event.up.touches_queue() || event.down.touches_queue() || event.vary.is_some();
    let of = |(index, link): (usize, &DuplexPlan)| {
        let touched = scenario.events.iter().any(|event| event.place.0 == index && touches(event));
        if touched || link.vary.is_some() { Service::Live } else { Service::Planned }
    };
    scenario.duplexes().enumerate().map(of).collect()
}

/// Everything that is going to change in the network, in order of time.
#[derive(Debug)]
pub(crate) struct Timeline {
    wires: Wires,
    plans: Vec<DuplexPlan>,
    services: Vec<Service>,
    next_event: usize,
    /// Addresses that NATs have had.
    addresses: u8,
    draws: Vec<Option<Instant>>,
    random: Random,
}

impl Timeline {
    pub(crate) fn new(scenario: &Scenario, wires: Wires, random: Random) -> Self {
        let draws = scenario.duplexes().map(|link| link.vary.map(|_| Instant::ZERO)).collect();
        let plans = scenario.duplexes().cloned().collect();
        Self { wires, plans, services: services(scenario), next_event: 0, addresses: 1, draws, random }
    }

    /// When something changes next.
    pub(crate) fn next_at(&self, scenario: &Scenario) -> Option<Instant> {
        let event = scenario.events.get(self.next_event).map(|event| Instant::ZERO + event.at);
        let draw = self.draws.iter().flatten().min().copied();
        plait_base::time::earliest(event, draw)
    }

    /// Makes the changes that are due at `now`.
    pub(crate) fn advance(&mut self, now: Instant, scenario: &Scenario, world: &mut World) {
        while let Some(event) = scenario.events.get(self.next_event).filter(|event| Instant::ZERO + event.at <= now) {
            self.next_event += 1;
            let index = event.place.0;
            if let Some(plan) = self.plans.get_mut(index) {
                event.up.apply(&mut plan.up);
                event.down.apply(&mut plan.down);
                plan.vary = event.vary.or(plan.vary);
            }
            if let Some(draw) = self.draws.get_mut(index).filter(|_| event.vary.is_some()) {
                *draw = Some(now);
            }
            self.set(index, &mut world.net);
            if let Some(state) = event.interface {
                world.set_interface(client_address(index).ip(), state);
            }
            if let Some(rebind) = event.rebind {
                let rebinding = match rebind {
                    Rebind::Port => Rebinding::Port,
                    Rebind::Address => {
                        self.addresses = self.addresses.wrapping_add(1).max(1);
                        Rebinding::Address(public_address(index, self.addresses))
                    }
                };
                self.wires.rebind(&mut world.net, scenario, index, rebinding);
            }
        }
        for index in 0..self.draws.len() {
            let due = self.draws.get(index).copied().flatten().is_some_and(|at| at <= now);
            let Some(vary) = self.plans.get(index).and_then(|plan| plan.vary).filter(|_| due) else { continue };
            if let Some(plan) = self.plans.get_mut(index) {
                redraw(plan, &vary, &mut self.random);
            }
            if let Some(draw) = self.draws.get_mut(index) {
                *draw = Some(now + vary.interval);
            }
            self.set(index, &mut world.net);
        }
    }

    fn set(&self, index: usize, net: &mut Network) {
        let (Some(plan), Some(duplex)) = (self.plans.get(index), self.wires.links.get(index)) else { return };
        let Some(service) = self.services.get(index).copied() else { return };
        let set = |net: &mut Network, link, plan: &LinkPlan| {
            let wanted = plan.config(service);
            net.change_link(link, |config| *config = wanted);
        };
        set(net, duplex.forward, &plan.up);
        set(net, duplex.backward, &plan.down);
    }
}

fn redraw(plan: &mut DuplexPlan, vary: &Vary, random: &mut Random) {
    let mut draw = |(low, high): (f64, f64)| low + random.unit() * (high - low);
    if let Some(span) = vary.rate_mbps {
        plan.down.rate = Rate::Fixed((draw(span) * 1e6) as u64);
        if plan.up.rate == Rate::Unlimited {
            plan.up.rate = plan.down.rate.clone();
        }
    }
    if let Some(span) = vary.delay_ms {
        let ms = draw(span);
        let ms = if vary.whole_ms { ms.floor() } else { ms };
        plan.down.delay = std::time::Duration::from_nanos((ms * 1e6) as u64);
        plan.up.delay = plan.down.delay;
    }
    if let Some(span) = vary.loss {
        plan.down.loss = Loss::Bernoulli(draw(span));
    }
    if let Some(span) = vary.loss_per_byte {
        plan.down.loss = Loss::PerByte(draw(span));
    }
}

/// Counters of both directions of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// From client to server.
    pub up: LinkStats,
    /// From server to client.
    pub down: LinkStats,
}

/// Counters of every link.
pub(crate) fn traffic(net: &Network, links: &[Duplex]) -> Vec<Traffic> {
    let of = |duplex: &Duplex| Traffic { up: net.link_stats(duplex.forward), down: net.link_stats(duplex.backward) };
    links.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_tell_their_path() {
        for path in [0, 5, 63] {
            let (local, remote) = (client_address(path), server_address());
            assert_eq!(path_of(&FourTuple { local, remote }), Some(path));
            assert_eq!(path_of(&FourTuple { local: remote, remote: local }), Some(path));
        }
        let nobody: SocketAddr = "192.0.2.1:1".parse().unwrap();
        assert_eq!(path_of(&FourTuple { local: nobody, remote: server_address() }), None);
    }
}
