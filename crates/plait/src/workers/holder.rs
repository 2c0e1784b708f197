//! A lent path on the thread that serves it: a task that receives, sends, keeps time, and tells the connection.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use plait_base::time::earliest;
use plait_base::{Instant, PathId};
use plait_engine::connection::split::{FromPath, LentPath, ReturnReason, ToPath};
use plait_engine::{ConnectionHandle, Input};
use rtrb::{Consumer, Producer};

use super::bell::{Bell, RingsAtLast};
use super::fault::WorkerFault;
use super::source::{Reading, Source};
use super::tally::WorkerTally;
use crate::connection::{Inbox, cost};
use crate::endpoint::EndpointShared;
use crate::net::SpareBuffers;
use crate::sockets::SendQueues;
use crate::timer::Timer;

/// Orders taken in before others get a turn.
const MAX_ORDERS: usize = 64;
/// Datagrams read before others get a turn.
const MAX_DATAGRAMS: usize = 256;
/// Trains sent before others get a turn.
const MAX_TRAINS: usize = 8;
/// Trains after which the connection hears what left, so that it gives more before the last has.
const TOLD_TRAINS: usize = 4;
/// When a ring that was full is looked at again.
const FULL_RING_WAIT: Duration = Duration::from_millis(1);

/// What a connection hears from whoever serves one of its paths.
#[derive(Debug)]
pub(super) enum News {
    Tell(FromPath),
    /// The last: the path is back.
    Back(Box<Held>),
}

/// What goes back when a loan ends.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) lent: Box<LentPath>,
    /// Orders that nobody took may still be in it.
    pub(super) orders: Consumer<ToPath>,
    /// What waits for a full socket.
    pub(super) send_queues: SendQueues,
}

/// Where a holder's datagrams come from, and where the memory that they came in goes.
pub(super) struct Intake {
    /// The path's own socket, where this thread reads it.
    pub(super) source: Option<Source>,
    /// What others received for the path.
    pub(super) inbox: Arc<Inbox>,
    pub(super) inputs: VecDeque<Input>,
    pub(super) spare_buffers: Arc<SpareBuffers>,
}

/// Serves a lent path until it goes back.
pub(super) struct Holder {
    /// None once it went back.
    pub(super) held: Option<Box<Held>>,
    pub(super) intake: Intake,
    pub(super) handle: ConnectionHandle,
    pub(super) endpoint: Arc<EndpointShared>,
    pub(super) tally: Arc<WorkerTally>,
    pub(super) bell: Arc<Bell>,
    /// Set once the connection closes or is closed.
    pub(super) halt: Arc<AtomicBool>,
    pub(super) buffer: Vec<u8>,
    pub(super) timer: Timer,
    pub(super) fault: WorkerFault,
    pub(super) news: Producer<News>,
    /// Last, so that the connection finds the rings abandoned when it is woken by this.
    pub(super) connection: RingsAtLast,
}

/// Whether there is more to do at once.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Backlog {
    Empty,
    Left,
}

impl Intake {
    /// Receives what there is for path `id` of connection `handle`.
    fn receive(&mut self, cx: &mut Context<'_>, handle: ConnectionHandle, id: PathId) -> Backlog {
        if !self.inputs.is_empty() {
            return Backlog::Left;
        }
        // The list of sockets is for the connection's task.
        let _ = self.inbox.take(&mut self.inputs, cx.waker());
        self.inbox.on_absorbed(self.inputs.iter().map(cost).sum());
        let Some(source) = &mut self.source else { return Backlog::Empty };
        match source.read(cx, (handle, id), &mut self.inputs) {
            Reading::Dry => Backlog::Empty,
            Reading::More => Backlog::Left,
            Reading::Broken => {
                self.source = None;
                Backlog::Empty
            }
        }
    }

    /// Lets the path read; the bytes.
    fn hand_over(&mut self, now: Instant, lent: &mut LentPath) -> usize {
        let (mut bytes, mut datagrams) = (0, 0);
        while datagrams < MAX_DATAGRAMS
            && let Some(input) = self.inputs.pop_front()
        {
            bytes += input.size();
            datagrams += input.datagrams();
            if let Some(memory) = lent.handle_datagram(now, input) {
                self.spare_buffers.keep(memory);
            }
        }
        bytes
    }
}

