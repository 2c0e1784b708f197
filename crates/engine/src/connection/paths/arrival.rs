//! Packets arrive on paths: they open them, show that they work, and come from elsewhere (RFC 9000 9.3).

use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use plait_base::limits::MAX_PASSED_ACKS;
use plait_base::observe::DropReason;
use plait_base::{CloseCode, FourTuple, Instant, PathId, Random, Space, Violation};
use plait_crypto::{OneRttKeys, OpenError, PhaseMark, Unmasked};
use plait_path::Moved;
use plait_path::table::{Admission, Pairing, SlotPlace};
use plait_path::{AckOutcome, AckReport, Eliciting, HandshakeState, Path, ReceiveFlow};
use plait_wire::SentFrame;
use plait_wire::header::{PacketKind, PacketSpan};

use super::PathControl;
use crate::connection::receive::Arrival;
use crate::connection::receive::acked::AckNote;
use crate::connection::receive::open::Refusal;
use crate::connection::receive::opened::{OpenedPacket, Opener};

/// Between which addresses a datagram came, as its path sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DatagramSource {
    /// Nobody opened a path of its id yet, or the id is forgotten.
    NoPath,
    /// A 4-tuple that the path uses, or may use.
    Known,
    /// Others than the path knows.
    Elsewhere,
}

impl DatagramSource {
    pub(crate) fn is_elsewhere(self) -> bool {
        self == Self::Elsewhere
    }
}

/// Whether and when a packet is read on its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MayRead {
    Now,
    /// The peer opens a path for which its connection ids may be on their way: once they are here.
    AwaitsCids,
    Never,
}

/// Opens 1-RTT packets of one path.
struct OneRttOpener<'a> {
    keys: &'a mut OneRttKeys,
    path: PathId,
    mark: &'a mut PhaseMark,
    now: Instant,
    guard: Duration,
}

impl Opener for OneRttOpener<'_> {
    #[inline]
    fn unmask(&self, packet: &mut [u8], pn_at: usize) -> Result<Unmasked, OpenError> {
        self.keys.unmask(packet, pn_at)
    }

    #[inline]
    fn open(&mut self, packet: &mut [u8], header_len: usize, number: u64) -> Result<usize, OpenError> {
        let Self { keys, path, mark, now, guard } = self;
        Ok(keys.open(packet, header_len, *path, number, mark, *now, *guard)?.payload_bytes)
    }
}

/// Opens 1-RTT packets of one path that come together.
pub(crate) struct PathOpener<'a> {
    keys: OneRttOpener<'a>,
    /// The number after the largest so far.
    expected: u64,
}

impl<'a> PathOpener<'a> {
    /// Opens what came for `path`; `guard` is three times the largest probe time-out.
    pub(crate) fn new(path: &'a mut Path, keys: &'a mut OneRttKeys, now: Instant, guard: Duration) -> Self {
        let id = path.id();
        let expected = path.receive.expected();
        let keys = OneRttOpener { keys, path: id, mark: path.receive.phase_mark_mut(), now, guard };
        Self { keys, expected }
    }

    /// Opens a packet in place.
    #[inline]
    pub(crate) fn open(&mut self, packet: &mut [u8], span: PacketSpan) -> Result<OpenedPacket, OpenError> {
        let opened = OpenedPacket::open(packet, span, self.expected, &mut self.keys)?;
        self.expected = self.expected.max(opened.number + 1);
        Ok(opened)
    }
}

impl PathControl {
    /// A datagram of `bytes` came between these addresses for the path at `place`: it is credit for them.
    pub(crate) fn on_datagram(&mut self, place: Option<SlotPlace>, tuple: &FourTuple, bytes: u64) -> DatagramSource {
        if self.table.pairing() == Pairing::Uniflows {
            // Every address is as good as another to what arrives.
            self.table.on_received_from(tuple, bytes);
            return DatagramSource::Known;
        }
        let Some(path) = place.and_then(|place| self.table.path_at_mut(place)) else { return DatagramSource::NoPath };
        if path.on_datagram(tuple, bytes) { DatagramSource::Known } else { DatagramSource::Elsewhere }
    }

    /// The path that a packet came by, found when its datagram came.
    fn path_of(&mut self, at: &Arrival) -> Option<&mut Path> {
        self.table.path_at_mut(at.place?)
    }

