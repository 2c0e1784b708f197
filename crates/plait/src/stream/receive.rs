//! The half of a stream that we read.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use plait_base::StreamId;
use plait_stream::{self as engine, Chunk, ClosedStream, Order};
use tokio::io::{AsyncRead, ReadBuf};

use super::{Early, ReadError, ReadExactError, ReadToEndError, ResetError};
use crate::connection::{ConnectionRef, State};

/// Bytes read after which the peer may get new credit before the reader has read everything.
const CREDIT_BYTES: usize = 64 << 10;

/// The half of a stream that the peer writes.
///
/// When it is dropped before its end, the peer is asked to stop with code 0. `read`, `read_chunk(s)` and the
/// `AsyncRead` calls may be cancelled without loss; what a cancelled `read_exact` or `read_to_end` has read is lost.
///
/// ```
/// # mod support { include!("../../doc/pair.in"); }
/// # use support::*;
/// # run(async {
/// # let (client, server) = pair().await;
/// # let mut send = server.open_uni().await?;
/// # send.write_all(b"some data").await?;
/// # send.finish()?;
/// let mut recv = client.accept_uni().await?;
/// let mut word = [0; 4];
/// recv.read_exact(&mut word).await?;
/// assert_eq!(&word, b"some");
/// let rest = recv.read_chunk(1000, plait::Order::Ordered).await?.unwrap();
/// assert_eq!((rest.offset, &rest.bytes[..]), (4, &b" data"[..]));
/// assert_eq!(recv.read(&mut word).await?, None);
/// # Ok(())
/// # });
/// ```
#[derive(Debug)]
pub struct RecvStream {
    shared: Arc<ConnectionRef>,
    id: StreamId,
    early: Early,
    end: Option<End>,
    /// Bytes read since the driver last had a look at the credit of the peer.
    consumed: usize,
}

/// How the stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Finished,
    Reset(u64),
    Stopped,
}

impl RecvStream {
    pub(crate) fn new(shared: Arc<ConnectionRef>, id: StreamId, early: Early) -> Self {
        Self { shared, id, early, end: None, consumed: 0 }
    }

    /// The stream's id.
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// Hands `take` chunk after chunk of at most as many bytes as it asks for, until it asks for none, the stream ends
    /// or nothing is there. Ready with whether anything was taken.
    fn poll_chunks(
        &mut self,
        cx: &Context<'_>,
        order: Order,
        want: usize,
        mut take: impl FnMut(Chunk) -> usize,
    ) -> Poll<Result<bool, ReadError>> {
        match self.end {
            Some(End::Finished) => return Poll::Ready(Ok(false)),
            Some(End::Reset(code)) => return Poll::Ready(Err(ReadError::Reset(code))),
            Some(End::Stopped) => return Poll::Ready(Err(ReadError::ClosedStream)),
            None => {}
        }
        let shared = self.shared.clone();
        let mut state = shared.lock();
        if self.early.is_rejected(&state) {
            return Poll::Ready(Err(ReadError::ZeroRttRejected));
        }
        if want == 0 {
            return Poll::Ready(Ok(false));
        }
        let mut any = false;
        let end = state.engine.recv_stream(self.id).read_each(want, order, |chunk| {
            any = true;
            self.consumed += chunk.bytes.len();
            take(chunk)
        });
        match end {
            Ok(true) => {}
            Ok(false) => self.end = Some(End::Finished),
            Err(engine::ReadError::Reset(code)) => self.end = Some(End::Reset(code)),
            Err(error) if !any => return self.fail(state, cx, error),
            Err(_) => self.look_after_credit(&mut state, 1),
        }
        self.look_after_credit(&mut state, if self.end.is_some() { 1 } else { CREDIT_BYTES });
        match self.end {
            Some(End::Reset(code)) if !any => Poll::Ready(Err(ReadError::Reset(code))),
            _ => Poll::Ready(Ok(any)),
        }
    }

    fn fail(
        &mut self,
        mut state: std::sync::MutexGuard<'_, State>,
        cx: &Context<'_>,
        error: engine::ReadError,
    ) -> Poll<Result<bool, ReadError>> {
        self.look_after_credit(&mut state, 1);
        Poll::Ready(Err(match error {
            engine::ReadError::Blocked => match state.check() {
                Ok(()) => {
                    state.streams.readers.insert(self.id, cx.waker().clone());
                    return Poll::Pending;
                }
                Err(error) => error.into(),
            },
            engine::ReadError::Reset(code) => ReadError::Reset(code),
            engine::ReadError::ClosedStream => match state.check() {
                Ok(()) => ReadError::ClosedStream,
                Err(error) => error.into(),
            },
            engine::ReadError::IllegalOrderedRead => ReadError::IllegalOrderedRead,
        }))
    }

    /// What was read gives the peer room: the driver tells it, once enough has come together.
    fn look_after_credit(&mut self, state: &mut State, enough: usize) {
        if self.consumed >= enough {
            self.consumed = 0;
            state.wake_driver();
        }
    }

