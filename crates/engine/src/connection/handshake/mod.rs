//! The handshake: TLS, CRYPTO streams and keys of the Initial and Handshake levels, up to confirmation (RFC 9001 4).

mod output;
pub(crate) mod packets;
pub(crate) mod parameters;
pub(crate) mod progress;
mod restart;
pub(crate) mod session;
pub(crate) mod tokens;
pub(crate) mod uniflows;
pub(crate) mod versions;
mod zero_rtt;

use bytes::Bytes;
use plait_base::{ConnectionId, Instant, PathId, Side, Space, TransportError, Violation};
use plait_crypto::{KeyChange, OneRttKeys, OpenKeys, PacketKeys, TlsSession};
use plait_path::{AckNeed, AckPolicy, ReceiveFlow};
use plait_stream::CryptoStream;
use plait_wire::frame::AckForm;
use plait_wire::params::{GreaseQuicBit, HandshakeCids, TransportParameters};
use plait_wire::{Frame, FrameWriter, Frames, PacketKind, SentFrame, Version};

use crate::endpoint::parts::HandshakeIds;
use session::Tls;
use tokens::Tokens;
use uniflows::UniflowOffer;
use versions::{HelloBuffer, Versions};
pub(crate) use zero_rtt::{EarlyData, ZeroRtt};

/// Exponent of the ack delay in long-header packets: peers use the default (RFC 9000 19.3).
const ACK_DELAY_EXPONENT: u8 = 3;

/// How far the handshake is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// Messages go back and forth.
    Negotiating,
    /// TLS is done on our side (RFC 9001 4.1.1).
    Complete,
    /// Both sides know that it is done (RFC 9001 4.1.2).
    Confirmed,
}

/// The Initial or the Handshake level: its handshake bytes, its keys while they live, what arrived.
pub(crate) struct Level {
    pub(crate) crypto: CryptoStream,
    pub(crate) keys: Option<PacketKeys>,
    pub(crate) receive: ReceiveFlow,
}

impl Level {
    fn new(space: Space) -> Self {
        let receive = ReceiveFlow::new(PathId::ZERO, space, AckPolicy::immediate());
        Self { crypto: CryptoStream::new(space), keys: None, receive }
    }

    /// Writes the acks that are due and what TLS has to say.
    pub(crate) fn fill(&mut self, now: Instant, w: &mut FrameWriter<'_>) {
        let is_due = self.receive.ack_need(now) != AckNeed::None;
        if is_due && self.receive.fill_ack(now, w, AckForm::Plain, ACK_DELAY_EXPONENT).is_some() {
            self.receive.on_ack_sent();
        }
        self.crypto.fill(w);
    }
}

/// A frame that a server owes until it is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owed {
    Nothing,
    Due,
    Sent,
}

/// What one side begins with.
pub(crate) enum Beginning {
    /// A token for its Initial packets, often empty.
    Client { token: Bytes },
    /// The keys that the client's first packet opened under: they are derived once.
    Server { initial_keys: Box<PacketKeys> },
}

/// What a step of the handshake brought.
#[derive(Default)]
pub(crate) struct Progress {
    pub(crate) one_rtt: Option<Box<OneRttKeys>>,
    pub(crate) params: Option<TransportParameters>,
    pub(crate) completed: bool,
    pub(crate) early_data: Option<EarlyData>,
    pub(crate) data_ready: bool,
    /// A server moved its client to this version.
    pub(crate) version: Option<Version>,
}

/// What both ends declared in their transport parameters, as far as it is still asked for.
pub(crate) struct DeclaredParameters {
    /// Of ours: what the peer's may contradict or answer.
    pub(crate) ours: UniflowOffer,
    /// The peer's, once they are authenticated.
    pub(crate) peers: Option<PeersParameters>,
}

/// Those parameters of the peer that no other part keeps.
#[derive(Clone, Copy)]
pub(crate) struct PeersParameters {
    /// Acks of its 1-RTT packets tell delays in units of 2 to the power of this, microseconds.
    pub(crate) ack_delay_exponent: u8,
    pub(crate) fixed_bit: GreaseQuicBit,
}

