//! The frames of this floor, written whole or not at all.

use plait_base::{ConnectionId, PathId, ResetToken};
use plait_wire::{FrameWriter, varint};

pub(crate) const NEW_CONNECTION_ID: u64 = 0x18;
pub(crate) const RETIRE_CONNECTION_ID: u64 = 0x19;
pub(crate) const PATH_CHALLENGE: u64 = 0x1a;
pub(crate) const PATH_RESPONSE: u64 = 0x1b;
pub(crate) const PATH_ABANDON: u64 = 0x3e75;
pub(crate) const PATH_STATUS_BACKUP: u64 = 0x3e76;
pub(crate) const PATH_STATUS_AVAILABLE: u64 = 0x3e77;
pub(crate) const PATH_NEW_CONNECTION_ID: u64 = 0x3e78;
pub(crate) const PATH_RETIRE_CONNECTION_ID: u64 = 0x3e79;
pub(crate) const MAX_PATH_ID: u64 = 0x3e7a;
pub(crate) const PATHS_BLOCKED: u64 = 0x3e7b;
pub(crate) const PATH_CIDS_BLOCKED: u64 = 0x3e7c;

/// Whether connection ids travel in the frames of RFC 9000 (path 0 only) or of RFC 10069.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CidForm {
    /// NEW_CONNECTION_ID and RETIRE_CONNECTION_ID.
    Plain,
    /// PATH_NEW_CONNECTION_ID and PATH_RETIRE_CONNECTION_ID.
    Path,
}

/// Writes a frame made of varints only; false when it does not fit.
pub(crate) fn put(w: &mut FrameWriter<'_>, fields: &[u64]) -> bool {
    if fields.iter().map(|&f| varint::size(f)).sum::<usize>() > w.remaining() {
        return false;
    }
    fields.iter().for_each(|&f| w.put_varint(f));
    true
}

/// Writes PATH_CHALLENGE or PATH_RESPONSE.
pub(crate) fn put_data(w: &mut FrameWriter<'_>, kind: u64, data: &[u8; 8]) -> bool {
    if w.remaining() < 9 {
        return false;
    }
    w.put_varint(kind);
    w.put_bytes(data);
    true
}

/// What NEW_CONNECTION_ID and PATH_NEW_CONNECTION_ID say (RFC 9000 19.15).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewCid {
    /// Sequence number on its path.
    pub sequence: u64,
    /// Ids of the path below this are to be retired.
    pub retire_prior_to: u64,
    /// The id.
    pub cid: ConnectionId,
    /// Its stateless reset token.
    pub token: ResetToken,
}

pub(crate) fn put_new_cid(w: &mut FrameWriter<'_>, form: CidForm, path: PathId, new: &NewCid) -> bool {
    let head: &[u64] = match form {
        CidForm::Plain => &[NEW_CONNECTION_ID, new.sequence, new.retire_prior_to],
        CidForm::Path => &[PATH_NEW_CONNECTION_ID, u64::from(path.0), new.sequence, new.retire_prior_to],
    };
    let size = head.iter().map(|&f| varint::size(f)).sum::<usize>() + 1 + new.cid.len() + 16;
    if size > w.remaining() {
        return false;
    }
    head.iter().for_each(|&f| w.put_varint(f));
    w.put_bytes(&[new.cid.len() as u8]);
    w.put_bytes(&new.cid);
    w.put_bytes(&new.token.0);
    true
}

pub(crate) fn put_retire_cid(w: &mut FrameWriter<'_>, form: CidForm, path: PathId, sequence: u64) -> bool {
    match form {
        CidForm::Plain => put(w, &[RETIRE_CONNECTION_ID, sequence]),
        CidForm::Path => put(w, &[PATH_RETIRE_CONNECTION_ID, u64::from(path.0), sequence]),
    }
}
