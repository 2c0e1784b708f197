//! HTTP/0.9 server and client, written once for both stacks: `crate::stack` is what differs.

use std::net::{IpAddr, SocketAddr};
use std::path::{Component, Path};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use interop_peers::args::{Mode, Options, split_url};
use interop_peers::report::{self, Report};
use interop_peers::{body, tls};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::stack::{self, ClientConfig, Connection, Endpoint, Incoming, RecvStream, SendStream, ServerConfig};

/// Bytes received after which a client that was asked to do so updates its keys, or moves.
const UPDATE_AFTER: u64 = 100_000;
/// A version of a draft that these stacks still know and nobody else answers.
const FOREIGN_VERSION: u32 = 0xff00_0020;

/// The program.
pub(crate) async fn main() -> Result<()> {
    match Mode::read()? {
        Mode::Certificate(dir) => tls::make_certificate(&dir),
        Mode::Server(options) => serve(Arc::new(options)).await,
        Mode::Client(options) => {
            let mut report = Report::default();
            let result = tokio::time::timeout(Duration::from_secs(60), fetch_all(&options, &mut report)).await;
            let error = match result {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(format!("{error:#}")),
                Err(_) => Some("nothing more came".to_owned()),
            };
            let failed = error.is_some();
            report.print(error);
            std::process::exit(failed.into());
        }
    }
}

async fn serve(options: Arc<Options>) -> Result<()> {
    let suite = tls::initial_suite().context("no AES")?;
    let crypto = stack::crypto::rustls::QuicServerConfig::with_initial(tls::server(&options)?, suite)?;
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(Arc::new(stack::transport()));
    let block = body::block();
    let mut endpoints = Vec::new();
    for address in &options.listen {
        endpoints.push(Endpoint::server(config.clone(), *address)?);
    }
    let addresses = endpoints.iter().map(Endpoint::local_addr).collect::<Result<Vec<SocketAddr>, _>>()?;
    report::print(&json!({"event": "listening", "addresses": addresses.iter().map(ToString::to_string).collect::<Vec<_>>()}));
    for endpoint in endpoints {
        let (options, block) = (options.clone(), block.clone());
        tokio::spawn(async move {
            while let Some(incoming) = endpoint.accept().await {
                let (options, block) = (options.clone(), block.clone());
                tokio::spawn(async move {
                    if let Err(error) = attend(incoming, &options, block).await {
                        eprintln!("{error:#}");
                    }
                });
            }
        });
    }
    tokio::signal::ctrl_c().await?;
    Ok(())
}

async fn attend(incoming: Incoming, options: &Arc<Options>, block: Bytes) -> Result<()> {
    if options.retry && !incoming.remote_address_validated() {
        incoming.retry()?;
        return Ok(());
    }
    let connecting = incoming.accept()?;
    // Servers may always answer before the client's last flight, and must to see early data.
    let connection = match connecting.into_0rtt() {
        Ok((connection, _)) => connection,
        Err(connecting) => connecting.await?,
    };
    let watch = stack::PathWatch::start(&connection);
    let sent = Arc::new(AtomicU64::new(0));
    loop {
        match connection.accept_bi().await {
            Ok((send, recv)) => {
                let (options, block, connection, sent) =
                    (options.clone(), block.clone(), connection.clone(), sent.clone());
                tokio::spawn(async move {
                    if let Err(error) = answer(send, recv, &options, &block, &connection, &sent).await {
                        eprintln!("{error:#}");
                    }
                });
            }
            Err(end) => {
                report::print(&json!({"event": "closed", "why": end.to_string(), "paths": watch.paths()}));
                return Ok(());
            }
        }
    }
}

async fn answer(
    mut send: SendStream,
    mut recv: RecvStream,
    options: &Options,
    block: &Bytes,
    connection: &Connection,
    sent: &AtomicU64,
) -> Result<()> {
    let line = String::from_utf8(recv.read_to_end(4096).await?)?;
    let target = line.strip_prefix("GET ").with_context(|| format!("not a request: {line:?}"))?.trim_end();
    if let Some(size) = target.strip_prefix("/bytes/") {
        for piece in body::pieces(block, body::size(size)?) {
            let before = sent.fetch_add(piece.len() as u64, Ordering::Relaxed);
            if options.key_update && before < UPDATE_AFTER && before + piece.len() as u64 >= UPDATE_AFTER {
                connection.force_key_update();
            }
            send.write_chunk(piece).await?;
        }
    } else {
        let inside = |path: &Path| path.components().all(|part| matches!(part, Component::Normal(_)));
        let name = Path::new(target.trim_start_matches('/'));
        match &options.root {
            Some(root) if inside(name) => send.write_all(&tokio::fs::read(root.join(name)).await?).await?,
            _ => bail!("nothing at {target}"),
        }
    }
    send.finish()?;
    Ok(())
}

