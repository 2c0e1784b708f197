//! What tokens prove: Retry, NEW_TOKEN, and those of others.

use super::*;
use crate::config::RetryPolicy;
use crate::endpoint::parts::{AddressProof, Role};
use plait_base::CloseCode;
use plait_crypto::Token;
use std::net::IpAddr;
use std::time::Duration;

fn always() -> Bench {
    let mut server = server_config();
    server.retry_policy(RetryPolicy::Always);
    Bench::new(endpoint_config(), Some(server))
}

/// A NEW_TOKEN token, issued in the first second.
fn seal(server: &ServerConfig, addresses: Vec<IpAddr>, seed: u64) -> Vec<u8> {
    server.token_key.seal(&Token::Validated { addresses, issued: 1, version: 1 }, &mut Random::from_u64(seed))
}

#[test]
fn a_retry_proves_the_address() {
    // RFC 9000 17.2.5.1-4
    for version in Version::SUPPORTED {
        let mut bench = always();
        let initial = Craft { version, ..Craft::new(1) };
        let (scid, token) = bench.retried(tuple(1), &initial);
        assert_eq!((bench.endpoint.incoming(), bench.endpoint.connections()), (0, 0));
        assert!(scid.len() >= 8 && scid != initial.dcid);
        let incoming = bench.incoming(tuple(1), &initial.with_token(scid, &token).datagram());
        assert_eq!((incoming.proof, incoming.orig_dst_cid()), (AddressProof::Retry, initial.dcid));
        // RFC 9000 17.2.5: at most one Retry
        let error = bench.endpoint.retry(incoming, &mut bench.reply).unwrap_err();
        let admission = bench.admit(*error.0);
        assert_eq!(admission.parts.ids.retry_scid, Some(scid));
        assert_eq!((admission.parts.ids.original_dcid, admission.parts.ids.keys_from()), (initial.dcid, scid));
        let Role::Server(server) = admission.parts.role else { panic!("a server's part") };
        assert!(server.proof.is_validated());
    }
}

#[test]
fn a_retry_token_is_good_for_its_address_only() {
    // RFC 9000 8.1.2 and 8.1.4
    let mut bench = always();
    let initial = Craft::new(1);
    let (scid, token) = bench.retried(tuple(1), &initial);
    let second = initial.with_token(scid, &token);
    assert!(matches!(bench.receive(tuple(2), &second.datagram()), Received::Reply(_)));
    assert_eq!(bench.close_code(&second), CloseCode::INVALID_TOKEN.0);
    assert_eq!(bench.endpoint.incoming(), 0);
}

#[test]
fn a_retry_token_grows_old() {
    let mut bench = always();
    let initial = Craft::new(1);
    let (scid, token) = bench.retried(tuple(1), &initial);
    let second = initial.with_token(scid, &token);
    bench.now += Duration::from_secs(17);
    assert!(matches!(bench.receive(tuple(1), &second.datagram()), Received::Reply(_)));
    assert_eq!(bench.close_code(&second), CloseCode::INVALID_TOKEN.0);
}

#[test]
fn a_token_of_others_counts_as_none() {
    // RFC 9000 8.1.3
    let mut bench = Bench::server();
    let initial = Craft { token: vec![7; 60], ..Craft::new(1) };
    let incoming = bench.incoming(tuple(1), &initial.datagram());
    assert_eq!(incoming.proof, AddressProof::None);
}

#[test]
fn the_application_may_ask_for_a_retry() {
    let mut bench = Bench::server();
    let initial = Craft::new(1);
    let incoming = bench.incoming(tuple(1), &initial.datagram());
    let sent = bench.endpoint.retry(incoming, &mut bench.reply).unwrap().unwrap();
    assert_eq!((sent.tuple, sent.size), (tuple(1), bench.reply.len()));
    assert_eq!(bench.endpoint.incoming(), 0);
    assert!(plait_crypto::retry::verify(1, &initial.dcid, &bench.reply));
}

