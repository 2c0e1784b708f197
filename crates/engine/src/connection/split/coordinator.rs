//! The connection while others serve some of its paths: whom it lends which, and when it asks them back.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use plait_base::limits::MAX_UNTAKEN_MESSAGES;
use plait_base::time::earliest;
use plait_base::{FourTuple, Instant, PathId, StreamId};
use plait_crypto::KeyFork;
use plait_path::table::{Loan, Pairing, Recall, Slot, SlotPlace};
use plait_path::{AckRouteFactory, FourTupleRole, Path};
use plait_schedule::SchedulerFactory;
use plait_schedule::reinject::ReinjectionFactory;
use smallvec::SmallVec;

use super::lent::{LentPath, LoanTerms};
use super::messages::{Instruction, ToPath};
use crate::config::StreamPlacement;
use crate::connection::application::{ApplicationDatagrams, OpenStreams, RecvStream, SendStream};
use crate::connection::receive::coalesced::Coalesced;
use crate::connection::receive::train::{ShortHeader, is_short};
use crate::connection::{Connection, Event};
use crate::io::{EndpointEvent, Input, InputKind, More, Transmit};

/// Packets that a loan of a path may seal, and that it is given in addition once half of them are sealed. Of datagrams of 1,452
/// bytes half of them last for 19 ms at 10 Gbit/s, which is the time that this message has.
const SEAL_QUOTA: u64 = 1 << 15;
/// Figures of other paths are told no more often than this.
const METRICS_INTERVAL: Duration = Duration::from_micros(250);
/// How often a path is looked at, to find out whether it is busy.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);
/// A path is busy that sent and received so many bytes between two looks.
const BUSY_BYTES: u64 = 64 << 10;
/// A path that does not come back for so long after it was asked, or for three probe time-outs, is gone with its holder. For as
/// long a holder may say nothing of what it was given, then it is asked.
const HOLDER_PATIENCE: Duration = Duration::from_millis(200);
/// The same for a path without which there is none: giving it up is the end of the connection.
const LAST_HOLDER_PATIENCE: Duration = Duration::from_secs(3);

/// A connection that may have some of its paths served by others.
///
/// What concerns streams and datagrams alone is done whoever has the paths; for all else [`Self::joined`] asks for them. A runtime
/// drives it as it drives a [`Connection`], and beside that carries messages: [`Self::poll_message`], [`Self::handle_message`].
pub struct Coordinator {
    pub(super) connection: Connection,
    pub(super) outbox: VecDeque<(PathId, ToPath)>,
    /// The application waits for all paths.
    wants_joined: bool,
    /// The scheduler answers with copies, which leases have not: nothing is lent any more.
    pub(super) wants_copies: bool,
    /// Stream data that lent paths were given in all.
    pub(super) given_bytes: u64,
    /// Paths whose holders were gone, the latest: what they were given has ended, whenever it turns up.
    pub(super) lost_paths: VecDeque<PathId>,
}

impl Coordinator {
    /// A connection none of whose paths is lent.
    pub fn new(connection: Connection) -> Self {
        Self {
            connection,
            outbox: VecDeque::new(),
            wants_joined: false,
            wants_copies: false,
            given_bytes: 0,
            lost_paths: VecDeque::new(),
        }
    }

    /// The connection, to look at: what it says of lent paths is what their holders told last.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The connection with all its paths, for every call that it has; none while paths are on loan. They are asked back then,
    /// and none is lent until this gave the connection: ask again after each [`Self::take_back`].
    pub fn joined(&mut self) -> Option<&mut Connection> {
        self.wants_joined = self.connection.paths.table.has_lent();
        (!self.wants_joined).then_some(&mut self.connection)
    }

    /// Leases of stream data that have neither left nor come back.
    pub fn leases_out(&self) -> u64 {
        self.connection.streams.leases_out()
    }

    /// True once the connection closes or is closed: whoever serves one of its paths is to send nothing more, even before it
    /// hears that the path is wanted back (RFC 9000 10.2).
    pub fn is_halted(&self) -> bool {
        !self.connection.lifecycle.is_open()
    }

    /// Lets another scheduler choose from now on, as [`Connection::set_scheduler`].
    pub fn set_scheduler(&mut self, factory: &dyn SchedulerFactory) {
        self.wants_copies = false;
        self.connection.set_scheduler(factory);
    }

    /// Lets acks travel by another policy from now on, as [`Connection::set_ack_route`]; those of lent paths keep to their own.
    pub fn set_ack_route(&mut self, factory: &dyn AckRouteFactory) {
        self.connection.set_ack_route(factory);
    }

