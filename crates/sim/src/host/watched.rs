//! Schedulers whose decisions are counted in a ledger.

use std::sync::Arc;

use plait_base::{Instant, PathId, Random};
use plait_engine::schedule::Delivery;
use plait_engine::schedule::{Decision, Demand, PathView, Scheduler, SchedulerFactory};

use super::ledger::SharedLedger;

/// A scheduler factory whose schedulers have their decisions counted.
#[derive(Clone, Debug)]
pub struct Watched {
    inner: Arc<dyn SchedulerFactory>,
    ledger: SharedLedger,
}

impl Watched {
    /// Counts what the schedulers of `inner` decide in `ledger`.
    pub fn new(inner: Arc<dyn SchedulerFactory>, ledger: SharedLedger) -> Self {
        Self { inner, ledger }
    }
}

impl SchedulerFactory for Watched {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn build(&self, random: Random) -> Box<dyn Scheduler> {
        Box::new(Watching { inner: self.inner.build(random), ledger: self.ledger.clone() })
    }
}

#[derive(Debug)]
struct Watching {
    inner: Box<dyn Scheduler>,
    ledger: SharedLedger,
}

impl Scheduler for Watching {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn pick(&mut self, paths: &[PathView], demand: &Demand) -> Decision {
        let decision = self.inner.pick(paths, demand);
        self.ledger.lock().decisions.note(decision, paths, demand);
        decision
    }

    fn keeps_to(&self, path: PathId, paths: &[PathView], demand: &Demand) -> bool {
        // A record has the decision about each packet.
        self.ledger.lock().decisions.record.is_none() && self.inner.keeps_to(path, paths, demand)
    }

    fn on_sent(&mut self, path: PathId, bytes: u64, now: Instant) {
        self.inner.on_sent(path, bytes, now);
    }

    fn on_acked(&mut self, path: PathId, delivery: &Delivery) {
        self.inner.on_acked(path, delivery);
    }

    fn on_lost(&mut self, path: PathId, bytes: u64, now: Instant) {
        self.inner.on_lost(path, bytes, now);
    }

    fn on_credit_blocked(&mut self, now: Instant) {
        self.inner.on_credit_blocked(now);
    }

    fn on_path_closing(&mut self, path: PathId) {
        self.inner.on_path_closing(path);
    }
}
