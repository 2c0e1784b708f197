//! What paths did and how they fare, to be read at any time: reading changes nothing.

use std::time::Duration;

use plait_base::observe::PathState;
use plait_base::{FourTuple, Instant, PathId};
use plait_schedule::{Backlog, Demand, DemandKind, WhyIdle};
use plait_stream::DroppedDatagrams;

use crate::connection::Connection;

/// What one path did and how it fares. `crates/cli/src/paths.rs` makes the JSON of it.
#[derive(Clone, Debug, PartialEq)]
pub struct PathStatistics {
    /// The path that is described.
    pub id: PathId,
    /// Its current 4-tuple.
    pub tuple: FourTuple,
    /// Whether it is validated, and whether data may use it.
    pub state: PathState,
    /// Why no packet of data can leave on it now, or none does; none for a path that is closing or closed.
    pub why_idle: Option<&'static str>,
    /// Smoothed RTT; none before the first sample.
    pub rtt: Option<Duration>,
    /// Smallest RTT of the present way back; none before the first sample.
    pub rtt_min: Option<Duration>,
    /// Congestion window, bytes.
    pub cwnd_bytes: u64,
    /// Bytes in flight.
    pub in_flight_bytes: u64,
    /// Largest datagram, UDP payload bytes.
    pub max_datagram_bytes: u16,
    /// UDP payload bytes sent between its own addresses; what left for others, such as challenges, is not in it.
    pub sent_bytes: u64,
    /// UDP payload bytes received.
    pub received_bytes: u64,
    /// Bytes of STREAM data received, repeated ones too: over all paths they may be more than the application read.
    pub stream_bytes_received: u64,
    /// Packets sent on it, probes and those of acks alone included.
    pub packets_sent: u64,
    /// Packets declared lost.
    pub packets_lost: u64,
    /// ACK and PATH_ACK frames sent for 0-RTT and 1-RTT packets that arrived on this path, whichever path carried them. An
    /// ack that several paths carry is as many frames.
    pub ack_frames_sent: u64,
    /// ACK and PATH_ACK frames received for 0-RTT and 1-RTT packets of this path, whichever path brought them.
    pub ack_frames_received: u64,
}

impl Connection {
    /// How many application datagrams were dropped so far.
    pub fn dropped_datagrams(&self) -> DroppedDatagrams {
        self.datagrams.dropped()
    }

    /// What a path did and how it fares; none for paths that are gone or never were.
    pub fn path_statistics(&self, now: Instant, id: PathId) -> Option<PathStatistics> {
        let side = self.side();
        let path = self.paths.table.slot(id)?.show(now, side)?;
        // Where nothing waits, no data is the answer, unless something else stands in the way already.
        let demand = self.demand(now).unwrap_or(Demand {
            now,
            kind: DemandKind::Stream,
            unsent_bytes: 0,
            send_credit_bytes: self.streams.send_credit(),
            backlog: Backlog::Growing,
        });
        let why_idle = self.scheduling.why_idle(&self.paths.table, side, id, &demand);
        Some(PathStatistics {
            id,
            tuple: path.tuple,
            state: path.state,
            why_idle: why_idle.map(WhyIdle::name),
            rtt: path.send.rtt,
            rtt_min: path.send.rtt_min,
            cwnd_bytes: path.send.window_bytes,
            in_flight_bytes: path.send.in_flight_bytes,
            max_datagram_bytes: path.max_datagram_bytes,
            sent_bytes: path.sent_bytes,
            received_bytes: path.received_bytes,
            stream_bytes_received: path.stream_bytes_received,
            packets_sent: path.send.packets_sent,
            packets_lost: path.send.packets_lost,
            ack_frames_sent: path.ack_frames_sent,
            ack_frames_received: path.send.ack_frames_received,
        })
    }
}
