//! The command as a user runs it: exit codes, what is printed where, files that appear whole or not at all.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{assert_described, stderr, summary};

fn plait(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plait"));
    command.args(args).env_remove("RUST_LOG").env_remove("SSLKEYLOGFILE").stdin(Stdio::null());
    command.env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command
}

fn run(args: &[&str]) -> Output {
    plait(args).output().expect("the command runs")
}

/// A running `plait serve`.
struct Server {
    process: Child,
    // Kept open: the server must not find its standard output closed.
    stdout: BufReader<ChildStdout>,
    address: String,
    dir: TempDir,
}

impl Server {
    fn start(extra: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        fs::create_dir(&root).unwrap();
        fs::write(root.join("hello"), "hello\n").unwrap();
        let (root, ca) = (root.to_string_lossy().into_owned(), dir.path().join("ca.pem"));
        let args = ["serve", "--quiet", "--listen", "127.0.0.1:0", "--root", &root, "--cert-out", ca.to_str().unwrap()];
        let mut process =
            plait(&args).args(extra).env("XDG_STATE_HOME", dir.path()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).expect("the ready line is JSON");
        assert_eq!(ready["event"], "listening");
        let address = ready["addresses"][0].as_str().unwrap().to_owned();
        Self { process, stdout, address, dir }
    }

    fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    fn ca(&self) -> String {
        self.dir.path().join("ca.pem").to_string_lossy().into_owned()
    }

