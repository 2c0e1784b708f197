//! Packets one behind the other in a datagram (RFC 9000 12.2).

use plait_base::ConnectionId;
use plait_wire::header::{FixedBitRule, PacketSpan, ProtectedHeader};

/// Why what is left of a datagram is no further packet of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoFurtherPacket {
    /// No header can be read.
    Malformed,
    /// It has another connection id than the first packet.
    OtherConnection,
}

/// Reads the headers of a datagram's packets in turns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Coalesced {
    first_dcid: Option<ConnectionId>,
}

impl Coalesced {
    /// The packet that `rest` of the datagram begins with; ids of ours have `cid_len` bytes.
    ///
    /// # Errors
    /// There is none that belongs to the datagram.
    pub(crate) fn next(
        &mut self,
        rest: &[u8],
        cid_len: usize,
        rule: FixedBitRule,
    ) -> Result<(ProtectedHeader, PacketSpan), NoFurtherPacket> {
        let (header, span) = ProtectedHeader::parse(rest, cid_len, rule).map_err(|_| NoFurtherPacket::Malformed)?;
        let dcid = ConnectionId::new(header.dcid(rest)).unwrap_or(ConnectionId::EMPTY);
        // RFC 9000 12.2: coalesced packets share the first one's connection id
        if *self.first_dcid.get_or_insert(dcid) == dcid {
            Ok((header, span))
        } else {
            Err(NoFurtherPacket::OtherConnection)
        }
    }
}
