//! A whole server: datagrams of strangers, of forgers and of honest clients, from many addresses.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use plait_base::{ConnectionId, FourTuple, Instant, Random, Side};
use plait_crypto::{Layout, initial_keys};
use plait_engine::config::RetryPolicy;
use plait_engine::{Connection, ConnectionHandle, Endpoint, EndpointEvent, Incoming, Received, Transmit};
use plait_wire::header::{FixedBit, FixedBitRule};
use plait_wire::{OutHeader, ProtectedHeader, Version};

use crate::ArbitraryInput;
use crate::puppet::frames::put_some;
use crate::puppet::peer::{here, there};
use crate::puppet::settings;
use crate::watch::{Watch, fire, take_datagrams};

const MAX_MOVES: usize = 300;
const MAX_CLIENTS: usize = 2;

/// The input: the retry policy, then datagrams, decisions and time.
pub fn run(input: &[u8]) {
    let mut input = ArbitraryInput::new(input);
    let mut driver = Driver::new(&mut input);
    for _ in 0..MAX_MOVES {
        if input.is_over() {
            break;
        }
        driver.step(&mut input);
        driver.settle();
    }
    driver.shut_down();
}

struct Client {
    endpoint: Endpoint,
    handle: ConnectionHandle,
    connection: Connection,
    address: SocketAddr,
    out: Vec<Vec<u8>>,
}

struct Driver {
    server: Endpoint,
    live: BTreeMap<ConnectionHandle, Connection>,
    undecided: Vec<Incoming>,
    clients: Vec<Client>,
    /// What the server sent, to whom; the clients hear of it when the input says so.
    said: Vec<(SocketAddr, Vec<u8>)>,
    cids: Vec<ConnectionId>,
    token: Vec<u8>,
    watch: Watch,
    now: Instant,
}

impl Driver {
    fn new(input: &mut ArbitraryInput<'_>) -> Self {
        let mut config = settings::server();
        config.retry_policy(match input.byte() % 3 {
            0 => RetryPolicy::Application,
            1 => RetryPolicy::AtLeast(2),
            _ => RetryPolicy::Always,
        });
        let server = Endpoint::new(Arc::new(settings::endpoint(2)), Some(Arc::new(config)), Random::from_u64(12));
        Self {
            server,
            live: BTreeMap::new(),
            undecided: Vec::new(),
            clients: Vec::new(),
            said: Vec::new(),
            cids: Vec::new(),
            token: Vec::new(),
            watch: Watch::default(),
            now: Instant::ZERO + Duration::from_secs(1),
        }
    }

    fn step(&mut self, input: &mut ArbitraryInput<'_>) {
        let from = there(input.byte() % 9);
        match input.byte() % 12 {
            0 => {
                let data = input.piece().to_vec();
                self.padded(input, from, data);
            }
            1 | 2 => self.forged(input, from),
            3 => self.short(input, from),
            4 => {
                let data = [&[0xc0, 0x1a, 0x2a, 0x3a, 0x4a][..], input.piece()].concat();
                self.padded(input, from, data);
            }
            5 | 6 => self.decide(input),
            7 => self.pass(input),
            8 => self.begin(input, from),
            9 => self.answer(input),
            _ => self.deliver(input),
        }
    }

    fn padded(&mut self, input: &mut ArbitraryInput<'_>, from: SocketAddr, mut data: Vec<u8>) {
        if input.flag() {
            data.resize(data.len().max(1_200), input.byte());
        }
        self.receive(from, &data);
    }

    /// An Initial with real protection and whatever frames.
    fn forged(&mut self, input: &mut ArbitraryInput<'_>, from: SocketAddr) {
        let version = if input.flag() { Version::V2 } else { Version::V1 };
        let choice = input.byte();
        let known = self.cids.get(usize::from(choice) % self.cids.len().max(1)).copied();
        let made = ConnectionId::new(&[choice % 8; 20][..usize::from(4 + choice % 17)]);
        let dcid = known.filter(|_| choice & 0x40 != 0).or(made).unwrap_or(ConnectionId::EMPTY);
        let scid = ConnectionId::new(&[choice; 8]).unwrap_or(ConnectionId::EMPTY);
        let token = match input.byte() % 3 {
            0 => Vec::new(),
            1 => self.token.clone(),
            _ => input.piece().to_vec(),
        };
        let mut frames = Vec::new();
        put_some(input, &mut frames, 800);
        let number = u64::from(input.byte());
        let mut buf = Vec::new();
        let marks = OutHeader::Initial { version, dcid, scid, token: &token }.write(&mut buf, number, 2, FixedBit::Set);
        buf.extend_from_slice(&frames);
        let size = if input.one_in(8) { 100 } else { 1_200 };
        buf.resize(buf.len().max(size - 16).max(marks.payload_at() + 4), 0);
        let end = buf.len() + 16;
        marks.set_length(&mut buf, end);
        let layout = Layout { start: marks.start, pn_at: marks.pn_at, pn_len: marks.pn_len };
        let keys = initial_keys(version.0, &dcid, Side::Client).expect("a known version");
        keys.local.seal_packet(&mut buf, layout, plait_base::PathId::ZERO, number).expect("a large packet is sealed");
        self.receive(from, &buf);
    }

