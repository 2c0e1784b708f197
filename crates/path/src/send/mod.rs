//! One direction's sender: packet numbers, the record of what was sent, RTT, loss, probes, window, pace and ECN.

mod ack;
mod builder;
mod copies;
mod early_acks;
mod ecn;
mod loss;
pub(crate) mod mtu;
mod number_filter;
mod own_way;
pub(crate) mod pair_rtts;
mod pto;
mod punctuality;
mod rate;
mod recent;
mod reorder;
mod rtt;
mod sent_packets;
mod stats;
#[cfg(test)]
mod tests;

use std::time::Duration;

use plait_base::limits::{INITIAL_RTT, MAX_UNANSWERED_ACKS};
use plait_base::observe::LossTrigger;
use plait_base::shared_metrics::{PathMetrics, SharedPathMetrics};
use plait_base::{Ecn, EcnCounts, Instant, PathId, Random, Space};
use plait_congestion::{CongestionController, NO_THRESHOLD, Pace, Pacer};
use plait_crypto::SealMark;
use plait_wire::{Frame, SentFrame};

pub use builder::{Built, PacketBuilder, Padding, Sealer};
pub use copies::{CopyChoice, FlightOrder, InFlight};
pub use ecn::EcnMode;
pub use mtu::{MtuConfig, MtuSearch};
pub(crate) use pto::ProbeGate;
pub use pto::{HandshakeState, TimerFired};
pub use stats::SendStats;

use crate::feedback::{Feedback, LostPacket};
use ecn::EcnValidator;
use loss::Recovery;
use number_filter::PacketNumberFilter;
use own_way::OwnWay;
use pto::ProbeTimer;
use rate::{AppLimited, Idle, Leaving, RateEstimator, RateMark};
use reorder::Reordering;
use rtt::RttEstimator;
use sent_packets::SentPackets;
use stats::Counters;

/// Where ways are alike in both directions, acks save no more than half of the round trip. Beyond twice as much, an own way that
/// is all but closed would keep a path with a good way there from being used at all.
const SHORTCUT_ROUNDS_MAX: u32 = 3;
/// So a window is made at most so many times as large when the own way is heard of.
const TIMES_MAX: f64 = 1.0 + SHORTCUT_ROUNDS_MAX as f64;
/// In so many parts what was acked early before that leaves.
const ADOPTED_PARTS: u32 = 16;

/// Whether packets are spread over the round trip (RFC 9002 7.7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pacing {
    /// Packets leave spread over the round trip.
    #[default]
    On,
    /// Send whatever the window admits at once.
    Off,
}

/// What a probe carries so that it asks for an ack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProbePrompt {
    /// PING, whose ack may wait for the peer's max_ack_delay.
    #[default]
    Ping,
    /// IMMEDIATE_ACK: the peer knows it, and may have been asked to wait with others.
    ImmediateAck,
}

impl ProbePrompt {
    /// The frame that asks for an ack.
    pub fn frame(self) -> Frame<'static> {
        match self {
            Self::Ping => Frame::Ping,
            Self::ImmediateAck => Frame::ImmediateAck,
        }
    }
}

/// How a send flow is set up.
#[derive(Clone, Debug)]
pub struct SendConfig {
    /// RTT assumed before the first sample (RFC 9002 6.2.2).
    pub initial_rtt: Duration,
    /// Largest datagram that we send at first, bytes of UDP payload.
    pub max_datagram_bytes: u16,
    /// Whether to try ECN.
    pub ecn: EcnMode,
    /// A packet is lost when one so many numbers later was acked (RFC 9002 6.1.1); at least 3. Reordering makes it more.
    pub packet_threshold: u64,
    /// A packet is lost after this multiple of the RTT, as numerator and denominator (RFC 9002 6.1.2). Reordering makes it
    /// longer, by a round trip at most.
    pub time_threshold: (u32, u32),
    /// The peer's max_ack_delay (RFC 9000 18.2).
    pub max_ack_delay: Duration,
    /// What probes carry.
    pub probe_prompt: ProbePrompt,
    /// Whether to pace.
    pub pacing: Pacing,
    /// Bytes that pacing lets leave at once, at most, though always one datagram; none leaves it to the pacer.
    pub max_burst_bytes: Option<u64>,
    /// How far the handshake is; paths other than the first begin after it.
    pub handshake: HandshakeState,
    /// Chooses packet numbers to leave out, so that acks of what was not received show (RFC 9000 21.4);
    /// without it no number is left out.
    pub skip: Option<Box<Random>>,
}

