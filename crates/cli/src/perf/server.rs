//! The server's side: takes what is sent and sends what is asked for, on every stream of a connection.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use plait::Connection;

use super::cpu::cpu_seconds;
use super::datagrams::{DatagramReport, DatagramTally};
use super::head::{Head, Question};
use super::pipe::{Opening, PipeError, PipeReader, PipeWriter};
use super::question::{MAX_QUESTION_BYTES, ServerReport};
use super::tcp::TakenOn;
use super::{OURS, code};
use crate::http::policies::{Desk, Terms, Wish};
use crate::patience::{Debt, Patience};
use crate::pattern::Pattern;
use crate::service::Receiver;

/// What a server is set to.
#[derive(Clone, Debug)]
pub(crate) struct PerfServer {
    pattern: Pattern,
    patience: Duration,
    terms: Terms,
    receiver: Receiver,
}

/// One connection, and what is known of it.
#[derive(Debug)]
struct Visitor {
    connection: Connection,
    /// Answers what it may say about how we send; nobody answers in plain `perf`.
    desk: Option<Desk>,
    receiver: Receiver,
    /// Streams that are being answered.
    streams: AtomicUsize,
    /// Bytes that we took.
    taken: AtomicU64,
    datagrams: Mutex<DatagramTally>,
}

impl Visitor {
    fn standing(&self) -> Debt {
        match self.streams.load(Ordering::Relaxed) {
            0 => Debt::Idle,
            _ => Debt::Owed(self.connection.stats().stream_bytes_acked + self.taken.load(Ordering::Relaxed)),
        }
    }

    /// The answer to `question`, which came with these words; none where it is refused.
    fn answer(&self, question: Question, words: &[u8]) -> Option<Bytes> {
        let desk = self.desk.as_ref()?;
        match question {
            Question::Policies => {
                let wish = Wish::parse(std::str::from_utf8(words).ok()?)?;
                desk.answer(&wish).ok().map(Bytes::from)
            }
            Question::Report => {
                let datagrams = self.datagrams.lock().unwrap_or_else(PoisonError::into_inner).report();
                report(datagrams, self.receiver, None)
            }
        }
    }
}

/// Who it is that asks.
#[derive(Clone, Copy)]
enum Party<'a> {
    /// On a stream of this connection.
    Quic(&'a Visitor),
    /// On a connection of its own, which has moved so many bytes, and on which the kernel sends by this controller.
    Tcp(&'a AtomicU64, Option<&'a str>),
}

