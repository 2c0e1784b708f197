//! What an ACK or PATH_ACK frame does to the flow that sent the packets (RFC 9002 A.7).

use std::ops::RangeInclusive;
use std::time::Duration;

use plait_base::shared_metrics::SharedPathMetrics;
use plait_base::{Instant, Space, Violation};
use plait_congestion::{Acked, CongestionController, CongestionKind, Limit, NO_THRESHOLD, RttSample};
use plait_wire::SentFrame;

use super::own_way::Sampled;
use super::punctuality::FlightSample;
use super::rate::AppLimited;
use super::sent_packets::{PacketState, SentPacket};
use super::{AckOutcome, AckReport, HandshakeState, SendFlow};
use crate::feedback::Feedback;

/// Sums over the packets that one frame acknowledged for the first time.
#[derive(Clone, Copy, Debug, Default)]
struct NewlyAcked {
    /// When the frame arrived.
    now: Instant,
    packets: u64,
    eliciting: u64,
    /// Bytes that left the flight.
    freed_bytes: u64,
    /// Those that arrived, given up or not.
    delivered_bytes: u64,
    /// Those that left the flight and were sent after the recovery period began.
    growth_bytes: u64,
    /// Packets that left with an ECN mark.
    marked: u64,
    /// The newest acked packet.
    newest: Option<(u64, SentPacket)>,
    /// Number and bytes of the largest datagram acked.
    biggest: Option<(u64, u16)>,
    /// Every packet of the last congestion event arrived after all.
    episode_spurious: bool,
}

impl SendFlow {
    /// Takes in an ack of packets of `space`. `ranges` are the frame's, in any order; acks of a space that was
    /// discarded are ignored.
    ///
    /// # Errors
    /// [`Violation::AckOfUnsentPacket`] for numbers that were not sent or were left out on purpose.
    pub(crate) fn on_ack(
        &mut self,
        now: Instant,
        space: Space,
        report: &AckReport,
        ranges: impl IntoIterator<Item = RangeInclusive<u64>>,
        shared: &mut SharedPathMetrics,
        feedback: &mut Feedback,
    ) -> Result<AckOutcome, Violation> {
        let Some(state) = self.space(space) else { return Ok(AckOutcome::default()) };
        // RFC 9000 13.1: an ack of what was not sent is a PROTOCOL_VIOLATION
        if report.largest >= state.sent.next() {
            return Err(Violation::AckOfUnsentPacket);
        }
        let before = state.sent.largest_acked;
        self.counters.ack_frames_received += u64::from(space == Space::Data);
        let mut newly_acked = NewlyAcked { now, ..NewlyAcked::default() };
        let read =
            ranges.into_iter().try_for_each(|range| self.take_newly_acked(space, range, &mut newly_acked, feedback));
        // Also where a later range breaks the rule: what the ranges before it resolved left the flight.
        self.in_flight -= newly_acked.freed_bytes;
        read?;
        self.counters.on_acked(newly_acked.packets);
        self.raise_largest(space, report.largest);
        let rtt_updated = self.sample_rtt(now, space, report, &newly_acked);
        if self.siblings_need_metrics(&newly_acked) {
            self.update_shared(shared);
        }
        // RFC 9000 13.4.2.1: acks out of order do not validate
        if before.is_none_or(|before| report.largest > before) {
            self.take_ecn(now, space, report, &newly_acked, shared);
        }
        let outcome = AckOutcome {
            newly_acked_eliciting: newly_acked.eliciting,
            newly_acked_bytes: newly_acked.freed_bytes,
            biggest: newly_acked.biggest,
            newest_sent_at: newly_acked.newest.map(|(_, entry)| entry.sent_at),
            rtt_updated,
        };
        if newly_acked.episode_spurious {
            self.controller.on_spurious();
        }
        if newly_acked.packets > 0 {
            // What is acked to the last packet has lost none.
            if self.space(space).is_some_and(|state| state.sent.has_unresolved()) {
                self.detect_lost(now, space, shared, feedback);
            } else if let Some(state) = self.space_mut(space) {
                state.loss_at = None;
                state.sent.lost_since = None;
            }
            self.pacer.set_company(self.company(now, shared));
        }
        let shortcut = if self.controller.is_ack_clocked() { self.shortcut() } else { Duration::ZERO };
        self.rtt.own_way_mut().early_acks.on_acked(now, shortcut, newly_acked.freed_bytes);
        if let Some((number, newest)) = newly_acked.newest {
            self.tell_controller(now, space, (number, &newest), &newly_acked, shared);
            self.timer.on_acked(now);
            self.adopt_own_way(now);
            self.update_shared(shared);
        }
        let keep = self.loss_memory();
        if let Some(state) = self.space_mut(space) {
            state.reordering.on_acked(report.largest, state.sent.next());
            state.sent.trim(now, keep);
        }
        self.check();
        Ok(outcome)
    }

