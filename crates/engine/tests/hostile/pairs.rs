//! Two engines that negotiate a version (RFC 9368, RFC 9369): which one they end in, and what is said in which.

use std::sync::{Arc, Mutex};

use bytes::BytesMut;
use plait_base::observe::{Observer, PathState, TraceEvent};
use plait_base::{Dir, FourTuple, Instant, PathId, Random};
use plait_engine::config::{Extension, RetryPolicy};
use plait_engine::path::PathStatus;
use plait_engine::stream::Order;
use plait_engine::{
    ClientConfig, Connection, ConnectionHandle, Endpoint, EndpointConfig, Received, ServerConfig, TransportConfig,
    Version,
};
use plait_wire::PacketKind;
use plait_wire::header::{FixedBitRule, ProtectedHeader};

use crate::puppet::{ENGINE, PUPPET, addr, client_tls, ms, resuming_client_tls, server_tls};

/// One end: its endpoint, and the connection once there is one.
struct End {
    endpoint: Endpoint,
    live: Option<(ConnectionHandle, Connection)>,
}

/// A long header that crossed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Crossed {
    by_client: bool,
    kind: Option<PacketKind>,
    version: Version,
}

/// From a client's address to the server.
fn client_route(from: &str) -> FourTuple {
    FourTuple { local: addr(from), remote: addr(ENGINE) }
}

struct Pair {
    now: Instant,
    client: End,
    server: End,
    crossed: Vec<Crossed>,
    /// Datagrams of the server that are lost from now on.
    lose: usize,
    client_config: ClientConfig,
}

/// Versions that both ends were told of, client's first.
#[derive(Clone, Default)]
struct Changes(Arc<Mutex<Vec<u32>>>);

impl Observer for Changes {
    fn on_event(&mut self, _now: Instant, event: &TraceEvent) {
        if let TraceEvent::VersionChanged { version } = event {
            self.0.lock().unwrap().push(*version);
        }
    }
}

impl Pair {
    fn new(first: Version, prefers: &[Version], change: impl FnOnce(&mut ServerConfig, &mut ClientConfig)) -> Self {
        let mut random = Random::from_u64(7);
        let mut transport = TransportConfig::default();
        transport.max_concurrent_multipath_paths(3);
        let transport = Arc::new(transport);
        let mut server = ServerConfig::from_random(server_tls(), &mut random);
        server.transport_config(transport.clone()).preferred_versions(prefers.to_vec());
        let mut client = ClientConfig::new(client_tls());
        client.transport_config(transport).version(first);
        change(&mut server, &mut client);
        let config = Arc::new(EndpointConfig::from_random(&mut random));
        let server = Endpoint::new(config.clone(), Some(Arc::new(server)), random.fork());
        let mut pair = Self {
            now: Instant::ZERO,
            client: End { endpoint: Endpoint::new(config, None, random.fork()), live: None },
            server: End { endpoint: server, live: None },
            crossed: Vec::new(),
            lose: 0,
            client_config: client,
        };
        pair.connect();
        pair
    }

    /// A new connection of the same client; the one before is forgotten on both ends.
    fn connect(&mut self) {
        let End { endpoint, live } = &mut self.client;
        *live =
            Some(endpoint.connect(self.now, self.client_config.clone(), client_route(PUPPET), "localhost").unwrap());
        self.server.live = None;
        self.crossed.clear();
    }

    fn client(&mut self) -> &mut Connection {
        &mut self.client.live.as_mut().unwrap().1
    }

    fn server(&mut self) -> &mut Connection {
        &mut self.server.live.as_mut().expect("the server accepted").1
    }

    /// Moves everything until both ends are silent for `millis` of virtual time.
    fn run(&mut self, millis: u64) {
        let end = self.now + ms(millis);
        while self.now < end {
            while self.step() {}
            self.now += ms(1);
            for (_, connection) in [&mut self.client.live, &mut self.server.live].into_iter().flatten() {
                if connection.deadline().is_some_and(|at| at <= self.now) {
                    connection.on_timeout(self.now);
                }
            }
        }
    }

    /// One datagram of each end.
    fn step(&mut self) -> bool {
        let from_client = take(self.now, &mut self.client);
        let from_server = take(self.now, &mut self.server);
        for (tuple, datagram) in &from_client {
            self.note(datagram, true);
            let reply = give(self.now, &mut self.server, (tuple.flipped(), datagram));
            if let Some(reply) = reply {
                self.note(&reply, false);
                give(self.now, &mut self.client, (*tuple, &reply));
            }
        }
        for (tuple, datagram) in &from_server {
            self.note(datagram, false);
            if self.lose > 0 {
                self.lose -= 1;
            } else {
                give(self.now, &mut self.client, (tuple.flipped(), datagram));
            }
        }
        !from_client.is_empty() || !from_server.is_empty()
    }

