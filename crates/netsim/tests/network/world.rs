//! The world itself: routes, NATs, interfaces, middleboxes, faults and replay.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::BytesMut;
use plait_base::{Ecn, Instant};
use plait_netsim::link::{
    Aqm, CoDelConfig, DropCause, Jitter, LinkConfig, LinkState, Loss, Order, QueueLimit, Rate, Service,
};
use plait_netsim::{
    Capture, Damage, Datagram, Duplex, Fate, Filtering, Header, Hop, Host, HostId, InterfaceState, Lost, Mapping,
    NatConfig, PathSpec, Rebinding, Record, Rule, RunEnd, Treat, When, World,
};

const A: IpAddr = ip(1);
const B: IpAddr = ip(2);
const C: IpAddr = ip(3);
const PUBLIC: IpAddr = ip(100);
const MS: Duration = Duration::from_millis(1);

const fn ip(last: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, last))
}

fn ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// Sends what a test tells it, keeps what it gets.
#[derive(Default)]
struct Post {
    out: VecDeque<Datagram>,
    got: Vec<(Instant, Datagram)>,
    interfaces: Vec<(IpAddr, InterfaceState)>,
    wakes: Vec<Instant>,
    woken: Vec<Instant>,
    /// Sends back what it gets.
    answers: usize,
}

impl Host for Post {
    fn on_datagram(&mut self, now: Instant, datagram: Datagram) {
        if self.answers > 0 {
            self.answers -= 1;
            self.out.push_back(Datagram { src: datagram.dst, dst: datagram.src, ..datagram.clone() });
        }
        self.got.push((now, datagram));
    }

    fn on_timeout(&mut self, now: Instant) {
        self.woken.push(now);
        self.wakes.retain(|at| *at > now);
    }

    fn deadline(&self) -> Option<Instant> {
        self.wakes.iter().min().copied()
    }

    fn poll_transmit(&mut self, _now: Instant, out: &mut VecDeque<Datagram>) {
        out.append(&mut self.out);
    }

    fn on_interface(&mut self, _now: Instant, address: IpAddr, state: InterfaceState) {
        self.interfaces.push((address, state));
    }
}

fn post(world: &World, id: HostId) -> &Post {
    world.host(id).unwrap()
}

fn sends(world: &mut World, id: HostId, src: (IpAddr, u16), dst: (IpAddr, u16), payload: &[u8]) {
    let (src, dst): (SocketAddr, SocketAddr) = (src.into(), dst.into());
    let datagram = Datagram { src, dst, ecn: Some(Ecn::Ect0), payload: BytesMut::from(payload) };
    world.act::<Post, _>(id, |host, _| host.out.push_back(datagram)).unwrap();
}

/// Two hosts with one link.
fn pair(config: LinkConfig) -> (World, HostId, HostId, Duplex) {
    let mut world = World::new(1);
    let a = world.add_host(Post::default(), &[A]);
    let b = world.add_host(Post { answers: usize::MAX, ..Post::default() }, &[B]);
    let duplex = world.net.connect(A, B, config);
    world.set_capture(Capture::Payloads(100_000));
    (world, a, b, duplex)
}

fn losses(world: &World) -> Vec<Lost> {
    let lost = |record: &Record| match record.fate {
        Fate::Lost(lost) => Some(lost),
        Fate::Sent | Fate::Arrived => None,
    };
    world.records().iter().filter_map(lost).collect()
}

#[test]
fn there_and_back_in_a_round_trip() {
    let (mut world, a, _, _) = pair(LinkConfig::new(8_000_000, 10 * MS));
    sends(&mut world, a, (A, 1), (B, 2), &[0; 1000]);
    assert_eq!(world.run_until(ms(100)), RunEnd::Idle);
    let (at, datagram) = post(&world, a).got[0].clone();
    assert_eq!(at, ms(22));
    assert_eq!((datagram.src, datagram.dst), ((B, 2).into(), (A, 1).into()));
    assert_eq!(world.now(), ms(100));
    assert!(world.records()[0].line().contains("1000 bytes"));
}

