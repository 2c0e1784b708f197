//! What is on its way and may be sent again on another path before anybody knows whether it was lost.

use plait_base::{Instant, Space};
use plait_wire::SentFrame;

use super::SendFlow;
use super::sent_packets::PacketState;

/// A packet of the data space on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlight {
    /// When it was sent.
    pub sent_at: Instant,
    /// Its size, bytes.
    pub bytes: u64,
    /// Bytes in flight up to and including it.
    pub ahead_bytes: u64,
}

/// What is to become of one packet of a flight that is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyChoice {
    /// Another path carries its frames too.
    Copy,
    /// It is left where it is.
    Leave,
    /// So are it and all that follow.
    Stop,
}

/// From which end the flight is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlightOrder {
    /// Longest on its way first.
    OldestFirst,
    /// Sent last first.
    NewestFirst,
    /// Longest on its way first, and not from the other end where that gives none.
    OldestOnly,
}

impl FlightOrder {
    pub(crate) fn reversed(self) -> Option<Self> {
        match self {
            Self::OldestFirst => Some(Self::NewestFirst),
            Self::NewestFirst => Some(Self::OldestFirst),
            Self::OldestOnly => None,
        }
    }
}

impl SendFlow {
    /// Takes the frames of packets in flight, in this order and until `choice` says stop, for another path to carry too;
    /// `most` packets at most. None is given twice, nor any that repeats another path's. True when some were given.
    pub(crate) fn take_copies(
        &mut self,
        order: FlightOrder,
        most: usize,
        mut choice: impl FnMut(&InFlight) -> CopyChoice,
        out: &mut Vec<SentFrame>,
    ) -> bool {
        let total = self.in_flight;
        let Some(state) = self.spaces[Space::Data as usize].as_deref_mut() else { return false };
        let sent = &mut state.sent;
        let (from, to) = sent.outstanding_numbers();
        if sent.copied_below >= to {
            return false;
        }
        let from = if order == FlightOrder::NewestFirst { from.max(sent.copied_below) } else { from };
        let (mut passed, mut given, mut all_copied) = (0, 0, true);
        for step in 0..to - from {
            let number = if order == FlightOrder::NewestFirst { to - 1 - step } else { from + step };
            let Some(entry) = sent.get(number).filter(|e| e.state == PacketState::Outstanding && e.counted) else {
                continue;
            };
            let (bytes, sent_at) = (u64::from(entry.info.bytes), entry.sent_at);
            let before = passed;
            passed += bytes;
            if entry.copied || entry.handed_over || !entry.info.ack_eliciting {
                continue;
            }
            all_copied = false;
            let ahead_bytes = if order == FlightOrder::NewestFirst { total.saturating_sub(before) } else { passed };
            if given >= most {
                break;
            }
            match choice(&InFlight { sent_at, bytes, ahead_bytes }) {
                CopyChoice::Copy => {}
                CopyChoice::Leave => continue,
                CopyChoice::Stop => break,
            }
            sent.append_frames_of(entry, out);
            if let Some(entry) = sent.get_mut(number) {
                entry.copied = true;
            }
            given += 1;
        }
        if all_copied {
            sent.copied_below = to;
        }
        given > 0
    }
}
