//! An engine on one side, a puppet on the other, and nothing between them but what a test wants.

#![allow(dead_code, unreachable_pub, missing_docs)]

pub mod peer;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::BytesMut;
use plait_base::{CloseCode, Ecn, FourTuple, Instant, PathId, Random, Side, Space};
use plait_crypto::tls::Identity;
use plait_crypto::{ClientTlsConfig, ServerTlsConfig, SessionStore};
use plait_engine::config::Extension;
use plait_engine::config::MigrationPolicy;
use plait_engine::path::policy;
use plait_engine::{
    ClientConfig, Connection, ConnectionHandle, Endpoint, EndpointConfig, EndpointEvent, Event, More, Received,
    ServerConfig, Transmit, TransportConfig,
};
use plait_wire::frame::{AckForm, CidForm, Close};
use plait_wire::params::AdditionalAddressesUse;
use plait_wire::{Encode, Frame, PacketKind, TransportParameters};

pub use peer::{Habits, Packet, Peer, Seen, Tls};

pub const ENGINE: &str = "10.0.0.1:443";
pub const PUPPET: &str = "192.0.2.1:4000";

pub const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub fn addr(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// The engine's view: local is the engine, remote the puppet.
pub fn tuple(remote: &str) -> FourTuple {
    FourTuple { local: addr(ENGINE), remote: addr(remote) }
}

/// One certificate and its key, made once.
pub fn identity_pem() -> (String, String) {
    static PEM: OnceLock<(String, String)> = OnceLock::new();
    PEM.get_or_init(|| {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        (made.cert.pem(), made.signing_key.serialize_pem())
    })
    .clone()
}

pub fn identity() -> Identity {
    let (chain, key) = identity_pem();
    Identity::from_pem(chain.as_bytes(), key.as_bytes()).unwrap()
}

pub fn server_tls() -> ServerTlsConfig {
    static TLS: OnceLock<ServerTlsConfig> = OnceLock::new();
    TLS.get_or_init(|| ServerTlsConfig::builder(identity()).alpn(["plait"]).early_data().build().unwrap()).clone()
}

pub fn client_tls() -> ClientTlsConfig {
    ClientTlsConfig::builder().accept_any_certificate().alpn(["plait"]).no_resumption().build().unwrap()
}

pub fn resuming_client_tls() -> ClientTlsConfig {
    ClientTlsConfig::builder().accept_any_certificate().alpn(["plait"]).sessions(SessionStore::new(4)).build().unwrap()
}

/// Generous parameters of a peer that speaks multipath.
pub fn params() -> TransportParameters {
    let mut params = TransportParameters::default();
    params.limits.max_data = 1 << 20;
    params.limits.max_stream_data_bidi_local = 1 << 18;
    params.limits.max_stream_data_bidi_remote = 1 << 18;
    params.limits.max_stream_data_uni = 1 << 18;
    params.limits.max_streams_bidi = 100;
    params.limits.max_streams_uni = 100;
    params.active_cid_limit = 4;
    params.max_datagram_frame_bytes = 1200;
    params.initial_max_path_id = Some(PathId(7));
    params
}

/// What a test may choose before the handshake.
pub struct Setup {
    pub seed: u64,
    pub habits: Habits,
    pub transport: TransportConfig,
    pub migration: MigrationPolicy,
    pub peer_tls: Option<Tls>,
    pub engine_tls: Option<Tls>,
    pub server_change: fn(&mut ServerConfig),
    pub endpoint_change: fn(&mut EndpointConfig),
}

impl Default for Setup {
    fn default() -> Self {
        let mut transport = TransportConfig::default();
        transport.grease_quic_bit(false).mtu_discovery_config(None);
        Self {
            seed: 1,
            habits: Habits { params: params(), ..Habits::default() },
            transport,
            migration: MigrationPolicy::Allowed,
            peer_tls: None,
            engine_tls: None,
            server_change: |_| {},
            endpoint_change: |_| {},
        }
    }
}

impl Setup {
    /// A peer without multipath.
    pub fn single_path() -> Self {
        let mut setup = Self::default();
        setup.habits.params.initial_max_path_id = None;
        setup
    }

    /// Both ends offer noq's NAT traversal.
    pub fn nat_traversal() -> Self {
        let mut setup = Self::default();
        setup.transport.nat_traversal(true);
        setup.habits.params.announcements.nat_traversal_addresses = std::num::NonZeroU8::new(8);
        setup
    }

    /// Both ends read ADDITIONAL_ADDRESSES.
    pub fn additional_addresses() -> Self {
        let mut setup = Self::default();
        setup.transport.additional_addresses(true);
        setup.habits.params.announcements.additional_addresses = AdditionalAddressesUse::Supported;
        setup
    }

    /// Both speak Multiflow and not RFC 10069, and the engine binds a flow to each pair of addresses.
    pub fn multiflow() -> Self {
        let mut setup = Self::single_path();
        setup.habits.params.max_sending_uniflow_id = Some(PathId(7));
        setup.transport.extension(Extension::Multiflow).path_policy(policy::by_name("fullmesh").unwrap());
        setup
    }
}

/// Bytes that crossed between the engine and one address.
#[derive(Clone, Copy, Default, Debug)]
pub struct Ledger {
    pub to_engine: u64,
    pub from_engine: u64,
}

/// The engine, the puppet, and what passed between them.
pub struct Rig {
    pub now: Instant,
    pub endpoint: Endpoint,
    pub handle: Option<ConnectionHandle>,
    pub conn: Option<Connection>,
    pub peer: Peer,
    pub seen: Vec<Seen>,
    pub events: Vec<Event>,
    pub endpoint_events: Vec<EndpointEvent>,
    /// Datagrams that the endpoint sent without a connection.
    pub replies: Vec<Vec<u8>>,
    /// All datagrams of the connection, as they left.
    pub wire: Vec<(FourTuple, Option<Ecn>, Vec<u8>)>,
    pub tuple: FourTuple,
    pub ledger: BTreeMap<SocketAddr, Ledger>,
    /// Whether the puppet gets what the engine sends.
    pub deaf: bool,
    /// Addresses of others: what the engine sends there never gets to the puppet.
    pub strangers: Vec<SocketAddr>,
    pub accepts: bool,
    /// Datagrams of a train, at most.
    pub max_segments: usize,
    crypto_sent: BTreeMap<Space, usize>,
    next_cid: BTreeMap<u32, u64>,
}

impl Rig {
    /// Our server, a client that is a puppet.
    pub fn server(setup: Setup) -> Self {
        let mut random = Random::from_u64(setup.seed);
        let mut config = EndpointConfig::from_random(&mut random);
        config.grease_quic_bit(false);
        (setup.endpoint_change)(&mut config);
        let tls = match setup.engine_tls {
            Some(Tls::Server(tls)) => tls,
            _ => server_tls(),
        };
        let mut server = ServerConfig::from_random(tls, &mut random);
        server.transport_config(Arc::new(setup.transport)).migration(setup.migration);
        (setup.server_change)(&mut server);
        let endpoint = Endpoint::new(Arc::new(config), Some(Arc::new(server)), random.fork());
        let tls = setup.peer_tls.unwrap_or_else(|| Tls::Client(client_tls()));
        let peer = Peer::new(Side::Client, tls, setup.habits, setup.seed ^ 0x5eed);
        Self::around(endpoint, None, peer)
    }

    /// Our client, a server that is a puppet.
    pub fn client(setup: Setup) -> Self {
        let mut random = Random::from_u64(setup.seed);
        let mut config = EndpointConfig::from_random(&mut random);
        config.grease_quic_bit(false);
        (setup.endpoint_change)(&mut config);
        let mut endpoint = Endpoint::new(Arc::new(config), None, random.fork());
        let tls = match setup.engine_tls {
            Some(Tls::Client(tls)) => tls,
            _ => client_tls(),
        };
        let mut client = ClientConfig::new(tls);
        client.transport_config(Arc::new(setup.transport));
        let connected = endpoint.connect(Instant::ZERO, client, tuple(PUPPET), "localhost").unwrap();
        let tls = setup.peer_tls.unwrap_or_else(|| Tls::Server(server_tls()));
        let peer = Peer::new(Side::Server, tls, setup.habits, setup.seed ^ 0x5eed);
        let mut rig = Self::around(endpoint, Some(connected), peer);
        rig.pump();
        rig
    }

    fn around(endpoint: Endpoint, connected: Option<(ConnectionHandle, Connection)>, peer: Peer) -> Self {
        let (handle, conn) = connected.unzip();
        Self {
            now: Instant::ZERO,
            endpoint,
            handle,
            conn,
            peer,
            seen: Vec::new(),
            events: Vec::new(),
            endpoint_events: Vec::new(),
            replies: Vec::new(),
            wire: Vec::new(),
            tuple: tuple(PUPPET),
            ledger: BTreeMap::new(),
            deaf: false,
            strangers: Vec::new(),
            accepts: true,
            max_segments: 10,
            crypto_sent: BTreeMap::new(),
            next_cid: BTreeMap::new(),
        }
    }

    /// A finished handshake with our server; ids exchanged for every path.
    pub fn established_server(setup: Setup) -> Self {
        let mut rig = Self::server(setup);
        rig.shake_hands();
        rig
    }

    /// The same with a second path, from `second`, that is proven and has nothing under way.
    pub fn server_with_two_paths(setup: Setup, second: &str) -> Self {
        let mut rig = Self::established_server(setup);
        rig.open_path(1, second, true);
        rig.pass(ms(50));
        rig.ack_all();
        rig
    }

    /// A finished handshake with our client.
    pub fn established_client(setup: Setup) -> Self {
        let mut rig = Self::client(setup);
        rig.shake_hands();
        rig
    }

    pub fn conn(&mut self) -> &mut Connection {
        self.conn.as_mut().expect("a connection")
    }

    /// A datagram arrives at the engine.
    pub fn deliver_from(&mut self, tuple: FourTuple, data: &[u8]) {
        self.ledger.entry(tuple.remote).or_default().to_engine += data.len() as u64;
        let mut reply = Vec::new();
        match self.endpoint.receive(self.now, tuple, None, BytesMut::from(data), &mut reply) {
            Received::Nothing => {}
            Received::Reply(transmit) => {
                self.ledger.entry(transmit.tuple.remote).or_default().from_engine += reply.len() as u64;
                self.replies.push(reply);
            }
            Received::Incoming(mut incoming) if self.accepts => {
                // Means nothing where ids are not steered.
                incoming.set_receiver(Some(1));
                let (handle, conn) = self.endpoint.accept(incoming, self.now, &mut reply, None).unwrap();
                (self.handle, self.conn) = (Some(handle), Some(conn));
            }
            Received::Incoming(incoming) => {
                if let Ok(Some(_)) = self.endpoint.retry(incoming, &mut reply) {
                    self.replies.push(reply);
                }
            }
            Received::Connection(_, input) => {
                let now = self.now;
                self.conn().handle_datagram(now, input);
            }
        }
        self.pump();
    }

    pub fn deliver(&mut self, data: &[u8]) {
        self.deliver_from(self.tuple, data);
    }

    /// Seals packets into one datagram and delivers it.
    pub fn send_all(&mut self, tuple: FourTuple, packets: &[Packet]) {
        let mut datagram = Vec::new();
        packets.iter().for_each(|p| self.peer.seal(p, &mut datagram));
        self.deliver_from(tuple, &datagram);
    }

    pub fn send(&mut self, packet: Packet) {
        self.send_all(self.tuple, &[packet]);
    }

    /// Frames in a 1-RTT packet on path 0.
    pub fn frames(&mut self, payload: impl Into<Vec<u8>>) {
        self.send(Packet::one_rtt(payload));
    }

    /// Takes out of the engine whatever it has, and watches over what must always hold.
    pub fn pump(&mut self) {
        let mut buf = Vec::new();
        let mut sent = 0;
        let mut more = More::Possible;
        loop {
            let Some(conn) = self.conn.as_mut() else { return };
            let deadline = conn.deadline();
            let Some(transmit) = conn.poll_transmit(self.now, self.max_segments, &mut buf) else {
                assert!(more == More::Possible || conn.deadline() == deadline, "the last poll changed the deadline");
                break;
            };
            assert_eq!(more, More::Possible, "a datagram where nothing was to follow");
            more = transmit.more;
            assert_eq!(transmit.size, buf.len());
            assert!(transmit.size > 0, "an empty datagram");
            self.take(&transmit, &buf);
            sent += 1;
            assert!(sent < 20_000, "the engine sends without end");
        }
        self.events.extend(std::iter::from_fn(|| self.conn.as_mut()?.poll()));
        self.tell_endpoint();
        self.settle();
    }

    /// A deadline that has passed must lead to something: after a few rounds it lies ahead.
    fn settle(&mut self) {
        for round in 0.. {
            let now = self.now;
            let Some(conn) = self.conn.as_mut() else { return };
            match conn.deadline() {
                Some(at) if at <= now => conn.on_timeout(now),
                _ => return,
            }
            assert!(round < 8, "the deadline never moves on: {conn:?} {:?}", conn.deadline());
            self.pump_once();
        }
    }

    fn pump_once(&mut self) {
        let mut buf = Vec::new();
        while let Some(transmit) =
            self.conn.as_mut().and_then(|conn| conn.poll_transmit(self.now, self.max_segments, &mut buf))
        {
            self.take(&transmit, &buf);
        }
        self.tell_endpoint();
    }

    /// Takes what the engine sends, one datagram or several.
    fn take(&mut self, transmit: &Transmit, buf: &[u8]) {
        for datagram in buf.chunks(transmit.segment_size.unwrap_or(buf.len())) {
            self.ledger.entry(transmit.tuple.remote).or_default().from_engine += datagram.len() as u64;
            self.wire.push((transmit.tuple, transmit.ecn, datagram.to_vec()));
            if !self.deaf && !self.strangers.contains(&transmit.tuple.remote) {
                let seen = self.peer.open(self.now, transmit.tuple, datagram);
                seen.iter().for_each(|s| s.check_size(self.peer.side));
                self.seen.extend(seen);
            }
        }
    }

    fn tell_endpoint(&mut self) {
        while let Some(event) = self.conn.as_mut().and_then(Connection::poll_endpoint_event) {
            assert!(
                !self.endpoint_events.contains(&EndpointEvent::Drained),
                "{event:?} after Drained, which must come once and last"
            );
            self.endpoint_events.push(event);
            self.endpoint.on_connection_event(self.handle.unwrap(), event);
        }
    }

    /// Lets time pass, timers included.
    pub fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        let mut steps = 0;
        while let Some(at) = self.conn.as_ref().and_then(Connection::deadline).filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.pump();
            steps += 1;
            assert!(steps < 100_000, "too many timers");
        }
        self.now = end;
        self.pump();
    }

    /// A PING on path 0 gets its ack: whatever came before did not silence the engine.
    pub fn assert_answers(&mut self, after: &str) {
        let acks = |rig: &Self| rig.count(|f| matches!(f, Frame::Ack(a) if a.path == plait_base::PathId::ZERO));
        let before = acks(self);
        self.frames([0x01]);
        self.pass(ms(200));
        assert!(acks(self) > before, "no ack after {after}");
    }

    /// The puppet's part of the handshake that is due; true when there was something to say.
    pub fn say_handshake(&mut self) -> bool {
        let mut said = false;
        for (space, kind) in [(Space::Initial, PacketKind::Initial), (Space::Handshake, PacketKind::Handshake)] {
            let from = self.crypto_sent.get(&space).copied().unwrap_or(0);
            let frames = self.peer.crypto_frames(space, from, 1000);
            let total = self.peer.crypto_out.get(&space).map_or(0, Vec::len);
            for mut frame in frames {
                if let Some(ack) = self.peer.ack(space, 0, AckForm::Plain) {
                    frame.extend_from_slice(&ack);
                }
                self.crypto_sent.insert(space, total);
                self.send(Packet::new(kind, frame));
                said = true;
            }
        }
        said
    }

    /// The whole handshake, to confirmation, with ids and acks exchanged.
    pub fn shake_hands(&mut self) {
        for _ in 0..8 {
            if !self.say_handshake() && self.peer.is_done() {
                break;
            }
            self.pass(ms(5));
        }
        assert!(self.peer.is_done(), "the handshake does not finish");
        let mut frames = Vec::new();
        if self.peer.side.is_server() {
            frames.push(0x1e);
        }
        frames.extend(self.peer.ack(Space::Data, 0, AckForm::Plain).unwrap_or_else(|| vec![0x01]));
        self.frames(frames);
        self.give_cids();
        self.pass(ms(30));
        self.ack_all();
        assert!(!self.conn().is_handshaking());
        assert!(!self.conn().is_closed());
    }

    /// Ids for paths 1 to 7 (or one more for path 0 without multipath).
    pub fn give_cids(&mut self) {
        let mut payload = Vec::new();
        if self.conn().is_multipath() {
            let form = if self.conn().paths().is_multiflow() { CidForm::Uniflow } else { CidForm::Path };
            for path in 1..8 {
                self.peer.new_cid(form, path, 0).encode(&mut payload);
                self.next_cid.insert(path, 1);
            }
            self.peer.new_cid(form, 0, 1).encode(&mut payload);
        } else {
            self.peer.new_cid(CidForm::Plain, 0, 1).encode(&mut payload);
        }
        self.frames(payload);
    }

    /// Acknowledges everything received on every path.
    pub fn ack_all(&mut self) {
        let paths: Vec<u32> = self.peer.received.keys().filter(|(s, _)| *s == Space::Data).map(|(_, p)| p.0).collect();
        let form = match (self.conn().is_multipath(), self.conn().paths().is_multiflow()) {
            (_, true) => AckForm::Uniflow,
            (true, false) => AckForm::Path,
            (false, false) => AckForm::Plain,
        };
        let mut payload = Vec::new();
        for path in paths {
            payload.extend(self.peer.ack(Space::Data, path, form).unwrap_or_default());
        }
        if !payload.is_empty() {
            self.frames(payload);
        }
    }

    /// Opens a path from `remote` by a challenge, and validates it both ways when `answer` says so.
    pub fn open_path(&mut self, path: u32, remote: &str, answer: bool) {
        let tuple = tuple(remote);
        let before = self.seen.len();
        let mut payload = vec![0x1a];
        payload.extend_from_slice(&[path as u8; 8]);
        self.send_all(tuple, &[Packet::one_rtt(payload).on(path).padded(1200)]);
        if answer {
            self.answer_challenges(before, tuple, path);
        }
    }

    /// Answers every challenge seen from index `from` on that came on `tuple`.
    pub fn answer_challenges(&mut self, from: usize, tuple: FourTuple, path: u32) {
        let mut payload = Vec::new();
        for seen in self.seen[from..].iter().filter(|s| s.tuple == tuple) {
            for frame in seen.frames() {
                if let Frame::PathChallenge(f) = frame {
                    payload.push(0x1b);
                    payload.extend_from_slice(&f.data);
                }
            }
        }
        if !payload.is_empty() {
            self.send_all(tuple, &[Packet::one_rtt(payload).on(path)]);
        }
    }

    /// The engine's close as the puppet saw it.
    pub fn close_seen(&self) -> Option<CloseCode> {
        self.seen.iter().rev().find_map(|s| {
            s.frames().into_iter().find_map(|f| match f {
                Frame::Close(Close::Transport { code, .. }) => Some(code),
                Frame::Close(Close::Application { code, .. }) => Some(CloseCode(code)),
                _ => None,
            })
        })
    }

    pub fn is_open(&mut self) -> bool {
        !self.conn().is_closed()
    }

    /// Frames of one sort that the engine sent so far.
    pub fn count(&self, wanted: impl Fn(&Frame<'_>) -> bool) -> usize {
        self.seen.iter().map(|s| s.frames().iter().filter(|f| wanted(f)).count()).sum()
    }

    /// RFC 9000 8.1: not one byte beyond three times what came from an address.
    pub fn assert_amplification(&self, remote: &str) {
        let ledger = self.ledger.get(&addr(remote)).copied().unwrap_or_default();
        assert!(ledger.from_engine <= 3 * ledger.to_engine, "{remote}: {ledger:?}");
    }
}
