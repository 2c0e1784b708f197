//! Application datagrams: unreliable, unordered, in bounded queues both ways (RFC 9221).

use std::collections::VecDeque;

use bytes::Bytes;
use plait_base::Violation;
use plait_base::limits::DEFAULT_DATAGRAM_BUFFER_BYTES;
use plait_wire::{FrameWriter, varint};

use crate::piece::{PIECE_OVERHEAD_BYTES, Piece, settle_all, shrink};

/// What a queued datagram costs beyond its bytes, so that empty ones are bounded too.
const OVERHEAD_BYTES: usize = 64;
/// The max_datagram_frame_size that we announce: any frame that fits a packet (RFC 9221 3).
const MAX_FRAME_BYTES: u64 = 65_535;

/// Bounds of the queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramsConfig {
    /// Bytes of datagrams that wait to be sent.
    pub send_buffer: usize,
    /// Bytes of received datagrams that wait for the application; none refuses datagrams.
    pub receive_buffer: Option<usize>,
}

impl DatagramsConfig {
    /// The max_datagram_frame_size to announce, bytes of the whole frame; 0 refuses datagrams (RFC 9221 3).
    pub fn announced_frame_bytes(&self) -> u64 {
        self.receive_buffer.map_or(0, |bound| (bound as u64).min(MAX_FRAME_BYTES))
    }
}

impl Default for DatagramsConfig {
    fn default() -> Self {
        Self { send_buffer: DEFAULT_DATAGRAM_BUFFER_BYTES, receive_buffer: Some(DEFAULT_DATAGRAM_BUFFER_BYTES) }
    }
}

/// What to do with a datagram when the send queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// Drop the oldest ones, which matter least.
    DropOldest,
    /// Give the datagram back.
    Refuse,
}

/// Why a datagram was not queued.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendDatagramError {
    /// The peer takes no datagrams.
    #[error("the peer takes no datagrams")]
    UnsupportedByPeer,
    /// It fits no packet, or the peer takes none that large.
    #[error("datagram too large")]
    TooLarge,
    /// The queue is full; the datagram comes back. [`Datagrams::poll_unblocked`] tells when to try again.
    #[error("datagram queue is full")]
    Blocked(Bytes),
}

/// The datagram queues of one connection.
#[derive(Debug)]
pub struct Datagrams {
    config: DatagramsConfig,
    /// The peer's max_datagram_frame_size; 0 when it takes none.
    peer_frame_max: u64,
    outgoing: VecDeque<Bytes>,
    outgoing_bytes: usize,
    incoming: VecDeque<Piece>,
    incoming_bytes: usize,
    /// Bytes of `incoming` that lie in receive buffers.
    lent: u64,
    waiting: bool,
    unblocked: bool,
    /// True once the application asked for a datagram to be sent, whether or not it fitted.
    is_used: bool,
    dropped: DroppedDatagrams,
}

/// How many datagrams were dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DroppedDatagrams {
    /// Queued ones that never left: newer ones took their place, or packets became too small for them.
    pub unsent: u64,
    /// Received ones that the application did not read in time.
    pub unread: u64,
}

fn cost(datagram: &Bytes) -> usize {
    datagram.len() + OVERHEAD_BYTES
}

/// What a received one costs while it waits.
fn held(datagram: &Bytes) -> usize {
    datagram.len() + PIECE_OVERHEAD_BYTES
}

impl Datagrams {
    /// Empty queues; nothing can be sent before [`Self::set_peer_frame_max`].
    pub fn new(config: DatagramsConfig) -> Self {
        Self {
            config,
            peer_frame_max: 0,
            outgoing: VecDeque::new(),
            outgoing_bytes: 0,
            incoming: VecDeque::new(),
            incoming_bytes: 0,
            lent: 0,
            waiting: false,
            unblocked: false,
            is_used: false,
            dropped: DroppedDatagrams::default(),
        }
    }

    /// The peer's max_datagram_frame_size, bytes of the whole frame; 0 when it takes none.
    pub fn set_peer_frame_max(&mut self, bytes: u64) {
        self.peer_frame_max = bytes;
    }

    /// Largest datagram that can be sent in a packet with room for `room` bytes of frames; none when the peer
    /// takes none.
    pub fn max_size(&self, room: usize) -> Option<usize> {
        if self.peer_frame_max == 0 {
            return None;
        }
        // A frame that fills its packet needs no length; the peer's limit counts the largest form.
        let peer = usize::try_from(self.peer_frame_max).unwrap_or(usize::MAX).min(MAX_FRAME_BYTES as usize);
        let field = varint::size(peer as u64);
        Some(room.saturating_sub(1).min(peer.saturating_sub(1 + field)))
    }

    /// Queues `datagram`; `room` is the room for frames in the largest packet that can be sent now, bytes.
    ///
    /// # Errors
    /// The peer takes no datagrams, this one fits no packet, or the queue is full and `overflow` says to refuse.
    pub fn send(&mut self, datagram: Bytes, room: usize, overflow: Overflow) -> Result<(), SendDatagramError> {
        self.is_used = true;
        let max = self.max_size(room).ok_or(SendDatagramError::UnsupportedByPeer)?;
        if datagram.len() > max || cost(&datagram) > self.config.send_buffer {
            return Err(SendDatagramError::TooLarge);
        }
        while self.outgoing_bytes + cost(&datagram) > self.config.send_buffer {
            if overflow == Overflow::Refuse {
                self.waiting = true;
                return Err(SendDatagramError::Blocked(datagram));
            }
            self.pop_outgoing();
            self.dropped.unsent += 1;
        }
        self.outgoing_bytes += cost(&datagram);
        self.outgoing.push_back(datagram);
        Ok(())
    }

