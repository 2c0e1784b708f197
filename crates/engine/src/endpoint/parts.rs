//! What a connection is made of at birth: everything that `Connection::new` gets from the endpoint.

use std::sync::Arc;

use bytes::Bytes;
use plait_base::{ConnectionId, FourTuple, Random, Side};
use plait_crypto::{ClientTlsConfig, PacketKeys};
use plait_wire::Version;

use crate::config::{EndpointConfig, ServerConfig, TokenStore, TransportConfig};

/// The makings of a connection.
#[derive(Debug)]
pub(crate) struct ConnectionParts {
    /// Version of the first packet.
    pub(crate) version: Version,
    /// Addresses of the handshake path. On a client the local IP may be unspecified.
    pub(crate) tuple: FourTuple,
    /// The connection ids of the first packets.
    pub(crate) ids: HandshakeIds,
    /// What only one of the two sides has.
    pub(crate) role: Role,
    /// The transport settings.
    pub(crate) transport: Arc<TransportConfig>,
    /// The endpoint's settings: id length, reset key, versions, token time.
    pub(crate) endpoint: Arc<EndpointConfig>,
    /// Which of several receivers the ids of path 0 lead to.
    pub(crate) receiver: Option<usize>,
    /// The connection's own generator.
    pub(crate) random: Random,
}

/// The connection ids of the handshake (RFC 9000 7.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HandshakeIds {
    /// Our first source connection id: sequence 0 of path 0, already registered at the endpoint; empty on clients that
    /// use zero-length ids. Announced as initial_source_connection_id.
    pub(crate) local: ConnectionId,
    /// The peer's id. On a server the client's source connection id; on a client the random id of the first packet,
    /// until the server chooses one.
    pub(crate) remote: ConnectionId,
    /// Destination connection id of the client's very first Initial. A server announces it as
    /// original_destination_connection_id; a client expects to see it there.
    pub(crate) original_dcid: ConnectionId,
    /// On a server whose client came back after a Retry: the id that the Retry gave, to be announced as
    /// retry_source_connection_id. The Initial keys derive from it then, see [`Self::keys_from`].
    pub(crate) retry_scid: Option<ConnectionId>,
}

impl HandshakeIds {
    /// The id from which the Initial keys derive (RFC 9001 5.2).
    pub(crate) fn keys_from(&self) -> ConnectionId {
        self.retry_scid.unwrap_or(self.original_dcid)
    }
}

/// What only one side of a connection has.
#[derive(Debug)]
pub(crate) enum Role {
    /// We open the connection.
    Client(ClientParts),
    /// The peer opened the connection.
    Server(ServerParts),
}

impl ConnectionParts {
    /// Which side this will be.
    pub(crate) fn side(&self) -> Side {
        match self.role {
            Role::Client(_) => Side::Client,
            Role::Server(_) => Side::Server,
        }
    }
}

/// What a client has.
#[derive(Debug)]
pub(crate) struct ClientParts {
    /// TLS settings of the session to begin.
    pub(crate) tls: ClientTlsConfig,
    /// Name of the server: checked against its certificate, and the key of the token store.
    pub(crate) server_name: String,
    /// A token for the first Initial, from an earlier connection; often empty.
    pub(crate) token: Bytes,
    /// Where tokens of NEW_TOKEN frames go.
    pub(crate) token_store: Arc<dyn TokenStore>,
}

/// What a server has.
#[derive(Debug)]
pub(crate) struct ServerParts {
    /// TLS, token and migration settings.
    pub(crate) config: Arc<ServerConfig>,
    /// How the client's address is known; decides whether the 3x rule applies.
    pub(crate) proof: AddressProof,
    /// Those of the client's first packet.
    pub(crate) initial_keys: Box<PacketKeys>,
}

/// What a client's first Initial proved about its address (RFC 9000 8.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressProof {
    /// Nothing: at most three times the bytes received may be sent until the handshake proves it.
    None,
    /// It returned the token of a Retry.
    Retry,
    /// It brought a token of a NEW_TOKEN frame.
    Token,
}

impl AddressProof {
    /// True when the address counts as validated.
    pub(crate) fn is_validated(self) -> bool {
        self != Self::None
    }
}
