//! The room that is left in a packet being built: frames go in whole or not at all, and are remembered as they go in.

use std::ops::Range;

use plait_base::Space;

use crate::frame::data::{self, DataFit};
use crate::frame::{Close, Encode, Frame, OutAck, OutStream, StreamHead, crypto, datagram};
use crate::sent_frame::SentFrame;

/// The payload of one packet under construction.
///
/// Invariant: nothing is written at or beyond `end`, and every frame but CONNECTION_CLOSE and PADDING has its
/// [`SentFrame`].
///
/// ```
/// use plait_wire::frame::{Frame, MaxData};
/// use plait_wire::{FrameWriter, SentFrame};
/// let (mut packet, mut sent) = (Vec::new(), Vec::new());
/// let mut writer = FrameWriter::new(&mut packet, 3, &mut sent);
/// assert!(writer.write(&MaxData { limit: 9 }, SentFrame::MaxData(9)));
/// assert!(!writer.write(&MaxData { limit: 9 }, SentFrame::MaxData(9)), "one byte is left");
/// assert!(writer.write(&Frame::Ping, SentFrame::Ping));
/// assert_eq!((packet, sent.len()), (vec![0x10, 9, 0x01], 2));
/// ```
pub struct FrameWriter<'a> {
    buf: &'a mut Vec<u8>,
    end: usize,
    sent: &'a mut Vec<SentFrame>,
    ack_eliciting: bool,
}

impl<'a> FrameWriter<'a> {
    /// Writes frames at the end of `buf`, up to the absolute index `end`, and appends what was written to `sent`.
    #[inline]
    pub fn new(buf: &'a mut Vec<u8>, end: usize, sent: &'a mut Vec<SentFrame>) -> Self {
        Self { buf, end, sent, ack_eliciting: false }
    }

    /// Bytes that still fit.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.end.saturating_sub(self.buf.len())
    }

    /// True once a frame other than ACK, PADDING or CONNECTION_CLOSE was written (RFC 9002 2).
    #[inline]
    pub fn is_ack_eliciting(&self) -> bool {
        self.ack_eliciting
    }

    /// Writes a frame and remembers it as `sent`. False when it does not fit; then nothing is written.
    #[inline]
    #[must_use]
    pub fn write(&mut self, frame: &impl Encode, sent: SentFrame) -> bool {
        let fits = frame.size() <= self.remaining();
        if fits {
            frame.encode(self.buf);
            self.remember(sent);
        }
        fits
    }

    /// Writes an ack of packets of `space`, its newest ranges first, as many as fit. Answers the largest number that it
    /// reports; none when there is nothing to report, or no room for one range.
    #[inline]
    pub fn write_ack(&mut self, space: Space, ack: &OutAck<'_>) -> Option<u64> {
        let (smallest, largest) = ack.encode(self.remaining(), self.buf)?.into_inner();
        self.remember(SentFrame::Ack { space, path: ack.path, smallest, largest });
        Some(largest)
    }

    /// Writes frames that another writer wrote before, as they are, and remembers them as `carried`. False when they do not fit;
    /// then nothing is written.
    #[must_use]
    pub fn write_bundle(&mut self, frames: &[u8], carried: &[SentFrame]) -> bool {
        let fits = frames.len() <= self.remaining();
        if fits {
            self.buf.extend_from_slice(frames);
            carried.iter().for_each(|frame| self.remember(*frame));
        }
        fits
    }

    /// Writes a PING; where not one byte is left, the packet goes without.
    pub fn write_ping(&mut self) {
        let _ = self.write(&Frame::Ping, SentFrame::Ping);
    }

    /// Writes a CONNECTION_CLOSE, with its reason cut to the room. False when it does not fit even without a reason.
    ///
    /// Nothing is remembered: a close is repeated when the peer goes on sending, and never because it was lost.
    #[must_use]
    pub fn write_close(&mut self, close: Close<'_>) -> bool {
        let Some(close) = close.fit(self.remaining()) else { return false };
        close.encode(self.buf);
        true
    }

    /// Writes a CRYPTO frame with the first part of `range`, whose bytes `put` appends. Answers the part that was
    /// written; none when too little fits to be worth a frame.
    pub fn write_crypto(
        &mut self,
        space: Space,
        range: Range<u64>,
        put: impl FnOnce(Range<u64>, &mut Vec<u8>),
    ) -> Option<Range<u64>> {
        let wanted = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let len = crypto::fit(range.start, wanted, self.remaining())?;
        let part = range.start..range.start + len as u64;
        crypto::put_head(self.buf, part.start, len);
        self.put_data(part.clone(), put);
        self.remember(SentFrame::Crypto { space, offset: part.start, len: len as u32 });
        Some(part)
    }

    /// Writes a STREAM frame with the first part of the stream's range, whose bytes `put` appends. Answers the part that
    /// was written; none when too little fits to be worth a frame.
    ///
    /// The bytes are copied once, from where `put` has them into the packet.
    #[inline]
    pub fn write_stream(
        &mut self,
        stream: &OutStream,
        put: impl FnOnce(Range<u64>, &mut Vec<u8>),
    ) -> Option<Range<u64>> {
        let OutStream { id, ref range, final_size } = *stream;
        let mut head = StreamHead { id, offset: range.start, fin: false, len: None };
        let fit = DataFit::new(self.remaining(), head.size(), range.end - range.start)?;
        let part = range.start..range.start + fit.len as u64;
        head.fin = final_size == Some(part.end);
        head.len = fit.len_field();
        data::put_padding(self.buf, fit.padding);
        head.encode(self.buf);
        self.put_data(part.clone(), put);
        self.remember(SentFrame::Stream { id, offset: part.start, len: fit.len as u32, fin: head.fin });
        Some(part)
    }

    /// Writes a DATAGRAM frame. False when it does not fit: a datagram is never split (RFC 9221 5).
    #[must_use]
    pub fn write_datagram(&mut self, datagram: &[u8]) -> bool {
        let len = datagram.len() as u64;
        let Some(fit) = DataFit::new(self.remaining(), 1, len).filter(|fit| fit.len == datagram.len()) else {
            return false;
        };
        data::put_padding(self.buf, fit.padding);
        datagram::put_head(self.buf, fit.len_field());
        self.buf.extend_from_slice(datagram);
        self.remember(SentFrame::Datagram { len: len as u32 });
        true
    }

    #[inline]
    fn put_data(&mut self, part: Range<u64>, put: impl FnOnce(Range<u64>, &mut Vec<u8>)) {
        let after = self.buf.len() + (part.end - part.start) as usize;
        put(part, self.buf);
        debug_assert!(self.buf.len() == after && after <= self.end, "the data is as long as its frame says");
    }

    #[inline]
    fn remember(&mut self, sent: SentFrame) {
        self.ack_eliciting |= !matches!(sent, SentFrame::Ack { .. });
        self.sent.push(sent);
    }
}
