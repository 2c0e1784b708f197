//! A path in the hands of whoever serves it, with all that this needs: keys, leases, and what is to be told.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use plait_base::limits::{MAX_UNTAKEN_MESSAGES, TIMER_GRANULARITY};
use plait_base::observe::{LossTrigger, TraceEvent};
use plait_base::shared_metrics::SharedPathMetrics;
use plait_base::time::earliest;
use plait_base::{ConnectionId, FourTuple, Instant, PathId, Random, Side, Space, StreamId, TransportError};
use plait_crypto::KeyFork;
use plait_path::table::{Appetite, LoanRecord};
use plait_path::{AckReport, Feedback, LostPacket, Path, PathTimer, SendRoom, TimerFired};
use plait_schedule::Delivery;
use plait_stream::Lease;
use plait_wire::SentFrame;
use plait_wire::frame::AckForm;

use super::messages::{Bundle, Fates, Follows, Found, FromPath, Instruction, News, Report, ToPath, UnreadTrain};
use crate::config::Switch;
use crate::connection::receive::opened::TrainPacket;
use crate::connection::receive::train::ShortHeader;
use crate::io::Input;

/// Stream data that a path holds ready is what it sends in twice this time.
const LEASE_TIME: Duration = Duration::from_micros(500);
/// No more of it than this, bytes.
const MAX_LEASE_BYTES: u64 = 256 << 10;
/// Stream data that could not leave for so long goes back, or for a quarter of a round trip, if that is longer.
const LEASE_PATIENCE: Duration = Duration::from_millis(5);
/// A path on which nothing moves for so long goes back.
const IDLE: Duration = Duration::from_millis(50);
/// Packets for which its quota must suffice, or it goes back: a train.
const QUOTA_RESERVE: u64 = 128;

/// Why a path goes back to its connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReturnReason {
    /// It was asked back.
    Recalled,
    /// A probe time-out passed, or the peer has been silent after it sent.
    ProbeTimeout,
    /// A packet came from or to other addresses, or says something about paths.
    PathMatter,
    /// Its keys have sealed what they were given for.
    Quota,
    /// The peer changed its keys.
    NewPhase,
    /// Nothing moved on it for a while.
    Idle,
    /// Its datagrams became smaller.
    Shrunk,
    /// The peer closed the connection.
    Closed,
    /// The peer broke a rule, or the keys refuse: the connection is to close.
    Fault(TransportError),
}

/// What holds as long as a path is lent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoanTerms {
    pub(crate) side: Side,
    /// The peer's connection id in use.
    pub(crate) dcid: ConnectionId,
    pub(crate) ack_form: AckForm,
    /// Our ack delay exponent, and the peer's.
    pub(crate) ack_exponent: u8,
    pub(crate) peer_ack_exponent: u8,
    /// Three times the largest probe time-out.
    pub(crate) guard: Duration,
    pub(crate) short: ShortHeader,
    /// Whether the second bit of packets is drawn (RFC 9287).
    pub(crate) may_clear_fixed_bit: bool,
    pub(crate) segmentation: Switch,
    /// Whether somebody observes the connection.
    pub(crate) is_observed: bool,
}

/// What waits to be sent.
#[derive(Debug, Default)]
pub(crate) struct Cargo {
    pub(super) leases: VecDeque<Lease>,
    pub(super) bundles: VecDeque<Bundle>,
    pub(super) follows: Option<Follows>,
    /// Stream bytes that came in leases so far, and bundles that left.
    pub(super) lent_bytes: u64,
    pub(super) bundles_sent: u64,
    /// When a packet last took something, or the first lease came.
    pub(super) moved_at: Instant,
    /// Leases that are over, to be told.
    pub(super) ended: Vec<(StreamId, u32)>,
}

impl Cargo {
    pub(super) fn unsent_bytes(&self) -> u64 {
        self.leases.iter().map(Lease::unsent_bytes).sum()
    }