#[test]
fn hops_add_up_and_a_bottleneck_is_shared() {
    let mut world = World::new(1);
    let a = world.add_host(Post::default(), &[A, C]);
    let b = world.add_host(Post::default(), &[B]);
    let access = world.net.add_link(LinkConfig::new(80_000_000, MS));
    let shared = world.net.add_link(LinkConfig::new(8_000_000, 5 * MS));
    world.net.route(A, B, &[Hop::Link(access), Hop::Link(shared)]);
    world.net.route(C, B, &[Hop::Link(shared)]);
    sends(&mut world, a, (A, 1), (B, 2), &[0; 1000]);
    sends(&mut world, a, (C, 1), (B, 2), &[0; 2000]);
    world.run_until(ms(100));
    // C's 2 ms keep the shared link busy until 2 ms; A's datagram, there at 1.1 ms, waits.
    let at: Vec<_> = post(&world, b).got.iter().map(|(at, d)| (*at, d.src.ip())).collect();
    assert_eq!(at, [(ms(7), C), (ms(8), A)]);
}

#[test]
fn a_tap_tells_what_left_the_queue_and_gets_through() {
    for service in [Service::Planned, Service::Live] {
        // A datagram takes 1 ms to leave; three may wait, and every copy is damaged.
        let config = LinkConfig { service, duplicate: 1.0, corrupt: 1.0, ..LinkConfig::new(8_000_000, 10 * MS) };
        let (mut world, a, _, duplex) = pair(config.queue(QueueLimit::packets(3)));
        world.net.tap(duplex.forward);
        for _ in 0..5 {
            sends(&mut world, a, (A, 1), (B, 2), &[7; 1000]);
        }
        world.run_until(ms(2));
        let tapped = world.net.take_tapped(duplex.forward);
        assert_eq!(tapped.iter().map(|tapped| tapped.at).collect::<Vec<_>>(), [ms(1), ms(2)], "{service:?}");
        assert!(
            tapped.iter().all(|tapped| tapped.datagram.payload == [7; 1000][..] && tapped.datagram.dst.port() == 2)
        );
        // The third is being sent when the link goes down, the fourth waits, the fifth found no room.
        world.run_until(Instant::ZERO + MS * 5 / 2);
        world.net.change_link(duplex.forward, |link| link.state = LinkState::Down);
        world.run_until(ms(100));
        assert_eq!(world.net.take_tapped(duplex.forward), [], "{service:?}");
        assert!(losses(&world).len() >= 3, "{service:?}");
        assert_eq!(world.net.take_tapped(duplex.backward), [], "nobody listens there");
    }
}

#[test]
fn without_route_or_host_datagrams_are_lost() {
    let (mut world, a, _, duplex) = pair(LinkConfig::default());
    sends(&mut world, a, (A, 1), (C, 2), b"x");
    world.net.route_from_any(C, &[Hop::Link(duplex.forward)]);
    sends(&mut world, a, (ip(77), 1), (C, 2), b"x"); // a forged source may use it too
    world.run_until(ms(1));
    assert_eq!(losses(&world), [Lost::NoRoute, Lost::NoHost]);
}

#[test]
fn interfaces_go_down_and_tell_their_host() {
    let (mut world, a, b, _) = pair(LinkConfig::new(8_000_000, 10 * MS));
    sends(&mut world, a, (A, 1), (B, 2), &[0; 100]);
    world.at(ms(5), |world| world.set_interface(B, InterfaceState::Down));
    world.run_until(ms(20));
    assert!(post(&world, b).got.is_empty());
    sends(&mut world, b, (B, 2), (A, 1), b"x");
    world.set_interface(B, InterfaceState::Up);
    sends(&mut world, b, (B, 2), (A, 1), b"y");
    world.run_until(ms(40));
    assert_eq!(losses(&world), [Lost::InterfaceDown, Lost::InterfaceDown]);
    assert_eq!(post(&world, a).got.len(), 1);
    assert_eq!(post(&world, b).interfaces, [(B, InterfaceState::Down), (B, InterfaceState::Up)]);
}

