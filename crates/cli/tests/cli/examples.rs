//! The examples at the root: they build, are short, and run a scenario with their own policy through `plait sim`.

use std::path::Path;
use std::process::{Command, Output};

/// Lines that an example may have at most.
const LINES_MAX: usize = 60;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Runs an example that `cargo test` built beside this program: `cargo run` would build everything below it once more,
/// with the features that the command needs alone.
fn example(name: &str, args: &[&str]) -> Output {
    let test = std::env::current_exe().expect("a path");
    let folder = test.parent().and_then(Path::parent).expect("target/PROFILE/deps holds it").join("examples");
    let program = folder.join(name).with_extension(std::env::consts::EXE_EXTENSION);
    assert!(
        program.is_file(),
        "{program:?} is missing: `cargo test -p plait-cli` builds it, with `--test` it does not"
    );
    Command::new(program).current_dir(root()).args(args).output().expect("it runs")
}

fn runs_with_its_own(name: &str, setting: &str) {
    let source = std::fs::read_to_string(root().join("examples").join(format!("{name}.rs"))).expect("it is there");
    assert!(source.lines().count() < LINES_MAX, "{name} has {} lines", source.lines().count());
    let (key, policy) = setting.split_once('=').expect("key=value");
    let common = ["run", "examples/two-paths.toml", "--json", "--set", "transfer.bytes=1000000", "--set"];
    let done = example(name, &[&common[..], &[setting]].concat());
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{text} {}", String::from_utf8_lossy(&done.stderr));
    let summary: serde_json::Value = serde_json::from_str(&text).expect("one JSON object");
    let run = &summary["runs"][0];
    assert_eq!((run["end"].as_str(), run["bytes"].as_f64()), (Some("complete"), Some(1e6)), "{run}");
    assert!(run["goodput_mbps"].as_f64().expect("a number") > 9.0, "both paths work: {run}");
    // The engine's own policies are there too, and what nobody knows is refused with all names.
    let other = example(name, &[&common[..], &[&format!("{key}=nobody")]].concat());
    let refusal = String::from_utf8_lossy(&other.stderr).into_owned();
    assert_eq!(other.status.code(), Some(2), "{refusal}");
    assert!(refusal.contains(&format!("`{key}`: `nobody` is not known; accepted: {policy}, ")), "{refusal}");
}

#[test]
fn a_scheduler_of_ones_own() {
    runs_with_its_own("custom_scheduler", "endpoints.scheduler=earliest");
}

#[test]
fn a_controller_of_ones_own() {
    runs_with_its_own("custom_controller", "endpoints.congestion=calm");
}
