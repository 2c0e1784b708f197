//! Transport parameters: read or refused by name, and unchanged when written and read again.

use std::num::NonZeroU8;

use plait_base::limits::MAX_CLIENT_HELLO_BYTES;
use plait_base::{ConnectionId, PathId, Random, ResetToken, Side};
use plait_crypto::tls::{Hello, read_client_hello};
use plait_wire::TransportParameters;
use plait_wire::Version;
use plait_wire::params::{
    ActiveMigration, AdditionalAddressesUse, AnnouncementParameters, Announcements, GreaseQuicBit, HandshakeCids,
    PreferredAddress, UnconfirmedPaths, VersionInfo,
};

use crate::ArbitraryInput;

/// The input: who sent them, then the parameters.
pub fn run(input: &[u8]) {
    let mut input = ArbitraryInput::new(input);
    let sender = if input.flag() { Side::Server } else { Side::Client };
    let rest = input.rest();
    read_ahead(rest);
    let Ok(params) = TransportParameters::decode(rest, sender) else { return };
    let bytes = params.encode(sender, &mut Random::from_u64(1));
    assert_eq!(TransportParameters::decode(&bytes, sender).as_ref(), Ok(&params));
    assert_eq!(params.check_early_data(&params), Ok(()));
    let none = ConnectionId::EMPTY;
    let seen = HandshakeCids {
        original_dcid: params.cids.original_dcid.unwrap_or(none),
        peer_scid: params.cids.initial_scid.unwrap_or(none),
        retry_scid: params.cids.retry_scid,
    };
    assert_eq!(params.check_cids(sender, &seen), Ok(()));
    let is_empty = params.cids.initial_scid.is_some_and(|cid| cid.is_empty());
    assert!(is_empty || params.check_uniflow_cids(Some(PathId(1))).is_ok());
}

/// The same bytes as the beginning of a client's handshake: what is found lies in them, and more bytes change nothing.
fn read_ahead(bytes: &[u8]) {
    let found = read_client_hello(bytes, MAX_CLIENT_HELLO_BYTES);
    let more = [bytes, &[0; 8]].concat();
    match found {
        Hello::Partial => {}
        Hello::Params(params) => {
            assert!(bytes.windows(params.len().max(1)).any(|w| w == params) || params.is_empty());
            assert_eq!(read_client_hello(&more, MAX_CLIENT_HELLO_BYTES), found);
        }
        Hello::Missing | Hello::Unfit => assert_eq!(read_client_hello(&more, MAX_CLIENT_HELLO_BYTES), found),
    }
}

/// A ClientHello with these parameters and an extension before them.
fn client_hello(params: &[u8]) -> Vec<u8> {
    let mut list = vec![0, 43, 0, 1, 7, 0, 0x39];
    list.extend_from_slice(&(params.len() as u16).to_be_bytes());
    list.extend_from_slice(params);
    let mut body = vec![3; 34];
    body.extend_from_slice(&[0, 0, 2, 0x13, 1, 1, 0]);
    body.extend_from_slice(&(list.len() as u16).to_be_bytes());
    body.extend_from_slice(&list);
    let mut message = vec![0, 1, 0];
    message.extend_from_slice(&(body.len() as u16).to_be_bytes());
    message.extend_from_slice(&body);
    message
}

/// The least, and everything, of both sides, and a ClientHello around them.
pub fn seeds() -> Vec<Vec<u8>> {
    let cid = ConnectionId::new(&[4; 8]);
    let mut params = TransportParameters::default();
    params.cids.initial_scid = cid;
    let mut full = params.clone();
    full.limits.max_data = 1 << 20;
    full.limits.max_stream_data_bidi_local = 1 << 18;
    full.limits.max_streams_bidi = 100;
    full.acks.min_delay_us = Some(1_000);
    full.max_idle_timeout_ms = 30_000;
    full.active_migration = ActiveMigration::Disabled;
    full.active_cid_limit = 4;
    full.max_datagram_frame_bytes = 1_200;
    full.fixed_bit = GreaseQuicBit::Supported;
    full.initial_max_path_id = Some(PathId(7));
    full.max_sending_uniflow_id = Some(PathId(2));
    full.announcements = AnnouncementParameters {
        own: Announcements { addresses: true, paths: true, uniflow_nonces: true },
        nat_traversal_addresses: NonZeroU8::new(8),
        additional_addresses: AdditionalAddressesUse::Supported,
    };
    full.version_info = Some(VersionInfo { chosen: Version::V1, available: vec![Version::V1, Version::V2] });
    full.unconfirmed_paths = UnconfirmedPaths::Welcome;
    let client = full.clone();
    params.cids.original_dcid = cid;
    full.cids.original_dcid = cid;
    full.cids.retry_scid = cid;
    full.stateless_reset_token = Some(ResetToken([1; 16]));
    full.preferred_address = cid.map(|cid| PreferredAddress {
        v4: Some("192.0.2.1:443".parse().expect("an address")),
        v6: None,
        cid,
        token: ResetToken([2; 16]),
    });
    let lists = [(1, Side::Server, params), (1, Side::Server, full), (0, Side::Client, client)];
    let seed = |(head, side, params): (u8, Side, TransportParameters)| {
        let mut bytes = vec![head];
        bytes.extend(params.encode(side, &mut Random::from_u64(2)));
        bytes
    };
    let mut seeds: Vec<_> = lists.into_iter().map(seed).collect();
    seeds.push(client_hello(&seeds[2][1..]));
    seeds
}
