//! `plait sim`: scenarios, campaigns and figures in virtual time.

pub(crate) mod args;
mod documents;
pub(crate) mod json;
mod progress;

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plait_sim::Policies;
use plait_sim::campaign::{CampaignError, Shard, merge};
use plait_sim::command::{self, CommandError, Pictures, RunNews, RunRequest, RunSummary};
use plait_sim::figures::claim::Reference;
use plait_sim::figures::{self, FigureFiles, FigureRequest, RanWith};
use plait_sim::files::{remedy, write_whole};
use plait_sim::swarm::{self, Population, SwarmRequest};
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::error::CliError;
use crate::output::{print_json, print_text};
use crate::stop;
pub(crate) use progress::RunProgress;

use args::{SimCommand, SimFigureArgs, SimMergeArgs, SimRunArgs, SimSwarmArgs};

/// How long a run or a file may take to end after Ctrl-C, before we leave without it.
const STOP_TIME: Duration = Duration::from_secs(2);

/// So much of the program is read at a time; a multiple of eight.
const BLOCK_BYTES: usize = 1 << 16;

/// Runs a command of the laboratory; Ctrl-C ends runs early, and what a campaign has done is kept.
pub(crate) async fn run(command: SimCommand, policies: Policies) -> Result<(), CliError> {
    let stop = Arc::new(AtomicBool::new(false));
    let (asked, heard, name) = (stop::asked(), stop.clone(), json_name(&command));
    let mut working = tokio::task::spawn_blocking(move || work(&command, &policies, &stop));
    let too_late = async {
        asked.await;
        heard.store(true, Ordering::Relaxed);
        tokio::time::sleep(STOP_TIME).await;
    };
    tokio::select! {
        done = &mut working => done.unwrap_or_else(|error| {
            tell(name, Err(CliError::running(format!("the simulation ended badly: {error}"), "this is a fault of plait")))
        }),
        () = too_late => tell(name, Err(CliError::Interrupted)),
    }
}

/// What a command has found out.
struct Output {
    /// For programs, an object.
    json: Value,
    /// What is printed for people.
    text: String,
    /// Why it is no success all the same.
    failure: Option<CliError>,
}

/// Prints the result once: for programs under the command's `name`, where they read, else for people.
fn tell(name: Option<&str>, result: Result<Output, CliError>) -> Result<(), CliError> {
    let (mut json, text, failure) = match result {
        Ok(Output { json, text, failure }) => (json, text, failure),
        Err(fail) => (json!({}), String::new(), Some(fail)),
    };
    let printed = match name {
        Some(name) => {
            json["command"] = json!(name);
            json["ok"] = json!(failure.is_none());
            json["error"] = json!(failure.as_ref().map(ToString::to_string));
            print_json(&json)
        }
        None => print_text(&text),
    };
    failure.map_or(printed, Err)
}

/// The command's name in JSON, where it prints JSON.
fn json_name(command: &SimCommand) -> Option<&'static str> {
    let (name, show) = match command {
        SimCommand::Run(args) => ("sim run", args.show),
        SimCommand::Swarm(args) => ("sim swarm", args.show),
        SimCommand::Figure(args) => ("sim figure", args.show),
        SimCommand::List | SimCommand::Merge(_) => return None,
    };
    show.is_json().then_some(name)
}

fn work(command: &SimCommand, policies: &Policies, stop: &AtomicBool) -> Result<(), CliError> {
    let told = match command {
        SimCommand::Run(args) => run_scenario(args, policies, stop),
        SimCommand::List => Ok(Output { json: Value::Null, text: list(policies), failure: None }),
        SimCommand::Merge(args) => merge_results(args),
        SimCommand::Swarm(args) => run_swarm(args, stop),
        SimCommand::Figure(args) => make_figures(args, policies, stop),
    };
    tell(json_name(command), told)
}

