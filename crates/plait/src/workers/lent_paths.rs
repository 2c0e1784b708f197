//! The paths that a connection has lent to threads, on the connection's side.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;
use std::time::Duration;

use plait_base::{Instant, PathId};
use plait_engine::ConnectionHandle;
use plait_engine::connection::split::{Coordinator, LentPath, ToPath};
use rtrb::{Consumer, Producer, RingBuffer};

use super::bell::{Bell, RingsAtLast};
use super::holder::{Held, Holder, Intake, News};
use super::pool::{Worker, WorkerPool};
use super::routes::{Route, Routes};
use super::source::Source;
use crate::connection::{Inbox, Shared};
use crate::endpoint::EndpointShared;
use crate::sockets::SendQueues;
use crate::timer::Timer;

/// Messages on their way to or from whoever serves a path, at most. Each that brings stream data brings a receive buffer at most,
/// so that no more than 8 MiB wait in a ring.
#[cfg(not(test))]
const RING_MESSAGES: usize = 128;
/// Tests see how it goes when there is no room.
#[cfg(test)]
const RING_MESSAGES: usize = 2;
/// A thread that takes no order for so long is asked for its path; when it does not answer that either, the path is given up.
const ORDERS_PATIENCE: Duration = Duration::from_millis(200);
/// Messages taken from one ring before others get a turn.
const MAX_NEWS: usize = 64;

/// Paths on loan, and where to lend them.
pub(crate) struct LentPaths {
    handle: ConnectionHandle,
    endpoint: Arc<EndpointShared>,
    loans: Vec<Loan>,
    /// Wakes the connection's task.
    bell: Arc<Bell>,
    /// Looked at before each train: nothing is sent once it is set.
    halt: Arc<AtomicBool>,
}

/// One path on loan.
struct Loan {
    id: PathId,
    /// Who serves it.
    thread: usize,
    orders: Producer<ToPath>,
    /// Orders for which the ring had no room.
    waiting: VecDeque<ToPath>,
    news: Consumer<News>,
    /// Orders that were put into the ring.
    sent: usize,
    /// Since when nobody took the orders that wait in the ring, and how many were taken by then.
    untaken: Option<(Instant, usize)>,
    /// It was asked for its path because it took nothing.
    is_doubted: bool,
    /// What the endpoint received for the path.
    inbox: Arc<Inbox>,
    /// Wakes whoever serves it; last, so that it finds the rings abandoned.
    holder: RingsAtLast,
}

impl LentPaths {
    pub(crate) fn new(handle: ConnectionHandle, endpoint: Arc<EndpointShared>) -> Self {
        Self { handle, endpoint, loans: Vec::new(), bell: Arc::default(), halt: Arc::default() }
    }

    /// True while some path is lent.
    pub(crate) fn is_lending(&self) -> bool {
        !self.loans.is_empty()
    }

    /// True where whoever serves a path told something, or fell.
    fn has_news(&self) -> bool {
        self.loans.iter().any(|loan| !loan.news.is_empty() || loan.news.is_abandoned())
    }

    /// Before the connection's task sleeps: `waker` is woken by news from now on. True where there are some already.
    pub(crate) fn arm(&self, waker: &Waker) -> bool {
        if self.loans.is_empty() {
            return false;
        }
        self.bell.arm(waker);
        let has_news = self.has_news();
        if has_news {
            self.bell.disarm();
        }
        has_news
    }

