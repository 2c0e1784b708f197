//! As many differential trials as wanted, with the seeds that fail.
//!
//! `cargo run --release -p plait-netsim --example soak -- [--pairing NAME] [--from SEED] [--seeds COUNT] [--jobs N]`

#[path = "../tests/peers/mod.rs"]
mod peers;
#[path = "../tests/trial/mod.rs"]
mod trial;

use trial::Pairing;
use trial::campaign::{describe, sweep};

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
    let mut failed = 0;
    for pairing in Pairing::ALL {
        if wanted.as_ref().is_some_and(|name| name != pairing.name) {
            continue;
        }
        let tally = sweep(pairing, from..from + count, jobs);
        println!("{}: {} passed, {} failed", pairing.name, tally.passed, tally.failures.len());
        for (share, seed, outcome) in &tally.slowest {
            println!("  slow: seed {seed} took {:?}, {:.0} % of its limit", outcome.took, share * 100.0);
        }
        for failure in &tally.failures {
            println!("  {}", describe(pairing, failure));
        }
        failed += tally.failures.len();
    }
    if failed == 0 { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::FAILURE }
}
