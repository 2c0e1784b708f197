//! Plait and other implementations transfer over lossy worlds: the world, and the adapters, hold.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use plait_base::observe::PathState;
use plait_base::{Instant, PathId};
use plait_engine::config::RetryPolicy;
use plait_engine::path::{AddressScope, policy};
use plait_engine::stream::Overflow;
use plait_engine::{TransportConfig, Version};
use plait_netsim::{Depth, Duplex, HostId, PathSpec, RunEnd, World};

use crate::peers::plait::PlaitHost;
use crate::peers::{Kind, Peer, PeerOptions, Request, Setup, Stack, Welcome, progress};

const CLIENT: [IpAddr; 2] = [ip(10, 0, 0, 1), ip(10, 0, 1, 1)];
const SERVER: [IpAddr; 2] = [ip(10, 9, 0, 1), ip(10, 9, 1, 1)];
const PORT: u16 = 4433;

const fn ip(a: u8, b: u8, c: u8, d: u8) -> IpAddr {
    IpAddr::V4(std::net::Ipv4Addr::new(a, b, c, d))
}

fn seconds(s: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(s)
}

struct Lab {
    world: World,
    client: HostId,
    server: HostId,
    links: Vec<Duplex>,
}

/// A client and a server with one link for each spec.
fn lab(seed: u64, kinds: (Kind, Kind), specs: &[PathSpec]) -> Lab {
    lab_with(seed, kinds, specs, PeerOptions::default())
}

fn lab_with(seed: u64, (client, server): (Kind, Kind), specs: &[PathSpec], options: PeerOptions) -> Lab {
    let mut world = World::new(seed);
    world.set_digest_depth(Depth::Timing); // TLS draws its keys from the system
    let paths = specs.len() as u32;
    let remote = SocketAddr::new(SERVER[0], PORT);
    let setup = Setup { local: SocketAddr::new(CLIENT[0], 50_000), remote: Some(remote), paths, seed };
    let client = world.add_host(client.build_with(setup, options), &CLIENT);
    let setup = Setup { local: remote, remote: None, paths, seed: seed + 1 };
    let server = world.add_host(server.build_with(setup, options), &SERVER);
    let links =
        std::iter::zip(CLIENT, SERVER).zip(specs).map(|((a, b), spec)| world.net.connect(a, b, spec.link())).collect();
    Lab { world, client, server, links }
}

impl Lab {
    fn ask(&mut self, request: Request) {
        self.world.act::<Peer, _>(self.client, |peer, _| peer.0.request(request));
    }

    /// Runs until every request is done; answers the time it took.
    fn finish(&mut self, limit: u64) -> Duration {
        let client = self.client;
        let end = self.world.run_until_done(seconds(limit), |world| {
            let p = progress(world, client);
            p.is_done() || p.failure.is_some()
        });
        let p = progress(&self.world, self.client);
        assert_eq!(end, RunEnd::Condition, "{p:?}, server {:?}", progress(&self.world, self.server));
        assert!(p.is_done(), "{p:?}");
        self.world.now().since_origin()
    }
}

#[test]
fn every_pair_downloads_and_uploads_with_loss() {
    for client in Kind::ALL {
        for server in Kind::ALL {
            let mut lab = lab(7, (client, server), &[PathSpec::new(20, 20).loss(0.01)]);
            lab.ask(Request::download(1_000_000));
            lab.ask(Request::upload(300_000));
            lab.ask(Request::download(0));
            let took = lab.finish(60);
            assert_eq!(progress(&lab.world, lab.client).verified_bytes, 1_000_000);
            assert!(took > Duration::from_millis(400), "faster than the link: {took:?}");
            assert!(lab.world.net.link_stats(lab.links[0].backward).drops_total() > 0);
            // The server sees the client's good-bye.
            lab.world.act::<Peer, _>(lab.client, |peer, now| peer.0.close(now));
            let end = lab.world.now() + Duration::from_secs(40);
            assert_eq!(lab.world.run_until(end), RunEnd::Idle, "{client:?} to {server:?}");
        }
    }
}

