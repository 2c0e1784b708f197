//! Flags of `plait perf`: iperf3's letters where it has them.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use plait_base::limits::MAX_PATHS;

use super::PERF;
use super::carrier::Kernel;
use crate::args::{ConnectArgs, ListenArgs, OutputArgs};
use crate::service::{Receiver, Service};
use crate::units::{parse_mbps, parse_period, parse_seconds, parse_size, whole};

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum PerfCommand {
    /// Wait for clients, and do what they ask
    Server(Box<PerfServerArgs>),
    /// Put load on a server: bytes, requests, connections or datagrams
    Client(Box<PerfClientArgs>),
    /// Measure one connection on 1 to N threads over loopback: what each thread adds, what it costs, and where that ends
    Scaling(PerfScalingArgs),
}

/// Threads at each end, at most: each has a path.
pub(crate) const MAX_THREADS: u32 = MAX_PATHS as u32;

#[derive(Args, Clone, Debug)]
pub(crate) struct PerfScalingArgs {
    /// Most threads at each end, 2 to 64 [default: half of the cores, 2 at least]
    #[arg(long, value_name = "N", value_parser = whole::<u32>(2..=MAX_THREADS.into()))]
    pub(crate) max: Option<u32>,
    /// Runs of each kind, in turns
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = whole::<u32>(1..=1000))]
    pub(crate) rounds: u32,
    /// Size of each load
    #[arg(short = 'n', long, value_name = "SIZE", default_value = "1G", value_parser = parse_load_size, conflicts_with = "null_receiver")]
    pub(crate) bytes: u64,
    /// Measure the sender alone, beside a server that acknowledges without decrypting
    #[arg(long)]
    pub(crate) null_receiver: bool,
    /// Time of each load beside such a server, seconds
    #[arg(short, long, value_name = "SECONDS", default_value = "3", value_parser = parse_seconds, requires = "null_receiver")]
    pub(crate) time: Duration,
    #[command(flatten)]
    pub(crate) show: OutputArgs,
}

/// Reads the size of a load whose rate is wanted: nothing has none.
fn parse_load_size(text: &str) -> Result<u64, String> {
    match parse_size(text)? {
        0 => Err("a load of no bytes has no rate; write a size above 0, such as 1G".to_owned()),
        bytes => Ok(bytes),
    }
}

impl PerfScalingArgs {
    /// Ways in which bytes go: a server that reads nothing is there to be sent to.
    pub(crate) fn directions(&self) -> &'static [&'static str] {
        if self.null_receiver { &["up"] } else { &["up", "down"] }
    }
}

#[derive(Args, Clone, Debug)]
pub(crate) struct PerfServerArgs {
    #[command(flatten)]
    pub(crate) listen: ListenArgs,
    #[command(flatten)]
    pub(crate) also: CarrierArgs,
    /// Count full packets and acknowledge them, without reading them: for measuring who sends. What comes is not authentic, and
    /// uploads end by their time (-t) only
    #[arg(long, conflicts_with_all = ["tcp", "mptcp"])]
    pub(crate) null_receiver: bool,
}

impl PerfServerArgs {
    /// What it does, and for whom.
    pub(crate) fn service(&self) -> Service {
        let receiver = if self.null_receiver { Receiver::Counts } else { Receiver::Reads };
        Service { receiver, ..PERF }
    }
}

/// Transports of the kernel.
#[derive(Args, Clone, Copy, Debug)]
#[group(multiple = false)]
pub(crate) struct CarrierArgs {
    /// TLS over kernel TCP, one connection in place of each stream; the server needs --tcp or --mptcp too
    #[arg(long)]
    pub(crate) tcp: bool,
    /// TLS over kernel MPTCP (Linux); the server needs --mptcp too, and `ip mptcp` the further paths
    #[arg(long)]
    pub(crate) mptcp: bool,
}

impl CarrierArgs {
    /// The one that was named.
    pub(crate) fn kernel(self) -> Option<Kernel> {
        match (self.tcp, self.mptcp) {
            (true, _) => Some(Kernel::Tcp),
            (false, true) => Some(Kernel::Mptcp),
            (false, false) => None,
        }
    }
}

