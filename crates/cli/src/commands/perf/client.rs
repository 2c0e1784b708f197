//! `plait perf client`.

use std::sync::Arc;
use std::time::Duration;

use plait::{Attempt, Connection};

use super::summary::{
    ClockSummary, ConnectionSummary, CpuSummary, FlowSummary, LoadSummary, PerfSummary, RoundSummary,
};
use crate::clock::Clock;
use crate::connect::{self, Connected, Verbosity};
use crate::error::CliError;
use crate::http::policies::Named;
use crate::meter::Meter;
use crate::options::Multipath;
use crate::output::progress::{ProgressDisplay, Snapshot};
use crate::output::summary::{AttemptSummary, BothSides, PathSummary, WorkerSummary};
use crate::output::table::Table;
use crate::output::{Format, eprint_line, print_json, print_line, refused};
use crate::paths::PathTable;
use crate::pattern::Pattern;
use crate::perf::args::PerfClientArgs;
use crate::perf::bulk::{self, BulkMeters};
use crate::perf::carrier::Carrier;
use crate::perf::connections::{self, Knocker};
use crate::perf::cpu::cpu_seconds;
use crate::perf::datagrams::{self, DatagramSummary};
use crate::perf::delays::{DelaySummary, Delays};
use crate::perf::dialer::{Dialer, Shards};
use crate::perf::load::{BulkLoad, Extent, RequestLoad, Workload};
use crate::perf::paced::{self, Exchanges};
use crate::perf::plan::{PerfPlan, Questions};
use crate::perf::question::{self, ServerReport};
use crate::perf::requests;
use crate::perf::tcp::TcpDialer;
use crate::stop;
use crate::transfer::watched;
use crate::units::{human_bytes, mbps, rounded};

/// How long a server may take to answer a question, in round trips and beyond them.
const ANSWER_RTTS: u32 = 3;
const ANSWER_TIME: Duration = Duration::from_secs(2);

/// What is known of the whole when it ends, well or badly.
#[derive(Debug, Default)]
struct PerfOutcome {
    connection: Option<Connection>,
    handshake_s: Option<f64>,
    attempts: Vec<Attempt>,
    told: Told,
    paths: Vec<PathSummary>,
    /// Bytes both ways, over so many seconds.
    total: Option<FlowSummary>,
    up: Option<FlowSummary>,
    down: Option<FlowSummary>,
    cost: Cost,
    rounds: Option<RoundSummary>,
    datagrams: Option<DatagramSummary>,
    /// Runs since the first packet of the connection, to the end of the load.
    whole: Option<Arc<Meter>>,
    /// The shared clock at the end of the load.
    finished_s: Option<f64>,
    /// Time from the first packet to the first byte that came for the load.
    first_byte_s: Option<f64>,
    /// Each request of those at an interval.
    exchanges: Exchanges,
    /// By which controller the kernel sends, over TCP.
    kernel_congestion: Option<String>,
}

/// What the server says of itself, where it does.
#[derive(Debug, Default)]
struct Told {
    policies: Option<Named>,
    /// Whether it acknowledges what it does not read.
    null_receiver: Option<bool>,
}

/// What the load cost us, and who did the work.
#[derive(Debug, Default)]
struct Cost {
    cpu: CpuSummary,
    /// Our threads that served paths.
    workers: Vec<WorkerSummary>,
}

/// Runs the load and reports.
pub(super) async fn run(args: PerfClientArgs) -> Result<(), CliError> {
    let plan = PerfPlan::new(&args).map_err(|fail| refused("perf", args.show, fail))?;
    if matches!(&plan.load, Workload::Bulk(bulk) if bulk.up > 0) {
        // Before the clock runs.
        let _ = Pattern::new();
    }
    let mut outcome = PerfOutcome::default();
    let work = async {
        match plan.load {
            Workload::Connections(_) => connect_often(&plan, &args, &mut outcome).await,
            _ => load_one(&plan, &args, &mut outcome).await,
        }
    };
    let result = tokio::select! {
        result = work => result,
        () = stop::asked() => Err(CliError::Interrupted),
    };
    let printed = report(&plan, &args, &outcome, result.as_ref().err());
    result.and(printed)
}

