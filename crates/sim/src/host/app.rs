//! Small applications over streams: what a simulated client asks for and how a simulated server answers.

use std::collections::BTreeMap;
use std::time::Duration;

use plait_base::{Dir, Instant, StreamId};
use plait_engine::connection::split::Coordinator;
use plait_engine::stream::{Order, ReadError, WriteError};

use super::pattern;

/// Bytes at the head of a request: its own body and the answer wanted, 8 bytes each.
const HEAD_BYTES: usize = 16;
/// The answer wanted: bytes without end.
const ENDLESS: u64 = u64::MAX;
/// Bytes of the answer to an upload.
const RECEIPT_BYTES: u64 = 8;

/// What runs over one connection. [`App::drive`] is called after every datagram and timer.
pub trait App {
    /// The connection is complete.
    fn on_connected(&mut self, now: Instant);
    /// Does whatever the connection allows now.
    fn drive(&mut self, now: Instant, connection: &mut Coordinator);
    /// When it wants to be driven though nothing arrived.
    fn deadline(&self) -> Option<Instant> {
        None
    }
    /// How far it is.
    fn progress(&self) -> &Progress;
}

/// One request and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// When it was meant to start.
    pub asked: Instant,
    /// When the last byte of the answer was read.
    pub answered: Option<Instant>,
}

/// How far an application is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// When the connection was complete.
    pub connected: Option<Instant>,
    /// When the first byte of an answer was read.
    pub first_byte: Option<Instant>,
    /// When the last byte of all was read.
    pub finished: Option<Instant>,
    /// Bytes received at their place and in order.
    pub verified_bytes: u64,
    /// Every request, in order.
    pub exchanges: Vec<Exchange>,
    /// The first thing that went wrong.
    pub failure: Option<String>,
}

impl Progress {
    /// How far it is, to be compared with others.
    pub(super) fn rank(&self) -> (bool, u64) {
        (self.connected.is_some(), self.verified_bytes)
    }
}

/// What a client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// One stream towards the client.
    Download {
        /// Bytes to transfer.
        bytes: u64,
    },
    /// One stream towards the server.
    Upload {
        /// Bytes to transfer.
        bytes: u64,
    },
    /// Requests at an interval, each on a stream of its own.
    Requests {
        /// Bytes of each request, head included.
        request_bytes: u64,
        /// Bytes of each answer.
        response_bytes: u64,
        /// From one request to the next.
        interval: Duration,
        /// How many requests are made.
        count: u64,
    },
    /// One stream towards the client that never ends, cut off after a time.
    DownloadFor {
        /// From the start of the connection.
        duration: Duration,
    },
}

/// Pattern that is still to be written after a head.
#[derive(Clone, Debug)]
struct Writing {
    head: Vec<u8>,
    body: u64,
    written: u64,
    finished: bool,
}

impl Writing {
    fn new(head: Vec<u8>, body: u64) -> Self {
        Self { head, body, written: 0, finished: false }
    }