impl Default for SendConfig {
    fn default() -> Self {
        Self {
            initial_rtt: INITIAL_RTT,
            max_datagram_bytes: 1200,
            ecn: EcnMode::default(),
            packet_threshold: 3,
            time_threshold: (9, 8),
            max_ack_delay: Duration::from_millis(25),
            probe_prompt: ProbePrompt::Ping,
            pacing: Pacing::default(),
            max_burst_bytes: None,
            handshake: HandshakeState::Confirmed,
            skip: None,
        }
    }
}

/// Facts of one packet that is about to be remembered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketInfo {
    /// Its size, bytes of UDP payload.
    pub bytes: u16,
    /// Asks for an ack: carries more than ACK, PADDING and CONNECTION_CLOSE.
    pub ack_eliciting: bool,
    /// Counts against the window: ack-eliciting or padded (RFC 9002 2).
    pub in_flight: bool,
    /// Left with the mark that [`Path::departure`](crate::Path::departure) gave.
    pub ecn_marked: bool,
    /// An MTU probe: its loss is no sign of congestion (RFC 9000 14.4).
    pub mtu_probe: bool,
    /// Left while there was nothing more to send.
    pub app_limited: bool,
    /// Repeats what another path carries, or is repeated there: not worth one more copy.
    pub repeats: bool,
    /// Left between other addresses than the path's own, to validate them: its fate says nothing of the path (RFC 9000 9.4).
    pub elsewhere: bool,
}

impl PacketInfo {
    /// True when silence after it counts against the path.
    fn awaits_ack(&self) -> bool {
        self.ack_eliciting && !self.elsewhere
    }
}

/// An ACK or PATH_ACK frame's fixed part; its ranges go beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckReport {
    /// Largest number that it acknowledges.
    pub largest: u64,
    /// How long the peer held it back, decoded with its exponent.
    pub delay: Duration,
    /// ECN counts, where it has them.
    pub ecn: Option<EcnCounts>,
    /// The path on which it arrived: with ours it makes the pair that the RTT sample measures.
    pub via: PathId,
}

/// What an ack brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckOutcome {
    /// Ack-eliciting packets acknowledged for the first time.
    pub newly_acked_eliciting: u64,
    /// Window bytes freed.
    pub newly_acked_bytes: u64,
    /// Number and bytes of the largest datagram acknowledged for the first time: such a size passes.
    pub(crate) biggest: Option<(u64, u16)>,
    /// When the newest packet acknowledged for the first time was sent.
    pub newest_sent_at: Option<Instant>,
    /// A new RTT sample was taken.
    pub rtt_updated: bool,
}

/// Whether one more datagram may leave now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendRoom {
    /// A datagram may leave.
    Free,
    /// The congestion window is full.
    Window,
    /// Not before this time.
    Paced(Instant),
}

/// Packets with challenges that may leave although the window is full: as many as one validation sends.
const MAX_CHALLENGES_BEYOND: u8 = 3;

/// Whether a path's figures count for its siblings' coupled controllers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Activity {
    /// It carries data now.
    #[default]
    Active,
    /// It does not: backup, failed, not validated or closing.
    Idle,
}