#[test]
fn a_new_token_spares_the_retry_once() {
    // RFC 9000 8.1.4-5, 19.7-1
    // RFC 9000 8.1.3-7 and 8.1.4; RFC 10069 3.1.3: good for every validated address
    let mut bench = always();
    let server = bench.endpoint.server.clone().unwrap();
    let addresses: [IpAddr; 2] = ["198.51.100.7".parse().unwrap(), tuple(1).remote.ip()];
    let token = seal(&server, addresses.to_vec(), 3);
    let initial = Craft { token, ..Craft::new(1) };
    bench.now += Duration::from_secs(3_600);
    let incoming = bench.incoming(tuple(50), &initial.datagram());
    assert_eq!((incoming.proof, incoming.orig_dst_cid()), (AddressProof::Token, initial.dcid));
    assert_eq!(bench.admit(incoming).parts.ids.retry_scid, None);
    // The second use goes the long way.
    bench.retried(tuple(51), &initial);
}

#[test]
fn a_new_token_is_no_use_in_another_version() {
    // RFC 9369 5
    let mut bench = always();
    let server = bench.endpoint.server.clone().unwrap();
    let token = Token::Validated { addresses: vec![tuple(1).remote.ip()], issued: 1, version: 0x6b33_43cf };
    let token = server.token_key.seal(&token, &mut Random::from_u64(4));
    bench.retried(tuple(1), &Craft { token, ..Craft::new(1) });
}

#[test]
fn a_new_token_is_no_use_elsewhere_or_later() {
    // RFC 9000 8.1.4-4
    let mut bench = always();
    let server = bench.endpoint.server.clone().unwrap();
    let sealed = |n, ip: &str| seal(&server, vec![ip.parse().unwrap()], n);
    bench.retried(tuple(1), &Craft { token: sealed(1, "198.51.100.7"), ..Craft::new(1) });
    bench.now += Duration::from_secs(15 * 24 * 3600);
    bench.retried(tuple(1), &Craft { token: sealed(2, "192.0.2.1"), ..Craft::new(2) });
}

#[test]
fn a_token_is_spent_only_by_a_connection_that_got_a_place() {
    // RFC 9000 8.1.4: a client that is turned away may come again with its token
    let mut server = server_config();
    server.retry_policy(RetryPolicy::Always).max_incoming(1);
    let mut bench = Bench::new(endpoint_config(), Some(server));
    let server = bench.endpoint.server.clone().unwrap();
    let sealed = |n| seal(&server, vec![tuple(1).remote.ip()], n);
    let first = bench.incoming(tuple(1), &Craft { token: sealed(1), ..Craft::new(1) }.datagram());
    let second = Craft { token: sealed(2), ..Craft::new(2) };
    bench.nothing(tuple(2), &second.datagram());
    bench.admit(first);
    let incoming = bench.incoming(tuple(2), &second.datagram());
    assert_eq!(incoming.proof, AddressProof::Token, "spent while there was no place");
    bench.admit(incoming);
    bench.retried(tuple(3), &second);
}

#[test]
fn what_waits_for_a_decision_keeps_no_receive_buffer() {
    let mut bench = Bench::server();
    let initial = Craft::new(1).datagram();
    let mut buffer = BytesMut::zeroed(64 << 10);
    buffer[..initial.len()].copy_from_slice(&initial);
    buffer[initial.len()..2 * initial.len()].copy_from_slice(&initial);
    let mut kept = Vec::new();
    for n in 0..2 {
        let datagram = buffer.split_to(initial.len());
        let received = bench.endpoint.receive(bench.now, tuple(1), None, datagram, &mut bench.reply);
        assert!(matches!(received, Received::Incoming(_)) == (n == 0));
        kept.push(received);
    }
    buffer.clear();
    assert!(buffer.try_reclaim(64 << 10), "nobody else holds a part of it");
}
