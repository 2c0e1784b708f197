//! Options of the commands: flags checked against each other and turned into plans.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use plait::{Extension, StreamPlacement};
use plait_base::limits::MAX_PATHS;
use plait_netsim::link::{DropCause, LinkConfig, LinkStats, Loss, QueueLimit};
use url::Url;

use crate::args::{
    ConnectArgs, DemoArgs, ExtensionName, GetArgs, HostArgs, InteropArgs, ServerPolicyArgs, TransportArgs,
};
use crate::error::CliError;
use crate::http::FILES;
use crate::http::policies::{Named, Wish};
use crate::http::request::Request;
use crate::names::{AckPathName, CongestionName, PathPolicyName, ReinjectionName, SchedulerName};
use crate::output::Format;
use crate::output::summary::LinkSummary;
use crate::service::Service;
use crate::zone;

/// Windows, unless something else is said.
const WINDOW_BYTES: u64 = 32 << 20;

/// Policies of this side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TransportPlan {
    pub(crate) scheduler: SchedulerName,
    /// None leaves the choice to the number of paths.
    pub(crate) congestion: Option<CongestionName>,
    pub(crate) ack_path: AckPathName,
    pub(crate) reinjection: ReinjectionName,
    /// Which paths carry the data of a stream.
    pub(crate) placement: StreamPlacement,
    /// Bytes that may be on their way on a stream, and on a connection, each way.
    pub(crate) window_bytes: u64,
    /// Largest datagram to try, bytes of UDP payload; none leaves it to the library.
    pub(crate) mtu: Option<u16>,
    /// Packets for which the peer is asked for an ack; none asks for nothing.
    pub(crate) ack_frequency: Option<u32>,
    /// Paths at once; none does not offer the extension.
    pub(crate) paths_max: Option<NonZeroU32>,
}

impl TransportPlan {
    /// Policies as typed, for so many paths.
    pub(crate) fn new(args: &TransportArgs, paths_max: u32) -> Self {
        Self {
            scheduler: args.scheduler.unwrap_or(SchedulerName::DEFAULT),
            congestion: args.cc,
            ack_path: args.ack_path.unwrap_or(AckPathName::DEFAULT),
            reinjection: args.reinjection.unwrap_or(ReinjectionName::DEFAULT),
            placement: StreamPlacement::Pooled,
            window_bytes: args.window.unwrap_or(WINDOW_BYTES),
            mtu: args.mtu,
            ack_frequency: args.ack_frequency,
            paths_max: NonZeroU32::new(paths_max).filter(|max| max.get() > 1),
        }
    }

    /// Our defaults, for so many paths.
    pub(crate) fn usual(paths_max: u32) -> Self {
        Self::new(
            &TransportArgs {
                scheduler: None,
                cc: None,
                ack_path: None,
                reinjection: None,
                window: None,
                mtu: None,
                ack_frequency: None,
            },
            paths_max,
        )
    }

    /// By name, with the extension or without.
    pub(crate) fn named(&self, multipath: Multipath) -> Named {
        Named {
            scheduler: self.scheduler.name().to_owned(),
            congestion: self.congestion_name(multipath).to_owned(),
            ack_path: self.ack_path.name().to_owned(),
            reinjection: self.reinjection.name().to_owned(),
        }
    }

    /// The controller that runs, with the extension or without.
    pub(crate) fn congestion_name(&self, multipath: Multipath) -> &'static str {
        match (self.congestion, multipath) {
            (Some(name), _) => name.name(),
            (None, Multipath::Negotiated) => CongestionName::MULTIPATH_DEFAULT.name(),
            (None, Multipath::Absent) => CongestionName::DEFAULT.name(),
        }
    }
}

/// Whether a connection speaks RFC 10069.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Multipath {
    /// Both sides offered it.
    Negotiated,
    /// One did not.
    Absent,
}

/// Where a body goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// Hashed and forgotten.
    Discard,
    /// Bytes go to standard output.
    Stdout,
    /// This file, which appears when it is whole.
    File(PathBuf),
}

/// One body to fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Download {
    pub(crate) url: String,
    /// What the request line names.
    pub(crate) target: String,
    /// Bytes, where the URL says.
    pub(crate) size: Option<u64>,
    pub(crate) to: Destination,
}