impl From<CommandError> for CliError {
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
pub(crate) fn commit() -> Result<String, CliError> {
    // The first stands for the program even where its file has gone.
    let file = File::open("/proc/self/exe").or_else(|_| std::env::current_exe().and_then(File::open));
    let hash = file.and_then(content_hash).ok().flatten();
    identity(hash, std::env::var("PLAIT_COMMIT").ok().as_deref())
}

fn mix(hash: u64, word: u64) -> u64 {
    (hash ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(17)
}

/// A hash over all that `input` has, block by block: a program may be larger than all else that a run needs. None where
/// it is empty.
fn content_hash(mut input: impl Read) -> std::io::Result<Option<u64>> {
    let mut block = Vec::with_capacity(BLOCK_BYTES);
    let mut hash = None;
    loop {
        block.clear();
        if input.by_ref().take(BLOCK_BYTES as u64).read_to_end(&mut block)? == 0 {
            return Ok(hash);
        }
        // Whole words, and no iterators: a program that is not optimised hashes itself too.
        let (words, rest) = block.as_chunks();
        let mut mixed = hash.unwrap_or(0xcbf2_9ce4_8422_2325);
        for word in words {
            mixed = mix(mixed, u64::from_be_bytes(*word));
        }
        if !rest.is_empty() {
            mixed = mix(mixed, rest.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)));
        }
        hash = Some(mixed);
    }
}

/// The identity of a program whose content has this hash or, where it cannot be read, what we were told it is.
fn identity(hash: Option<u64>, told: Option<&str>) -> Result<String, CliError> {
    let built = option_env!("PLAIT_COMMIT").unwrap_or(env!("CARGO_PKG_VERSION"));
    let Some(hash) = hash else {
        let plain =
            |told: &&str| !told.is_empty() && told.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        return told.filter(plain).map(|told| format!("{built}-{told}")).ok_or_else(|| {
            CliError::running(
                "this program cannot read itself, so that results of different programs could be mixed",
                "make its file readable, or name what it was built from in the variable PLAIT_COMMIT",
            )
        });
    };
    Ok(format!("{built}-{hash:016x}"))
}

pub(crate) fn pictures(png: bool) -> Pictures {
    if png { Pictures::Png } else { Pictures::None }
}

fn run_scenario(args: &SimRunArgs, policies: &Policies, stop: &AtomicBool) -> Result<Output, CliError> {
    let request = RunRequest {
        file: args.file.clone(),
        sets: args.sets.clone(),
        seeds: args.seeds,
        jobs: threads(args.jobs),
        out: args.out.clone(),
        qlog: args.qlog,
        pcap: args.pcap.clone(),
        pictures: pictures(args.png),
        shard: args.shard.unwrap_or(Shard::WHOLE),
        commit: commit()?,
        policies: policies.clone(),
    };
    let progress = RunProgress::new(args.show);
    let summary = command::run(&request, stop, &|news| match news {
        RunNews::Runs { done, total } => progress.on_run(None, done, total),
        RunNews::Within(headway) => progress.on_headway(headway),
    });
    progress.finish();
    let RunSummary { text, rows, files, ok } = summary?;
    let runs: Vec<_> = rows.iter().map(json::row).collect();
    let failure = CliError::running(
        "not every run completed cleanly",
        "the rows of runs.csv in a folder of --out, or of --json, say which and why",
    );
    Ok(Output { json: json!({ "runs": runs, "files": files }), text, failure: (!ok).then_some(failure) })
}

