//! How commands end when they are told to, and when what they print has no place to go.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

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

/// Bits of SIGINT and SIGTERM in the masks of `/proc`.
const ENDING_SIGNALS: u64 = 1 << 1 | 1 << 14;

/// Nothing here takes a second of work: what is not done by then never will be.
const STUCK: Duration = Duration::from_secs(60);

/// A process that is killed, and its threads shown, where it takes longer than anything here should.
struct Watched {
    child: Child,
    ended: mpsc::Sender<()>,
}

impl Watched {
    fn start(command: &mut Command) -> Self {
        let child = command.spawn().unwrap();
        let (ended, wait) = mpsc::channel();
        let id = child.id();
        std::thread::spawn(move || {
            if wait.recv_timeout(STUCK) == Err(mpsc::RecvTimeoutError::Timeout) {
                eprintln!("process {id} is stuck after {STUCK:?}:\n{}", threads_of(id));
                let _ = Command::new("kill").args(["-KILL", &id.to_string()]).status();
            }
        });
        Self { child, ended }
    }

    /// Sends SIGINT as soon as the process heeds it, and once more at once, as `timeout` does; what it ends with.
    fn interrupted(mut self) -> Output {
        let status = format!("/proc/{}/status", self.child.id());
        // A signal is heard only a moment after the system knows its handler. SIGTERM's comes after that moment of SIGINT.
        let heeds = || {
            let status = fs::read_to_string(&status).unwrap_or_default();
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
            let mask = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
            mask & ENDING_SIGNALS == ENDING_SIGNALS
        };
        while !heeds() {
            assert!(self.child.try_wait().unwrap().is_none(), "it ended before it was interrupted");
            std::thread::yield_now();
        }
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id, &id]).status().unwrap().success());
        let output = self.child.wait_with_output().unwrap();
        let _ = self.ended.send(());
        output
    }
}

/// What each thread of a process waits for.
fn threads_of(process: u32) -> String {
    let mut text = String::new();
    for thread in fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten() {
        for what in ["comm", "wchan", "syscall"] {
            let told = fs::read_to_string(thread.path().join(what)).unwrap_or_else(|error| error.to_string());
            text.push_str(told.trim());
            text.push(' ');
        }
        text.push('\n');
    }
    text
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
    let lines: [&[&str]; 7] = [
        &["sim", "list"],
        &["--help"],
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
    let output = Watched::start(&mut plait(&["sim", "run", &file, "--out", &out, "--qlog", "--json"])).interrupted();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let told = summary(&output);
    assert_eq!((&told["ok"], &told["command"]), (&false.into(), &"sim run".into()));
    assert!(told["error"].as_str().unwrap().contains("interrupted before the run was done"), "{told}");
    let left = walk(Path::new(&out));
    assert!(left.is_empty(), "{left:?}");
    // A campaign in the middle of its first runs, kept or not.
    let line = ["sim", "run", &file, "--seeds", "3", "--jobs", "2"];
    for (more, expected) in [(&["--out", &out][..], "the same command goes on"), (&[], "with --out DIR the same")] {
        let output = Watched::start(&mut plait(&[&line[..], more].concat())).interrupted();
        assert_eq!(output.status.code(), Some(1));
        let said = stderr(&output);
        assert!(said.contains("interrupted after 0 of 3 runs") && said.contains(expected), "{said}");
    }
    let output = Watched::start(&mut plait(&["sim", "swarm", "--seeds", "1000000"])).interrupted();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("of 1000000 seeds; none failed"), "{}", stderr(&output));
    // A file that never comes.
    let pipe = pipe_in(home.path()).to_string_lossy().into_owned();
    let output = Watched::start(&mut plait(&["sim", "run", &pipe, "--json"])).interrupted();
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
    let mut process = Watched::start(&mut plait(&get));
    let mut stdout = process.child.stdout.take().unwrap();
    stdout.read_exact(&mut [0; 1]).unwrap();
    let output = process.interrupted();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("stopped before it was done"), "{}", stderr(&output));
    // A pipe without a reader.
    let pipe = pipe_in(home.path()).to_string_lossy().into_owned();
    let output = Watched::start(&mut plait(&[&get[..], &["-o", &pipe]].concat())).interrupted();
    assert_eq!(output.status.code(), Some(1));
    let output = plait(&[&get[..], &["-o", &pipe, "--max-time", "0.2"]].concat()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("not done within 0.2 s"), "{}", stderr(&output));
    // An unfinished file is taken away.
    let file = home.path().join("body").to_string_lossy().into_owned();
    let output = Watched::start(&mut plait(&[&get[..], &["-o", &file]].concat())).interrupted();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1, "only the pipe is left");
}
