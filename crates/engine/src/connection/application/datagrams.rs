//! Application datagrams as an application uses them (RFC 9221).

use bytes::Bytes;
use plait_stream::{Datagrams, Overflow, SendDatagramError};

/// The queues of datagrams, borrowed from their connection.
pub struct ApplicationDatagrams<'a> {
    pub(crate) queues: &'a mut Datagrams,
    /// Bytes for frames in a packet of the widest path in use.
    pub(crate) room: usize,
}

impl ApplicationDatagrams<'_> {
    /// Queues an application datagram (RFC 9221).
    ///
    /// # Errors
    /// The peer takes none, it is too large, or the queue is full and `overflow` says to refuse.
    pub fn send(&mut self, data: Bytes, overflow: Overflow) -> Result<(), SendDatagramError> {
        self.queues.send(data, self.room, overflow)
    }

    /// The oldest received datagram.
    pub fn recv(&mut self) -> Option<Bytes> {
        self.queues.read()
    }

    /// Largest datagram that can be sent now, bytes: what fits a packet of the widest path in use. Paths with smaller
    /// packets leave such datagrams to it. None when the peer takes none.
    pub fn max_size(&self) -> Option<usize> {
        self.queues.max_size(self.room)
    }

    /// Bytes of outgoing datagrams that may be queued now.
    pub fn send_buffer_room(&self) -> usize {
        self.queues.send_buffer_room()
    }
}
