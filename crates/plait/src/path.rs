//! Paths of a connection: opening and closing them, what they do, and news of them (RFC 10069).

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use plait_base::observe::{PathState, PeerReport};
use plait_base::{CloseCode, FourTuple, Instant, PathId};
use plait_engine::connection::{ConnectionError, PathError, PathEvent, PathStatistics};
use plait_path::PathStatus;
use plait_path::table::OpenError;
use tokio::sync::oneshot;
use tokio::time::Sleep;

use crate::connection::{Connection, ConnectionRef, State};

/// How long the peer may take to provide what a new path needs of it: connection ids and a higher limit.
const OPEN_PATIENCE: Duration = Duration::from_secs(5);

/// From where to where a path leads: a [`FourTuple`], or a local IP address and a remote address, where the port is that
/// of the endpoint's socket on this IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathTuple {
    /// Both addresses with their ports.
    Exact(FourTuple),
    /// From the endpoint's socket on a local address.
    From(IpAddr, SocketAddr),
}

impl From<FourTuple> for PathTuple {
    fn from(tuple: FourTuple) -> Self {
        Self::Exact(tuple)
    }
}

impl From<(SocketAddr, SocketAddr)> for PathTuple {
    fn from((local, remote): (SocketAddr, SocketAddr)) -> Self {
        Self::Exact(FourTuple { local, remote })
    }
}

impl From<(IpAddr, SocketAddr)> for PathTuple {
    fn from((local, remote): (IpAddr, SocketAddr)) -> Self {
        Self::From(local, remote)
    }
}

