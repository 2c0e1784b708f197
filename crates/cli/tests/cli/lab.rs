//! `plait lab` between network namespaces, and what it says where something is missing. Where this machine lets nobody make
//! namespaces, or has no TUN devices, the tests that need them say so and end.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

use crate::support::{stderr, summary};

/// A second and a half of a download, half of it over each path.
pub(crate) const SCENARIO: &str = "
[[path]]
rate_mbps = 4
rtt_ms = 20
[[path]]
rate_mbps = 4
rtt_ms = 30
[transfer]
kind = \"download\"
bytes = 1_000_000
";

fn plait() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plait"));
    command.arg("lab").stdin(Stdio::null());
    command
}

/// A folder with the scenario in it; none, loudly, where there can be no laboratory.
fn place(test: &str) -> Option<tempfile::TempDir> {
    let asked = plait().args(["doctor", "--quick", "--json"]).output().expect("it runs");
    let tun = asked.status.success().then(|| summary(&asked)["findings"].clone());
    let has_tun = tun.is_some_and(|findings| {
        let findings = findings.as_array().cloned().unwrap_or_default();
        findings.iter().any(|finding| finding["name"] == "TUN devices" && finding["ok"] == true)
    });
    if !has_tun {
        println!("!! SKIPPED: {test}: {}{}", stderr(&asked), String::from_utf8_lossy(&asked.stdout));
        return None;
    }
    let place = tempfile::tempdir().expect("a folder");
    fs::write(place.path().join("two.toml"), SCENARIO).expect("it is written");
    Some(place)
}

/// Runs the scenario with these contenders and variables; its temporary files go to a folder in `place`.
fn run(place: &Path, contenders: &str, more: &[&str], variables: &[(&str, &str)]) -> Output {
    let temporary = place.join("tmp");
    fs::create_dir_all(&temporary).expect("a folder");
    let mut command = plait();
    command.args(["run", "two.toml", "--json", "--contenders", contenders]).args(more);
    command.current_dir(place).env("TMPDIR", temporary).envs(variables.iter().copied());
    command.output().expect("it runs")
}

