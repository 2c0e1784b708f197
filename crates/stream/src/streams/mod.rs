//! All streams of one connection, and the connection's own flow control.

mod app;
mod feedback;
mod loans;
mod output;
mod peer;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use plait_base::limits::INITIAL_RTT;
use plait_base::{Dir, Side, StreamId};
use plait_wire::SentFrame;

use crate::config::{PeerLimits, StreamsConfig};
use crate::credit::{ReceiveCredit, SendCredit};
use crate::events::StreamEvent;
use crate::lease::Leased;
use crate::priority::ReadyQueue;
use crate::send::{SendHalf, Turn};
use crate::table::StreamTable;
use loans::Loans;

/// Every stream of a connection: the application's calls, the peer's frames, our frames and their fate.
///
/// ```
/// use plait_base::{Dir, Side};
/// use plait_stream::{PeerLimits, Streams, StreamsConfig};
/// let mut streams = Streams::new(Side::Client, StreamsConfig::default());
/// assert_eq!(streams.open(Dir::Bi), None, "no limits of the peer yet");
/// streams.set_peer_limits(&StreamsConfig::default().announced());
/// let id = streams.open(Dir::Bi).unwrap();
/// assert_eq!(streams.write(id, b"hello"), Ok(5));
/// assert_eq!(streams.unsent_bytes(), 5);
/// ```
#[derive(Debug)]
pub struct Streams {
    config: StreamsConfig,
    table: StreamTable,
    /// What the peer lets us send over all streams.
    send: SendCredit,
    /// What we let the peer send over all streams.
    receive: ReceiveCredit,
    tally: Tally,
    loans: Loans,
    /// Bytes that the peer acknowledged without a gap before them, over all streams that ever were.
    acked_bytes: u64,
    ready: ReadyQueue,
    /// Streams whose new data the connection's credit forbids; entries may be stale.
    blocked: Vec<StreamId>,
    /// Streams whose write found the send window full.
    waiting_writers: VecDeque<StreamId>,
    pending: Pending,
    /// Window updates just sent, for copies on other paths.
    updates: Vec<SentFrame>,
    events: VecDeque<StreamEvent>,
    /// `Opened` was told, and not all was accepted since.
    told_open: [bool; 2],
    /// `open` failed, and `Available` was not told since.
    wants_open: [bool; 2],
    /// Largest RTT of the paths in use: whoever reads a window within two of them may have a larger one.
    rtt: Duration,
}

/// Sums over the sending halves of all streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    /// Bytes never sent.
    fresh: u64,
    /// Bytes to be sent again.
    lost: u64,
    /// Bytes in send buffers, the lowest unacked one to the end.
    held: u64,
    /// Streams of which only the end waits to be sent.
    fins: u64,
    /// Streams whose writer waits for room.
    writers: u64,
    /// Streams with unacked data to which the application may still add.
    growing: u64,
    /// Bytes that the peer's limits let the application add to those, each at most [`AMPLE_CREDIT_BYTES`].
    addable: u64,
}

/// Credit of one stream beyond which it holds nothing back: sums of it over all streams do not overflow.
const AMPLE_CREDIT_BYTES: u64 = 1 << 40;

impl Tally {
    #[inline(never)]
    fn of(half: &SendHalf) -> Self {
        let is_growing = half.end == crate::send::StreamEnd::Open && half.buffer.held_bytes() > 0;
        Self {
            fresh: half.buffer.unsent_bytes(),
            lost: half.buffer.lost_bytes(),
            held: half.buffer.held_bytes(),
            fins: u64::from(half.has_lone_fin()),
            writers: u64::from(half.wants_write),
            growing: u64::from(is_growing),
            addable: if is_growing { half.credit.left().min(AMPLE_CREDIT_BYTES) } else { 0 },
        }
    }

    /// A stream's share changed.
    #[inline(never)]
    fn shift(&mut self, before: Self, after: Self) {
        self.fresh = self.fresh + after.fresh - before.fresh;
        self.lost = self.lost + after.lost - before.lost;
        self.held = self.held + after.held - before.held;
        self.fins = self.fins + after.fins - before.fins;
        self.writers = self.writers + after.writers - before.writers;
        self.growing = self.growing + after.growing - before.growing;
        self.addable = self.addable + after.addable - before.addable;
    }
}

