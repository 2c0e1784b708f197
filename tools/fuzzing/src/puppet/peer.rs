//! An engine with a complete handshake behind it, and the peer that holds the keys and follows no rule.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use plait_base::{ConnectionId, FourTuple, Instant, PathId, Random, RangeSet, Side};
use plait_crypto::{Layout, OneRttKeys, PhaseMark, SealMark};
use plait_engine::{Connection, ConnectionHandle, Endpoint, EndpointEvent, Received};
use plait_wire::frame::{AckForm, Frame, Frames, OutAck, PathResponse};
use plait_wire::header::{FixedBit, FixedBitRule, PacketKind, packet_number};
use plait_wire::{Encode, OutHeader, ProtectedHeader};

use super::settings;
use crate::watch::{Watch, fire, take_datagrams};

const CID_LEN: usize = 8;
/// Packet numbers of the puppet on path 0 begin above those of the engine that it replaces.
const FIRST_NUMBER: u64 = 1_000;

/// Address `n` of the engine.
pub fn here(n: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, n, 1], 443))
}

/// Address `n` of the peer; some differ in the port alone.
pub fn there(n: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2 + n / 3, 1], 4_000 + u16::from(n % 3)))
}

/// The end under test.
pub struct EngineUnderTest {
    /// Its endpoint.
    pub endpoint: Endpoint,
    /// Its connection.
    pub connection: Connection,
    handle: ConnectionHandle,
    /// Virtual time.
    pub now: Instant,
    /// Bytes by address.
    pub watch: Watch,
    /// Ids by which it is reached.
    pub cids: Vec<(PathId, ConnectionId)>,
    /// Events told to the application.
    pub events: u64,
}

/// The end that fuzz input moves.
pub struct Peer {
    keys: OneRttKeys,
    cids: Vec<(PathId, ConnectionId)>,
    received: BTreeMap<PathId, RangeSet>,
    numbers: BTreeMap<PathId, u64>,
    phases: BTreeMap<PathId, PhaseMark>,
    seals: BTreeMap<PathId, SealMark>,
    challenges: VecDeque<([u8; 8], SocketAddr)>,
}

/// Lets two engines complete their handshake; the one of `side` remains, the other is replaced by a puppet.
pub fn meet(side: Side) -> (EngineUnderTest, Peer) {
    let now = Instant::ZERO + Duration::from_secs(1);
    let (at_client, at_server) = match side {
        Side::Client => (here(0), there(0)),
        Side::Server => (there(0), here(0)),
    };
    let tuple = FourTuple { local: at_client, remote: at_server };
    let mut client_end = Endpoint::new(Arc::new(settings::endpoint(1)), None, Random::from_u64(11));
    let (handle, connection) =
        client_end.connect(now, settings::client(), tuple, "localhost").expect("a client may connect");
    let mut client = EngineUnderTest::new(client_end, handle, connection, now);
    let mut endpoint =
        Endpoint::new(Arc::new(settings::endpoint(2)), Some(Arc::new(settings::server())), Random::from_u64(12));
    // A client chooses whom it talks to.
    client.watch.on_proven(at_server);
    let mut flight = Vec::new();
    client.settle(&mut |_, data| flight.push(data.to_vec()));
    let first = flight.first().expect("a first flight");
    let mut reply = Vec::new();
    let back = FourTuple { local: at_server, remote: at_client };
    let Received::Incoming(incoming) = endpoint.receive(now, back, None, BytesMut::from(&first[..]), &mut reply) else {
        panic!("a genuine client is let in")
    };
    let (handle, connection) = endpoint.accept(incoming, now, &mut reply, None).expect("a genuine client");
    let mut server = EngineUnderTest::new(endpoint, handle, connection, now);
    server.watch.on_proven(at_client);
    let mut peer = Peer::new(side.peer());
    let mut flight: Vec<Vec<u8>> = flight.drain(1..).collect();
    for _ in 0..40 {
        flight.drain(..).for_each(|data| server.receive(back, &data));
        let mut answers = Vec::new();
        server.settle(&mut |_, data| answers.push(data.to_vec()));
        answers.iter().for_each(|data| client.receive(tuple, data));
        client.settle(&mut |_, data| flight.push(data.to_vec()));
        let (ours, theirs) = if side.is_client() { (&flight, &server.cids) } else { (&answers, &client.cids) };
        peer.cids.clone_from(theirs);
        ours.iter().for_each(|data| peer.hear(now, back.remote, data));
        if flight.is_empty() && answers.is_empty() {
            break;
        }
    }
    assert!(!client.connection.is_handshaking() && !server.connection.is_handshaking());
    assert!(client.connection.is_multipath() && server.connection.is_multipath());
    peer.challenges.clear();
    (if side.is_client() { client } else { server }, peer)
}

