//! A datagram on its way in: split into packets, opened, deduplicated, its frames handed to dispatch.

mod dispatch;

use std::net::SocketAddr;

use bytes::{Bytes, BytesMut};
use plait_base::limits::{self, MIN_DATAGRAM_BYTES};
use plait_base::probe::{DropReason, TraceEvent};
use plait_base::{CloseCode, ConnectionId, Ecn, FourTuple, Instant, PathId, Space, TransportError, Violation};
use plait_crypto::{OpenError, Unmasked};
use plait_path::addresses::Moved;
use plait_path::table::{Admission, CidChange};
use plait_path::{Eliciting, ProbeGate};
use plait_wire::Version;
use plait_wire::frame::{Frame, Frames, types};
use plait_wire::header::{FixedBitRule, PacketKind, PacketSpan, ProtectedHeader, packet_number, stateless_reset};

use crate::config::{MigrationPolicy, Switch};
use crate::connection::{Connection, RoleSettings};
use crate::io::{Input, InputKind};

/// A packet's circumstances, known before its frames are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) now: Instant,
    pub(crate) path: PathId,
    pub(crate) route: FourTuple,
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
}

/// A packet that waits for its keys.
#[derive(Debug)]
pub(crate) struct SavedPacket {
    path: PathId,
    route: FourTuple,
    ecn: Option<Ecn>,
    space: Space,
    data: BytesMut,
}

impl SavedPacket {
    /// True for 0-RTT, the only packets of the data space with a long header.
    fn is_early(&self) -> bool {
        self.space == Space::Data && self.data.first().is_some_and(|first| first & 0x80 != 0)
    }
}

/// What waits on its way in.
#[derive(Default)]
pub(crate) struct Receive {
    /// Packets that arrived before their keys; bounded.
    pub(crate) saved_packets: Vec<SavedPacket>,
    /// When unread data is copied out of the receive buffers.
    pub(crate) loans_until: Option<Instant>,
}

impl Receive {
    pub(crate) fn shrink_to_fit(&mut self) {
        self.saved_packets.shrink_to_fit();
    }
}

/// Why a packet went no further.
enum Refusal {
    Drop(DropReason),
    Wait,
    Close(TransportError),
}

impl<E: Into<TransportError>> From<E> for Refusal {
    fn from(error: E) -> Self {
        Self::Close(error.into())
    }
}

impl Connection {
    /// Takes a datagram in.
    pub fn absorb(&mut self, now: Instant, input: Input) {
        if !self.holds_loans() {
            self.receive.loans_until = None;
        }
        match input.kind {
            InputKind::StatelessReset => self.on_stateless_reset(now),
            InputKind::Packets => {
                let id = input.path;
                self.on_datagram(now, input);
                self.open_probe_gate(id);
            }
        }
        self.after_input(now);
    }

    fn on_datagram(&mut self, now: Instant, input: Input) {
        if self.lifecycle.is_drained() {
            return;
        }
        if self.lifecycle.is_closing() {
            let again = self.lifecycle.on_heard_while_closing();
            if again {
                // A new round: what waits for a full socket must not keep the close from the other paths.
                self.lifecycle.closes_due.clear();
            }
        }
        let Input { path, route, ecn, mut data, .. } = input;
        let total = data.len() as u64;
        let known = self.paths.table.path_mut(path).map(|p| p.addresses.on_received(&route, total));
        // RFC 9000 9: a client hears only from addresses that it chose
        if known == Some(None) && (self.side().is_client() || !self.may_migrate(&route)) {
            self.drop_packet(now, total as usize, DropReason::WrongAddress);
            return;
        }
        // RFC 9000 10.3.1: where the first packet cannot be read, the datagram may be a stateless reset
        let mut ending = data.last_chunk::<16>().copied().filter(|_| data.len() >= stateless_reset::MIN_LEN);
        let mut first_dcid = None;
        while !data.is_empty() && !self.lifecycle.is_drained() {
            let Ok((header, span)) = ProtectedHeader::parse(&data, self.cid_len(), self.fixed_bit_rule()) else {
                self.on_unread(now, (route.remote, ending), data.len(), DropReason::Malformed);
                break;
            };
            let dcid = ConnectionId::new(header.dcid(&data)).unwrap_or(ConnectionId::EMPTY);
            // RFC 9000 12.2: coalesced packets share the first one's connection id
            if *first_dcid.get_or_insert(dcid) != dcid {
                self.drop_packet(now, data.len(), DropReason::Malformed);
                break;
            }
            let packet = data.split_to(span.end.min(data.len()));
            let bytes = packet.len();
            if let Err(why) = self.on_packet(now, (path, route, ecn, total), &header, span, packet) {
                self.on_unread(now, (route.remote, ending), bytes, why);
            }
            ending = None;
        }
    }

