//! `plait perf` at both ends, which several contenders are: its command lines, and what its client says.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use plait_sim::host::app::Load;
use serde_json::Value;

use crate::clock::ClockPoint;
use crate::run::{Answer, ClientOutput, Completion, PathShare, Program, RunFailure, Work};

/// How long a client may take to begin and to say what it has.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// This program can be run again.
pub(super) fn availability() -> Result<(), String> {
    std::env::current_exe().map(|_| ()).map_err(|error| format!("this program cannot find itself: {error}"))
}

fn this_program() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| "plait".into())
}

fn words(list: &[&str]) -> Vec<OsString> {
    list.iter().map(OsString::from).collect()
}

fn window(work: &Work) -> Vec<OsString> {
    words(&["--window", &work.endpoints.receive_window_bytes.to_string()])
}

fn qlog(work: &Work) -> impl Iterator<Item = OsString> {
    work.qlog.iter().flat_map(|folder| [OsString::from("--qlog"), folder.into()])
}

/// When a client gives up by itself, so that it still says what it has: a little before it is killed.
pub(super) fn own_limit(work: &Work) -> Duration {
    work.time_limit.saturating_sub(LAST_WORDS).max(work.time_limit / 2)
}

/// A server with these flags more.
pub(super) fn server(work: &Work, flags: &[&str]) -> Program {
    let mut args = words(&["perf", "server", "-q", "--listen", &work.listen.to_string(), "--identity"]);
    args.push(work.files.join("identity").into());
    args.extend(words(&["--max-paths", "64", "--patience", "86400"]));
    args.extend(window(work));
    args.extend(qlog(work));
    args.extend(words(flags));
    Program::new(this_program(), args)
}

/// A client with these flags more, from these addresses.
pub(super) fn client(work: &Work, flags: &[&str], paths: impl IntoIterator<Item = IpAddr>) -> Program {
    // Nothing lies between handshake and transfer.
    let mut args = words(&["perf", "client", "-q", "--json", "--insecure", "--no-questions", "--connect-timeout"]);
    let seconds = |time: Duration| time.as_secs_f64().to_string();
    args.extend(words(&[&seconds(work.time_limit), "--max-time", &seconds(own_limit(work))]));
    args.extend(words(&[&work.initial().server.to_string()]));
    match work.load {
        Load::Download { bytes } => args.extend(words(&["-R", "-n", &bytes.to_string()])),
        Load::Upload { bytes } => args.extend(words(&["-n", &bytes.to_string()])),
        Load::DownloadFor { duration } => args.extend(words(&["-R", "-t", &seconds(duration)])),
        Load::Requests { request_bytes, response_bytes, interval, count } => {
            let ms = (interval.as_secs_f64() * 1e3).to_string();
            args.extend(words(&["--requests", "--count", &count.to_string(), "--every-ms", &ms]));
            args.extend(words(&["--request-size", &request_bytes.to_string()]));
            args.extend(words(&["--response-size", &response_bytes.to_string()]));
        }
    }
    // Over TCP these are the kernel's matter, and the client refuses them.
    if !flags.iter().any(|flag| matches!(*flag, "--tcp" | "--mptcp")) {
        args.extend(window(work));
        args.extend(qlog(work));
    }
    args.extend(words(flags));
    for path in paths {
        args.extend(words(&["--path", &path.to_string()]));
    }
    Program::new(this_program(), args)
}

/// What a client said. Requests without an answer at the time limit are a result.
pub(super) fn outcome(work: &Work, output: &ClientOutput) -> Result<Answer, RunFailure> {
    let said: Value = serde_json::from_str(output.last_line()).map_err(|_| RunFailure::of_client(work, output))?;
    let requests = exchanges(&said);
    let is_cut_off = said["error"].as_str().is_some_and(|error| error.contains("--max-time"));
    if said["ok"] != Value::Bool(true) && (!is_cut_off || requests.is_empty()) {
        if is_cut_off {
            return Err(RunFailure::TimeLimit(work.time_limit));
        }
        let why = said["error"].as_str().unwrap_or("no reason given").to_owned();
        return Err(RunFailure::Client { code: output.code_name(), said: why });
    }
    let finished = said["clock"]["finished_s"].as_f64().and_then(ClockPoint::from_seconds);
    let completion = Completion::At(finished.ok_or_else(|| RunFailure::Nonsense("no time in it".to_owned()))?);
    let handshake = said["handshake_ms"].as_f64().map(|ms| Duration::from_secs_f64(ms.max(0.0) / 1e3));
    let mut notes = BTreeMap::new();
    for key in ["extension", "scheduler", "congestion", "ack_path"] {
        notes.extend(said[key].as_str().map(|value| (key.to_owned(), value.to_owned())));
    }
    notes.extend(said["first_byte_ms"].as_f64().map(|ms| ("first_byte_ms".to_owned(), format!("{ms:.3}"))));
    // Of requests the answers count.
    let moved = if requests.is_empty() { &said["bytes"] } else { &said["down"]["bytes"] };
    let bytes = moved.as_u64().unwrap_or_default();
    let paths = work.ways.iter().map(|way| share(&said, &way.client.to_string())).collect();
    Ok(Answer { bytes, completion, handshake, requests, paths, notes })
}

/// The requests that were due: when, since the first of them, and how long their answers took.
pub(super) fn exchanges(said: &Value) -> Vec<(Duration, Option<Duration>)> {
    let ms = |value: &Value| value.as_f64().map(|ms| Duration::from_secs_f64(ms.max(0.0) / 1e3));
    let exchange = |exchange: &Value| Some((ms(&exchange["at_ms"])?, ms(&exchange["delay_ms"])));
    said["exchanges"].as_array().into_iter().flatten().filter_map(exchange).collect()
}

/// What the paths from one of our addresses had, by the client's book.
fn share(said: &Value, address: &str) -> PathShare {
    let ours = |path: &&Value| {
        let local = path["local"].as_str().unwrap_or_default();
        local.rsplit_once(':').is_some_and(|(host, _)| host.trim_matches(['[', ']']) == address)
    };
    let mut share = PathShare::default();
    for path in said["paths"].as_array().into_iter().flatten().filter(ours) {
        share.sent_bytes += path["sent_bytes"].as_u64().unwrap_or_default();
        share.packets_sent += path["packets_sent"].as_u64().unwrap_or_default();
        share.packets_lost += path["packets_lost"].as_u64().unwrap_or_default();
        share.rtt = path["rtt_ms"].as_f64().map(|ms| Duration::from_secs_f64(ms.max(0.0) / 1e3)).or(share.rtt);
    }
    share
}
