//! What hosts tell each other of their addresses: which of ours leave the house, and which of theirs are asked.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use plait_base::Dir;
use plait_engine::path::{AddressScope, policy};
use plait_wire::Frame;
use plait_wire::frame::{AddAddress, AddressForm, InterfaceType, PathStatus};

use crate::multiflow::seen_at;
use crate::puppet::{ENGINE, Rig, Setup, addr, ms};
use crate::violations::encoded;

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

/// RFC 9000 9.1.
fn is_probing(frame: &Frame<'_>) -> bool {
    matches!(frame, Frame::PathChallenge(_) | Frame::PathResponse(_) | Frame::NewCid(_) | Frame::Padding(_))
}

/// ADD_ADDRESS of plait's own extension.
fn add_private(id: u64, sequence: u64, address: &str) -> Vec<u8> {
    let (ip, port) = (addr(address).ip(), Some(addr(address).port()));
    let (form, interface, status) = (AddressForm::Private, InterfaceType::Fixed, PathStatus::Available);
    encoded(&AddAddress { form, id, sequence, ip, port, interface, status, metered: false })
}

#[test]
fn data_waits_until_an_address_that_the_server_names_answers() {
    let mut setup = announcing();
    setup.transport.path_policy(policy::by_name("fullmesh").unwrap());
    let mut rig = Rig::established_client(setup);
    let id = rig.conn().streams().open(Dir::Uni).unwrap();
    rig.conn().send_stream(id).write(&[7; 100_000]).unwrap();
    rig.frames(add_private(1, 0, "203.0.113.5:443"));
    rig.pass(ms(3_000));
    let there: Vec<_> = seen_at(&rig, "203.0.113.5:443").collect();
    assert_eq!(there.len(), 2, "a challenge, and the same once more after a probe time-out");
    for seen in there {
        // RFC 9000 9.1, 21.5.3
        assert!(seen.frames().iter().all(is_probing), "{:?}", seen.frames());
    }
}
