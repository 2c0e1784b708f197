//! What a queue holds of a datagram: the payload stays with the caller.

use plait_base::{Ecn, Instant};

use crate::link::verdict::Ticket;

/// A datagram that waits in a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queued {
    pub(crate) ticket: Ticket,
    pub(crate) entered: Instant,
    pub(crate) bytes: u64,
    pub(crate) ecn: Option<Ecn>,
}
