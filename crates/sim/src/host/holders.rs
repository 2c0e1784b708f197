//! Whoever serves the paths of a connection that are on loan: workers whose turns come in an order drawn from the seed, and
//! messages that take a while, also drawn from it.

use std::collections::VecDeque;
use std::time::Duration;

use plait_base::time::earliest;
use plait_base::{FourTuple, Instant, PathId, Random};
use plait_engine::connection::split::{Coordinator, FromPath, LentPath, ToPath};
use plait_engine::{Input, Transmit};

use super::acks::AckBook;
use crate::scenario::{Lending, WorkerFaultKind, Workers};

/// Most messages take no longer than this, and one in a hundred up to twenty milliseconds: a thread that did not run.
const MESSAGE_MAX: Duration = Duration::from_micros(50);
const LATE_MIN: Duration = Duration::from_millis(1);
const LATE_MAX: Duration = Duration::from_millis(20);
const LATE_ONE_IN: u64 = 100;
/// One train in so many lands with another thread than the one that serves its path.
const ASTRAY_ONE_IN: u64 = 50;
/// Trains that wait in the socket of a worker, at most; others are dropped, as by a kernel.
const MAX_WAITING_TRAINS: usize = 256;
/// Calls within which a worker dies that is to die.
const LAST_CALLS: u64 = 12;
/// Datagrams of one train.
const TRAIN_SEGMENTS: usize = 10;

/// Things on their way, in order.
#[derive(Debug)]
struct Wire<T> {
    items: VecDeque<(Instant, T)>,
}

impl<T> Default for Wire<T> {
    fn default() -> Self {
        Self { items: VecDeque::new() }
    }
}

impl<T> Wire<T> {
    fn push(&mut self, at: Instant, item: T) {
        let at = self.items.back().map_or(at, |(last, _)| at.max(*last));
        self.items.push_back((at, item));
    }

    fn pop(&mut self, now: Instant) -> Option<T> {
        self.items.front().filter(|(at, _)| *at <= now)?;
        self.items.pop_front().map(|(_, item)| item)
    }

    fn next_at(&self) -> Option<Instant> {
        self.items.front().map(|(at, _)| *at)
    }
}

/// To a worker.
#[derive(Debug)]
enum Down {
    Lend(Box<LentPath>),
    Tell(PathId, ToPath),
}

/// From a worker.
#[derive(Debug)]
enum Up {
    Tell(PathId, FromPath),
    Back(Box<LentPath>),
    Bounced(PathId, ToPath),
    Gone(PathId),
}

/// When a worker falls.
#[derive(Clone, Copy, Debug)]
struct Doom {
    calls_left: u64,
    /// Somebody sees it fall and says so.
    is_seen: bool,
}

/// One of those who serve paths.
#[derive(Debug, Default)]
struct Worker {
    #[expect(clippy::vec_box, reason = "they come and go boxed")]
    held: Vec<Box<LentPath>>,
    down: Wire<Down>,
    up: Wire<Up>,
    /// What its socket received.
    inbox: VecDeque<Input>,
    /// It has no turn before.
    stalled_until: Option<Instant>,
    doom: Option<Doom>,
    /// Paths that fell with one that stood here before: what is said to them nobody hears.
    fallen: Vec<PathId>,
}

/// Those who serve the paths of one connection beside it.
#[derive(Debug)]
pub(super) struct Holders {
    lending: Lending,
    random: Random,
    workers: Vec<Worker>,
    /// Holders that fell with their paths.
    pub(super) fallen: u64,
    /// One that still has its path was given up: it did not answer in time.
    has_given_up: bool,
    pub(super) loans: u64,
    wrong: Option<String>,
}

/// Draws how long a message takes.
fn later(now: Instant, random: &mut Random) -> Instant {
    let between = |random: &mut Random, low: Duration, high: Duration| {
        low + Duration::from_nanos(random.below((high - low).as_nanos() as u64))
    };
    let is_late = random.below(LATE_ONE_IN) == 0;
    now + if is_late { between(random, LATE_MIN, LATE_MAX) } else { between(random, Duration::ZERO, MESSAGE_MAX) }
}

