//! What a packet carried, as small values: the memory of its frames without their bytes.
//!
//! A sent packet is remembered as a list of these. When it is acked or lost, each value goes back to the one
//! home of its frame, which decides whether and what to send again.

use plait_base::{Dir, PathId, Space, StreamId};

/// The memory of one sent frame: enough to tell later what its ack or loss means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // a variant without text is the frame of that name, with the value that it carried
pub enum SentFrame {
    /// STREAM data `offset..offset + len`, in bytes.
    Stream {
        id: StreamId,
        offset: u64,
        len: u32,
        /// True when the frame ended the stream.
        fin: bool,
    },
    /// CRYPTO data `offset..offset + len` of a space, in bytes.
    Crypto {
        space: Space,
        offset: u64,
        len: u32,
    },
    /// ACK, PATH_ACK or MP_ACK of the packets of a space and path; what it reported need not be reported again once this is
    /// acked.
    Ack {
        space: Space,
        path: PathId,
        /// Smallest number that the frame reported: older ones may not have fitted.
        smallest: u64,
        /// Largest number that the frame reported.
        largest: u64,
    },
    ResetStream(StreamId),
    StopSending(StreamId),
    MaxData(u64),
    MaxStreamData(StreamId, u64),
    MaxStreams(Dir, u64),
    /// DATA_BLOCKED at this limit.
    DataBlocked(u64),
    /// STREAM_DATA_BLOCKED at this limit.
    StreamDataBlocked(StreamId, u64),
    /// STREAMS_BLOCKED at this limit.
    StreamsBlocked(Dir, u64),
    /// An application datagram of `len` bytes; never sent again.
    Datagram {
        len: u32,
    },
    /// NEW_TOKEN; the number names it to its home.
    NewToken(u32),
    HandshakeDone,
    Ping,
    /// NEW_CONNECTION_ID in any form, for the id with this sequence number.
    NewCid {
        path: PathId,
        sequence: u64,
    },
    /// RETIRE_CONNECTION_ID in any form, for the id with this sequence number.
    RetireCid {
        path: PathId,
        sequence: u64,
    },
    /// PATH_CHALLENGE with its data; sent again with new data.
    PathChallenge([u8; 8]),
    /// PATH_RESPONSE; sent once for each challenge.
    PathResponse,
    /// The PING of a path MTU probe of this size, UDP payload bytes.
    MtuProbe(u16),
    PathAbandon(PathId),
    /// PATH_STATUS_BACKUP or PATH_STATUS_AVAILABLE, with its status sequence number.
    PathStatus {
        path: PathId,
        sequence: u64,
    },
    MaxPathId(PathId),
    /// PATHS_BLOCKED at this limit.
    PathsBlocked(PathId),
    /// PATH_CIDS_BLOCKED for this path.
    PathCidsBlocked(PathId),
    /// ADD_ADDRESS or REMOVE_ADDRESS in any form, the word with this number on one of our addresses.
    HostAddress {
        id: u8,
        sequence: u64,
    },
    /// UNIFLOWS with this sequence number.
    Uniflows(u64),
    /// ADDITIONAL_ADDRESSES with this sequence number.
    AdditionalAddresses(u64),
    /// MPX_PATHS with this sequence number.
    PathsInfo(u64),
    /// ACK_FREQUENCY with this sequence number.
    AckFrequency(u64),
}
