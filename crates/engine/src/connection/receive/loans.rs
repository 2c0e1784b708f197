//! Received data lies in the buffers of the datagrams that brought it until it is read: those are on loan, for a while.

use plait_base::Instant;
use plait_base::limits::LOAN_TIME;
use plait_stream::{Datagrams, Streams};

/// Until when unread data may keep receive buffers.
#[derive(Debug, Default)]
pub(crate) struct Loans {
    until: Option<Instant>,
}

impl Loans {
    /// The time begins anew once all that was received is read.
    pub(crate) fn forget_read(&mut self, streams: &Streams, datagrams: &Datagrams) {
        if !holds_any(streams, datagrams) {
            self.until = None;
        }
    }

    pub(crate) fn note_unread(&mut self, now: Instant, streams: &Streams, datagrams: &Datagrams) {
        if holds_any(streams, datagrams) {
            self.until = self.until.or(Some(now + LOAN_TIME));
        }
    }

    pub(crate) fn deadline(&self, streams: &Streams, datagrams: &Datagrams) -> Option<Instant> {
        self.until.filter(|_| holds_any(streams, datagrams))
    }

    pub(crate) fn on_timeout(&mut self, now: Instant, streams: &mut Streams, datagrams: &mut Datagrams) {
        if self.until.is_some_and(|at| at <= now) {
            self.end(streams, datagrams);
        }
    }

    /// Gives the receive buffers back: what the application has not read by now is copied.
    pub(crate) fn end(&mut self, streams: &mut Streams, datagrams: &mut Datagrams) {
        self.until = None;
        streams.settle();
        datagrams.settle();
    }
}

fn holds_any(streams: &Streams, datagrams: &Datagrams) -> bool {
    streams.lent_bytes() + datagrams.lent_bytes() > 0
}
