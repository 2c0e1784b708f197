//! How rarely acks are to come (draft-ietf-quic-ack-frequency-14): what the peer asked of ours, and what we ask of its own.

use std::time::Duration;

use plait_base::limits::{MAX_ACK_DELAY_MS, MIN_ACK_DELAY};
use plait_base::{Instant, Violation};
use plait_wire::frame::AckFrequency;
use plait_wire::{FrameWriter, SentFrame};

use crate::frame_state::NewestReport;
use crate::receive::AckPolicy;

/// An ack is asked for at least so often in a congestion window: fewer would let a window out in bursts, and slow start wait.
const ACKS_PER_WINDOW: u64 = 4;
/// Without a threshold of the application's, an ack is asked for of as many packets as we send in this time: 4,000 acks a second cost
/// either end little, and tell of what left a moment ago.
const ACK_INTERVAL: Duration = Duration::from_micros(250);
/// And no later than this where a pause begins before so much came.
const ACK_DELAY: Duration = Duration::from_millis(1);
/// Fewer packets in that time leave the peer to itself: its acks cost little then, and need no frame of ours.
const FEWEST_PACKETS: u64 = 10;
/// What suits the paths is asked for anew where it differs by this part.
const NOTICED_PART: u64 = 3;
/// The first delay that RFC 9000 18.2 does not allow for max_ack_delay.
const DELAY_END: Duration = Duration::from_millis(MAX_ACK_DELAY_MS + 1);

/// What is asked for is looked at again after a round trip, but not more often than this.
const REVIEW_INTERVAL: Duration = Duration::from_millis(10);
/// Time between two requests before any RTT is known.
const INTERVAL_WITHOUT_RTT: Duration = Duration::from_secs(1);

/// How rarely we want the peer to acknowledge, where it lets us ask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckWish {
    /// Ack-eliciting packets that may arrive without an ack, fewer while windows are small. None: as many as we send in
    /// 250 µs, and nothing is asked while those are few.
    pub eliciting_threshold: Option<u64>,
    /// Longest time that an ack waits; none: 1 ms, or the shortest round trip where another of these is stated, and no longer than
    /// the peer would by itself.
    pub max_ack_delay: Option<Duration>,
    /// Reordering that is borne with, in packets, and 0 for any; none: what loss detection bears with.
    pub reordering_threshold: Option<u64>,
}

/// What holds of acks by the wishes of both ends, as far as one path is concerned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckTerms {
    /// How the peer wants to be acknowledged, once it said so.
    pub(crate) ours: Option<AckPolicy>,
    /// The longest max_ack_delay that the peer may have, once we may change it.
    pub(crate) peer_max_delay: Option<Duration>,
}

/// What both ends asked of each other.
#[derive(Debug, Default)]
pub(crate) struct AckRequests {
    /// Number of the peer's newest frame, and what it asks for.
    requested: Option<(u64, AckPolicy)>,
    /// What we ask, once the peer may be asked and is to be.
    asking: Option<Box<Asking>>,
}

/// When we ask the peer for other acks.
#[derive(Debug)]
struct Asking {
    /// The peer's min_ack_delay and max_ack_delay.
    offered: (Duration, Duration),
    rate: SendRate,
    /// What is asked for, once there is something to ask.
    request: Option<Box<OwnRequest>>,
}

/// How much we send, looked at now and then.
#[derive(Debug)]
struct SendRate {
    /// When it is looked at again.
    next_look: Instant,
    /// When it was looked at last, and the packets sent by then.
    last_look: (Instant, u64),
    /// Packets in each [`ACK_INTERVAL`] between the last two looks.
    interval_packets: u64,
}

impl Default for SendRate {
    fn default() -> Self {
        Self { next_look: Instant::ZERO, last_look: (Instant::ZERO, 0), interval_packets: 0 }
    }
}

impl SendRate {
    fn look(&mut self, now: Instant, packets_sent: u64) {
        let (at, before) = std::mem::replace(&mut self.last_look, (now, packets_sent));
        let packets = u128::from(packets_sent.saturating_sub(before)) * ACK_INTERVAL.as_nanos();
        self.interval_packets = (packets / now.since(at).as_nanos().max(1)) as u64;
    }
}

