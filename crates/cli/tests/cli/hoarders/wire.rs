//! A puppet on a real socket.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use plait_base::{CloseCode, FourTuple, Instant, Side, Space};
use plait_crypto::ClientTlsConfig;
use plait_wire::frame::{AckForm, Close};
use plait_wire::{Frame, PacketKind, TransportParameters};

use crate::puppet::{Habits, Packet, Peer, Seen, Tls};

/// Packets sent before the server gets a moment, so that its socket's buffer does not overflow.
const BURST: u64 = 16;

/// A client made by hand.
pub struct Wire {
    socket: UdpSocket,
    server: SocketAddr,
    pub peer: Peer,
    crypto_sent: BTreeMap<Space, usize>,
    sent: u64,
    /// The server closed the connection, and how.
    pub closed: Option<CloseCode>,
}

/// Parameters of a client that gives `window` bytes of credit on each stream and on the connection.
pub fn params(window: u64) -> TransportParameters {
    let mut params = TransportParameters::default();
    params.limits.max_data = window;
    params.limits.max_stream_data_bidi_local = window;
    params.limits.max_streams_uni = 3;
    params.max_udp_payload_bytes = 1_472;
    params
}

impl Wire {
    /// A client that has said nothing yet. `seed` must differ from client to client.
    pub fn new(server: SocketAddr, alpn: &str, params: TransportParameters, seed: u64) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(server).unwrap();
        let tls = ClientTlsConfig::builder().accept_any_certificate().alpn([alpn]).no_resumption().build().unwrap();
        let peer = Peer::new(Side::Client, Tls::Client(tls), Habits { params, ..Habits::default() }, seed);
        Self { socket, server, peer, crypto_sent: BTreeMap::new(), sent: 0, closed: None }
    }

    /// A client whose handshake is done.
    pub fn connect(server: SocketAddr, alpn: &str, params: TransportParameters, seed: u64) -> Self {
        let mut wire = Self::new(server, alpn, params, seed);
        for _ in 0..400 {
            wire.say_handshake();
            let seen = wire.listen(Duration::from_millis(25));
            if seen.iter().any(|s| s.has(|f| matches!(f, Frame::HandshakeDone))) {
                return wire;
            }
        }
        panic!("the handshake does not end");
    }

    /// Says what is due of the handshake, and acks what came.
    pub fn say_handshake(&mut self) {
        for (space, kind) in [(Space::Initial, PacketKind::Initial), (Space::Handshake, PacketKind::Handshake)] {
            let from = self.crypto_sent.get(&space).copied().unwrap_or(0);
            for mut frame in self.peer.crypto_frames(space, from, 1_000) {
                frame.extend(self.peer.ack(space, 0, AckForm::Plain).unwrap_or_default());
                self.send(&[Packet::new(kind, frame)]);
            }
            self.crypto_sent.insert(space, self.peer.crypto_out.get(&space).map_or(0, Vec::len));
        }
        if self.peer.is_done() {
            let ack = self.peer.ack(Space::Data, 0, AckForm::Plain).unwrap_or_else(|| vec![0x01]);
            self.send(&[Packet::one_rtt(ack)]);
        }
    }

    /// A datagram as it is.
    pub fn raw(&mut self, datagram: &[u8]) {
        // A refusal of an earlier one may surface here.
        let _ = self.socket.send(datagram);
        self.sent += 1;
        if self.sent.is_multiple_of(BURST) {
            self.listen(Duration::from_millis(1));
        }
    }

    /// Packets in one datagram.
    pub fn send(&mut self, packets: &[Packet]) {
        let mut datagram = Vec::new();
        packets.iter().for_each(|packet| self.peer.seal(packet, &mut datagram));
        self.raw(&datagram);
    }

    /// Acknowledges all that came.
    pub fn ack(&mut self) {
        let ack = self.peer.ack(Space::Data, 0, AckForm::Plain).unwrap_or_default();
        self.frames(ack);
    }

    /// Frames in a packet of their own.
    pub fn frames(&mut self, payload: Vec<u8>) {
        self.send(&[Packet::one_rtt(payload)]);
    }

    /// What the server says until it is silent for so long.
    pub fn listen(&mut self, silence: Duration) -> Vec<Seen> {
        let mut seen = Vec::new();
        let mut datagram = [0; 2048];
        let _ = self.socket.set_read_timeout(Some(silence));
        let tuple = FourTuple { local: self.server, remote: self.socket.local_addr().unwrap() };
        while let Ok(len) = self.socket.recv(&mut datagram) {
            seen.extend(self.peer.open(Instant::ZERO, tuple, &datagram[..len]));
        }
        for frame in seen.iter().flat_map(Seen::frames) {
            match frame {
                Frame::Close(Close::Transport { code, .. }) => self.closed = Some(code),
                Frame::Close(Close::Application { code, .. }) => self.closed = Some(CloseCode(code)),
                _ => {}
            }
        }
        seen
    }
}
