//! `plait demo`: what two paths give over one, on this machine, over real sockets and shaped links.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use plait::{ClientConfig, Connection, Endpoint, EndpointConfig, FourTuple};

use super::serve;
use crate::args::DemoArgs;
use crate::connect::{CLOSE_TIMEOUT, handshake_failure, off_thread};
use crate::error::CliError;
use crate::http::FILES;
use crate::http::client::fetch;
use crate::http::policies::{Terms, Wish};
use crate::http::server::FileServer;
use crate::http::sink::Sink;
use crate::measure::aggregation_benefit;
use crate::meter::Meter;
use crate::options::{ClientTls, DemoPlan, Destination, Multipath, Suites, TransportPlan, Trust};
use crate::output::progress::{ProgressDisplay, Snapshot};
use crate::output::summary::{BothSides, BytesByPath, DemoSummary, PathSummary, RunSummary, duplicates};
use crate::output::table::Table;
use crate::output::{Format, eprint_line, print_json, print_line, refused};
use crate::paths::PathTable;
use crate::pattern::Pattern;
use crate::relay::{Relay, RelayConfig};
use crate::tls::Shown;
use crate::transfer::watched;
use crate::units::{human_bytes, mbps, rounded};
use crate::{identity, stop, transport};

/// How often the bytes are looked at that decide when A dies.
const KILL_CHECK: Duration = Duration::from_millis(1);
/// How long a handshake may take over links with losses.
const HANDSHAKE_TIME: Duration = Duration::from_secs(20);

/// Which links a download uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Course {
    OnlyA,
    OnlyB,
    Both,
    BothThenOnlyB,
}

impl Course {
    const ALL: [Self; 4] = [Self::OnlyA, Self::OnlyB, Self::Both, Self::BothThenOnlyB];

    fn name(self) -> &'static str {
        match self {
            Self::OnlyA => "A",
            Self::OnlyB => "B",
            Self::Both => "A+B",
            Self::BothThenOnlyB => "A+B, A dies",
        }
    }

    fn has_two_paths(self) -> bool {
        matches!(self, Self::Both | Self::BothThenOnlyB)
    }
}

/// Server, links and what a body must be.
#[derive(Debug)]
struct DemoStage {
    plan: DemoPlan,
    server: Endpoint,
    relays: [Relay; 2],
    sha256: String,
}

/// What a download is measured by, known even when it fails.
#[derive(Debug, Default)]
struct Measured {
    meter: Option<Arc<Meter>>,
    connection: Option<Connection>,
    handshake_ms: Option<f64>,
    killed_at_s: Option<f64>,
    paths: Vec<PathSummary>,
    intact: bool,
}

/// Runs all downloads and reports.
pub(crate) async fn run(args: DemoArgs) -> Result<(), CliError> {
    let stage = DemoPlan::new(&args).and_then(DemoStage::set);
    let mut stage = stage.map_err(|fail| refused("demo", args.output, fail))?;
    announce(&stage.plan, &args);
    let mut runs = Vec::with_capacity(Course::ALL.len());
    let ended = tokio::select! {
        ended = run_all(&mut stage, &args, &mut runs) => ended,
        () = stop::asked() => Err(CliError::Interrupted),
    };
    stage.server.close(0, b"the demo is over");
    let failure = ended.err().or_else(|| failure_of(&runs));
    let summary = summarize(&stage, runs, failure.as_ref());
    let printed = if Format::of(args.output).is_json() { print_json(&summary) } else { print_table(&summary) };
    failure.map_or(printed, Err)
}

fn print_table(summary: &DemoSummary) -> Result<(), CliError> {
    table(summary).lines().iter().try_for_each(|line| print_line(line))?;
    if summary.runs.iter().any(|run| run.duplicate_bytes.is_some_and(|bytes| bytes > 0)) {
        print_line(
            "over A and B together is more than the body where bytes came twice: lost and sent again, or copied",
        )?;
    }
    let Some(benefit) = summary.aggregation_benefit else { return Ok(()) };
    print_line(&format!(
        "aggregation benefit {benefit:.2}  (0: A+B is as good as the better path alone, 1: as good as both together)"
    ))
}

