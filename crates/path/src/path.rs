//! One path: its addresses, its largest datagram, what it sends and receives, and how it fares.

mod departure;
mod moving;
mod train;

use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use plait_base::observe::{PathState, TraceEvent};
use plait_base::shared_metrics::SharedPathMetrics;
use plait_base::{ConnectionId, Ecn, FourTuple, Instant, PathId, Space, Violation};
use plait_congestion::CongestionController;
use plait_crypto::{OneRttKeys, SealMark};
use plait_wire::SentFrame;

use crate::ack_frequency::AckTerms;
use crate::addresses::{FourTupleRole, PathAddresses, ValidationTimes};
use crate::feedback::Feedback;
use crate::pairing::Pairing;
use crate::policy::AckCarrier;
use crate::receive::{AckPolicy, Eliciting, ReceiveFlow};
use crate::send::mtu::{Mtu, MtuConfig};
use crate::send::pair_rtts::PairRtts;
use crate::send::{
    AckOutcome, AckReport, Activity, HandshakeState, PacketInfo, ProbeGate, ProbePrompt, SendConfig, SendFlow,
    TimerFired,
};
use crate::spin::SpinBit;
use crate::stats::{PathCounters, PathTotals};

pub use departure::Departure;
pub use train::{TRAIN_PADDING_BYTES, TrainEnd, TrainPlan, TrainSource};

/// A failed path is probed at least this often, so that its return is noticed soon.
const FAILED_PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// A packet that came within this part of a probe time-out shows that we still hear on the path.
const HEARD_PART: u32 = 4;
/// Oldest packets in flight whose control frames go again after a time-out (RFC 9002 6.2.4: one or two).
const PACKETS_PER_TIMEOUT: usize = 2;

/// Whether another path can take over what a path has under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakeOver {
    /// Another path works.
    Possible,
    /// No other path works.
    Alone,
}

/// What a probe time-out means for a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeTimeout {
    /// Probe time-outs in a row.
    pub count: u32,
    /// We hear on the path, and wait for no data of ours: any packet came within a quarter of a probe time-out, and what goes
    /// again holds no payload, which on the only path that works is that of the oldest two packets. Acks that queue behind
    /// the peer's data are late, not lost.
    pub only_hears: bool,
}

/// A timer of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathTimer {
    /// Packets may be lost.
    Loss,
    /// Nothing was acknowledged for long.
    Probe,
    /// The peer sent, and then nothing for long.
    Pause,
}

/// How a path is set up.
#[derive(Clone, Debug)]
pub struct PathConfig {
    /// What sizes of datagrams it tries.
    pub mtu: MtuConfig,
    /// What it sends.
    pub send: SendConfig,
    /// When it acknowledges.
    pub acks: AckPolicy,
    /// The spin bit of what it sends.
    pub spin: SpinBit,
}

/// One path of a connection: a send flow and a receive flow of the same id, on one pair of addresses.
#[derive(Debug)]
pub struct Path {
    id: PathId,
    pub(crate) addresses: PathAddresses,
    /// What we send: numbers, sent packets, RTT, loss, window.
    pub(crate) send: SendFlow,
    /// What we receive: numbers seen and acks owed.
    pub receive: ReceiveFlow,
    pub(crate) spin: SpinBit,
    mtu: Mtu,
    counters: PathCounters,
    /// When something last left on it; for keep-alive, since silence lets NATs forget (RFC 9000 10.1.2).
    sent_at: Option<Instant>,
    /// When to ask the peer whether it still reaches us here, since what it was sending has stopped.
    pause_ping_at: Option<Instant>,
    /// When it last brought stream data or a datagram of the application.
    payload_at: Option<Instant>,
    /// Our connection id to which the peer's newest packet at its present addresses came.
    heard_cid: Option<ConnectionId>,
    /// Addresses of the newest packet that arrived, where those say nothing of our own way.
    heard_from: Option<Box<FourTuple>>,
    /// Addresses between which RTT and window were learned.
    learned_at: FourTuple,
    /// Potentially failed: no ack came since a probe time-out, or our own address is gone.
    is_failed: bool,
    /// Whether what arrives under its id says anything of what leaves.
    pairing: Pairing,
    /// Where it says nothing: the round trips by each receive flow that brought acks, once there are any.
    pair_rtts: Option<Box<PairRtts>>,
}

