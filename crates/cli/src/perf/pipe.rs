//! A stream both ways, over either carrier.
//!
//! A connection of TCP carries one request after the other, so that each names its length behind the head, eight bytes that
//! a stream of QUIC does not have; [`UNTIL_END`] where it ends with the connection.

use std::fmt;
use std::io;
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use plait::{Order, ReadError, RecvStream, SendStream};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::head::Head;
use super::{HEAD_BYTES, PIECE_BYTES};

/// Largest piece read from a connection of TCP at once, bytes: four records of TLS.
const READ_BYTES: usize = 64 * 1024;
/// Pieces of a stream that are received and forgotten at once: those of a batch of datagrams.
const PIECES_AT_ONCE: usize = 48;
/// In place of a length.
const UNTIL_END: u64 = u64::MAX;

/// Either end of a TLS connection over TCP, boxed: its types differ on the two sides.
pub(crate) type TlsWriter = Box<dyn AsyncWrite + Send + Unpin>;
pub(crate) type TlsReader = Box<dyn AsyncRead + Send + Unpin>;

/// Why a stream ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PipeError {
    /// The peer gave it up with this code.
    Refused(u64),
    /// It began with fewer bytes than a request has.
    Short,
    /// It began with a number that asks for nothing that we have.
    Unknown(u64),
    /// The peer fell silent.
    Silent,
    /// The connection is over, or something else happened.
    Gone(String),
}

impl PipeError {
    fn from_read(error: ReadError) -> Self {
        match error {
            ReadError::Reset(code) => Self::Refused(code),
            error => gone(error),
        }
    }
}

impl fmt::Display for PipeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(code) => write!(f, "the peer gave the stream up with code {code}"),
            Self::Short => write!(f, "the stream began with less than {HEAD_BYTES} bytes"),
            Self::Unknown(number) => write!(f, "the stream began with {number:#x}, which asks for nothing here"),
            Self::Silent => f.write_str("the server answers no more"),
            Self::Gone(why) => f.write_str(why),
        }
    }
}

fn gone(error: impl fmt::Display) -> PipeError {
    PipeError::Gone(error.to_string())
}

/// A connection of the kernel that broke.
fn broken(error: io::Error) -> PipeError {
    PipeError::Gone(plain(&error))
}

/// What happened to a connection of TCP, in plain words.
pub(crate) fn plain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "the peer closed the connection before its end".to_owned(),
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => "the peer reset the connection".to_owned(),
        io::ErrorKind::ConnectionRefused => "nobody listens there (connection refused)".to_owned(),
        io::ErrorKind::TimedOut => "no answer".to_owned(),
        _ => error.to_string(),
    }
}

/// What we send.
pub(crate) enum PipeWriter {
    /// On a QUIC stream.
    Quic(SendStream),
    /// On a TCP connection.
    Tls(TlsWriter),
}

impl PipeWriter {
    /// Takes a part of `piece` from its front. Nothing is lost where this is given up.
    pub(crate) async fn write(&mut self, piece: &mut Bytes) -> Result<usize, PipeError> {
        match self {
            Self::Quic(stream) => {
                let written = stream.write_chunks(std::slice::from_mut(piece)).await.map_err(gone)?;
                Ok(written.bytes)
            }
            Self::Tls(stream) => stream.write_buf(piece).await.map_err(broken),
        }
    }

    /// Writes all of it.
    pub(crate) async fn write_all(&mut self, piece: Bytes) -> Result<(), PipeError> {
        self.write_counted(piece, |_| {}).await
    }

    /// Writes all of it; `on_written` hears how many bytes each time.
    pub(crate) async fn write_counted(
        &mut self,
        mut piece: Bytes,
        mut on_written: impl FnMut(u64),
    ) -> Result<(), PipeError> {
        while !piece.is_empty() {
            on_written(self.write(&mut piece).await? as u64);
        }
        Ok(())
    }

    /// Begins a request; over TCP one of so many bytes after the head, or up to the end.
    pub(crate) async fn begin(&mut self, head: Head, len: Option<u64>) -> Result<(), PipeError> {
        self.write_all(head.bytes()).await?;
        if let Self::Tls(_) = self {
            let len = len.unwrap_or(UNTIL_END).to_be_bytes();
            self.write_all(Bytes::copy_from_slice(&len)).await?;
        }
        Ok(())
    }

    /// Ends a request or an answer that may have others behind it: a stream of QUIC carries no more than one.
    pub(crate) async fn end_one(&mut self) -> Result<(), PipeError> {
        match self {
            Self::Quic(stream) => stream.finish().map_err(gone),
            Self::Tls(stream) => stream.flush().await.map_err(broken),
        }
    }

    /// Says that nothing follows.
    pub(crate) async fn finish(&mut self) -> Result<(), PipeError> {
        match self {
            Self::Quic(stream) => stream.finish().map_err(gone),
            Self::Tls(stream) => stream.shutdown().await.map_err(broken),
        }
    }

    /// Gives it up; a TCP connection ends when it is dropped.
    pub(crate) fn reset(&mut self, code: u64) {
        if let Self::Quic(stream) = self {
            // One that is over needs no more.
            let _ = stream.reset(code);
        }
    }
}

/// What we receive.
pub(crate) enum PipeReader {
    /// On a QUIC stream.
    Quic(RecvStream),
    /// On a TCP connection.
    Tls(TlsReader, Waiting),
}

/// What a connection of TCP brought and nobody has read, in a buffer that is used again and again.
pub(crate) struct Waiting {
    bytes: Box<[u8]>,
    at: Range<usize>,
}

