//! The server: all connections of one socket in one loop.

use std::collections::HashMap;
use std::net::SocketAddr;

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use interop_peers::args::Options;
use interop_peers::{body, report};
use quiche::{ConnectionId, Header};
use serde_json::json;

use crate::link::{DATAGRAM_ROOM, Link};

/// Longest request line.
const LINE_LIMIT: usize = 4096;
/// What a token of this server begins with. It protects nothing: it is for interop runs.
const TOKEN_PREFIX: &[u8] = b"interop";

/// A body, as far as it was not sent.
struct Answer {
    pieces: Box<dyn Iterator<Item = Bytes> + Send>,
    rest: Bytes,
}

/// A connection, the requests that have not ended, and the answers that are not sent.
struct Client {
    connection: quiche::Connection,
    requests: HashMap<u64, Vec<u8>>,
    answers: HashMap<u64, Answer>,
}

struct Server<'a> {
    options: &'a Options,
    config: quiche::Config,
    link: Link,
    block: Bytes,
    /// By the connection id of ours.
    clients: HashMap<Vec<u8>, Client>,
    /// The first of ours, by the id that the client made up for its first packets and by further ones of ours.
    other_ids: HashMap<Vec<u8>, Vec<u8>>,
}

pub(crate) async fn serve(options: &Options) -> Result<()> {
    let [address] = options.listen.as_slice() else { bail!("one --listen") };
    let mut config = crate::settings(quiche::PROTOCOL_VERSION, options)?;
    config.load_cert_chain_from_pem_file(options.cert.to_str().context("--cert")?)?;
    config.load_priv_key_from_pem_file(options.key.to_str().context("--key")?)?;
    let (link, block) = (Link::bind(*address).await?, body::block());
    report::print(&json!({"event": "listening", "addresses": [link.local.to_string()]}));
    let mut server = Server { options, config, link, block, clients: HashMap::new(), other_ids: HashMap::new() };
    tokio::select! {
        result = server.run() => result,
        signal = tokio::signal::ctrl_c() => Ok(signal?),
    }
}

impl Server<'_> {
    async fn run(&mut self) -> Result<()> {
        let mut buffer = [0; DATAGRAM_ROOM];
        loop {
            self.link.wait(self.clients.values().filter_map(|client| client.connection.timeout()).min()).await?;
            while let Some((len, from)) = self.link.receive(&mut buffer)? {
                self.take(&mut buffer[..len], from).await?;
            }
            for (id, client) in &mut self.clients {
                client.connection.on_timeout();
                for further in crate::offer_ids(&mut client.connection)? {
                    self.other_ids.insert(further, id.clone());
                }
                client.attend(&self.block);
                self.link.flush(&mut client.connection).await?;
            }
            self.clients.retain(|_, client| {
                let closed = client.connection.is_closed();
                if closed {
                    let why = format!("{:?}", client.connection.peer_error());
                    report::print(&json!({"event": "closed", "why": why}));
                }
                !closed
            });
            let clients = &self.clients;
            self.other_ids.retain(|_, id| clients.contains_key(id));
        }
    }

    async fn take(&mut self, datagram: &mut [u8], from: SocketAddr) -> Result<()> {
        let Ok(header) = Header::from_slice(datagram, quiche::MAX_CONN_ID_LEN) else { return Ok(()) };
        let id = header.dcid.to_vec();
        let known = self.other_ids.get(&id).unwrap_or(&id).clone();
        let ours = if self.clients.contains_key(&known) { Some(known) } else { self.admit(&header, from).await? };
        if let Some(client) = ours.and_then(|id| self.clients.get_mut(&id)) {
            let info = quiche::RecvInfo { from, to: self.link.local };
            if let Err(error) = client.connection.recv(datagram, info) {
                eprintln!("{error}");
            }
        }
        Ok(())
    }

    /// Makes a connection for a first packet, or answers it without one.
    async fn admit(&mut self, header: &Header<'_>, from: SocketAddr) -> Result<Option<Vec<u8>>> {
        let mut out = [0; DATAGRAM_ROOM];
        if header.ty != quiche::Type::Initial {
            return Ok(None);
        }
        if !quiche::version_is_supported(header.version) {
            let len = quiche::negotiate_version(&header.scid, &header.dcid, &mut out)?;
            self.link.send(&out[..len], from).await?;
            return Ok(None);
        }
        let new = crate::new_id()?;
        let token = header.token.as_deref().unwrap_or_default();
        let prefix = [TOKEN_PREFIX, from.to_string().as_bytes(), b" "].concat();
        if self.options.retry && token.is_empty() {
            let token = [&prefix, &*header.dcid].concat();
            let new = ConnectionId::from_ref(&new);
            let len = quiche::retry(&header.scid, &header.dcid, &new, &token, header.version, &mut out)?;
            self.link.send(&out[..len], from).await?;
            return Ok(None);
        }
        let connection = if self.options.retry {
            let Some(first) = token.strip_prefix(&*prefix) else { return Ok(None) };
            // The id that Retry gave remains.
            let first = ConnectionId::from_ref(first);
            quiche::accept(&header.dcid, Some(&first), self.link.local, from, &mut self.config)?
        } else {
            quiche::accept(&ConnectionId::from_ref(&new), None, self.link.local, from, &mut self.config)?
        };
        let id = connection.source_id().to_vec();
        self.other_ids.insert(header.dcid.to_vec(), id.clone());
        self.clients.insert(id.clone(), Client { connection, requests: HashMap::new(), answers: HashMap::new() });
        Ok(Some(id))
    }
}