/// Data of the application, as against what only steers the peer.
fn is_payload(frame: &SentFrame) -> bool {
    matches!(frame, SentFrame::Stream { .. } | SentFrame::Datagram { .. })
}

impl Path {
    /// A path at `addresses` that has sent nothing.
    pub fn new(
        id: PathId,
        now: Instant,
        addresses: PathAddresses,
        controller: Box<dyn CongestionController>,
        config: PathConfig,
    ) -> Self {
        let PathConfig { mtu, send, acks, spin } = config;
        let learned_at = addresses.tuple();
        let mut receive = ReceiveFlow::new(id, Space::Data, acks);
        if id != PathId::ZERO {
            // Path 0 has the handshake's samples.
            receive.on_new_way();
        }
        Self {
            id,
            addresses,
            send: SendFlow::new(id, now, controller, send),
            receive,
            spin,
            mtu: Mtu::new(mtu),
            counters: PathCounters::default(),
            sent_at: None,
            pause_ping_at: None,
            payload_at: None,
            heard_cid: None,
            heard_from: None,
            learned_at,
            is_failed: false,
            pairing: Pairing::Paths,
            pair_rtts: None,
        }
    }

    /// True for the path of the handshake, which carries data before its address is proven. No uniflow does, whatever its
    /// number.
    #[inline]
    pub(crate) fn is_first(&self) -> bool {
        self.id == PathId::ZERO && self.pairing == Pairing::Paths
    }

    /// True for a flow of Multiflow, which shares nothing but its number with the one that arrives under it.
    pub(crate) fn is_uniflow(&self) -> bool {
        self.pairing == Pairing::Uniflows
    }

    /// True where nothing but probing frames may leave: a uniflow (Multiflow 4.3.1) and an address that the peer named
    /// (RFC 9000 21.5.3) carry no acks and no PTO probes either before the address is proven.
    #[inline]
    pub fn takes_only_probes(&self) -> bool {
        match self.pairing {
            Pairing::Paths => self.addresses.is_hearsay(),
            Pairing::Uniflows => !self.addresses.is_validated(),
        }
    }

    /// How its two flows belong together, once that is known.
    pub fn set_pairing(&mut self, pairing: Pairing) {
        self.pairing = pairing;
        if pairing == Pairing::Uniflows {
            self.send.forget_own_way();
        }
    }

    /// The round trip that schedulers go by: the smoothed one, or for a uniflow the mean over the receive flows that brought
    /// its acks, each with the weight of its samples (Multiflow QUIC 2021, section III.E). None before the first sample.
    #[inline]
    pub fn scheduled_rtt(&self) -> Option<Duration> {
        match self.pairing {
            Pairing::Paths => self.send.rtt().measured(),
            Pairing::Uniflows => {
                self.pair_rtts.as_ref().and_then(|pairs| pairs.aggregate()).or_else(|| self.send.rtt().measured())
            }
        }
    }

    /// The path id on both ends.
    #[inline]
    pub fn id(&self) -> PathId {
        self.id
    }

    #[inline]
    pub(crate) fn counters(&self) -> PathCounters {
        self.counters
    }

    /// What it did so far, as a part of what all paths did.
    pub(crate) fn totals(&self) -> PathTotals {
        let (send, counters) = (self.send.stats(), self.counters);
        PathTotals {
            sent_bytes: counters.sent_bytes,
            received_bytes: counters.received_bytes,
            stream_bytes_received: counters.stream_bytes_received,
            packets_sent: send.packets_sent,
            packets_lost: send.packets_lost,
            ack_frames_sent: self.receive.ack_frames_sent(),
            ack_frames_received: send.ack_frames_received,
        }
    }

