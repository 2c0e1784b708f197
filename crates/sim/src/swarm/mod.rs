//! The swarm: networks, faults and configurations drawn from seeds, run with every oracle, and shrunk where they fail.

mod dice;
mod draw;
mod further;
mod shrink;
mod usable;
mod workers;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

pub use draw::draw;
pub use further::FURTHER_FROM;
pub use shrink::{Shrunk, shrink};
pub use workers::draw_with_workers;

use crate::campaign::{StoreError, spread};
use crate::command::{CommandError, set_over, write};
use crate::run::outcome::{End, Outcome};
use crate::run::{self, Watch};
use crate::scenario::{Scenario, ScenarioError, Traces, Tree};

/// What a seed draws.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Population {
    /// Networks, faults and configurations.
    #[default]
    Plain,
    /// Beside them workers that serve paths, their turns and what befalls them.
    Workers,
}

/// `plait sim swarm`.
#[derive(Clone, Debug)]
pub struct SwarmRequest {
    /// What is drawn.
    pub population: Population,
    /// The first seed.
    pub from: u64,
    /// How many seeds are tried.
    pub seeds: u64,
    /// Values over what is drawn, each of them key=value.
    pub sets: Vec<String>,
    /// Runs that go on side by side.
    pub jobs: usize,
    /// Where small scenarios of failures go; none leaves failures as they were drawn.
    pub out: Option<PathBuf>,
}

/// How a run failed. Two failures are alike when these are the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// In which way, without the numbers.
    pub kind: String,
    /// The whole story.
    pub story: String,
}

/// What a swarm found.
#[derive(Clone, Debug, Default)]
pub struct SwarmSummary {
    /// Seeds that were run.
    pub runs: usize,
    /// Seeds that failed.
    pub failures: Vec<(u64, Failure)>,
    /// The files that were written.
    pub files: Vec<PathBuf>,
    /// What is printed for people.
    pub text: String,
}

/// Runs a scenario: none where it completed and broke no rule.
///
/// # Errors
/// It is no scenario.
pub fn judge(tree: &Tree) -> Result<Option<Failure>, ScenarioError> {
    judge_until(tree, &AtomicBool::new(false))
}

fn judge_until(tree: &Tree, stop: &AtomicBool) -> Result<Option<Failure>, ScenarioError> {
    Ok(judge_scenario(&Scenario::read(tree, &Traces::default())?, stop))
}

fn judge_scenario(scenario: &Scenario, stop: &AtomicBool) -> Option<Failure> {
    let watch = Watch { stop: Some(stop), ..Watch::default() };
    let outcome = catch_unwind(AssertUnwindSafe(|| run::run(scenario, scenario.seed, watch)));
    match outcome {
        // What was told to stop has shown nothing.
        Ok(Ok(outcome)) if outcome.was_stopped() => None,
        Ok(Ok(outcome)) => failure_of(&outcome),
        Ok(Err(error)) => Some(Failure { kind: "host".into(), story: error.to_string() }),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            let text = text.unwrap_or_else(|| "without words".into());
            Some(Failure { kind: format!("panic: {}", without_numbers(&text)), story: format!("panic: {text}") })
        }
    }
}

fn failure_of(outcome: &Outcome) -> Option<Failure> {
    let faults: Vec<String> = outcome.faults.iter().map(ToString::to_string).collect();
    let end = match &outcome.end {
        End::Complete => None,
        End::Unfinished(why) => Some(format!("unfinished ({why}) after {:?}", outcome.elapsed)),
        End::Failed(why) => Some(format!("failed: {why}")),
    };
    let first = faults.first().cloned().or_else(|| end.clone())?;
    let story: Vec<String> = end.into_iter().chain(faults).collect();
    let story = format!("{}; {} bytes arrived by {:?}", story.join("; "), outcome.verified_bytes, outcome.elapsed);
    Some(Failure { kind: without_numbers(&first), story })
}

/// Failures with other numbers are the same failure.
fn without_numbers(text: &str) -> String {
    let plain: String = text.chars().filter(|c| !c.is_ascii_digit() && *c != '.' && *c != 'µ').collect();
    plain.replace(" ms", " s").replace("ns", "s").trim().to_owned()
}

