//! CONNECTION_CLOSE, by the transport or by the application (RFC 9000 19.19).

#![allow(missing_docs)] // fields mean what the RFC's figure says of that name

use plait_base::{CloseCode, Violation};

use super::data::fit_prefixed;
use super::{Encode, put_varints, types, varints_size};
use crate::varint::{self, Reader};

/// CONNECTION_CLOSE, in the transport's form or the application's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close<'a> {
    /// Type 0x1c: the transport closes.
    Transport {
        code: CloseCode,
        /// Type of the frame at fault; 0 when unknown.
        frame_type: u64,
        /// For people; any bytes.
        reason: &'a [u8],
    },
    /// Type 0x1d: the application closes; only in 0-RTT and 1-RTT packets.
    Application {
        /// The application's code.
        code: u64,
        /// For people; any bytes.
        reason: &'a [u8],
    },
}

impl<'a> Close<'a> {
    pub(super) fn decode(r: &mut Reader<'a>, frame_type: u64) -> Result<Self, Violation> {
        let code = r.varint()?;
        if frame_type == types::APPLICATION_CLOSE {
            return Ok(Self::Application { code, reason: r.prefixed()? });
        }
        Ok(Self::Transport { code: CloseCode(code), frame_type: r.varint()?, reason: r.prefixed()? })
    }

    /// The type of its form.
    pub(crate) fn frame_type(&self) -> u64 {
        match self {
            Self::Transport { .. } => types::CONNECTION_CLOSE,
            Self::Application { .. } => types::APPLICATION_CLOSE,
        }
    }

    /// The reason phrase.
    fn reason(&self) -> &'a [u8] {
        match *self {
            Self::Transport { reason, .. } | Self::Application { reason, .. } => reason,
        }
    }

    /// The same with its reason cut so that the frame takes at most `room_bytes`; none when no reason is short
    /// enough.
    pub(crate) fn fit(self, room_bytes: usize) -> Option<Self> {
        let reason = self.reason();
        let bare = self.with_reason(&[]);
        let room = room_bytes.checked_sub(bare.size() - 1)?;
        let len = fit_prefixed(room, reason.len())?;
        Some(self.with_reason(reason.get(..len).unwrap_or_default()))
    }

    fn with_reason(self, reason: &'a [u8]) -> Self {
        match self {
            Self::Transport { code, frame_type, .. } => Self::Transport { code, frame_type, reason },
            Self::Application { code, .. } => Self::Application { code, reason },
        }
    }
}

impl Encode for Close<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        varint::put(out, self.frame_type());
        match *self {
            Self::Transport { code, frame_type, .. } => put_varints(out, &[code.0, frame_type]),
            Self::Application { code, .. } => varint::put(out, code),
        }
        varint::put(out, self.reason().len() as u64);
        out.extend_from_slice(self.reason());
    }

    fn size(&self) -> usize {
        let fields = match *self {
            Self::Transport { code, frame_type, .. } => varints_size(&[code.0, frame_type]),
            Self::Application { code, .. } => varint::size(code),
        };
        1 + fields + varint::size(self.reason().len() as u64) + self.reason().len()
    }
}
