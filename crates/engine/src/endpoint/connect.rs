//! Where connections begin: ours to others, and those that the application accepts.

use std::sync::Arc;

use plait_base::{FourTuple, Instant, PathId, TransportError};

use super::incoming::{AcceptCause, AcceptError, Admission};
use super::parts::{ClientParts, ConnectionParts, HandshakeIds, Role};
use super::{Endpoint, Incoming, first};
use crate::config::{ClientConfig, ServerConfig, token_name};
use crate::connection::Connection;
use crate::io::{ConnectionHandle, Input};

/// Why a connection could not begin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// As many connections as the endpoint may have.
    #[error("too many connections")]
    TooManyConnections,
    /// Port 0 or no address.
    #[error("an address that nobody can have")]
    InvalidRemoteAddress,
    /// Ids are empty and another connection uses these addresses.
    #[error("a connection without ids exists between these addresses")]
    AddressInUse,
    /// No free connection id was found.
    #[error("no connection id is free")]
    CidsExhausted,
    /// The endpoint does not speak the version of the configuration.
    #[error("the endpoint does not speak this version")]
    UnsupportedVersion,
    /// TLS could not begin: the server name or the configuration is not valid.
    #[error("{0}")]
    Transport(TransportError),
}

impl Endpoint {
    /// Begins a connection to `tuple.remote`, whose certificate must be for `server_name`. The local IP of `tuple` may
    /// be unspecified.
    ///
    /// # Errors
    /// See [`ConnectError`]; nothing is kept then.
    pub fn connect(
        &mut self,
        now: Instant,
        config: ClientConfig,
        tuple: FourTuple,
        server_name: &str,
    ) -> Result<(ConnectionHandle, Connection), ConnectError> {
        let (handle, parts) = self.prepare(config, tuple, server_name)?;
        match Connection::new(now, parts) {
            Ok(connection) => Ok((handle, connection)),
            Err(error) => {
                self.demux.leave(handle);
                Err(ConnectError::Transport(error))
            }
        }
    }

    /// All of [`Self::connect`] but the connection itself.
    pub(super) fn prepare(
        &mut self,
        config: ClientConfig,
        tuple: FourTuple,
        server_name: &str,
    ) -> Result<(ConnectionHandle, ConnectionParts), ConnectError> {
        if tuple.remote.port() == 0 || tuple.remote.ip().is_unspecified() {
            return Err(ConnectError::InvalidRemoteAddress);
        }
        if !self.config.supports(config.version) && !config.version.is_reserved() {
            return Err(ConnectError::UnsupportedVersion);
        }
        if self.demux.connections() >= self.config.max_connections {
            return Err(ConnectError::TooManyConnections);
        }
        let local = self.free_cid(None).ok_or(ConnectError::CidsExhausted)?;
        let handle = self.demux.enter();
        if !local.is_empty() {
            self.demux.register(handle, local, PathId::ZERO);
        } else if !self.demux.register_peer(handle, tuple) {
            self.demux.leave(handle);
            return Err(ConnectError::AddressInUse);
        }
        // RFC 9000 7.2: unpredictable, at least 8 bytes.
        let dcid = config.first_dcid.unwrap_or_else(|| self.random.connection_id(first::CLIENT_DCID_LEN));
        let token = config.token_store.take(&token_name(server_name, config.version)).unwrap_or_default();
        let parts = ConnectionParts {
            version: config.version,
            tuple,
            ids: HandshakeIds { local, remote: dcid, original_dcid: dcid, retry_scid: None },
            role: Role::Client(ClientParts {
                tls: config.tls,
                server_name: server_name.to_owned(),
                token,
                token_store: config.token_store,
            }),
            transport: config.transport,
            endpoint: self.config.clone(),
            receiver: None,
            random: self.random.fork(),
        };
        Ok((handle, parts))
    }

    /// Accepts an incoming connection; `config` overrides the endpoint's server settings. `reply` is cleared, and holds
    /// the bytes of an error's reply.
    ///
    /// # Errors
    /// See [`AcceptCause`]; nothing is kept then.
    pub fn accept(
        &mut self,
        incoming: Incoming,
        now: Instant,
        reply: &mut Vec<u8>,
        config: Option<Arc<ServerConfig>>,
    ) -> Result<(ConnectionHandle, Connection), AcceptError> {
        let (handle, mut connection, inputs) = self.accept_unread(incoming, now, reply, config)?;
        for input in inputs {
            connection.handle_datagram(now, input);
        }
        Ok((handle, connection))
    }

    /// As [`Self::accept`], for callers who share the endpoint: the datagrams that came so far are for them to hand to the connection,
    /// in this order, once others may use the endpoint again. The first brings the ClientHello, whose answer costs a signature.
    ///
    /// # Errors
    /// See [`AcceptCause`]; nothing is kept then.
    pub fn accept_unread(
        &mut self,
        incoming: Incoming,
        now: Instant,
        reply: &mut Vec<u8>,
        config: Option<Arc<ServerConfig>>,
    ) -> Result<(ConnectionHandle, Connection, Vec<Input>), AcceptError> {
        let Admission { handle, parts, inputs } = self.admit(incoming, reply, config)?;
        match Connection::new(now, parts) {
            Ok(connection) => Ok((handle, connection, inputs)),
            Err(error) => {
                self.demux.leave(handle);
                Err(AcceptError { cause: AcceptCause::Transport(Box::new(error)), reply: None })
            }
        }
    }
}
