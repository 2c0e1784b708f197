//! A connection that the application has not decided on, and the four decisions.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use plait_base::{CloseCode, ConnectionId, FourTuple, Instant, PathId, TransportError};
use plait_crypto::PacketKeys;
use plait_wire::Version;

use super::first::FirstKey;
use super::parts::{AddressProof, ConnectionParts, HandshakeIds, Role, ServerParts};
use super::reply::{self, ReplyIds};
use super::waiting::WaitingId;
use super::{Endpoint, token};
use crate::config::ServerConfig;
use crate::io::{ConnectionHandle, Input, Transmit};

/// A client's authentic first packet, and what is known of the client. To be given back to [`Endpoint::accept`],
/// `refuse`, `retry` or `ignore`; if it is dropped, its place is taken by another after a while.
#[derive(Debug)]
#[must_use = "an incoming connection keeps its place until it is decided on"]
pub struct Incoming {
    pub(super) id: WaitingId,
    pub(super) key: FirstKey,
    pub(super) version: Version,
    pub(super) client_scid: ConnectionId,
    pub(super) original_dcid: ConnectionId,
    pub(super) proof: AddressProof,
    /// Those that its first packet opened under.
    pub(super) initial_keys: Box<PacketKeys>,
    pub(super) first: Input,
    /// Where the caller said so.
    pub(super) receiver: Option<usize>,
}

impl Incoming {
    /// Says which of several sockets of one address its first packet came by.
    pub fn set_receiver(&mut self, receiver: Option<usize>) {
        self.receiver = receiver;
    }

    /// Which of several sockets of one address its first packet came by, as [`Self::set_receiver`] said.
    pub fn receiver(&self) -> Option<usize> {
        self.receiver
    }

    /// The client's address.
    pub fn remote_address(&self) -> SocketAddr {
        self.first.tuple.remote
    }

    /// Our address that it sent to, where the operating system told.
    pub fn local_ip(&self) -> Option<IpAddr> {
        Some(self.first.tuple.local.ip()).filter(|ip| !ip.is_unspecified())
    }

    /// The 4-tuple that its first packet arrived on.
    pub fn tuple(&self) -> FourTuple {
        self.first.tuple
    }

    /// True when the client proved its address.
    pub fn remote_address_validated(&self) -> bool {
        self.proof.is_validated()
    }

    /// True when [`Endpoint::retry`] may be asked: once, before the client has proved its address that way.
    pub fn may_retry(&self) -> bool {
        self.proof != AddressProof::Retry
    }

    /// Destination connection id of the client's very first packet, the name of the connection in traces.
    pub fn orig_dst_cid(&self) -> ConnectionId {
        self.original_dcid
    }

    fn reply_ids(&self, ours: ConnectionId) -> ReplyIds {
        ReplyIds { client: self.client_scid, ours, answered: self.key.1 }
    }
}

/// Why an incoming connection was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AcceptCause {
    /// It waited too long and lost its place.
    #[error("the connection waited too long to be accepted")]
    Expired,
    /// The endpoint serves nobody.
    #[error("the endpoint has no server configuration")]
    NoServer,
    /// As many connections as the endpoint may have.
    #[error("too many connections")]
    TooManyConnections,
    /// No free connection id was found.
    #[error("no connection id is free")]
    CidsExhausted,
    /// The connection could not begin.
    #[error("{0}")]
    Transport(Box<TransportError>),
}

/// An incoming connection that was not accepted, and what to tell the client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cause}")]
pub struct AcceptError {
    /// Why it was not accepted.
    #[source]
    pub cause: AcceptCause,
    /// A close for the client, in the caller's buffer.
    pub reply: Option<Transmit>,
}

/// A Retry that is not possible; gives the connection back.
#[derive(Debug, thiserror::Error)]
#[error("the client has answered a Retry already")]
pub struct RetryError(pub Box<Incoming>);

/// An accepted connection before it is built: its handle, its makings, and the datagrams that waited.
pub(super) struct Admission {
    pub(super) handle: ConnectionHandle,
    pub(super) parts: ConnectionParts,
    pub(super) inputs: Vec<Input>,
}

