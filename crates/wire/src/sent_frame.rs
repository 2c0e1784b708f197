//! What a packet carried, as small values: the memory of its frames without their bytes.
//!
//! A sent packet is remembered as a list of these. When it is acked or lost, each value goes back to the one
//! home of its frame, which decides whether and what to send again.

use plait_base::{Dir, PathId, Space, StreamId};

/// The memory of one sent frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SentFrame {
    /// STREAM data `offset..offset + len`.
    Stream {
        /// Which stream.
        id: StreamId,
        /// First byte.
        offset: u64,
        /// Number of bytes.
        len: u32,
        /// True when the frame ended the stream.
        fin: bool,
    },
    /// CRYPTO data `offset..offset + len`.
    Crypto {
        /// Its space.
        space: Space,
        /// First byte.
        offset: u64,
        /// Number of bytes.
        len: u32,
    },
    /// ACK or PATH_ACK; what it reported need not be reported again once this is acked.
    Ack {
        /// Space acknowledged.
        space: Space,
        /// Path acknowledged.
        path: PathId,
        /// Smallest number that the frame reported: older ones may not have fitted.
        smallest: u64,
        /// Largest number that the frame reported.
        largest: u64,
    },
    /// RESET_STREAM.
    ResetStream(StreamId),
    /// STOP_SENDING.
    StopSending(StreamId),
    /// MAX_DATA with this value.
    MaxData(u64),
    /// MAX_STREAM_DATA with this value.
    MaxStreamData(StreamId, u64),
    /// MAX_STREAMS with this value.
    MaxStreams(Dir, u64),
    /// DATA_BLOCKED at this limit.
    DataBlocked(u64),
    /// STREAM_DATA_BLOCKED at this limit.
    StreamDataBlocked(StreamId, u64),
    /// STREAMS_BLOCKED at this limit.
    StreamsBlocked(Dir, u64),
    /// An application datagram of this many bytes; never sent again.
    Datagram {
        /// Its bytes.
        len: u32,
    },
    /// NEW_TOKEN; the number names it to its home.
    NewToken(u32),
    /// HANDSHAKE_DONE.
    HandshakeDone,
    /// PING.
    Ping,
    /// NEW_CONNECTION_ID or PATH_NEW_CONNECTION_ID.
    NewCid {
        /// Path of the id.
        path: PathId,
        /// Sequence number.
        sequence: u64,
    },
    /// RETIRE_CONNECTION_ID or PATH_RETIRE_CONNECTION_ID.
    RetireCid {
        /// Path of the id.
        path: PathId,
        /// Sequence number.
        sequence: u64,
    },
    /// PATH_CHALLENGE; sent again by its own timer with new data.
    PathChallenge,
    /// PATH_RESPONSE; sent once for each challenge.
    PathResponse,
    /// A path MTU probe of this size, UDP payload bytes.
    MtuProbe(u16),
    /// PATH_ABANDON.
    PathAbandon(PathId),
    /// PATH_STATUS_BACKUP or PATH_STATUS_AVAILABLE.
    PathStatus {
        /// Which path.
        path: PathId,
        /// Status sequence number.
        sequence: u64,
    },
    /// MAX_PATH_ID with this value.
    MaxPathId(PathId),
    /// PATHS_BLOCKED at this limit.
    PathsBlocked(PathId),
    /// PATH_CIDS_BLOCKED for this path.
    PathCidsBlocked(PathId),
}
