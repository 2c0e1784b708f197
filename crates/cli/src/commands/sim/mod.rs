//! `plait sim`: scenarios, campaigns and figures in virtual time.

pub(crate) mod args;

use std::io::{IsTerminal, stderr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::{ProgressBar, ProgressStyle};
use plait_sim::Policies;
use plait_sim::campaign::{CampaignError, Shard, merge};
use plait_sim::command::{self, CommandError, Pictures, RunRequest};
use plait_sim::figures::{self, FigureRequest, Made};
use plait_sim::swarm::{self, SwarmRequest};

use crate::clock::Clock;
use crate::fail::Fail;
use args::{SimCommand, SimFigureArgs, SimMergeArgs, SimRunArgs, SimSwarmArgs};

/// Runs a command of the laboratory; Ctrl-C ends a campaign between two runs, and what is done is kept.
pub(crate) async fn run(command: SimCommand, policies: Policies) -> Result<(), Fail> {
    let stop = Arc::new(AtomicBool::new(false));
    let heard = stop.clone();
    let waiting = tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            heard.store(true, Ordering::Relaxed);
        }
    });
    let done = tokio::task::spawn_blocking(move || work(&command, &policies, &stop)).await;
    waiting.abort();
    done.unwrap_or_else(|error| {
        Err(Fail::running(format!("the simulation ended badly: {error}"), "this is a fault of plait"))
    })
}

fn work(command: &SimCommand, policies: &Policies, stop: &AtomicBool) -> Result<(), Fail> {
    match command {
        SimCommand::Run(args) => run_scenario(args, policies, stop),
        SimCommand::List => {
            print!("{}", list(policies));
            Ok(())
        }
        SimCommand::Merge(args) => merge_results(args),
        SimCommand::Swarm(args) => run_swarm(args, stop),
        SimCommand::Figure(args) => make_figures(args, policies, stop),
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

fn pictures(png: bool) -> Pictures {
    if png { Pictures::Png } else { Pictures::None }
}

/// A bar on a terminal, nothing elsewhere.
fn bar() -> ProgressBar {
    if !stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {eta}");
    ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn run_scenario(args: &SimRunArgs, policies: &Policies, stop: &AtomicBool) -> Result<(), Fail> {
    let request = RunRequest {
        file: args.file.clone(),
        sets: args.sets.clone(),
        seeds: args.seeds,
        jobs: threads(args.jobs),
        out: args.out.clone(),
        qlog: args.qlog,
        pictures: pictures(args.png),
        shard: args.shard.unwrap_or(Shard::WHOLE),
        commit: commit(),
        policies: policies.clone(),
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

fn list(policies: &Policies) -> String {
    let mut text = String::from("figures (plait sim figure NAME):\n");
    figures::list().for_each(|(name, title)| text.push_str(&format!("  {name:<15} {title}\n")));
    let words = [
        ("designs (sweep.wsp.design)", plait_sim::design::NAMES.join(", ")),
        ("schedulers (endpoints.scheduler)", policies.scheduler_names().join(", ")),
        (
            "congestion control (endpoints.congestion; newreno, cubic, bbr: uncoupled)",
            policies.controller_names().join(", "),
        ),
        ("ack paths (endpoints.ack_path)", plait_sim::ACK_PATHS.join(", ")),
        ("reinjection (endpoints.reinjection)", plait_sim::REINJECTIONS.join(", ")),
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

/// The figures that were asked for; `all` stands for each of them.
fn wanted(names: &[String]) -> Vec<&str> {
    if names.iter().any(|name| name == "all") {
        return figures::list().map(|(name, _)| name).collect();
    }
    names.iter().map(String::as_str).collect()
}

fn make_figures(args: &SimFigureArgs, policies: &Policies, stop: &AtomicBool) -> Result<(), Fail> {
    let names = wanted(&args.names);
    if names.len() > 1 && args.out.is_none() && !args.json && !args.markdown {
        return Err(Fail::usage("several figures share runs and leave many files: give them a folder with --out DIR"));
    }
    let bar = bar();
    let request = FigureRequest {
        points: args.points,
        sets: args.sets.clone(),
        jobs: threads(args.jobs),
        out: args.out.clone(),
        pictures: pictures(args.png),
        commit: commit(),
        policies: policies.clone(),
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
    let (mut made, mut seconds) = (Vec::new(), Vec::new());
    for name in &names {
        let clock = Clock::start();
        let figure = figures::figure(name, &request)?;
        seconds.push(clock.seconds());
        if !args.json && !args.markdown {
            bar.suspend(|| {
                println!("{}  took {:.1} s on {} threads", figure.text(), seconds[made.len()], request.jobs)
            });
        }
        made.push(figure);
    }
    bar.finish_and_clear();
    let table: String = made.iter().map(Made::markdown).collect();
    let table = format!("{}{table}", figures::MARKDOWN_HEAD);
    if let Some(out) = args.out.as_ref().filter(|_| made.len() > 1) {
        std::fs::write(out.join("claims.md"), &table).map_err(|error| unwritable(out, &error))?;
        let json = claims(&made, &seconds);
        std::fs::write(out.join("claims.json"), json).map_err(|error| unwritable(out, &error))?;
    }
    if args.json {
        println!("{}", claims(&made, &seconds));
    } else if args.markdown {
        print!("{table}");
    }
    let failed: Vec<_> = made.iter().filter(|figure| !figure.held()).map(|figure| figure.name).collect();
    if failed.is_empty() {
        return Ok(());
    }
    Err(Fail::running(format!("not held: {}", failed.join(", ")), "the notes name the runs"))
}

/// Figures with their claims as one JSON object.
fn claims(made: &[Made], seconds: &[f64]) -> String {
    let figure = |(one, seconds): (&Made, &f64)| {
        let claims = one.figure.claims.iter();
        let claims = claims.map(|c| serde_json::json!({ "what": c.what, "published": c.published, "here": c.ours }));
        serde_json::json!({
            "name": one.name, "title": one.title, "held": one.held(), "wall_seconds": seconds,
            "claims": claims.collect::<Vec<_>>(), "notes": one.figure.notes, "files": one.files,
        })
    };
    let figures: Vec<_> = made.iter().zip(seconds).map(figure).collect();
    let ok = made.iter().all(Made::held);
    serde_json::json!({ "command": "sim figure", "ok": ok, "figures": figures }).to_string()
}

fn unwritable(out: &Path, error: &std::io::Error) -> Fail {
    Fail::running(format!("{}: {error}", out.display()), "choose another folder with --out")
}
