//! Frames about paths: validation (RFC 9000 19.17, 19.18) and the control frames of RFC 10069 4.

#![allow(missing_docs)] // fields mean what the RFC's figure says of that name

use plait_base::{CloseCode, PathId, Violation};

use super::{Encode, read_path_id, types, varint_frame};
use crate::varint::{self, Reader};

/// PATH_CHALLENGE: can you hear me on this path?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathChallenge {
    /// Eight unpredictable bytes.
    pub data: [u8; 8],
}

/// PATH_RESPONSE: the answer to a challenge, on the same path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathResponse {
    /// The challenge's bytes.
    pub data: [u8; 8],
}

impl PathChallenge {
    pub(super) fn decode(r: &mut Reader<'_>) -> Result<Self, Violation> {
        Ok(Self { data: r.array()? })
    }
}

impl Encode for PathChallenge {
    fn size(&self) -> usize {
        1 + self.data.len()
    }

    fn encode(&self, out: &mut Vec<u8>) {
        varint::put(out, types::PATH_CHALLENGE);
        out.extend_from_slice(&self.data);
    }
}

impl PathResponse {
    pub(super) fn decode(r: &mut Reader<'_>) -> Result<Self, Violation> {
        Ok(Self { data: r.array()? })
    }
}

impl Encode for PathResponse {
    fn size(&self) -> usize {
        1 + self.data.len()
    }

    fn encode(&self, out: &mut Vec<u8>) {
        varint::put(out, types::PATH_RESPONSE);
        out.extend_from_slice(&self.data);
    }
}

/// PATH_ABANDON: the sender uses this path no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathAbandon {
    pub path: PathId,
    /// Why; in the space of transport error codes.
    pub code: CloseCode,
}

/// What a sender wishes to receive on a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PathStatus {
    /// The peer may use it freely.
    #[default]
    Available,
    /// The peer should use it only when no available path works.
    Backup,
}

/// PATH_STATUS_AVAILABLE or PATH_STATUS_BACKUP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathStatusUpdate {
    pub path: PathId,
    /// Counts up with each update of this path, over both types; older ones are ignored.
    pub sequence: u64,
    pub status: PathStatus,
}

/// MAX_PATH_ID: the largest path id that the sender accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxPathId {
    pub limit: PathId,
}

/// PATHS_BLOCKED: the limit on path ids holds the sender back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathsBlocked {
    /// The limit in force when it was sent.
    pub limit: PathId,
}

/// PATH_CIDS_BLOCKED: the sender lacks connection ids of this path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathCidsBlocked {
    pub path: PathId,
    /// Sequence number that the sender expects next on it; 0 if it has seen none.
    pub next_sequence: u64,
}

varint_frame!(PathAbandon, |f| [types::PATH_ABANDON, f.path.0.into(), f.code.0]);
varint_frame!(PathStatusUpdate, |f| [f.frame_type(), f.path.0.into(), f.sequence]);
varint_frame!(MaxPathId, |f| [types::MAX_PATH_ID, f.limit.0.into()]);
varint_frame!(PathsBlocked, |f| [types::PATHS_BLOCKED, f.limit.0.into()]);
varint_frame!(PathCidsBlocked, |f| [types::PATH_CIDS_BLOCKED, f.path.0.into(), f.next_sequence]);

impl PathAbandon {
    pub(super) fn decode(r: &mut Reader<'_>) -> Result<Self, Violation> {
        Ok(Self { path: read_path_id(r)?, code: CloseCode(r.varint()?) })
    }
}

impl PathStatusUpdate {
    pub(super) fn decode(r: &mut Reader<'_>, status: PathStatus) -> Result<Self, Violation> {
        Ok(Self { path: read_path_id(r)?, sequence: r.varint()?, status })
    }

    /// The type, which names the status.
    pub(crate) fn frame_type(&self) -> u64 {
        match self.status {
            PathStatus::Available => types::PATH_STATUS_AVAILABLE,
            PathStatus::Backup => types::PATH_STATUS_BACKUP,
        }
    }
}

impl MaxPathId {
    pub(super) fn decode(r: &mut Reader<'_>) -> Result<Self, Violation> {
        // RFC 10069 4.6: MAX_PATH_ID above 2^32 - 1 is a PROTOCOL_VIOLATION.
        let limit = u32::try_from(r.varint()?).map_err(|_| Violation::MaxPathIdTooLarge)?;
        Ok(Self { limit: PathId(limit) })
    }
}

impl PathsBlocked {
    pub(super) fn decode(r: &mut Reader<'_>) -> Result<Self, Violation> {
        // No limit that we announce is above 2^32 - 1.
        let limit = u32::try_from(r.varint()?).map_err(|_| Violation::PathsBlockedAboveLimit)?;
        Ok(Self { limit: PathId(limit) })
    }
}

impl PathCidsBlocked {
    pub(super) fn decode(r: &mut Reader<'_>) -> Result<Self, Violation> {
        Ok(Self { path: read_path_id(r)?, next_sequence: r.varint()? })
    }
}