    /// RFC 9002 6.2.2.1: what the peer sent is credit to send, so that the probe timer runs again.
    fn open_probe_gate(&mut self, id: PathId) {
        let least = self.least_credit(id);
        if let Some(path) = self.paths.table.path_mut(id).filter(|path| path.may_send(least)) {
            path.send.set_probe_gate(ProbeGate::Open);
        }
    }

    fn may_migrate(&self, route: &FourTuple) -> bool {
        self.handshake.is_confirmed()
            && (self.settings.migration == MigrationPolicy::Allowed || self.is_preferred(route.local))
    }

    /// RFC 9000 9.6.3, 18.2: disable_active_migration does not keep clients from our preferred address.
    fn is_preferred(&self, local: SocketAddr) -> bool {
        let RoleSettings::Server(server) = &self.settings.role else { return false };
        let own = [server.preferred_v4.map(SocketAddr::V4), server.preferred_v6.map(SocketAddr::V6)];
        own.contains(&Some(local))
    }

    fn fixed_bit_rule(&self) -> FixedBitRule {
        // RFC 9287 3: whoever announced it must take packets with the bit cleared
        match self.settings.transport.wire.grease == Switch::On && self.settings.endpoint.grease == Switch::On {
            true => FixedBitRule::Ignored,
            false => FixedBitRule::MustBeSet,
        }
    }

    fn on_packet(
        &mut self,
        now: Instant,
        (path, route, ecn, total): (PathId, FourTuple, Option<Ecn>, u64),
        header: &ProtectedHeader,
        span: PacketSpan,
        packet: BytesMut,
    ) -> Result<(), DropReason> {
        let (kind, path) = match header {
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
            ProtectedHeader::Short { .. } => (PacketKind::OneRtt, path),
            ProtectedHeader::Initial { .. } => (PacketKind::Initial, PathId::ZERO),
            ProtectedHeader::Handshake { .. } => (PacketKind::Handshake, PathId::ZERO),
            ProtectedHeader::ZeroRtt { .. } => (PacketKind::ZeroRtt, PathId::ZERO),
        };
        let scid = self.check_header(header, kind, total)?;
        let space = kind.space();
        // RFC 9001 5.4.1: header protection leaves the spin bit as it is
        let spin = packet.first().is_some_and(|first| first & 0x20 != 0);
        let dcid = ConnectionId::new(header.dcid(&packet)).unwrap_or(ConnectionId::EMPTY);
        let at = Arrival {
            now,
            path,
            route,
            ecn,
            space,
            kind,
            dcid,
            bytes: total,
            number: 0,
            spin,
            admission: Admission::Gone,
            newest: false,
        };
        let spare = if self.may_wait(kind) { Some(packet.clone()) } else { None };
        match self.unprotect(at, span, packet) {
            Ok((at, payload)) => {
                if let Some(version) = header.version().filter(|_| kind == PacketKind::Initial)
                    && self.handshake.follow_version(version)
                {
                    self.events.observe(now, || TraceEvent::VersionChanged { version: version.0 });
                }
                scid.into_iter().for_each(|scid| self.learn_peer_scid(scid, kind));
                self.on_opened(at, header, &payload);
            }
            Err(Refusal::Drop(why)) => return Err(why),
            Err(Refusal::Close(error)) => self.close_with(now, error),
            Err(Refusal::Wait) => match spare {
                Some(data) if self.has_room_to_wait(data.len()) => {
                    self.receive.saved_packets.push(SavedPacket { path, route, ecn, space, data });
                }
                _ => return Err(DropReason::NoKeys),
            },
        }
        Ok(())
    }

