//! MPX_PATHS: what an end tells of its paths, an extension of plait's.

use plait_base::{PathId, Violation};

use super::list::{List, ListEntry};
use super::{Encode, put_varints, read_path_id, types, varints_size};
use crate::varint::{self, Reader};

/// MPX_PATHS: how the sender's paths do, as it measures them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathsInfo<'a> {
    /// Counts up with each frame; the newest counts.
    pub sequence: u64,
    /// One entry for each path that the sender has something to tell of.
    pub paths: List<'a, PathInfo>,
}

/// One path in [`PathsInfo`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathInfo {
    /// The path of which the sender tells.
    pub path: PathId,
    /// How the sender uses it.
    pub condition: PathCondition,
    /// Smoothed RTT, microseconds.
    pub srtt_us: u64,
    /// RTT variation, microseconds.
    pub rttvar_us: u64,
    /// Delivery rate, bytes a second.
    pub delivered_bytes_per_s: u64,
    /// Packets lost of a million sent.
    pub loss_ppm: u64,
}

/// How the sender of [`PathsInfo`] uses a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathCondition {
    /// Like any other.
    Active,
    /// Only when no active path works.
    Backup,
    /// Not at present: a probe time-out passed without an answer.
    PotentiallyFailed,
    /// No more: PATH_ABANDON was sent or came.
    Abandoned,
}

impl<'a> PathsInfo<'a> {
    pub(super) fn decode(r: &mut Reader<'a>) -> Result<Self, Violation> {
        let (sequence, count) = (r.varint()?, r.varint()?);
        Ok(Self { sequence, paths: List::decode(r, count)? })
    }

    fn head(&self) -> [u64; 3] {
        [types::MPX_PATHS, self.sequence, self.paths.count()]
    }
}

impl Encode for PathsInfo<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        put_varints(out, &self.head());
        out.extend_from_slice(self.paths.bytes());
    }

    fn size(&self) -> usize {
        varints_size(&self.head()) + self.paths.bytes().len()
    }
}

impl ListEntry for PathInfo {
    const LEAST_BYTES: usize = 6;

    fn read(r: &mut Reader<'_>) -> Result<Self, Violation> {
        let path = read_path_id(r)?;
        let condition = match r.u8()? {
            0 => PathCondition::Active,
            1 => PathCondition::Backup,
            2 => PathCondition::PotentiallyFailed,
            3 => PathCondition::Abandoned,
            _ => return Err(Violation::PathConditionUnknown),
        };
        let (srtt_us, rttvar_us) = (r.varint()?, r.varint()?);
        Ok(Self { path, condition, srtt_us, rttvar_us, delivered_bytes_per_s: r.varint()?, loss_ppm: r.varint()? })
    }

    fn put(&self, out: &mut Vec<u8>) {
        varint::put(out, self.path.0.into());
        out.push(match self.condition {
            PathCondition::Active => 0,
            PathCondition::Backup => 1,
            PathCondition::PotentiallyFailed => 2,
            PathCondition::Abandoned => 3,
        });
        put_varints(out, &[self.srtt_us, self.rttvar_us, self.delivered_bytes_per_s, self.loss_ppm]);
    }
}
