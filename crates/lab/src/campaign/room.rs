//! Room for runs side by side: so many, and no more than the machine carries without being late.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// From one look whether all is to stop to the next, for those that wait.
const LOOK: Duration = Duration::from_millis(50);

/// What is taken of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Taken {
    runs: usize,
    mbps: f64,
    /// Those who wait until nobody else runs: nobody may go before them.
    waiting_alone: usize,
}

/// Runs and what they carry, bounded.
#[derive(Debug)]
pub(crate) struct Room {
    runs: usize,
    mbps: f64,
    taken: Mutex<Taken>,
    left: Condvar,
}

/// A place in it, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Seat<'a> {
    room: &'a Room,
    mbps: f64,
    runs: usize,
    /// Others that ran when this one began.
    pub(crate) beside: usize,
}

impl Room {
    /// For so many runs at once, which carry so much together.
    pub(crate) fn new(runs: usize, mbps: f64) -> Self {
        Self { runs: runs.max(1), mbps, taken: Mutex::default(), left: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a place for a run that carries so much; one that carries more than there is room for runs alone. None once
    /// `stop` is set.
    pub(crate) fn enter(&self, mbps: f64, stop: &AtomicBool) -> Option<Seat<'_>> {
        let mbps = mbps.min(self.mbps);
        let fits = |taken: &Taken| taken.waiting_alone == 0 && taken.runs < self.runs && taken.mbps + mbps <= self.mbps;
        self.wait(self.lock(), stop, fits, Taken { runs: 1, mbps, waiting_alone: 0 })
    }

    /// Waits until nobody else runs, and keeps all others out.
    pub(crate) fn enter_alone(&self, stop: &AtomicBool) -> Option<Seat<'_>> {
        let mut taken = self.lock();
        taken.waiting_alone += 1;
        let all = Taken { runs: self.runs, mbps: self.mbps, waiting_alone: 0 };
        let place = self.wait(taken, stop, |taken| taken.runs == 0, all);
        self.lock().waiting_alone -= 1;
        place
    }

    fn wait(
        &self,
        mut taken: MutexGuard<'_, Taken>,
        stop: &AtomicBool,
        fits: impl Fn(&Taken) -> bool,
        more: Taken,
    ) -> Option<Seat<'_>> {
        loop {
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            if fits(&taken) {
                let beside = taken.runs;
                taken.runs += more.runs;
                taken.mbps += more.mbps;
                return Some(Seat { room: self, mbps: more.mbps, runs: more.runs, beside });
            }
            (taken, _) = self.left.wait_timeout(taken, LOOK).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        let mut taken = self.room.lock();
        taken.runs -= self.runs;
        // Sums of fractions leave a rest.
        taken.mbps = if taken.runs == 0 { 0.0 } else { taken.mbps - self.mbps };
        self.room.left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_so_many_and_so_much() {
        let (room, go, stop) = (Room::new(3, 100.0), AtomicBool::new(false), AtomicBool::new(true));
        let first = room.enter(60.0, &go).unwrap();
        let second = room.enter(40.0, &go).unwrap();
        assert_eq!((first.beside, second.beside), (0, 1));
        // Nothing fits beside them, and who waits hears of the end.
        assert!(room.enter(1.0, &stop).is_none());
        drop(first);
        let third = room.enter(30.0, &go).unwrap();
        drop((second, third));
        // More than there is room for is let in alone.
        let heavy = room.enter(500.0, &go).unwrap();
        drop(heavy);
        let alone = room.enter_alone(&go).unwrap();
        assert_eq!(*room.lock(), Taken { runs: 3, mbps: 100.0, waiting_alone: 0 });
        drop(alone);
        assert_eq!(*room.lock(), Taken::default());
    }

    #[test]
    fn who_waits_is_let_in_when_another_leaves() {
        let (room, go) = (Room::new(1, 10.0), AtomicBool::new(false));
        let first = room.enter(1.0, &go).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| room.enter(1.0, &go).map(|place| place.beside));
            drop(first);
            assert_eq!(waiting.join().unwrap(), Some(0));
        });
    }
}
