//! The one vocabulary of events that observers read: tracing, qlog, metrics and oracles.
//!
//! Observers never steer: nothing in the engine reads an event back.

use std::fmt::Debug;
use std::time::Duration;

use crate::errors::CloseCode;
use crate::ids::{ConnectionId, FourTuple, PathId, Side, Space};
use crate::time::Instant;

/// Why a packet was dropped before its frames were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// Its header could not be parsed.
    Malformed,
    /// No keys (yet, or any more) for its type.
    NoKeys,
    /// No key opened it.
    Authentication,
    /// Its packet number was seen before.
    Duplicate,
    /// It arrived from an address that the path does not accept.
    WrongAddress,
    /// Its path id is forgotten, was refused or never allowed.
    UnknownPath,
    /// A version that this connection does not use.
    WrongVersion,
    /// A queue that is bounded was full.
    Overflow,
}

/// Why a packet was declared lost (RFC 9002 6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossTrigger {
    /// Enough later packets were acknowledged.
    Reordering,
    /// Enough time passed.
    Time,
    /// The path or its keys are gone.
    Discarded,
}

/// What ended a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseTrigger {
    /// An application closed it.
    Application,
    /// A transport closed it: a rule was broken, or an end could not go on.
    Error,
    /// A transport closed it without an error; an attempt that nobody wants any more ends so.
    NoError,
    /// Nothing was heard for the idle timeout, or the handshake took too long.
    IdleTimeout,
    /// The peer lost the connection's state.
    StatelessReset,
    /// The peer speaks no version that we speak.
    VersionMismatch,
    /// The network said that the peer is out of reach.
    Unreachable,
}

/// State of a path; programs read its [`Self::name`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathState {
    /// Its address is being validated.
    Validating,
    /// It carries data.
    Active,
    /// It carries data only when no other path can.
    Backup,
    /// Potentially failed: a probe time-out passed with nothing heard.
    Failed,
    /// A uniflow that leads nowhere: packets may arrive under its id, none leaves (Multiflow).
    Unused,
    /// PATH_ABANDON was sent or received; late packets drain.
    Closing,
    /// All of its state is gone.
    Closed,
}

impl PathState {
    /// The word that programs read.
    pub fn name(self) -> &'static str {
        match self {
            Self::Validating => "validating",
            Self::Active => "active",
            Self::Backup => "backup",
            Self::Failed => "failed",
            Self::Unused => "unused",
            Self::Closing => "closing",
            Self::Closed => "closed",
        }
    }
}

/// Something that happened on a connection. Bytes are those of UDP payloads, packet numbers are those on the wire.
#[allow(missing_docs)] // a field whose name says all has no text
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TraceEvent {
    /// The connection came to be.
    Started {
        side: Side,
        version: u32,
        /// The first Initial's destination connection id, the trace's name.
        original_dcid: ConnectionId,
        /// Addresses of the handshake path.
        tuple: FourTuple,
    },
    /// The connection goes on in another version than it began in (RFC 9368 2.3).
    VersionChanged { version: u32 },
    /// The handshake finished.
    HandshakeCompleted {
        /// True when RFC 10069 was negotiated.
        multipath: bool,
    },
    /// A packet left.
    PacketSent {
        /// Path it left on.
        path: PathId,
        /// Its number space.
        space: Space,
        number: u64,
        /// Its bytes, header to tag.
        bytes: u16,
        /// True when the peer must acknowledge it.
        ack_eliciting: bool,
    },
    /// A packet was opened.
    PacketReceived {
        /// Path it arrived on.
        path: PathId,
        /// Its number space.
        space: Space,
        number: u64,
        /// Its bytes, header to tag.
        bytes: u16,
    },
    /// A packet was dropped.
    PacketDropped { bytes: usize, why: DropReason },
    /// The peer acknowledged a range of packet numbers; one event for each range of a frame.
    AckReceived {
        /// Path whose numbers they are.
        path: PathId,
        /// Their number space.
        space: Space,
        first: u64,
        last: u64,
        /// Which range of the frame it is, from 0.
        index: u32,
    },
    /// A packet was declared lost.
    PacketLost {
        /// Path it left on.
        path: PathId,
        /// Its number space.
        space: Space,
        number: u64,
        trigger: LossTrigger,
    },
    /// A probe time-out fired.
    ProbeTimeout {
        /// Path it fired on.
        path: PathId,
        /// How many fired in a row.
        count: u32,
    },
    /// How a path fares; said when an ack gave an RTT sample, not at each change.
    Metrics {
        path: PathId,
        rtt: Duration,
        rtt_min: Duration,
        rtt_var: Duration,
        /// Congestion window, bytes.
        window_bytes: u64,
        /// Bytes in flight.
        in_flight_bytes: u64,
        /// Slow start threshold, bytes.
        ssthresh_bytes: u64,
    },
    /// A path changed state.
    Path {
        path: PathId,
        tuple: FourTuple,
        /// The new state.
        state: PathState,
    },
    /// The path's largest datagram changed.
    Mtu {
        path: PathId,
        /// UDP payload, bytes.
        bytes: u16,
    },
    /// The peer told how a path does on which it sends (MPX_PATHS).
    PeerReport {
        path: PathId,
        /// What it told.
        report: PeerReport,
    },
    /// The keys changed (RFC 9001 6).
    KeysUpdated {
        /// True when we began it.
        locally: bool,
    },
    /// The connection ends, by a close, a reset, silence or the network's word; said once.
    Closed {
        /// True when we end it.
        locally: bool,
        /// The code, a transport's or the application's; none where no close was sent or came.
        code: Option<CloseCode>,
        reason: String,
        trigger: CloseTrigger,
    },
}

/// What the peer told of a path on which it sends, as it measures it (MPX_PATHS): a hint, like all that a peer says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerReport {
    /// Active, backup, failed, or closing for one that it abandoned.
    pub state: PathState,
    /// Smoothed RTT; zero before its first sample.
    pub rtt: Duration,
    /// Its variation (RFC 9002 5.3).
    pub rtt_var: Duration,
    /// Delivery rate; zero before its first sample.
    pub delivered_bytes_per_s: u64,
    /// Packets lost of a million sent.
    pub loss_ppm: u64,
}

/// An observer. Installed per connection; told of each event in order.
pub trait Observer: Send {
    /// Something happened at `now`.
    fn on_event(&mut self, now: Instant, event: &TraceEvent);
}

/// Makes an observer for each connection, at its birth, so that none of its events is missed.
pub trait ObserverFactory: Send + Sync + Debug {
    /// An observer for a new connection.
    fn observer(&self) -> Box<dyn Observer>;
}