fn list(policies: &Policies) -> String {
    let mut text = String::from("figures (plait sim figure NAME):\n");
    figures::list().for_each(|(name, title)| text.push_str(&format!("  {name:<15} {title}\n")));
    let congestion =
        format!("congestion control (endpoints.congestion; {}: uncoupled)", policies.uncoupled_names().join(", "));
    let words = [
        ("designs (sweep.wsp.design)", plait_sim::design::NAMES.join(", ")),
        ("schedulers (endpoints.scheduler)", policies.scheduler_names().join(", ")),
        (&congestion, policies.controller_names().join(", ")),
        ("ack paths (endpoints.ack_path)", plait_sim::ACK_PATHS.join(", ")),
        ("reinjection (endpoints.reinjection)", plait_sim::REINJECTIONS.join(", ")),
        ("path policies (endpoints.path_policy)", plait_sim::PATH_POLICIES.join(", ")),
    ];
    words.iter().for_each(|(what, names)| text.push_str(&format!("{what}: {names}\n")));
    text
}

fn run_swarm(args: &SimSwarmArgs, stop: &AtomicBool) -> Result<Output, CliError> {
    let request = SwarmRequest {
        population: if args.workers { Population::Workers } else { Population::Plain },
        from: args.from,
        seeds: args.seeds,
        sets: args.sets.clone(),
        jobs: threads(args.jobs),
        out: args.out.clone(),
    };
    let progress = RunProgress::new(args.show);
    let summary = swarm::swarm(&request, stop, &|part, done, total| match part {
        Some(part) => progress.on_step(part, done, total),
        None => progress.on_run(None, done, total),
    });
    progress.finish();
    let summary = summary?;
    let failures = summary.failures.iter().map(|(seed, failure)| json!({ "seed": seed, "story": failure.story }));
    let failures: Vec<_> = failures.collect();
    let failure = if !failures.is_empty() {
        let hint = "plait sim swarm --from SEED --seeds 1 --out DIR, with the other flags of this run, writes a small scenario";
        Some(CliError::running("not every seed passed", hint))
    } else if (summary.runs as u64) < args.seeds {
        Some(CliError::running(
            format!("interrupted after {} of {} seeds", summary.runs, args.seeds),
            "none failed so far",
        ))
    } else {
        None
    };
    let json = json!({ "seeds": summary.runs, "failures": failures, "files": summary.files });
    Ok(Output { json, text: summary.text, failure })
}

fn merge_results(args: &SimMergeArgs) -> Result<Output, CliError> {
    let rows = merge::merge(&args.files, &args.out).map_err(CommandError::from)?;
    Ok(Output { json: Value::Null, text: format!("{rows} runs in {}\n", args.out.display()), failure: None })
}

/// The figures that were asked for; `all` stands for each of them.
fn wanted(names: &[String]) -> Result<Vec<&str>, CliError> {
    let known: Vec<&str> = figures::list().map(|(name, _)| name).collect();
    if let Some(other) = names.iter().find(|name| *name != "all" && !known.contains(&name.as_str())) {
        return Err(CliError::usage(format!("there is no figure `{other}`; accepted: {}, all", known.join(", "))));
    }
    if names.iter().any(|name| name == "all") {
        return Ok(known);
    }
    Ok(names.iter().map(String::as_str).collect())
}

