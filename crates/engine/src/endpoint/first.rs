//! Whether a client's first packet is genuine, found out before anything is kept for it.

use std::net::SocketAddr;
use std::ops::Range;

use plait_base::{ConnectionId, PathId, Side};
use plait_crypto::{PacketKeys, initial_keys};
use plait_wire::header::packet_number;
use plait_wire::{Frame, Frames, PacketKind, PacketSpan, Version};

/// The key of ids that clients choose: with the address, so that nobody can take an id that another client uses.
pub(crate) type FirstKey = (SocketAddr, ConnectionId);

/// The first Initial of a would-be client, by its header.
#[derive(Clone, Debug)]
pub(crate) struct FirstInitial {
    pub(crate) version: Version,
    pub(crate) dcid: ConnectionId,
    pub(crate) scid: ConnectionId,
    /// Where the token lies in the datagram.
    pub(crate) token: Range<usize>,
    pub(crate) span: PacketSpan,
}

/// Length of the destination id of our own first packets.
pub(crate) const CLIENT_DCID_LEN: usize = 8;
/// Shortest destination connection id that a client may choose (RFC 9000 7.2).
pub(crate) const MIN_FIRST_DCID: usize = 8;

impl FirstInitial {
    /// The Initial keys that the packet's destination id gives, where the packet is genuine: it opens under them, is
    /// well-formed and carries CRYPTO data, as every first Initial does (RFC 9000 17.2.2). The datagram stays as it is;
    /// `scratch` is reused.
    pub(crate) fn genuine_keys(&self, datagram: &[u8], scratch: &mut Vec<u8>) -> Option<PacketKeys> {
        scratch.clear();
        scratch.extend_from_slice(datagram.get(..self.span.end)?);
        self.keys_that_open(scratch)
    }

    fn keys_that_open(&self, packet: &mut [u8]) -> Option<PacketKeys> {
        let keys = initial_keys(self.version.0, &self.dcid, Side::Server)?;
        let unmasked = keys.remote.unmask(packet, self.span.pn_offset).ok()?;
        let truncated = u32::try_from(unmasked.truncated).ok()?;
        let number = packet_number::expand(truncated, unmasked.pn_len, 0);
        let header_len = self.span.pn_offset + unmasked.pn_len;
        let payload = keys.remote.open(packet, header_len, PathId::ZERO, number).ok()?;
        let mut crypto = false;
        for frame in Frames::in_packet(packet.get(payload)?, PacketKind::Initial) {
            crypto |= matches!(frame.ok()?, Frame::Crypto(_));
        }
        crypto.then_some(keys)
    }
}
