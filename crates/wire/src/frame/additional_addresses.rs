//! ADDITIONAL_ADDRESSES: all addresses of a server at once (draft-piraux-quic-additional-addresses-04).

use std::net::SocketAddr;

use plait_base::Violation;

use super::ip::{put_addr, read_addr, version};
use super::list::{List, ListEntry};
use super::{Encode, put_varints, types, varints_size};
use crate::varint::Reader;

/// ADDITIONAL_ADDRESSES (draft-piraux-quic-additional-addresses-04): all addresses of a server but the one in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdditionalAddresses<'a> {
    /// Counts up; an older list than the newest known is ignored.
    pub sequence: u64,
    /// The whole set, in place of all that was announced before.
    pub addresses: List<'a, SocketAddr>,
}

impl<'a> AdditionalAddresses<'a> {
    pub(super) fn decode(r: &mut Reader<'a>) -> Result<Self, Violation> {
        let (sequence, count) = (r.varint()?, r.varint()?);
        Ok(Self { sequence, addresses: List::decode(r, count)? })
    }

    fn head(&self) -> [u64; 3] {
        [types::ADDITIONAL_ADDRESSES, self.sequence, self.addresses.count()]
    }
}

impl Encode for AdditionalAddresses<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        put_varints(out, &self.head());
        out.extend_from_slice(self.addresses.bytes());
    }

    fn size(&self) -> usize {
        varints_size(&self.head()) + self.addresses.bytes().len()
    }
}

/// IP version, address and port.
impl ListEntry for SocketAddr {
    const LEAST_BYTES: usize = 7;

    fn read(r: &mut Reader<'_>) -> Result<Self, Violation> {
        let version = r.u8()?;
        read_addr(r, version)
    }

    fn put(&self, out: &mut Vec<u8>) {
        out.push(version(self.ip()));
        put_addr(out, *self);
    }
}
