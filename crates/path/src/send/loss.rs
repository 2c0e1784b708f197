//! Loss detection by order and by time, persistent congestion, and the recovery period (RFC 9002 6.1, 7.3.2, 7.6).

use std::time::Duration;

use plait_base::observe::LossTrigger;
use plait_base::shared_metrics::SharedPathMetrics;
use plait_base::{Instant, Space};
use plait_congestion::{Company, Congestion, CongestionKind, Lost};

use super::rate::{AppLimited, RateMark};
use super::sent_packets::{PacketState, SentPacket, SentPackets};
use super::{SendFlow, SpaceState};
use crate::feedback::{Feedback, LostPacket};

/// RFC 9002 7.6.1: kPersistentCongestionThreshold.
const PERSISTENT_TIMEOUTS: u32 = 3;

/// The loss episode under way. Packets sent before its start cause no further cut (RFC 9002 7.3.2).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Recovery {
    /// When the newest episode began; packets sent up to then belong to it.
    start: Option<Instant>,
    /// True until a packet sent after the start is acked.
    open: bool,
    /// Packets that showed this episode and whose ack has not come; none when CE showed it.
    unproven: Option<u64>,
    /// Packets with challenges that left although the window was full, since it was not.
    pub(crate) challenges_beyond: u8,
}

impl Recovery {
    /// True while the episode lasts.
    pub(crate) fn is_under_way(&self) -> bool {
        self.open
    }

    /// True when a packet sent at `sent_at` left before the episode began.
    pub(crate) fn covers(&self, sent_at: Instant) -> bool {
        self.start.is_some_and(|start| sent_at <= start)
    }

    /// Begins an episode, unless the packet that shows it belongs to the one under way.
    fn begin(&mut self, now: Instant, sent_at: Instant) -> Begun {
        if self.covers(sent_at) {
            return Begun::No;
        }
        (self.start, self.open, self.unproven) = (Some(now), true, None);
        Begun::Yes
    }

    /// A packet sent at `sent_at` was acked.
    pub(crate) fn on_acked(&mut self, sent_at: Instant) {
        if !self.covers(sent_at) {
            self.open = false;
        }
    }

    /// A packet declared lost at `lost_at` was acked; true when this was the episode's last.
    pub(crate) fn on_spurious(&mut self, lost_at: Instant) -> bool {
        let Some(left) = self.unproven.filter(|_| self.covers_loss(lost_at)) else { return false };
        if left > 1 {
            self.unproven = Some(left - 1);
            return false;
        }
        (self.start, self.open, self.unproven) = (None, false, None);
        true
    }

    fn covers_loss(&self, lost_at: Instant) -> bool {
        self.start.is_some_and(|start| lost_at >= start)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begun {
    Yes,
    No,
}

/// What one pass of detection found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Losses {
    /// Packets declared lost.
    pub(crate) packets: u64,
    /// Bytes that left the flight.
    freed_bytes: u64,
    /// Bytes that show congestion: in flight, on this network path, not MTU probes.
    bytes: u64,
    /// Packets that show congestion.
    signs: u64,
    /// Bytes of all lost packets.
    all_bytes: u64,
    /// Lost packets that bore an ECN mark.
    marked: u32,
    /// The newest packet that shows congestion: when it left, and what it remembers of deliveries.
    newest: Option<(Instant, RateMark, AppLimited)>,
    /// Longest time over which everything sent was lost.
    span: Duration,
}

impl Losses {
    fn add(&mut self, entry: &SentPacket) {
        let bytes = u64::from(entry.info.bytes);
        self.packets += 1;
        self.all_bytes += bytes;
        self.marked += u32::from(entry.info.ecn_marked);
        if entry.counted {
            self.freed_bytes += bytes;
            // RFC 9000 14.4: the loss of a probe packet is no reliable sign of congestion
            if !entry.info.mtu_probe {
                self.bytes += bytes;
                self.signs += 1;
                let app_limited = if entry.info.app_limited { AppLimited::Yes } else { AppLimited::No };
                if self.newest.is_none_or(|(at, ..)| entry.sent_at >= at) {
                    self.newest = Some((entry.sent_at, entry.rate, app_limited));
                }
            }
        }
    }
}

/// When packets count as lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LossRule {
    pub(crate) now: Instant,
    pub(crate) delay: Duration,
    pub(crate) threshold: u64,
    pub(crate) first_rtt_at: Option<Instant>,
}

