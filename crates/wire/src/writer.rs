//! The room that is left in the packet being built: sources write frames into it and note what they wrote.

use crate::sent_frame::SentFrame;
use crate::varint;

/// The payload of one packet under construction.
///
/// Invariant: nothing is written at or beyond `end`; a source that does not fit writes nothing.
pub struct FrameWriter<'a> {
    buf: &'a mut Vec<u8>,
    end: usize,
    sent: &'a mut Vec<SentFrame>,
    ack_eliciting: bool,
}

impl<'a> FrameWriter<'a> {
    /// Writes frames at the end of `buf`, up to the absolute index `end`, and notes them in `sent`.
    pub fn new(buf: &'a mut Vec<u8>, end: usize, sent: &'a mut Vec<SentFrame>) -> Self {
        Self { buf, end, sent, ack_eliciting: false }
    }

    /// Bytes that still fit.
    pub fn remaining(&self) -> usize {
        self.end.saturating_sub(self.buf.len())
    }

    /// Notes a frame that was just written; all but acks make the packet ack-eliciting.
    pub fn note(&mut self, frame: SentFrame) {
        self.ack_eliciting |= !matches!(frame, SentFrame::Ack { .. });
        self.sent.push(frame);
    }

    /// True once a frame other than ACK, PADDING or CONNECTION_CLOSE was noted (RFC 9002 2).
    pub fn is_ack_eliciting(&self) -> bool {
        self.ack_eliciting
    }

    /// Appends a varint; the caller checked the room.
    pub fn put_varint(&mut self, value: u64) {
        varint::put(self.buf, value);
    }

    /// Appends bytes; the caller checked the room.
    pub fn put_bytes(&mut self, bytes: &[u8]) {
        debug_assert!(bytes.len() <= self.remaining());
        self.buf.extend_from_slice(bytes);
    }

    /// Appends `count` zero bytes: PADDING frames.
    pub fn pad(&mut self, count: usize) {
        let len = self.buf.len() + count.min(self.remaining());
        self.buf.resize(len, 0);
    }
}
