//! Building one packet in place: header, room for frames, padding, length, seal.

use plait_base::PathId;
use plait_crypto::{Layout, OneRttKeys, SealError, SealKeys, SealMark, TAG_BYTES, min_payload_bytes};
use plait_wire::header::{FixedBit, HeaderMarks, MAX_LONG_PACKET_BYTES, OutHeader, packet_number};
use plait_wire::{FrameWriter, SentFrame};

/// The keys that seal a packet.
pub enum Sealer<'a> {
    /// Initial, Handshake or 0-RTT keys.
    Level(&'a SealKeys),
    /// 1-RTT keys, of all paths.
    OneRtt(&'a mut OneRttKeys),
}

/// How large to make a packet with PADDING frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// No larger than header protection needs.
    Least,
    /// Until the buffer is so long, tag included; cut to the packet's limit.
    UpTo(usize),
    /// The same where no more than `missing_bytes` are missing, so that the next packet of a GSO batch has the same size.
    Nearly {
        /// Where the packet would end.
        end: usize,
        /// PADDING that is still worth it, bytes.
        missing_bytes: usize,
    },
}

/// A sealed packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Built {
    /// Its packet number.
    pub number: u64,
    /// Its bytes, header and tag included.
    pub bytes: usize,
    /// Bytes of PADDING that were added at the end: they make the packet count as in flight (RFC 9002 2).
    pub padding_bytes: usize,
}

/// A packet under construction at the end of a datagram buffer. Dropping it leaves what was written in the
/// buffer: call [`Path::finish_packet`](crate::Path::finish_packet) or [`abandon`](Self::abandon).
#[must_use = "finish or abandon it"]
#[derive(Clone, Copy, Debug)]
pub struct PacketBuilder {
    marks: HeaderMarks,
    path: PathId,
    number: u64,
    /// Absolute index at which frames must end.
    payload_end: usize,
}

impl PacketBuilder {
    /// Writes the header of packet `number` at the end of `buf`. The packet ends, tag included, at the absolute
    /// index `end` at most. None, with nothing written, where not even the smallest packet fits.
    #[inline]
    pub(crate) fn begin(
        buf: &mut Vec<u8>,
        header: &OutHeader<'_>,
        path: PathId,
        number: u64,
        largest_acked: Option<u64>,
        end: usize,
        fixed_bit: FixedBit,
    ) -> Option<Self> {
        // RFC 9000 17.1: enough bytes of the number for twice the range that is not acknowledged
        let pn_len = packet_number::len_for(number, largest_acked);
        let smallest = buf.len() + header.size(pn_len) + min_payload_bytes(pn_len).max(1) + TAG_BYTES;
        if smallest > end {
            return None;
        }
        let marks = header.write(buf, number, pn_len, fixed_bit);
        let end = if marks.length_at.is_some() { end.min(marks.pn_at + MAX_LONG_PACKET_BYTES) } else { end };
        Some(Self { marks, path, number, payload_end: end - TAG_BYTES })
    }

    /// The room for frames. May be asked for again: each writer goes on where the last one ended.
    pub fn writer<'a>(&self, buf: &'a mut Vec<u8>, carried: &'a mut Vec<SentFrame>) -> FrameWriter<'a> {
        FrameWriter::new(buf, self.payload_end, carried)
    }

    /// True while no frame was written.
    pub fn is_empty(&self, buf: &[u8]) -> bool {
        buf.len() <= self.marks.payload_at()
    }

    /// Bytes of the packet if it were finished now without padding, header and tag included.
    fn size(&self, buf: &[u8]) -> usize {
        let payload = buf.len().saturating_sub(self.marks.payload_at());
        self.marks.header_len() + payload.max(min_payload_bytes(self.marks.pn_len)) + TAG_BYTES
    }

    /// Takes the packet out of the buffer again; its number stays free.
    pub fn abandon(self, buf: &mut Vec<u8>) {
        buf.truncate(self.marks.start);
    }

