//! A datagram on its way in: split into packets, opened, deduplicated, its frames handed to dispatch.

pub(crate) mod acked;
pub(crate) mod bulk;
pub(crate) mod coalesced;
pub(crate) mod dispatch;
mod loans;
pub(crate) mod open;
pub(crate) mod opened;
mod packet;
mod saved;
pub(crate) mod train;

use std::net::SocketAddr;

use bytes::{Bytes, BytesMut};
use plait_base::limits::{MAX_DEFERRED_BYTES, MAX_DEFERRED_PACKETS};
use plait_base::observe::{DropReason, TraceEvent};
use plait_base::{ConnectionId, Ecn, FourTuple, Instant, PathId, Space};
use plait_path::table::{Admission, SlotPlace};
use plait_wire::header::{PacketKind, PacketSpan, ProtectedHeader, stateless_reset};

use crate::connection::Connection;
use crate::connection::lifecycle::ConnectionError;
use crate::io::{EndpointEvent, Input, InputKind};
use bulk::BulkRoom;
use coalesced::{Coalesced, NoFurtherPacket};
use loans::Loans;
use open::Refusal;
use opened::TrainPacket;
use saved::{SavedPacket, SavedPackets};

/// The latency spin bit of a short header (RFC 9000 17.4).
const SPIN_BIT: u8 = 0x20;

/// What waits on its way in.
#[derive(Default)]
pub(crate) struct Receive {
    pub(crate) saved_packets: SavedPackets,
    pub(crate) loans: Loans,
    /// Packets with frames about paths, while not all paths are here, and packets on paths whose connection ids are to come.
    pub(crate) deferred: Vec<Deferred>,
    /// Room for the datagrams of a train; empty between two.
    train: Vec<TrainPacket>,
    bulk: BulkRoom,
}

impl Receive {
    pub(crate) fn shrink_to_fit(&mut self) {
        self.saved_packets.shrink_to_fit();
        (self.train, self.bulk) = (Vec::new(), BulkRoom::default());
    }

    /// True where packets wait for keys, for all paths to be here, or for the connection ids of their own.
    fn has_waiting(&self) -> bool {
        !self.saved_packets.is_empty() || !self.deferred.is_empty()
    }

    /// Keeps a packet that cannot be read yet, out of its receive buffer, which may be much larger. It is not acknowledged before:
    /// where too many wait, the peer says it again.
    fn defer(&mut self, at: &Arrival, packet_bytes: usize, payload: &[u8]) {
        let held: usize = self.deferred.iter().map(|packet| packet.payload.len()).sum();
        if self.deferred.len() < MAX_DEFERRED_PACKETS && held + payload.len() <= MAX_DEFERRED_BYTES {
            self.deferred.push(Deferred { at: *at, packet_bytes, payload: Bytes::copy_from_slice(payload) });
        }
    }
}

/// A packet that was opened and not read.
pub(crate) struct Deferred {
    pub(crate) at: Arrival,
    pub(crate) packet_bytes: usize,
    pub(crate) payload: Bytes,
}

/// What the network says of a datagram.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Envelope {
    /// Path of the first packet's connection id.
    pub(crate) path: PathId,
    pub(crate) tuple: FourTuple,
    pub(crate) ecn: Option<Ecn>,
    pub(crate) bytes: u64,
    /// Where that path stands in the table, looked up once.
    pub(crate) place: Option<SlotPlace>,
}

/// A packet's circumstances, known before its frames are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) now: Instant,
    pub(crate) path: PathId,
    /// Where the path stands in the table; none for an id that is not there.
    pub(crate) place: Option<SlotPlace>,
    pub(crate) tuple: FourTuple,
    pub(crate) ecn: Option<Ecn>,
    pub(crate) space: Space,
    pub(crate) kind: PacketKind,
    pub(crate) dcid: ConnectionId,
    /// Bytes of the datagram.
    pub(crate) bytes: u64,
    pub(crate) number: u64,
    /// The spin bit of a short header.
    pub(crate) spin: bool,
    /// What is to become of a 1-RTT packet, by its path.
    pub(crate) admission: Admission,
    /// True for a 1-RTT packet numbered above all others of its path.
    pub(crate) newest: bool,
    /// True for an Initial that bears a token.
    pub(crate) has_token: bool,
}

