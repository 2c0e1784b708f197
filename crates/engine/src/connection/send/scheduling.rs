//! The policies by which packets leave, and what waits for a certain path.

use plait_base::limits::TIMER_GRANULARITY;
use plait_base::time::earliest;
use plait_base::{Instant, PathId, Random, Side};
use plait_path::Paths;
use plait_path::table::SlotPlace;
use plait_schedule::{Decision, Demand, PathView, Room, Scheduler, WaitReason, WhyIdle};
use plait_wire::SentFrame;
use smallvec::SmallVec;

use crate::config::{StreamPlacement, TransportConfig};
use crate::connection::send::acks::Acks;
use crate::connection::send::pending_copies::{PendingCopies, Target};
use crate::connection::send::purpose::is_copied;
use crate::connection::send::reinject::Reinjector;
use crate::connection::send::sockets::FullSockets;
use crate::connection::send::views::{self, Views};

/// What decides which packet leaves next, and on which path.
pub(crate) struct Scheduling {
    pub(crate) scheduler: Box<dyn Scheduler>,
    /// Whether streams keep to a path each.
    pub(crate) placement: StreamPlacement,
    pub(crate) acks: Acks,
    pub(crate) copies: PendingCopies,
    pub(crate) reinjector: Reinjector,
    pub(crate) full_sockets: FullSockets,
    /// Further paths on which the scheduler wants the packet being built.
    pub(crate) copy_to: Vec<PathId>,
    /// When to choose again, where what waits is held by a pacer, by a full socket, or for a faster path.
    pub(crate) held_until: Option<Instant>,
    /// When pacing lets the next PATH_RESPONSE go.
    pub(crate) responses_at: Option<Instant>,
    pub(crate) views: Views,
    /// Views of the paths that can carry the next datagram; empty but while it is decided about.
    shown: Vec<PathView>,
    /// Frames of the packet being built; empty between packets.
    pub(crate) frames: Vec<SentFrame>,
}

/// Which paths a scheduler chooses from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    All,
    /// Those of the last [`Scheduling::show`].
    Some,
}

impl Scheduling {
    pub(crate) fn new(transport: &TransportConfig, random: Random) -> Self {
        Self {
            scheduler: transport.scheduler.build(random),
            placement: transport.streams.placement,
            acks: Acks::new(transport.paths.ack_route.build(), transport.ack.delay_exponent),
            copies: PendingCopies::new(transport.paths.duplicate_until_rtt),
            reinjector: Reinjector::new(&*transport.paths.reinjection),
            full_sockets: FullSockets::default(),
            copy_to: Vec::new(),
            held_until: None,
            responses_at: None,
            views: Views::default(),
            shown: Vec::new(),
            frames: Vec::new(),
        }
    }

    /// A poll begins: what held packets back at the last one is out of date.
    pub(crate) fn begin_poll(&mut self, now: Instant) {
        self.views.begin_poll(now);
        self.held_until = None;
    }

    /// Lets the scheduler choose from the views that `is_shown` admits.
    pub(crate) fn show(&mut self, is_shown: impl Fn(&PathView) -> bool) {
        self.shown.clear();
        self.shown.extend(self.views.list().iter().filter(|view| is_shown(view)));
    }

    /// The scheduler's answer, by the paths of the last look.
    pub(crate) fn pick(&mut self, shown: Shown, demand: &Demand) -> Decision {
        let views = match shown {
            Shown::All => self.views.list(),
            Shown::Some => &self.shown,
        };
        let decision = self.scheduler.pick(views, demand);
        match decision {
            Decision::Wait(WaitReason::Faster(id)) => {
                // The path that is waited for may have fallen silent: ask again when its round trip has passed.
                let rtt = views.iter().find(|view| view.id == id).and_then(|view| view.rtt).unwrap_or_default();
                let at = demand.now + rtt.max(TIMER_GRANULARITY);
                self.held_until = earliest(self.held_until, Some(at));
            }
            Decision::SendAlso { copies, .. } => self.copy_to.extend(copies.ids(views)),
            Decision::Send(_) | Decision::Wait(_) => {}
        }
        decision
    }

    /// True where the scheduler would send whatever stream data follows on this path too, by the paths of the last look.
    pub(crate) fn keeps_to(&self, path: PathId, demand: &Demand) -> bool {
        // Pinned streams do not ask where to go.
        self.placement == StreamPlacement::Pinned || self.scheduler.keeps_to(path, self.views.list(), demand)
    }

    /// Sees to it that the views tell how things are, before a packet is chosen.
    pub(crate) fn look(&mut self, paths: &mut Paths, now: Instant, side: Side) {
        self.views.look(paths, now, side, &self.full_sockets);
        let changes_at = |v: &PathView| if let Room::Paced(at) | Room::Socket(at) = v.room { Some(at) } else { None };
        // Beside what this poll found before: a wait for a faster path outlasts the look for copies that follows.
        let changes_at = self.views.list().iter().filter_map(changes_at).min();
        self.held_until = earliest(self.held_until, changes_at);
    }

    /// While a path's RTT is unknown its frames go on another path too (CoNEXT 2017, section 4.1); what the scheduler
    /// wants on further paths goes there as well.
    pub(crate) fn copy_elsewhere(&mut self, paths: &Paths, place: SlotPlace, carried: &[SentFrame]) {
        let copied = || carried.iter().filter(|frame| is_copied(frame));
        for target in self.copy_to.drain(..).filter(|target| *target != place.id()) {
            copied().for_each(|frame| self.copies.push(*frame, Target::On(target)));
        }
        if self.copies.doubles(paths, place) {
            copied().for_each(|frame| self.copies.push(*frame, Target::NotOn(place.id())));
        }
    }

    /// Why a path carries no data now.
    pub(crate) fn why_idle(&self, paths: &Paths, side: Side, id: PathId, demand: &Demand) -> Option<WhyIdle> {
        let views: SmallVec<[PathView; 8]> = views::views(paths, demand.now, side, &self.full_sockets).collect();
        let view = views.iter().find(|view| view.id == id)?;
        let path = paths.path(id)?;
        // With nothing of ours to send, it may still bring the peer's data, or await the acks of what was the last of ours.
        let why = plait_schedule::why_idle(view, &views, demand);
        why.filter(|why| *why != WhyIdle::NoData || !path.is_in_use(demand.now))
    }

    pub(crate) fn shrink_to_fit(&mut self) {
        self.copies.shrink_to_fit();
        self.reinjector.shrink_to_fit();
        self.acks.shrink_to_fit();
        self.copy_to.shrink_to_fit();
        self.views.shrink_to_fit();
        // Refilled whenever they are looked at.
        self.shown = Vec::new();
        self.frames = Vec::new();
    }

    pub(crate) fn on_path_closing(&mut self, id: PathId) {
        self.scheduler.on_path_closing(id);
        self.acks.on_path_closing(id);
        self.copies.on_path_closing(id);
    }
}
