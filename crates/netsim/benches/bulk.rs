//! CPU time that one bulk download costs an implementation inside the world: ours and its peers, one after the other.
//!
//! `cargo bench -p plait-netsim --bench bulk -- [MEGABYTES] [ROUNDS] [NAME]`

#[path = "../tests/network/peers/mod.rs"]
mod peers;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use peers::{Kind, Peer, Request, Setup, progress};
use plait_base::Instant;
use plait_netsim::{PathSpec, World};

fn main() {
    // Cargo adds `--bench`.
    let args: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let number = |nth: usize, default: u64| args.get(nth).and_then(|a| a.parse().ok()).unwrap_or(default);
    let (megabytes, rounds, only) = (number(0, 100), number(1, 3), args.get(2));
    for round in 0..rounds {
        for kind in Kind::ALL {
            if only.is_some_and(|o| !format!("{kind:?}").eq_ignore_ascii_case(o)) {
                continue;
            }
            let (took, virtual_time, datagrams) = run(kind, megabytes * 1_000_000, round);
            let ns = took.as_nanos() as f64 / datagrams as f64;
            println!(
                "{kind:?}: {:.3} s of CPU for {megabytes} MB, {datagrams} datagrams ({ns:.0} ns each), {virtual_time:?} virtual",
                took.as_secs_f64()
            );
        }
    }
}

#[allow(clippy::disallowed_methods)] // it measures
fn run(kind: Kind, bytes: u64, seed: u64) -> (Duration, Duration, u64) {
    let (a, b) = (IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), IpAddr::V4(Ipv4Addr::new(10, 9, 0, 1)));
    let mut world = World::new(seed);
    world.set_digest_depth(plait_netsim::Depth::Timing);
    let remote = SocketAddr::new(b, 4433);
    let setup = Setup { local: SocketAddr::new(a, 50_000), remote: Some(remote), paths: 1, seed };
    let client = world.add_host(kind.build(setup), &[a]);
    world.add_host(kind.build(Setup { local: remote, remote: None, paths: 1, seed: seed + 1 }), &[b]);
    world.net.connect(a, b, PathSpec::new(1000, 4).link());
    world.act::<Peer, _>(client, |peer, _| peer.0.request(Request::download(bytes)));
    let start = std::time::Instant::now();
    world.run_until_done(Instant::ZERO + Duration::from_secs(600), |w| {
        let p = progress(w, client);
        p.is_done() || p.failure.is_some()
    });
    let took = start.elapsed();
    let p = progress(&world, client);
    assert!(p.is_done(), "{p:?}");
    (took, world.now().since_origin(), world.totals().sent)
}