impl Worker {
    /// When it wants a turn.
    fn next_at(&self) -> Option<Instant> {
        let held = self.held.iter().filter_map(|lent| lent.deadline()).min();
        let inbox = (!self.inbox.is_empty()).then_some(Instant::ZERO);
        let next = earliest(earliest(self.down.next_at(), held), inbox)?;
        Some(self.stalled_until.map_or(next, |until| next.max(until)))
    }

    fn has(&self, id: PathId) -> bool {
        self.held.iter().any(|lent| lent.id() == id)
    }

    /// Everything that it does in a turn; none where it fell on the way.
    fn turn(&mut self, now: Instant, may_send: bool, random: &mut Random, out: &mut Out<'_>) -> Option<()> {
        while self.down.next_at().is_some_and(|at| at <= now) {
            // Before it takes the message: a path in it falls too, and would be nowhere otherwise.
            self.survives()?;
            let Some(message) = self.down.pop(now) else { break };
            match message {
                Down::Lend(lent) => self.held.push(lent),
                Down::Tell(id, message) => match self.held.iter_mut().find(|lent| lent.id() == id) {
                    Some(lent) => lent.handle_message(now, message),
                    None if self.fallen.contains(&id) => {}
                    None => self.up.push(later(now, random), Up::Bounced(id, message)),
                },
            }
        }
        while let Some(input) = self.inbox.pop_front() {
            self.survives()?;
            // A path that went since leaves its socket to the connection.
            match self.held.iter_mut().find(|lent| lent.id() == input.path()) {
                Some(lent) => _ = lent.handle_datagram(now, input),
                None => out.strays.push_back(input),
            }
        }
        for at in 0..self.held.len() {
            self.survives()?;
            let lent = &mut self.held[at];
            if lent.deadline().is_some_and(|due| due <= now) {
                lent.on_timeout(now);
            }
        }
        // What came is told before it is acknowledged.
        self.tell(now, random)?;
        for at in (0..self.held.len()).filter(|_| may_send) {
            self.survives()?;
            while let Some(transmit) = self.held[at].poll_transmit(now, TRAIN_SEGMENTS, out.buffer) {
                (out.send)(&transmit, out.buffer);
                self.survives()?;
            }
        }
        self.tell(now, random)?;
        while let Some(at) = self.held.iter().position(|lent| lent.wants_back().is_some()) {
            self.up.push(later(now, random), Up::Back(self.held.remove(at)));
        }
        Some(())
    }

    fn tell(&mut self, now: Instant, random: &mut Random) -> Option<()> {
        for at in 0..self.held.len() {
            let id = self.held[at].id();
            while let Some(message) = self.held[at].poll_message(now) {
                self.up.push(later(now, random), Up::Tell(id, message));
                self.survives()?;
            }
        }
        Some(())
    }

    /// Counts a call; none where it was the last.
    fn survives(&mut self) -> Option<()> {
        let Some(doom) = &mut self.doom else { return Some(()) };
        doom.calls_left = doom.calls_left.saturating_sub(1);
        (doom.calls_left > 0).then_some(())
    }

    /// It falls with all that it has, and another takes its place. The paths that are gone.
    fn fall(&mut self) -> Vec<PathId> {
        let on_the_way = self.down.items.drain(..).filter_map(|(_, item)| match item {
            Down::Lend(lent) => Some(lent),
            Down::Tell(..) => None,
        });
        let gone: Vec<PathId> = self.held.drain(..).chain(on_the_way).map(|lent| lent.id()).collect();
        self.fallen.extend(&gone);
        self.inbox.clear();
        (self.doom, self.stalled_until) = (None, None);
        gone
    }
}

/// Where a worker's datagrams go.
pub(super) struct Out<'a> {
    pub(super) buffer: &'a mut Vec<u8>,
    pub(super) send: &'a mut dyn FnMut(&Transmit, &[u8]),
    /// What came for paths that are not on loan any more.
    pub(super) strays: &'a mut VecDeque<Input>,
}

impl Holders {
    pub(super) fn new(workers: Workers, random: Random) -> Self {
        let Workers { count, lending } = workers;
        let workers = (0..count).map(|_| Worker::default()).collect();
        Self { lending, random, workers, fallen: 0, has_given_up: false, loans: 0, wrong: None }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.workers.len()
    }