#[test]
fn acks_become_few_with_every_peer_that_asks_or_is_asked() {
    // Each end asks where it sends: the server in a download, the client in an upload.
    let pairs = [
        (Kind::Plait, Kind::Plait),
        (Kind::Plait, Kind::Quinn),
        (Kind::Quinn, Kind::Plait),
        (Kind::Plait, Kind::Noq),
        (Kind::Noq, Kind::Plait),
    ];
    for (client, server) in pairs {
        for request in [Request::download(4_000_000), Request::upload(4_000_000)] {
            let run = |ack_frequency| {
                let options = PeerOptions { ack_frequency, ..PeerOptions::default() };
                let mut lab = lab_with(11, (client, server), &[PathSpec::new(20, 30)], options);
                lab.ask(request);
                let took = lab.finish(60);
                let net = &lab.world.net;
                let ways = [lab.links[0].forward, lab.links[0].backward].map(|way| net.link_stats(way).offered_packets);
                // The way of the acks has fewer packets.
                (ways[0].min(ways[1]), took)
            };
            let [(usual, before), (few, after)] = [None, Some(20)].map(run);
            println!("{client:?} and {server:?}: {usual} packets of acks in {before:?}, {few} in {after:?}");
            assert!(few * 3 < usual * 2, "{client:?}, {server:?}: {few} packets of acks in place of {usual}");
            assert!(after < before.mul_f64(1.1), "{client:?}, {server:?}: {after:?} in place of {before:?}");
        }
    }
}

#[test]
fn acks_are_few_by_default_where_plait_sends_much() {
    let peers = [Kind::Plait, Kind::Quinn, Kind::Noq];
    let pairs = peers.map(|peer| (Kind::Plait, peer)).into_iter().chain(peers.map(|peer| (peer, Kind::Plait)));
    for (number, (client, server)) in pairs.enumerate() {
        let request = if number < peers.len() { Request::upload } else { Request::download };
        // Mbit/s, bytes
        let data_for_each_ack = [(100, 8_000_000), (2_000, 40_000_000)].map(|(mbps, bytes)| {
            let mut lab = lab(12, (client, server), &[PathSpec::new(mbps, 5)]);
            lab.ask(request(bytes));
            let took = lab.finish(60);
            let ways = [lab.links[0].forward, lab.links[0].backward];
            let packets = ways.map(|way| lab.world.net.link_stats(way).offered_packets);
            let (acks, data) = (packets[0].min(packets[1]), packets[0].max(packets[1]));
            println!("{client:?} and {server:?}, {mbps} Mbit/s: {data} packets and {acks} of acks in {took:?}");
            data as f64 / acks as f64
        });
        assert!((1.0..3.0).contains(&data_for_each_ack[0]), "{data_for_each_ack:?}");
        assert!((12.0..60.0).contains(&data_for_each_ack[1]), "{data_for_each_ack:?}");
    }
}

#[test]
fn quinn_is_replayed_to_the_bit_of_timing() {
    let run = |seed| {
        let mut lab = lab(seed, (Kind::Quinn, Kind::Quinn), &[PathSpec::new(10, 30).loss(0.02)]);
        lab.ask(Request::download(2_000_000));
        let took = lab.finish(120);
        (took, lab.world.digest(), lab.world.totals())
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).1, run(2).1);
}

#[test]
fn noq_uses_two_paths() {
    let two = [PathSpec::new(10, 20).loss(0.001), PathSpec::new(10, 20).loss(0.001)];
    let time = |paths: usize| {
        let mut lab = lab(3, (Kind::Noq, Kind::Noq), &two[..paths]);
        lab.ask(Request::download(5_000_000));
        if paths == 2 {
            let remote = SocketAddr::new(SERVER[1], PORT);
            lab.world.act::<Peer, _>(lab.client, |peer, _| peer.0.open_path(CLIENT[1], remote));
        }
        let took = lab.finish(120);
        let carried: Vec<u64> =
            lab.links.iter().map(|l| lab.world.net.link_stats(l.backward).forwarded_bytes).collect();
        let paths = lab.world.act::<Peer, _>(lab.client, |peer, _| peer.0.paths()).unwrap();
        (took, carried, paths)
    };
    let (one, _, _) = time(1);
    let (both, carried, paths) = time(2);
    println!("one {one:?} two {both:?} carried {carried:?} {paths:?}");
    assert_eq!(paths.len(), 2);
    assert!(carried.iter().all(|bytes| *bytes > 1_000_000), "both links carry: {carried:?}");
    assert!(both < one.mul_f64(0.75), "{one:?} on one path, {both:?} on two");
}

