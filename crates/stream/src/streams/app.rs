//! What the application does with streams: open, write, read, end.

use bytes::Bytes;
use plait_base::{Dir, StreamId};

use super::Streams;
use crate::events::{Chunk, ClosedStream, Order, ReadError, WriteError};
use crate::receive::{Liveness, ReceiveHalf};
use crate::send::{SendHalf, StreamEnd, Turn};

impl Streams {
    /// Opens a stream; none when the peer's limit is reached: [`crate::StreamEvent::Available`] follows.
    pub fn open(&mut self, dir: Dir) -> Option<StreamId> {
        let id = self.table.open(dir);
        if id.is_none() && !self.wants_open[dir as usize] {
            self.wants_open[dir as usize] = true;
            // RFC 9000 4.6: STREAMS_BLOCKED tells the peer of it.
            self.pending.streams_blocked[dir as usize] = true;
        }
        id
    }

    /// The next stream that the peer opened, in the order of their ids.
    pub fn accept(&mut self, dir: Dir) -> Option<StreamId> {
        let id = self.table.accept(dir);
        if id.is_none() {
            self.told_open[dir as usize] = false;
        }
        id
    }

    /// The sending half and how many bytes it may take now.
    fn writable(&mut self, id: StreamId) -> Result<u64, WriteError> {
        let window_room = self.send_buffer_room();
        let half = self.table.use_send(id).ok_or(ClosedStream)?;
        if let Some(code) = half.stopped {
            return Err(WriteError::Stopped(code));
        }
        if half.end != StreamEnd::Open {
            return Err(WriteError::ClosedStream);
        }
        let room = window_room.min(half.credit.left());
        if room > 0 {
            return Ok(room);
        }
        self.tally.writers += u64::from(!std::mem::replace(&mut half.wants_write, true));
        if half.credit.left() == 0 {
            // RFC 9000 4.1: a blocked sender says so, once for each limit.
            if half.credit.blocked_at != Some(half.credit.limit) {
                half.credit.blocked_at = Some(half.credit.limit);
                self.pending.streams_data_blocked.insert(id);
            }
        } else if !std::mem::replace(&mut half.in_waiting_writers, true) {
            self.waiting_writers.push_back(id);
        }
        Err(WriteError::Blocked)
    }

    /// How many bytes a write would take now, at least one; [`crate::StreamEvent::Writable`] follows `Blocked`.
    ///
    /// # Errors
    /// [`WriteError::Blocked`] when the stream's limit or the send window leave no room (the connection's credit holds sending, not writing); the others when the stream takes no more data.
    pub fn room(&mut self, id: StreamId) -> Result<u64, WriteError> {
        self.writable(id)
    }

    /// Appends a copy of the beginning of `data`; how many bytes that was, at least one unless `data` is empty.
    ///
    /// # Errors
    /// [`WriteError::Blocked`] when the stream's limit or the send window leave no room (the connection's credit holds sending, not writing); the others when the stream takes no more data.
    pub fn write(&mut self, id: StreamId, data: &[u8]) -> Result<usize, WriteError> {
        let room = self.writable(id)?;
        let len = data.len().min(usize::try_from(room).unwrap_or(usize::MAX));
        self.append(id, len, |half| half.buffer.write(&data[..len]));
        Ok(len)
    }

    /// Appends chunks without copying large ones. Each is left with what was not taken of it; the number of bytes
    /// taken is returned.
    ///
    /// # Errors
    /// [`WriteError::Blocked`] when the stream's limit or the send window leave no room (the connection's credit holds sending, not writing); the others when the stream takes no more data.
    pub fn write_chunks(&mut self, id: StreamId, chunks: &mut [Bytes]) -> Result<usize, WriteError> {
        let room = usize::try_from(self.writable(id)?).unwrap_or(usize::MAX);
        let mut taken = 0;
        for chunk in chunks {
            let piece = chunk.split_to(chunk.len().min(room - taken));
            let len = piece.len();
            taken += len;
            self.append(id, len, |half| half.buffer.write_chunk(piece));
            if taken == room {
                break;
            }
        }
        Ok(taken)
    }

    fn append(&mut self, id: StreamId, len: usize, put: impl FnOnce(&mut SendHalf)) {
        if len > 0 {
            self.change(id, |half| {
                put(half);
                half.credit.used = half.buffer.end();
            });
        }
    }

    /// No more data follows; [`crate::StreamEvent::Finished`] tells when all has arrived.
    ///
    /// # Errors
    /// The stream was stopped by the peer, or this half does not exist or is finished already.
    pub fn finish(&mut self, id: StreamId) -> Result<(), WriteError> {
        let half = self.table.use_send(id).ok_or(ClosedStream)?;
        if let Some(code) = half.stopped {
            return Err(WriteError::Stopped(code));
        }
        if half.end != StreamEnd::Open {
            return Err(WriteError::ClosedStream);
        }
        self.change(id, |half| {
            half.end = StreamEnd::FinDue;
            half.wants_write = false;
        });
        self.pending.streams_data_blocked.remove(&id);
        Ok(())
    }

    /// As [`Self::finish`], and nobody asks for this half any more: [`crate::StreamEvent::Stopped`] does not follow.
    ///
    /// # Errors
    /// The stream was stopped by the peer, or this half does not exist or is finished already.
    pub fn let_go(&mut self, id: StreamId) -> Result<(), WriteError> {
        if let Some(half) = self.table.use_send(id) {
            half.is_let_go = true;
        }
        self.finish(id)
    }