    /// Pads, writes the length and seals in place. `mark` is the path's, for 1-RTT keys; an error takes the packet out of
    /// the buffer.
    #[inline(always)]
    pub(crate) fn finish(
        self,
        buf: &mut Vec<u8>,
        sealer: Sealer<'_>,
        mark: &mut SealMark,
        padding: Padding,
    ) -> Result<Built, SealError> {
        let payload_at = self.marks.payload_at();
        // RFC 9001 5.4.2: the sample needs four bytes from the start of the packet number
        let mut wanted = payload_at + min_payload_bytes(self.marks.pn_len);
        let up_to = match padding {
            Padding::UpTo(end) => Some(end),
            Padding::Nearly { end, missing_bytes } => {
                Some(end).filter(|end| self.marks.start + self.size(buf) + missing_bytes > *end)
            }
            Padding::Least => None,
        };
        if let Some(end) = up_to {
            wanted = wanted.max(end.saturating_sub(TAG_BYTES).min(self.payload_end));
        }
        let padding_bytes = wanted.saturating_sub(buf.len());
        buf.resize(buf.len() + padding_bytes, 0);
        let end = buf.len() + TAG_BYTES;
        self.marks.set_length(buf, end);
        let layout = Layout { start: self.marks.start, pn_at: self.marks.pn_at, pn_len: self.marks.pn_len };
        let sealed = match sealer {
            Sealer::Level(keys) => keys.seal_packet(buf, layout, self.path, self.number),
            Sealer::OneRtt(keys) => keys.seal_packet(buf, layout, self.path, self.number, mark),
        };
        if let Err(error) = sealed {
            self.abandon(buf);
            return Err(error);
        }
        Ok(Built { number: self.number, bytes: buf.len() - self.marks.start, padding_bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plait_base::{ConnectionId, Instant, Side};
    use plait_crypto::{PhaseMark, initial_keys};
    use plait_wire::header::{FixedBitRule, PacketSpan, ProtectedHeader};
    use plait_wire::{Frame, Version};
    use std::time::Duration;

    fn cid() -> ConnectionId {
        ConnectionId::new(&[1, 2, 3, 4, 5, 6, 7, 8]).unwrap()
    }

    #[test]
    fn initial_is_padded_and_opens() {
        // RFC 9000 8.1-3, 14.1-1; RFC 9001 9.3
        let header = OutHeader::Initial { version: Version::V1, dcid: cid(), scid: cid(), token: b"tok" };
        let (mut buf, mut carried) = (Vec::new(), Vec::new());
        let builder = PacketBuilder::begin(&mut buf, &header, PathId::ZERO, 7, None, 1200, FixedBit::Set).unwrap();
        assert!(builder.is_empty(&buf));
        let mut w = builder.writer(&mut buf, &mut carried);
        assert!(w.write(&Frame::Ping, SentFrame::Ping));
        let ours = initial_keys(1, &cid(), Side::Client).unwrap();
        let built = builder
            .finish(&mut buf, Sealer::Level(&ours.local), &mut SealMark::default(), Padding::UpTo(1200))
            .unwrap();
        assert_eq!((buf.len(), built.bytes, built.number), (1200, 1200, 7));
        assert!(built.padding_bytes > 1000 && carried == [SentFrame::Ping]);

        let theirs = initial_keys(1, &cid(), Side::Server).unwrap().remote;
        let (_, PacketSpan { pn_offset, end, .. }) = ProtectedHeader::parse(&buf, 8, FixedBitRule::MustBeSet).unwrap();
        assert_eq!(end, 1200, "the length field is right");
        let unmasked = theirs.unmask(&mut buf, pn_offset).unwrap();
        assert_eq!(unmasked.truncated, 7);
        let payload = theirs.open(&mut buf, pn_offset + unmasked.pn_len, PathId::ZERO, 7).unwrap();
        assert_eq!(buf[payload][..2], [1, 0]);
    }

    #[test]
    fn short_packets_follow_each_other_and_open_on_their_path() {
        // RFC 9000 12.3-1, 12.3-2
        let (mut ours, mut theirs) = (OneRttKeys::null(Side::Client), OneRttKeys::null(Side::Server));
        let (mut seal, mut phase) = (SealMark::default(), PhaseMark::default());
        let header = OutHeader::Short { dcid: cid(), spin: false, key_phase: false };
        let (mut buf, mut carried) = (vec![9; 100], Vec::new());
        let path = PathId(3);
        let builder = PacketBuilder::begin(&mut buf, &header, path, 300, Some(299), 200, FixedBit::Set).unwrap();
        assert!(builder.writer(&mut buf, &mut carried).write(&Frame::Ping, SentFrame::Ping));
        let built = builder.finish(&mut buf, Sealer::OneRtt(&mut ours), &mut seal, Padding::Least).unwrap();
        // 1 first byte, 8 id, 1 number, 1 frame, 2 padding for the sample, 16 tag
        assert_eq!((built.bytes, built.padding_bytes), (29, 2));
        let mut packet = buf.split_off(100);
        let unmasked = theirs.unmask(&mut packet, 9).unwrap();
        assert_eq!((unmasked.truncated, unmasked.pn_len), (300 & 0xff, 1));
        let guard = Duration::ZERO;
        let opened = theirs.open(&mut packet, 10, path, 300, &mut phase, Instant::ZERO, guard).unwrap();
        assert_eq!(packet[10..10 + opened.payload_bytes], [1, 0, 0]);
    }

    #[test]
    fn nothing_is_left_of_what_does_not_fit_or_is_abandoned() {
        // RFC 9000 12.4-1
        let header = OutHeader::Short { dcid: cid(), spin: false, key_phase: false };
        let mut buf = vec![0; 10];
        for end in 0..10 + 9 + 4 + TAG_BYTES {
            assert!(PacketBuilder::begin(&mut buf, &header, PathId::ZERO, 0, None, end, FixedBit::Set).is_none());
        }
        assert_eq!(buf.len(), 10);
        let end = 10 + 9 + 4 + TAG_BYTES;
        let builder = PacketBuilder::begin(&mut buf, &header, PathId::ZERO, 0, None, end, FixedBit::Set).unwrap();
        assert_eq!(builder.size(&buf) + 10, end);
        builder.abandon(&mut buf);
        assert_eq!(buf.len(), 10);
    }

    #[test]
    fn used_up_keys_leave_nothing() {
        // RFC 9001 6.6-2, 6.6-4
        let mut keys = OneRttKeys::null(Side::Client);
        keys.lower_limits(0, 0);
        let header = OutHeader::Short { dcid: cid(), spin: false, key_phase: false };
        let (mut buf, mut mark) = (Vec::new(), SealMark::default());
        for number in 0..3 {
            let begun = PacketBuilder::begin(&mut buf, &header, PathId::ZERO, number, None, 100, FixedBit::Set);
            let before = buf.len();
            if begun.unwrap().finish(&mut buf, Sealer::OneRtt(&mut keys), &mut mark, Padding::Least).is_err() {
                assert!(buf.len() < before);
                return;
            }
            buf.clear();
        }
        panic!("the limit was never reached");
    }
}
