//! What streams put into packets: control frames, data, and copies of either for other paths.

use plait_base::limits::MAX_PENDING_COPIES;
use plait_base::{Dir, Instant, StreamId};
use plait_wire::frame::{
    DataBlocked, MaxData, MaxStreamData, MaxStreams, ResetStream, StopSending, StreamDataBlocked, StreamsBlocked,
};
use plait_wire::{FrameWriter, SentFrame};

use super::{Streams, Tally};
use crate::lanes::Lanes;
use crate::lease::LeaseWriter;
use crate::send::{Fin, StreamEnd, Turn};
use crate::sink::StreamSink;

impl Streams {
    /// True when [`Self::fill_control`] has something to write.
    #[inline]
    pub fn wants_control(&self) -> bool {
        !self.pending.is_empty()
            || self.receive.wants_update()
            || Dir::ALL.into_iter().any(|dir| self.table.wants_peer_limit(dir))
    }

    /// Writes RESET_STREAM, STOP_SENDING, MAX_* and *_BLOCKED frames, as many as fit.
    #[inline]
    pub fn fill_control(&mut self, now: Instant, w: &mut FrameWriter<'_>) {
        // Most packets have none.
        if self.wants_control() {
            self.fill_pending(now, w);
        }
    }

    #[inline(never)]
    fn fill_pending(&mut self, now: Instant, w: &mut FrameWriter<'_>) {
        let _ = self.fill_ends(w)
            && self.fill_max_data(now, w)
            && self.fill_stream_credits(now, w)
            && self.fill_max_streams(w)
            && self.fill_blocked(w);
    }

    /// RESET_STREAM and STOP_SENDING; false when the packet is full.
    fn fill_ends(&mut self, w: &mut FrameWriter<'_>) -> bool {
        while let Some(&id) = self.pending.resets.first() {
            if !self.fill_reset(id, w) {
                return false;
            }
            self.pending.resets.pop_first();
        }
        while let Some((&id, &code)) = self.pending.stops.first_key_value() {
            if !w.write(&StopSending { id, code }, SentFrame::StopSending(id)) {
                return false;
            }
            self.pending.stops.pop_first();
        }
        true
    }

    /// RFC 9000 19.4; the final size is what was sent, which is also what flow control counted (4.5).
    fn fill_reset(&mut self, id: StreamId, w: &mut FrameWriter<'_>) -> bool {
        let Some(half) = self.table.send(id) else { return true };
        let StreamEnd::Reset(code) = half.end else { return true };
        w.write(&ResetStream { id, code, final_size: half.buffer.sent() }, SentFrame::ResetStream(id))
    }

    fn fill_max_data(&mut self, now: Instant, w: &mut FrameWriter<'_>) -> bool {
        if !self.pending.max_data && !self.receive.wants_update() {
            return true;
        }
        // Set before it is written: the limit moves on now, and must be told even where this packet has no room.
        self.pending.max_data = true;
        let limit = self.receive.update(now, self.rtt, self.config.window.max);
        let sent = SentFrame::MaxData(limit);
        if !w.write(&MaxData { limit }, sent) {
            return false;
        }
        self.pending.max_data = false;
        self.keep_for_copies(sent);
        true
    }

    /// The connection must not hold a stream back whose window grew.
    pub(super) fn widen_for(&mut self, stream_window: u64) {
        self.receive.widen(stream_window.saturating_mul(3).div_euclid(2).min(self.config.window.max));
    }

    fn fill_stream_credits(&mut self, now: Instant, w: &mut FrameWriter<'_>) -> bool {
        while let Some(&id) = self.pending.stream_credits.first() {
            if let Some(half) = self.table.receive(id).filter(|half| half.takes_updates()) {
                let limit = half.credit.update(now, self.rtt, self.config.stream_window.max);
                let window = half.credit.window();
                let sent = SentFrame::MaxStreamData(id, limit);
                if !w.write(&MaxStreamData { id, limit }, sent) {
                    return false;
                }
                self.widen_for(window);
                self.keep_for_copies(sent);
            }
            self.pending.stream_credits.pop_first();
        }
        true
    }

    fn fill_max_streams(&mut self, w: &mut FrameWriter<'_>) -> bool {
        for dir in Dir::ALL {
            if !self.pending.max_streams[dir as usize] && !self.table.wants_peer_limit(dir) {
                continue;
            }
            self.pending.max_streams[dir as usize] = true;
            let limit = self.table.update_peer_limit(dir);
            if !w.write(&MaxStreams { dir, limit }, SentFrame::MaxStreams(dir, limit)) {
                return false;
            }
            self.pending.max_streams[dir as usize] = false;
        }
        true
    }