    /// What must hold of a packet before it is opened; the peer's connection id of a long header.
    fn check_header(
        &self,
        header: &ProtectedHeader,
        kind: PacketKind,
        datagram_bytes: u64,
    ) -> Result<Option<ConnectionId>, DropReason> {
        // RFC 9000 14.1: servers discard Initials that come in smaller datagrams
        let too_small =
            kind == PacketKind::Initial && self.side().is_server() && datagram_bytes < MIN_DATAGRAM_BYTES as u64;
        if too_small {
            return Err(DropReason::Malformed);
        }
        if header.version().is_some_and(|v| !self.handshake.accepts(kind, v)) {
            return Err(DropReason::WrongVersion);
        }
        // RFC 9000 7.2: the peer's source id is fixed by its first packet
        let scid = header.version().and_then(|_| ConnectionId::new(header.scid(&[])));
        if self.handshake.peer_scid.is_some_and(|fixed| scid.is_some_and(|scid| fixed != scid)) {
            return Err(DropReason::Malformed);
        }
        Ok(scid)
    }

    /// RFC 9000 10.3.1: a datagram whose first packet cannot be read is a stateless reset if it ends in a token that we
    /// know, whatever it looks like: its header is random. The tokens to compare are as few as the ids in use.
    fn on_unread(
        &mut self,
        now: Instant,
        (remote, ending): (SocketAddr, Option<[u8; 16]>),
        bytes: usize,
        why: DropReason,
    ) {
        match ending {
            Some(ending) if why != DropReason::Duplicate && self.paths.reset_tokens.matches(remote, &ending) => {
                self.on_stateless_reset(now);
            }
            _ => self.drop_packet(now, bytes, why),
        }
    }

    fn has_room_to_wait(&self, bytes: usize) -> bool {
        let held: usize = self.receive.saved_packets.iter().map(|w| w.data.len()).sum();
        self.receive.saved_packets.len() < limits::MAX_EARLY_PACKETS && held + bytes <= limits::MAX_EARLY_BYTES
    }

    /// Packets that arrive before their keys are kept for a while (RFC 9000 5.2.1, RFC 9001 5.7).
    fn may_wait(&self, kind: PacketKind) -> bool {
        match kind {
            PacketKind::Initial => false,
            PacketKind::Handshake => !self.handshake.has_keys(Space::Handshake) && !self.handshake.is_complete(),
            // RFC 9000 12.2: coalesced with the ClientHello that brings its keys
            PacketKind::ZeroRtt => {
                self.side().is_server() && self.handshake.early.is_none() && !self.handshake.has_keys(Space::Handshake)
            }
            PacketKind::OneRtt => !self.handshake.is_complete(),
        }
    }

    /// Tries again with packets that waited for keys which may be there now.
    pub(crate) fn reopen_waiting(&mut self, now: Instant) {
        for w in std::mem::take(&mut self.receive.saved_packets) {
            let ready = match w.space {
                Space::Data if w.is_early() && self.handshake.open_keys(Space::Data).is_some() => true,
                Space::Data => self.handshake.is_complete() && self.keys.is_some(),
                space => self.handshake.open_keys(space).is_some(),
            };
            if !ready {
                self.receive.saved_packets.push(w);
                continue;
            }
            let Ok((header, span)) = ProtectedHeader::parse(&w.data, self.cid_len(), self.fixed_bit_rule()) else {
                continue;
            };
            let bytes = w.data.len();
            if let Err(why) = self.on_packet(now, (w.path, w.route, w.ecn, bytes as u64), &header, span, w.data) {
                self.drop_packet(now, bytes, why);
            }
        }
    }

