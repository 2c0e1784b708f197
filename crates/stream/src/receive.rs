//! The receiving half of one stream (RFC 9000 3.2): checks, data, and its end.

use std::ops::Range;

use bytes::Bytes;
use plait_base::Violation;
use plait_base::units::VARINT_MAX;

use crate::credit::ReceiveCredit;
use crate::events::{Chunk, Order, ReadError};
use crate::reassembly::{Reassembly, max_fragments};
use crate::send::Fin;

/// What is still expected of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReceiveState {
    /// Recv, Size Known or Data Recvd: data is kept for the application.
    Open,
    /// Reset Recvd: the application has not been told this code yet.
    Reset(u64),
    /// The application wants no more; what arrives is counted and dropped.
    Stopped(u64),
}

/// Whether the half is over for both the peer and the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Liveness {
    /// It goes on.
    Alive,
    /// Nothing more can come of it.
    Over,
}

/// What one frame changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameEffect {
    /// New bytes that count against the connection's limit.
    pub(crate) counted: u64,
    /// Bytes that the application will never read.
    pub(crate) discarded: u64,
    /// The application should be told that a read will not block.
    pub(crate) wake: bool,
    /// Whether the half is over.
    pub(crate) life: Liveness,
}

/// What a half holds that its flow control does not count by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// Bytes that keep receive buffers alive.
    pub(crate) lent: u64,
    /// Pieces beyond a gap.
    pub(crate) pieces: usize,
}

impl Held {
    /// A half's share changed.
    pub(crate) fn shift(&mut self, before: Self, after: Self) {
        self.lent = self.lent + after.lent - before.lent;
        self.pieces = self.pieces + after.pieces - before.pieces;
    }
}

/// The receiving half of one stream.
#[derive(Debug)]
pub(crate) struct ReceiveHalf {
    data: Reassembly,
    pub(crate) credit: ReceiveCredit,
    final_size: Option<u64>,
    state: ReceiveState,
    /// The application was told that it can read, and did not run dry since.
    told: bool,
    /// It is in the list of streams that were lent data.
    pub(crate) in_debt: bool,
}

impl ReceiveHalf {
    pub(crate) fn new(window: u64) -> Self {
        Self {
            data: Reassembly::default(),
            credit: ReceiveCredit::new(window),
            final_size: None,
            state: ReceiveState::Open,
            told: false,
            in_debt: false,
        }
    }

    pub(crate) fn held(&self) -> Held {
        Held { lent: self.data.lent(), pieces: self.data.pieces() }
    }

    /// Copies what is unread out of the receive buffers.
    pub(crate) fn settle(&mut self) {
        self.data.settle();
    }

    /// Joins pieces that touch; how many disjoint ranges lie beyond a gap.
    pub(crate) fn join(&mut self) -> usize {
        self.data.join()
    }

    /// Code of the peer's RESET_STREAM that was not read yet.
    pub(crate) fn received_reset(&self) -> Option<u64> {
        match self.state {
            ReceiveState::Reset(code) => Some(code),
            _ => None,
        }
    }

    /// Code of our STOP_SENDING.
    pub(crate) fn stop_code(&self) -> Option<u64> {
        match self.state {
            ReceiveState::Stopped(code) => Some(code),
            _ => None,
        }
    }

    /// True when more credit would let the peer send more.
    pub(crate) fn wants_update(&self) -> bool {
        self.takes_updates() && self.credit.wants_update()
    }

    /// True when what lies beyond a gap fills half of the window while the application has read all before it: bytes
    /// that are late on a slow path must not hold up a fast one.
    pub(crate) fn is_cramped(&self) -> bool {
        let held = self.credit.received() - self.credit.consumed();
        self.takes_updates() && held > self.credit.window() / 2 && !self.data.is_readable()
    }

    /// RFC 9000 4.1, 3.2: no MAX_STREAM_DATA once the size is known or the data unwanted.
    pub(crate) fn takes_updates(&self) -> bool {
        self.state == ReceiveState::Open && self.final_size.is_none()
    }

    /// True while bytes are missing that the application wants.
    pub(crate) fn expects_data(&self) -> bool {
        self.state == ReceiveState::Open && self.final_size.is_none_or(|size| !self.data.has_all_below(size))
    }

    /// New bytes for the connection's count if the stream reaches `end`; every rule is checked first.
    fn check(&self, end: u64, is_final: bool, room: u64) -> Result<u64, Violation> {
        let highest = self.credit.received();
        if let Some(size) = self.final_size {
            // RFC 9000 4.5: the final size cannot change, and no data lies beyond it.
            if is_final && end != size {
                return Err(Violation::FinalSizeChanged);
            }
            if end > size {
                return Err(Violation::DataBeyondFinalSize);
            }
        } else if is_final && end < highest {
            return Err(Violation::FinalSizeBelowData);
        }
        let counted = end.saturating_sub(highest);
        self.credit.check(counted, Violation::StreamFlowControl)?;
        if counted > room {
            return Err(Violation::ConnectionFlowControl);
        }
        Ok(counted)
    }

