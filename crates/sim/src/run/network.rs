//! The world of a scenario: one server address, one client address per path, and the links between them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use plait_base::{FourTuple, Instant};
use plait_netsim::link::{LinkConfig, LinkStats};
use plait_netsim::{BoxId, Duplex, Hop, LinkId, NatConfig, NatId, Network, Rebinding, Rule, World};

use crate::scenario::changes::{Changes, Turn};
use crate::scenario::{Direction, Place, Rebind, Scenario, Sides, WorkerFault};

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
    /// Adds all of them to a network, set as the course begins, and the routes of the paths through them.
    pub(crate) fn build(net: &mut Network, scenario: &Scenario, course: &Changes) -> Self {
        let mut wires = Self::default();
        for (up, down) in course.links() {
            let (forward, backward) = (net.add_link(up), net.add_link(down));
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

    fn set(&self, place: Place, (up, down): (LinkConfig, LinkConfig), net: &mut Network) {
        let Some(duplex) = self.links.get(place.0) else { return };
        net.change_link(duplex.forward, |config| *config = up);
        net.change_link(duplex.backward, |config| *config = down);
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

/// Everything that is going to change in the network, in order of time.
#[derive(Debug)]
pub(crate) struct Timeline {
    wires: Wires,
    course: Changes,
    /// Addresses that NATs have had.
    addresses: u8,
}

impl Timeline {
    pub(crate) fn new(wires: Wires, course: Changes) -> Self {
        Self { wires, course, addresses: 1 }
    }

    /// When something changes next.
    pub(crate) fn next_at(&self, scenario: &Scenario) -> Option<Instant> {
        self.course.next_at(scenario)
    }

    /// Makes the changes that are due at `now`; what befalls workers of a path is for `strike`.
    pub(crate) fn advance(
        &mut self,
        now: Instant,
        scenario: &Scenario,
        world: &mut World,
        strike: impl Fn(&mut World, usize, WorkerFault),
    ) {
        let Self { wires, course, addresses } = self;
        course.advance(now, scenario, |turn| match turn {
            Turn::Link(place, configs) => wires.set(place, *configs, &mut world.net),
            Turn::Interface(path, state) => world.set_interface(client_address(path).ip(), state),
            Turn::Rebind(path, Rebind::Port) => wires.rebind(&mut world.net, scenario, path, Rebinding::Port),
            Turn::Rebind(path, Rebind::Address) => {
                *addresses = addresses.wrapping_add(1).max(1);
                let public = public_address(path, *addresses);
                wires.rebind(&mut world.net, scenario, path, Rebinding::Address(public));
            }
            Turn::Worker(path, fault) => strike(world, path, fault),
        });
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
