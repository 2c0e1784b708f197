//! Where streams come from: a QUIC connection or several, or as many of TCP as there are streams.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use plait::Connection;

use super::OURS;
use super::pipe::{PipeError, PipeReader, PipeWriter};
use super::tcp::TcpDialer;

/// A server that is connected, or can be.
#[derive(Clone)]
pub(crate) enum Dialer {
    Quic(Arc<Shards>),
    Tcp(TcpDialer),
}

/// Connections that streams are dealt to in turns.
pub(crate) struct Shards {
    first: Connection,
    others: Vec<Connection>,
    next: AtomicUsize,
}

impl Shards {
    pub(crate) fn new(first: Connection, others: Vec<Connection>) -> Arc<Self> {
        Arc::new(Self { first, others, next: AtomicUsize::new(0) })
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Connection> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// The connection of the next stream.
    fn next(&self) -> &Connection {
        let turn = self.next.fetch_add(1, Ordering::Relaxed) % (self.others.len() + 1);
        self.all().nth(turn).unwrap_or(&self.first)
    }
}

impl Dialer {
    /// A new stream both ways.
    pub(crate) async fn open(&self) -> Result<(PipeWriter, PipeReader), PipeError> {
        match self {
            Self::Quic(shards) => {
                let opened = shards.next().open_bi().await;
                let (send, recv) = opened.map_err(|error| PipeError::Gone(error.to_string()))?;
                Ok((PipeWriter::Quic(send), PipeReader::Quic(recv)))
            }
            Self::Tcp(dialer) => dialer.open().await.map_err(|error| PipeError::Gone(error.to_string())),
        }
    }

    /// The QUIC connection, the first of several.
    pub(crate) fn connection(&self) -> Option<&Connection> {
        match self {
            Self::Quic(shards) => Some(&shards.first),
            Self::Tcp(_) => None,
        }
    }

    /// Whether the server speaks our form of the protocol: nobody else's is spoken over TCP.
    pub(crate) fn knows_questions(&self) -> bool {
        let of_quic =
            |connection: &Connection| connection.handshake_data().alpn.is_some_and(|alpn| alpn == OURS.as_bytes());
        self.connection().is_none_or(of_quic)
    }

    /// Bytes of streams that the server has, as its acknowledgements say; none over TCP, which does not tell.
    pub(crate) fn delivered(&self) -> Option<u64> {
        match self {
            Self::Quic(shards) => Some(shards.all().map(|connection| connection.stats().stream_bytes_acked).sum()),
            Self::Tcp(_) => None,
        }
    }
}
