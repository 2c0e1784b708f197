//! The half of a stream that we write.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use plait_base::StreamId;
use plait_stream as stream;
use tokio::io::AsyncWrite;

use super::{Early, StoppedError, WriteError};
use crate::connection::{ConnectionRef, State};

/// The half of a stream that we write.
///
/// When it is dropped, the stream is finished as by [`Self::finish`]; call [`Self::reset`] to abandon it. `write`,
/// `write_chunk(s)` and the `AsyncWrite` calls may be cancelled without loss; `write_all` may then have written a part.
///
/// ```
/// # mod support { include!("../../doc/pair.in"); }
/// # use support::*;
/// # run(async {
/// # let (client, server) = pair().await;
/// let mut send = client.open_uni().await?;
/// send.set_priority(1)?;
/// send.write_all(b"all of it").await?;
/// send.finish()?;
/// # let mut recv = server.accept_uni().await?;
/// # assert_eq!(recv.read_to_end(100).await?, b"all of it");
/// // Waits until the peer has everything.
/// assert_eq!(send.stopped().await?, None);
/// # Ok(())
/// # });
/// ```
#[derive(Debug)]
pub struct SendStream {
    shared: Arc<ConnectionRef>,
    id: StreamId,
    early: Early,
}

/// How much [`SendStream::write_chunks`] took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Bytes that were taken.
    pub bytes: usize,
    /// Chunks taken whole.
    pub chunks: usize,
}

impl SendStream {
    pub(crate) fn new(shared: Arc<ConnectionRef>, id: StreamId, early: Early) -> Self {
        Self { shared, id, early }
    }

    /// The stream's id.
    pub fn id(&self) -> StreamId {
        self.id
    }

    fn poll_with<T>(
        &self,
        cx: &Context<'_>,
        write: impl FnOnce(&mut State) -> Result<T, stream::WriteError>,
    ) -> Poll<Result<T, WriteError>> {
        let mut state = self.shared.lock();
        if self.early.is_rejected(&state) {
            return Poll::Ready(Err(WriteError::ZeroRttRejected));
        }
        if let Err(error) = state.check() {
            return Poll::Ready(Err(error.into()));
        }
        let result = write(&mut state);
        // Be it that there is data to send, or that the peer has to hear that we are blocked.
        state.wake_driver();
        Poll::Ready(match result {
            Ok(written) => Ok(written),
            Err(stream::WriteError::Blocked) => {
                state.streams.writers.insert(self.id, cx.waker().clone());
                return Poll::Pending;
            }
            Err(stream::WriteError::Stopped(code)) => Err(WriteError::Stopped(code)),
            Err(stream::WriteError::ClosedStream) => Err(self.over(&state)),
        })
    }

    fn poll_write_bytes(&self, cx: &Context<'_>, data: &[u8]) -> Poll<Result<usize, WriteError>> {
        if data.is_empty() {
            return Poll::Ready(Ok(0));
        }
        self.poll_with(cx, |state| state.engine.send_stream(self.id).write(data))
    }

