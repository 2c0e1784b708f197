//! The server's side: answers each stream of a connection from a folder or with a synthetic body.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use plait::{Connection, Order, RecvStream, SendStream};
use tokio::sync::Mutex;

use super::budget::{Budget, Share};
use super::file::FileSource;
use super::policies::{Desk, Terms};
use super::request::Request;
use super::root::Root;
use super::{MAX_REQUEST_BYTES, Refusal};
use crate::patience::{Debt, Patience};
use crate::pattern::Pattern;

/// How long a client may take over its request line.
const REQUEST_TIME: Duration = Duration::from_secs(30);
/// Largest chunk read from a client at once, bytes.
const CHUNK_BYTES: usize = 256 * 1024;
/// How long a client may take nothing of what it asked for, unless something else is said.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// What a server has to offer.
#[derive(Clone, Debug)]
pub(crate) struct FileServer {
    root: Option<Root>,
    pattern: Pattern,
    budget: Arc<Budget>,
    patience: Duration,
    terms: Terms,
}

/// One connection, and what it costs.
#[derive(Debug)]
struct Client {
    connection: Connection,
    share: Arc<Share>,
    /// What it may say about how we send.
    desk: Desk,
    /// Held by the request that reads a piece: one at a time, in the order of asking.
    turn: Mutex<()>,
    /// Requests that are being answered.
    requests: AtomicUsize,
    /// Bytes of uploads that we took.
    swallowed: AtomicU64,
}

impl Client {
    fn standing(&self) -> Debt {
        // It costs more than its connection.
        let is_busy = self.requests.load(Ordering::Relaxed) > 0 || self.share.held() > 0;
        match is_busy {
            true => Debt::Owed(self.connection.stats().stream_bytes_acked + self.swallowed.load(Ordering::Relaxed)),
            false => Debt::Idle,
        }
    }

    fn cwnd(&self) -> u64 {
        self.connection.stats().paths.iter().map(|path| path.cwnd_bytes).sum()
    }
}

/// Counts a request while it is answered.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Why a stream was not answered to its end.
enum Unanswered {
    /// The request is refused, with the reason.
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

impl FileServer {
    /// Files below `root`, if there is one, and synthetic bodies; sent by policies that are open to wishes, or not.
    pub(crate) fn new(root: Option<Root>, terms: Terms) -> Self {
        Self { root, pattern: Pattern::new(), budget: Budget::new(), patience: PATIENCE, terms }
    }

    /// Gives up clients that take nothing of what they asked for, for so long.
    pub(crate) fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Answers every stream until the connection ends.
    pub(crate) async fn serve(self: Arc<Self>, connection: Connection) {
        let client = Arc::new(Client {
            connection: connection.clone(),
            share: Share::new(&self.budget),
            desk: Desk::new(connection.clone(), self.terms),
            turn: Mutex::new(()),
            requests: AtomicUsize::new(0),
            swallowed: AtomicU64::new(0),
        });
        let mut patience = Patience::new(self.patience);
        loop {
            let accepted = tokio::select! {
                accepted = connection.accept_bi() => accepted,
                () = patience.next() => {
                    if patience.has_run_out(client.standing()) {
                        tracing::info!(remote = %connection.remote_address(), "given up: it takes nothing");
                        connection.close(Refusal::Stalled.code(), b"you take nothing of what you asked for");
                    }
                    continue;
                }
            };
            let Ok((send, recv)) = accepted else { return };
            let (site, client) = (Arc::clone(&self), Arc::clone(&client));
            tokio::spawn(async move {
                let remote = client.connection.remote_address();
                match site.answer(&client, send, recv).await {
                    Ok((line, bytes)) => tracing::info!(%remote, bytes, "{line}"),
                    Err(why) => tracing::info!(%remote, "{why}"),
                }
            });
        }
    }

    /// Answers one stream; says what was asked and how many bytes went, or why not.
    async fn answer(
        &self,
        client: &Client,
        mut send: SendStream,
        mut recv: RecvStream,
    ) -> Result<(String, u64), String> {
        let head = match tokio::time::timeout(REQUEST_TIME, read_head(&mut recv)).await {
            Ok(head) => head,
            Err(_) => Err(Refusal::BadRequest.into()),
        };
        let (line, result) = match head {
            Ok((line, rest)) => {
                let shown = String::from_utf8_lossy(&line).into_owned();
                let _counted = Counted::new(&client.requests);
                (shown, self.reply(client, (&line, rest), &mut send, &mut recv).await)
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
        client: &Client,
        (line, rest): (&[u8], Bytes),
        send: &mut SendStream,
        recv: &mut RecvStream,
    ) -> Result<u64, Unanswered> {
        // A request that was stopped before it began costs no look at any file.
        room_now(send).await?;
        let bytes = match Request::parse(line).ok_or(Refusal::BadRequest)? {
            Request::Synthetic(len) => self.send_pattern(len, send).await?,
            Request::File(names) => {
                let root = self.root.as_ref().ok_or(Refusal::NotFound)?;
                self.send_file(client, FileSource::find(root, &names)?, send).await?
            }
            Request::Policies(wish) => {
                let answer = client.desk.answer(&wish)?;
                send.write_all(answer.as_bytes()).await.map_err(gone)?;
                answer.len() as u64
            }
            Request::Sink => {
                let bytes = swallow(client, rest, recv).await?;
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

    /// Sends the file as long as it was when it was found. HTTP/0.9 names no length: where the file has become shorter,
    /// the reset that follows is all that tells the client.
    ///
    /// A piece is read when the client gives room for it and may hold it, and not before.
    async fn send_file(&self, client: &Client, source: FileSource, send: &mut SendStream) -> Result<u64, Unanswered> {
        let mut offset = 0;
        while offset < source.len() {
            send.room().await.map_err(gone)?;
            let _turn = client.turn.lock().await;
            // Others may have filled it while this one waited for its turn.
            let Some(room) = room_now(send).await? else { continue };
            let charge = client.share.charge(room.min(source.len() - offset), || client.cwnd()).await;
            let (bytes, source) = (charge.bytes(), source.clone());
            let reader = self.budget.reader().await;
            let read = tokio::task::spawn_blocking(move || source.read(offset, bytes)).await;
            drop(reader);
            let piece = read.map_err(|_| Refusal::Broken)??;
            offset += bytes;
            send.write_chunk(charge.piece(piece)).await.map_err(gone)?;
        }
        Ok(source.len())
    }
}

/// What the stream takes now; none when that is nothing.
async fn room_now(send: &mut SendStream) -> Result<Option<u64>, Unanswered> {
    tokio::select! {
        biased;
        room = send.room() => room.map(Some).map_err(gone),
        () = std::future::ready(()) => Ok(None),
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
        match recv.read_chunk(CHUNK_BYTES, Order::Ordered).await.map_err(gone)? {
            Some(chunk) => head.extend_from_slice(&chunk.bytes),
            // Some clients end the stream in place of the line.
            None => return Ok((head.freeze(), Bytes::new())),
        }
    }
}

/// Reads an upload to its end and counts it.
async fn swallow(client: &Client, rest: Bytes, recv: &mut RecvStream) -> Result<u64, Unanswered> {
    let mut bytes = rest.len() as u64;
    while let Some(chunk) = recv.read_chunk(CHUNK_BYTES, Order::Ordered).await.map_err(gone)? {
        bytes += chunk.bytes.len() as u64;
        client.swallowed.fetch_add(chunk.bytes.len() as u64, Ordering::Relaxed);
    }
    Ok(bytes)
}
