//! How commands end when they are told to, and when what they print has no place to go.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::support::{stderr, summary};

/// A run of hours.
const LONG: &str = r#"
[[path]]
rate_mbps = 1000
rtt_ms = 20
[transfer]
kind = "download"
bytes = 1_000_000_000_000
"#;

fn plait(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plait"));
    command
        .args(args)
        .env_remove("RUST_LOG")
        .env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// A scenario file in a new folder.
fn scenario(text: &str) -> (tempfile::TempDir, String) {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("x.toml");
    fs::write(&file, text).unwrap();
    let name = file.to_string_lossy().into_owned();
    (home, name)
}

fn pipe_in(folder: &Path) -> PathBuf {
    let pipe = folder.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    pipe
}

/// Sends SIGINT as soon as the process heeds it; what it ends with.
fn interrupted(mut child: Child) -> Output {
    let status = format!("/proc/{}/status", child.id());
    let heeds = || {
        let status = fs::read_to_string(&status).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 2 != 0)
    };
    while !heeds() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was interrupted");
        std::thread::yield_now();
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    child.wait_with_output().unwrap()
}

/// A server for a test, killed at its end.
struct Server(Child, String);

impl Server {
    fn start() -> Self {
        Self::of(plait(&["serve", "--quiet", "--listen", "127.0.0.1:0"]))
    }

    fn of(mut serve: Command) -> Self {
        let mut process = serve.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap();
        let url = format!("https://{}/bytes/1G", ready["addresses"][0].as_str().unwrap());
        Self(process, url)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn readers_that_go_away_are_no_error_and_full_disks_are() {
    let (_home, file) = scenario(&LONG.replace("1_000_000_000_000", "100_000"));
    let lines: [&[&str]; 6] = [
        &["sim", "list"],
        &["sim", "run", &file],
        &["sim", "run", &file, "--json"],
        &["sim", "run", &file, "--json-stream", "--seeds", "3"],
        &["sim", "swarm", "--seeds", "1"],
        &["demo", "--bytes", "100K", "--quiet", "--json"],
    ];
    for line in lines {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = plait(line).stdout(writer).output().unwrap();
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""), "{line:?}");
        let output = plait(line).stdout(File::create("/dev/full").unwrap()).output().unwrap();
        assert_eq!(
            (output.status.code(), stderr(&output).lines().count()),
            (Some(1), 1),
            "{line:?} {}",
            stderr(&output)
        );
        assert!(stderr(&output).contains("standard output: No space left"), "{line:?} {}", stderr(&output));
    }
    let server = Server::start();
    let url = server.1.replace("1G", "1K");
    let output =
        plait(&["get", &url, "--insecure", "--json"]).stdout(File::create("/dev/full").unwrap()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("standard output"), "{}", stderr(&output));
}

#[test]
fn servers_go_on_when_nobody_reads_their_log() {
    let (reader, writer) = std::io::pipe().unwrap();
    let mut serve = plait(&["serve", "--listen", "127.0.0.1:0"]);
    serve.stderr(writer);
    let server = Server::of(serve);
    drop(reader);
    let url = server.1.replace("1G", "1K");
    for _ in 0..2 {
        let output = plait(&["get", &url, "--insecure", "--single", "--json"]).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
}

#[test]
fn runs_end_when_they_are_told_to() {
    let (home, file) = scenario(LONG);
    let out = home.path().join("out").to_string_lossy().into_owned();
    let output = interrupted(plait(&["sim", "run", &file, "--out", &out, "--qlog", "--json"]).spawn().unwrap());
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let told = summary(&output);
    assert_eq!((&told["ok"], &told["command"]), (&false.into(), &"sim run".into()));
    assert!(told["error"].as_str().unwrap().contains("interrupted before the run was done"), "{told}");
    let left = walk(Path::new(&out));
    assert!(left.is_empty(), "{left:?}");
    // A campaign in the middle of its first runs, kept or not.
    let line = ["sim", "run", &file, "--seeds", "3", "--jobs", "2"];
    for (more, expected) in [(&["--out", &out][..], "the same command goes on"), (&[], "with --out DIR the same")] {
        let output = interrupted(plait(&[&line[..], more].concat()).spawn().unwrap());
        assert_eq!(output.status.code(), Some(1));
        let said = stderr(&output);
        assert!(said.contains("interrupted after 0 of 3 runs") && said.contains(expected), "{said}");
    }
    let output = interrupted(plait(&["sim", "swarm", "--seeds", "1000000"]).spawn().unwrap());
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("of 1000000 seeds; none failed"), "{}", stderr(&output));
    // A file that never comes.
    let pipe = pipe_in(home.path()).to_string_lossy().into_owned();
    let output = interrupted(plait(&["sim", "run", &pipe, "--json"]).spawn().unwrap());
    assert_eq!((output.status.code(), &summary(&output)["ok"]), (Some(1), &false.into()));
}

/// Files below a folder.
fn walk(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() { files.extend(walk(&entry.path())) } else { files.push(entry.path()) }
    }
    files
}

#[test]
fn downloads_end_when_they_are_told_to() {
    let server = Server::start();
    let home = tempfile::tempdir().unwrap();
    let get = ["get", &server.1, "--insecure", "--single"];
    // Whoever reads standard output has stopped doing so.
    let mut child = plait(&get).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0; 1]).unwrap();
    let output = interrupted(child);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("stopped before it was done"), "{}", stderr(&output));
    // A pipe without a reader.
    let pipe = pipe_in(home.path()).to_string_lossy().into_owned();
    let output = interrupted(plait(&[&get[..], &["-o", &pipe]].concat()).spawn().unwrap());
    assert_eq!(output.status.code(), Some(1));
    let output = plait(&[&get[..], &["-o", &pipe, "--max-time", "0.2"]].concat()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("not done within 0.2 s"), "{}", stderr(&output));
    // An unfinished file is taken away.
    let file = home.path().join("body").to_string_lossy().into_owned();
    let child = plait(&[&get[..], &["-o", &file]].concat()).spawn().unwrap();
    assert_eq!(interrupted(child).status.code(), Some(1));
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1, "only the pipe is left");
}