    fn note(&mut self, datagram: &[u8], by_client: bool) {
        let mut rest = datagram;
        while rest.first().is_some_and(|first| first & 0x80 != 0) {
            let (header, span) = ProtectedHeader::parse(rest, 8, FixedBitRule::Ignored).unwrap();
            let kind = match header {
                ProtectedHeader::Initial { .. } => Some(PacketKind::Initial),
                ProtectedHeader::Handshake { .. } => Some(PacketKind::Handshake),
                ProtectedHeader::ZeroRtt { .. } => Some(PacketKind::ZeroRtt),
                _ => None,
            };
            self.crossed.push(Crossed { by_client, kind, version: header.version().unwrap() });
            rest = &rest[span.end.min(rest.len())..];
        }
    }

    /// Versions of packets of a kind that an end sent, each once, in order of appearance.
    fn versions(&self, by_client: bool, kind: Option<PacketKind>) -> Vec<Version> {
        let mut found = Vec::new();
        for one in self.crossed.iter().filter(|c| c.by_client == by_client && c.kind == kind) {
            if found.last() != Some(&one.version) {
                found.push(one.version);
            }
        }
        found
    }

    /// The handshake is done at both ends, in `version`, and data passes both ways, key updates included.
    fn assert_works(&mut self, version: Version) {
        self.run(200);
        for connection in [&self.client, &self.server].map(|end| &end.live.as_ref().unwrap().1) {
            assert!(!connection.is_handshaking() && !connection.is_closed(), "{connection:?}");
            assert_eq!(connection.session().summary().version, version);
        }
        self.pass_data();
        let now = self.now;
        self.client().update_keys(now).unwrap();
        self.pass_data();
        let handshake = Some(PacketKind::Handshake);
        assert_eq!((self.versions(true, handshake), self.versions(false, handshake)), (vec![version], vec![version]));
    }

    fn pass_data(&mut self) {
        let up = self.client().streams().open(Dir::Uni).unwrap();
        self.client().send_stream(up).write(&[7; 5_000]).unwrap();
        self.client().send_stream(up).finish().unwrap();
        let down = self.server().streams().open(Dir::Uni).unwrap();
        self.server().send_stream(down).write(&[8; 5_000]).unwrap();
        self.server().send_stream(down).finish().unwrap();
        self.run(300);
        assert_eq!(read_all(self.server()), [7; 5_000]);
        assert_eq!(read_all(self.client()), [8; 5_000]);
    }
}

trait Flipped {
    fn flipped(&self) -> FourTuple;
}

impl Flipped for FourTuple {
    /// As the other end sees it.
    fn flipped(&self) -> FourTuple {
        FourTuple { local: self.remote, remote: self.local }
    }
}

fn take(now: Instant, end: &mut End) -> Vec<(FourTuple, Vec<u8>)> {
    let Some((handle, connection)) = &mut end.live else { return Vec::new() };
    let mut buf = Vec::new();
    let mut all = Vec::new();
    if let Some(transmit) = connection.poll_transmit(now, 1, &mut buf) {
        all.push((transmit.tuple, buf[..transmit.size].to_vec()));
    }
    while let Some(event) = connection.poll_endpoint_event() {
        end.endpoint.on_connection_event(*handle, event);
    }
    all
}

/// Hands a datagram to an end; gives what it answers without a connection.
fn give(now: Instant, end: &mut End, (tuple, datagram): (FourTuple, &[u8])) -> Option<Vec<u8>> {
    let mut reply = Vec::new();
    match end.endpoint.receive(now, tuple, None, BytesMut::from(datagram), &mut reply) {
        Received::Nothing => None,
        Received::Reply(_) => Some(reply),
        Received::Incoming(incoming) => {
            end.live = Some(end.endpoint.accept(incoming, now, &mut reply, None).unwrap());
            None
        }
        Received::Connection(handle, input) => {
            if let Some((live, connection)) = &mut end.live
                && *live == handle
            {
                connection.handle_datagram(now, input);
            }
            None
        }
    }
}

fn read_all(connection: &mut Connection) -> Vec<u8> {
    let id = connection.streams().accept(Dir::Uni).expect("a stream");
    let mut data = Vec::new();
    while let Ok(Some(chunk)) = connection.recv_stream(id).read(usize::MAX, Order::Ordered) {
        data.extend_from_slice(&chunk.bytes);
    }
    data
}

const V1: Version = Version::V1;
const V2: Version = Version::V2;
const INITIAL: Option<PacketKind> = Some(PacketKind::Initial);