#[test]
fn noq_runs_differ_only_by_what_it_draws_from_the_system() {
    let run = || {
        let mut lab = lab(3, (Kind::Noq, Kind::Noq), &[PathSpec::new(10, 20)]);
        lab.ask(Request::download(1_000_000));
        (lab.finish(60), lab.world.totals().sent)
    };
    let ((a, sent_a), (b, sent_b)) = (run(), run());
    println!("{a:?} {sent_a} {b:?} {sent_b}");
    assert!(a.abs_diff(b) < Duration::from_millis(50) && sent_a.abs_diff(sent_b) < 100);
}

#[test]
fn keys_change_as_often_as_configured() {
    // RFC 9001 5.3-3, 6.6-3
    // RFC 9001 6: a transfer of several seconds sees several phases, and every byte of it arrives
    let mut transport = crate::peers::plait::transport(1);
    transport.key_update_interval(Some(Duration::from_millis(300)));
    let mut world = World::new(5);
    let remote = SocketAddr::new(SERVER[0], PORT);
    let setup = Setup { local: SocketAddr::new(CLIENT[0], 50_000), remote: Some(remote), paths: 1, seed: 5 };
    let client = world.add_host(PlaitHost::with(setup, transport, RetryPolicy::Application), &CLIENT);
    world.add_host(Kind::Plait.build(Setup { local: remote, remote: None, paths: 1, seed: 6 }), &SERVER);
    world.net.connect(CLIENT[0], SERVER[0], PathSpec::new(10, 20).loss(0.002).link());
    world.act::<PlaitHost, _>(client, |host, _| host.request(Request::download(4_000_000)));
    let is_done = |world: &World| world.host::<PlaitHost>(client).is_some_and(|host| host.progress().is_done());
    world.run_until_done(seconds(60), is_done);
    assert!(is_done(&world));
    let phase = world.act::<PlaitHost, _>(client, |host, _| host.connection().map(|c| c.session().key_phase()));
    let phase = phase.flatten().unwrap_or_default();
    assert!(phase >= 4, "{phase} key updates");
}

#[test]
fn servers_move_their_clients_through_loss() {
    // RFC 9368 2.3, RFC 9369 4.1: whichever packets are lost, and with a Retry before, both ends end in one version
    for seed in 0..24 {
        let (first, prefers) = if seed % 2 == 0 { (Version::V1, Version::V2) } else { (Version::V2, Version::V1) };
        let welcome = if seed % 3 == 0 { Welcome::Retry } else { Welcome::Direct };
        let options = PeerOptions { welcome, version: first, prefers: Some(prefers), ..PeerOptions::default() };
        let mut world = World::new(seed);
        let remote = SocketAddr::new(SERVER[0], PORT);
        let setup = Setup { local: SocketAddr::new(CLIENT[0], 50_000), remote: Some(remote), paths: 1, seed };
        let client = world.add_host(PlaitHost::with_habits(setup, options), &CLIENT);
        let setup = Setup { local: remote, remote: None, paths: 1, seed: seed + 1 };
        let server = world.add_host(PlaitHost::with_habits(setup, options), &SERVER);
        world.net.connect(CLIENT[0], SERVER[0], PathSpec::new(10, 20).loss(0.2).link());
        world.act::<PlaitHost, _>(client, |host, _| host.request(Request::download(50_000)));
        let is_done = |world: &World| world.host::<PlaitHost>(client).is_some_and(|host| host.progress().is_done());
        world.run_until_done(seconds(120), is_done);
        assert!(is_done(&world), "seed {seed}");
        for host in [client, server] {
            let version =
                world.act::<PlaitHost, _>(host, |host, _| Some(host.connection()?.session().summary().version));
            assert_eq!(version.flatten(), Some(prefers), "seed {seed}");
        }
    }
}

