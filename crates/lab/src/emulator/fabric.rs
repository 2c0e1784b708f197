//! Every link of a scenario with the packets on it, the ways through them, what changes packets on them and who else sends
//! there: no clock, no device.

use std::net::IpAddr;

use plait_base::{Instant, Random, time};
use plait_netsim::link::{Conveyor, Integrity, LinkConfig};
use plait_netsim::{InterfaceState, Nat, NatConfig, Pass, Rebinding};
use plait_sim::run::network::Traffic;
use plait_sim::scenario::changes::{Changes, Turn};
use plait_sim::scenario::{Direction, PathPlan, Rebind, Scenario};

use super::boxes::Boxes;
use super::cross::{CrossCount, CrossStream};
use super::packet::{Facts, Whose, address, readdress, set_ecn};
use super::parcel::Parcel;
use super::way::{Stop, Stops};

/// A packet that has come to the other host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Landed {
    /// When its last bit arrives.
    pub(super) at: Instant,
    /// By which path; behind all of them come the streams of cross traffic.
    pub(super) path: usize,
    /// To which end.
    pub(super) direction: Direction,
    /// Bytes of the transfer's application, or of the transport that carries its own control with them; none of cross traffic.
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
    /// Those of the scenario, by place, and behind them those that connections beside the transfer have for themselves.
    links: Vec<BothWays>,
    /// How many are the scenario's.
    shared: usize,
    /// The stops of each path, and of each stream of cross traffic behind them.
    ways: Vec<Stops>,
    boxes: Boxes,
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
        let mut links: Vec<BothWays> = course.links().map(&mut pair).collect();
        let shared = links.len();
        // The simulator's client and server draw here.
        (0..2).for_each(|_| _ = random.fork());
        let cross = CrossStream::all(&scenario.cross, &mut random);
        let boxes = Boxes::new(scenario, random.fork());
        let ways = (0..scenario.paths.len()).map(|path| Stops::new(&scenario.way(path), &boxes));
        let mut ways: Vec<Stops> = ways.collect();
        for stream in &cross {
            let way = Stops::new(&stream.via, &boxes);
            let Some(access) = &stream.access else {
                ways.push(way);
                continue;
            };
            ways.push(way.and_then(links.len()));
            let mut side = || Side::new(access.clone(), random.fork());
            links.push(BothWays { up: side(), down: side() });
        }
        let nat = |(path, plan): (usize, &PathPlan)| {
            let (public, nat) = (public(path, 1), plan.nat?);
            let (timeout, mapping, filtering) = (nat.timeout, nat.mapping, nat.filtering);
            Some(Nat::new(NatConfig { public, timeout, mapping, filtering }))
        };
        let nats = scenario.paths.iter().enumerate().map(nat).collect();
        let (scenario, spare, now) = (scenario.clone(), Vec::new(), Instant::ZERO);
        Self { scenario, course, links, shared, ways, boxes, nats, addresses: 1, public, cross, spare, now }
    }

    /// A packet of a path enters at its near end.
    pub(super) fn enter(&mut self, now: Instant, path: usize, direction: Direction, facts: Facts, packet: &[u8]) {
        self.now = self.now.max(now);
        let others = path.checked_sub(self.nats.len()).and_then(|index| self.cross.get_mut(index));
        others.into_iter().for_each(|stream| stream.on_sent(now, direction));
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

    /// The next stops of a packet's way take it; gives it back where there is none.
    fn pass(&mut self, now: Instant, direction: Direction, mut parcel: Parcel) -> Option<Parcel> {
        loop {
            let Some(stop) = self.ways.get(parcel.path)?.stop(direction, parcel.passed) else { return Some(parcel) };
            parcel.passed += 1;
            let treated = match stop {
                Stop::Box(number) => self.boxes.pass(number, now, &mut parcel),
                Stop::Link(place) => {
                    if let Some(dropped) = self.links.get_mut(place)?.of(direction).offer(now, parcel) {
                        self.take_back(dropped.bytes);
                    }
                    return None;
                }
            };
            match treated {
                Pass::On => {}
                Pass::Twice => self.boxes.hold(now, direction, parcel.clone()),
                Pass::Later(delay) => {
                    self.boxes.hold(now + delay, direction, parcel);
                    return None;
                }
                Pass::Drop => {
                    self.take_back(parcel.bytes);
                    return None;
                }
            }
        }
    }

    /// The next packet to come to a host by `now`.
    pub(super) fn poll(&mut self, now: Instant) -> Option<Landed> {
        self.now = self.now.max(now);
        loop {
            let (due, index, direction) = match (self.earliest(), self.next_entry()) {
                (link, Some(at)) if at <= now && link.is_none_or(|(due, ..)| at <= due) => {
                    while let Some((direction, parcel)) = self.boxes.release(at) {
                        self.pass(at, direction, parcel);
                    }
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
                set_ecn(&mut parcel.bytes, conveyed.ecn);
                parcel.facts.ecn = conveyed.ecn;
            }
            let Some(parcel) = self.pass(conveyed.at, direction, parcel) else { continue };
            let Parcel { path, facts, mut bytes, .. } = parcel;
            let cross = path.checked_sub(self.nats.len()).and_then(|index| self.cross.get_mut(index));
            let payload_bytes = if cross.is_some() { 0 } else { facts.payload_bytes };
            let goes_on = match cross {
                Some(stream) => {
                    stream.on_arrival(direction, facts.payload_bytes);
                    stream.has_hosts()
                }
                None => direction == Direction::Up || self.translate(conveyed.at, path, direction, &mut bytes),
            };
            if !goes_on {
                self.take_back(bytes);
                continue;
            }
            return Some(Landed { at: conveyed.at, path, direction, payload_bytes, bytes });
        }
    }

    /// When the next packet comes out of a middlebox, or from cross traffic.
    fn next_entry(&self) -> Option<Instant> {
        time::earliest(self.boxes.next_at(), self.cross.iter().filter_map(CrossStream::next_at).min())
    }

    /// Lets cross traffic send what is due at a time.
    fn send_cross(&mut self, at: Instant) {
        for index in 0..self.cross.len() {
            let Some(stream) = self.cross.get_mut(index).filter(|stream| stream.next_at() <= Some(at)) else {
                continue;
            };
            let (direction, path) = (stream.direction, self.nats.len() + index);
            for (facts, bytes) in stream.poll(at) {
                self.pass(at, direction, Parcel { path, passed: 0, facts, bytes });
            }
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
        let links = time::earliest(self.earliest().map(|(at, ..)| at), self.next_entry());
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
        self.links.iter().take(self.shared).map(of).collect()
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
        let [CrossCount { sent_packets, arrived_bytes, first }] = fabric.crossed()[..] else { panic!("one stream") };
        assert_eq!((sent_packets, first), (packets, Some(half(2))));
        assert!((arrived_bytes as f64 / 1.6e6 - 1.0).abs() < 0.1, "{arrived_bytes}");
    }

    #[test]
    fn a_connection_beside_the_transfer_has_a_way_of_its_own() {
        let flow = "[[cross]]\nkind = \"flow\"\npath = 1\nrtt_ms = 40\n";
        let mut fabric = Fabric::new(&scenario(flow), 1, public);
        let packet = datagram(0);
        let facts = Facts::read(&packet).unwrap();
        assert_eq!(fabric.traffic().len(), 2, "links of the scenario alone are told of");
        // Its path is behind those of the transfer; a fifth of its packets is lost on the link that it shares.
        for direction in [Direction::Up, Direction::Down] {
            (0..100).for_each(|number| fabric.enter(at(number), 2, direction, facts, &packet));
        }
        let landed: Vec<Landed> = std::iter::from_fn(|| fabric.poll(at(1000))).collect();
        assert!(landed.len() > 120 && landed.iter().all(|one| one.path == 2 && one.payload_bytes == 0));
        // Its own 20 ms each way, and what the shared link takes: 10 ms and a packet's time.
        let first = landed.iter().map(|one| one.at).min().unwrap().since(at(0));
        assert!((30..33).contains(&first.as_millis()), "{first:?}");
        let down = landed.iter().filter(|one| one.direction == Direction::Down).count();
        let [CrossCount { sent_packets, arrived_bytes, first }] = fabric.crossed()[..] else { panic!("one stream") };
        assert_eq!((sent_packets, arrived_bytes, first), (100, (down * PAYLOAD_BYTES) as u64, Some(at(0))));
    }

    #[test]
    fn middleboxes_treat_packets_as_in_the_simulator() {
        let rule = |what: &str| format!("[[rule]]\npath = 0\ndirection = \"up\"\n{what}\n");
        let lossless = |rules: &str| {
            let text =
                format!("[[path]]\nrate_mbps = 10\nrtt_ms = 2\n[transfer]\nkind = \"download\"\nbytes = 1\n{rules}");
            let scenario = Scenario::read(&Tree::parse("t", &text).unwrap(), &Traces::default()).unwrap();
            Fabric::new(&scenario, 1, public)
        };
        // What comes out of 12 packets that enter at once: when, in ms, and how large, headers included.
        let out = |rules: &str| {
            let mut fabric = lossless(rules);
            let packet = datagram(0);
            for _ in 0..12 {
                fabric.enter(at(0), 0, Direction::Up, Facts::read(&packet).unwrap(), &packet);
            }
            let mut out = Vec::new();
            while let Some(landed) = fabric.poll(at(500)) {
                out.push((landed.at.since(at(0)).as_millis(), landed.bytes));
            }
            assert!(fabric.deadline().is_none(), "nothing is left on the way");
            out
        };
        let size = V4_UDP_BYTES + PAYLOAD_BYTES;
        assert_eq!(out("").len(), 12);
        assert_eq!(out(&rule("action = \"drop\"\nevery = 3")).len(), 8);
        assert_eq!(out(&rule("action = \"duplicate\"\ncount = 2")).len(), 14);
        let late = out(&rule("action = \"delay\"\ndelay_ms = 500\nskip = 2\ncount = 1"));
        assert_eq!((late.len(), late[11].0), (12, 501));
        let cut = out(&rule("action = \"truncate\"\nto_bytes = 100\ncount = 1"));
        assert_eq!((cut[0].1.len(), cut[1].1.len()), (V4_UDP_BYTES + 100, size));
        assert_eq!(Facts::read(&cut[0].1).unwrap().payload_bytes, 100);
        let flipped = out(&rule("action = \"flip-bit\"\ncount = 1"));
        let differing = |a: &[u8], b: &[u8]| a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum::<u32>();
        assert_eq!(differing(&flipped[0].1, &flipped[1].1), 1);
        // Two boxes one behind the other, and one that is not for this direction.
        let both = rule("action = \"duplicate\"") + &rule("action = \"duplicate\"");
        assert_eq!(out(&both).len(), 48);
        assert_eq!(out("[[rule]]\npath = 0\ndirection = \"down\"\naction = \"drop\"\n").len(), 12);
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
