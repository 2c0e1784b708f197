//! noq-proto as a host.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use noq_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq_proto::{
    AckFrequencyConfig, ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint, Endpoint,
    EndpointConfig, Event, FourTuple, HashedConnectionIdGenerator, PathError, PathStatus, ReadError, ServerConfig,
    StreamId, Transmit, TransportConfig, VarInt, WriteError,
};
use plait_base::{Ecn, Instant};
use plait_netsim::{Datagram, Host};

use super::app::{ClientApp, Progress, ReadEnd, Request, ServerApp, Wire};
use super::{Clock, Order, PathBytes, PeerOptions, Setup, Stack, Welcome, tls};

struct Live {
    connection: Connection,
    server: Option<ServerApp>,
}

/// A noq endpoint: a client with one connection, or a server.
pub struct NoqHost {
    clock: Clock,
    local: SocketAddr,
    endpoint: Endpoint,
    live: BTreeMap<usize, Live>,
    app: ClientApp,
    served: Vec<Progress>,
    /// Paths still to be opened.
    wished: Vec<(IpAddr, SocketAddr)>,
    out: VecDeque<Datagram>,
    deadline: Option<Instant>,
    welcome: Welcome,
}

fn transport(paths: u32, options: &PeerOptions) -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    if let Some(packets) = options.ack_frequency {
        let mut frequency = AckFrequencyConfig::default();
        frequency.ack_eliciting_threshold(VarInt::from_u32(packets - 1)).reordering_threshold(VarInt::from_u32(3));
        config.ack_frequency_config(Some(frequency));
    }
    config
        .stream_receive_window(VarInt::from_u32(2 << 20))
        .receive_window(VarInt::from_u32(4 << 20))
        .send_window(4 << 20)
        .max_idle_timeout(Some(Duration::from_secs(30).try_into().unwrap()));
    config.keep_alive_interval(options.keep_alive);
    if paths > 1 {
        config.default_path_keep_alive_interval(options.keep_alive);
        config.max_concurrent_multipath_paths(paths);
        config.max_remote_nat_traversal_addresses(NAT_TRAVERSAL_ADDRESSES);
    }
    Arc::new(config)
}

/// Addresses of the peer that it keeps, where it has several paths.
const NAT_TRAVERSAL_ADDRESSES: u8 = 8;

impl NoqHost {
    pub fn new(setup: Setup, options: PeerOptions) -> Self {
        let clock = Clock::new();
        let mut config = EndpointConfig::default();
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&setup.seed.to_le_bytes());
        config.rng_seed(Some(seed));
        let key = setup.seed;
        config.cid_generator(Arc::new(move || Box::new(HashedConnectionIdGenerator::from_key(key))));
        let server = setup.remote.is_none().then(|| {
            let mut server = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls::server()).unwrap()));
            server.transport_config(transport(setup.paths, &options));
            Arc::new(server)
        });
        let mut endpoint = Endpoint::new(Arc::new(config), server, true);
        let mut live = BTreeMap::new();
        if let Some(remote) = setup.remote {
            let mut client = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls::client()).unwrap()));
            client.transport_config(transport(setup.paths, &options));
            let now = clock.to_std(Instant::ZERO);
            let (handle, connection) = endpoint.connect(now, client, remote, "localhost").unwrap();
            live.insert(handle.0, Live { connection, server: None });
        }
        Self {
            clock,
            local: setup.local,
            endpoint,
            live,
            app: ClientApp::default(),
            served: Vec::new(),
            wished: Vec::new(),
            out: VecDeque::new(),
            deadline: None,
            welcome: options.welcome,
        }
    }

    /// The first connection, to look at or to steer.
    pub fn connection(&mut self) -> Option<&mut Connection> {
        self.live.values_mut().next().map(|one| &mut one.connection)
    }

    /// Client: asks the server to probe it at `local`, by REACH_OUT, and probes the addresses that the server told.
    pub fn reach_out(&mut self, now: Instant, local: SocketAddr) -> Vec<SocketAddr> {
        let at = self.clock.to_std(now);
        let connection = self.connection().unwrap();
        connection.add_nat_traversal_address(local).unwrap();
        connection.initiate_nat_traversal_round(at).unwrap()
    }

    fn push(&mut self, transmit: &Transmit, data: &[u8]) {
        push(&mut self.out, self.local, transmit, data);
    }

    /// Opens the paths that were asked for, once the peer has given connection ids for them.
    fn open_wished(&mut self, at: std::time::Instant) {
        if !self.app.progress().connected {
            return;
        }
        let Some(one) = self.live.values_mut().find(|one| one.server.is_none()) else { return };
        let app = &mut self.app;
        self.wished.retain(|(local, remote)| {
            match one.connection.open_path(FourTuple::new(*remote, Some(*local)), PathStatus::Available, at) {
                Ok(_) => false,
                Err(PathError::RemoteCidsExhausted | PathError::MaxPathIdReached) => true,
                Err(error) => {
                    app.on_failure(format!("no path: {error}"));
                    false
                }
            }
        });
    }

    fn drive(&mut self, now: Instant) {
        let at = self.clock.to_std(now);
        self.open_wished(at);
        let Self { endpoint, live, app, served, out, .. } = self;
        let mut deadline = None;
        live.retain(|handle, one| {
            drive_connection(one, (at, ConnectionHandle(*handle)), endpoint, app, (out, self.local));
            deadline =
                plait_base::time::earliest(deadline, one.connection.poll_timeout().map(|t| self.clock.to_virtual(t)));
            let keep = !one.connection.is_drained();
            if let Some(server) = one.server.as_ref().filter(|_| !keep) {
                served.push(server.progress());
            }
            keep
        });
        self.deadline = deadline;
    }
}