async fn run_all(stage: &mut DemoStage, args: &DemoArgs, runs: &mut Vec<RunSummary>) -> Result<(), CliError> {
    stage.sha256 = stage.digest().await?;
    for course in Course::ALL {
        runs.push(stage.download(course, args).await);
    }
    Ok(())
}

fn too_late(limit: Duration) -> CliError {
    let what = format!("not done within {} s", limit.as_secs_f64());
    CliError::running(what, "try fewer --bytes or a longer --max-time")
}

fn failure_of(runs: &[RunSummary]) -> Option<CliError> {
    runs.iter().find_map(|run| {
        let error = run.error.as_ref()?;
        Some(CliError::Running(format!("{}: {error}", run.name)))
    })
}

impl DemoStage {
    /// Starts the server and the relays.
    fn set(plan: DemoPlan) -> Result<Self, CliError> {
        let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let failed = |what: &str, error: &dyn std::fmt::Display| {
            CliError::running(format!("{what}: {error}"), "the demo needs UDP on 127.0.0.1")
        };
        let mut config =
            transport::server_config(FILES, Shown::self_signed(&identity::fresh()?, &[], [])?, Suites::All)?;
        config.transport_config(Arc::new(transport::config(&plan.transport)));
        let server = Endpoint::server(config, any_port).map_err(|error| failed("the server cannot start", &error))?;
        let address = server.local_addr().map_err(|error| failed("the server cannot start", &error))?;
        let relay = |at: usize| {
            let link = plan.links[at].link();
            let seed = plan.seed.wrapping_add(at as u64);
            let config = RelayConfig { listen: any_port, server: address, up: link.clone(), down: link, seed };
            Relay::start(config).map_err(|error| failed("a relay cannot start", &error))
        };
        let relays = [relay(0)?, relay(1)?];
        let (site, endpoint) = (Arc::new(FileServer::new(None, Terms::Fixed)), server.clone());
        tokio::spawn(async move { serve::accept(&endpoint, &site).await });
        Ok(Self { plan, server, relays, sha256: String::new() })
    }

    /// The digest that every body must have; a long one takes a while, which `--max-time` bounds too.
    async fn digest(&self) -> Result<String, CliError> {
        let bytes = self.plan.bytes;
        let hashing = off_thread(move || Ok(Pattern::new().sha256(bytes)));
        tokio::time::timeout(self.plan.max_time, hashing).await.unwrap_or_else(|_| Err(too_late(self.plan.max_time)))
    }

    async fn download(&self, course: Course, args: &DemoArgs) -> RunSummary {
        let mut measured = Measured::default();
        let result =
            match tokio::time::timeout(self.plan.max_time, self.try_download(course, args, &mut measured)).await {
                Ok(result) => result,
                Err(_) => Err(too_late(self.plan.max_time)),
            };
        if let (true, Some(connection)) = (measured.paths.is_empty(), &measured.connection) {
            let mut book = PathTable::default();
            book.sample(connection);
            measured.paths = book.paths();
            connection.close(0, b"too late");
        }
        if let (Err(_), Some(meter)) = (&result, &measured.meter) {
            meter.on_broken_off();
        }
        self.summarize(course, &measured, result.err())
    }