    /// Resolves the numbers of one range that were unresolved.
    fn take_newly_acked(
        &mut self,
        space: Space,
        range: RangeInclusive<u64>,
        newly_acked: &mut NewlyAcked,
        feedback: &mut Feedback,
    ) -> Result<(), Violation> {
        let (lo, hi) = (*range.start(), *range.end());
        let Some(state) = self.spaces[space as usize].as_deref_mut() else { return Ok(()) };
        // RFC 9000 21.4: only a peer that acks blindly names a number that was left out
        if hi >= state.sent.next() || (space == Space::Data && self.number_filter.skipped_within(lo, hi)) {
            return Err(Violation::AckOfUnsentPacket);
        }
        let overtaken_by = state.sent.largest_acked;
        let mut newest = None;
        while let Some(part) = state.sent.take_unresolved(lo, hi) {
            state.sent.mark_acked(part, |number, entry, carried| {
                // RFC 9000 9.4: what passed at the address before says nothing of the size that passes at this one
                let is_of_before = number < state.path_start;
                carried
                    .filter(|frame| !is_of_before || !matches!(frame, SentFrame::MtuProbe(_)))
                    .for_each(|frame| feedback.add_acked(frame));
                newly_acked.packets += 1;
                newly_acked.eliciting += u64::from(entry.info.awaits_ack());
                // RFC 9000 9.4: nor is the way to other addresses this path's
                if is_of_before || entry.info.elsewhere {
                    return;
                }
                newly_acked.marked += u64::from(entry.info.ecn_marked);
                // RFC 9002 6.1: such a packet was late, and the thresholds have to bear with the next one
                if let Some(largest) = overtaken_by.filter(|l| *l > number && entry.info.ack_eliciting) {
                    let took = newly_acked.now.since(entry.sent_at);
                    let in_time = self.rtt.loss_delay(self.config.time_threshold);
                    state.reordering.on_late(number, largest, took.saturating_sub(in_time));
                }
                if entry.info.in_flight {
                    newly_acked.delivered_bytes += u64::from(entry.info.bytes);
                }
                if entry.counted {
                    let bytes = u64::from(entry.info.bytes);
                    newly_acked.freed_bytes += bytes;
                    // RFC 9002 7.3.2: packets sent before the period began do not grow the window
                    if !self.recovery.covers(entry.sent_at) {
                        newly_acked.growth_bytes += bytes;
                    }
                }
                if let PacketState::Lost(at) = entry.state {
                    self.counters.spurious += 1;
                    if entry.info.in_flight && !entry.info.mtu_probe {
                        newly_acked.episode_spurious |= self.recovery.on_spurious(at);
                        self.rate.on_spurious(u64::from(entry.info.bytes));
                    }
                }
                if newly_acked.biggest.is_none_or(|(n, bytes)| (entry.info.bytes, number) > (bytes, n)) {
                    newly_acked.biggest = Some((number, entry.info.bytes));
                }
                newest = newest.max(Some(number));
            });
        }
        if let Some(number) = newest.filter(|number| newly_acked.newest.is_none_or(|(before, _)| *number > before)) {
            newly_acked.newest = state.sent.get(number).map(|entry| (number, *entry));
        }
        Ok(())
    }

    fn raise_largest(&mut self, space: Space, largest: u64) {
        if let Some(state) = self.space_mut(space) {
            state.sent.largest_acked = state.sent.largest_acked.max(Some(largest));
        }
    }

    /// Siblings look at this path's figures only when its controller is about to act.
    fn siblings_need_metrics(&self, newly_acked: &NewlyAcked) -> bool {
        newly_acked.newest.is_some() && self.controller.is_coupled()
    }

