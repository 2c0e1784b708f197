//! noq: several paths a connection.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use interop_peers::args::Options;
pub(crate) use noq::{
    ClientConfig, Connection, ConnectionError, Endpoint, Incoming, RecvStream, SendStream, ServerConfig, crypto,
};
use noq::{FourTuple, PathId, PathStatus};
use serde_json::{Value, json};

/// Paths at once.
const PATHS: u32 = 4;

pub(crate) fn transport() -> noq::TransportConfig {
    let mut config = noq::TransportConfig::default();
    config.max_concurrent_multipath_paths(PATHS);
    config
}

pub(crate) async fn next(recv: &mut RecvStream) -> Result<Option<Bytes>> {
    Ok(recv.read_chunk(65_536).await?)
}

pub(crate) fn was_accepted(accepted: bool) -> bool {
    accepted
}

/// Opens a path from each further local address, and waits until they carry data.
pub(crate) async fn open_paths(connection: &Connection, options: &Options, remote: SocketAddr) -> Result<()> {
    if options.paths.len() < 2 {
        return Ok(());
    }
    connection.handshake_confirmed().await?;
    ensure!(connection.is_multipath_enabled(), "multipath was not negotiated");
    for local in &options.paths[1..] {
        let tuple = FourTuple::new(remote, Some(*local));
        let mut tries = 0;
        // The peer's connection ids for the path may still be under way.
        loop {
            match connection.open_path(tuple, PathStatus::Available).await {
                Ok(_) => break,
                Err(error) if tries == 20 => return Err(error).context(format!("no path from {local}")),
                Err(_) => tries += 1,
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    Ok(())
}

/// Looks at the paths often, since nothing is told once they are gone.
pub(crate) struct PathWatch {
    connection: Connection,
    seen: Arc<Mutex<Vec<Value>>>,
}

impl PathWatch {
    pub(crate) fn start(connection: &Connection) -> Self {
        let watch = Self { connection: connection.clone(), seen: Arc::default() };
        let (weak, seen) = (connection.weak_handle(), watch.seen.clone());
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_millis(5)).await;
                let Some(connection) = weak.upgrade() else { return };
                if connection.close_reason().is_some() {
                    return;
                }
                look(&connection, &seen);
            }
        });
        watch
    }

    pub(crate) fn paths(&self) -> Vec<Value> {
        look(&self.connection, &self.seen);
        self.seen.lock().map(|seen| seen.clone()).unwrap_or_default()
    }
}

fn look(connection: &Connection, seen: &Mutex<Vec<Value>>) {
    let Ok(mut seen) = seen.lock() else { return };
    for id in 0..2 * PATHS {
        let Some(stats) = connection.path_stats(PathId::from(id)) else { continue };
        let entry = json!({
            "id": id, "sent_bytes": stats.udp_tx.bytes, "received_bytes": stats.udp_rx.bytes,
            "stream_frames_sent": stats.frame_tx.stream, "stream_frames_received": stats.frame_rx.stream,
        });
        match seen.iter_mut().find(|known| known["id"] == id) {
            Some(known) => *known = entry,
            None => seen.push(entry),
        }
    }
}
