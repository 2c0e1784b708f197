//! Packets of a train that carry nothing but stream data: what holds for the first of them holds for those behind it.
//!
//! A train leaves at one moment. Nothing arrives and no timer fires between its packets, so that most questions have the
//! answer that they had for the packet before: who else has something to send, which path the scheduler wants, what is
//! owed there. They are asked once. What each packet changes is looked at for each: the path's window and pace, and what
//! the streams still have.

use plait_base::{Instant, Space};
use plait_path::table::SlotPlace;
use plait_path::{AckNeed, Path};
use plait_schedule::DemandKind;
use plait_stream::Streams;

use crate::connection::paths::PathControl;
use crate::connection::send::choice::{DataKeys, Offer, Permission};
use crate::connection::send::scheduling::Scheduling;

/// What the packets of a train may hold, as far as is known before they are filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contents {
    /// Anything that waits to be sent.
    Any,
    /// Stream data: nothing else waits, and the scheduler keeps to the path.
    Streams,
}

impl Contents {
    /// What the next packet on a path may hold, where the scheduler keeps to it: stream data, if there is some and nothing more
    /// urgent, and the path has room. For all else the scheduler is asked.
    pub(crate) fn next(keeps_to_path: bool, streams: &Streams, path: Option<&Path>, now: Instant) -> Self {
        let may_leave = keeps_to_path && streams.unsent_bytes() > 0 && !streams.wants_control();
        let has_room = || path.is_some_and(|path| path.admits_datagram(now));
        if may_leave && has_room() { Self::Streams } else { Self::Any }
    }
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
            owes_probe || path.receive.ack_need(now) != AckNeed::None
        };
        is_quiet
            && !paths.table.slots().any(|slot| slot.path.as_deref().is_some_and(owes))
            && !self.copies.doubles(&paths.table, place)
            && self.keeps_to(place.id(), &demand)
    }
}
