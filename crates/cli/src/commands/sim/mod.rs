//! `plait sim`: scenarios, campaigns and figures in virtual time.

pub(crate) mod args;

use std::io::{IsTerminal, stderr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::{ProgressBar, ProgressStyle};
use plait_sim::campaign::{CampaignError, Shard, merge};
use plait_sim::command::{self, CommandError, RunRequest};
use plait_sim::figures::{self, FigureRequest};
use plait_sim::swarm::{self, SwarmRequest};

use crate::fail::Fail;
use args::{SimCommand, SimFigureArgs, SimMergeArgs, SimRunArgs, SimSwarmArgs};

/// Runs a command of the laboratory; Ctrl-C ends a campaign between two runs, and what is done is kept.
pub(crate) async fn run(command: SimCommand) -> Result<(), Fail> {
    let stop = Arc::new(AtomicBool::new(false));
    let heard = stop.clone();
    let waiting = tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            heard.store(true, Ordering::Relaxed);
        }
    });
    let done = tokio::task::spawn_blocking(move || work(&command, &stop)).await;
    waiting.abort();
    done.unwrap_or_else(|error| {
        Err(Fail::running(format!("the simulation ended badly: {error}"), "this is a fault of plait"))
    })
}

fn work(command: &SimCommand, stop: &AtomicBool) -> Result<(), Fail> {
    match command {
        SimCommand::Run(args) => run_scenario(args, stop),
        SimCommand::List => {
            print!("{}", list());
            Ok(())
        }
        SimCommand::Merge(args) => merge_results(args),
        SimCommand::Swarm(args) => run_swarm(args, stop),
        SimCommand::Figure(args) => make_figure(args, stop),
    }
}

impl From<CommandError> for Fail {
    fn from(error: CommandError) -> Self {
        match &error {
            CommandError::Campaign(CampaignError::Interrupted { .. }) => Self::Running(error.to_string()),
            error if error.is_usage() => Self::Usage(error.to_string()),
            error => Self::Running(error.to_string()),
        }
    }
}

fn threads(jobs: Option<u16>) -> usize {
    jobs.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from)
}

/// What results belong to: this very program.
fn commit() -> String {
    let program = std::env::current_exe().and_then(std::fs::read).unwrap_or_default();
    let hash = program.chunks(8).fold(0xcbf2_9ce4_8422_2325u64, |hash, bytes| {
        let word = bytes.iter().fold(0u64, |word, byte| word << 8 | u64::from(*byte));
        (hash ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(17)
    });
    format!("{}-{hash:016x}", option_env!("PLAIT_COMMIT").unwrap_or(env!("CARGO_PKG_VERSION")))
}

/// A bar on a terminal, nothing elsewhere.
fn bar() -> ProgressBar {
    if !stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {eta}");
    ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn run_scenario(args: &SimRunArgs, stop: &AtomicBool) -> Result<(), Fail> {
    let request = RunRequest {
        file: args.file.clone(),
        sets: args.sets.clone(),
        seeds: args.seeds,
        jobs: threads(args.jobs),
        out: args.out.clone(),
        qlog: args.qlog,
        shard: args.shard.unwrap_or(Shard::WHOLE),
        commit: commit(),
    };
    let bar = bar();
    let summary = command::run(&request, stop, &|done, total| {
        bar.set_length(total as u64);
        bar.set_position(done as u64);
    });
    bar.finish_and_clear();
    let summary = summary?;
    if args.json {
        println!("{}", json(&summary));
    } else {
        print!("{}", summary.text);
    }
    if summary.ok { Ok(()) } else { Err(Fail::running("not every run completed cleanly", "the result rows say which")) }
}

/// The rows as one JSON object.
fn json(summary: &command::RunSummary) -> String {
    let cell = |value: &str| match value.parse::<f64>() {
        Ok(number) if number.is_finite() && value.len() < 16 => serde_json::json!(number),
        _ => serde_json::json!(value),
    };
    let row = |row: &plait_sim::campaign::Row| -> serde_json::Value {
        let cells = row.cells.iter().map(|(name, value)| (name.clone(), cell(value)));
        serde_json::Value::Object(cells.collect())
    };
    let runs: Vec<_> = summary.rows.iter().map(row).collect();
    serde_json::json!({ "command": "sim run", "ok": summary.ok, "runs": runs, "files": summary.files }).to_string()
}

fn list() -> String {
    let mut text = String::from("figures (plait sim figure NAME):\n");
    figures::list().for_each(|(name, title)| text.push_str(&format!("  {name:<15} {title}\n")));
    let words = [
        ("designs (sweep.wsp.design)", plait_sim::design::NAMES.join(", ")),
        ("schedulers (endpoints.scheduler)", plait_sim::SCHEDULERS.join(", ")),
        (
            "congestion control (endpoints.congestion; newreno, cubic, bbr: uncoupled)",
            plait_sim::CONTROLLERS.join(", "),
        ),
        ("ack paths (endpoints.ack_path)", plait_sim::ACK_PATHS.join(", ")),
    ];
    words.iter().for_each(|(what, names)| text.push_str(&format!("{what}: {names}\n")));
    text
}

fn run_swarm(args: &SimSwarmArgs, stop: &AtomicBool) -> Result<(), Fail> {
    let request = SwarmRequest { from: args.from, seeds: args.seeds, jobs: threads(args.jobs), out: args.out.clone() };
    let bar = bar();
    let summary = swarm::swarm(&request, stop, &|done, total| {
        bar.set_length(total as u64);
        bar.set_position(done as u64);
    });
    bar.finish_and_clear();
    let summary = summary?;
    print!("{}", summary.text);
    if summary.failures.is_empty() && summary.runs as u64 == args.seeds {
        Ok(())
    } else {
        Err(Fail::running(
            "not every seed passed",
            "plait sim swarm --from SEED --seeds 1 --out DIR writes a small scenario",
        ))
    }
}

fn merge_results(args: &SimMergeArgs) -> Result<(), Fail> {
    let rows = merge::merge(&args.files, &args.out).map_err(CommandError::from)?;
    println!("{rows} runs in {}", args.out.display());
    Ok(())
}

fn make_figure(args: &SimFigureArgs, stop: &AtomicBool) -> Result<(), Fail> {
    let bar = bar();
    let request = FigureRequest {
        points: args.points,
        sets: args.sets.clone(),
        jobs: threads(args.jobs),
        out: args.out.clone(),
        commit: commit(),
        stop,
        progress: &|part: &str, done, total| {
            bar.set_message(part.to_owned());
            bar.set_length(total as u64);
            bar.set_position(done as u64);
        },
    };
    if let Some(out) = &args.out {
        std::fs::create_dir_all(out).map_err(|error| unwritable(out, &error))?;
    }
    let made = figures::figure(&args.name, &request);
    bar.finish_and_clear();
    let (text, _, held) = made?;
    print!("{text}");
    if held { Ok(()) } else { Err(Fail::running("the gate was not held", "the notes above name the runs")) }
}

fn unwritable(out: &Path, error: &std::io::Error) -> Fail {
    Fail::running(format!("{}: {error}", out.display()), "choose another folder with --out")
}