/// One number space of the flow.
#[derive(Debug, Default)]
pub(crate) struct SpaceState {
    sent: SentPackets,
    /// When the oldest outstanding packet below the largest acked one will count as lost.
    loss_at: Option<Instant>,
    probes: pto::Probes,
    /// Packets below were sent on an earlier network path and say nothing of this one.
    path_start: u64,
    /// Packets below were sent before the path moved the last time but one: nothing is expected of them any more.
    stale_below: u64,
    /// What late acks showed of the network path's order.
    reordering: Reordering,
}

/// Everything that one path's sender keeps, for all its number spaces; path 0 has three, others only `Data`.
///
/// Invariant: `in_flight` is the sum of the bytes of all packets that are in flight, outstanding and were sent
/// on the present network path.
#[derive(Debug)]
pub(crate) struct SendFlow {
    path: PathId,
    config: SendConfig,
    spaces: [Option<Box<SpaceState>>; 3],
    rtt: RttEstimator,
    ecn: EcnValidator,
    controller: Box<dyn CongestionController>,
    pacer: Pacer,
    recovery: Recovery,
    timer: ProbeTimer,
    rate: RateEstimator,
    number_filter: PacketNumberFilter,
    counters: Counters,
    in_flight: u64,
    /// In `Data`, packets up to this number left while the window was in use.
    window_used_until: u64,
    activity: Activity,
    seal_mark: SealMark,
}

impl SendFlow {
    /// A flow that has sent nothing. Path 0 gets the Initial and Handshake spaces as well.
    pub(crate) fn new(
        path: PathId,
        now: Instant,
        controller: Box<dyn CongestionController>,
        mut config: SendConfig,
    ) -> Self {
        let space = || Some(Box::<SpaceState>::default());
        let handshake = || if path == PathId::ZERO { space() } else { None };
        Self {
            path,
            spaces: [handshake(), handshake(), space()],
            rtt: RttEstimator::new(config.initial_rtt, Some(path)),
            ecn: EcnValidator::new(config.ecn),
            controller,
            pacer: Pacer::new(now, config.max_burst_bytes),
            recovery: Recovery::default(),
            timer: ProbeTimer::new(now, config.handshake),
            rate: RateEstimator::new(now),
            number_filter: PacketNumberFilter::new(config.skip.take().map(|random| *random)),
            counters: Counters::default(),
            in_flight: 0,
            window_used_until: 0,
            activity: Activity::default(),
            seal_mark: SealMark::default(),
            config,
        }
    }

    #[inline]
    fn space(&self, space: Space) -> Option<&SpaceState> {
        self.spaces[space as usize].as_deref()
    }

    fn space_mut(&mut self, space: Space) -> Option<&mut SpaceState> {
        self.spaces[space as usize].as_deref_mut()
    }

