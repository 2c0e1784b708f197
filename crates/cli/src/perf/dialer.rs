//! Where streams come from: a QUIC connection or several, or as many of TCP as there are streams.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use plait::Connection;

use super::OURS;
use super::head::Head;
use super::pipe::{PipeError, PipeReader, PipeWriter};
use super::tcp::TcpDialer;

/// Time from the end of a load until the server is asked whether it is still there, and between two such questions.
const LATE: Duration = Duration::from_secs(1);

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

    /// A round trip: the smoothed one of QUIC, half of the first handshake over TCP.
    pub(crate) fn rtt(&self) -> Duration {
        match self {
            Self::Quic(shards) => shards.first.rtt(),
            Self::Tcp(dialer) => dialer.handshake_time() / 2,
        }
    }

    /// The QUIC connections; none over TCP.
    pub(crate) fn connections(&self) -> impl Iterator<Item = &Connection> {
        let shards = match self {
            Self::Quic(shards) => Some(shards),
            Self::Tcp(_) => None,
        };
        shards.into_iter().flat_map(|shards| shards.all())
    }

    /// Whether the server answers within `patience`: the smallest request, or any sign of life meanwhile.
    pub(crate) async fn answers(&self, patience: Duration) -> bool {
        let heard = || self.connections().map(|connection| connection.stats().received_bytes).sum::<u64>();
        let before = heard();
        let asking = async {
            match self {
                // The last step of its handshake is the server's.
                Self::Tcp(dialer) => dialer.connect().await.is_ok(),
                Self::Quic(_) => self.ask_for_nothing().await.is_ok(),
            }
        };
        tokio::time::timeout(patience, asking).await.unwrap_or(false) || heard() > before
    }

    async fn ask_for_nothing(&self) -> Result<(), PipeError> {
        let (mut writer, mut reader) = self.open().await?;
        writer.begin(Head::Bytes(0), Some(0)).await?;
        writer.end_one().await?;
        reader.take_answer(0, |_| {}).await
    }

    /// Ends when the server is silent for `patience` after a load of `time` should have ended; never where no time ends it.
    pub(crate) async fn silence(&self, time: Option<Duration>, patience: Duration) {
        let Some(time) = time else { return std::future::pending().await };
        tokio::time::sleep(time + LATE).await;
        while self.answers(patience).await {
            tokio::time::sleep(LATE).await;
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