#[test]
fn a_train_with_a_broken_datagram_loses_only_that() {
    let mut pair = Pair::new(V1, &[], |_, _| {});
    pair.run(200);
    let (now, data) = (pair.now, [9; 9_000]);
    let id = pair.client().streams().open(Dir::Uni).unwrap();
    pair.client().send_stream(id).write(&data).unwrap();
    pair.client().send_stream(id).finish().unwrap();
    let mut train = Vec::new();
    let (sent, segment) = loop {
        // A larger datagram to learn whether it passes leaves alone, and is lost here.
        let sent = pair.client().poll_transmit(now, 10, &mut train).expect("several datagrams");
        if let Some(segment) = sent.segment_size {
            break (sent, segment);
        }
    };
    assert!(sent.size > 3 * segment, "{sent:?}");
    // The first comes twice, and the second is broken.
    train[segment + segment / 2] ^= 1;
    let mut train = BytesMut::from(&[&train[..segment], &train[..]].concat()[..]);
    let End { endpoint, live } = &mut pair.server;
    let (handle, connection) = live.as_mut().unwrap();
    let mut reply = Vec::new();
    while !train.is_empty() {
        match endpoint.receive_front(now, sent.tuple.flipped(), None, &mut train, segment, &mut reply) {
            Received::Connection(to, input) if to == *handle => {
                connection.handle_datagram(now, input);
            }
            other => panic!("{other:?}"),
        }
    }
    let accepted = connection.streams().accept(Dir::Uni).unwrap();
    let mut arrived = Vec::new();
    let read = |connection: &mut Connection, arrived: &mut Vec<u8>| {
        while let Ok(Some(chunk)) = connection.recv_stream(accepted).read(usize::MAX, Order::Ordered) {
            arrived.extend_from_slice(&chunk.bytes);
        }
    };
    read(connection, &mut arrived);
    assert!(arrived.len() > segment / 2 && arrived.len() < segment, "{} bytes before the gap", arrived.len());
    pair.run(500);
    read(pair.server(), &mut arrived);
    assert_eq!(arrived, data);
}

#[test]
fn a_client_is_moved_within_its_handshake() {
    // RFC 9369 4.1, in either direction
    for (from, to) in [(V1, V2), (V2, V1)] {
        let changes = Changes::default();
        let mut pair = Pair::new(from, &[to], |_, _| {});
        pair.client().observe_with(Box::new(changes.clone()));
        pair.assert_works(to);
        assert_eq!(pair.versions(true, INITIAL), [from, to]);
        assert_eq!(pair.versions(false, INITIAL), [to]);
        assert_eq!(*changes.0.lock().unwrap(), [to.0]);
        assert_eq!(pair.now, Instant::ZERO + ms(800), "no round trip was spent on it");
    }
}

#[test]
fn without_a_preference_nobody_is_moved() {
    for version in [V1, V2] {
        let mut pair = Pair::new(version, &[], |_, _| {});
        pair.assert_works(version);
        assert!(pair.crossed.iter().all(|c| c.version == version));
        let mut pair = Pair::new(version, &[version], |_, _| {});
        pair.assert_works(version);
        assert!(pair.crossed.iter().all(|c| c.version == version));
    }
}

#[test]
fn retry_stays_in_the_first_version() {
    // RFC 9369 4.1
    let mut pair = Pair::new(V1, &[V2], |server, _| {
        server.retry_policy(RetryPolicy::Always);
    });
    pair.assert_works(V2);
    assert_eq!(pair.crossed[1], Crossed { by_client: false, kind: None, version: V1 }, "the Retry");
    assert_eq!(pair.crossed[2], Crossed { by_client: true, kind: INITIAL, version: V1 }, "the Initial with its token");
    assert_eq!(pair.versions(false, INITIAL), [V2]);
}

#[test]
fn a_lost_answer_is_sent_again_in_the_new_version() {
    // RFC 9001 4
    let mut pair = Pair::new(V1, &[V2], |_, _| {});
    pair.lose = 3;
    pair.run(4_000);
    pair.assert_works(V2);
    assert_eq!(pair.versions(false, INITIAL), [V2], "answers to first flights that came again, too");
}

/// The client says something before its handshake is done, and the server reads it.
fn assert_takes_early_data(pair: &mut Pair) {
    let id = pair.client().streams().open(Dir::Uni).unwrap();
    pair.client().send_stream(id).write(b"early").unwrap();
    pair.client().send_stream(id).finish().unwrap();
    pair.run(200);
    assert_eq!(read_all(pair.server()), b"early");
    assert_eq!(pair.client().session().accepted_0rtt(), Some(true));
}

