//! Where streams come from: one QUIC connection, or as many of TCP as there are streams.

use plait::Connection;

use super::OURS;
use super::pipe::{PipeError, PipeReader, PipeWriter};
use super::tcp::TcpDialer;

/// A server that is connected, or can be.
#[derive(Clone)]
pub(crate) enum Dialer {
    Quic(Connection),
    Tcp(TcpDialer),
}

impl Dialer {
    /// A new stream both ways.
    pub(crate) async fn open(&self) -> Result<(PipeWriter, PipeReader), PipeError> {
        match self {
            Self::Quic(connection) => {
                let opened = connection.open_bi().await;
                let (send, recv) = opened.map_err(|error| PipeError::Gone(error.to_string()))?;
                Ok((PipeWriter::Quic(send), PipeReader::Quic(recv)))
            }
            Self::Tcp(dialer) => dialer.open().await.map_err(|error| PipeError::Gone(error.to_string())),
        }
    }

    /// The QUIC connection.
    pub(crate) fn connection(&self) -> Option<&Connection> {
        match self {
            Self::Quic(connection) => Some(connection),
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
        self.connection().map(|connection| connection.stats().stream_bytes_acked)
    }
}