impl AckRequests {
    /// ACK_FREQUENCY; true where it changes what we do.
    ///
    /// # Errors
    /// [`Violation::AckDelayOutOfRange`] for a delay that we did not offer.
    pub(crate) fn on_frame(&mut self, frame: &AckFrequency) -> Result<bool, Violation> {
        let delay = Duration::from_micros(frame.max_ack_delay_us);
        // Section 4: as max_ack_delay itself, and not below our min_ack_delay
        if !(MIN_ACK_DELAY..DELAY_END).contains(&delay) {
            return Err(Violation::AckDelayOutOfRange);
        }
        let is_news = self.requested.is_none_or(|(newest, _)| frame.sequence > newest);
        if is_news {
            let policy = AckPolicy::requested(frame.ack_eliciting_threshold, delay, frame.reordering_threshold);
            self.requested = Some((frame.sequence, policy));
        }
        Ok(is_news)
    }

    /// A peer with these min_ack_delay and max_ack_delay may be asked for acks as we wish.
    pub(crate) fn ask(&mut self, wish: AckWish, min_delay: Duration, max_delay: Duration) {
        let offered = (min_delay, max_delay);
        let request = (wish != AckWish::default()).then(|| Box::new(OwnRequest::new(wish, offered)));
        self.asking = Some(Box::new(Asking { offered, rate: SendRate::default(), request }));
    }

    /// What is asked for.
    pub(crate) fn ours(&self) -> Option<&OwnRequest> {
        self.asking.as_deref()?.request.as_deref()
    }

    pub(crate) fn ours_mut(&mut self) -> Option<&mut OwnRequest> {
        self.asking.as_deref_mut()?.request.as_deref_mut()
    }

    /// Whether it is time to look at what suits the paths.
    #[inline]
    pub(crate) fn is_review_due(&self, now: Instant) -> bool {
        self.asking.as_deref().is_some_and(|asking| now >= asking.rate.next_look || self.wants_frame())
    }

    /// Looks at how much is sent, packets so far; `round_trip` is the longest of all paths. True where [`Self::review`] is to see the
    /// paths.
    pub(crate) fn begin_review(&mut self, now: Instant, round_trip: Option<Duration>, packets_sent: u64) -> bool {
        let Some(Asking { offered, rate, request }) = self.asking.as_deref_mut() else { return false };
        if now >= rate.next_look {
            rate.next_look = now + round_trip.unwrap_or(REVIEW_INTERVAL).max(REVIEW_INTERVAL);
            rate.look(now, packets_sent);
        }
        if request.is_none() && rate.interval_packets >= FEWEST_PACKETS {
            *request = Some(Box::new(OwnRequest::new(AckWish::default(), *offered)));
        }
        request.is_some()
    }

    /// The paths may have changed: asks anew where that makes a difference.
    pub(crate) fn review(&mut self, now: Instant, round_trip: Option<Duration>, facts: &PathFacts) {
        let Some(Asking { rate, request: Some(request), .. }) = self.asking.as_deref_mut() else { return };
        if request.review(rate.interval_packets, facts) {
            rate.next_look = now + round_trip.unwrap_or(INTERVAL_WITHOUT_RTT).max(REVIEW_INTERVAL);
        }
    }

    pub(crate) fn wants_frame(&self) -> bool {
        self.ours().is_some_and(OwnRequest::wants_frame)
    }

    pub(crate) fn terms(&self) -> AckTerms {
        AckTerms {
            ours: self.requested.map(|(_, policy)| policy),
            peer_max_delay: self.ours().filter(|ours| ours.is_in_use()).map(OwnRequest::peer_max_delay),
        }
    }
}

/// What of our paths says which acks suit them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathFacts {
    /// The shortest smoothed RTT; none before any sample.
    pub(crate) rtt: Option<Duration>,
    /// The smallest congestion window of those that carry data, packets.
    pub(crate) window_packets: Option<u64>,
    /// The largest packet threshold of loss detection.
    pub(crate) packet_threshold: u64,
}

/// What we ask of the peer's acks.
#[derive(Debug)]
pub(crate) struct OwnRequest {
    wish: AckWish,
    /// The peer's min_ack_delay and max_ack_delay.
    offered: (Duration, Duration),
    delivery: NewestReport,
    /// What suits our paths, for the next frame.
    wanted: AckPolicy,
    /// What the newest frame asks for.
    written: Option<AckPolicy>,
    /// The max_ack_delay that the peer announced, or is known to have taken over.
    known_delay: Duration,
    /// The longest one asked for since, zero for none.
    pending_delay: Duration,
}

impl OwnRequest {
    /// Of a peer with these min_ack_delay and max_ack_delay.
    fn new(wish: AckWish, offered: (Duration, Duration)) -> Self {
        let (_, max_delay) = offered;
        Self {
            wish,
            offered,
            delivery: NewestReport::default(),
            wanted: AckPolicy::delayed(max_delay),
            written: None,
            known_delay: max_delay,
            pending_delay: Duration::ZERO,
        }
    }