impl Arrival {
    fn new(now: Instant, envelope: &Envelope, kind: PacketKind, dcid: ConnectionId) -> Self {
        let Envelope { path, tuple, ecn, bytes, place } = *envelope;
        let (space, admission) = (kind.space(), Admission::Unknown);
        Self {
            now,
            path,
            place,
            tuple,
            ecn,
            space,
            kind,
            dcid,
            bytes,
            number: 0,
            spin: false,
            admission,
            newest: false,
            has_token: false,
        }
    }

    /// RFC 9001 5.4.1: header protection leaves the spin bit as it is.
    pub(crate) fn take_spin(&mut self, packet: &[u8]) {
        self.spin = packet.first().is_some_and(|first| first & SPIN_BIT != 0);
    }
}

/// The end of a datagram whose first packet could not be read: a stateless reset token, perhaps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ending {
    remote: SocketAddr,
    last_bytes: Option<[u8; 16]>,
}

impl Ending {
    /// RFC 9000 10.3.1: where the first packet cannot be read, the datagram may be a stateless reset.
    pub(crate) fn of(tuple: FourTuple, datagram: &[u8]) -> Self {
        let last_bytes = datagram.last_chunk().copied().filter(|_| datagram.len() >= stateless_reset::MIN_LEN);
        Self { remote: tuple.remote, last_bytes }
    }
}

impl Connection {
    /// Takes in what the endpoint found to be this connection's: a datagram, or several. Returns the memory that they came in
    /// where it was taken as a whole: once what they brought is read, nobody else holds it, and it can be received into again.
    pub fn handle_datagram(&mut self, now: Instant, input: Input) -> Option<Bytes> {
        self.receive.loans.forget_read(&self.streams, &self.datagrams);
        let Input { kind, path, tuple, ecn, mut data, segment_bytes, .. } = input;
        let mut envelope = Envelope { path, tuple, ecn, bytes: 0, place: self.paths.table.place(path) };
        match kind {
            InputKind::Packets => {}
            InputKind::StatelessReset => self.drain(now, ConnectionError::Reset),
            InputKind::AddressProven if self.lifecycle.is_open() => {
                self.paths.on_proven_elsewhere(now, tuple);
                self.on_path_news(now);
            }
            InputKind::AddressProven => {}
        }
        if kind != InputKind::Packets {
            self.after_input(now, &envelope);
            return None;
        }
        while !data.is_empty() {
            envelope.place = self.paths.table.place(path);
            if self.lifecycle.is_open() && envelope.is_train(&data, &self.paths) {
                envelope.bytes = data.len() as u64;
                let memory = self.read_train(now, &envelope, data, segment_bytes.max(1));
                self.after_input(now, &envelope);
                return Some(memory);
            }
            let datagram = data.split_to(segment_bytes.clamp(1, data.len()));
            envelope.bytes = datagram.len() as u64;
            self.read_packets(now, &envelope, datagram);
            // What a datagram of the handshake leads to may be what the next one needs.
            self.after_input(now, &envelope);
        }
        None
    }

