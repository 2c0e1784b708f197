//! `plait lab run --relay`: the same scenario files without namespaces, for everybody.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::lab::{SCENARIO, ended};
use crate::support::{stderr, summary};

fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().expect("a folder");
    fs::write(place.path().join("two.toml"), SCENARIO).expect("it is written");
    fs::create_dir(place.path().join("tmp")).expect("a folder");
    place
}

fn plait(place: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plait"));
    command.args(["lab", "run", "two.toml", "--relay"]).args(more).current_dir(place);
    command.env("TMPDIR", place.join("tmp")).stdin(Stdio::null());
    command
}

fn run(place: &Path, more: &[&str]) -> Output {
    plait(place, more).arg("--json").output().expect("it runs")
}

/// What lies among the temporary files.
fn left(place: &Path) -> usize {
    fs::read_dir(place.join("tmp")).expect("it is there").count()
}

#[test]
fn two_paths_through_a_relay_take_half_the_time() {
    let place = place();
    let done = run(place.path(), &[]);
    let said = summary(&done);
    assert!(done.status.success(), "{said} {}", stderr(&done));
    assert!(stderr(&done).contains("through a relay on loopback: no TCP and MPTCP"), "{}", stderr(&done));
    let [both, single] = [0, 1].map(|at| said["runs"][at].clone());
    let seconds = |run: &serde_json::Value| run["seconds"].as_f64().expect("a time");
    assert_eq!((both["end"].as_str(), both["bytes"].as_u64()), (Some("complete"), Some(1_000_000)), "{both}");
    assert_eq!(both["lab_links"].as_str(), Some("relay"));
    // 2.0 s are what one path needs for the bytes alone: headers count as on a wire.
    assert!(seconds(&single) > 2.0 && seconds(&both) < 0.75 * seconds(&single), "{both} {single}");
    for path in ["path0_down_bytes", "path1_down_bytes"] {
        assert!(both[path].as_u64().is_some_and(|bytes| bytes > 300_000), "{path}: {both}");
    }
    assert_eq!(single["path1_down_bytes"].as_u64(), Some(0), "{single}");
    assert_eq!(left(place.path()), 0);
}

#[test]
fn rows_and_a_report_are_kept_and_gone_on_with() {
    let place = place();
    let small = ["--set", "transfer.bytes=100000", "--set", "path.0.rate_mbps=300", "--out", "out"];
    let first = run(place.path(), &small);
    assert!(first.status.success(), "{}", stderr(&first));
    assert!(
        stderr(&first).contains("304 Mbit/s in sum are more than `plait lab doctor` measures"),
        "{}",
        stderr(&first)
    );
    let said = summary(&first);
    assert_eq!(said["runs"][0]["lab_is_beyond"].as_str(), Some("yes"), "{said}");
    let read = |name: &str| fs::read_to_string(place.path().join("out").join(name)).expect(name);
    assert_eq!(said["files"], serde_json::json!(["out/runs.csv", "out/report.html"]));
    let (rows, report) = (read("runs.csv"), read("report.html"));
    assert_eq!(rows.lines().count(), 4, "{rows}");
    assert!(report.contains("plait-single") && report.contains("<svg"));
    // What is there is not done again: the very times are told.
    let again = summary(&run(place.path(), &small));
    assert_eq!(again["runs"], said["runs"]);
    assert_eq!(read("runs.csv"), rows);
    let other = run(place.path(), &[&small[..], &["--contenders", "plait"]].concat());
    assert!(stderr(&other).contains("holds results of another campaign"), "{}", stderr(&other));
}

#[test]
fn a_transfer_begins_on_its_initial_path_however_slow_that_is() {
    let place = place();
    let slow = ["--contenders", "plait", "--set", "transfer.bytes=1000", "--set", "path.0.rtt_ms=600"];
    let done = run(place.path(), &slow);
    let said = summary(&done);
    assert!(done.status.success(), "{said} {}", stderr(&done));
    // The other path would have answered after a quarter of a second.
    assert!(said["runs"][0]["handshake_ms"].as_f64().is_some_and(|ms| ms >= 600.0), "{said}");
}

