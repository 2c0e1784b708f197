//! The server: address proofs, tokens, waiting connections, where its clients may go.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use plait_base::{ConnectionId, Random, Space};
use plait_crypto::{Token, TokenKey};
use plait_engine::config::{MigrationPolicy, RetryPolicy};
use plait_engine::{Received, ServerConfig, TransportConfig, Version};
use plait_wire::params::{ActiveMigration, VersionInfo};
use plait_wire::{Frame, PacketKind};

use super::announced_by;
use crate::puppet::{Packet, Rig, Setup, ms, tuple};

fn server(change: fn(&mut ServerConfig)) -> Setup {
    Setup { server_change: change, ..Setup::default() }
}

/// Source id and token of a Retry packet.
pub fn retry_parts(retry: &[u8]) -> (ConnectionId, Vec<u8>) {
    let scid_at = 7 + usize::from(retry[5]);
    let scid = ConnectionId::new(&retry[scid_at..scid_at + usize::from(retry[scid_at - 1])]).unwrap();
    (scid, retry[scid_at + scid.len()..retry.len() - 16].to_vec())
}

/// The Retry that a server asks for.
fn retry(rig: &mut Rig) -> Vec<u8> {
    rig.accepts = false;
    rig.say_handshake();
    rig.accepts = true;
    rig.replies.pop().unwrap()
}

fn hello(rig: &mut Rig) {
    let hello = rig.peer.crypto_frames(Space::Initial, 0, 1_000).concat();
    rig.send(Packet::new(PacketKind::Initial, hello));
}

/// The tokens of NEW_TOKEN frames.
fn tokens(rig: &Rig) -> Vec<Vec<u8>> {
    let token = |f: &Frame<'_>| if let Frame::NewToken(t) = f { Some(t.token.to_vec()) } else { None };
    rig.seen.iter().flat_map(|s| s.frames().iter().filter_map(token).collect::<Vec<_>>()).collect()
}

/// What the server makes of the first Initial of a client with another id and address.
fn first_of(rig: &mut Rig, client: u8, token: Vec<u8>) -> Received {
    let mut peer = Rig::server(Setup { seed: 100 + u64::from(client), ..Setup::default() }).peer;
    peer.habits.token = token;
    let mut datagram = Vec::new();
    let payload = peer.crypto_frames(Space::Initial, 0, 1_000).concat();
    peer.seal(&Packet::new(PacketKind::Initial, payload), &mut datagram);
    let at = tuple(&format!("192.0.2.{client}:4000"));
    rig.endpoint.receive(rig.now, at, None, BytesMut::from(&datagram[..]), &mut Vec::new())
}

#[test]
fn transport_config() {
    let params = announced_by(server(|s| {
        let mut transport = TransportConfig::default();
        transport.max_concurrent_bidi_streams(5);
        s.transport_config(Arc::new(transport));
    }));
    assert_eq!(params.limits.max_streams_bidi, 5);
}

#[test]
fn token_key() {
    let mut rig = Rig::server(server(|s| _ = s.token_key(TokenKey::new(&[9; 32]))));
    let (_, token) = retry_parts(&retry(&mut rig));
    assert!(matches!(TokenKey::new(&[9; 32]).open(&token), Some(Token::Retry { .. })));
    assert!(TokenKey::new(&[8; 32]).open(&token).is_none());
}

#[test]
fn retry_policy() {
    for (change, retries) in [
        ((|s| _ = s.retry_policy(RetryPolicy::Always)) as fn(&mut ServerConfig), 1),
        (|s| _ = s.retry_policy(RetryPolicy::Application), 0),
    ] {
        let mut rig = Rig::server(server(change));
        rig.say_handshake();
        assert_eq!((rig.replies.len(), rig.conn.is_none()), (retries, retries == 1));
    }
}

#[test]
fn retry_token_lifetime() {
    for (change, holds) in [
        ((|s| _ = s.retry_token_lifetime(Duration::from_secs(60))) as fn(&mut ServerConfig), true),
        (|s| _ = s.retry_token_lifetime(Duration::from_secs(5)), false),
    ] {
        let mut rig = Rig::server(server(change));
        let (scid, token) = retry_parts(&retry(&mut rig));
        rig.now += Duration::from_secs(30);
        rig.peer.after_retry(scid, token);
        hello(&mut rig);
        assert_eq!(rig.conn.is_some(), holds);
    }
}

#[test]
fn validation_token_lifetime() {
    for (change, holds) in [
        ((|s| _ = s.validation_token_lifetime(Duration::from_secs(600))) as fn(&mut ServerConfig), true),
        (|s| _ = s.validation_token_lifetime(Duration::from_secs(5)), false),
    ] {
        let mut first = Rig::established_server(server(change));
        first.pass(ms(1_000));
        // The same keys by the same seed; the address is proven only where the token still holds.
        let mut setup = server(change);
        setup.habits.token = tokens(&first).pop().unwrap();
        let mut rig = Rig::server(setup);
        rig.now += Duration::from_secs(100);
        hello(&mut rig);
        let flight: usize = rig.wire.iter().map(|(_, _, d)| d.len()).sum();
        rig.deaf = true;
        rig.pass(ms(20_000));
        let all: usize = rig.wire.iter().map(|(_, _, d)| d.len()).sum();
        assert!(flight > 0);
        assert_eq!(all > 3 * 1_200, holds, "{all}");
    }
}

