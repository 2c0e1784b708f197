//! How many datagrams a second of processor time the network model alone carries.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::BytesMut;
use plait_base::Instant;
use plait_link::{Aqm, CoDelConfig, LinkConfig, Loss, QueueLimit, Service};
use plait_netsim::{Datagram, Depth, Hop, Host, World};

/// Sends 1,200 bytes at a fixed interval, again and again from the same memory.
struct Source {
    route: (SocketAddr, SocketAddr),
    next: Instant,
    interval: Duration,
    buffer: BytesMut,
}

impl Host for Source {
    fn on_datagram(&mut self, _now: Instant, _datagram: Datagram) {}

    fn on_timeout(&mut self, _now: Instant) {}

    fn deadline(&self) -> Option<Instant> {
        Some(self.next)
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut VecDeque<Datagram>) {
        while self.next <= now {
            self.next += self.interval;
            self.buffer.resize(1200, 7);
            let payload = self.buffer.split();
            self.buffer.reserve(1200);
            out.push_back(Datagram { src: self.route.0, dst: self.route.1, ecn: None, payload });
        }
    }
}

/// Takes everything.
#[derive(Default)]
struct Sink(u64);

impl Host for Sink {
    fn on_datagram(&mut self, _now: Instant, datagram: Datagram) {
        self.0 += datagram.payload.len() as u64;
    }

    fn on_timeout(&mut self, _now: Instant) {}

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn poll_transmit(&mut self, _now: Instant, _out: &mut VecDeque<Datagram>) {}
}

/// Processor time of this thread in seconds, where the system tells; a busy machine then does not count.
fn processor_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse::<f64>().ok().map(|nanos| nanos / 1e9)
}

#[allow(clippy::disallowed_methods)] // a measuring tool
fn run(name: &str, (hops, depth): (usize, Depth), config: &LinkConfig) {
    let mut world = World::new(1);
    world.set_digest_depth(depth);
    let (a, b): (IpAddr, IpAddr) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let source = Source {
        route: ((a, 1).into(), (b, 2).into()),
        next: Instant::ZERO,
        interval: Duration::from_micros(9),
        buffer: BytesMut::new(),
    };
    world.add_host(source, &[a]);
    let sink = world.add_host(Sink::default(), &[b]);
    let links: Vec<_> = (0..hops).map(|_| Hop::Link(world.net.add_link(config.clone()))).collect();
    world.net.route(a, b, &links);
    let (start, used) = (std::time::Instant::now(), processor_seconds());
    world.run_until(Instant::ZERO + Duration::from_secs(18));
    let wall = start.elapsed().as_secs_f64();
    let seconds = used.zip(processor_seconds()).map_or(wall, |(before, after)| after - before);
    let (totals, bytes) = (world.totals(), world.host::<Sink>(sink).map_or(0, |sink| sink.0));
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
    let config = LinkConfig::new(1_000_000_000, Duration::from_millis(10))
        .queue(QueueLimit::time(Duration::from_millis(5)))
        .loss(Loss::Bernoulli(0.01));
    run("one hop", (1, Depth::Timing), &config);
    run("one hop, payloads hashed", (1, Depth::Payload), &config);
    let long = config.clone().queue(QueueLimit::time(Duration::from_millis(50)));
    run("one hop, 60 ms in flight", (1, Depth::Payload), &long);
    run("three hops", (3, Depth::Timing), &config);
    run("one hop, live queue", (1, Depth::Timing), &config.clone().service(Service::Live));
    run("one hop, CoDel", (1, Depth::Timing), &long.aqm(Aqm::CoDel(CoDelConfig::default())));
}