    /// When a thread counts as stalled that took no orders: [`Self::has_stalled`] says so from then on.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.loans.iter().filter_map(Loan::patience_ends).min()
    }

    /// True where a thread takes no orders for a path that was not given up yet. Told once.
    pub(crate) fn has_stalled(&mut self, now: Instant, engine: &Coordinator) -> bool {
        let mut has_stalled = false;
        for loan in &mut self.loans {
            if loan.patience_ends().is_some_and(|at| at <= now) {
                // It is asked for its path now, and given up when it does not answer.
                (loan.untaken, loan.is_doubted) = (None, true);
                has_stalled |= engine.is_lent(loan.id);
            }
        }
        has_stalled
    }

    /// Takes in what those who serve paths tell. True where there was something.
    pub(crate) fn hear(
        &mut self,
        now: Instant,
        engine: &mut Coordinator,
        routes: &Routes,
        send_queues: &mut SendQueues,
    ) -> bool {
        let mut is_heard = false;
        let mut at = 0;
        while let Some(loan) = self.loans.get_mut(at) {
            match loan.hear(now, engine) {
                Heard::Nothing => at += 1,
                Heard::News => {
                    is_heard = true;
                    at += 1;
                }
                Heard::Back(held) => {
                    is_heard = true;
                    self.loans.swap_remove(at).end(now, engine, routes, (*held, send_queues));
                }
                Heard::Fall => {
                    is_heard = true;
                    let Loan { id, .. } = self.loans.swap_remove(at);
                    tracing::error!(path = %id, "a thread that served a path failed; the path is given up");
                    routes.remove(id);
                    engine.on_gone(now, id);
                }
            }
        }
        self.heed_close(engine);
        is_heard
    }

    /// Once the connection closes or is closed, no thread sends another train, even before it hears that its path is wanted back.
    fn heed_close(&self, engine: &Coordinator) {
        if engine.is_halted() && !self.halt.load(Ordering::Relaxed) {
            self.halt.store(true, Ordering::Release);
        }
    }

    /// Lends paths that are busy, and sends orders to those who have some.
    pub(crate) fn serve(&mut self, now: Instant, engine: &mut Coordinator, shared: &Shared, send_queues: &SendQueues) {
        let endpoint = self.endpoint.clone();
        let Some(pool) = endpoint.workers() else { return };
        self.heed_close(engine);
        while let Some(lent) = engine.poll_lend(now) {
            self.lend(lent, pool, shared, send_queues);
        }
        while let Some((id, order)) = engine.poll_message(now) {
            match self.loans.iter_mut().find(|loan| loan.id == id) {
                Some(loan) => loan.waiting.push_back(order),
                None => engine.handle_undelivered(now, id, order),
            }
        }
        self.loans.iter_mut().for_each(|loan| loan.send_orders(now));
    }

    fn lend(&mut self, lent: Box<LentPath>, pool: &WorkerPool, shared: &Shared, send_queues: &SendQueues) {
        let (id, tuple) = (lent.id(), lent.tuple());
        let exit = send_queues.sockets().exit(&tuple);
        let exit_worker = exit.as_ref().and_then(|exit| exit.socket.worker());
        let source = exit.and_then(|exit| {
            let thread = exit.socket.worker()?;
            let spare_buffers = pool.worker(thread)?.spare_buffers.clone();
            Some((thread, Source::new(&exit.socket, spare_buffers, self.endpoint.clone())?))
        });
        let (thread, source) =
            source.map_or_else(|| (self.thread_for(id, pool, shared), None), |(at, source)| (at, Some(source)));
        let Some(Worker { runtime, spare_buffers, tally, fault, .. }) = pool.worker(thread) else { return };
        // A thread with a socket of the address receives into its own buffers; without, the endpoint's task receives for all.
        let is_read_here = source.is_some() || exit_worker.is_some();
        let spare_buffers = if is_read_here { spare_buffers } else { &self.endpoint.spare_buffers };
        let (orders, orders_taken) = RingBuffer::new(RING_MESSAGES);
        let (news, news_taken) = RingBuffer::new(RING_MESSAGES);
        let (bell, inbox) = (Arc::new(Bell::default()), Arc::new(Inbox::new(self.endpoint.inboxes())));
        let send_queues = SendQueues::new(send_queues.sockets().clone(), Some(thread));
        let holder = Holder {
            held: Some(Box::new(Held { lent, orders: orders_taken, send_queues })),
            intake: Intake {
                source,
                inbox: inbox.clone(),
                inputs: VecDeque::new(),
                spare_buffers: spare_buffers.clone(),
            },
            handle: self.handle,
            endpoint: self.endpoint.clone(),
            tally: tally.clone(),
            bell: bell.clone(),
            halt: self.halt.clone(),
            buffer: Vec::new(),
            timer: Timer::default(),
            fault: fault.clone(),
            news,
            connection: RingsAtLast(self.bell.clone()),
        };
        tally.on_loan();
        shared.routes.add(Route { id, inbox: inbox.clone(), thread, tally: tally.clone() });
        let holder_bell = RingsAtLast(bell);
        self.loans.push(Loan {
            id,
            thread,
            orders,
            waiting: VecDeque::new(),
            news: news_taken,
            sent: 0,
            untaken: None,
            is_doubted: false,
            inbox,
            holder: holder_bell,
        });
        runtime.spawn(holder);
    }
}