    /// A short header, to an id of the server's or to nobody.
    fn short(&mut self, input: &mut ArbitraryInput<'_>, from: SocketAddr) {
        let mut data = vec![0x40 | input.byte() & 0x3f];
        let index = input.below(self.cids.len() + 1);
        match self.cids.get(index) {
            Some(cid) => data.extend_from_slice(cid),
            None => data.extend_from_slice(&[input.byte(); 8]),
        }
        data.extend_from_slice(input.piece());
        self.padded(input, from, data);
    }

    fn decide(&mut self, input: &mut ArbitraryInput<'_>) {
        if self.undecided.is_empty() {
            return;
        }
        let incoming = self.undecided.swap_remove(input.below(self.undecided.len()));
        let (mut reply, bytes) = (Vec::new(), incoming.tuple());
        match input.byte() % 6 {
            0..=2 => {
                if incoming.remote_address_validated() {
                    self.watch.on_proven(bytes.remote);
                }
                match self.server.accept(incoming, self.now, &mut reply, None) {
                    Ok((handle, connection)) => {
                        assert!(self.live.insert(handle, connection).is_none(), "a handle in use");
                    }
                    Err(error) => self.replied(error.reply, &reply),
                }
            }
            3 => match self.server.retry(incoming, &mut reply) {
                Ok(transmit) => self.replied(transmit, &reply),
                Err(error) => self.server.ignore(*error.0),
            },
            4 => {
                let transmit = self.server.refuse(incoming, &mut reply);
                self.replied(transmit, &reply);
            }
            _ => self.server.ignore(incoming),
        }
    }

    fn replied(&mut self, transmit: Option<Transmit>, bytes: &[u8]) {
        let Some(transmit) = transmit else { return };
        assert_eq!(transmit.size, bytes.len());
        self.watch.on_sent(transmit.tuple.remote, transmit.size);
        if let Ok((ProtectedHeader::Retry { token, .. }, _)) = ProtectedHeader::parse(bytes, 8, FixedBitRule::Ignored) {
            self.token = bytes[token].to_vec();
        }
        self.said.push((transmit.tuple.remote, bytes.to_vec()));
    }

    fn receive(&mut self, from: SocketAddr, data: &[u8]) {
        self.watch.on_received(from, data.len());
        let tuple = FourTuple { local: here(0), remote: from };
        let mut reply = Vec::new();
        match self.server.receive(self.now, tuple, None, BytesMut::from(data), &mut reply) {
            Received::Nothing => assert!(reply.is_empty()),
            Received::Connection(handle, input) => {
                let connection = self.live.get_mut(&handle).expect("a handle that was given out");
                connection.handle_datagram(self.now, input);
            }
            Received::Incoming(incoming) => self.undecided.push(incoming),
            Received::Reply(transmit) => {
                assert!(transmit.size > 0 && transmit.size <= 3 * data.len(), "a reply three times as large");
                self.replied(Some(transmit), &reply);
            }
        }
    }

    /// An honest client begins.
    fn begin(&mut self, input: &mut ArbitraryInput<'_>, address: SocketAddr) {
        if self.clients.len() >= MAX_CLIENTS {
            return;
        }
        let seed = 100 + self.clients.len() as u64;
        let mut endpoint = Endpoint::new(Arc::new(settings::endpoint(seed)), None, Random::from_u64(seed));
        let mut config = settings::client();
        config.version(if input.flag() { Version::V2 } else { Version::V1 });
        let tuple = FourTuple { local: address, remote: here(0) };
        let (handle, connection) =
            endpoint.connect(self.now, config, tuple, "localhost").expect("a client may connect");
        self.clients.push(Client { endpoint, handle, connection, address, out: Vec::new() });
    }

    /// The clients hear what the server said to their addresses, perhaps not all of it.
    fn answer(&mut self, input: &mut ArbitraryInput<'_>) {
        let losses = input.byte();
        let said = std::mem::take(&mut self.said);
        for (n, (to, data)) in said.into_iter().enumerate() {
            let Some(client) = self.clients.iter_mut().find(|client| client.address == to) else { continue };
            if losses >> (n % 8) & 1 == 1 {
                continue;
            }
            let tuple = FourTuple { local: to, remote: here(0) };
            let mut reply = Vec::new();
            let data = BytesMut::from(&data[..]);
            if let Received::Connection(_, input) = client.endpoint.receive(self.now, tuple, None, data, &mut reply) {
                client.connection.handle_datagram(self.now, input);
            }
        }
    }

