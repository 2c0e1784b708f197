//! Figures of a connection.

use std::time::Duration;

use plait_base::PathId;
use plait_engine::connection::PathStatistics;

use super::Connection;

/// What a connection did so far. The sums are over the paths that still have state.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ConnectionStats {
    /// Each path, open or closing, by id.
    pub paths: Vec<PathStatistics>,
    /// UDP payload bytes sent.
    pub sent_bytes: u64,
    /// UDP payload bytes received.
    pub received_bytes: u64,
    /// Packets sent.
    pub packets_sent: u64,
    /// Packets declared lost.
    pub packets_lost: u64,
    /// Received datagrams that were dropped because the connection's task could not keep up.
    pub dropped_datagrams: u64,
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
        let now = self.hold.clock.now();
        let mut state = self.hold.lock();
        let ids = state.engine.all_path_ids();
        let paths: Vec<_> = ids.into_iter().filter_map(|id| state.engine.path_statistics(now, id)).collect();
        ConnectionStats {
            sent_bytes: paths.iter().map(|path| path.sent_bytes).sum(),
            received_bytes: paths.iter().map(|path| path.received_bytes).sum(),
            packets_sent: paths.iter().map(|path| path.packets_sent).sum(),
            packets_lost: paths.iter().map(|path| path.packets_lost).sum(),
            paths,
            dropped_datagrams: self.hold.inbox.dropped(),
            unsent_trains: state.lost_locally,
            key_phase: state.engine.key_phase(),
        }
    }
}
