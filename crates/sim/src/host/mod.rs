//! The plait engine as a host of a simulated world, with a small application on top.

pub mod acks;
pub mod app;
pub mod decisions;
pub mod ledger;
pub(crate) mod pattern;
pub mod tls;
pub mod watched;

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::BytesMut;
use plait_base::time::earliest;
use plait_base::{FourTuple, Instant, Random};
use plait_engine::config::RetryPolicy;
use plait_engine::crypto::Protection;
use plait_engine::{
    ClientConfig, Connection, ConnectionHandle, Endpoint, EndpointConfig, Event, Received, ServerConfig, Transmit,
    TransportConfig,
};
use plait_netsim::{Datagram, Host, InterfaceState};

use app::{App, Progress};
use tls::{Identity, IdentityError};

/// Datagrams of one train.
const TRAIN_SEGMENTS: usize = 10;

/// What both roles of a host are made from.
#[derive(Clone, Debug)]
pub struct HostSetup {
    /// Transport settings of its connections.
    pub transport: Arc<TransportConfig>,
    /// Protection after the handshake.
    pub protection: Protection,
    /// All randomness of this host comes from here.
    pub random: Random,
    /// When a client connects.
    pub start: Instant,
    /// Who is told the secrets of a server's connections.
    pub key_log: Option<Arc<dyn rustls::KeyLog>>,
}

/// Why a host could not be made.
#[derive(Clone, Debug, thiserror::Error)]
pub enum HostError {
    /// A certificate could not be made.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The engine refused to connect.
    #[error("the engine refused to connect: {0}")]
    Connect(String),
}

/// Makes an application for each connection that a server accepts.
pub type MakeApp = Box<dyn FnMut() -> Box<dyn App>>;

struct Live {
    connection: Connection,
    app: Box<dyn App>,
    failure: Option<String>,
}

/// A plait endpoint in a world: a client with one connection, or a server with many.
pub struct PlaitHost {
    endpoint: Endpoint,
    live: BTreeMap<ConnectionHandle, Live>,
    /// Local addresses that a client's path policy may use, and whether each is up.
    locals: Vec<(SocketAddr, InterfaceState)>,
    make_app: Option<MakeApp>,
    last: Progress,
    out: VecDeque<Datagram>,
    buffer: Vec<u8>,
    /// The deadline as of the last poll: nothing changes it between polls.
    due: Option<Instant>,
}

impl PlaitHost {
    /// A client that connects from the first of `locals` and may open paths from the others.
    ///
    /// # Errors
    /// There is no certificate, or the engine refuses.
    pub fn client(
        setup: HostSetup,
        locals: &[SocketAddr],
        remote: SocketAddr,
        app: impl App + 'static,
    ) -> Result<Self, HostError> {
        let mut random = setup.random;
        let config = Arc::new(EndpointConfig::from_random(&mut random));
        let mut endpoint = Endpoint::new(config, None, random.fork());
        let mut client = ClientConfig::new(Identity::shared()?.client(setup.protection));
        client.transport_config(setup.transport);
        let local = *locals.first().ok_or_else(|| HostError::Connect("no local address".into()))?;
        let tuple = FourTuple { local, remote };
        let (handle, connection) = endpoint
            .connect(setup.start, client, tuple, "localhost")
            .map_err(|error| HostError::Connect(error.to_string()))?;
        let mut host = Self::empty(endpoint);
        host.locals = locals.iter().map(|local| (*local, InterfaceState::Up)).collect();
        host.live.insert(handle, Live { connection, app: Box::new(app), failure: None });
        host.due = host.next_deadline();
        Ok(host)
    }

    /// A server that runs an application of `make_app` on each connection.
    ///
    /// # Errors
    /// There is no certificate.
    pub fn server(setup: HostSetup, make_app: MakeApp) -> Result<Self, HostError> {
        let mut random = setup.random;
        let config = Arc::new(EndpointConfig::from_random(&mut random));
        let identity = Identity::shared()?;
        let tls = match setup.key_log {
            Some(log) => identity.server_logged(setup.protection, log)?,
            None => identity.server(setup.protection),
        };
        let mut server = ServerConfig::from_random(tls, &mut random);
        server.transport_config(setup.transport).retry_policy(RetryPolicy::Application);
        let mut host = Self::empty(Endpoint::new(config, Some(Arc::new(server)), random.fork()));
        host.make_app = Some(make_app);
        Ok(host)
    }

