//! Packets and datagrams of one path on their way out: where they leave, what they may carry, how they are sealed.

use std::time::Duration;

use plait_base::limits::MIN_DATAGRAM_BYTES;
use plait_base::{ConnectionId, Ecn, FourTuple, Instant, Space};
use plait_crypto::{CIPHER_BLOCK_BYTES, SealError, TAG_BYTES};
use plait_wire::SentFrame;
use plait_wire::header::{FixedBit, OutHeader, packet_number};

use super::Path;
use crate::addresses::FourTupleRole;
use crate::pairing::Pairing;
use crate::send::{Built, CopyChoice, FlightOrder, InFlight, PacketBuilder, Padding, Sealer, SendRoom};

/// Packets with which a path is validated where nothing is lost: a challenge and a response, and one behind each.
const STARTING_PACKETS: u64 = 4;

/// How a datagram leaves on a path now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The addresses to send with; our own is unspecified where the system chooses it.
    pub tuple: FourTuple,
    /// The mark of its IP header.
    pub ecn: Option<Ecn>,
    /// Bytes that the peer's address may be sent now (RFC 9000 8.1); `usize::MAX` once it is proven, and where we chose it.
    pub credit_bytes: usize,
}

impl Path {
    /// How a datagram leaves by one of the path's 4-tuples; none where it has no such 4-tuple.
    #[inline]
    pub fn departure(&self, role: FourTupleRole) -> Option<Departure> {
        let state = self.addresses.get(role)?;
        let credit_bytes = usize::try_from(state.amplification_room()).unwrap_or(usize::MAX);
        Some(Departure { tuple: state.send_tuple(), ecn: self.send.ecn(), credit_bytes })
    }

    /// The short header of its next packet; the key phase is set when the packet is sealed.
    #[inline]
    pub fn short_header(&self, dcid: ConnectionId) -> OutHeader<'static> {
        OutHeader::Short { dcid, spin: self.spin.bit(), key_phase: false }
    }

    /// Bytes of a datagram with stream data to the connection id `dcid`: as many as pass, less a part of a cipher block at the
    /// end of its data, which takes longer to seal and to open than its 15 bytes at most are worth.
    #[inline]
    pub fn bulk_bytes(&self, dcid: ConnectionId) -> usize {
        let (number, acked) = (self.send.next_number(Space::Data), self.send.largest_acked(Space::Data));
        let header_bytes = self.short_header(dcid).size(packet_number::len_for(number, acked));
        let most = usize::from(self.mtu());
        most - most.saturating_sub(header_bytes + TAG_BYTES) % CIPHER_BLOCK_BYTES
    }

    /// Begins the next packet of `space` at the end of `buf`. It ends, tag included, at the index `end` at most. None, with
    /// nothing written, where not even the smallest packet fits.
    #[inline]
    pub fn begin_packet(
        &self,
        space: Space,
        buf: &mut Vec<u8>,
        header: &OutHeader<'_>,
        end: usize,
        fixed_bit: FixedBit,
    ) -> Option<PacketBuilder> {
        let (number, acked) = (self.send.next_number(space), self.send.largest_acked(space));
        PacketBuilder::begin(buf, header, self.id, number, acked, end, fixed_bit)
    }

    /// Pads a packet that was begun, and seals it.
    ///
    /// # Errors
    /// The keys are used up or refuse; the packet is taken out of the buffer.
    #[inline]
    pub fn finish_packet(
        &mut self,
        builder: PacketBuilder,
        buf: &mut Vec<u8>,
        sealer: Sealer<'_>,
        padding: Padding,
    ) -> Result<Built, SealError> {
        builder.finish(buf, sealer, self.send.seal_mark_mut(), padding)
    }

    /// Whether a packet with challenges or responses may leave now. Challenges have a clock of their own and are not paced;
    /// responses are as many as the peer likes: the pacer holds them too (RFC 9000 8.2.2).
    pub fn validation_room(&mut self, now: Instant) -> SendRoom {
        let asks = self.addresses.get(FourTupleRole::Current).is_some_and(|state| state.wants_challenge());
        if asks && self.admits_challenge() {
            return SendRoom::Free;
        }
        self.send.prepare_to_send(now, MIN_DATAGRAM_BYTES as u64);
        self.send.room(now, MIN_DATAGRAM_BYTES as u64)
    }

    /// The host woke up later by so much than packets were held back: pacing makes up for it.
    pub fn on_late(&mut self, by: Duration) {
        self.send.on_late(by);
    }

    /// Whether the window lets a challenge go.
    pub fn admits_challenge(&self) -> bool {
        self.send.admits_challenge(MIN_DATAGRAM_BYTES as u64)
    }

    /// Whether the window has room for a datagram of `bytes` that is not paced.
    pub fn has_window(&self, now: Instant, bytes: u64) -> bool {
        self.send.room(now, bytes) != SendRoom::Window
    }

    /// Whether a full datagram of data may leave now, by window and pace.
    pub fn data_room(&mut self, now: Instant) -> SendRoom {
        let bytes = u64::from(self.mtu());
        self.send.prepare_to_send(now, bytes);
        self.send.room(now, bytes)
    }

    /// Appends the frames under way in 1-RTT packets that are no data of streams: what has to be said again should the path be
    /// lost with whoever serves it.
    pub(crate) fn control_in_flight(&self, out: &mut Vec<SentFrame>) {
        self.send.oldest_frames(Space::Data, 0, usize::MAX, out);
        out.retain(|frame| !matches!(frame, SentFrame::Stream { .. } | SentFrame::Ack { .. } | SentFrame::Ping));
    }

    /// True where a small packet behind one with a challenge or response tells of its loss: among the first packets of a path
    /// beside path 0, where there is no round-trip time yet and a probe time-out is a second.
    pub fn is_starting(&self) -> bool {
        let is_beside = !self.is_first() && self.pairing == Pairing::Paths;
        is_beside && self.send.next_number(Space::Data) <= STARTING_PACKETS
    }

    /// True for a path beside path 0 of which nothing was heard yet.
    pub fn is_opening(&self) -> bool {
        !self.is_first() && !self.is_validated() && self.send.rtt().measured().is_none()
    }

    /// True while a 1-RTT packet that asks for an ack is under way.
    #[inline]
    pub fn is_awaiting_ack(&self) -> bool {
        self.send.is_awaiting_ack(Space::Data)
    }

    /// What the next PTO probe in 1-RTT packets repeats: each of a time-out's probes takes another of the oldest packets
    /// (RFC 9002 6.2.4).
    pub fn probe_frames(&self, out: &mut Vec<SentFrame>) {
        self.send.probe_frames(Space::Data, out);
    }

    /// Takes the frames of 1-RTT packets in flight, in this order and until `choice` says stop, for another path to carry
    /// too; `most` packets at most. Where that gives none, they are looked at from the other end. None is given twice, nor any
    /// that repeats another path's. True when some were given.
    pub fn take_copies(
        &mut self,
        order: FlightOrder,
        most: usize,
        mut choice: impl FnMut(&InFlight) -> CopyChoice,
        out: &mut Vec<SentFrame>,
    ) -> bool {
        [Some(order), order.reversed()]
            .into_iter()
            .flatten()
            .any(|order| self.send.take_copies(order, most, &mut choice, out))
    }
}
