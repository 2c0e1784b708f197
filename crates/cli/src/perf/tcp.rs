//! TLS 1.3 over kernel TCP or MPTCP: one connection where QUIC has a stream.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rustls_pki_types::ServerName;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::io::BufReader;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::carrier::Kernel;
use super::pipe::{PipeReader, PipeWriter, plain};
use crate::clock::Clock;
use crate::connect::{certificate_refused, lookup};
use crate::error::CliError;
use crate::listen::{Versions, versions};
use crate::names::CongestionName;
use crate::options::{ConnectPlan, Locals};
use crate::tls::{self, Shown};
use crate::zone;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 1024;

fn socket(kernel: Kernel, towards: SocketAddr) -> io::Result<Socket> {
    let protocol = match kernel {
        Kernel::Tcp => Protocol::TCP,
        Kernel::Mptcp => mptcp()?,
    };
    let socket = Socket::new(Domain::for_address(towards), Type::STREAM, Some(protocol))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// The kernel's own choice stays where none is named, or it cannot be told.
#[cfg_attr(not(target_os = "linux"), allow(unused_variables, clippy::unnecessary_wraps))]
fn set_congestion(socket: &Socket, name: Option<&str>) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if let Some(name) = name {
        let refused = |why: &dyn std::fmt::Display| {
            let known = "net.ipv4.tcp_available_congestion_control names those that there are";
            io::Error::other(format!("this kernel does not send by `{name}` ({why}); {known}"))
        };
        socket.set_tcp_congestion(name.as_bytes()).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => refused(&"it has none of that name"),
            _ => refused(&error),
        })?;
        // A socket of MPTCP takes any name, and goes on as before.
        match congestion_of(socket) {
            Some(other) if other != name => return Err(refused(&format!("it stays with {other}"))),
            _ => {}
        }
    }
    Ok(())
}

/// The controller by which the kernel sends on a socket; none where it does not say.
fn congestion_of(socket: &Socket) -> Option<String> {
    #[cfg(target_os = "linux")]
    {
        let name = socket.tcp_congestion().ok()?;
        Some(String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned())
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = socket;
        None
    }
}

/// SYN+ACKs with MP_CAPABLE that all sockets of this network namespace have had; none where the kernel does not count.
fn mptcp_answers() -> Option<u64> {
    answers_in(&std::fs::read_to_string("/proc/net/netstat").ok()?)
}

/// The same from a text of names and numbers, a line each.
fn answers_in(netstat: &str) -> Option<u64> {
    let mut lines = netstat.lines().filter_map(|line| line.strip_prefix("MPTcpExt: "));
    let (names, numbers) = (lines.next()?, lines.next()?);
    let at = names.split(' ').position(|name| name == "MPCapableSYNACKRX")?;
    numbers.split(' ').nth(at)?.parse().ok()
}

#[cfg(target_os = "linux")]
fn mptcp() -> io::Result<Protocol> {
    Ok(Protocol::MPTCP)
}

#[cfg(not(target_os = "linux"))]
fn mptcp() -> io::Result<Protocol> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "this system has no MPTCP"))
}

/// Connections at once, beyond which others wait.
const MAX_CONNECTIONS: usize = 10_000;
/// How long a client may take over its handshake.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);
/// A controller by the kernel's name for it.
fn kernel_name(name: CongestionName) -> &'static str {
    match name.name() {
        "newreno" => "reno",
        other => other,
    }
}

/// How long accepting rests where the system refuses it.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// Read in large pieces: rustls asks for a few kB at a time.
type Buffered = BufReader<TcpStream>;

/// Bytes that are read from the kernel at once.
const READ_BYTES: usize = 256 * 1024;

fn buffered(stream: TcpStream) -> Buffered {
    BufReader::with_capacity(READ_BYTES, stream)
}

/// What the first connection showed.
#[derive(Debug)]
struct FirstConnection {
    spoken: Kernel,
    /// By which controller the kernel sends, where it says.
    congestion: Option<String>,
    /// How long the handshakes of TCP and TLS took.
    took: Duration,
}

/// Makes connections to one server.
#[derive(Clone)]
pub(crate) struct TcpDialer {
    pub(crate) kernel: Kernel,
    remote: SocketAddr,
    local: Option<IpAddr>,
    connector: TlsConnector,
    name: ServerName<'static>,
    /// The kernel's controller by its name there; its own choice where none is named.
    congestion: Option<&'static str>,
    timeout: Duration,
    /// What the first connection showed.
    first: Arc<OnceLock<FirstConnection>>,
    /// Those that were made ahead of time.
    ready: Arc<Mutex<Vec<TlsStream<Buffered>>>>,
}

