//! Each datagram on its way to a connection, to the application, or to an answer.

use bytes::BytesMut;
use plait_base::limits::MIN_DATAGRAM_BYTES;
use plait_base::{CloseCode, ConnectionId, Ecn, FourTuple, Instant, PathId};
use plait_wire::ProtectedHeader;
use plait_wire::header::FixedBitRule;

use super::demux::{Destination, FirstOwner};
use super::first::FirstKey;
use super::first::{FirstInitial, MIN_FIRST_DCID};
use super::reply::{self, ReplyIds};
use super::token::{self, TokenCheck};
use super::waiting::Queued;
use super::{Endpoint, Incoming};
use crate::config::RetryPolicy;
use crate::io::{ConnectionHandle, Input, InputKind, Transmit};

/// What became of a datagram.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // lives on the stack for a moment, and the small ones are the frequent ones
pub enum Received {
    /// It was dropped, or waits with an undecided connection.
    Nothing,
    /// It belongs to this connection.
    Connection(ConnectionHandle, Input),
    /// A new connection, to be decided on.
    Incoming(Incoming),
    /// An answer without a connection; its bytes are in the caller's buffer.
    Reply(Transmit),
}

/// A datagram that was received, less its bytes.
#[derive(Clone, Copy)]
pub(super) struct DatagramInfo {
    pub(super) now: Instant,
    pub(super) tuple: FourTuple,
    pub(super) ecn: Option<Ecn>,
}

impl DatagramInfo {
    fn input(self, kind: InputKind, path: PathId, data: BytesMut) -> Input {
        let segment_bytes = data.len();
        Input { kind, path, tuple: self.tuple, ecn: self.ecn, arrived: self.now, data, segment_bytes }
    }

    fn deliver(self, to: Destination, data: BytesMut) -> Received {
        let segment_bytes = data.len();
        self.deliver_train(to, data, segment_bytes)
    }

    fn deliver_train(self, to: Destination, data: BytesMut, segment_bytes: usize) -> Received {
        // RFC 9000 10.2.2: late packets of a connection that its peer closed are not answered
        if !to.is_somebody() {
            return Received::Nothing;
        }
        let input = self.input(InputKind::Packets, to.path, data);
        Received::Connection(to.handle, Input { segment_bytes, ..input })
    }
}

const LONG_FORM: u8 = 0x80;

/// The connection id, of `cid_len` bytes, that a datagram with a short header bears.
fn short_cid(data: &[u8], cid_len: usize) -> Option<ConnectionId> {
    let (first, rest) = data.split_first()?;
    if first & LONG_FORM != 0 {
        return None;
    }
    rest.get(..cid_len).and_then(ConnectionId::new)
}

/// Takes the datagrams at the front of a train that have the same short header's id, where `find` knows whose it is.
pub(super) fn receive_known(
    arrival: DatagramInfo,
    cid_len: usize,
    train: &mut BytesMut,
    segment_bytes: usize,
    find: impl FnOnce(&ConnectionId) -> Option<Destination>,
) -> Option<Received> {
    let segment_bytes = segment_bytes.clamp(1, train.len().max(1));
    let cid = train.get(..segment_bytes).and_then(|first| short_cid(first, cid_len))?;
    let to = find(&cid)?;
    let is_same = |segment: &&[u8]| match segment.split_first() {
        Some((first, rest)) => first & LONG_FORM == 0 && rest.starts_with(&cid),
        None => false,
    };
    let run_bytes = train.chunks(segment_bytes).take_while(is_same).map(<[u8]>::len).sum();
    Some(arrival.deliver_train(to, train.split_to(run_bytes), segment_bytes))
}

impl Endpoint {
    /// Takes one datagram in. `reply` is cleared, and holds the bytes of a [`Received::Reply`].
    pub fn receive(
        &mut self,
        now: Instant,
        tuple: FourTuple,
        ecn: Option<Ecn>,
        data: BytesMut,
        reply: &mut Vec<u8>,
    ) -> Received {
        reply.clear();
        let arrival = DatagramInfo { now, tuple, ecn };
        match data.first() {
            Some(first) if first & LONG_FORM == 0 => self.receive_short(arrival, data, reply),
            Some(_) => self.receive_long(arrival, data, reply),
            None => Received::Nothing,
        }
    }

    /// Takes in the first datagrams of a train: those at its front that have one connection id, or the first one alone. All
    /// came between the same addresses with the same mark, and each has `segment_bytes` but the last, which may be shorter, as a
    /// receive call with GRO brings them. To be called until nothing is left in `train`. `reply` is as in
    /// [`receive`](Self::receive).
    pub fn receive_front(
        &mut self,
        now: Instant,
        tuple: FourTuple,
        ecn: Option<Ecn>,
        train: &mut BytesMut,
        segment_bytes: usize,
        reply: &mut Vec<u8>,
    ) -> Received {
        reply.clear();
        let find = |cid: &ConnectionId| self.short_destination(&tuple, cid);
        let arrival = DatagramInfo { now, tuple, ecn };
        if let Some(received) = receive_known(arrival, self.config.cid_len, train, segment_bytes, find) {
            return received;
        }
        let first_bytes = segment_bytes.clamp(1, train.len().max(1)).min(train.len());
        self.receive(now, tuple, ecn, train.split_to(first_bytes), reply)
    }