#[test]
fn a_link_going_down_loses_what_has_not_left() {
    for service in [Service::Planned, Service::Live] {
        let (mut world, a, b, duplex) = pair(LinkConfig::new(8_000_000, 10 * MS).service(service));
        (0..5).for_each(|_| sends(&mut world, a, (A, 1), (B, 2), &[0; 1000]));
        world.at(Instant::from_nanos(2_500_000), move |world| {
            world.net.change_duplex(duplex, |link| link.state = LinkState::Down);
        });
        world.at(ms(8), move |world| world.net.change_duplex(duplex, |link| link.state = LinkState::Up));
        world.at(ms(9), move |world| sends(world, a, (A, 1), (B, 2), &[0; 1000]));
        world.run_until(ms(100));
        let at: Vec<_> = post(&world, b).got.iter().map(|(at, _)| *at).collect();
        assert_eq!(at, [ms(11), ms(12), ms(20)], "{service:?}");
        assert_eq!(losses(&world), vec![Lost::Link(duplex.forward, DropCause::Down); 3]);
        assert_eq!(world.net.in_flight(), 0);
    }
}

#[test]
fn live_queues_follow_a_new_rate() {
    let (mut world, a, b, duplex) = pair(LinkConfig::new(8_000_000, MS).service(Service::Live));
    (0..3).for_each(|_| sends(&mut world, a, (A, 1), (B, 2), &[0; 1000]));
    world.at(ms(1), move |world| world.net.change_link(duplex.forward, |link| link.rate = Rate::Fixed(800_000)));
    world.run_until(ms(100));
    let at: Vec<_> = post(&world, b).got.iter().map(|(at, _)| *at).collect();
    assert_eq!(at, [ms(2), ms(12), ms(22)]);
}

#[test]
fn codel_in_the_world_drops_and_loses_no_account() {
    let (mut world, a, b, duplex) = pair(LinkConfig::new(8_000_000, MS).aqm(Aqm::CoDel(CoDelConfig::default())));
    world.set_capture(Capture::Headers(usize::MAX));
    (0..1000).for_each(|_| sends(&mut world, a, (A, 1), (B, 2), &[0; 1000]));
    // ECN-capable datagrams are marked, not dropped.
    world.run_until(ms(5000));
    let marked = post(&world, b).got.iter().filter(|(_, d)| d.ecn == Some(Ecn::Ce)).count() as u64;
    assert_eq!(post(&world, b).got.len(), 1000);
    assert!(marked > 10 && marked == world.net.link_stats(duplex.forward).marked);
    assert_eq!(world.net.in_flight(), 0);
}

/// A behind a NAT towards B and C.
fn natted(config: NatConfig) -> (World, HostId, HostId, plait_netsim::NatId) {
    let mut world = World::new(1);
    let a = world.add_host(Post::default(), &[A]);
    let b = world.add_host(Post::default(), &[B, C]);
    world.set_capture(Capture::Headers(1000));
    let nat = world.net.add_nat(config);
    let (up, down) = (world.net.add_link(LinkConfig::default()), world.net.add_link(LinkConfig::default()));
    for remote in [B, C] {
        world.net.route(A, remote, &[Hop::NatOut(nat), Hop::Link(up)]);
        for public in [PUBLIC, ip(101)] {
            world.net.route(remote, public, &[Hop::Link(down), Hop::NatIn(nat)]);
        }
    }
    (world, a, b, nat)
}

fn last_source(world: &World, id: HostId) -> SocketAddr {
    post(world, id).got.last().unwrap().1.src
}

#[test]
fn nat_translates_there_and_back_and_rebinds() {
    let (mut world, a, b, nat) = natted(NatConfig::new(PUBLIC));
    sends(&mut world, a, (A, 1), (B, 2), b"x");
    world.run_until(ms(1));
    let first = last_source(&world, b);
    assert_eq!(first.ip(), PUBLIC);
    sends(&mut world, b, (B, 2), (PUBLIC, first.port()), b"y");
    world.run_until(ms(2));
    assert_eq!(post(&world, a).got[0].1.dst, (A, 1).into());
    sends(&mut world, a, (A, 1), (C, 2), b"x");
    world.run_until(ms(3));
    assert_eq!(last_source(&world, b), first, "one port a source");

    world.net.rebind(nat, Rebinding::Port);
    sends(&mut world, a, (A, 1), (B, 2), b"x");
    world.run_until(ms(4));
    let second = last_source(&world, b);
    assert!(second.ip() == PUBLIC && second.port() != first.port());
    sends(&mut world, b, (B, 2), (PUBLIC, first.port()), b"to the old port");
    world.net.rebind(nat, Rebinding::Address(ip(101)));
    sends(&mut world, a, (A, 1), (B, 2), b"x");
    world.run_until(ms(5));
    assert_eq!(last_source(&world, b).ip(), ip(101));
    assert_eq!(losses(&world), [Lost::Nat(nat)]);
}

