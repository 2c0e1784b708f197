//! What a connection and those who serve its paths tell each other.

use std::ops::Range;

use bytes::Bytes;
use plait_base::observe::{DropReason, TraceEvent};
use plait_base::shared_metrics::{PathMetrics, SharedPathMetrics};
use plait_base::{Instant, PathId, StreamId};
use plait_crypto::SealQuota;
use plait_path::table::{Appetite, LoanRecord};
use plait_path::{AckTerms, LostPacket};
use plait_schedule::Delivery;
use plait_stream::Lease;
use plait_wire::SentFrame;
use smallvec::SmallVec;

use crate::connection::receive::acked::AckNote;
use crate::connection::receive::{Arrival, Ending};
use crate::io::Input;

/// Whether the streams have more to send than was lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Follows {
    More,
    Nothing,
}

/// Control frames and datagrams, written by those whose they are, for one packet.
#[derive(Debug)]
pub(crate) struct Bundle {
    pub(crate) bytes: Vec<u8>,
    pub(crate) frames: Vec<SentFrame>,
}

/// From the connection to whoever serves one of its paths.
#[derive(Debug)]
pub struct ToPath(pub(crate) Instruction);

#[derive(Debug)]
pub(crate) enum Instruction {
    /// Stream data to send, and the loan that it belongs to.
    Lease { lease: Lease, follows: Follows, loan: u64 },
    /// Frames to send, in one packet.
    Carry(Bundle),
    /// An ack of its packets that came by another path.
    Ack(AckNote),
    /// Datagrams of its path that landed elsewhere.
    Datagrams(Input),
    /// The stream was reset: its leases are to end.
    Unlease(StreamId),
    /// How other paths fare, for coupled controllers.
    Metrics(SharedPathMetrics),
    /// What the ends asked of each other's acks.
    Acks(AckTerms),
    /// Packets more that may be sealed with the path's keys.
    Quota(SealQuota),
    /// The path is wanted back.
    Recall,
}

/// From whoever serves a path to its connection.
#[derive(Debug)]
pub struct FromPath(pub(crate) News);

#[derive(Debug)]
pub(crate) enum News {
    /// Stream data that came, in order of arrival.
    Runs { now: Instant, runs: Vec<ArrivedRun> },
    /// A packet with frames that are not its path's own.
    Packet(HeldPacket),
    /// A datagram that could not be opened: a stateless reset, perhaps.
    Unread { now: Instant, ending: Ending, bytes: usize, why: DropReason },
    /// Datagrams that are none of the path's.
    Stray { now: Instant, input: Input },
    /// What became of packets.
    Fates(Fates),
    /// How the path fares.
    Report(Box<Report>),
    /// What observers of the connection are to hear, each with its time.
    Traces(Vec<(Instant, TraceEvent)>),
}

/// STREAM frames of one stream, each of which goes on where the one before ended.
#[derive(Debug)]
pub(crate) struct ArrivedRun {
    pub(crate) id: StreamId,
    pub(crate) range: Range<u64>,
    pub(crate) fin: bool,
    /// Mostly one: a run of packets that came together is put together.
    pub(crate) pieces: SmallVec<[Bytes; 1]>,
}

/// What a train has for the connection, by where it lies in it.
#[derive(Debug)]
pub(super) enum Found {
    Run { id: StreamId, range: Range<u64>, fin: bool, pieces: SmallVec<[Range<usize>; 1]> },
    Packet { at: Arrival, payload: Range<usize> },
}

/// A packet that was opened and is remembered for acks; the frames of its own path are done.
#[derive(Debug)]
pub(crate) struct HeldPacket {
    pub(crate) at: Arrival,
    pub(crate) payload: Bytes,
}

/// What was found out of packets that left on a path, and that others have to hear.
#[derive(Debug)]
pub(crate) struct Fates {
    pub(crate) now: Instant,
    pub(crate) acked: Vec<SentFrame>,
    pub(crate) lost: Vec<SentFrame>,
    pub(crate) lost_packets: Vec<LostPacket>,
    pub(crate) delivery: Option<Delivery>,
}

/// How a path fares, what it did since the last report, and how much it can use.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) record: LoanRecord,
    pub(crate) appetite: Appetite,
    /// Leases that ended: their streams, and how many of each.
    pub(crate) ended: Vec<(StreamId, u32)>,
    /// When an authentic packet came last.
    pub(crate) heard_at: Option<Instant>,
    /// When a packet left that asks for an ack, the first since the last report.
    pub(crate) eliciting_at: Option<Instant>,
    /// What coupled controllers of other paths read.
    pub(crate) metrics: Option<PathMetrics>,
}

/// A train that was opened and not read to its end.
#[derive(Debug)]
pub(crate) struct UnreadTrain {
    pub(crate) at: Arrival,
    pub(crate) bytes: u64,
    pub(crate) packets: Vec<crate::connection::receive::opened::TrainPacket>,
    pub(crate) memory: Bytes,
}

impl ToPath {
    /// True for stream data that the path is to send.
    pub fn is_lease(&self) -> bool {
        matches!(self.0, Instruction::Lease { .. })
    }

    /// Datagrams that came for a path which somebody else serves.
    pub(crate) fn datagrams(input: Input) -> (PathId, Self) {
        (input.path, Self(Instruction::Datagrams(input)))
    }
}
