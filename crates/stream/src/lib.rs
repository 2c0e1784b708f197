//! Streams, their flow control, application datagrams and CRYPTO data of one connection.
//!
//! Values only: a part is told of facts (`on_*`), fills packets (`fill*`) and answers the application. It knows
//! no path and no packet number; what a packet carried comes back as [`plait_wire::SentFrame`], acked or lost.
//!
//! - [`Streams`]: every stream of a connection and the connection's flow control (RFC 9000 2, 3, 4).
//! - [`Lease`]: bytes of a stream that whoever serves a path makes packets of.
//! - [`Lanes`]: streams whose data may go together, where not all of it may.
//! - [`Datagrams`]: unreliable datagrams, bounded queues both ways (RFC 9221).
//! - [`CryptoStream`]: handshake bytes of one packet number space (RFC 9000 7.5, 19.6).

mod byte_ranges;
mod config;
mod credit;
mod crypto_stream;
mod datagrams;
mod events;
mod lanes;
mod lease;
mod piece;
mod priority;
mod reassembly;
mod receive;
mod send;
mod send_buffer;
mod sink;
mod streams;
mod table;
#[cfg(test)]
mod testing;

pub use config::{PeerLimits, StreamsConfig, Window};
pub use crypto_stream::CryptoStream;
pub use datagrams::{Datagrams, DatagramsConfig, DroppedDatagrams, Overflow, SendDatagramError};
pub use events::{Chunk, ClosedStream, Order, ReadError, StreamEvent, WriteError};
pub use lanes::Lanes;
pub use lease::{Lease, LeaseWriter};
pub use streams::Streams;