fn verbosity(args: &PerfClientArgs) -> Verbosity {
    if args.show.quiet { Verbosity::Quiet } else { Verbosity::Normal }
}

/// A load over one connection, or over those of TCP that stand in for its streams.
async fn load_one(plan: &PerfPlan, args: &PerfClientArgs, outcome: &mut PerfOutcome) -> Result<(), CliError> {
    match plan.carrier {
        Carrier::Quic => over_quic(plan, args, outcome).await,
        Carrier::Kernel(kernel) => {
            let dialer = TcpDialer::new(&plan.connect, kernel).await?;
            let directions = if plan.load.direction() == Some("both") { 2 } else { 1 };
            outcome.whole = Some(Arc::new(Meter::start()));
            outcome.handshake_s = Some(dialer.prepare(plan.streams * directions).await?.as_secs_f64());
            outcome.kernel_congestion = dialer.congestion().filter(|_| plan.load.direction() == Some("up"));
            measured(plan, args, &Dialer::Tcp(dialer), ANSWER_TIME, outcome).await
        }
    }
}

async fn over_quic(plan: &PerfPlan, args: &PerfClientArgs, outcome: &mut PerfOutcome) -> Result<(), CliError> {
    let first = if plan.shards > 1 { plan.connect.shard(0) } else { plan.connect.clone() };
    let connected = connect::connect(&first, verbosity(args), &mut outcome.attempts).await?;
    let Connected { connection, endpoint, remote, further, meter, handshake: _ } = connected;
    outcome.connection = Some(connection.clone());
    outcome.handshake_s = meter.handshake_s();
    outcome.whole = Some(meter);
    connect::open_further(&connection, further, verbosity(args));
    let mut others = Vec::new();
    for index in 1..plan.shards {
        // The summary has the attempts of the first.
        others.push(connect::connect(&plan.connect.shard(index), verbosity(args), &mut Vec::new()).await?);
    }
    let shards = Shards::new(connection.clone(), others.iter().map(|other| other.connection.clone()).collect());
    let dialer = Dialer::Quic(shards.clone());
    let patience = connection.rtt() * ANSWER_RTTS + ANSWER_TIME;
    if plan.questions == Questions::Asked {
        outcome.told.policies = question::ask_policies(&dialer, &plan.wish, patience).await;
    }
    if outcome.told.policies.is_none() && !plan.wish.is_empty() && verbosity(args) == Verbosity::Normal {
        eprint_line("plait: the server does not take the policies that were asked for; going on with its own");
    }
    let done = measured(plan, args, &dialer, patience, outcome).await;
    outcome.cost.workers = endpoint.workers().into_iter().map(WorkerSummary::from).collect();
    if let Some(error) = shards.all().find_map(Connection::close_reason) {
        let bytes = outcome.total.map_or(0, |total| total.bytes);
        return Err(connect::connection_lost(&plan.connect.host, remote, bytes, &error));
    }
    shards.all().for_each(|connection| connection.close(0, b"done"));
    // A server that does not hear it times out by itself.
    for endpoint in std::iter::once(&endpoint).chain(others.iter().map(|other| &other.endpoint)) {
        let _ = tokio::time::timeout(connect::CLOSE_TIMEOUT, endpoint.wait_closes_sent()).await;
    }
    done
}

