//! Received data that lies in receive buffers, and the pieces beyond gaps, over all streams of a connection.

use plait_base::{StreamId, Violation};

use super::Streams;
use crate::reassembly::{join_above, max_fragments};
use crate::receive::{Held, ReceiveHalf};

/// Sums over the receiving halves of all streams.
#[derive(Debug, Default)]
pub(super) struct Loans {
    held: Held,
    /// Streams that were lent data since the last time; those that were read meanwhile stay in it.
    streams: Vec<StreamId>,
}

impl Streams {
    /// Bytes of unread data that keep whole receive buffers alive, until [`Self::settle`].
    pub fn lent_bytes(&self) -> u64 {
        self.loans.held.lent
    }

    /// Copies unread data out of the receive buffers, so that they can be freed. To be called within
    /// `limits::LOAN_TIME` of the arrival of what [`Self::lent_bytes`] counts.
    pub fn settle(&mut self) {
        for id in std::mem::take(&mut self.loans.streams) {
            self.change_receive(id, |half| {
                half.settle();
                half.in_debt = false;
            });
        }
        debug_assert_eq!(self.loans.held.lent, 0);
    }

    /// Changes a receiving half and keeps the sums in step; none when it is over.
    pub(super) fn change_receive<R>(&mut self, id: StreamId, change: impl FnOnce(&mut ReceiveHalf) -> R) -> Option<R> {
        let half = self.table.use_receive(id)?;
        let before = half.held();
        let result = change(half);
        let after = half.held();
        self.loans.held.shift(before, after);
        if after.lent > 0 && !std::mem::replace(&mut half.in_debt, true) {
            self.loans.streams.push(id);
        }
        Some(result)
    }

    /// Bounds the pieces beyond gaps over all streams by the connection's window, as those of a stream by its own: bytes
    /// of credit that a gap skips would otherwise pay for more pieces on each of many streams.
    pub(super) fn bound_pieces(&mut self) -> Result<(), Violation> {
        let allowed = max_fragments(self.receive.window());
        if self.loans.held.pieces <= join_above(allowed) {
            return Ok(());
        }
        let mut ranges = 0;
        for half in self.table.live_receives() {
            let before = half.held();
            ranges += half.join();
            self.loans.held.shift(before, half.held());
        }
        if ranges > allowed { Err(Violation::StreamTooFragmented) } else { Ok(()) }
    }
}
