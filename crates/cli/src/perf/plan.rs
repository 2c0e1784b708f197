//! `plait perf client`, its flags checked.

use std::time::Duration;

use plait::StreamPlacement;

use super::args::{PerfClientArgs, Placement};
use super::carrier::Carrier;
use super::datagrams::STAMP_BYTES;
use super::load::{BulkLoad, ConnectionLoad, DatagramLoad, Extent, RequestLoad, Workload};
use super::{HEAD_BYTES, PERF};
use crate::args::{ConnectArgs, ExtensionName, HostArgs};
use crate::error::CliError;
use crate::http::policies::Wish;
use crate::listen::DEFAULT_PORT;
use crate::options::{ConnectPlan, Sessions, wish};
use crate::zone;

/// How long a load runs when nothing is said.
const USUAL_TIME: Duration = Duration::from_secs(10);
/// Bytes of a datagram when nothing is said: they fit the smallest path (RFC 9000 14) with all headers.
const USUAL_DATAGRAM_BYTES: u64 = 1100;

/// `plait perf client`, checked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PerfPlan {
    pub(crate) connect: ConnectPlan,
    pub(crate) carrier: Carrier,
    pub(crate) load: Workload,
    /// Streams or connections at once, each way.
    pub(crate) streams: u64,
    /// Connections that the streams of the load are dealt to.
    pub(crate) shards: usize,
    /// Policies that the server is asked for.
    pub(crate) wish: Wish,
    /// Time between two lines of progress.
    pub(crate) interval: Duration,
    /// Time for all from the first packet on.
    pub(crate) time_limit: Option<Duration>,
    /// Whether the server is asked for anything but the load.
    pub(crate) questions: Questions,
}

/// Whether a server is asked what it does and what it cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Questions {
    Asked,
    /// Nothing lies between handshake and load.
    None,
}

impl PerfPlan {
    /// Checks the flags.
    pub(crate) fn new(args: &PerfClientArgs) -> Result<Self, CliError> {
        let mut connect = ConnectPlan::new(&args.connect, PERF, server(&args.server)?)?;
        let shards = shards(args)?;
        let streams = args.streams.max(u32::try_from(shards).unwrap_or(u32::MAX));
        let load = load(args, streams.into())?;
        if matches!(load, Workload::Connections(_)) {
            connect.tls.sessions = Sessions::Forgotten;
        }
        let mut wished = wish(&args.connect.policies.theirs);
        if args.placement == Placement::Pinned {
            connect.transport.placement = StreamPlacement::Pinned;
            wished.placement = (args.reverse || args.bidir).then_some(StreamPlacement::Pinned);
        }
        let carrier = match args.carrier.kernel() {
            None => Carrier::Quic,
            Some(_) if matches!(load, Workload::Datagrams(_)) => {
                return Err(CliError::usage("there are no datagrams over TCP"));
            }
            Some(_) if !wished.is_empty() => {
                return Err(CliError::usage("over TCP the server's kernel has its own policies; drop --server-..."));
            }
            Some(kernel) => {
                refuse_what_quic_has(&args.connect)?;
                Carrier::Kernel(kernel)
            }
        };
        let questions = if args.no_questions { Questions::None } else { Questions::Asked };
        if questions == Questions::None && !wished.is_empty() {
            return Err(CliError::usage("a server is asked for what it is to do; drop --no-questions"));
        }
        Ok(Self {
            connect,
            carrier,
            load,
            streams: u64::from(streams),
            shards,
            wish: wished,
            interval: args.interval,
            time_limit: args.max_time,
            questions,
        })
    }
}

impl PerfPlan {
    /// How paths share the streams of the load, by its name; none over TCP.
    pub(crate) fn placement(&self) -> Option<&'static str> {
        let is_pinned = self.connect.transport.placement == StreamPlacement::Pinned;
        (self.carrier == Carrier::Quic).then_some(match (self.shards > 1, is_pinned) {
            (true, _) => "shard",
            (false, true) => "pinned",
            (false, false) => "pooled",
        })
    }
}