impl Client {
    /// Reads requests and goes on with answers.
    fn attend(&mut self, block: &Bytes) {
        if !self.connection.is_established() && !self.connection.is_in_early_data() {
            return;
        }
        for stream in self.connection.readable() {
            match self.read(stream, block) {
                Ok(Some(answer)) => _ = self.answers.insert(stream, answer),
                Ok(None) => {}
                Err(error) => {
                    eprintln!("{error:#}");
                    _ = self.connection.stream_shutdown(stream, quiche::Shutdown::Write, 404);
                }
            }
        }
        let connection = &mut self.connection;
        self.answers.retain(|stream, answer| match answer.push(connection, *stream) {
            Ok(()) => false,
            Err(quiche::Error::Done) => true,
            Err(error) => {
                eprintln!("{error}");
                false
            }
        });
    }

    /// What to answer, once the request has ended.
    fn read(&mut self, stream: u64, block: &Bytes) -> Result<Option<Answer>> {
        let line = self.requests.entry(stream).or_default();
        let mut buffer = [0; LINE_LIMIT];
        loop {
            match self.connection.stream_recv(stream, &mut buffer) {
                Ok((len, finished)) => {
                    line.extend_from_slice(&buffer[..len]);
                    ensure!(line.len() <= LINE_LIMIT, "a request of more than {LINE_LIMIT} bytes");
                    if finished {
                        let len = body::requested(&self.requests.remove(&stream).unwrap_or_default())?;
                        return Ok(Some(Answer { pieces: Box::new(body::pieces(block, len)), rest: Bytes::new() }));
                    }
                }
                Err(quiche::Error::Done) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Answer {
    /// Sends as much as there is room for; `Done` until all of it is sent.
    fn push(&mut self, connection: &mut quiche::Connection, stream: u64) -> quiche::Result<()> {
        loop {
            if self.rest.is_empty() {
                match self.pieces.next() {
                    Some(piece) => self.rest = piece,
                    None => return connection.stream_send(stream, b"", true).map(|_| ()),
                }
            }
            let sent = connection.stream_send(stream, &self.rest, false)?;
            self.rest = self.rest.slice(sent..);
        }
    }
}