impl Party<'_> {
    fn on_taken(self, bytes: usize) {
        let count = match self {
            Self::Quic(client) => &client.taken,
            Self::Tcp(moved, _) => moved,
        };
        count.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// The client took as much: QUIC tells that by acknowledgements.
    fn on_given(self, bytes: usize) {
        if let Self::Tcp(moved, _) = self {
            moved.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    /// The answer to `question`, which came with these words; none where it is refused.
    fn answer(self, question: Question, words: &[u8]) -> Option<Bytes> {
        match (self, question) {
            (Self::Quic(client), _) => client.answer(question, words),
            (Self::Tcp(_, congestion), Question::Report) => {
                report(DatagramReport::default(), Receiver::Reads, congestion)
            }
            (Self::Tcp(..), Question::Policies) => None,
        }
    }
}

fn report(datagrams: DatagramReport, receiver: Receiver, congestion: Option<&str>) -> Option<Bytes> {
    let (null_receiver, congestion) = (receiver == Receiver::Counts, congestion.map(str::to_owned));
    let report = ServerReport { cpu_seconds: cpu_seconds(), datagrams, null_receiver, congestion };
    serde_json::to_vec(&report).ok().map(Bytes::from)
}

/// What may follow a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    Another,
    Nothing,
}

impl PerfServer {
    /// Gives up clients that take nothing of what they asked for, for so long.
    pub(crate) fn new(terms: Terms, patience: Duration, receiver: Receiver) -> Self {
        Self { pattern: Pattern::new(), patience, terms, receiver }
    }

    /// Answers every stream until the connection ends.
    pub(crate) async fn serve(self: Arc<Self>, connection: Connection) {
        let is_ours = connection.handshake_data().alpn.is_some_and(|alpn| alpn == OURS.as_bytes());
        let client = Arc::new(Visitor {
            desk: is_ours.then(|| Desk::new(connection.clone(), self.terms)),
            connection: connection.clone(),
            receiver: self.receiver,
            streams: AtomicUsize::new(0),
            taken: AtomicU64::new(0),
            datagrams: Mutex::new(DatagramTally::new()),
        });
        let mut patience = Patience::new(self.patience);
        loop {
            let (writer, reader) = tokio::select! {
                accepted = connection.accept_bi() => match accepted {
                    Ok((send, recv)) => (Some(PipeWriter::Quic(send)), PipeReader::Quic(recv)),
                    Err(_) => return,
                },
                accepted = connection.accept_uni() => match accepted {
                    Ok(recv) => (None, PipeReader::Quic(recv)),
                    Err(_) => return,
                },
                datagram = connection.read_datagram() => {
                    if let Ok(datagram) = datagram {
                        client.datagrams.lock().unwrap_or_else(PoisonError::into_inner).on_datagram(&datagram);
                    }
                    continue;
                }
                () = patience.next() => {
                    if patience.has_run_out(client.standing()) {
                        tracing::info!(remote = %connection.remote_address(), "given up: it takes nothing");
                        connection.close(code::STALLED, b"you take nothing of what you asked for");
                    }
                    continue;
                }
            };
            client.streams.fetch_add(1, Ordering::Relaxed);
            let (server, client) = (Arc::clone(&self), Arc::clone(&client));
            let stream = async move {
                server.on_stream(&client, writer, reader).await;
                client.streams.fetch_sub(1, Ordering::Relaxed);
            };
            // Where the client may open further paths, threads are to serve those, and the load keeps off them.
            if connection.is_multipath() {
                tokio::spawn(stream);
            } else {
                connection.spawn(stream);
            }
        }
    }

    /// Answers one stream, one that came without a way back on a stream of our own.
    async fn on_stream(&self, client: &Visitor, writer: Option<PipeWriter>, mut reader: PipeReader) {
        let mut writer = match writer {
            Some(writer) => writer,
            None => match client.connection.open_uni().await {
                Ok(send) => PipeWriter::Quic(send),
                Err(_) => return,
            },
        };
        let remote = client.connection.remote_address();
        if let Err(why) = self.answer(&mut writer, &mut reader, Party::Quic(client)).await {
            tracing::debug!(%remote, "{why}");
            writer.reset(code::BAD_REQUEST);
            reader.stop(code::BAD_REQUEST);
        }
    }

    /// Answers one request after the other on a connection of TCP, where nobody waits for one longer than patience lasts.
    pub(crate) async fn serve_tcp(self: Arc<Self>, taken_on: TakenOn) {
        let TakenOn { mut writer, mut reader, congestion } = taken_on;
        let taken = AtomicU64::new(0);
        let mut patience = Patience::new(self.patience);
        let answering = async {
            while self.answer(&mut writer, &mut reader, Party::Tcp(&taken, congestion.as_deref())).await?
                == After::Another
            {}
            Ok::<_, PipeError>(())
        };
        let mut answering = std::pin::pin!(answering);
        loop {
            tokio::select! {
                done = &mut answering => {
                    if let Err(why) = done {
                        tracing::debug!("{why}");
                    }
                    return;
                }
                () = patience.next() => {
                    if patience.has_run_out(Debt::Owed(taken.load(Ordering::Relaxed))) {
                        tracing::info!("given up: it takes nothing");
                        return;
                    }
                }
            }
        }
    }

    /// Reads a request to its end and gives what it asks for; what may come after it.
    async fn answer(
        &self,
        writer: &mut PipeWriter,
        reader: &mut PipeReader,
        party: Party<'_>,
    ) -> Result<After, PipeError> {
        let Some(Opening { number, len }) = reader.read_opening().await? else { return Ok(After::Nothing) };
        let unknown = PipeError::Unknown(number);
        match Head::from_number(number) {
            Some(Head::Bytes(bytes)) => {
                reader.take(len, |bytes| party.on_taken(bytes)).await?;
                self.send(writer, bytes, party).await?;
            }
            Some(Head::Question(question)) => {
                let words = read_words(reader).await?;
                writer.write_all(party.answer(question, &words).ok_or(unknown)?).await?;
            }
            None => return Err(unknown),
        }
        match len {
            Some(_) => writer.end_one().await.map(|()| After::Another),
            None => writer.finish().await.map(|()| After::Nothing),
        }
    }

    async fn send(&self, writer: &mut PipeWriter, len: u64, party: Party<'_>) -> Result<(), PipeError> {
        let mut offset = 0;
        while offset < len {
            let piece = self.pattern.piece(offset, len);
            offset += piece.len() as u64;
            let bytes = piece.len();
            writer.write_all(piece).await?;
            party.on_given(bytes);
        }
        Ok(())
    }
}

/// What follows the head of a question, to the end of its stream.
async fn read_words(reader: &mut PipeReader) -> Result<Vec<u8>, PipeError> {
    let mut words = Vec::new();
    while let Some(piece) = reader.read().await? {
        words.extend_from_slice(&piece);
        if words.len() > MAX_QUESTION_BYTES {
            return Err(PipeError::Gone(format!("a question of more than {MAX_QUESTION_BYTES} bytes")));
        }
    }
    Ok(words)
}
