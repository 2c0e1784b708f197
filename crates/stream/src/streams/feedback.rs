//! What became of the frames that streams sent.

use plait_base::StreamId;
use plait_wire::SentFrame;

use super::Streams;
use crate::events::StreamEvent;
use crate::send::Fin;

impl Streams {
    /// A frame of ours was acknowledged. Frames of other parts are ignored.
    pub fn on_acked(&mut self, frame: &SentFrame) {
        match *frame {
            SentFrame::Stream { id, offset, len, fin } => {
                let end = offset.saturating_add(u64::from(len));
                let acked = self.change(id, |half| (half.on_acked(offset..end, Fin::when(fin)), half.is_delivered()));
                let (freed_bytes, delivered) = acked.unwrap_or_default();
                self.acked_bytes += freed_bytes;
                if delivered {
                    self.table.close_send(id);
                    self.events.push_back(StreamEvent::Finished(id));
                }
                self.wake_writers();
            }
            // RFC 9000 3.1: Reset Recvd.
            SentFrame::ResetStream(id) if self.table.send(id).is_some_and(|half| half.is_reset()) => {
                self.table.close_send(id);
                self.events.push_back(StreamEvent::Reset(id));
            }
            _ => {}
        }
    }

    /// A frame of streams was lost; it may be reported more than once. What is still of use is sent again.
    pub fn on_lost(&mut self, frame: &SentFrame) {
        match *frame {
            SentFrame::Stream { id, offset, len, fin } => {
                let end = offset.saturating_add(u64::from(len));
                self.change(id, |half| half.on_lost(offset..end, Fin::when(fin)));
            }
            SentFrame::ResetStream(id) if self.table.send(id).is_some_and(|half| half.is_reset()) => {
                self.pending.resets.insert(id);
            }
            // RFC 9000 13.3: STOP_SENDING until the stream is reset or all of it is here.
            SentFrame::StopSending(id) => {
                if let Some(code) = self.table.receive(id).and_then(|half| half.stop_code()) {
                    self.pending.stops.insert(id, code);
                }
            }
            SentFrame::MaxData(limit) if limit >= self.receive.limit() => self.pending.max_data = true,
            SentFrame::MaxStreamData(id, limit) => self.on_lost_stream_credit(id, limit),
            SentFrame::MaxStreams(dir, limit) if limit >= self.table.peer_limit(dir) => {
                self.pending.max_streams[dir as usize] = true;
            }
            // RFC 9000 13.3: blocked frames are sent again only while they are true.
            SentFrame::DataBlocked(limit) if limit == self.send.limit && self.is_blocked() => {
                self.pending.data_blocked = true;
            }
            SentFrame::StreamDataBlocked(id, limit) => {
                let is_so = |half: &mut crate::send::SendHalf| half.wants_write && half.credit.limit == limit;
                if self.table.send(id).is_some_and(is_so) {
                    self.pending.streams_data_blocked.insert(id);
                }
            }
            SentFrame::StreamsBlocked(dir, limit)
                if limit == self.table.limit(dir) && self.wants_open[dir as usize] =>
            {
                self.pending.streams_blocked[dir as usize] = true;
            }
            _ => {}
        }
    }

    /// Somebody who had stream data under way is gone, and nobody knows which: all that was sent and is not acknowledged is
    /// sent again.
    pub fn on_all_lost(&mut self) {
        let mut live: Vec<StreamId> = self.table.live_sends().map(|(id, _)| id).collect();
        live.sort_unstable();
        for id in live {
            self.change(id, |half| half.on_lost(0..u64::MAX, Fin::Yes));
        }
    }

    fn on_lost_stream_credit(&mut self, id: StreamId, limit: u64) {
        if self.table.receive(id).is_some_and(|half| half.takes_updates() && limit >= half.credit.limit()) {
            self.pending.stream_credits.insert(id);
        }
    }

    fn is_blocked(&self) -> bool {
        self.tally.fresh > 0 && self.send.left() == 0
    }
}
