//! The server's side: answers each stream of a connection from a folder or with a synthetic body.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use plait::{Connection, Order, RecvStream, SendStream};
use tokio::io::AsyncReadExt;

use super::body::Pattern;
use super::request::Request;
use super::root::Root;
use super::{MAX_REQUEST_BYTES, Refusal};

/// How long a client may take over its request line.
const REQUEST_TIME: Duration = Duration::from_secs(30);
/// Largest piece read or written at once, bytes.
const PIECE_BYTES: usize = 256 * 1024;

/// What a server has to offer.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    root: Option<Root>,
    pattern: Pattern,
}

/// Why a stream was not answered to its end.
enum Unanswered {
    /// We refuse.
    Refused(Refusal),
    /// The client or the connection went away.
    Gone(String),
}

impl From<Refusal> for Unanswered {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

fn gone(error: impl std::fmt::Display) -> Unanswered {
    Unanswered::Gone(error.to_string())
}

impl Site {
    /// Files below `root`, if there is one, and synthetic bodies.
    pub(crate) fn new(root: Option<Root>) -> Self {
        Self { root, pattern: Pattern::new() }
    }

    /// Answers every stream until the connection ends.
    pub(crate) async fn serve(self: Arc<Self>, connection: Connection) {
        while let Ok((send, recv)) = connection.accept_bi().await {
            let site = Arc::clone(&self);
            let remote = connection.remote_address();
            tokio::spawn(async move {
                match site.answer(send, recv).await {
                    Ok((line, bytes)) => tracing::info!(%remote, bytes, "{line}"),
                    Err(why) => tracing::info!(%remote, "{why}"),
                }
            });
        }
    }

    /// Answers one stream; says what was asked and how many bytes went, or why not.
    async fn answer(&self, mut send: SendStream, mut recv: RecvStream) -> Result<(String, u64), String> {
        let head = match tokio::time::timeout(REQUEST_TIME, read_head(&mut recv)).await {
            Ok(head) => head,
            Err(_) => Err(Refusal::BadRequest.into()),
        };
        let (line, result) = match head {
            Ok((line, rest)) => {
                let shown = String::from_utf8_lossy(&line).into_owned();
                (shown, self.reply(&line, rest, &mut send, &mut recv).await)
            }
            Err(why) => (String::new(), Err(why)),
        };
        match result {
            Ok(bytes) => Ok((line, bytes)),
            Err(Unanswered::Refused(refusal)) => {
                let _ = send.reset(refusal.code());
                let _ = recv.stop(refusal.code());
                Err(format!("{line:?} refused with {}", refusal.code()))
            }
            Err(Unanswered::Gone(why)) => Err(format!("{line:?} broken off: {why}")),
        }
    }

    async fn reply(
        &self,
        line: &[u8],
        rest: Bytes,
        send: &mut SendStream,
        recv: &mut RecvStream,
    ) -> Result<u64, Unanswered> {
        let bytes = match Request::parse(line).ok_or(Refusal::BadRequest)? {
            Request::Synthetic(len) => self.send_pattern(len, send).await?,
            Request::File(names) => {
                let root = self.root.as_ref().ok_or(Refusal::NotFound)?;
                send_file(&root.find(&names)?, send).await?
            }
            Request::Sink => {
                let bytes = swallow(rest, recv).await?;
                send.write_all(format!("{bytes}\n").as_bytes()).await.map_err(gone)?;
                bytes
            }
        };
        send.finish().map_err(gone)?;
        Ok(bytes)
    }

    async fn send_pattern(&self, len: u64, send: &mut SendStream) -> Result<u64, Unanswered> {
        let mut offset = 0;
        while offset < len {
            let piece = self.pattern.piece(offset, len);
            offset += piece.len() as u64;
            send.write_chunk(piece).await.map_err(gone)?;
        }
        Ok(len)
    }
}

/// The request line without its end, and what came after it.
async fn read_head(recv: &mut RecvStream) -> Result<(Bytes, Bytes), Unanswered> {
    let mut head = BytesMut::new();
    loop {
        if let Some(at) = head.iter().position(|byte| *byte == b'\n') {
            let mut line = head.split_to(at + 1);
            line.truncate(at);
            if line.last() == Some(&b'\r') {
                line.truncate(at - 1);
            }
            return Ok((line.freeze(), head.freeze()));
        }
        if head.len() >= MAX_REQUEST_BYTES {
            return Err(Refusal::BadRequest.into());
        }
        match recv.read_chunk(PIECE_BYTES, Order::Ordered).await.map_err(gone)? {
            Some(chunk) => head.extend_from_slice(&chunk.bytes),
            // Some clients end the stream in place of the line.
            None => return Ok((head.freeze(), Bytes::new())),
        }
    }
}

/// Sends the file as long as it was when it was opened. HTTP/0.9 names no length: where the file has become shorter,
/// the reset that follows is all that tells the client.
async fn send_file(path: &Path, send: &mut SendStream) -> Result<u64, Unanswered> {
    let mut file = tokio::fs::File::open(path).await.map_err(|_| Refusal::NotFound)?;
    let len = file.metadata().await.map_err(|_| Refusal::Broken)?.len();
    let mut left = len;
    while left > 0 {
        let mut piece = BytesMut::with_capacity(PIECE_BYTES);
        let size = (&mut file).take(left).read_buf(&mut piece).await.map_err(|_| Refusal::Broken)?;
        if size == 0 {
            return Err(Refusal::Broken.into());
        }
        left -= size as u64;
        send.write_chunk(piece.freeze()).await.map_err(gone)?;
    }
    Ok(len)
}

/// Reads an upload to its end and counts it.
async fn swallow(rest: Bytes, recv: &mut RecvStream) -> Result<u64, Unanswered> {
    let mut bytes = rest.len() as u64;
    while let Some(chunk) = recv.read_chunk(PIECE_BYTES, Order::Ordered).await.map_err(gone)? {
        bytes += chunk.bytes.len() as u64;
    }
    Ok(bytes)
}