    /// The connection id that a datagram with a short header bears.
    fn short_cid(&self, data: &[u8]) -> Option<ConnectionId> {
        short_cid(data, self.config.cid_len)
    }

    /// One look-up finds connection and path.
    fn short_destination(&self, tuple: &FourTuple, cid: &ConnectionId) -> Option<Destination> {
        if cid.is_empty() { self.demux.by_peer(tuple) } else { self.demux.by_cid(cid) }
    }

    /// A short header: nearly every datagram.
    fn receive_short(&mut self, arrival: DatagramInfo, data: BytesMut, reply: &mut Vec<u8>) -> Received {
        let cid = self.short_cid(&data);
        if let Some(to) = cid.and_then(|cid| self.short_destination(&arrival.tuple, &cid)) {
            return arrival.deliver(to, data);
        }
        if let Some(handle) = self.reset_by(arrival, &data) {
            return Received::Connection(handle, arrival.input(InputKind::StatelessReset, PathId::ZERO, data));
        }
        match cid {
            Some(cid) if !cid.is_empty() => self.reset_stranger(arrival, &cid, data.len(), reply),
            _ => Received::Nothing,
        }
    }

    /// The connection that a datagram of nobody's resets, whatever its header looks like (RFC 9000 10.3.1). Costs a hash,
    /// and only for datagrams from peers that gave tokens.
    fn reset_by(&self, arrival: DatagramInfo, data: &[u8]) -> Option<ConnectionHandle> {
        let long_enough = data.len() >= plait_wire::header::stateless_reset::MIN_LEN;
        long_enough.then(|| self.demux.by_reset(arrival.tuple.remote, data)).flatten()
    }

    /// RFC 9000 10.3, 11: tells a peer whose connection we lost.
    fn reset_stranger(
        &mut self,
        arrival: DatagramInfo,
        cid: &ConnectionId,
        received: usize,
        reply: &mut Vec<u8>,
    ) -> Received {
        if !self.config.stateless_resets.is_on() || !self.resets.take(arrival.now) {
            return Received::Nothing;
        }
        let token = self.config.reset_key.token(cid);
        let written = reply::reset(reply, received, &token, &mut self.random);
        answer(written, arrival.tuple, received, reply)
    }

    fn receive_long(&mut self, arrival: DatagramInfo, data: BytesMut, reply: &mut Vec<u8>) -> Received {
        let rule = if self.config.grease.is_on() { FixedBitRule::Ignored } else { FixedBitRule::MustBeSet };
        let Ok((header, span)) = ProtectedHeader::parse(&data, self.config.cid_len, rule) else {
            return match self.reset_by(arrival, &data) {
                Some(handle) => {
                    Received::Connection(handle, arrival.input(InputKind::StatelessReset, PathId::ZERO, data))
                }
                None => Received::Nothing,
            };
        };
        let dcid = ConnectionId::new(header.dcid(&data));
        let to = match dcid {
            Some(cid) if cid.is_empty() => self.demux.by_peer(&arrival.tuple),
            Some(cid) => self.demux.by_cid(&cid),
            None => None,
        };
        if let Some(to) = to {
            return arrival.deliver(to, data);
        }
        // RFC 9000 10.3: other versions might reset under a long header
        if let Some(handle) = self.reset_by(arrival, &data) {
            return Received::Connection(handle, arrival.input(InputKind::StatelessReset, PathId::ZERO, data));
        }
        let unspoken = header.version().is_some_and(|v| v.0 != 0 && !self.config.supports(v));
        if unspoken {
            return self.negotiate(arrival, &header, &data, reply);
        }
        let Some(dcid) = dcid else { return Received::Nothing };
        let key = (arrival.tuple.remote, dcid);
        match self.demux.by_first(&key) {
            Some(FirstOwner::Connection(handle)) => {
                return arrival.deliver(Destination { handle, path: PathId::ZERO }, data);
            }
            Some(FirstOwner::Waiting(id)) => {
                if let Some(server) = &self.server {
                    let input = arrival.input(InputKind::Packets, PathId::ZERO, data);
                    self.waiting.absorb(id, input, &server.waiting_limits());
                }
                return Received::Nothing;
            }
            None => {}
        }
        match header {
            ProtectedHeader::Initial { version, dcid, scid, token } => {
                let first = FirstInitial { version, dcid, scid, token, span };
                self.receive_first(arrival, first, data, reply)
            }
            _ => Received::Nothing,
        }
    }