impl SpaceState {
    /// Declares lost what is overdue by order or time among packets sent before the largest acked, and notes when the next
    /// will be; none of them is ignored (RFC 9002 6.1, 7.4, A.10).
    ///
    /// Send times and numbers rise together, so the first packet that is not lost ends the pass; the cursor
    /// stays there and no number is passed twice.
    pub(crate) fn detect_lost(&mut self, space: Space, rule: &LossRule, feedback: &mut Feedback) -> Losses {
        let mut losses = Losses::default();
        self.loss_at = None;
        let Some(largest) = self.sent.largest_acked else { return losses };
        while self.sent.cursor < largest {
            let number = self.sent.cursor;
            let Some(entry) = self.sent.get(number).copied() else { break };
            match entry.state {
                PacketState::Acked => self.sent.lost_since = None,
                PacketState::Lost(_) | PacketState::Skipped => {}
                PacketState::Outstanding => {
                    let Some(trigger) = rule.verdict(&entry, number, largest) else {
                        self.loss_at = Some(entry.sent_at + rule.delay);
                        break;
                    };
                    self.sent.mark_lost(number, rule.now);
                    losses.add(&entry);
                    let bytes = entry.info.bytes;
                    feedback.lost_packets.push(LostPacket { space, number, trigger, bytes });
                    if !entry.handed_over {
                        feedback.lost.extend(self.sent.frames_of(&entry));
                    }
                    losses.span = losses.span.max(self.sent.extend_run(&entry, rule.first_rtt_at));
                }
            }
            self.sent.cursor += 1;
        }
        losses
    }
}

impl LossRule {
    fn verdict(&self, entry: &SentPacket, number: u64, largest: u64) -> Option<LossTrigger> {
        if largest >= number.saturating_add(self.threshold) {
            // RFC 9002 6.1.1: packet threshold
            Some(LossTrigger::Reordering)
        } else if entry.sent_at + self.delay <= self.now {
            // RFC 9002 6.1.2: time threshold
            Some(LossTrigger::Time)
        } else {
            None
        }
    }
}

impl SentPackets {
    /// Adds a lost packet to the unbroken run of losses; answers how long the run lasts by now.
    fn extend_run(&mut self, entry: &SentPacket, first_rtt_at: Option<Instant>) -> Duration {
        // RFC 9002 7.6.2: both ends ack-eliciting, and sent after the first RTT sample
        let after_sample = first_rtt_at.is_some_and(|at| entry.sent_at > at);
        if !after_sample || !entry.info.ack_eliciting || !entry.counted || entry.info.mtu_probe {
            return Duration::ZERO;
        }
        entry.sent_at.since(*self.lost_since.get_or_insert(entry.sent_at))
    }
}

impl SendFlow {
    /// The system refused a datagram of `bytes` as larger than the interface takes (EMSGSIZE): packets under way that are
    /// as large never left. What they carried comes out as lost, to leave in smaller ones; that is no sign of congestion.
    pub(crate) fn on_too_large(&mut self, now: Instant, bytes: u16, feedback: &mut Feedback) {
        for space in Space::ALL {
            let Some(state) = self.spaces[space as usize].as_deref_mut() else { continue };
            let sent = &mut state.sent;
            let (first, end) = sent.outstanding_numbers();
            for number in first..end {
                if sent.get(number).is_none_or(|entry| entry.info.bytes < bytes) {
                    continue;
                }
                let Some(before) = sent.mark_lost(number, now) else { continue };
                self.in_flight -= if before.counted { u64::from(before.info.bytes) } else { 0 };
                let trigger = LossTrigger::Discarded;
                feedback.lost_packets.push(LostPacket { space, number, trigger, bytes: before.info.bytes });
                if !before.handed_over {
                    feedback.lost.extend(sent.frames_of(&before));
                }
            }
        }
        self.check();
    }

