//! Both hosts with their devices, addresses and routes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::poll::{PollFd, PollFlags};
use plait_netsim::InterfaceState;
use plait_sim::scenario::{CrossLoad, CrossPlan, Direction, PathPlan, Place, Scenario};
use tappers::Interface;
use tappers::linux::Tun;

use super::Namespace;
use super::switch::{Lever, Switch};
use crate::emulator::{Entry, Gates};
use crate::error::LabError;
use crate::tool;

/// Where every server listens.
const PORT: u16 = 4433;
/// Packets that may wait between a host's stack and the emulator: more than any window, so that none is lost there.
const DEVICE_QUEUE_PACKETS: u32 = 20_000;
/// The only device of a host beside the transfer.
const DEVICE: &str = "c0";
/// The first of the routing tables by source address, and the metric of the route over the initial path.
const TABLES_FROM: usize = 100;
const METRIC_INITIAL: usize = 10;
/// The largest packet of a host beside the transfer, where no link of its way has less.
const MTU_BYTES: u32 = 1500;
/// The part of public addresses of NATs that tells them from others.
const NAT: u8 = 100;

/// What is built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Of each path, the largest IP packet that the client and the server may hand to it, bytes.
    pub(crate) mtu_bytes: Vec<(u32, u32)>,
    /// The path that the client's main routing table prefers.
    pub(crate) initial_path: usize,
    /// IPv4 or IPv6.
    pub(crate) family: Family,
    /// Of each stream of cross traffic that is a connection, the same as of paths; none for one that has no hosts.
    pub(crate) beside: Vec<Option<(u32, u32)>>,
}

impl Layout {
    /// What a scenario needs.
    pub(crate) fn of(scenario: &Scenario, family: Family) -> Self {
        let mtu = |path: &PathPlan| (path.own.up.mtu_bytes, path.own.down.mtu_bytes);
        let mtu_bytes = scenario.paths.iter().map(mtu).collect();
        let links: Vec<_> = scenario.duplexes().collect();
        let least = |(up, down): (u32, u32), place: &Place| {
            let link = links.get(place.0).map_or((up, down), |link| (link.up.mtu_bytes, link.down.mtu_bytes));
            (up.min(link.0), down.min(link.1))
        };
        let beside = |plan: &CrossPlan| {
            let is_flow = matches!(plan.load, CrossLoad::Flow { .. });
            is_flow.then(|| plan.via.iter().fold((MTU_BYTES, MTU_BYTES), least))
        };
        let beside = scenario.cross.iter().map(beside).collect();
        Self { mtu_bytes, initial_path: scenario.endpoints.handshake.initial_path, family, beside }
    }
}

/// Which addresses the hosts have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// 10.0.N.2 for the client on path N - 1, 10.9.0.1 for the server.
    #[default]
    V4,
    /// fd00:0:0:N::2 and fd00:9::1.
    V6,
}

impl Family {
    /// The client's address on a path.
    fn client(self, path: usize) -> IpAddr {
        match self {
            Self::V4 => Ipv4Addr::new(10, 0, path as u8 + 1, 2).into(),
            Self::V6 => Ipv6Addr::new(0xfd00, 0, 0, path as u16 + 1, 0, 0, 0, 2).into(),
        }
    }

    /// The server's, on all of them.
    fn server(self) -> IpAddr {
        match self {
            Self::V4 => Ipv4Addr::new(10, 9, 0, 1).into(),
            Self::V6 => Ipv6Addr::new(0xfd00, 9, 0, 0, 0, 0, 0, 1).into(),
        }
    }

    /// The two ends of a stream of cross traffic: near the client of the transfer, and near its server.
    fn beside(self, stream: usize) -> [IpAddr; 2] {
        [1, 2].map(|side| match self {
            Self::V4 => Ipv4Addr::new(10, side, stream as u8 + 1, 2).into(),
            Self::V6 => Ipv6Addr::new(0xfd00, side.into(), 0, stream as u16 + 1, 0, 0, 0, 2).into(),
        })
    }

    /// A public address of a path's NAT; there is a new one after each change.
    fn public(self, path: usize, change: u8) -> IpAddr {
        match self {
            Self::V4 => Ipv4Addr::new(10, NAT, path as u8 + 1, change).into(),
            Self::V6 => Ipv6Addr::new(0xfd00, 0, NAT.into(), path as u16 + 1, 0, 0, 0, change.into()).into(),
        }
    }

    /// Where all of a path's are.
    fn publics(self, path: usize) -> String {
        format!("{}/{}", self.public(path, 0), if self == Self::V4 { 24 } else { 64 })
    }