    /// A datagram that is no train, as those of the handshake.
    #[inline(never)]
    fn read_packets(&mut self, now: Instant, envelope: &Envelope, mut data: BytesMut) {
        if self.lifecycle.is_drained() {
            return;
        }
        self.lifecycle.on_heard_while_closing();
        let &Envelope { tuple, place, .. } = envelope;
        let source = self.paths.on_datagram(place, &tuple, envelope.bytes);
        // RFC 9000 9: a client hears only from addresses that it chose
        let may_move = || self.handshake.is_confirmed() && self.settings.lets_clients_move_to(tuple.local);
        if source.is_elsewhere() && !may_move() {
            return self.events.on_dropped(now, data.len(), DropReason::WrongAddress);
        }
        let mut ending = Ending::of(tuple, &data);
        let mut packets = Coalesced::default();
        while !data.is_empty() && !self.lifecycle.is_drained() {
            let (header, span) = match packets.next(&data, self.handshake.cid_len(), self.settings.fixed_bit_rule()) {
                Ok(packet) => packet,
                Err(NoFurtherPacket::Malformed) => {
                    return self.on_unread(now, ending, data.len(), DropReason::Malformed);
                }
                Err(NoFurtherPacket::OtherConnection) => {
                    return self.events.on_dropped(now, data.len(), DropReason::Malformed);
                }
            };
            let packet = data.split_to(span.end.min(data.len()));
            let bytes = packet.len();
            if let Err(why) = self.on_packet(now, envelope, &header, span, packet) {
                self.on_unread(now, ending, bytes, why);
            }
            ending.last_bytes = None;
        }
    }

    fn on_packet(
        &mut self,
        now: Instant,
        envelope: &Envelope,
        header: &ProtectedHeader,
        span: PacketSpan,
        packet: BytesMut,
    ) -> Result<(), DropReason> {
        let kind = match header {
            ProtectedHeader::VersionNegotiation { versions, .. } => {
                // RFC 9000 17.2.1: the server echoes the id that we chose for it
                if header.scid(&packet) != &*self.handshake.ids.remote {
                    return Err(DropReason::Malformed);
                }
                self.on_version_negotiation(now, packet.get(versions.clone()).unwrap_or_default());
                return Ok(());
            }
            ProtectedHeader::Retry { version, scid, token, .. } => {
                let token = Bytes::copy_from_slice(packet.get(token.clone()).unwrap_or_default());
                self.on_retry(now, *version, *scid, token, &packet);
                return Ok(());
            }
            ProtectedHeader::UnknownVersion { .. } => return Err(DropReason::WrongVersion),
            ProtectedHeader::Short { .. } => PacketKind::OneRtt,
            ProtectedHeader::Initial { .. } => PacketKind::Initial,
            ProtectedHeader::Handshake { .. } => PacketKind::Handshake,
            ProtectedHeader::ZeroRtt { .. } => PacketKind::ZeroRtt,
        };
        let scid = self.handshake.check_header(header, kind, envelope.bytes)?;
        let dcid = ConnectionId::new(header.dcid(&packet)).unwrap_or(ConnectionId::EMPTY);
        let mut at = Arrival::new(now, envelope, kind, dcid);
        if kind != PacketKind::OneRtt {
            // Packets with a long header belong to path 0, whatever id they bear (RFC 10069 2.3).
            (at.path, at.place) = (PathId::ZERO, self.paths.table.place(PathId::ZERO));
        }
        at.take_spin(&packet);
        at.has_token = matches!(header, ProtectedHeader::Initial { token, .. } if !token.is_empty());
        let spare = self.handshake.may_get_keys_for(kind).then(|| packet.clone());
        let packet_bytes = packet.len();
        match self.unprotect(&mut at, span, packet) {
            Ok(payload) => {
                if let Some(version) = header.version().filter(|_| kind == PacketKind::Initial)
                    && self.handshake.follow_version(version)
                {
                    self.events.observe(now, || TraceEvent::VersionChanged { version: version.0 });
                }
                if let Some(remote) = scid.and_then(|scid| self.handshake.learn_peer_scid(scid, kind)) {
                    self.paths.table.set_remote_initial(remote, None);
                }
                self.on_opened(&at, packet_bytes, &payload, &payload);
                Ok(())
            }
            Err(Refusal::Drop(DropReason::NoKeys)) => {
                let Envelope { path, tuple, ecn, .. } = *envelope;
                let saved = spare.map(|data| SavedPacket { path, tuple, ecn, space: at.space, data });
                self.receive.saved_packets.push(saved).map_err(|_| DropReason::NoKeys)
            }
            Err(Refusal::Drop(why)) => Err(why),
            Err(Refusal::Close(error)) => {
                self.close_with(now, error);
                Ok(())
            }
        }
    }

