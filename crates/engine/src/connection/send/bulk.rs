//! Packets of a train that carry nothing but stream data: what holds for the first of them holds for those behind it.
//!
//! A train leaves at one moment. Nothing arrives and no timer fires between its packets, so that most questions have the
//! answer that they had for the packet before: who else has something to send, which path the scheduler wants, what is
//! owed there. They are asked once; the path then makes the packets ([`Path::fill_train`]).

use plait_base::observe::TraceEvent;
use plait_base::{Ecn, Instant, PathId, Random, Space};
use plait_path::table::SlotPlace;
use plait_path::{AckNeed, Built, FourTupleRole, Path, TrainEnd, TrainPlan, TrainSource};
use plait_schedule::DemandKind;
use plait_stream::{Lanes, Streams};
use plait_wire::FrameWriter;
use plait_wire::header::FixedBit;

use crate::connection::Connection;
use crate::connection::events::Events;
use crate::connection::paths::PathControl;
use crate::connection::send::choice::{DataKeys, Offer, Permission};
use crate::connection::send::purpose::{EmptyChoices, Purpose};
use crate::connection::send::reinject::Reinjector;
use crate::connection::send::scheduling::Scheduling;
use crate::io::More;

/// A train of which at least one packet is in the buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Train {
    pub(crate) place: SlotPlace,
    pub(crate) ecn: Option<Ecn>,
    /// Bytes of each of its packets but the last.
    pub(crate) segment: usize,
    /// Packets in the buffer.
    pub(crate) count: usize,
    /// Packets that it may have.
    pub(crate) max: usize,
}

impl Train {
    /// What its next packet is for, `purpose` having been that of the last; where it ends, whether anything else may leave now.
    #[inline(never)]
    pub(super) fn go_on(
        &mut self,
        connection: &mut Connection,
        now: Instant,
        purpose: Purpose,
        buf: &mut Vec<u8>,
    ) -> Result<Purpose, More> {
        let place = self.place;
        let mut offer = connection.offer(now).ok_or(More::Possible)?;
        if purpose == Purpose::Data && connection.scheduling.begins_bulk(&connection.paths, &offer, place) {
            let before = self.count;
            if connection.fill_train(now, self, buf) == TrainEnd::Closed {
                return Err(More::Possible);
            }
            if self.count > before {
                offer = connection.offer(now).ok_or(More::Possible)?;
            }
        }
        let Connection { scheduling, paths, streams, datagrams, .. } = connection;
        // What held packets back so far holds them no longer, or is found again.
        scheduling.held_until = None;
        match scheduling.next_packet(paths, streams, datagrams, &offer, &EmptyChoices::default()) {
            Some(next) if next.path == place.id() && next.purpose.joins_trains() => Ok(next.purpose),
            Some(_) => Err(More::Possible),
            // All that goes before the scheduler was asked for before this train, and waits for nothing that it carries.
            None if offer.mtu_probes == Permission::Given && connection.lifecycle.is_open() => Err(More::Nothing),
            None => Err(More::Possible),
        }
    }
}

impl Connection {
    /// Adds packets of stream data to a train, as long as nothing else has to be decided. Counts them, and says whether
    /// other packets may follow.
    pub(crate) fn fill_train(&mut self, now: Instant, train: &mut Train, buf: &mut Vec<u8>) -> TrainEnd {
        let may_clear = self.handshake.may_clear_fixed_bit(self.settings.transport.wire.grease);
        let lanes = self.scheduling.lanes(train.place.id());
        let Self { paths, streams, keys, scheduling, random, events, .. } = self;
        let Scheduling { scheduler, reinjector, frames, views, .. } = scheduling;
        let Some(slot) = paths.table.slot_at_mut(train.place) else { return TrainEnd::Closed };
        let dcid = slot.dcid(FourTupleRole::Current);
        let (Some(dcid), Some(path), Some(keys)) = (dcid, slot.path.as_deref_mut(), keys.as_deref_mut()) else {
            return TrainEnd::Closed;
        };
        let plan = TrainPlan { dcid, ecn: train.ecn, segment_bytes: train.segment, count: train.max - train.count };
        let mut bulk = Bulk {
            now,
            path: train.place.id(),
            lanes,
            streams,
            fixed_bits: may_clear.then_some(random),
            scheduler: &mut **scheduler,
            reinjector,
            is_observed: events.is_observed(),
            events,
            count: 0,
        };
        let end = path.fill_train(now, &plan, keys, &mut bulk, frames, buf);
        frames.clear();
        if bulk.count > 0 {
            train.count += bulk.count;
            views.on_sent(train.place);
            self.lifecycle.on_sent_eliciting(now, || self.paths.table.max_pto());
        }
        end.unwrap_or_else(|error| {
            self.close_with(now, error.into());
            TrainEnd::Closed
        })
    }
}

