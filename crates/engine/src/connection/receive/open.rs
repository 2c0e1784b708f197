//! Takes the protection off a packet: header, payload, and whether its number is new (RFC 9001 5).

use bytes::{Bytes, BytesMut};
use plait_base::probe::{DropReason, TraceEvent};
use plait_base::{PathId, TransportError};
use plait_crypto::OpenError;
use plait_path::table::Admission;
use plait_wire::header::{PacketKind, PacketSpan, packet_number};

use super::Arrival;
use crate::connection::Connection;
use crate::connection::handshake::packets::OpenedPacket;

/// Why a packet went no further.
pub(super) enum Refusal {
    Drop(DropReason),
    Close(TransportError),
}

impl From<OpenError> for Refusal {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::TooShort => Self::Drop(DropReason::Malformed),
            OpenError::NoKeys => Self::Drop(DropReason::NoKeys),
            OpenError::Forged => Self::Drop(DropReason::Authentication),
            OpenError::Violation(violation) => Self::Close(violation.into()),
        }
    }
}

impl Connection {
    /// Removes the protection of a packet in place; its payload, and in `at` what only then is known.
    pub(super) fn unprotect(
        &mut self,
        at: &mut Arrival,
        span: PacketSpan,
        mut packet: BytesMut,
    ) -> Result<Bytes, Refusal> {
        let opened = match at.kind {
            PacketKind::OneRtt => self.open_short(at, span, &mut packet)?,
            PacketKind::Initial | PacketKind::Handshake | PacketKind::ZeroRtt => {
                // 0-RTT shares its packet numbers with 1-RTT (RFC 9000 12.3).
                let data = self.paths.table.path(PathId::ZERO).map(|path| &path.receive);
                self.handshake.open(at.space, span, &mut packet, data)?
            }
        };
        if opened.is_duplicate {
            return Err(Refusal::Drop(DropReason::Duplicate));
        }
        at.number = opened.number;
        Ok(packet.freeze().slice(opened.payload))
    }

    fn open_short(
        &mut self,
        at: &mut Arrival,
        span: PacketSpan,
        packet: &mut BytesMut,
    ) -> Result<OpenedPacket, Refusal> {
        // RFC 9001 5.7: 1-RTT packets wait until the handshake is complete
        let keys = self.keys.as_mut().filter(|_| self.handshake.is_complete()).ok_or(OpenError::NoKeys)?;
        let guard = self.paths.table.max_pto() * 3;
        at.admission = self.paths.table.admission(at.path);
        if at.admission == Admission::Gone {
            return Err(Refusal::Drop(DropReason::PathGone));
        }
        let unmasked = keys.unmask(packet, span.pn_offset)?;
        let header_len = span.pn_offset + unmasked.pn_len;
        // A path that the peer opens with this packet has no receiver yet.
        let mut receive = self.paths.table.path_mut(at.path).map(|path| &mut path.receive);
        let expected = receive.as_ref().map_or(0, |receive| receive.expected());
        let number = packet_number::expand(unmasked.truncated as u32, unmasked.pn_len, expected);
        let phase = keys.phase();
        let mut fresh = Default::default();
        let mark = receive.as_mut().map_or(&mut fresh, |receive| receive.phase_mark_mut());
        let opened = keys.open(packet, header_len, at.path, number, mark, at.now, guard)?;
        at.newest = receive.as_ref().is_none_or(|receive| receive.largest().is_none_or(|largest| number > largest));
        let is_duplicate = receive.is_some_and(|receive| receive.is_duplicate(number));
        if keys.phase() != phase {
            self.events.observe(at.now, || TraceEvent::KeysUpdated { locally: false });
        }
        Ok(OpenedPacket { number, payload: opened.payload, is_duplicate })
    }
}
