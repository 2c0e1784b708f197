//! The flags, the same for every peer program under `interop/peers`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

/// What to be.
#[derive(Debug)]
pub enum Mode {
    /// Answers requests until it is told to stop.
    Server(Options),
    /// Downloads and reports.
    Client(Options),
    /// Writes `cert.pem` and `priv.key` into this folder.
    Certificate(PathBuf),
}

/// All flags of servers and clients; each side reads those that mean something to it.
#[derive(Debug, Default)]
pub struct Options {
    pub listen: Vec<SocketAddr>,
    pub cert: PathBuf,
    pub key: PathBuf,
    pub root: Option<PathBuf>,
    pub ca: PathBuf,
    pub urls: Vec<String>,
    /// Local addresses of the client's paths, the first for the handshake.
    pub paths: Vec<IpAddr>,
    /// Go on from this address in the middle of a download.
    pub move_to: Option<IpAddr>,
    /// Demand Retry of every client.
    pub retry: bool,
    pub chacha20: bool,
    pub key_update: bool,
    /// Two connections, the second with the ticket of the first.
    pub resume: bool,
    /// As `resume`, with the requests of the second as early data.
    pub early: bool,
    /// Begin with a version that the other side cannot know.
    pub foreign_version: bool,
}

impl Mode {
    /// Reads the command line.
    pub fn read() -> Result<Self> {
        let mut words = std::env::args().skip(1);
        match words.next().as_deref() {
            Some("server") => Options::read(words).map(Self::Server),
            Some("client") => Options::read(words).map(Self::Client),
            Some("certificate") => Ok(Self::Certificate(words.next().context("certificate DIR")?.into())),
            _ => bail!("server | client | certificate"),
        }
    }
}

impl Options {
    fn read(mut words: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Self::default();
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("{word} wants a value"));
            match word.as_str() {
                "--listen" => options.listen.push(value()?.parse()?),
                "--cert" => options.cert = value()?.into(),
                "--key" => options.key = value()?.into(),
                "--root" => options.root = Some(value()?.into()),
                "--ca" => options.ca = value()?.into(),
                "--path" => options.paths.push(value()?.parse()?),
                "--move" => options.move_to = Some(value()?.parse()?),
                "--retry" => options.retry = true,
                "--chacha20" => options.chacha20 = true,
                "--key-update" => options.key_update = true,
                "--resume" => options.resume = true,
                "--0rtt" => options.early = true,
                "--foreign-version" => options.foreign_version = true,
                flag if flag.starts_with("--") => bail!("no such flag: {flag}"),
                url => options.urls.push(url.to_owned()),
            }
        }
        Ok(options)
    }
}

/// Host, port and path of an `https://host:port/path` URL.
pub fn split_url(url: &str) -> Result<(String, u16, String)> {
    let rest = url.strip_prefix("https://").context("only https:// URLs")?;
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port.parse()?),
        _ => (authority, 443),
    };
    Ok((host.trim_matches(['[', ']']).to_owned(), port, format!("/{path}")))
}
