//! Takes the protection off a packet: header, payload, and whether its number is new (RFC 9001 5).

use bytes::{Bytes, BytesMut};
use plait_base::observe::{DropReason, TraceEvent};
use plait_base::{PathId, TransportError};
use plait_crypto::OpenError;
use plait_wire::header::{PacketKind, PacketSpan};

use super::Arrival;
use crate::connection::Connection;

/// Why a packet went no further.
pub(crate) enum Refusal {
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
        let payload = match at.kind {
            PacketKind::OneRtt => {
                // RFC 9001 5.7: 1-RTT packets wait until the handshake is complete
                let keys = self.keys.as_deref_mut().filter(|_| self.handshake.is_complete());
                let keys = keys.ok_or(OpenError::NoKeys)?;
                let phase = keys.phase();
                let payload = self.paths.open_packet(at, keys, span, &mut packet);
                if keys.phase() != phase {
                    self.events.observe(at.now, || TraceEvent::KeysUpdated { locally: false });
                }
                payload?
            }
            PacketKind::Initial | PacketKind::Handshake | PacketKind::ZeroRtt => {
                // 0-RTT shares its packet numbers with 1-RTT (RFC 9000 12.3).
                let data = self.paths.table.path(PathId::ZERO).map(|path| &path.receive);
                let opened = self.handshake.open(at.space, span, &mut packet, data)?;
                if self.handshake.is_duplicate(at.space, opened.number, data) {
                    return Err(Refusal::Drop(DropReason::Duplicate));
                }
                at.number = opened.number;
                opened.payload
            }
        };
        Ok(packet.freeze().slice(payload))
    }
}
