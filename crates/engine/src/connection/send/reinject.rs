//! Data under way on one path goes out again on another that stands idle, as the policy says.

use plait_base::Instant;
use plait_base::time::earliest;
use plait_path::{FlightOrder, InFlight, Paths};
use plait_schedule::reinject::{Occasion, Outstanding, Reinjection, ReinjectionFactory, Verdict};
use plait_schedule::{PathView, Room, candidates};
use plait_wire::SentFrame;
use smallvec::SmallVec;

use crate::connection::send::pending_copies::{PendingCopies, Target};
use crate::connection::send::purpose::{Choice, EmptyChoices, Purpose, is_copied};

/// Packets taken over at once: few enough that an ack may still spare the rest, enough to fill a train.
const PACKETS_AT_ONCE: usize = 16;

/// The policy, and when it wants to be asked again.
#[derive(Debug)]
pub(crate) struct Reinjector {
    policy: Box<dyn Reinjection>,
    next_look: Option<Instant>,
    /// Frames found last, before they become copies.
    found: Vec<SentFrame>,
}

impl Reinjector {
    pub(crate) fn new(factory: &dyn ReinjectionFactory) -> Self {
        Self { policy: factory.build(), next_look: None, found: Vec::new() }
    }

    pub(crate) fn shrink_to_fit(&mut self) {
        self.found.shrink_to_fit();
    }

    pub(crate) fn name(&self) -> &'static str {
        self.policy.name()
    }

    pub(crate) fn next_look(&self) -> Option<Instant> {
        self.next_look
    }

    pub(crate) fn on_timeout(&mut self, now: Instant) {
        self.next_look = self.next_look.filter(|at| *at > now);
    }

    pub(crate) fn on_sent(&mut self, bytes: u64, purpose: Purpose, now: Instant) {
        match purpose {
            Purpose::Data => self.policy.on_sent(bytes, 0, now),
            Purpose::Copies => self.policy.on_sent(bytes, bytes, now),
            _ => {}
        }
    }

    /// A packet is about to be chosen: what was said of the next time is void.
    pub(crate) fn forget_next_look(&mut self) {
        self.next_look = None;
    }

    /// Copies for an idle path, if the policy wants any. The best idle path first; it takes over from the slowest first.
    pub(crate) fn next(
        &mut self,
        now: Instant,
        occasion: Occasion,
        views: &[PathView],
        paths: &mut Paths,
        copies: &mut PendingCopies,
        empty: &EmptyChoices,
    ) -> Option<Choice> {
        let purpose = Purpose::Copies;
        let opening = views.iter().filter(|view| view.room == Room::Opening);
        let mut idle: SmallVec<[&PathView; 8]> =
            candidates(views).chain(opening).filter(|view| !empty.holds(view.id, purpose)).collect();
        if idle.is_empty() {
            return None;
        }
        idle.sort_by_key(|view| (view.rtt_or_max(), view.id));
        let mut busy: SmallVec<[&PathView; 8]> = views.iter().filter(|view| view.in_flight_bytes > 0).collect();
        busy.sort_by_key(|view| (std::cmp::Reverse(view.rtt_or_max()), view.id));
        for idle in &idle {
            for busy in busy.iter().filter(|busy| busy.id != idle.id) {
                if self.take_over(now, idle, busy, occasion, paths) {
                    for frame in self.found.iter().filter(|frame| is_copied(frame)) {
                        copies.push(*frame, Target::On(idle.id));
                    }
                    if copies.wants(idle.id) {
                        return Some(Choice { path: idle.id, purpose });
                    }
                }
            }
        }
        None
    }

    /// Finds frames under way on the `busy` path that the policy wants on the `idle` one too; true where it did.
    fn take_over(
        &mut self,
        now: Instant,
        idle: &PathView,
        busy: &PathView,
        occasion: Occasion,
        paths: &mut Paths,
    ) -> bool {
        let Some(path) = paths.path_mut(busy.id) else { return false };
        let Self { policy, next_look, found } = self;
        let room = idle.window_bytes.saturating_sub(idle.in_flight_bytes) / idle.max_datagram_bytes.max(1);
        let most = usize::try_from(room).unwrap_or(usize::MAX).clamp(1, PACKETS_AT_ONCE);
        let wanted = |packet: &InFlight| {
            let InFlight { sent_at, bytes, ahead_bytes } = *packet;
            let packet = Outstanding { sent_at, bytes, ahead_bytes };
            match policy.judge(idle, busy, &packet, occasion, now) {
                Verdict::Copy => true,
                Verdict::Later(at) => {
                    *next_look = earliest(*next_look, Some(at).filter(|at| *at > now));
                    false
                }
                Verdict::No => false,
            }
        };
        let order = match occasion {
            Occasion::Drained => FlightOrder::NewestFirst,
            Occasion::Blocked | Occasion::Paused => FlightOrder::OldestFirst,
        };
        found.clear();
        path.take_copies(order, most, wanted, found)
    }
}