impl Endpoint {
    /// Gives an incoming connection a handle and an id; `config` overrides the endpoint's own.
    pub(super) fn admit(
        &mut self,
        incoming: Incoming,
        reply: &mut Vec<u8>,
        config: Option<Arc<ServerConfig>>,
    ) -> Result<Admission, AcceptError> {
        reply.clear();
        let Some(later) = self.waiting.leave(incoming.id) else {
            return Err(AcceptError { cause: AcceptCause::Expired, reply: None });
        };
        self.demux.first_forgotten(&incoming.key);
        let Some(config) = config.or_else(|| self.server.clone()) else {
            return Err(self.turn_away(&incoming, AcceptCause::NoServer, reply));
        };
        if self.demux.connections() >= self.config.max_connections {
            return Err(self.turn_away(&incoming, AcceptCause::TooManyConnections, reply));
        }
        let Some(local) = self.free_cid(incoming.receiver) else {
            return Err(self.turn_away(&incoming, AcceptCause::CidsExhausted, reply));
        };
        let handle = self.demux.enter();
        self.demux.register(handle, local, PathId::ZERO);
        self.demux.first_accepted(incoming.key, handle);
        let ids = HandshakeIds {
            local,
            remote: incoming.client_scid,
            original_dcid: incoming.original_dcid,
            retry_scid: (incoming.proof == AddressProof::Retry).then_some(incoming.key.1),
        };
        let parts = ConnectionParts {
            version: incoming.version,
            tuple: incoming.first.tuple,
            ids,
            transport: config.transport.clone(),
            endpoint: self.config.clone(),
            receiver: incoming.receiver,
            random: self.random.fork(),
            role: Role::Server(ServerParts { config, proof: incoming.proof, initial_keys: incoming.initial_keys }),
        };
        let mut inputs = Vec::with_capacity(1 + later.len());
        inputs.push(incoming.first);
        inputs.extend(later);
        Ok(Admission { handle, parts, inputs })
    }

    fn turn_away(&mut self, incoming: &Incoming, cause: AcceptCause, reply: &mut Vec<u8>) -> AcceptError {
        AcceptError { cause, reply: self.refusal(incoming, reply) }
    }

    fn refusal(&mut self, incoming: &Incoming, reply: &mut Vec<u8>) -> Option<Transmit> {
        let ids = incoming.reply_ids(self.random.connection_id(self.config.cid_len));
        reply.clear();
        reply::close(reply, incoming.version, &ids, CloseCode::CONNECTION_REFUSED)?;
        let size = reply::bounded(reply, incoming.first.size())?;
        Some(Transmit::single(incoming.first.tuple, size))
    }

    /// Tells the client CONNECTION_REFUSED and forgets it. None when the client has been forgotten before.
    pub fn refuse(&mut self, incoming: Incoming, reply: &mut Vec<u8>) -> Option<Transmit> {
        reply.clear();
        self.forget(&incoming)?;
        self.refusal(&incoming, reply)
    }

    /// Asks the client to prove its address by a Retry, and forgets it: nothing is kept until it comes back
    /// (RFC 9000 8.1.2). None in the unlikely case that there is nothing to send.
    ///
    /// # Errors
    /// Gives the connection back when the client comes from a Retry already: a second one would be ignored
    /// (RFC 9000 17.2.5).
    pub fn retry(&mut self, incoming: Incoming, reply: &mut Vec<u8>) -> Result<Option<Transmit>, RetryError> {
        if !incoming.may_retry() {
            return Err(RetryError(Box::new(incoming)));
        }
        reply.clear();
        if self.forget(&incoming).is_none() {
            return Ok(None);
        }
        let (version, received) = (incoming.version, incoming.first.size());
        Ok(self.ask_to_retry(version, incoming.client_scid, &incoming.key, incoming.first.arrived, reply).and_then(
            |()| {
                let size = reply::bounded(reply, received)?;
                Some(Transmit::single(incoming.first.tuple, size))
            },
        ))
    }

    /// Forgets the client without a word.
    pub fn ignore(&mut self, incoming: Incoming) {
        self.forget(&incoming);
    }

    fn forget(&mut self, incoming: &Incoming) -> Option<()> {
        self.waiting.leave(incoming.id)?;
        self.demux.first_forgotten(&incoming.key);
        Some(())
    }

    /// Writes a Retry for the client that sent an Initial under `key`.
    pub(super) fn ask_to_retry(
        &mut self,
        version: Version,
        client: ConnectionId,
        key: &FirstKey,
        now: Instant,
        reply: &mut Vec<u8>,
    ) -> Option<()> {
        let server = self.server.clone()?;
        let now_unix = self.config.unix_seconds(now);
        let token = token::for_retry(&server, key.0, key.1, now_unix, &mut self.random);
        // RFC 9000 17.2.5.1: another id than the client chose; as long as ids of first packets must be, because the
        // client will use it for one.
        let ours = self.random.connection_id(self.config.cid_len.max(super::first::MIN_FIRST_DCID));
        let ids = ReplyIds { client, ours, answered: key.1 };
        reply.clear();
        reply::ask_to_retry(reply, version, &ids, &token, &mut self.random)
    }
}
