//! `plait get`: downloads over the paths that were asked for.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use plait::{Attempt, Connection, Endpoint};
use tokio::task::JoinSet;

use crate::args::GetArgs;
use crate::clock::Clock;
use crate::connect::{self, Connected, Handshake, Verbosity};
use crate::error::CliError;
use crate::http::FILES;
use crate::http::client::fetch;
use crate::http::policies::{self, Named, ServerPolicies, Wish};
use crate::http::sink::{Digested, Sink, place_of};
use crate::meter::Meter;
use crate::options::{Destination, Download, GetPlan, KeyUpdates, Multipath};
use crate::output::progress::{ProgressDisplay, Snapshot};
use crate::output::summary::{
    AttemptSummary, BothSides, DownloadSummary, GetSummary, PathSummary, WorkerSummary, duplicates,
};
use crate::output::{Format, eprint_line, print_json, refused};
use crate::paths::PathTable;
use crate::stop;
use crate::transfer::watched;
use crate::units::{human_bytes, mbps, rounded};

/// Bytes after which keys are updated early, or a client moves.
const EARLY_BYTES: u64 = 100_000;
/// How often it is looked whether they have come.
const LOOK_PERIOD: Duration = Duration::from_millis(2);

/// How long a server may take to tell its policies, in round trips and beyond them. Those that do not know the question
/// refuse it at once: only one that leaves a stream unanswered costs this time, and only where JSON is asked for.
const ANSWER_RTTS: u32 = 3;
const ANSWER_TIME: Duration = Duration::from_secs(2);

/// How a download ended.
#[derive(Debug)]
struct Ended {
    seconds: f64,
    result: Result<Digested, CliError>,
}

/// What is known of the whole when it ends, well or badly.
#[derive(Debug, Default)]
struct DownloadOutcome {
    live: Option<(Connection, Arc<Meter>)>,
    early_data: Option<&'static str>,
    attempts: Vec<Attempt>,
    /// Policies of the server, where it told them.
    theirs: Option<Named>,
    /// Bytes on streams that were no body.
    told_bytes: u64,
    paths: Vec<PathSummary>,
    /// Our threads that served paths.
    workers: Vec<WorkerSummary>,
    ended: Vec<Ended>,
    /// Bytes of each body that arrived so far; empty before there are places for them.
    arrived: Vec<Arc<AtomicU64>>,
}

/// Downloads and reports.
pub(crate) async fn run(args: GetArgs) -> Result<(), CliError> {
    let plan = GetPlan::new(&args).map_err(|fail| refused("get", args.show, fail))?;
    let mut outcome = DownloadOutcome::default();
    let limit = plan.max_time;
    let result = tokio::select! {
        result = download_all(&plan, &args, &mut outcome) => result,
        () = connect::after(limit) => Err(CliError::running(
            format!("not done within {} s", limit.unwrap_or_default().as_secs_f64()),
            "allow more with --max-time, or look at the paths with --json",
        )),
        () = stop::asked() => Err(CliError::Interrupted),
    };
    let first_failure = outcome.ended.iter().find_map(|ended| ended.result.as_ref().err().cloned());
    let result = result.and(first_failure.map_or(Ok(()), Err));
    if let (Err(_), Some((_, meter))) = (&result, &outcome.live) {
        meter.on_broken_off();
    }
    let printed = report(&plan, &args, &outcome, result.as_ref().err());
    result.and(printed)
}