impl TcpDialer {
    /// Finds the server's address and reads what is trusted.
    pub(crate) async fn new(plan: &ConnectPlan, kernel: Kernel) -> Result<Self, CliError> {
        let local = match &plan.locals {
            Locals::Named(names) => match &names[..] {
                [only] => Some(
                    only.parse()
                        .map_err(|_| CliError::usage(format!("--path {only}: over TCP it must be an IP address")))?,
                ),
                _ => return Err(CliError::usage("over TCP one --path can be named; `ip mptcp` adds others")),
            },
            Locals::Single | Locals::All => None,
        };
        let host = zone::bare_host(&plan.host).to_owned();
        let found = lookup(&plan.host, plan.port).await?;
        let suits = |remote: &SocketAddr| local.is_none_or(|local: IpAddr| local.is_ipv4() == remote.is_ipv4());
        let remote = found
            .into_iter()
            .find(suits)
            .ok_or_else(|| CliError::running(format!("{host} has no address"), "check the name and your connection"))?;
        let name = ServerName::try_from(host)
            .map_err(|error| CliError::usage(format!("{} is no name of a server: {error}", plan.host)))?;
        tls::draw_randomness()?;
        let connector = TlsConnector::from(Arc::new(tls::client_over_tcp(&plan.tls)?));
        let congestion = plan.transport.congestion.map(kernel_name);
        let (timeout, first, ready) = (plan.timeout, Arc::default(), Arc::default());
        Ok(Self { kernel, remote, local, connector, name, congestion, timeout, first, ready })
    }

    /// Connects so often ahead of time; how long the first one took.
    pub(crate) async fn prepare(&self, count: u64) -> Result<Duration, CliError> {
        let before = mptcp_answers();
        let (first, took) = self.connect().await?;
        let is_plain = before.is_some() && before == mptcp_answers();
        let spoken = if is_plain { Kernel::Tcp } else { self.kernel };
        let congestion = congestion_of(&SockRef::from(first.get_ref().0.get_ref()));
        let _ = self.first.set(FirstConnection { spoken, congestion, took });
        let mut others = JoinSet::new();
        for _ in 1..count {
            let dialer = self.clone();
            others.spawn(async move { dialer.connect().await });
        }
        self.keep(first);
        while let Some(made) = others.join_next().await {
            let (made, _) = made.map_err(|error| CliError::Running(error.to_string()))??;
            self.keep(made);
        }
        Ok(took)
    }

    fn keep(&self, stream: TlsStream<Buffered>) {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
    }

    /// One connection, with the handshakes of TCP and TLS, and how long these took.
    pub(crate) async fn connect(&self) -> Result<(TlsStream<Buffered>, Duration), CliError> {
        self.connect_within(None).await
    }

    /// The same, within so long where that is less than usual.
    pub(crate) async fn connect_within(
        &self,
        limit: Option<Duration>,
    ) -> Result<(TlsStream<Buffered>, Duration), CliError> {
        let clock = Clock::start();
        let timeout = limit.map_or(self.timeout, |limit| limit.min(self.timeout));
        let made = tokio::time::timeout(timeout, self.shake_hands()).await;
        let made = made.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        let stream = made.map_err(|error| self.failure(&error))?;
        Ok((stream, clock.elapsed()))
    }

    /// A connection that could not be made, in words that help.
    fn failure(&self, error: &io::Error) -> CliError {
        let kernel = self.kernel.name();
        match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            Some(rustls::Error::InvalidCertificate(why)) => certificate_refused(&self.name.to_str(), why),
            _ => match error.kind() {
                // What we say ourselves of the kernel.
                io::ErrorKind::Other => CliError::running(format!("no {kernel} connection to {}", self.remote), error),
                _ => CliError::running(
                    format!("no {kernel} connection to {}: {}", self.remote, plain(error)),
                    format!("check that `plait perf server --{kernel}` runs there"),
                ),
            },
        }
    }

    async fn shake_hands(&self) -> io::Result<TlsStream<Buffered>> {
        let socket = socket(self.kernel, self.remote)?;
        if let Some(local) = self.local {
            socket.bind(&SocketAddr::new(local, 0).into())?;
        }
        set_congestion(&socket, self.congestion)?;
        let stream = TcpSocket::from_std_stream(socket.into()).connect(self.remote).await?;
        // Small requests should not wait for acknowledgements, as those of QUIC do not.
        stream.set_nodelay(true)?;
        self.connector.connect(self.name.clone(), buffered(stream)).await
    }

    /// A connection as a stream both ways, one that stands already if there is one.
    pub(crate) async fn open(&self) -> Result<(PipeWriter, PipeReader), CliError> {
        let ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let stream = match ready {
            Some(ready) => ready,
            None => self.connect().await?.0,
        };
        let (reader, writer) = tokio::io::split(stream);
        Ok((PipeWriter::Tls(Box::new(writer)), PipeReader::tls(Box::new(reader))))
    }

    /// The controller by which the kernel sends; none where it does not say.
    pub(crate) fn congestion(&self) -> Option<String> {
        self.first.get().and_then(|first| first.congestion.clone())
    }

    /// What the first connection speaks: TCP too where MPTCP was asked for.
    pub(crate) fn spoken(&self) -> Kernel {
        self.first.get().map_or(self.kernel, |first| first.spoken)
    }

    /// How long the first handshake took.
    pub(crate) fn handshake_time(&self) -> Duration {
        self.first.get().map_or(Duration::ZERO, |first| first.took)
    }
}

