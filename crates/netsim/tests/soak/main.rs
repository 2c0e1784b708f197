//! As many differential trials as wanted, with the seeds that fail.
//!
//! `cargo test --release -p plait-netsim --test soak -- [--pairing NAME] [--from SEED] [--seeds COUNT] [--jobs N]`
//!
//! With `--digests` it prints one line a seed instead, and `diff` of two such lists shows what a change has moved.

#[path = "../network/peers/mod.rs"]
mod peers;
#[path = "../network/trial/mod.rs"]
mod trial;

use std::ops::Range;

use trial::Pairing;
use trial::campaign::{attempt, describe, sweep};

fn option(name: &str) -> Option<String> {
    let mut args = std::env::args().skip_while(|a| a != name);
    args.next()?;
    args.next()
}

fn number(name: &str, default: u64) -> u64 {
    option(name).and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn main() -> std::process::ExitCode {
    let wanted = option("--pairing");
    let (from, count, jobs) = (number("--from", 0), number("--seeds", 1000), number("--jobs", 2) as usize);
    let lists = std::env::args().any(|arg| arg == "--digests");
    let mut failed = 0;
    for pairing in Pairing::ALL {
        if wanted.as_ref().is_some_and(|name| name != pairing.name) {
            continue;
        }
        failed += if lists { list(pairing, from..from + count) } else { soak(pairing, from..from + count, jobs) };
    }
    if failed == 0 { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::FAILURE }
}

/// One line a seed: what the network saw, how much of it, and when all was delivered. Says how many trials failed.
fn list(pairing: Pairing, seeds: Range<u64>) -> usize {
    let mut failed = 0;
    for seed in seeds {
        match attempt(pairing, seed) {
            Ok(o) => println!("{} {seed} {:016x} {} datagrams {:?}", pairing.name, o.digest, o.datagrams, o.took),
            Err(why) => {
                println!("{} {seed} {why}", pairing.name);
                failed += 1;
            }
        }
    }
    failed
}

/// All trials of a pairing, and the seeds of those that failed or took long. Says how many failed.
fn soak(pairing: Pairing, seeds: Range<u64>, jobs: usize) -> usize {
    let tally = sweep(pairing, seeds, jobs);
    println!("{}: {} passed, {} failed", pairing.name, tally.passed, tally.failures.len());
    for (share, seed, outcome) in &tally.slowest {
        println!("  slow: seed {seed} took {:?}, {:.0} % of its limit", outcome.took, share * 100.0);
    }
    for failure in &tally.failures {
        println!("  {}", describe(pairing, failure));
    }
    tally.failures.len()
}