    /// RTT, window and bytes in flight as observers see them.
    pub fn metrics(&self) -> TraceEvent {
        let rtt = self.send.rtt();
        TraceEvent::Metrics {
            path: self.id,
            rtt: rtt.smoothed(),
            rtt_min: rtt.min(),
            rtt_var: rtt.var(),
            window_bytes: self.send.window(),
            in_flight_bytes: self.send.in_flight(),
            ssthresh_bytes: self.send.ssthresh(),
        }
    }

    /// Shows the controllers of other paths how this one fares, which is in `state`.
    pub(crate) fn share_metrics(&mut self, state: PathState, shared: &mut SharedPathMetrics) {
        let activity = if state == PathState::Active { Activity::Active } else { Activity::Idle };
        self.send.set_activity(shared, activity);
    }

    /// The peer's limits are known: its max_udp_payload_size, bytes, and its max_ack_delay (RFC 9000 18.2).
    pub fn on_peer_params(&mut self, max_udp_payload_bytes: u64, max_ack_delay: Duration) {
        self.set_peer_max_datagram(max_udp_payload_bytes);
        self.send.set_max_ack_delay(max_ack_delay);
    }

    /// What both ends asked of each other's acks changed, or the path is new to it.
    pub fn set_ack_terms(&mut self, terms: &AckTerms) {
        if let Some(policy) = terms.ours {
            self.receive.set_ack_policy(policy);
        }
        if let Some(delay) = terms.peer_max_delay {
            self.send.set_requested_acks(delay);
        }
    }

    /// What a probe carries so that its ack comes soon.
    pub fn probe_prompt(&self) -> ProbePrompt {
        self.send.probe_prompt()
    }

    /// Begins again with the first window of another controller, made for the largest datagram in bytes; what is in flight
    /// stays counted.
    pub fn replace_controller(&mut self, controller: impl FnOnce(u64) -> Box<dyn CongestionController>) {
        self.send.replace_controller(controller(u64::from(self.send.max_datagram_bytes())));
    }

    /// The handshake is over, and the connection has several paths: their kind of controller goes on with the window that was
    /// reached.
    pub fn succeed_controller(
        &mut self,
        now: Instant,
        successor: Box<dyn CongestionController>,
        shared: &SharedPathMetrics,
    ) {
        self.send.succeed_controller(now, successor, shared);
    }

    /// Smoothed RTT; none before the first sample.
    #[inline]
    pub fn rtt(&self) -> Option<Duration> {
        self.send.rtt().measured()
    }

    /// Gives back the memory that waits for packets to come.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.send.shrink_to_fit();
    }

    /// The probe time-out of its 1-RTT packets without backoff (RFC 9002 6.2.1).
    #[inline]
    pub fn pto(&self) -> Duration {
        self.send.pto(Space::Data)
    }

    /// How often challenges on it are repeated, and when to give up; `pto_initial` is the one that the initial RTT gives.
    pub fn validation_times(&self, pto_initial: Duration) -> ValidationTimes {
        ValidationTimes::new(self.pto(), pto_initial)
    }
}

/// Failure and recovery.
impl Path {
    /// True while potentially failed.
    #[inline]
    pub fn is_failed(&self) -> bool {
        self.is_failed
    }

    /// True while one probe time-out says that it failed, and the next is not due: what lost a packet may lead to the peer yet.
    #[inline]
    pub fn is_suspect(&self, now: Instant) -> bool {
        self.is_failed && self.send.is_first_timeout(now)
    }