    fn fill_blocked(&mut self, w: &mut FrameWriter<'_>) -> bool {
        if self.pending.data_blocked {
            let limit = self.send.limit;
            if !w.write(&DataBlocked { limit }, SentFrame::DataBlocked(limit)) {
                return false;
            }
            self.pending.data_blocked = false;
        }
        while let Some(&id) = self.pending.streams_data_blocked.first() {
            if let Some(half) = self.table.send(id).filter(|half| half.wants_write) {
                let limit = half.credit.limit;
                if !w.write(&StreamDataBlocked { id, limit }, SentFrame::StreamDataBlocked(id, limit)) {
                    return false;
                }
            }
            self.pending.streams_data_blocked.pop_first();
        }
        for dir in Dir::ALL {
            if self.pending.streams_blocked[dir as usize] {
                let limit = self.table.limit(dir);
                if !w.write(&StreamsBlocked { dir, limit }, SentFrame::StreamsBlocked(dir, limit)) {
                    return false;
                }
                self.pending.streams_blocked[dir as usize] = false;
            }
        }
        true
    }

    /// Window updates are worth a copy on other paths: a sender that waits for one stalls.
    fn keep_for_copies(&mut self, update: SentFrame) {
        if self.updates.len() < MAX_PENDING_COPIES {
            self.updates.push(update);
        }
    }

    /// Moves the window updates that were written since the last call to `out`, so that they can be copied to
    /// other paths.
    pub fn poll_window_updates(&mut self, out: &mut Vec<SentFrame>) {
        out.append(&mut self.updates);
    }

    /// Writes STREAM frames of the streams in `lanes`: higher priority first, round robin among equals, lost data first in each
    /// stream.
    #[inline]
    pub fn fill_data(&mut self, lanes: Lanes, w: &mut FrameWriter<'_>) {
        self.fill_sink(lanes, w);
    }

    /// True while bytes of streams in `lanes` seem to wait: of all streams for certain, of some unless the connection's credit
    /// forbids all that waits there.
    #[inline]
    pub fn has_unsent(&self, lanes: Lanes) -> bool {
        self.unsent_bytes() > 0 && (lanes == Lanes::ALL || self.ready.holds_any_of(lanes))
    }

    /// True where a stream in `lanes` may send now. Streams that stand before it and may not lose their turn, as if a packet had
    /// passed them over.
    pub fn next_may_send(&mut self, lanes: Lanes) -> bool {
        while let Some(id) = self.ready.pop(lanes) {
            let credit = self.send.left();
            let Some(half) = self.table.send(id) else { continue };
            if half.can_send(credit) {
                self.ready.push_front(id, half.priority);
                return true;
            }
            self.pass_over(id);
        }
        false
    }

    /// Lends what [`Self::fill_data`] would write, as much as the writer has room for: it counts as sent from now on. Where it
    /// never leaves, it comes back as a frame that was lost ([`Lease::unsent`](crate::Lease::unsent)).
    pub fn lend(&mut self, lanes: Lanes, w: &mut LeaseWriter) {
        let before = w.leases().len();
        self.fill_sink(lanes, w);
        w.leases()[before..].iter().for_each(|lease| self.pending.leased.begin(lease.id()));
    }

    /// So many leases of a stream have left, or came back.
    pub fn on_leases_ended(&mut self, id: StreamId, count: u32) {
        if self.pending.leased.end(id, count) {
            self.pending.resets.insert(id);
        }
    }

    /// Leases that have neither left nor come back.
    pub fn leases_out(&self) -> u64 {
        self.pending.leased.count()
    }

    /// A stream of which leases are out was reset: whoever has them is to give them back.
    pub fn poll_unlease(&mut self) -> Option<StreamId> {
        self.pending.leased.poll_recall()
    }