/// What is done, in place of bytes without pause.
#[derive(Args, Clone, Copy, Debug)]
#[group(multiple = false)]
pub(crate) struct ModeArgs {
    /// Requests and responses, each on a stream of its own: how long they take
    #[arg(long)]
    pub(crate) requests: bool,
    /// Connections, closed once established: how many a second, and how long a full handshake takes
    #[arg(long)]
    pub(crate) connections: bool,
    /// Datagrams at a steady rate from here to the server: loss, order and jitter
    #[arg(long)]
    pub(crate) datagrams: bool,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct PerfClientArgs {
    /// Host of the server, HOST or HOST:PORT [default: port 4433]
    #[arg(value_name = "HOST")]
    pub(crate) server: String,
    #[command(flatten)]
    pub(crate) mode: ModeArgs,
    #[command(flatten)]
    pub(crate) carrier: CarrierArgs,
    /// Duration of the load, seconds [default: 10]
    #[arg(short, long, value_name = "SECONDS", value_parser = parse_seconds, conflicts_with_all = ["bytes", "count"])]
    pub(crate) time: Option<Duration>,
    /// Bytes to move, each way
    #[arg(short = 'n', long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) bytes: Option<u64>,
    /// Number of requests or connections
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1..=u64::MAX))]
    pub(crate) count: Option<u64>,
    /// The server sends, in place of the client
    #[arg(short = 'R', long, conflicts_with = "bidir")]
    pub(crate) reverse: bool,
    /// Both send at once
    #[arg(long)]
    pub(crate) bidir: bool,
    /// Streams (each way), requests or connections at once
    #[arg(short = 'P', long, value_name = "N", default_value_t = 1, value_parser = whole::<u32>(1..=1000))]
    pub(crate) streams: u32,
    /// Time between two lines of progress, seconds
    #[arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = parse_seconds)]
    pub(crate) interval: Duration,
    /// Size of a request [default: 750]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) request_size: Option<u64>,
    /// Size of a response [default: 750]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) response_size: Option<u64>,
    /// Time from one request to the next, ms, whether it was answered or not; needs --count [default: one after the other]
    #[arg(long, value_name = "MS", value_parser = parse_period, requires = "count", conflicts_with = "streams")]
    pub(crate) every_ms: Option<Duration>,
    /// Give up when all takes longer, seconds from the start; what was done by then is reported
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(crate) max_time: Option<Duration>,
    /// Ask the server nothing but the load, so that it begins as soon as the handshake is done; its CPU time and policies are
    /// then unknown
    #[arg(long)]
    pub(crate) no_questions: bool,
    /// Rate of datagrams, Mbit/s [default: 1]
    #[arg(short = 'b', long, value_name = "MBPS", value_parser = parse_mbps, requires = "datagrams")]
    pub(crate) rate_mbps: Option<f64>,
    /// Size of a datagram [default: 1100]
    #[arg(short, long, value_name = "SIZE", value_parser = parse_size, requires = "datagrams")]
    pub(crate) length: Option<u64>,
    /// How paths, and the threads that serve them, share the streams of the load
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Placement::Pooled)]
    pub(crate) placement: Placement,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
    #[command(flatten)]
    pub(crate) show: OutputArgs,
}

/// How paths and threads share a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Placement {
    /// One connection, each of whose streams goes over all its paths
    #[default]
    Pooled,
    /// One connection, each of whose streams keeps to a path while that works; the server is asked to do so too where it sends
    Pinned,
    /// As many connections of one path each, which share nothing, and at least a stream on each: what no single connection can
    /// surpass
    Shard,
}

impl PerfClientArgs {
    /// Size of a request and of a response when nothing is said.
    pub(crate) const REQUEST_BYTES: u64 = 750;
    /// Largest request: it is held in memory.
    pub(crate) const REQUEST_BYTES_MAX: u64 = 100_000_000;
}