    fn poll_read_buf(&mut self, cx: &Context<'_>, into: &mut ReadBuf<'_>) -> Poll<Result<bool, ReadError>> {
        let room = into.remaining();
        self.poll_chunks(cx, Order::Ordered, room, |chunk| {
            into.put_slice(&chunk.bytes);
            into.remaining()
        })
    }

    /// Reads into `into` what is there, at least one byte; none at the stream's end.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub async fn read(&mut self, into: &mut [u8]) -> Result<Option<usize>, ReadError> {
        if into.is_empty() {
            return Ok(Some(0));
        }
        let mut into = ReadBuf::new(into);
        let any = poll_fn(|cx| self.poll_read_buf(cx, &mut into)).await?;
        Ok(any.then_some(into.filled().len()))
    }

    /// Fills `into`.
    ///
    /// # Errors
    /// The stream ended before, or could not be read.
    pub async fn read_exact(&mut self, into: &mut [u8]) -> Result<(), ReadExactError> {
        let mut filled = 0;
        while let Some(rest) = into.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.read(rest).await? {
                Some(bytes) => filled += bytes,
                None => return Err(ReadExactError::FinishedEarly(filled)),
            }
        }
        Ok(())
    }

    /// The next piece of at most `max_len` bytes, without copying it; none at the stream's end.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub async fn read_chunk(&mut self, max_len: usize, order: Order) -> Result<Option<Chunk>, ReadError> {
        poll_fn(|cx| {
            let mut got = None;
            let read = self.poll_chunks(cx, order, max_len, |chunk| {
                got = Some(chunk);
                0
            });
            read.map_ok(|_| got)
        })
        .await
    }

    /// Fills `into` with the next pieces in order, without copying; how many, none at the stream's end.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub async fn read_chunks(&mut self, into: &mut [Bytes]) -> Result<Option<usize>, ReadError> {
        if into.is_empty() {
            return Ok(Some(0));
        }
        poll_fn(|cx| {
            let mut count = 0;
            let room = into.len();
            let read = self.poll_chunks(cx, Order::Ordered, usize::MAX, |chunk| {
                if let Some(slot) = into.get_mut(count) {
                    *slot = chunk.bytes;
                }
                count += 1;
                if count < room { usize::MAX } else { 0 }
            });
            read.map_ok(|any| any.then_some(count))
        })
        .await
    }

    /// Everything up to the end, at most `limit` bytes.
    ///
    /// # Errors
    /// The stream is longer, or could not be read.
    pub async fn read_to_end(&mut self, limit: usize) -> Result<Vec<u8>, ReadToEndError> {
        let mut all = Vec::new();
        while let Some(chunk) = self.read_chunk(usize::MAX, Order::Ordered).await? {
            if all.len() + chunk.bytes.len() > limit {
                return Err(ReadToEndError::TooLong);
            }
            all.extend_from_slice(&chunk.bytes);
        }
        Ok(all)
    }

    /// Asks the peer to send no more, with the application's code, and drops what has come.
    ///
    /// # Errors
    /// The stream is over.
    pub fn stop(&mut self, code: u64) -> Result<(), ClosedStream> {
        let mut state = self.shared.lock();
        if self.end.is_some() || self.early.is_rejected(&state) {
            return Err(ClosedStream);
        }
        state.engine.recv_stream(self.id).stop(code)?;
        state.wake_driver();
        self.end = Some(End::Stopped);
        Ok(())
    }

    /// Waits until the peer abandons the stream, and tells its code; none once all was read, or after
    /// [`Self::stop`]. It does not read: data that waits stays there.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn received_reset(&mut self) -> Result<Option<u64>, ResetError> {
        poll_fn(|cx| self.poll_received_reset(cx)).await
    }

    fn poll_received_reset(&mut self, cx: &Context<'_>) -> Poll<Result<Option<u64>, ResetError>> {
        match self.end {
            Some(End::Reset(code)) => return Poll::Ready(Ok(Some(code))),
            Some(End::Finished | End::Stopped) => return Poll::Ready(Ok(None)),
            None => {}
        }
        let mut state = self.shared.lock();
        if self.early.is_rejected(&state) {
            return Poll::Ready(Err(ResetError::ZeroRttRejected));
        }
        match state.engine.recv_stream(self.id).received_reset() {
            Ok(Some(code)) => {
                self.end = Some(End::Reset(code));
                return Poll::Ready(Ok(Some(code)));
            }
            Err(ClosedStream) => return Poll::Ready(Ok(None)),
            Ok(None) => {}
        }
        if let Err(error) = state.check() {
            return Poll::Ready(Err(error.into()));
        }
        state.streams.readers.insert(self.id, cx.waker().clone());
        Poll::Pending
    }
}

impl AsyncRead for RecvStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if into.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        self.poll_read_buf(cx, into).map_ok(|_| ()).map_err(Into::into)
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        // What waits under this id then is another stream.
        let is_rejected = self.early.is_rejected(&state);
        if !is_rejected {
            state.streams.readers.remove(&self.id);
        }
        let over = self.end.is_some() || state.error.is_some() || is_rejected;
        if (!over && state.engine.recv_stream(self.id).stop(0).is_ok()) || self.consumed > 0 {
            state.wake_driver();
        }
    }
}
