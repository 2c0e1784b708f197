//! What a connection's paths did, remembered beyond their end.

use std::collections::BTreeMap;

use plait::{Connection, ConnectionError, PathState, PathStatistics};

use crate::output::summary::PathSummary;
use crate::units::rounded;

/// The last figures of every path that there was, by id.
#[derive(Clone, Debug, Default)]
pub(crate) struct PathTable(BTreeMap<u32, PathSummary>);

impl PathTable {
    /// Looks at the paths of `connection` now.
    pub(crate) fn sample(&mut self, connection: &Connection) {
        let now = connection.stats().paths;
        for (id, known) in &mut self.0 {
            if now.iter().all(|path| path.id.0 != *id) {
                known.state = "closed";
                known.why_idle = None;
            }
        }
        for path in &now {
            let mut seen = summary(path);
            let before = self.0.get(&seen.id).map_or(0, |known| known.stream_bytes_received);
            // A receiver has no data to send; the path that brings it some is not idle.
            if seen.why_idle == Some("no-data") && seen.stream_bytes_received > before {
                seen.why_idle = None;
            }
            self.0.insert(seen.id, seen);
        }
        if connection.close_reason() == Some(ConnectionError::TimedOut) {
            self.on_silence();
        }
    }

    /// Nothing came back until the connection gave up: no path of it works, also the only one, which cannot fail while it waits.
    fn on_silence(&mut self) {
        for path in self.0.values_mut().filter(|path| matches!(path.state, "active" | "backup")) {
            path.state = PathState::Failed.name();
        }
    }

    /// All of them.
    pub(crate) fn paths(&self) -> Vec<PathSummary> {
        self.0.values().cloned().collect()
    }
}

fn summary(path: &PathStatistics) -> PathSummary {
    let ms = |time: std::time::Duration| rounded(time.as_secs_f64() * 1e3, 3);
    PathSummary {
        id: path.id.0,
        local: path.tuple.local.to_string(),
        remote: path.tuple.remote.to_string(),
        state: path.state.name(),
        why_idle: path.why_idle,
        rtt_ms: path.rtt.map(ms),
        rtt_min_ms: path.rtt_min.map(ms),
        cwnd_bytes: path.cwnd_bytes,
        mtu_bytes: path.max_datagram_bytes.into(),
        sent_bytes: path.sent_bytes,
        received_bytes: path.received_bytes,
        stream_bytes_received: path.stream_bytes_received,
        packets_sent: path.packets_sent,
        packets_lost: path.packets_lost,
        acks_sent: path.ack_frames_sent,
        acks_received: path.ack_frames_received,
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};
    use std::sync::Arc;
    use std::time::Duration;

    use plait::{Endpoint, EndpointConfig, TransportConfig};

    use super::*;
    use crate::http::FILES;
    use crate::options::{ClientTls, Suites, Trust};
    use crate::tls::Shown;
    use crate::{identity, transport};

    #[tokio::test]
    async fn a_path_of_a_connection_that_timed_out_has_failed() {
        let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let shown = Shown::self_signed(&identity::fresh().unwrap(), &[], []).unwrap();
        let server = Endpoint::server(transport::server_config(FILES, shown, Suites::All).unwrap(), any_port).unwrap();
        let address = server.local_addr().unwrap();
        tokio::spawn(async move { server.accept().await.unwrap().await.unwrap().closed().await });
        let client = Endpoint::new(EndpointConfig::fresh().unwrap(), None, [any_port]).unwrap();
        let mut config = transport::client_config(&ClientTls::new(FILES, Trust::Anybody)).unwrap();
        let mut timing = TransportConfig::default();
        timing.max_idle_timeout(Some(Duration::from_millis(500)));
        config.transport_config(Arc::new(timing));
        client.set_default_client_config(config);
        let connection = client.connect(address, "localhost").unwrap().await.unwrap();
        let states = |book: &PathTable| book.paths().iter().map(|path| path.state).collect::<Vec<_>>();
        let mut book = PathTable::default();
        book.sample(&connection);
        assert_eq!(states(&book), ["active"]);
        assert_eq!(connection.closed().await, ConnectionError::TimedOut);
        book.sample(&connection);
        assert_eq!(states(&book), ["failed"]);
    }
}