    fn learn_peer_scid(&mut self, scid: ConnectionId, kind: PacketKind) {
        if self.handshake.peer_scid.is_none() && kind == PacketKind::Initial {
            self.handshake.peer_scid = Some(scid);
            if self.side().is_client() {
                self.handshake.ids.remote = scid;
                self.paths.table.set_remote_initial(scid, None);
            }
        }
    }

    /// Removes the protection of a packet in place.
    fn unprotect(
        &mut self,
        mut at: Arrival,
        span: PacketSpan,
        mut packet: BytesMut,
    ) -> Result<(Arrival, Bytes), Refusal> {
        let (number, header_len, payload) = match at.kind {
            PacketKind::OneRtt => self.open_short(&mut at, span, &mut packet)?,
            _ => self.open_long(&at, span, &mut packet)?,
        };
        debug_assert!(header_len <= payload.start);
        let payload = packet.freeze().slice(payload);
        Ok((Arrival { number, ..at }, payload))
    }

    fn open_long(&mut self, at: &Arrival, span: PacketSpan, packet: &mut BytesMut) -> Result<Parts, Refusal> {
        let expected = match at.space {
            Space::Data => self.paths.table.path(PathId::ZERO).map_or(0, |p| p.receive.expected()),
            space => self.handshake.received(space).map_or(0, |r| r.expected()),
        };
        let keys = match at.space {
            Space::Initial => self.handshake.initial_open_keys(version_of(packet)),
            space => self.handshake.open_keys(space),
        };
        let keys = keys.ok_or(Refusal::Wait)?;
        let unmasked = keys.unmask(packet, span.pn_offset).map_err(refusal)?;
        let number = expand(&unmasked, expected);
        let header_len = span.pn_offset + unmasked.pn_len;
        let payload = keys.open(packet, header_len, PathId::ZERO, number).map_err(refusal)?;
        self.check_duplicate(at, number)?;
        Ok((number, header_len, payload))
    }

    fn open_short(&mut self, at: &mut Arrival, span: PacketSpan, packet: &mut BytesMut) -> Result<Parts, Refusal> {
        // RFC 9001 5.7: 1-RTT packets wait until the handshake is complete
        if !self.handshake.is_complete() {
            return Err(Refusal::Wait);
        }
        let guard = self.paths.table.max_pto() * 3;
        at.admission = self.paths.table.admission(at.path);
        if at.admission == Admission::Gone {
            return Err(Refusal::Drop(DropReason::PathGone));
        }
        let keys = self.keys.as_mut().ok_or(Refusal::Wait)?;
        let unmasked = keys.unmask(packet, span.pn_offset).map_err(refusal)?;
        let header_len = span.pn_offset + unmasked.pn_len;
        // A path that the peer opens with this packet has no receiver yet.
        let mut receive = self.paths.table.path_mut(at.path).map(|path| &mut path.receive);
        let number = expand(&unmasked, receive.as_ref().map_or(0, |receive| receive.expected()));
        let phase = keys.phase();
        let mut fresh = Default::default();
        let mark = receive.as_mut().map_or(&mut fresh, |receive| receive.phase_mark_mut());
        let opened = keys.open(packet, header_len, at.path, number, mark, at.now, guard).map_err(refusal)?;
        at.newest = receive.as_ref().is_none_or(|receive| receive.largest().is_none_or(|largest| number > largest));
        let seen = receive.is_some_and(|receive| receive.is_duplicate(number));
        if keys.phase() != phase {
            self.events.observe(at.now, || TraceEvent::KeysUpdated { locally: false });
        }
        if seen { Err(Refusal::Drop(DropReason::Duplicate)) } else { Ok((number, header_len, opened.payload)) }
    }

    fn check_duplicate(&mut self, at: &Arrival, number: u64) -> Result<(), Refusal> {
        let seen = match at.space {
            Space::Data => self.paths.table.path(at.path).is_some_and(|p| p.receive.is_duplicate(number)),
            space => self.handshake.received(space).is_some_and(|r| r.is_duplicate(number)),
        };
        if seen { Err(Refusal::Drop(DropReason::Duplicate)) } else { Ok(()) }
    }

