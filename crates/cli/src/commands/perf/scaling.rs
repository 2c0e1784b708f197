//! `plait perf scaling`: one connection, one stream, on 1 to N threads at each end over loopback.

use std::path::PathBuf;
use std::pin::pin;
use std::process::Stdio;
use std::time::Duration;

use plait_base::Random;
use plait_sim::stats::Sorted;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::error::CliError;
use crate::output::table::Table;
use crate::output::{Format, Readership, eprint_line, print_event, print_json, print_line, refused};
use crate::perf::args::{MAX_THREADS, PerfScalingArgs};
use crate::perf::scaling_law::{FittedLaw, MIN_POINTS, ThreadRates};
use crate::perf::thread_times::{SharedOut, ThreadTimes};
use crate::stop;

/// Gbit/s of mcMPQUIC by paths, each on a core (Ingenzi, Barbette, Bonaventure 2024, figure 2): what its text says.
const POSTER_GBPS: [(u32, f64); 3] = [(1, 3.71), (8, 19.0), (10, 20.83)];
/// Numbers of threads for which a rate is predicted.
const PREDICTED: [u32; 8] = [1, 2, 4, 8, 10, 16, 32, MAX_THREADS];
/// Time between two looks at what the threads of a client have used.
const LOOK: Duration = Duration::from_millis(10);
/// A thread that moved less had nothing to do, bytes.
const BUSY_BYTES: f64 = 1e6;
/// Seed of the resamplings: the same runs give the same intervals.
const SEED: u64 = 1;

/// One load over so many threads, and what it took.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Run {
    threads: u32,
    /// Which way the bytes went: `up` or `down`.
    direction: &'static str,
    goodput_gbps: f64,
    /// CPU seconds per GB of both ends, each as a whole.
    client_s_per_gb: Option<f64>,
    server_s_per_gb: Option<f64>,
    /// Of them those of the threads that serve paths, and the rest.
    client_split: Option<SharedOut>,
    server_split: Option<SharedOut>,
    /// Threads of the client that had something to do.
    busy: usize,
}

/// What is to be expected of one direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Outlook {
    direction: &'static str,
    /// Fitted where there are cores and points enough.
    law: Option<FittedLaw>,
    /// What a GB costs the client with two threads, seconds: the bound where no law is fitted.
    cost_s_per_gb: Option<SharedOut>,
    /// Threads from which more bring nothing.
    knee_threads: Option<f64>,
    predicted: Vec<Prediction>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Prediction {
    threads: u32,
    goodput_gbps: f64,
    /// What mcMPQUIC reached with so many.
    poster_gbps: Option<f64>,
}

/// What is printed with --json.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct ScalingSummary {
    command: &'static str,
    mode: &'static str,
    ok: bool,
    cores: usize,
    rounds: u32,
    null_receiver: bool,
    outlooks: Vec<Outlook>,
    runs: Vec<Run>,
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// True where both ends have a core for each of so many threads.
fn fits(threads: u32) -> bool {
    cores() >= 2 * threads as usize
}

/// Measures and reports.
pub(super) async fn run(args: PerfScalingArgs) -> Result<(), CliError> {
    let cores = cores();
    let most = args.max.unwrap_or_else(|| u32::try_from(cores / 2).unwrap_or(u32::MAX).clamp(2, MAX_THREADS));
    let result = tokio::select! {
        result = measure(&args, most) => result,
        () = stop::asked() => Err(CliError::Interrupted),
    };
    let runs = result.map_err(|fail| refused("perf", args.show, fail))?;
    let has_room = most as usize >= MIN_POINTS && fits(most);
    let outlooks = args.directions().iter().map(|direction| outlook(direction, &runs, has_room)).collect();
    let summary = ScalingSummary {
        command: "perf",
        mode: "scaling",
        ok: true,
        cores,
        rounds: args.rounds,
        null_receiver: args.null_receiver,
        outlooks,
        runs,
    };
    if Format::of(args.show).is_json() {
        return print_json(&summary);
    }
    lines(&summary, most).iter().try_for_each(|line| print_line(line))
}

