//! Data under way on one path goes out again on another that stands idle, as the policy says.

use std::time::Duration;

use plait_base::time::earliest;
use plait_base::{Instant, PathId};
use plait_path::{CopyChoice, FlightOrder, InFlight, Paths};
use plait_schedule::reinject::{Occasion, Outstanding, Reinjection, ReinjectionFactory, Verdict, flight_drained};
use plait_schedule::{PathView, Room, candidates, eligible};
use plait_wire::SentFrame;
use smallvec::SmallVec;

use crate::connection::send::pending_copies::{PendingCopies, Target};
use crate::connection::send::purpose::{Choice, EmptyChoices, Purpose, is_copied};

/// Packets taken over at once: few enough that an ack may still spare the rest, enough to fill a train.
const PACKETS_AT_ONCE: usize = 16;
/// A third path is waited for where so many of its round trips are less than what the flight of an idle one takes: one until it
/// has room, one for the copy.
const ROUND_TRIPS_OF_THIRD: u32 = 2;

/// Looks ahead for each round trip of the path that copies leave on.
const LOOKS_PER_RTT: u32 = 8;

/// The policy, and when it wants to be asked again.
#[derive(Debug)]
pub(crate) struct Reinjector {
    policy: Box<dyn Reinjection>,
    next_look: Option<Instant>,
    /// When it is asked again about credit that will be spent soon.
    next_look_ahead: Instant,
    /// Frames found last, before they become copies.
    found: Vec<SentFrame>,
}

impl Reinjector {
    pub(crate) fn new(factory: &dyn ReinjectionFactory) -> Self {
        Self { policy: factory.build(), next_look: None, next_look_ahead: Instant::ZERO, found: Vec::new() }
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
        let opening = views.iter().filter(|view| view.room == Room::CopiesOnly);
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
                if self.is_better_left(now, idle, busy, views) {
                    continue;
                }
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

    /// Copies for the `open` path, on which new data is about to leave, where that will soon have used up the `credit` of bytes
    /// that all paths share, and what others have under way will not have arrived by then: a copy made when nothing more may
    /// leave comes too late by its round trip.
    pub(crate) fn next_ahead(
        &mut self,
        now: Instant,
        credit: u64,
        open: PathId,
        views: &[PathView],
        paths: &mut Paths,
        copies: &mut PendingCopies,
    ) -> Option<Choice> {
        if now < self.next_look_ahead {
            return None;
        }
        let view = views.iter().find(|view| view.id == open)?;
        // Nearly always: no division is needed to see that there is time.
        if credit > view.sends_per_rtt().saturating_add(view.sends_per_rtt() / 4) {
            return None;
        }
        let (rtt, lasts) = (view.rtt?, view.time_to_send(credit)?);
        if lasts > rtt + rtt / LOOKS_PER_RTT {
            return None;
        }
        self.next_look_ahead = now + rtt / LOOKS_PER_RTT;
        let mut is_found = false;
        for busy in views.iter().filter(|busy| busy.id != open && busy.in_flight_bytes > 0) {
            let is_left = self.is_better_left(now, view, busy, views);
            if !is_left && self.take_over(now, view, busy, Occasion::Closing(lasts), paths) {
                is_found = true;
                for frame in self.found.iter().filter(|frame| is_copied(frame)) {
                    copies.push(*frame, Target::On(open));
                }
            }
        }
        (is_found && copies.wants(open)).then_some(Choice { path: open, purpose: Purpose::Copies })
    }

    /// True where a third path brings a copy far sooner, though it may have no room now. Data is copied once: what a slow path
    /// takes over from another slow one waits in the queue of the second.
    fn is_better_left(&mut self, now: Instant, idle: &PathView, busy: &PathView, views: &[PathView]) -> bool {
        if views.len() < 3 {
            return false;
        }
        // Where nothing is known of the idle path, it must be better than the one that holds the data.
        let known = if idle.rtt.is_some() { idle } else { busy };
        let Some(queued) = flight_drained(known) else { return false };
        let thirds = eligible(views).filter(|view| view.id != idle.id && view.id != busy.id);
        let mut sooner = thirds.filter(|third| third.rtt.is_some_and(|rtt| rtt * ROUND_TRIPS_OF_THIRD < queued));
        sooner.any(|third| match third.room {
            Room::Free => true,
            Room::Window => third.in_flight_bytes > 0,
            Room::Paced(at) => {
                self.next_look = earliest(self.next_look, Some(at).filter(|at| *at > now));
                true
            }
            _ => false,
        })
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
        let Self { policy, next_look, found, .. } = self;
        let room = idle.window_bytes.saturating_sub(idle.in_flight_bytes) / idle.max_datagram_bytes.max(1);
        let most = usize::try_from(room).unwrap_or(usize::MAX).clamp(1, PACKETS_AT_ONCE);
        // Nothing under way is later than what leaves now behind all of it: where that is not copied, only what is late may be, and
        // the oldest are so first.
        let newest = Outstanding { sent_at: now, bytes: 0, ahead_bytes: busy.in_flight_bytes };
        let may_end =
            |policy: &mut dyn Reinjection, occasion| policy.judge(idle, busy, &newest, occasion, now) == Verdict::Copy;
        let is_ahead =
            matches!(occasion, Occasion::Closing(_)) && may_end(&mut **policy, Occasion::Closing(Duration::ZERO));
        let order = match occasion {
            Occasion::Drained => FlightOrder::NewestFirst,
            Occasion::Blocked | Occasion::Paused | Occasion::Held if may_end(&mut **policy, occasion) => {
                FlightOrder::OldestFirst
            }
            _ => FlightOrder::OldestOnly,
        };
        let mut oldest_at = None;
        let choice = |packet: &InFlight| {
            let InFlight { sent_at, bytes, ahead_bytes } = *packet;
            let occasion = match occasion {
                // What left later lies so much further ahead in the window.
                Occasion::Closing(after) => Occasion::Closing(after + sent_at.since(*oldest_at.get_or_insert(sent_at))),
                occasion => occasion,
            };
            let packet = Outstanding { sent_at, bytes, ahead_bytes };
            match policy.judge(idle, busy, &packet, occasion, now) {
                Verdict::Copy => CopyChoice::Copy,
                Verdict::Later(_) if is_ahead => CopyChoice::Leave,
                Verdict::Later(_) if matches!(occasion, Occasion::Closing(_)) => CopyChoice::Stop,
                Verdict::Later(at) => {
                    *next_look = earliest(*next_look, Some(at).filter(|at| *at > now));
                    CopyChoice::Stop
                }
                Verdict::No => CopyChoice::Stop,
            }
        };
        found.clear();
        path.take_copies(order, most, choice, found)
    }
}

#[cfg(test)]
mod tests {
    use plait_base::PathId;

