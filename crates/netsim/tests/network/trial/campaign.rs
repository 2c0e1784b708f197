//! Many trials at a time, and how each failure can be seen again.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Outcome, Pairing, Trial};

/// Seeds of each pairing in a plain `cargo test`.
pub const SEEDS: u64 = 200;

/// A seed that failed, and why.
pub struct Failure {
    pub seed: u64,
    pub why: String,
}

/// How the trials of a pairing went.
#[derive(Default)]
pub struct Tally {
    pub failures: Vec<Failure>,
    pub passed: u64,
    /// The trials that used most of their limit: share and seed.
    pub slowest: Vec<(f64, u64, Outcome)>,
}

/// Runs one trial; a panic is a failure like any other.
pub fn attempt(pairing: Pairing, seed: u64) -> Result<Outcome, String> {
    catch_unwind(AssertUnwindSafe(|| Trial::draw(pairing, seed).run())).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
        Err(format!("panicked: {}", text.unwrap_or_default()))
    })
}

/// Runs the trials of `seeds` on `jobs` threads.
pub fn sweep(pairing: Pairing, seeds: Range<u64>, jobs: usize) -> Tally {
    let next = AtomicU64::new(seeds.start);
    let tally = Mutex::new(Tally::default());
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    let result = attempt(pairing, seed);
                    let mut tally = tally.lock().unwrap();
                    match result {
                        Ok(outcome) => tally.pass(seed, outcome),
                        Err(why) => tally.failures.push(Failure { seed, why }),
                    }
                }
            });
        }
    });
    let mut tally = tally.into_inner().unwrap();
    tally.failures.sort_by_key(|f| f.seed);
    tally
}

impl Tally {
    fn pass(&mut self, seed: u64, outcome: Outcome) {
        self.passed += 1;
        self.slowest.push((outcome.took.as_secs_f64() / outcome.limit.as_secs_f64(), seed, outcome));
        self.slowest.sort_by(|a, b| b.0.total_cmp(&a.0));
        self.slowest.truncate(5);
    }
}

/// What a person needs to see a failure again.
pub fn describe(pairing: Pairing, failure: &Failure) -> String {
    let Trial { legs, damage, options, requests, faults, closer, limit, .. } = Trial::draw(pairing, failure.seed);
    let mut text = format!("{} seed {}: {}\n", pairing.name, failure.seed, failure.why);
    for (i, leg) in legs.iter().enumerate() {
        text += &format!("    leg {i} out  {:?}\n    leg {i} back {:?}\n", leg.forward, leg.backward);
    }
    text += &format!("    {damage:?} {options:?} closed by {closer:?}, limit {limit:?}\n");
    let bytes: u64 = requests.iter().map(|q| q.bytes).sum();
    text += &format!("    {} requests, {bytes} bytes\n", requests.len());
    for (at, fault) in faults {
        text += &format!("    after {at:?}: {fault:?}\n");
    }
    text + &format!(
        "    again: PLAIT_SEED={} cargo test -p plait-netsim --test network differential::{} -- --exact --nocapture\n",
        failure.seed, pairing.name
    )
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The trials of a test: PLAIT_SEED picks one, PLAIT_SEEDS says how many, PLAIT_JOBS on how many threads.
pub fn hold(name: &str) {
    hold_some(name, SEEDS);
}

/// The same, with so many seeds where nobody says how many.
pub fn hold_some(name: &str, usual: u64) {
    let pairing = Pairing::named(name).unwrap();
    let seeds = match number("PLAIT_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("PLAIT_SEEDS").unwrap_or(usual),
    };
    let jobs = number("PLAIT_JOBS").map_or(1, |n| n as usize);
    let tally = sweep(pairing, seeds, jobs);
    let told: Vec<String> = tally.failures.iter().take(3).map(|f| describe(pairing, f)).collect();
    let seeds: Vec<u64> = tally.failures.iter().map(|f| f.seed).collect();
    assert!(seeds.is_empty(), "{name}: {} passed, failing seeds {seeds:?}\n{}", tally.passed, told.join("\n"));
}
