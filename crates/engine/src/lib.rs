//! The QUIC engine: connections and endpoints without sockets, clocks or threads.
//!
//! Datagrams, time and randomness come in as arguments; datagrams, deadlines and events go out. [`Endpoint`] finds the
//! connection of each datagram; [`Connection`] is one connection over one path or many (RFC 9000, 9001, 9002, 10069).

pub mod config;
pub mod connection;
pub mod endpoint;
mod io;

pub use config::{ClientConfig, EndpointConfig, ServerConfig, TransportConfig};
pub use connection::{Connection, ConnectionError, Event, PathEvent};
pub use endpoint::{Endpoint, Incoming, Received};
pub use io::{ConnectionHandle, EndpointEvent, Input, More, Transmit};
pub use plait_base as base;
pub use plait_congestion as congestion;
pub use plait_crypto as crypto;
pub use plait_path as path;
pub use plait_schedule as schedule;
pub use plait_stream as stream;
pub use plait_wire::Version;
