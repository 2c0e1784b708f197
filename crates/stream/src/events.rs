//! What streams tell the application, and how its calls end.

use bytes::Bytes;
use plait_base::{Dir, StreamId};

/// Something the application may want to act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEvent {
    /// The peer opened at least one stream; call `accept` until it yields none.
    Opened(Dir),
    /// A read of this stream no longer blocks. Told again only after a read blocked.
    Readable(StreamId),
    /// A write that blocked may go on.
    Writable(StreamId),
    /// All data of this stream, its end included, reached the peer.
    Finished(StreamId),
    /// The peer knows that we reset this stream, by ourselves or because it stopped it (RFC 9000 3.1: Reset Recvd).
    Reset(StreamId),
    /// The peer wants no more of this stream; it was reset with the same code (RFC 9000 3.5).
    Stopped {
        /// The stream, whose sending half is over.
        id: StreamId,
        /// The peer's application error code.
        code: u64,
    },
    /// `open` in this direction no longer fails.
    Available(Dir),
}

/// The stream does not exist, or this half of it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stream is closed")]
pub struct ClosedStream;

/// Why nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// No room now; [`StreamEvent::Writable`] follows.
    #[error("write blocked")]
    Blocked,
    /// The peer sent STOP_SENDING with this code.
    #[error("stopped by the peer with code {0}")]
    Stopped(u64),
    /// Finished, reset or never opened.
    #[error("stream is closed")]
    ClosedStream,
}

/// Why nothing was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Nothing there yet; [`StreamEvent::Readable`] follows.
    #[error("read blocked")]
    Blocked,
    /// The peer reset the stream with this code.
    #[error("reset by the peer with code {0}")]
    Reset(u64),
    /// Read to its end, stopped, or never opened.
    #[error("stream is closed")]
    ClosedStream,
    /// An ordered read after an unordered one.
    #[error("ordered read after an unordered read")]
    IllegalOrderedRead,
}

impl From<ClosedStream> for ReadError {
    fn from(_: ClosedStream) -> Self {
        Self::ClosedStream
    }
}

impl From<ClosedStream> for WriteError {
    fn from(_: ClosedStream) -> Self {
        Self::ClosedStream
    }
}

/// In which order a read takes data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By offset, without gaps.
    Ordered,
    /// Whatever has arrived; the stream cannot be read in order afterwards.
    Unordered,
}

/// A piece of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Offset of its first byte in the stream.
    pub offset: u64,
    /// Its bytes, at least one.
    pub bytes: Bytes,
}
