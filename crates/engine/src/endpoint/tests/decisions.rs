//! What waits, and what becomes of it when the application decides.

use super::*;
use plait_base::{CloseCode, limits};
use std::time::Duration;

#[test]
fn accepting_hands_over_what_waited() {
    let mut bench = Bench::server();
    let initial = Craft::new(1);
    let incoming = bench.incoming(tuple(1), &initial.datagram());
    for number in 1..100 {
        bench.nothing(tuple(1), &Craft { number, ..initial.clone() }.datagram());
    }
    let admission = bench.admit(incoming);
    assert_eq!(admission.inputs.len(), limits::MAX_INCOMING_DATAGRAMS);
    let ids = admission.parts.ids;
    assert_eq!((ids.remote, ids.original_dcid, ids.retry_scid), (initial.scid, initial.dcid, None));
    assert_eq!((ids.keys_from(), ids.local.len(), admission.parts.side()), (initial.dcid, 8, Side::Server));
    // Both the client's id and ours lead to it from now on.
    assert_eq!(bench.deliver(tuple(1), &initial.datagram()).0, admission.handle);
    assert_eq!(bench.deliver(tuple(9), &short(&ids.local, 30)).0, admission.handle);
    assert_eq!((bench.endpoint.connections(), bench.endpoint.incoming()), (1, 0));
}

#[test]
fn two_clients_may_choose_the_same_id() {
    let mut bench = Bench::server();
    let datagram = Craft::new(1).datagram();
    let (a, b) = (bench.incoming(tuple(1), &datagram), bench.incoming(tuple(2), &datagram));
    let (a, b) = (bench.admit(a).handle, bench.admit(b).handle);
    assert_ne!(a, b);
    assert_eq!(bench.deliver(tuple(1), &datagram).0, a);
    assert_eq!(bench.deliver(tuple(2), &datagram).0, b);
}

#[test]
fn refusing_says_so_and_forgets() {
    let mut bench = Bench::server();
    let initial = Craft::new(1);
    let incoming = bench.incoming(tuple(1), &initial.datagram());
    let sent = bench.endpoint.refuse(incoming, &mut bench.reply).unwrap();
    assert_eq!((sent.tuple, sent.size), (tuple(1), bench.reply.len()));
    assert_eq!(bench.close_code(&initial), CloseCode::CONNECTION_REFUSED.0);
    assert_eq!(bench.endpoint.incoming(), 0);
    drop(bench.incoming(tuple(1), &initial.datagram()));
}

#[test]
fn ignoring_forgets_in_silence() {
    let mut bench = Bench::server();
    let incoming = bench.incoming(tuple(1), &Craft::new(1).datagram());
    bench.endpoint.ignore(incoming);
    assert_eq!(bench.endpoint.incoming(), 0);
}

#[test]
fn who_waits_too_long_loses_the_place() {
    let mut server = server_config();
    server
        .max_incoming(1)
        .incoming_lifetime(Duration::from_secs(1))
        .retry_policy(crate::config::RetryPolicy::Application);
    let key = server.token_key.clone();
    let mut bench = Bench::new(endpoint_config(), Some(server));
    let token = |remote: SocketAddr| {
        let token = plait_crypto::Token::Validated { addresses: vec![remote.ip()], issued: 0, version: 1 };
        key.seal(&token, &mut Random::from_u64(u64::from(remote.port())))
    };
    let craft = |n: u8| Craft::new(n).with_token(cid(n, 8), &token(tuple(u16::from(n)).remote)).datagram();
    let old = bench.incoming(tuple(1), &craft(1));
    bench.nothing(tuple(2), &craft(2));
    bench.now += Duration::from_secs(1);
    let new = bench.incoming(tuple(3), &craft(3));
    let error = bench.endpoint.admit(old, &mut bench.reply, None).err().unwrap();
    assert_eq!((error.cause, error.reply), (AcceptCause::Expired, None));
    bench.admit(new);
}