    fn take(&mut self, now: Instant, lease: Lease, follows: Follows) {
        if self.leases.is_empty() {
            self.moved_at = now;
        }
        self.lent_bytes += lease.unsent_bytes();
        self.follows = Some(follows);
        let rest = match self.leases.back_mut() {
            Some(last) => last.join(lease).err(),
            None => Some(lease),
        };
        self.leases.extend(rest);
    }

    /// Ends the leases that `is_unwanted`; what of them never left.
    pub(super) fn end(&mut self, is_unwanted: impl Fn(&Lease) -> bool) -> Vec<SentFrame> {
        let mut unsent = Vec::new();
        let Self { leases, ended, .. } = self;
        leases.retain(|lease| {
            let ends = is_unwanted(lease);
            if ends {
                unsent.extend(lease.unsent());
                ended.push((lease.id(), lease.parts()));
            }
            !ends
        });
        unsent
    }
}

/// Memory to work in; empty between calls.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub(super) frames: Vec<SentFrame>,
    pub(super) pieces: Vec<Range<usize>>,
    pub(super) packets: Vec<TrainPacket>,
    pub(super) found: Vec<Found>,
    pub(super) feedback: Feedback,
}

/// What was not read when the path had to go back.
#[derive(Debug, Default)]
pub(crate) struct Unread {
    pub(super) train: Option<UnreadTrain>,
    pub(super) inputs: Vec<Input>,
}

/// What is to be told: in the next report, and to observers.
#[derive(Debug, Default)]
pub(crate) struct ToTell {
    pub(super) is_due: bool,
    pub(super) traces: Vec<(Instant, TraceEvent)>,
    pub(super) heard_at: Option<Instant>,
    pub(super) eliciting_at: Option<Instant>,
}

/// A path on loan. Whoever serves it gives it datagrams ([`Self::handle_datagram`]), messages ([`Self::handle_message`]) and the
/// time ([`Self::on_timeout`] at [`Self::deadline`]), takes datagrams ([`Self::poll_transmit`]) and messages
/// ([`Self::poll_message`]), and gives it back once [`Self::wants_back`] says why.
#[derive(Debug)]
pub struct LentPath {
    pub(super) path: Box<Path>,
    pub(super) keys: KeyFork,
    pub(super) terms: LoanTerms,
    pub(super) random: Random,
    pub(super) cargo: Cargo,
    pub(super) shared: SharedPathMetrics,
    pub(super) outbox: VecDeque<FromPath>,
    pub(super) to_tell: ToTell,
    pub(super) scratch: Scratch,
    pub(super) unread: Unread,
    pub(super) held_until: Option<Instant>,
    /// When anything moved last.
    pub(super) active_at: Instant,
    pub(super) why_back: Option<ReturnReason>,
}

impl LentPath {
    pub(crate) fn new(
        now: Instant,
        path: Box<Path>,
        keys: KeyFork,
        terms: LoanTerms,
        shared: SharedPathMetrics,
        random: Random,
    ) -> Self {
        Self {
            path,
            keys,
            terms,
            random,
            cargo: Cargo::default(),
            shared,
            outbox: VecDeque::new(),
            to_tell: ToTell { is_due: true, ..ToTell::default() },
            scratch: Scratch::default(),
            unread: Unread::default(),
            held_until: None,
            active_at: now,
            why_back: None,
        }
    }

    /// The path id on both ends.
    pub fn id(&self) -> PathId {
        self.path.id()
    }

    /// The addresses that it leaves by, for as long as it is lent.
    pub fn tuple(&self) -> FourTuple {
        self.path.tuple()
    }

    /// Why it is to go back to its connection, by [`Coordinator::take_back`](super::Coordinator::take_back). It sends nothing
    /// from then on, and keeps what comes.
    pub fn wants_back(&self) -> Option<&ReturnReason> {
        self.why_back.as_ref()
    }

