//! What `plait perf client --json` prints at its end.

use serde::Serialize;

use crate::args::ExtensionName;
use crate::output::summary::{AttemptSummary, BothSides, PathSummary, WorkerSummary};
use crate::perf::datagrams::DatagramSummary;
use crate::perf::delays::DelaySummary;
use crate::perf::exchanges::Exchange;

/// One direction of a load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct FlowSummary {
    /// Bytes that the receiver has.
    pub(crate) bytes: u64,
    /// Time from the first request until the last of them was there.
    pub(crate) seconds: f64,
    /// `bytes` over `seconds`.
    pub(crate) goodput_mbps: f64,
}

/// Readings of CLOCK_MONOTONIC, which every process of a machine shares.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct ClockSummary {
    /// Right before the first packet of the connection.
    pub(crate) started_s: f64,
    /// At the end of the load.
    pub(crate) finished_s: f64,
}

/// CPU time of the load, user and system, of each process as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct CpuSummary {
    /// Ours; none where the system does not say.
    pub(crate) client: Option<f64>,
    /// The server's, whoever else it served; none where it does not say.
    pub(crate) server: Option<f64>,
}

/// Requests or connections.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct RoundSummary {
    /// Those that were done.
    pub(crate) count: u64,
    /// How many were under way at once.
    pub(crate) at_once: u64,
    /// `count` over the time that all took.
    pub(crate) per_second: f64,
    /// How long one took; none without any.
    pub(crate) delay_ms: Option<DelaySummary>,
}

/// What the load was.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct LoadSummary {
    /// `bulk`, `requests`, `connections` or `datagrams`.
    pub(crate) mode: &'static str,
    /// `quic`, `tcp` or `mptcp`.
    pub(crate) carrier: &'static str,
    /// `pooled`, `pinned` or `shard`: how paths share the streams; none over TCP.
    pub(crate) placement: Option<&'static str>,
    /// `up`, `down` or `both` for bytes; else none.
    pub(crate) direction: Option<&'static str>,
    /// Streams, requests or connections at once, each way.
    pub(crate) streams: u64,
}

/// The connection over which it ran.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct ConnectionSummary {
    /// Time until the handshake was done.
    pub(crate) handshake_ms: Option<f64>,
    /// `multipath`, `multiflow` or `none`, as negotiated; none before the handshake was done.
    pub(crate) extension: Option<&'static str>,
    /// The scheduler of the side that sent; none where both did, or the server did not tell.
    pub(crate) scheduler: Option<String>,
    /// The congestion controller of the side that sent; none where both did, or the server did not tell. Over TCP the
    /// kernel's, also where both sent by the same one.
    pub(crate) congestion: Option<String>,
    /// The ack path of the side that received; none where both did, or the server did not tell.
    pub(crate) ack_path: Option<String>,
    /// The policies of both sides; none over TCP.
    pub(crate) policies: Option<BothSides>,
    /// Attempts to connect, in their order.
    pub(crate) attempts: Vec<AttemptSummary>,
    /// Every path that there was.
    pub(crate) paths: Vec<PathSummary>,
}

impl ConnectionSummary {
    /// A connection of the kernel, of which little is known.
    pub(crate) fn of_kernel(handshake_ms: Option<f64>, congestion: Option<String>) -> Self {
        Self {
            handshake_ms,
            extension: Some(ExtensionName::None.name()),
            scheduler: None,
            congestion,
            ack_path: None,
            policies: None,
            attempts: Vec::new(),
            paths: Vec::new(),
        }
    }
}

/// The last line of `plait perf client --json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct PerfSummary {
    /// The command's name, `perf`.
    pub(crate) command: &'static str,
    /// True when all was done.
    pub(crate) ok: bool,
    /// The server, as it was named.
    pub(crate) host: String,
    #[serde(flatten)]
    pub(crate) load: LoadSummary,
    /// Bytes both ways.
    pub(crate) bytes: u64,
    /// Time that the load took, the handshake not counted.
    pub(crate) seconds: f64,
    /// Time from the first packet of the connection to the end of the load; none where the load did not begin.
    pub(crate) total_seconds: Option<f64>,
    /// The same in readings of a clock.
    pub(crate) clock: Option<ClockSummary>,
    /// Time from the first packet to the first byte that came for the load.
    pub(crate) first_byte_ms: Option<f64>,
    /// `bytes` over `seconds`.
    pub(crate) goodput_mbps: f64,
    /// What went to the server, in a load of bytes or requests.
    pub(crate) up: Option<FlowSummary>,
    /// What came from the server, in a load of bytes or requests.
    pub(crate) down: Option<FlowSummary>,
    /// What both processes spent on it.
    pub(crate) cpu_seconds: CpuSummary,
    /// What each thread did that served paths; none where the connection's task served them.
    pub(crate) workers: Vec<WorkerSummary>,
    /// True where the server acknowledged what came without reading it; none where it did not tell.
    pub(crate) null_receiver: Option<bool>,
    /// What became of requests.
    pub(crate) requests: Option<RoundSummary>,
    /// Each request of those at an interval.
    pub(crate) exchanges: Option<Vec<Exchange>>,
    /// What became of connections.
    pub(crate) connections: Option<RoundSummary>,
    /// What became of datagrams.
    pub(crate) datagrams: Option<DatagramSummary>,
    #[serde(flatten)]
    pub(crate) connection: ConnectionSummary,
    /// What went wrong.
    pub(crate) error: Option<String>,
}
