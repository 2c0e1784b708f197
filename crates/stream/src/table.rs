//! Which streams exist: lookup, opening by either end, limits on their number, and their end (RFC 9000 2.1, 4.6).

use plait_base::limits::MAX_STREAM_COUNT;
use plait_base::{Dir, Side, StreamId, Violation};
use rustc_hash::FxHashMap;

use crate::receive::ReceiveHalf;
use crate::send::SendHalf;

/// One half of a stream; nothing is allocated until it is used.
#[derive(Debug)]
pub(crate) enum Half<T> {
    /// This direction does not exist, or is over.
    Over,
    /// Not used yet.
    Fresh,
    Live(Box<T>),
}

#[derive(Debug)]
struct StreamEntry {
    send: Half<SendHalf>,
    receive: Half<ReceiveHalf>,
}

/// Streams that one end opens in one direction.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// Streams opened; the next index.
    opened: u64,
    /// Streams that may be opened.
    limit: u64,
    /// Streams that are over.
    closed: u64,
}

/// Initial limits for the halves of new streams, bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FirstCredits {
    pub(crate) receive: u64,
    /// Peer's limit on bidirectional streams that we open.
    pub(crate) send_ours_bidi: u64,
    /// Peer's limit on bidirectional streams that it opens.
    pub(crate) send_theirs_bidi: u64,
    /// Peer's limit on unidirectional streams that we open.
    pub(crate) send_ours_uni: u64,
}

/// The streams of a connection.
#[derive(Debug)]
pub(crate) struct StreamTable {
    side: Side,
    entries: FxHashMap<StreamId, StreamEntry>,
    ours: [Counts; 2],
    theirs: [Counts; 2],
    /// Streams of the peer that the application accepted.
    accepted: [u64; 2],
    /// Streams of the peer that may be open at once.
    concurrent: [u64; 2],
    pub(crate) first: FirstCredits,
}

impl StreamTable {
    pub(crate) fn new(side: Side, concurrent: [u64; 2], receive_window: u64) -> Self {
        let counts = |limit| Counts { limit, ..Counts::default() };
        Self {
            side,
            entries: FxHashMap::default(),
            ours: [Counts::default(); 2],
            theirs: concurrent.map(counts),
            accepted: [0; 2],
            concurrent,
            first: FirstCredits { receive: receive_window, ..FirstCredits::default() },
        }
    }

    pub(crate) fn side(&self) -> Side {
        self.side
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Gives back the memory that it does not use.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.entries.shrink_to_fit();
    }

    /// Opens a stream of ours; none when the peer's limit is reached.
    pub(crate) fn open(&mut self, dir: Dir) -> Option<StreamId> {
        let counts = &mut self.ours[dir as usize];
        // RFC 9000 4.6: never beyond the peer's limit.
        if counts.opened >= counts.limit {
            return None;
        }
        let id = StreamId::new(self.side, dir, counts.opened);
        counts.opened += 1;
        self.add(id);
        Some(id)
    }

    fn add(&mut self, id: StreamId) {
        let send = if id.sends(self.side) { Half::Fresh } else { Half::Over };
        let receive = if id.receives(self.side) { Half::Fresh } else { Half::Over };
        self.entries.insert(id, StreamEntry { send, receive });
    }

    /// The next stream of the peer that was not accepted yet.
    pub(crate) fn accept(&mut self, dir: Dir) -> Option<StreamId> {
        let next = &mut self.accepted[dir as usize];
        if *next >= self.theirs[dir as usize].opened {
            return None;
        }
        let id = StreamId::new(self.side.peer(), dir, *next);
        *next += 1;
        Some(id)
    }

    /// A frame of the peer names `id`: opens it, and all below it, where it may (RFC 9000 2.1, 3.2).
    /// True when that opened streams.
    pub(crate) fn on_named_by_peer(&mut self, id: StreamId) -> Result<bool, Violation> {
        let dir = id.dir();
        if id.initiator() == self.side {
            // RFC 9000 19.8: a locally initiated stream that has not yet been created.
            return if id.index() < self.ours[dir as usize].opened {
                Ok(false)
            } else {
                Err(Violation::StreamNeverOpened)
            };
        }
        let counts = self.theirs[dir as usize];
        if id.index() < counts.opened {
            return Ok(false);
        }
        // RFC 9000 4.6: a stream beyond the limit is STREAM_LIMIT_ERROR.
        if id.index() >= counts.limit {
            return Err(Violation::StreamCount);
        }
        for index in counts.opened..=id.index() {
            self.add(StreamId::new(self.side.peer(), dir, index));
        }
        self.theirs[dir as usize].opened = id.index() + 1;
        Ok(true)
    }

    /// Raises the peer's limit on our streams; false when it is no raise.
    pub(crate) fn raise_limit(&mut self, dir: Dir, limit: u64) -> bool {
        let counts = &mut self.ours[dir as usize];
        let raised = limit > counts.limit;
        counts.limit = counts.limit.max(limit);
        raised
    }

