//! The sending half of one stream (RFC 9000 3.1): its buffer, its end, its credit.

use std::ops::Range;

use plait_base::StreamId;
use plait_wire::frame::OutStream;

use crate::credit::SendCredit;
use crate::send_buffer::SendBuffer;
use crate::sink::StreamSink;

/// How the stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamEnd {
    /// The application may write more.
    Open,
    /// Finished; the end is to be sent (again).
    FinDue,
    /// Finished; the end was sent.
    FinSent,
    /// Finished, and the end was acked.
    FinAcked,
    /// RESET_STREAM with this code ends it.
    Reset(u64),
}

/// Whether a STREAM frame ends its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fin {
    Yes,
    No,
}

impl Fin {
    pub(crate) fn is_yes(self) -> bool {
        self == Self::Yes
    }

    pub(crate) fn when(condition: bool) -> Self {
        if condition { Self::Yes } else { Self::No }
    }
}

/// Where the stream waits for its turn to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It has nothing to send.
    Idle,
    /// It is in the ready queue.
    Ready,
    /// All it has is new data, which the connection's credit forbids.
    Blocked,
}

/// The sending half of one stream.
#[derive(Debug)]
pub(crate) struct SendHalf {
    pub(crate) buffer: SendBuffer,
    /// `used` is the end of what was written: a stream buffers no more than the peer's limit for it.
    pub(crate) credit: SendCredit,
    pub(crate) end: StreamEnd,
    pub(crate) turn: Turn,
    pub(crate) priority: i32,
    /// Code of the peer's STOP_SENDING.
    pub(crate) stopped: Option<u64>,
    /// The application does not hold it any more.
    pub(crate) is_let_go: bool,
    /// A write blocked, and the application was not told since that it may go on.
    pub(crate) wants_write: bool,
    /// It stands in `Streams::waiting_writers`, so that it is put there only once.
    pub(crate) in_waiting_writers: bool,
    /// It stands in `Streams::blocked`. Entries are not taken out when a stream leaves [`Turn::Blocked`] by itself.
    pub(crate) in_blocked: bool,
}

impl SendHalf {
    pub(crate) fn new(limit: u64) -> Self {
        Self {
            buffer: SendBuffer::default(),
            credit: SendCredit { limit, ..SendCredit::default() },
            end: StreamEnd::Open,
            turn: Turn::Idle,
            priority: 0,
            stopped: None,
            is_let_go: false,
            wants_write: false,
            in_waiting_writers: false,
            in_blocked: false,
        }
    }

    pub(crate) fn is_reset(&self) -> bool {
        matches!(self.end, StreamEnd::Reset(_))
    }

    /// True when the end of the stream, and nothing else of it, waits to be sent.
    pub(crate) fn has_lone_fin(&self) -> bool {
        self.end == StreamEnd::FinDue && self.buffer.unsent_bytes() == 0 && self.buffer.lost_bytes() == 0
    }

    /// True when a frame can be sent with `credit` bytes of the connection's limit left.
    pub(crate) fn can_send(&self, credit: u64) -> bool {
        self.buffer.lost_bytes() > 0 || (self.buffer.unsent_bytes() > 0 && credit > 0) || self.has_lone_fin()
    }

    /// True when it has anything to send at all, allowed or not.
    pub(crate) fn has_backlog(&self) -> bool {
        self.can_send(u64::MAX)
    }

    /// True when all data and the end were acked.
    pub(crate) fn is_delivered(&self) -> bool {
        self.end == StreamEnd::FinAcked && self.buffer.is_all_acked()
    }

    /// True where new bytes and nothing else wait, `credit` bytes of the connection's limit being left, and the end is far:
    /// the application may write more.
    #[inline]
    pub(crate) fn has_only_fresh(&self, credit: u64) -> bool {
        self.end == StreamEnd::Open && credit > 0 && self.buffer.unsent_bytes() > 0 && self.buffer.lost_bytes() == 0
    }

    /// [`Self::fill`] where [`Self::has_only_fresh`].
    #[inline]
    pub(crate) fn fill_fresh(&mut self, id: StreamId, credit: u64, w: &mut impl StreamSink) -> Option<u64> {
        let next = self.buffer.next(credit)?;
        let (sent, _) = self.put(id, next, false, w)?;
        Some(self.buffer.on_sent(sent))
    }

    /// Writes one frame with the next data, what was lost before what is new: its new bytes, which the connection's credit
    /// pays for. None when nothing fits or waits.
    pub(crate) fn fill(&mut self, id: StreamId, credit: u64, w: &mut impl StreamSink) -> Option<u64> {
        let next = match self.buffer.next(credit) {
            Some(range) => range,
            // Only the end is left to say: a frame without data at the final size.
            None if self.has_lone_fin() => self.buffer.end()..self.buffer.end(),
            None => return None,
        };
        let (sent, fin) = self.put(id, next, self.end == StreamEnd::FinDue, w)?;
        if fin.is_yes() {
            self.end = StreamEnd::FinSent;
        }
        Some(self.buffer.on_sent(sent))
    }

    /// Writes as much of `range` as fits, with the end of the stream where `fin_wanted` and reached.
    fn put(
        &mut self,
        id: StreamId,
        range: Range<u64>,
        fin_wanted: bool,
        w: &mut impl StreamSink,
    ) -> Option<(Range<u64>, Fin)> {
        let final_size = fin_wanted.then_some(self.buffer.end());
        let stream = OutStream { id, range, final_size };
        let sent = w.take(&stream, &mut self.buffer)?;
        let fin = Fin::when(final_size == Some(sent.end));
        Some((sent, fin))
    }

    /// Writes what is unacked of an earlier frame again; where the packet was full, the offset from which the rest waits.
    pub(crate) fn fill_copy(
        &mut self,
        id: StreamId,
        range: Range<u64>,
        fin: Fin,
        w: &mut impl StreamSink,
    ) -> Option<u64> {
        let fin_wanted = fin.is_yes() && matches!(self.end, StreamEnd::FinDue | StreamEnd::FinSent);
        let (mut at, mut has_fin) = (range.start, false);
        loop {
            // Parts of the earlier frame may have been acked since: only the gaps between them go out again.
            let gap = match self.buffer.first_unacked(at..range.end) {
                Some(gap) => gap,
                None if fin_wanted && !has_fin && range.end == self.buffer.end() => range.end..range.end,
                None => return None,
            };
            let Some((sent, fin)) = self.put(id, gap.clone(), fin_wanted, w) else {
                return Some(gap.start);
            };
            self.buffer.on_sent(sent.clone());
            if fin.is_yes() {
                has_fin = true;
                self.end = StreamEnd::FinSent;
            }
            at = sent.end;
        }
    }

    /// A frame of ours was acked; returns the bytes of the buffer that became free.
    pub(crate) fn on_acked(&mut self, range: Range<u64>, fin: Fin) -> u64 {
        if self.is_reset() {
            return 0;
        }
        let base = self.buffer.base();
        self.buffer.on_acked(range);
        if fin.is_yes() && matches!(self.end, StreamEnd::FinSent | StreamEnd::FinDue) {
            self.end = StreamEnd::FinAcked;
        }
        self.buffer.base() - base
    }

    /// Notes that a frame was lost.
    pub(crate) fn on_lost(&mut self, range: Range<u64>, fin: Fin) {
        if self.is_reset() {
            return;
        }
        self.buffer.on_lost(range);
        if fin.is_yes() && self.end == StreamEnd::FinSent {
            self.end = StreamEnd::FinDue;
        }
    }
}
