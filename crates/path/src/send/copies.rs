//! What is on its way and may be sent again on another path before anybody knows whether it was lost.

use plait_base::{Instant, Space};
use plait_wire::SentFrame;

use super::SendFlow;
use super::sent_packets::{Copied, PacketState};

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
        let mut copied = sent.copied;
        let from = from.max(copied.below);
        if from >= to {
            return false;
        }
        let is_newest_first = order == FlightOrder::NewestFirst;
        let (mut passed, mut given) = (if is_newest_first { 0 } else { copied.bytes }, 0);
        // None of those that were passed is left as it is.
        let mut all_copied = true;
        for step in 0..to - from {
            let number = if is_newest_first { to - 1 - step } else { from + step };
            let Some(entry) = sent.get(number).filter(|e| e.state == PacketState::Outstanding && e.counted) else {
                continue;
            };
            let (bytes, sent_at) = (u64::from(entry.info.bytes), entry.sent_at);
            let before = passed;
            passed += bytes;
            if !entry.copied && !entry.handed_over && entry.info.ack_eliciting {
                let ahead_bytes = if is_newest_first { total.saturating_sub(before) } else { passed };
                let choice =
                    if given < most { choice(&InFlight { sent_at, bytes, ahead_bytes }) } else { CopyChoice::Stop };
                if choice != CopyChoice::Copy {
                    all_copied = false;
                    if choice == CopyChoice::Leave {
                        continue;
                    }
                    break;
                }
                sent.append_frames_of(entry, out);
                if let Some(entry) = sent.get_mut(number) {
                    entry.copied = true;
                }
                given += 1;
            }
            if all_copied && !is_newest_first {
                (copied.below, copied.bytes) = (number + 1, passed);
            }
        }
        if all_copied {
            let bytes = if is_newest_first { copied.bytes + passed } else { passed };
            copied = Copied { below: to, bytes };
        }
        sent.copied = copied;
        given > 0
    }
}
