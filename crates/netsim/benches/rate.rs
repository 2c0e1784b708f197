//! How many datagrams a second of processor time the network model alone carries.

use std::net::IpAddr;
use std::slice::from_ref;
use std::time::Duration;

use plait_base::Instant;
use plait_netsim::link::{Aqm, CoDelConfig, FqCoDelConfig, LinkConfig, Loss, QueueLimit, Rate, Service};
use plait_netsim::{Depth, Hop, HostId, Sink, Source, World};

/// Processor time of this thread in seconds, where the system tells; a busy machine then does not count.
fn processor_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse::<f64>().ok().map(|nanos| nanos / 1e9)
}

/// So many virtual seconds.
const SECONDS: u64 = 18;
/// Datagrams of each source: 1,200 bytes at a fixed interval, 107 % of a gigabit a second in all.
const BYTES: usize = 1200;
const INTERVAL: Duration = Duration::from_micros(9);

/// A world and its sources; every sink sees what the network carries.
struct Bench {
    world: World,
    sinks: Vec<HostId>,
}

/// `pairs` of hosts that share links of these settings, each pair at its part of the rate.
fn bench(pairs: u32, depth: Depth, links: &[LinkConfig]) -> Bench {
    let mut world = World::new(1);
    world.set_digest_depth(depth);
    let hops: Vec<_> = links.iter().map(|config| Hop::Link(world.net.add_link(config.clone()))).collect();
    let pair = |pair: u32| {
        let (a, b) = (IpAddr::from([10, 0, pair as u8, 1]), IpAddr::from([10, 0, pair as u8, 2]));
        world.net.route(a, b, &hops);
        let source = Source::new(((a, 1).into(), (b, 2).into()), BYTES, INTERVAL * pairs);
        world.add_host(source.between(Instant::ZERO + INTERVAL * pair, Instant::from_nanos(u64::MAX)), &[a]);
        world.add_host(Sink::default(), &[b])
    };
    let sinks = (0..pairs).map(pair).collect();
    Bench { world, sinks }
}

#[allow(clippy::disallowed_methods)] // a measuring tool
fn run(name: &str, mut bench: Bench) {
    let (start, used) = (std::time::Instant::now(), processor_seconds());
    bench.world.run_until(Instant::ZERO + Duration::from_secs(SECONDS));
    let wall = start.elapsed().as_secs_f64();
    let seconds = used.zip(processor_seconds()).map_or(wall, |(before, after)| after - before);
    let world = &bench.world;
    let bytes: u64 = bench.sinks.iter().filter_map(|sink| world.host::<Sink>(*sink)).map(Sink::bytes).sum();
    let totals = world.totals();
    assert_eq!(totals.sent, totals.arrived + totals.lost + world.net.in_flight() as u64);
    println!(
        "{name:28} {:>9.0} datagrams/s  {:>4} ns each  {} arrived, {} lost, {bytes} bytes, digest {:016x}",
        totals.sent as f64 / seconds,
        (seconds * 1e9 / totals.sent as f64) as u64,
        totals.arrived,
        totals.lost,
        world.digest(),
    );
}

fn main() {
    let (timing, payload) = (Depth::Timing, Depth::Payload);
    let link = |queue_ms: u64| {
        LinkConfig::new(1_000_000_000, Duration::from_millis(10))
            .queue(QueueLimit::time(Duration::from_millis(queue_ms)))
    };
    let lossy = link(5).loss(Loss::Bernoulli(0.01));
    // Rate, delay and a queue bounded in bytes: the network of the bare event loop it is compared with.
    let plain = LinkConfig::new(1_000_000_000, Duration::from_millis(10)).queue(QueueLimit::bytes(625_000));
    let fast = |config: &LinkConfig| LinkConfig { rate: Rate::Fixed(2_000_000_000), ..config.clone() };
    let three = |config: &LinkConfig| [fast(config), config.clone(), fast(config)];
    run("one hop", bench(1, timing, from_ref(&plain)));
    run("three hops", bench(1, timing, &three(&plain)));
    run("three hops, four share them", bench(4, timing, &three(&plain)));
    run("one hop, losses", bench(1, timing, from_ref(&lossy)));
    run("three hops, losses", bench(1, timing, &three(&lossy)));
    run("one hop, payloads hashed", bench(1, payload, from_ref(&lossy)));
    run("one hop, 60 ms in flight", bench(1, timing, &[link(50)]));
    run("one hop, live queue", bench(1, timing, &[lossy.service(Service::Live)]));
    run("one hop, CoDel", bench(1, timing, &[link(50).aqm(Aqm::CoDel(CoDelConfig::default()))]));
    run("one hop, FQ-CoDel, four", bench(4, timing, &[link(50).aqm(Aqm::FqCoDel(FqCoDelConfig::default()))]));
}