    fn on_opened(&mut self, at: Arrival, header: &ProtectedHeader, payload: &Bytes) {
        if !self.lifecycle.is_open() {
            // RFC 9000 10.2.1: only the peer's own close still matters
            let mut frames = Frames::in_packet(payload, at.kind);
            if frames.any(|f| matches!(f, Ok(Frame::Close(_)))) && self.lifecycle.is_closing() {
                self.begin_draining(at.now);
            }
            return;
        }
        self.events.observe(at.now, || TraceEvent::PacketReceived {
            path: at.path,
            space: at.space,
            number: at.number,
            bytes: payload.len() as u16,
        });
        if let Err(error) = self.read_packet(&at, header, payload) {
            self.close_with(at.now, error);
        }
    }

    fn read_packet(&mut self, at: &Arrival, header: &ProtectedHeader, payload: &Bytes) -> Result<(), TransportError> {
        self.prove_address(at);
        if matches!(header, ProtectedHeader::Initial { token, .. } if self.side().is_client() && !token.is_empty()) {
            // RFC 9000 17.2.2: servers send no token
            return Err(Violation::InitialTokenFromServer.into());
        }
        if at.space == Space::Data && !self.admit(at, payload)? {
            return Ok(());
        }
        let (mut eliciting, mut probing) = (Eliciting::No, true);
        let mut stream_bytes = None;
        for frame in Frames::in_packet(payload, at.kind) {
            let frame = frame?;
            let frame_type = frame.frame_type();
            if types::is_ack_eliciting(frame_type) {
                eliciting = Eliciting::Yes;
            }
            probing &= types::is_probing(frame_type);
            match &frame {
                Frame::Stream(f) => stream_bytes = Some(stream_bytes.unwrap_or(0) + f.data.len() as u64),
                Frame::Datagram(_) => stream_bytes = stream_bytes.or(Some(0)),
                _ => {}
            }
            self.dispatch(at, frame, payload).map_err(|e| e.in_frame(frame_type))?;
        }
        match at.space {
            // The packet itself may have been the last of its level.
            Space::Initial | Space::Handshake => {
                if let Some(level) = self.handshake.level(at.space) {
                    level.receive.on_packet(at.now, at.number, eliciting, at.ecn);
                }
            }
            Space::Data => self.note_received(at, eliciting, stream_bytes),
        }
        self.lifecycle.on_heard(at.now, self.paths.table.max_pto());
        if at.kind == PacketKind::OneRtt && at.newest && self.is_from_elsewhere(at) && !probing {
            self.follow(at);
        }
        Ok(())
    }

    /// Remembers the packet for acks and what it says of its path; `stream_bytes` where it brought data of the application.
    fn note_received(&mut self, at: &Arrival, eliciting: Eliciting, stream_bytes: Option<u64>) {
        let may_ask = at.kind == PacketKind::OneRtt && self.side().is_client() && self.handshake.is_confirmed();
        let Some(path) = self.paths.table.path_mut(at.path) else { return };
        if let Some(bytes) = stream_bytes {
            path.on_payload(at.now, bytes);
        }
        // RFC 9000 9.3: what would bring more may not find us any more: a NAT forgot us, and only what we send shows the way.
        if may_ask && eliciting == Eliciting::Yes {
            path.expect_more(at.now);
        }
        if path.on_packet_received(at.now, at.number, eliciting, at.ecn, at.bytes) {
            self.ping(at.path);
        }
    }

    /// Takes in what the newest packet of a path says: the spin bit, our address, and whether the peer sends from other
    /// addresses by now.
    fn is_from_elsewhere(&mut self, at: &Arrival) -> bool {
        let asks_system = self.side().is_client() && self.handshake.is_confirmed();
        let Some(path) = self.paths.table.path_mut(at.path) else { return false };
        path.spin.on_received(at.spin);
        // Where the system chooses our address, the peer's newest packet shows which one that is.
        let moved = if asks_system { path.addresses.follow_system(&at.route) } else { Moved::No };
        let is_here = path.addresses.tuple().admits(&at.route);
        path.on_heard_at(&at.route, at.dcid);
        self.on_path_moved(at.now, at.path, moved);
        !is_here
    }