/// Whom to trust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// The system's certificate store.
    System,
    /// The certificates in this file.
    File(PathBuf),
    /// Any certificate will do.
    Anybody,
}

/// Local addresses of the paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Locals {
    /// Those named, the first for the handshake.
    Named(Vec<String>),
    /// One, of the system's choice.
    Single,
    /// All that lead to the server.
    All,
}

/// Whether requests go out before the handshake is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EarlyData {
    /// On a second connection, after a first one for a ticket.
    Offer,
    /// A second connection resumes the session of a first one, and waits for the handshake.
    Resume,
    /// It is not done.
    No,
}

/// Whether a client remembers sessions to resume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sessions {
    /// As long as the process lives.
    Kept,
    /// Every handshake is a full one.
    Forgotten,
}

/// The TLS of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientTls {
    pub(crate) service: Service,
    pub(crate) trust: Trust,
    pub(crate) suites: Suites,
    pub(crate) sessions: Sessions,
}

impl ClientTls {
    /// All suites, and sessions are kept.
    pub(crate) fn new(service: Service, trust: Trust) -> Self {
        Self { service, trust, suites: Suites::All, sessions: Sessions::Kept }
    }
}

/// Cipher suites to speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Suites {
    /// All that there are.
    #[default]
    All,
    /// Only ChaCha20-Poly1305 is offered.
    ChaCha20,
}

/// Who begins key updates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum KeyUpdates {
    /// Either side, when a limit of the AEAD comes near.
    #[default]
    WhenWorn,
    /// We, once a little has arrived.
    Early,
}

/// What is different for tests with other implementations, and what is logged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct InteropOptions {
    pub(crate) suites: Suites,
    pub(crate) key_updates: KeyUpdates,
    /// Where a client moves in the middle of a download.
    pub(crate) move_to: Option<IpAddr>,
    /// Version of the first packet.
    pub(crate) version: Option<u32>,
    /// Which version connections end in, where both sides know both.
    pub(crate) preferred_version: PreferredVersion,
    /// Folder for qlog.
    pub(crate) qlog: Option<PathBuf>,
}

/// Which versions we like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PreferredVersion {
    /// The one that the connection began in.
    #[default]
    AsBegun,
    /// Version 2, RFC 9369.
    Second,
}

impl InteropOptions {
    /// The options as they were typed.
    pub(crate) fn new(args: &InteropArgs, qlog: Option<&PathBuf>) -> Self {
        Self {
            suites: if args.interop_chacha20 { Suites::ChaCha20 } else { Suites::All },
            key_updates: if args.interop_key_update { KeyUpdates::Early } else { KeyUpdates::WhenWorn },
            move_to: args.interop_move,
            version: args.interop_version,
            preferred_version: if args.interop_prefer_v2 {
                PreferredVersion::Second
            } else {
                PreferredVersion::AsBegun
            },
            qlog: qlog.cloned(),
        }
    }
}

/// Paths that may be open at once where nothing asks for more.
const USUAL_PATHS: usize = 8;

/// How many paths may be open at once where `wanted` are to be: named ones, or one for each thread that serves paths.
pub(crate) fn room_for_paths(wanted: usize) -> u32 {
    wanted.clamp(USUAL_PATHS, MAX_PATHS) as u32
}

/// What connecting to a server needs, whatever is done there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConnectPlan {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) locals: Locals,
    pub(crate) tls: ClientTls,
    pub(crate) early_data: EarlyData,
    pub(crate) transport: TransportPlan,
    /// The extension to offer where several paths may be open.
    pub(crate) extension: Extension,
    /// What hosts tell each other.
    pub(crate) hosts: HostArgs,
    /// Who opens further paths.
    pub(crate) path_policy: PathPolicyName,
    pub(crate) interop: InteropOptions,
    /// How long the handshake may take.
    pub(crate) timeout: Duration,
    pub(crate) begin: BeginOver,
    /// Threads that serve the paths of the connection, each a path at least; 1 leaves them to its task.
    pub(crate) threads: usize,
}

/// Over which of our addresses a connection may begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum BeginOver {
    /// Whichever answers, the first of them first.
    #[default]
    Any,
    /// The first alone.
    First,
}