/// Over TCP, what only QUIC has would be ignored.
fn refuse_what_quic_has(connect: &ConnectArgs) -> Result<(), CliError> {
    let ours = &connect.policies.ours;
    let given = [
        ("--scheduler", ours.scheduler.is_some()),
        ("--ack-path", ours.ack_path.is_some()),
        ("--reinjection", ours.reinjection.is_some()),
        ("--window", ours.window.is_some()),
        ("--mtu", ours.mtu.is_some()),
        ("--ack-frequency", ours.ack_frequency.is_some()),
        ("--threads", connect.threads.is_some_and(|threads| threads > 1)),
        ("--extension", connect.extension == ExtensionName::Multiflow),
        ("--path-policy", connect.path_policy.is_some()),
        ("--first-path-only", connect.first_path_only),
        ("--qlog", connect.qlog.is_some()),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((flag, _)) => Err(CliError::usage(format!("{flag} is about QUIC, and TCP is the kernel's; drop it"))),
        None if connect.hosts != HostArgs::default() => {
            Err(CliError::usage("what hosts tell each other of paths is about QUIC, and TCP is the kernel's; drop it"))
        }
        None => Ok(()),
    }
}

/// Connections that share the load.
fn shards(args: &PerfClientArgs) -> Result<usize, CliError> {
    let has_streams = args.carrier.kernel().is_none() && !args.mode.connections && !args.mode.datagrams;
    match (args.placement, args.connect.threads.unwrap_or(1)) {
        (Placement::Pooled, _) => Ok(1),
        (Placement::Pinned | Placement::Shard, _) if !has_streams => {
            Err(CliError::usage("--placement goes with streams over QUIC"))
        }
        (Placement::Pinned, _) => Ok(1),
        (Placement::Shard, 1) => {
            Err(CliError::usage("--placement shard wants --threads 2 or more, a connection for each"))
        }
        (Placement::Shard, threads) => Ok(threads),
    }
}

fn load(args: &PerfClientArgs, lanes: u64) -> Result<Workload, CliError> {
    let time = args.time.unwrap_or(USUAL_TIME);
    let amount = |amount: Option<u64>| amount.map_or(Extent::Time(time), Extent::Amount);
    let is_bulk = !(args.mode.requests || args.mode.connections || args.mode.datagrams);
    let misplaced: [(&str, bool); 8] = [
        ("--bytes", args.bytes.is_some() && !is_bulk),
        ("--reverse", args.reverse && !is_bulk),
        ("--bidir", args.bidir && !is_bulk),
        ("--count", args.count.is_some() && (is_bulk || args.mode.datagrams)),
        ("--request-size", args.request_size.is_some() && !args.mode.requests),
        ("--response-size", args.response_size.is_some() && !args.mode.requests),
        ("--streams", lanes > 1 && args.mode.datagrams),
        ("--every-ms", args.every_ms.is_some() && !args.mode.requests),
    ];
    if let Some((flag, _)) = misplaced.iter().find(|(_, is_misplaced)| *is_misplaced) {
        return Err(CliError::usage(format!("{flag} does not go with this kind of load")));
    }
    if args.mode.requests {
        let size = |size: Option<u64>| size.unwrap_or(PerfClientArgs::REQUEST_BYTES);
        let request_bytes = size(args.request_size);
        if !(HEAD_BYTES as u64..=PerfClientArgs::REQUEST_BYTES_MAX).contains(&request_bytes) {
            return Err(CliError::usage(format!(
                "--request-size must be from {HEAD_BYTES} bytes, which the protocol needs, to {}",
                PerfClientArgs::REQUEST_BYTES_MAX
            )));
        }
        return Ok(Workload::Requests(RequestLoad {
            lanes,
            extent: amount(args.count),
            request_bytes: request_bytes as usize,
            response_bytes: size(args.response_size),
            interval: args.every_ms,
        }));
    }
    if args.mode.connections {
        return Ok(Workload::Connections(ConnectionLoad { lanes, extent: amount(args.count) }));
    }
    if args.mode.datagrams {
        let size_bytes = args.length.unwrap_or(USUAL_DATAGRAM_BYTES);
        if !(STAMP_BYTES as u64..=65_535).contains(&size_bytes) {
            return Err(CliError::usage(format!("--length must be from {STAMP_BYTES} to 65535 bytes")));
        }
        return Ok(Workload::Datagrams(DatagramLoad { rate_mbps: args.rate_mbps.unwrap_or(1.0), size_bytes, time }));
    }
    Ok(Workload::Bulk(BulkLoad {
        up: if args.reverse { 0 } else { lanes },
        down: if args.reverse || args.bidir { lanes } else { 0 },
        extent: amount(args.bytes),
    }))
}