#[test]
fn invented_addresses_cannot_take_all_places() {
    let mut server = server_config();
    server.max_incoming(4);
    let mut bench = Bench::new(endpoint_config(), Some(server));
    let _a = bench.incoming(tuple(1), &Craft::new(1).datagram());
    let _b = bench.incoming(tuple(2), &Craft::new(2).datagram());
    // Half is taken: others prove their address, at the price of one round trip.
    for n in 3..200 {
        bench.retried(tuple(u16::from(n)), &Craft::new(n));
    }
    let initial = Craft::new(3);
    let (scid, token) = bench.retried(tuple(3), &initial);
    let proven = bench.incoming(tuple(3), &initial.with_token(scid, &token).datagram());
    assert!(proven.remote_address_validated());
}

#[test]
fn unfinished_handshakes_ask_others_for_a_retry() {
    let mut server = server_config();
    server.retry_policy(crate::config::RetryPolicy::AtLeast(1));
    let mut bench = Bench::new(endpoint_config(), Some(server));
    let incoming = bench.incoming(tuple(1), &Craft::new(1).datagram());
    let handle = bench.admit(incoming).handle;
    bench.retried(tuple(2), &Craft::new(2));
    bench.endpoint.on_connection_event(handle, EndpointEvent::Established);
    drop(bench.incoming(tuple(2), &Craft::new(2).datagram()));
}

#[test]
fn a_full_endpoint_refuses() {
    let mut config = endpoint_config();
    config.max_connections(1);
    let mut bench = Bench::new(config, Some(server_config()));
    let (first, second) = (Craft::new(1), Craft::new(2));
    let (a, b) = (bench.incoming(tuple(1), &first.datagram()), bench.incoming(tuple(2), &second.datagram()));
    let handle = bench.admit(a).handle;
    let error = bench.endpoint.admit(b, &mut bench.reply, None).err().unwrap();
    assert_eq!(error.cause, AcceptCause::TooManyConnections);
    assert_eq!(error.reply.map(|t| t.size), Some(bench.reply.len()));
    assert_eq!(bench.close_code(&second), CloseCode::CONNECTION_REFUSED.0);
    let third = Craft::new(3);
    assert!(matches!(bench.receive(tuple(3), &third.datagram()), Received::Reply(_)));
    assert_eq!(bench.close_code(&third), CloseCode::CONNECTION_REFUSED.0);
    bench.endpoint.on_connection_event(handle, EndpointEvent::Drained);
    drop(bench.incoming(tuple(3), &third.datagram()));
}

#[test]
fn no_server_means_no_incoming() {
    let mut bench = Bench::new(endpoint_config(), None);
    bench.nothing(tuple(1), &Craft::new(1).datagram());
    bench.endpoint.set_server_config(Some(Arc::new(server_config())));
    let incoming = bench.incoming(tuple(1), &Craft::new(1).datagram());
    bench.endpoint.set_server_config(None);
    bench.nothing(tuple(1), &Craft { number: 1, ..Craft::new(1) }.datagram());
    let error = bench.endpoint.admit(incoming, &mut bench.reply, None).err().unwrap();
    assert_eq!(error.cause, AcceptCause::NoServer);
}

#[test]
fn equal_seeds_give_equal_bytes() {
    // RFC 9000 5.1-1
    let run = || {
        let mut bench = Bench::server();
        let incoming = bench.incoming(tuple(1), &Craft::new(1).datagram());
        bench.endpoint.retry(incoming, &mut bench.reply).unwrap().unwrap();
        let mut bytes = std::mem::take(&mut bench.reply);
        bench.receive(tuple(1), &short(&cid(9, 8), 100));
        bytes.extend_from_slice(&bench.reply);
        bytes
    };
    // The token's key comes from the configuration's own seed, which is fixed too.
    assert_eq!(run(), run());
}