    /// STREAM frames that follow each other, with the bytes of `range` in pieces; `room` is what the connection's limit still
    /// allows.
    pub(crate) fn on_data(
        &mut self,
        range: Range<u64>,
        fin: Fin,
        pieces: impl IntoIterator<Item = Bytes>,
        room: u64,
    ) -> Result<FrameEffect, Violation> {
        let Range { start, end } = range;
        // RFC 9000 19.8: the largest offset is 2^62 - 1.
        if end > VARINT_MAX {
            return Err(Violation::OffsetTooLarge);
        }
        let counted = self.check(end, fin.is_yes(), room)?;
        self.credit.on_received(counted);
        if fin.is_yes() {
            self.final_size = Some(end);
        }
        let mut effect = FrameEffect { counted, discarded: 0, wake: false, life: Liveness::Alive };
        match self.state {
            ReceiveState::Open => {
                let fragments_max = max_fragments(self.credit.window());
                let mut at = start;
                for piece in pieces.into_iter().filter(|piece| !piece.is_empty()) {
                    let offset = at;
                    at += piece.len() as u64;
                    self.data.insert(offset, piece, fragments_max)?;
                }
                effect.wake = self.wake();
            }
            ReceiveState::Reset(_) => effect.discarded = counted,
            ReceiveState::Stopped(_) => {
                effect.discarded = counted;
                if self.final_size.is_some() {
                    effect.life = Liveness::Over;
                }
            }
        }
        self.credit.on_consumed(effect.discarded);
        Ok(effect)
    }

    /// A RESET_STREAM frame (RFC 9000 19.4).
    pub(crate) fn on_reset(&mut self, code: u64, size: u64, room: u64) -> Result<FrameEffect, Violation> {
        let counted = self.check(size, true, room)?;
        self.credit.on_received(counted);
        let ended = self.final_size.replace(size).is_some();
        let mut effect = FrameEffect { counted, discarded: 0, wake: false, life: Liveness::Alive };
        match self.state {
            // RFC 9000 3.2: in Data Recvd, with the end and all data here, the reset may be ignored.
            ReceiveState::Open if ended && self.data.has_all_below(size) => {}
            ReceiveState::Open => {
                self.state = ReceiveState::Reset(code);
                self.data.clear();
                effect.discarded = self.discard_rest();
                effect.wake = !self.told;
                self.told = true;
            }
            ReceiveState::Reset(_) => {}
            ReceiveState::Stopped(_) => {
                effect.discarded = self.discard_rest();
                effect.life = Liveness::Over;
            }
        }
        Ok(effect)
    }

    /// Counts all that was received and not read as consumed.
    fn discard_rest(&mut self) -> u64 {
        let rest = self.credit.received() - self.credit.consumed();
        self.credit.on_consumed(rest);
        rest
    }

    fn is_at_end(&self) -> bool {
        self.final_size.is_some_and(|size| self.data.is_drained() && self.data.has_all_below(size))
    }

    /// True once, when there is something to read and the application does not know.
    fn wake(&mut self) -> bool {
        let wake = !self.told && (self.data.is_readable() || self.is_at_end());
        self.told |= wake;
        wake
    }

    /// The application reads. Nothing more can be read after `Ok(None)` and `Reset`.
    pub(crate) fn read(&mut self, max_len: usize, order: Order) -> Result<Option<Chunk>, ReadError> {
        match self.state {
            ReceiveState::Reset(code) => return Err(ReadError::Reset(code)),
            ReceiveState::Stopped(_) => return Err(ReadError::ClosedStream),
            ReceiveState::Open => {}
        }
        let chunk = self.data.read(max_len, order).map_err(|_| ReadError::IllegalOrderedRead)?;
        if let Some(chunk) = chunk {
            self.credit.on_consumed(chunk.bytes.len() as u64);
            return Ok(Some(chunk));
        }
        if self.is_at_end() {
            return Ok(None);
        }
        self.told = self.data.is_readable();
        Err(ReadError::Blocked)
    }

    /// The application wants no more: bytes to credit, and whether the half is over.
    pub(crate) fn stop(&mut self, code: u64) -> (u64, Liveness) {
        let life = match self.final_size {
            Some(_) => Liveness::Over,
            None => Liveness::Alive,
        };
        self.state = ReceiveState::Stopped(code);
        self.data.clear();
        (self.discard_rest(), life)
    }

    /// True when the peer need not be told to stop: all is here or it has reset.
    pub(crate) fn needs_no_stop(&self) -> bool {
        matches!(self.state, ReceiveState::Reset(_))
            || self.final_size.is_some_and(|size| self.data.has_all_below(size))
    }
}
