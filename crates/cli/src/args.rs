//! Flags of the commands.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};
use plait::{AddressScope, TransportConfig};

use crate::http::policies::Terms;
use crate::names::{AckPathName, CongestionName, PathPolicyName, ReinjectionName, SchedulerName};
use crate::units::{
    parse_mbps, parse_millis, parse_mtu, parse_seconds, parse_share, parse_size, parse_socket, parse_version,
    parse_window, whole,
};

/// What both sides may choose about the transport.
#[derive(Args, Clone, Debug)]
pub(crate) struct TransportArgs {
    /// Scheduler of this side: which path carries the next packet [default: minrtt]
    #[arg(long, value_name = "NAME", value_enum)]
    pub(crate) scheduler: Option<SchedulerName>,
    /// Congestion control of this side [default: auto over several paths, cubic over one and in
    /// the demo]
    #[arg(long, value_name = "NAME", value_enum)]
    pub(crate) cc: Option<CongestionName>,
    /// Path by which this side acknowledges what it receives on a path [default: fastest]
    #[arg(long, value_name = "NAME", value_enum)]
    pub(crate) ack_path: Option<AckPathName>,
    /// Whether an idle path repeats data that is in flight on another [default: tail]
    #[arg(long, value_name = "NAME", value_enum)]
    pub(crate) reinjection: Option<ReinjectionName>,
    /// Flow control window and send buffer of this side, for each stream and for the connection [default: 32Mi]
    #[arg(short, long, value_name = "SIZE", value_parser = parse_window)]
    pub(crate) window: Option<u64>,
    /// Largest datagram that this side tries to send, bytes of UDP payload; larger than 1452 for jumbo frames and loopback
    /// [default: 1452]
    #[arg(long, value_name = "SIZE", value_parser = parse_mtu)]
    pub(crate) mtu: Option<u16>,
    /// Ask the peer to acknowledge once for each PACKETS packets, and at least once a round trip, where it supports ACK_FREQUENCY
    /// [default: as the peer sees fit, and every 250 us from some 500 Mbit/s on]
    #[arg(long, value_name = "PACKETS", value_parser = whole::<u32>(1..=1 << 20))]
    pub(crate) ack_frequency: Option<u32>,
}

/// Policies of both sides: the side that sends decides, and in a download that is the server.
#[derive(Args, Clone, Debug)]
pub(crate) struct BothSidesArgs {
    #[command(flatten)]
    pub(crate) ours: TransportArgs,
    #[command(flatten)]
    pub(crate) theirs: ServerPolicyArgs,
}

/// What a client asks of a `plait serve` or a `plait perf server` for its connection.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct ServerPolicyArgs {
    /// Ask the server (of `plait serve` or `plait perf server`) to send by this scheduler; --json says what it did
    #[arg(long, value_name = "NAME", value_enum)]
    pub(crate) server_scheduler: Option<SchedulerName>,
    /// Ask the server for this congestion control
    #[arg(long, value_name = "NAME", value_enum)]
    pub(crate) server_cc: Option<CongestionName>,
    /// Ask the server to send its acknowledgements this way
    #[arg(long, value_name = "NAME", value_enum)]
    pub(crate) server_ack_path: Option<AckPathName>,
    /// Ask the server for this reinjection
    #[arg(long, value_name = "NAME", value_enum)]
    pub(crate) server_reinjection: Option<ReinjectionName>,
}

/// What is printed, and for whom.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct OutputArgs {
    /// Print one JSON object on standard output, as its last line
    #[arg(long)]
    pub(crate) json: bool,
    /// Print one JSON object a line while it runs, the summary last
    #[arg(long)]
    pub(crate) json_stream: bool,
    /// Say nothing on standard error but errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct DemoArgs {
    /// Size of each download
    #[arg(long, value_name = "SIZE", default_value = "20M", value_parser = parse_size)]
    pub(crate) bytes: u64,
    /// Rate of path A, Mbit/s
    #[arg(long, value_name = "MBPS", default_value = "50", value_parser = parse_mbps)]
    pub(crate) a_rate_mbps: f64,
    /// Round-trip time of path A, ms
    #[arg(long, value_name = "MS", default_value = "20", value_parser = parse_millis)]
    pub(crate) a_rtt_ms: Duration,
    /// Rate of path B, Mbit/s
    #[arg(long, value_name = "MBPS", default_value = "30", value_parser = parse_mbps)]
    pub(crate) b_rate_mbps: f64,
    /// Round-trip time of path B, ms
    #[arg(long, value_name = "MS", default_value = "40", value_parser = parse_millis)]
    pub(crate) b_rtt_ms: Duration,
    /// Share of the datagrams that each path loses, each way, as 0.001 or 0.1%
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = parse_share)]
    pub(crate) loss: f64,
    /// Longest wait in the queue of a path, ms
    #[arg(long, value_name = "MS", default_value = "50", value_parser = parse_millis)]
    pub(crate) queue_ms: Duration,
    /// Share of the last download after which path A dies, as 0.5 or 50%
    #[arg(long, value_name = "SHARE", default_value = "50%", value_parser = parse_share)]
    pub(crate) kill_at: f64,
    /// Seed of the losses
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u64>(0..=u64::MAX))]
    pub(crate) seed: u64,
    /// Give up on a download that takes longer, seconds
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = parse_seconds)]
    pub(crate) max_time: Duration,
    #[command(flatten)]
    pub(crate) transport: TransportArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ServeArgs {
    /// Folder whose files are served; without it only /bytes/N and /sink are
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) listen: ListenArgs,
}