    /// Ends our half at once with an application error code (RFC 9000 2.4); data not yet delivered may be lost.
    ///
    /// # Errors
    /// [`ClosedStream`] when this half does not exist, or is over and forgotten.
    pub fn reset(&mut self, id: StreamId, code: u64) -> Result<(), ClosedStream> {
        let half = self.table.use_send(id).ok_or(ClosedStream)?;
        if half.is_reset() {
            // Reset already, by us or in answer to STOP_SENDING: the first code stays (RFC 9000 3.1).
            return if half.stopped.is_some() { Ok(()) } else { Err(ClosedStream) };
        }
        self.reset_now(id, code);
        Ok(())
    }

    /// Asks the peer to send no more, and drops what it sent (RFC 9000 3.5).
    ///
    /// # Errors
    /// [`ClosedStream`] when this half does not exist, or is over and forgotten.
    pub fn stop(&mut self, id: StreamId, code: u64) -> Result<(), ClosedStream> {
        let half = self.table.use_receive(id).ok_or(ClosedStream)?;
        if half.stop_code().is_some() {
            return Err(ClosedStream);
        }
        let tell = !half.needs_no_stop();
        let Some((credit, life)) = self.change_receive(id, |half| half.stop(code)) else { return Err(ClosedStream) };
        self.receive.on_consumed(credit);
        self.pending.stream_credits.remove(&id);
        if tell {
            self.pending.stops.insert(id, code);
        }
        if life == Liveness::Over {
            self.table.close_receive(id);
        }
        Ok(())
    }

    /// Sets the priority of our half: higher goes first, equals take turns. 0 is where each stream begins.
    ///
    /// # Errors
    /// [`ClosedStream`] when this half does not exist, or is over and forgotten.
    pub fn set_priority(&mut self, id: StreamId, priority: i32) -> Result<(), ClosedStream> {
        let half = self.table.use_send(id).ok_or(ClosedStream)?;
        let old = std::mem::replace(&mut half.priority, priority);
        if half.turn == Turn::Ready && old != priority && self.ready.remove(id, old) {
            self.ready.push(id, priority);
        }
        Ok(())
    }

    /// The priority of our half, as [`Self::set_priority`] set it.
    ///
    /// # Errors
    /// [`ClosedStream`] when this half does not exist, or is over and forgotten.
    pub fn priority(&mut self, id: StreamId) -> Result<i32, ClosedStream> {
        self.table.use_send(id).map(|half| half.priority).ok_or(ClosedStream)
    }

    /// Code of the peer's STOP_SENDING, if it sent one. Once our reset is acknowledged the stream is closed.
    ///
    /// # Errors
    /// [`ClosedStream`] when this half does not exist, or is over and forgotten.
    pub fn stopped(&mut self, id: StreamId) -> Result<Option<u64>, ClosedStream> {
        self.table.use_send(id).map(|half| half.stopped).ok_or(ClosedStream)
    }

    /// Reads up to `max_len` bytes; `Ok(None)` once at the end of the stream, which is closed from then on.
    /// Read until it blocks: [`crate::StreamEvent::Readable`] is told only after that.
    ///
    /// # Errors
    /// [`ReadError::Blocked`] when nothing is here yet; the others when the peer reset the stream or nothing can follow.
    pub fn read(&mut self, id: StreamId, max_len: usize, order: Order) -> Result<Option<Chunk>, ReadError> {
        let mut read = None;
        let more = self.read_each(id, max_len, order, |chunk| {
            read = Some(chunk);
            0
        })?;
        Ok(read.filter(|_| more))
    }

    /// Hands `take` piece after piece, of `max_len` bytes at most and then of as many as it asked for, until it asks for none.
    /// False at the end of the stream, which is closed from then on.
    ///
    /// # Errors
    /// As for [`Self::read`]; pieces may have been handed over before.
    pub fn read_each(
        &mut self,
        id: StreamId,
        max_len: usize,
        order: Order,
        mut take: impl FnMut(Chunk) -> usize,
    ) -> Result<bool, ReadError> {
        let mut consumed = 0;
        let read_all = |half: &mut ReceiveHalf| {
            let mut want = max_len;
            let end = loop {
                match half.read(want, order) {
                    Ok(Some(chunk)) => {
                        consumed += chunk.bytes.len() as u64;
                        want = take(chunk);
                    }
                    Ok(None) => break Ok(false),
                    Err(error) => break Err(error),
                }
                if want == 0 {
                    break Ok(true);
                }
            };
            (end, half.wants_update())
        };
        let (end, wants_update) = self.change_receive(id, read_all).ok_or(ClosedStream)?;
        self.receive.on_consumed(consumed);
        if wants_update && consumed > 0 {
            self.pending.stream_credits.insert(id);
        }
        if matches!(end, Ok(false) | Err(ReadError::Reset(_))) {
            self.table.close_receive(id);
        }
        end
    }

    /// Code of the peer's RESET_STREAM, if it sent one. Asking counts as reading it: this half is forgotten then.
    ///
    /// # Errors
    /// [`ClosedStream`] when this half does not exist, or is over and forgotten.
    pub fn received_reset(&mut self, id: StreamId) -> Result<Option<u64>, ClosedStream> {
        let code = self.table.use_receive(id).map(|half| ReceiveHalf::received_reset(half)).ok_or(ClosedStream)?;
        if code.is_some() {
            self.table.close_receive(id);
        }
        Ok(code)
    }
}