    /// A probe time-out passed. Appends the frames that are to be sent again: all that is under way where another path
    /// can take it over, else only the control frames of the oldest packets; the probes repeat the stream data themselves
    /// (RFC 9002 6.2.4).
    pub fn on_probe_timeout(&mut self, now: Instant, others: TakeOver, again: &mut Vec<SentFrame>) -> ProbeTimeout {
        match others {
            TakeOver::Possible => self.send.hand_over_in_flight(again),
            TakeOver::Alone => self.send.oldest_frames(Space::Data, 0, PACKETS_PER_TIMEOUT, again),
        }
        let recent = self.pto() / HEARD_PART;
        let is_heard = self.receive.heard_at().is_some_and(|at| now.since(at) < recent);
        let only_hears = self.pairing == Pairing::Paths && is_heard && !again.iter().any(is_payload);
        if others == TakeOver::Alone {
            again.retain(|frame| !is_payload(frame));
        }
        ProbeTimeout { count: self.send.pto_count(), only_hears }
    }

    /// Counts as potentially failed from now on, and is probed at least once a second; true when that is news.
    pub(crate) fn fail(&mut self) -> bool {
        if std::mem::replace(&mut self.is_failed, true) {
            return false;
        }
        self.send.set_probe_interval(Some(FAILED_PROBE_INTERVAL));
        true
    }

    /// An ack shows that the path works; true when it counted as failed.
    pub(crate) fn recover(&mut self) -> bool {
        let was_failed = std::mem::take(&mut self.is_failed);
        if was_failed {
            self.send.set_probe_interval(None);
        }
        was_failed
    }

    /// Hands out the frames of all packets under way, for another path to carry them; the packets stay in flight.
    pub fn hand_over_in_flight(&mut self, out: &mut Vec<SentFrame>) {
        self.send.hand_over_in_flight(out);
    }

    /// Nothing more is sent on it: all that is under way counts as lost.
    pub fn on_closing(&mut self, now: Instant, feedback: &mut Feedback) {
        self.send.on_closing(now, feedback);
    }

    /// The keys of `space` are gone: its packets leave the flight and nothing of them is sent again (RFC 9002 6.4).
    pub fn discard(&mut self, now: Instant, space: Space, feedback: &mut Feedback) {
        self.send.discard(now, space, feedback);
    }

    /// What is under way in `space` counts as never sent and comes out as lost, without a sign of congestion: Retry,
    /// another version, rejected 0-RTT. Numbers go on.
    pub fn declare_all_lost(&mut self, now: Instant, space: Space, feedback: &mut Feedback) {
        self.send.declare_all_lost(now, space, feedback);
    }

    /// How far the handshake is, for the probe timer (RFC 9002 6.2.2.1).
    pub fn set_handshake(&mut self, now: Instant, state: HandshakeState) {
        self.send.set_handshake(now, state);
    }

    /// True while probes are owed in `space` after a time-out.
    pub fn owes_probe(&self, space: Space) -> bool {
        self.send.probes_due(space) > 0
    }

    /// A time-out in another space asks for a probe in `space` too.
    pub fn request_probe(&mut self, space: Space) {
        self.send.request_probe(space);
    }

    /// The network around us may have changed: time-outs that passed before say nothing of it.
    pub fn on_network_change(&mut self, now: Instant) {
        self.send.on_network_change(now);
    }

    /// True after a probe time-out that no ack has answered.
    pub fn is_silent(&self) -> bool {
        self.send.pto_count() > 0
    }
}

/// Packets on their way out and in.
impl Path {
    /// Remembers a packet that leaves by one of the path's addresses, with the frames that it carries. True when frames of
    /// packets that nobody acknowledges came out in `feedback`.
    pub fn on_packet_sent(
        &mut self,
        now: Instant,
        (space, role): (Space, FourTupleRole),
        packet: &PacketInfo,
        frames: &[SentFrame],
        feedback: &mut Feedback,
    ) -> bool {
        self.send.on_sent(now, space, packet, frames);
        self.count_sent(now, role, packet);
        for frame in frames {
            match frame {
                SentFrame::MtuProbe(size) => self.mtu.on_mtu_probe_sent(*size),
                SentFrame::PathChallenge(_) if role == FourTupleRole::Current => self.send.on_challenge_sent(),
                _ => {}
            }
        }
        self.send.prune(now, space, feedback)
    }

