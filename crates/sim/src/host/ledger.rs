//! What observers write down of a connection while it runs: figures of each path and the scheduler's decisions.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plait_base::probe::{Event, PathState, Probe};
use plait_base::{Instant, PathId, Random};
use plait_engine::schedule::scheduler::Delivery;
use plait_engine::schedule::{Decision, Demand, PathView, Scheduler, SchedulerFactory, WaitReason};

use super::acks::AckBook;

/// Changes of path states that are kept.
const MAX_STATE_CHANGES: usize = 10_000;

/// Figures of one path, as its sender saw them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathFigures {
    /// Which path of the scenario it runs over.
    pub scenario_path: Option<usize>,
    /// Bytes sent, header to tag.
    pub sent_bytes: u64,
    /// Packets sent.
    pub packets_sent: u64,
    /// Packets declared lost.
    pub packets_lost: u64,
    /// Packets received.
    pub packets_received: u64,
    /// Bytes received, header to tag.
    pub received_bytes: u64,
    /// Probe time-outs.
    pub probe_timeouts: u64,
    /// Smoothed RTT, the latest.
    pub rtt: Option<Duration>,
    /// Smallest RTT.
    pub rtt_min: Option<Duration>,
    /// Congestion window, the latest, bytes.
    pub window_bytes: u64,
    /// Largest congestion window, bytes.
    pub window_max_bytes: u64,
    /// Largest datagram, the latest, bytes; 0 before the first change.
    pub mtu_bytes: u16,
    /// Times that the largest datagram became smaller.
    pub mtu_falls: u32,
    /// Bytes in flight, the latest.
    pub in_flight_bytes: u64,
    /// When it became active first.
    pub active_at: Option<Instant>,
}

/// Decisions of a scheduler, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decisions {
    /// Packets given to each path.
    pub sent: BTreeMap<u32, u64>,
    /// Packets that were also copied elsewhere.
    pub copied: u64,
    /// Waits for a faster path though another was open.
    pub waited_faster: u64,
    /// Waits because every usable path was full or paced.
    pub waited_busy: u64,
    /// Waits without a usable path.
    pub waited_no_path: u64,
    /// Longest time with data, a usable open path and no packet sent.
    pub idle_longest: Duration,
    idle_since: Option<Instant>,
}

/// A change of a path's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateChange {
    /// When.
    pub at: Instant,
    /// Which path.
    pub path: PathId,
    /// Its new state.
    pub state: PathState,
}

/// All that is written down.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// By path id.
    pub paths: BTreeMap<u32, PathFigures>,
    /// The sender's decisions.
    pub decisions: Decisions,
    /// State changes in order.
    pub changes: Vec<StateChange>,
    /// When the last packet was sent.
    pub last_sent: Option<Instant>,
    /// Packet numbers and acknowledgements of each connection: a server may have begun some that nobody went on with.
    pub acks: Vec<AckBook>,
    /// Most bytes that were in flight beyond the largest window until then.
    pub beyond_window_bytes: u64,
}

/// A ledger that several observers of one connection share.
#[derive(Clone, Debug, Default)]
pub struct SharedLedger(Arc<Mutex<Ledger>>);

impl SharedLedger {
    /// The ledger. A run lives on one thread: there is never anyone to wait for.
    pub fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ledger {
    fn path(&mut self, id: PathId) -> &mut PathFigures {
        self.paths.entry(id.0).or_default()
    }

    fn note(&mut self, now: Instant, connection: usize, event: &Event) {
        if let Some(book) = self.acks.get_mut(connection) {
            book.note(event);
        }
        match event {
            Event::PacketSent { path, bytes, .. } => {
                let figures = self.path(*path);
                figures.packets_sent += 1;
                figures.sent_bytes += u64::from(*bytes);
                self.last_sent = Some(now);
            }
            Event::PacketReceived { path, bytes, .. } => {
                let figures = self.path(*path);
                figures.packets_received += 1;
                figures.received_bytes += u64::from(*bytes);
            }
            Event::PacketLost { path, .. } => self.path(*path).packets_lost += 1,
            Event::Mtu { path, bytes } => {
                let figures = self.path(*path);
                figures.mtu_falls += u32::from(*bytes < figures.mtu_bytes);
                figures.mtu_bytes = *bytes;
            }
            Event::ProbeTimeout { path, .. } => self.path(*path).probe_timeouts += 1,
            Event::Metrics { path, rtt, rtt_min, window_bytes, in_flight_bytes, .. } => {
                let figures = self.path(*path);
                figures.rtt = Some(*rtt);
                figures.rtt_min = Some(*rtt_min);
                figures.window_bytes = *window_bytes;
                figures.window_max_bytes = figures.window_max_bytes.max(*window_bytes);
                figures.in_flight_bytes = *in_flight_bytes;
                let beyond = in_flight_bytes.saturating_sub(figures.window_max_bytes);
                self.beyond_window_bytes = self.beyond_window_bytes.max(beyond);
            }
            Event::Started { route, .. } => {
                self.path(PathId::ZERO).scenario_path = crate::run::network::path_of(route);
            }
            Event::Path { path, route, state } => {
                let figures = self.path(*path);
                figures.scenario_path = crate::run::network::path_of(route);
                if *state == PathState::Active {
                    figures.active_at.get_or_insert(now);
                }
                if self.changes.len() < MAX_STATE_CHANGES {
                    self.changes.push(StateChange { at: now, path: *path, state: *state });
                }
            }
            _ => {}
        }
    }
}

impl SharedLedger {
    /// An observer of one more connection.
    pub fn observer(&self) -> Observer {
        let mut ledger = self.lock();
        ledger.acks.push(AckBook::default());
        Observer { ledger: self.clone(), connection: ledger.acks.len() - 1 }
    }
}

/// Writes down what it hears of one connection.
#[derive(Clone, Debug)]
pub struct Observer {
    ledger: SharedLedger,
    connection: usize,
}

impl Probe for Observer {
    fn on_event(&mut self, now: Instant, event: &Event) {
        self.ledger.lock().note(now, self.connection, event);
    }
}

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
        let mut ledger = self.ledger.lock();
        let counts = &mut ledger.decisions;
        match decision {
            Decision::Send(id) => *counts.sent.entry(id.0).or_default() += 1,
            Decision::SendAlso { primary, .. } => {
                *counts.sent.entry(primary.0).or_default() += 1;
                counts.copied += 1;
            }
            Decision::Wait(WaitReason::Faster(_)) => counts.waited_faster += 1,
            Decision::Wait(WaitReason::Busy) => counts.waited_busy += 1,
            Decision::Wait(WaitReason::NoPath) => counts.waited_no_path += 1,
        }
        let open = plait_engine::schedule::candidates::candidates(paths).next().is_some();
        let idle = matches!(decision, Decision::Wait(_)) && open && demand.unsent_bytes > 0;
        counts.idle_since = idle.then(|| counts.idle_since.unwrap_or(demand.now));
        if let Some(since) = counts.idle_since {
            counts.idle_longest = counts.idle_longest.max(demand.now.since(since));
        }
        decision
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

    fn on_path_closed(&mut self, path: PathId) {
        self.inner.on_path_closed(path);
    }
}