impl ConnectPlan {
    /// Checks the flags of a client. Early data is not offered, which the caller may change.
    pub(crate) fn new(args: &ConnectArgs, service: Service, (host, port): (String, u16)) -> Result<Self, CliError> {
        let threads = args.threads.unwrap_or(1);
        let extension_paths = match args.extension {
            ExtensionName::None if args.path.len() > 1 => {
                return Err(CliError::usage("--extension none allows one --path only"));
            }
            ExtensionName::None => 1,
            ExtensionName::Multipath | ExtensionName::Multiflow => room_for_paths(threads.max(args.path.len())),
        };
        if args.path.len() > MAX_PATHS {
            return Err(CliError::usage(format!("at most {MAX_PATHS} paths can be open at once")));
        }
        let locals = match (args.single || args.extension == ExtensionName::None, args.path.is_empty()) {
            (_, false) => Locals::Named(args.path.clone()),
            (true, true) => Locals::Single,
            (false, true) => Locals::All,
        };
        let trust = match (&args.ca, args.insecure) {
            (Some(file), _) => Trust::File(file.clone()),
            (None, true) => Trust::Anybody,
            (None, false) => Trust::System,
        };
        let interop = InteropOptions::new(&args.interop, args.qlog.as_ref());
        Ok(Self {
            host,
            port,
            locals,
            tls: ClientTls { suites: interop.suites, ..ClientTls::new(service, trust) },
            early_data: if args.interop.interop_resume { EarlyData::Resume } else { EarlyData::No },
            transport: TransportPlan::new(&args.policies.ours, extension_paths),
            extension: match args.extension {
                ExtensionName::Multiflow => Extension::Multiflow,
                ExtensionName::Multipath | ExtensionName::None => Extension::Multipath,
            },
            hosts: args.hosts,
            path_policy: args.path_policy.unwrap_or(PathPolicyName::OPENING),
            interop,
            timeout: args.connect_timeout,
            begin: if args.first_path_only { BeginOver::First } else { BeginOver::Any },
            threads,
        })
    }

    /// The same for the `index`-th of several connections of one path each, served by its task: from one of the named addresses
    /// in turns, or where the system chooses.
    pub(crate) fn shard(&self, index: usize) -> Self {
        let locals = match &self.locals {
            Locals::Named(names) if !names.is_empty() => Locals::Named(vec![names[index % names.len()].clone()]),
            _ => Locals::Single,
        };
        Self { locals, threads: 1, ..self.clone() }
    }

    /// Whether the server may tell addresses beside those that its name has.
    pub(crate) fn is_told_addresses(&self) -> bool {
        self.extension == Extension::Multiflow || self.hosts.asks_for_addresses()
    }
}

/// `plait get`, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GetPlan {
    pub(crate) connect: ConnectPlan,
    pub(crate) downloads: Vec<Download>,
    /// Policies that the server is asked for.
    pub(crate) wish: Wish,
    pub(crate) max_time: Option<Duration>,
}

impl GetPlan {
    /// Checks the flags of `get`.
    pub(crate) fn new(args: &GetArgs) -> Result<Self, CliError> {
        if args.output.len() > args.urls.len() {
            return Err(CliError::usage("there are more -o than URLs"));
        }
        let wish = wish(&args.connect.policies.theirs);
        if args.zero_rtt && !wish.is_empty() {
            // RFC 9001 9.2: what changes something must not be sent where it may be replayed.
            return Err(CliError::usage(
                "--0rtt sends the request before a server could be asked for its policies; drop one",
            ));
        }
        let urls = args.urls.iter().map(|text| parse_url(text)).collect::<Result<Vec<_>, _>>()?;
        let (host, port) = same_server(&urls)?;
        let downloads = downloads(args, &urls)?;
        let mut connect = ConnectPlan::new(&args.connect, FILES, (host, port))?;
        if args.zero_rtt {
            connect.early_data = EarlyData::Offer;
        }
        Ok(Self { connect, downloads, wish, max_time: args.max_time })
    }

    /// Bytes of all bodies, where every URL says.
    pub(crate) fn total(&self) -> Option<u64> {
        self.downloads.iter().map(|download| download.size).try_fold(0, |sum: u64, size| sum.checked_add(size?))
    }
}

/// What is asked of a server.
pub(crate) fn wish(theirs: &ServerPolicyArgs) -> Wish {
    Wish {
        scheduler: theirs.server_scheduler,
        congestion: theirs.server_cc,
        ack_path: theirs.server_ack_path,
        reinjection: theirs.server_reinjection,
        placement: None,
    }
}

