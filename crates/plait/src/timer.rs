//! When a task goes on without news.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use plait_base::Instant;
use tokio::time::Sleep;

use crate::clock::Clock;

/// A timer that is made where it is first polled: in the runtime, and on the thread, whose clock drives it.
#[derive(Debug, Default)]
pub(crate) struct Timer {
    sleep: Option<Pin<Box<Sleep>>>,
    /// None where it is not set, or has fired.
    at: Option<Instant>,
}

impl Timer {
    /// True while it waits for a time after `now`.
    pub(crate) fn waits(&self, now: Instant) -> bool {
        self.at.is_some_and(|at| at > now)
    }

    /// Ready when `at` has passed; else the task is woken then.
    pub(crate) fn poll_at(&mut self, cx: &mut Context<'_>, clock: Clock, at: Instant) -> Poll<()> {
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(clock.for_timer(at))));
        if self.at != Some(at) {
            self.at = Some(at);
            sleep.as_mut().reset(clock.for_timer(at));
        }
        sleep.as_mut().poll(cx).map(|()| self.at = None)
    }
}

/// The timer that one task left for the next one of the same runtime.
///
/// To set a timer that is due before all others makes a runtime write to its own event loop, and be woken by that. The first timer
/// of a connection often is, unless the connection before left its own behind, still set: to put that off costs nothing.
#[derive(Debug, Default)]
pub(crate) struct SpareTimer(Mutex<Timer>);

impl SpareTimer {
    /// The timer that was left, or a new one.
    pub(crate) fn take(&self) -> Timer {
        let left = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        Timer { at: None, ..left }
    }

    /// Leaves one behind.
    pub(crate) fn leave(&self, timer: Timer) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = timer;
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn the_timer_of_one_task_serves_the_next() {
        let (clock, spare) = (Clock::start(), SpareTimer::default());
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut timer = spare.take();
        let is_pending = poll_fn(|cx| Poll::Ready(timer.poll_at(cx, clock, at(60_000)).is_pending())).await;
        assert!(is_pending);
        assert!(timer.waits(at(59_999)) && !timer.waits(at(60_000)));
        let sleep = timer.sleep.as_deref().map(std::ptr::from_ref);
        spare.leave(timer);
        let mut timer = spare.take();
        assert_eq!(timer.sleep.as_deref().map(std::ptr::from_ref), sleep);
        assert!(!timer.waits(Instant::ZERO), "the next one has not set it");
        poll_fn(|cx| timer.poll_at(cx, clock, at(20))).await;
        assert!(clock.now() >= at(20) && !timer.waits(Instant::ZERO), "it has fired");
        assert!(spare.take().sleep.is_none(), "it serves one at a time");
    }
}
