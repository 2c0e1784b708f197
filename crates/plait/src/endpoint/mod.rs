//! An endpoint as applications hold it.

mod delivery;
mod driver;
mod errors;
mod incoming;
mod launch;
mod state;

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use plait_base::FourTuple;

use crate::config::{ClientConfig, EndpointConfig, ServerConfig};
use crate::connection::{Connecting, Contest};
use crate::entropy;
use crate::net::BindError;
use crate::sockets::{Bind, SharedSocket, SocketList};
use crate::wakers::until;
use crate::workers::{WorkerFigures, WorkerPool, read_group, steer};

pub(crate) use delivery::deliver;
pub use errors::{ConnectError, EndpointError};
pub use incoming::{Accept, Incoming, IncomingFuture, RetryError};
use state::EndpointRef;
pub(crate) use state::Hold;
pub(crate) use state::{EndpointShared, Reach};

/// All connections over one or more sockets: clients, servers, or both at once.
///
/// Cheap to clone; all clones are one endpoint. Connections go on when all clones are dropped. To be made and used
/// within a tokio runtime.
///
/// ```
/// # mod support { include!("../../doc/pair.in"); }
/// # use support::*;
/// # run(async {
/// // A server that echoes every stream.
/// let (server_config, client_config) = configs();
/// let server = plait::Endpoint::server(server_config, "127.0.0.1:0".parse()?)?;
/// let address = server.local_addr()?;
/// tokio::spawn(async move {
///     while let Some(incoming) = server.accept().await {
///         let connection = incoming.await?;
///         tokio::spawn(async move {
///             while let Ok((mut send, mut recv)) = connection.accept_bi().await {
///                 tokio::io::copy(&mut recv, &mut send).await?;
///             }
///             Ok::<_, std::io::Error>(())
///         });
///     }
///     Ok::<_, plait::ConnectionError>(())
/// });
///
/// // A client with two local addresses: its connections use both.
/// let client = plait::Endpoint::new(
///     plait::EndpointConfig::fresh()?,
///     None,
///     ["127.0.0.1:0".parse::<std::net::SocketAddr>()?, "127.0.0.2:0".parse()?],
/// )?;
/// client.set_default_client_config(client_config);
/// let connection = client.connect(address, "localhost")?.await?;
/// let (mut send, mut recv) = connection.open_bi().await?;
/// send.write_all(b"hello").await?;
/// send.finish()?;
/// assert_eq!(recv.read_to_end(100).await?, b"hello");
/// connection.close(0, b"");
/// client.wait_idle().await;
/// # Ok(())
/// # });
/// ```
#[derive(Clone, Debug)]
pub struct Endpoint {
    shared: Arc<EndpointRef>,
}