    fn empty(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            live: BTreeMap::new(),
            locals: Vec::new(),
            make_app: None,
            last: Progress::default(),
            out: VecDeque::new(),
            buffer: Vec::new(),
            due: None,
        }
    }

    /// How far the application of the first connection is, or of the last one that is gone.
    pub fn progress(&self) -> &Progress {
        self.live.values().next().map_or(&self.last, |one| one.app.progress())
    }

    /// Why the first connection ended, if it did.
    pub fn failure(&self) -> Option<&str> {
        let live = self.live.values().next();
        live.and_then(|one| one.failure.as_deref()).or(self.last.failure.as_deref())
    }

    /// The first connection, to read or to steer.
    pub fn connection(&mut self) -> Option<&mut Connection> {
        self.live.values_mut().next().map(|one| &mut one.connection)
    }

    /// Path ids of the first connection that are open, and those that are not yet forgotten.
    pub fn path_counts(&self) -> (usize, usize) {
        let first = self.live.values().next();
        first
            .map_or((0, 0), |one| (one.connection.paths().ids().len(), one.connection.paths().ids_with_closing().len()))
    }

    fn drive(&mut self, now: Instant) {
        let Self { endpoint, live, last, out, buffer, locals, .. } = self;
        let mut ended = false;
        for (handle, one) in live.iter_mut() {
            drive_connection(now, one, locals);
            while let Some(transmit) = one.connection.poll_transmit(now, TRAIN_SEGMENTS, buffer) {
                push(out, &transmit, buffer);
            }
            while let Some(event) = one.connection.poll_endpoint_event() {
                endpoint.on_connection_event(*handle, event);
            }
            if one.connection.is_drained() {
                *last = one.app.progress().clone();
                last.failure = last.failure.take().or(one.failure.take());
                ended = true;
            }
        }
        if ended {
            live.retain(|_, one| !one.connection.is_drained());
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.live.values().filter_map(|one| earliest(one.connection.deadline(), one.app.deadline())).min()
    }

    fn admit(&mut self, handle: ConnectionHandle, connection: Connection) {
        let Some(make_app) = &mut self.make_app else { return };
        self.live.insert(handle, Live { connection, app: make_app(), failure: None });
    }
}

fn usable(locals: &[(SocketAddr, InterfaceState)]) -> Vec<SocketAddr> {
    locals.iter().filter(|(_, state)| *state == InterfaceState::Up).map(|(address, _)| *address).collect()
}

fn drive_connection(now: Instant, one: &mut Live, locals: &[(SocketAddr, InterfaceState)]) {
    while let Some(event) = one.connection.poll() {
        match event {
            Event::Connected => {
                one.app.on_connected(now);
                let usable = if locals.len() > 1 { usable(locals) } else { Vec::new() };
                if !usable.is_empty() {
                    one.connection.set_local_addresses(now, &usable);
                }
            }
            Event::ConnectionLost(reason) => one.failure = Some(reason.to_string()),
            _ => {}
        }
    }
    one.app.drive(now, &mut one.connection);
}

fn push(out: &mut VecDeque<Datagram>, transmit: &Transmit, data: &[u8]) {
    let segment = transmit.segment_size.unwrap_or(transmit.size).max(1);
    for bytes in data.get(..transmit.size).unwrap_or(data).chunks(segment) {
        let FourTuple { local, remote } = transmit.tuple;
        out.push_back(Datagram { src: local, dst: remote, ecn: transmit.ecn, payload: BytesMut::from(bytes) });
    }
}

impl Host for PlaitHost {
    fn on_datagram(&mut self, now: Instant, datagram: Datagram) {
        let mut reply = Vec::new();
        let tuple = FourTuple { local: datagram.dst, remote: datagram.src };
        match self.endpoint.receive(now, tuple, datagram.ecn, datagram.payload, &mut reply) {
            Received::Nothing => {}
            Received::Connection(handle, input) => {
                if let Some(one) = self.live.get_mut(&handle) {
                    one.connection.handle_datagram(now, input);
                }
            }
            Received::Reply(transmit) => push(&mut self.out, &transmit, &reply),
            Received::Incoming(incoming) => match self.endpoint.accept(incoming, now, &mut reply, None) {
                Ok((handle, connection)) => self.admit(handle, connection),
                Err(error) => {
                    if let Some(transmit) = error.reply {
                        push(&mut self.out, &transmit, &reply);
                    }
                }
            },
        }
    }

    fn on_timeout(&mut self, now: Instant) {
        for one in self.live.values_mut() {
            if one.connection.deadline().is_some_and(|at| at <= now) {
                one.connection.on_timeout(now);
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.due
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut VecDeque<Datagram>) {
        self.drive(now);
        self.due = self.next_deadline();
        if out.is_empty() {
            std::mem::swap(out, &mut self.out);
        } else {
            out.append(&mut self.out);
        }
    }

    fn on_interface(&mut self, now: Instant, address: IpAddr, state: InterfaceState) {
        for (local, is) in self.locals.iter_mut().filter(|(local, _)| local.ip() == address) {
            let _ = local;
            *is = state;
        }
        let locals = usable(&self.locals);
        if let Some(connection) = self.connection() {
            connection.set_local_addresses(now, &locals);
        }
    }
}
