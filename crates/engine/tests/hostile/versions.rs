//! Compatible version negotiation (RFC 9368, RFC 9369 4) against peers that move, lie about versions, or forge packets.

use plait_base::{CloseCode, Space, TransportError};
use plait_engine::{ConnectionError, Event};
use plait_wire::frame::AckForm;
use plait_wire::params::VersionInfo;
use plait_wire::{PacketKind, TransportParameters, Version};

use crate::puppet::peer::version_of;
use crate::puppet::{Packet, Rig, Setup, ms, params, tuple};

const BOTH: [Version; 2] = [Version::V1, Version::V2];

fn with_versions(chosen: Version, available: &[Version]) -> TransportParameters {
    TransportParameters { version_info: Some(VersionInfo { chosen, available: available.to_vec() }), ..params() }
}

/// A server that moves our client to version 2 and says this about versions.
fn mover(info: Option<(Version, &[Version])>) -> Setup {
    let mut setup = Setup::default();
    setup.habits.moves_to = Some(Version::V2);
    setup.habits.params.version_info =
        info.map(|(chosen, available)| VersionInfo { chosen, available: available.to_vec() });
    setup
}

/// A client that follows to version 2 and says this about versions, to be met by our server that prefers version 2.
fn follower(chosen: Version, available: &[Version]) -> Setup {
    let mut setup = Setup::default();
    setup.habits.moves_to = Some(Version::V2);
    setup.habits.params = with_versions(chosen, available);
    setup.server_change = |server| {
        server.preferred_versions(vec![Version::V2, Version::V1]);
    };
    setup
}

fn talk(rig: &mut Rig) {
    (0..4).for_each(|_| {
        rig.say_handshake();
        rig.pass(ms(5));
    });
}

/// Versions of the long headers at the start of the engine's datagrams.
fn versions_on_wire(rig: &Rig) -> Vec<Version> {
    rig.wire.iter().filter(|(_, _, d)| d[0] & 0x80 != 0).map(|(_, _, d)| version_of(d)).collect()
}

fn version(rig: &mut Rig) -> Version {
    rig.conn().session().summary().version
}

/// The transport error of our own that ended the connection.
fn lost(rig: &Rig) -> Option<CloseCode> {
    rig.events.iter().find_map(|event| match event {
        Event::ConnectionLost(ConnectionError::TransportError(TransportError { code, .. })) => Some(*code),
        _ => None,
    })
}

#[test]
fn a_client_follows_its_server() {
    let mut rig = Rig::established_client(mover(Some((Version::V2, &BOTH))));
    assert_eq!(version(&mut rig), Version::V2);
    let seen = versions_on_wire(&rig);
    assert_eq!(seen[0], Version::V1, "the first flight");
    assert!(seen[1..].iter().all(|v| *v == Version::V2), "{seen:?}");
}

#[test]
fn a_server_moves_its_client() {
    let mut rig = Rig::established_server(follower(Version::V1, &BOTH));
    assert_eq!(version(&mut rig), Version::V2);
    assert!(versions_on_wire(&rig).iter().all(|v| *v == Version::V2));
}

#[test]
fn a_server_that_moves_must_say_so() {
    // RFC 9369 4.1: the chosen version is that of the Handshake packets
    for info in [None, Some((Version::V1, &BOTH[..])), Some((Version(0xff00_001d), &BOTH[..]))] {
        let mut rig = Rig::client(mover(info));
        talk(&mut rig);
        assert_eq!(lost(&rig), Some(CloseCode::VERSION_NEGOTIATION_ERROR), "{info:?}");
        assert_eq!(rig.close_seen(), Some(CloseCode::VERSION_NEGOTIATION_ERROR), "{info:?}");
    }
}

#[test]
fn a_server_that_stays_must_not_say_that_it_moved() {
    let mut setup = mover(Some((Version::V2, &BOTH)));
    setup.habits.moves_to = None;
    let mut rig = Rig::client(setup);
    talk(&mut rig);
    assert_eq!(lost(&rig), Some(CloseCode::VERSION_NEGOTIATION_ERROR));
}

#[test]
fn a_client_that_offers_one_version_stays() {
    let mut setup = mover(Some((Version::V2, &BOTH)));
    setup.endpoint_change = |endpoint| {
        endpoint.supported_versions(vec![Version::V1]);
    };
    let mut rig = Rig::client(setup);
    talk(&mut rig);
    assert!(rig.conn().is_handshaking(), "nothing of version 2 was read");
    assert_eq!(version(&mut rig), Version::V1);
    assert!(rig.seen.iter().all(|s| !s.has(|f| matches!(f, plait_wire::Frame::Ack(_)))), "nor acknowledged");
}