    async fn try_download(&self, course: Course, args: &DemoArgs, measured: &mut Measured) -> Result<(), CliError> {
        let [a, b] = &self.relays;
        let first = if course == Course::OnlyB { b } else { a };
        let (endpoint, config, second_ip) = self.client(course)?;
        let meter = Arc::new(Meter::start());
        measured.meter = Some(Arc::clone(&meter));
        let hint = match self.plan.links[0].loss > 0.0 {
            true => "try a smaller --loss",
            false => "the demo needs UDP on 127.0.0.1",
        };
        let no_start = |error: &dyn std::fmt::Display| CliError::running(error, hint);
        // Each path is to begin on its own link: no other address may come first.
        let local = endpoint.local_addr().map_err(|error| no_start(&error))?;
        let tuple = FourTuple { local, remote: first.address() };
        let connecting = endpoint.connect_from(config, tuple, "localhost").map_err(|error| no_start(&error))?;
        let connection = tokio::time::timeout(HANDSHAKE_TIME, connecting)
            .await
            .map_err(|_| no_start(&"the handshake was not done in time"))?
            .map_err(|error| handshake_failure("the demo's server", FILES, first.address(), &error))?;
        measured.connection = Some(connection.clone());
        measured.handshake_ms = Some(rounded(meter.seconds() * 1e3, 3));

        let open_second = async {
            if course.has_two_paths()
                && let Err(error) = connection.open_path((second_ip, b.address())).await
            {
                tracing::warn!(%error, "path B was not opened");
            }
        };
        let kill = async {
            if course == Course::BothThenOnlyB {
                while meter.bytes() < self.plan.kill_at_bytes {
                    tokio::time::sleep(KILL_CHECK).await;
                }
                a.kill();
                measured.killed_at_s = Some(rounded(meter.seconds(), 6));
            }
            // The download alone decides when it is over.
            std::future::pending::<()>().await;
        };
        let target = format!("/bytes/{}", self.plan.bytes);
        let sink = Sink::open(&Destination::Discard).await?;
        let work = async {
            tokio::select! {
                result = fetch(&connection, &target, sink, &meter) => result,
                ((), ()) = async { tokio::join!(open_second, kill) } => Err(CliError::Interrupted),
            }
        };
        let mut progress = ProgressDisplay::new(args.output, Some(course.name()), Some(self.plan.bytes));
        let mut book = PathTable::default();
        let mut look = || Snapshot::of(&mut book, &connection, &meter);
        let result = watched(work, &mut look, &mut progress).await;
        let paths = book.paths();
        meter.stop();
        measured.paths = paths;
        measured.intact = result?.sha256 == self.sha256;
        connection.close(0, b"done");
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, endpoint.wait_closes_sent()).await;
        if measured.intact {
            Ok(())
        } else {
            Err(CliError::Running("the body that arrived is not the one sent".into()))
        }
    }

    /// A client with an address for each path, and the address of its second path. Systems with one loopback address
    /// use it twice.
    fn client(&self, course: Course) -> Result<(Endpoint, ClientConfig, IpAddr), CliError> {
        let failed = |error: &dyn std::fmt::Display| CliError::running(error, "the demo needs UDP on 127.0.0.1");
        let config = EndpointConfig::fresh().map_err(|error| failed(&error))?;
        let first = IpAddr::from(Ipv4Addr::LOCALHOST);
        let endpoint = Endpoint::new(config, None, [SocketAddr::new(first, 0)]).map_err(|error| failed(&error))?;
        let mut client = transport::client_config(&ClientTls::new(FILES, Trust::Anybody))?;
        let transport = match course.has_two_paths() {
            true => self.plan.transport,
            false => TransportPlan { paths_max: None, ..self.plan.transport },
        };
        client.transport_config(Arc::new(transport::config(&transport)));
        let second = IpAddr::from(Ipv4Addr::new(127, 0, 0, 2));
        let has_second = course.has_two_paths() && endpoint.add_socket(SocketAddr::new(second, 0)).is_ok();
        Ok((endpoint, client, if has_second { second } else { first }))
    }

    fn summarize(&self, course: Course, measured: &Measured, error: Option<CliError>) -> RunSummary {
        let meter = measured.meter.as_ref();
        let (bytes, seconds) = meter.map_or((0, 0.0), |meter| (meter.bytes(), meter.seconds()));
        let arrivals = meter.map(|meter| meter.arrivals()).unwrap_or_default();
        let ms = |time: Duration| rounded(time.as_secs_f64() * 1e3, 3);
        let over = |relay: &Relay| {
            let remote = relay.address().to_string();
            let paths = measured.paths.iter().filter(|path| path.remote == remote);
            paths.map(|path| path.stream_bytes_received).sum()
        };
        RunSummary {
            name: course.name(),
            seconds: rounded(seconds, 6),
            bytes,
            goodput_mbps: rounded(mbps(bytes, seconds), 3),
            handshake_ms: measured.handshake_ms,
            first_byte_ms: arrivals.first().map(ms),
            longest_stall_ms: ms(arrivals.longest_gap()),
            killed_at_s: measured.killed_at_s,
            bytes_intact: measured.intact,
            bytes_by_path: BytesByPath { a: over(&self.relays[0]), b: over(&self.relays[1]) },
            duplicate_bytes: duplicates(&measured.paths, bytes).filter(|_| error.is_none()),
            paths: measured.paths.clone(),
            error: error.map(|error| error.to_string()),
        }
    }
}