/// TLS with everything that ends when it is confirmed.
pub(crate) struct Handshake {
    pub(crate) side: Side,
    pub(crate) versions: Versions,
    pub(crate) tls: TlsSession,
    pub(crate) ids: HandshakeIds,
    /// The peer's source id, fixed by its first authentic packet.
    pub(crate) peer_scid: Option<ConnectionId>,
    /// Token for our Initial packets; clients only.
    pub(crate) token: Bytes,
    /// None once it is dropped, as the next one: what thousands of idle connections do not need.
    pub(crate) initial: Option<Box<Level>>,
    pub(crate) handshake: Option<Box<Level>>,
    /// None on a server whose tickets are acknowledged: TLS has nothing more to say.
    data: Option<Box<CryptoStream>>,
    pub(crate) zero_rtt: ZeroRtt,
    pub(crate) stage: Stage,
    pub(crate) done: Owed,
    pub(crate) params: DeclaredParameters,
    /// The peer's ClientHello or EncryptedExtensions, until all of it is here.
    pub(crate) hello: Option<Box<HelloBuffer>>,
    /// What a server gives its client for later connections.
    pub(crate) tokens: Tokens,
    write_level: Space,
}

impl Handshake {
    /// Begins with the Initial keys of `ids`; a client's first flight is produced by [`Self::advance`].
    pub(crate) fn new(beginning: Beginning, versions: Versions, tls: Tls, ids: HandshakeIds) -> Self {
        let (side, token, keys) = match beginning {
            Beginning::Client { token } => {
                (Side::Client, token, plait_crypto::initial_keys(versions.original.0, &ids.keys_from(), Side::Client))
            }
            Beginning::Server { initial_keys } => (Side::Server, Bytes::new(), Some(*initial_keys)),
        };
        let mut initial = Box::new(Level::new(Space::Initial));
        initial.keys = keys;
        let Tls { session: tls, deferred, uniflows } = tls;
        let early_keys = if side.is_client() { tls.early_keys() } else { None };
        Self {
            side,
            versions,
            zero_rtt: ZeroRtt::new(early_keys),
            tls,
            ids,
            peer_scid: None,
            token,
            initial: Some(initial),
            handshake: Some(Box::new(Level::new(Space::Handshake))),
            data: Some(Box::new(CryptoStream::new(Space::Data))),
            stage: Stage::Negotiating,
            done: Owed::Nothing,
            params: DeclaredParameters { ours: uniflows, peers: None },
            hello: Some(Box::new(HelloBuffer::new(deferred))),
            tokens: Tokens::default(),
            write_level: Space::Initial,
        }
    }

    /// Length of our connection ids, bytes.
    pub(crate) fn cid_len(&self) -> usize {
        self.ids.local.len()
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.stage >= Stage::Complete
    }

    pub(crate) fn is_confirmed(&self) -> bool {
        self.stage == Stage::Confirmed
    }

    /// The Initial or Handshake level until it is dropped; none for the data space.
    pub(crate) fn level(&mut self, space: Space) -> Option<&mut Level> {
        match space {
            Space::Initial => self.initial.as_deref_mut(),
            Space::Handshake => self.handshake.as_deref_mut(),
            Space::Data => None,
        }
    }

    /// The Initial and Handshake levels that are not dropped.
    pub(crate) fn levels(&self) -> impl Iterator<Item = &Level> {
        [&self.initial, &self.handshake].into_iter().filter_map(|level| level.as_deref())
    }

    /// True while there are keys for Initial or Handshake packets.
    #[inline]
    pub(crate) fn has_packet_keys(&self) -> bool {
        self.levels().any(|level| level.keys.is_some())
    }

    /// Acks of long-header packets whose time has come are due from now on.
    pub(crate) fn on_ack_timeouts(&mut self, now: Instant) {
        let levels = [&mut self.initial, &mut self.handshake].into_iter().flatten();
        levels.for_each(|level| level.receive.on_timeout(now));
    }

    /// What arrived at the Initial or Handshake level, until it is dropped.
    pub(crate) fn received(&self, space: Space) -> Option<&ReceiveFlow> {
        match space {
            Space::Initial => self.initial.as_ref().map(|level| &level.receive),
            Space::Handshake => self.handshake.as_ref().map(|level| &level.receive),
            Space::Data => None,
        }
    }

    /// The keys of the Initial or Handshake level, while they live.
    pub(crate) fn keys(&self, space: Space) -> Option<&PacketKeys> {
        match space {
            Space::Initial => self.initial.as_ref()?.keys.as_ref(),
            Space::Handshake => self.handshake.as_ref()?.keys.as_ref(),
            Space::Data => None,
        }
    }

    pub(crate) fn has_keys(&self, space: Space) -> bool {
        self.keys(space).is_some()
    }

    /// Handshake bytes of a level; none once it is dropped.
    pub(crate) fn crypto(&mut self, space: Space) -> Option<&mut CryptoStream> {
        match space {
            Space::Initial => self.initial.as_mut().map(|level| &mut level.crypto),
            Space::Handshake => self.handshake.as_mut().map(|level| &mut level.crypto),
            Space::Data => self.data.as_deref_mut(),
        }
    }