fn push(out: &mut VecDeque<Datagram>, local: SocketAddr, transmit: &Transmit, data: &[u8]) {
    let src = SocketAddr::new(transmit.src_ip.unwrap_or(local.ip()), local.port());
    let ecn = transmit.ecn.and_then(|ecn| Ecn::from_bits(ecn as u8));
    out.push_back(Datagram { src, dst: transmit.destination, ecn, payload: BytesMut::from(data) });
}

fn drive_connection(
    one: &mut Live,
    (at, handle): (std::time::Instant, ConnectionHandle),
    endpoint: &mut Endpoint,
    client: &mut ClientApp,
    (out, local): (&mut VecDeque<Datagram>, SocketAddr),
) {
    loop {
        while let Some(event) = one.connection.poll() {
            match (event, &mut one.server) {
                (Event::Connected, Some(server)) => server.on_connected(),
                (Event::Connected, None) => client.on_connected(),
                (Event::ConnectionLost { reason }, Some(server)) => server.on_failure(reason.to_string()),
                (Event::ConnectionLost { reason }, None) => client.on_failure(reason.to_string()),
                _ => {}
            }
        }
        let mut streams = Streams(&mut one.connection);
        match &mut one.server {
            Some(server) => server.drive(&mut streams),
            None => client.drive(&mut streams),
        }
        let mut buffer = Vec::new();
        while let Some(transmit) = one.connection.poll_transmit(at, NonZeroUsize::MIN, &mut buffer) {
            push(out, local, &transmit, &buffer[..transmit.size]);
            buffer.clear();
        }
        let mut quiet = true;
        while let Some(event) = one.connection.poll_endpoint_events() {
            if let Some(event) = endpoint.handle_event(handle, event) {
                one.connection.handle_event(event);
                quiet = false;
            }
        }
        if quiet {
            return;
        }
    }
}

impl Host for NoqHost {
    fn on_datagram(&mut self, now: Instant, datagram: Datagram) {
        let at = self.clock.to_std(now);
        let ecn = datagram.ecn.and_then(|ecn| EcnCodepoint::from_bits(ecn as u8));
        let mut buffer = Vec::new();
        let tuple = FourTuple::new(datagram.src, Some(datagram.dst.ip()));
        match self.endpoint.handle(at, tuple, ecn, datagram.payload, &mut buffer) {
            None => {}
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(one) = self.live.get_mut(&handle.0) {
                    one.connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming))
                if self.welcome == Welcome::Retry && !incoming.remote_address_validated() =>
            {
                if let Ok(transmit) = self.endpoint.retry(incoming, &mut buffer) {
                    self.push(&transmit, &buffer[..transmit.size]);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                match self.endpoint.accept(incoming, at, &mut buffer, None) {
                    Ok((handle, connection)) => {
                        self.live.insert(handle.0, Live { connection, server: Some(ServerApp::default()) });
                    }
                    Err(error) => {
                        if let Some(transmit) = error.response {
                            self.push(&transmit, &buffer[..transmit.size]);
                        }
                    }
                }
            }
            Some(DatagramEvent::Response(transmit)) => self.push(&transmit, &buffer[..transmit.size]),
        }
    }