/// Why a path was not opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenPathError {
    /// The connection cannot open it.
    #[error(transparent)]
    Refused(#[from] PathError),
    /// The endpoint has no socket on the local address; see [`crate::Endpoint::add_socket`].
    #[error("the endpoint has no socket on this address")]
    NoSocket,
    /// The other end did not answer on it, or gave it up.
    #[error("the path got no answer, or was given up")]
    Failed,
    /// The connection is over.
    #[error("connection lost: {0}")]
    ConnectionLost(#[from] ConnectionError),
}

impl Connection {
    /// Opens a path between two addresses and waits until the other end answered on it. Clients only; the endpoint must
    /// have a socket on the local address. Dropping the future does not take the path back.
    ///
    /// ```
    /// # mod support { include!("../doc/pair.in"); }
    /// # use support::*;
    /// # run(async {
    /// # let (client, _server) = pair().await;
    /// // The endpoint of this client has sockets on 127.0.0.1 and 127.0.0.2.
    /// let second: std::net::IpAddr = "127.0.0.2".parse()?;
    /// let path = client.open_path((second, client.remote_address())).await?;
    /// assert_eq!(path.stats().unwrap().tuple.local.ip(), second);
    /// assert_eq!(client.paths().len(), 2);
    /// # Ok(())
    /// # });
    /// ```
    pub fn open_path(&self, tuple: impl Into<PathTuple>) -> OpenPath {
        self.open_path_with(tuple, PathStatus::Available)
    }

    /// As [`Self::open_path`]; a path that begins as [`PathStatus::Backup`] carries data only when no other can.
    pub fn open_path_with(&self, tuple: impl Into<PathTuple>, status: PathStatus) -> OpenPath {
        let tuple = match tuple.into() {
            PathTuple::Exact(tuple) => Some(tuple),
            PathTuple::From(ip, remote) => self.local_on(ip).map(|local| FourTuple { local, remote }),
        };
        OpenPath { shared: self.shared.clone(), tuple, status, opened: None, asked: None, patience: None }
    }

    /// The socket address that the endpoint has on `ip`.
    fn local_on(&self, ip: IpAddr) -> Option<SocketAddr> {
        let state = self.shared.lock();
        let locals = state.engine.connection().paths().local_addresses();
        let exact = locals.iter().find(|local| local.ip() == ip);
        let wildcard = || locals.iter().find(|l| l.ip().is_unspecified() && l.is_ipv4() == ip.is_ipv4());
        exact.or_else(wildcard).map(|local| SocketAddr::new(ip, local.port()))
    }

    /// A path by its id; none when it is gone or never was.
    pub fn path(&self, id: PathId) -> Option<Path> {
        let path = Path { shared: self.shared.clone(), id };
        path.stats().map(|_| path)
    }

    /// All open paths, by id.
    pub fn paths(&self) -> Vec<Path> {
        let ids = self.shared.lock().engine.connection().paths().ids();
        ids.into_iter().map(|id| Path { shared: self.shared.clone(), id }).collect()
    }

    /// News of the connection's paths from now on.
    pub fn path_events(&self) -> PathEvents {
        let next = self.shared.lock().paths.end;
        PathEvents { shared: self.shared.clone(), next }
    }
}

/// A path that is being opened; await it to get the [`Path`].
///
/// ```
/// # mod support { include!("../doc/pair.in"); }
/// # use support::*;
/// # run(async {
/// # let (client, _server) = pair().await;
/// let second: std::net::IpAddr = "127.0.0.2".parse()?;
/// let path = client.open_path((second, client.remote_address())).await?;
/// assert_eq!(path.stats().unwrap().tuple.local.ip(), second);
/// # Ok(())
/// # });
/// ```
#[must_use = "the path is opened when this is awaited"]
#[derive(Debug)]
pub struct OpenPath {
    shared: Arc<ConnectionRef>,
    tuple: Option<FourTuple>,
    status: PathStatus,
    opened: Option<PathId>,
    /// What comes of the call, which waits for paths that threads serve.
    asked: Option<oneshot::Receiver<Result<PathId, PathError>>>,
    patience: Option<Pin<Box<Sleep>>>,
}

impl OpenPath {
    fn poll_open(&mut self, cx: &mut Context<'_>, tuple: FourTuple) -> Poll<Result<PathId, OpenPathError>> {
        let shared = self.shared.clone();
        let mut state = shared.lock();
        if let Err(error) = state.check() {
            return Poll::Ready(Err(error.into()));
        }
        let opened = match self.ask(&mut state, shared.clock.now(), (tuple, self.status), cx) {
            Poll::Ready(Some(opened)) => opened,
            // The connection's task ended.
            Poll::Ready(None) => return Poll::Ready(Err(ConnectionError::LocallyClosed.into())),
            Poll::Pending => {
                // Nobody answers where the connection ends before all paths are here; its end wakes these.
                state.paths.waiters.register(cx.waker());
                return Poll::Pending;
            }
        };
        let error = match opened {
            Ok(id) => {
                state.deliver_events(&shared.notifies);
                state.wake_driver();
                return Poll::Ready(Ok(id));
            }
            Err(error) => error,
        };
        if !may_pass(&state, &error) {
            return Poll::Ready(Err(error.into()));
        }
        // The peer is told what is missing; its next packets may bring it.
        state.wake_driver();
        state.paths.openers.register(cx.waker());
        drop(state);
        let patience = self.patience.get_or_insert_with(|| Box::pin(tokio::time::sleep(OPEN_PATIENCE)));
        patience.as_mut().poll(cx).map(|()| Err(error.into()))
    }

    /// Asks the connection for the path; none where nobody answers any more.
    fn ask(
        &mut self,
        state: &mut State,
        now: Instant,
        (tuple, status): (FourTuple, PathStatus),
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<PathId, PathError>>> {
        let Some(asked) = &mut self.asked else {
            let (tell, mut told) = oneshot::channel();
            state.now_or_later(now, move |engine, now| tell.send(engine.open_path(now, tuple, status)).is_ok());
            if let Ok(opened) = told.try_recv() {
                return Poll::Ready(Some(opened));
            }
            state.wake_driver();
            let first = Pin::new(&mut told).poll(cx).map(Result::ok);
            self.asked = first.is_pending().then_some(told);
            return first;
        };
        let opened = ready!(Pin::new(asked).poll(cx)).ok();
        self.asked = None;
        Poll::Ready(opened)
    }

    fn poll_validated(&self, cx: &Context<'_>, id: PathId) -> Poll<Result<Path, OpenPathError>> {
        let mut state = self.shared.lock();
        if let Err(error) = state.check() {
            return Poll::Ready(Err(error.into()));
        }
        match state.engine.connection().path_statistics(self.shared.clock.now(), id).map(|path| path.state) {
            Some(PathState::Active | PathState::Backup | PathState::Failed) => {
                Poll::Ready(Ok(Path { shared: self.shared.clone(), id }))
            }
            Some(PathState::Validating) => {
                state.paths.waiters.register(cx.waker());
                Poll::Pending
            }
            Some(PathState::Unused | PathState::Closing | PathState::Closed) | None => {
                Poll::Ready(Err(OpenPathError::Failed))
            }
        }
    }
}

/// True when the same call may succeed a little later.
fn may_pass(state: &State, error: &PathError) -> bool {
    match error {
        PathError::Open(OpenError::NotNegotiated) => {
            state.engine.connection().is_handshaking() || state.engine.connection().is_multipath()
        }
        PathError::Open(
            OpenError::PeerLimit | OpenError::NoRemoteCid(_) | OpenError::NoLocalCid(_) | OpenError::TooManyValidations,
        ) => true,
        _ => false,
    }
}

/// Whether there is such a path now, for a call that waits until threads gave theirs back.
fn known(state: &State, id: PathId) -> Result<(), PathError> {
    state.check().map_err(|_| PathError::NoPath)?;
    if state.engine.connection().paths().ids().contains(&id) { Ok(()) } else { Err(PathError::NoPath) }
}

impl Future for OpenPath {
    type Output = Result<Path, OpenPathError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let id = match (self.opened, self.tuple) {
            (Some(id), _) => id,
            (None, None) => return Poll::Ready(Err(OpenPathError::NoSocket)),
            (None, Some(tuple)) => match self.poll_open(cx, tuple) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Ready(Ok(id)) => *self.opened.insert(id),
            },
        };
        self.poll_validated(cx, id)
    }
}

