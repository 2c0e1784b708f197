//! Connections beside the transfer (`[[cross]]` of kind `flow`): each with two hosts of its own, on links of the scenario.
//!
//! At both ends runs what the simulator has there, our own stack over one path with the controller that the scenario names. A
//! server is ready before the transfer begins; its client starts when its time has come, counted as the scenario counts,
//! from the transfer's first packet, and is later by what a program takes to start.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plait_sim::Policies;
use plait_sim::host::app::Load;
use plait_sim::scenario::{CrossLoad, CrossPlan, Direction, Endpoints, Extension, Scenario};

use super::process::Started;
use super::wiring::Site;
use super::{Bench, CpuScheduling, RunFailure, Work};
use crate::clock::pause;
use crate::contender::{self, Contender};
use crate::emulator::Emulator;
use crate::host::{HostPair, Hosts, Namespace, PathEnds};

/// The stack at both ends.
const STACK: &str = "plait-single";
/// From one look at the clock to the next.
const LOOK: Duration = Duration::from_millis(1);

/// A connection, with its server running.
pub(super) struct Beside<'a> {
    label: &'a str,
    start: Duration,
    stop: Option<Duration>,
    stack: Box<dyn Contender>,
    work: Work,
    client: &'a Namespace,
    scheduling: CpuScheduling,
    /// It goes when this does.
    _server: Started,
}

impl<'a> Beside<'a> {
    /// Starts the servers of all connections of a scenario, with files of their own below `folder`.
    ///
    /// # Errors
    /// One does not start.
    pub(super) fn all(
        scenario: &'a Scenario,
        bench: &Bench<'_>,
        hosts: &'a Hosts,
        folder: &Path,
    ) -> Result<Vec<Self>, RunFailure> {
        let pairs = scenario.cross.iter().zip(&hosts.beside).filter_map(|(plan, pair)| Some((plan, pair.as_ref()?)));
        pairs.map(|(plan, pair)| Self::new(scenario, plan, pair, bench, folder)).collect()
    }

    fn new(
        scenario: &Scenario,
        plan: &'a CrossPlan,
        pair: &'a HostPair,
        bench: &Bench<'_>,
        folder: &Path,
    ) -> Result<Self, RunFailure> {
        let wrong = |said: String| RunFailure::NotStarted { program: format!("cross {}", plan.label), said };
        // Who receives calls, as in the simulator.
        let (receiver, sender) = match plan.direction {
            Direction::Down => (&pair.near, &pair.far),
            Direction::Up => (&pair.far, &pair.near),
        };
        let server = HostPair::listen(sender.1);
        let files = folder.join(&plan.label);
        std::fs::create_dir_all(&files).map_err(|error| wrong(format!("{}: {error}", files.display())))?;
        let work = Work {
            load: load(plan, scenario.time_limit),
            ways: vec![PathEnds { client: receiver.1, device: "c0".to_owned(), server }],
            listen: server,
            endpoints: endpoints(plan),
            files,
            qlog: None,
            time_limit: scenario.time_limit,
        };
        let stack = contender::by_name(STACK).map_err(|error| wrong(error.to_string()))?;
        let (site, program) = (Site::Host(&sender.0), stack.server(&work));
        let mut started = Started::start(site, bench.scheduling, &program)?;
        started.wait_ready(site, &program.ready, bench.stop)?;
        let (start, stop, scheduling) = (plan.start, plan.stop, bench.scheduling);
        Ok(Self { label: &plan.label, start, stop, stack, work, client: &receiver.0, scheduling, _server: started })
    }

    /// Lets the client run from its time on, until its own time is up or the transfer is over.
    ///
    /// # Errors
    /// It ended badly before.
    pub(super) fn run(&self, emulator: &Emulator, is_over: &AtomicBool) -> Result<(), RunFailure> {
        let time = || emulator.first().map(|first| crate::clock::ClockPoint::now().since(first));
        let mut client: Option<Started> = None;
        while !is_over.load(Ordering::Relaxed) && self.stop.is_none_or(|stop| time().is_none_or(|now| now < stop)) {
            match &mut client {
                None if time().is_some_and(|now| now >= self.start) => {
                    let program = self.stack.client(&self.work);
                    client = Some(Started::start(Site::Host(self.client), self.scheduling, &program)?);
                }
                None => {}
                Some(running) => match running.ended() {
                    Some(true) => return Ok(()),
                    Some(false) => {
                        let said = format!("the connection beside it, {}, ended: {}", self.label, running.complaint());
                        return Err(RunFailure::Strayed(said));
                    }
                    None => {}
                },
            }
            pause(LOOK);
        }
        Ok(())
    }
}

/// What a connection transfers: so many bytes, or as much as it can in its time.
fn load(plan: &CrossPlan, time_limit: Duration) -> Load {
    match (plan.load, plan.stop) {
        (CrossLoad::Flow { bytes: Some(bytes), .. }, _) => Load::Download { bytes },
        (_, Some(stop)) => Load::DownloadFor { duration: stop.saturating_sub(plan.start) },
        (_, None) => Load::DownloadFor { duration: time_limit },
    }
}

/// As the simulator's are.
fn endpoints(plan: &CrossPlan) -> Endpoints {
    let congestion = match plan.load {
        CrossLoad::Flow { congestion, .. } => Policies::default().controller(congestion),
        CrossLoad::Packets(_) => None,
    };
    Endpoints { extension: Extension::None, congestion, ..Endpoints::default() }
}

#[cfg(test)]
mod tests {
    use plait_sim::scenario::{Traces, Tree};

    use super::*;

    #[test]
    fn connections_beside_are_as_the_scenario_says() {
        let of = |more: &str| {
            let text = format!(
                "[[path]]\nrate_mbps = 1\n[transfer]\nkind = \"download\"\nbytes = 1\n[[cross]]\nkind = \"flow\"\npath = 0\n{more}"
            );
            let scenario = Scenario::read(&Tree::parse("t", &text).unwrap(), &Traces::default()).unwrap();
            let endpoints = endpoints(&scenario.cross[0]);
            let controller = endpoints.congestion.as_ref().map(|chosen| chosen.name());
            assert_eq!(endpoints.extension, Extension::None);
            (load(&scenario.cross[0], Duration::from_secs(60)), controller)
        };
        let lasting = |seconds| Load::DownloadFor { duration: Duration::from_secs(seconds) };
        assert_eq!(of("congestion = \"newreno\"\n"), (lasting(60), Some("newreno")));
        assert_eq!(of("start_s = 2\nstop_s = 5\n").0, lasting(3));
        assert_eq!(of("bytes = 7000\n").0, Load::Download { bytes: 7000 });
    }
}
