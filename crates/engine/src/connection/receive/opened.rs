//! Packets whose protection is taken off, one by one or a train of them.

use std::ops::Range;

use plait_base::PathId;
use plait_crypto::{OpenError, OpenKeys, Unmasked};
use plait_wire::frame::Stream;
use plait_wire::header::{PacketSpan, packet_number};

/// A packet without its protection.
#[derive(Debug)]
pub(crate) struct OpenedPacket {
    pub(crate) number: u64,
    /// Where its frames lie.
    pub(crate) payload: Range<usize>,
}

/// Takes the protection off packets of one kind.
pub(crate) trait Opener {
    fn unmask(&self, packet: &mut [u8], pn_at: usize) -> Result<Unmasked, OpenError>;

    /// `header_len` counts the packet number. How many bytes of frames follow it.
    fn open(&mut self, packet: &mut [u8], header_len: usize, number: u64) -> Result<usize, OpenError>;
}

/// A datagram of a train after the attempt to open it.
#[derive(Debug)]
pub(crate) struct TrainPacket {
    /// Where the datagram lies in the train.
    pub(crate) place: Range<usize>,
    pub(crate) opened: Result<OpenedPacket, OpenError>,
}

impl TrainPacket {
    /// Its number, its datagram and its frames, where it was opened; `train` holds all datagrams.
    pub(crate) fn read<'a>(&self, train: &'a [u8]) -> Option<(u64, &'a [u8], &'a [u8])> {
        let OpenedPacket { number, payload } = self.opened.as_ref().ok()?;
        let datagram = train.get(self.place.clone())?;
        Some((*number, datagram, datagram.get(payload.clone())?))
    }

    /// True where its first frame is one of a stream; `train` holds all datagrams.
    #[inline]
    pub(crate) fn begins_with_stream(&self, train: &[u8]) -> bool {
        let opened = self.opened.as_ref().ok();
        let payload = opened.and_then(|opened| train.get(self.place.start + opened.payload.start..));
        payload.is_some_and(Stream::begins)
    }

    /// Where in the train its frames end, where it was opened.
    #[inline]
    pub(crate) fn payload_end(&self) -> usize {
        self.place.start + self.opened.as_ref().map_or(0, |opened| opened.payload.end)
    }
}

impl Opener for &OpenKeys {
    fn unmask(&self, packet: &mut [u8], pn_at: usize) -> Result<Unmasked, OpenError> {
        OpenKeys::unmask(self, packet, pn_at)
    }

    fn open(&mut self, packet: &mut [u8], header_len: usize, number: u64) -> Result<usize, OpenError> {
        OpenKeys::open(self, packet, header_len, PathId::ZERO, number).map(|payload| payload.len())
    }
}

impl OpenedPacket {
    /// Opens a packet in place: its header is unmasked, its number made whole beside the `expected` one, its payload
    /// decrypted (RFC 9001 5.4.1, RFC 9000 17.1).
    // Once a packet: whether it is inlined there must not depend on what stands beside it.
    #[inline(always)]
    pub(crate) fn open(
        packet: &mut [u8],
        span: PacketSpan,
        expected: u64,
        keys: &mut impl Opener,
    ) -> Result<Self, OpenError> {
        let unmasked = keys.unmask(packet, span.pn_offset)?;
        let number = packet_number::expand(unmasked.truncated as u32, unmasked.pn_len, expected);
        let header_len = span.pn_offset + unmasked.pn_len;
        let payload_bytes = keys.open(packet, header_len, number)?;
        Ok(Self { number, payload: header_len..header_len + payload_bytes })
    }
}