    fn drive(&mut self, id: StreamId, connection: &mut Coordinator) -> Result<(), String> {
        let head = self.head.len() as u64;
        let total = head.saturating_add(self.body);
        while self.written < total {
            let count = if self.written < head {
                connection.send_stream(id).write(&self.head[self.written as usize..])
            } else {
                let mut chunk = [pattern::slice(self.written - head, total - self.written)];
                connection.send_stream(id).write_chunks(&mut chunk)
            };
            match count {
                Ok(0) | Err(WriteError::Blocked) => return Ok(()),
                Ok(count) => self.written += count as u64,
                Err(WriteError::Stopped(_)) if self.body == ENDLESS => {
                    self.finished = true;
                    return Ok(());
                }
                Err(error) => return Err(error.to_string()),
            }
        }
        if !self.finished {
            self.finished = true;
            connection.send_stream(id).finish().map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

/// How a read ended.
enum ReadEnd {
    Blocked,
    Finished,
}

/// Gives every byte that can be read in order.
fn read_all(connection: &mut Coordinator, id: StreamId, sink: &mut dyn FnMut(&[u8])) -> Result<ReadEnd, String> {
    loop {
        match connection.recv_stream(id).read(usize::MAX, Order::Ordered) {
            Ok(Some(chunk)) => sink(&chunk.bytes),
            Ok(None) => return Ok(ReadEnd::Finished),
            Err(ReadError::Blocked) => return Ok(ReadEnd::Blocked),
            Err(error) => return Err(error.to_string()),
        }
    }
}

/// Bytes that must be the pattern from its start.
#[derive(Clone, Copy, Debug, Default)]
struct Checking {
    offset: u64,
    wrong_at: Option<u64>,
}

impl Checking {
    fn take(&mut self, data: &[u8]) -> u64 {
        self.wrong_at = self.wrong_at.or_else(|| pattern::mismatch(self.offset, data));
        self.offset += data.len() as u64;
        if self.wrong_at.is_none() { data.len() as u64 } else { 0 }
    }

    fn verdict(&self, expected: u64) -> Result<(), String> {
        match self.wrong_at {
            Some(at) => Err(format!("wrong byte at offset {at} of a stream")),
            None if self.offset != expected => Err(format!("{} bytes arrived instead of {expected}", self.offset)),
            None => Ok(()),
        }
    }
}

/// One request on its way.
#[derive(Debug)]
struct Asked {
    index: usize,
    stream: Option<StreamId>,
    writing: Writing,
    checking: Checking,
    answer_bytes: u64,
}

/// The client's side of a [`Load`].
#[derive(Debug)]
pub struct Client {
    load: Load,
    progress: Progress,
    open: Vec<Asked>,
    next_at: Option<Instant>,
    left: u64,
}

impl Client {
    /// A client with this load.
    pub fn new(load: Load) -> Self {
        let left = if let Load::Requests { count, .. } = load { count } else { 1 };
        Self { load, progress: Progress::default(), open: Vec::new(), next_at: None, left }
    }

    fn ask(&mut self, at: Instant) {
        let (body, answer_bytes) = match self.load {
            Load::Download { bytes } => (0, bytes),
            Load::Upload { bytes } => (bytes, RECEIPT_BYTES),
            Load::Requests { request_bytes, response_bytes, .. } => {
                (request_bytes.saturating_sub(HEAD_BYTES as u64), response_bytes)
            }
            Load::DownloadFor { .. } => (0, ENDLESS),
        };
        let mut head = body.to_be_bytes().to_vec();
        head.extend(answer_bytes.to_be_bytes());
        let index = self.progress.exchanges.len();
        self.progress.exchanges.push(Exchange { asked: at, answered: None });
        let writing = Writing::new(head, body);
        self.open.push(Asked { index, stream: None, writing, checking: Checking::default(), answer_bytes });
        self.left -= 1;
    }

    /// Starts what is due.
    fn ask_due(&mut self, now: Instant) {
        while let Some(at) = self.next_at.filter(|at| *at <= now && self.left > 0) {
            self.ask(at);
            self.next_at = match self.load {
                Load::Requests { interval, .. } if self.left > 0 => Some(at + interval),
                _ => None,
            };
        }
    }

    fn end_of(&self) -> Option<Instant> {
        match self.load {
            Load::DownloadFor { duration } if self.progress.finished.is_none() => {
                self.progress.connected.map(|_| Instant::ZERO + duration)
            }
            _ => None,
        }
    }

    fn cut_off(&mut self, now: Instant, connection: &mut Coordinator) {
        if self.end_of().is_none_or(|end| end > now) {
            return;
        }
        for asked in self.open.drain(..) {
            if let Some(id) = asked.stream {
                let _ = connection.recv_stream(id).stop(0);
            }
        }
        self.progress.finished = Some(now);
    }
}

impl App for Client {
    fn on_connected(&mut self, now: Instant) {
        self.progress.connected = Some(now);
        self.next_at = Some(now);
    }

    fn drive(&mut self, now: Instant, connection: &mut Coordinator) {
        if self.progress.connected.is_none() || self.progress.failure.is_some() {
            return;
        }
        self.ask_due(now);
        let Self { open, progress, .. } = self;
        open.retain_mut(|asked| match drive_asked(now, asked, connection, progress) {
            Ok(open) => open,
            Err(failure) => {
                progress.failure.get_or_insert(failure);
                false
            }
        });
        self.cut_off(now, connection);
        if self.open.is_empty() && self.left == 0 && self.progress.failure.is_none() {
            self.progress.finished.get_or_insert(now);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        plait_base::time::earliest(self.next_at.filter(|_| self.left > 0), self.end_of())
    }

    fn progress(&self) -> &Progress {
        &self.progress
    }
}

/// Whether the request is still open.
fn drive_asked(
    now: Instant,
    asked: &mut Asked,
    connection: &mut Coordinator,
    progress: &mut Progress,
) -> Result<bool, String> {
    if asked.stream.is_none() {
        asked.stream = connection.streams().open(Dir::Bi);
    }
    let Some(id) = asked.stream else { return Ok(true) };
    asked.writing.drive(id, connection)?;
    let mut good = 0;
    let end = read_all(connection, id, &mut |data| good += asked.checking.take(data))?;
    progress.verified_bytes += good;
    if good > 0 {
        progress.first_byte.get_or_insert(now);
    }
    if let Some(at) = asked.checking.wrong_at {
        return Err(format!("wrong byte at offset {at} of a stream"));
    }
    match end {
        ReadEnd::Blocked => Ok(true),
        ReadEnd::Finished => {
            asked.checking.verdict(asked.answer_bytes)?;
            if let Some(exchange) = progress.exchanges.get_mut(asked.index) {
                exchange.answered = Some(now);
            }
            Ok(false)
        }
    }
}

/// One request as the server sees it.
#[derive(Debug, Default)]
struct Served {
    head: Vec<u8>,
    wanted: Option<(u64, u64)>,
    checking: Checking,
    read_ended: bool,
    writing: Option<Writing>,
}

/// The server's side: answers every request with as many bytes as it asks for.
#[derive(Debug, Default)]
pub struct Server {
    progress: Progress,
    open: BTreeMap<u64, Served>,
}

impl App for Server {
    fn on_connected(&mut self, now: Instant) {
        self.progress.connected = Some(now);
    }

    fn drive(&mut self, now: Instant, connection: &mut Coordinator) {
        while let Some(id) = connection.streams().accept(Dir::Bi) {
            self.open.insert(id.0, Served::default());
        }
        let Self { open, progress } = self;
        open.retain(|id, served| match drive_served(StreamId(*id), served, connection, progress) {
            Ok(()) => !(served.read_ended && served.writing.as_ref().is_some_and(|w| w.finished)),
            Err(failure) => {
                progress.failure.get_or_insert(failure);
                false
            }
        });
        if progress.verified_bytes > 0 {
            progress.first_byte.get_or_insert(now);
        }
    }

    fn progress(&self) -> &Progress {
        &self.progress
    }
}

fn drive_served(
    id: StreamId,
    served: &mut Served,
    connection: &mut Coordinator,
    progress: &mut Progress,
) -> Result<(), String> {
    if !served.read_ended {
        let Served { head, wanted, checking, .. } = served;
        let end = read_all(connection, id, &mut |data| {
            let (first, body) = data.split_at(data.len().min(HEAD_BYTES - head.len()));
            head.extend(first);
            if wanted.is_none() {
                *wanted = parse_head(head);
            }
            progress.verified_bytes += checking.take(body);
        })?;
        served.read_ended = matches!(end, ReadEnd::Finished);
    }
    let Some((body, answer)) = served.wanted else {
        return if served.read_ended { Err("a request ended within its head".into()) } else { Ok(()) };
    };
    if served.read_ended {
        served.checking.verdict(body)?;
    }
    if served.writing.is_none() && (served.read_ended || body == 0) {
        served.writing = Some(Writing::new(Vec::new(), answer));
    }
    served.writing.as_mut().map_or(Ok(()), |writing| writing.drive(id, connection))
}

fn parse_head(head: &[u8]) -> Option<(u64, u64)> {
    let (body, answer) = head.split_at_checked(8)?;
    Some((u64::from_be_bytes(body.try_into().ok()?), u64::from_be_bytes(answer.try_into().ok()?)))
}