    /// One pass of detection in `space`, with its consequences for window and validation.
    pub(crate) fn detect_lost(
        &mut self,
        now: Instant,
        space: Space,
        shared: &SharedPathMetrics,
        feedback: &mut Feedback,
    ) -> Losses {
        let Some(reordering) = self.space(space).map(|state| state.reordering) else { return Losses::default() };
        let rule = LossRule {
            now,
            delay: self.rtt.loss_delay(self.config.time_threshold) + reordering.extra_delay(self.rtt.smoothed()),
            threshold: reordering.packet_threshold(self.config.packet_threshold.max(3)),
            first_rtt_at: self.rtt.first_sample_at(),
        };
        let Some(state) = self.space_mut(space) else { return Losses::default() };
        let losses = state.detect_lost(space, &rule, feedback);
        self.in_flight -= losses.freed_bytes;
        self.counters.on_lost(losses.packets, losses.all_bytes);
        self.ecn.on_lost(losses.marked);
        if let Some((newest, mark, app_limited)) = losses.newest {
            self.rate.on_lost(losses.bytes);
            let delivery = self.rate.delivery(mark, app_limited);
            self.controller.on_lost(&Lost { now, bytes: losses.bytes, in_flight: self.flight(), delivery });
            self.on_congestion(now, newest, CongestionKind::Loss, losses.bytes, shared);
            let queued = self.rtt.smoothed().max(self.rtt.latest()).saturating_sub(self.rtt.min());
            self.pacer.on_lost(queued, &self.pace());
            if let Some(unproven) = &mut self.recovery.unproven {
                *unproven += losses.signs;
            }
        }
        self.check_persistent(now, space, &losses, shared);
        losses
    }

    /// Whether another path is in use.
    pub(crate) fn company(&self, now: Instant, shared: &SharedPathMetrics) -> Company {
        let rtt = self.rtt.smoothed();
        let has_siblings = shared.established().any(|p| p.path != self.path && p.is_in_use(now, rtt));
        if has_siblings { Company::Siblings } else { Company::Alone }
    }

    /// Cuts the window once per recovery period (RFC 9002 7.3.2).
    pub(crate) fn on_congestion(
        &mut self,
        now: Instant,
        sent_at: Instant,
        kind: CongestionKind,
        lost_bytes: u64,
        shared: &SharedPathMetrics,
    ) {
        if self.recovery.begin(now, sent_at) == Begun::No {
            return;
        }
        if kind == CongestionKind::Loss {
            self.recovery.unproven = Some(0);
        }
        self.counters.congestion_events += 1;
        let in_flight = self.flight();
        self.controller
            .on_congestion(&Congestion { path: self.path, now, sent_at, kind, lost_bytes, in_flight }, shared);
    }

    fn check_persistent(&mut self, now: Instant, space: Space, losses: &Losses, shared: &SharedPathMetrics) {
        // RFC 9002 7.6.1: the ack delay counts in every space
        let limit = (self.rtt.pto_base() + self.config.max_ack_delay) * PERSISTENT_TIMEOUTS;
        if losses.span <= limit {
            return;
        }
        let (path, in_flight, lost_bytes) = (self.path, self.flight(), losses.bytes);
        let sent_at = losses.newest.map_or(now, |(sent_at, ..)| sent_at);
        let kind = CongestionKind::Persistent;
        self.controller.on_congestion(&Congestion { path, now, sent_at, kind, lost_bytes, in_flight }, shared);
        self.counters.persistent += 1;
        // RFC 9002 B.8: the period ends, so that slow start may begin at once
        self.recovery = Recovery::default();
        self.rtt.restart_min();
        if let Some(state) = self.space_mut(space) {
            state.sent.lost_since = None;
        }
    }
}
