//! What the handshake gives packets on their way out: headers, keys, and frames that it owes.

use plait_base::limits::MIN_DATAGRAM_BYTES;
use plait_base::{ConnectionId, Instant, PathId, Space};
use plait_crypto::SealKeys;
use plait_path::{AckNeed, Path};
use plait_wire::header::OutHeader;
use plait_wire::params::GreaseQuicBit;
use plait_wire::{Frame, FrameWriter, SentFrame};

use super::{Handshake, Owed, PeersParameters};
use crate::config::Switch;
use crate::connection::send::sockets::SMALLEST_PACKET_BYTES;

impl Handshake {
    /// The header of a packet that 1-RTT keys do not seal; none without its keys.
    pub(crate) fn long_header(&self, space: Space, dcid: ConnectionId) -> Option<OutHeader<'_>> {
        self.seal_keys(space)?;
        let scid = self.ids.local;
        Some(match space {
            Space::Initial => OutHeader::Initial { version: self.versions.current, dcid, scid, token: &self.token },
            Space::Handshake => OutHeader::Handshake { version: self.versions.current, dcid, scid },
            // RFC 9369 4.1: 0-RTT stays in the version that it began in
            Space::Data => OutHeader::ZeroRtt { version: self.versions.original, dcid, scid },
        })
    }

    /// The keys of Initial, Handshake and 0-RTT packets, while we may send with them.
    pub(crate) fn seal_keys(&self, space: Space) -> Option<&SealKeys> {
        match space {
            Space::Initial | Space::Handshake => self.keys(space).map(|keys| &keys.local),
            Space::Data => self.zero_rtt.seal_keys(),
        }
    }

    /// True where the Initial or Handshake level has reason for a packet on path 0, whatever its size: a probe, an ack, or what TLS says,
    /// for which the window must have room.
    pub(crate) fn wants_packet(&self, now: Instant, space: Space, path: &Path) -> bool {
        let level = match space {
            Space::Initial => self.initial.as_deref(),
            Space::Handshake => self.handshake.as_deref(),
            Space::Data => None,
        };
        level.filter(|level| level.keys.is_some()).is_some_and(|level| {
            path.owes_probe(space)
                || level.receive.ack_need(now) == AckNeed::Now
                || level.crypto.wants_send() && path.has_window_for(MIN_DATAGRAM_BYTES as u64)
        })
    }

    /// Bytes of the smallest datagram that a path would send next.
    pub(crate) fn least_datagram(&self, path: PathId) -> u64 {
        let full_sized = path == PathId::ZERO && self.has_keys(Space::Initial);
        if full_sized { MIN_DATAGRAM_BYTES as u64 } else { SMALLEST_PACKET_BYTES }
    }

    /// True once the fixed bit may be cleared, where we `grease`: the peer allows it, and no packet of the handshake is sent
    /// any more (RFC 9287 3).
    pub(crate) fn may_clear_fixed_bit(&self, grease: Switch) -> bool {
        let allows = |p: PeersParameters| p.fixed_bit == GreaseQuicBit::Supported;
        grease == Switch::On && self.is_confirmed() && self.params.peers.is_some_and(allows)
    }

    /// True when its frames wait for a 1-RTT packet.
    pub(crate) fn wants_control(&self) -> bool {
        self.done == Owed::Due
            || self.data.as_ref().is_some_and(|stream| stream.wants_send())
            || (self.is_complete() && self.tokens.wants_send())
    }

    /// Writes what it owes in 1-RTT packets.
    pub(crate) fn fill_control(&mut self, w: &mut FrameWriter<'_>) {
        // RFC 9000 19.20: due once the handshake is complete, and again when lost
        if self.done == Owed::Due && w.write(&Frame::HandshakeDone, SentFrame::HandshakeDone) {
            self.done = Owed::Sent;
        }
        self.data.iter_mut().for_each(|stream| stream.fill(w));
        if self.is_complete() {
            self.tokens.fill(w);
        }
    }
}
