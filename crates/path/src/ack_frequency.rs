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
/// What suits the paths is asked for anew where it differs by this part.
const NOTICED_PART: u64 = 3;
/// The first delay that RFC 9000 18.2 does not allow for max_ack_delay.
const DELAY_END: Duration = Duration::from_millis(MAX_ACK_DELAY_MS + 1);

/// How rarely we want the peer to acknowledge, where it lets us ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckWish {
    /// Ack-eliciting packets that may arrive without an ack, fewer while windows are small.
    pub eliciting_threshold: u64,
    /// Longest time that an ack waits; none: the shortest round trip, and no longer than the peer would by itself.
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
    pub(crate) ours: Option<Box<OwnRequest>>,
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

    pub(crate) fn terms(&self) -> AckTerms {
        AckTerms {
            ours: self.requested.map(|(_, policy)| policy),
            peer_max_delay: self.ours.as_ref().map(|ours| ours.peer_max_delay()),
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
    /// When the newest was called for.
    called_at: Option<Instant>,
    /// The max_ack_delay that the peer announced, or is known to have taken over.
    known_delay: Duration,
    /// The longest one asked for since, zero for none.
    pending_delay: Duration,
}

impl OwnRequest {
    /// Of a peer with these min_ack_delay and max_ack_delay.
    pub(crate) fn new(wish: AckWish, min_delay: Duration, max_delay: Duration) -> Self {
        Self {
            wish,
            offered: (min_delay, max_delay),
            delivery: NewestReport::default(),
            wanted: AckPolicy::delayed(max_delay),
            written: None,
            called_at: None,
            known_delay: max_delay,
            pending_delay: Duration::ZERO,
        }
    }

    /// What is to be asked for, as the paths are.
    fn suited(&self, facts: &PathFacts) -> AckPolicy {
        let (shortest, usual) = self.offered;
        // Section 8.1: at least one ack a round trip, and a part of a window at most
        let delay = self.wish.max_ack_delay.unwrap_or(usual.min(facts.rtt.unwrap_or(usual)));
        let longest = DELAY_END - Duration::from_micros(1);
        let packets = facts.window_packets.map_or(u64::MAX, |window| window / ACKS_PER_WINDOW);
        AckPolicy::requested(
            self.wish.eliciting_threshold.min(packets.max(1)),
            delay.min(longest).max(shortest),
            // Section 9: as loss detection
            self.wish.reordering_threshold.unwrap_or(facts.packet_threshold),
        )
    }

    /// The paths may have changed: asks anew where that makes a difference, not more often than once in `interval`.
    pub(crate) fn review(&mut self, now: Instant, interval: Duration, facts: &PathFacts) {
        let suited = self.suited(facts);
        let is_due = self.delivery.is_due();
        let is_early = self.called_at.is_some_and(|at| now.since(at) < interval);
        if !is_due && (is_early || !self.makes_a_difference(&suited)) {
            return;
        }
        self.wanted = suited;
        if !is_due {
            self.called_at = Some(now);
            self.delivery.is_due_again();
        }
    }

    fn makes_a_difference(&self, suited: &AckPolicy) -> bool {
        let Some(written) = &self.written else { return true };
        let moved = |before: u64, after: u64| before.abs_diff(after) * NOTICED_PART > before.max(after);
        let micros = |policy: &AckPolicy| policy.max_ack_delay.as_micros() as u64;
        moved(written.eliciting_threshold, suited.eliciting_threshold)
            || moved(micros(written), micros(suited))
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