/// The streams, and those who hear of what leaves.
struct Bulk<'a> {
    now: Instant,
    path: PathId,
    /// Streams whose data goes this way.
    lanes: Lanes,
    streams: &'a mut Streams,
    /// Where the second bit of each packet is drawn from; none where it is always set.
    fixed_bits: Option<&'a mut Random>,
    scheduler: &'a mut dyn plait_schedule::Scheduler,
    reinjector: &'a mut Reinjector,
    events: &'a mut Events,
    is_observed: bool,
    count: usize,
}

impl TrainSource for Bulk<'_> {
    #[inline]
    fn has_more(&self) -> bool {
        self.streams.has_unsent(self.lanes) && !self.streams.wants_control()
    }

    #[inline]
    fn has_unsent(&self) -> bool {
        self.streams.has_unsent(self.lanes)
    }

    #[inline]
    fn fixed_bit(&mut self) -> FixedBit {
        draw_fixed_bit(self.fixed_bits.as_deref_mut())
    }

    #[inline]
    fn fill(&mut self, w: &mut FrameWriter<'_>) {
        self.streams.fill_data(self.lanes, w);
    }

    #[inline]
    fn on_sent(&mut self, built: Built) {
        self.count += 1;
        let (now, path, bytes) = (self.now, self.path, built.bytes as u64);
        self.scheduler.on_sent(path, bytes, now);
        self.reinjector.on_sent(bytes, Purpose::Data, now);
        if self.is_observed {
            let Built { number, bytes, .. } = built;
            let (space, bytes, ack_eliciting) = (Space::Data, bytes as u16, true);
            self.events.observe(now, || TraceEvent::PacketSent { path, space, number, bytes, ack_eliciting });
        }
    }
}

/// The second bit of a packet: 1 or 0 as it comes where there is something to draw from (RFC 9287 3), else 1.
#[inline]
pub(crate) fn draw_fixed_bit(random: Option<&mut Random>) -> FixedBit {
    let clear = random.is_some_and(|random| random.next_u32() & 1 == 1);
    if clear { FixedBit::Clear } else { FixedBit::Set }
}

impl Scheduling {
    /// True where only stream data waits, and all packets that leave now would go this way; not before the handshake is
    /// confirmed.
    pub(crate) fn begins_bulk(&self, paths: &PathControl, offer: &Offer, place: SlotPlace) -> bool {
        let now = offer.now;
        let Some(demand) = offer.demand.filter(|demand| demand.kind == DemandKind::Stream) else { return false };
        let is_quiet = offer.keys == DataKeys::OneRtt
            && offer.mtu_probes == Permission::Given
            && !offer.is_credit_blocked
            && paths.pings.is_empty()
            && self.copies.is_empty()
            && self.copy_to.is_empty();
        let owes = |path: &Path| {
            let owes_probe = path.owes_probe(Space::Data) || path.owes_validation();
            // An ack that only goes along was offered to the train's first packet: what is left of them goes by other paths.
            owes_probe || path.receive.ack_need(now) == AckNeed::Now
        };
        is_quiet
            && !paths.table.slots().any(|slot| slot.path.as_deref().is_some_and(owes))
            && !self.copies.doubles(&paths.table, place)
            && self.keeps_to(place.id(), &demand)
    }
}
