//! How the kernel schedules the programs of contenders.

use crate::emulator;
use crate::machine::Machine;

/// The priority of programs among real-time threads: the least that there is. What measures the loop is above them, and so is
/// the loop itself, which takes the processor from a program whenever a packet is due.
const PRIORITY: &str = "1";
const _: () = assert!(emulator::PRIORITY > 1, "the loop is above the programs");

/// How the kernel schedules the programs of contenders.
///
/// Real hosts have processors of their own. Here programs of both ends share a few cores with all else that runs, and an
/// ordinary one that has had its slice stands still for milliseconds: a pause that no network has, and that a short queue
/// punishes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CpuScheduling {
    /// In real time (SCHED_RR), below the loop and above whatever is ordinary; threads that a program starts are too.
    #[default]
    RoundRobin,
    /// As the laboratory itself is scheduled.
    Inherited,
}

impl CpuScheduling {
    /// The word for it on the command line and in rows.
    pub fn name(self) -> &'static str {
        match self {
            Self::RoundRobin => "rr",
            Self::Inherited => "inherit",
        }
    }

    /// What it is on this machine; where that allows no real time also a line that says so, and why.
    pub(crate) fn on(self, machine: &Machine) -> (Self, Option<String>) {
        match (self, &machine.real_time) {
            (Self::RoundRobin, Err(why)) => {
                (Self::Inherited, Some(format!("programs run at the priority of plait lab itself: {why}")))
            }
            _ => (self, None),
        }
    }

    /// The words in front of a program that is to be started so.
    pub(super) fn front(self) -> &'static [&'static str] {
        match self {
            Self::RoundRobin => &["chrt", "--rr", PRIORITY],
            Self::Inherited => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_machine_does_not_allow_is_inherited_and_it_says_why() {
        let allowed = Machine { real_time: Ok(()), ..Machine::look() };
        let not = Machine { real_time: Err("not here".to_owned()), ..Machine::look() };
        assert_eq!(CpuScheduling::RoundRobin.on(&allowed), (CpuScheduling::RoundRobin, None));
        let said = "programs run at the priority of plait lab itself: not here".to_owned();
        assert_eq!(CpuScheduling::RoundRobin.on(&not), (CpuScheduling::Inherited, Some(said)));
        assert_eq!(CpuScheduling::Inherited.on(&not), (CpuScheduling::Inherited, None));
    }
}