    /// The application wants something in particular, so that it is asked for whatever paths carry.
    fn is_stated(&self) -> bool {
        self.wish != AckWish::default()
    }

    /// The peer was asked, or will be in any case.
    pub(crate) fn is_in_use(&self) -> bool {
        self.is_stated() || self.written.is_some()
    }

    /// What is to be asked for, as the paths are.
    fn suited(&self, interval_packets: u64, facts: &PathFacts) -> AckPolicy {
        let (shortest, usual) = self.offered;
        let Some(packets) = self.suited_threshold(interval_packets, facts) else { return self.peers_own() };
        // Section 8.1: at least one ack a round trip, and a part of a window at most
        let longest_useful = if self.is_stated() { facts.rtt.unwrap_or(usual) } else { ACK_DELAY };
        let delay = self.wish.max_ack_delay.unwrap_or(usual.min(longest_useful));
        let longest = DELAY_END - Duration::from_micros(1);
        AckPolicy::requested(
            packets,
            delay.min(longest).max(shortest),
            // Section 9: as loss detection
            self.wish.reordering_threshold.unwrap_or(facts.packet_threshold),
        )
    }

    /// Packets that may arrive without an ack; none where the peer is left to itself.
    fn suited_threshold(&self, interval_packets: u64, facts: &PathFacts) -> Option<u64> {
        let part = facts.window_packets.map_or(u64::MAX, |window| window / ACKS_PER_WINDOW);
        if let Some(stated) = self.wish.eliciting_threshold {
            return Some(stated.min(part.max(1)));
        }
        let packets = part.min(interval_packets);
        if packets >= FEWEST_PACKETS { Some(packets) } else { self.is_stated().then_some(1) }
    }

    /// How the peer acknowledges by itself.
    fn peers_own(&self) -> AckPolicy {
        AckPolicy::delayed(self.offered.1)
    }

    /// What was asked for last.
    fn current(&self) -> AckPolicy {
        self.written.unwrap_or_else(|| self.peers_own())
    }

    /// Sees the paths, of which so many packets leave in each [`ACK_INTERVAL`]; true where a frame is called for that was not before.
    fn review(&mut self, interval_packets: u64, facts: &PathFacts) -> bool {
        let suited = self.suited(interval_packets, facts);
        let is_due = self.delivery.is_due();
        if !is_due && !self.makes_a_difference(&suited) {
            return false;
        }
        self.wanted = suited;
        self.delivery.is_due_again();
        !is_due
    }

    fn makes_a_difference(&self, suited: &AckPolicy) -> bool {
        if self.written.is_none() && self.is_stated() {
            return true;
        }
        let written = self.current();
        let moved = |before: u64, after: u64| before.abs_diff(after) * NOTICED_PART > before.max(after);
        let micros = |policy: AckPolicy| policy.max_ack_delay.as_micros() as u64;
        moved(written.eliciting_threshold, suited.eliciting_threshold)
            || moved(micros(written), micros(*suited))
            || moved(written.reordering_threshold, suited.reordering_threshold)
    }

    pub(crate) fn wants_frame(&self) -> bool {
        self.delivery.is_due()
    }

    /// Writes ACK_FREQUENCY where it is due and fits.
    pub(crate) fn fill(&mut self, w: &mut FrameWriter<'_>) {
        let sequence = self.delivery.next();
        let frame = AckFrequency {
            sequence,
            ack_eliciting_threshold: self.wanted.eliciting_threshold,
            max_ack_delay_us: self.wanted.max_ack_delay.as_micros() as u64,
            reordering_threshold: self.wanted.reordering_threshold,
        };
        if self.delivery.write(&frame, SentFrame::AckFrequency(sequence), w) {
            self.written = Some(self.wanted);
            self.pending_delay = self.pending_delay.max(self.wanted.max_ack_delay);
        }
    }

    /// The peer has the frame with this number.
    pub(crate) fn on_acked(&mut self, sequence: u64) {
        if let Some(written) = self.written.filter(|_| self.delivery.is_newest(sequence)) {
            (self.known_delay, self.pending_delay) = (written.max_ack_delay, Duration::ZERO);
        }
        self.delivery.on_acked(sequence);
    }

    /// The frame with this number was lost: what suits the paths now is asked for in its place, unless a newer one was sent.
    pub(crate) fn on_lost(&mut self, sequence: u64) {
        self.delivery.on_lost(sequence);
    }

    /// What probe time-outs reckon with: until an ack says which, the peer may have any max_ack_delay that it was asked for
    /// (section 7).
    pub(crate) fn peer_max_delay(&self) -> Duration {
        self.known_delay.max(self.pending_delay)
    }
}

#[cfg(test)]
mod tests;