    /// The option of `ip` for it, and what follows an address that is one alone and is good at once.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::V4 => ("-4", "/32"),
            Self::V6 => ("-6", "/128 nodad"),
        }
    }
}

/// The two ends of a path. Every path has an address of the client for itself; the server has one address for all of
/// them, as in the simulator, and its host answers each client address by the path that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathEnds {
    /// The client's address.
    pub(crate) client: IpAddr,
    /// The client's device, of which this is the only address.
    pub(crate) device: String,
    /// Where the client reaches the server.
    pub(crate) server: SocketAddr,
}

/// The two ends of a path as the emulator has them.
struct Ends {
    /// What the client sends comes out here.
    client: Tun,
    /// What the server sends.
    server: Tun,
    /// Whether the client's is up.
    state: InterfaceState,
}

/// The devices of all paths, at both hosts, and behind them those of hosts beside them.
pub(crate) struct Devices {
    ends: Vec<Option<Ends>>,
    switch: Switch,
    family: Family,
}

impl Gates for Devices {
    fn waits(&self) -> Vec<PollFd<'_>> {
        let devices = self.ends.iter().flatten().flat_map(|pair| [&pair.client, &pair.server]);
        devices.map(|device| PollFd::new(device.as_fd(), PollFlags::POLLIN)).collect()
    }

    fn sources(&self) -> usize {
        2 * self.ends.len()
    }

    fn receive(&mut self, source: usize, buffer: &mut [u8]) -> Option<Entry> {
        let (path, direction) = (source / 2, if source.is_multiple_of(2) { Direction::Up } else { Direction::Down });
        let pair = self.ends.get(path)?.as_ref()?;
        let device = if direction == Direction::Up { &pair.client } else { &pair.server };
        loop {
            let size = device.recv(buffer).ok()?;
            // What left before the kernel had taken the device down.
            if direction == Direction::Down || pair.state == InterfaceState::Up {
                return Some(Entry { path, direction, size });
            }
        }
    }

    fn deliver(&mut self, path: usize, direction: Direction, packet: &[u8]) -> bool {
        let Some(Some(pair)) = self.ends.get(path) else { return false };
        match (direction, pair.state) {
            (Direction::Up, _) => pair.server.send(packet).is_ok(),
            (Direction::Down, InterfaceState::Up) => pair.client.send(packet).is_ok(),
            // Nobody is there any more, as on any network.
            (Direction::Down, InterfaceState::Down) => true,
        }
    }

    fn interface(&mut self, path: usize, state: InterfaceState) {
        self.ends.get_mut(path).into_iter().flatten().for_each(|pair| pair.state = state);
        self.switch.turn(path, state);
    }

    fn public_addresses(&self) -> fn(usize, u8) -> IpAddr {
        match self.family {
            Family::V4 => |path, change| Family::V4.public(path, change),
            Family::V6 => |path, change| Family::V6.public(path, change),
        }
    }

    fn lost(&self) -> u64 {
        0
    }
}

/// Both hosts, ready for programs.
#[derive(Debug)]
pub(crate) struct Hosts {
    /// The host of the client.
    pub(crate) client: Namespace,
    /// The host of the server.
    pub(crate) server: Namespace,
    /// The paths between them, in the scenario's order.
    pub(crate) ways: Vec<PathEnds>,
    /// Where the server is to listen.
    pub(crate) listen: SocketAddr,
    /// The hosts of each stream of cross traffic that has some, in the scenario's order.
    pub(crate) beside: Vec<Option<HostPair>>,
}

/// Two hosts beside those of the transfer, joined by links of the scenario.
#[derive(Debug)]
pub(crate) struct HostPair {
    /// Near the client of the transfer.
    pub(crate) near: (Namespace, IpAddr),
    /// Near its server.
    pub(crate) far: (Namespace, IpAddr),
}

/// Counts devices, so that several topologies are built side by side.
static DEVICES: AtomicU64 = AtomicU64::new(0);

