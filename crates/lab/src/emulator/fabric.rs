//! Every link of a scenario with the packets on it, the ways through them, what changes addresses on them and who else sends
//! there: no clock, no device.

use std::net::IpAddr;

use plait_base::{Instant, Random, time};
use plait_netsim::link::{Conveyor, Integrity, LinkConfig};
use plait_netsim::{InterfaceState, Nat, NatConfig, Rebinding};
use plait_sim::run::network::Traffic;
use plait_sim::scenario::changes::{Changes, Turn};
use plait_sim::scenario::{Direction, PathPlan, Place, Rebind, Scenario};

use super::cross::{CrossCount, CrossStream};
use super::packet::{Facts, Whose, address, mark_ce, readdress};

/// A packet on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Parcel {
    /// Its way: that of the path that it belongs to, or of a stream of cross traffic behind all paths.
    path: usize,
    /// Links that lie behind it, the one it is on among them.
    passed: usize,
    facts: Facts,
    bytes: Vec<u8>,
}

/// A packet that has come to the other host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Landed {
    /// When its last bit arrives.
    pub(super) at: Instant,
    /// By which path.
    pub(super) path: usize,
    /// To which end.
    pub(super) direction: Direction,
    /// Bytes of the application, or of the transport that carries its own control with them.
    pub(super) payload_bytes: usize,
    /// The packet; it goes back by [`Fabric::take_back`].
    pub(super) bytes: Vec<u8>,
}

/// One direction of a link.
#[derive(Debug)]
struct Side {
    conveyor: Conveyor<Parcel>,
    /// The latest time that it was told: packets from several links may come to it a little late.
    seen: Instant,
}

impl Side {
    fn new(config: LinkConfig, random: Random) -> Self {
        Self { conveyor: Conveyor::new(on_the_wire(config), random), seen: Instant::ZERO }
    }

    /// A packet enters; gives back one that is dropped at once.
    fn offer(&mut self, now: Instant, parcel: Parcel) -> Option<Parcel> {
        self.seen = self.seen.max(now);
        let (size, marks) = (parcel.bytes.len(), (parcel.facts.ecn, parcel.facts.flow));
        self.conveyor.offer(self.seen, size, marks, parcel)
    }

    fn change(&mut self, now: Instant, config: LinkConfig) {
        self.seen = self.seen.max(now);
        self.conveyor.change(self.seen, |present| *present = on_the_wire(config));
    }
}

/// Packets are whole here: scenario files reckon with the headers that a simulated datagram lacks.
fn on_the_wire(config: LinkConfig) -> LinkConfig {
    LinkConfig { overhead_bytes: 0, ..config }
}

/// Both directions of a link.
#[derive(Debug)]
struct BothWays {
    up: Side,
    down: Side,
}

impl BothWays {
    fn of(&mut self, direction: Direction) -> &mut Side {
        match direction {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        }
    }
}

/// The network between both hosts. Time counts from the first packet, and never backwards.
#[derive(Debug)]
pub(super) struct Fabric {
    scenario: Scenario,
    course: Changes,
    links: Vec<BothWays>,
    /// The links of each path, and of each stream of cross traffic behind them, from clients to servers.
    ways: Vec<Vec<Place>>,
    /// Before the first link of a path, as the client sees it.
    nats: Vec<Option<Nat>>,
    /// Public addresses that NATs have had, and where they are taken from: by path and number.
    addresses: u8,
    public: fn(usize, u8) -> IpAddr,
    cross: Vec<CrossStream>,
    /// Buffers of packets that are gone.
    spare: Vec<Vec<u8>>,
    now: Instant,
}

/// Buffers that are kept for the next packets.
const SPARE_MAX: usize = 4096;