async fn download_all(plan: &GetPlan, args: &GetArgs, outcome: &mut DownloadOutcome) -> Result<(), CliError> {
    // Places to write to are opened first: a typing error should not cost a download.
    let sinks = open_sinks(plan).await?;
    let verbosity = if args.show.quiet { Verbosity::Quiet } else { Verbosity::Normal };
    let connected = connect::connect(&plan.connect, verbosity, &mut outcome.attempts).await?;
    let Connected { connection, endpoint, remote, further, meter, handshake } = connected;
    outcome.live = Some((connection.clone(), Arc::clone(&meter)));
    connect::open_further(&connection, further, verbosity);
    if plan.connect.interop.key_updates == KeyUpdates::Early {
        tokio::spawn(update_keys_early(connection.clone(), Arc::clone(&meter)));
    }
    if let Some(to) = plan.connect.interop.move_to {
        tokio::spawn(move_early(connection.clone(), endpoint.clone(), to, Arc::clone(&meter)));
    }
    if !plan.wish.is_empty() {
        match policies::ask(&connection, &plan.wish, plan.connect.timeout).await {
            Some(ServerPolicies { named, bytes }) => (outcome.theirs, outcome.told_bytes) = (Some(named), bytes),
            None if verbosity == Verbosity::Normal => {
                eprint_line("plait: the server does not take the policies that were asked for; going on with its own");
            }
            None => {}
        }
    }

    let mut progress = ProgressDisplay::new(args.show, None, plan.total());
    let mut book = PathTable::default();
    let mut look = || Snapshot::of(&mut book, &connection, &meter);
    outcome.arrived = arrived(&sinks);
    outcome.ended = watched(fetch_all(&connection, sinks, &meter), &mut look, &mut progress).await;
    match handshake {
        Handshake::Done => {}
        Handshake::Early(task) => {
            let accepted = task.await.unwrap_or(false);
            outcome.early_data = Some(if accepted { "accepted" } else { "rejected" });
            if !accepted && connection.close_reason().is_none() {
                // What went early is lost; the connection stands.
                let sinks = open_sinks(plan).await?;
                outcome.arrived = arrived(&sinks);
                outcome.ended = watched(fetch_all(&connection, sinks, &meter), &mut look, &mut progress).await;
            }
        }
    }
    outcome.paths = book.paths();
    outcome.workers = endpoint.workers().into_iter().map(WorkerSummary::from).collect();
    meter.stop();
    if let Some(error) = connection.close_reason()
        && outcome.ended.iter().any(|ended| ended.result.is_err())
    {
        return Err(match meter.handshake_s() {
            Some(_) => connect::connection_lost(&plan.connect.host, remote, meter.bytes(), &error),
            None => connect::handshake_failure(&plan.connect.host, FILES, remote, &error),
        });
    }
    if outcome.theirs.is_none() && Format::of(args.show).is_json() {
        // After the body, which this must not disturb.
        let patience = connection.rtt() * ANSWER_RTTS + ANSWER_TIME;
        outcome.theirs = policies::ask(&connection, &Wish::default(), patience).await.map(|told| told.named);
    }
    connection.close(0, b"done");
    // A server that does not hear it times out by itself.
    let _ = tokio::time::timeout(connect::CLOSE_TIMEOUT, endpoint.wait_closes_sent()).await;
    Ok(())
}

/// Begins a key update once a little has arrived and the peer has confirmed the handshake.
pub(crate) async fn update_keys_early(connection: Connection, meter: Arc<Meter>) {
    while connection.close_reason().is_none() {
        if meter.bytes() >= EARLY_BYTES && connection.force_key_update().is_ok() {
            return;
        }
        tokio::time::sleep(LOOK_PERIOD).await;
    }
}

/// Moves a client to a new port of this address once a little has arrived.
pub(crate) async fn move_early(connection: Connection, endpoint: Endpoint, to: IpAddr, meter: Arc<Meter>) {
    while connection.close_reason().is_none() {
        if meter.bytes() >= EARLY_BYTES {
            if let Err(error) = endpoint.rebind(SocketAddr::new(to, 0)) {
                eprint_line(&format!("plait: cannot move to {to}: {error}"));
            }
            return;
        }
        tokio::time::sleep(LOOK_PERIOD).await;
    }
}

async fn open_sinks(plan: &GetPlan) -> Result<Vec<(Download, Sink)>, CliError> {
    let mut sinks: Vec<(Download, Sink)> = Vec::with_capacity(plan.downloads.len());
    let mut places = Vec::new();
    for download in &plan.downloads {
        if let Some(place) = place_of(&download.to) {
            if places.contains(&place) {
                return Err(CliError::usage(format!("two -o name the same file, {}", place.display())));
            }
            places.push(place);
        }
        sinks.push((download.clone(), Sink::open(&download.to).await?));
    }
    Ok(sinks)
}

fn arrived(sinks: &[(Download, Sink)]) -> Vec<Arc<AtomicU64>> {
    sinks.iter().map(|(_, sink)| sink.arrived()).collect()
}

/// All at once, unless several share standard output.
async fn fetch_all(connection: &Connection, sinks: Vec<(Download, Sink)>, meter: &Arc<Meter>) -> Vec<Ended> {
    let one_by_one = sinks.iter().filter(|(download, _)| download.to == Destination::Stdout).count() > 1;
    let mut ended = Vec::with_capacity(sinks.len());
    let mut running = JoinSet::new();
    for (at, (download, sink)) in sinks.into_iter().enumerate() {
        let (connection, meter) = (connection.clone(), Arc::clone(meter));
        running.spawn(async move {
            let clock = Clock::start();
            let result = fetch(&connection, &download.target, sink, &meter).await;
            (at, Ended { seconds: clock.seconds(), result })
        });
        if one_by_one {
            ended.extend(running.join_next().await.and_then(Result::ok));
        }
    }
    while let Some(done) = running.join_next().await {
        ended.extend(done.ok());
    }
    ended.sort_by_key(|(at, _)| *at);
    ended.into_iter().map(|(_, ended)| ended).collect()
}

