//! Digests of many simulated runs, one line each: what a change that must not move anything is compared by.
//!
//! `cargo run -p plait-sim --example digests -- [--seeds N] [--figures] [FILE...] > before`, and again after it; `diff`
//! shows what moved. `--seeds` runs the first N seeds of the swarm, a FILE is a scenario with all points of its sweep,
//! `--figures` makes each figure with one point and takes the digests of its runs.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;

use plait_sim::Policies;
use plait_sim::campaign::merge::read;
use plait_sim::campaign::{Campaign, Row};
use plait_sim::command::Pictures;
use plait_sim::figures::{FigureRequest, RanWith, figure, list};
use plait_sim::run::{self, Watch};
use plait_sim::scenario::{Traces, Tree};
use plait_sim::swarm::draw;

fn main() {
    let mut args = std::env::args().skip(1);
    let (mut seeds, mut figures, mut files) = (0, false, Vec::new());
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--seeds" => seeds = args.next().and_then(|count| count.parse().ok()).expect("--seeds takes a number"),
            "--figures" => figures = true,
            file => files.push(PathBuf::from(file)),
        }
    }
    swarm(seeds);
    files.iter().for_each(|file| scenario(file));
    if figures {
        list().for_each(|(name, _)| data_of(name));
    }
}

/// What one scenario gives, as a word.
fn digest_of(tree: &str, name: &str, seed: u64) -> String {
    let tree = Tree::parse(name, tree).expect("a swarm draws scenarios");
    let campaign = Campaign::plan(tree, Traces::default(), 1).expect("a swarm draws scenarios");
    outcome_of(&campaign, 0).unwrap_or_else(|| format!("seed {seed} has no outcome"))
}

fn outcome_of(campaign: &Campaign, job: usize) -> Option<String> {
    let job = &campaign.jobs[job];
    let scenario = campaign.scenario(job).ok()?;
    let outcome = run::run(&scenario, job.seed, Watch::default()).ok()?;
    Some(format!("{:016x} {:?}", outcome.digest, outcome.elapsed))
}

/// The first seeds of the swarm, on all cores, printed in order.
fn swarm(seeds: u64) {
    let (next, threads) = (AtomicU64::new(0), std::thread::available_parallelism().map_or(1, usize::from));
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (next, sender) = (&next, sender.clone());
            scope.spawn(move || {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds {
                        return;
                    }
                    let digest = digest_of(&draw(seed), &format!("swarm-{seed}"), seed);
                    sender.send((seed, digest)).expect("the receiver waits for all");
                }
            });
        }
        drop(sender);
        let mut all: Vec<_> = receiver.iter().collect();
        all.sort();
        all.iter().for_each(|(seed, digest)| println!("swarm-{seed} {digest}"));
    });
}

/// All points of one scenario file.
fn scenario(file: &Path) {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{name}: {error}"));
    let tree = Tree::parse(&name, &text).unwrap_or_else(|error| panic!("{error}"));
    let campaign = Campaign::plan(tree, Traces::beside(file), 1).unwrap_or_else(|error| panic!("{error}"));
    for job in 0..campaign.jobs.len() {
        println!("{name} {job} {}", outcome_of(&campaign, job).unwrap_or_default());
    }
}

/// The digests of all runs of a figure of one point.
fn data_of(name: &str) {
    let out = std::env::temp_dir().join(format!("digests-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&out).expect("a folder for the figure's data");
    let request = FigureRequest {
        points: Some(1),
        sets: Vec::new(),
        jobs: std::thread::available_parallelism().map_or(1, usize::from),
        out: Some(out.clone()),
        pictures: Pictures::None,
        commit: String::new(),
        policies: Policies::new(),
        stop: &AtomicBool::new(false),
        ran: RanWith::default(),
        progress: &|_, _, _| {},
    };
    let made = figure(name, &request).map(|made| made.markdown());
    let mut files: Vec<_> = walk(&out).into_iter().filter(|file| file.ends_with("runs.csv")).collect();
    files.sort();
    let rows: Vec<Row> = files.iter().flat_map(|file| read(file).expect("a result file").1).collect();
    // Of a row only this column: it covers every datagram of the run, and no others' time.
    let mut digests: String = rows.iter().filter_map(|row| row.cell("digest")).collect();
    // Some figures leave no rows, only what they found: their claims.
    digests.extend(made.iter().map(String::as_str).filter(|_| rows.is_empty()));
    let hash =
        digests.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    println!("figure {name} {hash:016x} {} runs{}", rows.len(), if made.is_err() { ", not made" } else { "" });
    let _ = std::fs::remove_dir_all(out);
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}
