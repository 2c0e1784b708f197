//! `plait perf client`.

use std::sync::Arc;
use std::time::Duration;

use plait::Connection;

use super::outcome::{LoadJob, PerfOutcome, silent};
use super::report::report;
use super::running::{run_connections, run_load};
use super::summary::CpuSummary;
use crate::clock::Clock;
use crate::connect::{self, Connected, Verbosity};
use crate::error::CliError;
use crate::http::policies::Wish;
use crate::meter::Meter;
use crate::output::summary::WorkerSummary;
use crate::output::{eprint_line, refused};
use crate::pattern::Pattern;
use crate::perf::args::PerfClientArgs;
use crate::perf::carrier::Carrier;
use crate::perf::connections::Knocker;
use crate::perf::cpu::cpu_seconds;
use crate::perf::dialer::{Dialer, Shards};
use crate::perf::ending::Ending;
use crate::perf::load::Workload;
use crate::perf::plan::{PerfPlan, Questions};
use crate::perf::question::{self, ServerReport};
use crate::perf::tcp::TcpDialer;
use crate::units::rounded;

/// How long a server may take to answer a question, in round trips and beyond them.
const ANSWER_RTTS: u32 = 3;
const ANSWER_TIME: Duration = Duration::from_secs(2);
/// The same over TCP: three handshakes and a packet lost twice.
const TCP_ANSWER_RTTS: u32 = 6;
const TCP_ANSWER_TIME: Duration = Duration::from_secs(5);
/// The same after a load that failed: it may be gone.
const LAST_ANSWER_TIME: Duration = Duration::from_millis(500);
/// How long the last datagrams may be on their way.
const LAST_DATAGRAMS_TIME: Duration = Duration::from_secs(2);

/// Runs the load and reports.
pub(super) async fn run(args: PerfClientArgs) -> Result<(), CliError> {
    let plan = PerfPlan::new(&args).map_err(|fail| refused("perf", args.show, fail))?;
    if matches!(&plan.load, Workload::Bulk(bulk) if bulk.up > 0) {
        // Before the clock runs.
        let _ = Pattern::new();
    }
    let mut outcome = PerfOutcome::default();
    let ending = Ending::listen();
    if let Some(limit) = plan.time_limit {
        ending.limit(limit, out_of_time(&plan));
    }
    let job = LoadJob { plan: &plan, args: &args, ending: &ending };
    let result = match (&plan.load, plan.carrier) {
        (Workload::Connections(_), _) => connect_often(job, &mut outcome).await,
        (_, Carrier::Quic) => over_quic(job, &mut outcome).await,
        (_, Carrier::Kernel(_)) => over_tcp(job, &mut outcome).await,
    };
    let printed = report(&plan, &args, &outcome, result.as_ref().err());
    result.and(printed)
}

fn verbosity(args: &PerfClientArgs) -> Verbosity {
    if args.show.quiet { Verbosity::Quiet } else { Verbosity::Normal }
}

/// A load over the connections of TCP that stand in for streams.
async fn over_tcp(job: LoadJob<'_>, outcome: &mut PerfOutcome) -> Result<(), CliError> {
    let plan = job.plan;
    let Carrier::Kernel(kernel) = plan.carrier else { return Ok(()) };
    let dialer = job.ending.or(TcpDialer::new(&plan.connect, kernel)).await?;
    let directions = if plan.load.direction() == Some("both") { 2 } else { 1 };
    outcome.whole = Some(Arc::new(Meter::start()));
    // One more for the question before the load: none of its own handshakes lies within its time.
    let prepared = plan.streams * directions + u64::from(plan.questions == Questions::Asked);
    outcome.handshake_s = Some(job.ending.or(dialer.prepare(prepared)).await?.as_secs_f64());
    outcome.kernel.spoken = Some(dialer.spoken());
    outcome.kernel.ours = dialer.congestion();
    if dialer.spoken() != kernel && verbosity(job.args) == Verbosity::Normal {
        eprint_line("plait: the server, or something on the way to it, does not speak MPTCP; going on over TCP");
    }
    measured(job, &Dialer::Tcp(dialer), outcome).await
}

async fn over_quic(job: LoadJob<'_>, outcome: &mut PerfOutcome) -> Result<(), CliError> {
    let LoadJob { plan, args, ending } = job;
    let first = if plan.shards > 1 { plan.connect.shard(0) } else { plan.connect.clone() };
    let connected = ending.or(connect::connect(&first, verbosity(args), &mut outcome.attempts)).await?;
    let Connected { connection, endpoint, remote, further, meter, handshake: _ } = connected;
    outcome.connection = Some(connection.clone());
    outcome.handshake_s = meter.handshake_s();
    outcome.whole = Some(meter);
    connect::open_further(&connection, further, verbosity(args));
    let mut others = Vec::new();
    for index in 1..plan.shards {
        // The summary has the attempts of the first.
        let (plan, mut attempts) = (plan.connect.shard(index), Vec::new());
        others.push(ending.or(connect::connect(&plan, verbosity(args), &mut attempts)).await?);
    }
    let shards = Shards::new(connection.clone(), others.iter().map(|other| other.connection.clone()).collect());
    let dialer = Dialer::Quic(shards.clone());
    ending.or(agree(job, &dialer, outcome)).await?;
    let done = measured(job, &dialer, outcome).await;
    let endpoints = || std::iter::once(&endpoint).chain(others.iter().map(|other| &other.endpoint));
    outcome.cost.workers = endpoints().flat_map(|endpoint| endpoint.workers()).map(WorkerSummary::from).collect();
    if let Some(error) = shards.all().find_map(Connection::close_reason) {
        let bytes = outcome.flows.total.map_or(0, |total| total.bytes);
        return Err(connect::connection_lost(&plan.connect.host, remote, bytes, &error));
    }
    shards.all().for_each(|connection| connection.close(0, b"done"));
    // A server that does not hear it times out by itself.
    for endpoint in endpoints() {
        let _ = tokio::time::timeout(connect::CLOSE_TIMEOUT, endpoint.wait_closes_sent()).await;
    }
    done
}

