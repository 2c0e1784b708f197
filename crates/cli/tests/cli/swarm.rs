//! The swarm as a user runs it: interrupted while it shrinks what it found.

use std::fs;
use std::process::{Command, Stdio};

/// No transfer of so many bytes is done by then: the seed fails, and each smaller scenario does. To shrink it all the way
/// takes minutes, as some of those have no limit but the longest.
const NEVER_DONE: [&str; 4] = ["--set", "transfer.bytes=100000000000", "--set", "time_limit_s=30"];

fn plait(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plait"));
    command.args(args).env_remove("RUST_LOG").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn what_is_small_so_far_outlives_an_interruption() {
    let home = tempfile::tempdir().unwrap();
    let (out, file) = (home.path().join("found"), home.path().join("found/swarm-5.toml"));
    let swarm = ["sim", "swarm", "--from", "5", "--seeds", "1", "--jobs", "1", "--out", out.to_str().unwrap()];
    let mut child = plait(&[&swarm[..], &NEVER_DONE].concat()).spawn().unwrap();
    // The scenario as it was drawn is there first; smaller ones take its place.
    let (mut drawn, mut small) = (0, 0);
    while drawn == 0 || small >= drawn {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was interrupted");
        std::thread::yield_now();
        small = fs::read_to_string(&file).map_or(0, |found| found.lines().count());
        drawn = drawn.max(small);
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(1), "{}", text(&ended.stderr));
    let said = text(&ended.stdout);
    assert!(said.contains("runs, interrupted: ") && said.contains("swarm-5.toml"), "{said}");

    // What is left is the smallest that was found, it is whole, and it still fails.
    let left = fs::read_to_string(&file).unwrap();
    assert!(left.lines().count() <= small && left.starts_with("# unfinished (time limit)"), "{left}");
    assert_eq!(fs::read_dir(&out).unwrap().count(), 1, "nothing half written lies about");
    let again = plait(&["sim", "run", file.to_str().unwrap(), "--set", "time_limit_s=5"]).output().unwrap();
    assert_eq!(again.status.code(), Some(1), "{}", text(&again.stderr));
    assert!(text(&again.stderr).contains("not every run completed cleanly"), "{}", text(&again.stderr));
}

#[test]
fn settings_go_over_what_is_drawn() {
    let run = |set: &str| plait(&["sim", "swarm", "--from", "5", "--seeds", "1", "--set", set]).output().unwrap();
    assert!(run("endpoints.scheduler=round-robin").status.success());
    let refused = run("endpoints.scheduler=none such");
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    assert!(text(&refused.stderr).contains("none such"), "{}", text(&refused.stderr));
    assert_eq!(run("transfer").status.code(), Some(2));
}