    /// RFC 9000 10.3.1: a datagram whose first packet cannot be read is a stateless reset if it ends in a token that we
    /// know, whatever it looks like: its header is random. The tokens to compare are as few as the ids in use.
    #[cold]
    pub(crate) fn on_unread(&mut self, now: Instant, ending: Ending, bytes: usize, why: DropReason) {
        let is_token = |last: &[u8; 16]| self.paths.is_reset(ending.remote, last);
        if why != DropReason::Duplicate && ending.last_bytes.as_ref().is_some_and(is_token) {
            self.drain(now, ConnectionError::Reset);
        } else {
            self.events.on_dropped(now, bytes, why);
        }
    }

    /// After a datagram: the handshake goes on, saved packets are tried again, news are passed on.
    pub(crate) fn after_input(&mut self, now: Instant, envelope: &Envelope) {
        if let Some(path) = envelope.place.and_then(|place| self.paths.table.path_at_mut(place)) {
            path.open_probe_gate(self.handshake.least_datagram(envelope.path));
        }
        if self.lifecycle.is_open() {
            self.advance_handshake(now);
            if self.receive.has_waiting() {
                self.read_waiting(now);
                self.advance_handshake(now);
            }
            // Handshake packets that waited bring the keys for the 1-RTT packet behind them.
            if !self.receive.saved_packets.is_empty() {
                self.read_waiting(now);
                self.advance_handshake(now);
            }
            self.maintain_paths(now);
        }
        if self.lifecycle.is_drained() {
            self.events.tell_endpoint(EndpointEvent::Drained);
        }
        match self.lifecycle.is_open() {
            true => self.receive.loans.note_unread(now, &self.streams, &self.datagrams),
            // No timer runs any more, and the application may keep what is left for long.
            false => self.receive.loans.end(&mut self.streams, &mut self.datagrams),
        }
    }

    /// Tries again with packets that waited for keys, for all paths to be here, or for the connection ids of their own.
    #[cold]
    pub(crate) fn read_waiting(&mut self, now: Instant) {
        let one_rtt = self.keys.as_deref().filter(|_| self.handshake.is_complete());
        for packet in self.receive.saved_packets.take_ready(&self.handshake, one_rtt) {
            let SavedPacket { path, tuple, ecn, data, .. } = packet;
            let rule = self.settings.fixed_bit_rule();
            let Ok((header, span)) = ProtectedHeader::parse(&data, self.handshake.cid_len(), rule) else { continue };
            let bytes = data.len();
            let place = self.paths.table.place(path);
            let envelope = Envelope { path, tuple, ecn, bytes: bytes as u64, place };
            if let Err(why) = self.on_packet(now, &envelope, &header, span, data) {
                self.events.on_dropped(now, bytes, why);
            }
        }
        if self.paths.table.has_lent() {
            return;
        }
        let patience = self.paths.table.max_pto() * 3;
        for mut packet in std::mem::take(&mut self.receive.deferred) {
            let Deferred { at, packet_bytes, payload } = &mut packet;
            at.place = self.paths.table.place(at.path);
            if self.paths.lacks_cids(at) {
                // Asked again with its time of arrival it would wait for ever, and be read by each datagram.
                match now < at.now + patience {
                    true => self.receive.deferred.push(packet),
                    false => self.events.on_dropped(now, *packet_bytes, DropReason::UnknownPath),
                }
            } else if self.paths.judge(at, at.number).is_ok() {
                self.on_opened(at, *packet_bytes, payload, payload);
            }
        }
    }
}
