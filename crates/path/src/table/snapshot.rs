//! What is known of one path at one moment, for schedulers, statistics and observers: reading it changes nothing.

use std::time::Duration;

use plait_base::observe::PathState;
use plait_base::{FourTuple, PathId};

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
    /// How much later than estimated acks came at most in the last 10 to 20 seconds, of flights that left when it was idle.
    pub rtt_late: Duration,
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

impl Path {
    /// What is known of it, with what its slot says.
    #[inline(always)]
    pub(super) fn snapshot(&self, state: PathState, peer_advice: Option<PathStatus>, room: PathRoom) -> PathSnapshot {
        let counters = self.counters();
        PathSnapshot {
            id: self.id(),
            tuple: self.addresses.tuple(),
            state,
            peer_advice,
            room,
            scheduled_rtt: self.scheduled_rtt(),
            rtt_max: self.send.rtt().max(),
            rtt_late: self.send.rtt().late(),
            pto: self.pto(),
            ssthresh_bytes: self.send.ssthresh(),
            max_datagram_bytes: self.mtu(),
            send: self.send.stats(),
            sent_bytes: counters.sent_bytes,
            received_bytes: counters.received_bytes,
            stream_bytes_received: counters.stream_bytes_received,
            ack_frames_sent: self.receive.ack_frames_sent(),
        }
    }
}
