//! What a link answers about a datagram: dropped, delivered at these instants, or waiting in the queue.

use plait_base::{Ecn, Instant};

/// Why a link dropped a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DropCause {
    /// The queue was full.
    QueueFull,
    /// Active queue management dropped it (CoDel, RED).
    Aqm,
    /// The loss model took it.
    Loss,
    /// It is larger than the link's MTU.
    TooBig,
    /// The link is down, or went down while it waited.
    Down,
}

impl DropCause {
    /// Every cause, in the order of the statistics.
    pub const ALL: [Self; 5] = [Self::QueueFull, Self::Aqm, Self::Loss, Self::TooBig, Self::Down];
}

/// Whether the bytes that arrive are the bytes that entered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Integrity {
    /// It arrives as it was sent.
    #[default]
    Intact,
    /// The caller must flip at least one bit, or drop the datagram as a checksum would.
    Corrupted,
}

/// One copy of a datagram at the far end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When its last bit arrives.
    pub at: Instant,
    /// Whether it is intact.
    pub integrity: Integrity,
}

/// A datagram that gets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// When its last bit leaves the near end.
    pub departure: Instant,
    /// The mark that it carries at the far end; CE where the queue marked it.
    pub ecn: Option<Ecn>,
    /// The copy that always arrives.
    pub first: Arrival,
    /// The duplicate, where there is one.
    pub second: Option<Arrival>,
}

impl Delivery {
    /// The one or two arrivals.
    pub fn arrivals(&self) -> impl Iterator<Item = Arrival> + use<> {
        std::iter::once(self.first).chain(self.second)
    }
}

/// Names a datagram that waits in the queue; tickets of a link count up from 0 and are released in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// The answer to an offered datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It gets through, and its times are already known.
    Forward(Delivery),
    /// Its fate is decided when it is taken from the queue: see [`crate::link::Link::poll`].
    Queued(Ticket),
    /// It is gone.
    Dropped(DropCause),
}

/// The fate of a datagram that waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It gets through.
    Forward(Delivery),
    /// It is gone.
    Dropped(DropCause),
}

/// A datagram leaves the queue, one way or the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// The ticket that the datagram got when it was queued.
    pub ticket: Ticket,
    /// What became of the datagram.
    pub outcome: Outcome,
}
