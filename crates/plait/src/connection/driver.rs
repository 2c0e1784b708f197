//! The task of one connection: datagrams in, timers, datagrams out, news to those who wait.

use std::cell::Cell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use plait_base::time::earliest;
use plait_base::{CloseCode, Instant, TransportError};
use plait_engine::connection::{ConnectionError, Unreachable};
use plait_engine::{ConnectionHandle, EndpointEvent, Input, More};

use super::inbox::{cost, trim};
use super::state::{HandshakeProgress, Shared, State};
use crate::endpoint::EndpointShared;
use crate::net::SpareBuffers;
use crate::sockets::{Listener, OnUnreachable, SendQueues, SocketList};
use crate::timer::Timer;
use crate::workers::{LentPaths, Seat};

/// Datagrams after which others get a turn.
const MAX_DATAGRAMS: usize = 256;
/// GSO batches sent before others get a turn.
const MAX_BATCHES: usize = 32;

/// Drives one connection until it has drained.
pub(crate) struct Driver {
    handle: ConnectionHandle,
    shared: Arc<Shared>,
    endpoint: Arc<EndpointShared>,
    send_queues: SendQueues,
    /// The paths that threads serve, on an endpoint that has such threads.
    loans: Option<Box<LentPaths>>,
    /// While it lives on a thread of its endpoint.
    seat: Option<Seat>,
    /// Where the memory of datagrams goes.
    spare_buffers: Arc<SpareBuffers>,
    inputs: VecDeque<Input>,
    endpoint_events: Vec<EndpointEvent>,
    timer: Timer,
    /// When something last came or left; none once memory was given back after it.
    busy_at: Option<Instant>,
    /// How often after its handshake it gives memory back early yet.
    early_rests: u8,
    life: Life,
    /// On a client until the server is heard.
    listener: Option<Listener>,
}

thread_local! {
    /// Memory for a GSO batch while it is made: one for all connections of a thread, of which one makes a batch at a time.
    static TRAIN: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// After so much silence a connection gives back the memory that it keeps for packets to come.
const SILENCE: Duration = Duration::from_millis(250);
/// After so much at first: what its handshake needed is of no more use, and the next handshake finds that memory.
const FIRST_SILENCE: Duration = Duration::from_millis(15);
/// So often: the acks of what a handshake said last come later than that, and ask for memory again.
const EARLY_RESTS: u8 = 2;

/// Whether there is more to do at once.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    Done,
    Left,
}

/// Whether the endpoint still knows the connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Life {
    Known,
    /// It does, and the peer closed: there is nothing left to do.
    Draining {
        /// Until when packets of the peer may come.
        until: Instant,
    },
    Forgotten,
}

impl Driver {
    pub(crate) fn new(
        handle: ConnectionHandle,
        shared: Arc<Shared>,
        endpoint: Arc<EndpointShared>,
        sockets: Arc<SocketList>,
        (listener, seat): (Option<Listener>, Option<Seat>),
    ) -> Self {
        // A timer belongs to the runtime that it was made in.
        let timer = if seat.is_none() { endpoint.spare_timer.take() } else { Timer::default() };
        let born_at = shared.clock.now();
        if sockets.may_fragment() {
            shared.lock().now_or_later(born_at, |engine, _| engine.stop_mtu_search());
        }
        let spare_buffers = seat.as_ref().map_or(&endpoint.spare_buffers, |seat| &seat.spare_buffers).clone();
        let loans = endpoint.workers().map(|_| Box::new(LentPaths::new(handle, endpoint.clone())));
        Self {
            handle,
            shared,
            endpoint,
            send_queues: SendQueues::new(sockets, seat.as_ref().map(|seat| seat.thread)),
            loans,
            seat,
            spare_buffers,
            inputs: VecDeque::new(),
            endpoint_events: Vec::new(),
            timer,
            busy_at: Some(born_at),
            early_rests: EARLY_RESTS,
            life: Life::Known,
            listener,
        }
    }

    /// True while threads serve paths of it.
    pub(crate) fn has_lent(&self) -> bool {
        self.loans.as_deref().is_some_and(LentPaths::is_lending)
    }

    /// Goes on as a task of the application's runtime.
    pub(crate) fn move_to_application(mut self: Box<Self>) {
        self.seat = None;
        self.shared.home.leave_thread();
        self.timer = Timer::default();
        let runtime = self.shared.home.application().clone();
        runtime.spawn(self);
    }

    /// Word that datagrams do not get through counts until the server is heard.
    fn heed_reports(&mut self) {
        if self.listener.is_none() {
            return;
        }
        if let Some(tuple) = self.send_queues.take_impassable() {
            tracing::debug!(%tuple, "no way out between these addresses");
            self.shared.on_unreachable(Unreachable::Host);
        }
        let state = self.shared.lock();
        let is_over = state.progress != HandshakeProgress::Begun || state.error.is_some();
        drop(state);
        if is_over {
            self.listener = None;
        }
    }