/// A URL as it was typed.
struct TypedUrl {
    url: Url,
    /// The interface of a link-local address, for which URLs have no place.
    zone: Option<String>,
}

impl TypedUrl {
    /// Host and port, where there is a server.
    fn server(&self) -> (String, u16) {
        let host = self.url.host_str().unwrap_or("");
        let host = match &self.zone {
            Some(zone) => format!("{}%{zone}]", host.trim_end_matches(']')),
            None => host.to_owned(),
        };
        (host, self.url.port().unwrap_or(443))
    }

    /// As it is reported.
    fn text(&self) -> String {
        match &self.zone {
            Some(zone) => self.url.to_string().replacen(']', &format!("%25{zone}]"), 1),
            None => self.url.to_string(),
        }
    }
}

fn parse_url(text: &str) -> Result<TypedUrl, CliError> {
    let (plain, zone) = zone::of_url(text);
    let url = plain_url(text, &plain)?;
    Ok(TypedUrl { url, zone })
}

/// The URL without the zone that was typed in `text`.
fn plain_url(text: &str, plain: &str) -> Result<Url, CliError> {
    let full = if plain.contains("://") { plain.to_owned() } else { format!("https://{plain}") };
    let url = Url::parse(&full).map_err(|error| CliError::usage(format!("`{text}` is not a URL: {error}")))?;
    if !url.username().is_empty() || url.password().is_some() {
        // Neither is repeated: what is on the screen is seen.
        let host = url.host_str().unwrap_or("");
        return Err(CliError::usage(format!(
            "a URL for {host} has a user or a password in it, which nothing here sends; leave them out"
        )));
    }
    match (url.scheme(), url.host()) {
        ("https", Some(_)) => Ok(url),
        ("https", None) => Err(CliError::usage(format!("`{text}` names no host"))),
        (scheme, _) => Err(CliError::usage(format!("`{text}`: {scheme} is not spoken here, only https (over QUIC)"))),
    }
}

/// The host and port that all URLs share.
fn same_server(urls: &[TypedUrl]) -> Result<(String, u16), CliError> {
    let first = urls.first().map(TypedUrl::server).ok_or_else(|| CliError::usage("no URL was given"))?;
    match urls.iter().find(|url| url.server() != first) {
        Some(other) => {
            let other = other.text();
            Err(CliError::usage(format!("{other} is on another server than the first URL; use one `get` each")))
        }
        None => Ok(first),
    }
}

fn downloads(args: &GetArgs, urls: &[TypedUrl]) -> Result<Vec<Download>, CliError> {
    let format = Format::of(args.show);
    let rest = if args.discard || format.is_json() { Destination::Discard } else { Destination::Stdout };
    let mut downloads: Vec<Download> = Vec::with_capacity(urls.len());
    for (at, typed) in urls.iter().enumerate() {
        let url = &typed.url;
        let to = match args.output.get(at) {
            Some(file) if file.as_os_str() == "-" => Destination::Stdout,
            Some(file) => Destination::File(file.clone()),
            None => rest.clone(),
        };
        if to == Destination::Stdout && format.is_json() {
            return Err(CliError::usage("-o - and JSON cannot share standard output; write the body to a file"));
        }
        if matches!(to, Destination::File(_)) && downloads.iter().any(|other| other.to == to) {
            return Err(CliError::usage("two -o name the same file"));
        }
        let target = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        let size = match Request::parse(format!("GET {target}").as_bytes()) {
            Some(Request::Synthetic(size)) => Some(size),
            _ => None,
        };
        downloads.push(Download { url: typed.text(), target, size, to });
    }
    Ok(downloads)
}

/// One link of the demo, the same both ways.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LinkPlan {
    pub(crate) name: &'static str,
    pub(crate) rate_mbps: f64,
    pub(crate) rtt: Duration,
    pub(crate) loss: f64,
    pub(crate) queue: Duration,
}

/// Largest IP packet on the demo's links.
const LINK_MTU_BYTES: u32 = 1500;
/// Headers of IPv4 and UDP.
const LINK_OVERHEAD_BYTES: u32 = 28;

