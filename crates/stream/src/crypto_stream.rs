//! The handshake bytes of one packet number space: an ordered stream without flow control (RFC 9000 7.5, 19.6).

use bytes::Bytes;
use plait_base::limits::{MAX_CRYPTO_BUFFER_BYTES, MAX_CRYPTO_FRAGMENTS};
use plait_base::units::VARINT_MAX;
use plait_base::{Space, Violation};
use plait_wire::{FrameWriter, SentFrame};

use crate::events::Order;
use crate::reassembly::Reassembly;
use crate::send_buffer::SendBuffer;

/// Type, offset and length of a CRYPTO frame at their longest, bytes.
const MAX_HEAD_BYTES: usize = 17;

/// CRYPTO data of one space, both ways.
#[derive(Debug)]
pub struct CryptoStream {
    space: Space,
    outgoing: SendBuffer,
    incoming: Reassembly,
    read: u64,
    /// Highest offset that the peer sent.
    highest: u64,
}

impl CryptoStream {
    /// No data yet.
    pub fn new(space: Space) -> Self {
        Self { space, outgoing: SendBuffer::default(), incoming: Reassembly::default(), read: 0, highest: 0 }
    }

    /// Queues handshake bytes.
    pub fn write(&mut self, data: &[u8]) {
        self.outgoing.write(data);
    }

    /// True when [`Self::fill`] has something to write.
    #[inline]
    pub fn wants_send(&self) -> bool {
        self.outgoing.next(u64::MAX).is_some()
    }

    /// Bytes to send now, lost ones included.
    #[inline]
    pub fn unsent_bytes(&self) -> u64 {
        self.outgoing.lost_bytes() + self.outgoing.unsent_bytes()
    }

    /// True when bytes were sent that are not acked yet.
    pub fn has_unacked(&self) -> bool {
        self.outgoing.base() < self.outgoing.sent()
    }

    /// Writes CRYPTO frames, as many as fit; lost data first.
    pub fn fill(&mut self, w: &mut FrameWriter<'_>) {
        while let Some(next) = self.outgoing.next(u64::MAX) {
            let put = |part, packet: &mut Vec<u8>| self.outgoing.put(part, packet);
            let Some(sent) = w.write_crypto(self.space, next, put) else { return };
            self.outgoing.on_sent(sent);
        }
    }

    /// Writes once more what was written and is not acked, if all of it fits: a copy, after which what is sent when is as it was.
    pub fn fill_copy(&self, w: &mut FrameWriter<'_>) {
        let unacked = self.outgoing.base()..self.outgoing.end();
        let bytes = usize::try_from(unacked.end - unacked.start).unwrap_or(usize::MAX);
        if bytes > 0 && bytes <= w.remaining().saturating_sub(MAX_HEAD_BYTES) {
            w.write_crypto(self.space, unacked, |part, packet| self.outgoing.put(part, packet));
        }
    }

    /// A CRYPTO frame of this space arrived; other frames are ignored.
    pub fn on_acked(&mut self, frame: &SentFrame) {
        if let Some(range) = self.range_of(frame) {
            self.outgoing.on_acked(range);
        }
    }

    /// A CRYPTO frame of this space was lost; other frames are ignored.
    pub fn on_lost(&mut self, frame: &SentFrame) {
        if let Some(range) = self.range_of(frame) {
            self.outgoing.on_lost(range);
        }
    }

    fn range_of(&self, frame: &SentFrame) -> Option<std::ops::Range<u64>> {
        match *frame {
            SentFrame::Crypto { space, offset, len } if space == self.space => {
                Some(offset..offset.saturating_add(u64::from(len)))
            }
            _ => None,
        }
    }

    /// Sends all that is unacked again: after a Retry, and in probes (RFC 9000 17.2.5.2, RFC 9002 6.2.4).
    pub fn resend_unacked(&mut self) {
        self.outgoing.on_lost(0..self.outgoing.sent());
    }

    /// A CRYPTO frame; [`Self::read`] yields what is in order.
    ///
    /// # Errors
    /// [`Violation::OffsetTooLarge`] beyond 2^62 - 1, [`Violation::CryptoBufferExceeded`] for more than we are ready to buffer.
    pub fn on_crypto(&mut self, offset: u64, data: Bytes) -> Result<(), Violation> {
        let end = offset.saturating_add(data.len() as u64);
        // RFC 9000 19.6: the largest offset is 2^62 - 1.
        if end > VARINT_MAX {
            return Err(Violation::OffsetTooLarge);
        }
        // RFC 9000 7.5: more than we are ready to buffer is CRYPTO_BUFFER_EXCEEDED.
        if end > self.read + MAX_CRYPTO_BUFFER_BYTES {
            return Err(Violation::CryptoBufferExceeded);
        }
        self.highest = self.highest.max(end);
        if data.is_empty() {
            return Ok(());
        }
        let inserted = self.incoming.insert(offset, data, MAX_CRYPTO_FRAGMENTS);
        // It may wait for long, and is little.
        self.incoming.settle();
        inserted.map_err(|_| Violation::CryptoBufferExceeded)
    }

    /// The next handshake bytes in order.
    pub fn read(&mut self) -> Option<Bytes> {
        let chunk = self.incoming.read(usize::MAX, Order::Ordered).ok()??;
        self.read += chunk.bytes.len() as u64;
        Some(chunk.bytes)
    }

    /// True once the peer sent bytes, read or not.
    pub fn has_received(&self) -> bool {
        self.highest > 0
    }

    /// Bytes read so far.
    pub fn read_offset(&self) -> u64 {
        self.read
    }

    /// True when the peer sent bytes that were not read: TLS must not change keys now (RFC 9001 4.1.3).
    pub fn has_unread(&self) -> bool {
        self.highest > self.read
    }
}

#[cfg(test)]
mod tests;