    /// Takes in what the endpoint brought, and does what is due.
    fn absorb(&mut self, cx: &Context<'_>) -> Work {
        // What is left of an earlier visit goes first. Only a visit to the inbox makes later arrivals wake this task.
        let visited = self.inputs.is_empty();
        let change = if visited { self.shared.inbox.take(&mut self.inputs, cx.waker()) } else { None };
        let mut state = self.shared.lock();
        // From here on each call of the application brings this task back.
        state.set_driver(cx.waker());
        let now = self.shared.clock.now();
        if let Some(sockets) = change {
            adopt(&mut state, now, &sockets, self.send_queues.sockets());
            if sockets.may_fragment() {
                state.now_or_later(now, |engine, _| engine.stop_mtu_search());
            }
            self.send_queues.set_sockets(sockets);
        }
        let mut heard = !self.inputs.is_empty();
        if let Some(loans) = &mut self.loans {
            heard |= loans.hear(now, &mut state.engine, &self.shared.routes, &mut self.send_queues);
            if loans.has_stalled(now, &state.engine) {
                // All paths are asked back; one that does not come is given up.
                state.now_or_later(now, |_, _| ());
            }
            state.do_later(now);
        }
        let (mut absorbed_bytes, mut received_bytes) = (0, 0);
        let mut datagrams = 0;
        while datagrams < MAX_DATAGRAMS
            && let Some(input) = self.inputs.pop_front()
        {
            absorbed_bytes += cost(&input);
            received_bytes += input.size();
            datagrams += input.datagrams();
            if let Some(memory) = state.engine.handle_datagram(now, input) {
                self.spare_buffers.keep(memory);
            }
        }
        trim(&mut self.inputs);
        if heard {
            self.busy_at = Some(now);
        }
        // What falls due meanwhile sets the timer at the end of this visit.
        if !self.timer.waits(now) && state.engine.deadline().is_some_and(|at| at <= now) {
            state.engine.on_timeout(now);
            // What it needed for that is given back after as much silence as after a packet.
            self.busy_at.get_or_insert(now);
        }
        if heard && !state.paths.openers.is_empty() {
            state.paths.openers.wake_all();
        }
        state.deliver_events(&self.shared.notifies);
        drop(state);
        self.shared.inbox.on_absorbed(absorbed_bytes);
        if let Some(seat) = &self.seat {
            seat.on_received(received_bytes);
        }
        if visited && self.inputs.is_empty() { Work::Done } else { Work::Left }
    }

    /// Makes datagrams while there is something to say and a socket with room to say it; one that is full wakes this task
    /// when it has room again.
    fn transmit(&mut self, cx: &Context<'_>) -> Work {
        self.send_queues.flush(cx);
        let mut buffer = TRAIN.take();
        let work = self.send_trains(cx, &mut buffer);
        TRAIN.set(buffer);
        if let Some(loans) = &mut self.loans {
            let mut state = self.shared.lock();
            // With one path there is nothing to split: it is served where the connection lives.
            let splits = self.seat.is_none() || state.engine.connection().paths().tuples().nth(1).is_some();
            if splits {
                loans.serve(self.shared.clock.now(), &mut state.engine, &self.shared, &self.send_queues);
            }
        }
        work
    }

    fn send_trains(&mut self, cx: &Context<'_>, buffer: &mut Vec<u8>) -> Work {
        let max_segments = self.send_queues.sockets().max_segments();
        for batch in 0..MAX_BATCHES {
            let mut state = self.shared.lock();
            let now = self.shared.clock.now();
            for datagram in self.send_queues.take_too_large() {
                state.engine.on_too_large(now, datagram.tuple, datagram.bytes);
            }
            let full = self.send_queues.full(state.engine.connection().paths().tuples());
            state.engine.set_full_sockets(now, full);
            let transmit = state.engine.poll_transmit(now, max_segments, buffer);
            self.endpoint_events.extend(std::iter::from_fn(|| state.engine.poll_endpoint_event()));
            drop(state);
            // Ids that the peer learns by this datagram must be known before it leaves.
            self.tell_endpoint();
            let Some(transmit) = transmit else {
                if batch == 0 {
                    self.release(now);
                }
                return Work::Done;
            };
            self.busy_at = Some(now);
            if let Some(seat) = &self.seat {
                seat.on_sent(transmit.size);
            }
            self.send_queues.send(cx, transmit, buffer);
            if transmit.more == More::Nothing {
                return Work::Done;
            }
        }
        Work::Left
    }

