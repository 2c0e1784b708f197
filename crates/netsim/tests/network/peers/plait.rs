//! plait's own engine as a host.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use plait_base::{CloseCode, Dir, FourTuple, Instant, Random, StreamId};
use plait_engine::config::{AckFrequencyConfig, RetryPolicy, Switch};
use plait_engine::connection::split::{Coordinator, LentPath};
use plait_engine::crypto::{ClientTlsConfig, ServerTlsConfig, SessionStore};
use plait_engine::path::PathStatus;
use plait_engine::stream::{Order, ReadError, WriteError};
use plait_engine::{
    ClientConfig, Connection, ConnectionHandle, Endpoint, EndpointConfig, Event, Received, ServerConfig, Transmit,
    TransportConfig, Version,
};
use plait_netsim::{Datagram, Host};

use super::app::{ClientApp, Progress, ReadEnd, Request, ServerApp, Wire};
use super::{Order as Command, PathBytes, PeerOptions, Setup, Stack, Welcome, tls};

/// Loans of all connections in this process.
static LOANS: AtomicU64 = AtomicU64::new(0);

/// Loans of paths in this process so far.
pub fn loans() -> u64 {
    LOANS.load(Ordering::Relaxed)
}

struct Live {
    coordinator: Coordinator,
    #[expect(clippy::vec_box, reason = "they come and go boxed")]
    lent: Vec<Box<LentPath>>,
    server: Option<ServerApp>,
}

impl Live {
    fn new(connection: Connection, server: Option<ServerApp>) -> Self {
        Self { coordinator: Coordinator::new(connection), lent: Vec::new(), server }
    }

    fn deadline(&self) -> Option<Instant> {
        let lent = self.lent.iter().filter_map(|lent| lent.deadline()).min();
        plait_base::time::earliest(self.coordinator.deadline(), lent)
    }

    /// Carries messages and paths until there are none; false where there was nothing.
    fn carry(&mut self, now: Instant) -> bool {
        let Self { coordinator, lent, .. } = self;
        let mut is_told = false;
        for path in lent.iter_mut() {
            while let Some(message) = path.poll_message(now) {
                coordinator.handle_message(now, path.id(), message);
                is_told = true;
            }
        }
        while let Some(at) = lent.iter().position(|path| path.wants_back().is_some()) {
            coordinator.take_back(now, lent.remove(at));
            is_told = true;
        }
        while let Some((id, message)) = coordinator.poll_message(now) {
            match lent.iter_mut().find(|path| path.id() == id) {
                Some(path) => path.handle_message(now, message),
                None => coordinator.handle_undelivered(now, id, message),
            }
            is_told = true;
        }
        is_told
    }

    /// The connection with all its paths.
    fn joined(&mut self, now: Instant) -> &mut Connection {
        while self.coordinator.joined().is_none() {
            assert!(self.carry(now), "paths that are asked back come back");
        }
        self.coordinator.joined().expect("all paths are here")
    }

    fn transmit(&mut self, now: Instant, out: &mut VecDeque<Datagram>) {
        let mut buffer = Vec::new();
        loop {
            while let Some(transmit) = self.coordinator.poll_transmit(now, 10, &mut buffer) {
                push(out, &transmit, &buffer);
            }
            let mut is_told = self.carry(now);
            for path in self.lent.iter_mut().filter(|_| !self.coordinator.is_halted()) {
                while let Some(transmit) = path.poll_transmit(now, 10, &mut buffer) {
                    push(out, &transmit, &buffer);
                }
            }
            is_told |= self.carry(now);
            if !is_told {
                return;
            }
        }
    }

    fn lend(&mut self, now: Instant) {
        for id in self.coordinator.connection().paths().ids() {
            let lent = self.coordinator.lend(now, id);
            LOANS.fetch_add(u64::from(lent.is_some()), Ordering::Relaxed);
            self.lent.extend(lent);
        }
    }
}

/// A plait endpoint: a client with one connection, or a server.
pub struct PlaitHost {
    local: SocketAddr,
    endpoint: Endpoint,
    live: BTreeMap<ConnectionHandle, Live>,
    app: ClientApp,
    served: Vec<Progress>,
    wished: Vec<(IpAddr, SocketAddr)>,
    out: VecDeque<Datagram>,
    lends: bool,
}

/// Transport settings of tests.
pub fn transport(paths: u32) -> TransportConfig {
    let mut config = TransportConfig::default();
    config.max_concurrent_multipath_paths(paths);
    config.max_idle_timeout(Some(Duration::from_secs(30)));
    config
}

impl PlaitHost {
    pub fn new(setup: Setup) -> Self {
        Self::with(setup, transport(setup.paths), RetryPolicy::Application)
    }

    pub fn with(setup: Setup, transport: TransportConfig, retry: RetryPolicy) -> Self {
        Self::with_versions(setup, transport, retry, (Version::V1, None))
    }

