//! Streams as an application uses them: open, accept, write, read, end, reset, stop.

use bytes::Bytes;
use plait_base::{Dir, StreamId};
use plait_stream::{Chunk, ClosedStream, Order, ReadError, Streams, WriteError};

/// All streams of a connection, borrowed from it.
pub struct OpenStreams<'a> {
    pub(crate) streams: &'a mut Streams,
}

impl OpenStreams<'_> {
    /// Opens a stream; none while the peer allows no more.
    pub fn open(&mut self, dir: Dir) -> Option<StreamId> {
        self.streams.open(dir)
    }
    /// The next stream that the peer opened.
    pub fn accept(&mut self, dir: Dir) -> Option<StreamId> {
        self.streams.accept(dir)
    }
}

/// The sending part of a stream, borrowed from its connection.
pub struct SendStream<'a> {
    pub(crate) streams: &'a mut Streams,
    pub(crate) id: StreamId,
}

impl SendStream<'_> {
    /// Writes as much of `data` as there is room for.
    ///
    /// # Errors
    /// See [`WriteError`]; `Blocked` is followed by a `Writable` event.
    pub fn write(&mut self, data: &[u8]) -> Result<usize, WriteError> {
        self.streams.write(self.id, data)
    }

    /// As [`Self::write`] without copying: chunks taken become empty, one taken in part keeps its rest.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn write_chunks(&mut self, chunks: &mut [Bytes]) -> Result<usize, WriteError> {
        self.streams.write_chunks(self.id, chunks)
    }

    /// How many bytes a write to the stream would take now, at least one.
    ///
    /// # Errors
    /// See [`WriteError`]; the stream is told writable after `Blocked`.
    pub fn room(&mut self) -> Result<u64, WriteError> {
        self.streams.room(self.id)
    }

    /// Ends the stream after what was written.
    ///
    /// # Errors
    /// The stream is closed or stopped.
    pub fn finish(&mut self) -> Result<(), WriteError> {
        self.streams.finish(self.id)
    }

    /// As [`Self::finish`], and nobody asks for the stream any more: it is not told that the peer stops it.
    ///
    /// # Errors
    /// The stream is closed or stopped.
    pub fn let_go(&mut self) -> Result<(), WriteError> {
        self.streams.let_go(self.id)
    }

    /// Abandons sending with the application's code.
    ///
    /// # Errors
    /// The stream is closed.
    pub fn reset(&mut self, code: u64) -> Result<(), ClosedStream> {
        self.streams.reset(self.id, code)
    }

    /// Streams of higher priority are sent first; 0 at the start.
    ///
    /// # Errors
    /// The stream is closed.
    pub fn set_priority(&mut self, priority: i32) -> Result<(), ClosedStream> {
        self.streams.set_priority(self.id, priority)
    }

    /// The stream's priority.
    ///
    /// # Errors
    /// The stream is closed.
    pub fn priority(&mut self) -> Result<i32, ClosedStream> {
        self.streams.priority(self.id)
    }

    /// The code with which the peer asked us to stop sending, if it did.
    ///
    /// # Errors
    /// The stream is closed.
    pub fn stopped(&mut self) -> Result<Option<u64>, ClosedStream> {
        self.streams.stopped(self.id)
    }
}

/// The receiving part of a stream, borrowed from its connection.
pub struct RecvStream<'a> {
    pub(crate) streams: &'a mut Streams,
    pub(crate) id: StreamId,
}

impl RecvStream<'_> {
    /// The next bytes of a stream, at most `max_len`; `Ok(None)` at its end.
    ///
    /// # Errors
    /// See [`ReadError`]; `Blocked` is followed by a `Readable` event.
    pub fn read(&mut self, max_len: usize, order: Order) -> Result<Option<Chunk>, ReadError> {
        self.streams.read(self.id, max_len, order)
    }

    /// Hands `take` piece after piece, of `max_len` bytes at most and then of as many as it asked for, until it asks for none.
    /// False at the stream's end.
    ///
    /// # Errors
    /// As for [`Self::read`]; pieces may have been handed over before.
    pub fn read_each(
        &mut self,
        max_len: usize,
        order: Order,
        take: impl FnMut(Chunk) -> usize,
    ) -> Result<bool, ReadError> {
        self.streams.read_each(self.id, max_len, order, take)
    }

    /// The code with which the peer reset the stream, if it did.
    ///
    /// # Errors
    /// The stream is closed.
    pub fn received_reset(&mut self) -> Result<Option<u64>, ClosedStream> {
        self.streams.received_reset(self.id)
    }

    /// Asks the peer to stop sending, with the application's code; unread data is dropped.
    ///
    /// # Errors
    /// The stream is closed.
    pub fn stop(&mut self, code: u64) -> Result<(), ClosedStream> {
        self.streams.stop(self.id, code)
    }
}
