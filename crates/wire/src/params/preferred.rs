//! preferred_address: where a server would rather be reached (RFC 9000 18.2).

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};

use plait_base::limits::MAX_CID_LEN;
use plait_base::{ConnectionId, ResetToken, Violation};

use crate::varint::{Reader, Truncated};

/// A server's preferred address; its connection id has sequence number 1 of path 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreferredAddress {
    /// IPv4; none where the server sent zeros.
    pub v4: Option<SocketAddrV4>,
    /// IPv6; none where the server sent zeros.
    pub v6: Option<SocketAddrV6>,
    /// The id to use there, 1 to 20 bytes.
    pub cid: ConnectionId,
    /// Its reset token.
    pub token: ResetToken,
}

impl PreferredAddress {
    pub(super) fn decode(r: &mut Reader<'_>) -> Result<Self, Violation> {
        let cut = |_: Truncated| Violation::ParameterMalformed;
        let ip4 = Ipv4Addr::from(r.array::<4>().map_err(cut)?);
        let port4 = r.u16().map_err(cut)?;
        let ip6 = Ipv6Addr::from(r.array::<16>().map_err(cut)?);
        let port6 = r.u16().map_err(cut)?;
        let len = usize::from(r.u8().map_err(cut)?);
        // RFC 9000 18.2: a zero-length id here is an error.
        if len == 0 || len > MAX_CID_LEN {
            return Err(Violation::ParameterOutOfRange);
        }
        let cid = ConnectionId::new(r.bytes(len).map_err(cut)?).ok_or(Violation::ParameterOutOfRange)?;
        let token = ResetToken(r.array().map_err(cut)?);
        let v4 = (!ip4.is_unspecified() || port4 != 0).then(|| SocketAddrV4::new(ip4, port4));
        let v6 = (!ip6.is_unspecified() || port6 != 0).then(|| SocketAddrV6::new(ip6, port6, 0, 0));
        Ok(Self { v4, v6, cid, token })
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let v4 = self.v4.unwrap_or(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));
        let v6 = self.v6.unwrap_or(SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, 0, 0, 0));
        out.extend_from_slice(&v4.ip().octets());
        out.extend_from_slice(&v4.port().to_be_bytes());
        out.extend_from_slice(&v6.ip().octets());
        out.extend_from_slice(&v6.port().to_be_bytes());
        out.push(self.cid.len() as u8);
        out.extend_from_slice(&self.cid);
        out.extend_from_slice(&self.token.0);
    }
}
