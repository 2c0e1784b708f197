//! What the endpoint's task, its connections and the application's handles share.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use bytes::Bytes;
use plait_base::{Instant, limits};
use plait_engine::endpoint as engine;
use plait_engine::{ConnectionHandle, EndpointEvent};
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};

use crate::clock::Clock;
use crate::config::ClientConfig;
use crate::connection::{InboxBudget, Shared};
use crate::net::SpareBuffers;
use crate::sockets::SocketList;
use crate::timer::SpareTimer;
use crate::workers::WorkerPool;

/// An endpoint as all its users see it.
pub(crate) struct EndpointShared {
    state: Mutex<State>,
    clock: Clock,
    /// That of the application, in which it was made.
    pub(crate) runtime: Handle,
    /// A client's first packet waits, or the endpoint was closed.
    pub(crate) arrivals: Notify,
    pub(super) inboxes: Arc<InboxBudget>,
    /// Threads that serve paths, where there are to be several.
    workers: Option<WorkerPool>,
    /// Receive buffers, for use again.
    pub(crate) spare_buffers: Arc<SpareBuffers>,
    /// The last connection is over, or one has sent its close.
    pub(crate) idle: Notify,
    /// For connections that are tasks of [`Self::runtime`].
    pub(crate) spare_timer: SpareTimer,
}

/// What the lock guards.
pub(crate) struct State {
    pub(crate) engine: engine::Endpoint,
    pub(crate) sockets: Arc<SocketList>,
    pub(crate) client: Option<ClientConfig>,
    /// Closed by the application, or without a task: it begins and accepts no connection any more.
    pub(super) is_closed: bool,
    /// No handle is left: it ends with its last connection.
    is_abandoned: bool,
    /// What the application holds of which a connection may come.
    holds: usize,
    /// Connections, by their handles.
    connections: Vec<Option<Arc<Shared>>>,
    incoming: VecDeque<engine::Incoming>,
    /// For answers to clients that are not connections.
    pub(crate) reply: Vec<u8>,
    driver: Option<Waker>,
    /// Kept as long as the endpoint is; the task that watches the machine's addresses ends with it.
    watched: Option<oneshot::Sender<Infallible>>,
    /// Which sockets come with new addresses of the machine.
    pub(crate) reach: Reach,
}

/// Which sockets an endpoint gets when addresses come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Reach {
    /// None, and those that there are stay when their addresses go: they serve again when the addresses are back, on the
    /// port that clients know.
    #[default]
    Fixed,
    /// Only in place of those that it had.
    Own,
    /// One for every usable address.
    All,
}

impl State {
    /// The connection of this handle.
    pub(crate) fn connection(&self, handle: ConnectionHandle) -> Option<&Arc<Shared>> {
        self.connections.get(handle.index())?.as_ref()
    }

    /// True when every connection is closed and has said so.
    pub(crate) fn has_closed(&self) -> bool {
        self.connections.iter().flatten().all(|connection| connection.is_close_sent())
    }

    /// True while some client's handshake is not confirmed.
    fn is_beginning(&self) -> bool {
        self.connections.iter().flatten().any(|connection| connection.is_beginning())
    }

    pub(super) fn keep(&mut self, handle: ConnectionHandle, shared: Arc<Shared>) {
        if self.connections.len() <= handle.index() {
            self.connections.resize(handle.index() + 1, None);
        }
        self.connections[handle.index()] = Some(shared);
    }

    /// A client wants in.
    pub(crate) fn arrive(&mut self, incoming: engine::Incoming) {
        if self.is_closed || self.is_abandoned {
            self.refuse(incoming);
            return;
        }
        if self.incoming.len() >= limits::MAX_INCOMING_CONNECTIONS
            && let Some(oldest) = self.incoming.pop_front()
        {
            self.engine.ignore(oldest);
        }
        self.incoming.push_back(incoming);
    }

    pub(crate) fn next_incoming(&mut self) -> Option<engine::Incoming> {
        self.incoming.pop_front()
    }

    /// Tells a client that it is not wanted.
    pub(crate) fn refuse(&mut self, incoming: engine::Incoming) {
        if let Some(transmit) = self.engine.refuse(incoming, &mut self.reply) {
            self.sockets.send_or_drop(&transmit, &self.reply);
        }
    }

    pub(crate) fn set_driver(&mut self, driver: &Waker) {
        if !self.driver.as_ref().is_some_and(|kept| kept.will_wake(driver)) {
            self.driver = Some(driver.clone());
        }
    }

    pub(crate) fn wake_driver(&mut self) {
        if let Some(driver) = self.driver.take() {
            driver.wake();
        }
    }

    /// Begins to watch the machine's addresses: what the task that does it waits on. None when one does already.
    pub(crate) fn watch(&mut self) -> Option<oneshot::Receiver<Infallible>> {
        if self.watched.is_some() {
            return None;
        }
        let (held, ended) = oneshot::channel();
        self.watched = Some(held);
        Some(ended)
    }

    /// True when the endpoint's task has nothing left to live for.
    pub(crate) fn is_over(&self) -> bool {
        self.is_abandoned && self.holds == 0 && self.engine.connections() == 0
    }
}

