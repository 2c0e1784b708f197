//! Packets of a train that carry nothing but stream data: what holds for the first of them holds for those behind it.
//!
//! A train leaves at one moment. Nothing arrives and no timer fires between its packets, so that most questions have the
//! answer that they had for the packet before: who else has something to send, which path the scheduler wants, what is
//! owed there. They are asked once. What each packet changes is looked at for each: the path's window and pace, and what
//! the streams still have.

use plait_base::Instant;
use plait_base::Space;
use plait_path::table::SlotPlace;
use plait_path::{AckNeed, Path};
use plait_schedule::DemandKind;

use crate::connection::Connection;
use crate::connection::send::purpose::Purpose;

/// What the packets of a train may hold, as far as is known before they are filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contents {
    /// Whatever waits.
    Any,
    /// Stream data: nothing else waits, and the scheduler keeps to the path.
    Streams,
}

impl Connection {
    /// What the packet after one of `purpose` on this path may hold; the next packet is another path's unless it says
    /// [`Contents::Streams`] or the scheduler is asked.
    pub(crate) fn next_contents(&self, now: Instant, place: SlotPlace, purpose: Purpose, last: Contents) -> Contents {
        let goes_on = match last {
            Contents::Streams => true,
            Contents::Any => purpose == Purpose::Data && self.begins_bulk(now, place),
        };
        if goes_on && self.has_bulk(now, place) { Contents::Streams } else { Contents::Any }
    }

    /// True where one more packet of stream data may leave: the streams have some and nothing more urgent, and the path has
    /// room.
    fn has_bulk(&self, now: Instant, place: SlotPlace) -> bool {
        let may_leave = self.streams.unsent_bytes() > 0 && !self.streams.wants_control();
        may_leave && self.paths.table.path_at(place).is_some_and(|path| path.admits_datagram(now))
    }

    /// True where only stream data waits, and all packets that leave now would go this way.
    fn begins_bulk(&self, now: Instant, place: SlotPlace) -> bool {
        let Some(demand) = self.demand(now).filter(|demand| demand.kind == DemandKind::Stream) else { return false };
        let is_quiet = self.keys.is_some()
            && self.handshake.is_complete()
            && !self.streams.is_credit_blocked()
            && self.paths.pings.is_empty()
            && self.scheduling.copies.is_empty()
            && self.scheduling.copy_to.is_empty();
        let owes = |path: &Path| {
            let owes_probe = path.owes_probe(Space::Data) || path.owes_validation();
            owes_probe || path.receive.ack_need(now) != AckNeed::None
        };
        let table = &self.paths.table;
        is_quiet
            && !table.slots().any(|slot| slot.path.as_deref().is_some_and(owes))
            && !self.scheduling.copies.doubles(table, place)
            && self.scheduling.keeps_to(place.id(), &demand)
    }
}