/// One path of a connection. Holding it does not keep the path open, but the connection.
///
/// ```
/// # mod support { include!("../doc/pair.in"); }
/// # use support::*;
/// # run(async {
/// # let (client, _server) = pair().await;
/// for path in client.paths() {
///     let stats = path.stats().unwrap();
///     println!("path {}: {} {:?}, RTT {:?}", path.id(), stats.tuple, stats.state, stats.rtt);
/// }
/// # Ok(())
/// # });
/// ```
#[derive(Clone, Debug)]
pub struct Path {
    shared: Arc<ConnectionRef>,
    id: PathId,
}

impl Path {
    /// The path's id.
    pub fn id(&self) -> PathId {
        self.id
    }

    /// What the path did and how it fares; none once it is gone.
    pub fn stats(&self) -> Option<PathStatistics> {
        let now = self.shared.clock.now();
        self.shared.lock().engine.connection().path_statistics(now, self.id)
    }

    /// How the path does for the peer, as it told last; none where the two do not tell each other
    /// ([`tell_paths`](crate::TransportConfig::tell_paths)).
    pub fn peer_report(&self) -> Option<PeerReport> {
        self.shared.lock().engine.connection().paths().peer_report(self.id)
    }

    /// Asks the peer to use the path, or to use it only when no other works; our own packets follow the same advice.
    ///
    /// # Errors
    /// The path is gone, or multipath (RFC 10069) is not in effect: Multiflow QUIC has no such advice.
    pub fn set_status(&self, status: PathStatus) -> Result<(), PathError> {
        let mut state = self.shared.lock();
        let id = self.id;
        let set =
            state.now_or_later(self.shared.clock.now(), move |engine, now| engine.set_path_status(now, id, status));
        set.unwrap_or_else(|| known(&state, id))?;
        state.deliver_events(&self.shared.notifies);
        state.wake_driver();
        Ok(())
    }

