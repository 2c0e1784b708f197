//! picoquic, the stack of Christian Huitema: its own demonstration program at both ends, over all paths.
//!
//! `picoquicdemo` is built apart from this program and lies where those of `bench/peers` do (`PLAIT_PEERS`). It speaks `perf` of
//! draft-banks-quic-performance, and multipath by the code points of draft-ietf-quic-multipath-20 and later, which RFC 10069
//! kept. It tells no time of the clock that processes share, so that a download ends with the last packet that the links
//! handed over; an upload or requests at an interval cannot be timed so, and are refused.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use plait_sim::host::app::Load;
use plait_sim::scenario::Scenario;

use super::{Contender, identity, peers};
use crate::machine::Machine;
use crate::run::{Answer, ClientOutput, Completion, Program, Ready, RunFailure, Wiring, Work};

/// The file of the program.
const PROGRAM: &str = "picoquicdemo";
/// What a request has: its head alone, which says how much the answer has. With less its client waits for ever.
const REQUEST_BYTES: u64 = 8;
/// The name in the certificate.
const NAME: &str = "localhost";

/// `picoquicdemo` at both ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Picoquic;

fn program() -> PathBuf {
    peers::program(PROGRAM)
}

/// Flags of both ends: multipath, the controller, the window, and files that are the run's alone, so that no session is taken up
/// again.
fn flags(work: &Work, side: &str) -> Vec<OsString> {
    let mut flags: Vec<OsString> = ["-M", "-G", "cubic", "-Z"].map(Into::into).to_vec();
    flags.push(work.endpoints.receive_window_bytes.to_string().into());
    for (flag, what) in [("-T", "tickets"), ("-N", "tokens")] {
        flags.extend([flag.into(), work.files.join(format!("{side}-{what}")).into()]);
    }
    flags
}

/// What follows a word in what it said.
fn after<'a>(said: &'a str, word: &str) -> Option<&'a str> {
    said.lines().find_map(|line| line.trim().strip_prefix(word)).map(|rest| rest.trim().trim_end_matches('.'))
}

impl Contender for Picoquic {
    fn name(&self) -> &str {
        "picoquic"
    }

    fn about(&self) -> &str {
        "picoquic: Multipath QUIC (RFC 10069), all paths, CUBIC; downloads"
    }

    fn is_multipath(&self) -> bool {
        true
    }

    fn availability(&self, _machine: &Machine) -> Result<(), String> {
        let program = program();
        match program.is_file() {
            true => Ok(()),
            false => Err(format!(
                "there is no {}; build it from github.com/private-octopus/picoquic (cmake -S . -B build \
                 -DPICOQUIC_FETCH_PTLS=ON && cmake --build build --target {PROGRAM}) and put it there; {} names the folder",
                program.display(),
                peers::FOLDER,
            )),
        }
    }

    fn accepts(&self, scenario: &Scenario, _wiring: Wiring) -> Result<(), String> {
        match scenario.load {
            Load::Download { .. } => Ok(()),
            Load::Upload { .. } => Err("its program does not tell when an upload was done".to_owned()),
            Load::DownloadFor { .. } => Err("its program has no download that ends by time".to_owned()),
            Load::Requests { .. } => Err("its program has no requests at an interval".to_owned()),
        }
    }

    fn prepare(&self, _hosts: Option<&crate::host::Hosts>, work: &Work) -> Result<(), crate::LabError> {
        identity::write(&work.files)
    }

    fn server(&self, work: &Work) -> Program {
        let (cert, key) = identity::files(&work.files);
        let mut args: Vec<OsString> = vec!["-p".into(), work.listen.port().to_string().into()];
        args.extend(["-c".into(), cert.into(), "-k".into(), key.into()]);
        args.extend(flags(work, "server"));
        Program::new(program(), args).ready(Ready::Udp(work.listen.port()))
    }

    fn client(&self, work: &Work) -> Program {
        let mut args: Vec<OsString> = ["-n", NAME, "-a", "perf", "-D"].map(Into::into).to_vec();
        args.extend(flags(work, "client"));
        // The route to the server begins on the initial path. An interface of 0 leaves the way of each address to the routes.
        let others: Vec<String> = work.ways_in_order().skip(1).map(|way| format!("{}/0", way.client)).collect();
        if !others.is_empty() {
            args.extend(["-A".into(), others.join(",").into()]);
        }
        let server = work.initial().server;
        args.extend([server.ip().to_string().into(), server.port().to_string().into()]);
        let bytes = match work.load {
            Load::Download { bytes } => bytes,
            // Refused before.
            Load::Upload { .. } | Load::DownloadFor { .. } | Load::Requests { .. } => 0,
        };
        args.push(format!("{REQUEST_BYTES}:{bytes}").into());
        Program::new(program(), args)
    }

    fn outcome(&self, work: &Work, output: &ClientOutput) -> Result<Answer, RunFailure> {
        let said = &output.stdout;
        let Some(bytes) = after(said, "Download_bytes:").and_then(|count| count.parse::<u64>().ok()) else {
            // It complains on its standard output.
            let why = after(said, "Connection ends with").map(|why| format!("the connection ended with {why}"));
            let failed = |said| RunFailure::Client { code: output.code_name(), said };
            return Err(why.map_or_else(|| RunFailure::of_client(work, output), failed));
        };
        if let Load::Download { bytes: wanted } = work.load
            && bytes != wanted
        {
            return Err(RunFailure::Client {
                code: output.code_name(),
                said: format!("{bytes} bytes came, not {wanted}"),
            });
        }
        if work.ways.len() > 1 && after(said, "Enable multipath:") != Some("Success") {
            return Err(RunFailure::Strayed("multipath was not negotiated".to_owned()));
        }
        let mut notes = BTreeMap::from([("congestion".to_owned(), "cubic".to_owned())]);
        let own = after(said, "Connection_duration_sec:").map(str::to_owned);
        notes.extend(own.map(|seconds| ("own_seconds".to_owned(), seconds)));
        let (requests, paths) = (Vec::new(), Vec::new());
        Ok(Answer { bytes, completion: Completion::LastPacket, handshake: None, requests, paths, notes })
    }
}
