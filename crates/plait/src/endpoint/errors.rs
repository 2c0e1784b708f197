//! Why an endpoint could not be made, and why a connection could not begin.

use std::net::SocketAddr;

use crate::entropy::NoEntropy;
use crate::net::BindError;

/// Why an endpoint could not be made.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// A socket could not be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The operating system gave no randomness.
    #[error(transparent)]
    NoEntropy(#[from] NoEntropy),
    /// The threads that serve paths could not be started.
    #[error("the system gives no {threads} threads to serve paths: {error}; set fewer workers")]
    Workers {
        /// How many were asked for.
        threads: usize,
        /// What the system says.
        #[source]
        error: std::io::Error,
    },
    /// The interfaces could not be listed.
    #[error("the network interfaces could not be listed: {0}")]
    Interfaces(#[source] std::io::Error),
    /// There is no address to use.
    #[error("no interface has a usable address")]
    NoAddress,
}

/// Why a connection could not begin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// The endpoint is closed, or the runtime gone that it was made in.
    #[error("the endpoint is closed")]
    EndpointStopping,
    /// Neither the call nor the endpoint has client settings.
    #[error("no client configuration was set")]
    NoDefaultClientConfig,
    /// No socket of the endpoint can reach the address: it is of another family.
    #[error("no socket of the endpoint can reach {0}")]
    NoSocket(SocketAddr),
    /// No address to connect to was given.
    #[error("there is no address to connect to")]
    NoAddress,
    /// The engine refused.
    #[error(transparent)]
    Refused(#[from] plait_engine::endpoint::ConnectError),
}