    /// The peer's limit on our streams.
    pub(crate) fn limit(&self, dir: Dir) -> u64 {
        self.ours[dir as usize].limit
    }

    /// Our limit on the peer's streams, as announced.
    pub(crate) fn peer_limit(&self, dir: Dir) -> u64 {
        self.theirs[dir as usize].limit
    }

    fn peer_limit_target(&self, dir: Dir) -> u64 {
        let d = dir as usize;
        self.theirs[d].closed.saturating_add(self.concurrent[d]).min(MAX_STREAM_COUNT)
    }

    /// True when enough streams ended to tell the peer of a higher limit.
    pub(crate) fn wants_peer_limit(&self, dir: Dir) -> bool {
        let grown = self.peer_limit_target(dir).saturating_sub(self.peer_limit(dir));
        grown > self.concurrent[dir as usize] / 8
    }

    /// Moves the announced limit on.
    pub(crate) fn update_peer_limit(&mut self, dir: Dir) -> u64 {
        let limit = self.peer_limit_target(dir).max(self.peer_limit(dir));
        self.theirs[dir as usize].limit = limit;
        limit
    }

    // One look-up in the program for all its callers: where caches are cold, code costs more than a call.
    #[inline(never)]
    fn entry(&mut self, id: StreamId) -> Option<&mut StreamEntry> {
        self.entries.get_mut(&id)
    }

    /// The sending half, when it is in use.
    #[inline]
    pub(crate) fn send(&mut self, id: StreamId) -> Option<&mut SendHalf> {
        match self.entry(id).map(|e| &mut e.send) {
            Some(Half::Live(half)) => Some(half),
            _ => None,
        }
    }

    /// The sending half, brought into use when it is fresh.
    pub(crate) fn use_send(&mut self, id: StreamId) -> Option<&mut SendHalf> {
        let first = self.first;
        let is_ours = id.initiator() == self.side;
        let half = &mut self.entry(id)?.send;
        if matches!(half, Half::Fresh) {
            let limit = match (id.dir(), is_ours) {
                (Dir::Uni, _) => first.send_ours_uni,
                (Dir::Bi, true) => first.send_ours_bidi,
                (Dir::Bi, false) => first.send_theirs_bidi,
            };
            *half = Half::Live(Box::new(SendHalf::new(limit)));
        }
        match half {
            Half::Live(half) => Some(half),
            _ => None,
        }
    }

    /// The receiving half, when it is in use.
    pub(crate) fn receive(&mut self, id: StreamId) -> Option<&mut ReceiveHalf> {
        match self.entry(id).map(|e| &mut e.receive) {
            Some(Half::Live(half)) => Some(half),
            _ => None,
        }
    }

    /// The receiving half, brought into use when it is fresh.
    pub(crate) fn use_receive(&mut self, id: StreamId) -> Option<&mut ReceiveHalf> {
        let credit = self.first.receive;
        let half = &mut self.entry(id)?.receive;
        if matches!(half, Half::Fresh) {
            *half = Half::Live(Box::new(ReceiveHalf::new(credit)));
        }
        match half {
            Half::Live(half) => Some(half),
            _ => None,
        }
    }

    /// The sending halves in use, in no order that matters.
    pub(crate) fn live_sends(&mut self) -> impl Iterator<Item = (StreamId, &mut SendHalf)> {
        self.entries.iter_mut().filter_map(|(&id, e)| match &mut e.send {
            Half::Live(half) => Some((id, half.as_mut())),
            _ => None,
        })
    }

    /// The receiving halves in use, in no order that matters.
    pub(crate) fn live_receives(&mut self) -> impl Iterator<Item = &mut ReceiveHalf> {
        self.entries.values_mut().filter_map(|e| match &mut e.receive {
            Half::Live(half) => Some(half.as_mut()),
            _ => None,
        })
    }

    /// True while a receiving half is not complete.
    pub(crate) fn expects_data(&self) -> bool {
        self.entries.values().any(|entry| match &entry.receive {
            Half::Over => false,
            Half::Fresh => true,
            Half::Live(half) => half.expects_data(),
        })
    }

    /// The sending half is over.
    pub(crate) fn close_send(&mut self, id: StreamId) {
        let Some(entry) = self.entry(id) else { return };
        entry.send = Half::Over;
        if matches!(entry.receive, Half::Over) {
            self.remove(id);
        }
    }

    /// The receiving half is over.
    pub(crate) fn close_receive(&mut self, id: StreamId) {
        let Some(entry) = self.entry(id) else { return };
        entry.receive = Half::Over;
        if matches!(entry.send, Half::Over) {
            self.remove(id);
        }
    }

    /// Both halves are over, and with them the stream (RFC 9000 4.4); until then each counts for itself.
    #[inline(never)]
    fn remove(&mut self, id: StreamId) {
        if self.entries.remove(&id).is_some() {
            let counts = if id.initiator() == self.side { &mut self.ours } else { &mut self.theirs };
            counts[id.dir() as usize].closed += 1;
        }
    }
}
