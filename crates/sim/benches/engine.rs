//! How fast the engine runs in virtual time: packets per core-second and core-seconds per simulated second, for the
//! scenarios of the ns-3 MPQUIC paper and a few more, next to what the ns-3 module does.
//!
//! `cargo bench -p plait-sim --bench engine` prints the table; `-- 5` takes the median of five runs of each, and any
//! further word keeps only the scenarios whose names contain it.

#![allow(clippy::disallowed_methods)] // it measures

use std::time::Instant;

use plait_sim::run::{Watch, run};
use plait_sim::scenario::{Scenario, Traces, Tree};

/// A round runs a scenario until it took so long: some systems count processor time in steps of 4 ms.
const ROUND_SECONDS: f64 = 0.4;

/// What the ns-3 MPQUIC module does, without any cryptography (docs/performance.md).
const NS3: &str = "900-9,000";

/// Paths of one row of Table 1 of the ns-3 paper, as printed: values are drawn anew each 100 ms.
fn ns3_path(rate_mbps: f64, delay_ms: f64) -> String {
    format!(
        "[[path]]\nrate_mbps = {0:.1}\nqueue_packets = 100\nvary = {{ interval_ms = 100, rate_mbps = [{1:.1}, {0:.1}], \
         delay_ms = [{2:.1}, {3:.1}], loss = [0.0, 0.0008] }}\n",
        rate_mbps * 1.1,
        rate_mbps,
        delay_ms,
        delay_ms * 1.1
    )
}

fn pair(rate_mbps: f64, rtt_ms: f64, loss: f64) -> String {
    format!("[[path]]\nrate_mbps = {rate_mbps:.1}\nrtt_ms = {rtt_ms:.1}\nloss = {loss:.4}\n").repeat(2)
}

/// Name and scenario.
fn scenarios() -> Vec<(&'static str, String)> {
    let get = |paths: String, bytes: u64, more: &str| {
        format!("{paths}[transfer]\nkind = \"download\"\nbytes = {bytes}\n[endpoints]\n{more}\n")
    };
    let small = 5_242_800;
    vec![
        ("ns-3 Fig. 7, 1 path", get(ns3_path(5.0, 50.0), small, "congestion = \"newreno\"")),
        ("ns-3 Fig. 7, 2 paths", get(ns3_path(5.0, 50.0).repeat(2), small, "congestion = \"olia\"")),
        ("ns-3 Fig. 7, 4 paths", get(ns3_path(5.0, 50.0).repeat(4), small, "congestion = \"olia\"")),
        ("ns-3 Fig. 9, stable", get(ns3_path(5.0, 50.0) + &ns3_path(10.0, 10.0), small, "congestion = \"olia\"")),
        ("20 MB, 2 x 10 Mbit/s", get(pair(10.0, 20.0, 0.001), 20_000_000, "")),
        ("100 MB, 2 x 100 Mbit/s", get(pair(100.0, 20.0, 0.0), 100_000_000, "")),
        ("100 MB, 1 x 1 Gbit/s", get(pair(1000.0, 10.0, 0.0), 100_000_000, "extension = \"none\"")),
    ]
}

/// Seconds that this thread has been on a processor; other programs do not count.
fn core_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanos: f64 = text.split_whitespace().next()?.parse().ok()?;
    Some(nanos / 1e9)
}

/// The most memory that this process held so far, MB.
fn memory_mb() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024.0 / 1e6)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn measure(name: &str, scenario: &Scenario, protection: &str, rounds: usize) {
    let (mut seconds, mut last) = (Vec::new(), None);
    for _ in 0..rounds {
        let (wall, core, mut runs) = (Instant::now(), core_seconds(), 0.0);
        let spent = loop {
            let outcome = run(scenario, 1, Watch::default()).expect("there is a certificate");
            assert!(
                outcome.is_complete() && outcome.faults.is_empty(),
                "{name}: {:?} {:?}",
                outcome.end,
                outcome.faults
            );
            last = Some(outcome);
            runs += 1.0;
            let spent = core_seconds().zip(core).map(|(after, before)| after - before);
            let spent = spent.unwrap_or_else(|| wall.elapsed().as_secs_f64());
            if spent >= ROUND_SECONDS {
                break spent;
            }
        };
        seconds.push(spent / runs);
    }
    let Some(outcome) = last else { return };
    let (core, simulated) = (median(&mut seconds), outcome.elapsed.as_secs_f64());
    let packets = outcome.around.datagrams.0;
    println!(
        "| {name} | {protection} | {packets} | {simulated:.2} | {core:.3} | {:.0} | {:.4} | {NS3} | {:.1} |",
        packets as f64 / core,
        core / simulated,
        memory_mb().unwrap_or(f64::NAN)
    );
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let rounds = words.iter().find_map(|word| word.parse().ok()).unwrap_or(3);
    let wanted = |name: &str| words.iter().filter(|word| word.parse::<u32>().is_err()).all(|word| name.contains(word));
    println!(
        "| scenario | protection | packets | simulated s | core s | packets per core-second | core s per simulated s | \
         ns-3 module, packets per core-second | most memory so far, MB |\n|---|---|---|---|---|---|---|---|---|"
    );
    for (name, text) in scenarios().into_iter().filter(|(name, _)| wanted(name)) {
        for protection in ["tls", "null"] {
            let mut tree = Tree::parse(name, &text).expect("the scenario is TOML");
            tree.set("endpoints.protection", protection, "bench").expect("it is a key");
            let scenario = Scenario::read(&tree, &Traces::default()).expect("the scenario is one");
            measure(name, &scenario, protection, rounds);
        }
    }
}
