//! A peer made by hand: a real TLS session, and packets that may say anything anywhere.

use std::collections::BTreeMap;
use std::time::Duration;

use plait_base::{ConnectionId, FourTuple, Instant, PathId, Random, RangeSet, ResetToken, Side, Space};
use plait_crypto::{
    ClientTlsConfig, EarlyKeys, KeyChange, Layout, NonceForm, OneRttKeys, PacketKeys, PhaseMark, SealKeys, SealMark,
    ServerTlsConfig, TlsSession, initial_keys,
};
use plait_wire::frame::{AckForm, Crypto, NewCid, OutAck};
use plait_wire::header::{FixedBit, FixedBitRule, packet_number};
use plait_wire::{Encode, Frame, Frames, OutHeader, PacketKind, ProtectedHeader, TransportParameters, Version};

/// TLS settings of the side that the puppet plays.
#[derive(Clone)]
pub enum Tls {
    Client(ClientTlsConfig),
    Server(ServerTlsConfig),
}

/// A packet to be sent, with every freedom.
#[derive(Clone)]
pub struct Packet {
    pub kind: PacketKind,
    pub path: PathId,
    pub payload: Vec<u8>,
    /// None takes the next number of the space.
    pub number: Option<u64>,
    /// None takes the engine's first id for the path.
    pub dcid: Option<ConnectionId>,
    pub scid: Option<ConnectionId>,
    pub token: Vec<u8>,
    /// Set in the first byte before the packet is sealed.
    pub first_bits: u8,
    /// Bytes up to which the packet is padded, tag included.
    pub pad_to: usize,
    pub version: Option<Version>,
    pub fixed_bit: FixedBit,
}

impl Packet {
    pub fn new(kind: PacketKind, payload: impl Into<Vec<u8>>) -> Self {
        Self {
            kind,
            path: PathId::ZERO,
            payload: payload.into(),
            number: None,
            dcid: None,
            scid: None,
            token: Vec::new(),
            first_bits: 0,
            pad_to: if kind == PacketKind::Initial { 1200 } else { 0 },
            version: None,
            fixed_bit: FixedBit::Set,
        }
    }

    pub fn one_rtt(payload: impl Into<Vec<u8>>) -> Self {
        Self::new(PacketKind::OneRtt, payload)
    }

    pub fn on(mut self, path: u32) -> Self {
        self.path = PathId(path);
        self
    }

    pub fn to(mut self, dcid: ConnectionId) -> Self {
        self.dcid = Some(dcid);
        self
    }

    pub fn numbered(mut self, number: u64) -> Self {
        self.number = Some(number);
        self
    }

    pub fn padded(mut self, to: usize) -> Self {
        self.pad_to = to;
        self
    }
}

/// A packet of the engine, opened.
#[derive(Clone, Debug)]
pub struct Seen {
    pub at: Instant,
    pub kind: PacketKind,
    pub path: PathId,
    pub number: u64,
    pub first: u8,
    pub dcid: ConnectionId,
    pub payload: Vec<u8>,
    pub tuple: FourTuple,
    /// Bytes of the datagram that it came in.
    pub datagram: usize,
}

impl Seen {
    pub fn frames(&self) -> Vec<Frame<'_>> {
        Frames::in_packet(&self.payload, self.kind).map(|f| f.expect("the engine sends valid frames")).collect()
    }

    /// RFC 9000 14.1: datagrams with Initials of a client, and with such of a server that ask for an ack, are full-sized.
    pub fn check_size(&self, puppet: Side) {
        let eliciting = self.has(|f| plait_wire::frame::is_ack_eliciting(f.frame_type()));
        if self.kind == PacketKind::Initial && (puppet.is_server() || eliciting) {
            assert!(self.datagram >= 1200, "an Initial in {} bytes: {:?}", self.datagram, self.frames());
        }
    }

    pub fn has(&self, wanted: impl Fn(&Frame<'_>) -> bool) -> bool {
        self.frames().iter().any(wanted)
    }
}

