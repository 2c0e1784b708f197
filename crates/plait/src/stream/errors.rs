//! How calls on streams fail.

use std::io;

use plait_engine::connection::ConnectionError;

/// Why nothing was written.
///
/// ```
/// # mod support { include!("../../doc/pair.in"); }
/// # use support::*;
/// # run(async {
/// # let (client, server) = pair().await;
/// let mut send = client.open_uni().await?;
/// send.write_all(b"request").await?;
/// server.accept_uni().await?.stop(7)?;
/// // Writes go on until the peer's word is here.
/// let error = loop {
///     match send.write(&[0; 1000]).await {
///         Ok(_) => tokio::task::yield_now().await,
///         Err(error) => break error,
///     }
/// };
/// assert_eq!(error, plait::WriteError::Stopped(7));
/// # Ok(())
/// # });
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The peer wants no more of this stream.
    #[error("stopped by the peer with code {0}")]
    Stopped(u64),
    /// The connection is over.
    #[error("connection lost: {0}")]
    ConnectionLost(#[from] ConnectionError),
    /// The stream was finished or reset.
    #[error("stream is closed")]
    ClosedStream,
    /// The stream began in 0-RTT, which the server refused: open it again.
    #[error("0-RTT was refused")]
    ZeroRttRejected,
}

/// Why nothing was read.
///
/// ```
/// # mod support { include!("../../doc/pair.in"); }
/// # use support::*;
/// # run(async {
/// # let (client, server) = pair().await;
/// let mut send = client.open_uni().await?;
/// send.write_all(b"half of").await?;
/// let mut recv = server.accept_uni().await?;
/// send.reset(9)?;
/// let error = loop {
///     match recv.read(&mut [0; 100]).await {
///         Ok(read) => assert_eq!(read, Some(7)),
///         Err(error) => break error,
///     }
/// };
/// assert_eq!(error, plait::ReadError::Reset(9));
/// # Ok(())
/// # });
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The peer abandoned the stream.
    #[error("reset by the peer with code {0}")]
    Reset(u64),
    /// The connection is over.
    #[error("connection lost: {0}")]
    ConnectionLost(#[from] ConnectionError),
    /// The stream was stopped.
    #[error("stream is closed")]
    ClosedStream,
    /// An ordered read after an unordered one.
    #[error("ordered read after an unordered read")]
    IllegalOrderedRead,
    /// The stream began in 0-RTT, which the server refused: open it again.
    #[error("0-RTT was refused")]
    ZeroRttRejected,
}

/// Why [`super::RecvStream::read_exact`] did not fill its buffer.
///
/// ```
/// # mod support { include!("../../doc/pair.in"); }
/// # use support::*;
/// # run(async {
/// # let (client, server) = pair().await;
/// let mut send = client.open_uni().await?;
/// send.write_all(b"four").await?;
/// send.finish()?;
/// let error = server.accept_uni().await?.read_exact(&mut [0; 5]).await.unwrap_err();
/// assert_eq!(error, plait::ReadExactError::FinishedEarly(4));
/// # Ok(())
/// # });
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadExactError {
    /// The stream ended after so many bytes.
    #[error("stream ended after {0} bytes")]
    FinishedEarly(usize),
    /// A read failed.
    #[error(transparent)]
    ReadError(#[from] ReadError),
}

/// Why [`super::RecvStream::read_to_end`] gave nothing.
///
/// ```
/// # mod support { include!("../../doc/pair.in"); }
/// # use support::*;
/// # run(async {
/// # let (client, server) = pair().await;
/// let mut send = client.open_uni().await?;
/// send.write_all(&[0; 1000]).await?;
/// send.finish()?;
/// let error = server.accept_uni().await?.read_to_end(999).await.unwrap_err();
/// assert_eq!(error, plait::ReadToEndError::TooLong);
/// # Ok(())
/// # });
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadToEndError {
    /// The stream is longer than the limit.
    #[error("stream is longer than the limit")]
    TooLong,
    /// A read failed.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Why it is not known whether the peer takes the stream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoppedError {
    /// The connection is over.
    #[error("connection lost: {0}")]
    ConnectionLost(#[from] ConnectionError),
    /// The stream began in 0-RTT, which the server refused.
    #[error("0-RTT was refused")]
    ZeroRttRejected,
}

/// Why it is not known whether the peer abandons the stream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResetError {
    /// The connection is over.
    #[error("connection lost: {0}")]
    ConnectionLost(#[from] ConnectionError),
    /// The stream began in 0-RTT, which the server refused.
    #[error("0-RTT was refused")]
    ZeroRttRejected,
}

impl From<WriteError> for io::Error {
    fn from(error: WriteError) -> Self {
        let kind = match error {
            WriteError::Stopped(_) | WriteError::ZeroRttRejected => io::ErrorKind::ConnectionReset,
            WriteError::ConnectionLost(_) | WriteError::ClosedStream => io::ErrorKind::NotConnected,
        };
        Self::new(kind, error)
    }
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        let kind = match error {
            ReadError::Reset(_) | ReadError::ZeroRttRejected => io::ErrorKind::ConnectionReset,
            ReadError::ConnectionLost(_) | ReadError::ClosedStream => io::ErrorKind::NotConnected,
            ReadError::IllegalOrderedRead => io::ErrorKind::InvalidInput,
        };
        Self::new(kind, error)
    }
}
