//! First packets: what becomes a connection, and what costs nothing.

use super::*;
use crate::endpoint::parts::AddressProof;
use plait_wire::header::version_negotiation;

#[test]
fn a_genuine_initial_becomes_incoming_in_both_versions() {
    for version in Version::SUPPORTED {
        let mut bench = Bench::server();
        let initial = Craft { version, ..Craft::new(1) };
        let incoming = bench.incoming(tuple(1), &initial.datagram());
        assert_eq!((incoming.version, incoming.orig_dst_cid()), (version, initial.dcid));
        assert_eq!((incoming.remote_address(), incoming.proof), (tuple(1).remote, AddressProof::None));
        assert!(incoming.may_retry() && bench.endpoint.incoming() == 1 && bench.endpoint.connections() == 0);
    }
}

#[test]
fn malformed_first_packets_are_dropped_unseen() {
    // RFC 9000 5.2.2-2
    let good = Craft::new(1);
    let bad = [
        // RFC 9000 14.1-3: below 1200 bytes
        Craft { size: 1_199, ..good.clone() },
        // RFC 9000 7.2: a destination id below 8 bytes
        Craft { dcid: cid(1, 7), ..good.clone() },
        // RFC 9000 17.2.2: no CRYPTO frame
        Craft { frames: vec![1], ..good.clone() },
        // RFC 9000 12.4: STREAM is not allowed here, unknown types nowhere
        Craft { frames: vec![6, 0, 1, 1, 0x08, 0], ..good.clone() },
        Craft { frames: vec![6, 0, 1, 1, 0x21], ..good.clone() },
    ];
    let mut bench = Bench::server();
    for initial in bad {
        bench.nothing(tuple(1), &initial.datagram());
    }
    assert_eq!(bench.endpoint.incoming(), 0);
    drop(bench.incoming(tuple(1), &good.datagram()));
}

#[test]
fn every_changed_byte_of_the_header_or_payload_matters() {
    // RFC 9000 17.2-1
    let datagram = Craft::new(1).datagram();
    let mut bench = Bench::server();
    for i in (0..60).chain([700, 1_199]) {
        let mut changed = datagram.clone();
        changed[i] ^= 0x20;
        match bench.receive(tuple(1), &changed) {
            // The version, and with it everything after, is another's.
            Received::Reply(_) => assert!((1..5).contains(&i), "byte {i}"),
            Received::Nothing => {}
            other => panic!("byte {i}: {other:?}"),
        }
    }
    assert_eq!(bench.endpoint.incoming(), 0);
}

#[test]
fn a_flood_of_garbage_costs_neither_memory_nor_the_handshakes_of_others() {
    let mut bench = Bench::server();
    let mut random = Random::from_u64(5);
    let genuine = Craft::new(1).datagram();
    for i in 0..2_000u32 {
        let mut garbage = genuine.clone();
        random.fill(&mut garbage[6..14]);
        random.fill(&mut garbage[40..]);
        bench.nothing(tuple(i as u16), &garbage);
    }
    assert_eq!((bench.endpoint.incoming(), bench.endpoint.connections()), (0, 0));
    assert!(bench.endpoint.scratch.capacity() < 4_096);
    let incoming = bench.incoming(tuple(1), &genuine);
    assert_eq!(bench.admit(incoming).inputs.len(), 1);
}

#[test]
fn random_bytes_of_any_kind_leave_nothing_behind() {
    // RFC 9000 10.3-3
    let mut bench = Bench::server();
    let mut random = Random::from_u64(6);
    for _ in 0..20_000 {
        let mut data = vec![0; random.below(1_400) as usize];
        random.fill(&mut data);
        let received = bench.receive(tuple(random.next_u32() as u16), &data);
        assert!(matches!(received, Received::Nothing | Received::Reply(_)));
    }
    assert_eq!((bench.endpoint.incoming(), bench.endpoint.connections()), (0, 0));
}

#[test]
fn other_versions_are_told_ours() {
    // RFC 9000 17.2.1-5, 17.2.1-6
    // RFC 9000 6.1 and 17.2.1
    let mut bench = Bench::server();
    let mut datagram = vec![0xc0, 0x1a, 0x2a, 0x3a, 0x4a, 200];
    datagram.extend_from_slice(&[7; 200]);
    datagram.push(3);
    datagram.extend_from_slice(&[8; 3]);
    datagram.resize(1_200, 0);
    assert!(matches!(bench.receive(tuple(1), &datagram), Received::Reply(_)));
    let (header, _) = ProtectedHeader::parse(&bench.reply, 8, FixedBitRule::MustBeSet).unwrap();
    assert_eq!((header.dcid(&bench.reply), header.scid(&bench.reply)), (&[8; 3][..], &[7; 200][..]));
    // RFC 9000 5.2.2-1: too small to begin a connection
    bench.nothing(tuple(1), &datagram[..1_199]);
    // A client answers nobody.
    Bench::new(endpoint_config(), None).nothing(tuple(1), &datagram);
}

#[test]
fn a_version_that_is_switched_off_is_negotiated_too() {
    let mut config = endpoint_config();
    config.supported_versions(vec![Version::V2]);
    let mut bench = Bench::new(config, Some(server_config()));
    assert!(matches!(bench.receive(tuple(1), &Craft::new(1).datagram()), Received::Reply(_)));
    let (header, _) = ProtectedHeader::parse(&bench.reply, 8, FixedBitRule::MustBeSet).unwrap();
    let ProtectedHeader::VersionNegotiation { versions, .. } = header else { panic!("{header:?}") };
    let list: Vec<_> = version_negotiation::versions(&bench.reply[versions]).collect();
    assert!(list.contains(&Version::V2) && !list.contains(&Version::V1));
}

#[test]
fn version_negotiation_is_never_answered() {
    // RFC 9000 6.1: no loops
    let mut bench = Bench::server();
    let mut datagram = vec![0xc0, 0, 0, 0, 0, 8];
    datagram.extend_from_slice(&[7; 8]);
    datagram.push(0);
    datagram.resize(1_201 + 1, 0);
    bench.nothing(tuple(1), &datagram);
}

#[test]
fn version_negotiations_are_limited_in_rate() {
    let mut config = endpoint_config();
    config.max_resets_per_second(10);
    let mut bench = Bench::new(config, Some(server_config()));
    let mut datagram = vec![0xc0, 0x1a, 0x2a, 0x3a, 0x4a, 0, 0];
    datagram.resize(1_200, 0);
    let answered = (0..1_000).filter(|_| matches!(bench.receive(tuple(1), &datagram), Received::Reply(_))).count();
    assert_eq!(answered, 10);
    bench.now += std::time::Duration::from_millis(100);
    assert!(matches!(bench.receive(tuple(1), &datagram), Received::Reply(_)));
}

#[test]
fn the_fixed_bit_means_nothing_where_it_is_greased() {
    // RFC 9287 3
    let clear = |mut config: EndpointConfig, switch: bool| {
        config.grease_quic_bit(switch);
        let mut bench = Bench::new(config, Some(server_config()));
        let incoming = bench.incoming(tuple(1), &Craft::new(1).datagram());
        bench.admit(incoming);
        let mut later = Craft { number: 1, ..Craft::new(1) }.datagram();
        later[0] &= !0x40;
        matches!(bench.receive(tuple(1), &later), Received::Connection(..))
    };
    assert!(clear(endpoint_config(), true));
    assert!(!clear(endpoint_config(), false));
}