    /// What left counts against the credit of its address and for the path.
    #[inline]
    fn count_sent(&mut self, now: Instant, role: FourTupleRole, packet: &PacketInfo) {
        let bytes = u64::from(packet.bytes);
        self.addresses.on_sent(role, bytes);
        if role == FourTupleRole::Current {
            self.counters.sent_bytes += bytes;
            self.sent_at = Some(now);
            // What asks for an ack shows by itself whether the path works.
            self.pause_ping_at = self.pause_ping_at.filter(|_| !packet.ack_eliciting);
        }
    }

    /// An ack of packets that left on it.
    ///
    /// # Errors
    /// [`Violation::AckOfUnsentPacket`] for numbers that were not sent or were left out on purpose.
    pub fn on_ack(
        &mut self,
        now: Instant,
        space: Space,
        report: &AckReport,
        ranges: impl IntoIterator<Item = RangeInclusive<u64>>,
        shared: &mut SharedPathMetrics,
        feedback: &mut Feedback,
    ) -> Result<AckOutcome, Violation> {
        let outcome = self.send.on_ack(now, space, report, ranges, shared, feedback)?;
        match (space, outcome.biggest) {
            (Space::Data, Some((number, bytes))) => self.mtu.on_acked(number, bytes),
            (_, Some((_, bytes))) => self.mtu.on_size_proven(bytes),
            (_, None) => {}
        }
        if outcome.rtt_updated && self.pairing == Pairing::Uniflows {
            self.pair_rtts.get_or_insert_default().on_sample(report.via, self.send.rtt().adjusted());
        }
        Ok(outcome)
    }

    /// An ack of 1-RTT packets up to `largest` shows the keys which of them the peer has (RFC 9001 6.1, 6.5); `guard` is
    /// three times the largest probe time-out.
    pub fn confirm_keys(&self, now: Instant, keys: &mut OneRttKeys, largest: u64, guard: Duration) {
        keys.on_acked(self.send.seal_mark(), largest, now, guard);
    }

    /// What shows the keys anything are acks of packets sealed from now on, as if none had left before.
    pub fn forget_sealed(&mut self) {
        *self.send.seal_mark_mut() = SealMark::default();
    }

    /// 0-RTT or 1-RTT packets arrived and were read, one number after the other and none received before; `bytes` is the sum of
    /// their datagrams. `stream_bytes` where they brought data of the application, so many of them on streams. True when the path
    /// counts as failed and no ack is under way that would show whether it is back: ask at once rather than at the next probe,
    /// but once a round trip (RFC 9000 13.2.4).
    pub fn on_packets_received(
        &mut self,
        now: Instant,
        numbers: Range<u64>,
        eliciting: Eliciting,
        ecn: Option<Ecn>,
        bytes: u64,
        stream_bytes: Option<u64>,
    ) -> bool {
        self.receive.on_packets(now, numbers, eliciting, ecn);
        self.counters.received_bytes += bytes;
        if let Some(stream_bytes) = stream_bytes {
            self.counters.stream_bytes_received += stream_bytes;
            self.payload_at = Some(now);
        }
        self.pairing == Pairing::Paths && self.is_failed() && !self.send.expects_ack(now)
    }

    /// True while it carries data either way: some of the application's came within the last probe time-out, or what we
    /// sent awaits its acks.
    pub fn is_in_use(&self, now: Instant) -> bool {
        self.payload_at.is_some_and(|at| now.since(at) <= self.pto()) || self.send.in_flight() > 0
    }

    /// True where what comes from these addresses came to where the path leads.
    #[inline]
    pub fn is_at(&self, tuple: &FourTuple) -> bool {
        self.addresses.tuple().admits(tuple)
    }

    /// The peer's newest packet came from these addresses to this connection id of ours. False where the path leads
    /// elsewhere.
    pub(crate) fn on_heard_at(&mut self, tuple: &FourTuple, cid: ConnectionId) -> bool {
        let is_here = self.is_at(tuple);
        if is_here {
            self.heard_cid = Some(cid);
        }
        is_here
    }