/// Control frames that wait to be sent; values are read when they are written.
#[derive(Debug, Default)]
struct Pending {
    resets: BTreeSet<StreamId>,
    /// With the application's code: the half may be gone when the frame is written.
    stops: BTreeMap<StreamId, u64>,
    stream_credits: BTreeSet<StreamId>,
    streams_data_blocked: BTreeSet<StreamId>,
    max_data: bool,
    data_blocked: bool,
    max_streams: [bool; 2],
    streams_blocked: [bool; 2],
    /// Streams of which data is lent: their RESET_STREAM waits for it.
    leased: Leased,
}

impl Pending {
    fn is_empty(&self) -> bool {
        self.resets.is_empty()
            && self.stops.is_empty()
            && self.stream_credits.is_empty()
            && self.streams_data_blocked.is_empty()
            && !self.max_data
            && !self.data_blocked
            && self.max_streams == [false; 2]
            && self.streams_blocked == [false; 2]
    }
}

impl Streams {
    /// No streams yet; nothing can be opened before [`Self::set_peer_limits`].
    pub fn new(side: Side, config: StreamsConfig) -> Self {
        let config = config.clamped();
        Self {
            table: StreamTable::new(side, [config.max_bidi, config.max_uni], config.stream_window.first),
            send: SendCredit::default(),
            receive: ReceiveCredit::new(config.window.first),
            tally: Tally::default(),
            loans: Loans::default(),
            acked_bytes: 0,
            ready: ReadyQueue::default(),
            blocked: Vec::new(),
            waiting_writers: VecDeque::new(),
            pending: Pending::default(),
            updates: Vec::new(),
            events: VecDeque::new(),
            told_open: [false; 2],
            wants_open: [false; 2],
            rtt: INITIAL_RTT,
            config,
        }
    }

    /// The peer's transport parameters, or those remembered for 0-RTT; limits never shrink, so that the
    /// parameters of an accepted 0-RTT handshake may follow the remembered ones (RFC 9000 7.4.1).
    pub fn set_peer_limits(&mut self, limits: &PeerLimits) {
        let first = &mut self.table.first;
        first.send_ours_bidi = first.send_ours_bidi.max(limits.max_stream_data_bidi_remote);
        first.send_theirs_bidi = first.send_theirs_bidi.max(limits.max_stream_data_bidi_local);
        first.send_ours_uni = first.send_ours_uni.max(limits.max_stream_data_uni);
        let (first, side) = (*first, self.table.side());
        let limit_of = |id: StreamId| match (id.dir(), id.initiator() == side) {
            (Dir::Uni, _) => first.send_ours_uni,
            (Dir::Bi, true) => first.send_ours_bidi,
            (Dir::Bi, false) => first.send_theirs_bidi,
        };
        let mut live: Vec<StreamId> = self.table.live_sends().map(|(id, _)| id).collect();
        live.sort_unstable();
        live.into_iter().for_each(|id| self.raise_stream_credit(id, limit_of(id)));
        self.on_max_data(limits.max_data);
        self.raise_streams(Dir::Bi, limits.max_streams_bidi);
        self.raise_streams(Dir::Uni, limits.max_streams_uni);
    }

    /// 0-RTT was refused: every stream and all flow-control state is forgotten (RFC 9001 4.6.2), stream ids
    /// start over, and the application opens its streams again. Who waits to open one still does: the peer's new limits
    /// make [`StreamEvent::Available`] follow. Reports about 0-RTT packets must not follow.
    pub fn on_early_data_rejected(&mut self) {
        let (rtt, wants_open) = (self.rtt, self.wants_open);
        *self = Self::new(self.table.side(), self.config);
        (self.rtt, self.wants_open) = (rtt, wants_open);
        self.pending.streams_blocked = wants_open;
    }

    /// Gives back the memory that queues and lists do not use.
    pub fn shrink_to_fit(&mut self) {
        self.blocked.shrink_to_fit();
        self.waiting_writers.shrink_to_fit();
        self.updates.shrink_to_fit();
        self.events.shrink_to_fit();
        self.table.shrink_to_fit();
    }

    /// The largest smoothed RTT among the paths that carry this connection.
    pub fn on_rtt(&mut self, rtt: Duration) {
        self.rtt = rtt;
    }

    /// The next event for the application.
    #[inline]
    pub fn poll_event(&mut self) -> Option<StreamEvent> {
        self.events.pop_front()
    }

    /// Bytes that could be sent now: lost ones, and new ones within the connection's credit.
    /// A stream's lone end counts as one byte.
    #[inline]
    pub fn unsent_bytes(&self) -> u64 {
        self.tally.lost + self.tally.fins + self.tally.fresh.min(self.send.left())
    }