async fn fetch_all(options: &Options, report: &mut Report) -> Result<()> {
    let (host, port, _) = split_url(options.urls.first().context("no URL")?)?;
    let ip = host.parse().unwrap_or(IpAddr::from([127, 0, 0, 1]));
    let remote = SocketAddr::new(ip, port);
    let (crypto, checks) = tls::client(options)?;
    let suite = tls::initial_suite().context("no AES")?;
    let crypto = Arc::new(stack::crypto::rustls::QuicClientConfig::with_initial(crypto, suite)?);
    let mut config = ClientConfig::new(crypto);
    config.transport_config(Arc::new(stack::transport()));
    let wildcard: SocketAddr = if remote.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { "[::]:0".parse()? };
    let local = match options.paths.as_slice() {
        [only] => SocketAddr::new(*only, 0),
        _ => wildcard,
    };
    let endpoint = Endpoint::client(local)?;

    if options.foreign_version {
        let mut foreign = config.clone();
        foreign.version(FOREIGN_VERSION);
        match endpoint.connect_with(foreign, remote, &host)?.await {
            Err(stack::ConnectionError::VersionMismatch) => report.version_negotiated = true,
            Err(error) => bail!("no Version Negotiation came: {error}"),
            Ok(_) => bail!("the foreign version was accepted"),
        }
    }
    let twice = options.resume || options.early;
    let (first, second) = options.urls.split_at(if twice { 1 } else { 0 });
    let second = if twice && second.is_empty() { first } else { second };
    if twice {
        let connection = endpoint.connect_with(config.clone(), remote, &host)?.await?;
        report.downloads = download(&endpoint, &connection, first, options).await?;
        // Tickets may come after the body.
        tokio::time::sleep(Duration::from_millis(100)).await;
        connection.close(0u32.into(), b"");
    }
    let checked = checks.count();
    let connecting = endpoint.connect_with(config, remote, &host)?;
    let (connection, accepted) = if options.early {
        match connecting.into_0rtt() {
            Ok((connection, accepted)) => (connection, Some(accepted)),
            Err(_) => bail!("the ticket allows no early data"),
        }
    } else {
        (connecting.await?, None)
    };
    stack::open_paths(&connection, options, remote).await?;
    let watch = stack::PathWatch::start(&connection);
    let downloads = download(&endpoint, &connection, second, options).await;
    if let Some(accepted) = accepted {
        report.early_data = stack::was_accepted(accepted.await);
    }
    report.downloads.extend(downloads?);
    report.resumed = twice && checks.count() == checked;
    report.paths = watch.paths();
    connection.close(0u32.into(), b"done");
    endpoint.wait_idle().await;
    Ok(())
}

/// Downloads all URLs at once on one connection.
async fn download(
    endpoint: &Endpoint,
    connection: &Connection,
    urls: &[String],
    options: &Options,
) -> Result<Vec<serde_json::Value>> {
    let received = Arc::new(AtomicU64::new(0));
    let mut tasks = Vec::new();
    for url in urls {
        let (connection, received, url) = (connection.clone(), received.clone(), url.clone());
        let (endpoint, update, move_to) = (endpoint.clone(), options.key_update, options.move_to);
        tasks.push(tokio::spawn(async move {
            let (_, _, path) = split_url(&url)?;
            let (mut send, mut recv) = connection.open_bi().await?;
            send.write_all(format!("GET {path}\r\n").as_bytes()).await?;
            send.finish()?;
            let (mut hash, mut bytes) = (Sha256::new(), 0);
            while let Some(piece) = stack::next(&mut recv).await? {
                hash.update(&piece);
                bytes += piece.len() as u64;
                let before = received.fetch_add(piece.len() as u64, Ordering::Relaxed);
                if before < UPDATE_AFTER && before + piece.len() as u64 >= UPDATE_AFTER {
                    if update {
                        connection.force_key_update();
                    }
                    if let Some(ip) = move_to {
                        endpoint.rebind(std::net::UdpSocket::bind((ip, 0))?)?;
                    }
                }
            }
            let sha256: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
            anyhow::Ok(json!({"url": url, "bytes": bytes, "sha256": sha256}))
        }));
    }
    let mut downloads = Vec::new();
    for task in tasks {
        downloads.push(task.await??);
    }
    Ok(downloads)
}
