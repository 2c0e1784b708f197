//! plait: QUIC over several paths at once, for tokio.
//!
//! An [`Endpoint`] owns sockets, one for each local address, and all [`Connection`]s over them. A connection carries
//! streams and datagrams over every path that is open between the two ends (RFC 9000, RFC 9221, RFC 10069): with the
//! path policy `fullmesh` a client opens one from each of its addresses by itself, with `manual`, the default, the
//! application calls [`Connection::open_path`]. Most names are quinn's; those about paths are noq's.
//!
//! * [`Endpoint::connect`] gives [`Connecting`], which gives a [`Connection`]; [`Endpoint::accept`] gives [`Incoming`].
//! * [`Connection::open_bi`] and its kin give [`SendStream`] and [`RecvStream`], which are tokio's `AsyncWrite` and
//!   `AsyncRead`; `send_datagram` and `read_datagram` carry what may be lost.
//! * [`Path`], [`PathEvents`] and [`Connection::stats`] tell what each path does.
//! * [`ClientConfig`], [`ServerConfig`], [`EndpointConfig`] and [`TransportConfig`] hold the settings; schedulers,
//!   congestion controllers, ACK routes, reinjection and path policies are chosen by name: [`scheduler`],
//!   [`congestion_controller`], [`ack_route`], [`reinjection`], [`path_policy`]. An application's own are as good: [`policy`]
//!   has the traits, their values and an example of each.
//!
//! Connections go on when addresses of ours change. A client's endpoint watches those of the machine: paths whose address
//! is gone move to another, and a wildcard socket sends from whatever address the system chooses (RFC 9000 9).
//! [`PathEvent::AllFailed`] tells that nothing gets through, [`PathEvent::Restored`] that something does again.
//!
//! All futures may be dropped at any time without loss, unless their documentation says otherwise. Every queue is
//! bounded: writers wait for the network, senders of datagrams for room, and peers for readers.
//!
//! With the feature `aws-lc-rs` the first handshake of a process takes a tenth of a second of CPU time more, in which aws-lc
//! measures the jitter of the CPU for its seed. Built with `AWS_LC_SYS_NO_JITTER_ENTROPY=1` in the environment, or under
//! `[env]` of the program's `.cargo/config.toml`, it asks the operating system.

mod clock;
mod config;
mod connection;
mod datagram;
mod endpoint;
mod entropy;
mod interfaces;
mod net;
mod path;
pub mod policy;
mod registry;
mod sockets;
mod stream;
mod timer;
mod wakers;
mod workers;

pub use config::{ClientConfig, EndpointConfig, ServerConfig, SetupError};
pub use connection::{Attempt, AttemptOutcome, Connecting, Connection, ConnectionStats, ZeroRttAccepted};
pub use datagram::SendDatagramError;
pub use endpoint::{Accept, ConnectError, Endpoint, EndpointError, Incoming, IncomingFuture, RetryError};
pub use entropy::NoEntropy;
pub use interfaces::{LocalAddress, addresses_of, usable_addresses};
pub use net::{BindError, SocketOptions, Wildcard};
pub use path::{OpenPath, OpenPathError, Path, PathEvents, PathTuple};
pub use registry::{
    ACK_ROUTES, CONGESTION_CONTROLLERS, PATH_POLICIES, REINJECTIONS, SCHEDULERS, ack_route, congestion_controller,
    path_policy, reinjection, scheduler,
};
pub use sockets::Bind;
pub use stream::{
    ReadError, ReadExactError, ReadToEndError, RecvStream, ResetError, SendStream, StoppedError, WriteError, Written,
};

pub use workers::WorkerFigures;

pub use plait_base::observe::{ObserverFactory, PathState, PeerReport};
pub use plait_base::{CloseCode, ConnectionId, Dir, FourTuple, PathId, Side, StreamId, TransportError};
pub use plait_crypto::tls::{self, ClientTlsConfig, Identity, ServerTlsConfig};
pub use plait_crypto::{ExportError, UpdateRefused};
pub use plait_engine as engine;
pub use plait_engine::Version;
pub use plait_engine::config::{
    AckFrequencyConfig, Extension, MemoryTokenStore, MigrationPolicy, MtuDiscoveryConfig, NoTokenStore, RetryPolicy,
    StreamPlacement, Switch, TokenStore, TransportConfig,
};
pub use plait_engine::connection::{
    ApplicationClose, ConnectionError, HandshakeSummary, PathError, PathEvent, PathStatistics, Policies, Unreachable,
};
pub use plait_engine::endpoint::pairs;
pub use plait_path::{AddressScope, PathStatus};
pub use plait_stream::{Chunk, ClosedStream, Order};
pub use rustls;
