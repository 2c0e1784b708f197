//! The world of a scenario: one server address, one client address per path, and the links between them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use plait_base::{FourTuple, Instant, Random};
use plait_link::{LinkStats, Loss, Rate, Service};
use plait_netsim::{Duplex, Hop, Network};

use crate::scenario::{DuplexPlan, LinkPlan, Place, Scenario, Vary};

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

/// Which path of the scenario a route runs over.
pub(crate) fn path_of(route: &FourTuple) -> Option<usize> {
    let client = if route.local == server_address() { route.remote } else { route.local };
    match client.ip() {
        IpAddr::V4(ip) => match ip.octets() {
            [10, 0, path, 2] if path > 0 => Some(usize::from(path) - 1),
            _ => None,
        },
        IpAddr::V6(_) => None,
    }
}

/// Adds every link to a network, and the routes of the paths through them.
pub(crate) fn build(net: &mut Network, scenario: &Scenario) -> Vec<Duplex> {
    let service = service(scenario);
    let add = |plan: &DuplexPlan| Duplex {
        forward: net.add_link(plan.up.config(service)),
        backward: net.add_link(plan.down.config(service)),
    };
    let links: Vec<Duplex> = scenario.duplexes().map(add).collect();
    for path in 0..scenario.paths.len() {
        let (client, server) = (client_address(path).ip(), server_address().ip());
        connect(net, (client, server), &chosen(&links, &scenario.way(path)));
    }
    links
}

/// The links at these places.
pub(crate) fn chosen(links: &[Duplex], places: &[Place]) -> Vec<Duplex> {
    places.iter().filter_map(|place| links.get(place.0)).copied().collect()
}

/// Routes each way between two addresses through links that are named in the order from the first to the second.
pub(crate) fn connect(net: &mut Network, (near, far): (IpAddr, IpAddr), links: &[Duplex]) {
    let there: Vec<Hop> = links.iter().map(|link| Hop::Link(link.forward)).collect();
    let back: Vec<Hop> = links.iter().rev().map(|link| Hop::Link(link.backward)).collect();
    net.route(near, far, &there);
    net.route(far, near, &back);
}

/// Queues are real where something changes them; else links plan ahead, which is faster.
fn service(scenario: &Scenario) -> Service {
    let touched = scenario.events.iter().any(|event| event.up.touches_queue() || event.down.touches_queue());
    let varied = scenario.duplexes().any(|link| link.vary.is_some_and(|vary| vary.rate_mbps.is_some()));
    if touched || varied { Service::Live } else { Service::Planned }
}

/// Everything that is going to change in the network, in order of time.
#[derive(Debug)]
pub(crate) struct Timeline {
    links: Vec<Duplex>,
    plans: Vec<DuplexPlan>,
    service: Service,
    next_event: usize,
    draws: Vec<Option<Instant>>,
    random: Random,
}

impl Timeline {
    pub(crate) fn new(scenario: &Scenario, links: Vec<Duplex>, random: Random) -> Self {
        let draws = scenario.duplexes().map(|link| link.vary.map(|_| Instant::ZERO)).collect();
        Self {
            links,
            plans: scenario.duplexes().cloned().collect(),
            service: service(scenario),
            next_event: 0,
            draws,
            random,
        }
    }

    /// When something changes next.
    pub(crate) fn next_at(&self, scenario: &Scenario) -> Option<Instant> {
        let event = scenario.events.get(self.next_event).map(|event| Instant::ZERO + event.at);
        let draw = self.draws.iter().flatten().min().copied();
        plait_base::time::earliest(event, draw)
    }

    /// Makes the changes that are due at `now`.
    pub(crate) fn advance(&mut self, now: Instant, scenario: &Scenario, net: &mut Network) {
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
            self.set(index, net);
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
            self.set(index, net);
        }
    }

    fn set(&self, index: usize, net: &mut Network) {
        let (Some(plan), Some(duplex)) = (self.plans.get(index), self.links.get(index)) else { return };
        let set = |net: &mut Network, link, plan: &LinkPlan| {
            let wanted = plan.config(self.service);
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