#[test]
fn a_forged_packet_moves_nobody() {
    let mut rig = Rig::client(Setup::default());
    let genuine = rig.peer.crypto_frames(Space::Initial, 0, 1000).remove(0);
    for claimed in [Version::V2, Version(0x1a2a_3a4a), Version(0xff00_001d), Version(2)] {
        let mut datagram = Vec::new();
        // Sealed with the keys of version 1 under another version's name: it opens nowhere.
        rig.peer
            .seal(&Packet { version: Some(claimed), ..Packet::new(PacketKind::Initial, &genuine[..]) }, &mut datagram);
        rig.deliver(&datagram);
        assert_eq!(version(&mut rig), Version::V1);
    }
    rig.shake_hands();
    assert_eq!(version(&mut rig), Version::V1);
}

#[test]
fn after_the_move_only_one_version_counts() {
    // RFC 9000 5.2.1
    // RFC 9369 4.1: packets of any other version are dropped
    let mut rig = Rig::client(mover(Some((Version::V2, &BOTH))));
    rig.say_handshake();
    assert_eq!(version(&mut rig), Version::V2);
    let close = [0x1c, 0x40, 0x99, 0, 0];
    for kind in [PacketKind::Initial, PacketKind::Handshake] {
        rig.send(Packet { version: Some(Version::V1), ..Packet::new(kind, close) });
        assert!(rig.is_open(), "{kind:?}");
    }
    let mut rig = Rig::established_client(mover(Some((Version::V2, &BOTH))));
    rig.send(Packet { version: Some(Version::V1), ..Packet::new(PacketKind::Handshake, close) });
    assert!(rig.is_open());
}

#[test]
fn handshake_packets_of_the_new_version_may_come_first() {
    let mut rig = Rig::client(mover(Some((Version::V2, &BOTH))));
    let mut late = Vec::new();
    for frame in rig.peer.crypto_frames(Space::Initial, 0, 1000) {
        rig.peer.seal(&Packet::new(PacketKind::Initial, frame), &mut late);
    }
    for frame in rig.peer.crypto_frames(Space::Handshake, 0, 1000) {
        rig.send(Packet::new(PacketKind::Handshake, frame));
    }
    assert_eq!(version(&mut rig), Version::V1);
    rig.deliver(&late);
    assert_eq!(version(&mut rig), Version::V2);
    assert!(!rig.conn().is_handshaking(), "the packets that waited were read");
}

#[test]
fn a_client_that_contradicts_itself_is_refused() {
    // RFC 9368 4: the chosen version is that of the first flight
    let mut rig = Rig::server(follower(Version::V2, &BOTH));
    talk(&mut rig);
    assert_eq!(lost(&rig), Some(CloseCode::VERSION_NEGOTIATION_ERROR));
    assert_eq!(rig.close_seen(), Some(CloseCode::VERSION_NEGOTIATION_ERROR));
    assert!(versions_on_wire(&rig).iter().all(|v| *v == Version::V1), "in the version that it spoke");
}

#[test]
fn a_malformed_list_is_a_parameter_error() {
    // RFC 9368 4: the chosen version is among those available, none is 0, and the length fits
    for value in [&[0, 0, 0, 1][..], &[0, 0, 0, 1, 0, 0, 0], &[0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0]] {
        let mut setup = follower(Version::V1, &BOTH);
        setup.habits.params.version_info = None;
        setup.habits.extra_params = [&[0x11, value.len() as u8], value].concat();
        let mut rig = Rig::server(setup);
        talk(&mut rig);
        assert_eq!(lost(&rig), Some(CloseCode::TRANSPORT_PARAMETER_ERROR), "{value:?}");
    }
}

#[test]
fn a_client_that_knows_no_other_version_stays() {
    let mut rig = Rig::established_server(follower(Version::V1, &[Version::V1]));
    assert_eq!(version(&mut rig), Version::V1);
    let mut setup = follower(Version::V1, &BOTH);
    setup.habits.params.version_info = None;
    let mut rig = Rig::established_server(setup);
    assert_eq!(version(&mut rig), Version::V1);
    let mut rig = Rig::established_server(follower(Version::V1, &[Version(0x1a2a_3a4a), Version::V1, Version(2)]));
    assert_eq!(version(&mut rig), Version::V1, "reserved and unknown versions are no choice");
}

