//! Datagrams of connections that exist, existed, or never did.

use super::*;
use crate::config::{ClientConfig, Switch};
use crate::endpoint::parts::{ConnectionParts, Role};
use crate::io::InputKind;
use plait_base::ResetToken;
use plait_wire::header::stateless_reset;

fn client(bench: &mut Bench, port: u16) -> Result<(ConnectionHandle, ConnectionParts), ConnectError> {
    bench.endpoint.prepare(ClientConfig::new(client_tls()), tuple(port), "localhost")
}

#[test]
fn an_id_leads_to_its_path() {
    // RFC 9000 5.1.1-2; RFC 10069 3.1-2
    let mut bench = Bench::server();
    let incoming = bench.incoming(tuple(1), &Craft::new(1).datagram());
    let handle = bench.admit(incoming).handle;
    let third = cid(30, 8);
    bench.endpoint.on_connection_event(handle, EndpointEvent::Register { cid: third, path: PathId(3) });
    let (to, input) = bench.deliver(tuple(77), &short(&third, 40));
    assert_eq!((to, input.path, input.tuple, input.size()), (handle, PathId(3), tuple(77), 40));
    bench.endpoint.on_connection_event(handle, EndpointEvent::Retire { cid: third });
    assert!(matches!(bench.receive(tuple(77), &short(&third, 40)), Received::Reply(_)));
}

#[test]
fn a_train_is_cut_where_the_id_changes() {
    let mut bench = Bench::server();
    let incoming = bench.incoming(tuple(1), &Craft::new(1).datagram());
    let handle = bench.admit(incoming).handle;
    let ids = [cid(30, 8), cid(31, 8)];
    for (cid, path) in ids.into_iter().zip([PathId(3), PathId(4)]) {
        bench.endpoint.on_connection_event(handle, EndpointEvent::Register { cid, path });
    }
    let [stranger, empty_id] = [short(&cid(9, 8), 60), vec![0x40; 5]];
    let long = [&[0xc0, 0, 0, 0, 1, 4, 1, 2, 3, 4, 0, 0, 0][..], &[7; 47]].concat();
    let [third, fourth] = ids.map(|cid| short(&cid, 60));
    let last = short(&ids[0], 33);
    let parts = [&third, &third, &fourth, &stranger, &stranger, &long, &fourth, &third, &last];
    let mut train = BytesMut::from(&parts.map(Vec::as_slice).concat()[..]);
    let mut seen = Vec::new();
    while !train.is_empty() {
        let before = train.len();
        let received = bench.endpoint.receive_front(bench.now, tuple(77), None, &mut train, 60, &mut bench.reply);
        let taken = before - train.len();
        assert!(taken > 0);
        seen.push(match received {
            Received::Connection(to, input) => {
                assert_eq!(
                    (to, input.tuple, input.size(), input.segment_bytes),
                    (handle, tuple(77), taken, 60.min(taken))
                );
                (taken, Some((input.path, input.datagrams())))
            }
            Received::Reply(_) | Received::Nothing => (taken, None),
            other => panic!("{other:?}"),
        });
    }
    let of = |path, datagrams| Some((PathId(path), datagrams));
    let whole = [(120, of(3, 2)), (60, of(4, 1)), (60, None), (60, None), (60, None), (60, of(4, 1)), (93, of(3, 2))];
    assert_eq!(seen, whole);
    // Sizes that no receive call gives do no harm.
    for segment_bytes in [0, 5, 1_000] {
        let mut train = BytesMut::from(&[third.as_slice(), &empty_id].concat()[..]);
        while !train.is_empty() {
            let before = train.len();
            bench.endpoint.receive_front(bench.now, tuple(77), None, &mut train, segment_bytes, &mut bench.reply);
            assert!(train.len() < before);
        }
        bench.endpoint.receive_front(bench.now, tuple(77), None, &mut train, segment_bytes, &mut bench.reply);
    }
}

