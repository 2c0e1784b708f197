//! `plait lab figure` with real kernels, where namespaces may be made.

use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::support::{stderr, summary};

fn lab(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plait"));
    command.arg("lab").args(args).env_remove("RUST_LOG").stdin(Stdio::null());
    command.env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command.output().expect("the command runs")
}

#[test]
fn what_there_is_and_what_is_asked_wrongly() {
    let list = lab(&["list"]);
    let text = String::from_utf8_lossy(&list.stdout).into_owned();
    assert!(list.status.success() && text.contains("handover") && text.contains("mptcp"), "{text}");
    for (args, expected) in [
        (&["figure", "nonsense"][..], "there is no figure `nonsense`; accepted: handover,"),
        (&["figure"], "<NAME>"),
        (&["figure", "handover", "--so-far"], "--out"),
        (&["figure", "handover", "--so-far", "--out", "/nowhere"], "/nowhere/handover/journal.csv: No such file"),
    ] {
        let output = lab(args);
        if cannot_be_had(&output) {
            return;
        }
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{args:?}: {}", stderr(&output));
    }
}

/// Without namespaces there is no laboratory; that is said loudly.
fn cannot_be_had(output: &Output) -> bool {
    let text = stderr(output);
    let missing = ["the laboratory needs network namespaces", "/dev/net/tun", "cannot be run (", "kernel has no MPTCP"];
    let is_missing = !output.status.success() && missing.iter().any(|words| text.contains(words));
    if is_missing {
        println!("SKIPPED: no laboratory on this machine: {text}");
    }
    is_missing
}

/// Two paths, against the kernel's TCP and MPTCP; an interrupted figure, which has all its runs, goes on and is reported.
#[test]
fn a_short_figure_with_kernels_beside_us() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let figure = ["figure", "handover", "--contenders", "plait,mptcp,tcp", "--repetitions", "1", "--jobs", "3"];
    let rest = ["--set", "transfer.count=3", "--set", "transfer.interval_ms=50", "--out", out, "--json"];
    let args = [&figure[..], &rest].concat();
    let first = lab(&args);
    if cannot_be_had(&first) {
        return;
    }
    assert!(first.status.success(), "{}", stderr(&first));
    let told = summary(&first);
    assert_eq!((&told["command"], &told["ok"]), (&"lab figure".into(), &true.into()), "{told}");
    let rows = std::fs::read_to_string(folder.path().join("handover/runs.csv")).unwrap();
    let lines: Vec<&str> = rows.lines().collect();
    assert_eq!(lines.len(), 2 + 3, "a stamp, names and three runs: {rows}");
    assert!(lines[0].starts_with("# plait sim,") && lines[1].contains("contender"), "{rows}");
    for name in ["plait", "mptcp", "tcp"] {
        let row =
            lines.iter().find(|line| line.split(',').any(|cell| cell == name)).unwrap_or_else(|| panic!("{rows}"));
        assert!(row.contains("complete"), "{row}");
    }
    // Nothing is left to do, so that a report of what there is is the same.
    let again = summary(&lab(&[&args[..], &["--so-far"]].concat()));
    assert_eq!(claims(&again), claims(&told));
    let other = lab(&[&args[..], &["--so-far", "--seed", "1", "--set", "transfer.count=4"]].concat());
    assert!(stderr(&other).contains("holds runs of another figure"), "{}", stderr(&other));
}

fn claims(told: &Value) -> Vec<String> {
    let claims = told["figures"][0]["claims"].as_array().into_iter().flatten();
    claims.map(|claim| format!("{} {}", claim["what"], claim["here"])).collect()
}