impl Endpoint {
    /// A client with one socket; `0.0.0.0:0` or `[::]:0` lets the system choose address and port. The system then chooses
    /// the address anew whenever its routes change, and connections go on from there. A socket that is bound to an
    /// address follows the interface of this address: when that has another one, so has the socket.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub fn client(address: SocketAddr) -> Result<Self, EndpointError> {
        Self::new(EndpointConfig::fresh()?, None, [address])
    }

    /// A server with one socket.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub fn server(config: ServerConfig, address: SocketAddr) -> Result<Self, EndpointError> {
        Self::new(EndpointConfig::fresh()?, Some(config), [address])
    }

    /// An endpoint with any number of sockets, of which the first is where connections begin. It accepts connections
    /// if it has a `server` configuration.
    ///
    /// # Errors
    /// A socket cannot be bound.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn new<B: Into<Bind>>(
        mut config: EndpointConfig,
        server: Option<ServerConfig>,
        sockets: impl IntoIterator<Item = B>,
    ) -> Result<Self, EndpointError> {
        let threads = config.worker_count();
        let mut workers = match threads {
            0 | 1 => None,
            _ => Some(
                WorkerPool::start(threads, config.cid_bytes())
                    .map_err(|error| EndpointError::Workers { threads, error })?,
            ),
        };
        let (mut list, mut mates, mut groups) = (Vec::new(), Vec::new(), Vec::new());
        for (place, bind) in sockets.into_iter().enumerate() {
            let bind = bind.into();
            match &workers {
                Some(workers) if server.is_none() => list.push(Arc::new(workers.open(bind, place)?)),
                // A server's address brings what is for all its connections: each thread reads a part of it.
                Some(workers) => {
                    let group = workers.open_group(bind)?;
                    list.extend(group.first().cloned());
                    mates.extend(group.iter().skip(1).cloned());
                    groups.push(group);
                }
                None => list.push(Arc::new(SharedSocket::new(bind.open()?))),
            }
        }
        let mut random = entropy::random()?;
        if let Some(workers) = &mut workers {
            let steering = steer(&groups, config.cid_bytes(), &mut random);
            config.steer_cids(steering.clone());
            workers.set_steering(steering);
        }
        let shared = EndpointShared::start(config, server, SocketList::new(list).with_mates(mates), workers, random);
        groups.into_iter().for_each(|group| read_group(&shared, group));
        Ok(Self { shared: Arc::new(EndpointRef(shared)) })
    }

    /// Client settings of [`Self::connect`].
    pub fn set_default_client_config(&self, config: ClientConfig) {
        self.shared.lock().client = Some(config);
    }

    /// Server settings of connections to come; none accepts no more.
    pub fn set_server_config(&self, config: Option<ServerConfig>) {
        self.shared.lock().engine.set_server_config(config.map(ServerConfig::into_engine));
    }

    /// Begins a connection to `remote`, whose certificate must be for `server_name`, with the endpoint's client
    /// settings.
    ///
    /// It is tried from the first socket that speaks the family of `remote`, and as long as nothing answers from the
    /// others too, one after the other (see [`plait_engine::config::ClientConfig::attempt_delay`]): any link that works
    /// carries the handshake. [`Connection::attempts`](crate::Connection::attempts) says how they fared.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn connect(&self, remote: SocketAddr, server_name: &str) -> Result<Connecting, ConnectError> {
        let config = self.shared.lock().client.clone().ok_or(ConnectError::NoDefaultClientConfig)?;
        self.connect_with(config, remote, server_name)
    }

    /// As [`Self::connect`] with other settings.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn connect_with(
        &self,
        config: ClientConfig,
        remote: SocketAddr,
        server_name: &str,
    ) -> Result<Connecting, ConnectError> {
        self.connect_any(config, &[remote], server_name)
    }

    /// As [`Self::connect_with`], to whichever of several addresses of a server answers first, in their order of
    /// preference; IPv4 and IPv6 take turns (RFC 8305).
    ///
    /// ```no_run
    /// # async fn example(endpoint: plait::Endpoint, config: plait::ClientConfig) -> Result<(), Box<dyn std::error::Error>> {
    /// let addresses: Vec<_> = tokio::net::lookup_host(("example.org", 443)).await?.collect();
    /// let connection = endpoint.connect_any(config, &addresses, "example.org")?.await?;
    /// println!("{} answered", connection.remote_address());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn connect_any(
        &self,
        config: ClientConfig,
        remotes: &[SocketAddr],
        server_name: &str,
    ) -> Result<Connecting, ConnectError> {
        let locals = self.shared.lock().sockets.addresses();
        let pairs = plait_engine::endpoint::pairs(&locals, remotes);
        if pairs.is_empty() {
            return Err(remotes.first().map_or(ConnectError::NoAddress, |remote| ConnectError::NoSocket(*remote)));
        }
        self.connect_over(config, &pairs, server_name)
    }

    /// As [`Self::connect_any`], over these pairs of addresses in this order; ours are some of [`Self::local_addrs`].
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn connect_over(
        &self,
        config: ClientConfig,
        pairs: &[FourTuple],
        server_name: &str,
    ) -> Result<Connecting, ConnectError> {
        let endpoint = Hold::new(&self.shared, &mut self.shared.lock());
        Contest::new(endpoint, config, pairs, server_name).begin()
    }

    /// As [`Self::connect_with`], from one of [`Self::local_addrs`] and no other.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn connect_from(
        &self,
        config: ClientConfig,
        tuple: FourTuple,
        server_name: &str,
    ) -> Result<Connecting, ConnectError> {
        self.connect_over(config, &[tuple], server_name)
    }

    /// The next connection that a client begins; none once the endpoint is closed, or the runtime gone that it was made in. May be
    /// cancelled without loss.
    pub fn accept(&self) -> Accept<'_> {
        Accept::new(&self.shared)
    }

    /// Adds a socket while connections run; gives its address. Connections of a client whose path policy is `fullmesh`
    /// open paths from it.
    ///
    /// # Errors
    /// It cannot be bound.
    pub fn add_socket(&self, bind: impl Into<Bind>) -> Result<SocketAddr, BindError> {
        let socket = SharedSocket::new(bind.into().open()?);
        let local = socket.local();
        self.shared.change_sockets(|list| list.with(socket));
        Ok(local)
    }

    /// Removes the socket bound to `local`; false when there is none. Paths of clients that begin there are given up by
    /// the policy `fullmesh`; else they move to a socket that no other path uses, or to any when nothing else works.
    pub fn remove_socket(&self, local: SocketAddr) -> bool {
        let known = self.shared.lock().sockets.has(local);
        if known {
            self.shared.replace_sockets(|list| list.without(local));
        }
        known
    }

    /// Replaces all sockets by one. Clients' connections move there, with one path at least. Those whose handshake is not confirmed
    /// yet may not (RFC 9000 9): the old sockets stay open for them alone until it is.
    ///
    /// # Errors
    /// It cannot be bound; nothing changes then.
    pub fn rebind(&self, bind: impl Into<Bind>) -> Result<SocketAddr, BindError> {
        let socket = SharedSocket::new(bind.into().open()?);
        let local = socket.local();
        self.shared.replace_sockets(|_| SocketList::default().with(socket));
        Ok(local)
    }

    /// Tells that the network around the endpoint may have changed: all paths of all connections are asked at once
    /// whether they still work, instead of when their timers say so. Endpoints of clients watch the addresses of the
    /// machine by themselves; this is for programs that know more, such as that a gateway changed.
    pub fn handle_network_change(&self) {
        self.shared.change_sockets(SocketList::after_network_change);
    }

    /// The address of the first socket.
    ///
    /// # Errors
    /// The endpoint has no socket.
    pub fn local_addr(&self) -> std::io::Result<SocketAddr> {
        let first = self.local_addrs().into_iter().next();
        first.ok_or_else(|| std::io::Error::new(std::io::ErrorKind::NotConnected, "the endpoint has no socket"))
    }

    /// The addresses of all sockets, in the order in which they were added.
    pub fn local_addrs(&self) -> Vec<SocketAddr> {
        self.shared.lock().sockets.iter().map(|socket| socket.local()).collect()
    }

    /// What each of the threads did that serve paths ([`EndpointConfig::workers`]); none where there are none.
    pub fn workers(&self) -> Vec<WorkerFigures> {
        self.shared.workers().map_or_else(Vec::new, WorkerPool::figures)
    }

    /// Connections that are not yet over, in both directions.
    pub fn open_connections(&self) -> usize {
        self.shared.lock().engine.connections()
    }

    /// Closes all connections at once with the application's code, and accepts and begins none any more.
    pub fn close(&self, code: u64, reason: &[u8]) {
        self.shared.close(code, Bytes::copy_from_slice(reason));
    }

    /// Waits until all connections are over and their peers had time to learn of it: three probe timeouts, in which a
    /// close that was lost is sent again. Call it before the program ends, lest peers wait for their idle timeout.
    /// [`Self::wait_closes_sent`] waits for less.
    pub async fn wait_idle(&self) {
        until(&self.shared.idle, || (self.shared.lock().engine.connections() == 0).then_some(())).await;
    }

    /// Waits until every connection is closed and its close has left on each of its paths: a moment, where
    /// [`Self::wait_idle`] takes three probe timeouts. A program that ends now closes its sockets and answers nobody any more
    /// (RFC 9000 10.2); peers that a close does not reach wait for their idle timeout.
    ///
    /// ```
    /// # mod support { include!("../../doc/pair.in"); }
    /// # use support::*;
    /// # run(async {
    /// # let client = endpoint(None, &["127.0.0.1"]);
    /// client.close(0, b"the program ends");
    /// client.wait_closes_sent().await;
    /// # Ok(())
    /// # });
    /// ```
    pub async fn wait_closes_sent(&self) {
        until(&self.shared.idle, || self.shared.lock().has_closed().then_some(())).await;
    }

    pub(crate) fn shared(&self) -> &Arc<EndpointShared> {
        &self.shared.0
    }
}

#[cfg(test)]
mod tests;