    /// Lets idle paths send again by another policy from now on, as [`Connection::set_reinjection`].
    pub fn set_reinjection(&mut self, factory: &dyn ReinjectionFactory) {
        self.connection.set_reinjection(factory);
    }

    /// Lets streams keep to a path each from now on, or no longer. What is lent already leaves on the path that has it.
    pub fn set_stream_placement(&mut self, placement: StreamPlacement) {
        self.connection.scheduling.placement = placement;
    }

    /// The streams of the connection: to open one, or to accept one of the peer's.
    pub fn streams(&mut self) -> OpenStreams<'_> {
        self.connection.streams()
    }

    /// The sending part of a stream; whether there is one the calls on it say.
    pub fn send_stream(&mut self, id: StreamId) -> SendStream<'_> {
        self.connection.send_stream(id)
    }

    /// The receiving part of a stream; whether there is one the calls on it say.
    pub fn recv_stream(&mut self, id: StreamId) -> RecvStream<'_> {
        self.connection.recv_stream(id)
    }

    /// Application datagrams, those to send and those received.
    pub fn datagrams(&mut self) -> ApplicationDatagrams<'_> {
        self.connection.datagrams()
    }

    /// The next news for the application.
    pub fn poll(&mut self) -> Option<Event> {
        self.connection.poll()
    }

    /// The next news for the endpoint.
    pub fn poll_endpoint_event(&mut self) -> Option<EndpointEvent> {
        self.connection.poll_endpoint_event()
    }

    /// Takes in what the endpoint found to be this connection's, as [`Connection::handle_datagram`] does. What came for a lent
    /// path is passed on.
    pub fn handle_datagram(&mut self, now: Instant, input: Input) -> Option<Bytes> {
        if !self.is_lent(input.path) || input.kind != InputKind::Packets {
            return self.connection.handle_datagram(now, input);
        }
        if is_short(&input.data) {
            self.pass_on(input);
            return None;
        }
        // RFC 9000 12.2: behind packets with long headers there may be one for the path, which reads no others.
        let Input { path, tuple, ecn, arrived, mut data, .. } = input;
        let rest = data.split_off(self.long_bytes(&data));
        let part = |data: BytesMut| Input {
            kind: InputKind::Packets,
            path,
            tuple,
            ecn,
            arrived,
            segment_bytes: data.len().max(1),
            data,
        };
        if !rest.is_empty() {
            self.pass_on(part(rest));
        }
        self.connection.handle_datagram(now, part(data))
    }

    /// What came for a lent path goes to whoever serves it.
    fn pass_on(&mut self, input: Input) {
        // As a network would drop them.
        if self.outbox.len() < MAX_UNTAKEN_MESSAGES {
            self.outbox.push_back(ToPath::datagrams(input));
        }
    }

    /// How far packets with long headers go in a datagram, before one with a short header and the same connection id.
    fn long_bytes(&self, datagram: &[u8]) -> usize {
        let Connection { handshake, settings, .. } = &self.connection;
        let (cid_len, rule) = (handshake.cid_len(), settings.fixed_bit_rule());
        let (mut at, mut packets) = (0, Coalesced::default());
        while let Some(rest) = datagram.get(at..).filter(|rest| !rest.is_empty()) {
            let Ok((_, span)) = packets.next(rest, cid_len, rule) else { return datagram.len() };
            if is_short(rest) {
                return at;
            }
            at += span.end.max(1);
        }
        datagram.len()
    }

    /// Sockets that take nothing now, by their local addresses, as [`Connection::set_full_sockets`]: those of lent paths are for
    /// whoever serves them.
    pub fn set_full_sockets(&mut self, now: Instant, full: &[SocketAddr]) {
        self.connection.set_full_sockets(now, full);
    }

    /// The system refused a datagram as too large, as [`Connection::on_too_large`]: without effect on lent paths, whose holders
    /// are told by themselves.
    pub fn on_too_large(&mut self, now: Instant, tuple: FourTuple, bytes: usize) {
        self.connection.on_too_large(now, tuple, bytes);
    }

    /// Gives back the memory that waits for packets to come, as [`Connection::shrink_to_fit`].
    pub fn shrink_to_fit(&mut self) {
        self.connection.shrink_to_fit();
        self.outbox.shrink_to_fit();
    }

    /// True while somebody else serves this path.
    pub fn is_lent(&self, id: PathId) -> bool {
        self.connection.paths.table.slot(id).is_some_and(Slot::is_lent)
    }

    /// The next datagram, or train of datagrams, of the paths that are here, as [`Connection::poll_transmit`]. What goes by lent
    /// paths is handed out meanwhile.
    pub fn poll_transmit(&mut self, now: Instant, max_segments: usize, buf: &mut Vec<u8>) -> Option<Transmit> {
        if self.connection.paths.table.has_lent() && !self.connection.lifecycle.is_open() {
            // The close leaves once all paths are here.
            buf.clear();
            return None;
        }
        loop {
            let transmit = self.connection.poll_transmit(now, max_segments, buf);
            if let Some(transmit) = transmit {
                // What lent paths are to carry is handed out once these have nothing more.
                let more = if self.connection.paths.table.has_lent() { More::Possible } else { transmit.more };
                return Some(Transmit { more, ..transmit });
            }
            if !self.hand_out(now) {
                return None;
            }
        }
    }

    /// When [`Self::on_timeout`] wants to be called.
    pub fn deadline(&self) -> Option<Instant> {
        let table = &self.connection.paths.table;
        if !table.has_lent() {
            return self.connection.deadline();
        }
        let ends = |slot: &Slot| patience_ends(slot.loan()?, || self.is_last(slot.id));
        earliest(self.connection.deadline(), table.slots().filter_map(ends).min())
    }

    /// True where no other path works, nor is with anybody of whom it is awaited.
    fn is_last(&self, id: PathId) -> bool {
        let mut others = self.connection.paths.table.slots().filter(|slot| slot.id != id);
        !others.any(|slot| slot.is_lent() || slot.is_working())
    }

    /// Does what is due at `now`. Poll for datagrams and messages afterwards.
    pub fn on_timeout(&mut self, now: Instant) {
        let asked = self
            .connection
            .paths
            .table
            .slots()
            .filter(|slot| slot.loan().is_some_and(|loan| loan.recall != Recall::No));
        let asked: SmallVec<[PathId; 8]> = asked.map(|slot| slot.id).collect();
        for id in asked {
            let loan = self.connection.paths.table.slot(id).and_then(Slot::loan);
            if loan.and_then(|loan| patience_ends(loan, || self.is_last(id))).is_some_and(|at| at <= now) {
                self.on_gone(now, id);
            }
        }
        self.connection.on_timeout(now);
    }

    /// True where something waits for which all paths must be here.
    fn wants_all_paths(&self, now: Instant) -> bool {
        let Connection { lifecycle, receive, paths, streams, settings, keys, .. } = &self.connection;
        // The rest of what there is to send has left: which path repeats what of others is decided with all of them here.
        let is_tail = streams.unsent_bytes() == 0
            && streams.has_unacked()
            && !streams.is_growing()
            && paths.table.slots().filter_map(Slot::loan).all(|loan| loan.leases.is_empty());
        self.wants_joined
            || self.wants_copies
            || is_tail
            || !lifecycle.is_open()
            || !receive.deferred.is_empty()
            || paths.wants_all_paths(now)
            || settings.wants_new_keys(keys.as_deref(), now)
    }

    /// The next message, and for whoever serves which path.
    pub fn poll_message(&mut self, now: Instant) -> Option<(PathId, ToPath)> {
        if self.outbox.is_empty() && self.connection.paths.table.has_lent() {
            self.collect(now);
        }
        self.outbox.pop_front()
    }

    /// Gathers what those who serve paths are to hear.
    fn collect(&mut self, now: Instant) {
        let wants_all = self.wants_all_paths(now);
        let Self { connection: Connection { paths, streams, keys, .. }, outbox, .. } = self;
        let mut tell = |id: PathId, order: Instruction| outbox.push_back((id, ToPath(order)));
        while let Some(stream) = streams.poll_unlease() {
            paths.table.loans_mut().for_each(|(id, _)| tell(id, Instruction::Unlease(stream)));
        }
        for note in paths.acks_of_lent.drain(..) {
            tell(note.path, Instruction::Ack(note));
        }
        let ack_terms = paths.table.ack_terms();
        for (id, loan) in paths.table.loans_mut() {
            if std::mem::replace(&mut loan.ack_terms, ack_terms) != ack_terms {
                tell(id, Instruction::Acks(ack_terms));
            }
            let may_tell = loan.metrics_told.is_none_or(|at| now.since(at) >= METRICS_INTERVAL);
            if may_tell && std::mem::take(&mut loan.metrics_due) {
                loan.metrics_told = Some(now);
                tell(id, Instruction::Metrics(paths.shared_metrics.clone()));
            }
            let seals_left = loan.seal_quota.saturating_sub(loan.appetite.packets_sealed);
            if loan.recall == Recall::No
                && seals_left <= SEAL_QUOTA / 2
                && let Some(quota) = keys.as_mut().and_then(|keys| keys.more_quota(SEAL_QUOTA))
            {
                loan.seal_quota += SEAL_QUOTA;
                tell(id, Instruction::Quota(quota));
            }
            let is_overdue = || patience_ends(loan, || false).is_some_and(|at| at <= now);
            if loan.recall == Recall::No && (wants_all || is_overdue()) {
                loan.recall = Recall::Asked(now);
                loan.show_room();
                tell(id, Instruction::Recall);
            }
        }
    }

    /// A path that has become busy, for somebody else to serve. What others were given counts as well: lent ones are asked first, so
    /// that a path that stays here might never become busy.
    pub fn poll_lend(&mut self, now: Instant) -> Option<Box<LentPath>> {
        let mut busy: SmallVec<[PathId; 8]> = SmallVec::new();
        for slot in self.connection.paths.table.slots_mut().filter(|slot| !slot.is_lent()) {
            let Some(moved) = slot.moved_bytes() else { continue };
            let bytes = moved + self.given_bytes;
            let turn = slot.lending.get_or_insert_default();
            let (at, before) = *turn.looked_at.get_or_insert((now, bytes));
            if now.since(at) >= LOOK_INTERVAL {
                (turn.looked_at, turn.is_busy) = (Some((now, bytes)), bytes - before >= BUSY_BYTES);
            }
            if turn.is_busy {
                busy.push(slot.id);
            }
        }
        busy.into_iter().find_map(|id| self.lend(now, id))
    }

    /// A path for somebody else to serve; none where it has to be here: while it is not an established path on which nothing but
    /// data and acks is due, while the connection needs all paths, while keys change, and for a moment after it came back.
    pub fn lend(&mut self, now: Instant, id: PathId) -> Option<Box<LentPath>> {
        let place = self.connection.paths.table.place(id)?;
        if self.wants_all_paths(now) || !self.may_lend(now, place) {
            return None;
        }
        let Connection { settings, random, handshake, keys, paths, scheduling, events, .. } = &mut self.connection;
        let dcid = paths.table.slot_at(place)?.dcid(FourTupleRole::Current)?;
        let peers = handshake.params.peers.as_ref()?;
        let keys: KeyFork = keys.as_mut()?.fork(SEAL_QUOTA)?;
        let terms = LoanTerms {
            side: handshake.side,
            dcid,
            ack_form: paths.table.ack_form(),
            ack_exponent: settings.transport.ack.delay_exponent,
            peer_ack_exponent: peers.ack_delay_exponent,
            guard: paths.table.max_pto() * 3,
            short: ShortHeader { cid_len: handshake.cid_len(), rule: settings.fixed_bit_rule() },
            may_clear_fixed_bit: handshake.may_clear_fixed_bit(settings.transport.wire.grease),
            segmentation: settings.transport.wire.segmentation_offload,
            is_observed: events.is_observed(),
        };
        let path = paths.table.lend(now, place)?;
        paths.table.loan_mut(id)?.seal_quota = SEAL_QUOTA;
        scheduling.views.expire();
        Some(Box::new(LentPath::new(now, path, keys, terms, paths.shared_metrics.clone(), random.fork())))
    }

    fn may_lend(&self, now: Instant, place: SlotPlace) -> bool {
        let Connection { paths, scheduling, handshake, .. } = &self.connection;
        let is_quiet = |path: &Path| {
            let tuple = path.tuple();
            path.rtt().is_some()
                && !path.is_silent()
                && path.due_timer(now).is_none()
                && !path.owes_validation()
                && !path.has_addresses_on_trial()
                && !tuple.local.ip().is_unspecified()
                && !scheduling.full_sockets.hold(&tuple)
        };
        let slot = paths.table.slot_at(place);
        paths.table.pairing() == Pairing::Paths
            && paths.table.is_multipath()
            && paths.is_confirmed()
            && handshake.levels().all(|level| level.keys.is_none())
            && scheduling.copies.is_empty()
            && !paths.pings.contains(&place.id())
            && slot
                .is_some_and(|slot| slot.lending.as_ref().and_then(|turn| turn.not_before).is_none_or(|at| at <= now))
            && slot.filter(|slot| slot.is_working()).and_then(Slot::sendable).is_some_and(is_quiet)
    }
}

/// When the holder of a path has said nothing for too long: it is asked for the path then, or given up where it was asked.
fn patience_ends(loan: &Loan, is_last: impl FnOnce() -> bool) -> Option<Instant> {
    let (since, patience) = match loan.recall {
        Recall::Asked(at) if is_last() => (Some(at), LAST_HOLDER_PATIENCE),
        Recall::Asked(at) => (Some(at), HOLDER_PATIENCE),
        Recall::No => (loan.unanswered_since, HOLDER_PATIENCE),
    };
    since.map(|at| at + patience.max(loan.record.snapshot.pto * 3))
}
