//! Application datagrams: unreliable, unordered, small (RFC 9221).

use bytes::Bytes;
use plait_engine::connection::ConnectionError;
use plait_stream::{self as engine, Overflow};

use crate::connection::Connection;
use crate::wakers::until;

/// Why a datagram was not sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendDatagramError {
    /// The peer takes no datagrams.
    #[error("the peer takes no datagrams")]
    UnsupportedByPeer,
    /// It is larger than [`Connection::max_datagram_size`].
    #[error("datagram too large")]
    TooLarge,
    /// The connection is over.
    #[error("connection lost: {0}")]
    ConnectionLost(#[from] ConnectionError),
}

/// Application datagrams (RFC 9221).
impl Connection {
    /// Sends a datagram. When the queue is full the oldest ones in it are dropped.
    ///
    /// ```
    /// # mod support { include!("../doc/pair.in"); }
    /// # use support::*;
    /// # run(async {
    /// # let (client, server) = pair().await;
    /// client.send_datagram(bytes::Bytes::from_static(b"now or never"))?;
    /// assert_eq!(&server.read_datagram().await?[..], b"now or never");
    /// # Ok(())
    /// # });
    /// ```
    ///
    /// # Errors
    /// See [`SendDatagramError`].
    pub fn send_datagram(&self, data: Bytes) -> Result<(), SendDatagramError> {
        self.queue_datagram(data, Overflow::DropOldest).map_err(|refused| match refused {
            Refused::Error(error) => error,
            // Not with `DropOldest`.
            Refused::Full(_) => SendDatagramError::TooLarge,
        })
    }

    /// Sends a datagram, waiting for room in the queue.
    ///
    /// # Errors
    /// See [`SendDatagramError`].
    pub async fn send_datagram_wait(&self, data: Bytes) -> Result<(), SendDatagramError> {
        let mut waiting = Some(data);
        until(&self.shared.notifies.datagram_room, || {
            let data = waiting.take()?;
            match self.queue_datagram(data, Overflow::Refuse) {
                Ok(()) => Some(Ok(())),
                Err(Refused::Error(error)) => Some(Err(error)),
                Err(Refused::Full(data)) => {
                    waiting = Some(data);
                    None
                }
            }
        })
        .await
    }

    fn queue_datagram(&self, data: Bytes, overflow: Overflow) -> Result<(), Refused> {
        let mut state = self.shared.lock();
        state.check().map_err(|error| Refused::Error(error.into()))?;
        let result = state.engine.datagrams().send(data, overflow);
        state.wake_driver();
        result.map_err(|error| match error {
            engine::SendDatagramError::UnsupportedByPeer => Refused::Error(SendDatagramError::UnsupportedByPeer),
            engine::SendDatagramError::TooLarge => Refused::Error(SendDatagramError::TooLarge),
            engine::SendDatagramError::Blocked(data) => Refused::Full(data),
        })
    }

    /// The next datagram of the peer.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn read_datagram(&self) -> Result<Bytes, ConnectionError> {
        until(&self.shared.notifies.datagram, || {
            let mut state = self.shared.lock();
            match state.engine.datagrams().recv() {
                Some(data) => Some(Ok(data)),
                None => state.check().err().map(Err),
            }
        })
        .await
    }

    /// The largest datagram that fits every open path now, bytes; none when the peer takes none.
    pub fn max_datagram_size(&self) -> Option<usize> {
        self.shared.lock().engine.datagrams().max_size()
    }

    /// Bytes of datagrams that can be queued now without dropping older ones.
    pub fn datagram_send_buffer_space(&self) -> usize {
        self.shared.lock().engine.datagrams().send_buffer_room()
    }
}

/// A datagram that was not queued.
enum Refused {
    Error(SendDatagramError),
    Full(Bytes),
}
