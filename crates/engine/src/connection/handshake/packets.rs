//! Packets with a long header: what must hold of them, whether their keys may still come, and how they are opened.

use plait_base::limits::MIN_DATAGRAM_BYTES;
use plait_base::observe::DropReason;
use plait_base::{ConnectionId, Side, Space};
use plait_crypto::OpenError;
use plait_path::ReceiveFlow;
use plait_wire::Version;
use plait_wire::header::{PacketKind, PacketSpan, ProtectedHeader};

use super::Handshake;
use crate::connection::receive::opened::OpenedPacket;

impl Handshake {
    /// What must hold of a packet before it is opened; the peer's connection id of a long header.
    pub(crate) fn check_header(
        &self,
        header: &ProtectedHeader,
        kind: PacketKind,
        datagram_bytes: u64,
    ) -> Result<Option<ConnectionId>, DropReason> {
        // RFC 9000 14.1: servers discard Initials that come in smaller datagrams
        let is_small = datagram_bytes < MIN_DATAGRAM_BYTES as u64;
        if kind == PacketKind::Initial && self.side.is_server() && is_small {
            return Err(DropReason::Malformed);
        }
        if header.version().is_some_and(|v| !self.accepts(kind, v)) {
            return Err(DropReason::WrongVersion);
        }
        // RFC 9000 7.2: the peer's source id is fixed by its first packet
        let scid = header.version().and_then(|_| ConnectionId::new(header.scid(&[])));
        if self.peer_scid.is_some_and(|fixed| scid.is_some_and(|scid| fixed != scid)) {
            return Err(DropReason::Malformed);
        }
        Ok(scid)
    }

    /// The peer's source id was in an authentic packet. On a client, what our packets bear from now on, if that is news.
    pub(crate) fn learn_peer_scid(&mut self, scid: ConnectionId, kind: PacketKind) -> Option<ConnectionId> {
        if self.peer_scid.is_some() || kind != PacketKind::Initial {
            return None;
        }
        self.peer_scid = Some(scid);
        if self.side == Side::Server {
            return None;
        }
        self.ids.remote = scid;
        Some(scid)
    }

    /// True for packets whose keys may still come, so that they are kept for a while (RFC 9000 5.2.1, RFC 9001 5.7).
    pub(crate) fn may_get_keys_for(&self, kind: PacketKind) -> bool {
        match kind {
            PacketKind::Initial => false,
            PacketKind::Handshake => !self.has_keys(Space::Handshake) && !self.is_complete(),
            // RFC 9000 12.2: coalesced with the ClientHello that brings its keys
            PacketKind::ZeroRtt => {
                self.side.is_server() && !self.zero_rtt.has_keys() && !self.has_keys(Space::Handshake)
            }
            PacketKind::OneRtt => !self.is_complete(),
        }
    }

    /// Opens a packet with a long header in place. `data` received the 0-RTT packets so far.
    pub(crate) fn open(
        &mut self,
        space: Space,
        span: PacketSpan,
        packet: &mut [u8],
        data: Option<&ReceiveFlow>,
    ) -> Result<OpenedPacket, OpenError> {
        let expected = self.received_in(space, data).map_or(0, |receive| receive.expected());
        let keys = match space {
            Space::Initial => self.initial_open_keys(version_of(packet)),
            space => self.open_keys(space),
        };
        let mut keys = keys.ok_or(OpenError::NoKeys)?;
        OpenedPacket::open(packet, span, expected, &mut keys)
    }

    /// True for a packet that arrived before in its number space; `data` as in [`open`](Self::open).
    pub(crate) fn is_duplicate(&self, space: Space, number: u64, data: Option<&ReceiveFlow>) -> bool {
        self.received_in(space, data).is_some_and(|receive| receive.is_duplicate(number))
    }

    fn received_in<'a>(&'a self, space: Space, data: Option<&'a ReceiveFlow>) -> Option<&'a ReceiveFlow> {
        if space == Space::Data { data } else { self.received(space) }
    }
}

/// The version field of a long header.
fn version_of(packet: &[u8]) -> Version {
    Version(packet.get(1..5).and_then(|field| field.try_into().ok()).map_or(0, u32::from_be_bytes))
}
