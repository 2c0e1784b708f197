//! What a scheduler sees: one view per path, and what waits to be sent.

use std::time::Duration;

use plait_base::observe::PathState;
use plait_base::{Instant, PathId};

/// Share of lost packets above which a path counts as lossy, in parts per thousand.
const LOSSY_PER_MILLE: u32 = 20;

/// Whether a path admits one full packet now, and if not, why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// It admits a full packet now.
    Free,
    /// Its congestion window is full.
    Window,
    /// Its pacer holds it until then.
    Paced(Instant),
    /// The peer's address is not validated and three times what it sent is spent (RFC 9000 8.1).
    Amplification,
    /// No connection id of the peer is left for it.
    NoCid,
    /// Its address is not validated.
    NotValidated,
    /// Copies of what other paths carry may go there and nothing else, since nobody may answer: a client opens it, or it fell
    /// silent a moment ago.
    CopiesOnly,
    /// The socket that it leaves by is full, and is waited for until then.
    Socket(Instant),
    /// The socket that it leaves by has been full for long: nothing waits for it any more.
    Stuck,
}

/// What the peer advised for sending to it on a path (RFC 10069 3.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PeerAdvice {
    /// Free choice; also when nothing was said.
    #[default]
    Available,
    /// Send on it only when no other path is usable.
    Backup,
}

/// The worst that RTT samples of the last 10 to 20 seconds showed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecentRtt {
    /// The largest; zero before the first sample.
    pub max: Duration,
    /// How much later than estimated acks came at most, of flights that left when the path was idle; zero where they came in time.
    pub late: Duration,
}

/// One path as the scheduler sees it. Sizes are bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathView {
    /// The path that is seen.
    pub id: PathId,
    /// Its state; `Backup` when either end asked for that.
    pub state: PathState,
    /// The peer's advice; tells the two reasons for `Backup` apart.
    pub peer_advice: PeerAdvice,
    /// Whether it admits a packet.
    pub room: Room,
    /// Smoothed RTT; none before the first sample.
    pub rtt: Option<Duration>,
    /// Mean deviation of the RTT (RFC 9002 5.3).
    pub rtt_var: Duration,
    /// Smallest RTT of the present way back; zero before the first sample.
    pub rtt_min: Duration,
    /// What was in flight as the packets left that the smoothed RTT tells of: their mean, weighed as their samples are.
    pub rtt_flight_bytes: u64,
    /// What the last 10 to 20 seconds showed of its RTT at worst.
    pub recent_rtt: RecentRtt,
    /// Congestion window of its controller.
    pub window_bytes: u64,
    /// Bytes in flight.
    pub in_flight_bytes: u64,
    /// Slow start threshold; `u64::MAX` before the first loss.
    pub ssthresh_bytes: u64,
    /// Largest datagram that it carries (its MTU), UDP payload.
    pub max_datagram_bytes: u64,
    /// Bytes sent so far.
    pub sent_bytes: u64,
    /// Measured delivery rate, bits per second.
    pub delivery_rate_bps: Option<u64>,
    /// Share of the latest packets that were lost, in parts per thousand.
    pub loss_per_mille: u32,
}

impl PathView {
    /// A path that has not sent yet: active, open, no RTT sample, an initial window.
    pub fn new(id: PathId) -> Self {
        let max_datagram_bytes = plait_base::limits::MIN_DATAGRAM_BYTES as u64;
        Self {
            id,
            state: PathState::Active,
            peer_advice: PeerAdvice::Available,
            room: Room::Free,
            rtt: None,
            rtt_var: Duration::ZERO,
            rtt_min: Duration::ZERO,
            rtt_flight_bytes: 0,
            recent_rtt: RecentRtt::default(),
            window_bytes: 10 * max_datagram_bytes,
            in_flight_bytes: 0,
            ssthresh_bytes: u64::MAX,
            max_datagram_bytes,
            sent_bytes: 0,
            delivery_rate_bps: None,
            loss_per_mille: 0,
        }
    }

    /// True when it loses so much that what it sends last, or again, may well be lost.
    pub(crate) fn is_lossy(&self) -> bool {
        self.loss_per_mille > LOSSY_PER_MILLE
    }

    /// True when a packet may leave on it now.
    pub fn has_room(&self) -> bool {
        self.room == Room::Free
    }

    /// True when it can send now or as soon as acks arrive, time passes or its socket has room.
    pub fn is_usable(&self) -> bool {
        matches!(self.room, Room::Free | Room::Window | Room::Paced(_) | Room::Socket(_))
    }

    /// How long it takes to send so many bytes at the pace of its window, which slow start doubles each round trip; none before
    /// the first sample.
    pub fn time_to_send(&self, bytes: u64) -> Option<Duration> {
        let nanos =
            self.rtt?.as_nanos() * u128::from(bytes) / u128::from(self.window_bytes.max(1)) / u128::from(self.pace());
        Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
    }

    /// What it sends in a round trip, bytes.
    #[inline]
    pub fn sends_per_rtt(&self) -> u64 {
        self.window_bytes.saturating_mul(self.pace())
    }

    fn pace(&self) -> u64 {
        if self.window_bytes < self.ssthresh_bytes { 2 } else { 1 }
    }

    /// Smoothed RTT, with paths not sampled yet behind all others.
    pub fn rtt_or_max(&self) -> Duration {
        self.rtt.unwrap_or(Duration::MAX)
    }
}

/// What kind of data waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DemandKind {
    /// STREAM frames, new or lost.
    Stream,
    /// Control frames that belong to no path: never worth waiting for.
    Control,
    /// DATAGRAM frames of the application (RFC 9221).
    Datagram,
}

/// What waits to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// When the decision is made.
    pub now: Instant,
    /// Kind of data that the next packet carries.
    pub kind: DemandKind,
    /// Bytes that could be sent now under flow control, lost ones included.
    pub unsent_bytes: u64,
    /// Bytes beyond what was sent that the peer's limits, for the connection and for streams in use, and our own send
    /// buffer have room for: when that is spent, something under way must arrive first.
    pub send_credit_bytes: u64,
    /// Whether more may join what waits.
    pub backlog: Backlog,
}

/// Whether the application may add to the stream data that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backlog {
    /// It may write more to a stream in use at any time.
    Growing,
    /// It finished all streams in use: what waits is the end of them.
    Final,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_leaves_in_a_round_trip_and_in_slow_start_two() {
        let mut path = PathView { window_bytes: 50_000, ..PathView::new(PathId(0)) };
        assert_eq!(path.time_to_send(50_000), None);
        path.rtt = Some(Duration::from_millis(40));
        assert_eq!(path.time_to_send(50_000), Some(Duration::from_millis(20)));
        assert_eq!(path.sends_per_rtt(), 100_000);
        path.ssthresh_bytes = 50_000;
        assert_eq!(path.time_to_send(50_000), Some(Duration::from_millis(40)));
        assert_eq!(path.sends_per_rtt(), 50_000);
        path.window_bytes = 0;
        assert!(path.time_to_send(u64::MAX).is_some());
    }
}