    /// What the clients said arrives: as it is, changed, twice, or from elsewhere.
    fn deliver(&mut self, input: &mut ArbitraryInput<'_>) {
        let Some(client) = self.clients.get_mut(input.below(MAX_CLIENTS)) else { return };
        let (mut out, address) = (std::mem::take(&mut client.out), client.address);
        for mut data in out.drain(..) {
            let (fate, mut from) = (input.byte(), address);
            match fate {
                0 => continue,
                1 => {
                    let at = usize::from(input.u16()) % data.len();
                    data[at] ^= input.byte();
                }
                2 => data.truncate(usize::from(input.u16()) % data.len()),
                3 => from = there(input.byte() % 9),
                4 => self.receive(address, &data),
                _ => {}
            }
            // Handshake packets and what follows show that their sender read our Initial.
            if carries_proof(&data) {
                self.watch.on_proven(from);
                self.watch.on_proven(address);
            }
            if !data.is_empty() {
                self.receive(from, &data);
            }
        }
    }

    fn pass(&mut self, input: &mut ArbitraryInput<'_>) {
        self.now += match input.byte() % 3 {
            0 => Duration::from_millis(u64::from(input.byte())),
            1 => Duration::from_millis(u64::from(input.u16() % 20_000)),
            _ => self.next_deadline().map_or(Duration::ZERO, |at| at.since(self.now)),
        };
        self.fire();
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.live.values().filter_map(Connection::deadline).min()
    }

    fn fire(&mut self) {
        let clients = self.clients.iter_mut().map(|client| &mut client.connection);
        self.live.values_mut().chain(clients).for_each(|connection| fire(self.now, connection));
    }

    fn settle(&mut self) {
        let Self { server, live, clients, said, cids, watch, now, .. } = self;
        live.retain(|handle, connection| {
            take_datagrams(*now, connection, |transmit, data| {
                watch.on_sent(transmit.tuple.remote, data.len());
                said.push((transmit.tuple.remote, data.to_vec()));
            });
            while connection.poll().is_some() {}
            while let Some(event) = connection.poll_endpoint_event() {
                match event {
                    EndpointEvent::Register { cid, .. } => cids.push(cid),
                    EndpointEvent::Retire { cid } => cids.retain(|known| *known != cid),
                    _ => {}
                }
                server.on_connection_event(*handle, event);
            }
            !connection.is_drained()
        });
        for client in clients {
            take_datagrams(*now, &mut client.connection, |_, data| client.out.push(data.to_vec()));
            while client.connection.poll().is_some() {}
            while let Some(event) = client.connection.poll_endpoint_event() {
                client.endpoint.on_connection_event(client.handle, event);
            }
        }
        said.drain(..said.len().saturating_sub(64));
        assert!(server.connections() == live.len() && live.len() <= 8, "connections without a home");
        assert!(server.incoming() <= 8 && cids.len() <= 4_096);
    }

    /// Everybody goes away; the server forgets them all.
    fn shut_down(&mut self) {
        self.clients.clear();
        for incoming in std::mem::take(&mut self.undecided) {
            self.server.ignore(incoming);
        }
        for _ in 0..20_000 {
            self.settle();
            if self.live.is_empty() {
                assert_eq!((self.server.connections(), self.server.incoming()), (0, 0));
                return;
            }
            let deadline = self.next_deadline().expect("a silent client is given up some time");
            self.now = self.now.max(deadline);
            self.fire();
        }
        panic!("connections that outlive their clients: {:?}", self.live);
    }
}

/// True when a datagram holds a Handshake or 1-RTT packet.
fn carries_proof(datagram: &[u8]) -> bool {
    let mut rest = datagram;
    while let Ok((header, span)) = ProtectedHeader::parse(rest, 8, FixedBitRule::Ignored) {
        if matches!(header, ProtectedHeader::Handshake { .. } | ProtectedHeader::Short { .. }) {
            return true;
        }
        rest = &rest[span.end..];
    }
    false
}

/// Strangers, forgers, Retry and whole handshakes.
pub fn seeds() -> Vec<Vec<u8>> {
    let talk = [0, 10, 0, 9, 9, 9, 9, 9, 0, 5, 0, 0, 0, 9, 0];
    let handshake = |policy: u8, version: u8| {
        let mut bytes = vec![policy, 0, 8, version];
        (0..8).for_each(|_| bytes.extend(talk));
        bytes.extend([0, 7, 2, 0, 0, 7, 1, 40, 0]);
        bytes
    };
    let forged = (0..12).flat_map(|i| [i % 9, 1, 0, i, i % 3, 5, 8, 0, 1, 1, 0, 5, i, i % 6]);
    let strangers = (0..12).flat_map(|i| [i, 4, 9, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 0, i, 3, 9, 0, 7, 3, 1, 2, 3, 1]);
    vec![
        handshake(0, 0),
        handshake(0, 1),
        handshake(2, 0),
        [0].into_iter().chain(forged.clone()).collect(),
        [2].into_iter().chain(forged).collect(),
        [1].into_iter().chain(strangers).collect(),
    ]
}