    /// RFC 9002 5.1: one sample, if the largest number is newly acked and something newly acked asked for an ack.
    fn sample_rtt(&mut self, now: Instant, space: Space, report: &AckReport, newly_acked: &NewlyAcked) -> bool {
        let newest = newly_acked.newest.filter(|(number, _)| *number == report.largest);
        let Some((number, SentPacket { sent_at, rate, .. })) = newest else {
            if space == Space::Data {
                self.rtt.own_way_mut().on_old_ack(now, report.largest, report.delay, report.via);
            }
            return false;
        };
        if newly_acked.eliciting == 0 {
            return false;
        }
        let delay = match (space, self.timer.handshake()) {
            // RFC 9002 5.3: Initial packets are acked at once
            (Space::Initial, _) => Duration::ZERO,
            // RFC 9002 5.3: no more than promised, once the handshake is confirmed
            (_, HandshakeState::Confirmed) => report.delay.min(self.config.max_ack_delay),
            _ => report.delay,
        };
        if space == Space::Data {
            let rtt = now.since(sent_at).saturating_sub(delay);
            let arrival = FlightSample { number, sent_at, rtt, flight_bytes: rate.flight_bytes() };
            self.rtt.judge(now, &arrival);
            self.rate.on_rtt_sample(rate);
        }
        let before = self.rtt.smoothed();
        self.rtt.on_sample(now, now.since(sent_at), delay, report.via);
        let sample = Sampled { number, sent_at, rtt: self.rtt.adjusted(), via: report.via };
        self.rtt.own_way_mut().on_sample(now, sample, before);
        true
    }

    fn take_ecn(
        &mut self,
        now: Instant,
        space: Space,
        report: &AckReport,
        newly_acked: &NewlyAcked,
        shared: &SharedPathMetrics,
    ) {
        let ce = self.ecn.on_ack(space, newly_acked.marked, report.ecn);
        if let (true, Some((_, newest))) = (ce > 0, newly_acked.newest) {
            // RFC 9002 7.1: more CE marks are a sign of congestion, dated by the largest acked packet
            self.on_congestion(now, newest.sent_at, CongestionKind::Ecn, 0, shared);
        }
    }

    /// Changes to the controller of a connection that proved to have several paths. It has the window that its predecessor
    /// grew during the handshake: with less than a single path has, the first answer may take a round trip more.
    pub(crate) fn succeed_controller(
        &mut self,
        now: Instant,
        successor: Box<dyn CongestionController>,
        shared: &SharedPathMetrics,
    ) {
        let (window, threshold) = (self.controller.window(), self.ssthresh());
        self.replace_controller(successor);
        let grown = window.saturating_sub(self.controller.window());
        if grown == 0 || threshold != NO_THRESHOLD {
            return;
        }
        self.controller.on_acked(
            &Acked {
                path: self.path,
                now,
                bytes: grown,
                bytes_total: grown,
                sent_at: now,
                largest: 0,
                next_number: self.next_number(Space::Data),
                rtt: self.rtt_sample(),
                in_flight: self.flight(),
                limit: Limit::Window,
                delivery: self.rate.so_far(),
            },
            shared,
        );
    }

    fn rtt_sample(&self) -> RttSample {
        RttSample {
            latest: self.rtt.adjusted(),
            smoothed: self.rtt.smoothed(),
            min: self.rtt.min(),
            via: self.rtt.via(),
            shortcut: self.shortcut(),
            uncounted: self.rtt.own_way().told().unwrap_or_default(),
            home: self.rtt.own_way().home(),
        }
    }

    fn tell_controller(
        &mut self,
        now: Instant,
        space: Space,
        newest: (u64, &SentPacket),
        newly_acked: &NewlyAcked,
        shared: &SharedPathMetrics,
    ) {
        let (number, entry) = newest;
        self.recovery.on_acked(entry.sent_at);
        let app_limited = if entry.info.app_limited { AppLimited::Yes } else { AppLimited::No };
        let delivery = match newly_acked.delivered_bytes {
            0 => self.rate.delivery(entry.rate, app_limited),
            bytes => self.rate.on_acked(now, bytes, entry.rate, entry.sent_at, app_limited),
        };
        let used = space != Space::Data || number < self.window_used_until;
        let acked = Acked {
            path: self.path,
            now,
            bytes: newly_acked.growth_bytes,
            bytes_total: newly_acked.freed_bytes,
            sent_at: entry.sent_at,
            largest: number,
            next_number: self.next_number(space),
            rtt: self.rtt_sample(),
            in_flight: self.flight(),
            limit: if used { Limit::Window } else { Limit::Application },
            delivery,
        };
        self.controller.on_acked(&acked, shared);
        if self.flight() <= self.controller.window() {
            self.recovery.challenges_beyond = 0;
        }
    }
}
