//! The client: one connection after the other, each with all its downloads at once.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use interop_peers::args::{Options, split_url};
use interop_peers::report::Report;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::link::{DATAGRAM_ROOM, Link};

/// Nobody speaks a version of this form (RFC 9000 15).
const RESERVED_VERSION: u32 = 0x1a2a_3a4a;
/// The name in the certificate: quiche checks no addresses.
const NAME: &str = "localhost";
/// Bytes received after which a client that was asked to do so moves.
const MOVE_AFTER: u64 = 100_000;
/// Tickets may come after the body.
const TICKET_PATIENCE: Duration = Duration::from_millis(100);
/// What BoringSSL says of early data that was accepted (`ssl_early_data_accepted`).
const EARLY_DATA_ACCEPTED: u32 = 2;

/// One body, as far as it has come.
struct Download {
    url: String,
    hash: Sha256,
    bytes: u64,
    finished: bool,
}

/// A connection and its downloads by stream.
struct Client {
    /// The socket in use.
    link: Link,
    /// The one before, on which something may still be under way.
    left: Option<Link>,
    /// Where to go once a little has arrived.
    move_to: Option<IpAddr>,
    connection: quiche::Connection,
    downloads: HashMap<u64, Download>,
    /// A Version Negotiation packet came, to which quiche answers by itself.
    version_negotiated: bool,
}

pub(crate) async fn fetch_all(options: &Options, report: &mut Report) -> Result<()> {
    ensure!(options.paths.len() < 2, "quiche has one path");
    ensure!(!options.key_update, "quiche begins no key update");
    let (host, port, _) = split_url(options.urls.first().context("no URL")?)?;
    let remote = SocketAddr::new(host.parse().unwrap_or(IpAddr::from([127, 0, 0, 1])), port);
    let version = if options.foreign_version { RESERVED_VERSION } else { quiche::PROTOCOL_VERSION };
    let mut config = crate::settings(version, options)?;
    config.load_verify_locations_from_file(options.ca.to_str().context("--ca")?)?;
    config.verify_peer(true);
    let twice = options.resume || options.early;
    let (first, second) = options.urls.split_at(if twice { 1 } else { 0 });
    let second = if twice && second.is_empty() { first } else { second };
    let mut ticket = None;
    if twice {
        let mut client = Client::connect(remote, &mut config).await?;
        client.handshake().await?;
        report.downloads = client.download(first).await?;
        let until = Instant::now() + TICKET_PATIENCE;
        while Instant::now() < until {
            client.turn(Some(until - Instant::now())).await?;
        }
        ticket = Some(client.connection.session().context("no ticket came")?.to_vec());
        client.close().await?;
    }
    let mut client = Client::connect(remote, &mut config).await?;
    if let Some(ticket) = ticket {
        client.connection.set_session(&ticket)?;
    }
    if options.early {
        // The first flight says whether the ticket allows it.
        client.link.flush(&mut client.connection).await?;
        ensure!(client.connection.is_in_early_data(), "the ticket allows no early data");
    } else {
        client.handshake().await?;
    }
    client.move_to = options.move_to;
    report.downloads.extend(client.download(second).await?);
    report.resumed = client.connection.is_resumed();
    report.early_data = options.early && client.connection.early_data_reason() == EARLY_DATA_ACCEPTED;
    report.version_negotiated = client.version_negotiated;
    client.close().await
}

impl Client {
    async fn connect(remote: SocketAddr, config: &mut quiche::Config) -> Result<Self> {
        let local: SocketAddr = if remote.is_ipv4() { ([127, 0, 0, 1], 0).into() } else { "[::1]:0".parse()? };
        let link = Link::bind(local).await?;
        let id = crate::new_id()?;
        let id = quiche::ConnectionId::from_ref(&id);
        let connection = quiche::connect(Some(NAME), &id, link.local, remote, config)?;
        let downloads = HashMap::new();
        Ok(Self { link, left: None, move_to: None, connection, downloads, version_negotiated: false })
    }

    /// Sends what is due, waits for a datagram or a timer, takes what has come.
    async fn turn(&mut self, limit: Option<Duration>) -> Result<()> {
        self.link.flush(&mut self.connection).await?;
        let timeout = [self.connection.timeout(), limit].into_iter().flatten().min();
        self.link.wait(timeout).await?;
        let mut buffer = [0; DATAGRAM_ROOM];
        for link in self.left.iter().chain([&self.link]) {
            while let Some((len, from)) = link.receive(&mut buffer)? {
                // RFC 9000 17.2.1: a long header whose version is 0.
                self.version_negotiated |= len > 4 && buffer[0] & 0x80 != 0 && buffer[1..5] == [0; 4];
                let info = quiche::RecvInfo { from, to: link.local };
                match self.connection.recv(&mut buffer[..len], info) {
                    Ok(_) | Err(quiche::Error::Done) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        self.connection.on_timeout();
        crate::offer_ids(&mut self.connection)?;
        if self.connection.is_closed() {
            bail!("closed: {:?}", self.connection.peer_error());
        }
        Ok(())
    }

    async fn handshake(&mut self) -> Result<()> {
        while !self.connection.is_established() {
            self.turn(None).await?;
        }
        Ok(())
    }

    async fn download(&mut self, urls: &[String]) -> Result<Vec<Value>> {
        for (stream, url) in (0..).step_by(4).zip(urls) {
            let (_, _, path) = split_url(url)?;
            let line = format!("GET {path}\r\n");
            let sent = self.connection.stream_send(stream, line.as_bytes(), true)?;
            ensure!(sent == line.len(), "no room for a request");
            let download = Download { url: url.clone(), hash: Sha256::new(), bytes: 0, finished: false };
            self.downloads.insert(stream, download);
        }
        while self.downloads.values().any(|download| !download.finished) {
            self.turn(None).await?;
            self.read()?;
            let received: u64 = self.downloads.values().map(|download| download.bytes).sum();
            if let Some(ip) = self.move_to.take_if(|_| received >= MOVE_AFTER) {
                let new = Link::bind(SocketAddr::new(ip, 0)).await?;
                self.connection.migrate_source(new.local)?;
                self.left = Some(std::mem::replace(&mut self.link, new));
            }
        }
        // Early data is accepted or not once the handshake is done.
        self.handshake().await?;
        Ok(self.downloads.drain().map(|(_, download)| download.result()).collect())
    }

    fn read(&mut self) -> Result<()> {
        let mut buffer = [0; 65_536];
        for stream in self.connection.readable() {
            let download = self.downloads.get_mut(&stream).context("a stream that nobody opened")?;
            loop {
                match self.connection.stream_recv(stream, &mut buffer) {
                    Ok((len, finished)) => {
                        download.hash.update(&buffer[..len]);
                        download.bytes += len as u64;
                        download.finished |= finished;
                    }
                    Err(quiche::Error::Done) => break,
                    Err(error) => return Err(error.into()),
                }
                if download.finished {
                    break;
                }
            }
        }
        Ok(())
    }

    async fn close(mut self) -> Result<()> {
        self.connection.close(true, 0, b"done")?;
        self.link.flush(&mut self.connection).await
    }
}

impl Download {
    fn result(self) -> Value {
        let sha256: String = self.hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        json!({"url": self.url, "bytes": self.bytes, "sha256": sha256})
    }
}