/// What lies among the temporary files.
fn left(place: &Path) -> Vec<String> {
    let entries = fs::read_dir(place.join("tmp")).expect("it is there");
    entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// A program of ours in the place of one of the system's.
fn script(place: &Path, name: &str, text: &str) -> String {
    let folder = place.join("bin");
    fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join(name);
    fs::write(&file, text).expect("it is written");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("it may be run");
    let usual = std::env::var("PATH").unwrap_or_default();
    format!("{}:{usual}", folder.display())
}

#[test]
fn two_paths_take_half_the_time_and_leave_nothing() {
    let Some(place) = place("two paths") else { return };
    for family in [&[][..], &["--ipv6"]] {
        let done = run(place.path(), "plait,plait-single", family, &[]);
        let said = summary(&done);
        assert!(done.status.success(), "{said} {}", stderr(&done));
        let [both, single] = [0, 1].map(|at| said["runs"][at].clone());
        let seconds = |run: &serde_json::Value| run["seconds"].as_f64().expect("a time");
        assert_eq!((both["end"].as_str(), both["bytes"].as_u64()), (Some("complete"), Some(1_000_000)), "{both}");
        // 2.0 s are what one path needs for the bytes alone.
        assert!(seconds(&single) > 2.0 && seconds(&both) < 0.75 * seconds(&single), "{both} {single}");
        for path in ["path0_down_bytes", "path1_down_bytes"] {
            assert!(both[path].as_u64().is_some_and(|bytes| bytes > 300_000), "{path}: {both}");
        }
        assert_eq!(single["path1_down_bytes"].as_u64(), Some(0), "{single}");
        // Where programs get no real time it says so.
        let in_real_time = both["lab_cpu_scheduling"] == "rr";
        assert_ne!(in_real_time, stderr(&done).contains("programs run at the priority of plait lab itself"), "{both}");
        assert_eq!(left(place.path()), Vec::<String>::new());
    }
}

#[test]
fn nats_interfaces_and_others_are_as_in_the_simulator() {
    let Some(place) = place("nats and interfaces") else { return };
    let paths = "[[path]]\nrate_mbps = 4\nrtt_ms = 20\n[path.nat]\n[[path]]\nrate_mbps = 4\nrtt_ms = 30\n";
    let event = |at: f64, path: usize, what: &str| format!("[[event]]\nat_s = {at}\npath = {path}\n{what}\n");
    let events = [
        event(0.5, 0, "rebind = \"port\""),
        event(0.8, 0, "rebind = \"address\""),
        event(0.6, 1, "interface = \"down\""),
        event(1.0, 1, "interface = \"up\""),
    ];
    let more =
        "[[cross]]\nkind = \"constant\"\nrate_mbps = 1\npath = 0\n[transfer]\nkind = \"download\"\nbytes = 1_000_000\n";
    fs::write(place.path().join("two.toml"), format!("{paths}{}{more}", events.concat())).expect("it is written");
    for family in [&[][..], &["--ipv6"]] {
        let done = run(place.path(), "plait", family, &[]);
        let said = summary(&done);
        let ours = &said["runs"][0];
        assert!(done.status.success(), "{said} {}", stderr(&done));
        assert_eq!((ours["end"].as_str(), ours["bytes"].as_u64()), (Some("complete"), Some(1_000_000)), "{ours}");
        // The interface was away for 0.4 s, in which the other path carries 150 kB at 3 Mbit/s, and it came back.
        let bytes = |path: &str| ours[path].as_u64().expect("a number");
        assert!(bytes("path0_down_bytes") > 300_000 && bytes("path1_down_bytes") > 350_000, "{ours}");
        let seconds = ours["seconds"].as_f64().expect("a time");
        assert!((1.2..3.0).contains(&seconds), "{ours}");
    }
}

/// A connection that shares a link takes its part of it, from its time on, and a middlebox takes packets of both.
#[test]
fn connections_beside_and_middleboxes_are_as_in_the_simulator() {
    let Some(place) = place("connections beside") else { return };
    let network = "[[path]]\nrate_mbps = 4\nrtt_ms = 20\n[transfer]\nkind = \"download\"\nbytes = 1_000_000\n";
    let rule = "[[rule]]\npath = 0\ndirection = \"down\"\naction = \"duplicate\"\nevery = 10\n";
    let flow = "[[cross]]\nname = \"other\"\nkind = \"flow\"\npath = 0\nrtt_ms = 10\nstart_s = 0.3\n";
    let of = |more: &str, family: &[&str]| {
        fs::write(place.path().join("two.toml"), format!("{network}{more}")).expect("it is written");
        let done = run(place.path(), "plait", family, &[]);
        let ours = summary(&done)["runs"][0].clone();
        assert!(done.status.success(), "{ours} {}", stderr(&done));
        assert_eq!((ours["end"].as_str(), ours["bytes"].as_u64()), (Some("complete"), Some(1_000_000)), "{ours}");
        (ours["seconds"].as_f64().expect("a time"), ours)
    };
    // Alone it takes 2.1 s.
    let (doubled, row) = of(rule, &[]);
    // The upper bounds are for machines that are busy.
    assert!((2.2..4.0).contains(&doubled), "a tenth of the packets takes its room twice: {row}");
    for family in [&[][..], &["--ipv6"]] {
        let (shared, row) = of(flow, family);
        assert!((2.4..12.0).contains(&shared), "{row}");
        let begun = row["lab_cross_begun_s"].as_f64().expect("a time");
        assert!((0.3..2.0).contains(&begun), "{row}");
        assert!(row["cross_other_bytes"].as_u64().is_some_and(|bytes| bytes > 50_000), "{row}");
    }
}

/// Linux's own stack joins a subflow for each path, whatever addresses they have.
#[test]
fn mptcp_adds_up_over_both_families() {
    let Some(place) = place("MPTCP") else { return };
    for family in [&[][..], &["--ipv6"]] {
        let done = run(place.path(), "mptcp", family, &[]);
        if stderr(&done).contains("mptcp cannot be run here") {
            println!("!! SKIPPED: MPTCP: {}", stderr(&done));
            return;
        }
        let ours = &summary(&done)["runs"][0];
        assert_eq!((ours["end"].as_str(), ours["lab_subflows"].as_f64()), (Some("complete"), Some(2.0)), "{ours}");
        assert!(ours["seconds"].as_f64().is_some_and(|seconds| seconds < 1.9), "{ours}");
    }
}

#[test]
fn what_is_asked_wrongly_is_said() {
    let Some(place) = place("wrong usage") else { return };
    for (contenders, more, expected) in [
        ("nobody", &[][..], "there is no contender `nobody`; there are plait, "),
        ("plait,tcp,plait", &[], "the contender `plait` is there twice"),
        ("plait:scheduler=best", &[], "`plait:scheduler=best`: scheduler cannot be `best`; accepted: minrtt, "),
        ("plait", &["--set", "endpoints.protection=null"], "endpoints.protection cannot be done in real time"),
        ("plait", &["--set", "path.0.rate_mbps=fast"], "path.0.rate_mbps"),
    ] {
        let done = run(place.path(), contenders, more, &[]);
        assert_eq!(done.status.code(), Some(2), "{}", stderr(&done));
        let error = summary(&done)["error"].as_str().unwrap_or_default().to_owned();
        assert!(error.contains(expected) && stderr(&done).contains(expected), "{error}");
        assert_eq!(left(place.path()), Vec::<String>::new());
    }
}

#[test]
fn what_is_missing_is_named() {
    let Some(place) = place("missing things") else { return };
    // A system without the tools: no program is found at all.
    let done = run(place.path(), "plait", &[], &[("PATH", "/nowhere")]);
    assert!(!done.status.success() && stderr(&done).contains("install util-linux"), "{}", stderr(&done));
    // One whose kernel lets nobody make namespaces.
    let refuses =
        script(place.path(), "unshare", "#!/bin/sh\necho 'unshare failed: Operation not permitted' >&2; exit 1\n");
    let done = run(place.path(), "plait", &[], &[("PATH", &refuses)]);
    assert!(stderr(&done).contains("needs network namespaces of its own (unshare failed"), "{}", stderr(&done));
    fs::remove_file(place.path().join("bin/unshare")).expect("it was there");
    // An `ip` that knows no MPTCP.
    let old = "#!/bin/sh\nPATH=${PATH#*:}\n[ \"$1\" = mptcp ] && { echo 'Object mptcp is unknown' >&2; exit 1; }\nexec ip \"$@\"\n";
    let old = script(place.path(), "ip", old);
    let done = run(place.path(), "mptcp", &[], &[("PATH", &old)]);
    assert_eq!(done.status.code(), Some(1), "{}", stderr(&done));
    assert!(stderr(&done).contains("mptcp cannot be run here: "), "{}", stderr(&done));
    // A system that allows no real time: programs are scheduled as all else, and it says so.
    let refuses = "#!/bin/sh\necho 'failed to set policy' >&2; exit 1\n";
    let done = run(place.path(), "plait", &[], &[("PATH", &script(place.path(), "chrt", refuses))]);
    let ours = &summary(&done)["runs"][0];
    let expected = (Some("complete"), Some("inherit"), Some("false"));
    let found = ["end", "lab_cpu_scheduling", "lab_real_time"].map(|name| ours[name].as_str());
    assert_eq!((found[0], found[1], found[2]), expected, "{ours}");
    assert!(stderr(&done).contains("priority of plait lab itself: threads get no real-time priority"), "{ours}");
    // No place for files.
    let mut command = plait();
    command.args(["run", "two.toml"]).current_dir(place.path()).env("TMPDIR", "/nowhere");
    let said = stderr(&command.output().expect("it runs"));
    assert!(said.contains("no folder for files in /nowhere"), "{said}");
    assert_eq!(left(place.path()), Vec::<String>::new());
}

#[test]
fn a_contender_that_dies_is_a_result() {
    let Some(place) = place("dying contenders") else { return };
    for (text, expected) in [
        ("#!/bin/sh\necho 'no memory' >&2; exit 3\n", "the server did not become ready: it ended: no memory"),
        ("#!/bin/sh\nexec sleep 60\n", "the server did not become ready: nothing listens yet"),
    ] {
        script(place.path(), "peer-quinn", text);
        let folder = place.path().join("bin").display().to_string();
        let done = run(place.path(), "quinn,plait", &[], &[("PLAIT_PEERS", &folder)]);
        let said = summary(&done);
        assert_eq!(done.status.code(), Some(1), "{said}");
        assert_eq!(said["runs"][0]["end"].as_str(), Some("failed"), "{said}");
        assert!(said["runs"][0]["error"].as_str().is_some_and(|error| error.contains(expected)), "{said}");
        assert_eq!(said["runs"][1]["end"].as_str(), Some("complete"), "{said}");
        assert_eq!(left(place.path()), Vec::<String>::new());
    }
}

/// Runs the scenario after `mounts`, which are seen by it alone.
fn run_after(place: &Path, mounts: &str) -> Output {
    let (plait, folder) = (env!("CARGO_BIN_EXE_plait"), place.display());
    let script = format!("set -e; cd {folder}; {mounts}; exec {plait} lab run two.toml --json --contenders plait");
    let user = ["--user", "--map-root-user"];
    let mut command = Command::new("unshare");
    // As root without a user namespace, which would not be let at the devices.
    command.arg("--mount").args(if is_root() { &[][..] } else { &user }).args(["sh", "-c", &script]);
    command.stdin(Stdio::null()).output().expect("it runs")
}

fn is_root() -> bool {
    fs::read_to_string("/proc/self/status").is_ok_and(|status| status.contains("\nUid:\t0\t0\t"))
}

#[test]
fn a_full_disk_and_a_dead_device_are_named() {
    let Some(place) = place("mounts") else { return };
    let full = "mkdir full; mount -t tmpfs -o size=4k none full; echo x > full/it; export TMPDIR=$PWD/full";
    let said = summary(&run_after(place.path(), full));
    assert_eq!((said["ok"].as_bool(), said["runs"][0]["end"].as_str()), (Some(false), Some("failed")), "{said}");
    assert!(said["runs"][0]["error"].as_str().is_some_and(|error| error.contains("No space left")), "{said}");
    let said = summary(&run_after(place.path(), "mount --bind /dev/null /dev/net/tun"));
    let error = said["error"].as_str().unwrap_or_default();
    assert!(error.contains("/dev/net/tun: ") && error.contains("modprobe tun"), "{said}");
}

/// Processes whose arguments name the folder of this test.
fn alive(place: &Path) -> usize {
    let name = place.display().to_string();
    let processes = fs::read_dir("/proc").expect("it is there").flatten();
    let names = |entry: fs::DirEntry| fs::read(entry.path().join("cmdline")).unwrap_or_default();
    processes.map(names).filter(|args| String::from_utf8_lossy(args).contains(&name)).count()
}

/// Sends a signal once programs run that name a folder in `place`, and waits until it ended and none is left; how it ended.
pub(crate) fn ended(child: &mut Child, signal: &str, place: &Path) -> ExitStatus {
    let wait = |done: &dyn Fn() -> bool| {
        for _ in 0..400 {
            if done() {
                return true;
            }
            #[allow(clippy::disallowed_methods, reason = "processes are waited for that are not our children")]
            std::thread::sleep(Duration::from_millis(25));
        }
        false
    };
    // Programs name the run's folder in their arguments.
    assert!(wait(&|| alive(place) > 0), "nothing runs");
    let killed = Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status();
    assert!(killed.is_ok_and(|status| status.success()));
    let status = child.wait().expect("it ends");
    assert!(wait(&|| alive(place) == 0), "{signal}: programs are left");
    status
}

#[test]
fn nothing_outlives_it() {
    let Some(place) = place("endings") else { return };
    let temporary = place.path().join("tmp");
    fs::create_dir_all(&temporary).expect("a folder");
    for signal in ["TERM", "KILL"] {
        let mut command = plait();
        command.args(["run", "two.toml", "--set", "transfer.bytes=100000000"]).current_dir(place.path());
        let mut child = command.env("TMPDIR", &temporary).stderr(Stdio::null()).spawn().expect("it runs");
        let status = ended(&mut child, signal, place.path());
        assert_eq!(status.signal().is_some(), signal == "KILL");
    }
    // What a killed one may leave is a folder, and the next one takes it away.
    let done = run(place.path(), "plait", &[], &[]);
    assert!(done.status.success(), "{}", stderr(&done));
    assert_eq!(left(place.path()), Vec::<String>::new());
}