    /// An empty folder for downloads.
    fn downloads(&self) -> PathBuf {
        let folder = self.dir.path().join("downloads");
        fs::create_dir(&folder).unwrap();
        folder
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn entries(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

#[test]
fn wrong_usage_is_two() {
    let wrong: [(&[&str], &str); 11] = [
        (&["pref"], "unrecognized subcommand 'pref'"),
        (&["get"], "not provided: <URL>... (see `plait get --help`)"),
        (&["get", "https://a/", "--max-time", "-1"], "`-1` is not a time"),
        (&["serve", "--max-paths", "65"], "`65` is not a whole number from 1 to 64 (see `plait serve --help`)"),
        (&["sim", "run", "x", "--seeds", "-1"], "from 1 to 1000000 (see `plait sim run --help`)"),
        (&["sim", "figure", "fairness", "nofig"], "there is no figure `nofig`"),
        (&["get", "https://a/", "https://a/", "-o", "new", "-o", "./new"], "two -o name the same file"),
        (&["get", "http://localhost/"], "only https"),
        (&["get", "https://a/", "https://b/"], "another server"),
        (&["get", "https://a/", "--scheduler", "best"], "minrtt"),
        (&["demo", "--bytes", "much"], "64Ki"),
    ];
    for (args, expected) in wrong {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(stderr(&output).contains(expected), "{args:?}: {}", stderr(&output));
        assert!(output.stdout.is_empty(), "{args:?}");
        assert_eq!(stderr(&output).lines().count(), 1, "{args:?}: {}", stderr(&output));
    }
}

#[test]
fn help_and_version_are_zero() {
    assert!(stderr(&run(&[])).contains("Usage") && run(&[]).status.code() == Some(2));
    for args in [&["--help"][..], &["-V"], &["get", "--help"]] {
        assert_eq!(run(args).status.code(), Some(0), "{args:?}");
    }
}

#[test]
fn two_paths_carry_one_file() {
    let server = Server::start(&[]);
    let file = server.downloads().join("body");
    let (url, ca) = (server.url("/bytes/8M"), server.ca());
    let paths = ["--path", "127.0.0.1", "--path", "127.0.0.2"];
    let output =
        plait(&["get", &url, "--ca", &ca, "--json", "-o", file.to_str().unwrap()]).args(paths).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let summary = summary(&output);
    assert_eq!(
        (&summary["ok"], &summary["bytes"], &summary["extension"]),
        (&true.into(), &8_000_000.into(), &"multipath".into())
    );
    let locals: Vec<_> = summary["paths"].as_array().unwrap().iter().map(|p| p["local"].as_str().unwrap()).collect();
    assert!(
        locals.len() == 2 && locals[0].starts_with("127.0.0.1:") && locals[1].starts_with("127.0.0.2:"),
        "{locals:?}"
    );
    assert_eq!(fs::metadata(&file).unwrap().len(), 8_000_000);
    assert_described(&summary);
    // The digest in the summary is that of the file.
    let again = run(&["get", &url, "--ca", &ca, "--single", "--json"]);
    assert_eq!(self::summary(&again)["sha256"], summary["sha256"]);
    assert_eq!(self::summary(&again)["paths"].as_array().unwrap().len(), 1);
}

#[test]
fn bodies_go_to_standard_output() {
    let server = Server::start(&["--retry"]);
    let output = run(&["get", &server.url("/hello"), &server.url("/hello"), "--insecure", "--single"]);
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(0), &b"hello\nhello\n"[..]), "{}", stderr(&output));
    assert!(stderr(&output).contains("Mbit/s"));
    // Each body has a digest of its own; there is none of all.
    let output = run(&["get", &server.url("/hello"), &server.url("/bytes/9"), "--insecure", "--single", "--json"]);
    let summary = summary(&output);
    assert_eq!((&summary["bytes"], &summary["sha256"]), (&15.into(), &Value::Null));
    let digests = [0, 1].map(|at| summary["downloads"][at]["sha256"].as_str().map(str::len));
    assert_eq!(digests, [Some(64), Some(64)]);
}

#[test]
fn summaries_name_the_policies_of_both_sides() {
    let server = Server::start(&["--scheduler", "blest", "--cc", "newreno", "--reinjection", "none"]);
    let get = |extra: &[&str]| {
        let output =
            plait(&["get", &server.url("/bytes/1M"), "--ca", &server.ca(), "--json"]).args(extra).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        summary(&output)
    };
    let told = get(&["--scheduler", "ecf", "--ack-path", "own"]);
    // The server sent the body.
    assert_eq!(
        (&told["scheduler"], &told["congestion"], &told["ack_path"]),
        (&"blest".into(), &"newreno".into(), &"own".into())
    );
    let (ours, theirs) = (&told["policies"]["ours"], &told["policies"]["theirs"]);
    assert_eq!(
        (&ours["scheduler"], &ours["congestion"], &ours["reinjection"]),
        (&"ecf".into(), &"auto".into(), &"tail".into())
    );
    assert_eq!((&theirs["ack_path"], &theirs["reinjection"]), (&"fastest".into(), &"none".into()));
    assert_eq!((&told["policies"]["asked"], &told["duplicate_bytes"]), (&Value::Null, &0.into()));

    let wish = [
        "--server-scheduler",
        "redundant",
        "--server-cc",
        "bbr",
        "--server-reinjection",
        "deadline",
        "--server-ack-path",
        "all",
    ];
    let told = get(&wish);
    let expected = serde_json::json!({
        "scheduler": "redundant", "congestion": "bbr", "ack_path": "all", "reinjection": "deadline"
    });
    assert_eq!((&told["policies"]["theirs"], &told["policies"]["asked"]), (&expected, &expected));
    assert_eq!((&told["scheduler"], &told["congestion"]), (&"redundant".into(), &"bbr".into()));
    assert_eq!(told["duplicate_bytes"], 0);
}

#[test]
fn a_path_policy_says_who_opens_paths() {
    let server = Server::start(&[]);
    let paths = |policy: &[&str]| {
        let (url, ca) = (server.url("/bytes/1M"), server.ca());
        let two = ["--path", "127.0.0.1", "--path", "127.0.0.2"];
        let output = plait(&["get", &url, "--ca", &ca, "--json"]).args(two).args(policy).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        summary(&output)["paths"].as_array().unwrap().len()
    };
    let numbers = [paths(&[]), paths(&["--path-policy", "fullmesh"]), paths(&["--path-policy", "manual"])];
    assert_eq!(numbers, [2, 2, 1]);
}

#[test]
fn servers_that_keep_their_policies_are_told_of() {
    let server = Server::start(&["--fixed-policies"]);
    let output = run(&["get", &server.url("/hello"), "--insecure", "--json", "--server-scheduler", "redundant"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(stderr(&output).contains("does not take the policies"), "{}", stderr(&output));
    let policies = &summary(&output)["policies"];
    assert_eq!(
        (&policies["asked"]["scheduler"], &policies["theirs"]["scheduler"]),
        (&"redundant".into(), &"minrtt".into())
    );
}

#[test]
fn wrong_usage_is_an_object_for_programs() {
    let wrong: [(&[&str], &str, &str); 4] = [
        (&["get", "--json"], "get", "<URL>"),
        (&["get", "http://localhost/", "--json-stream"], "get", "only https"),
        (&["demo", "--loss", "1", "--json"], "demo", "write 1%"),
        (&["sim", "run", "x", "--seeds", "-1", "--json"], "sim run", "from 1 to 1000000"),
    ];
    for (args, command, expected) in wrong {
        let output = run(args);
        let told = summary(&output);
        assert_eq!((output.status.code(), &told["command"], &told["ok"]), (Some(2), &command.into(), &false.into()));
        assert!(told["error"].as_str().unwrap().contains(expected), "{told}");
        assert_eq!(
            (output.stdout.iter().filter(|byte| **byte == b'\n').count(), stderr(&output).lines().count()),
            (1, 1)
        );
    }
}

#[test]
fn servers_keep_their_key() {
    let home = tempfile::tempdir().unwrap();
    let identity = ["--identity", home.path().to_str().unwrap()];
    let first = Server::start(&identity);
    let ca = first.dir.path().join("ca.pem");
    // The certificate of the first start is good for a server of the second, which has other names.
    let second = Server::start(&[identity[0], identity[1], "--name", "other.example"]);
    assert_ne!(fs::read(&ca).unwrap(), fs::read(second.ca()).unwrap());
    let output = run(&["get", &second.url("/hello"), "--ca", ca.to_str().unwrap()]);
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(0), &b"hello\n"[..]), "{}", stderr(&output));
}

#[test]
fn streams_of_json_end_with_the_summary() {
    let server = Server::start(&[]);
    let output =
        run(&["get", &server.url("/bytes/100K"), "--insecure", "--single", "--json-stream", "--extension", "none"]);
    let summary = summary(&output);
    assert_eq!(
        (&summary["command"], &summary["extension"], &summary["error"]),
        (&"get".into(), &"none".into(), &Value::Null)
    );
}

#[test]
fn early_data_is_told() {
    let server = Server::start(&[]);
    let output = run(&["get", &server.url("/hello"), "--insecure", "--single", "--0rtt", "--json"]);
    let summary = summary(&output);
    assert_eq!((&summary["ok"], &summary["early_data"]), (&true.into(), &"accepted".into()), "{summary}");
}

#[test]
fn a_key_log_that_cannot_be_written_is_told_of_once() {
    let server = Server::start(&[]);
    let nowhere = server.dir.path().join("none/keys");
    let (url, keys) = (server.url("/hello"), server.dir.path().join("keys"));
    let get = |file: &Path, more: &[&str]| {
        let args = ["get", &url, "--insecure", "--single", "--json"];
        let output = plait(&args).args(more).env("SSLKEYLOGFILE", file).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stderr(&output).matches("SSLKEYLOGFILE").count()
    };
    assert_eq!((get(&nowhere, &[]), get(&nowhere, &["--quiet"]), get(&keys, &[])), (1, 0, 0));
    assert!(fs::read_to_string(&keys).unwrap().contains("CLIENT_TRAFFIC_SECRET_0"));
}

#[test]
fn both_wildcards_share_a_port() {
    // A port that is free now.
    let Ok(free) = UdpSocket::bind("[::]:0") else { return };
    let port = free.local_addr().unwrap().port();
    drop(free);
    let (v4, v6) = (format!("0.0.0.0:{port}"), format!("[::]:{port}"));
    for wildcards in [[&v4, &v6], [&v6, &v4]] {
        let _server = Server::start(&["--listen", wildcards[0], "--listen", wildcards[1]]);
        for host in ["127.0.0.1", "[::1]"] {
            let url = format!("https://{host}:{port}/hello");
            let output = run(&["get", &url, "--insecure", "--single", "-o", "-"]);
            assert_eq!((output.status.code(), &output.stdout[..]), (Some(0), &b"hello\n"[..]), "{}", stderr(&output));
        }
    }
    // What cannot go together is named as what it is.
    let output = run(&["serve", "--quiet", "--listen", &v4, "--listen", &format!("127.0.0.1:{port}")]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains(&format!("is within --listen {v4}; name one")), "{}", stderr(&output));
}

#[test]
fn link_local_addresses_want_an_interface() {
    let wrong = [
        ("https://[fe80::1]/", "write it with yours, as fe80::1%eth0"),
        ("https://[fe80::1%25no-such]/", "there is no interface `no-such`; `ip link`"),
    ];
    for (url, expected) in wrong {
        let output = run(&["get", url, "--insecure", "--discard"]);
        assert_eq!(output.status.code(), Some(2), "{url}");
        assert!(stderr(&output).contains(expected), "{url}: {}", stderr(&output));
    }
    let output = run(&["get", "https://[::1]:1/", "--insecure", "--discard", "--path", "fe80::1%no-such"]);
    assert!(stderr(&output).contains("there is no interface `no-such`"), "{}", stderr(&output));
}

#[test]
fn what_the_server_lacks_leaves_no_file() {
    let server = Server::start(&[]);
    let folder = server.downloads();
    let file = folder.join("body");
    for path in ["/none", "/../ca.pem", "/%2e%2e/ca.pem"] {
        let output = run(&["get", &server.url(path), "--insecure", "--single", "-o", file.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(1), "{path}");
        assert!(stderr(&output).contains("the server"), "{path}: {}", stderr(&output));
        assert_eq!(entries(&folder), 0, "{path}");
    }
}

#[test]
fn downloads_cut_short_leave_no_file() {
    let server = Server::start(&[]);
    let folder = server.downloads();
    let file = folder.join("body");
    let args = ["--insecure", "--single", "--json", "--max-time", "0.3", "-o", file.to_str().unwrap()];
    let output = plait(&["get", &server.url("/bytes/1T")]).args(args).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("not done within"), "{}", stderr(&output));
    let summary = summary(&output);
    assert_eq!(summary["ok"], false);
    assert!(summary["handshake_ms"].as_f64().is_some_and(|ms| ms > 0.0), "{summary}");
    // Each URL has its entry, with what arrived.
    let download = &summary["downloads"][0];
    assert_eq!(download["url"], server.url("/bytes/1T"));
    assert_eq!((&download["error"], &download["sha256"]), (&summary["error"], &serde_json::Value::Null));
    assert!(download["bytes"].as_u64().is_some_and(|bytes| bytes > 0 && bytes <= summary["bytes"].as_u64().unwrap()));
    assert_eq!(entries(&folder), 0);
}

#[test]
fn downloads_that_never_began_are_listed() {
    let output = plait(&["get", "https://127.0.0.1:1/a", "https://127.0.0.1:1/b", "--insecure", "--json"])
        .args(["--discard", "--max-time", "0.2"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let summary = summary(&output);
    // Nothing was negotiated.
    assert_eq!((&summary["extension"], &summary["handshake_ms"]), (&Value::Null, &Value::Null));
    let of = |at: usize| (&summary["downloads"][at]["bytes"], &summary["downloads"][at]["error"]);
    assert_eq!((of(0), of(1)), ((&0.into(), &summary["error"]), (&0.into(), &summary["error"])));
    assert!(summary["error"].is_string(), "{summary}");
}

/// The part file of a download under way in this folder, once something is in it.
fn part_of(folder: &Path, process: &mut Child) -> PathBuf {
    loop {
        assert!(process.try_wait().unwrap().is_none(), "it ended before anything arrived");
        let part =
            fs::read_dir(folder).unwrap().flatten().find(|entry| entry.metadata().is_ok_and(|meta| meta.len() > 0));
        if let Some(part) = part {
            return part.path();
        }
        std::thread::yield_now();
    }
}

#[test]
fn files_that_shrink_while_they_are_sent_are_no_success() {
    let server = Server::start(&[]);
    let served = server.dir.path().join("root/big");
    fs::File::create(&served).unwrap().set_len(2 << 30).unwrap();
    let folder = server.downloads();
    let file = folder.join("body");
    let mut get = plait(&["get", &server.url("/big"), "--insecure", "--single", "-o", file.to_str().unwrap()])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    part_of(&folder, &mut get);
    fs::OpenOptions::new().write(true).open(&served).unwrap().set_len(0).unwrap();
    let output = get.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("could not read /big to its end"), "{}", stderr(&output));
    assert_eq!(entries(&folder), 0);
}

#[test]
fn strangers_are_refused() {
    let (server, other) = (Server::start(&[]), Server::start(&[]));
    let output = run(&["get", &server.url("/hello"), "--ca", &other.ca(), "--single"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("certificate"), "{}", stderr(&output));
    assert!(stderr(&output).contains("--insecure"), "{}", stderr(&output));
    assert!(output.stdout.is_empty());
    // Those whom the system does not know are refused in one line too.
    let output = run(&["get", &server.url("/hello"), "--single"]);
    assert_eq!((output.status.code(), stderr(&output).lines().count()), (Some(1), 1), "{}", stderr(&output));
}

#[test]
fn nobody_there() {
    // A port that somebody holds who does not answer.
    let mute = UdpSocket::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", mute.local_addr().unwrap());
    let output = run(&["get", &url, "--insecure", "--connect-timeout", "300ms", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stderr(&output).lines().count(), 1);
    assert!(stderr(&output).contains("no answer from 127.0.0.1"), "{}", stderr(&output));
    assert!(summary(&output)["error"].as_str().unwrap().contains("no answer"));
}

#[test]
#[cfg(target_os = "linux")]
fn closed_ports_are_told_at_once() {
    let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("https://{closed}/");
    // Nothing else ends it before the test would be ended.
    let output = run(&["get", &url, "--insecure", "--connect-timeout", "600s", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("connection refused"), "{}", stderr(&output));
    let summary = summary(&output);
    assert_eq!(summary["attempts"][0]["outcome"], "failed");
    assert_eq!(summary["attempts"][0]["remote"], closed.to_string());
}

#[test]
fn files_and_words_that_are_none() {
    let folder = tempfile::tempdir().unwrap();
    let cut = folder.path().join("cut.pem").to_string_lossy().into_owned();
    fs::write(&cut, "-----BEGIN CERTIFICATE-----\nMIIB\n").unwrap();
    for (code, line, said) in [
        (1, &["get", "https://127.0.0.1:9/", "--ca", &cut][..], "a certificate in it is cut off; give a PEM file"),
        (1, &["get", "https://127.0.0.1:9/", "--ca", "/dev/zero"], "--ca /dev/zero: more than 64 MiB"),
        (2, &["sim", "run", "/dev/zero"], "/dev/zero: more than 64 MiB"),
        (2, &["get", "https://127.0.0.1:9/", "--path", ""], "--path <ADDR|IFACE>"),
        (2, &["serve", "--listen", "127.0.0.1:0", "--name", ""], "--name <NAME>"),
        (2, &["serve", "--listen", "localhost"], "write 127.0.0.1:4433"),
    ] {
        let output = run(line);
        assert_eq!(output.status.code(), Some(code), "{line:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(said), "{line:?}: {}", stderr(&output));
    }
}

#[test]
fn interfaces_that_do_not_exist() {
    let output = run(&["get", "https://127.0.0.1:9/", "--path", "eth99"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("--path eth99"), "{}", stderr(&output));
}

#[test]
fn servers_that_cannot_start() {
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = run(&["serve", "--listen", &address]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("in use"), "{}", stderr(&output));
    // The certificate of the server that holds the port stays.
    let server = Server::start(&[]);
    let before = fs::read(server.ca()).unwrap();
    let output = run(&["serve", "--listen", &server.address, "--cert-out", &server.ca()]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(fs::read(server.ca()).unwrap(), before);
    let output = run(&["serve", "--listen", "127.0.0.1:0", "--root", "/nowhere/at/all"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("--root"), "{}", stderr(&output));
}

#[cfg(unix)]
#[test]
fn servers_stop_when_told() {
    let mut server = Server::start(&[]);
    let told = Command::new("kill").args(["-TERM", &server.process.id().to_string()]).status().unwrap();
    assert!(told.success());
    assert_eq!(server.process.wait().unwrap().code(), Some(0));
}

#[cfg(unix)]
#[test]
fn threads_of_a_download_are_told_by_both_ends() {
    let mut server = Server::start(&["--threads", "2"]);
    let output = run(&["get", &server.url("/bytes/30M"), "--insecure", "--discard", "--threads", "2", "--json"]);
    let told = summary(&output);
    assert_eq!((&told["ok"], &told["bytes"]), (&true.into(), &30_000_000.into()), "{told}");
    assert_eq!(told["workers"].as_array().map(Vec::len), Some(2), "{told}");
    assert!(told["paths"].as_array().is_some_and(|paths| paths.len() >= 2), "a path for each: {told}");
    let stopped = Command::new("kill").args(["-TERM", &server.process.id().to_string()]).status().unwrap();
    assert!(stopped.success());
    let mut last = String::new();
    server.stdout.read_to_string(&mut last).unwrap();
    let last: Value = serde_json::from_str(&last).expect("one line of JSON");
    assert_eq!((&last["event"], last["workers"].as_array().map(Vec::len)), (&"stopped".into(), Some(2)), "{last}");
    assert_eq!(server.process.wait().unwrap().code(), Some(0));
}

#[cfg(unix)]
#[test]
fn servers_that_go_away_in_the_middle_are_told_apart_from_those_that_never_answered() {
    let mut server = Server::start(&[]);
    let folder = server.downloads();
    let file = folder.join("body");
    let mut get = plait(&["get", &server.url("/bytes/1T"), "--insecure", "--single", "-o", file.to_str().unwrap()])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    part_of(&folder, &mut get);
    let told = Command::new("kill").args(["-TERM", &server.process.id().to_string()]).status().unwrap();
    assert!(told.success());
    let output = get.wait_with_output().unwrap();
    server.process.wait().unwrap();
    assert_eq!((output.status.code(), entries(&folder)), (Some(1), 0));
    let said = stderr(&output);
    assert!(said.contains("was lost after ") && !said.contains("was lost after 0 bytes"), "{said}");
}

#[test]
fn the_demo_counts_all_of_its_time() {
    let output = run(&["demo", "--bytes", "100G", "--json", "--quiet", "--max-time", "0.05"]);
    let summary = summary(&output);
    assert_eq!((output.status.code(), &summary["ok"]), (Some(1), &false.into()), "{summary}");
    assert!(summary["error"].as_str().unwrap().contains("not done within 0.05 s"), "{summary}");
}

#[test]
fn the_demo_in_small() {
    let output = run(&["demo", "--bytes", "300K", "--json", "--quiet", "--loss", "0", "--max-time", "60"]);
    let summary = summary(&output);
    assert_eq!((output.status.code(), &summary["ok"]), (Some(0), &true.into()), "{summary}");
    assert_eq!((&summary["command"], &summary["bytes_intact"]), (&"demo".into(), &true.into()));
    let names: Vec<_> = summary["runs"].as_array().unwrap().iter().map(|run| run["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["A", "B", "A+B", "A+B, A dies"]);
    assert!(summary["aggregation_benefit"].is_number());
    assert_described(&summary);
    assert!(output.stderr.is_empty());
}