#[test]
fn early_data_stays_in_the_first_version() {
    // RFC 9369 4.1, 5
    let mut pair = Pair::new(V1, &[], |_, client| *client = ClientConfig::new(resuming_client_tls()));
    pair.assert_works(V1);
    let mut moving = ServerConfig::from_random(server_tls(), &mut Random::from_u64(3));
    moving.preferred_versions(vec![V2]);
    pair.server.endpoint.set_server_config(Some(Arc::new(moving)));
    pair.connect();
    assert!(pair.client().session().has_0rtt(), "the ticket of version 1");
    assert_takes_early_data(&mut pair);
    assert_eq!(pair.versions(true, Some(PacketKind::ZeroRtt)), [V1]);
    pair.assert_works(V2);
    // The tickets of this connection are of version 2: a client that begins in version 1 has none left.
    pair.connect();
    pair.run(200);
    assert_eq!(pair.client().session().summary().version, V2);
    let first_ticket = pair.client().session().summary().resumed;
    pair.connect();
    pair.run(200);
    let second_ticket = pair.client().session().summary().resumed;
    assert!(!(first_ticket && second_ticket), "two tickets of version 1, one was used");
    pair.client_config.version(V2);
    pair.connect();
    assert!(pair.client().session().has_0rtt(), "the tickets of version 2 serve connections that begin in it");
}

#[test]
fn address_tokens_belong_to_the_version_that_a_connection_ends_in() {
    // RFC 9369 5
    let mut pair = Pair::new(V1, &[V2], |server, _| {
        server.retry_policy(RetryPolicy::Always);
    });
    let retries = |pair: &Pair| pair.crossed.iter().filter(|c| !c.by_client && c.kind.is_none()).count();
    pair.assert_works(V2);
    pair.connect();
    pair.assert_works(V2);
    assert_eq!(retries(&pair), 1, "a client that begins in version 1 has no token");
    pair.client_config.version(V2);
    pair.connect();
    pair.assert_works(V2);
    assert_eq!(retries(&pair), 0, "one that begins in version 2 has");
}

#[test]
fn both_negotiations_in_one_connection() {
    // A reserved version makes the server list its versions; the client takes its best, and is moved on from there.
    let mut pair = Pair::new(Version(0x1a2a_3a4a), &[V2], |_, _| {});
    pair.assert_works(V2);
    assert_eq!(pair.versions(true, INITIAL).last(), Some(&V2));
    assert!(pair.versions(true, INITIAL).contains(&V1));
}

/// A second path, and data over both.
fn open_second_path(pair: &mut Pair) -> PathId {
    let now = pair.now;
    let second = client_route("192.0.2.7:5000");
    let id = pair.client().open_path(now, second, PathStatus::Available).unwrap();
    pair.run(200);
    pair.pass_data();
    id
}

#[test]
fn paths_open_on_a_moved_connection() {
    // RFC 10069 2.4 over version 2: the path nonce under keys that were derived here
    let mut pair = Pair::new(V1, &[V2], |_, _| {});
    pair.assert_works(V2);
    let id = open_second_path(&mut pair);
    let now = pair.now;
    for connection in [&mut pair.client.live, &mut pair.server.live].into_iter().flatten().map(|(_, c)| c) {
        let path = connection.path_statistics(now, id).expect("the path is open");
        assert_eq!(path.state, PathState::Active);
    }
}

/// Both ends speak Multiflow and wish nonces with the uniflow id in their top bits.
fn with_uniflow_nonces(tls: plait_crypto::ClientTlsConfig) -> impl FnOnce(&mut ServerConfig, &mut ClientConfig) {
    let mut transport = TransportConfig::default();
    transport.max_concurrent_multipath_paths(3).extension(Extension::Multiflow).uniflow_nonces(true);
    let transport = Arc::new(transport);
    |server, client| {
        server.transport_config(transport.clone()).retry_policy(RetryPolicy::Always);
        *client = ClientConfig::new(tls);
        client.transport_config(transport);
    }
}

#[test]
fn uniflow_nonces_in_every_version_and_after_an_update() {
    for (first, prefers, last) in
        [(V1, vec![], V1), (V1, vec![V2], V2), (V2, vec![V1], V1), (Version(0x1a2a_3a4a), vec![V2], V2)]
    {
        let mut pair = Pair::new(first, &prefers, |server, client| {
            with_uniflow_nonces(resuming_client_tls())(server, client);
            client.version(first);
        });
        pair.assert_works(last);
        let id = open_second_path(&mut pair);
        let now = pair.now;
        assert_eq!(pair.client().path_statistics(now, id).unwrap().state, PathState::Active, "{first:?} {prefers:?}");
        pair.run(2_000);
        let now = pair.now;
        pair.server().update_keys(now).unwrap();
        pair.run(200);
        pair.pass_data();
    }
}

#[test]
fn early_data_comes_before_uniflow_nonces() {
    let mut pair = Pair::new(V1, &[], with_uniflow_nonces(resuming_client_tls()));
    pair.assert_works(V1);
    pair.connect();
    assert!(pair.client().session().has_0rtt());
    assert_takes_early_data(&mut pair);
    assert!(pair.crossed.iter().any(|c| c.kind == Some(PacketKind::ZeroRtt)));
    pair.assert_works(V1);
}