    /// Gives back the memory that waits for packets to come.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.spaces.iter_mut().flatten().for_each(|state| state.sent.shrink_to_fit());
    }

    /// The number that the next packet of `space` bears.
    #[inline]
    pub(crate) fn next_number(&self, space: Space) -> u64 {
        self.space(space).map_or(0, |s| s.sent.next())
    }

    /// The largest number that the peer acknowledged.
    #[inline]
    pub(crate) fn largest_acked(&self, space: Space) -> Option<u64> {
        self.space(space)?.sent.largest_acked
    }

    /// True while an ack of the newest ack-eliciting packet of `Data` may be on its way: less than a round trip has passed.
    pub(crate) fn expects_ack(&self, now: Instant) -> bool {
        let sent_at = self.space(Space::Data).and_then(|state| state.sent.eliciting_sent_at);
        sent_at.is_some_and(|at| now.since(at) < self.rtt.smoothed())
    }

    /// True when `space` has ack-eliciting packets outstanding.
    #[inline]
    pub(crate) fn is_awaiting_ack(&self, space: Space) -> bool {
        self.space(space).is_some_and(|s| s.sent.eliciting > 0)
    }

    /// When the only packet of `space` left whose ack is awaited; none where there is none, or several.
    #[inline]
    pub(crate) fn asked_at(&self, space: Space) -> Option<Instant> {
        self.space(space).filter(|s| s.sent.eliciting == 1)?.sent.eliciting_sent_at
    }

    /// Remembers the packet that takes [`next_number`](Self::next_number).
    pub(crate) fn on_sent(&mut self, now: Instant, space: Space, packet: &PacketInfo, carried: &[SentFrame]) {
        self.prepare_books(now, space);
        self.book(now, space, packet, carried);
    }

    /// Packets of `space` leave now: makes room for them by what need not be remembered any longer.
    pub(crate) fn prepare_books(&mut self, now: Instant, space: Space) {
        let keep = self.loss_memory();
        if let Some(state) = self.space_mut(space) {
            state.sent.trim(now, keep);
        }
    }

    /// Remembers the packet that takes [`next_number`](Self::next_number), after [`prepare_books`](Self::prepare_books).
    #[inline]
    pub(crate) fn book(&mut self, now: Instant, space: Space, packet: &PacketInfo, carried: &[SentFrame]) {
        let (mark, app_limited) = self.mark(now, packet);
        let is_first = self.in_flight == 0 && packet.ack_eliciting && !packet.elsewhere && space == Space::Data;
        let packet = &PacketInfo { app_limited: app_limited == AppLimited::Yes, ..*packet };
        let Some(state) = self.spaces[space as usize].as_deref_mut() else { return };
        let number = state.sent.next();
        state.sent.push(now, packet, mark, carried);
        if packet.ack_eliciting && !packet.elsewhere {
            state.probes.on_sent();
            self.timer.on_progress(now);
        }
        if space == Space::Data && self.number_filter.skips(state.sent.next()) {
            state.sent.skip(now);
        }
        let bytes = u64::from(packet.bytes);
        // RFC 9000 9.4: challenges to other addresses are not subject to this path's window
        if packet.in_flight && !packet.elsewhere {
            self.in_flight += bytes;
            self.pacer.on_sent(bytes);
            self.controller.on_sent(now, bytes, self.flight(), number);
            self.note_window_use(space, number);
        }
        if is_first {
            self.rtt.on_flight_sent(number, now, self.rate.estimate_bps());
        }
        if packet.ecn_marked {
            self.ecn.on_sent(now, space, self.rtt.pto_base());
        }
        self.counters.on_sent(bytes);
        self.check();
    }

    /// What a packet that leaves now remembers of deliveries, and whether they go as fast as they can.
    fn mark(&mut self, now: Instant, packet: &PacketInfo) -> (RateMark, AppLimited) {
        let bytes = if packet.in_flight { u64::from(packet.bytes) } else { 0 };
        let flight_bytes = self.flight() + bytes;
        let open = flight_bytes + u64::from(self.config.max_datagram_bytes) <= self.controller.window();
        // Nothing more to send, or a path that window and pacer left free for a while: others set its pace.
        let unasked = !self.rate.was_window_full() && self.pacer.is_rested();
        let app_limited = if open && (packet.app_limited || unasked) { AppLimited::Yes } else { AppLimited::No };
        let idle = if self.in_flight == 0 { Idle::Yes } else { Idle::No };
        self.rate.on_sent(now, &Leaving { idle, app_limited, flight_bytes })
    }

    /// RFC 9002 7.8: a window that is not used says nothing about what the path could carry.
    fn note_window_use(&mut self, space: Space, number: u64) {
        let window = self.controller.window();
        let slow_start = window < self.controller.ssthresh();
        let used = self.flight() + u64::from(self.config.max_datagram_bytes) > window
            || (slow_start && self.flight() * 2 >= window);
        if used && space == Space::Data {
            self.window_used_until = number + 1;
        }
    }

    /// A packet of `bytes` may be chosen for this path now: refills the pacer and remembers a full window, by which the
    /// delivery rate tells who sets the pace. Call it before [`Self::room`] where the answer is acted upon.
    pub(crate) fn prepare_to_send(&mut self, now: Instant, bytes: u64) {
        self.rtt.own_way_mut().early_acks.expire(now);
        if self.flight() + bytes > self.controller.window() {
            self.rate.on_window_full();
        } else if self.config.pacing == Pacing::On {
            let pace = self.pace();
            self.pacer.refill(now, &pace);
        }
    }

    /// The host woke up later by so much than the pacer had asked for.
    pub(crate) fn on_late(&mut self, by: Duration) {
        self.pacer.on_late(by);
    }

    /// A packet with a challenge left between the path's own addresses.
    pub(crate) fn on_challenge_sent(&mut self) {
        if self.flight() > self.controller.window() {
            self.recovery.challenges_beyond = self.recovery.challenges_beyond.saturating_add(1);
        }
    }

    /// Whether a challenge may leave, of so many `bytes`. Where the window is full, a few may, as probes do: the peer's address
    /// changed, and what fills the window may have been lost on the way to the old one.
    pub(crate) fn admits_challenge(&self, bytes: u64) -> bool {
        self.flight() + bytes <= self.controller.window() || self.recovery.challenges_beyond < MAX_CHALLENGES_BEYOND
    }

    /// Whether `bytes` more may leave now (RFC 9002 7). Probes after a time-out need not ask (RFC 9002 7.5).
    #[inline]
    pub(crate) fn room(&self, now: Instant, bytes: u64) -> SendRoom {
        let excess = (self.flight() + bytes).saturating_sub(self.controller.window());
        if excess > 0 {
            match self.rtt.own_way().early_acks.free_at(excess) {
                Some(at) if at > now => return SendRoom::Paced(at),
                Some(_) => {}
                None => return SendRoom::Window,
            }
        }
        let has_credit = || self.pacer.has_credit(now, u64::from(self.config.max_datagram_bytes));
        if self.config.pacing == Pacing::Off || has_credit() {
            return SendRoom::Free;
        }
        match self.pacer.ready_at(now, &self.pace()) {
            Some(at) if at > now => SendRoom::Paced(at),
            _ => SendRoom::Free,
        }
    }

    #[inline]
    fn pace(&self) -> Pace {
        let shortcut = self.shortcut();
        let srtt = self.rtt.smoothed();
        let srtt = if shortcut.is_zero() { srtt } else { srtt + shortcut };
        let rate = self.controller.pacing_rate(srtt);
        Pace {
            srtt,
            window_bytes: self.controller.window(),
            max_datagram_bytes: u64::from(self.config.max_datagram_bytes),
            rate,
            idle: self.in_flight == 0,
        }
    }

    /// The mark for the next packet's IP header.
    #[inline]
    pub(crate) fn ecn(&self) -> Option<Ecn> {
        self.ecn.mark()
    }

    /// The first number sealed under each key phase, for [`OneRttKeys::seal_packet`](plait_crypto::OneRttKeys).
    #[inline]
    pub(crate) fn seal_mark_mut(&mut self) -> &mut SealMark {
        &mut self.seal_mark
    }

    /// The same, to read.
    pub(crate) fn seal_mark(&self) -> &SealMark {
        &self.seal_mark
    }

    /// The RTT estimate.
    #[inline]
    pub(crate) fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// Bytes in flight.
    #[inline]
    pub(crate) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// The same as a flow would have it whose acks take the path's own way back.
    #[inline]
    fn flight(&self) -> u64 {
        self.in_flight + self.rtt.own_way().early_acks.bytes()
    }

    /// How much sooner acks come than by the path's own way back, as far as that counts.
    #[inline]
    fn shortcut(&self) -> Duration {
        let difference = self.rtt.own_way().difference();
        if difference.is_zero() { difference } else { difference.min(self.rtt.smoothed() * SHORTCUT_ROUNDS_MAX) }
    }

    /// Congestion window, bytes, as far as early acks leave it.
    #[inline]
    pub(crate) fn window(&self) -> u64 {
        self.controller.window().saturating_sub(self.rtt.own_way().early_acks.bytes())
    }

    /// Slow start threshold, bytes.
    #[inline]
    pub(crate) fn ssthresh(&self) -> u64 {
        self.controller.ssthresh()
    }

    /// Changes to another controller, which begins with its own first window; what is in flight stays counted.
    pub(crate) fn replace_controller(&mut self, mut controller: Box<dyn CongestionController>) {
        controller.on_max_datagram_bytes(u64::from(self.config.max_datagram_bytes));
        self.controller = controller;
    }

    /// Largest datagram, bytes of UDP payload.
    #[inline]
    pub(crate) fn max_datagram_bytes(&self) -> u16 {
        self.config.max_datagram_bytes
    }

    /// The path MTU changed.
    pub(crate) fn set_max_datagram_bytes(&mut self, bytes: u16) {
        self.config.max_datagram_bytes = bytes;
        self.controller.on_max_datagram_bytes(u64::from(bytes));
    }

    /// The peer's max_ack_delay became known.
    pub(crate) fn set_max_ack_delay(&mut self, delay: Duration) {
        self.config.max_ack_delay = delay;
    }

    /// The peer is asked for acks by ACK_FREQUENCY, and may have this max_ack_delay from now on.
    pub(crate) fn set_requested_acks(&mut self, delay: Duration) {
        self.config.max_ack_delay = delay;
        self.config.probe_prompt = ProbePrompt::ImmediateAck;
    }

    pub(crate) fn probe_prompt(&self) -> ProbePrompt {
        self.config.probe_prompt
    }

    /// Packets acknowledged beyond a missing one after which it counts as lost (RFC 9002 6.1.1).
    pub(crate) fn packet_threshold(&self) -> u64 {
        let fixed = self.config.packet_threshold.max(3);
        self.space(Space::Data).map_or(fixed, |state| state.reordering.packet_threshold(fixed))
    }

    /// Acks that came back over `path` will no more: the smallest RTT is learned anew.
    pub(crate) fn on_ack_path_closing(&mut self, path: PathId) {
        self.rtt.forget_via(path);
    }

    /// It is a uniflow: none of the ways back is its own.
    /// The answer to a challenge of `asked_at` came.
    pub(crate) fn on_answer(&mut self, now: Instant, asked_at: Instant) {
        self.rtt.own_way_mut().on_answer(now, asked_at);
    }

    /// Makes a window that was learnt by the acks' shorter round trip one of the path's own: when acks go home, else after the first
    /// slow start.
    fn adopt_own_way(&mut self, now: Instant) {
        if let Some(times) = self.rtt.own_way_mut().take_longer() {
            self.controller.on_longer_way_back(times.min(TIMES_MAX));
        }
        if self.controller.ssthresh() == NO_THRESHOLD {
            return;
        }
        let smoothed = self.rtt.smoothed();
        let Some(times) = self.rtt.own_way_mut().believe(now, smoothed) else { return };
        let times = times.min(TIMES_MAX);
        self.controller.on_longer_way_back(times);
        // What was acked in the last of these times would be under way yet.
        let (early, shortcut) = ((self.in_flight as f64 * (times - 1.0)) as u64, self.shortcut());
        let early_acks = &mut self.rtt.own_way_mut().early_acks;
        for part in 1..=ADOPTED_PARTS {
            early_acks.on_acked(now, shortcut * part / ADOPTED_PARTS, early / u64::from(ADOPTED_PARTS));
        }
    }

    pub(crate) fn forget_own_way(&mut self) {
        *self.rtt.own_way_mut() = OwnWay::new(None);
    }

    /// Whether the path carries data now; its siblings read this with its other metrics.
    pub(crate) fn set_activity(&mut self, shared: &mut SharedPathMetrics, activity: Activity) {
        self.activity = activity;
        self.update_shared(shared);
    }

    fn update_shared(&self, shared: &mut SharedPathMetrics) {
        let metrics = shared.entry(self.path);
        *metrics = PathMetrics {
            window_bytes: self.controller.window(),
            ssthresh_bytes: self.controller.ssthresh(),
            rtt: self.rtt.measured(),
            rtt_min: self.rtt.min(),
            ack_shortcut: self.shortcut(),
            max_datagram_bytes: u64::from(self.config.max_datagram_bytes),
            in_recovery: self.recovery.is_under_way(),
            active: self.activity == Activity::Active,
            between_losses_bytes: self.controller.between_losses_bytes(),
            acked_at: self.timer.acked_at(),
            ..PathMetrics::new(self.path)
        };
        self.controller.add_to_metrics(metrics);
    }

    /// The keys of `space` are gone: its packets leave the flight and nothing of them is sent again
    /// (RFC 9002 6.4). Their numbers are reported as discarded, their frames are not.
    pub(crate) fn discard(&mut self, now: Instant, space: Space, feedback: &mut Feedback) {
        let Some(state) = self.spaces[space as usize].take() else { return };
        for (number, entry) in state.sent.outstanding() {
            let bytes = entry.info.bytes;
            feedback.lost_packets.push(LostPacket { space, number, trigger: LossTrigger::Discarded, bytes });
        }
        self.in_flight -= state.sent.counted_bytes();
        // RFC 9002 6.2.2: discarding keys resets the backoff
        self.timer.reset_backoff();
        self.timer.on_progress(now);
        self.check();
    }

    /// Reports everything outstanding in `space` as lost without a sign of congestion: Retry, version change,
    /// rejected 0-RTT. Numbers go on.
    pub(crate) fn declare_all_lost(&mut self, now: Instant, space: Space, feedback: &mut Feedback) {
        let Some(state) = self.spaces[space as usize].as_deref_mut() else { return };
        let sent = &mut state.sent;
        let mut number = sent.cursor;
        while number < sent.next() {
            if let Some(before) = sent.mark_lost(number, now) {
                self.in_flight -= if before.counted { u64::from(before.info.bytes) } else { 0 };
                let (trigger, bytes) = (LossTrigger::Discarded, before.info.bytes);
                feedback.lost_packets.push(LostPacket { space, number, trigger, bytes });
                if !before.handed_over {
                    feedback.lost.extend(sent.frames_of(&before));
                }
            }
            number += 1;
        }
        sent.cursor = number;
        sent.lost_since = None;
        state.loss_at = None;
        state.probes = pto::Probes::default();
        self.check();
    }

    /// Forgets packets of a space whose peer makes us send without end what no timer waits for, acks or answers to other addresses,
    /// and acknowledges nothing: the oldest, and those that left before the last two moves of the path. What some of them had to
    /// deliver comes out as lost, to be sent again; the window is not touched. True where there were such.
    #[inline]
    pub(crate) fn prune(&mut self, now: Instant, space: Space, feedback: &mut Feedback) -> bool {
        let has_stale = self.space(space).is_some_and(|state| {
            state.sent.unawaited > MAX_UNANSWERED_ACKS || state.sent.reaches_below(state.stale_below)
        });
        if has_stale {
            self.prune_stale(now, space, feedback);
        }
        has_stale
    }

    #[cold]
    fn prune_stale(&mut self, now: Instant, space: Space, feedback: &mut Feedback) {
        let Some(state) = self.spaces[space as usize].as_deref_mut() else { return };
        let (sent, stale) = (&mut state.sent, state.stale_below);
        // Many at once, so that it is done rarely.
        let most = if sent.unawaited > MAX_UNANSWERED_ACKS { MAX_UNANSWERED_ACKS / 2 } else { usize::MAX };
        let (mut number, end) = sent.outstanding_numbers();
        while number < end && (number < stale || sent.unawaited > most) {
            if let Some(before) = sent.mark_lost(number, now) {
                self.in_flight -= if before.counted { u64::from(before.info.bytes) } else { 0 };
                if before.info.in_flight && !before.handed_over {
                    feedback.lost.extend(sent.frames_of(&before));
                }
            }
            number += 1;
        }
        sent.forget_below(if most == usize::MAX { stale } else { number });
        self.check();
    }

    /// Nothing more is sent on the path: all that is outstanding counts as lost (RFC 10069 3.4.3).
    pub(crate) fn on_closing(&mut self, now: Instant, feedback: &mut Feedback) {
        Space::ALL.into_iter().for_each(|space| self.declare_all_lost(now, space, feedback));
    }

    /// The path moved to another address (RFC 9000 9.4): window, ECN and RTT begin anew. Packets that were
    /// sent before still report their frames, but touch neither window nor RTT.
    pub(crate) fn reset_for_new_address(&mut self, now: Instant, controller: Box<dyn CongestionController>) {
        for state in self.spaces.iter_mut().flatten() {
            (state.stale_below, state.path_start) = (state.path_start, state.sent.next());
            state.sent.uncount();
            state.probes = pto::Probes::default();
            state.reordering = Reordering::default();
        }
        self.in_flight = 0;
        self.controller = controller;
        self.pacer = Pacer::new(now, self.config.max_burst_bytes);
        self.recovery = Recovery::default();
        self.ecn.restart(self.config.ecn);
        self.rate = RateEstimator::new(now);
        self.window_used_until = 0;
        self.timer.reset_backoff();
        self.timer.on_progress(now);
        self.rtt = self.rtt.restarted(self.config.initial_rtt);
        self.check();
    }

    /// Appends the frames of every outstanding packet of `Data`, to be sent on another path; a later loss of
    /// these packets does not report the frames again. Oldest first.
    pub(crate) fn hand_over_in_flight(&mut self, out: &mut Vec<SentFrame>) {
        if let Some(state) = self.spaces[Space::Data as usize].as_deref_mut() {
            state.sent.hand_over_outstanding(out);
        }
    }

    /// Appends the frames of the oldest outstanding ack-eliciting packets of `space` that were not handed out, `skip` of
    /// them left out and `packets` taken: what probes should carry (RFC 9002 6.2.4). Nothing is marked; these packets may
    /// still be acked or lost.
    pub(crate) fn oldest_frames(&self, space: Space, skip: usize, packets: usize, out: &mut Vec<SentFrame>) {
        let Some(state) = self.space(space) else { return };
        let waits = |e: &sent_packets::SentPacket| e.info.awaits_ack() && !e.info.mtu_probe && !e.handed_over;
        let waiting = state.sent.outstanding().filter(|(_, entry)| waits(entry));
        for (_, entry) in waiting.skip(skip).take(packets) {
            out.extend(state.sent.frames_of(entry));
        }
    }

    /// What the next probe of `space` should carry: each of those that were asked for takes another of the oldest packets.
    pub(crate) fn probe_frames(&self, space: Space, out: &mut Vec<SentFrame>) {
        let sent = self.space(space).map_or(0, |state| state.probes.sent);
        self.oldest_frames(space, sent.into(), 1, out);
    }

    /// How long a lost packet is remembered, so that a late ack of it is understood.
    fn loss_memory(&self) -> Duration {
        (self.rtt.pto_base() + self.config.max_ack_delay) * 3
    }

    /// Checks the invariant on bytes in flight; only in debug builds, and while it is cheap.
    fn check(&self) {
        if cfg!(debug_assertions) {
            let spaces = self.spaces.iter().flatten();
            if spaces.clone().map(|s| s.sent.len()).sum::<usize>() <= 256 {
                let sum: u64 = spaces.map(|s| s.sent.counted_bytes()).sum();
                debug_assert_eq!(self.in_flight, sum, "bytes in flight");
            }
        }
    }
}