    /// Gives back memory for GSO batches while there is nothing to say, and all that is only kept after some silence.
    fn release(&mut self, now: Instant) {
        self.send_queues.release();
        if self.rests_at().is_none_or(|at| now < at) {
            return;
        }
        self.busy_at = None;
        self.endpoint_events = Vec::new();
        self.inputs.shrink_to_fit();
        self.shared.inbox.shrink_to_fit();
        self.send_queues.shrink_to_fit();
        self.spare_buffers.clear();
        let mut state = self.shared.lock();
        state.shrink_to_fit();
        if !state.engine.connection().is_handshaking() {
            self.early_rests = self.early_rests.saturating_sub(1);
        }
    }

    /// When it gives memory back if nothing comes or leaves until then.
    fn rests_at(&self) -> Option<Instant> {
        let silence = if self.early_rests > 0 { FIRST_SILENCE } else { SILENCE };
        self.busy_at.map(|at| at + silence)
    }

    fn tell_endpoint(&mut self) {
        if self.life != Life::Forgotten && !self.endpoint_events.is_empty() {
            for event in &self.endpoint_events {
                match *event {
                    EndpointEvent::Draining { until } => self.life = Life::Draining { until },
                    EndpointEvent::Drained => self.life = Life::Forgotten,
                    _ => {}
                }
            }
            self.endpoint.on_connection_events((self.handle, &self.shared), &self.endpoint_events);
        }
        self.endpoint_events.clear();
    }

    fn on_begun(&self) {
        if self.shared.on_begun() {
            self.endpoint.on_begun();
        }
    }

    /// Sets the timer. Ready when there is more to do: the timer has fired already, or the connection is over.
    fn rest(&mut self, cx: &mut Context<'_>) -> Poll<Work> {
        if self.loans.as_ref().is_some_and(|loans| loans.arm(cx.waker())) {
            return Poll::Ready(Work::Left);
        }
        let mut state = self.shared.lock();
        state.deliver_events(&self.shared.notifies);
        state.lost_locally = self.send_queues.lost();
        self.endpoint_events.extend(std::iter::from_fn(|| state.engine.poll_endpoint_event()));
        let (drained, deadline) = (state.engine.connection().is_drained(), state.engine.deadline());
        let has_begun = state.engine.connection().session().is_confirmed();
        let has_closed = state.engine.connection().is_closed()
            && !state.engine.connection().owes_close()
            && self.send_queues.is_empty();
        drop(state);
        self.tell_endpoint();
        if has_begun && self.shared.is_beginning() {
            self.on_begun();
        }
        if has_closed && self.shared.on_close_sent() {
            self.endpoint.on_close_sent();
        }
        if drained {
            return Poll::Ready(Work::Done);
        }
        if let Life::Draining { until } = self.life {
            self.life = Life::Forgotten;
            if self.seat.is_none() {
                self.endpoint.spare_timer.leave(std::mem::take(&mut self.timer));
            }
            self.endpoint.let_go((self.handle, &self.shared), self.shared.clock.now(), until);
            return Poll::Ready(Work::Done);
        }
        let deadline = earliest(deadline, self.loans.as_deref().and_then(LentPaths::deadline));
        let Some(at) = earliest(deadline, self.rests_at()) else { return Poll::Pending };
        self.timer.poll_at(cx, self.shared.clock, at).map(|()| Work::Left)
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        let absorbed = this.absorb(cx);
        let sent = this.transmit(cx);
        this.heed_reports();
        match this.rest(cx) {
            Poll::Ready(Work::Done) => return Poll::Ready(()),
            Poll::Ready(Work::Left) => {}
            Poll::Pending if absorbed == Work::Done && sent == Work::Done => return Poll::Pending,
            Poll::Pending => {}
        }
        // Others get a turn, then it goes on.
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Drop for Driver {
    /// Whatever ended the task, neither the endpoint nor the application may wait for it any more.
    fn drop(&mut self) {
        self.endpoint_events.push(EndpointEvent::Drained);
        self.tell_endpoint();
        self.on_begun();
        self.shared.inbox.clear();
        let mut state = self.shared.lock();
        state.clear_later();
        let error = TransportError::new(CloseCode::INTERNAL_ERROR, "the connection's task ended");
        state.end(ConnectionError::TransportError(error), &self.shared.notifies);
    }
}

/// The endpoint's sockets or the network around them changed: a client's paths follow, and the peer may hear of it.
fn adopt(state: &mut State, now: Instant, sockets: &Arc<SocketList>, before: &SocketList) {
    let has_changed = sockets.network_changes() != before.network_changes();
    let sockets = sockets.clone();
    state.now_or_later(now, move |engine, now| {
        sockets.tell(engine, now);
        if has_changed {
            engine.handle_network_change(now);
        }
    });
}