    /// A Handshake packet proves the client's address; its keys end the Initial ones (RFC 9001 4.9.1).
    fn prove_address(&mut self, at: &Arrival) {
        if at.kind != PacketKind::Handshake {
            return;
        }
        if let Some(path) = self.paths.table.path_mut(PathId::ZERO)
            && !path.addresses.is_validated()
        {
            path.addresses.on_address_proven();
        }
        if self.side().is_server() {
            self.discard_space(at.now, Space::Initial);
        }
    }

    /// The first packet on a path may bring the ids that it needs to be answered (RFC 10069 3.1).
    fn learn_cids(&mut self, at: &Arrival, payload: &Bytes) -> Result<(), TransportError> {
        for frame in Frames::in_packet(payload, at.kind) {
            let frame = frame?;
            let frame_type = frame.frame_type();
            if matches!(&frame, Frame::NewCid(new) if new.path == at.path) {
                self.dispatch(at, frame, payload).map_err(|e| e.in_frame(frame_type))?;
            }
        }
        Ok(())
    }

    /// Lets a 1-RTT packet in on its path; opens the path when the packet is the peer's first on it.
    fn admit(&mut self, at: &Arrival, payload: &Bytes) -> Result<bool, TransportError> {
        let mut admission = match at.kind {
            PacketKind::OneRtt => at.admission,
            _ => self.paths.table.admission(at.path),
        };
        if admission == Admission::Refuse(CloseCode::NO_CID_AVAILABLE_FOR_PATH) {
            self.learn_cids(at, payload)?;
            admission = self.paths.table.admission(at.path);
        }
        Ok(match admission {
            Admission::Open | Admission::Closing => true,
            Admission::New => self.accept_path(at),
            Admission::Refuse(code) => {
                let pto = self.paths.table.max_pto();
                let waits = code == CloseCode::NO_CID_AVAILABLE_FOR_PATH
                    && self.paths.table.awaits_cids(at.now, at.path, pto * 3);
                if !waits {
                    let _ = self.paths.table.abandon(at.now, at.path, code, pto);
                }
                false
            }
            Admission::Gone => false,
        })
    }

    /// The peer's newest packet that is no mere probe came from another address: follow it (RFC 9000 9.3).
    fn follow(&mut self, at: &Arrival) {
        if self.side().is_client() || !self.handshake.is_confirmed() {
            return;
        }
        let times = self.validation_times(at.path);
        let Some(path) = self.paths.table.path_mut(at.path) else { return };
        path.addresses.admit(at.route, at.bytes);
        let cid = if path.changed_cid(&at.dcid) { CidChange::Fresh } else { CidChange::Keep };
        let moved = self.paths.table.migrate(at.now, at.path, at.route, cid, times);
        self.on_path_moved(at.now, at.path, moved);
        if let Some(path) = self.paths.table.path_mut(at.path) {
            path.on_heard_at(&at.route, at.dcid);
        }
    }

    fn drop_packet(&mut self, now: Instant, bytes: usize, why: DropReason) {
        self.events.observe(now, || TraceEvent::PacketDropped { bytes, why });
    }
}

/// Packet number, header length, payload.
type Parts = (u64, usize, std::ops::Range<usize>);

fn expand(unmasked: &Unmasked, expected: u64) -> u64 {
    packet_number::expand(unmasked.truncated as u32, unmasked.pn_len, expected)
}

/// The version field of a long header.
fn version_of(packet: &[u8]) -> Version {
    Version(packet.get(1..5).and_then(|field| field.try_into().ok()).map_or(0, u32::from_be_bytes))
}

fn refusal(error: OpenError) -> Refusal {
    match error {
        OpenError::TooShort => Refusal::Drop(DropReason::Malformed),
        OpenError::NoKeys => Refusal::Drop(DropReason::NoKeys),
        OpenError::Forged => Refusal::Drop(DropReason::Authentication),
        OpenError::Violation(violation) => Refusal::Close(violation.into()),
    }
}