/// A server of which a client knows one address; the other one is told in the frames of NAT traversal.
struct Told {
    world: World,
    client: HostId,
    server: HostId,
    links: Vec<Duplex>,
}

impl Told {
    fn new(client: impl FnOnce(Setup) -> Peer, server: impl FnOnce(Setup) -> Peer) -> Self {
        let mut world = World::new(11);
        let remote = SocketAddr::new(SERVER[0], PORT);
        let setup = Setup { local: SocketAddr::new(CLIENT[0], 50_000), remote: Some(remote), paths: 2, seed: 11 };
        let client = world.add_host(client(setup), &CLIENT);
        let server = world.add_host(server(Setup { local: remote, remote: None, ..setup }), &SERVER);
        let connect = |(a, b)| world.net.connect(a, b, PathSpec::new(10, 20).link());
        // Whatever leaves without a source address of its own leaves from the first.
        let links = [(0, 0), (0, 1)].map(|(ours, theirs)| (CLIENT[ours], SERVER[theirs])).map(connect).to_vec();
        Self { world, client, server, links }
    }

    /// Bytes of each link towards the client, once a download is done.
    fn download(&mut self) -> Vec<u64> {
        let client = self.client;
        let end = self.world.run_until_done(seconds(60), |world| progress(world, client).is_done());
        assert_eq!(end, RunEnd::Condition, "{:?}", progress(&self.world, client));
        self.links.iter().map(|link| self.world.net.link_stats(link.backward).forwarded_bytes).collect()
    }
}

fn tells_of_addresses(setup: Setup) -> Peer {
    let mut transport = crate::peers::plait::transport(setup.paths);
    transport.nat_traversal(true).address_scope(AddressScope::Any);
    if setup.remote.is_some() {
        transport.path_policy(policy::by_name("fullmesh").unwrap());
    }
    Peer(Box::new(PlaitHost::with(setup, transport, RetryPolicy::Application)))
}

#[test]
fn a_server_of_noq_tells_us_of_its_other_address() {
    let mut told = Told::new(tells_of_addresses, |setup| Kind::Noq.build(setup));
    told.world.act::<Peer, _>(told.client, |peer, now| {
        peer.0.request(Request::download(5_000_000));
        let local = SocketAddr::new(CLIENT[0], 50_000);
        peer.plait().unwrap().connection().unwrap().set_local_addresses(now, &[local]);
    });
    told.world.run_until(Instant::ZERO + Duration::from_millis(200));
    let tell = |peer: &mut Peer, _| {
        let connection = peer.noq().unwrap().connection().unwrap();
        connection.add_nat_traversal_address(SocketAddr::new(SERVER[1], PORT)).unwrap();
    };
    told.world.act::<Peer, _>(told.server, tell);
    let carried = told.download();
    assert!(carried.iter().all(|bytes| *bytes > 1_000_000), "both links carry: {carried:?}");
}

#[test]
fn a_client_of_noq_learns_our_other_address() {
    let mut told = Told::new(|setup| Kind::Noq.build(setup), tells_of_addresses);
    told.world.act::<Peer, _>(told.client, |peer, _| peer.0.request(Request::download(5_000_000)));
    told.world.run_until(Instant::ZERO + Duration::from_millis(200));
    let second = SocketAddr::new(SERVER[1], PORT);
    told.world.act::<Peer, _>(told.server, |peer, now| {
        let locals = [SocketAddr::new(SERVER[0], PORT), second];
        peer.plait().unwrap().connection().unwrap().set_local_addresses(now, &locals);
    });
    told.world.run_until(Instant::ZERO + Duration::from_millis(400));
    // It asks us by REACH_OUT to probe it, which we do not, and probes the address itself.
    let probed = told.world.act::<Peer, _>(told.client, |peer, now| {
        peer.noq().unwrap().reach_out(now, SocketAddr::new(CLIENT[1], 50_000))
    });
    assert_eq!(probed, Some(vec![second]));
    told.world.run_until(Instant::ZERO + Duration::from_millis(600));
    // It opens the path as a backup.
    let paths = told.world.act::<Peer, _>(told.client, |peer, now| {
        peer.0.obey(now, crate::peers::Order::Available(1));
        peer.0.paths().len()
    });
    assert_eq!(paths, Some(2));
    let carried = told.download();
    assert!(carried.iter().all(|bytes| *bytes > 1_000_000), "both links carry: {carried:?}");
}

