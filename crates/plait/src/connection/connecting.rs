//! A connection whose handshake is under way.

use std::future::{Future, poll_fn};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use plait_engine::connection::{ConnectionError, HandshakeSummary};

use super::shared::{Hold, Progress};
use super::{Connection, Shared};

/// A handshake under way; await it to get the [`Connection`].
///
/// ```no_run
/// # async fn example(endpoint: plait::Endpoint) -> Result<(), Box<dyn std::error::Error>> {
/// let connecting = endpoint.connect("192.0.2.1:443".parse()?, "example.org")?;
/// let connection = connecting.await?;
/// # Ok(()) }
/// ```
#[must_use = "the connection is closed when this is dropped"]
#[derive(Debug)]
pub struct Connecting {
    connection: Option<Connection>,
}

impl Connecting {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { connection: Some(Connection::new(shared)) }
    }

    fn hold(&self) -> Option<&Hold> {
        self.connection.as_ref().map(|connection| &*connection.hold)
    }

    /// Goes on before the handshake is complete, where that is possible.
    ///
    /// On a client it is when it has a session of the server that allows 0-RTT. What it sends then may be repeated by
    /// an attacker, so it must be harmless when done twice; it is lost when the server refuses 0-RTT, which
    /// [`ZeroRttAccepted`] tells. On a server it always is (0.5-RTT): who the client is may then be not known yet.
    ///
    /// # Errors
    /// Gives the handshake back when it is not possible.
    pub fn into_0rtt(mut self) -> Result<(Connection, ZeroRttAccepted), Self> {
        let possible = self.hold().is_some_and(|hold| {
            let state = hold.lock();
            // On a fast network the handshake may be over before this call: early data was offered all the same.
            let offered = state.engine.has_0rtt() || state.engine.accepted_0rtt().is_some();
            state.error.is_none() && (state.engine.side().is_server() || offered)
        });
        match self.connection.take_if(|_| possible) {
            Some(connection) => {
                let accepted = ZeroRttAccepted { connection: connection.clone() };
                Ok((connection, accepted))
            }
            None => Err(self),
        }
    }

    /// Waits until ALPN and, on a server, the server name are known.
    ///
    /// # Errors
    /// The handshake failed.
    pub async fn handshake_data(&mut self) -> Result<HandshakeSummary, ConnectionError> {
        let Some(hold) = self.hold() else { return Err(ConnectionError::LocallyClosed) };
        poll_fn(|cx| poll_progress(hold, Progress::DataReady, cx)).await?;
        Ok(hold.lock().engine.handshake_summary())
    }

    /// The peer's address.
    pub fn remote_address(&self) -> SocketAddr {
        self.connection.as_ref().map_or_else(|| SocketAddr::from(([0, 0, 0, 0], 0)), Connection::remote_address)
    }

    /// Our address, once it is known.
    pub fn local_ip(&self) -> Option<IpAddr> {
        self.connection.as_ref().and_then(Connection::local_ip)
    }
}

fn poll_progress(hold: &Hold, wanted: Progress, cx: &Context<'_>) -> Poll<Result<(), ConnectionError>> {
    let mut state = hold.lock();
    if let Err(error) = state.check() {
        return Poll::Ready(Err(error));
    }
    if state.progress >= wanted {
        return Poll::Ready(Ok(()));
    }
    state.handshake_waiters.register(cx.waker());
    Poll::Pending
}

impl Future for Connecting {
    type Output = Result<Connection, ConnectionError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(hold) = self.hold() else { return Poll::Ready(Err(ConnectionError::LocallyClosed)) };
        match poll_progress(hold, Progress::Connected, cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(error)) => {
                self.connection = None;
                Poll::Ready(Err(error))
            }
            Poll::Ready(Ok(())) => Poll::Ready(self.connection.take().ok_or(ConnectionError::LocallyClosed)),
        }
    }
}

/// Tells whether the server took the 0-RTT data; always true on servers. False as well when the handshake failed.
#[derive(Debug)]
pub struct ZeroRttAccepted {
    connection: Connection,
}

impl Future for ZeroRttAccepted {
    type Output = bool;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<bool> {
        let hold = &self.connection.hold;
        match poll_progress(hold, Progress::Connected, cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(_)) => Poll::Ready(false),
            Poll::Ready(Ok(())) => {
                let state = hold.lock();
                Poll::Ready(state.engine.side().is_server() || state.engine.accepted_0rtt() == Some(true))
            }
        }
    }
}