impl LinkPlan {
    /// One direction of it.
    pub(crate) fn link(&self) -> LinkConfig {
        LinkConfig::new((self.rate_mbps * 1e6) as u64, self.rtt / 2)
            .queue(QueueLimit::time(self.queue))
            .loss(Loss::Bernoulli(self.loss))
            .sizes(LINK_MTU_BYTES, LINK_OVERHEAD_BYTES)
    }

    /// As reported, with what it did towards the client.
    pub(crate) fn summary(&self, down: &LinkStats) -> LinkSummary {
        LinkSummary {
            name: self.name,
            rate_mbps: self.rate_mbps,
            rtt_ms: self.rtt.as_secs_f64() * 1e3,
            loss: self.loss,
            queue_ms: self.queue.as_secs_f64() * 1e3,
            down_packets: down.forwarded_packets,
            down_lost: down.drops(DropCause::Loss),
            down_queue_full: down.drops(DropCause::QueueFull),
        }
    }
}

/// `plait demo`, checked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DemoPlan {
    pub(crate) bytes: u64,
    pub(crate) links: [LinkPlan; 2],
    /// Bytes of the last download after which A dies.
    pub(crate) kill_at_bytes: u64,
    pub(crate) seed: u64,
    pub(crate) max_time: Duration,
    pub(crate) transport: TransportPlan,
}

/// Largest body of a demo: it should end while somebody watches.
const DEMO_BYTES_MAX: u64 = 100_000_000_000;