    pub(super) fn go_back(&mut self, why: ReturnReason) {
        self.why_back.get_or_insert(why);
    }

    /// Takes in what the connection says.
    pub fn handle_message(&mut self, now: Instant, message: ToPath) {
        // How others fare changes nothing here that they do not know.
        self.to_tell.is_due |= !matches!(message.0, Instruction::Metrics(_));
        match message.0 {
            Instruction::Lease { lease, follows, .. } => self.cargo.take(now, lease, follows),
            Instruction::Carry(bundle) => self.cargo.bundles.push_back(bundle),
            Instruction::Ack(note) => self.take_ack(note.now, &note.report, note.ranges.into_iter()),
            Instruction::Datagrams(input) => {
                self.handle_datagram(now, input);
            }
            Instruction::Unlease(stream) => {
                // It was reset: nobody sends what is left.
                let _ = self.cargo.end(|lease| lease.id() == stream);
            }
            Instruction::Metrics(others) => {
                let id = self.id();
                others.iter().filter(|path| path.path != id).for_each(|path| self.shared.update(*path));
            }
            Instruction::Acks(terms) => self.path.set_ack_terms(&terms),
            Instruction::Quota(quota) => self.keys.extend(quota),
            Instruction::Recall => self.go_back(ReturnReason::Recalled),
        }
    }

    /// The next message for the connection.
    pub fn poll_message(&mut self, now: Instant) -> Option<FromPath> {
        if !self.to_tell.traces.is_empty() {
            return Some(FromPath(News::Traces(std::mem::take(&mut self.to_tell.traces))));
        }
        if let Some(message) = self.outbox.pop_front() {
            return Some(message);
        }
        std::mem::take(&mut self.to_tell.is_due).then(|| FromPath(News::Report(Box::new(self.report(now)))))
    }

    fn report(&mut self, now: Instant) -> Report {
        let room = self.path.data_room(now);
        let ready = self.cargo.unsent_bytes();
        let wish = self.ready_bytes(room).saturating_sub(ready);
        let appetite = Appetite {
            until_bytes: self.cargo.lent_bytes + wish,
            bundles_sent: self.cargo.bundles_sent,
            packets_sealed: self.keys.packets_sealed(),
        };
        let mut record = LoanRecord::of(&self.path, room);
        record.snapshot.send.in_flight_bytes += ready;
        Report {
            record,
            appetite,
            ended: std::mem::take(&mut self.cargo.ended),
            heard_at: self.to_tell.heard_at.take(),
            eliciting_at: self.to_tell.eliciting_at.take(),
            metrics: self.shared.get(self.id()).copied(),
        }
    }

    /// Stream bytes that it should hold ready now: what it sends in a short time, as far as the window admits it. Where the
    /// round trip is short, one lease more waits for the next ack.
    fn ready_bytes(&self, room: SendRoom) -> u64 {
        let stats = LoanRecord::of(&self.path, room).snapshot;
        let rtt = stats.scheduled_rtt.unwrap_or(TIMER_GRANULARITY).max(Duration::from_micros(1));
        let window = stats.send.window_bytes;
        let share = u128::from(window) * LEASE_TIME.as_nanos() / rtt.as_nanos();
        let lease = u64::try_from(share).unwrap_or(u64::MAX).clamp(u64::from(self.path.mtu()), MAX_LEASE_BYTES);
        let free = window.saturating_sub(stats.send.in_flight_bytes);
        let ahead = if rtt <= LEASE_PATIENCE { lease } else { 0 };
        (free + ahead).min(2 * lease)
    }

    /// Keeps an event for the connection's observers, if there are any.
    #[inline]
    pub(super) fn observe(&mut self, now: Instant, event: impl FnOnce() -> TraceEvent) {
        if self.terms.is_observed {
            self.to_tell.traces.push((now, event()));
        }
    }