impl Fabric {
    /// The scenario's network at its start. The seed draws losses and what varies, in the simulator's order: of a link both
    /// worlds lose the same packets, counted from its first.
    pub(super) fn new(scenario: &Scenario, seed: u64, public: fn(usize, u8) -> IpAddr) -> Self {
        let mut random = Random::from_u64(seed);
        let mut of_links = random.fork();
        let course = Changes::new(scenario, random.fork());
        let mut side = |config| Side::new(config, of_links.fork());
        let mut pair = |(up, down)| BothWays { up: side(up), down: side(down) };
        let links = course.links().map(&mut pair).collect();
        // The simulator's client and server draw here.
        (0..2).for_each(|_| _ = random.fork());
        let cross = CrossStream::all(&scenario.cross, &mut random);
        let ways = (0..scenario.paths.len()).map(|path| scenario.way(path));
        let ways = ways.chain(cross.iter().map(|stream| stream.via.clone())).collect();
        let nat = |(path, plan): (usize, &PathPlan)| {
            let (public, nat) = (public(path, 1), plan.nat?);
            let (timeout, mapping, filtering) = (nat.timeout, nat.mapping, nat.filtering);
            Some(Nat::new(NatConfig { public, timeout, mapping, filtering }))
        };
        let nats = scenario.paths.iter().enumerate().map(nat).collect();
        let (scenario, spare, now) = (scenario.clone(), Vec::new(), Instant::ZERO);
        Self { scenario, course, links, ways, nats, addresses: 1, public, cross, spare, now }
    }

    /// A packet of a path enters at its near end.
    pub(super) fn enter(&mut self, now: Instant, path: usize, direction: Direction, facts: Facts, packet: &[u8]) {
        self.now = self.now.max(now);
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(packet);
        if direction == Direction::Up && !self.translate(self.now, path, direction, &mut bytes) {
            return self.take_back(bytes);
        }
        self.pass(self.now, direction, Parcel { path, passed: 0, facts, bytes });
    }

    /// What the NAT of a path makes of a packet that leaves through it, or comes in; false where it does not let it through.
    fn translate(&mut self, now: Instant, path: usize, direction: Direction, packet: &mut [u8]) -> bool {
        let Some(nat) = self.nats.get_mut(path).and_then(Option::as_mut) else { return true };
        let ends = (address(packet, Whose::Sender), address(packet, Whose::Receiver));
        let (Some(from), Some(to)) = ends else { return false };
        let (whose, other) = match direction {
            Direction::Up => (Whose::Sender, nat.outbound(now, from, to)),
            Direction::Down => (Whose::Receiver, nat.inbound(now, from, to)),
        };
        other.map(|other| readdress(packet, whose, other)).is_some()
    }

    /// The next link of a packet's way takes it; gives it back where there is none.
    fn pass(&mut self, now: Instant, direction: Direction, mut parcel: Parcel) -> Option<Parcel> {
        let way = self.ways.get(parcel.path)?;
        let next = match direction {
            Direction::Up => way.get(parcel.passed),
            Direction::Down => way.iter().rev().nth(parcel.passed),
        };
        let Some(place) = next else { return Some(parcel) };
        parcel.passed += 1;
        if let Some(dropped) = self.links.get_mut(place.0)?.of(direction).offer(now, parcel) {
            self.take_back(dropped.bytes);
        }
        None
    }

    /// The next packet to come to a host by `now`.
    pub(super) fn poll(&mut self, now: Instant) -> Option<Landed> {
        self.now = self.now.max(now);
        loop {
            let (due, index, direction) = match (self.earliest(), self.next_cross()) {
                (link, Some(at)) if at <= now && link.is_none_or(|(due, ..)| at <= due) => {
                    self.send_cross(at);
                    continue;
                }
                (link, _) => link.filter(|(due, ..)| *due <= now)?,
            };
            let conveyor = &mut self.links.get_mut(index)?.of(direction).conveyor;
            // At its own time, not at ours: what follows it on the next link is no later for our being late.
            let Some(conveyed) = conveyor.pop(due) else { continue };
            let mut parcel = conveyed.payload;
            if conveyed.integrity == Integrity::Corrupted
                && let Some(last) = parcel.bytes.last_mut()
            {
                *last ^= 1;
            }
            if conveyed.ecn != parcel.facts.ecn {
                mark_ce(&mut parcel.bytes);
                parcel.facts.ecn = conveyed.ecn;
            }
            let Some(parcel) = self.pass(conveyed.at, direction, parcel) else { continue };
            let Parcel { path, facts, mut bytes, .. } = parcel;
            let cross = path.checked_sub(self.nats.len()).and_then(|index| self.cross.get_mut(index));
            let is_ours = cross.is_none();
            cross.into_iter().for_each(CrossStream::on_arrival);
            if !is_ours || direction == Direction::Down && !self.translate(conveyed.at, path, direction, &mut bytes) {
                self.take_back(bytes);
                continue;
            }
            return Some(Landed { at: conveyed.at, path, direction, payload_bytes: facts.payload_bytes, bytes });
        }
    }

