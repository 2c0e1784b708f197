//! The world of a scenario: one server address, one client address and one link each way per path.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use plait_base::{FourTuple, Instant, Random};
use plait_link::{LinkStats, Loss, Rate, Service};
use plait_netsim::{Duplex, Hop, Network};

use crate::scenario::{LinkPlan, PathPlan, Scenario, Vary};

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

/// Adds the links of every path to a network.
pub(crate) fn build(net: &mut Network, scenario: &Scenario) -> Vec<Duplex> {
    let service = service(scenario);
    let connect = |(index, path): (usize, &PathPlan)| {
        let (client, server) = (client_address(index).ip(), server_address().ip());
        let duplex = Duplex {
            forward: net.add_link(path.up.config(service)),
            backward: net.add_link(path.down.config(service)),
        };
        net.route(client, server, &[Hop::Link(duplex.forward)]);
        net.route(server, client, &[Hop::Link(duplex.backward)]);
        duplex
    };
    scenario.paths.iter().enumerate().map(connect).collect()
}

/// Queues are real where something changes them; else links plan ahead, which is faster.
fn service(scenario: &Scenario) -> Service {
    let touched = scenario.events.iter().any(|event| event.up.touches_queue() || event.down.touches_queue());
    let varied = scenario.paths.iter().any(|path| path.vary.is_some_and(|vary| vary.rate_mbps.is_some()));
    if touched || varied { Service::Live } else { Service::Planned }
}

/// Everything that is going to change in the network, in order of time.
#[derive(Debug)]
pub(crate) struct Timeline {
    links: Vec<Duplex>,
    paths: Vec<PathPlan>,
    service: Service,
    next_event: usize,
    draws: Vec<Option<Instant>>,
    random: Random,
}

impl Timeline {
    pub(crate) fn new(scenario: &Scenario, links: Vec<Duplex>, random: Random) -> Self {
        let draws = scenario.paths.iter().map(|path| path.vary.map(|_| Instant::ZERO)).collect();
        Self { links, paths: scenario.paths.clone(), service: service(scenario), next_event: 0, draws, random }
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
            if let Some(path) = self.paths.get_mut(event.path) {
                event.up.apply(&mut path.up);
                event.down.apply(&mut path.down);
                path.vary = event.vary.or(path.vary);
            }
            if let Some(draw) = self.draws.get_mut(event.path).filter(|_| event.vary.is_some()) {
                *draw = Some(now);
            }
            self.set(event.path, net);
        }
        for index in 0..self.draws.len() {
            let due = self.draws.get(index).copied().flatten().is_some_and(|at| at <= now);
            let Some(vary) = self.paths.get(index).and_then(|path| path.vary).filter(|_| due) else { continue };
            if let Some(path) = self.paths.get_mut(index) {
                redraw(path, &vary, &mut self.random);
            }
            if let Some(draw) = self.draws.get_mut(index) {
                *draw = Some(now + vary.interval);
            }
            self.set(index, net);
        }
    }

    fn set(&self, index: usize, net: &mut Network) {
        let (Some(path), Some(duplex)) = (self.paths.get(index), self.links.get(index)) else { return };
        let set = |net: &mut Network, link, plan: &LinkPlan| {
            let wanted = plan.config(self.service);
            net.change_link(link, |config| *config = wanted);
        };
        set(net, duplex.forward, &path.up);
        set(net, duplex.backward, &path.down);
    }
}

fn redraw(path: &mut PathPlan, vary: &Vary, random: &mut Random) {
    let mut draw = |(low, high): (f64, f64)| low + random.unit() * (high - low);
    if let Some(span) = vary.rate_mbps {
        path.down.rate = Rate::Fixed((draw(span) * 1e6) as u64);
        if path.up.rate == Rate::Unlimited {
            path.up.rate = path.down.rate.clone();
        }
    }
    if let Some(span) = vary.delay_ms {
        let ms = draw(span);
        let ms = if vary.whole_ms { ms.floor() } else { ms };
        path.down.delay = std::time::Duration::from_nanos((ms * 1e6) as u64);
        path.up.delay = path.down.delay;
    }
    if let Some(span) = vary.loss {
        path.down.loss = Loss::Bernoulli(draw(span));
    }
    if let Some(span) = vary.loss_per_byte {
        path.down.loss = Loss::PerByte(draw(span));
    }
}

/// Counters of both directions of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathTraffic {
    /// From client to server.
    pub up: LinkStats,
    /// From server to client.
    pub down: LinkStats,
}

/// Counters of every path.
pub(crate) fn traffic(net: &Network, links: &[Duplex]) -> Vec<PathTraffic> {
    let of =
        |duplex: &Duplex| PathTraffic { up: net.link_stats(duplex.forward), down: net.link_stats(duplex.backward) };
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