impl Holder {
    fn turn(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(held) = &mut self.held else { return Poll::Ready(()) };
        let Held { lent, orders, send_queues } = &mut **held;
        let now = self.endpoint.clock().now();
        let mut work = Backlog::Empty;
        let is_over = orders.is_abandoned();
        for _ in 0..MAX_ORDERS {
            let Ok(order) = orders.pop() else { break };
            lent.handle_message(now, order);
        }
        if is_over {
            // Its connection is gone.
            return Poll::Ready(());
        }
        // What has no room there waits with the path: while there is some, nothing more is received.
        let may_read = !self.news.is_full();
        if may_read {
            work = self.intake.receive(cx, self.handle, lent.id());
            self.tally.on_received(self.intake.hand_over(now, lent));
            if !self.intake.inputs.is_empty() {
                work = Backlog::Left;
            }
        }
        if lent.deadline().is_some_and(|at| at <= now) {
            lent.on_timeout(now);
        }
        // What arrived is handed over before it is acknowledged, and what was sent is reported.
        let mut is_told = tell(now, lent, &mut self.news);
        let report = |lent: &mut LentPath| {
            if tell(now, lent, &mut self.news) {
                self.connection.0.ring();
            }
        };
        let flags = (&*self.tally, &*self.halt);
        if send(cx, now, (lent, send_queues), &mut self.buffer, flags, report) == Backlog::Left {
            work = Backlog::Left;
        }
        is_told |= tell(now, lent, &mut self.news);
        let is_full = self.news.is_full();
        if lent.wants_back().is_some() && !is_full {
            self.give_back(now);
            return Poll::Ready(());
        }
        if is_told {
            self.connection.0.ring();
        }
        self.rest(cx, now, (work, !may_read || is_full))
    }

    /// Sleeps until there is something to do.
    fn rest(&mut self, cx: &mut Context<'_>, now: Instant, (work, is_stuck): (Backlog, bool)) -> Poll<()> {
        let Some(held) = &self.held else { return Poll::Ready(()) };
        self.bell.arm(cx.waker());
        let retry = is_stuck.then(|| now + FULL_RING_WAIT);
        let at = earliest(held.lent.deadline(), retry);
        let is_due = at.is_some_and(|at| self.timer.poll_at(cx, self.endpoint.clock(), at).is_ready());
        if is_due || work == Backlog::Left && !is_stuck || !held.orders.is_empty() || held.orders.is_abandoned() {
            self.bell.disarm();
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    fn give_back(&mut self, now: Instant) {
        let Some(mut held) = self.held.take() else { return };
        // The endpoint reads the socket again, and the path keeps what came before.
        self.intake.source = None;
        self.intake.hand_over(now, &mut held.lent);
        if held.lent.wants_back() == Some(&ReturnReason::Idle) {
            self.intake.spare_buffers.clear();
        }
        let _ = self.news.push(News::Back(held));
    }
}

/// Tells the connection what there is to tell, as far as the ring has room. True where there was something.
fn tell(now: Instant, lent: &mut LentPath, news: &mut Producer<News>) -> bool {
    let mut is_told = false;
    while !news.is_full()
        && let Some(message) = lent.poll_message(now)
    {
        // There is room: nobody else fills it.
        let _ = news.push(News::Tell(message));
        is_told = true;
    }
    is_told
}

/// Sends while the path has something to say and its socket room for it, and reports now and then.
fn send(
    cx: &Context<'_>,
    now: Instant,
    (lent, send_queues): (&mut LentPath, &mut SendQueues),
    buffer: &mut Vec<u8>,
    (tally, halt): (&WorkerTally, &AtomicBool),
    mut report: impl FnMut(&mut LentPath),
) -> Backlog {
    send_queues.flush(cx);
    let max_segments = send_queues.sockets().max_segments();
    for count in 0..MAX_TRAINS {
        if count > 0 && count % TOLD_TRAINS == 0 {
            report(lent);
        }
        for datagram in send_queues.take_too_large() {
            lent.on_too_large(now, datagram.bytes);
        }
        if !send_queues.is_empty() {
            // The socket wakes this task when it has room.
            return Backlog::Empty;
        }
        // RFC 9000 10.2.2: nothing leaves once the peer has closed
        if halt.load(Ordering::Acquire) {
            return Backlog::Empty;
        }
        let Some(transmit) = lent.poll_transmit(now, max_segments, buffer) else { return Backlog::Empty };
        tally.on_sent(transmit.size);
        send_queues.send(cx, transmit, buffer);
    }
    Backlog::Left
}

impl Future for Holder {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        if this.fault.stalls() { Poll::Pending } else { this.turn(cx) }
    }
}
