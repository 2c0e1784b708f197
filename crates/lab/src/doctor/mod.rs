//! `plait lab doctor`: what this machine can do, and who can be compared on it.

mod accuracy;

use std::sync::atomic::AtomicBool;

pub use accuracy::Accuracy;
pub(crate) use accuracy::measured_mbps;

use crate::contender;
use crate::error::LabError;
use crate::machine::{Having, Machine};
use crate::scratch::Scratch;

/// A line of the doctor's table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// `machine` or `contender`.
    pub kind: &'static str,
    /// What was looked for.
    pub name: String,
    /// What was found; where something is missing, what to do.
    pub found: Result<String, String>,
}

impl Finding {
    fn new(kind: &'static str, name: &str, found: Result<String, String>) -> Self {
        Self { kind, name: name.to_owned(), found }
    }

    fn of(name: &str, having: &Having, yes: &str) -> Self {
        Self::new("machine", name, having.clone().map(|()| yes.to_owned()))
    }
}

/// What real-time programs leave for all else, though they never rest.
fn left_for_others(machine: &Machine) -> Result<String, String> {
    let share = machine.real_time_share.filter(|share| *share < 1.0);
    let told = share
        .map(|share| format!("{:.0} % of the time, however busy programs in real time are", (1.0 - share) * 100.0));
    told.ok_or("nothing while programs in real time never rest; sysctl -w kernel.sched_rt_runtime_us=950000".to_owned())
}

/// Looks at the machine and at every contender, from inside the laboratory's own namespaces.
pub fn look() -> Vec<Finding> {
    let machine = Machine::look();
    let mut findings = vec![
        Finding::new("machine", "kernel", Ok(machine.kernel.clone())),
        Finding::new("machine", "cores", Ok(machine.cores.to_string())),
        Finding::of("TUN devices", &machine.tun, "/dev/net/tun opens"),
        Finding::of("MPTCP", &machine.mptcp, "version 1, endpoints can be set"),
        Finding::of("real time", &machine.real_time, "SCHED_FIFO for the links, SCHED_RR below it for programs"),
        Finding::new("machine", "left for others", left_for_others(&machine)),
        Finding::of("netem", &machine.netem, "the kernel has it; links are made by the laboratory itself"),
        Finding::new("machine", "TCP controllers", Ok(machine.tcp_controllers.join(" "))),
    ];
    for contender in contender::all() {
        let found = contender.availability(&machine).map(|()| contender.about().to_owned());
        findings.push(Finding::new("contender", contender.name(), found));
    }
    findings
}

/// Measures how exact the links are on this machine, from inside the laboratory's own namespaces; `on` hears of each rate.
/// Takes half a minute.
///
/// # Errors
/// The hosts cannot be built, or it was told to stop.
pub fn measure(stop: &AtomicBool, on: impl FnMut(&Accuracy)) -> Result<(), LabError> {
    accuracy::measure(Scratch::make()?.path(), stop, on)
}
