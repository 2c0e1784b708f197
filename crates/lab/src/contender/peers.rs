//! Stacks of others whose programs are built apart from this one, in `bench/peers`: quinn on the initial path, noq on all.
//!
//! The folder with the programs is named by the variable `PLAIT_PEERS`, or is `bench/peers/target/release` below the
//! current one. They do the loads `lab-...` of `bench/peers/common/src/lab.rs`, and say what came of them as `plait perf` does.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use plait_sim::host::app::Load;
use plait_sim::scenario::Scenario;
use serde_json::Value;

use super::{Contender, perf};
use crate::clock::ClockPoint;
use crate::machine::Machine;
use crate::run::{Answer, ClientOutput, Completion, Program, Ready, RunFailure, Wiring, Work};

/// The variable that names the folder of the programs.
pub(super) const FOLDER: &str = "PLAIT_PEERS";
/// Where they are after `cargo build --release --manifest-path bench/peers/Cargo.toml`.
const USUAL_FOLDER: &str = "bench/peers/target/release";
/// Paths of a connection.
const PATHS: &str = "8";
/// Silence after which noq gives a path up: with its own settings it never does, and a handover never ends.
const NOQ_PATH_IDLE_MS: &str = "1500";

/// Where a program of others is.
pub(super) fn program(name: &str) -> PathBuf {
    let folder = std::env::var_os(FOLDER).map_or_else(|| PathBuf::from(USUAL_FOLDER), PathBuf::from);
    let file = folder.join(name);
    // Programs are started by another program, with a folder of its own.
    file.canonicalize().unwrap_or(file)
}

/// A stack of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Foreign {
    Quinn,
    Noq,
}

impl Foreign {
    fn program(self) -> PathBuf {
        program(match self {
            Self::Quinn => "peer-quinn",
            Self::Noq => "peer-noq",
        })
    }

    fn set(self, work: &Work, program: Program) -> Program {
        let window = work.endpoints.receive_window_bytes.min(u64::from(u32::MAX)).to_string();
        let limit = perf::own_limit(work).as_millis().to_string();
        let program = program.env("PEER_WINDOW", window).env("PEER_LIMIT_MS", limit);
        match self {
            Self::Quinn => program,
            Self::Noq => program.env("PEER_PATHS", PATHS).env("PEER_PATH_IDLE_MS", NOQ_PATH_IDLE_MS),
        }
    }
}

impl Contender for Foreign {
    fn name(&self) -> &str {
        match self {
            Self::Quinn => "quinn",
            Self::Noq => "noq",
        }
    }

    fn about(&self) -> &str {
        match self {
            Self::Quinn => "quinn: QUIC over the initial path, CUBIC",
            Self::Noq => "noq: Multipath QUIC (RFC 10069), all paths, CUBIC",
        }
    }

    fn is_multipath(&self) -> bool {
        *self == Self::Noq
    }

    fn availability(&self, _machine: &Machine) -> Result<(), String> {
        let program = self.program();
        match program.is_file() {
            true => Ok(()),
            false => Err(format!(
                "there is no {}; `cargo build --release --manifest-path bench/peers/Cargo.toml` makes it, {FOLDER} names \
                 its folder",
                program.display()
            )),
        }
    }

    fn accepts(&self, scenario: &Scenario, _wiring: Wiring) -> Result<(), String> {
        match scenario.load {
            Load::DownloadFor { .. } => Err("its program has no download that ends by time".to_owned()),
            Load::Download { .. } | Load::Upload { .. } | Load::Requests { .. } => Ok(()),
        }
    }

    fn prepare(&self, _hosts: Option<&crate::host::Hosts>, work: &Work) -> Result<(), crate::LabError> {
        super::identity::write(&work.files)
    }

    fn server(&self, work: &Work) -> Program {
        let files = super::identity::files(&work.files);
        let program =
            Program::new(self.program(), [std::ffi::OsString::from("server"), files.0.into(), files.1.into()]);
        let address = work.listen;
        self.set(work, program).env("PEER_LISTEN", address.to_string()).ready(Ready::Udp(address.port()))
    }

    fn client(&self, work: &Work) -> Program {
        let (cert, _) = super::identity::files(&work.files);
        let mut args = vec!["client".into(), cert.into_os_string(), work.initial().server.to_string().into()];
        let load = match work.load {
            Load::Download { bytes } => format!("lab-download {bytes}"),
            Load::Upload { bytes } => format!("lab-upload {bytes}"),
            Load::Requests { request_bytes, response_bytes, interval, count } => {
                format!("lab-requests {count} {request_bytes} {response_bytes} {}", interval.as_millis())
            }
            // Refused before.
            Load::DownloadFor { .. } => String::new(),
        };
        args.extend(load.split(' ').map(Into::into));
        let paths = if self.is_multipath() { usize::MAX } else { 1 };
        let locals: Vec<String> = work.ways_in_order().take(paths).map(|way| way.client.to_string()).collect();
        self.set(work, Program::new(self.program(), args)).env("PEER_LOCALS", locals.join(","))
    }

    fn outcome(&self, work: &Work, output: &ClientOutput) -> Result<Answer, RunFailure> {
        let said: Value = serde_json::from_str(output.last_line()).map_err(|_| RunFailure::of_client(work, output))?;
        let finished = said["clock"]["finished_s"].as_f64().and_then(ClockPoint::from_seconds);
        let completion = Completion::At(finished.ok_or_else(|| RunFailure::Nonsense("no time in it".to_owned()))?);
        let handshake = said["handshake_ms"].as_f64().map(|ms| Duration::from_secs_f64(ms.max(0.0) / 1e3));
        let bytes = said["bytes"].as_u64().unwrap_or_default();
        let notes = BTreeMap::from([("congestion".to_owned(), "cubic".to_owned())]);
        Ok(Answer { bytes, completion, handshake, requests: perf::exchanges(&said), paths: Vec::new(), notes })
    }
}
