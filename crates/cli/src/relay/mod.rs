//! A UDP relay that shapes what passes: one listening address for clients, one upstream socket for each of them.
//!
//! It knows only UDP and the link model. Threads with blocking sockets carry the datagrams, because a timer of the
//! async runtime is a millisecond coarse: one thread reads each socket, one thread a direction sends what is due.

mod lane;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use plait_base::Random;
use plait_netsim::link::{LinkConfig, LinkState, LinkStats};
use socket2::{Domain, Protocol, Socket, Type};

use crate::clock::Clock;
use lane::{Exit, Lane};

/// Clients that a relay serves; datagrams of further ones are dropped.
const MAX_CLIENTS: usize = 64;
/// How often a thread that waits for datagrams looks whether it should stop.
const STOP_CHECK: Duration = Duration::from_millis(50);
/// Asked of the operating system, which may give less.
const SOCKET_BUFFER_BYTES: usize = 4 << 20;

/// What a relay does.
#[derive(Clone, Debug)]
pub(crate) struct RelayConfig {
    /// Where clients reach it; port 0 takes a free one.
    pub(crate) listen: SocketAddr,
    /// Where it forwards to.
    pub(crate) server: SocketAddr,
    /// Link from client to server.
    pub(crate) up: LinkConfig,
    /// Link from server to client.
    pub(crate) down: LinkConfig,
    /// Seed of the losses.
    pub(crate) seed: u64,
}

/// A running relay; it stops when dropped.
#[derive(Debug)]
pub(crate) struct Relay {
    address: SocketAddr,
    core: Arc<Core>,
    threads: Vec<JoinHandle<()>>,
}

/// What its threads share.
#[derive(Debug)]
struct Core {
    listener: Arc<UdpSocket>,
    server: SocketAddr,
    up: Lane,
    down: Lane,
    stopping: AtomicBool,
    readers: Mutex<Vec<JoinHandle<()>>>,
}

impl Relay {
    /// Binds the listening socket and starts.
    pub(crate) fn start(config: RelayConfig) -> io::Result<Self> {
        let listener = Arc::new(bind(config.listen)?);
        let address = listener.local_addr()?;
        let mut random = Random::from_u64(config.seed);
        let clock = Clock::start();
        let core = Arc::new(Core {
            listener,
            server: config.server,
            up: Lane::new(config.up, random.fork(), clock),
            down: Lane::new(config.down, random.fork(), clock),
            stopping: AtomicBool::new(false),
            readers: Mutex::default(),
        });
        let mut relay = Self { address, core: Arc::clone(&core), threads: Vec::new() };
        relay.spawn("relay-listen", Core::read_clients)?;
        relay.spawn("relay-up", |core| core.up.run())?;
        relay.spawn("relay-down", |core| core.down.run())?;
        Ok(relay)
    }

    fn spawn(&mut self, name: &str, work: impl FnOnce(&Arc<Core>) + Send + 'static) -> io::Result<()> {
        let core = Arc::clone(&self.core);
        self.threads.push(std::thread::Builder::new().name(name.to_owned()).spawn(move || work(&core))?);
        Ok(())
    }

    /// Where clients reach it.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on nothing gets through but what has left the link's near end.
    pub(crate) fn kill(&self) {
        for lane in [&self.core.up, &self.core.down] {
            lane.change(|config| config.state = LinkState::Down);
        }
    }

    /// Counters of the links towards the server and towards the clients.
    pub(crate) fn stats(&self) -> (LinkStats, LinkStats) {
        (self.core.up.stats(), self.core.down.stats())
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.core.stopping.store(true, Ordering::Relaxed);
        self.core.up.stop();
        self.core.down.stop();
        let readers = std::mem::take(&mut *self.core.readers.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in self.threads.drain(..).chain(readers) {
            // A thread that panicked has nothing left to give back.
            let _ = thread.join();
        }
    }
}

impl Core {
    fn stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Reads what clients send, and opens an upstream socket for each new one.
    fn read_clients(self: &Arc<Self>) {
        let mut buffer = vec![0; 65_536];
        let mut clients: BTreeMap<SocketAddr, Arc<UdpSocket>> = BTreeMap::new();
        while !self.stopping() {
            let Ok((size, from)) = self.listener.recv_from(&mut buffer) else { continue };
            let Some(datagram) = buffer.get(..size) else { continue };
            let upstream = match clients.get(&from) {
                Some(upstream) => upstream,
                None if clients.len() >= MAX_CLIENTS => continue,
                None => match self.upstream_for(from) {
                    Ok(upstream) => clients.entry(from).or_insert(upstream),
                    Err(error) => {
                        tracing::warn!(%from, %error, "relay has no socket for a client");
                        continue;
                    }
                },
            };
            self.up.offer(datagram, || Exit::Connected(Arc::clone(upstream)));
        }
    }

    fn upstream_for(self: &Arc<Self>, client: SocketAddr) -> io::Result<Arc<UdpSocket>> {
        let any = match self.server {
            SocketAddr::V4(v4) if v4.ip().is_loopback() => SocketAddr::from(([127, 0, 0, 1], 0)),
            SocketAddr::V4(_) => SocketAddr::from(([0; 4], 0)),
            SocketAddr::V6(_) => SocketAddr::from(([0; 16], 0)),
        };
        let upstream = Arc::new(bind(any)?);
        upstream.connect(self.server)?;
        let (core, socket) = (Arc::clone(self), Arc::clone(&upstream));
        let reader = std::thread::Builder::new()
            .name("relay-upstream".to_owned())
            .spawn(move || core.read_server(&socket, client))?;
        self.readers.lock().unwrap_or_else(PoisonError::into_inner).push(reader);
        Ok(upstream)
    }

    /// Reads what the server sends to one client.
    fn read_server(&self, upstream: &UdpSocket, client: SocketAddr) {
        let mut buffer = vec![0; 65_536];
        while !self.stopping() {
            // An error here is a time-out or a refused datagram of before; both pass.
            let Ok(size) = upstream.recv(&mut buffer) else { continue };
            let Some(datagram) = buffer.get(..size) else { continue };
            self.down.offer(datagram, || Exit::To(Arc::clone(&self.listener), client));
        }
    }
}

/// A UDP socket with large buffers whose reads end every [`STOP_CHECK`].
fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
    let domain = match address.ip() {
        IpAddr::V4(_) => Domain::IPV4,
        IpAddr::V6(_) => Domain::IPV6,
    };
    let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
    socket.bind(&address.into())?;
    // Less than asked is fine: a burst may then lose datagrams, as on any link.
    let _ = socket.set_recv_buffer_size(SOCKET_BUFFER_BYTES);
    let _ = socket.set_send_buffer_size(SOCKET_BUFFER_BYTES);
    let socket = UdpSocket::from(socket);
    socket.set_read_timeout(Some(STOP_CHECK))?;
    Ok(socket)
}
