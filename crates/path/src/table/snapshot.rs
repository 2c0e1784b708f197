//! What is known of one path at one moment, for schedulers, statistics and observers: reading it changes nothing.

use std::time::Duration;

use plait_base::limits::MIN_DATAGRAM_BYTES;
use plait_base::observe::PathState;
use plait_base::{FourTuple, Instant, PathId, Side};

use super::Slot;
use crate::addresses::FourTupleRole;
use crate::path::Path;
use crate::send::{SendRoom, SendStats};
use crate::status::PathStatus;

/// Whether a path admits a full datagram of data, and if not, what stands in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathRoom {
    /// The peer gave no connection id for it.
    NoCid,
    /// The peer's address is not proven, and it is no path that may carry data before that.
    NotValidated,
    /// The peer's address is not proven, and a server may not send more there (RFC 9000 8).
    Amplification,
    /// What congestion window and pacer say.
    Send(SendRoom),
}

/// One path at one moment.
#[derive(Clone, Copy, Debug)]
pub struct PathSnapshot {
    /// The path id.
    pub id: PathId,
    /// Its addresses now.
    pub tuple: FourTuple,
    /// State as the table sees it.
    pub state: PathState,
    /// What the peer advised last.
    pub peer_advice: Option<PathStatus>,
    /// Whether it admits a datagram.
    pub room: PathRoom,
    /// The round trip that schedulers go by; none before the first sample.
    pub scheduled_rtt: Option<Duration>,
    /// Largest RTT sample of the last 10 to 20 seconds; zero before the first.
    pub rtt_max: Duration,
    /// Its probe time-out without backoff.
    pub pto: Duration,
    /// Slow start threshold, bytes; `u64::MAX` before the first congestion event.
    pub ssthresh_bytes: u64,
    /// Largest datagram, bytes of UDP payload.
    pub max_datagram_bytes: u16,
    /// What its sender did.
    pub send: SendStats,
    /// UDP payload bytes sent between its own addresses.
    pub sent_bytes: u64,
    /// UDP payload bytes received in authentic datagrams.
    pub received_bytes: u64,
    /// Bytes of STREAM data received.
    pub stream_bytes_received: u64,
    /// ACK and PATH_ACK frames sent for 0-RTT and 1-RTT packets that arrived on it.
    pub ack_frames_sent: u64,
}

impl Slot {
    /// The path now; none for an id that was not opened. `side` is our end.
    #[inline]
    pub fn snapshot(&self, now: Instant, side: Side) -> Option<PathSnapshot> {
        let path = self.path.as_deref()?;
        let counters = path.counters();
        Some(PathSnapshot {
            id: self.id,
            tuple: path.addresses.tuple(),
            state: self.state(),
            peer_advice: self.status.remote(),
            room: self.room(path, now, side),
            scheduled_rtt: path.scheduled_rtt(),
            rtt_max: path.send.rtt().max(),
            pto: path.pto(),
            ssthresh_bytes: path.send.ssthresh(),
            max_datagram_bytes: path.mtu(),
            send: path.send.stats(),
            sent_bytes: counters.sent_bytes,
            received_bytes: counters.received_bytes,
            stream_bytes_received: counters.stream_bytes_received,
            ack_frames_sent: path.receive.ack_frames_sent(),
        })
    }

    /// True on path 0 during the handshake, which carries data before the peer's address is validated.
    #[inline]
    pub fn carries_data_unvalidated(&self) -> bool {
        self.is_first() && self.state() == PathState::Validating
    }

    /// True on a path that we open, while its window has room. What other paths carry may be
    /// doubled on it before the peer answers: the server's address is no news, and what is lost there is lost to nobody.
    pub fn is_open_to_copies(&self, side: Side) -> bool {
        let is_backup = [self.status.local(), self.status.remote()].contains(&Some(PathStatus::Backup));
        let is_ready = |path: &Path| path.is_opening() && path.may_lead(side);
        !is_backup && self.path.as_deref().is_some_and(is_ready)
    }

    /// What but window and pacer keeps data off the path.
    #[inline]
    fn obstacle(&self, path: &Path, side: Side) -> Option<PathRoom> {
        // RFC 9000 8: a client may send on path 0 before it heard from the server, a server three times what it got.
        let full = u64::from(path.mtu()).min(MIN_DATAGRAM_BYTES as u64);
        if self.dcid(FourTupleRole::Current).is_none() {
            Some(PathRoom::NoCid)
        } else if !path.is_first() && self.state() == PathState::Validating {
            Some(PathRoom::NotValidated)
        } else if side == Side::Server && path.addresses.amplification_room() < full {
            Some(PathRoom::Amplification)
        } else {
            None
        }
    }

    #[inline]
    fn room(&self, path: &Path, now: Instant, side: Side) -> PathRoom {
        let obstacle = self.obstacle(path, side);
        obstacle.unwrap_or_else(|| PathRoom::Send(path.send.room(now, u64::from(path.mtu()))))
    }

    /// A packet may be chosen for the path now, unless its addresses are held: its pacer is refilled, and a full window
    /// remembered.
    pub fn prepare_to_send(&mut self, now: Instant, side: Side, is_held: impl Fn(&FourTuple) -> bool) {
        let is_free = |path: &Path| !is_held(&path.addresses.tuple()) && self.obstacle(path, side).is_none();
        let is_free = self.is_open() && self.path.as_deref().is_some_and(is_free);
        if let Some(path) = self.path.as_deref_mut().filter(|_| is_free) {
            path.send.prepare_to_send(now, u64::from(path.mtu()));
        }
    }
}
