//! Runs of small scenarios: they finish in the time that the links allow, the same way each time.

use std::time::Duration;

use super::outcome::{End, Outcome};
use super::{Watch, run};
use crate::scenario::{Scenario, Traces, Tree};

fn scenario(text: &str, set: &[(&str, &str)]) -> Scenario {
    let mut tree = Tree::parse("x.toml", text).unwrap();
    set.iter().for_each(|(key, value)| tree.set(key, value, "--set").unwrap());
    Scenario::read(&tree, &Traces::default()).unwrap()
}

const TWO: &str = r#"
[[path]]
rate_mbps = 10
rtt_ms = 20
[[path]]
rate_mbps = 10
rtt_ms = 30
[transfer]
kind = "download"
bytes = 2_000_000
"#;

fn outcome(text: &str, set: &[(&str, &str)], seed: u64) -> Outcome {
    let outcome = run(&scenario(text, set), seed, Watch::default()).unwrap();
    assert_eq!(outcome.faults, [], "{outcome:?}");
    outcome
}

#[test]
fn two_paths_are_faster_than_one() {
    let one = outcome(TWO, &[("endpoints.extension", "none")], 1);
    let two = outcome(TWO, &[], 1);
    assert_eq!((&one.end, &two.end), (&End::Complete, &End::Complete));
    assert_eq!((one.verified_bytes, two.verified_bytes), (2_000_000, 2_000_000));
    assert!(one.elapsed > Duration::from_millis(1_650), "{:?}", one.elapsed);
    assert!(two.elapsed < one.elapsed.mul_f64(0.7), "{:?} {:?}", two.elapsed, one.elapsed);
    assert!(two.paths.iter().all(|path| path.traffic.down.forwarded_bytes > 500_000));
}

#[test]
fn a_seed_is_a_run() {
    let lossy = [("path.0.loss", "0.01"), ("path.1.jitter_ms", "2")];
    let [a, b, c] = [3, 3, 4].map(|seed| outcome(TWO, &lossy, seed));
    assert_eq!((a.digest, a.elapsed), (b.digest, b.elapsed));
    assert_ne!(a.digest, c.digest);
}

#[test]
fn every_load_completes() {
    let up = outcome(TWO, &[("transfer.kind", "upload")], 1);
    assert_eq!((up.end, up.verified_bytes), (End::Complete, 2_000_000));
    let text = TWO.replace("kind = \"download\"\nbytes = 2_000_000", "kind = \"bulk-for\"\nseconds = 2");
    let bulk = outcome(&text, &[], 1);
    assert_eq!((bulk.end, bulk.elapsed), (End::Complete, Duration::from_secs(2)));
    assert!(bulk.verified_bytes > 3_000_000, "{}", bulk.verified_bytes);
    let text = TWO.replace("kind = \"download\"\nbytes = 2_000_000", "kind = \"request-response\"\ncount = 5");
    let requests = outcome(&text, &[], 1);
    assert_eq!((requests.end.clone(), requests.delays().len()), (End::Complete, 5));
    assert!(requests.delays().iter().all(|delay| *delay < Duration::from_millis(40)), "{:?}", requests.delays());
}

#[test]
fn a_dead_network_is_reported() {
    let dead = outcome(TWO, &[("path.0.loss", "1.0"), ("time_limit_s", "3")], 1);
    assert!(matches!(dead.end, End::Unfinished(_) | End::Failed(_)), "{:?}", dead.end);
}

#[test]
fn null_protection_changes_no_time() {
    let tls = outcome(TWO, &[], 1);
    let null = outcome(TWO, &[("endpoints.protection", "null")], 1);
    assert_eq!((tls.elapsed, tls.digest), (null.elapsed, null.digest));
}

#[test]
fn events_and_draws_change_links() {
    let text = format!("{TWO}\n[[event]]\nat_s = 0.5\npath = 0\nstate = \"down\"\n");
    let cut = outcome(&text, &[("path.1.vary", "{ interval_ms = 100, rate_mbps = [5, 8] }")], 1);
    assert_eq!(cut.end, End::Complete);
    assert!(cut.paths[0].traffic.down.forwarded_bytes < 700_000);
}
