//! The test application: a client asks for bytes or sends bytes, and every byte is checked.
//!
//! A request is a bidirectional stream. The client writes 17 bytes (kind, length, seed; big endian); for an upload the
//! pattern follows. The server answers a download with the pattern, an upload with the number of good bytes (8 bytes).

use std::collections::BTreeMap;

use super::pattern;

const HEADER_BYTES: usize = 17;
const CHUNK_BYTES: u64 = 16 * 1024;

/// Which way the bytes of a request go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Download,
    Upload,
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub way: Way,
    pub bytes: u64,
    pub seed: u64,
}

impl Request {
    pub fn download(bytes: u64) -> Self {
        Self { way: Way::Download, bytes, seed: bytes ^ 0x5eed }
    }

    pub fn upload(bytes: u64) -> Self {
        Self { way: Way::Upload, ..Self::download(bytes) }
    }

    fn header(&self) -> Vec<u8> {
        let mut header = vec![self.way as u8];
        header.extend(self.bytes.to_be_bytes());
        header.extend(self.seed.to_be_bytes());
        header
    }

    fn parse(header: &[u8]) -> Option<Self> {
        let (kind, rest) = header.split_first()?;
        let way = match kind {
            0 => Way::Download,
            1 => Way::Upload,
            _ => return None,
        };
        let (bytes, seed) = rest.split_at_checked(8)?;
        Some(Self {
            way,
            bytes: u64::from_be_bytes(bytes.try_into().ok()?),
            seed: u64::from_be_bytes(seed.try_into().ok()?),
        })
    }
}

/// How far an application is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    pub connected: bool,
    pub requested: usize,
    pub completed: usize,
    /// Payload bytes received at their place (client: downloads; server: uploads).
    pub verified_bytes: u64,
    /// The first thing that went wrong.
    pub failure: Option<String>,
}

impl Progress {
    /// Every request is complete and nothing went wrong.
    pub fn is_done(&self) -> bool {
        self.connected && self.requested > 0 && self.completed == self.requested && self.failure.is_none()
    }
}

/// How a read ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadEnd {
    Blocked,
    Finished,
    Failed(String),
}

/// The streams of one connection, whatever the implementation.
pub trait Wire {
    fn open(&mut self) -> Option<u64>;
    fn accept(&mut self) -> Option<u64>;
    /// Bytes taken; 0 when blocked.
    fn write(&mut self, id: u64, data: &[u8]) -> Result<usize, String>;
    fn finish(&mut self, id: u64) -> Result<(), String>;
    /// Gives every byte that can be read in order.
    fn read(&mut self, id: u64, sink: &mut dyn FnMut(&[u8])) -> ReadEnd;
}

/// What one end still has to write: a head, then pattern.
#[derive(Clone, Debug, Default)]
struct Writing {
    head: Vec<u8>,
    seed: u64,
    body: u64,
    written: u64,
    finished: bool,
}

impl Writing {
    fn new(head: Vec<u8>, seed: u64, body: u64) -> Self {
        Self { head, seed, body, ..Self::default() }
    }

    fn drive(&mut self, id: u64, wire: &mut dyn Wire) -> Result<(), String> {
        let total = self.head.len() as u64 + self.body;
        while self.written < total {
            let head = self.head.len() as u64;
            let count = if self.written < head {
                wire.write(id, &self.head[self.written as usize..])?
            } else {
                let offset = self.written - head;
                wire.write(id, pattern::slice(self.seed, offset, CHUNK_BYTES.min(self.body - offset)))?
            };
            if count == 0 {
                return Ok(());
            }
            self.written += count as u64;
        }
        if !self.finished {
            self.finished = true;
            wire.finish(id)?;
        }
        Ok(())
    }
}

/// Bytes that must be the pattern.
#[derive(Clone, Debug)]
struct Checking {
    seed: u64,
    offset: u64,
    wrong_at: Option<u64>,
}

impl Checking {
    fn take(&mut self, data: &[u8]) {
        self.wrong_at = self.wrong_at.or_else(|| pattern::mismatch(self.seed, self.offset, data));
        self.offset += data.len() as u64;
    }

    fn verdict(&self, expected: u64) -> Result<(), String> {
        match self.wrong_at {
            Some(at) => Err(format!("wrong byte at {at}")),
            None if self.offset != expected => Err(format!("{} bytes instead of {expected}", self.offset)),
            None => Ok(()),
        }
    }
}

struct Asked {
    request: Request,
    stream: Option<u64>,
    writing: Writing,
    checking: Checking,
    answer: Vec<u8>,
    done: bool,
}

/// The client's side.
#[derive(Default)]
pub struct ClientApp {
    asked: Vec<Asked>,
    connected: bool,
    failure: Option<String>,
}

impl ClientApp {
    pub fn request(&mut self, request: Request) {
        let body = if request.way == Way::Upload { request.bytes } else { 0 };
        self.asked.push(Asked {
            request,
            stream: None,
            writing: Writing::new(request.header(), request.seed, body),
            checking: Checking { seed: request.seed, offset: 0, wrong_at: None },
            answer: Vec::new(),
            done: false,
        });
    }