impl EngineUnderTest {
    fn new(endpoint: Endpoint, handle: ConnectionHandle, connection: Connection, now: Instant) -> Self {
        Self { endpoint, connection, handle, now, watch: Watch::default(), cids: Vec::new(), events: 0 }
    }

    /// A datagram arrives.
    pub fn receive(&mut self, tuple: FourTuple, data: &[u8]) {
        self.watch.on_received(tuple.remote, data.len());
        let mut reply = Vec::new();
        match self.endpoint.receive(self.now, tuple, None, BytesMut::from(data), &mut reply) {
            Received::Connection(handle, input) if handle == self.handle => {
                self.connection.handle_datagram(self.now, input);
            }
            Received::Connection(..) | Received::Nothing => {}
            Received::Incoming(incoming) => self.endpoint.ignore(incoming),
            Received::Reply(transmit) => {
                assert!(transmit.size == reply.len() && transmit.size <= 3 * data.len());
                self.watch.on_sent(transmit.tuple.remote, transmit.size);
            }
        }
    }

    /// Takes all that the connection wants to say; `each` gets its datagrams with their destinations.
    pub fn settle(&mut self, each: &mut dyn FnMut(SocketAddr, &[u8])) {
        let Self { endpoint, connection, handle, now, watch, cids, events } = self;
        take_datagrams(*now, connection, |transmit, data| {
            watch.on_sent(transmit.tuple.remote, data.len());
            each(transmit.tuple.remote, data);
        });
        while connection.poll().is_some() {
            *events += 1;
            assert!(*events < 1_000_000, "events without end");
        }
        while let Some(event) = connection.poll_endpoint_event() {
            match event {
                EndpointEvent::Register { cid, path } => cids.push((path, cid)),
                EndpointEvent::Retire { cid } => cids.retain(|(_, known)| *known != cid),
                _ => {}
            }
            endpoint.on_connection_event(*handle, event);
        }
        assert!(cids.len() <= 1_024, "connection ids without end");
    }

    /// Moves time on and fires what is due.
    pub fn pass(&mut self, time: Duration) {
        self.now += time;
        fire(self.now, &mut self.connection);
    }

    /// Without a peer every connection ends, and its endpoint forgets it.
    pub fn shut_down(&mut self) {
        for _ in 0..20_000 {
            self.settle(&mut |_, _| {});
            if self.connection.is_drained() {
                assert_eq!(self.endpoint.connections(), 0, "a drained connection is forgotten");
                return;
            }
            let deadline = self.connection.deadline().expect("a silent peer is given up some time");
            self.now = self.now.max(deadline);
            fire(self.now, &mut self.connection);
        }
        panic!("a connection that outlives its silent peer: {:?}", self.connection);
    }
}

impl Peer {
    fn new(side: Side) -> Self {
        Self {
            keys: OneRttKeys::null(side),
            cids: Vec::new(),
            received: BTreeMap::new(),
            numbers: BTreeMap::from([(PathId::ZERO, FIRST_NUMBER)]),
            phases: BTreeMap::new(),
            seals: BTreeMap::new(),
            challenges: VecDeque::new(),
        }
    }