/// Hears of a part that is under way, runs done and runs in all; no part is the seeds themselves.
pub type ReportProgress<'a> = &'a (dyn Fn(Option<&str>, usize, usize) + Sync);

/// Runs seeds; what fails is shrunk and written down, the smallest scenario so far after each step: `stop` loses nothing.
///
/// # Errors
/// Files cannot be written.
pub fn swarm(
    request: &SwarmRequest,
    stop: &AtomicBool,
    progress: ReportProgress<'_>,
) -> Result<SwarmSummary, CommandError> {
    let seeds: Vec<u64> = (request.from..request.from.saturating_add(request.seeds)).collect();
    if let Some(out) = &request.out {
        std::fs::create_dir_all(out).map_err(|error| CommandError::File(out.clone(), error))?;
    }
    let done = std::sync::atomic::AtomicUsize::new(0);
    let results = spread(
        &seeds,
        request.jobs,
        stop,
        |seed| find(*seed, request, stop, progress),
        |_, _| progress(None, done.fetch_add(1, Ordering::Relaxed) + 1, seeds.len()),
    );
    let mut summary = SwarmSummary::default();
    for (seed, result) in seeds.iter().zip(results) {
        let found = match result.transpose()? {
            None | Some(SeedVerdict::Stopped) => continue,
            Some(SeedVerdict::Passed) => None,
            Some(SeedVerdict::Failed(found)) => Some(found),
        };
        summary.runs += 1;
        let Some(found) = found else { continue };
        summary.text.push_str(&format!("seed {seed}: {}\n", found.failure.story));
        if let (Some(shrunk), Some(out)) = (&found.shrunk, &request.out) {
            let file = keep(out, *seed, shrunk)?;
            let so_far = if stop.load(Ordering::Relaxed) { ", interrupted" } else { "" };
            summary.text.push_str(&format!("  shrunk in {} runs{so_far}: {}\n", shrunk.runs, file.display()));
            summary.files.push(file);
        }
        summary.failures.push((*seed, found.failure));
    }
    let (runs, failed) = (summary.runs, summary.failures.len());
    let all = if runs < seeds.len() { format!("interrupted: {runs} of {}", seeds.len()) } else { runs.to_string() };
    summary.text.push_str(&format!("swarm: {all} seeds from {}, {failed} failed\n", request.from));
    Ok(summary)
}

/// What became of a seed.
enum SeedVerdict {
    Stopped,
    Passed,
    Failed(Found),
}

/// A seed that failed.
struct Found {
    failure: Failure,
    shrunk: Option<Shrunk>,
}

/// Writes down the small scenario of a seed that failed.
fn keep(out: &Path, seed: u64, shrunk: &Shrunk) -> Result<PathBuf, StoreError> {
    let text = format!("# {}\n{}", shrunk.failure.story, shrunk.text);
    write(out, &format!("swarm-{seed}.toml"), &text)
}

fn find(
    seed: u64,
    request: &SwarmRequest,
    stop: &AtomicBool,
    progress: ReportProgress<'_>,
) -> Result<SeedVerdict, CommandError> {
    let out = request.out.as_deref();
    let text = match request.population {
        Population::Plain => draw(seed),
        Population::Workers => draw_with_workers(seed),
    };
    let mut tree = Tree::parse(&format!("swarm-{seed}"), &text)?;
    set_over(&mut tree, &request.sets)?;
    let Some(failure) = judge_until(&tree, stop)? else {
        return Ok(if stop.load(Ordering::Relaxed) { SeedVerdict::Stopped } else { SeedVerdict::Passed });
    };
    let mut kept_lines = usize::MAX;
    let mut written = Ok(());
    let mut told = |best: &Shrunk| {
        let lines = best.text.lines().count();
        if let Some(out) = out.filter(|_| lines < kept_lines) {
            kept_lines = lines;
            written = keep(out, seed, best).map(|_| ());
        }
        progress(Some(&format!("seed {seed} failed; shrinking, {lines} lines")), best.runs, shrink::RUNS_MAX);
    };
    let shrunk = out.map(|_| shrink::shrink_until(&tree, &failure, stop, &mut told));
    written?;
    Ok(SeedVerdict::Failed(Found { failure, shrunk }))
}
