//! Data under way on one path goes out again on another that stands idle, as the policy says.

use plait_base::time::earliest;
use plait_base::{Instant, PathId};
use plait_path::{FlightOrder, InFlight};
use plait_schedule::reinject::{Occasion, Outstanding, Reinjection, ReinjectionFactory, Verdict};
use plait_schedule::{PathView, candidates};
use plait_wire::SentFrame;

use crate::connection::Connection;
use crate::connection::send::pending_copies::Target;
use crate::connection::send::purpose::{Purpose, is_copied};

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
}

impl Connection {
    /// With nothing new to send, an idle path may take over what others still hold.
    pub(crate) fn next_reinjection(&mut self, now: Instant, empty: &[(PathId, Purpose)]) -> Option<(PathId, Purpose)> {
        self.scheduling.reinjector.next_look = None;
        let idle = self.streams.has_unacked() && self.streams.unsent_bytes() == 0;
        if !idle || !self.paths.table.is_multipath() || self.paths.table.open_slots().nth(1).is_none() {
            return None;
        }
        let side = self.side();
        self.scheduling.look(&mut self.paths.table, now, side);
        let occasion = match (self.streams.is_held_back(), self.streams.is_growing()) {
            (true, _) => Occasion::Blocked,
            (false, true) => Occasion::Paused,
            (false, false) => Occasion::Drained,
        };
        // The best idle path first; it takes over from the slowest first.
        let mut idle: smallvec::SmallVec<[PathView; 8]> = candidates(&self.scheduling.views).copied().collect();
        idle.retain(|view| !empty.contains(&(view.id, Purpose::Copies)));
        idle.sort_by_key(|view| (view.rtt_or_max(), view.id));
        let mut busy: smallvec::SmallVec<[PathView; 8]> =
            self.scheduling.views.iter().filter(|view| view.in_flight_bytes > 0).copied().collect();
        busy.sort_by_key(|view| (std::cmp::Reverse(view.rtt_or_max()), view.id));
        for idle in &idle {
            for busy in busy.iter().filter(|busy| busy.id != idle.id) {
                if self.take_over(now, idle, busy, occasion) {
                    return Some((idle.id, Purpose::Copies));
                }
            }
        }
        None
    }

    fn take_over(&mut self, now: Instant, idle: &PathView, busy: &PathView, occasion: Occasion) -> bool {
        let Some(path) = self.paths.table.path_mut(busy.id) else { return false };
        let Reinjector { policy, next_look, found } = &mut self.scheduling.reinjector;
        let room = idle.window_bytes.saturating_sub(idle.in_flight_bytes) / idle.mss_bytes.max(1);
        let most = usize::try_from(room).unwrap_or(usize::MAX).clamp(1, PACKETS_AT_ONCE);
        let mut wanted = |packet: &InFlight| {
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
        let (first, second) = match occasion {
            Occasion::Drained => (FlightOrder::NewestFirst, FlightOrder::OldestFirst),
            Occasion::Blocked | Occasion::Paused => (FlightOrder::OldestFirst, FlightOrder::NewestFirst),
        };
        found.clear();
        let taken = path.send.take_copies(first, most, &mut wanted, found)
            || path.send.take_copies(second, most, &mut wanted, found);
        for frame in found.iter().filter(|frame| is_copied(frame)) {
            self.scheduling.copies.push(*frame, Target::On(idle.id));
        }
        taken && self.scheduling.copies.wants(idle.id)
    }
}