impl DemoPlan {
    /// Checks the flags of `demo`.
    pub(crate) fn new(args: &DemoArgs) -> Result<Self, CliError> {
        if args.bytes == 0 || args.bytes > DEMO_BYTES_MAX {
            return Err(CliError::usage("--bytes must be above 0 and at most 100G"));
        }
        if args.loss >= 1.0 {
            return Err(CliError::usage(
                "--loss 1 is all of it, so that nothing would arrive; write 1% for one in a hundred",
            ));
        }
        let link = |name, rate_mbps, rtt| LinkPlan { name, rate_mbps, rtt, loss: args.loss, queue: args.queue_ms };
        Ok(Self {
            bytes: args.bytes,
            links: [link("A", args.a_rate_mbps, args.a_rtt_ms), link("B", args.b_rate_mbps, args.b_rtt_ms)],
            kill_at_bytes: (args.bytes as f64 * args.kill_at) as u64,
            seed: args.seed,
            max_time: args.max_time,
            transport: TransportPlan {
                // The two links share nothing, so that there is nobody to be fair to: each path takes what it can get,
                // as a path alone does. A coupled controller would be compared with another one.
                congestion: Some(args.transport.cc.unwrap_or(CongestionName::DEFAULT)),
                ..TransportPlan::new(&args.transport, 2)
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::command_line::{Command, CommandLine};

    fn get(line: &[&str]) -> Result<GetPlan, CliError> {
        let line = ["plait", "get"].iter().chain(line);
        match CommandLine::parse_from(line).command {
            Command::Get(args) => GetPlan::new(&args),
            _ => unreachable!(),
        }
    }

    fn demo(line: &[&str]) -> Result<DemoPlan, CliError> {
        match CommandLine::parse_from(["plait", "demo"].iter().chain(line)).command {
            Command::Demo(args) => DemoPlan::new(&args),
            _ => unreachable!(),
        }
    }

    #[test]
    fn urls() {
        let plan = get(&["localhost:4433/bytes/10M", "https://localhost:4433/a?b", "-o", "x"]).unwrap();
        assert_eq!((plan.connect.host.as_str(), plan.connect.port, plan.downloads.len()), ("localhost", 4433, 2));
        let [first, second] = &plan.downloads[..] else { panic!() };
        assert_eq!((first.target.as_str(), first.size), ("/bytes/10M", Some(10_000_000)));
        assert_eq!((second.target.as_str(), second.size), ("/a?b", None));
        assert_eq!((&first.to, &second.to), (&Destination::File("x".into()), &Destination::Stdout));
        assert_eq!(plan.total(), None);
        assert_eq!(get(&["https://[::1]/", "--json"]).unwrap().connect.host, "[::1]");
        for zoned in ["[fe80::1%eth0]:5/a", "https://[fe80::1%25eth0]:5/a"] {
            let plan = get(&[zoned, "--json"]).unwrap();
            assert_eq!((plan.connect.host.as_str(), plan.connect.port), ("[fe80::1%eth0]", 5));
            assert_eq!(
                (plan.downloads[0].url.as_str(), plan.downloads[0].target.as_str()),
                ("https://[fe80::1%25eth0]:5/a", "/a")
            );
        }
        assert!(get(&["https://[fe80::1%a]/", "https://[fe80::1%b]/", "--json"]).is_err());
        assert_eq!(get(&["https://h/bytes/1K", "https://h/bytes/2K"]).unwrap().total(), Some(3000));
    }

    #[test]
    fn wrong_usage() {
        let wrong: [&[&str]; 10] = [
            &["http://x/"],
            &["user@x/"],
            &["https://:word@x/"],
            &["ftp://x/"],
            &["https:///"],
            &["https://x/", "https://y/"],
            &["https://x/", "-o", "a", "-o", "b"],
            &["https://x/1", "https://x/2", "-o", "a", "-o", "a"],
            &["https://x/", "-o", "-", "--json"],
            &["https://x/", "--extension", "none", "--path", "::1", "--path", "::2"],
        ];
        for line in wrong {
            assert_eq!(get(line).unwrap_err().exit_code(), 2, "{line:?}");
        }
        let told = get(&["https://x/", "https://user:secret@x/"]).unwrap_err().to_string();
        assert!(told.contains("a URL for x has a user or a password") && !told.contains("secret"), "{told}");
        let multiflow = get(&["https://x/", "--extension", "multiflow", "--private-addresses"]).unwrap();
        assert_eq!(
            (multiflow.connect.extension, multiflow.connect.hosts.private_addresses),
            (Extension::Multiflow, true)
        );
        assert!(demo(&["--bytes", "0"]).is_err());
        assert!(demo(&["--loss", "1"]).unwrap_err().to_string().contains("write 1%"));
        let early = get(&["https://x/", "--0rtt", "--server-cc", "bbr"]).unwrap_err();
        assert!(early.to_string().contains("drop one"));
    }

    #[test]
    fn paths_and_bodies() {
        assert_eq!(get(&["x"]).unwrap().connect.locals, Locals::All);
        assert_eq!(get(&["x", "--single"]).unwrap().connect.locals, Locals::Single);
        assert_eq!(get(&["x", "--extension", "none"]).unwrap().connect.locals, Locals::Single);
        assert_eq!(get(&["x", "--path", "lo"]).unwrap().connect.locals, Locals::Named(vec!["lo".into()]));
        assert_eq!(get(&["x", "--json"]).unwrap().downloads[0].to, Destination::Discard);
        assert_eq!(get(&["x", "--extension", "none"]).unwrap().connect.transport.paths_max, None);
        let room = |line: &[&str]| get(line).unwrap().connect.transport.paths_max.map(NonZeroU32::get);
        assert_eq!(
            (room(&["x"]), room(&["x", "--threads", "12"]), room(&["x", "--threads", "100"])),
            (Some(8), Some(12), Some(64))
        );
        let named = |count| get(&[vec!["x"], ["--path", "lo"].repeat(count)].concat());
        assert_eq!(named(9).unwrap().connect.transport.paths_max.map(NonZeroU32::get), Some(9));
        assert!(named(65).unwrap_err().to_string().contains("at most 64 paths"));
        let asked = get(&["x", "--server-cc", "bbr", "--cc", "balia"]).unwrap();
        assert_eq!(asked.wish.words().map(|(_, name)| name), [None, Some("bbr"), None, None, None]);
        let plan = get(&["x", "--cc", "balia"]).unwrap().connect.transport;
        assert_eq!(plan.congestion_name(Multipath::Absent), "balia");
        let plan = get(&["x"]).unwrap().connect.transport;
        assert_eq!(plan.congestion_name(Multipath::Absent), "cubic");
        assert_eq!(plan.congestion_name(Multipath::Negotiated), "auto");
    }

    #[test]
    fn links() {
        let plan = demo(&["--bytes", "1M", "--kill-at", "25%"]).unwrap();
        assert_eq!(plan.kill_at_bytes, 250_000);
        let link = plan.links[1].link();
        assert_eq!((link.rate.mean_bps(), link.delay), (Some(30_000_000), Duration::from_millis(20)));
        assert!(link.check().is_ok());
    }
}