#[test]
fn validation_tokens_sent() {
    for (change, count) in
        [((|s| _ = s.validation_tokens_sent(0)) as fn(&mut ServerConfig), 0), (|s| _ = s.validation_tokens_sent(5), 5)]
    {
        let mut rig = Rig::established_server(server(change));
        rig.pass(ms(1_000));
        let mut tokens = tokens(&rig);
        tokens.sort();
        tokens.dedup();
        assert_eq!(tokens.len(), count);
    }
}

#[test]
fn migration() {
    let refused = announced_by(Setup { migration: MigrationPolicy::Refused, ..Setup::default() });
    assert_eq!(refused.active_migration, ActiveMigration::Disabled);
    let allowed = announced_by(Setup { migration: MigrationPolicy::Allowed, ..Setup::default() });
    assert_eq!(allowed.active_migration, ActiveMigration::Allowed);
}

#[test]
fn preferred_address_v4() {
    let address = "198.51.100.9:443".parse().unwrap();
    let params = announced_by(server(|s| _ = s.preferred_address_v4(Some("198.51.100.9:443".parse().unwrap()))));
    assert_eq!(params.preferred_address.map(|p| (p.v4, p.v6)), Some((Some(address), None)));
}

#[test]
fn preferred_address_v6() {
    let address = "[2001:db8::9]:443".parse().unwrap();
    let params = announced_by(server(|s| _ = s.preferred_address_v6(Some("[2001:db8::9]:443".parse().unwrap()))));
    assert_eq!(params.preferred_address.map(|p| (p.v4, p.v6)), Some((None, Some(address))));
}

#[test]
fn max_incoming() {
    // From half of the places on, strangers prove their address first.
    for (change, expected) in
        [((|s| _ = s.max_incoming(4)) as fn(&mut ServerConfig), 2), (|s| _ = s.max_incoming(12), 6)]
    {
        let mut rig = Rig::server(server(change));
        let waiting: Vec<Received> =
            (1..9).map(|n| first_of(&mut rig, n, Vec::new())).filter(|r| matches!(r, Received::Incoming(_))).collect();
        assert_eq!(waiting.len(), expected);
    }
}

#[test]
fn incoming_buffer_size_total() {
    // The ClientHello comes in two datagrams, the second while the application thinks.
    for (change, heard) in [
        ((|s| _ = s.incoming_buffer_size_total(10_000)) as fn(&mut ServerConfig), true),
        (|s| _ = s.incoming_buffer_size_total(0), false),
    ] {
        let mut rig = Rig::server(server(change));
        let halves = rig.peer.crypto_frames(Space::Initial, 0, 150);
        let mut datagrams = Vec::new();
        for half in [halves[0].clone(), halves[1..].concat()] {
            let mut datagram = Vec::new();
            rig.peer.seal(&Packet::new(PacketKind::Initial, half), &mut datagram);
            datagrams.push(datagram);
        }
        let (now, at, mut reply) = (rig.now, rig.tuple, Vec::new());
        let first = rig.endpoint.receive(now, at, None, BytesMut::from(&datagrams[0][..]), &mut reply);
        let Received::Incoming(incoming) = first else { panic!("{first:?}") };
        rig.deliver(&datagrams[1]);
        let (handle, conn) = rig.endpoint.accept(incoming, now, &mut reply, None).unwrap();
        (rig.handle, rig.conn) = (Some(handle), Some(conn));
        rig.pump();
        assert_eq!(rig.peer.handshake.is_some(), heard);
    }
}

#[test]
fn preferred_versions() {
    for (change, moved) in
        [((|_| {}) as fn(&mut ServerConfig), false), (|s| _ = s.preferred_versions(vec![Version::V2]), true)]
    {
        let mut setup = server(change);
        setup.habits.moves_to = Some(Version::V2);
        let available = vec![Version::V1, Version::V2];
        setup.habits.params.version_info = Some(VersionInfo { chosen: Version::V1, available });
        let mut rig = Rig::server(setup);
        hello(&mut rig);
        let version = rig.wire[0].2[1..5].to_vec();
        assert_eq!(version == Version::V2.0.to_be_bytes(), moved);
    }
}

#[test]
fn incoming_lifetime() {
    type Change = fn(&mut ServerConfig);
    fn one_place(server: &mut ServerConfig, lifetime: Duration) {
        server.max_incoming(1).incoming_lifetime(lifetime).token_key(TokenKey::new(&[9; 32]));
    }
    // A client with a proven address, for whom the place that another holds too long is free.
    let token = |client: u8| {
        let addresses = vec![std::net::IpAddr::from([192, 0, 2, client])];
        let token = Token::Validated { addresses, issued: 0, version: 1 };
        TokenKey::new(&[9; 32]).seal(&token, &mut Random::from_u64(u64::from(client)))
    };
    let changes: [(Change, bool); 2] = [(|s| one_place(s, ms(100)), true), (|s| one_place(s, ms(5_000)), false)];
    for (change, another) in changes {
        let mut rig = Rig::server(server(change));
        let first = first_of(&mut rig, 1, token(1));
        assert!(matches!(first, Received::Incoming(_)));
        rig.now += ms(1_000);
        assert_eq!(matches!(first_of(&mut rig, 2, token(2)), Received::Incoming(_)), another);
    }
}