    fn pop_outgoing(&mut self) {
        self.take_outgoing(0);
    }

    fn take_outgoing(&mut self, place: usize) {
        if let Some(datagram) = self.outgoing.remove(place) {
            self.outgoing_bytes -= cost(&datagram);
            if self.waiting {
                self.waiting = false;
                self.unblocked = true;
            }
        }
    }

    /// Bytes that can be queued without dropping or blocking; each datagram costs a little more than its bytes.
    pub fn send_buffer_room(&self) -> usize {
        (self.config.send_buffer - self.outgoing_bytes).saturating_sub(OVERHEAD_BYTES)
    }

    /// True when a datagram waits to be sent.
    #[inline]
    pub fn wants_send(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Bytes of the datagram that is to be sent next.
    #[inline]
    pub fn next_size(&self) -> Option<usize> {
        self.outgoing.front().map(Bytes::len)
    }

    /// Bytes of the datagram that is to be sent next in a packet with room for `room` bytes of frames.
    #[inline]
    pub fn next_size_within(&self, room: usize) -> Option<usize> {
        if self.outgoing.is_empty() { None } else { self.find_size_within(room) }
    }

    #[inline(never)]
    fn find_size_within(&self, room: usize) -> Option<usize> {
        let max = self.max_size(room)?;
        self.outgoing.iter().map(Bytes::len).find(|len| *len <= max)
    }

    /// True once the application asked for a datagram to be sent, be it too large.
    #[inline]
    pub fn is_used(&self) -> bool {
        self.is_used
    }

    /// Bytes of all datagrams that wait to be sent.
    #[inline]
    pub fn unsent_bytes(&self) -> u64 {
        (self.outgoing_bytes - self.outgoing.len() * OVERHEAD_BYTES) as u64
    }

    /// True once after room was made in a send queue that refused a datagram.
    pub fn poll_unblocked(&mut self) -> bool {
        std::mem::take(&mut self.unblocked)
    }

    /// Writes DATAGRAM frames, oldest first, as many as fit. Those that no packet of this path can hold, which has room for
    /// `room` bytes of frames when it is empty, let younger ones pass: they wait for another path.
    pub fn fill(&mut self, room: usize, w: &mut FrameWriter<'_>) {
        let max = self.max_size(room).unwrap_or(0);
        let mut place = 0;
        while let Some(next) = self.outgoing.get(place) {
            if w.write_datagram(next) {
                self.take_outgoing(place);
            } else if next.len() <= max {
                return;
            } else {
                place += 1;
            }
        }
    }

    /// Drops queued datagrams that cannot be sent any more, after the paths' packets shrank to `room` bytes of frames or
    /// the peer's limit did; how many. RFC 9221 5: they cannot be fragmented.
    pub fn drop_larger_than(&mut self, room: usize) -> usize {
        let max = self.max_size(room);
        let before = self.outgoing.len();
        self.outgoing.retain(|d| max.is_some_and(|max| d.len() <= max));
        let dropped = before - self.outgoing.len();
        if dropped > 0 {
            self.outgoing_bytes = self.outgoing.iter().map(cost).sum();
            self.dropped.unsent += dropped as u64;
            self.unblocked |= std::mem::take(&mut self.waiting);
        }
        dropped
    }

    /// A DATAGRAM frame; true when the queue was empty before: the application should be told.
    ///
    /// # Errors
    /// [`Violation::DatagramNotNegotiated`] or [`Violation::DatagramTooLarge`], against what we announced (RFC 9221 3).
    pub fn on_datagram(&mut self, data: Bytes, frame_bytes: usize) -> Result<bool, Violation> {
        // RFC 9221 3: without the transport parameter a DATAGRAM frame is a PROTOCOL_VIOLATION, and so is one
        // above the announced size.
        let Some(bound) = self.config.receive_buffer else { return Err(Violation::DatagramNotNegotiated) };
        if frame_bytes as u64 > self.config.announced_frame_bytes() {
            return Err(Violation::DatagramTooLarge);
        }
        if held(&data) > bound {
            self.dropped.unread += 1;
            return Ok(false);
        }
        let was_empty = self.incoming.is_empty();
        while self.incoming_bytes + held(&data) > bound && self.read().is_some() {
            self.dropped.unread += 1;
        }
        self.incoming_bytes += held(&data);
        let piece = Piece::arrived(data);
        self.lent += piece.lent();
        self.incoming.push_back(piece);
        Ok(was_empty)
    }

    /// Takes the oldest received datagram.
    pub fn read(&mut self) -> Option<Bytes> {
        let piece = self.incoming.pop_front()?;
        shrink(&mut self.incoming);
        self.incoming_bytes -= held(&piece.bytes);
        self.lent -= piece.lent();
        Some(piece.bytes)
    }

    /// Bytes of unread datagrams that keep whole receive buffers alive, until [`Self::settle`].
    pub fn lent_bytes(&self) -> u64 {
        self.lent
    }

    /// Copies unread datagrams out of the receive buffers, so that they can be freed.
    pub fn settle(&mut self) {
        settle_all(self.incoming.iter_mut().rev(), &mut self.lent);
    }

    /// How many datagrams were dropped so far.
    pub fn dropped(&self) -> DroppedDatagrams {
        self.dropped
    }
}

#[cfg(test)]
mod tests;