    /// Keys that open packets with a long header, while they live. 0-RTT is opened by servers alone (RFC 9001 5.6).
    pub(crate) fn open_keys(&self, space: Space) -> Option<&OpenKeys> {
        match space {
            Space::Initial | Space::Handshake => self.keys(space).map(|k| &k.remote),
            Space::Data => self.zero_rtt.open_keys(),
        }
    }

    /// Level whose CRYPTO bytes TLS expects next.
    fn read_level(&self) -> Space {
        if self.is_complete() {
            Space::Data
        } else if self.has_keys(Space::Handshake) {
            Space::Handshake
        } else {
            Space::Initial
        }
    }

    /// A CRYPTO frame arrived.
    pub(crate) fn on_crypto(&mut self, space: Space, offset: u64, data: Bytes) -> Result<(), Violation> {
        let expected = self.read_level();
        if space == Space::Data {
            // Whatever comes is for TLS to judge.
            self.data.get_or_insert_with(|| Box::new(CryptoStream::new(space)));
        }
        let stream = self.crypto(space).ok_or(Violation::CryptoAfterHandshakeLevel)?;
        // RFC 9001 4.1.3: new bytes at a level that TLS has left behind
        if space < expected && offset.saturating_add(data.len() as u64) > stream.read_offset() {
            return Err(Violation::CryptoAfterHandshakeLevel);
        }
        stream.on_crypto(offset, data)
    }

    /// Reads a packet of the server only to have the keys of Handshake packets, in which an attempt that was given up is closed. True
    /// once they are there; what breaks a rule brings none.
    pub(crate) fn read_hello(&mut self, kind: PacketKind, payload: &[u8]) -> bool {
        if kind == PacketKind::Initial {
            for frame in Frames::in_packet(payload, kind) {
                if let Ok(Frame::Crypto(f)) = frame {
                    let _ = self.on_crypto(Space::Initial, f.offset, Bytes::copy_from_slice(f.data));
                }
            }
            let _ = self.advance();
        }
        self.has_keys(Space::Handshake)
    }

