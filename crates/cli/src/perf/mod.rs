//! Load for measurements, over QUIC or over TLS and kernel TCP.
//!
//! The protocol is `perf` of draft-banks-quic-performance: a stream begins with eight bytes, big-endian, that say how many
//! bytes the server answers with once the stream has ended. A server of ours also speaks `plait-perf`, which is the same,
//! except that numbers from 2^62 on, more than a stream can carry, are questions.

pub(crate) mod args;
pub(crate) mod bulk;
pub(crate) mod carrier;
pub(crate) mod connections;
pub(crate) mod cpu;
pub(crate) mod datagrams;
pub(crate) mod delays;
pub(crate) mod dialer;
pub(crate) mod ending;
pub(crate) mod exchanges;
pub(crate) mod head;
pub(crate) mod load;
pub(crate) mod load_meters;
pub(crate) mod null_receiver;
pub(crate) mod paced;
pub(crate) mod pipe;
pub(crate) mod plan;
pub(crate) mod question;
pub(crate) mod requests;
pub(crate) mod scaling_law;
pub(crate) mod server;
pub(crate) mod tcp;
pub(crate) mod thread_times;

use crate::service::{Receiver, Service};

/// What measures with us.
pub(crate) const PERF: Service =
    Service { protocols: &[OURS, "perf"], server: "plait perf server", receiver: Receiver::Reads };
/// The protocol in which questions may be asked.
pub(crate) const OURS: &str = "plait-perf";

/// Length of what a stream begins with.
pub(crate) const HEAD_BYTES: usize = 8;
/// Largest piece read from a stream at once, bytes.
pub(crate) const PIECE_BYTES: usize = 256 * 1024;

/// Codes with which either side gives a stream up; they read like those of HTTP.
pub(crate) mod code {
    /// It was told all that it wanted.
    pub(crate) const ENOUGH: u64 = 0;
    /// The stream began with no eight bytes, or with a number that no stream can carry.
    pub(crate) const BAD_REQUEST: u64 = 400;
    /// Nothing of what was asked for was taken; the connection ends with this.
    pub(crate) const STALLED: u64 = 408;
}