    use super::*;

    fn path(id: u32, rtt_ms: u64, rate_bps: u64, in_flight_bytes: u64, room: Room) -> PathView {
        let rtt = Duration::from_millis(rtt_ms);
        let delivery_rate_bps = Some(rate_bps);
        PathView { rtt: Some(rtt), rtt_min: rtt, delivery_rate_bps, in_flight_bytes, room, ..PathView::new(PathId(id)) }
    }

    /// Whether the second of three paths leaves what the first holds to the third.
    fn leaves(second: PathView, third: PathView) -> bool {
        let first = path(0, 4, 200_000, 12_000, Room::Window);
        let mut reinjector = Reinjector::new(&plait_schedule::reinject::TailFactory);
        reinjector.is_better_left(Instant::ZERO, &second, &first, &[first, second, third])
    }

    #[test]
    fn a_slow_path_takes_nothing_over_that_a_third_brings_sooner() {
        let slow = path(1, 10, 200_000, 10_000, Room::Free);
        let fast = path(2, 60, 20_000_000, 100_000, Room::Window);
        assert!(leaves(slow, fast));
        assert!(leaves(slow, PathView { room: Room::Free, ..fast }));
        // 448 ms for ten packets of the slow path, and twice 224 ms.
        assert!(!leaves(slow, PathView { rtt: Some(Duration::from_millis(224)), ..fast }), "no sooner there");
        assert!(!leaves(PathView { in_flight_bytes: 0, ..slow }, fast), "nothing waits ahead of it");
        assert!(!leaves(slow, PathView { in_flight_bytes: 0, ..fast }), "no ack gives it room");
        assert!(!leaves(slow, PathView { room: Room::Stuck, ..fast }));
        assert!(!leaves(slow, PathView { rtt: None, ..fast }), "nothing says how long it takes");
    }

    #[test]
    fn a_path_of_which_nothing_is_known_takes_nothing_over_that_a_third_brings_sooner() {
        let opening = PathView { room: Room::CopiesOnly, ..PathView::new(PathId(1)) };
        let fast = path(2, 60, 20_000_000, 100_000, Room::Window);
        assert!(leaves(opening, fast));
        assert!(!leaves(opening, PathView { rtt: Some(Duration::from_millis(300)), ..fast }));
    }

    #[test]
    fn a_third_path_that_is_paced_is_looked_at_again() {
        let slow = path(1, 10, 200_000, 10_000, Room::Free);
        let at = Instant::ZERO + Duration::from_millis(3);
        let fast = path(2, 60, 20_000_000, 100_000, Room::Paced(at));
        let first = path(0, 4, 200_000, 12_000, Room::Window);
        let mut reinjector = Reinjector::new(&plait_schedule::reinject::TailFactory);
        assert!(reinjector.is_better_left(Instant::ZERO, &slow, &first, &[first, slow, fast]));
        assert_eq!(reinjector.next_look(), Some(at));
    }
}
