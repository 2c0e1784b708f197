//! The client: its first packets.

use std::sync::Arc;

use bytes::Bytes;
use plait_base::{ConnectionId, Instant, Random, Side};
use plait_engine::config::{MemoryTokenStore, TokenStore};
use plait_engine::{ClientConfig, Endpoint, EndpointConfig, Version};
use plait_wire::TransportParameters;

use super::with;
use crate::puppet::{PUPPET, Rig, client_tls, tuple};

/// The first datagram of a client.
fn first_datagram(change: impl FnOnce(&mut ClientConfig)) -> Vec<u8> {
    let mut random = Random::from_u64(5);
    let config = EndpointConfig::from_random(&mut random);
    let mut endpoint = Endpoint::new(Arc::new(config), None, random.fork());
    let mut client = ClientConfig::new(client_tls());
    change(&mut client);
    let (_, mut conn) = endpoint.connect(Instant::ZERO, client, tuple(PUPPET), "localhost").unwrap();
    let mut datagram = Vec::new();
    conn.poll_transmit(Instant::ZERO, 1, &mut datagram).unwrap();
    datagram
}

#[test]
fn transport_config() {
    let rig = Rig::client(with(|t| _ = t.max_concurrent_uni_streams(9)));
    let params = rig.peer.tls.as_ref().unwrap().peer_params().unwrap();
    assert_eq!(TransportParameters::decode(params, Side::Client).unwrap().limits.max_streams_uni, 9);
}

#[test]
fn version() {
    for version in [Version::V1, Version::V2] {
        assert_eq!(first_datagram(|c| _ = c.version(version))[1..5], version.0.to_be_bytes());
    }
}

#[test]
fn token_store() {
    let store = Arc::new(MemoryTokenStore::default());
    store.insert("localhost", Bytes::from_static(b"a token of the server"));
    let has_token = |datagram: Vec<u8>| datagram.windows(21).any(|w| w == b"a token of the server");
    assert!(has_token(first_datagram(|c| _ = c.token_store(store.clone()))));
    assert!(!has_token(first_datagram(|c| _ = c.token_store(store))), "once");
}

#[test]
fn first_dcid() {
    let datagram = first_datagram(|c| _ = c.first_dcid(ConnectionId::new(&[0xd1; 10])));
    assert_eq!((datagram[5], &datagram[6..16]), (10, &[0xd1; 10][..]));
}