    /// Gives the path up: what it carried goes over the others. Without another path the connection ends as well, unless
    /// one opens soon.
    ///
    /// # Errors
    /// The path is gone, or multipath is not in effect.
    pub fn close(&self) -> Result<(), PathError> {
        self.close_with(CloseCode::APPLICATION_ABANDON_PATH)
    }

    /// As [`Self::close`], with a reason for the other end, which finds it in [`PathEvent::Abandoned`]: one of the
    /// transport's codes (RFC 10069 4.2.1), at most 2^62 - 1.
    ///
    /// ```
    /// # mod support { include!("../doc/pair.in"); }
    /// # use support::*;
    /// # run(async {
    /// # let (client, server) = pair().await;
    /// use plait::{CloseCode, PathEvent};
    /// let second: std::net::IpAddr = "127.0.0.2".parse()?;
    /// let path = client.open_path((second, client.remote_address())).await?;
    /// let mut news = server.path_events();
    /// path.close_with(CloseCode::PATH_UNSTABLE_OR_POOR)?;
    /// // What the other end is told:
    /// while let Some(event) = news.next().await {
    ///     if let PathEvent::Abandoned { id, code } = event {
    ///         assert_eq!((id, code), (path.id(), CloseCode::PATH_UNSTABLE_OR_POOR));
    ///         break;
    ///     }
    /// }
    /// # Ok(())
    /// # });
    /// ```
    ///
    /// # Errors
    /// The path is gone, or multipath is not in effect.
    pub fn close_with(&self, code: CloseCode) -> Result<(), PathError> {
        let mut state = self.shared.lock();
        let id = self.id;
        let closed = state.now_or_later(self.shared.clock.now(), move |engine, now| engine.close_path(now, id, code));
        closed.unwrap_or_else(|| known(&state, id))?;
        state.deliver_events(&self.shared.notifies);
        state.wake_driver();
        Ok(())
    }

    /// The connection that the path belongs to.
    pub fn connection(&self) -> Connection {
        Connection { shared: self.shared.clone() }
    }
}

/// News of a connection's paths; ends with the connection. A listener that is more than 256 events late misses the
/// oldest.
///
/// ```
/// # mod support { include!("../doc/pair.in"); }
/// # use support::*;
/// # run(async {
/// # let (client, _server) = pair().await;
/// let mut news = client.path_events();
/// let second: std::net::IpAddr = "127.0.0.2".parse()?;
/// let path = client.open_path((second, client.remote_address())).await?;
/// client.close(0, b"");
/// let mut opened = Vec::new();
/// // Ends with the connection.
/// while let Some(event) = news.next().await {
///     if let plait::PathEvent::Established { id } = event {
///         opened.push(id);
///     }
/// }
/// assert!(opened.contains(&path.id()));
/// # Ok(())
/// # });
/// ```
#[derive(Debug)]
pub struct PathEvents {
    shared: Arc<ConnectionRef>,
    next: u64,
}

impl PathEvents {
    /// The next event; none once the connection is over. May be cancelled without loss.
    pub async fn next(&mut self) -> Option<PathEvent> {
        std::future::poll_fn(|cx| self.poll_event(cx)).await
    }

    fn poll_event(&mut self, cx: &Context<'_>) -> Poll<Option<PathEvent>> {
        let mut state = self.shared.lock();
        if let Some((event, next)) = state.paths.get(self.next) {
            self.next = next;
            return Poll::Ready(Some(event));
        }
        if state.error.is_some() {
            return Poll::Ready(None);
        }
        state.paths.waiters.register(cx.waker());
        Poll::Pending
    }
}

impl Stream for PathEvents {
    type Item = PathEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<PathEvent>> {
        self.poll_event(cx)
    }
}