/// A client and a server of plait, one link of `mtus` bytes for each path, all paths wished for.
fn narrow(seed: u64, change: fn(&mut TransportConfig), mtus: &[u32]) -> (World, [HostId; 2]) {
    let (mut world, paths) = (World::new(seed), mtus.len() as u32);
    let remote = SocketAddr::new(SERVER[0], PORT);
    let mut host = |setup: Setup, own: &[IpAddr]| {
        let mut transport = crate::peers::plait::transport(paths);
        change(&mut transport);
        world.add_host(PlaitHost::with(setup, transport, RetryPolicy::Application), own)
    };
    let client = Setup { local: SocketAddr::new(CLIENT[0], 50_000), remote: Some(remote), paths, seed };
    let client = host(client, &CLIENT);
    let server = host(Setup { local: remote, remote: None, paths, seed: seed + 1 }, &SERVER);
    for ((a, b), mtu) in std::iter::zip(CLIENT, SERVER).zip(mtus) {
        world.net.connect(a, b, PathSpec::new(10, 20).link().sizes(*mtu, 28));
    }
    for (local, remote) in std::iter::zip(CLIENT, SERVER).take(mtus.len()).skip(1) {
        world.act::<PlaitHost, _>(client, |host, _| host.open_path(local, SocketAddr::new(remote, PORT)));
    }
    (world, [client, server])
}

#[test]
fn first_datagrams_larger_than_the_path_cost_a_second_and_not_the_connection() {
    // RFC 8899 4.3, RFC 9000 14.2: UDP payloads of 1312 pass, the first datagrams have 1400
    for mtus in [&[1340_u32][..], &[1340, 1340], &[1500, 1340], &[1340, 1500]] {
        for seed in 0..4 {
            let (mut world, [client, _]) = narrow(
                seed,
                |transport| {
                    transport.initial_mtu(1400);
                },
                mtus,
            );
            for request in [Request::download(200_000), Request::upload(200_000)] {
                world.act::<PlaitHost, _>(client, |host, _| host.request(request));
            }
            let is_done = |world: &World| world.host::<PlaitHost>(client).is_some_and(|host| host.progress().is_done());
            world.run_until_done(seconds(60), is_done);
            let took = world.now().since_origin();
            println!("links of {mtus:?}, seed {seed}: {took:?}");
            assert!(is_done(&world) && took < Duration::from_secs(6), "links of {mtus:?}, seed {seed}: {took:?}");
        }
    }
}

#[test]
fn a_narrow_path_without_data_is_measured_and_not_taken_for_dead() {
    // Datagrams of 1410 bytes go by the first path; what the second carries is found by probes that leave alone.
    for seed in 0..4 {
        let (mut world, [client, _]) = narrow(seed, |_| {}, &[1500, 1340]);
        let figures = |world: &mut World| {
            world.act::<PlaitHost, _>(client, |host, now| {
                let connection = host.connection()?;
                // A backup takes no data; it answers all the same.
                let _ = connection.set_path_status(now, PathId(1), plait_engine::path::PathStatus::Backup);
                let size = connection.datagrams().max_size()?;
                let _ = connection.datagrams().send(vec![7; size].into(), Overflow::Refuse);
                Some((
                    size,
                    connection.path_statistics(now, PathId(1)).map(|path| (path.state, path.max_datagram_bytes)),
                ))
            })
        };
        let (mut found, mut probed) = (0, 0);
        for step in 1..200 {
            world.run_until(Instant::ZERO + Duration::from_millis(step * 20));
            let Some(Some((size, second))) = figures(&mut world) else { continue };
            assert!(size >= found, "seed {seed}: the limit shrinks from {found} to {size}");
            found = size;
            if let Some((state, mtu)) = second {
                assert_ne!(state, PathState::Failed, "seed {seed}, step {step}");
                probed = mtu;
            }
        }
        assert!(found > 1400 && probed > 1290 && probed <= 1312, "seed {seed}: {found} bytes, and {probed} on path 1");
    }
}
