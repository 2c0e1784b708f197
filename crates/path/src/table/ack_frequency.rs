//! What both ends ask of each other's acks, for all paths together: RFC 10069 has one max_ack_delay for all of them.

use std::time::Duration;

use plait_base::{Instant, Violation};
use plait_wire::FrameWriter;
use plait_wire::frame::AckFrequency;

use super::{Paths, Slot};
use crate::ack_frequency::{AckTerms, AckWish, PathFacts};
use crate::path::Path;

impl Slot {
    /// The congestion window in packets, and whether any are in flight.
    fn window_packets(&self) -> Option<(u64, bool)> {
        let (window, in_flight) = match self.path.as_deref() {
            Some(path) => (path.send.window(), path.send.in_flight()),
            None => self.loan().map(|loan| &loan.record.snapshot.send).map(|s| (s.window_bytes, s.in_flight_bytes))?,
        };
        Some((window / u64::from(self.mtu()?.max(1)), in_flight > 0))
    }
}

impl Paths {
    /// ACK_FREQUENCY: the peer asks for other acks of all that it sends.
    ///
    /// # Errors
    /// [`Violation::AckDelayOutOfRange`] for a delay that we did not offer.
    pub fn on_ack_frequency(&mut self, frame: &AckFrequency) -> Result<(), Violation> {
        if self.ack_requests.on_frame(frame)? {
            self.on_ack_terms_changed();
        }
        Ok(())
    }

    /// The handshake is complete, and a peer with these min_ack_delay and max_ack_delay may be asked for acks as we wish.
    pub fn ask_for_acks(&mut self, now: Instant, wish: AckWish, min_delay: Duration, max_delay: Duration) {
        self.ack_requests.ask(wish, min_delay, max_delay);
        self.on_ack_terms_changed();
        self.review_ack_request(now);
    }

    /// Windows and round trips may have changed.
    #[inline]
    pub fn review_ack_request(&mut self, now: Instant) {
        if self.ack_requests.is_review_due(now) {
            self.review_due_ack_request(now);
        }
    }

    fn review_due_ack_request(&mut self, now: Instant) {
        let (round_trip, packets_sent) = (self.max_rtt(), self.totals().packets_sent);
        if self.ack_requests.begin_review(now, round_trip, packets_sent) {
            let facts = self.facts_of_acks();
            self.ack_requests.review(now, round_trip, &facts);
        }
    }

    fn facts_of_acks(&self) -> PathFacts {
        let window = |wanted: fn(bool) -> bool| {
            let windows = self.open_slots().filter_map(Slot::window_packets);
            windows.filter(|(_, busy)| wanted(*busy)).map(|(window, _)| window).min()
        };
        PathFacts {
            rtt: self.working().filter_map(Slot::rtt).min(),
            window_packets: window(|busy| busy).or_else(|| window(|_| true)),
            packet_threshold: self.open_paths().map(|path| path.send.packet_threshold()).max().unwrap_or(3),
        }
    }

    pub(super) fn fill_ack_request(&mut self, w: &mut FrameWriter<'_>) {
        if let Some(ours) = self.ack_requests.ours_mut().filter(|ours| ours.wants_frame()) {
            ours.fill(w);
            self.on_ack_terms_changed();
        }
    }

    pub(super) fn on_ack_request_acked(&mut self, sequence: u64) {
        if let Some(ours) = self.ack_requests.ours_mut() {
            ours.on_acked(sequence);
            self.on_ack_terms_changed();
        }
    }

    /// What holds of acks on every path.
    pub fn ack_terms(&self) -> AckTerms {
        self.ack_requests.terms()
    }

    /// Paths that somebody else serves are told by whoever lent them.
    fn on_ack_terms_changed(&mut self) {
        let terms = self.ack_requests.terms();
        let paths = self.slots_mut().filter_map(|slot| slot.path.as_deref_mut());
        paths.for_each(|path: &mut Path| path.set_ack_terms(&terms));
        self.on_pto_changed();
    }
}