    pub fn with_habits(setup: Setup, options: PeerOptions) -> Self {
        let mut transport = transport(setup.paths);
        transport.keep_alive_interval(options.keep_alive);
        if let Some(packets) = options.ack_frequency {
            let mut frequency = AckFrequencyConfig::default();
            frequency.ack_eliciting_threshold(Some(u64::from(packets) - 1));
            transport.ack_frequency_config(Some(frequency));
        }
        let retry = match options.welcome {
            Welcome::Direct => RetryPolicy::Application,
            Welcome::Retry => RetryPolicy::Always,
        };
        Self::with_versions(setup, transport, retry, (options.version, options.prefers))
    }

    fn with_versions(
        setup: Setup,
        transport: TransportConfig,
        retry: RetryPolicy,
        (version, prefers): (Version, Option<Version>),
    ) -> Self {
        let mut random = Random::from_u64(setup.seed);
        let transport = Arc::new(transport);
        let config = Arc::new(EndpointConfig::from_random(&mut random));
        let server = setup.remote.is_none().then(|| {
            let tls = ServerTlsConfig::from_rustls(Arc::new(tls::server())).unwrap();
            let mut server = ServerConfig::from_random(tls, &mut random);
            server.transport_config(transport.clone()).retry_policy(retry);
            server.preferred_versions(prefers.into_iter().collect());
            Arc::new(server)
        });
        let mut endpoint = Endpoint::new(config, server, random.fork());
        let mut live = BTreeMap::new();
        if let Some(remote) = setup.remote {
            let mut client = ClientConfig::new(
                ClientTlsConfig::from_rustls_with(Arc::new(tls::client()), SessionStore::new(1)).unwrap(),
            );
            client.transport_config(transport).version(version);
            let tuple = FourTuple { local: setup.local, remote };
            let (handle, mut connection) = endpoint.connect(Instant::ZERO, client, tuple, "localhost").unwrap();
            observe(&mut connection, "client");
            live.insert(handle, Live::new(connection, None));
        }
        Self {
            local: setup.local,
            endpoint,
            live,
            app: ClientApp::default(),
            served: Vec::new(),
            wished: Vec::new(),
            out: VecDeque::new(),
            lends: false,
        }
    }

    /// The same, and its paths are lent wherever they may be.
    pub fn lending(mut self) -> Self {
        self.lends = true;
        self
    }

    /// The first connection, to look at or to steer; none of its paths is lent.
    pub fn connection(&mut self) -> Option<&mut Connection> {
        self.live.values_mut().next().and_then(|one| one.coordinator.joined())
    }

    fn open_wished(&mut self, now: Instant) {
        let port = self.local.port();
        let Some(one) = self.live.values_mut().find(|one| one.server.is_none()) else { return };
        if self.wished.is_empty() {
            return;
        }
        let connection = one.joined(now);
        self.wished.retain(|(local, remote)| {
            let tuple = FourTuple { local: SocketAddr::new(*local, port), remote: *remote };
            connection.open_path(now, tuple, PathStatus::Available).is_err()
        });
    }

    fn drive(&mut self, now: Instant) {
        self.open_wished(now);
        let Self { endpoint, live, app, served, out, lends, .. } = self;
        live.retain(|handle, one| {
            if *lends {
                one.lend(now);
            }
            drive_connection(now, one, (endpoint, *handle), app, out);
            let keep = !one.coordinator.connection().is_drained();
            if let Some(server) = one.server.as_ref().filter(|_| !keep) {
                served.push(server.progress());
            }
            keep
        });
    }
}