    /// The peer's newest packet came from these addresses to this connection id of ours, with this spin bit. False where
    /// the path leads elsewhere.
    pub fn on_newest_packet(&mut self, now: Instant, tuple: &FourTuple, cid: ConnectionId, spin: bool) -> bool {
        self.spin.on_received(spin);
        let is_here = self.on_heard_at(tuple, cid);
        if is_here {
            self.addresses.on_heard(now);
        }
        is_here
    }

    /// True when the peer changed to another connection id of ours since its last packet at its present addresses.
    pub(crate) fn changed_cid(&self, cid: &ConnectionId) -> bool {
        self.heard_cid.is_some_and(|heard| heard != *cid)
    }

    /// What an ack route sees of it; `state` is the one of its slot.
    #[inline]
    pub fn ack_carrier(&self, state: PathState) -> AckCarrier {
        let rtt = self.send.rtt();
        AckCarrier {
            id: self.id,
            state,
            is_paired: self.pairing == Pairing::Paths,
            rtt: rtt.measured(),
            rtt_least: rtt.least(),
            rtt_latest: rtt.least().map(|_| rtt.latest()),
            rtt_at: rtt.latest_at().map(|at| (rtt.adjusted(), at)),
            rtt_via: rtt.via(),
            heard_at: self.receive.heard_at(),
            asked_at: self.send.asked_at(Space::Data),
            sent_bytes: self.counters.sent_bytes,
            received_bytes: self.counters.received_bytes,
        }
    }

    /// True before the first packet left on it.
    #[inline]
    pub fn is_fresh(&self) -> bool {
        self.sent_at.is_none()
    }
}

/// Timers of the path.
impl Path {
    /// When the loss, probe or pause timer is due; acks have their own deadline.
    #[inline]
    pub fn deadline(&self) -> Option<Instant> {
        plait_base::time::earliest(self.send.deadline(), self.pause_ping_at)
    }

    /// The loss or probe timer may be due; lost packets come out in `feedback`. `least_bytes` has the smallest datagram that
    /// would be sent next: while the 3x rule holds it back, the probe timer rests (RFC 9002 6.2.2.1).
    pub fn on_timeout(
        &mut self,
        now: Instant,
        least_bytes: u64,
        shared: &mut SharedPathMetrics,
        feedback: &mut Feedback,
    ) -> TimerFired {
        let gate = if self.may_send(least_bytes) { ProbeGate::Open } else { ProbeGate::Amplification };
        self.send.set_probe_gate(gate);
        if self.send.deadline().is_none_or(|at| at > now) {
            return TimerFired::None;
        }
        self.send.on_timeout(now, shared, feedback)
    }

    /// What of [`Self::deadline`] has come: a loss timer goes before a probe time-out (RFC 9002 6.2.1).
    pub fn due_timer(&self, now: Instant) -> Option<PathTimer> {
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if is_due(self.send.deadline()) {
            return Some(if self.send.has_loss_timer() { PathTimer::Loss } else { PathTimer::Probe });
        }
        is_due(self.pause_ping_at).then_some(PathTimer::Pause)
    }

    /// Where what arrived is credit for `least_bytes`, the smallest datagram that would be sent next, the probe timer runs
    /// again (RFC 9002 6.2.2.1).
    pub fn open_probe_gate(&mut self, least_bytes: u64) {
        if self.may_send(least_bytes) {
            self.send.set_probe_gate(ProbeGate::Open);
        }
    }

    /// Something came that asks for an ack: where nothing more comes for a probe time-out, the peer is asked.
    pub fn expect_more(&mut self, now: Instant) {
        self.pause_ping_at = Some(now + self.pto());
    }

    /// True once for each pause of what the peer sends.
    pub(crate) fn take_pause(&mut self, now: Instant) -> bool {
        let is_due = self.pause_ping_at.is_some_and(|at| at <= now);
        self.pause_ping_at = self.pause_ping_at.filter(|_| !is_due);
        is_due
    }