    pub fn on_connected(&mut self) {
        self.connected = true;
    }

    pub fn on_failure(&mut self, failure: String) {
        self.failure.get_or_insert(failure);
    }

    pub fn progress(&self) -> Progress {
        Progress {
            connected: self.connected,
            requested: self.asked.len(),
            completed: self.asked.iter().filter(|a| a.done).count(),
            verified_bytes: self
                .asked
                .iter()
                .filter(|a| a.checking.wrong_at.is_none())
                .map(|a| a.checking.offset)
                .sum(),
            failure: self.failure.clone(),
        }
    }

    /// Does whatever the connection allows now.
    pub fn drive(&mut self, wire: &mut dyn Wire) {
        if !self.connected || self.failure.is_some() {
            return;
        }
        for asked in self.asked.iter_mut().filter(|asked| !asked.done) {
            if let Err(failure) = drive_asked(asked, wire) {
                self.failure = Some(failure);
                return;
            }
        }
    }
}

fn drive_asked(asked: &mut Asked, wire: &mut dyn Wire) -> Result<(), String> {
    if asked.stream.is_none() {
        asked.stream = wire.open();
    }
    let Some(id) = asked.stream else { return Ok(()) };
    asked.writing.drive(id, wire)?;
    let Asked { checking, answer, request, .. } = asked;
    let end = wire.read(id, &mut |data| match request.way {
        Way::Download => checking.take(data),
        Way::Upload => answer.extend(data),
    });
    match end {
        ReadEnd::Blocked => Ok(()),
        ReadEnd::Failed(failure) => Err(failure),
        ReadEnd::Finished => {
            asked.done = true;
            match asked.request.way {
                Way::Download => asked.checking.verdict(asked.request.bytes),
                Way::Upload if asked.answer == asked.request.bytes.to_be_bytes() => Ok(()),
                Way::Upload => Err(format!("the server counted {:?}", asked.answer)),
            }
        }
    }
}

#[derive(Default)]
struct Serving {
    header: Vec<u8>,
    request: Option<(Request, Checking)>,
    writing: Option<Writing>,
    read_ended: bool,
}

/// The server's side of one connection.
#[derive(Default)]
pub struct ServerApp {
    serving: BTreeMap<u64, Serving>,
    completed: usize,
    verified_bytes: u64,
    connected: bool,
    failure: Option<String>,
}

impl ServerApp {
    pub fn on_connected(&mut self) {
        self.connected = true;
    }

    pub fn on_failure(&mut self, failure: String) {
        self.failure.get_or_insert(failure);
    }

    pub fn progress(&self) -> Progress {
        Progress {
            connected: self.connected,
            requested: self.completed + self.serving.len(),
            completed: self.completed,
            verified_bytes: self.verified_bytes,
            failure: self.failure.clone(),
        }
    }

    /// Does whatever the connection allows now.
    pub fn drive(&mut self, wire: &mut dyn Wire) {
        while let Some(id) = wire.accept() {
            self.serving.insert(id, Serving::default());
        }
        let Self { serving, failure, completed, verified_bytes, .. } = self;
        serving.retain(|id, one| match drive_serving(*id, one, wire, verified_bytes) {
            Ok(()) => {
                let over = one.read_ended && one.writing.as_ref().is_some_and(|writing| writing.finished);
                *completed += usize::from(over);
                !over
            }
            Err(error) => {
                failure.get_or_insert(error);
                false
            }
        });
    }
}

fn drive_serving(id: u64, one: &mut Serving, wire: &mut dyn Wire, verified: &mut u64) -> Result<(), String> {
    if !one.read_ended {
        let Serving { header, request, .. } = one;
        let end = wire.read(id, &mut |data| {
            let (head, body) = data.split_at(data.len().min(HEADER_BYTES - header.len()));
            header.extend(head);
            if request.is_none() && header.len() == HEADER_BYTES {
                *request = Request::parse(header)
                    .map(|request| (request, Checking { seed: request.seed, offset: 0, wrong_at: None }));
            }
            if let Some((_, checking)) = request {
                checking.take(body);
                *verified += body.len() as u64;
            }
        });
        match end {
            ReadEnd::Blocked => {}
            ReadEnd::Failed(failure) => return Err(failure),
            ReadEnd::Finished => one.read_ended = true,
        }
    }
    let Some((request, checking)) = &one.request else {
        return if one.read_ended { Err("a request ended within its header".into()) } else { Ok(()) };
    };
    if one.writing.is_none() {
        one.writing = match request.way {
            Way::Download => Some(Writing::new(Vec::new(), request.seed, request.bytes)),
            Way::Upload if one.read_ended => {
                checking.verdict(request.bytes)?;
                Some(Writing::new(checking.offset.to_be_bytes().to_vec(), 0, 0))
            }
            Way::Upload => None,
        };
    }
    one.writing.as_mut().map_or(Ok(()), |writing| writing.drive(id, wire))
}