    /// True when nothing waits for TLS: it has nothing to say after the handshake but in answer to what it reads.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.is_complete() && !self.data.as_ref().is_some_and(|stream| stream.has_unread())
    }

    /// HANDSHAKE_DONE arrived (RFC 9000 19.20); how far the handshake is.
    pub(crate) fn on_done(&self) -> Result<Stage, Violation> {
        if self.side.is_server() { Err(Violation::HandshakeDoneFromClient) } else { Ok(self.stage) }
    }

    /// Feeds TLS with what arrived and takes out what it wants to send.
    pub(crate) fn advance(&mut self) -> Result<Progress, TransportError> {
        let mut progress = Progress::default();
        let data_was_ready = self.tls.alpn().is_some();
        let version_was = self.versions.current;
        self.produce(&mut progress);
        loop {
            let level = self.read_level();
            let Some(bytes) = self.crypto(level).and_then(CryptoStream::read) else { break };
            let Some(bytes) = self.buffer_hello(level, bytes)? else { continue };
            self.tls.read_crypto(&bytes)?;
            self.produce(&mut progress);
            self.learn(&mut progress)?;
            // RFC 9001 4.1.3: keys must not change while bytes of the level before wait for what lies ahead of them
            if self.read_level() != level && self.crypto(level).is_some_and(|stream| stream.has_unread()) {
                return Err(Violation::CryptoAfterHandshakeLevel.into());
            }
        }
        if self.side.is_server() && self.is_confirmed() {
            // Tickets were the last that TLS had to say.
            self.tls.retire();
        }
        progress.version = Some(self.versions.current).filter(|now| *now != version_was);
        progress.data_ready = !data_was_ready && self.tls.alpn().is_some();
        Ok(progress)
    }

    fn produce(&mut self, progress: &mut Progress) {
        loop {
            let mut out = Vec::new();
            let change = self.tls.write_crypto(&mut out);
            if !out.is_empty() {
                let level = self.write_level;
                self.crypto(level).into_iter().for_each(|stream| stream.write(&out));
            }
            match change {
                Some(KeyChange::Handshake(keys)) => {
                    if let Some(level) = &mut self.handshake {
                        level.keys = Some(keys);
                    }
                    self.write_level = Space::Handshake;
                }
                Some(KeyChange::OneRtt(keys)) => {
                    progress.one_rtt = Some(keys);
                    self.write_level = Space::Data;
                }
                None => return,
            }
        }
    }

    fn learn(&mut self, progress: &mut Progress) -> Result<(), TransportError> {
        if self.side.is_server() && !self.zero_rtt.has_keys() && !self.is_complete() {
            self.zero_rtt.on_accepted(self.tls.early_keys());
        }
        if self.params.peers.is_none()
            && let Some(bytes) = self.tls.peer_params()
        {
            let params = parameters::decode(bytes, self.side)?;
            self.check(&params)?;
            let (ack_delay_exponent, fixed_bit) = (params.acks.delay_exponent, params.fixed_bit);
            self.params.peers = Some(PeersParameters { ack_delay_exponent, fixed_bit });
            progress.params = Some(params);
        }
        if self.stage == Stage::Negotiating && !self.tls.is_handshaking() {
            // RFC 9001 8.2: parameters are mandatory
            self.params.peers.as_ref().ok_or(Violation::MissingTransportParameters)?;
            self.stage = Stage::Complete;
            progress.completed = true;
            self.settle_early_data(progress)?;
        }
        Ok(())
    }

    fn settle_early_data(&mut self, progress: &mut Progress) -> Result<(), TransportError> {
        if self.side.is_client() && self.zero_rtt.outcome() == EarlyData::Offered {
            let outcome = if self.tls.early_data_accepted() { EarlyData::Accepted } else { EarlyData::Rejected };
            self.zero_rtt.on_answer(outcome);
            progress.early_data = Some(outcome);
            if let (EarlyData::Accepted, Some(remembered)) = (outcome, self.remembered()) {
                // A client has them when the handshake is complete: in this step.
                progress.params.as_ref().map_or(Ok(()), |now| now.check_early_data(&remembered))?;
            }
        }
        if self.side.is_server() {
            // RFC 9001 4.1.2: the server's handshake is confirmed when it is complete
            self.stage = Stage::Confirmed;
            self.done = Owed::Due;
        }
        Ok(())
    }

    /// The server's limits of the session that a client resumes, to go by in 0-RTT (RFC 9000 7.4.1).
    pub(crate) fn remembered(&self) -> Option<TransportParameters> {
        parameters::decode(self.tls.remembered_params()?, self.side).ok()
    }

    fn check(&self, params: &TransportParameters) -> Result<(), TransportError> {
        let seen = HandshakeCids {
            original_dcid: self.ids.original_dcid,
            peer_scid: self.peer_scid.unwrap_or(self.ids.remote),
            retry_scid: self.ids.retry_scid,
        };
        params.check_cids(self.side.peer(), &seen)?;
        // RFC 10069 2.1: multipath needs connection ids on both sides
        if params.initial_max_path_id.is_some() && (seen.peer_scid.is_empty() || self.ids.local.is_empty()) {
            return Err(Violation::MultipathZeroLengthCid.into());
        }
        params.check_uniflow_cids(self.params.ours.sending_max)?;
        if self.fits_versions(params) { Ok(()) } else { Err(Violation::VersionNegotiation.into()) }
    }

    /// Takes what a Retry gives: the peer's new id, new Initial keys, a token (RFC 9000 17.2.5.3).
    pub(crate) fn adopt_retry(&mut self, scid: ConnectionId, token: Bytes) {
        self.ids.retry_scid = Some(scid);
        self.ids.remote = scid;
        self.token = token;
        self.versions.forget_other();
        let keys = plait_crypto::initial_keys(self.versions.original.0, &scid, self.side);
        if let Some(level) = &mut self.initial {
            level.keys = keys;
        }
    }

    /// Gives back memory that nothing is in.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.tokens.shrink_to_fit();
        let is_over = |stream: &CryptoStream| !(stream.wants_send() || stream.has_unacked() || stream.has_received());
        if self.side.is_server() && self.is_confirmed() && self.data.as_deref().is_some_and(is_over) {
            self.data = None;
        }
    }

    /// Drops the Initial or Handshake level with its keys.
    pub(crate) fn discard(&mut self, space: Space) {
        if space == Space::Initial {
            self.versions.forget_other();
        }
        match space {
            Space::Initial => self.initial = None,
            Space::Handshake => self.handshake = None,
            Space::Data => {}
        }
    }

    pub(crate) fn on_acked(&mut self, frame: &SentFrame) {
        match *frame {
            SentFrame::Crypto { space, .. } => self.crypto(space).into_iter().for_each(|stream| stream.on_acked(frame)),
            SentFrame::HandshakeDone => self.done = Owed::Nothing,
            _ => {}
        }
    }

    pub(crate) fn on_lost(&mut self, frame: &SentFrame) {
        match *frame {
            SentFrame::Crypto { space, .. } => self.crypto(space).into_iter().for_each(|stream| stream.on_lost(frame)),
            SentFrame::HandshakeDone if self.done == Owed::Sent => self.done = Owed::Due,
            _ => {}
        }
    }
}
