//! REACH_OUT: where a client wishes to be probed by the server (noq's NAT traversal).

use std::net::SocketAddr;

use plait_base::Violation;

use super::ip::{ip_size, put_addr, read_addr};
use super::{Encode, put_varints, types, varints_size};
use crate::varint::Reader;

/// REACH_OUT of noq's NAT traversal: a client asks the server to send a probe to this address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReachOut {
    /// Counts up with each attempt; addresses of one attempt share it.
    pub round: u64,
    /// An address of the client.
    pub addr: SocketAddr,
}

impl ReachOut {
    pub(super) fn decode(r: &mut Reader<'_>, frame_type: u64) -> Result<Self, Violation> {
        let version = if frame_type == types::NAT_REACH_OUT_V6 { 6 } else { 4 };
        Ok(Self { round: r.varint()?, addr: read_addr(r, version)? })
    }

    /// The type, which names the IP version.
    pub(crate) fn frame_type(&self) -> u64 {
        if self.addr.is_ipv6() { types::NAT_REACH_OUT_V6 } else { types::NAT_REACH_OUT_V4 }
    }
}

impl Encode for ReachOut {
    fn encode(&self, out: &mut Vec<u8>) {
        put_varints(out, &[self.frame_type(), self.round]);
        put_addr(out, self.addr);
    }

    fn size(&self) -> usize {
        varints_size(&[self.frame_type(), self.round]) + ip_size(self.addr.ip()) + 2
    }
}
