//! Transport parameters against RFC 9000 18.2 and the extensions: vectors, ranges, round trips.

use std::num::NonZeroU8;

use plait_base::{ConnectionId, PathId, Random, ResetToken, Side, Violation};
use proptest::prelude::*;

use super::*;
use crate::varint::{self, Reader};
use crate::version::Version;

/// The parameters of a list of (id, value) pairs.
fn blob(list: &[(u64, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    for (id, value) in list {
        varint::put(&mut out, *id);
        varint::put(&mut out, value.len() as u64);
        out.extend_from_slice(value);
    }
    out
}

fn integer(value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    varint::put(&mut out, value);
    out
}

/// What a server's parameters with this one added decode to.
fn with(sender: Side, id: u64, value: &[u8]) -> Result<TransportParameters, Violation> {
    let mut list: Vec<(u64, &[u8])> = vec![(ids::INITIAL_SCID, &[1, 2, 3])];
    if sender.is_server() && id != ids::ORIGINAL_DCID {
        list.push((ids::ORIGINAL_DCID, &[4]));
    }
    list.push((id, value));
    TransportParameters::decode(&blob(&list), sender)
}

fn preferred(cid_len: u8) -> Vec<u8> {
    let mut out = vec![192, 0, 2, 1, 0x11, 0x51];
    out.extend_from_slice(&[0; 18]);
    out.push(cid_len);
    out.resize(out.len() + usize::from(cid_len) + 16, 7);
    out
}

#[test]
fn initial_max_path_id_vector() {
    let mut params = TransportParameters { initial_max_path_id: Some(PathId(2)), ..Default::default() };
    params.cids.initial_scid = ConnectionId::new(&[1]);
    let bytes = params.encode(Side::Client, &mut Random::from_u64(1));
    assert!(bytes.windows(3).any(|w| w == [0x3e, 0x01, 0x02]));
    assert_eq!(with(Side::Server, 0x3e, &[2]).unwrap().initial_max_path_id, Some(PathId(2)));
    assert_eq!(with(Side::Server, 0x3e, &[0]).unwrap().initial_max_path_id, Some(PathId(0)));
}

#[test]
fn extensions_of_addresses_and_uniflows() {
    let mut params = TransportParameters { max_sending_uniflow_id: Some(PathId(2)), ..Default::default() };
    params.cids.initial_scid = ConnectionId::new(&[1]);
    params.announcements = AnnouncementParameters {
        own: Announcements { addresses: true, paths: true, uniflow_nonces: true },
        nat_traversal_addresses: NonZeroU8::new(200),
        additional_addresses: AdditionalAddressesUse::Supported,
    };
    let bytes = params.encode(Side::Client, &mut Random::from_u64(1));
    let has = |value: &[u8]| bytes.windows(value.len()).any(|w| w == value);
    assert!(has(&[0x40, 0x40, 0x01, 0x02]) && has(&[0xad, 0x50, 0x58, 0x01, 0x01, 0x0b]));
    // One byte, which as a varint would be longer
    assert!(has(&[0xc0, 0x00, 0x3d, 0x7f, 0x91, 0x12, 0x04, 0x01, 0x01, 200]));
    assert!(has(&[0xc0, 0x00, 0x00, 0x09, 0x25, 0xad, 0xda, 0x04, 0x00]));
    assert_eq!(TransportParameters::decode(&bytes, Side::Client), Ok(params));
    // Bits without a meaning are ignored.
    let own = |bits| with(Side::Server, 0x2d50_5801, &integer(bits)).unwrap().announcements.own;
    assert_eq!(own(0xf6), Announcements { paths: true, ..Announcements::default() });
    assert_eq!(own(0xf5), Announcements { addresses: true, ..Announcements::default() });
    assert_eq!(own(0xfc), Announcements { uniflow_nonces: true, ..Announcements::default() });
    assert_eq!(own(0), Announcements::default());
    assert_eq!(own(1).common(own(3)), own(1));
    assert_eq!(own(2).common(own(1)), own(0));
    assert_eq!((own(9).common(own(8)), own(8).common(own(3))), (own(8), own(0)));
    // Only a client can support ADDITIONAL_ADDRESSES.
    let from = |side| with(side, ids::ADDITIONAL_ADDRESSES, &[]).unwrap().announcements.additional_addresses;
    assert_eq!(from(Side::Client), AdditionalAddressesUse::Supported);
    assert_eq!(from(Side::Server), AdditionalAddressesUse::Unsupported);
    assert_eq!(with(Side::Client, ids::ADDITIONAL_ADDRESSES, &[0]), Err(Violation::ParameterMalformed));
}

#[test]
fn uniflows_lead_to_ends_with_connection_ids() {
    let params = |cid, most: Option<u32>| TransportParameters {
        cids: CidParameters { initial_scid: ConnectionId::new(cid), ..Default::default() },
        max_sending_uniflow_id: most.map(PathId),
        ..Default::default()
    };
    let refused = Err(Violation::MultiflowZeroLengthCid);
    assert_eq!(params(&[], Some(0)).check_uniflow_cids(Some(PathId(1))), refused);
    for (theirs, ours) in [
        (params(&[1], Some(0)), Some(1)),
        // Nothing but uniflow 0 leads to it, though it may send on more.
        (params(&[], Some(3)), Some(0)),
        // Not in use
        (params(&[], None), Some(1)),
        (params(&[], Some(3)), None),
    ] {
        assert_eq!(theirs.check_uniflow_cids(ours.map(PathId)), Ok(()));
    }
}

#[test]
fn absent_parameters_mean_their_defaults() {
    let params = TransportParameters::decode(&blob(&[(ids::INITIAL_SCID, &[])]), Side::Client).unwrap();
    let mut expected = TransportParameters::default();
    expected.cids.initial_scid = Some(ConnectionId::EMPTY);
    assert_eq!(params, expected);
    // RFC 9000 18.2
    assert_eq!((params.acks.delay_exponent, params.acks.max_delay_ms, params.active_cid_limit), (3, 25, 2));
    assert_eq!(params.max_udp_payload_bytes, 65_527);
}

#[test]
fn ranges_are_held() {
    // RFC 9000 4.6-1, 7.4-1, 18.2-5, 18.2-7; RFC 10069 2.1-2
    use Violation::{ParameterMalformed as Malformed, ParameterOutOfRange as Range};
    let bad: [(u64, Vec<u8>, Violation); 27] = [
        (ids::MAX_UDP_PAYLOAD_SIZE, integer(1199), Range),
        (ids::ACK_DELAY_EXPONENT, integer(21), Range),
        (ids::MAX_ACK_DELAY, integer(1 << 14), Range),
        (ids::ACTIVE_CID_LIMIT, integer(1), Range),
        (ids::INITIAL_MAX_STREAMS_BIDI, integer((1 << 60) + 1), Range),
        (ids::INITIAL_MAX_STREAMS_UNI, integer((1 << 60) + 1), Range),
        (ids::INITIAL_MAX_PATH_ID, integer(1 << 32), Range),
        (ids::MAX_SENDING_UNIFLOW_ID, integer(1 << 32), Range),
        (ids::NAT_TRAVERSAL, vec![0], Range),
        (ids::NAT_TRAVERSAL, vec![], Malformed),
        (ids::NAT_TRAVERSAL, vec![0x40, 1], Malformed),
        (ids::ANNOUNCEMENTS, vec![], Malformed),
        (ids::MIN_ACK_DELAY, integer(25_001), Range),
        (ids::PREFERRED_ADDRESS, preferred(0), Range),
        (ids::PREFERRED_ADDRESS, preferred(21), Range),
        (ids::PREFERRED_ADDRESS, preferred(4)[..40].to_vec(), Malformed),
        (ids::PREFERRED_ADDRESS, [preferred(4), vec![0]].concat(), Malformed),
        (ids::STATELESS_RESET_TOKEN, vec![0; 15], Malformed),
        (ids::STATELESS_RESET_TOKEN, vec![0; 17], Malformed),
        (ids::DISABLE_ACTIVE_MIGRATION, vec![0], Malformed),
        (ids::GREASE_QUIC_BIT, vec![0], Malformed),
        (ids::ORIGINAL_DCID, vec![0; 21], Malformed),
        (ids::RETRY_SCID, vec![0; 21], Malformed),
        (ids::INITIAL_MAX_DATA, vec![0, 0], Malformed),
        (ids::INITIAL_MAX_DATA, vec![0x40], Malformed),
        (ids::VERSION_INFORMATION, vec![0, 0, 0, 1, 0], Malformed),
        (ids::VERSION_INFORMATION, vec![0, 0, 0, 1, 0, 0, 0, 0], Malformed),
    ];
    for (id, value, violation) in bad {
        assert_eq!(with(Side::Server, id, &value), Err(violation), "{id:#x} {value:x?}");
    }
    let good = [
        (ids::MAX_UDP_PAYLOAD_SIZE, 1200),
        (ids::ACK_DELAY_EXPONENT, 20),
        (ids::MAX_ACK_DELAY, (1 << 14) - 1),
        (ids::ACTIVE_CID_LIMIT, 2),
        (ids::INITIAL_MAX_STREAMS_BIDI, 1 << 60),
        (ids::INITIAL_MAX_PATH_ID, (1 << 32) - 1),
        (ids::MAX_SENDING_UNIFLOW_ID, (1 << 32) - 1),
        (ids::NAT_TRAVERSAL, 1),
        (ids::MIN_ACK_DELAY, 25_000),
    ];
    for (id, value) in good {
        assert!(with(Side::Server, id, &integer(value)).is_ok(), "{id:#x} {value}");
    }
}

#[test]
fn servers_parameters_from_a_client() {
    // RFC 9000 18.2-9
    let token = [0; 16];
    for (id, value) in [
        (ids::ORIGINAL_DCID, &[1][..]),
        (ids::RETRY_SCID, &[1]),
        (ids::STATELESS_RESET_TOKEN, &token),
        (ids::PREFERRED_ADDRESS, &preferred(4)),
    ] {
        assert_eq!(with(Side::Client, id, value), Err(Violation::ParameterServerOnly));
        assert!(with(Side::Server, id, value).is_ok());
    }
}

#[test]
fn repeated_missing_and_cut_parameters() {
    // RFC 9000 7.4.2; RFC 9001 8.2-1
    let decode = |list: &[(u64, &[u8])], sender| TransportParameters::decode(&blob(list), sender);
    let scid: (u64, &[u8]) = (ids::INITIAL_SCID, &[1]);
    // RFC 9000 7.4: twice, be it known or not
    assert_eq!(decode(&[scid, scid], Side::Client), Err(Violation::ParameterRepeated));
    assert_eq!(decode(&[(27, &[]), scid, (27, &[])], Side::Client), Err(Violation::ParameterRepeated));
    assert!(decode(&[(27, &[9]), scid, (58, &[])], Side::Client).is_ok());
    // RFC 9000 7.3-3
    assert_eq!(decode(&[], Side::Client), Err(Violation::ParameterMissing));
    assert_eq!(decode(&[scid], Side::Server), Err(Violation::ParameterMissing));
    // RFC 10069 2.1-4: needs connection ids
    let empty_scid: (u64, &[u8]) = (ids::INITIAL_SCID, &[]);
    assert_eq!(decode(&[empty_scid, (0x3e, &[1])], Side::Client), Err(Violation::MultipathZeroLengthCid));
    // RFC 9000 18.2-5
    let address = preferred(4);
    let list = [empty_scid, (ids::ORIGINAL_DCID, &[1][..]), (ids::PREFERRED_ADDRESS, &address)];
    assert_eq!(decode(&list, Side::Server), Err(Violation::ParameterOutOfRange));
    let whole = blob(&[scid]);
    for cut in 1..whole.len() {
        assert_eq!(TransportParameters::decode(&whole[..cut], Side::Client), Err(Violation::ParameterMalformed));
    }
}

#[test]
fn version_information() {
    let value = [0, 0, 0, 1, 0x6b, 0x33, 0x43, 0xcf, 0, 0, 0, 1];
    let expected = VersionInfo { chosen: Version::V1, available: vec![Version::V2, Version::V1] };
    assert_eq!(with(Side::Client, 0x11, &value).unwrap().version_info, Some(expected));
    // RFC 9368 4: a client's choice is among what it has; a server's need not be.
    assert_eq!(with(Side::Client, 0x11, &value[..8]), Err(Violation::ParameterMalformed));
    assert!(with(Side::Server, 0x11, &value[..8]).is_ok());
    assert_eq!(with(Side::Server, 0x11, &[]), Err(Violation::ParameterMalformed));
}

#[test]
fn preferred_address_with_one_family() {
    let address = with(Side::Server, ids::PREFERRED_ADDRESS, &preferred(4)).unwrap().preferred_address.unwrap();
    assert_eq!((address.v4, address.v6), (Some("192.0.2.1:4433".parse().unwrap()), None));
    assert_eq!((&*address.cid, address.token), (&[7; 4][..], ResetToken([7; 16])));
}

#[test]
fn ids_must_match_the_packets() {
    // RFC 9000 7.3-2, 7.3-4
    let id = |byte| ConnectionId::new(&[byte]).unwrap();
    let cids = CidParameters { original_dcid: Some(id(1)), initial_scid: Some(id(2)), retry_scid: None };
    let params = TransportParameters { cids, ..Default::default() };
    let seen = HandshakeCids { original_dcid: id(1), peer_scid: id(2), retry_scid: None };
    assert_eq!(params.check_cids(Side::Server, &seen), Ok(()));
    for wrong in [
        HandshakeCids { original_dcid: id(9), ..seen },
        HandshakeCids { peer_scid: id(9), ..seen },
        HandshakeCids { retry_scid: Some(id(9)), ..seen },
    ] {
        assert_eq!(params.check_cids(Side::Server, &wrong), Err(Violation::CidMismatch));
    }
    // A client declares only its own source id.
    assert_eq!(params.check_cids(Side::Client, &HandshakeCids { original_dcid: id(9), ..seen }), Ok(()));
}

#[test]
fn early_data_limits_never_shrink() {
    // RFC 9000 7.4.1-6; RFC 9221 3-6, 3-7
    let mut remembered = TransportParameters::default();
    remembered.limits.max_data = 10;
    let mut fresh = remembered.clone();
    fresh.max_idle_timeout_ms = 5;
    assert_eq!(fresh.check_early_data(&remembered), Ok(()));
    fresh.limits.max_data = 9;
    assert_eq!(fresh.check_early_data(&remembered), Err(Violation::ParametersReducedForEarlyData));
}

#[test]
fn order_is_random_and_one_parameter_means_nothing() {
    let mut params = TransportParameters { max_idle_timeout_ms: 1, max_datagram_frame_bytes: 9, ..Default::default() };
    params.cids.initial_scid = ConnectionId::new(&[1]);
    let mut random = Random::from_u64(3);
    let mut orders = std::collections::BTreeSet::new();
    for _ in 0..50 {
        let bytes = params.encode(Side::Client, &mut random);
        let mut r = Reader::new(&bytes);
        let mut order = Vec::new();
        while let Ok(id) = r.varint() {
            r.prefixed().unwrap();
            // RFC 9000 18.1: 31 * N + 27 is reserved
            order.push(if id % 31 == 27 { u64::MAX } else { id });
        }
        assert_eq!(order.iter().filter(|&&id| id == u64::MAX).count(), 1);
        orders.insert(order);
    }
    assert!(orders.len() > 10);
}

fn cids() -> impl Strategy<Value = ConnectionId> {
    prop::collection::vec(any::<u8>(), 1..=20).prop_map(|bytes| ConnectionId::new(&bytes).unwrap())
}

prop_compose! {
    fn limits()(
        n in prop::array::uniform4(0u64..1 << 62),
        streams in prop::array::uniform2(0u64..=1 << 60),
    ) -> InitialLimits {
        InitialLimits {
            max_data: n[0],
            max_stream_data_bidi_local: n[1],
            max_stream_data_bidi_remote: n[2],
            max_stream_data_uni: n[3],
            max_streams_bidi: streams[0],
            max_streams_uni: streams[1],
        }
    }
}

prop_compose! {
    fn preferred_addresses()(
        v4: u32, v6: u128, port in 1u16.., cid in cids(), token: [u8; 16], which in 1..4,
    ) -> PreferredAddress {
        PreferredAddress {
            v4: (which & 1 != 0).then(|| std::net::SocketAddrV4::new(v4.into(), port)),
            v6: (which & 2 != 0).then(|| std::net::SocketAddrV6::new(v6.into(), port, 0, 0)),
            cid,
            token: ResetToken(token),
        }
    }
}

prop_compose! {
    fn announcements()([addresses, paths, uniflow_nonces, additional] in any::<[bool; 4]>(), nat in any::<u8>()) -> AnnouncementParameters {
        AnnouncementParameters {
            own: Announcements { addresses, paths, uniflow_nonces },
            nat_traversal_addresses: NonZeroU8::new(nat),
            additional_addresses: if additional {
                AdditionalAddressesUse::Supported
            } else {
                AdditionalAddressesUse::Unsupported
            },
        }
    }
}

prop_compose! {
    fn servers()(
        limits in limits(),
        (original, scid, retry) in (cids(), cids(), prop::option::of(cids())),
        (exponent, max_delay_ms, min_share) in (0u8..=20, 0u64..1 << 14, prop::option::of(0u64..=1000)),
        (idle, payload, active, frame) in (0u64..1 << 62, 1200u64..1 << 62, 2u64..1 << 62, 0u64..1 << 62),
        token in prop::option::of(any::<[u8; 16]>()),
        preferred_address in prop::option::of(preferred_addresses()),
        (still, grease, unconfirmed, path) in (any::<bool>(), any::<bool>(), any::<bool>(), prop::option::of(any::<u32>())),
        versions in prop::option::of(prop::collection::vec(1u32.., 1..5)),
        (uniflow, announcements) in (prop::option::of(any::<u32>()), announcements()),
    ) -> TransportParameters {
        TransportParameters {
            cids: CidParameters { original_dcid: Some(original), initial_scid: Some(scid), retry_scid: retry },
            limits,
            acks: AckParameters {
                delay_exponent: exponent,
                max_delay_ms,
                min_delay_us: min_share.map(|share| share * max_delay_ms),
            },
            max_idle_timeout_ms: idle,
            stateless_reset_token: token.map(ResetToken),
            max_udp_payload_bytes: payload,
            active_migration: if still { ActiveMigration::Disabled } else { ActiveMigration::Allowed },
            preferred_address,
            active_cid_limit: active,
            max_datagram_frame_bytes: frame,
            fixed_bit: if grease { GreaseQuicBit::Supported } else { GreaseQuicBit::Unsupported },
            initial_max_path_id: path.map(PathId),
            max_sending_uniflow_id: uniflow.map(PathId),
            announcements,
            unconfirmed_paths: if unconfirmed { UnconfirmedPaths::Welcome } else { UnconfirmedPaths::Unknown },
            version_info: versions.map(|v| VersionInfo {
                chosen: Version(v[0]),
                available: v.into_iter().map(Version).collect(),
            }),
        }
    }
}

proptest! {
    #[test]
    fn any_parameters_round_trip(params in servers(), seed: u64) {
        // RFC 9000 7.4-2, 18.2-1, 18.2-8
        let mut random = Random::from_u64(seed);
        let bytes = params.encode(Side::Server, &mut random);
        let mut expected = params.clone();
        expected.announcements.additional_addresses = AdditionalAddressesUse::Unsupported;
        prop_assert_eq!(TransportParameters::decode(&bytes, Side::Server), Ok(expected));
        for cut in 0..bytes.len() {
            let _ = TransportParameters::decode(&bytes[..cut], Side::Server);
        }
        // A client leaves out what only a server may send.
        let bytes = params.encode(Side::Client, &mut random);
        let mut expected = params;
        expected.cids = CidParameters { original_dcid: None, retry_scid: None, ..expected.cids };
        (expected.stateless_reset_token, expected.preferred_address) = (None, None);
        prop_assert_eq!(TransportParameters::decode(&bytes, Side::Client), Ok(expected));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..120), server: bool) {
        let _ = TransportParameters::decode(&bytes, if server { Side::Server } else { Side::Client });
    }
}