/// All runs, of each number of threads in turns.
async fn measure(args: &PerfScalingArgs, most: u32) -> Result<Vec<Run>, CliError> {
    let program = std::env::current_exe().map_err(|error| {
        CliError::running(format!("this program cannot find itself: {error}"), "start it by its path")
    })?;
    let mut runs = Vec::new();
    for round in 1..=args.rounds {
        if !args.show.quiet {
            eprint_line(&format!("plait: round {round} of {}", args.rounds));
        }
        for direction in args.directions() {
            for threads in 1..=most {
                let run = load(args, &program, threads, direction).await?;
                if Format::of(args.show) == Format::JsonStream
                    && print_event(&json!({ "event": "run", "round": round, "run": run })) == Readership::Gone
                {
                    return Err(CliError::running(
                        "standard output was closed",
                        "no more is measured, since nobody reads it",
                    ));
                }
                runs.push(run);
            }
        }
    }
    Ok(runs)
}

/// A server in a process of its own.
struct Server {
    process: Child,
    address: String,
    /// Kept open: the server must not find its standard output closed.
    _stdout: Lines<BufReader<ChildStdout>>,
}

fn failed(what: impl std::fmt::Display) -> CliError {
    CliError::running(what, "try `plait perf server` and `plait perf client` by hand")
}

impl Server {
    async fn start(args: &PerfScalingArgs, program: &PathBuf, threads: u32) -> Result<Self, CliError> {
        let mut command = Command::new(program);
        command.args(["perf", "server", "--quiet", "--listen", "127.0.0.1:0", "--scheduler", "round-robin"]);
        if args.null_receiver {
            // One thread takes less for a packet than two: it has as many as the sender only where they have cores of their own.
            let threads = if fits(threads) { threads } else { 1 };
            command.args(["--threads", &threads.to_string(), "--null-receiver"]).stderr(Stdio::null());
        } else {
            command.args(["--threads", &threads.to_string()]);
        }
        let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true).spawn();
        let mut process = started.map_err(|error| failed(format!("no server could be started: {error}")))?;
        let stdout = process.stdout.take().ok_or_else(|| failed("the server has no standard output"))?;
        let mut stdout = BufReader::new(stdout).lines();
        let ready = stdout.next_line().await.ok().flatten().and_then(|line| serde_json::from_str::<Value>(&line).ok());
        let address = ready.as_ref().and_then(|ready| ready["addresses"][0].as_str()).map(str::to_owned);
        let address = address.ok_or_else(|| failed("the server does not say where it listens"))?;
        Ok(Self { process, address, _stdout: stdout })
    }
}

/// One load between two new processes.
async fn load(
    args: &PerfScalingArgs,
    program: &PathBuf,
    threads: u32,
    direction: &'static str,
) -> Result<Run, CliError> {
    let mut server = Server::start(args, program, threads).await?;
    let mut command = Command::new(program);
    command.args(["perf", "client", "--insecure", "--json", "--quiet", "--scheduler", "round-robin"]);
    command.args(["--threads", &threads.to_string(), &server.address]);
    match args.null_receiver {
        true => command.args(["-t", &args.time.as_secs_f64().to_string()]),
        false => command.args(["-n", &args.bytes.to_string()]),
    };
    if direction == "down" {
        command.arg("-R");
    }
    let mut theirs = ThreadTimes::of(server.process.id().unwrap_or(u32::MAX));
    let before = theirs.sums();
    let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true).spawn();
    let client = started.map_err(|error| failed(format!("no client could be started: {error}")))?;
    let mut ours = ThreadTimes::of(client.id().unwrap_or(u32::MAX));
    let mut done = pin!(client.wait_with_output());
    let output = loop {
        tokio::select! {
            output = &mut done => break output,
            () = tokio::time::sleep(LOOK) => ours.look(),
        }
    };
    theirs.look();
    let spent = theirs.sums().zip(before).map(|(after, before)| after.less(before));
    // It has nothing more to say.
    let _ = server.process.kill().await;
    let output = output.map_err(|error| failed(format!("the client was lost: {error}")))?;
    let last = output.stdout.split(|byte| *byte == b'\n').rfind(|line| !line.is_empty()).unwrap_or_default();
    let told: Value = serde_json::from_slice(last).map_err(|_| failed("the client did not report"))?;
    if told["ok"] != true {
        return Err(failed(format!("a load over {threads} threads failed: {}", told["error"])));
    }
    Ok(Run::new(&told, threads, direction, (ours.sums(), spent)))
}

