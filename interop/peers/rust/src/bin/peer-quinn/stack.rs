//! quinn: one path a connection.

use std::net::SocketAddr;

use anyhow::{Result, ensure};
use bytes::Bytes;
use interop_peers::args::Options;
pub(crate) use quinn::{
    ClientConfig, Connection, ConnectionError, Endpoint, Incoming, RecvStream, SendStream, ServerConfig, crypto,
};
use serde_json::Value;

pub(crate) fn transport() -> quinn::TransportConfig {
    quinn::TransportConfig::default()
}

pub(crate) async fn next(recv: &mut RecvStream) -> Result<Option<Bytes>> {
    Ok(recv.read_chunk(65_536, true).await?.map(|chunk| chunk.bytes))
}

pub(crate) fn was_accepted(accepted: bool) -> bool {
    accepted
}

pub(crate) async fn open_paths(_: &Connection, options: &Options, _: SocketAddr) -> Result<()> {
    ensure!(options.paths.len() < 2, "quinn has one path");
    Ok(())
}

/// There are no paths to watch.
pub(crate) struct PathWatch;

impl PathWatch {
    pub(crate) fn start(_: &Connection) -> Self {
        Self
    }

    pub(crate) fn paths(&self) -> Vec<Value> {
        Vec::new()
    }
}