    fn on_timeout(&mut self, now: Instant) {
        let at = self.clock.to_std(now);
        for one in self.live.values_mut() {
            if one.connection.poll_timeout().is_some_and(|due| due <= at) {
                one.connection.handle_timeout(at);
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut VecDeque<Datagram>) {
        self.drive(now);
        out.append(&mut self.out);
    }
}

impl Stack for NoqHost {
    fn label(&self) -> &'static str {
        "noq-proto"
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
        let ids = one.connection.paths();
        let bytes = |id| {
            let stats = one.connection.path_stats(id)?;
            Some(PathBytes { id: id.to_string().parse().ok()?, sent: stats.udp_tx.bytes, received: stats.udp_rx.bytes })
        };
        ids.into_iter().filter_map(bytes).collect()
    }

    fn close(&mut self, now: Instant) {
        let at = self.clock.to_std(now);
        self.live.values_mut().for_each(|one| one.connection.close(at, VarInt::from_u32(0), Bytes::new()));
    }

    fn obey(&mut self, now: Instant, order: Order) {
        let at = self.clock.to_std(now);
        let Some(one) = self.live.values_mut().next() else { return };
        let connection = &mut one.connection;
        let ids = connection.paths();
        let path = |nth: usize| ids.get(nth % ids.len().max(1)).copied();
        match order {
            Order::UpdateKeys => connection.force_key_update(),
            Order::ClosePath(nth) if ids.len() > 1 => {
                path(nth).map(|id| connection.close_path(at, id, VarInt::from_u32(0x3e)));
            }
            Order::ClosePath(_) => {}
            Order::Backup(nth) => {
                path(nth).map(|id| connection.set_path_status(id, PathStatus::Backup));
            }
            Order::Available(nth) => {
                path(nth).map(|id| connection.set_path_status(id, PathStatus::Available));
            }
        }
    }

    fn leftovers(&self) -> String {
        if self.live.is_empty() { String::new() } else { format!("{} connections", self.live.len()) }
    }
}

struct Streams<'a>(&'a mut Connection);

fn stream(id: u64) -> StreamId {
    StreamId::from(VarInt::from_u64(id).unwrap())
}

impl Wire for Streams<'_> {
    fn open(&mut self) -> Option<u64> {
        self.0.streams().open(Dir::Bi).map(|id| VarInt::from(id).into_inner())
    }

    fn accept(&mut self) -> Option<u64> {
        self.0.streams().accept(Dir::Bi).map(|id| VarInt::from(id).into_inner())
    }

    fn write(&mut self, id: u64, data: &[u8]) -> Result<usize, String> {
        match self.0.send_stream(stream(id)).write(data) {
            Err(WriteError::Blocked) => Ok(0),
            other => other.map_err(|error| error.to_string()),
        }
    }

    fn finish(&mut self, id: u64) -> Result<(), String> {
        self.0.send_stream(stream(id)).finish().map_err(|error| error.to_string())
    }

    fn read(&mut self, id: u64, sink: &mut dyn FnMut(&[u8])) -> ReadEnd {
        let mut stream = self.0.recv_stream(stream(id));
        let mut chunks = match stream.read(true) {
            Ok(chunks) => chunks,
            Err(error) => return ReadEnd::Failed(error.to_string()),
        };
        let end = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => sink(&chunk.bytes),
                Ok(None) => break ReadEnd::Finished,
                Err(ReadError::Blocked) => break ReadEnd::Blocked,
                Err(error) => break ReadEnd::Failed(error.to_string()),
            }
        };
        let _ = chunks.finalize(); // transmits are polled for anyway
        end
    }
}