#[test]
fn a_nat_forgets_and_others_send_through_a_relay_too() {
    let place = place();
    let events =
        "[[event]]\nat_s = 0.4\npath = 0\nrebind = \"port\"\n[[event]]\nat_s = 0.7\npath = 0\nrebind = \"address\"\n";
    let cross = "[[cross]]\nkind = \"constant\"\nrate_mbps = 1\npath = 0\n";
    let text = SCENARIO.replacen("rtt_ms = 20", "rtt_ms = 20\n[path.nat]", 1) + events + cross;
    fs::write(place.path().join("two.toml"), text).expect("it is written");
    let done = run(place.path(), &["--contenders", "plait"]);
    let said = summary(&done);
    let ours = &said["runs"][0];
    assert!(done.status.success(), "{said} {}", stderr(&done));
    assert_eq!((ours["end"].as_str(), ours["bytes"].as_u64()), (Some("complete"), Some(1_000_000)), "{ours}");
    assert!(ours["cross0_goodput_mbps"].as_f64().is_some_and(|mbps| (0.5..1.1).contains(&mbps)), "{ours}");
    // Both paths go on, and the other sender takes a quarter of the first.
    assert!(ours["seconds"].as_f64().is_some_and(|seconds| (1.1..2.5).contains(&seconds)), "{ours}");
    fs::write(
        place.path().join("two.toml"),
        format!("{SCENARIO}[[event]]\nat_s = 1\npath = 0\ninterface = \"down\"\n"),
    )
    .expect("it is written");
    let refused = run(place.path(), &[]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("loopback stays up; leave --relay out"), "{}", stderr(&refused));
}

#[test]
fn what_a_relay_cannot_carry_is_said() {
    let place = place();
    for (more, code, expected) in [
        (&["--contenders", "mptcp"][..], 1, "mptcp cannot be run here: the relay carries UDP alone"),
        (&["--contenders", "plait,tcp", "--out", "out"], 1, "tcp cannot be run here: the relay carries UDP alone"),
        (&["--contenders", "plait:extension=multiflow"], 1, "would go round the relay"),
        (&["--ipv6"], 2, "--ipv6"),
    ] {
        let done = run(place.path(), more);
        assert_eq!(done.status.code(), Some(code), "{more:?}: {}", stderr(&done));
        assert!(stderr(&done).contains(expected), "{more:?}: {}", stderr(&done));
        assert_eq!(left(place.path()), 0);
    }
    assert!(!place.path().join("out").exists(), "plait had runs before tcp was refused");
}

#[test]
fn others_programs_find_their_certificate() {
    let place = place();
    let file = place.path().join("peer-quinn");
    let text = "#!/bin/sh\n[ -f \"$2\" ] && [ -f \"$3\" ] && echo \"here it is, for $PEER_LISTEN\" >&2\nexit 3\n";
    fs::write(&file, text).expect("it is written");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("it may be run");
    let mut command = plait(place.path(), &["--contenders", "quinn", "--json"]);
    let done = command.env("PLAIT_PEERS", place.path()).output().expect("it runs");
    let said = summary(&done);
    let error = said["runs"][0]["error"].as_str().unwrap_or_default();
    assert!(error.contains("it ended: here it is, for 127.9.0.2:"), "{said}");
    assert_eq!(left(place.path()), 0);
}

#[test]
fn no_program_outlives_a_relay() {
    let place = place();
    for signal in ["TERM", "KILL"] {
        let mut child = plait(place.path(), &["--set", "transfer.bytes=100000000"]);
        let mut child = child.stderr(Stdio::null()).spawn().expect("it runs");
        ended(&mut child, signal, place.path());
    }
    // What a killed one may leave is a folder, and the next one takes it away.
    let done = run(place.path(), &["--contenders", "plait"]);
    assert!(done.status.success(), "{}", stderr(&done));
    assert_eq!(left(place.path()), 0);
}
