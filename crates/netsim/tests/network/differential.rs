//! plait against other implementations and itself, in random worlds with random faults, byte for byte.
//!
//! PLAIT_SEED=n runs one seed, PLAIT_SEEDS=n so many; PLAIT_TRACE=1 prints what plait's ends observe.

use crate::peers::plait::loans;
use crate::trial::campaign::{hold, hold_some};

#[test]
fn plait_plait() {
    hold("plait_plait");
}

#[test]
fn plait_quinn() {
    hold("plait_quinn");
}

#[test]
fn quinn_plait() {
    hold("quinn_plait");
}

#[test]
fn plait_noq() {
    hold("plait_noq");
}

#[test]
fn noq_plait() {
    hold("noq_plait");
}

#[test]
fn plait_plait_paths() {
    hold("plait_plait_paths");
}

#[test]
fn plait_noq_paths() {
    hold("plait_noq_paths");
}

#[test]
fn noq_plait_paths() {
    hold("noq_plait_paths");
}

/// Seeds of each pairing of which an end lends its paths; PLAIT_SEEDS=1000 is the campaign.
const LENT_SEEDS: u64 = 60;

fn hold_lent(name: &str) {
    let before = loans();
    hold_some(name, LENT_SEEDS);
    assert!(loans() > before, "{name} lent nothing");
}

#[test]
fn lent_lent_paths() {
    hold_lent("lent_lent_paths");
}

#[test]
fn lent_noq_paths() {
    hold_lent("lent_noq_paths");
}

#[test]
fn noq_lent_paths() {
    hold_lent("noq_lent_paths");
}

/// Both probes of a time-out carry the ClientHello: one of them is enough to begin a connection.
#[test]
fn either_probe_of_a_client_begins_a_connection() {
    use std::net::{IpAddr, Ipv4Addr, SocketAddr};
    use std::time::Duration;

    use crate::peers::{Kind, Peer, Setup, progress};
    use plait_base::Instant;
    use plait_netsim::{Hop, PathSpec, Rule, RunEnd, Treat, When, World};

    let (a, b) = (IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), IpAddr::V4(Ipv4Addr::new(10, 9, 0, 1)));
    let mut world = World::new(1);
    let server = SocketAddr::new(b, 4433);
    let setup = |local, remote| Setup { local, remote, paths: 1, seed: 1 };
    let client = world.add_host(Kind::Plait.build(setup(SocketAddr::new(a, 50_000), Some(server))), &[a]);
    world.add_host(Kind::Plait.build(setup(server, None)), &[b]);
    let links = world.net.connect(a, b, PathSpec::new(10, 20).link());
    // The first flight and the first probe are lost; the second probe follows the first at once.
    let losing = world.net.add_middlebox(Rule::new(When { position: 0..2, ..When::default() }, Treat::Drop));
    world.net.route(a, b, &[Hop::Middlebox(losing), Hop::Link(links.forward)]);
    let end = world.run_until_done(Instant::ZERO + Duration::from_secs(2), |w| progress(w, client).connected);
    assert_eq!(end, RunEnd::Condition);
    let _ = world.host::<Peer>(client);
}