    /// The first thing that was wrong about loans.
    pub(super) fn wrong(&self) -> Option<&str> {
        self.wrong.as_deref()
    }

    /// The numbers of `count` actors in an order that is drawn.
    pub(super) fn shuffled(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        for at in (1..count).rev() {
            order.swap(at, self.random.below(at as u64 + 1) as usize);
        }
        order
    }

    /// Puts a datagram into the socket of whoever serves its path, and gives it back where nobody does, or where it goes astray.
    pub(super) fn receive(&mut self, input: Input) -> Option<Input> {
        let (id, is_astray) = (input.path(), self.random.below(ASTRAY_ONE_IN) == 0);
        let Some(worker) = self.worker_of(id).filter(|worker| worker.has(id) && !is_astray) else {
            return Some(input);
        };
        if worker.inbox.len() < MAX_WAITING_TRAINS {
            worker.inbox.push_back(input);
        }
        None
    }

    /// Each path is for one of them.
    fn worker_of(&mut self, id: PathId) -> Option<&mut Worker> {
        let index = id.0 as usize % self.workers.len().max(1);
        self.workers.get_mut(index)
    }

    /// When somebody wants a turn: a worker, or the connection for what it is told.
    pub(super) fn next_at(&self) -> Option<Instant> {
        let next = |worker: &Worker| earliest(worker.next_at(), worker.up.next_at());
        self.workers.iter().filter_map(next).min()
    }

    /// True where the connection is told something.
    pub(super) fn has_news(&self, now: Instant) -> bool {
        self.workers.iter().filter_map(|worker| worker.up.next_at()).any(|at| at <= now)
    }

    /// A turn of one worker, if it has anything to do.
    pub(super) fn turn(&mut self, now: Instant, index: usize, may_send: bool, out: &mut Out<'_>) {
        let Self { workers, random, fallen, .. } = self;
        let Some(worker) = workers.get_mut(index).filter(|worker| worker.next_at().is_some_and(|at| at <= now)) else {
            return;
        };
        worker.stalled_until = None;
        if worker.turn(now, may_send, random, out).is_none() {
            let is_seen = worker.doom.is_some_and(|doom| doom.is_seen);
            let gone = worker.fall();
            *fallen += gone.len() as u64;
            gone.into_iter().filter(|_| is_seen).for_each(|id| worker.up.push(later(now, random), Up::Gone(id)));
        }
    }

    /// Takes in what the workers told by `now`.
    pub(super) fn take_news(&mut self, now: Instant, coordinator: &mut Coordinator) {
        for index in 0..self.workers.len() {
            while let Some(message) = self.workers[index].up.pop(now) {
                take(now, message, coordinator);
            }
        }
    }

    /// Lends paths and tells workers what they are to hear.
    pub(super) fn give(&mut self, now: Instant, coordinator: &mut Coordinator) {
        let lent: Vec<_> = match self.lending {
            Lending::Eager => {
                let ids = coordinator.connection().paths().ids();
                ids.into_iter().filter_map(|id| coordinator.lend(now, id)).collect()
            }
            Lending::OnDemand => std::iter::from_fn(|| coordinator.poll_lend(now)).collect(),
        };
        for lent in lent {
            self.loans += 1;
            self.send_down(now, lent.id(), Down::Lend(lent));
        }
        while let Some((id, message)) = coordinator.poll_message(now) {
            self.send_down(now, id, Down::Tell(id, message));
        }
    }

    fn send_down(&mut self, now: Instant, id: PathId, message: Down) {
        let at = later(now, &mut self.random);
        if let Some(worker) = self.worker_of(id) {
            worker.down.push(at, message);
        }
    }

    /// A worker that has a path between these addresses stalls, or is to fall soon.
    pub(super) fn strike(&mut self, now: Instant, fault: WorkerFaultKind, is_meant: impl Fn(&FourTuple) -> bool) {
        let Self { workers, random, .. } = self;
        let serves = |worker: &&mut Worker| worker.held.iter().any(|lent| is_meant(&lent.tuple()));
        let Some(worker) = workers.iter_mut().find(serves) else { return };
        let calls_left = 1 + random.below(LAST_CALLS);
        match fault {
            WorkerFaultKind::Stalls(time) => worker.stalled_until = Some(now + time),
            WorkerFaultKind::DiesSeen => worker.doom = Some(Doom { calls_left, is_seen: true }),
            WorkerFaultKind::DiesUnseen => worker.doom = Some(Doom { calls_left, is_seen: false }),
        }
    }