    pub(super) fn tell(&mut self, news: News) {
        self.outbox.push_back(FromPath(news));
    }

    /// True where so much waits for the connection that what is of no use is not told.
    pub(super) fn is_crowded(&self) -> bool {
        self.outbox.len() >= MAX_UNTAKEN_MESSAGES
    }

    /// When [`Self::on_timeout`] wants to be called.
    pub fn deadline(&self) -> Option<Instant> {
        if self.why_back.is_some() {
            return None;
        }
        let at = earliest(self.path.deadline(), self.path.receive.deadline());
        let at = earliest(at, earliest(self.held_until, self.keys.keys.deadline()));
        earliest(at, earliest(self.lease_ends(), Some(self.idle_at())))
    }

    /// When it goes back, unless something moves: not while acks may be on their way.
    fn idle_at(&self) -> Instant {
        self.active_at + IDLE.max(self.path.rtt().unwrap_or_default() * 2)
    }

    /// When the leases that did not leave go back.
    fn lease_ends(&self) -> Option<Instant> {
        let patience = LEASE_PATIENCE.max(self.path.rtt().unwrap_or_default() / 4);
        (!self.cargo.leases.is_empty()).then(|| self.cargo.moved_at + patience)
    }

    /// Does what is due at `now`. Poll for datagrams and messages afterwards.
    pub fn on_timeout(&mut self, now: Instant) {
        if self.why_back.is_some() {
            return;
        }
        if let Some(at) = self.held_until.filter(|at| *at <= now) {
            self.path.on_late(now.since(at));
            self.held_until = None;
        }
        self.path.receive.on_timeout(now);
        self.keys.keys.on_timeout(now);
        self.poll_timers(now);
        if self.lease_ends().is_some_and(|at| at <= now) {
            let lost = self.cargo.end(|_| true);
            self.tell(News::Fates(Fates { now, acked: Vec::new(), lost, lost_packets: Vec::new(), delivery: None }));
            self.to_tell.is_due = true;
        }
        if self.idle_at() <= now {
            self.go_back(ReturnReason::Idle);
        }
    }

    /// Losses are found here. A probe time-out is for the connection, which knows the other paths: it passes there.
    fn poll_timers(&mut self, now: Instant) {
        // A few rounds at most: a loss timer may give way to a probe timer that is due as well.
        for _ in 0..4 {
            match self.path.due_timer(now) {
                None => return,
                Some(PathTimer::Probe | PathTimer::Pause) => return self.go_back(ReturnReason::ProbeTimeout),
                Some(PathTimer::Loss) => {
                    let Self { path, shared, scratch, .. } = self;
                    // The address is proven: any size may leave.
                    let fired = path.on_timeout(now, 0, shared, &mut scratch.feedback);
                    debug_assert!(!matches!(fired, TimerFired::Pto { .. }), "probe time-outs pass at the connection");
                    self.tell_fates(now, None);
                }
            }
        }
    }

    /// An ack of its packets came, by this path or another.
    pub(super) fn take_ack(
        &mut self,
        now: Instant,
        report: &AckReport,
        ranges: impl Iterator<Item = std::ops::RangeInclusive<u64>> + Clone,
    ) {
        if self.terms.is_observed {
            let (id, space) = (self.id(), Space::Data);
            for (index, range) in (0..).zip(ranges.clone()) {
                let (first, last) = (*range.start(), *range.end());
                self.observe(now, || TraceEvent::AckReceived { path: id, space, first, last, index });
            }
        }
        let Self { path, keys, terms, shared, scratch, .. } = self;
        let outcome = match path.on_ack(now, Space::Data, report, ranges, shared, &mut scratch.feedback) {
            Ok(outcome) => outcome,
            Err(violation) => return self.go_back(ReturnReason::Fault(violation.into())),
        };
        path.confirm_keys(now, &mut keys.keys, report.largest, terms.guard);
        if outcome.rtt_updated && self.terms.is_observed {
            let metrics = self.path.metrics();
            self.observe(now, || metrics);
        }
        let delivery =
            outcome.newest_sent_at.map(|sent_at| Delivery { bytes: outcome.newly_acked_bytes, sent_at, now });
        self.tell_fates(now, delivery);
    }

