//! Connections that clients begin, and what the application decides about them.

use std::future::{Future, IntoFuture};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use plait_base::ConnectionId;
use plait_engine::connection::ConnectionError;
use plait_engine::endpoint as engine;

use super::state::{EndpointShared, Hold};
use crate::config::ServerConfig;
use crate::connection::{Connecting, Connection};
use crate::wakers::until;

/// Waits for the next client; see [`crate::Endpoint::accept`].
#[must_use = "nothing is accepted unless this is awaited"]
pub struct Accept<'a> {
    inner: Pin<Box<dyn Future<Output = Option<Incoming>> + Send + 'a>>,
}

impl<'a> Accept<'a> {
    pub(super) fn new(endpoint: &'a Arc<EndpointShared>) -> Self {
        let inner = until(&endpoint.arrivals, || {
            let mut state = endpoint.lock();
            if let Some(incoming) = state.next_incoming() {
                let endpoint = Hold::new(endpoint, &mut state);
                return Some(Some(Incoming { undecided: Some(incoming), endpoint }));
            }
            state.is_closed.then_some(None)
        });
        Self { inner: Box::pin(inner) }
    }
}

impl Future for Accept<'_> {
    type Output = Option<Incoming>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.inner.as_mut().poll(cx)
    }
}

impl std::fmt::Debug for Accept<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Accept").finish_non_exhaustive()
    }
}

/// A client that wants to connect. Await it to accept it; when it is dropped, the client is refused.
///
/// ```no_run
/// # async fn example(endpoint: plait::Endpoint) -> Result<(), plait::ConnectionError> {
/// while let Some(incoming) = endpoint.accept().await {
///     if !incoming.remote_address_validated() && endpoint.open_connections() > 1000 {
///         // Under pressure clients must first prove that they are where they say.
///         let _ = incoming.retry();
///         continue;
///     }
///     let connection = incoming.await?;
///     println!("{} is here", connection.remote_address());
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "the client is refused when this is dropped"]
pub struct Incoming {
    /// Taken by the decision.
    undecided: Option<engine::Incoming>,
    endpoint: Hold,
}

/// A Retry that is not possible: the client comes from one already. Gives the client back.
#[derive(Debug, thiserror::Error)]
#[error("the client has answered a Retry already")]
pub struct RetryError(Box<Incoming>);

impl RetryError {
    /// The client, to accept or refuse it instead.
    pub fn into_incoming(self) -> Incoming {
        *self.0
    }
}

impl Incoming {
    /// Accepts the client; the handshake goes on.
    ///
    /// # Errors
    /// It waited too long, the endpoint can take no more, or it was closed.
    pub fn accept(mut self) -> Result<Connecting, ConnectionError> {
        self.accept_by(None)
    }

    /// As [`Self::accept`] with other settings than the endpoint's.
    ///
    /// # Errors
    /// It waited too long, the endpoint can take no more, or it was closed.
    pub fn accept_with(mut self, config: ServerConfig) -> Result<Connecting, ConnectionError> {
        self.accept_by(Some(config))
    }

    fn accept_by(&mut self, config: Option<ServerConfig>) -> Result<Connecting, ConnectionError> {
        let incoming = self.undecided.take().ok_or(ConnectionError::LocallyClosed)?;
        self.endpoint.accept(incoming, config).map(Connecting::new)
    }

    /// Tells the client that it is not wanted.
    pub fn refuse(mut self) {
        self.refuse_now();
    }

    fn refuse_now(&mut self) {
        if let Some(incoming) = self.undecided.take() {
            self.endpoint.lock().refuse(incoming);
        }
    }

    /// Asks the client to come again with a proof of its address; it costs the client a round trip, and nothing is kept
    /// here meanwhile.
    ///
    /// # Errors
    /// The client comes from a Retry already.
    pub fn retry(mut self) -> Result<(), RetryError> {
        let Some(incoming) = self.undecided.take() else { return Ok(()) };
        let mut state = self.endpoint.lock();
        let super::state::State { engine, reply, sockets, .. } = &mut *state;
        match engine.retry(incoming, reply) {
            Ok(Some(transmit)) => sockets.send_or_drop(&transmit, reply),
            Ok(None) => {}
            Err(engine::RetryError(incoming)) => {
                drop(state);
                self.undecided = Some(*incoming);
                return Err(RetryError(Box::new(self)));
            }
        }
        Ok(())
    }

    /// Forgets the client without a word.
    pub fn ignore(mut self) {
        if let Some(incoming) = self.undecided.take() {
            self.endpoint.lock().engine.ignore(incoming);
        }
    }

    /// The client's address.
    pub fn remote_address(&self) -> SocketAddr {
        let unknown = || SocketAddr::from(([0, 0, 0, 0], 0));
        self.undecided.as_ref().map_or_else(unknown, engine::Incoming::remote_address)
    }

    /// Our address that it sent to, where the system told.
    pub fn local_ip(&self) -> Option<IpAddr> {
        self.undecided.as_ref().and_then(engine::Incoming::local_ip)
    }

    /// True when the client proved its address.
    pub fn remote_address_validated(&self) -> bool {
        self.undecided.as_ref().is_some_and(engine::Incoming::remote_address_validated)
    }

    /// True when [`Self::retry`] is possible.
    pub fn may_retry(&self) -> bool {
        self.undecided.as_ref().is_some_and(engine::Incoming::may_retry)
    }

    /// Destination connection id of the client's very first packet, the connection's name in traces.
    pub fn orig_dst_cid(&self) -> ConnectionId {
        self.undecided.as_ref().map_or(ConnectionId::EMPTY, engine::Incoming::orig_dst_cid)
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        self.refuse_now();
    }
}

impl IntoFuture for Incoming {
    type Output = Result<Connection, ConnectionError>;
    type IntoFuture = IncomingFuture;

    fn into_future(self) -> IncomingFuture {
        IncomingFuture(self.accept())
    }
}

/// An accepted client whose handshake goes on.
#[derive(Debug)]
#[must_use = "the connection is closed when this is dropped"]
pub struct IncomingFuture(Result<Connecting, ConnectionError>);

impl Future for IncomingFuture {
    type Output = Result<Connection, ConnectionError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Ok(connecting) => Pin::new(connecting).poll(cx),
            Err(error) => Poll::Ready(Err(error.clone())),
        }
    }
}