impl EndpointShared {
    /// An endpoint without a task yet; must be called within a tokio runtime.
    pub(super) fn new(engine: engine::Endpoint, sockets: SocketList, workers: Option<WorkerPool>) -> Self {
        let state = State {
            engine,
            sockets: Arc::new(sockets),
            client: None,
            is_closed: false,
            is_abandoned: false,
            holds: 0,
            connections: Vec::new(),
            incoming: VecDeque::new(),
            reply: Vec::new(),
            driver: None,
            watched: None,
            reach: Reach::default(),
        };
        Self {
            state: Mutex::new(state),
            clock: Clock::start(),
            runtime: Handle::current(),
            arrivals: Notify::new(),
            inboxes: Arc::default(),
            workers,
            spare_buffers: Arc::default(),
            idle: Notify::new(),
            spare_timer: SpareTimer::default(),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Threads that serve paths; none where the tasks of the connections do.
    pub(crate) fn workers(&self) -> Option<&WorkerPool> {
        self.workers.as_ref()
    }

    /// What the inboxes of the endpoint may hold together.
    pub(crate) fn inboxes(&self) -> Arc<InboxBudget> {
        self.inboxes.clone()
    }

    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }

    /// A connection tells what the endpoint must know.
    pub(crate) fn on_connection_events(
        &self,
        (handle, connection): (ConnectionHandle, &Arc<Shared>),
        events: &[EndpointEvent],
    ) {
        if let Some(workers) = &self.workers {
            workers.on_connection_events((handle, connection), events);
        }
        let mut state = self.lock();
        for event in events {
            if let Some((other, word)) = state.engine.on_connection_event(handle, *event)
                && let Some(other) = state.connection(other)
            {
                other.inbox.push(word);
            }
            if *event == EndpointEvent::Drained
                && let Some(place) = state.connections.get_mut(handle.index())
            {
                *place = None;
            }
        }
        self.look_whether_idle(state);
    }

    /// The task of a connection that the peer closed ends.
    pub(crate) fn let_go(&self, (handle, connection): (ConnectionHandle, &Arc<Shared>), now: Instant, until: Instant) {
        if let Some(workers) = &self.workers {
            workers.on_connection_events((handle, connection), &[EndpointEvent::Drained]);
        }
        let mut state = self.lock();
        state.engine.let_go(handle, now, until);
        if let Some(place) = state.connections.get_mut(handle.index()) {
            *place = None;
        }
        self.look_whether_idle(state);
    }

    fn look_whether_idle(&self, mut state: MutexGuard<'_, State>) {
        if state.engine.connections() == 0 {
            self.idle.notify_waiters();
            state.wake_driver();
        }
    }

    /// A connection that is closed has said so to its peer.
    pub(crate) fn on_close_sent(&self) {
        self.idle.notify_waiters();
    }

    /// Replaces the list of sockets and tells everybody.
    pub(crate) fn change_sockets(&self, change: impl FnOnce(&SocketList) -> SocketList) {
        self.set_sockets(|state| Some(change(&state.sockets)));
    }

    /// The same where sockets go that work: clients that may not leave them yet keep them.
    pub(crate) fn replace_sockets(&self, change: impl FnOnce(&SocketList) -> SocketList) {
        self.set_sockets(|state| {
            let list = change(&state.sockets);
            Some(if state.is_beginning() { list.leaving(&state.sockets) } else { list })
        });
    }

    /// A client's handshake is confirmed, or it is over.
    pub(crate) fn on_begun(&self) {
        self.set_sockets(|state| state.sockets.all_left().filter(|_| !state.is_beginning()));
    }

    fn set_sockets(&self, change: impl FnOnce(&State) -> Option<SocketList>) {
        let mut state = self.lock();
        let Some(sockets) = change(&state).map(Arc::new) else { return };
        state.sockets = sockets.clone();
        state.wake_driver();
        if let Some(workers) = &self.workers {
            workers.follow(&sockets);
        }
        for connection in state.connections.iter().flatten() {
            connection.inbox.set_sockets(sockets.clone());
        }
    }

    /// Closes all connections, and refuses those that come.
    pub(crate) fn close(&self, code: u64, reason: Bytes) {
        let mut state = self.lock();
        state.is_closed = true;
        while let Some(incoming) = state.next_incoming() {
            state.refuse(incoming);
        }
        let connections: Vec<_> = state.connections.iter().flatten().cloned().collect();
        state.wake_driver();
        drop(state);
        for connection in connections {
            connection.close(code, reason.clone());
        }
        self.arrivals.notify_waiters();
    }

    /// Nobody brings clients any more, nor is there anybody to serve them.
    pub(super) fn on_task_ended(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        while let Some(incoming) = state.next_incoming() {
            state.engine.ignore(incoming);
        }
        drop(state);
        self.arrivals.notify_waiters();
    }
}

impl fmt::Debug for EndpointShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").finish_non_exhaustive()
    }
}

/// The application's hold on an endpoint.
#[derive(Debug)]
pub(super) struct EndpointRef(pub(super) Arc<EndpointShared>);

impl Drop for EndpointRef {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.is_abandoned = true;
        while let Some(incoming) = state.next_incoming() {
            state.refuse(incoming);
        }
        state.wake_driver();
    }
}

impl std::ops::Deref for EndpointRef {
    type Target = Arc<EndpointShared>;
    fn deref(&self) -> &Arc<EndpointShared> {
        &self.0
    }
}

/// An endpoint whose task goes on without a handle too, since a connection may come of what this is a part of.
#[derive(Debug)]
pub(crate) struct Hold(Arc<EndpointShared>);

impl Hold {
    pub(super) fn new(endpoint: &Arc<EndpointShared>, state: &mut State) -> Self {
        state.holds += 1;
        Self(endpoint.clone())
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.holds = state.holds.saturating_sub(1);
        if state.is_over() {
            state.wake_driver();
        }
    }
}

impl std::ops::Deref for Hold {
    type Target = Arc<EndpointShared>;
    fn deref(&self) -> &Arc<EndpointShared> {
        &self.0
    }
}