/// Prints what a connection observes, when PLAIT_TRACE is set.
fn observe(connection: &mut Connection, side: &'static str) {
    struct Printing(&'static str);
    impl plait_base::observe::Observer for Printing {
        fn on_event(&mut self, now: Instant, event: &plait_base::observe::TraceEvent) {
            println!("{:>12.6} {} {event:?}", now.since_origin().as_secs_f64(), self.0);
        }
    }
    if std::env::var_os("PLAIT_TRACE").is_some() {
        connection.observe_with(Box::new(Printing(side)));
    }
}

fn push(out: &mut VecDeque<Datagram>, transmit: &Transmit, data: &[u8]) {
    let segment = transmit.segment_size.unwrap_or(transmit.size).max(1);
    for bytes in data[..transmit.size].chunks(segment) {
        let FourTuple { local, remote } = transmit.tuple;
        out.push_back(Datagram { src: local, dst: remote, ecn: transmit.ecn, payload: BytesMut::from(bytes) });
    }
}

fn drive_connection(
    now: Instant,
    one: &mut Live,
    (endpoint, handle): (&mut Endpoint, ConnectionHandle),
    client: &mut ClientApp,
    out: &mut VecDeque<Datagram>,
) {
    while let Some(event) = one.coordinator.poll() {
        match (event, &mut one.server) {
            (Event::Connected, Some(server)) => server.on_connected(),
            (Event::Connected, None) => client.on_connected(),
            (Event::ConnectionLost(reason), Some(server)) => server.on_failure(reason.to_string()),
            (Event::ConnectionLost(reason), None) => client.on_failure(reason.to_string()),
            _ => {}
        }
    }
    let mut streams = Streams(&mut one.coordinator);
    match &mut one.server {
        Some(server) => server.drive(&mut streams),
        None => client.drive(&mut streams),
    }
    one.transmit(now, out);
    while let Some(event) = one.coordinator.poll_endpoint_event() {
        endpoint.on_connection_event(handle, event);
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
                    match one.lent.iter_mut().find(|path| path.id() == input.path()) {
                        Some(path) => path.handle_datagram(now, input),
                        None => one.coordinator.handle_datagram(now, input),
                    };
                }
            }
            Received::Reply(transmit) => push(&mut self.out, &transmit, &reply),
            Received::Incoming(incoming) => match self.endpoint.accept(incoming, now, &mut reply, None) {
                Ok((handle, mut connection)) => {
                    observe(&mut connection, "server");
                    self.live.insert(handle, Live::new(connection, Some(ServerApp::default())));
                }
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
            if one.coordinator.deadline().is_some_and(|at| at <= now) {
                one.coordinator.on_timeout(now);
            }
            for path in one.lent.iter_mut().filter(|path| path.deadline().is_some_and(|at| at <= now)) {
                path.on_timeout(now);
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.live.values().filter_map(Live::deadline).min()
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut VecDeque<Datagram>) {
        self.drive(now);
        out.append(&mut self.out);
    }
}

impl Stack for PlaitHost {
    fn label(&self) -> &'static str {
        "plait"
    }

    fn request(&mut self, request: Request) {
        self.app.request(request);
    }

    fn progress(&self) -> Progress {
        let live = self.live.values().find_map(|one| one.server.as_ref()).map(ServerApp::progress);
        live.or_else(|| self.served.last().cloned()).unwrap_or_else(|| self.app.progress())
    }

    fn open_path(&mut self, local: IpAddr, remote: SocketAddr) {
        self.wished.push((local, remote));
    }

    fn paths(&mut self) -> Vec<PathBytes> {
        let Some(one) = self.live.values_mut().next() else { return Vec::new() };
        let connection = one.coordinator.connection();
        let ids = connection.paths().ids_with_closing();
        let bytes = |id| {
            let stats = connection.path_statistics(Instant::ZERO, id)?;
            Some(PathBytes { id: u64::from(id.0), sent: stats.sent_bytes, received: stats.received_bytes })
        };
        ids.into_iter().filter_map(bytes).collect()
    }

    fn close(&mut self, now: Instant) {
        self.live.values_mut().for_each(|one| one.joined(now).close(now, 0, Bytes::new()));
    }

    fn obey(&mut self, now: Instant, command: Command) {
        let Some(connection) = self.live.values_mut().next().map(|one| one.joined(now)) else { return };
        let ids = connection.paths().ids();
        let path = |nth: usize| ids.get(nth % ids.len().max(1)).copied();
        match command {
            Command::UpdateKeys => drop(connection.update_keys(now)),
            Command::ClosePath(nth) if ids.len() > 1 => {
                path(nth).map(|id| connection.close_path(now, id, CloseCode::APPLICATION_ABANDON_PATH));
            }
            Command::ClosePath(_) => {}
            Command::Backup(nth) => {
                path(nth).map(|id| connection.set_path_status(now, id, PathStatus::Backup));
            }
            Command::Available(nth) => {
                path(nth).map(|id| connection.set_path_status(now, id, PathStatus::Available));
            }
        }
    }

    fn leftovers(&self) -> String {
        match (self.live.len(), self.endpoint.connections(), self.endpoint.incoming()) {
            (0, 0, 0) => String::new(),
            counts => format!("live, in the endpoint, incoming: {counts:?}"),
        }
    }
}

struct Streams<'a>(&'a mut Coordinator);

impl Wire for Streams<'_> {
    fn open(&mut self) -> Option<u64> {
        self.0.streams().open(Dir::Bi).map(|id| id.0)
    }

    fn accept(&mut self) -> Option<u64> {
        self.0.streams().accept(Dir::Bi).map(|id| id.0)
    }

    fn write(&mut self, id: u64, data: &[u8]) -> Result<usize, String> {
        match self.0.send_stream(StreamId(id)).write(data) {
            Err(WriteError::Blocked) => Ok(0),
            other => other.map_err(|error| error.to_string()),
        }
    }

    fn finish(&mut self, id: u64) -> Result<(), String> {
        self.0.send_stream(StreamId(id)).finish().map_err(|error| error.to_string())
    }

    fn read(&mut self, id: u64, sink: &mut dyn FnMut(&[u8])) -> ReadEnd {
        loop {
            match self.0.recv_stream(StreamId(id)).read(usize::MAX, Order::Ordered) {
                Ok(Some(chunk)) => sink(&chunk.bytes),
                Ok(None) => return ReadEnd::Finished,
                Err(ReadError::Blocked) => return ReadEnd::Blocked,
                Err(error) => return ReadEnd::Failed(error.to_string()),
            }
        }
    }
}

/// A switch by its name, so that tests read well.
pub fn switch(on: bool) -> Switch {
    Switch::from(on)
}
