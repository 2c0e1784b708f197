//! Streams that keep to a path each: which of them a path carries, and what leaves next.
//!
//! The lanes of streams are dealt to the paths that may carry data, in order of their ids. Nothing is remembered: where a path
//! comes, fails, turns into a backup or ends, the lanes are dealt anew at the next look, and what was lost of a stream leaves on the
//! path that its lane has then.

use plait_base::PathId;
use plait_path::Paths;
use plait_schedule::{Decision, Demand, WaitReason, candidates, eligible};
use plait_stream::{Lanes, Streams};

use super::choice::Offer;
use super::scheduling::{Scheduling, Shown};
use crate::config::StreamPlacement;

impl Scheduling {
    /// Streams whose data a path carries, by the paths of the last look.
    #[inline]
    pub(crate) fn lanes(&self, id: PathId) -> Lanes {
        match self.placement {
            StreamPlacement::Pooled => Lanes::ALL,
            StreamPlacement::Pinned => self.pinned_lanes(id),
        }
    }

    /// None of them on a path that others are better than.
    fn pinned_lanes(&self, id: PathId) -> Lanes {
        let paths = self.views.list();
        let place = eligible(paths).position(|view| view.id == id).unwrap_or(usize::MAX);
        Lanes::part(place, eligible(paths).count())
    }

    /// The next path with room for which there is stream data. Whoever schedules is shown that path alone.
    pub(crate) fn decide_pinned(
        &mut self,
        paths: &mut Paths,
        streams: &mut Streams,
        offer: &Offer,
        demand: &Demand,
    ) -> Decision {
        self.look(paths, offer.now, offer.side);
        let mut next = None;
        for view in candidates(self.views.list()) {
            if streams.next_may_send(self.lanes(view.id)) {
                next = Some(view.id);
                break;
            }
        }
        let Some(next) = next else { return Decision::Wait(WaitReason::Busy) };
        self.show(|view| view.id == next);
        self.pick(Shown::Some, demand)
    }
}