    /// Seals frames in a 1-RTT packet to one of the engine's ids.
    pub fn packet(&mut self, (path, dcid): (PathId, ConnectionId), frames: &[u8]) -> Vec<u8> {
        self.note_cids(frames);
        let number = self.numbers.entry(path).or_default();
        *number += 1;
        let mut buf = Vec::new();
        let header = OutHeader::Short { dcid, spin: false, key_phase: false };
        let marks = header.write(&mut buf, *number, 4, FixedBit::Set);
        buf.extend_from_slice(frames);
        let layout = Layout { start: marks.start, pn_at: marks.pn_at, pn_len: marks.pn_len };
        let seal = self.seals.entry(path).or_default();
        self.keys.seal_packet(&mut buf, layout, path, *number, seal).expect("the puppet's packets are sealed");
        buf
    }

    /// Goes on to the next key phase, allowed or not.
    pub fn update_keys(&mut self, now: Instant) {
        self.keys.advance_to(self.keys.phase() + 1, now, Duration::from_secs(1));
    }

    /// Remembers ids that the frames give to the engine.
    fn note_cids(&mut self, frames: &[u8]) {
        for frame in Frames::new(frames) {
            if let Ok(Frame::NewCid(new)) = frame {
                self.cids.retain(|known| *known != (new.path, new.cid));
                self.cids.push((new.path, new.cid));
            }
        }
    }

    /// Opens what the engine sent to `to`: its frames must be well formed.
    pub fn hear(&mut self, now: Instant, to: SocketAddr, datagram: &[u8]) {
        let mut rest = datagram;
        while let Ok((header, span)) = ProtectedHeader::parse(rest, CID_LEN, FixedBitRule::Ignored) {
            if matches!(header, ProtectedHeader::Short { .. }) {
                return self.hear_packet(now, to, rest);
            }
            rest = &rest[span.end..];
        }
    }

    fn hear_packet(&mut self, now: Instant, to: SocketAddr, packet: &[u8]) {
        let fits = |cid: &ConnectionId| packet[1..].starts_with(cid);
        let ids: Vec<_> = self.cids.iter().filter(|(_, cid)| fits(cid)).copied().collect();
        for (path, cid) in ids {
            let mut plain = packet.to_vec();
            let pn_at = 1 + cid.len();
            let Ok(unmasked) = self.keys.unmask(&mut plain, pn_at) else { continue };
            let received = self.received.entry(path).or_default();
            let expected = received.max().map_or(0, |largest| largest + 1);
            let number = packet_number::expand(unmasked.truncated as u32, unmasked.pn_len, expected);
            let (header_len, phase) = (pn_at + unmasked.pn_len, self.phases.entry(path).or_default());
            let guard = Duration::from_secs(1);
            let Ok(opened) = self.keys.open(&mut plain, header_len, path, number, phase, now, guard) else { continue };
            received.insert_one(number);
            return self.read(to, &plain[header_len..header_len + opened.payload_bytes]);
        }
    }

    fn read(&mut self, to: SocketAddr, payload: &[u8]) {
        for frame in Frames::in_packet(payload, PacketKind::OneRtt) {
            if let Frame::PathChallenge(challenge) = frame.expect("the engine sends frames that its peer may get") {
                self.challenges.push_back((challenge.data, to));
            }
        }
    }

    /// Answers to the oldest challenges; their addresses count as proven from now on.
    pub fn put_responses(&mut self, count: usize, watch: &mut Watch, out: &mut Vec<u8>) {
        for _ in 0..count {
            let Some((data, to)) = self.challenges.pop_front() else { return };
            watch.on_proven(to);
            Frame::PathResponse(PathResponse { data }).encode(out);
        }
    }

    /// Acks of all that was heard on a path.
    pub fn put_ack(&self, path: PathId, form: AckForm, out: &mut Vec<u8>) {
        if let Some(ranges) = self.received.get(&path) {
            OutAck { form, path, ranges, delay: 10, ecn: None }.encode(400, out);
        }
    }
}
