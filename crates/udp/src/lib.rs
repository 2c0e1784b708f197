//! UDP sockets with batches: GSO trains out, GRO batches in, ECN marks both ways.
//!
//! This crate knows no QUIC: it moves datagrams between tokio and the operating system through `quinn-udp`.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use plait_udp::{Outgoing, ReceiveBatch, Socket, SocketOptions};
//! use std::future::poll_fn;
//! let a = Socket::bind("127.0.0.1:0".parse().unwrap(), &SocketOptions::default()).unwrap();
//! let b = Socket::bind("127.0.0.1:0".parse().unwrap(), &SocketOptions::default()).unwrap();
//! let out = Outgoing { remote: b.local_addr(), source: None, ecn: None, bytes: b"hello", segment_bytes: None };
//! poll_fn(|cx| a.poll_send(cx, &out)).await.unwrap();
//! let mut batch = ReceiveBatch::default();
//! poll_fn(|cx| b.poll_receive(cx, &mut batch)).await.unwrap();
//! let got = batch.next().unwrap();
//! assert_eq!((&got.bytes[..], got.remote), (&b"hello"[..], a.local_addr()));
//! # });
//! ```

mod batch;
mod report;
mod socket;

pub use batch::{Incoming, ReceiveBatch};
pub use quinn_udp::EcnCodepoint;
pub use report::{Obstacle, Reports, Undelivered};
pub use socket::{BindError, Outgoing, SendOutcome, Socket, SocketOptions};