    fn fill_sink(&mut self, lanes: Lanes, w: &mut impl StreamSink) {
        while w.remaining() > 0 {
            // The next turn of an only one comes right after this one: it stays where it is as long as it has more.
            let sole = if lanes == Lanes::ALL { self.ready.sole() } else { None };
            let Some(id) = sole.or_else(|| self.ready.pop(lanes)) else { return };
            let credit = self.send.left();
            if let Some(half) = self.table.send(id).filter(|half| half.has_only_fresh(credit)) {
                // The common case: of all that is counted over streams, this moves one figure.
                let Some(fresh_bytes) = half.fill_fresh(id, credit, w) else {
                    if sole.is_none() {
                        self.ready.push_front(id, half.priority);
                    }
                    return;
                };
                self.tally.fresh -= fresh_bytes;
                self.send.used += fresh_bytes;
                if half.buffer.unsent_bytes() == 0 {
                    half.turn = Turn::Idle;
                    sole.and_then(|_| self.ready.pop(lanes));
                } else if sole.is_none() {
                    self.ready.push(id, half.priority);
                }
                continue;
            }
            sole.and_then(|_| self.ready.pop(lanes));
            let Some(half) = self.table.send(id) else { continue };
            if !half.can_send(credit) {
                self.pass_over(id);
                continue;
            }
            let before = Tally::of(half);
            let Some(fresh_bytes) = half.fill(id, credit, w) else {
                // The packet is full; the turn is not used up.
                self.ready.push_front(id, half.priority);
                return;
            };
            self.tally.shift(before, Tally::of(half));
            self.send.used += fresh_bytes;
            if half.has_backlog() {
                self.ready.push(id, half.priority);
            } else {
                half.turn = Turn::Idle;
            }
        }
    }

    /// The turn of a stream came that has nothing to send, or nothing but what the connection's credit forbids.
    fn pass_over(&mut self, id: StreamId) {
        let Some(half) = self.table.send(id) else { return };
        half.turn = if half.has_backlog() { Turn::Blocked } else { Turn::Idle };
        if half.turn == Turn::Blocked {
            if !std::mem::replace(&mut half.in_blocked, true) {
                self.blocked.push(id);
            }
            self.on_blocked();
        }
    }

    /// RFC 9000 4.1: DATA_BLOCKED once for each limit.
    fn on_blocked(&mut self) {
        if self.send.blocked_at != Some(self.send.limit) {
            self.send.blocked_at = Some(self.send.limit);
            self.pending.data_blocked = true;
        }
    }

    /// Writes an earlier sent frame again, on any path: what is unacked of STREAM data, or the present value of a control
    /// frame of streams. Other frames, and what is obsolete, are passed over. Where the packet is full, what is left to copy:
    /// the whole frame when nothing fitted.
    pub fn fill_copy(&mut self, w: &mut FrameWriter<'_>, frame: &SentFrame) -> Option<SentFrame> {
        match *frame {
            SentFrame::Stream { id, offset, len, fin } => self.copy_data(w, id, offset, len, Fin::when(fin)),
            SentFrame::MaxData(_) => {
                let limit = self.receive.limit();
                copied(w.write(&MaxData { limit }, SentFrame::MaxData(limit)), frame)
            }
            SentFrame::MaxStreamData(id, _) => {
                let half = self.table.receive(id).filter(|half| half.takes_updates())?;
                let limit = half.credit.limit();
                copied(w.write(&MaxStreamData { id, limit }, SentFrame::MaxStreamData(id, limit)), frame)
            }
            SentFrame::MaxStreams(dir, _) => {
                let limit = self.table.peer_limit(dir);
                copied(w.write(&MaxStreams { dir, limit }, SentFrame::MaxStreams(dir, limit)), frame)
            }
            SentFrame::ResetStream(id) => match self.table.send(id).map(|half| half.is_reset()) {
                Some(true) => copied(self.fill_reset(id, w), frame),
                _ => None,
            },
            SentFrame::StopSending(id) => match self.table.receive(id).and_then(|half| half.stop_code()) {
                Some(code) => copied(w.write(&StopSending { id, code }, SentFrame::StopSending(id)), frame),
                None => None,
            },
            _ => None,
        }
    }

    fn copy_data(
        &mut self,
        w: &mut FrameWriter<'_>,
        id: StreamId,
        offset: u64,
        len: u32,
        fin: Fin,
    ) -> Option<SentFrame> {
        let end = offset.saturating_add(u64::from(len));
        let from = self.change(id, |half| half.fill_copy(id, offset..end, fin, w))??;
        Some(SentFrame::Stream { id, offset: from, len: (end - from) as u32, fin: fin.is_yes() })
    }
}

/// What is left of a copy of `frame`.
fn copied(wrote: bool, frame: &SentFrame) -> Option<SentFrame> {
    (!wrote).then_some(*frame)
}