#[test]
fn nat_mappings_time_out() {
    let (mut world, a, b, nat) = natted(NatConfig { timeout: 100 * MS, ..NatConfig::new(PUBLIC) });
    sends(&mut world, a, (A, 1), (B, 2), b"x");
    world.run_until(ms(99));
    let first = last_source(&world, b);
    sends(&mut world, a, (A, 1), (B, 2), b"x");
    world.run_until(ms(250));
    assert_eq!(last_source(&world, b), first, "traffic keeps it");
    sends(&mut world, b, (B, 2), (PUBLIC, first.port()), b"too late");
    sends(&mut world, a, (A, 1), (B, 2), b"x");
    world.run_until(ms(251));
    assert_ne!(last_source(&world, b), first);
    assert_eq!(losses(&world), [Lost::Nat(nat)]);
}

#[test]
fn nat_filters_and_symmetric_mappings() {
    for (filtering, welcome) in [(Filtering::Open, 2), (Filtering::Address, 1), (Filtering::AddressAndPort, 0)] {
        let (mut world, a, b, _) = natted(NatConfig { filtering, ..NatConfig::new(PUBLIC) });
        sends(&mut world, a, (A, 1), (B, 2), b"x");
        world.run_until(ms(1));
        let port = last_source(&world, b).port();
        sends(&mut world, b, (B, 3), (PUBLIC, port), b"same address");
        sends(&mut world, b, (C, 2), (PUBLIC, port), b"other address");
        world.run_until(ms(2));
        assert_eq!(post(&world, a).got.len(), welcome, "{filtering:?}");
    }
    let (mut world, a, b, _) = natted(NatConfig { mapping: Mapping::PerRemote, ..NatConfig::new(PUBLIC) });
    sends(&mut world, a, (A, 1), (B, 2), b"x");
    world.run_until(ms(1));
    let first = last_source(&world, b);
    sends(&mut world, a, (A, 1), (C, 2), b"x");
    world.run_until(ms(2));
    assert_ne!(last_source(&world, b), first);
}

/// What arrives when `payloads` pass a middlebox of one rule.
fn through(when: When, treat: Treat, payloads: &[&[u8]]) -> Vec<(Instant, Datagram)> {
    let mut world = World::new(1);
    let a = world.add_host(Post::default(), &[A]);
    let b = world.add_host(Post::default(), &[B]);
    let middlebox = world.net.add_middlebox(Rule::new(when, treat));
    let link = world.net.add_link(LinkConfig::new(8_000_000_000, MS));
    world.net.route(A, B, &[Hop::Middlebox(middlebox), Hop::Link(link)]);
    payloads.iter().for_each(|payload| sends(&mut world, a, (A, 1), (B, 2), payload));
    world.run_until(ms(1000));
    post(&world, b).got.clone()
}

#[test]
fn middleboxes_treat_by_rule() {
    let (long, short): (&[u8], &[u8]) = (&[0xc0, 1, 2], &[0x40, 1]);
    let all = [long, short, long, short];
    let count = |when, treat| through(when, treat, &all).len();
    assert_eq!(count(When::default(), Treat::Drop), 0);
    assert_eq!(count(When { header: Header::Long, ..When::default() }, Treat::Drop), 2);
    assert_eq!(count(When { header: Header::Short, position: 1..2, ..When::default() }, Treat::Drop), 3);
    assert_eq!(count(When { bytes: 3..4, ..When::default() }, Treat::Duplicate), 6);
    assert_eq!(count(When { time: ms(1)..ms(2), ..When::default() }, Treat::Drop), 4);
    let many = vec![short; 1000];
    let half = through(When { share: 0.5, ..When::default() }, Treat::Drop, &many).len();
    assert!((430..570).contains(&half));

    let later = through(When { position: 0..1, ..When::default() }, Treat::Delay(5 * MS), &all);
    assert_eq!(later.last().unwrap().1.payload, long);
    assert!(later.last().unwrap().0 >= ms(6));
    assert!(through(When::default(), Treat::Mark(None), &all).iter().all(|(_, d)| d.ecn.is_none()));
    assert!(through(When::default(), Treat::Congest, &all).iter().all(|(_, d)| d.ecn == Some(Ecn::Ce)));
    assert!(through(When::default(), Treat::Truncate(1), &all).iter().all(|(_, d)| d.payload.len() == 1));
    assert!(through(When::default(), Treat::FlipBit, &[long]).iter().all(|(_, d)| d.payload != long));
    assert!(through(When::default(), Treat::Scramble, &[&[0; 32]]).iter().all(|(_, d)| d.payload[..] != [0; 32]));
}

