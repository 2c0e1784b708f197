//! This program itself, over every path or over the initial one alone.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

use plait_sim::host::app::Load;
use plait_sim::scenario::Extension;
use serde_json::Value;

use super::Contender;
use crate::clock::ClockPoint;
use crate::machine::Machine;
use crate::run::{Answer, ClientOutput, Completion, PathShare, Program, RunFailure, Work};

/// `plait perf` at both ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plait {
    name: &'static str,
    about: &'static str,
    paths: Paths,
}

/// How many paths it uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Paths {
    /// What the scenario says.
    AsAsked,
    /// The initial one.
    One,
}

impl Plait {
    /// As the scenario's endpoints are.
    pub(crate) fn multipath() -> Self {
        Self { name: "plait", about: "Multipath QUIC (RFC 10069), this program", paths: Paths::AsAsked }
    }

    /// QUIC over the initial path.
    pub(crate) fn single() -> Self {
        Self { name: "plait-single", about: "QUIC over the initial path, this program", paths: Paths::One }
    }

    fn extension(&self, work: &Work) -> Extension {
        match self.paths {
            Paths::One => Extension::None,
            Paths::AsAsked => work.endpoints.extension,
        }
    }
}

impl Contender for Plait {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn availability(&self, _machine: &Machine) -> Result<(), String> {
        std::env::current_exe().map(|_| ()).map_err(|error| format!("this program cannot find itself: {error}"))
    }

    fn accepts(&self, work: &Work) -> Result<(), String> {
        match work.load {
            Load::Download { .. } | Load::Upload { .. } | Load::DownloadFor { .. } => Ok(()),
            Load::Requests { .. } => Err("requests at an interval are not among the loads of `plait perf`".to_owned()),
        }
    }

    fn server(&self, work: &Work) -> Program {
        let mut args = words(&["perf", "server", "-q", "--listen"]);
        args.push(work.initial().server.to_string().into());
        args.extend(words(&["--identity"]));
        args.push(work.files.join("identity").into());
        args.extend(words(&["--max-paths", "64", "--patience", "86400"]));
        args.extend(window(work));
        if self.extension(work) == Extension::Multiflow {
            args.push("--multiflow".into());
        }
        Program::new(this_program(), args)
    }

    fn client(&self, work: &Work) -> Program {
        let mut args = words(&["perf", "client", "-q", "--json", "--insecure"]);
        args.push(work.initial().server.to_string().into());
        match work.load {
            Load::Download { bytes } => args.extend(words(&["-R", "-n", &bytes.to_string()])),
            Load::Upload { bytes } => args.extend(words(&["-n", &bytes.to_string()])),
            Load::DownloadFor { duration } => {
                args.extend(words(&["-R", "-t", &duration.as_secs_f64().to_string()]));
            }
            // Refused before.
            Load::Requests { .. } => {}
        }
        args.extend(window(work));
        args.extend(policies(work));
        args.extend(words(&["--extension", extension_word(self.extension(work))]));
        let ways = work.ways_in_order().take(if self.paths == Paths::One { 1 } else { usize::MAX });
        for way in ways {
            args.extend(words(&["--path", &way.client.to_string()]));
        }
        Program::new(this_program(), args)
    }

    fn outcome(&self, work: &Work, output: &ClientOutput) -> Result<Answer, RunFailure> {
        let said: Value = serde_json::from_str(output.last_line()).map_err(|_| RunFailure::of_client(work, output))?;
        if said["ok"] != Value::Bool(true) {
            let why = said["error"].as_str().unwrap_or("no reason given").to_owned();
            return Err(RunFailure::Client { code: output.code_name(), said: why });
        }
        let seconds = said["seconds"].as_f64().and_then(|s| Duration::try_from_secs_f64(s).ok());
        let handshake = said["handshake_ms"].as_f64().map(|ms| Duration::from_secs_f64(ms.max(0.0) / 1e3));
        let finished = said["clock"]["finished_s"].as_f64().and_then(ClockPoint::from_seconds);
        let completion = match (finished, seconds) {
            (Some(at), _) => Completion::At(at),
            (None, Some(seconds)) => Completion::Took(seconds + handshake.unwrap_or_default()),
            (None, None) => return Err(RunFailure::Nonsense("no time in it".to_owned())),
        };
        let bytes = said["bytes"].as_u64().unwrap_or_default();
        let mut notes = BTreeMap::new();
        for key in ["extension", "scheduler", "congestion", "ack_path"] {
            notes.extend(said[key].as_str().map(|value| (key.to_owned(), value.to_owned())));
        }
        let paths = work.ways.iter().map(|way| share(&said, &way.client.to_string())).collect();
        Ok(Answer { bytes, completion, handshake, requests: Vec::new(), paths, notes })
    }
}

fn this_program() -> std::path::PathBuf {
    std::env::current_exe().unwrap_or_else(|_| "plait".into())
}

fn words(list: &[&str]) -> Vec<OsString> {
    list.iter().map(OsString::from).collect()
}

fn window(work: &Work) -> Vec<OsString> {
    words(&["--window", &work.endpoints.receive_window_bytes.to_string()])
}

fn extension_word(extension: Extension) -> &'static str {
    match extension {
        Extension::Multipath => "multipath",
        Extension::Multiflow => "multiflow",
        Extension::None => "none",
    }
}

/// Both sides are set to what the scenario says, as in the simulator.
fn policies(work: &Work) -> Vec<OsString> {
    let endpoints = &work.endpoints;
    let mut args = Vec::new();
    let mut both = |flag: &str, value: &str| {
        args.extend(words(&[&format!("--{flag}"), value, &format!("--server-{flag}"), value]));
    };
    both("scheduler", endpoints.scheduler.name());
    both("ack-path", endpoints.ack_path);
    both("reinjection", endpoints.reinjection);
    if let Some(congestion) = &endpoints.congestion {
        both("cc", congestion.name());
    }
    args.extend(words(&["--path-policy", endpoints.path_policy]));
    args
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