/// Runs the load between two looks at what it costs both sides.
async fn measured(
    plan: &PerfPlan,
    args: &PerfClientArgs,
    dialer: &Dialer,
    patience: Duration,
    outcome: &mut PerfOutcome,
) -> Result<(), CliError> {
    let ask = async || match plan.questions {
        Questions::Asked => question::ask_report(dialer, patience).await,
        Questions::None => None,
    };
    let before = (cpu_seconds(), ask().await);
    outcome.told.null_receiver = before.1.map(|report| report.null_receiver);
    if outcome.told.null_receiver == Some(true) && !plan.load.suits_null_receiver() {
        let what = format!("{}: a null receiver does not read what such a load sends", plan.connect.host);
        return Err(CliError::running(what, "send bytes for a time (-t), or let it send (-R)"));
    }
    let begun = outcome.whole.as_ref().map_or(0.0, |whole| whole.seconds());
    let left = plan.time_limit.map(|limit| limit.saturating_sub(Duration::from_secs_f64(begun)));
    let loading = run_load(plan, args, dialer, outcome);
    let done = match left {
        Some(left) => tokio::time::timeout(left, loading).await.unwrap_or_else(|_| Err(out_of_time(plan))),
        None => loading.await,
    };
    if let Some(whole) = &outcome.whole {
        whole.stop();
        outcome.finished_s = Clock::shared_seconds();
        if !outcome.exchanges.list().is_empty() {
            outcome.rounds = Some(rounds(&outcome.exchanges.delays(), 1, whole));
        }
    }
    outcome.first_byte_s = outcome.first_byte_s.map(|at| begun + at);
    let after = (cpu_seconds(), ask().await);
    outcome.cost.cpu = CpuSummary {
        client: difference(before.0, after.0),
        server: difference(cpu_of(before.1.as_ref()), cpu_of(after.1.as_ref())),
    };
    if let Some(datagrams) = &mut outcome.datagrams {
        datagrams.hear(after.1.map(|report| report.datagrams));
    }
    done
}

fn out_of_time(plan: &PerfPlan) -> CliError {
    let seconds = plan.time_limit.unwrap_or_default().as_secs_f64();
    CliError::running(format!("{}: not done after {seconds} s", plan.connect.host), "see --max-time")
}

fn cpu_of(report: Option<&ServerReport>) -> Option<f64> {
    report.and_then(|report| report.cpu_seconds)
}

fn difference(before: Option<f64>, after: Option<f64>) -> Option<f64> {
    Some(rounded(after? - before?, 6))
}

/// Runs the load, showing how it goes, and notes what came of it.
async fn run_load(
    plan: &PerfPlan,
    args: &PerfClientArgs,
    dialer: &Dialer,
    outcome: &mut PerfOutcome,
) -> Result<(), CliError> {
    let failed = |error: crate::perf::pipe::PipeError| {
        CliError::running(format!("{}: {error}", plan.connect.host), "look at the server's log")
    };
    let total = match plan.load {
        Workload::Bulk(BulkLoad { up, down, extent: Extent::Amount(bytes) }) => {
            Some(bytes * (u64::from(up > 0) + u64::from(down > 0)))
        }
        _ => None,
    };
    let mut progress = ProgressDisplay::new(args.show, None, total).every(plan.interval);
    let mut book = PathTable::default();
    let meters = BulkMeters::start(dialer);
    let all = Arc::new(Meter::start());
    let mut look = || {
        if let Some(connection) = dialer.connection() {
            book.sample(connection);
        }
        let bulk = if plan.load.direction() == Some("down") { 0 } else { meters.up_bytes(dialer) };
        let bytes = match plan.load {
            Workload::Bulk(_) => bulk + meters.down.bytes(),
            _ => all.bytes(),
        };
        Snapshot { at_s: all.seconds(), bytes, paths: book.paths() }
    };
    let done = match &plan.load {
        Workload::Bulk(load) => {
            let done = watched(bulk::run(dialer, load, &meters), &mut look, &mut progress).await;
            outcome.up = (load.up > 0).then(|| flow(&meters.up));
            outcome.down = (load.down > 0).then(|| flow(&meters.down));
            outcome.first_byte_s = meters.down.arrivals().first().map(|at| at.as_secs_f64());
            all.add(meters.up.bytes() + meters.down.bytes());
            done.map_err(failed)
        }
        Workload::Requests(load @ RequestLoad { interval: Some(every), extent: Extent::Amount(count), .. }) => {
            let work = paced::run(dialer, load, (*count, *every), &outcome.exchanges, &all);
            watched(work, &mut look, &mut progress).await.map_err(failed)
        }
        Workload::Requests(load) => {
            let done = watched(requests::run(dialer, load, &all), &mut look, &mut progress).await;
            done.map(|delays| outcome.rounds = Some(rounds(&delays, load.lanes, &all))).map_err(failed)
        }
        Workload::Datagrams(load) => match dialer.connection() {
            Some(connection) => {
                let work = datagrams::send(connection, load, |bytes| all.add(bytes as u64));
                let sent = watched(work, &mut look, &mut progress).await;
                // The last ones are still on their way.
                tokio::time::sleep(connection.rtt() * 2).await;
                sent.map(|sent| outcome.datagrams = Some(DatagramSummary::new(connection, load, sent)))
            }
            None => Ok(()),
        },
        Workload::Connections(_) => Ok(()),
    };
    all.stop();
    (outcome.total, outcome.paths) = (Some(flow(&all)), book.paths());
    done
}