impl Run {
    /// From what a client told, and what the threads of client and server used.
    fn new(
        told: &Value,
        threads: u32,
        direction: &'static str,
        (ours, theirs): (Option<SharedOut>, Option<SharedOut>),
    ) -> Self {
        let gigabytes = told["bytes"].as_f64().unwrap_or(0.0) / 1e9;
        let workers = told["workers"].as_array().map(Vec::as_slice).unwrap_or_default();
        let moved = |worker: &Value| ["sent_bytes", "received_bytes"].map(|key| worker[key].as_f64().unwrap_or(0.0));
        Self {
            threads,
            direction,
            goodput_gbps: told["goodput_mbps"].as_f64().unwrap_or(0.0) / 1e3,
            client_s_per_gb: told["cpu_seconds"]["client"].as_f64().map(|seconds| seconds / gigabytes),
            server_s_per_gb: told["cpu_seconds"]["server"].as_f64().map(|seconds| seconds / gigabytes),
            client_split: ours.map(|ours| ours.per(gigabytes)),
            server_split: theirs.map(|theirs| theirs.per(gigabytes)),
            busy: workers.iter().filter(|worker| moved(worker).iter().sum::<f64>() > BUSY_BYTES).count(),
        }
    }
}

/// What the runs of one direction lead one to expect.
fn outlook(direction: &'static str, runs: &[Run], has_room: bool) -> Outlook {
    let most = runs.iter().map(|run| run.threads).max().unwrap_or(0);
    let measured: Vec<ThreadRates> = (1..=most)
        .map(|threads| ThreadRates {
            threads,
            rates: of(runs, threads, direction).map(|run| run.goodput_gbps).collect(),
        })
        .collect();
    let law = if has_room { FittedLaw::new(&measured, &mut Random::from_u64(SEED)) } else { None };
    let two = || of(runs, 2, direction).filter_map(|run| run.client_split);
    let cost = Sorted::new(two().map(|split| split.workers))
        .median()
        .zip(Sorted::new(two().map(|split| split.others)).median())
        .map(|(workers, others)| SharedOut { workers, others })
        .filter(|cost| cost.workers > 0.0 && cost.others > 0.0);
    let rate = |threads: u32| match (&law, cost) {
        (Some(fitted), _) => Some(fitted.law().rate(threads)),
        // Each thread has a core, and all else has one.
        (None, Some(cost)) => Some((f64::from(threads) * 8.0 / cost.workers).min(8.0 / cost.others)),
        (None, None) => None,
    };
    let poster = |threads| POSTER_GBPS.iter().find(|(of, _)| *of == threads).map(|(_, gbps)| *gbps);
    let predicted = PREDICTED
        .into_iter()
        .filter_map(|threads| Some(Prediction { threads, goodput_gbps: rate(threads)?, poster_gbps: poster(threads) }));
    let knee_threads = match &law {
        Some(fitted) => fitted.knee_threads,
        None => cost.map(|cost| cost.workers / cost.others),
    };
    let predicted = predicted.collect();
    Outlook { direction, law, cost_s_per_gb: cost, knee_threads, predicted }
}

fn of<'a>(runs: &'a [Run], threads: u32, direction: &'static str) -> impl Iterator<Item = &'a Run> {
    runs.iter().filter(move |run| run.threads == threads && run.direction == direction)
}

/// Median, least and most.
fn spread(values: impl Iterator<Item = Option<f64>>) -> String {
    let sorted = Sorted::new(values.flatten());
    match (sorted.values().first(), sorted.median(), sorted.values().last()) {
        (Some(least), Some(median), Some(most)) => format!("{median:.3} ({least:.3}-{most:.3})"),
        _ => "-".to_owned(),
    }
}

