//! Connection ids given and returned, of paths and of uniflows too (RFC 9000 19.15, 19.16; RFC 10069 4.4, 4.5; Multiflow).

#![allow(missing_docs)] // fields mean what the RFC's figure says of that name

use plait_base::{ConnectionId, PathId, ResetToken, Violation};

use super::{Encode, put_varints, read_path_id, types, varints_size};
use crate::varint::{self, Reader};

/// Which frame speaks of a connection id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CidForm {
    /// NEW_CONNECTION_ID, RETIRE_CONNECTION_ID: path 0.
    Plain,
    /// PATH_NEW_CONNECTION_ID, PATH_RETIRE_CONNECTION_ID: names its path.
    Path,
    /// MP_NEW_CONNECTION_ID, MP_RETIRE_CONNECTION_ID of Multiflow: names the uniflow that its receiver sends on.
    Uniflow,
}

/// NEW_CONNECTION_ID, PATH_NEW_CONNECTION_ID or MP_NEW_CONNECTION_ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewCid {
    pub form: CidForm,
    /// Path or uniflow of the id; 0 in the plain form.
    pub path: PathId,
    /// Sequence number of the id on its path.
    pub sequence: u64,
    /// Ids of this path below this number are to be retired; at most `sequence`.
    pub retire_prior_to: u64,
    /// The id, 1 to 20 bytes.
    pub cid: ConnectionId,
    /// Its stateless reset token.
    pub token: ResetToken,
}

/// RETIRE_CONNECTION_ID, PATH_RETIRE_CONNECTION_ID or MP_RETIRE_CONNECTION_ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetireCid {
    pub form: CidForm,
    /// Path or uniflow of the id; 0 in the plain form.
    pub path: PathId,
    /// Sequence number of the id on its path.
    pub sequence: u64,
}

fn read_path(r: &mut Reader<'_>, form: CidForm) -> Result<PathId, Violation> {
    match form {
        CidForm::Plain => Ok(PathId::ZERO),
        CidForm::Path | CidForm::Uniflow => read_path_id(r),
    }
}

fn put_start(out: &mut Vec<u8>, frame_type: u64, form: CidForm, path: PathId) {
    varint::put(out, frame_type);
    if form != CidForm::Plain {
        varint::put(out, path.0.into());
    }
}

fn start_size(frame_type: u64, form: CidForm, path: PathId) -> usize {
    let path = match form {
        CidForm::Plain => 0,
        CidForm::Path | CidForm::Uniflow => varint::size(path.0.into()),
    };
    varint::size(frame_type) + path
}

impl NewCid {
    pub(super) fn decode(r: &mut Reader<'_>, form: CidForm) -> Result<Self, Violation> {
        let path = read_path(r, form)?;
        let sequence = r.varint()?;
        let retire_prior_to = r.varint()?;
        // RFC 9000 19.15: both are encoding errors.
        if retire_prior_to > sequence {
            return Err(Violation::RetirePriorToTooLarge);
        }
        let len = usize::from(r.u8()?);
        if len == 0 || len > plait_base::limits::MAX_CID_LEN {
            return Err(Violation::CidLength);
        }
        let cid = ConnectionId::new(r.bytes(len)?).ok_or(Violation::CidLength)?;
        Ok(Self { form, path, sequence, retire_prior_to, cid, token: ResetToken(r.array()?) })
    }

    /// The type of its form.
    pub(crate) fn frame_type(&self) -> u64 {
        match self.form {
            CidForm::Plain => types::NEW_CONNECTION_ID,
            CidForm::Path => types::PATH_NEW_CONNECTION_ID,
            CidForm::Uniflow => types::MP_NEW_CONNECTION_ID,
        }
    }
}

impl Encode for NewCid {
    fn encode(&self, out: &mut Vec<u8>) {
        put_start(out, self.frame_type(), self.form, self.path);
        put_varints(out, &[self.sequence, self.retire_prior_to]);
        out.extend_from_slice(&[self.cid.len() as u8]);
        out.extend_from_slice(&self.cid);
        out.extend_from_slice(&self.token.0);
    }

    fn size(&self) -> usize {
        start_size(self.frame_type(), self.form, self.path)
            + varints_size(&[self.sequence, self.retire_prior_to])
            + 1
            + self.cid.len()
            + self.token.0.len()
    }
}

impl RetireCid {
    pub(super) fn decode(r: &mut Reader<'_>, form: CidForm) -> Result<Self, Violation> {
        Ok(Self { form, path: read_path(r, form)?, sequence: r.varint()? })
    }

    /// The type of its form.
    pub(crate) fn frame_type(&self) -> u64 {
        match self.form {
            CidForm::Plain => types::RETIRE_CONNECTION_ID,
            CidForm::Path => types::PATH_RETIRE_CONNECTION_ID,
            CidForm::Uniflow => types::MP_RETIRE_CONNECTION_ID,
        }
    }
}

impl Encode for RetireCid {
    fn encode(&self, out: &mut Vec<u8>) {
        put_start(out, self.frame_type(), self.form, self.path);
        varint::put(out, self.sequence);
    }

    fn size(&self) -> usize {
        start_size(self.frame_type(), self.form, self.path) + varint::size(self.sequence)
    }
}