    /// When cross traffic sends next.
    fn next_cross(&self) -> Option<Instant> {
        self.cross.iter().filter_map(CrossStream::next_at).min()
    }

    /// Lets cross traffic send what is due at a time.
    fn send_cross(&mut self, at: Instant) {
        for index in 0..self.cross.len() {
            let Some(stream) = self.cross.get_mut(index).filter(|stream| stream.next_at() <= Some(at)) else {
                continue;
            };
            let (direction, facts, path) = (stream.direction, stream.facts, self.nats.len() + index);
            let (count, packet) = stream.poll(at);
            let packets = vec![packet.to_vec(); count];
            packets
                .into_iter()
                .for_each(|bytes| _ = self.pass(at, direction, Parcel { path, passed: 0, facts, bytes }));
        }
    }

    /// When which direction of which link has something to do.
    fn earliest(&self) -> Option<(Instant, usize, Direction)> {
        let of = |(index, pair): (usize, &BothWays)| {
            let up = pair.up.conveyor.deadline().map(|at| (at, index, Direction::Up));
            let down = pair.down.conveyor.deadline().map(|at| (at, index, Direction::Down));
            up.into_iter().chain(down).min_by_key(|(at, ..)| *at)
        };
        self.links.iter().enumerate().filter_map(of).min_by_key(|(at, ..)| *at)
    }