#[test]
fn strangers_are_reset_with_the_token_that_they_know() {
    // RFC 9000 10.3.2-2
    // RFC 9000 10.3
    let mut bench = Bench::server();
    let lost = cid(9, 8);
    for size in [9, 20, 21, 22, 43, 44, 1_452] {
        match bench.receive(tuple(1), &short(&lost, size)) {
            Received::Reply(sent) => {
                assert!(size > 21 && sent.size < size);
                let token = bench.endpoint.config.reset_key.token(&lost);
                assert!(token.matches(stateless_reset::candidate(&bench.reply).unwrap()));
            }
            Received::Nothing => assert!(size <= 21),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn resets_are_limited_in_rate_and_can_be_switched_off() {
    let count = |mut config: EndpointConfig, switch: Switch| {
        config.max_resets_per_second(50).stateless_resets(switch);
        let mut bench = Bench::new(config, None);
        (0..500).filter(|_| matches!(bench.receive(tuple(1), &short(&cid(9, 8), 99)), Received::Reply(_))).count()
    };
    assert_eq!(count(endpoint_config(), Switch::On), 50);
    assert_eq!(count(endpoint_config(), Switch::Off), 0);
}

#[test]
fn two_endpoints_that_lost_everything_fall_silent() {
    // RFC 9000 10.3.3: resets shrink, so they cannot answer each other for ever
    let (mut a, mut b) = (Bench::server(), Bench::server());
    let mut datagram = short(&cid(9, 8), 1_000);
    for round in 0.. {
        assert!(round < 60);
        let bench = if round % 2 == 0 { &mut a } else { &mut b };
        match bench.receive(tuple(1), &datagram) {
            Received::Reply(_) => datagram = bench.reply.clone(),
            _ => break,
        }
    }
}

#[test]
fn a_reset_finds_its_connection() {
    // RFC 9000 10.3-5
    // RFC 9000 10.3.1-1
    let mut bench = Bench::new(endpoint_config(), None);
    let (handle, _) = client(&mut bench, 1).unwrap();
    let (remote, token) = (tuple(1).remote, ResetToken([6; 16]));
    bench.endpoint.on_connection_event(handle, EndpointEvent::ResetToken { remote, token });
    let mut datagram = Vec::new();
    stateless_reset::write(&mut datagram, 40, &token, &mut Random::from_u64(4));
    let (to, input) = bench.deliver(tuple(1), &datagram);
    assert_eq!((to, input.kind), (handle, InputKind::StatelessReset));
    assert!(matches!(bench.receive(tuple(2), &datagram), Received::Reply(_)), "another address cannot");
    // A long header changes nothing.
    let long = [&[0xc0, 0, 0, 0, 1, 4, 1, 2, 3, 4, 0, 0, 0][..], &datagram[13..]].concat();
    let (to, input) = bench.deliver(tuple(1), &long);
    assert_eq!((to, input.kind), (handle, InputKind::StatelessReset));
    bench.nothing(tuple(2), &long);
    bench.endpoint.on_connection_event(handle, EndpointEvent::ForgetToken { remote, token });
    assert!(matches!(bench.receive(tuple(1), &datagram), Received::Reply(_)));
}

#[test]
fn a_client_is_found_by_its_id() {
    // RFC 9000 7.2-1
    let mut bench = Bench::new(endpoint_config(), None);
    let (handle, parts) = client(&mut bench, 1).unwrap();
    assert_eq!((parts.side(), parts.ids.local.len(), parts.ids.remote.len()), (Side::Client, 8, 8));
    assert_eq!((parts.ids.remote, parts.ids.retry_scid), (parts.ids.original_dcid, None));
    let answer = Craft { dcid: parts.ids.local, ..Craft::new(1) }.datagram();
    assert_eq!(bench.deliver(tuple(1), &answer).0, handle);
    // So is what other versions say to it; the connection decides.
    let mut negotiation = vec![0xc0, 0, 0, 0, 0, 8];
    negotiation.extend_from_slice(&parts.ids.local);
    negotiation.extend_from_slice(&[0, 1, 2, 3, 4]);
    assert_eq!(bench.deliver(tuple(1), &negotiation).0, handle);
}

#[test]
fn empty_ids_go_by_address() {
    let mut config = endpoint_config();
    config.cid_len(0);
    let mut bench = Bench::new(config, Some(server_config()));
    let (a, parts) = client(&mut bench, 1).unwrap();
    let (b, _) = client(&mut bench, 2).unwrap();
    assert!(parts.ids.local.is_empty());
    assert_eq!(client(&mut bench, 1).err(), Some(ConnectError::AddressInUse));
    assert_eq!(bench.deliver(tuple(1), &short(&ConnectionId::EMPTY, 30)).0, a);
    assert_eq!(bench.deliver(tuple(2), &Craft { dcid: ConnectionId::EMPTY, ..Craft::new(1) }.datagram()).0, b);
    // No resets without ids, and no serving.
    bench.nothing(tuple(3), &short(&ConnectionId::EMPTY, 30));
    bench.nothing(tuple(3), &Craft::new(1).datagram());
    bench.endpoint.on_connection_event(a, EndpointEvent::Drained);
    assert!(client(&mut bench, 1).is_ok());
}

#[test]
fn impossible_connections_leave_nothing() {
    let mut bench = Bench::new(endpoint_config(), None);
    assert_eq!(client(&mut bench, 0).err(), Some(ConnectError::InvalidRemoteAddress));
    let mut v1_only = endpoint_config();
    v1_only.supported_versions(vec![Version::V1]);
    let mut bench = Bench::new(v1_only, None);
    let mut config = ClientConfig::new(client_tls());
    config.version(Version::V2);
    assert_eq!(bench.endpoint.prepare(config, tuple(1), "a").err(), Some(ConnectError::UnsupportedVersion));
    assert_eq!(bench.endpoint.connections(), 0);
}

#[test]
fn a_stored_token_is_used_once() {
    // RFC 9000 8.1.3-1; RFC 9001 9.2-2, 9.2-3
    let mut bench = Bench::new(endpoint_config(), None);
    let config = ClientConfig::new(client_tls());
    config.token_store.insert("localhost", bytes::Bytes::from_static(b"t"));
    let mut token = |config: ClientConfig| match bench.endpoint.prepare(config, tuple(1), "localhost").unwrap().1.role {
        Role::Client(client) => client.token,
        Role::Server(_) => panic!("a client's part"),
    };
    assert_eq!((token(config.clone()), token(config)), (bytes::Bytes::from_static(b"t"), bytes::Bytes::new()));
}

#[test]
fn nothing_outlives_a_connection() {
    // RFC 9000 11
    let mut bench = Bench::server();
    for round in 0..50u8 {
        let initial = Craft::new(round);
        let incoming = bench.incoming(tuple(1), &initial.datagram());
        let admission = bench.admit(incoming);
        let (handle, local) = (admission.handle, admission.parts.ids.local);
        assert_eq!(handle, ConnectionHandle(0), "handles are used again");
        bench.endpoint.on_connection_event(handle, EndpointEvent::Drained);
        assert!(matches!(bench.receive(tuple(1), &short(&local, 50)), Received::Reply(_)));
        assert_eq!(bench.endpoint.connections(), 0);
    }
}

#[test]
fn late_packets_of_a_closed_connection_are_not_answered() {
    // RFC 9000 10.2.2
    let mut bench = Bench::server();
    let first = Craft::new(1).datagram();
    let incoming = bench.incoming(tuple(1), &first);
    let admission = bench.admit(incoming);
    let (handle, local) = (admission.handle, admission.parts.ids.local);
    let until = Instant::ZERO + std::time::Duration::from_millis(300);
    bench.endpoint.let_go(handle, Instant::ZERO, until);
    assert_eq!(bench.endpoint.connections(), 0);
    bench.nothing(tuple(1), &short(&local, 50));
    bench.nothing(tuple(2), &short(&local, 50));
    bench.nothing(tuple(1), &Craft { dcid: local, ..Craft::new(1) }.datagram());
    bench.nothing(tuple(1), &first);
    // The next one to depart finds that its time is over.
    let incoming = bench.incoming(tuple(2), &Craft::new(2).datagram());
    let admission = bench.admit(incoming);
    assert_eq!(admission.handle, handle, "handles are used again");
    bench.endpoint.let_go(admission.handle, until, until);
    assert!(matches!(bench.receive(tuple(1), &short(&local, 50)), Received::Reply(_)));
}