fn report(plan: &GetPlan, args: &GetArgs, outcome: &DownloadOutcome, error: Option<&CliError>) -> Result<(), CliError> {
    let summary = summary(plan, outcome, error);
    if Format::of(args.show).is_json() {
        return print_json(&summary);
    }
    if error.is_none() && !args.show.quiet {
        let mut line =
            format!("{} in {:.2} s, {:.1} Mbit/s", human_bytes(summary.bytes), summary.seconds, summary.goodput_mbps);
        for path in &summary.paths {
            let share = human_bytes(path.stream_bytes_received);
            line += &format!("; path {} {} -> {}: {share}", path.id, path.local, path.remote);
        }
        if let Some(twice) = summary.duplicate_bytes.filter(|bytes| *bytes > 0) {
            line += &format!("; {} came twice (lost and sent again, or copied to another path)", human_bytes(twice));
        }
        eprint_line(&line);
    }
    Ok(())
}

fn summary(plan: &GetPlan, outcome: &DownloadOutcome, error: Option<&CliError>) -> GetSummary {
    let downloads = download_summaries(plan, outcome, error);
    let connection = outcome.live.as_ref().map(|(connection, _)| connection);
    let multipath = match connection {
        Some(connection) if connection.is_multipath() => Multipath::Negotiated,
        _ => Multipath::Absent,
    };
    let meter = outcome.live.as_ref().map(|(_, meter)| meter);
    let (bytes, seconds) = meter.map_or((0, 0.0), |meter| (meter.bytes(), meter.seconds()));
    let arrivals = meter.map(|meter| meter.arrivals()).unwrap_or_default();
    let ms = |time: Duration| rounded(time.as_secs_f64() * 1e3, 3);
    let paths = paths(outcome);
    let ours =
        connection.map_or_else(|| plan.connect.transport.named(multipath), |connection| connection.policies().into());
    GetSummary {
        command: "get",
        ok: error.is_none(),
        url: plan.downloads.first().map(|download| download.url.clone()).unwrap_or_default(),
        bytes,
        seconds: rounded(seconds, 6),
        goodput_mbps: rounded(mbps(bytes, seconds), 3),
        handshake_ms: meter.and_then(|meter| meter.handshake_s()).map(|s| rounded(s * 1e3, 3)),
        first_byte_ms: arrivals.first().map(ms),
        sha256: match &downloads[..] {
            [only] if plan.downloads.len() == 1 => only.sha256.clone(),
            _ => None,
        },
        extension: connect::extension_name(connection, meter.and_then(|meter| meter.handshake_s())),
        scheduler: outcome.theirs.as_ref().map(|theirs| theirs.scheduler.clone()),
        congestion: outcome.theirs.as_ref().map(|theirs| theirs.congestion.clone()),
        ack_path: ours.ack_path.clone(),
        policies: BothSides { ours, theirs: outcome.theirs.clone(), asked: (&plan.wish).into() },
        early_data: outcome.early_data,
        resumed: connection.is_some_and(|connection| connection.handshake_data().resumed),
        longest_stall_ms: ms(arrivals.longest_gap()),
        attempts: outcome.attempts.iter().map(AttemptSummary::from).collect(),
        duplicate_bytes: duplicates(&paths, bytes + outcome.told_bytes).filter(|_| error.is_none()),
        workers: outcome.workers.clone(),
        paths,
        downloads,
        error: error.map(ToString::to_string),
    }
}

/// The paths as they were last seen; those of a download that was cut short are looked at now.
fn paths(outcome: &DownloadOutcome) -> Vec<PathSummary> {
    let mut book = PathTable::default();
    if let (true, Some((connection, _))) = (outcome.paths.is_empty(), &outcome.live) {
        book.sample(connection);
        return book.paths();
    }
    outcome.paths.clone()
}

/// One for each URL. Those that had not ended when all was broken off end as that did.
fn download_summaries(
    plan: &GetPlan,
    outcome: &DownloadOutcome,
    broken_off: Option<&CliError>,
) -> Vec<DownloadSummary> {
    let seconds = outcome.live.as_ref().map_or(0.0, |(_, meter)| meter.seconds());
    let summary = |(at, download): (usize, &Download)| {
        let ended = outcome.ended.get(at);
        let digested = ended.and_then(|ended| ended.result.as_ref().ok());
        let arrived = outcome.arrived.get(at).map_or(0, |arrived| arrived.load(Ordering::Relaxed));
        let own_error = ended.and_then(|ended| ended.result.as_ref().err());
        let error = if ended.is_some() { own_error } else { broken_off };
        DownloadSummary {
            url: download.url.clone(),
            bytes: digested.map_or(arrived, |digested| digested.bytes),
            seconds: rounded(ended.map_or(seconds, |ended| ended.seconds), 6),
            sha256: digested.map(|digested| digested.sha256.clone()),
            output: match &download.to {
                Destination::File(path) => Some(path.display().to_string()),
                Destination::Stdout | Destination::Discard => None,
            },
            error: error.map(ToString::to_string),
        }
    };
    plan.downloads.iter().enumerate().map(summary).collect()
}