    /// Opens 1-RTT packets of the path at `place` one after the other; none where no path is open there.
    pub(crate) fn one_rtt_opener<'a>(
        &'a mut self,
        now: Instant,
        place: Option<SlotPlace>,
        keys: &'a mut OneRttKeys,
    ) -> Option<PathOpener<'a>> {
        let guard = self.table.max_pto() * 3;
        Some(PathOpener::new(self.table.path_at_mut(place?)?, keys, now, guard))
    }

    /// Opens a 1-RTT packet in place, and fills in at `at` what only its number and its path say.
    pub(crate) fn open_packet(
        &mut self,
        at: &mut Arrival,
        keys: &mut OneRttKeys,
        span: PacketSpan,
        packet: &mut [u8],
    ) -> Result<Range<usize>, Refusal> {
        if self.table.admission_at(at.place) == Admission::Unknown {
            return Err(Refusal::Drop(DropReason::UnknownPath));
        }
        let guard = self.table.max_pto() * 3;
        let opened = match self.one_rtt_opener(at.now, at.place, keys) {
            Some(mut opener) => opener.open(packet, span)?,
            None => {
                // A path that the peer opens with this packet has no receiver yet.
                let mark = &mut PhaseMark::default();
                let mut keys = OneRttOpener { keys, path: at.path, mark, now: at.now, guard };
                OpenedPacket::open(packet, span, 0, &mut keys)?
            }
        };
        self.judge(at, opened.number)?;
        Ok(opened.payload)
    }

    /// What is to become of a 1-RTT packet that was opened: filled in at `at`, or why it goes no further.
    pub(crate) fn judge(&mut self, at: &mut Arrival, number: u64) -> Result<(), Refusal> {
        at.admission = self.table.admission_at(at.place);
        if at.admission == Admission::Unknown {
            return Err(Refusal::Drop(DropReason::UnknownPath));
        }
        let receive = self.path_of(at).map(|path| &path.receive);
        if receive.is_some_and(|receive| receive.is_duplicate(number)) {
            return Err(Refusal::Drop(DropReason::Duplicate));
        }
        at.newest = receive.and_then(ReceiveFlow::largest).is_none_or(|largest| number > largest);
        at.number = number;
        Ok(())
    }

    /// True where a path is open for what arrives, and where it came from is where the path leads.
    pub(crate) fn is_bulk_path(&self, at: &mut Arrival) -> bool {
        at.admission = self.table.admission_at(at.place);
        self.table.pairing() == Pairing::Paths
            && at.admission == Admission::Open
            && at.place.and_then(|place| self.table.path_at(place)).is_some_and(|path| path.is_at(&at.tuple))
    }

    /// True for a number above all that the path received.
    pub(crate) fn is_newest(&self, at: &Arrival, number: u64) -> bool {
        self.largest_received(at).is_none_or(|largest| number > largest)
    }

    /// The largest number that the path received.
    pub(crate) fn largest_received(&self, at: &Arrival) -> Option<u64> {
        at.place.and_then(|place| self.table.path_at(place))?.receive.largest()
    }

    /// The handshake begins again: what is under way, 0-RTT included, counts as never sent. CRYPTO data is left to the
    /// handshake to send again.
    pub(crate) fn declare_first_flight_lost(&mut self, now: Instant) {
        if let Some(path) = self.table.path_mut(PathId::ZERO) {
            path.declare_all_lost(now, Space::Initial, &mut self.feedback);
            path.declare_all_lost(now, Space::Data, &mut self.feedback);
        }
        self.feedback.lost.retain(|frame| !matches!(frame, SentFrame::Crypto { .. }));
    }

    /// True for the first packet of a path for which the peer gave no connection id yet.
    pub(crate) fn lacks_cids(&self, at: &Arrival) -> bool {
        self.admission(at) == Admission::Refuse(CloseCode::NO_CID_AVAILABLE_FOR_PATH)
    }

    /// Lets a 0-RTT or 1-RTT packet in on its path; opens the path when the packet is the peer's first on it.
    pub(crate) fn admit(&mut self, at: &Arrival, random: &mut Random) -> MayRead {
        let when = |is_open| if is_open { MayRead::Now } else { MayRead::Never };
        match self.admission(at) {
            Admission::Open | Admission::Closing => MayRead::Now,
            Admission::New => when(self.accept(at, random)),
            Admission::Refuse(code) => {
                let pto = self.table.max_pto();
                if code == CloseCode::NO_CID_AVAILABLE_FOR_PATH && self.table.awaits_cids(at.now, at.path, pto * 3) {
                    return MayRead::AwaitsCids;
                }
                let _ = self.table.abandon(at.now, at.path, code, pto);
                MayRead::Never
            }
            Admission::Unknown => MayRead::Never,
        }
    }

    /// True for a packet that would open a path, or be refused one.
    pub(crate) fn opens_path(&self, at: &Arrival) -> bool {
        at.space == Space::Data && matches!(self.admission(at), Admission::New | Admission::Refuse(_))
    }

    /// What was found when the packet was opened, where that cannot have changed since.
    fn admission(&self, at: &Arrival) -> Admission {
        if at.admission == Admission::Open { Admission::Open } else { self.table.admission_at(at.place) }
    }

    /// A Handshake packet of the peer was opened: its address is proven (RFC 9000 8.1).
    pub(crate) fn on_handshake_packet(&mut self) {
        if let Some(path) = self.table.path_mut(PathId::ZERO) {
            path.on_address_proven();
        }
    }

    /// A 0-RTT or 1-RTT packet was read: it is remembered for acks, and for what it says of its path. `stream_bytes` where
    /// it brought data of the application.
    pub(crate) fn on_packet_received(&mut self, at: &Arrival, eliciting: Eliciting, stream_bytes: Option<u64>) {
        if eliciting == Eliciting::Yes {
            self.expect_more(at);
        }
        let Some(path) = self.path_of(at) else { return };
        let is_new = !path.receive.is_duplicate(at.number);
        let numbers = if is_new { at.number..at.number + 1 } else { 0..0 };
        if path.on_packets_received(at.now, numbers, eliciting, at.ecn, at.bytes, stream_bytes) {
            self.ping(at.path);
        }
    }

    /// Packets of these numbers were read, `bytes` of datagrams with `stream_bytes` and nothing else, the last of them at `at`.
    pub(crate) fn on_bulk_received(&mut self, at: &Arrival, numbers: Range<u64>, bytes: u64, stream_bytes: u64) {
        self.expect_more(at);
        let Some(path) = self.path_of(at) else { return };
        if path.on_packets_received(at.now, numbers, Eliciting::Yes, at.ecn, bytes, Some(stream_bytes)) {
            self.ping(at.path);
        }
    }

    /// The peer wants to hear at once which packets of this path came.
    pub(crate) fn on_immediate_ack(&mut self, at: &Arrival) {
        if let Some(path) = self.path_of(at) {
            path.receive.hasten_ack();
        }
    }

    /// RFC 9000 9.3: what would bring more may not find us any more: a NAT forgot us, and only what we send shows the way.
    fn expect_more(&mut self, at: &Arrival) {
        if at.kind == PacketKind::OneRtt
            && self.side.is_client()
            && self.is_confirmed()
            && let Some(path) = self.path_of(at)
        {
            path.expect_more(at.now);
        }
    }

    /// Takes in what the newest packet of a path says: the spin bit and our own address. True when the peer sends from
    /// other addresses by now.
    pub(crate) fn on_newest_packet(&mut self, at: &Arrival) -> bool {
        // Where the system chooses our address, the peer's newest packet shows which one that is.
        let asks_system = self.side.is_client() && self.is_confirmed();
        if self.table.pairing() == Pairing::Uniflows {
            self.on_heard_from(at);
            return false;
        }
        let Some(path) = self.path_of(at) else { return false };
        let moved = if asks_system { path.follow_system(&at.tuple) } else { Moved::No };
        let is_here = path.on_newest_packet(at.now, &at.tuple, at.dcid, at.spin);
        self.on_moved(at.now, at.path, moved);
        !is_here
    }

    /// The peer's newest packet with more than probing frames came from other addresses: a server follows it there.
    pub(crate) fn follow(&mut self, at: &Arrival) {
        if self.side.is_client() || !self.is_confirmed() {
            return;
        }
        let times = self.validation_times(at.path);
        let moved = self.table.follow(at.now, at.path, at.tuple, at.dcid, at.bytes, times);
        self.on_moved(at.now, at.path, moved);
    }

    /// An ack of packets that left on the path at `place` arrived with the packet `at`: the path works. What it says of
    /// packets is in `feedback`; none where the path is gone.
    pub(crate) fn on_ack(
        &mut self,
        at: &Arrival,
        place: SlotPlace,
        report: &AckReport,
        ranges: impl IntoIterator<Item = RangeInclusive<u64>>,
        keys: Option<&mut OneRttKeys>,
    ) -> Result<Option<AckOutcome>, Violation> {
        let guard = self.table.max_pto() * 3;
        let is_proof = at.space == Space::Handshake && self.side.is_client() && !self.is_confirmed();
        let id = place.id();
        let Some(path) = self.table.path_at_mut(place) else { return Ok(None) };
        if is_proof {
            // RFC 9002 6.2.2.1, A.8: whoever read a Handshake packet of ours knows that our address is ours
            path.set_handshake(at.now, HandshakeState::Unconfirmed);
        }
        let outcome = path.on_ack(at.now, at.space, report, ranges, &mut self.shared_metrics, &mut self.feedback)?;
        if at.space == Space::Data
            && let Some(keys) = keys
        {
            path.confirm_keys(at.now, keys, report.largest, guard);
        }
        let has_news = outcome.newly_acked_eliciting > 0;
        let recovers = has_news && self.table.recover(id);
        if outcome.rtt_updated {
            self.table.on_pto_changed();
            self.table.review_ack_request(at.now);
        }
        if recovers {
            self.on_recovered(id);
        }
        if has_news {
            self.table.on_report_refuted(id);
            self.end_outage(id);
        }
        Ok(Some(outcome))
    }

    /// An ack of packets of a path that somebody else serves.
    pub(crate) fn pass_on_ack(&mut self, note: AckNote) {
        // Acks are repeated in later ones: where nobody takes them in time, the oldest gives way.
        if self.acks_of_lent.len() >= MAX_PASSED_ACKS {
            self.acks_of_lent.pop_front();
        }
        self.acks_of_lent.push_back(note);
    }

    /// The peer has an ack of ours, of packets that arrived on path `id`: these numbers need not be reported again.
    pub(crate) fn on_ack_acked(&mut self, id: PathId, smallest: u64, largest: u64) {
        if let Some(path) = self.table.path_mut(id) {
            path.receive.on_ack_acked(smallest, largest);
        }
    }
}