impl LentPaths {
    /// Who serves a path whose socket brings datagrams of others too: the thread where its own arrive, or another that serves no path
    /// of this connection, if that one does.
    fn thread_for(&self, id: PathId, pool: &WorkerPool, shared: &Shared) -> usize {
        let usual = shared.routes.arrived_at(id).unwrap_or(self.handle.index() + id.0 as usize);
        let mut others = (usual..usual + pool.len()).map(|thread| thread % pool.len());
        let is_free = |thread: &usize| self.loans.iter().all(|loan| loan.thread != *thread);
        others.find(is_free).unwrap_or(usual % pool.len())
    }
}

/// What a look into a loan's ring showed.
enum Heard {
    Nothing,
    News,
    Back(Box<Held>),
    Fall,
}

impl Loan {
    fn hear(&mut self, now: Instant, engine: &mut Coordinator) -> Heard {
        // Looked at first: what was said before it fell is in the ring by then.
        let has_fallen = self.news.is_abandoned();
        let mut heard = Heard::Nothing;
        for _ in 0..MAX_NEWS {
            match self.news.pop() {
                Ok(News::Tell(message)) => engine.handle_message(now, self.id, message),
                Ok(News::Back(held)) => return Heard::Back(held),
                Err(_) if has_fallen => return Heard::Fall,
                Err(_) => return heard,
            }
            heard = Heard::News;
        }
        heard
    }

    /// When whoever serves the path counts as stalled.
    fn patience_ends(&self) -> Option<Instant> {
        self.untaken.map(|(since, _)| since + ORDERS_PATIENCE)
    }

    fn send_orders(&mut self, now: Instant) {
        let mut is_sent = false;
        let untaken = RING_MESSAGES - self.orders.slots();
        let taken = self.sent - untaken;
        self.untaken = match self.untaken {
            _ if untaken == 0 || self.is_doubted => None,
            Some((since, before)) if taken == before => Some((since, before)),
            _ => Some((now, taken)),
        };
        while !self.orders.is_full()
            && let Some(order) = self.waiting.pop_front()
        {
            let _ = self.orders.push(order);
            self.sent += 1;
            is_sent = true;
        }
        if is_sent {
            if !self.is_doubted {
                self.untaken.get_or_insert((now, taken));
            }
            self.holder.0.ring();
        }
    }

    /// The path is back.
    fn end(
        self,
        now: Instant,
        engine: &mut Coordinator,
        routes: &Routes,
        (held, send_queues): (Held, &mut SendQueues),
    ) {
        let Held { lent, mut orders, send_queues: queues } = held;
        routes.remove(self.id);
        tracing::debug!(path = %self.id, why = ?lent.wants_back(), "a thread gives a path back");
        send_queues.absorb(queues);
        engine.take_back(now, lent);
        while let Ok(order) = orders.pop() {
            engine.handle_undelivered(now, self.id, order);
        }
        self.waiting.into_iter().for_each(|order| engine.handle_undelivered(now, self.id, order));
        let mut inputs = VecDeque::new();
        let _ = self.inbox.take(&mut inputs, Waker::noop());
        inputs.into_iter().for_each(|input| drop(engine.handle_datagram(now, input)));
    }
}
