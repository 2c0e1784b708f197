//! Figures of a connection.

use std::time::Duration;

use plait_base::PathId;
use plait_engine::connection::PathStatistics;

use super::Connection;

/// What a connection did so far. The sums are over all paths that it ever had, and never decrease; those in `paths` that
/// still have state may add up to less.
///
/// ```
/// # mod support { include!("../../doc/pair.in"); }
/// # use support::*;
/// # run(async {
/// # let (client, _server) = pair().await;
/// let stats = client.stats();
/// assert!(stats.packets_sent > 0 && stats.sent_bytes >= 1200);
/// for path in &stats.paths {
///     println!("path {}: RTT {:?}, window {} bytes", path.id, path.rtt, path.cwnd_bytes);
/// }
/// # Ok(())
/// # });
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ConnectionStats {
    /// Each path, open or closing, by id.
    pub paths: Vec<PathStatistics>,
    /// UDP payload bytes sent.
    pub sent_bytes: u64,
    /// UDP payload bytes received.
    pub received_bytes: u64,
    /// Packets sent, on all paths together.
    pub packets_sent: u64,
    /// Packets declared lost.
    pub packets_lost: u64,
    /// Bytes of STREAM data that the peer acknowledged, each counted once all before it on its stream are.
    pub stream_bytes_acked: u64,
    /// Received datagrams that were dropped because the connection's task could not keep up.
    pub dropped_datagrams: u64,
    /// Application datagrams that were dropped unsent, because newer ones took their place or packets shrank.
    pub datagrams_dropped_unsent: u64,
    /// Application datagrams that arrived and were dropped unread, because the application did not keep up.
    pub datagrams_dropped_unread: u64,
    /// Datagrams or trains that found no socket, or waited for one that was removed.
    pub unsent_trains: u64,
    /// Key updates by either side.
    pub key_phase: u64,
}

impl ConnectionStats {
    /// The figures of one path.
    pub fn path(&self, id: PathId) -> Option<&PathStatistics> {
        self.paths.iter().find(|path| path.id == id)
    }

    /// The smallest smoothed RTT.
    pub fn rtt(&self) -> Option<Duration> {
        self.paths.iter().filter_map(|path| path.rtt).min()
    }
}

impl Connection {
    /// What the connection did so far, and how each path fares.
    pub fn stats(&self) -> ConnectionStats {
        let now = self.shared.clock.now();
        let state = self.shared.lock();
        let ids = state.engine.connection().paths().ids_with_closing();
        let paths: Vec<_> =
            ids.into_iter().filter_map(|id| state.engine.connection().path_statistics(now, id)).collect();
        let totals = state.engine.connection().paths().totals();
        ConnectionStats {
            sent_bytes: totals.sent_bytes,
            received_bytes: totals.received_bytes,
            packets_sent: totals.packets_sent,
            packets_lost: totals.packets_lost,
            paths,
            stream_bytes_acked: state.engine.connection().stream_bytes_acked(),
            dropped_datagrams: self.shared.inbox.dropped(),
            datagrams_dropped_unsent: state.engine.connection().dropped_datagrams().unsent,
            datagrams_dropped_unread: state.engine.connection().dropped_datagrams().unread,
            unsent_trains: state.lost_locally,
            key_phase: state.engine.connection().session().key_phase(),
        }
    }
}
