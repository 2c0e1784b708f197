//! UNIFLOWS: what an end tells of its uniflows (Multiflow).

use plait_base::{PathId, Violation};

use super::list::{List, ListEntry};
use super::{Encode, put_varints, read_path_id, types, varints_size};
use crate::varint::{self, Reader};

/// UNIFLOWS: which uniflows the sender has, and from which of its addresses it uses them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uniflows<'a> {
    /// 0 in the first, one more in each; the newest counts.
    pub sequence: u64,
    /// On which the sender receives.
    pub receiving: List<'a, UniflowInfo>,
    /// On which the sender sends at present.
    pub sending: List<'a, UniflowInfo>,
}

/// One uniflow in [`Uniflows`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UniflowInfo {
    /// The uniflow's id in its direction.
    pub uniflow: PathId,
    /// Id of the address of the sender of the frame; 0 is the handshake's.
    pub address: u8,
}

impl<'a> Uniflows<'a> {
    pub(super) fn decode(r: &mut Reader<'a>) -> Result<Self, Violation> {
        let (sequence, receiving, sending) = (r.varint()?, r.varint()?, r.varint()?);
        Ok(Self { sequence, receiving: List::decode(r, receiving)?, sending: List::decode(r, sending)? })
    }

    fn head(&self) -> [u64; 4] {
        [types::UNIFLOWS, self.sequence, self.receiving.count(), self.sending.count()]
    }
}

impl Encode for Uniflows<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        put_varints(out, &self.head());
        out.extend_from_slice(self.receiving.bytes());
        out.extend_from_slice(self.sending.bytes());
    }

    fn size(&self) -> usize {
        varints_size(&self.head()) + self.receiving.bytes().len() + self.sending.bytes().len()
    }
}

impl ListEntry for UniflowInfo {
    const LEAST_BYTES: usize = 2;

    fn read(r: &mut Reader<'_>) -> Result<Self, Violation> {
        Ok(Self { uniflow: read_path_id(r)?, address: r.u8()? })
    }

    fn put(&self, out: &mut Vec<u8>) {
        varint::put(out, self.uniflow.0.into());
        out.push(self.address);
    }
}