/// How the puppet's handshake differs from an honest one.
#[derive(Clone, Default)]
pub struct Habits {
    pub params: TransportParameters,
    /// Appended to the encoded parameters as it is.
    pub extra_params: Vec<u8>,
    /// Replaces the encoded parameters altogether.
    pub raw_params: Option<Vec<u8>>,
    /// Leaves the connection id parameters as they are in `params`.
    pub own_cid_params: bool,
    pub scid_len: Option<usize>,
    pub token: Vec<u8>,
    /// A server moves its client to this version, a client follows its server to it (RFC 9368 2.3).
    pub moves_to: Option<Version>,
    /// Nonces of 1-RTT packets, both ways.
    pub nonces: Option<NonceForm>,
}

const GUARD: Duration = Duration::from_millis(300);

/// The puppet.
pub struct Peer {
    pub side: Side,
    pub version: Version,
    pub habits: Habits,
    tls_config: Tls,
    pub tls: Option<TlsSession>,
    pub initial: Option<PacketKeys>,
    /// Initial keys of the version before the move.
    first_initial: Option<(Version, PacketKeys)>,
    pub handshake: Option<PacketKeys>,
    pub early: Option<SealKeys>,
    pub one_rtt: Option<Box<OneRttKeys>>,
    pub scid: ConnectionId,
    /// The engine's handshake id.
    pub dcid: ConnectionId,
    pub original_dcid: ConnectionId,
    next: BTreeMap<(Space, PathId), u64>,
    largest_acked: BTreeMap<(Space, PathId), u64>,
    pub received: BTreeMap<(Space, PathId), RangeSet>,
    seal_marks: BTreeMap<PathId, SealMark>,
    phase_marks: BTreeMap<PathId, PhaseMark>,
    crypto_in: BTreeMap<Space, (u64, BTreeMap<u64, Vec<u8>>)>,
    /// Bytes that TLS produced for a space, all of them.
    pub crypto_out: BTreeMap<Space, Vec<u8>>,
    write_space: Space,
    /// Ids that the engine issued.
    pub issued: BTreeMap<(PathId, u64), (ConnectionId, ResetToken)>,
    /// Ids of ours by which the engine reaches us.
    pub ours: BTreeMap<ConnectionId, PathId>,
    pub random: Random,
    pub tls_failed: bool,
}

impl Peer {
    pub fn new(side: Side, tls_config: Tls, habits: Habits, seed: u64) -> Self {
        let mut random = Random::from_u64(seed);
        let scid = random.connection_id(habits.scid_len.unwrap_or(8));
        let dcid = random.connection_id(8);
        let mut peer = Self {
            side,
            version: Version::V1,
            habits,
            tls_config,
            tls: None,
            initial: None,
            first_initial: None,
            handshake: None,
            early: None,
            one_rtt: None,
            scid,
            dcid,
            original_dcid: dcid,
            next: BTreeMap::new(),
            largest_acked: BTreeMap::new(),
            received: BTreeMap::new(),
            seal_marks: BTreeMap::new(),
            phase_marks: BTreeMap::new(),
            crypto_in: BTreeMap::new(),
            crypto_out: BTreeMap::new(),
            write_space: Space::Initial,
            issued: BTreeMap::new(),
            ours: BTreeMap::from([(scid, PathId::ZERO)]),
            random,
            tls_failed: false,
        };
        if side.is_client() {
            peer.begin(dcid);
        }
        peer
    }