/// Host and port of a server as typed.
fn server(text: &str) -> Result<(String, u16), CliError> {
    let wrong = || CliError::usage(format!("`{text}` names no server; write HOST, HOST:PORT or [ADDR]:PORT"));
    let is_bare_v6 = zone::bare_host(text).parse::<std::net::Ipv6Addr>().is_ok() && !text.starts_with('[');
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !is_bare_v6 && !text.ends_with(']') => (host, port.parse().map_err(|_| wrong())?),
        _ => (text, DEFAULT_PORT),
    };
    let is_plain = !host.is_empty() && !host.contains(['/', '@', ' ']);
    if is_plain { Ok((host.to_owned(), port)) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::command_line::{Command, CommandLine};
    use crate::perf::args::PerfCommand;

    fn plan(line: &[&str]) -> Result<PerfPlan, CliError> {
        match CommandLine::parse_from(["plait", "perf", "client"].iter().chain(line)).command {
            Command::Perf(PerfCommand::Client(args)) => PerfPlan::new(&args),
            _ => unreachable!(),
        }
    }

    #[test]
    fn servers() {
        let of = |text: &str| plan(&[text]).map(|plan| (plan.connect.host, plan.connect.port));
        assert_eq!(of("host").unwrap(), ("host".to_owned(), 4433));
        assert_eq!(of("host:5").unwrap(), ("host".to_owned(), 5));
        assert_eq!(of("[::1]:5").unwrap(), ("[::1]".to_owned(), 5));
        assert_eq!(of("[::1]").unwrap(), ("[::1]".to_owned(), 4433));
        assert_eq!(of("[fe80::1%eth0]:5").unwrap(), ("[fe80::1%eth0]".to_owned(), 5));
        assert_eq!(of("fe80::1%eth0").unwrap(), ("fe80::1%eth0".to_owned(), 4433));
        assert_eq!(of("fe80::1").unwrap(), ("fe80::1".to_owned(), 4433));
        for text in ["", ":1", "host:", "host:x", "host:70000", "https://host", "a b"] {
            assert_eq!(of(text).unwrap_err().exit_code(), 2, "{text}");
        }
    }

    #[test]
    fn shards_want_threads_and_streams() {
        let of = |line: &[&str]| {
            plan(&[&["h", "--placement", "shard"], line].concat()).map(|plan| (plan.shards, plan.streams))
        };
        assert_eq!(of(&["--threads", "3"]).unwrap(), (3, 3));
        assert_eq!(of(&["--threads", "2", "-P", "8", "--bidir"]).unwrap(), (2, 8));
        for line in [&[][..], &["--threads", "1"], &["--threads", "2", "--datagrams"], &["--threads", "2", "--tcp"]] {
            assert_eq!(of(line).unwrap_err().exit_code(), 2, "{line:?}");
        }
        assert_eq!(plan(&["h", "--threads", "4"]).unwrap().shards, 1);
    }

    #[test]
    fn pinned_streams_are_wished_of_whoever_sends() {
        let of = |line: &[&str]| {
            plan(&[&["h", "--placement", "pinned"], line].concat())
                .map(|plan| (plan.shards, plan.connect.transport.placement, plan.wish.placement))
        };
        let pinned = StreamPlacement::Pinned;
        assert_eq!(of(&[]).unwrap(), (1, pinned, None));
        assert_eq!(of(&["-R", "--threads", "2"]).unwrap(), (1, pinned, Some(pinned)));
        for line in [&["--datagrams"][..], &["--tcp"], &["--connections"], &["-R", "--no-questions"]] {
            assert_eq!(of(line).unwrap_err().exit_code(), 2, "{line:?}");
        }
        let usual = plan(&["h"]).unwrap();
        assert_eq!((usual.connect.transport.placement, usual.wish.placement), (StreamPlacement::Pooled, None));
    }

    #[test]
    fn loads() {
        let of = |line: &[&str]| plan(&[&["h"], line].concat()).map(|plan| plan.load);
        let bulk = |up, down, extent| Workload::Bulk(BulkLoad { up, down, extent });
        let ten = Extent::Time(Duration::from_secs(10));
        assert_eq!(of(&[]).unwrap(), bulk(1, 0, ten));
        assert_eq!(of(&["-R", "-P", "4", "-n", "1M"]).unwrap(), bulk(0, 4, Extent::Amount(1_000_000)));
        assert_eq!(of(&["--bidir", "-t", "0.5"]).unwrap(), bulk(1, 1, Extent::Time(Duration::from_millis(500))));
        let Workload::Requests(requests) = of(&["--requests", "--count", "7", "-P", "3"]).unwrap() else { panic!() };
        assert_eq!((requests.lanes, requests.extent, requests.request_bytes), (3, Extent::Amount(7), 750));
        assert!(matches!(of(&["--connections"]).unwrap(), Workload::Connections(_)));
        let Workload::Datagrams(datagrams) = of(&["--datagrams", "-b", "5", "-l", "200"]).unwrap() else { panic!() };
        assert_eq!((datagrams.rate_mbps, datagrams.size_bytes), (5.0, 200));
        assert_eq!(plan(&["h", "--connections"]).unwrap().connect.tls.sessions, Sessions::Forgotten);
        for (line, expected) in [
            (&["--requests", "-R"][..], "--reverse does not go"),
            (&["--count", "3"], "--count does not go"),
            (&["--requests", "--request-size", "7"], "from 8 bytes"),
            (&["--datagrams", "-l", "3"], "from 16 to 65535"),
            (&["--datagrams", "-P", "2"], "--streams does not go"),
            (&["--datagrams", "--tcp"], "no datagrams over TCP"),
            (&["--connections", "--count", "2", "--every-ms", "5"], "--every-ms does not go"),
            (&["--no-questions", "--server-cc", "bbr"], "drop --no-questions"),
            (&["--mptcp", "--server-cc", "bbr"], "drop --server-"),
            (&["--tcp", "--scheduler", "blest"], "--scheduler is about QUIC"),
            (&["--tcp", "--ack-path", "own"], "--ack-path is about QUIC"),
            (&["--tcp", "--reinjection", "none"], "--reinjection is about QUIC"),
            (&["--mptcp", "--threads", "2"], "--threads is about QUIC"),
            (&["--tcp", "--mtu", "9000"], "--mtu is about QUIC"),
            (&["--tcp", "--window", "1Mi"], "--window is about QUIC"),
            (&["--tcp", "--qlog", "q"], "--qlog is about QUIC"),
            (&["--tcp", "--tell-paths"], "is about QUIC"),
        ] {
            let text = of(line).unwrap_err().to_string();
            assert!(text.contains(expected), "{line:?}: {text}");
        }
    }
}