/// Asks the server to send as it is wished to, and by which policies it does.
async fn agree(job: LoadJob<'_>, dialer: &Dialer, outcome: &mut PerfOutcome) -> Result<(), CliError> {
    let LoadJob { plan, args, .. } = job;
    if plan.questions == Questions::Asked {
        outcome.told.policies = question::ask_policies(dialer, &plan.wish, patience(dialer)).await;
    }
    if outcome.told.policies.is_none() && !plan.wish.is_empty() {
        if verbosity(args) == Verbosity::Normal {
            eprint_line("plait: the server does not take the policies that were asked for; going on with its own");
        }
        outcome.told.policies = question::ask_policies(dialer, &Wish::default(), patience(dialer)).await;
    }
    Ok(())
}

/// How long the server may take to answer, over TCP on a connection of its own.
fn patience(dialer: &Dialer) -> Duration {
    match dialer {
        Dialer::Quic(_) => dialer.rtt() * ANSWER_RTTS + ANSWER_TIME,
        Dialer::Tcp(_) => dialer.rtt() * TCP_ANSWER_RTTS + TCP_ANSWER_TIME,
    }
}

/// Runs the load between two looks at what it costs both sides.
async fn measured(job: LoadJob<'_>, dialer: &Dialer, outcome: &mut PerfOutcome) -> Result<(), CliError> {
    let plan = job.plan;
    let ask = async |patience: Duration| match plan.questions {
        Questions::Asked => question::ask_report(dialer, patience).await,
        Questions::None => None,
    };
    let before = (cpu_seconds(), job.ending.or(async { Ok(ask(patience(dialer)).await) }).await?);
    outcome.told.null_receiver = before.1.as_ref().map(|report| report.null_receiver);
    outcome.kernel.theirs = before.1.as_ref().and_then(|report| report.congestion.clone());
    if outcome.told.null_receiver == Some(true) && !plan.load.suits_null_receiver() {
        let what = format!("{}: a null receiver does not read what such a load sends", plan.connect.host);
        return Err(CliError::running(what, "send bytes for a time (-t), or let it send (-R)"));
    }
    let begun = outcome.whole.as_ref().map_or(0.0, |whole| whole.seconds());
    let mut done = run_load(job, dialer, patience(dialer), outcome).await;
    if let Some(whole) = &outcome.whole {
        whole.stop();
        outcome.finished_s = Clock::shared_seconds();
    }
    outcome.first_byte_s = outcome.first_byte_s.map(|at| begun + at);
    if let (Some(connection), Some(_)) = (dialer.connection(), &outcome.datagrams) {
        // The last ones are still on their way.
        tokio::time::sleep((connection.rtt() * 2).min(LAST_DATAGRAMS_TIME)).await;
    }
    let patience = if done.is_ok() { patience(dialer) } else { LAST_ANSWER_TIME };
    let after = (cpu_seconds(), ask(patience).await);
    // Over TCP each stream has shown by its end whether the server is there.
    let is_in_doubt = after.1.is_none() && plan.load.time().is_some() && plan.carrier == Carrier::Quic;
    if done.is_ok() && is_in_doubt && !dialer.answers(patience).await {
        done = Err(silent(plan));
    }
    outcome.cost.cpu = CpuSummary {
        client: difference(before.0, after.0),
        server: difference(cpu_of(before.1.as_ref()), cpu_of(after.1.as_ref())),
    };
    outcome.hear(after.1.map(|report| report.datagrams), done.is_ok());
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

/// A load of connections.
async fn connect_often(job: LoadJob<'_>, outcome: &mut PerfOutcome) -> Result<(), CliError> {
    let plan = job.plan;
    let Workload::Connections(load) = &plan.load else { return Ok(()) };
    let finding = async {
        Ok(match plan.carrier {
            Carrier::Quic => Knocker::Quic(connect::caller(&plan.connect).await?, Box::new(plan.connect.clone())),
            Carrier::Kernel(kernel) => Knocker::Tcp(TcpDialer::new(&plan.connect, kernel).await?),
        })
    };
    let knocker = job.ending.or(finding).await?;
    let before = cpu_seconds();
    let done = run_connections(job, &knocker, load, outcome).await;
    outcome.cost.cpu.client = difference(before, cpu_seconds());
    if let Knocker::Quic(caller, _) = &knocker {
        let _ = tokio::time::timeout(connect::CLOSE_TIMEOUT, caller.endpoint.wait_closes_sent()).await;
    }
    done
}