fn announce(plan: &DemoPlan, args: &DemoArgs) {
    if args.output.quiet {
        return;
    }
    let link = |at: usize| {
        let link = &plan.links[at];
        format!("{}: {} Mbit/s, RTT {:.0} ms", link.name, link.rate_mbps, link.rtt.as_secs_f64() * 1e3)
    };
    let loss = plan.links[0].loss * 100.0;
    eprint_line(&format!("two links on this machine, {loss} % loss each way; {}; {}", link(0), link(1)));
    eprint_line(&format!("{} over A, over B, over both, and over both until A dies", human_bytes(plan.bytes)));
}

fn summarize(stage: &DemoStage, runs: Vec<RunSummary>, failure: Option<&CliError>) -> DemoSummary {
    let goodput = |course: Course| {
        let run = runs.iter().find(|run| run.name == course.name() && run.bytes_intact)?;
        Some(run.goodput_mbps)
    };
    let benefit = match (goodput(Course::Both), goodput(Course::OnlyA), goodput(Course::OnlyB)) {
        (Some(both), Some(a), Some(b)) => Some(rounded(aggregation_benefit(both, &[a, b]), 3)),
        _ => None,
    };
    let plan = &stage.plan;
    let links = plan.links.iter().zip(&stage.relays).map(|(link, relay)| link.summary(&relay.stats().1));
    let intact = runs.len() == Course::ALL.len() && runs.iter().all(|run| run.bytes_intact);
    let congestion = [Multipath::Absent, Multipath::Negotiated].map(|kind| plan.transport.congestion_name(kind));
    // Both ends are in this process and go by the same plan.
    let named = plan.transport.named(Multipath::Negotiated);
    DemoSummary {
        command: "demo",
        ok: failure.is_none() && intact,
        bytes: plan.bytes,
        runs,
        aggregation_benefit: benefit,
        bytes_intact: intact,
        links: links.collect(),
        scheduler: plan.transport.scheduler.name(),
        congestion: congestion.to_vec(),
        ack_path: plan.transport.ack_path.name(),
        policies: BothSides { ours: named.clone(), theirs: Some(named), asked: (&Wish::default()).into() },
        error: failure.map(ToString::to_string),
    }
}

fn table(summary: &DemoSummary) -> Table {
    let mut table = Table::new(&["download", "seconds", "Mbit/s", "over A", "over B", "longest stall", "bytes"]);
    for run in &summary.runs {
        table.row(vec![
            run.name.to_owned(),
            format!("{:.2}", run.seconds),
            format!("{:.1}", run.goodput_mbps),
            human_bytes(run.bytes_by_path.a),
            human_bytes(run.bytes_by_path.b),
            format!("{:.0} ms", run.longest_stall_ms),
            match (&run.error, run.bytes_intact) {
                (Some(_), _) => "failed".to_owned(),
                (None, true) => "intact".to_owned(),
                (None, false) => "damaged".to_owned(),
            },
        ]);
    }
    table
}