#[test]
fn preferences_are_the_servers() {
    let mut setup = follower(Version::V1, &BOTH);
    setup.server_change = |_| {};
    let mut rig = Rig::established_server(setup);
    assert_eq!(version(&mut rig), Version::V1, "by default nobody is moved");
    let mut setup = follower(Version::V1, &BOTH);
    setup.endpoint_change = |endpoint| {
        endpoint.supported_versions(vec![Version::V1]);
    };
    let mut rig = Rig::established_server(setup);
    assert_eq!(version(&mut rig), Version::V1, "a version that the endpoint does not speak");
    let mut setup = follower(Version::V1, &[Version::V2, Version::V1]);
    setup.server_change = |server| {
        server.preferred_versions(vec![Version::V1, Version::V2]);
    };
    let mut rig = Rig::established_server(setup);
    assert_eq!(version(&mut rig), Version::V1, "whatever the client likes best");
}

#[test]
fn a_hello_in_small_pieces_is_heard_out() {
    let mut rig = Rig::server(follower(Version::V1, &BOTH));
    let frames = rig.peer.crypto_frames(Space::Initial, 0, 40);
    assert!(frames.len() > 4);
    let last = frames.len() - 1;
    for (i, frame) in frames.into_iter().enumerate() {
        rig.send(Packet { version: Some(Version::V1), ..Packet::new(PacketKind::Initial, frame) });
        let expected = if i < last { Version::V1 } else { Version::V2 };
        assert_eq!(version(&mut rig), expected, "after piece {i}");
    }
    assert_eq!(versions_on_wire(&rig).first(), Some(&Version::V1), "acks before the choice");
    assert_eq!(versions_on_wire(&rig).last(), Some(&Version::V2));
    assert!(rig.peer.handshake.is_some(), "the puppet read the ServerHello");
}

#[test]
fn old_initials_count_until_a_handshake_packet_comes() {
    // RFC 9369 4.1
    let mut rig = Rig::server(follower(Version::V1, &BOTH));
    for frame in rig.peer.crypto_frames(Space::Initial, 0, 1000) {
        rig.send(Packet { version: Some(Version::V1), ..Packet::new(PacketKind::Initial, frame) });
    }
    assert_eq!(version(&mut rig), Version::V2);
    let acks = |rig: &Rig| rig.seen.iter().filter(|s| s.kind == PacketKind::Initial).count();
    let before = acks(&rig);
    for version in BOTH {
        rig.send(Packet { version: Some(version), ..Packet::new(PacketKind::Initial, [0x01]) });
    }
    assert_eq!(acks(&rig), before + 2, "a PING of either version is acknowledged");
    let ack = rig.peer.ack(Space::Handshake, 0, AckForm::Plain).unwrap();
    rig.send(Packet { version: Some(Version::V1), ..Packet::new(PacketKind::Handshake, ack.clone()) });
    rig.send(Packet { version: Some(Version::V1), ..Packet::new(PacketKind::Initial, [0x01]) });
    assert_eq!(acks(&rig), before + 3, "a Handshake packet of the old version is none");
    rig.send(Packet::new(PacketKind::Handshake, ack));
    for version in BOTH {
        rig.send(Packet { version: Some(version), ..Packet::new(PacketKind::Initial, [0x01]) });
    }
    assert_eq!(acks(&rig), before + 3, "Initial keys are gone");
}

#[test]
fn a_hello_without_end_is_not_kept() {
    // Longer than anything we read ahead: TLS gets it piece by piece, in the client's version.
    let mut rig = Rig::server(follower(Version::V1, &BOTH));
    let first = [&[0x06, 0x00, 0x44, 0x00, 0x01, 0x00, 0xff, 0xff][..], &[3; 1020]].concat();
    rig.send(Packet { version: Some(Version::V1), ..Packet::new(PacketKind::Initial, first) });
    assert_eq!(version(&mut rig), Version::V1);
    assert!(rig.conn().is_handshaking());
    rig.send_all(
        tuple("192.0.2.1:4000"),
        &[Packet { version: Some(Version::V1), ..Packet::new(PacketKind::Initial, [0x1c, 0x00, 0x00, 0x00]) }],
    );
    assert!(!rig.is_open());
}