    /// When [`Fabric::poll`] or [`Fabric::turn`] has something to do.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let links = time::earliest(self.earliest().map(|(at, ..)| at), self.next_cross());
        time::earliest(links, self.course.next_at(&self.scenario))
    }

    /// Makes the changes that are due by `now`; `on` hears of interfaces of the client that go up or down.
    pub(super) fn turn(&mut self, now: Instant, mut on: impl FnMut(usize, InterfaceState)) {
        let Self { scenario, course, links, nats, addresses, public, .. } = self;
        while let Some(at) = course.next_at(scenario).filter(|at| *at <= now) {
            // At its own time: what varies keeps its interval, however late we are.
            course.advance(at, scenario, |turn| match turn {
                Turn::Link(place, configs) => {
                    let Some(pair) = links.get_mut(place.0) else { return };
                    let (up, down) = *configs;
                    pair.up.change(at, up);
                    pair.down.change(at, down);
                }
                Turn::Interface(path, state) => on(path, state),
                // Refused before a run begins: the programs have no workers of ours.
                Turn::Worker(..) => {}
                Turn::Rebind(path, rebind) => {
                    let Some(nat) = nats.get_mut(path).and_then(Option::as_mut) else { return };
                    nat.rebind(match rebind {
                        Rebind::Port => Rebinding::Port,
                        Rebind::Address => {
                            *addresses = addresses.wrapping_add(1).max(1);
                            Rebinding::Address(public(path, *addresses))
                        }
                    });
                }
            });
        }
    }

    /// A packet's memory, for another.
    pub(super) fn take_back(&mut self, bytes: Vec<u8>) {
        if self.spare.len() < SPARE_MAX {
            self.spare.push(bytes);
        }
    }

    /// What each stream of cross traffic did, in the order of the scenario.
    pub(super) fn crossed(&self) -> Vec<CrossCount> {
        self.cross.iter().map(CrossStream::count).collect()
    }

    /// Counters of every link, in the order of places.
    pub(super) fn traffic(&self) -> Vec<Traffic> {
        let of = |pair: &BothWays| Traffic {
            up: *pair.up.conveyor.link().stats(),
            down: *pair.down.conveyor.link().stats(),
        };
        self.links.iter().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::time::Duration;

    use plait_netsim::{Hop, Sink, Source, World};
    use plait_sim::scenario::{Traces, Tree};

    use super::*;
    use crate::emulator::packet::{V4_UDP_BYTES, write_v4_udp};

    const PACKETS: u64 = 2000;
    const PAYLOAD_BYTES: usize = 1000;
    const INTERVAL: Duration = Duration::from_millis(2);

    fn scenario(more: &str) -> Scenario {
        let paths = "[[path]]\nrate_mbps = 10\nloss = 0.2\n[[path]]\nrate_mbps = 10\nloss = 0.2\n";
        let text = format!("{paths}[transfer]\nkind = \"download\"\nbytes = 1000\n{more}");
        Scenario::read(&Tree::parse("t", &text).unwrap(), &Traces::default()).unwrap()
    }

    /// A datagram of the client's on a path, as a device or the relay gives it.
    fn datagram(path: usize) -> Vec<u8> {
        let mut packet = vec![7; V4_UDP_BYTES + PAYLOAD_BYTES];
        let from = format!("10.0.{}.2:5000", path + 1).parse().unwrap();
        write_v4_udp(&mut packet, (from, "10.9.0.1:4433".parse().unwrap()), 0, PAYLOAD_BYTES);
        packet
    }

    fn public(path: usize, change: u8) -> IpAddr {
        IpAddr::from([10, 100, path as u8 + 1, change])
    }

    fn at(number: u64) -> Instant {
        Instant::ZERO + INTERVAL * u32::try_from(number).unwrap()
    }

    #[test]
    fn both_worlds_lose_the_same_packets_of_a_seed() {
        let scenario = scenario("");
        for seed in 1..5 {
            let mut fabric = Fabric::new(&scenario, seed, public);
            let (mut lost, mut passed) = (vec![Vec::new(); 2], [0; 2]);
            for number in 0..PACKETS {
                for (path, lost) in lost.iter_mut().enumerate() {
                    let packet = datagram(path);
                    fabric.enter(at(number), path, Direction::Up, Facts::read(&packet).unwrap(), &packet);
                    let now = fabric.traffic()[path].up.forwarded_packets;
                    if std::mem::replace(&mut passed[path], now) == now {
                        lost.push(number);
                    }
                }
            }
            // The same in the simulator: a source for each path, one datagram each interval.
            let mut world = World::new(seed);
            let course = Changes::new(&scenario, world.fork_random());
            let links: Vec<_> =
                course.links().map(|(up, down)| [world.net.add_link(up), world.net.add_link(down)]).collect();
            for (path, [up, _]) in links.iter().enumerate() {
                let (from, to): (SocketAddr, SocketAddr) =
                    (([10, 1, path as u8, 1], 1).into(), ([10, 2, path as u8, 1], 1).into());
                world.net.route(from.ip(), to.ip(), &[Hop::Link(*up)]);
                let source = Source::new((from, to), PAYLOAD_BYTES, INTERVAL).between(at(0), at(PACKETS));
                world.add_host(source, &[from.ip()]);
                world.add_host(Sink::default(), &[to.ip()]);
            }
            let mut arrived = [0; 2];
            let mut missed = vec![Vec::new(); 2];
            for number in 0..PACKETS {
                world.run_until(at(number) + INTERVAL.mul_f64(0.5));
                for (path, [up, _]) in links.iter().enumerate() {
                    let now = world.net.link_stats(*up).forwarded_packets;
                    if std::mem::replace(&mut arrived[path], now) == now {
                        missed[path].push(number);
                    }
                }
            }
            assert!(lost[0].len() > 300 && lost[0] != lost[1], "{lost:?}");
            assert_eq!(lost, missed, "seed {seed}");
        }
    }
    /// Sends a packet at a time; gives what comes out at the other end within a second.
    fn carried(fabric: &mut Fabric, now: Instant, direction: Direction, packet: &[u8]) -> Option<Vec<u8>> {
        fabric.enter(now, 0, direction, Facts::read(packet).unwrap(), packet);
        fabric.poll(now + Duration::from_secs(1)).map(|landed| landed.bytes)
    }

    #[test]
    fn a_nat_stands_before_its_path_and_forgets() {
        let text = "[[path]]\nrate_mbps = 10\n[path.nat]\n[transfer]\nkind = \"download\"\nbytes = 1\n\
                    [[event]]\nat_s = 10\npath = 0\nrebind = \"address\"\n";
        let scenario = Scenario::read(&Tree::parse("t", text).unwrap(), &Traces::default()).unwrap();
        let mut fabric = Fabric::new(&scenario, 1, public);
        let second = |number: u64| Instant::ZERO + Duration::from_secs(number);
        let (client, server): (SocketAddr, SocketAddr) =
            ("10.0.1.2:5000".parse().unwrap(), "10.9.0.1:4433".parse().unwrap());
        let answer = |to: SocketAddr| {
            let mut packet = vec![7; V4_UDP_BYTES + 10];
            let SocketAddr::V4(to) = to else { panic!("{to}") };
            write_v4_udp(&mut packet, ("10.9.0.1:4433".parse().unwrap(), to), 0, 10);
            packet
        };
        let sent = carried(&mut fabric, second(1), Direction::Up, &datagram(0)).unwrap();
        let outside = address(&sent, Whose::Sender).unwrap();
        assert_eq!((outside.ip(), address(&sent, Whose::Receiver)), (public(0, 1), Some(server)));
        let back = carried(&mut fabric, second(3), Direction::Down, &answer(outside)).unwrap();
        assert_eq!(address(&back, Whose::Receiver), Some(client));
        // Nobody comes in who was not asked for.
        assert_eq!(carried(&mut fabric, second(5), Direction::Down, &answer(client)), None);
        fabric.turn(second(10), |_, _| panic!("no interface"));
        assert_eq!(carried(&mut fabric, second(11), Direction::Down, &answer(outside)), None);
        let sent = carried(&mut fabric, second(13), Direction::Up, &datagram(0)).unwrap();
        assert_eq!(address(&sent, Whose::Sender).map(|other| other.ip()), Some(public(0, 2)));
    }

    #[test]
    fn cross_traffic_takes_its_room_and_comes_to_nobody() {
        let cross =
            "[[cross]]\nkind = \"constant\"\nrate_mbps = 8\npath = 0\ndirection = \"up\"\nstart_s = 1\nstop_s = 3\n";
        let mut fabric = Fabric::new(&scenario(cross), 1, public);
        let half = |number: u32| Instant::ZERO + Duration::from_millis(500) * number;
        assert_eq!((fabric.deadline(), fabric.poll(half(8))), (Some(half(2)), None));
        let traffic = fabric.traffic();
        // Two seconds at 8 Mbit/s, headers included; on one path, one way.
        let (offered, packets) = (traffic[0].up.offered_bytes as f64, traffic[0].up.offered_packets);
        assert!((offered / 2e6 - 1.0).abs() < 0.01 && packets > 1000, "{offered}");
        assert_eq!((traffic[0].down.offered_packets, traffic[1].up.offered_packets), (0, 0));
        // A fifth of them is lost on the way.
        let [CrossCount { sent_packets, arrived_bytes }] = fabric.crossed()[..] else { panic!("one stream") };
        assert_eq!(sent_packets, packets);
        assert!((arrived_bytes as f64 / 1.6e6 - 1.0).abs() < 0.1, "{arrived_bytes}");
    }

    #[test]
    fn interfaces_are_told_of() {
        let event = "[[event]]\nat_s = 2\npath = 1\ninterface = \"down\"\n";
        let mut fabric = Fabric::new(&scenario(event), 1, public);
        let mut told = Vec::new();
        fabric.turn(Instant::ZERO + Duration::from_secs(1), |path, state| told.push((path, state)));
        assert_eq!(told, []);
        fabric.turn(Instant::ZERO + Duration::from_secs(2), |path, state| told.push((path, state)));
        assert_eq!(told, [(1, InterfaceState::Down)]);
    }
}