impl Hosts {
    /// Builds both hosts, with files in `folder`; gives the devices of each path besides. They all go with the last
    /// program in them, the files and the devices.
    ///
    /// # Errors
    /// The system refuses something.
    pub(crate) fn build(layout: &Layout, folder: &Path) -> Result<(Self, Devices), LabError> {
        let client = Namespace::new(folder.join("client.net"))?;
        let server = Namespace::new(folder.join("server.net"))?;
        let (family, (flag, alone)) = (layout.family, layout.family.words());
        let address = family.server();
        let (mut ends, mut ways, mut moves, mut levers) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (mut there, mut here) = (Vec::new(), vec![format!("address add {address}{alone} dev lo")]);
        for (path, (mtu_up, mtu_down)) in layout.mtu_bytes.iter().enumerate() {
            let (names, pair) = join(&client, &server, &mut moves)?;
            ends.push(Some(pair));
            let (from, device, peer) = (family.client(path), format!("c{path}"), format!("s{path}"));
            let metric = METRIC_INITIAL + if path == layout.initial_path { 0 } else { path + 1 };
            let table = TABLES_FROM + path;
            let lines = vec![
                format!("address replace {from}{alone} dev {device}"),
                format!("route replace {address} dev {device} src {from} metric {metric}"),
                format!("route replace default dev {device} src {from} table {table}"),
            ];
            there.push(rise(&names[0], &device, *mtu_up));
            there.extend(lines.iter().cloned());
            there.push(format!("rule add from {from} table {table}"));
            levers.push(Lever { device: device.clone(), lines });
            here.push(rise(&names[1], &peer, *mtu_down));
            for to in [from.to_string(), family.publics(path)] {
                here.push(format!("route add {to} dev {peer} src {address}"));
            }
            ways.push(PathEnds { client: from, device, server: SocketAddr::new(address, PORT) });
        }
        let mut beside = Vec::new();
        for (index, mtu) in layout.beside.iter().enumerate() {
            let Some(mtu) = mtu else {
                ends.push(None);
                beside.push(None);
                continue;
            };
            let spaces = ["near", "far"].map(|side| Namespace::new(folder.join(format!("{side}{index}.net"))));
            let ([near, far], addresses) = (spaces, family.beside(index));
            let (near, far) = (near?, far?);
            let (names, pair) = join(&near, &far, &mut moves)?;
            ends.push(Some(pair));
            beside.push(Some((HostPair { near: (near, addresses[0]), far: (far, addresses[1]) }, names, *mtu)));
        }
        tool::feed("ip", ["-batch", "-"], &moves.join("\n"))?;
        client.ip_batch(flag, &there)?;
        server.ip_batch(flag, &here)?;
        let beside = beside.into_iter().map(|made| made.map(|made| settle(made, family)).transpose());
        let beside = beside.collect::<Result<_, _>>()?;
        let devices = Devices { ends, switch: Switch::new(client.file().to_owned(), flag, levers), family };
        Ok((Self { client, server, ways, listen: SocketAddr::new(address, PORT), beside }, devices))
    }
}

/// A device for each of two hosts, and the lines that bring them there; gives the names too.
fn join(client: &Namespace, server: &Namespace, moves: &mut Vec<String>) -> Result<([String; 2], Ends), LabError> {
    let number = DEVICES.fetch_add(1, Ordering::Relaxed);
    let names = [format!("tc{number}"), format!("ts{number}")];
    let ends = Ends { client: tun(&names[0])?, server: tun(&names[1])?, state: InterfaceState::Up };
    for (name, space) in names.iter().zip([client, server]) {
        moves.push(format!("link set dev {name} netns {}", space.file().display()));
    }
    Ok((names, ends))
}

/// The line that gives a device its name and lets it carry packets.
fn rise(from: &str, to: &str, mtu: u32) -> String {
    format!("link set dev {from} name {to} mtu {mtu} txqueuelen {DEVICE_QUEUE_PACKETS} up")
}

impl HostPair {
    /// Where a server listens on this one of the two.
    pub(crate) fn listen(address: IpAddr) -> SocketAddr {
        SocketAddr::new(address, PORT)
    }
}

/// Addresses and routes of two hosts that have their devices.
fn settle((pair, names, mtu): (HostPair, [String; 2], (u32, u32)), family: Family) -> Result<HostPair, LabError> {
    let (flag, alone) = family.words();
    let ends = [(&pair.near, &pair.far, mtu.0), (&pair.far, &pair.near, mtu.1)];
    for (name, ((space, own), (_, other), mtu)) in names.iter().zip(ends) {
        let lines = [
            rise(name, DEVICE, mtu),
            format!("address add {own}{alone} dev {DEVICE}"),
            format!("route add {other} dev {DEVICE} src {own}"),
        ];
        space.ip_batch(flag, &lines)?;
    }
    Ok(pair)
}

/// A device that is read and written without waiting.
fn tun(name: &str) -> Result<Tun, LabError> {
    let made = Interface::new(name).and_then(Tun::create_named);
    let tun = made.map_err(|error| LabError::NoTun { error })?;
    tun.set_nonblocking(true).map_err(|error| LabError::NoTun { error })?;
    Ok(tun)
}
