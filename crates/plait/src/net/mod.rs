//! UDP sockets with batches: GSO batches out, GRO batches in, ECN marks both ways.
//!
//! Nothing here knows QUIC: datagrams move between tokio and the operating system through `quinn-udp`.

mod batch;
mod polled;
mod report;
mod socket;
mod spare;

#[cfg(test)]
mod tests;

pub(crate) use batch::{ReceiveBatch, ReceivedMessage};
pub(crate) use quinn_udp::EcnCodepoint;
pub(crate) use report::{Obstacle, Reports};
pub use socket::{BindError, SocketOptions, Wildcard};
pub(crate) use socket::{Outgoing, SendOutcome, Socket};
pub(crate) use spare::SpareBuffers;