    /// Writes the beginning of `data`: as much as there is room for, at least one byte. How many that was.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn write(&mut self, data: &[u8]) -> Result<usize, WriteError> {
        poll_fn(|cx| self.poll_write_bytes(cx, data)).await
    }

    /// Waits until a write would take something, and tells how many bytes it would take: within the peer's limits on
    /// the stream and what is kept for it. A program that makes its data only after this call holds none for peers that
    /// give no credit. Other streams of the connection share a part of that room and may be faster.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn room(&mut self) -> Result<u64, WriteError> {
        poll_fn(|cx| self.poll_with(cx, |state| state.engine.send_stream(self.id).room())).await
    }

    /// Writes all of `data`.
    ///
    /// # Errors
    /// See [`WriteError`]; a part may have been written.
    pub async fn write_all(&mut self, mut data: &[u8]) -> Result<(), WriteError> {
        while !data.is_empty() {
            let written = self.write(data).await?;
            data = data.get(written..).unwrap_or_default();
        }
        Ok(())
    }

    /// Writes from `chunks` without copying large ones. Chunks taken whole become empty, one taken in part keeps its
    /// rest.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn write_chunks(&mut self, chunks: &mut [Bytes]) -> Result<Written, WriteError> {
        if chunks.iter().all(Bytes::is_empty) {
            return Ok(Written { bytes: 0, chunks: chunks.len() });
        }
        let bytes =
            poll_fn(|cx| self.poll_with(cx, |state| state.engine.send_stream(self.id).write_chunks(chunks))).await?;
        Ok(Written { bytes, chunks: chunks.iter().take_while(|chunk| chunk.is_empty()).count() })
    }

    /// Writes a chunk, without copying a large one.
    ///
    /// # Errors
    /// See [`WriteError`]; a part may have been written.
    pub async fn write_chunk(&mut self, chunk: Bytes) -> Result<(), WriteError> {
        self.write_all_chunks(&mut [chunk]).await
    }

    /// Writes all `chunks`, without copying large ones.
    ///
    /// # Errors
    /// See [`WriteError`]; a part may have been written, which is no longer in `chunks` then.
    pub async fn write_all_chunks(&mut self, chunks: &mut [Bytes]) -> Result<(), WriteError> {
        let mut left = chunks;
        while !left.is_empty() {
            let written = self.write_chunks(left).await?;
            left = &mut left[written.chunks..];
        }
        Ok(())
    }

    /// Says that no more follows. What was written still travels; [`Self::stopped`] tells when all has arrived.
    ///
    /// # Errors
    /// The stream was finished, reset or stopped before, or the connection is over.
    pub fn finish(&mut self) -> Result<(), WriteError> {
        let mut state = self.shared.lock();
        if self.early.is_rejected(&state) {
            return Err(WriteError::ZeroRttRejected);
        }
        state.check()?;
        let result = state.engine.send_stream(self.id).finish();
        state.wake_driver();
        result.map_err(|error| match error {
            stream::WriteError::Stopped(code) => WriteError::Stopped(code),
            _ => self.over(&state),
        })
    }

    /// Why a stream that the engine has forgotten takes nothing: the reset that answers a stop may be acknowledged by now.
    fn over(&self, state: &State) -> WriteError {
        state.streams.stop_codes.get(&self.id).map_or(WriteError::ClosedStream, |code| WriteError::Stopped(*code))
    }

    /// Abandons the stream with the application's code: what has not arrived may be lost.
    ///
    /// # Errors
    /// The stream is over.
    pub fn reset(&mut self, code: u64) -> Result<(), stream::ClosedStream> {
        let mut state = self.shared.lock();
        if self.early.is_rejected(&state) {
            return Err(stream::ClosedStream);
        }
        state.engine.send_stream(self.id).reset(code)?;
        state.wake_driver();
        Ok(())
    }

    /// Streams of higher priority are sent first, equal ones in turn. 0 at the start.
    ///
    /// # Errors
    /// The stream is over.
    pub fn set_priority(&self, priority: i32) -> Result<(), stream::ClosedStream> {
        let mut state = self.shared.lock();
        if self.early.is_rejected(&state) {
            return Err(stream::ClosedStream);
        }
        state.engine.send_stream(self.id).set_priority(priority)
    }

    /// The stream's priority.
    ///
    /// # Errors
    /// The stream is over.
    pub fn priority(&self) -> Result<i32, stream::ClosedStream> {
        let mut state = self.shared.lock();
        if self.early.is_rejected(&state) {
            return Err(stream::ClosedStream);
        }
        state.engine.send_stream(self.id).priority()
    }

    /// Waits until the peer stops the stream, and tells its code; none once the peer has everything up to the end, or
    /// knows that we reset it.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn stopped(&mut self) -> Result<Option<u64>, StoppedError> {
        poll_fn(|cx| self.poll_stopped(cx)).await
    }

    fn poll_stopped(&self, cx: &Context<'_>) -> Poll<Result<Option<u64>, StoppedError>> {
        let mut state = self.shared.lock();
        if self.early.is_rejected(&state) {
            return Poll::Ready(Err(StoppedError::ZeroRttRejected));
        }
        match state.engine.send_stream(self.id).stopped() {
            Ok(Some(code)) => return Poll::Ready(Ok(Some(code))),
            // All acknowledged, our reset too, or a stop whose reset is acknowledged already.
            Err(stream::ClosedStream) => return Poll::Ready(Ok(state.streams.stop_codes.get(&self.id).copied())),
            Ok(None) => {}
        }
        if let Err(error) = state.check() {
            return Poll::Ready(Err(error.into()));
        }
        state.streams.ends.insert(self.id, cx.waker().clone());
        Poll::Pending
    }
}

impl AsyncWrite for SendStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_bytes(cx, data).map_err(Into::into)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(match self.finish() {
            // Shutting down twice is no error.
            Ok(()) | Err(WriteError::ClosedStream) => Ok(()),
            Err(error) => Err(error.into()),
        })
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        // What waits under this id then is another stream.
        if self.early.is_rejected(&state) {
            return;
        }
        state.streams.writers.remove(&self.id);
        state.streams.ends.remove(&self.id);
        state.streams.stop_codes.remove(&self.id);
        if state.error.is_some() {
            return;
        }
        // A stream that the peer stopped was reset with its code already.
        if state.engine.send_stream(self.id).let_go().is_ok() {
            state.wake_driver();
        }
    }
}