impl Default for Waiting {
    fn default() -> Self {
        Self { bytes: vec![0; READ_BYTES].into(), at: 0..0 }
    }
}

impl Waiting {
    /// Waits until there is something; false at the end.
    async fn fill(&mut self, stream: &mut TlsReader) -> Result<bool, PipeError> {
        if self.at.is_empty() {
            self.at = 0..stream.read(&mut self.bytes).await.map_err(broken)?;
        }
        Ok(!self.at.is_empty())
    }

    /// Takes so many bytes at most from the front.
    fn pass(&mut self, most: usize) -> &[u8] {
        let start = self.at.start;
        self.at.start += most.min(self.at.len());
        self.bytes.get(start..self.at.start).unwrap_or_default()
    }
}

/// What a request begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opening {
    /// The eight bytes that say what is wanted.
    pub(crate) number: u64,
    /// Bytes that follow; none where the end tells.
    pub(crate) len: Option<u64>,
}

impl PipeReader {
    /// A connection of TCP.
    pub(crate) fn tls(stream: TlsReader) -> Self {
        Self::Tls(stream, Waiting::default())
    }

    /// The next piece, of so many bytes at most; none at the end.
    async fn read_up_to(&mut self, most: usize) -> Result<Option<Bytes>, PipeError> {
        match self {
            Self::Quic(stream) => match stream.read_chunk(most.min(PIECE_BYTES), Order::Ordered).await {
                Ok(chunk) => Ok(chunk.map(|chunk| chunk.bytes)),
                Err(error) => Err(PipeError::from_read(error)),
            },
            Self::Tls(stream, waiting) => {
                Ok(waiting.fill(stream).await?.then(|| Bytes::copy_from_slice(waiting.pass(most))))
            }
        }
    }

    /// Receives what is there and forgets it: how long it was; none at the end.
    pub(crate) async fn receive_any(&mut self) -> Result<Option<usize>, PipeError> {
        match self {
            Self::Quic(stream) => {
                let mut pieces = [const { Bytes::new() }; PIECES_AT_ONCE];
                let count = stream.read_chunks(&mut pieces).await.map_err(PipeError::from_read)?;
                Ok(count.map(|count| pieces.iter().take(count).map(Bytes::len).sum()))
            }
            Self::Tls(..) => self.receive(u64::MAX).await,
        }
    }

    /// Receives the next piece, of so many bytes at most, and forgets it: how long it was; none at the end.
    async fn receive(&mut self, most: u64) -> Result<Option<usize>, PipeError> {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        match self {
            Self::Quic(_) => Ok(self.read_up_to(most).await?.map(|piece| piece.len())),
            Self::Tls(stream, waiting) => Ok(waiting.fill(stream).await?.then(|| waiting.pass(most).len())),
        }
    }

    /// The next piece; none at the end.
    pub(crate) async fn read(&mut self) -> Result<Option<Bytes>, PipeError> {
        self.read_up_to(PIECE_BYTES).await
    }

    /// Eight bytes as a number; none where the end comes first.
    async fn read_number(&mut self) -> Result<Option<u64>, PipeError> {
        let mut bytes = BytesMut::with_capacity(HEAD_BYTES);
        loop {
            if let Some((number, _)) = bytes.split_first_chunk::<HEAD_BYTES>() {
                return Ok(Some(u64::from_be_bytes(*number)));
            }
            match self.read_up_to(HEAD_BYTES - bytes.len()).await? {
                Some(piece) => bytes.extend_from_slice(&piece),
                None if bytes.is_empty() => return Ok(None),
                None => return Err(PipeError::Short),
            }
        }
    }

    /// What the next request begins with; none where there is none.
    pub(crate) async fn read_opening(&mut self) -> Result<Option<Opening>, PipeError> {
        let Some(number) = self.read_number().await? else { return Ok(None) };
        let len = match self {
            Self::Quic(_) => UNTIL_END,
            Self::Tls(..) => self.read_number().await?.ok_or(PipeError::Short)?,
        };
        Ok(Some(Opening { number, len: (len != UNTIL_END).then_some(len) }))
    }

    /// Reads `len` bytes, or all up to the end; `on_piece` hears how many bytes each piece has.
    pub(crate) async fn take(&mut self, len: Option<u64>, mut on_piece: impl FnMut(usize)) -> Result<(), PipeError> {
        let Some(mut left) = len else {
            while let Some(bytes) = self.receive_any().await? {
                on_piece(bytes);
            }
            return Ok(());
        };
        while left > 0 {
            match self.receive(left).await? {
                Some(bytes) => {
                    left -= bytes as u64;
                    on_piece(bytes);
                }
                None => return Err(PipeError::Gone(format!("{left} bytes are missing at its end"))),
            }
        }
        Ok(())
    }

    /// Reads an answer of `len` bytes, behind which nothing may be on a stream of QUIC.
    pub(crate) async fn take_answer(&mut self, len: u64, on_piece: impl FnMut(usize)) -> Result<(), PipeError> {
        self.take(Some(len), on_piece).await?;
        match self {
            Self::Tls(..) => Ok(()),
            Self::Quic(_) => match self.read().await? {
                None => Ok(()),
                Some(_) => Err(PipeError::Gone(format!("an answer had more than {len} bytes"))),
            },
        }
    }

    /// Wants no more; a TCP connection ends when it is dropped.
    pub(crate) fn stop(&mut self, code: u64) {
        if let Self::Quic(stream) = self {
            // One that is over needs no more.
            let _ = stream.stop(code);
        }
    }
}
