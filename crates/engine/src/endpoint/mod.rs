//! The endpoint: finds the connection of each datagram, and answers those that have none.
//!
//! A datagram comes in by [`Endpoint::receive`]. An id of ours names connection and path (`demux`). A client's first
//! packet is opened before anything is kept for it (`first`); only an authentic one becomes an [`Incoming`], whose
//! later datagrams wait in `waiting`. What has no connection is answered, if at all, by `reply`: never with more
//! than three times its bytes, and resets, version negotiations and closes no more often than `bucket` allows.

mod bucket;
mod cid_list;
mod cid_map;
mod connect;
mod demux;
mod first;
mod incoming;
mod known;
pub(crate) mod parts;
mod race;
mod receive;
mod reply;
#[cfg(test)]
mod tests;
mod token;
mod waiting;

use std::fmt;
use std::sync::Arc;

use plait_base::{ConnectionId, Instant, PathId, Random};
use plait_crypto::ResetKey;

use crate::config::{EndpointConfig, ServerConfig};
use crate::io::{ConnectionHandle, EndpointEvent, Input};
use bucket::Bucket;
use demux::Demux;
use token::UsedTokens;
use waiting::{Waiting, WaitingLimits};

pub use connect::ConnectError;
pub use incoming::{AcceptCause, AcceptError, Incoming, RetryError};
pub use known::KnownIds;
pub use race::{AttemptDelays, Race, pairs};
pub use receive::Received;

/// All connections of one or more sockets that share connection ids.
pub struct Endpoint {
    config: Arc<EndpointConfig>,
    server: Option<Arc<ServerConfig>>,
    random: Random,
    demux: Demux,
    waiting: Waiting,
    used_tokens: UsedTokens,
    resets: Bucket,
    /// Version Negotiation, and CONNECTION_CLOSE where no connection is to begin.
    refusals: Bucket,
    /// Where first packets are opened; kept to spare an allocation for each.
    scratch: Vec<u8>,
}

impl Endpoint {
    /// An endpoint without connections. It accepts some only with a `server`; `random` decides everything that is
    /// left to chance, so that equal seeds give equal bytes.
    pub fn new(config: Arc<EndpointConfig>, server: Option<Arc<ServerConfig>>, mut random: Random) -> Self {
        let hiding_key = ResetKey::generate(&mut random);
        Self {
            resets: Bucket::new(config.resets_per_second),
            refusals: Bucket::new(config.resets_per_second),
            config,
            server,
            random,
            demux: Demux::new(hiding_key),
            waiting: Waiting::default(),
            used_tokens: UsedTokens::default(),
            scratch: Vec::new(),
        }
    }

    /// Accepts connections with these settings from now on, or none. Those that exist are not touched.
    pub fn set_server_config(&mut self, server: Option<Arc<ServerConfig>>) {
        self.server = server;
    }

    /// Connections that have not drained.
    pub fn connections(&self) -> usize {
        self.demux.connections()
    }

    /// Connections that wait for a decision of the application.
    pub fn incoming(&self) -> usize {
        self.waiting.len()
    }

    /// A connection tells its news. News of connections that have drained are ignored. What comes back is for another connection,
    /// to be handed to it as if it had been received.
    pub fn on_connection_event(
        &mut self,
        handle: ConnectionHandle,
        event: EndpointEvent,
    ) -> Option<(ConnectionHandle, Input)> {
        match event {
            EndpointEvent::AddressProven { successor, tuple, at } => {
                let to = self.demux.by_cid(&successor).filter(|to| to.is_somebody() && to.handle != handle)?;
                return Some((to.handle, Input::address_proven(at, tuple)));
            }
            EndpointEvent::Register { cid, path } => self.demux.register(handle, cid, path),
            EndpointEvent::Retire { cid } => self.demux.retire(handle, cid),
            EndpointEvent::ResetToken { remote, token } => self.demux.register_reset(handle, remote, &token),
            EndpointEvent::ForgetToken { remote, token } => self.demux.forget_reset(handle, remote, &token),
            EndpointEvent::Established => self.demux.established(handle),
            EndpointEvent::Draining { .. } => {}
            EndpointEvent::Drained => self.demux.leave(handle),
        }
        None
    }

    /// A connection that its peer closed ([`EndpointEvent::Draining`]) is dropped, and its handle may be given away. Packets of
    /// the peer that come until then are not answered (RFC 9000 10.2.2).
    pub fn let_go(&mut self, handle: ConnectionHandle, now: Instant, until: Instant) {
        self.demux.depart(handle, now, until);
    }

    /// The ids by which datagrams find a connection now, with the path that each leads to.
    pub fn ids_of(&self, handle: ConnectionHandle) -> impl Iterator<Item = (ConnectionId, PathId)> + '_ {
        self.demux.ids_of(handle)
    }

    /// A random id of our length that no connection has, and that leads to a receiver where there are several; the empty one when our ids are empty.
    fn free_cid(&mut self, receiver: Option<usize>) -> Option<ConnectionId> {
        const TRIES: usize = 8;
        let len = self.config.cid_len;
        if len == 0 {
            return Some(ConnectionId::EMPTY);
        }
        let Self { config, random, demux, .. } = self;
        (0..TRIES).map(|_| config.draw_cid(len, receiver, random)).find(|cid| !demux.is_taken(cid))
    }
}

impl ServerConfig {
    fn waiting_limits(&self) -> WaitingLimits {
        WaitingLimits {
            connections: self.max_incoming,
            bytes: self.incoming_buffer_bytes,
            lifetime: self.incoming_lifetime,
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("connections", &self.connections())
            .field("incoming", &self.incoming())
            .finish_non_exhaustive()
    }
}