    /// Bytes of new data that the peer's connection limit still allows.
    #[inline]
    pub fn send_credit(&self) -> u64 {
        self.send.left()
    }

    /// Bytes of new data that may leave before something that is under way must arrive first: what the peer's limits for
    /// the connection and for streams in use allow, and what our own send window has room for. Streams that are finished
    /// need no more than they have.
    #[inline]
    pub fn send_room(&self) -> u64 {
        let connection = self.send.left();
        if self.tally.growing == 0 {
            return connection;
        }
        connection.min(self.tally.fresh + self.tally.addable.min(self.send_buffer_room()))
    }

    /// Bytes of stream data that the peer acknowledged, each counted once all before it on its stream are.
    #[inline]
    pub fn acked_bytes(&self) -> u64 {
        self.acked_bytes
    }

    /// True while data that the application handed over is not acked.
    #[inline]
    pub fn has_unacked(&self) -> bool {
        self.tally.held > 0
    }

    /// True while the application may still add to a stream of which data is under way.
    #[inline]
    pub fn is_growing(&self) -> bool {
        self.tally.growing > 0
    }

    /// True while the peer has not sent all that a stream is to bring.
    pub fn expects_data(&self) -> bool {
        self.table.expects_data()
    }

    /// True when there is more to send than the peer's limits or our own send window let out: what is on its way must
    /// arrive first.
    #[inline]
    pub fn is_held_back(&self) -> bool {
        self.tally.writers > 0 || (self.tally.fresh > 0 && self.send.left() == 0)
    }

    /// True when the peer's limit for the connection holds new data back while sent data is not acked: whatever carries that
    /// keeps the window closed.
    #[inline]
    pub fn is_credit_blocked(&self) -> bool {
        self.send.left() == 0 && self.tally.fresh > 0 && self.tally.held > self.tally.fresh
    }

    /// Bytes that the application may still hand over before the send window is full.
    #[inline]
    pub(crate) fn send_buffer_room(&self) -> u64 {
        self.config.send_window.saturating_sub(self.tally.held)
    }

    /// Changes a sending half that is in use and keeps the sums and the ready queue in step.
    fn change<R>(&mut self, id: StreamId, change: impl FnOnce(&mut SendHalf) -> R) -> Option<R> {
        let Self { table, tally, ready, send, .. } = self;
        let half = table.send(id)?;
        let before = Tally::of(half);
        let result = change(half);
        tally.shift(before, Tally::of(half));
        take_turn(id, half, ready, send.left());
        Some(result)
    }

    /// Ends a stream at once: what was not sent never is, and RESET_STREAM says so.
    fn reset_now(&mut self, id: StreamId, code: u64) {
        self.change(id, |half| {
            half.end = crate::send::StreamEnd::Reset(code);
            half.wants_write = false;
            half.buffer.clear();
        });
        self.pending.streams_data_blocked.remove(&id);
        // RFC 9000 3.3: no STREAM frame after RESET_STREAM
        if !self.pending.leased.hold_reset(id) {
            self.pending.resets.insert(id);
        }
        self.wake_writers();
    }

    /// Tells writers that wait for room in the send window, once there is a worthwhile amount.
    fn wake_writers(&mut self) {
        if self.waiting_writers.is_empty() || self.send_buffer_room() <= self.config.send_window / 8 {
            return;
        }
        while let Some(id) = self.waiting_writers.pop_front() {
            if let Some(half) = self.table.send(id) {
                half.in_waiting_writers = false;
            }
            self.tell_writable(id);
        }
    }

    fn tell_writable(&mut self, id: StreamId) {
        if let Some(half) = self.table.send(id).filter(|half| half.wants_write) {
            half.wants_write = false;
            self.tally.writers -= 1;
            self.events.push_back(StreamEvent::Writable(id));
        }
    }
}

/// Queues a stream that has got something to send, where `credit` bytes of the connection's limit are left.
#[inline(never)]
fn take_turn(id: StreamId, half: &mut SendHalf, ready: &mut ReadyQueue, credit: u64) {
    let is_due = match half.turn {
        Turn::Ready => false,
        Turn::Idle => half.has_backlog(),
        Turn::Blocked => half.can_send(credit),
    };
    if is_due {
        half.turn = Turn::Ready;
        ready.push(id, half.priority);
    }
}

#[cfg(test)]
mod tests;
