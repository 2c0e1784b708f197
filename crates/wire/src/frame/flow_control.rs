//! MAX_* and *_BLOCKED frames of data and streams (RFC 9000 19.9 to 19.14).

#![allow(missing_docs)] // fields mean what the RFC's figure says of that name

use plait_base::limits::MAX_STREAM_COUNT;
use plait_base::{Dir, StreamId, Violation};

use super::{types, varint_frame};
use crate::varint::Reader;

/// MAX_DATA: bytes that all streams together may carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxData {
    pub limit: u64,
}

/// MAX_STREAM_DATA: bytes that one stream may carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxStreamData {
    pub id: StreamId,
    pub limit: u64,
}

/// MAX_STREAMS: streams that the peer may open in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxStreams {
    /// Of which direction.
    pub dir: Dir,
    /// How many, at most 2^60.
    pub limit: u64,
}

/// DATA_BLOCKED: the connection's limit holds the sender back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataBlocked {
    /// The limit in force.
    pub limit: u64,
}

/// STREAM_DATA_BLOCKED: a stream's limit holds the sender back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamDataBlocked {
    pub id: StreamId,
    /// The limit in force.
    pub limit: u64,
}

/// STREAMS_BLOCKED: the limit on streams holds the sender back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamsBlocked {
    /// Of which direction.
    pub dir: Dir,
    /// The limit in force, at most 2^60.
    pub limit: u64,
}

/// RFC 9000 4.6, 19.11, 19.14: a stream count that no stream id could express.
fn read_stream_count(r: &mut Reader<'_>) -> Result<u64, Violation> {
    match r.varint()? {
        limit if limit > MAX_STREAM_COUNT => Err(Violation::StreamCountTooLarge),
        limit => Ok(limit),
    }
}

varint_frame!(MaxData, |f| [types::MAX_DATA, f.limit]);
varint_frame!(MaxStreamData, |f| [types::MAX_STREAM_DATA, f.id.0, f.limit]);
varint_frame!(MaxStreams, |f| [f.frame_type(), f.limit]);
varint_frame!(DataBlocked, |f| [types::DATA_BLOCKED, f.limit]);
varint_frame!(StreamDataBlocked, |f| [types::STREAM_DATA_BLOCKED, f.id.0, f.limit]);
varint_frame!(StreamsBlocked, |f| [f.frame_type(), f.limit]);

impl MaxData {
    pub(super) fn decode(r: &mut Reader<'_>) -> Result<Self, Violation> {
        Ok(Self { limit: r.varint()? })
    }
}

impl MaxStreamData {
    pub(super) fn decode(r: &mut Reader<'_>) -> Result<Self, Violation> {
        Ok(Self { id: StreamId(r.varint()?), limit: r.varint()? })
    }
}

impl MaxStreams {
    pub(super) fn decode(r: &mut Reader<'_>, dir: Dir) -> Result<Self, Violation> {
        Ok(Self { dir, limit: read_stream_count(r)? })
    }

    /// The type, which names the direction.
    pub(crate) fn frame_type(&self) -> u64 {
        match self.dir {
            Dir::Bi => types::MAX_STREAMS_BIDI,
            Dir::Uni => types::MAX_STREAMS_UNI,
        }
    }
}

impl DataBlocked {
    pub(super) fn decode(r: &mut Reader<'_>) -> Result<Self, Violation> {
        Ok(Self { limit: r.varint()? })
    }
}

impl StreamDataBlocked {
    pub(super) fn decode(r: &mut Reader<'_>) -> Result<Self, Violation> {
        Ok(Self { id: StreamId(r.varint()?), limit: r.varint()? })
    }
}

impl StreamsBlocked {
    pub(super) fn decode(r: &mut Reader<'_>, dir: Dir) -> Result<Self, Violation> {
        Ok(Self { dir, limit: read_stream_count(r)? })
    }

    /// The type, which names the direction.
    pub(crate) fn frame_type(&self) -> u64 {
        match self.dir {
            Dir::Bi => types::STREAMS_BLOCKED_BIDI,
            Dir::Uni => types::STREAMS_BLOCKED_UNI,
        }
    }
}
