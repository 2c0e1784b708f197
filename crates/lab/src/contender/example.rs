//! A contender of one's own, as small as there can be: `socat` over plain TCP, downloads alone.
//!
//! Everything that a stranger has to write is here; with a line in `all` of `mod.rs` it takes part in every figure.

use std::time::Duration;

use plait_sim::host::app::Load;
use plait_sim::scenario::Scenario;

use super::Contender;
use crate::machine::Machine;
use crate::run::{Answer, ClientOutput, Completion, Program, Ready, RunFailure, Wiring, Work};

/// Plain TCP, without TLS, by tools that every machine has.
#[derive(Debug)]
pub(super) struct Plain;

impl Contender for Plain {
    fn name(&self) -> &str {
        "plain"
    }

    fn about(&self) -> &str {
        "TCP without TLS, by socat"
    }

    fn is_multipath(&self) -> bool {
        false
    }

    fn availability(&self, _machine: &Machine) -> Result<(), String> {
        let found = std::process::Command::new("socat").arg("-V").output();
        found.map(|_| ()).map_err(|_| "there is no socat; install it".to_owned())
    }

    fn accepts(&self, scenario: &Scenario, wiring: Wiring) -> Result<(), String> {
        if wiring == Wiring::Relay {
            return Err("the relay carries UDP alone".to_owned());
        }
        if let Load::Download { .. } = scenario.load { Ok(()) } else { Err("it can only send files".to_owned()) }
    }

    fn server(&self, work: &Work) -> Program {
        let Load::Download { bytes } = work.load else { return Program::new("false", [""; 0]) };
        let port = work.listen.port();
        let listen = format!("TCP-LISTEN:{port},fork,reuseaddr");
        Program::new("socat", ["-U".to_owned(), listen, format!("SYSTEM:head -c {bytes} /dev/zero")])
            .ready(Ready::Tcp(port))
    }

    fn client(&self, work: &Work) -> Program {
        let from = format!("TCP:{},bind={}", work.initial().server, work.initial().client);
        Program::new("sh", ["-c", &format!("socat -u {from} - | wc -c")])
    }

    fn outcome(&self, work: &Work, output: &ClientOutput) -> Result<Answer, RunFailure> {
        let bytes: u64 = output.last_line().trim().parse().map_err(|_| RunFailure::of_client(work, output))?;
        let (completion, handshake) = (Completion::LastPacket, None::<Duration>);
        Ok(Answer { bytes, completion, handshake, requests: Vec::new(), paths: Vec::new(), notes: Default::default() })
    }
}