    /// Starts TLS under the client's first destination id.
    fn begin(&mut self, original: ConnectionId) {
        self.original_dcid = original;
        self.initial = initial_keys(self.version.0, &original, self.side);
        let mut params = self.habits.params.clone();
        if !self.habits.own_cid_params {
            params.cids.initial_scid = Some(self.scid);
            params.cids.original_dcid = self.side.is_server().then_some(original);
        }
        let mut bytes = params.encode(self.side, &mut self.random);
        bytes.extend_from_slice(&self.habits.extra_params);
        let bytes = self.habits.raw_params.clone().unwrap_or(bytes);
        let version = self.version;
        let nonces = self.habits.nonces;
        let session = match (&self.tls_config, self.habits.moves_to) {
            (Tls::Server(tls), None) if nonces.is_some() => {
                TlsSession::new_moving_server(tls, (version.0, version.0), bytes)
            }
            (Tls::Client(tls), None) if nonces.is_none() => TlsSession::new_client(tls, version.0, "localhost", bytes),
            (Tls::Client(tls), _) => TlsSession::new_movable_client(tls, version.0, "localhost", bytes),
            (Tls::Server(tls), None) => TlsSession::new_server(tls, version.0, bytes),
            (Tls::Server(tls), Some(to)) => {
                let session = TlsSession::new_moving_server(tls, (version.0, to.0), bytes);
                self.move_to(to);
                session
            }
        };
        let mut session = session.unwrap();
        if let Some(form) = nonces {
            assert!(session.move_to(self.version.0) && session.set_nonces(form, form));
        }
        if let Some(EarlyKeys::Seal(keys)) = session.early_keys() {
            self.early = Some(keys);
        }
        self.tls = Some(session);
        self.drive_tls();
    }

    /// From here on in `version`; packets of the one before can still be opened, and made on demand.
    fn move_to(&mut self, version: Version) {
        let keys = initial_keys(version.0, &self.original_dcid, self.side);
        self.first_initial = std::mem::replace(&mut self.initial, keys).map(|keys| (self.version, keys));
        self.version = version;
        if let Some(tls) = &mut self.tls {
            assert!(tls.move_to(version.0));
        }
    }

    fn initial_keys_of(&self, version: Version) -> Option<&PacketKeys> {
        match &self.first_initial {
            Some((first, keys)) if *first == version => Some(keys),
            _ => self.initial.as_ref(),
        }
    }

    /// A Retry was followed: keys and ids of the new attempt, the same ClientHello.
    pub fn after_retry(&mut self, scid: ConnectionId, token: Vec<u8>) {
        self.dcid = scid;
        self.habits.token = token;
        self.initial = initial_keys(self.version.0, &scid, self.side);
    }

    pub fn drive_tls(&mut self) {
        let Some(tls) = &mut self.tls else { return };
        loop {
            let out = self.crypto_out.entry(self.write_space).or_default();
            match tls.write_crypto(out) {
                Some(KeyChange::Handshake(keys)) => {
                    self.handshake = Some(keys);
                    self.write_space = Space::Handshake;
                }
                Some(KeyChange::OneRtt(keys)) => {
                    self.one_rtt = Some(keys);
                    self.write_space = Space::Data;
                }
                None => return,
            }
        }
    }