    /// The system refused a datagram of `bytes` as larger than the interface takes (EMSGSIZE): see
    /// [`Connection::on_too_large`](crate::Connection::on_too_large).
    pub fn on_too_large(&mut self, now: Instant, bytes: usize) {
        let bytes = u16::try_from(bytes).unwrap_or(u16::MAX);
        let reduced = self.path.on_too_large(now, bytes, &mut self.scratch.feedback);
        self.tell_fates(now, None);
        if reduced.is_some() {
            self.go_back(ReturnReason::Shrunk);
        }
    }

    /// Hands on what was found out of packets, but for what is the path's own.
    pub(super) fn tell_fates(&mut self, now: Instant, delivery: Option<Delivery>) {
        let Self { path, scratch, .. } = self;
        let Feedback { acked, lost, lost_packets } = &mut scratch.feedback;
        let (own, mut grown, mut shrunk) = (path.id(), None, None);
        acked.retain(|frame| match *frame {
            SentFrame::Ack { space: Space::Data, path: id, smallest, largest } if id == own => {
                path.receive.on_ack_acked(smallest, largest);
                false
            }
            SentFrame::MtuProbe(size) => {
                grown = path.on_mtu_probe_acked(now, size).or(grown);
                false
            }
            SentFrame::Ping | SentFrame::PathResponse | SentFrame::Datagram { .. } => false,
            _ => true,
        });
        lost.retain(|frame| match *frame {
            SentFrame::MtuProbe(size) => {
                path.on_mtu_probe_lost(now, size);
                false
            }
            SentFrame::Ack { .. } | SentFrame::Ping | SentFrame::PathResponse | SentFrame::Datagram { .. } => false,
            _ => true,
        });
        for packet in lost_packets.iter().filter(|p| p.space == Space::Data && p.trigger != LossTrigger::Discarded) {
            shrunk = path.on_packet_lost(now, packet.number, packet.bytes).or(shrunk);
        }
        if self.terms.is_observed {
            self.observe_fates(now, [grown, shrunk]);
        }
        let Feedback { acked, lost, lost_packets } = &mut self.scratch.feedback;
        if !(acked.is_empty() && lost.is_empty() && lost_packets.is_empty() && delivery.is_none()) {
            let Feedback { acked, lost, lost_packets } = std::mem::take(&mut self.scratch.feedback);
            self.tell(News::Fates(Fates { now, acked, lost, lost_packets, delivery }));
        }
        self.to_tell.is_due = true;
        if shrunk.is_some() {
            self.go_back(ReturnReason::Shrunk);
        }
    }

    /// Packets that were lost, and the largest datagrams that the path has now.
    fn observe_fates(&mut self, now: Instant, mtus: [Option<u16>; 2]) {
        let Self { path, scratch, to_tell, .. } = self;
        let path = path.id();
        let lost = scratch.feedback.lost_packets.iter().map(|packet| {
            let LostPacket { space, number, trigger, .. } = *packet;
            TraceEvent::PacketLost { path, space, number, trigger }
        });
        let sizes = mtus.into_iter().flatten().map(|bytes| TraceEvent::Mtu { path, bytes });
        to_tell.traces.extend(lost.chain(sizes).map(|event| (now, event)));
    }

    /// Where the peer went on to new keys, or ours are used up, the path goes back.
    pub(super) fn check_keys(&mut self) {
        if self.keys.has_moved_on() {
            self.go_back(ReturnReason::NewPhase);
        } else if self.keys.is_used_up(QUOTA_RESERVE) {
            self.go_back(ReturnReason::Quota);
        }
    }
}
