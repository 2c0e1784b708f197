//! What the peer's frames do to streams, with every rule of RFC 9000 2 to 4 and 19 that they can break.

use std::ops::Range;

use bytes::Bytes;
use plait_base::limits::MAX_STREAM_COUNT;
use plait_base::{Dir, StreamId, Violation};

use super::Streams;
use crate::events::StreamEvent;
use crate::receive::{FrameEffect, Liveness};
use crate::send::Fin;

impl Streams {
    /// A STREAM frame (RFC 9000 19.8). `data` should be a slice of no more than one datagram's allocation.
    ///
    /// # Errors
    /// The data breaks flow control or the final size, or the peer may not send on this stream or open it.
    pub fn on_stream(&mut self, id: StreamId, offset: u64, fin: bool, data: Bytes) -> Result<(), Violation> {
        let end = offset.saturating_add(data.len() as u64);
        self.on_stream_run(id, offset..end, fin, std::iter::once(data))
    }

    /// STREAM frames of one stream, each of which goes on where the one before ended: the bytes at `range` in `pieces`; `fin`
    /// where the last of them ends the stream.
    ///
    /// # Errors
    /// As for [`Self::on_stream`]; of a run that breaks a rule some pieces may have been taken in.
    pub fn on_stream_run(
        &mut self,
        id: StreamId,
        range: Range<u64>,
        fin: bool,
        pieces: impl IntoIterator<Item = Bytes>,
    ) -> Result<(), Violation> {
        self.check_peer_sends(id)?;
        let room = self.receive.limit().saturating_sub(self.receive.received());
        let window_max = self.config.stream_window.max;
        // A half that is over was counted to its final size: late frames change nothing.
        let changed = self.change_receive(id, |half| {
            let arrival = half.on_data(range, Fin::when(fin), pieces, room)?;
            let window = if half.is_cramped() { half.credit.widen_up_to(window_max) } else { None };
            Ok::<_, Violation>((arrival, window))
        });
        let Some((arrival, window)) = changed.transpose()? else { return Ok(()) };
        self.bound_pieces()?;
        self.on_arrival(id, arrival);
        if let Some(window) = window {
            self.pending.stream_credits.insert(id);
            self.widen_for(window);
        }
        Ok(())
    }

    /// A RESET_STREAM frame (RFC 9000 19.4).
    ///
    /// # Errors
    /// The final size contradicts the data, breaks flow control, or the peer may not send on this stream or open it.
    pub fn on_reset_stream(&mut self, id: StreamId, code: u64, final_size: u64) -> Result<(), Violation> {
        self.check_peer_sends(id)?;
        let room = self.receive.limit().saturating_sub(self.receive.received());
        let changed = self.change_receive(id, |half| half.on_reset(code, final_size, room));
        let Some(arrival) = changed.transpose()? else { return Ok(()) };
        self.pending.stops.remove(&id);
        self.on_arrival(id, arrival);
        Ok(())
    }

    fn on_arrival(&mut self, id: StreamId, arrival: FrameEffect) {
        self.receive.on_received(arrival.counted);
        self.receive.on_consumed(arrival.discarded);
        if arrival.wake {
            self.events.push_back(StreamEvent::Readable(id));
        }
        if arrival.life == Liveness::Over {
            self.table.close_receive(id);
        }
    }

    /// A STOP_SENDING frame (RFC 9000 19.5): the stream is reset with the same code.
    ///
    /// # Errors
    /// We do not send on this stream, or it was never opened, or the peer may not open it.
    pub fn on_stop_sending(&mut self, id: StreamId, code: u64) -> Result<(), Violation> {
        self.check_we_send(id)?;
        let Some(half) = self.table.use_send(id) else { return Ok(()) };
        if half.stopped.is_some() {
            return Ok(());
        }
        half.stopped = Some(code);
        let (reset, is_let_go) = (half.is_reset(), half.is_let_go);
        // RFC 9000 3.5: RESET_STREAM must follow, and should carry the code of STOP_SENDING.
        if !reset {
            self.reset_now(id, code);
            if !is_let_go {
                self.events.push_back(StreamEvent::Stopped { id, code });
            }
        }
        Ok(())
    }