/// A load of connections.
async fn connect_often(plan: &PerfPlan, args: &PerfClientArgs, outcome: &mut PerfOutcome) -> Result<(), CliError> {
    let Workload::Connections(load) = &plan.load else { return Ok(()) };
    let knocker = match plan.carrier {
        Carrier::Quic => Knocker::Quic(connect::caller(&plan.connect).await?, Box::new(plan.connect.clone())),
        Carrier::Kernel(kernel) => Knocker::Tcp(TcpDialer::new(&plan.connect, kernel).await?),
    };
    let mut progress = ProgressDisplay::new(args.show, None, None).every(plan.interval);
    let (meter, before) = (Meter::start(), cpu_seconds());
    let mut look = || Snapshot { at_s: meter.seconds(), bytes: 0, paths: Vec::new() };
    let done = watched(connections::run(&knocker, load), &mut look, &mut progress).await;
    meter.stop();
    outcome.cost.cpu.client = difference(before, cpu_seconds());
    outcome.total = Some(flow(&meter));
    if let Knocker::Quic(caller, _) = &knocker {
        let _ = tokio::time::timeout(connect::CLOSE_TIMEOUT, caller.endpoint.wait_closes_sent()).await;
    }
    done.map(|delays| outcome.rounds = Some(rounds(&delays, load.lanes, &meter)))
}

fn flow(meter: &Meter) -> FlowSummary {
    let (bytes, seconds) = (meter.bytes(), meter.seconds());
    FlowSummary { bytes, seconds: rounded(seconds, 6), goodput_mbps: rounded(mbps(bytes, seconds), 3) }
}

fn rounds(delays: &Delays, at_once: u64, meter: &Meter) -> RoundSummary {
    let seconds = meter.seconds();
    let per_second = if seconds > 0.0 { delays.count() as f64 / seconds } else { 0.0 };
    RoundSummary { count: delays.count(), at_once, per_second: rounded(per_second, 3), delay_ms: delays.summary() }
}

fn report(
    plan: &PerfPlan,
    args: &PerfClientArgs,
    outcome: &PerfOutcome,
    error: Option<&CliError>,
) -> Result<(), CliError> {
    let summary = summary(plan, outcome, error);
    if Format::of(args.show).is_json() {
        return print_json(&summary);
    }
    if error.is_some() {
        return Ok(());
    }
    table(&summary).lines().iter().try_for_each(|line| print_line(line))
}

fn table(summary: &PerfSummary) -> Table {
    let cpu = |side: Option<f64>| side.map_or("-".to_owned(), |seconds| format!("{seconds:.3}"));
    let (ours, theirs) = (cpu(summary.cpu_seconds.client), cpu(summary.cpu_seconds.server));
    if let Some(rounds) = summary.requests.as_ref().or(summary.connections.as_ref()) {
        let heading = ["", "done", "a second", "p50 ms", "p90", "p99", "p99.9", "most", "CPU s here", "there"];
        let mut table = Table::new(&heading);
        let DelaySummary { p50, p90, p99, p999, max, .. } = rounds.delay_ms.unwrap_or_default();
        let delays = [p50, p90, p99, p999, max].map(|ms| format!("{ms:.3}"));
        let mut row = vec![summary.load.mode.to_owned(), rounds.count.to_string(), format!("{:.1}", rounds.per_second)];
        row.extend(delays);
        row.extend([ours, theirs]);
        table.row(row);
        return table;
    }
    if let Some(datagrams) = &summary.datagrams {
        let mut table = Table::new(&["", "sent", "received", "lost", "out of order", "jitter ms"]);
        let of = |number: Option<String>| number.unwrap_or_else(|| "-".to_owned());
        table.row(vec![
            "datagrams".to_owned(),
            datagrams.sent.to_string(),
            of(datagrams.received.map(|there| there.received.to_string())),
            of(datagrams.loss.map(|loss| format!("{:.2} %", loss * 100.0))),
            of(datagrams.received.map(|there| there.reordered.to_string())),
            of(datagrams.received.map(|there| format!("{:.3}", there.jitter_ms))),
        ]);
        return table;
    }
    let mut table = Table::new(&["", "bytes", "seconds", "Mbit/s", "CPU s here", "there"]);
    for (name, flow) in [("up", summary.up), ("down", summary.down)] {
        let Some(flow) = flow else { continue };
        table.row(vec![
            name.to_owned(),
            human_bytes(flow.bytes),
            format!("{:.3}", flow.seconds),
            format!("{:.1}", flow.goodput_mbps),
            ours.clone(),
            theirs.clone(),
        ]);
    }
    table
}