/// How a server takes its clients.
#[derive(Args, Clone, Debug)]
pub(crate) struct ListenArgs {
    /// Address and port to listen on; repeatable; port 0 takes a free one [default: port 4433 of every address]
    #[arg(long, value_name = "ADDR:PORT", value_parser = parse_socket)]
    pub(crate) listen: Vec<SocketAddr>,
    /// Certificate chain, PEM; without it a self-signed certificate is made
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) cert: Option<PathBuf>,
    /// Private key, PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
    /// Folder of the self-signed certificate's key, made there at the first start [default: `plait` in
    /// XDG_STATE_HOME or ~/.local/state]
    #[arg(long, value_name = "DIR", conflicts_with = "cert")]
    pub(crate) identity: Option<PathBuf>,
    /// Write the self-signed certificate here, for `get --ca`; it stays good as long as the key does
    #[arg(long, value_name = "FILE", conflicts_with = "cert")]
    pub(crate) cert_out: Option<PathBuf>,
    /// Name in the self-signed certificate besides localhost and the addresses that are listened on (those of
    /// the machine for a wildcard); repeatable
    #[arg(long, value_name = "NAME", conflicts_with = "cert", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) name: Vec<String>,
    /// Make each client prove its address first (Retry)
    #[arg(long)]
    pub(crate) retry: bool,
    /// Write a qlog file of each connection to this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) qlog: Option<PathBuf>,
    /// Paths that a client may open, the first included; 1 refuses multipath [default: 8, or as many as there are threads, at most 64]
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1..=64))]
    pub(crate) max_paths: Option<u32>,
    /// Seconds after which a client that takes nothing of what it asked for is dropped
    #[arg(long, value_name = "S", default_value_t = 30, value_parser = whole::<u32>(1..=86_400))]
    pub(crate) patience: u32,
    /// Threads of this process; with 2 or more, as many further threads serve the paths of connections, each path on one of
    /// them [default: one for each core, and no further ones]
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1..=1024))]
    pub(crate) threads: Option<usize>,
    /// Refuse clients that ask for other policies (`get --server-scheduler` and its like)
    #[arg(long)]
    pub(crate) fixed_policies: bool,
    /// Speak Multiflow QUIC to clients that offer it and not RFC 10069
    #[arg(long)]
    pub(crate) multiflow: bool,
    #[command(flatten)]
    pub(crate) hosts: HostArgs,
    #[command(flatten)]
    pub(crate) transport: TransportArgs,
    #[command(flatten)]
    pub(crate) interop: InteropArgs,
    /// Say nothing on standard error but errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

impl ListenArgs {
    /// Whether clients may choose how we send.
    pub(crate) fn terms(&self) -> Terms {
        if self.fixed_policies { Terms::Fixed } else { Terms::Negotiable }
    }
}

/// Options that other implementations are tested with; not shown in the help.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct InteropArgs {
    /// Speak ChaCha20-Poly1305 only
    #[arg(long, hide = true)]
    pub(crate) interop_chacha20: bool,
    /// Update the keys after the first 100 kB (client)
    #[arg(long, hide = true)]
    pub(crate) interop_key_update: bool,
    /// Move to a new port of this address after the first 100 kB (client)
    #[arg(long, value_name = "IP", hide = true)]
    pub(crate) interop_move: Option<IpAddr>,
    /// Connect twice, the second time with the session of the first, without early data (client)
    #[arg(long, hide = true)]
    pub(crate) interop_resume: bool,
    /// Version of the first packet; a reserved one makes the server show its versions (client)
    #[arg(long, value_name = "HEX", value_parser = parse_version, hide = true)]
    pub(crate) interop_version: Option<u32>,
    /// Prefer version 2 to the one that a connection begins in (both)
    #[arg(long, hide = true, conflicts_with = "interop_v1")]
    pub(crate) interop_prefer_v2: bool,
    /// Speak version 1 only (server)
    #[arg(long, hide = true)]
    pub(crate) interop_v1: bool,
}