fn make_figures(args: &SimFigureArgs, policies: &Policies, stop: &AtomicBool) -> Result<Output, CliError> {
    let names = wanted(&args.names)?;
    let documents = documents::read(&args.into, &names)?;
    let for_people = !args.show.is_json() && !args.markdown;
    if names.len() > 1 && args.out.is_none() && for_people {
        return Err(CliError::usage(
            "several figures share runs and leave many files: give them a folder with --out DIR",
        ));
    }
    let progress = RunProgress::new(args.show);
    let request = FigureRequest {
        points: args.points,
        sets: args.sets.clone(),
        jobs: threads(args.jobs),
        out: args.out.clone(),
        pictures: pictures(args.png),
        commit: commit()?,
        policies: policies.clone(),
        stop,
        ran: RanWith::default(),
        progress: &|part: &str, done, total| progress.on_run(Some(part), done, total),
    };
    if let Some(out) = &args.out {
        std::fs::create_dir_all(out).map_err(|error| unwritable(out, &error))?;
    }
    let (mut made, mut seconds) = (Vec::new(), Vec::new());
    for name in &names {
        let clock = Clock::start();
        let figure = figures::figure(name, &request)?;
        seconds.push(clock.seconds());
        if for_people {
            let text = format!("{}  took {:.1} s on {} threads\n", figure.text(), seconds[made.len()], request.jobs);
            progress.suspend(|| print_text(&text))?;
        }
        made.push(figure);
    }
    progress.finish();
    let claims_rows: String = made.iter().map(FigureFiles::markdown).collect();
    let further = made.iter().flat_map(|made| &made.figure.tables).map(|table| format!("\n{}", table.markdown()));
    let table = format!("{}{claims_rows}{}", figures::MARKDOWN_HEAD, further.collect::<String>());
    let failed: Vec<_> = made.iter().filter(|figure| !figure.held()).map(|figure| figure.name).collect();
    let json = json!({ "command": "sim figure", "ok": failed.is_empty(), "figures": claims(&made, &seconds) });
    if let Some(out) = args.out.as_ref().filter(|_| made.len() > 1) {
        for (name, text) in [("claims.md", &table), ("claims.json", &json.to_string())] {
            write_whole(&out.join(name), text.as_bytes()).map_err(|error| unwritable(out, &error))?;
        }
    }
    documents::write(&documents, &made, &|name| documents::command(args, name))?;
    let failure = CliError::running(format!("not held: {}", failed.join(", ")), "the notes name the runs");
    let text = if args.markdown { table } else { String::new() };
    Ok(Output { json, text, failure: (!failed.is_empty()).then_some(failure) })
}

/// Figures with their claims as JSON.
pub(crate) fn claims(made: &[FigureFiles], seconds: &[f64]) -> Vec<Value> {
    let figure = |(one, seconds): (&FigureFiles, &f64)| {
        let claims = one.figure.claims.iter();
        let claims = claims.map(|c| {
            let Reference { published, elsewhere, asked_for } = &c.reference;
            json!({ "what": c.what, "published": published, "elsewhere": elsewhere, "asked_for": asked_for, "here": c.ours })
        });
        json!({
            "name": one.name, "title": one.title, "settings": one.settings, "held": one.held(), "wall_seconds": seconds,
            "claims": claims.collect::<Vec<_>>(), "notes": one.figure.notes, "files": one.files,
        })
    };
    made.iter().zip(seconds).map(figure).collect()
}

fn unwritable(out: &Path, error: &std::io::Error) -> CliError {
    CliError::running(format!("--out {}: {error}", out.display()), remedy(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_every_policy_that_is_registered() {
        let text = list(&Policies::new());
        let kinds: [&[&str]; 4] =
            [&plait_sim::SCHEDULERS, &plait_sim::CONTROLLERS, &plait_sim::ACK_PATHS, &plait_sim::REINJECTIONS];
        for names in kinds {
            assert!(text.contains(&format!(": {}\n", names.join(", "))), "{names:?}: {text}");
        }
        assert!(text.contains("; newreno, cubic, bbr: uncoupled): "), "{text}");
    }

    #[test]
    fn programs_that_cannot_read_themselves_must_be_named() {
        let hash = |program: &[u8]| content_hash(program).unwrap();
        let two = [&b"one program"[..], b"another"].map(|program| identity(hash(program), None).unwrap());
        assert_ne!(two[0], two[1]);
        for told in [None, Some(""), Some("a, commit b")] {
            let error = identity(None, told).unwrap_err();
            assert!(error.exit_code() == 1 && error.to_string().contains("PLAIT_COMMIT"), "{error}");
        }
        assert!(identity(None, Some("0a1b2c")).unwrap().ends_with("-0a1b2c"));
        assert_eq!(hash(b""), None);
        let mut large = vec![7; 3 * BLOCK_BYTES + 5];
        let before = hash(&large);
        large[2 * BLOCK_BYTES] = 8;
        assert_ne!(hash(&large), before);
    }
}
