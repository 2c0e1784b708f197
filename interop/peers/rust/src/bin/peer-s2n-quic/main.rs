//! An hq-interop peer on s2n-quic: one path, bodies of `/bytes/N` only.
//!
//! With rustls as its TLS, s2n-quic lets go of the session when the handshake is done: it neither sends nor keeps tickets.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use interop_peers::args::{Mode, Options, split_url};
use interop_peers::report::{self, Report};
use interop_peers::{body, tls};
use s2n_quic::client::{Client, Connect};
use s2n_quic::provider::endpoint_limits::{ConnectionAttempt, Limiter, Outcome};
use s2n_quic::provider::tls::rustls as provider;
use s2n_quic::stream::BidirectionalStream;
use s2n_quic::{Connection, Server};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Longest request line.
const LINE_LIMIT: usize = 4096;

/// Whom the server lets in.
enum Admission {
    Anybody,
    AfterRetry,
}

impl Limiter for Admission {
    fn on_connection_attempt(&mut self, _: &ConnectionAttempt<'_>) -> Outcome {
        match self {
            Self::Anybody => Outcome::allow(),
            // Asked only about clients that bring no valid token.
            Self::AfterRetry => Outcome::retry(),
        }
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    match Mode::read()? {
        Mode::Certificate(dir) => tls::make_certificate(&dir),
        Mode::Server(options) => serve(&options).await,
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

async fn serve(options: &Options) -> Result<()> {
    let mut config = rustls::ServerConfig::clone(&*tls::server(options)?);
    // It could not read any.
    config.max_early_data_size = 0;
    let config = Arc::new(config);
    let block = body::block();
    let mut addresses = Vec::new();
    for address in &options.listen {
        let admission = if options.retry { Admission::AfterRetry } else { Admission::Anybody };
        let mut server = Server::builder()
            .with_tls(provider::Server::from(config.clone()))?
            .with_io(*address)?
            .with_endpoint_limits(admission)?
            .start()?;
        addresses.push(server.local_addr()?.to_string());
        let block = block.clone();
        tokio::spawn(async move {
            while let Some(connection) = server.accept().await {
                tokio::spawn(attend(connection, block.clone()));
            }
        });
    }
    report::print(&json!({"event": "listening", "addresses": addresses}));
    tokio::signal::ctrl_c().await?;
    Ok(())
}

async fn attend(mut connection: Connection, block: Bytes) {
    let why = loop {
        match connection.accept_bidirectional_stream().await {
            Ok(Some(stream)) => {
                let block = block.clone();
                tokio::spawn(async move {
                    if let Err(error) = answer(stream, &block).await {
                        eprintln!("{error:#}");
                    }
                });
            }
            Ok(None) => break "closed".to_owned(),
            Err(error) => break error.to_string(),
        }
    };
    report::print(&json!({"event": "closed", "why": why}));
}

async fn answer(mut stream: BidirectionalStream, block: &Bytes) -> Result<()> {
    let mut line = Vec::new();
    while let Some(piece) = stream.receive().await? {
        line.extend_from_slice(&piece);
        ensure!(line.len() <= LINE_LIMIT, "a request of more than {LINE_LIMIT} bytes");
    }
    for piece in body::pieces(block, body::requested(&line)?) {
        stream.send(piece).await?;
    }
    stream.close().await?;
    Ok(())
}

async fn fetch_all(options: &Options, report: &mut Report) -> Result<()> {
    ensure!(options.paths.len() < 2, "s2n-quic has one path");
    ensure!(!options.resume && !options.early, "s2n-quic keeps no tickets");
    ensure!(!options.foreign_version, "s2n-quic begins with version 1 only");
    ensure!(options.move_to.is_none(), "s2n-quic's client cannot be told to move");
    ensure!(!options.key_update, "s2n-quic updates keys by itself only");
    let (host, port, _) = split_url(options.urls.first().context("no URL")?)?;
    let remote = SocketAddr::new(host.parse().unwrap_or(IpAddr::from([127, 0, 0, 1])), port);
    let local: SocketAddr = if remote.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { "[::]:0".parse()? };
    let (config, _) = tls::client(options)?;
    let client = Client::builder().with_tls(provider::Client::from(config))?.with_io(local)?.start()?;
    let mut connection = client.connect(Connect::new(remote).with_server_name(host)).await?;
    // All at once on one connection.
    let mut tasks = Vec::new();
    for url in &options.urls {
        let stream = connection.open_bidirectional_stream().await?;
        tasks.push(tokio::spawn(download(stream, url.clone())));
    }
    for task in tasks {
        report.downloads.push(task.await??);
    }
    connection.close(0u32.into());
    Ok(())
}

async fn download(mut stream: BidirectionalStream, url: String) -> Result<Value> {
    let (_, _, path) = split_url(&url)?;
    stream.send(Bytes::from(format!("GET {path}\r\n"))).await?;
    stream.finish()?;
    let (mut hash, mut bytes) = (Sha256::new(), 0);
    while let Some(piece) = stream.receive().await? {
        hash.update(&piece);
        bytes += piece.len() as u64;
    }
    let sha256: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(json!({"url": url, "bytes": bytes, "sha256": sha256}))
}