/// A client's connection, its handshake done.
pub(crate) struct TakenOn {
    pub(crate) writer: PipeWriter,
    pub(crate) reader: PipeReader,
    /// By which controller the kernel sends; none where it does not say.
    pub(crate) congestion: Option<String>,
}

/// A server's side: its sockets, and TLS for what comes there.
pub(crate) struct TcpHost {
    listeners: Vec<TcpListener>,
    acceptor: TlsAcceptor,
}

impl TcpHost {
    /// Takes what comes to `listeners`.
    pub(crate) fn new(listeners: Vec<TcpListener>, shown: Shown) -> Result<Self, CliError> {
        Ok(Self { listeners, acceptor: TlsAcceptor::from(Arc::new(tls::server_over_tcp(shown)?)) })
    }

    /// Hands each connection to `take` once its handshake is done. It goes on for ever.
    pub(crate) async fn accept<Taking: Future<Output = ()> + Send + 'static>(
        self,
        take: impl Fn(TakenOn) -> Taking + Clone + Send + Sync + 'static,
    ) {
        let (mut lanes, room) = (JoinSet::new(), Arc::new(Semaphore::new(MAX_CONNECTIONS)));
        for listener in self.listeners {
            let (acceptor, take, room) = (self.acceptor.clone(), take.clone(), Arc::clone(&room));
            lanes.spawn(async move {
                while let Ok(permit) = Arc::clone(&room).acquire_owned().await {
                    let Ok((stream, remote)) = listener.accept().await else {
                        // Too many open files, say: others end meanwhile.
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                        continue;
                    };
                    let (acceptor, take) = (acceptor.clone(), take.clone());
                    tokio::spawn(async move {
                        let _permit = permit;
                        // Without it answers are late, and that is all.
                        let _ = stream.set_nodelay(true);
                        let congestion = congestion_of(&SockRef::from(&stream));
                        match tokio::time::timeout(HANDSHAKE_TIME, acceptor.accept(buffered(stream))).await {
                            Ok(Ok(stream)) => {
                                let (reader, writer) = tokio::io::split(stream);
                                let reader = PipeReader::tls(Box::new(reader));
                                take(TakenOn { writer: PipeWriter::Tls(Box::new(writer)), reader, congestion }).await;
                            }
                            Ok(Err(error)) => tracing::info!(%remote, "handshake failed: {error}"),
                            Err(_) => tracing::info!(%remote, "handshake not done in time"),
                        }
                    });
                }
            });
        }
        lanes.join_next().await;
    }
}

/// Listens at the same addresses as QUIC does; the kernel sends by `congestion`, where one is named.
pub(crate) fn listen(
    kernel: Kernel,
    addresses: &[SocketAddr],
    congestion: Option<CongestionName>,
) -> io::Result<Vec<TcpListener>> {
    let one =
        |address: &SocketAddr| listener(kernel, *address, versions(*address, addresses), congestion.map(kernel_name));
    addresses.iter().map(one).collect()
}

fn listener(
    kernel: Kernel,
    address: SocketAddr,
    versions: Versions,
    congestion: Option<&str>,
) -> io::Result<TcpListener> {
    let socket = socket(kernel, address)?;
    // Accepted connections and their subflows inherit it.
    set_congestion(&socket, congestion)?;
    if address.is_ipv6() {
        socket.set_only_v6(versions == Versions::Own)?;
    }
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_mptcp_are_found_by_their_name() {
        let text = "TcpExt: A B\nTcpExt: 1 2\nMPTcpExt: MPCapableSYNRX MPCapableSYNACKRX\nMPTcpExt: 7 9\n";
        assert_eq!(answers_in(text), Some(9));
        assert_eq!(answers_in("TcpExt: A B\nTcpExt: 1 2\n"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_controller_that_the_kernel_has_not_is_refused() {
        for kernel in [Kernel::Tcp, Kernel::Mptcp] {
            // Not every kernel has MPTCP.
            let Ok(socket) = socket(kernel, ([127, 0, 0, 1], 1).into()) else { continue };
            let error = set_congestion(&socket, Some("nothing-like-it")).unwrap_err().to_string();
            assert!(error.contains("does not send by `nothing-like-it`"), "{error}");
            set_congestion(&socket, Some("reno")).unwrap();
            assert_eq!(congestion_of(&socket).as_deref(), Some("reno"));
        }
    }
}
