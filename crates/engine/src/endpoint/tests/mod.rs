//! The endpoint against clients that are made by hand, byte by byte.

mod decisions;
mod intake;
mod routing;
mod tokens;

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use bytes::BytesMut;
use plait_base::{ConnectionId, FourTuple, Instant, PathId, Random, Side};
use plait_crypto::tls::Identity;
use plait_crypto::{ClientTlsConfig, Layout, ServerTlsConfig, initial_keys};
use plait_wire::frame::Close;
use plait_wire::header::{FixedBit, FixedBitRule};
use plait_wire::{Frame, Frames, OutHeader, ProtectedHeader, Version, varint};

use super::*;
use crate::io::{Input, Transmit};

fn server_tls() -> ServerTlsConfig {
    static TLS: OnceLock<ServerTlsConfig> = OnceLock::new();
    TLS.get_or_init(|| {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (chain, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let identity = Identity::from_pem(chain.as_bytes(), key.as_bytes()).unwrap();
        ServerTlsConfig::builder(identity).alpn(["plait"]).build().unwrap()
    })
    .clone()
}

fn client_tls() -> ClientTlsConfig {
    ClientTlsConfig::builder().accept_any_certificate().alpn(["plait"]).build().unwrap()
}

fn server_config() -> ServerConfig {
    ServerConfig::from_random(server_tls(), &mut Random::from_u64(77))
}

fn endpoint_config() -> EndpointConfig {
    EndpointConfig::from_random(&mut Random::from_u64(78))
}

fn cid(n: u8, len: usize) -> ConnectionId {
    ConnectionId::new(&[n; 20][..len]).unwrap()
}

fn tuple(port: u16) -> FourTuple {
    FourTuple { local: SocketAddr::from(([10, 0, 0, 1], 443)), remote: SocketAddr::from(([192, 0, 2, 1], port)) }
}

fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

/// An endpoint and the buffer of its replies.
struct Bench {
    endpoint: Endpoint,
    reply: Vec<u8>,
    now: Instant,
}

impl Bench {
    fn new(config: EndpointConfig, server: Option<ServerConfig>) -> Self {
        let endpoint = Endpoint::new(Arc::new(config), server.map(Arc::new), Random::from_u64(1));
        Self { endpoint, reply: Vec::new(), now: at(1_000) }
    }

    fn server() -> Self {
        Self::new(endpoint_config(), Some(server_config()))
    }

    /// Hands a datagram in; every answer obeys the 3x rule (RFC 9000 8.1).
    fn receive(&mut self, tuple: FourTuple, data: &[u8]) -> Received {
        let received = self.endpoint.receive(self.now, tuple, None, BytesMut::from(data), &mut self.reply);
        match &received {
            Received::Reply(Transmit { size, .. }) => {
                assert_eq!(*size, self.reply.len());
                assert!(*size > 0 && *size <= 3 * data.len());
            }
            _ => assert!(self.reply.is_empty()),
        }
        received
    }

    fn incoming(&mut self, tuple: FourTuple, data: &[u8]) -> Incoming {
        match self.receive(tuple, data) {
            Received::Incoming(incoming) => incoming,
            other => panic!("not an incoming connection: {other:?}"),
        }
    }

    fn admit(&mut self, incoming: Incoming) -> incoming::Admission {
        self.endpoint.admit(incoming, &mut self.reply, None).map_err(|e| e.cause).unwrap()
    }

    fn deliver(&mut self, tuple: FourTuple, data: &[u8]) -> (ConnectionHandle, Input) {
        match self.receive(tuple, data) {
            Received::Connection(handle, input) => (handle, input),
            other => panic!("not a connection's: {other:?}"),
        }
    }

    fn nothing(&mut self, tuple: FourTuple, data: &[u8]) {
        let received = self.receive(tuple, data);
        assert!(matches!(received, Received::Nothing), "{received:?}");
    }

    /// Sends a datagram that is answered with a Retry; gives id and token of it.
    fn retried(&mut self, tuple: FourTuple, initial: &Craft) -> (ConnectionId, Vec<u8>) {
        let received = self.receive(tuple, &initial.datagram());
        assert!(matches!(received, Received::Reply(t) if t.tuple == tuple), "{received:?}");
        assert!(plait_crypto::retry::verify(initial.version.0, &initial.dcid, &self.reply));
        match ProtectedHeader::parse(&self.reply, 8, FixedBitRule::MustBeSet).unwrap().0 {
            ProtectedHeader::Retry { scid, dcid, token, .. } => {
                assert_eq!(dcid, initial.scid);
                (scid, self.reply[token].to_vec())
            }
            other => panic!("not a Retry: {other:?}"),
        }
    }

    /// The close in the reply buffer, as the client that sent `initial` reads it.
    fn close_code(&mut self, initial: &Craft) -> u64 {
        let packet = &mut self.reply;
        let (header, span) = ProtectedHeader::parse(packet, 8, FixedBitRule::MustBeSet).unwrap();
        assert_eq!(header.dcid(packet), &*initial.scid);
        let keys = initial_keys(initial.version.0, &initial.dcid, Side::Client).unwrap();
        let unmasked = keys.remote.unmask(packet, span.pn_offset).unwrap();
        let payload = keys.remote.open(packet, span.pn_offset + unmasked.pn_len, PathId::ZERO, 0).unwrap();
        match Frames::new(&packet[payload]).next().unwrap().unwrap() {
            Frame::Close(Close::Transport { code, .. }) => code.0,
            other => panic!("not a close: {other:?}"),
        }
    }
}

/// A client's Initial in the making.
#[derive(Clone, Debug)]
struct Craft {
    version: Version,
    dcid: ConnectionId,
    scid: ConnectionId,
    token: Vec<u8>,
    number: u64,
    size: usize,
    frames: Vec<u8>,
}

impl Craft {
    /// One that every server takes; `n` makes its ids.
    fn new(n: u8) -> Self {
        let mut frames = vec![0x06, 0];
        varint::put(&mut frames, 100);
        frames.extend_from_slice(&[1; 100]);
        let (dcid, scid) = (cid(n, 8), cid(n ^ 0xff, 5));
        Self { version: Version::V1, dcid, scid, token: Vec::new(), number: 0, size: 1_200, frames }
    }

    fn with_token(&self, dcid: ConnectionId, token: &[u8]) -> Self {
        Self { dcid, token: token.to_vec(), number: 1, ..self.clone() }
    }

    fn datagram(&self) -> Vec<u8> {
        let mut buf = Vec::new();
        let header = OutHeader::Initial { version: self.version, dcid: self.dcid, scid: self.scid, token: &self.token };
        let marks = header.write(&mut buf, self.number, 2, FixedBit::Set);
        buf.extend_from_slice(&self.frames);
        buf.resize(buf.len().max(self.size - 16), 0);
        let end = buf.len() + 16;
        marks.set_length(&mut buf, end);
        let keys = initial_keys(self.version.0, &self.dcid, Side::Client).unwrap();
        let layout = Layout { start: marks.start, pn_at: marks.pn_at, pn_len: marks.pn_len };
        keys.local.seal_packet(&mut buf, layout, PathId::ZERO, self.number).unwrap();
        buf
    }
}

/// A short header packet of noise.
fn short(cid: &ConnectionId, size: usize) -> Vec<u8> {
    let mut packet = vec![0x41];
    packet.extend_from_slice(cid);
    packet.resize(size, 0xab);
    packet
}