    /// A MAX_DATA frame (RFC 9000 19.9).
    pub fn on_max_data(&mut self, limit: u64) {
        if !self.send.raise(limit) {
            return;
        }
        self.pending.data_blocked = false;
        for id in std::mem::take(&mut self.blocked) {
            self.change(id, |half| half.in_blocked = false);
        }
    }

    /// A MAX_STREAM_DATA frame (RFC 9000 19.10).
    ///
    /// # Errors
    /// We do not send on this stream, or it was never opened, or the peer may not open it.
    pub fn on_max_stream_data(&mut self, id: StreamId, limit: u64) -> Result<(), Violation> {
        self.check_we_send(id)?;
        if self.table.use_send(id).is_some() {
            self.raise_stream_credit(id, limit);
        }
        Ok(())
    }

    pub(super) fn raise_stream_credit(&mut self, id: StreamId, limit: u64) {
        if self.change(id, |half| half.credit.raise(limit)) == Some(true) {
            self.pending.streams_data_blocked.remove(&id);
            self.tell_writable(id);
        }
    }

    /// A MAX_STREAMS frame (RFC 9000 19.11).
    ///
    /// # Errors
    /// [`Violation::StreamCountTooLarge`] for a limit above 2^60.
    pub fn on_max_streams(&mut self, dir: Dir, limit: u64) -> Result<(), Violation> {
        // RFC 9000 4.6: above 2^60 is an error of encoding.
        if limit > MAX_STREAM_COUNT {
            return Err(Violation::StreamCountTooLarge);
        }
        self.raise_streams(dir, limit);
        Ok(())
    }

    pub(super) fn raise_streams(&mut self, dir: Dir, limit: u64) {
        if self.table.raise_limit(dir, limit) {
            self.pending.streams_blocked[dir as usize] = false;
            if std::mem::replace(&mut self.wants_open[dir as usize], false) {
                self.events.push_back(StreamEvent::Available(dir));
            }
        }
    }

    /// A DATA_BLOCKED frame (RFC 9000 19.12); credit follows the application's reads, so it changes nothing.
    pub fn on_data_blocked(&mut self, _limit: u64) {}

    /// A STREAM_DATA_BLOCKED frame (RFC 9000 19.13).
    ///
    /// # Errors
    /// The peer may not send on this stream or open it.
    pub fn on_stream_data_blocked(&mut self, id: StreamId, _limit: u64) -> Result<(), Violation> {
        self.check_peer_sends(id)
    }

    /// A STREAMS_BLOCKED frame (RFC 9000 19.14).
    ///
    /// # Errors
    /// [`Violation::StreamCountTooLarge`] for a limit above 2^60.
    pub fn on_streams_blocked(&mut self, _dir: Dir, limit: u64) -> Result<(), Violation> {
        if limit > MAX_STREAM_COUNT { Err(Violation::StreamCountTooLarge) } else { Ok(()) }
    }

    /// A frame for data that flows to us: it may open the stream.
    fn check_peer_sends(&mut self, id: StreamId) -> Result<(), Violation> {
        if !id.receives(self.table.side()) {
            return Err(Violation::SendOnReceiveOnlyStream);
        }
        self.check_exists(id)
    }

    /// A frame about data that flows from us: it may open a bidirectional stream.
    fn check_we_send(&mut self, id: StreamId) -> Result<(), Violation> {
        if !id.sends(self.table.side()) {
            return Err(Violation::ControlOfSendOnlyStream);
        }
        self.check_exists(id)
    }

    fn check_exists(&mut self, id: StreamId) -> Result<(), Violation> {
        let dir = id.dir();
        if self.table.on_named_by_peer(id)? && !std::mem::replace(&mut self.told_open[dir as usize], true) {
            self.events.push_back(StreamEvent::Opened(dir));
        }
        Ok(())
    }
}