fn lines(summary: &ScalingSummary, most: u32) -> Vec<String> {
    let ScalingSummary { cores, rounds, outlooks, runs, .. } = summary;
    let mut lines = vec![format!("{cores} cores, {rounds} rounds; median (least-most)")];
    for Outlook { direction, law, cost_s_per_gb, knee_threads, predicted } in outlooks {
        let name = if *direction == "up" { "threads, sending" } else { "threads, receiving" };
        let heading =
            [name, "Gbit/s", "CPU s/GB client", "of it elsewhere", "CPU s/GB server", "of it elsewhere", "busy"];
        let mut table = Table::new(&heading);
        for threads in 1..=most {
            let each = || of(runs, threads, direction);
            let elsewhere = |of: fn(&Run) -> Option<SharedOut>| {
                let median = Sorted::new(each().filter_map(of).map(|split| split.others)).median();
                median.map_or("-".to_owned(), |median| format!("{median:.3}"))
            };
            let busy = each().filter(|run| run.busy == threads as usize).count();
            table.row(vec![
                threads.to_string(),
                spread(each().map(|run| Some(run.goodput_gbps))),
                spread(each().map(|run| run.client_s_per_gb)),
                elsewhere(|run| run.client_split),
                spread(each().map(|run| run.server_s_per_gb)),
                elsewhere(|run| run.server_split),
                if threads > 1 { format!("{busy} of {rounds} runs") } else { "-".to_owned() },
            ]);
        }
        lines.extend(table.lines());
        let knee = knee_threads.map_or("none".to_owned(), |knee| format!("at {knee:.1} threads"));
        match (law, cost_s_per_gb) {
            (Some(FittedLaw { first, contention, coherence, .. }), _) => {
                let told = [("X(1)", first), ("contention", contention), ("coherence", coherence)]
                    .map(|(name, of)| format!("{name} {:.4} ({:.4}-{:.4})", of.best, of.low, of.high));
                lines.push(format!("universal scalability law: {}; knee {knee}", told.join(", ")));
            }
            (None, Some(SharedOut { workers, others })) => lines.push(format!(
                "at most, by the client's cost with two threads: {workers:.3} s/GB in the threads that serve paths, {others:.3} \
                 elsewhere; knee {knee}"
            )),
            (None, None) => lines.push("nothing is predicted: this system does not tell what threads use".to_owned()),
        }
        let mut table = Table::new(&["threads", "Gbit/s", "mcMPQUIC"]);
        for Prediction { threads, goodput_gbps, poster_gbps } in predicted {
            let poster = poster_gbps.map_or(String::new(), |gbps| format!("{gbps}"));
            table.row(vec![threads.to_string(), format!("{goodput_gbps:.1}"), poster]);
        }
        lines.extend(table.lines());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(threads: u32, goodput_gbps: f64, split: Option<SharedOut>) -> Run {
        let (client_s_per_gb, server_s_per_gb) = (Some(0.7), None);
        let (client_split, server_split, busy) = (split, None, threads as usize);
        Run {
            threads,
            direction: "up",
            goodput_gbps,
            client_s_per_gb,
            server_s_per_gb,
            client_split,
            server_split,
            busy,
        }
    }

    #[test]
    fn without_cores_for_all_the_bound_is_that_of_costs() {
        let split = |workers, others| Some(SharedOut { workers, others });
        let runs = [run(1, 9.0, split(0.0, 0.8)), run(2, 10.0, split(0.5, 0.1)), run(2, 12.0, split(0.7, 0.3))];
        let told = outlook("up", &runs, false);
        assert_eq!((told.law, told.cost_s_per_gb), (None, split(0.6, 0.2)));
        assert!((told.knee_threads.unwrap() - 3.0).abs() < 1e-9, "{told:?}");
        let rates: Vec<f64> = told.predicted.iter().take(3).map(|at| at.goodput_gbps.round()).collect();
        assert_eq!(rates, [13.0, 27.0, 40.0]);
        assert_eq!(told.predicted[4].poster_gbps, Some(20.83));
        assert_eq!(outlook("up", &[run(1, 9.0, None), run(2, 9.0, None)], false).predicted, []);
    }

    #[test]
    fn with_cores_the_law_is_fitted() {
        let runs: Vec<Run> = (1..=4).map(|n| run(n, 8.0 * f64::from(n), None)).collect();
        let told = outlook("up", &runs, true);
        let law = told.law.unwrap();
        assert!((law.first.best - 8.0).abs() < 1e-6 && law.contention.best < 1e-6, "{law:?}");
        assert!((told.predicted[3].goodput_gbps - 64.0).abs() < 1e-3 && told.knee_threads.is_none(), "{told:?}");
    }
}