    /// Every path has one holder: the connection, a worker, or a message on its way.
    pub(super) fn check(&mut self, coordinator: &Coordinator) {
        if self.wrong.is_some() {
            return;
        }
        let mut out: Vec<PathId> = self.workers.iter().flat_map(Worker::paths).collect();
        out.sort();
        self.has_given_up |= out.iter().any(|id| !coordinator.is_lent(*id));
        let open = coordinator.connection().paths().ids();
        let twice = out.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
        let here_too = out.iter().copied().find(|id| open.contains(id) && !coordinator.is_lent(*id));
        let nowhere = open.into_iter().find(|id| self.fallen == 0 && coordinator.is_lent(*id) && !out.contains(id));
        let told = [(twice, "two holders"), (here_too, "a holder while it is here"), (nowhere, "no holder")];
        self.wrong = told.iter().find_map(|(id, what)| Some(format!("path {} has {what}", id.as_ref()?.0)));
    }

    /// What was lent is accounted for once every path is here: no lease is out, and each packet that left was counted as sealed
    /// once. What fell with its holder, or was given up with it, counts as sealed whether it was or not.
    pub(super) fn accounts(&self, coordinator: &Coordinator, book: &AckBook) -> Option<String> {
        let (out, session) = (coordinator.leases_out(), coordinator.connection().session());
        let (sealed, sent) = (session.packets_sealed(), book.data_packets_sent());
        let is_whole = self.fallen == 0 && !self.has_given_up;
        let is_right = if is_whole { sealed == sent } else { sealed >= sent };
        if out > 0 {
            return Some(format!("{out} leases have no end"));
        }
        (session.key_phase() == 0 && !is_right).then(|| format!("{sealed} packets counted as sealed, {sent} sent"))
    }

    /// Everything that is on its way arrives, and every path comes back but those that fell with their worker, which are given up.
    pub(super) fn join(&mut self, now: Instant, coordinator: &mut Coordinator) {
        for worker in &mut self.workers {
            let told: Vec<Up> = worker.up.items.drain(..).map(|(_, message)| message).collect();
            told.into_iter().for_each(|message| take(now, message, coordinator));
            let mut held = std::mem::take(&mut worker.held);
            for (_, message) in worker.down.items.drain(..) {
                match message {
                    Down::Lend(lent) => held.push(lent),
                    Down::Tell(id, message) => match held.iter_mut().find(|lent| lent.id() == id) {
                        Some(lent) => lent.handle_message(now, message),
                        None => coordinator.handle_undelivered(now, id, message),
                    },
                }
            }
            held.into_iter().for_each(|lent| coordinator.take_back(now, lent));
        }
        // The run may end before the patience with a worker that fell unseen does.
        let ids = coordinator.connection().paths().ids();
        let fallen: Vec<PathId> = ids.into_iter().filter(|id| coordinator.is_lent(*id)).collect();
        fallen.into_iter().for_each(|id| coordinator.on_gone(now, id));
    }
}

impl Worker {
    /// The paths that it has, and those on their way to and from it.
    fn paths(&self) -> impl Iterator<Item = PathId> {
        let down = self.down.items.iter().filter_map(|(_, item)| match item {
            Down::Lend(lent) => Some(lent.id()),
            Down::Tell(..) => None,
        });
        let up = self.up.items.iter().filter_map(|(_, item)| match item {
            Up::Back(lent) => Some(lent.id()),
            _ => None,
        });
        self.held.iter().map(|lent| lent.id()).chain(down).chain(up)
    }
}

fn take(now: Instant, message: Up, coordinator: &mut Coordinator) {
    match message {
        Up::Tell(id, message) => coordinator.handle_message(now, id, message),
        Up::Back(lent) => coordinator.take_back(now, lent),
        Up::Bounced(id, message) => coordinator.handle_undelivered(now, id, message),
        Up::Gone(id) => coordinator.on_gone(now, id),
    }
}