#[test]
fn damage_flips_a_bit_or_drops() {
    for (damage, arrive) in [(Damage::Flip, 1), (Damage::Checksum, 0)] {
        let (mut world, a, b, duplex) = pair(LinkConfig { corrupt: 1.0, ..LinkConfig::default() });
        world.net.set_damage(damage);
        sends(&mut world, a, (A, 1), (B, 2), &[0; 64]);
        world.run_until(Instant::from_nanos(0));
        let got = &post(&world, b).got;
        assert_eq!(got.len(), arrive);
        assert!(got.iter().all(|(_, d)| d.payload.iter().map(|byte| byte.count_ones()).sum::<u32>() == 1));
        assert_eq!(losses(&world).contains(&Lost::Checksum(duplex.forward)), arrive == 0);
    }
}

#[test]
fn timers_fire_once_each_and_at_their_time() {
    let (mut world, a, _, _) = pair(LinkConfig::default());
    world.act::<Post, _>(a, |host, _| host.wakes = vec![ms(30), ms(10), ms(20)]);
    world.run_until(ms(15));
    // A deadline that moves ahead, and one that moves back.
    world.act::<Post, _>(a, |host, _| host.wakes.push(ms(17)));
    world.run_until(ms(18));
    world.act::<Post, _>(a, |host, _| host.wakes.retain(|at| *at != ms(20)));
    world.run_until(ms(100));
    assert_eq!(post(&world, a).woken, [ms(10), ms(17), ms(30)]);
}

#[test]
fn a_host_that_spins_is_named() {
    struct Spinner;
    impl Host for Spinner {
        fn on_datagram(&mut self, _now: Instant, _datagram: Datagram) {}
        fn on_timeout(&mut self, _now: Instant) {}
        fn deadline(&self) -> Option<Instant> {
            Some(ms(3))
        }
        fn poll_transmit(&mut self, _now: Instant, _out: &mut VecDeque<Datagram>) {}
    }
    let mut world = World::new(1);
    let id = world.add_host(Spinner, &[A]);
    assert_eq!(world.run_until(ms(100)), RunEnd::Spinning(id));
    assert_eq!(world.now(), ms(3));
}

/// Many datagrams back and forth over links that do everything at once.
fn chaos(seed: u64) -> (u64, u64) {
    let mut world = World::new(seed);
    let a = world.add_host(Post { answers: 20_000, ..Post::default() }, &[A]);
    world.add_host(Post { answers: 20_000, ..Post::default() }, &[B]);
    let config = LinkConfig { duplicate: 0.01, corrupt: 0.01, ..PathSpec::new(10, 20).link() }
        .loss(Loss::bursts(0.01, 3.0))
        .jitter(Jitter::Normal(MS), Order::Free);
    let duplex = world.net.connect(A, B, config);
    for i in 1..20 {
        world.at(ms(i * 100), move |world| {
            world.net.change_duplex(duplex, |link| link.rate = Rate::Fixed(1_000_000 * i));
            (0..50).for_each(|n| sends(world, a, (A, 1), (B, 2), &[n; 700]));
        });
    }
    world.run_until(ms(5000));
    (world.digest(), world.events())
}

#[test]
fn same_seed_same_world() {
    assert_eq!(chaos(1), chaos(1));
    assert_ne!(chaos(1).0, chaos(2).0);
    assert!(chaos(1).1 > 1000);
}
