//! The bell of `workers`, through every interleaving of its two sides that the memory model admits.

/// Loom's in place of the standard library's.
mod sync {
    pub(super) use loom::sync::atomic::{AtomicBool, Ordering, fence};
    pub(super) use loom::sync::{Mutex, MutexGuard};
    pub(super) use std::sync::PoisonError;
}

#[path = "../../src/workers/bell.rs"]
#[allow(clippy::module_inception)]
mod bell;

use std::sync::Arc;
use std::task::{Wake, Waker};

use bell::{Bell, RingsAtLast};
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

/// Counts wakes, and lets a sleeper go on.
#[derive(Default)]
struct Sleeper {
    wakes: AtomicUsize,
    notify: loom::sync::Notify,
}

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.wakes.fetch_add(1, Ordering::Relaxed);
        self.notify.notify();
    }
}

/// What a queue of one writer and one reader is to those who wait: a count that the writer raises, and a flag for its end, in
/// the orderings of rtrb.
#[derive(Default)]
struct Queue {
    written: AtomicUsize,
    is_abandoned: AtomicUsize,
}

impl Queue {
    fn push(&self) {
        let written = self.written.load(Ordering::Relaxed);
        self.written.store(written + 1, Ordering::Release);
    }

    fn written(&self) -> usize {
        self.written.load(Ordering::Acquire)
    }

    fn is_abandoned(&self) -> bool {
        self.is_abandoned.load(Ordering::Acquire) == 1
    }
}

/// The writing half. Fields fall in their order: the queue is known to be abandoned when the bell rings.
struct Writer {
    queue: End,
    _bell: RingsAtLast,
}

struct End(Arc<Queue>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.is_abandoned.store(1, Ordering::Release);
    }
}

/// Sleeps until `is_over`; how often it lay down.
fn sleep_until(bell: &Bell, sleeper: &Arc<Sleeper>, is_over: impl Fn() -> bool) -> usize {
    let waker = Waker::from(sleeper.clone());
    let mut sleeps = 0;
    while !is_over() {
        bell.arm(&waker);
        sleeps += 1;
        if is_over() {
            bell.disarm();
            break;
        }
        // A wake that never comes is a deadlock, which loom reports.
        sleeper.notify.wait();
    }
    sleeps
}

fn model(preemptions: usize, run: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(run);
}

#[test]
fn nobody_sleeps_while_a_message_waits() {
    model(4, || {
        let (bell, queue, sleeper) =
            (Arc::new(Bell::default()), Arc::new(Queue::default()), Arc::new(Sleeper::default()));
        let writer = {
            let (bell, queue) = (bell.clone(), queue.clone());
            thread::spawn(move || {
                for _ in 0..2 {
                    queue.push();
                    bell.ring();
                }
            })
        };
        let sleeps = sleep_until(&bell, &sleeper, || queue.written() == 2);
        writer.join().unwrap();
        assert!(sleeper.wakes.load(Ordering::Relaxed) <= sleeps, "woken twice in one sleep");
    });
}

#[test]
fn several_may_wake_the_same_sleeper() {
    model(3, || {
        let (bell, sleeper) = (Arc::new(Bell::default()), Arc::new(Sleeper::default()));
        let queues: [Arc<Queue>; 2] = Default::default();
        let writers = queues.clone().map(|queue| {
            let bell = bell.clone();
            thread::spawn(move || {
                queue.push();
                bell.ring();
            })
        });
        let sleeps = sleep_until(&bell, &sleeper, || queues.iter().all(|queue| queue.written() == 1));
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        assert!(sleeper.wakes.load(Ordering::Relaxed) <= sleeps, "woken twice in one sleep");
    });
}

#[test]
fn whoever_falls_is_missed() {
    model(4, || {
        let (bell, queue, sleeper) =
            (Arc::new(Bell::default()), Arc::new(Queue::default()), Arc::new(Sleeper::default()));
        let writer = Writer { queue: End(queue.clone()), _bell: RingsAtLast(bell.clone()) };
        let falls = thread::spawn(move || {
            writer.queue.0.push();
            // It falls before it rang.
            drop(writer);
        });
        sleep_until(&bell, &sleeper, || queue.is_abandoned());
        assert_eq!(queue.written(), 1, "what it said before is heard");
        falls.join().unwrap();
    });
}