    pub fn is_done(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| !tls.is_handshaking())
    }

    pub fn next_number(&self, space: Space, path: u32) -> u64 {
        self.next.get(&(space, PathId(path))).copied().unwrap_or(0)
    }

    /// The first id that the engine issued for a path and did not see retired.
    pub fn engine_cid(&self, path: PathId) -> Option<ConnectionId> {
        let mut issued = self.issued.range((path, 0)..=(path, u64::MAX));
        let issued = issued.next().map(|(_, (cid, _))| *cid);
        if path == PathId::ZERO { Some(self.dcid) } else { issued }
    }

    /// Appends a sealed packet.
    pub fn seal(&mut self, packet: &Packet, buf: &mut Vec<u8>) {
        let space = packet.kind.space();
        let key = (space, packet.path);
        let number = packet.number.unwrap_or_else(|| self.next_number(space, packet.path.0));
        let next = self.next.entry(key).or_default();
        *next = (*next).max(number + 1);
        let version = packet.version.unwrap_or(self.version);
        let dcid = packet.dcid.or_else(|| self.engine_cid(packet.path)).expect("an id for the path");
        let scid = packet.scid.unwrap_or(self.scid);
        let token = if packet.token.is_empty() { self.habits.token.clone() } else { packet.token.clone() };
        let header = match packet.kind {
            PacketKind::Initial => OutHeader::Initial { version, dcid, scid, token: &token },
            PacketKind::Handshake => OutHeader::Handshake { version, dcid, scid },
            PacketKind::ZeroRtt => OutHeader::ZeroRtt { version, dcid, scid },
            PacketKind::OneRtt => OutHeader::Short { dcid, spin: packet.first_bits & 0x20 != 0, key_phase: false },
        };
        let start = buf.len();
        let marks = header.write(buf, number, 4, packet.fixed_bit);
        buf[start] |= packet.first_bits;
        buf.extend_from_slice(&packet.payload);
        let wanted = (start + packet.pad_to).saturating_sub(16).max(buf.len());
        buf.resize(wanted, 0);
        let end = buf.len() + 16;
        marks.set_length(buf, end);
        let layout = Layout { start, pn_at: marks.pn_at, pn_len: marks.pn_len };
        match packet.kind {
            PacketKind::Initial => {
                let keys = self.initial_keys_of(version).expect("Initial keys");
                keys.local.seal_packet(buf, layout, packet.path, number).unwrap();
            }
            PacketKind::Handshake => {
                let keys = self.handshake.as_ref().expect("Handshake keys");
                keys.local.seal_packet(buf, layout, packet.path, number).unwrap();
            }
            PacketKind::ZeroRtt => {
                self.early.as_ref().expect("0-RTT keys").seal_packet(buf, layout, packet.path, number).unwrap();
            }
            PacketKind::OneRtt => {
                let mark = self.seal_marks.entry(packet.path).or_default();
                let keys = self.one_rtt.as_mut().expect("1-RTT keys");
                keys.seal_packet(buf, layout, packet.path, number, mark).unwrap();
            }
        }
    }

    /// Opens every packet of a datagram of the engine.
    pub fn open(&mut self, at: Instant, tuple: FourTuple, datagram: &[u8]) -> Vec<Seen> {
        let mut seen = Vec::new();
        let mut rest = datagram;
        while !rest.is_empty() {
            let Ok((header, span)) = ProtectedHeader::parse(rest, self.scid.len(), FixedBitRule::Ignored) else {
                break;
            };
            let (packet, tail) = rest.split_at(span.end.min(rest.len()));
            rest = tail;
            let kind = match &header {
                ProtectedHeader::Initial { version, dcid, scid, .. } => {
                    if self.side.is_client() && *version != self.version && self.habits.moves_to == Some(*version) {
                        self.move_to(*version);
                    }
                    if self.side.is_server() && self.tls.is_none() {
                        self.begin(*dcid);
                    }
                    self.dcid = *scid;
                    PacketKind::Initial
                }
                ProtectedHeader::Handshake { .. } => PacketKind::Handshake,
                ProtectedHeader::Short { .. } => PacketKind::OneRtt,
                ProtectedHeader::ZeroRtt { .. } => PacketKind::ZeroRtt,
                _ => continue,
            };
            let dcid = ConnectionId::new(header.dcid(packet)).unwrap_or(ConnectionId::EMPTY);
            // RFC 10069 2.3: a long header means path 0, whatever id it bears
            let path = self.ours.get(&dcid).copied().filter(|_| kind == PacketKind::OneRtt).unwrap_or(PathId::ZERO);
            let mut packet = packet.to_vec();
            if let Some((first, number, payload)) = self.unseal(at, kind, path, span.pn_offset, &mut packet) {
                let one = Seen { at, kind, path, number, first, dcid, payload, tuple, datagram: datagram.len() };
                self.take_in(&one);
                seen.push(one);
            }
        }
        seen
    }

    fn unseal(
        &mut self,
        at: Instant,
        kind: PacketKind,
        path: PathId,
        pn_offset: usize,
        packet: &mut [u8],
    ) -> Option<(u8, u64, Vec<u8>)> {
        let space = kind.space();
        let expected = self.received.get(&(space, path)).and_then(RangeSet::max).map_or(0, |n| n + 1);
        let number = |u: &plait_crypto::Unmasked| packet_number::expand(u.truncated as u32, u.pn_len, expected);
        let level = match kind {
            PacketKind::Initial => self.initial_keys_of(version_of(packet)),
            PacketKind::Handshake => self.handshake.as_ref(),
            _ => None,
        };
        if kind == PacketKind::OneRtt {
            let keys = self.one_rtt.as_mut()?;
            let unmasked = keys.unmask(packet, pn_offset).ok()?;
            let n = number(&unmasked);
            let mark = self.phase_marks.entry(path).or_default();
            let begin = pn_offset + unmasked.pn_len;
            let opened = keys.open(packet, begin, path, n, mark, at, GUARD).ok()?;
            return Some((unmasked.first, n, packet[begin..begin + opened.payload_bytes].to_vec()));
        }
        let keys = level?;
        let unmasked = keys.remote.unmask(packet, pn_offset).ok()?;
        let n = number(&unmasked);
        let payload = keys.remote.open(packet, pn_offset + unmasked.pn_len, path, n).ok()?;
        Some((unmasked.first, n, packet[payload].to_vec()))
    }

    /// Learns from a packet what a peer must: handshake bytes, ids, acks.
    fn take_in(&mut self, seen: &Seen) {
        let space = seen.kind.space();
        self.received.entry((space, seen.path)).or_default().insert_one(seen.number);
        for frame in seen.frames() {
            match frame {
                Frame::Crypto(f) => {
                    self.crypto_in.entry(space).or_default().1.insert(f.offset, f.data.to_vec());
                }
                Frame::NewCid(f) => {
                    self.issued.insert((f.path, f.sequence), (f.cid, f.token));
                }
                Frame::Ack(f) => {
                    let path = if space == Space::Data { f.path } else { PathId::ZERO };
                    let largest = self.largest_acked.entry((space, path)).or_default();
                    *largest = (*largest).max(f.largest);
                    if let (Space::Data, Some(keys)) = (space, &mut self.one_rtt) {
                        let mark = self.seal_marks.entry(path).or_default();
                        keys.on_acked(mark, f.largest, seen.at, GUARD);
                    }
                }
                _ => {}
            }
        }
        self.feed_tls(space);
    }

    fn feed_tls(&mut self, space: Space) {
        let Some((offset, pieces)) = self.crypto_in.get_mut(&space) else { return };
        while let Some((&at, piece)) = pieces.range(..=*offset).next_back() {
            let skip = (*offset - at) as usize;
            if skip >= piece.len() {
                break;
            }
            *offset += (piece.len() - skip) as u64;
            let fresh = piece[skip..].to_vec();
            if self.tls.as_mut().is_some_and(|tls| tls.read_crypto(&fresh).is_err()) {
                self.tls_failed = true;
                return;
            }
        }
        self.drive_tls();
    }

    /// CRYPTO frames of all that TLS said in a space from `from` on, in pieces of at most `piece` bytes.
    pub fn crypto_frames(&self, space: Space, from: usize, piece: usize) -> Vec<Vec<u8>> {
        let Some(all) = self.crypto_out.get(&space) else { return Vec::new() };
        let mut frames = Vec::new();
        let mut at = from;
        while at < all.len() {
            let end = (at + piece).min(all.len());
            let mut frame = Vec::new();
            Crypto { offset: at as u64, data: &all[at..end] }.encode(&mut frame);
            frames.push(frame);
            at = end;
        }
        frames
    }

    /// An ack of everything received in a space of a path.
    pub fn ack(&self, space: Space, path: u32, form: AckForm) -> Option<Vec<u8>> {
        let ranges = self.received.get(&(space, PathId(path)))?;
        let mut out = Vec::new();
        OutAck { form, path: PathId(path), ranges, delay: 0, ecn: None }.encode(1000, &mut out)?;
        Some(out)
    }

    /// Gives the engine an id for a path.
    pub fn new_cid(&mut self, form: plait_wire::frame::CidForm, path: u32, sequence: u64) -> NewCid {
        let cid = self.random.connection_id(self.scid.len());
        let mut token = [0; 16];
        self.random.fill(&mut token);
        self.ours.insert(cid, PathId(path));
        NewCid { form, path: PathId(path), sequence, retire_prior_to: 0, cid, token: ResetToken(token) }
    }
}

/// The version field of a long header.
pub fn version_of(packet: &[u8]) -> Version {
    Version(u32::from_be_bytes(packet[1..5].try_into().unwrap()))
}
