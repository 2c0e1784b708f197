//! What tests with other implementations ask of the command, tried on itself.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

fn plait(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plait"));
    command.args(args).env_remove("RUST_LOG").env_remove("SSLKEYLOGFILE").stdin(Stdio::null());
    command.env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command
}

struct Server(Child, u16);

impl Server {
    fn start(mut command: Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).expect("the ready line is JSON");
        let address = ready["addresses"][0].as_str().unwrap();
        let port = address.rsplit(':').next().unwrap().parse().unwrap();
        Self(process, port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Downloads from a server with these flags; the summary.
fn get(serve: &[&str], get: &[&str]) -> Value {
    let server = Server::start(plait(&[&["serve", "--quiet", "--listen", "127.0.0.1:0"], serve].concat()));
    let url = format!("https://127.0.0.1:{}/bytes/20M", server.1);
    let output = plait(&[&["get", "--json", "--single", "--insecure", &url], get].concat()).output().unwrap();
    let summary: Value = serde_json::from_slice(&output.stdout).expect("a summary");
    assert!(output.status.success(), "{summary}");
    assert_eq!(summary["bytes"], 20_000_000);
    summary
}

/// Names of the events in the logs of this folder.
fn events(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        for record in text.split('\x1e').skip(1) {
            let record: Value = serde_json::from_str(record).expect("each record is JSON");
            names.extend(record["name"].as_str().map(str::to_owned));
        }
    }
    names
}

#[test]
fn both_sides_write_qlog_and_keys_change() {
    let dir = tempfile::tempdir().unwrap();
    let (client, server) = (dir.path().join("client"), dir.path().join("server"));
    let client_flags = ["--qlog", client.to_str().unwrap(), "--interop-key-update"];
    get(&["--qlog", server.to_str().unwrap()], &client_flags);
    let names = events(&client);
    for wanted in ["connection_started", "packet_sent", "packet_received", "recovery_metrics_updated", "key_updated"] {
        assert!(names.contains(&format!("quic:{wanted}")), "{wanted}");
    }
    assert_eq!(fs::read_dir(&client).unwrap().count(), 1);
    assert_eq!(fs::read_dir(&server).unwrap().count(), 1);
}

#[test]
fn a_client_moves_in_the_middle_of_a_download() {
    let dir = tempfile::tempdir().unwrap();
    let server = dir.path().join("server");
    let summary = get(&["--qlog", server.to_str().unwrap()], &["--interop-move", "127.0.0.2"]);
    let paths = summary["paths"].as_array().unwrap();
    assert!(paths.iter().any(|path| path["local"].as_str().unwrap().starts_with("127.0.0.2:")), "{summary}");
    let assigned = events(&server).iter().filter(|name| *name == "quic:tuple_assigned").count();
    assert!(assigned >= 2, "{assigned}");
}

#[test]
fn a_version_that_nobody_speaks_is_negotiated_away() {
    get(&["--interop-v1"], &["--interop-version", "0x1a2a3a4a"]);
    get(&[], &["--interop-version", "6b3343cf"]);
    get(&["--interop-v1"], &["--interop-version", "6b3343cf"]);
}

#[test]
fn sessions_resume_without_early_data() {
    assert_eq!(get(&[], &["--interop-resume"])["resumed"], true);
    assert_eq!(get(&["--interop-chacha20"], &[])["resumed"], false);
}

#[test]
fn folders_for_logs_must_be_possible() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let flags = ["get", "--insecure", "https://127.0.0.1:1/x", "--qlog", file.path().to_str().unwrap()];
    let output = plait(&flags).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--qlog"));
}

#[test]
fn the_runner_is_told_what_is_not_supported() {
    for (role, case, code) in [("client", "http3", 127), ("server", "http3", 127), ("nobody", "transfer", 2)] {
        let output = plait(&["interop"]).env("ROLE", role).env("TESTCASE", case).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{role} {case}");
    }
}