/// How a client connects.
#[derive(Args, Clone, Debug)]
pub(crate) struct ConnectArgs {
    /// Local address (fe80::1%eth0 where it is link-local) or interface of a path; repeatable, the first is the initial path
    /// [default: every usable interface that has a route]
    #[arg(long, value_name = "ADDR|IFACE", conflicts_with = "single", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) path: Vec<String>,
    /// Use one path only, the one that the system chooses
    #[arg(long)]
    pub(crate) single: bool,
    /// Threads of this process; with 2 or more, as many further threads serve the paths of the connection, and at least as many
    /// paths are opened, several between the same addresses if need be [default: one for each core, and no further ones]
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1..=1024))]
    pub(crate) threads: Option<usize>,
    /// Accept any certificate
    #[arg(long, conflicts_with = "ca")]
    pub(crate) insecure: bool,
    /// Trust the certificates in this file, PEM
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// Extension to offer
    #[arg(long, value_enum, default_value_t = ExtensionName::Multipath)]
    pub(crate) extension: ExtensionName,
    #[command(flatten)]
    pub(crate) hosts: HostArgs,
    /// Which further paths this side opens by itself: from every address, or none [default: fullmesh]
    #[arg(long, value_name = "NAME", value_enum)]
    pub(crate) path_policy: Option<PathPolicyName>,
    /// Write a qlog file of the connection to this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) qlog: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) interop: InteropArgs,
    /// Give up when the handshake takes longer, seconds
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = parse_seconds)]
    pub(crate) connect_timeout: Duration,
    /// Connect over the first --path alone; by default the next one is tried too when no answer has come after 10 ms
    #[arg(long)]
    pub(crate) first_path_only: bool,
    #[command(flatten)]
    pub(crate) policies: BothSidesArgs,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct GetArgs {
    /// What to download; several URLs of one server share a connection
    #[arg(required = true, value_name = "URL")]
    pub(crate) urls: Vec<String>,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
    /// Write the body here, `-` for standard output; once for each URL
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Vec<PathBuf>,
    /// Receive, hash and forget the body
    #[arg(long, conflicts_with = "output")]
    pub(crate) discard: bool,
    /// Connect twice, and send the requests of the second connection as early data
    #[arg(long = "0rtt")]
    pub(crate) zero_rtt: bool,
    /// Give up when everything together takes longer, seconds
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(crate) max_time: Option<Duration>,
    #[command(flatten)]
    pub(crate) show: OutputArgs,
}

/// What hosts tell each other of their addresses and paths.
#[derive(Args, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HostArgs {
    /// Announce our addresses, and open paths to those that the peer announces; both sides must ask for it
    #[arg(long)]
    pub(crate) announce_addresses: bool,
    /// Announce the server's addresses by the frames of noq's NAT traversal, for peers that know only these; both sides must ask
    /// for it
    #[arg(long)]
    pub(crate) nat_traversal: bool,
    /// Announce the server's addresses by ADDITIONAL_ADDRESSES (draft-piraux-quic-additional-addresses); both sides must ask for
    /// it
    #[arg(long)]
    pub(crate) additional_addresses: bool,
    /// Report the state of our paths, and avoid those that the peer reports as failed; both sides must ask for it
    #[arg(long)]
    pub(crate) tell_paths: bool,
    /// Announce private, link-local and loopback addresses too, and try those that the peer announces: for networks of your own
    #[arg(long)]
    pub(crate) private_addresses: bool,
}

impl HostArgs {
    /// Whether a server may tell a client of its addresses.
    pub(crate) fn asks_for_addresses(self) -> bool {
        self.announce_addresses || self.nat_traversal || self.additional_addresses
    }

    /// Sets a transport to it.
    pub(crate) fn apply(self, transport: &mut TransportConfig) {
        let scope = if self.private_addresses { AddressScope::Any } else { AddressScope::Global };
        transport.address_scope(scope).announce_addresses(self.announce_addresses);
        transport.tell_paths(self.tell_paths).nat_traversal(self.nat_traversal);
        transport.additional_addresses(self.additional_addresses);
    }
}

/// Extensions that a client may offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExtensionName {
    Multipath,
    Multiflow,
    None,
}

impl ExtensionName {
    /// The name as typed and as reported.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Multipath => "multipath",
            Self::Multiflow => "multiflow",
            Self::None => "none",
        }
    }
}
