//! What the kernel has: TLS 1.3 over TCP on the initial path, or over MPTCP (RFC 8684) on all of them.
//!
//! Both ends are `plait perf` with its loads, so that the payload and the clock are those of plait's own runs. The congestion
//! control is named on each socket: a network namespace keeps the machine's default, which may be another. Linux has no
//! coupled controller for MPTCP: each subflow runs by itself. Buffers are set by [`crate::host::Namespace`].

use std::collections::BTreeMap;

use plait_sim::scenario::Scenario;

use super::{Contender, perf};
use crate::error::LabError;
use crate::host::Hosts;
use crate::machine::Machine;
use crate::run::{Answer, ClientOutput, Program, RunFailure, Wiring, Work};

/// Subflows of a connection, as many as Linux allows.
const SUBFLOWS_MAX: usize = 8;
/// Runs a program, then lets its namespace's counters follow on standard error.
const THEN_COUNTERS: &str = "\"$0\" \"$@\"; code=$?; cat /proc/net/netstat >&2; exit $code";
/// Connections that spoke MPTCP, and subflows that joined: counters of the client.
const CAPABLE: &str = "MPCapableSYNACKRX";
const JOINED: &str = "MPJoinSynAckRx";

/// TLS over a transport of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kernel {
    Tcp,
    Mptcp,
}

impl Kernel {
    fn flag(self) -> &'static str {
        match self {
            Self::Tcp => "--tcp",
            Self::Mptcp => "--mptcp",
        }
    }
}

/// The controller that stands in for what the scenario says: the kernel knows few of them.
fn congestion(work: &Work) -> &'static str {
    match work.endpoints.congestion.as_ref().map(|chosen| chosen.name()) {
        Some("newreno") => "newreno",
        Some("bbr") => "bbr",
        _ => "cubic",
    }
}

/// The same as the kernel calls it.
fn kernel_name(congestion: &str) -> &str {
    if congestion == "newreno" { "reno" } else { congestion }
}

impl Contender for Kernel {
    fn name(&self) -> &str {
        match self {
            Self::Tcp => "tcp",
            Self::Mptcp => "mptcp",
        }
    }

    fn about(&self) -> &str {
        match self {
            Self::Tcp => "TLS 1.3 over the kernel's TCP, initial path",
            Self::Mptcp => "TLS 1.3 over the kernel's MPTCP, all paths, full mesh",
        }
    }

    fn is_multipath(&self) -> bool {
        *self == Self::Mptcp
    }

    fn availability(&self, machine: &Machine) -> Result<(), String> {
        perf::availability()?;
        match self {
            Self::Tcp => Ok(()),
            Self::Mptcp => machine.mptcp.clone(),
        }
    }

    fn accepts(&self, scenario: &Scenario, wiring: Wiring) -> Result<(), String> {
        if wiring == Wiring::Relay {
            return Err(
                "the relay carries UDP alone; without --relay there are hosts with kernels of their own".to_owned()
            );
        }
        match self {
            Self::Mptcp if scenario.paths.len() > SUBFLOWS_MAX => Err(format!("Linux allows {SUBFLOWS_MAX} subflows")),
            Self::Tcp | Self::Mptcp => Ok(()),
        }
    }

    fn prepare(&self, hosts: Option<&Hosts>, work: &Work) -> Result<(), LabError> {
        let Some(hosts) = hosts.filter(|_| *self == Self::Mptcp) else { return Ok(()) };
        let limits = format!("mptcp limits set subflows {SUBFLOWS_MAX} add_addr_accepted {SUBFLOWS_MAX}");
        hosts.server.ip(&limits)?;
        hosts.client.ip(&limits)?;
        for way in &work.ways {
            hosts.client.ip(&format!("mptcp endpoint add {} dev {} subflow fullmesh", way.client, way.device))?;
        }
        Ok(())
    }

    fn server(&self, work: &Work) -> Program {
        perf::server(work, &[self.flag(), "--cc", congestion(work)])
    }

    fn client(&self, work: &Work) -> Program {
        let paths = [work.initial().client];
        let mut program = perf::client(work, &[self.flag(), "--cc", congestion(work)], paths);
        if *self == Self::Mptcp {
            let file = std::mem::replace(&mut program.file, "sh".into());
            let whole = ["-c".into(), THEN_COUNTERS.into(), file.into_os_string()];
            program.args = whole.into_iter().chain(program.args).collect();
        }
        program
    }

    fn outcome(&self, work: &Work, output: &ClientOutput) -> Result<Answer, RunFailure> {
        let counters = counters(&output.stderr);
        let count = |name: &str| counters.get(name).copied().unwrap_or_default();
        let mut outcome = perf::outcome(work, output)?;
        outcome.notes.insert("congestion".to_owned(), kernel_name(congestion(work)).to_owned());
        if *self == Self::Mptcp {
            if count(CAPABLE) == 0 {
                return Err(RunFailure::Strayed("the connection fell back to plain TCP".to_owned()));
            }
            outcome.notes.insert("subflows".to_owned(), (1 + count(JOINED)).to_string());
        }
        Ok(outcome)
    }
}

/// The counters of MPTCP in /proc/net/netstat: a line of names and one of numbers, both with the group's name in front.
fn counters(text: &str) -> BTreeMap<&str, u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("MPTcpExt:"));
    let (names, numbers) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let pairs = names.split_whitespace().zip(numbers.split_whitespace());
    pairs.filter_map(|(name, number)| Some((name, number.parse().ok()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_by_their_names() {
        let text = "TcpExt: SyncookiesSent X\nTcpExt: 1 2\nMPTcpExt: MPCapableSYNACKRX MPJoinSynAckRx\nMPTcpExt: 1 3\n";
        assert_eq!(counters(text), [(CAPABLE, 1), (JOINED, 3)].into());
        assert!(counters("nothing of it").is_empty());
    }
}