fn summary(plan: &PerfPlan, outcome: &PerfOutcome, error: Option<&CliError>) -> PerfSummary {
    let total = outcome.total.unwrap_or(FlowSummary { bytes: 0, seconds: 0.0, goodput_mbps: 0.0 });
    let of_mode = |mode: &str| outcome.rounds.clone().filter(|_| plan.load.name() == mode);
    PerfSummary {
        command: "perf",
        ok: error.is_none(),
        host: plan.connect.host.clone(),
        load: LoadSummary {
            mode: plan.load.name(),
            carrier: plan.carrier.name(),
            direction: plan.load.direction(),
            streams: plan.streams,
        },
        bytes: total.bytes,
        seconds: total.seconds,
        total_seconds: outcome.whole.as_ref().map(|whole| rounded(whole.seconds(), 6)),
        clock: clock(outcome),
        first_byte_ms: outcome.first_byte_s.map(|s| rounded(s * 1e3, 3)),
        goodput_mbps: total.goodput_mbps,
        up: outcome.up,
        down: outcome.down,
        cpu_seconds: outcome.cost.cpu,
        workers: outcome.cost.workers.clone(),
        null_receiver: outcome.told.null_receiver,
        requests: of_mode("requests"),
        exchanges: Some(outcome.exchanges.list()).filter(|list| !list.is_empty()),
        connections: of_mode("connections"),
        datagrams: outcome.datagrams.clone(),
        connection: connection_summary(plan, outcome),
        error: error.map(ToString::to_string),
    }
}

fn clock(outcome: &PerfOutcome) -> Option<ClockSummary> {
    let (whole, end) = (outcome.whole.as_ref()?, outcome.finished_s?);
    Some(ClockSummary { started_s: rounded(end - whole.seconds(), 6), finished_s: rounded(end, 6) })
}

fn connection_summary(plan: &PerfPlan, outcome: &PerfOutcome) -> ConnectionSummary {
    let connection = outcome.connection.as_ref();
    let multipath = match connection {
        Some(connection) if connection.is_multipath() => Multipath::Negotiated,
        _ => Multipath::Absent,
    };
    let ours =
        connection.map_or_else(|| plan.connect.transport.named(multipath), |connection| connection.policies().into());
    let theirs = outcome.told.policies.clone();
    let handshake_ms = outcome.handshake_s.map(|s| rounded(s * 1e3, 3));
    if plan.carrier != Carrier::Quic {
        return ConnectionSummary::of_kernel(handshake_ms, outcome.kernel_congestion.clone());
    }
    let (sender, receiver) = match plan.load.direction() {
        Some("up") => (Some(ours.clone()), theirs.clone()),
        Some("down") => (theirs.clone(), Some(ours.clone())),
        _ => (None, None),
    };
    ConnectionSummary {
        handshake_ms,
        extension: connect::extension_name(connection),
        scheduler: sender.as_ref().map(|sender| sender.scheduler.clone()),
        congestion: sender.map(|sender| sender.congestion),
        ack_path: receiver.map(|receiver| receiver.ack_path),
        policies: Some(BothSides { ours, theirs, asked: (&plan.wish).into() }),
        attempts: outcome.attempts.iter().map(AttemptSummary::from).collect(),
        paths: outcome.paths.clone(),
    }
}