    /// RFC 9000 6.1: a server tells a client of another version which ones it speaks.
    fn negotiate(
        &mut self,
        arrival: DatagramInfo,
        header: &ProtectedHeader,
        data: &[u8],
        reply: &mut Vec<u8>,
    ) -> Received {
        // RFC 9000 5.2.2: only datagrams large enough to begin a connection are answered.
        if self.server.is_none() || data.len() < MIN_DATAGRAM_BYTES || !self.refusals.take(arrival.now) {
            return Received::Nothing;
        }
        let theirs = (header.dcid(data), header.scid(data));
        reply::negotiate_version(reply, theirs, &self.config.versions, &mut self.random);
        answer(Some(()), arrival.tuple, data.len(), reply)
    }

    /// An Initial that no connection knows. Nothing is kept before it proved to be genuine.
    fn receive_first(
        &mut self,
        arrival: DatagramInfo,
        first: FirstInitial,
        data: BytesMut,
        reply: &mut Vec<u8>,
    ) -> Received {
        let Some(server) = self.server.clone() else { return Received::Nothing };
        // RFC 9000 14.1 and 7.2; and RFC 9000 5.1: servers need ids of their own.
        if data.len() < MIN_DATAGRAM_BYTES || first.dcid.len() < MIN_FIRST_DCID || self.config.cid_len == 0 {
            return Received::Nothing;
        }
        let Some(initial_keys) = first.genuine_keys(&data, &mut self.scratch) else { return Received::Nothing };
        let remote = arrival.tuple.remote;
        let token = data.get(first.token.clone()).unwrap_or_default();
        let now_unix = self.config.unix_seconds(arrival.now);
        let verdict = token::judge(token, (remote, first.version), now_unix, &server, &self.used_tokens);
        let key = (remote, first.dcid);
        if verdict == TokenCheck::Invalid {
            return self.close_stranger(arrival, &first, data.len(), CloseCode::INVALID_TOKEN, reply);
        }
        if self.demux.connections() >= self.config.max_connections {
            return self.close_stranger(arrival, &first, data.len(), CloseCode::CONNECTION_REFUSED, reply);
        }
        let unproven = !verdict.proof().is_validated();
        if unproven && self.is_under_pressure(server.retry, server.max_incoming) {
            return self.retry_stranger(arrival, &first, key, data.len(), reply);
        }
        match self.waiting.enter(arrival.now, key, &server.waiting_limits()) {
            Queued::Full => Received::Nothing,
            Queued::In { id, expired } => {
                if let Some(old) = expired {
                    self.demux.first_forgotten(&old);
                }
                self.demux.first_waits(key, id);
                // RFC 9000 8.1.4: only now the token has served, and serves no more
                if let TokenCheck::Validated(spent) = verdict {
                    self.used_tokens.note(spent);
                }
                let original_dcid = match verdict {
                    TokenCheck::Retry { original_dcid } => original_dcid,
                    _ => first.dcid,
                };
                Received::Incoming(Incoming {
                    id,
                    key,
                    version: first.version,
                    client_scid: first.scid,
                    original_dcid,
                    proof: verdict.proof(),
                    initial_keys: Box::new(initial_keys),
                    // It waits for the application, and must not keep a larger receive buffer for so long.
                    first: arrival.input(InputKind::Packets, PathId::ZERO, BytesMut::from(&*data)),
                    receiver: None,
                })
            }
        }
    }

    /// Whether clients must prove their addresses first. Half of the places for undecided connections are kept for
    /// those who did, so that packets with invented addresses cannot shut others out.
    fn is_under_pressure(&self, policy: RetryPolicy, max_incoming: usize) -> bool {
        let crowded = self.waiting.len() >= max_incoming.div_ceil(2);
        crowded
            || match policy {
                RetryPolicy::Application => false,
                RetryPolicy::AtLeast(count) => self.waiting.len() + self.demux.handshaking() >= count,
                RetryPolicy::Always => true,
            }
    }

    fn retry_stranger(
        &mut self,
        arrival: DatagramInfo,
        first: &FirstInitial,
        key: FirstKey,
        received: usize,
        reply: &mut Vec<u8>,
    ) -> Received {
        let written = self.ask_to_retry(first.version, first.scid, &key, arrival.now, reply);
        answer(written, arrival.tuple, received, reply)
    }

    fn close_stranger(
        &mut self,
        arrival: DatagramInfo,
        first: &FirstInitial,
        received: usize,
        code: CloseCode,
        reply: &mut Vec<u8>,
    ) -> Received {
        if !self.refusals.take(arrival.now) {
            return Received::Nothing;
        }
        let ours = self.random.connection_id(self.config.cid_len);
        let ids = ReplyIds { client: first.scid, ours, answered: first.dcid };
        let written = reply::close(reply, first.version, &ids, code);
        answer(written, arrival.tuple, received, reply)
    }
}

/// The reply in the buffer, if one was written and the 3x rule lets it leave (RFC 9000 8.1).
fn answer(written: Option<()>, tuple: FourTuple, received: usize, reply: &mut Vec<u8>) -> Received {
    match written.and_then(|()| reply::bounded(reply, received)) {
        Some(size) => Received::Reply(Transmit::single(tuple, size)),
        None => Received::Nothing,
    }
}