    /// When nothing will have left on it for `interval`; a path that has sent nothing begins now.
    pub(crate) fn keep_alive_at(&self, now: Instant, interval: Duration) -> Instant {
        self.sent_at.unwrap_or(now) + interval
    }
}

/// Its largest datagram (RFC 8899).
impl Path {
    /// Largest datagram to send now, bytes of UDP payload.
    #[inline]
    pub fn mtu(&self) -> u16 {
        self.mtu.current()
    }

    /// The peer's max_udp_payload_size (RFC 9000 18.2).
    pub(crate) fn set_peer_max_datagram(&mut self, bytes: u64) {
        self.mtu.set_peer_max(bytes);
        if self.mtu() < self.send.max_datagram_bytes() {
            self.send.set_max_datagram_bytes(self.mtu());
        }
    }

    /// Tries no larger datagrams from now on.
    pub fn stop_mtu_search(&mut self) {
        self.mtu.stop_search();
    }

    /// A larger size to try instead of data, where one is due, the window has room for more than the MTU probe, and a larger datagram is
    /// of use: `is_wanted` tells whether more than so many bytes wait, which with what is under way are more than two datagrams hold. Neither
    /// a handshake nor a short answer gets the probe's bytes back, and where little but acks leaves, a thin way is full of them.
    pub fn mtu_probe_beside_data(&mut self, now: Instant, is_wanted: impl FnOnce(u64) -> bool) -> Option<u16> {
        let size = self.mtu.mtu_probe_due(now).filter(|_| self.addresses.is_validated())?;
        let (flight, mtu) = (self.send.in_flight(), u64::from(self.mtu()));
        let is_open = flight + mtu * 3 < self.send.window();
        let pays = is_open && (flight > mtu * 2 || is_wanted(mtu * 2 - flight));
        pays.then_some(size)
    }

    /// A larger size to try while nothing is under way.
    pub fn mtu_probe_while_idle(&mut self, now: Instant) -> Option<u16> {
        let idle = self.send.in_flight() == 0;
        self.mtu.mtu_probe_due(now).filter(|size| idle && u64::from(*size) <= self.send.window())
    }

    /// An MTU probe of that size arrived; the new size when it grew.
    pub fn on_mtu_probe_acked(&mut self, now: Instant, size: u16) -> Option<u16> {
        let grown = self.mtu.on_mtu_probe_acked(now, size);
        self.resize(grown)
    }

    /// An MTU probe of that size was lost.
    pub fn on_mtu_probe_lost(&mut self, now: Instant, size: u16) {
        self.mtu.on_mtu_probe_lost(now, size);
    }

    /// A 1-RTT packet was lost; the reduced size where only large ones are.
    pub fn on_packet_lost(&mut self, now: Instant, number: u64, bytes: u16) -> Option<u16> {
        let reduced = self.mtu.on_lost(now, number, bytes);
        self.resize(reduced)
    }

    /// The reduced size after a probe time-out for which large datagrams may be to blame.
    pub fn suspect_size(&mut self, now: Instant) -> Option<u16> {
        let reduced = self.mtu.on_pto(now, self.send.pto_count());
        self.resize(reduced)
    }

    /// The system refused a datagram of `bytes` (EMSGSIZE): packets under way that are as large come out lost in `feedback`.
    /// The reduced size where datagrams in use were as large.
    pub fn on_too_large(&mut self, now: Instant, bytes: u16, feedback: &mut Feedback) -> Option<u16> {
        let reduced = self.mtu.on_too_large(now, bytes);
        if bytes > self.mtu() {
            self.send.on_too_large(now, bytes, feedback);
        }
        self.resize(reduced)
    }

    fn resize(&mut self, size: Option<u16>) -> Option<u16> {
        size.inspect(|bytes| self.send.set_max_datagram_bytes(*bytes))
    }
}
