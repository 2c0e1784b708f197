//! Tasks begin here: that of an endpoint, and those of its connections.

use std::sync::{Arc, MutexGuard};

use plait_base::{CloseCode, FourTuple, Random, TransportError};
use plait_engine::config;
use plait_engine::connection::ConnectionError;
use plait_engine::endpoint::{self as engine, AcceptCause, AcceptError};
use plait_engine::{ConnectionHandle, EndpointEvent};

use super::driver::Driver;
use super::errors::ConnectError;
use super::state::{EndpointShared, Reach, State};
use crate::clock;
use crate::config::{ClientConfig, EndpointConfig, ServerConfig};
use crate::connection::{self, Home, Shared, Standing};
use crate::interfaces;
use crate::sockets::{Listener, SocketList};
use crate::workers::{Seat, WorkerPool};

impl EndpointShared {
    /// Makes the endpoint and starts its task.
    pub(crate) fn start(
        config: EndpointConfig,
        server: Option<ServerConfig>,
        sockets: SocketList,
        workers: Option<WorkerPool>,
        random: Random,
    ) -> Arc<Self> {
        let mut config: config::EndpointConfig = config.into_engine();
        config.origin_unix(clock::unix_time());
        let engine = engine::Endpoint::new(Arc::new(config), server.map(ServerConfig::into_engine), random);
        let shared = Arc::new(Self::new(engine, sockets, workers));
        shared.runtime.spawn(Driver::new(shared.clone()));
        shared
    }

    /// Begins a connection as a client, one attempt perhaps of several.
    pub(crate) fn connect(
        self: &Arc<Self>,
        config: ClientConfig,
        tuple: FourTuple,
        server_name: &str,
    ) -> Result<Arc<Shared>, ConnectError> {
        let mut state = self.lock();
        if state.is_closed {
            return Err(ConnectError::EndpointStopping);
        }
        let exit = state.sockets.exit(&tuple).ok_or(ConnectError::NoSocket(tuple.remote))?;
        let now = self.clock().now();
        let (handle, mut engine) = state.engine.connect(now, config.into_engine(), tuple, server_name)?;
        state.sockets.tell(&mut engine, now);
        if state.reach == Reach::Fixed {
            state.reach = Reach::Own;
        }
        self.watch(&mut state);
        let home = Home::new(&self.runtime, None);
        let shared = Shared::new(engine, tuple.remote, self.clock(), self.inboxes.clone(), home);
        shared.lock().standing = Standing::Contested;
        let listener = Listener::new(&self.runtime, exit.socket, tuple.remote, shared.clone());
        self.launch(self.enter(state, handle, &shared, None), (handle, &shared), (listener, None));
        Ok(shared)
    }

    /// Accepts a client, unless the endpoint was closed meanwhile.
    pub(crate) fn accept(
        self: &Arc<Self>,
        incoming: engine::Incoming,
        config: Option<ServerConfig>,
    ) -> Result<Arc<Shared>, ConnectionError> {
        let (tuple, receiver) = (incoming.tuple(), incoming.receiver());
        let mut state = self.lock();
        if state.is_closed {
            state.refuse(incoming);
            return Err(ConnectionError::LocallyClosed);
        }
        let now = self.clock().now();
        let State { engine, reply, .. } = &mut *state;
        match engine.accept_unread(incoming, now, reply, config.map(ServerConfig::into_engine)) {
            Ok((handle, engine, first)) => {
                self.watch(&mut state);
                let seat = receiver.and_then(|thread| self.workers()?.seat(thread));
                let home = Home::new(&self.runtime, seat.as_ref().map(|seat| (seat.thread, &seat.runtime)));
                let shared = Shared::new(engine, tuple.remote, self.clock(), self.inboxes.clone(), home);
                let sockets = self.enter(state, handle, &shared, seat.as_ref());
                // The signature for the client is made here, while others go on with the endpoint.
                shared.read_first(now, first, &sockets);
                self.launch(sockets, (handle, &shared), (None, seat));
                Ok(shared)
            }
            Err(AcceptError { cause, reply }) => {
                if let Some(transmit) = reply {
                    state.sockets.send_or_drop(&transmit, &state.reply);
                }
                Err(refusal(&cause))
            }
        }
    }

    /// The machine's addresses are watched from the first connection on.
    fn watch(self: &Arc<Self>, state: &mut State) {
        if let Some(ended) = state.watch() {
            self.runtime.spawn(interfaces::follow_own(Arc::downgrade(self), ended));
        }
    }

    /// Datagrams of a new connection find it from now on, and changes of the endpoint's sockets: these are the ones it begins with.
    fn enter(
        &self,
        mut state: MutexGuard<'_, State>,
        handle: ConnectionHandle,
        shared: &Arc<Shared>,
        seat: Option<&Seat>,
    ) -> Arc<SocketList> {
        state.keep(handle, shared.clone());
        let sockets = state.sockets.clone();
        if let (Some(workers), Some(_)) = (self.workers(), seat) {
            // What it was given before it began.
            let register = |(cid, path)| EndpointEvent::Register { cid, path };
            let ids: Vec<_> = state.engine.ids_of(handle).map(register).collect();
            drop(state);
            workers.on_connection_events((handle, shared), &ids);
        }
        sockets
    }

    /// Starts the task of a new connection.
    fn launch(
        self: &Arc<Self>,
        sockets: Arc<SocketList>,
        (handle, shared): (ConnectionHandle, &Arc<Shared>),
        (listener, seat): (Option<Listener>, Option<Seat>),
    ) {
        let runtime = shared.home.runtime();
        let _runtime = runtime.enter();
        let new = |seat| connection::Driver::new(handle, shared.clone(), self.clone(), sockets, (listener, seat));
        match seat {
            Some(seat) => runtime.spawn(connection::Resident::new(new(Some(seat.clone())), seat)),
            None => runtime.spawn(new(None)),
        };
    }
}

/// Why a client could not be accepted, as a connection's end.
fn refusal(cause: &AcceptCause) -> ConnectionError {
    match cause {
        AcceptCause::Expired => ConnectionError::TimedOut,
        AcceptCause::Transport(error) => ConnectionError::TransportError((**error).clone()),
        other => ConnectionError::TransportError(TransportError::new(CloseCode::CONNECTION_REFUSED, other.to_string())),
    }
}
