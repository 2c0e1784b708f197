//! What hosts tell each other of their addresses: which of ours leave the house, and which of theirs are asked.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use plait_engine::path::AddressScope;
use plait_wire::Frame;

use crate::puppet::{ENGINE, Rig, Setup, addr, ms};

/// Addresses that the engine told of, each once.
fn told(rig: &Rig) -> BTreeSet<SocketAddr> {
    let frames = rig.seen.iter().flat_map(|seen| seen.frames());
    let added =
        frames.filter_map(|f| if let Frame::AddAddress(f) = f { Some(SocketAddr::new(f.ip, f.port?)) } else { None });
    added.collect()
}

/// An end with addresses inside its own network, and one that all the world can reach.
fn with_addresses_inside(setup: Setup) -> Rig {
    let mut rig = Rig::established_client(setup);
    let (now, inside) =
        (rig.now, ["10.1.2.3:443", "192.168.1.1:443", "169.254.1.1:443", "[fd00::1]:443", "[fe80::1]:1"]);
    let own: Vec<SocketAddr> = [ENGINE].into_iter().chain(inside).chain(["198.51.100.9:443"]).map(addr).collect();
    rig.conn().set_local_addresses(now, &own);
    rig.pass(ms(100));
    rig
}

/// What both ends offer where hosts tell each other of addresses beside RFC 10069.
fn announcing() -> Setup {
    let mut setup = Setup::default();
    setup.transport.announce_addresses(true);
    setup.habits.params.announcements.own.addresses = true;
    setup
}

#[test]
fn private_addresses_are_not_told() {
    for setup in [Setup::multiflow(), announcing()] {
        let rig = with_addresses_inside(setup);
        assert_eq!(
            told(&rig),
            [addr("198.51.100.9:443")].into(),
            "the peer could do nothing with the others but learn of them"
        );
    }
    let mut setup = Setup::multiflow();
    setup.transport.address_scope(AddressScope::Any);
    assert_eq!(told(&with_addresses_inside(setup)).len(), 6, "unless it is in the same network");
}
