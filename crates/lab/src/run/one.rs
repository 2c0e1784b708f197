//! One run from its beginning to its end.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plait_sim::run::network::Traffic;
use plait_sim::scenario::Scenario;

use super::beside::Beside;
use super::process::Started;
use super::wiring::Site;
use super::{Answer, Bench, Completion, CpuScheduling, RunFailure, Wiring, Work, unreal};
use crate::contender::Contender;
use crate::emulator::{CrossCount, Emulator, LinkRecord};
use crate::error::LabError;
use crate::host::{Family, Hosts, Layout, PathEnds};
use crate::machine::Machine;
use crate::relay::Relay;

/// A run whose packets were handed over later than this, 1 in 100 of them, says more about the machine than about a stack.
const LATE: Duration = Duration::from_millis(1);

/// One packet that was so late may have cost a time-out.
const LATE_ONCE: Duration = Duration::from_millis(10);

/// How late packets were handed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lateness {
    /// Half of them no later than this.
    pub(crate) p50: Duration,
    /// All but one in a hundred.
    pub(crate) p99: Duration,
    /// The latest of all.
    pub(crate) max: Duration,
}

/// What came of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ran {
    /// What the contender said, or why it failed.
    pub(crate) result: Result<Answer, RunFailure>,
    /// From the first packet that the emulator saw to the last byte at the client; the time limit of a run that failed.
    pub(crate) elapsed: Duration,
    /// What each link carried, in the order of places.
    pub(crate) traffic: Vec<Traffic>,
    /// What each stream of cross traffic did, in the order of the scenario.
    pub(crate) crossed: Vec<CrossCount>,
    /// How late the emulator was.
    pub(crate) lateness: Lateness,
    /// True when the machine was too busy for the run to count: one packet in a hundred was more than 1 ms late, or any
    /// more than 10 ms, or lost on its way into a host.
    pub(crate) is_late: bool,
    /// Whether the loop had real-time priority.
    pub(crate) real_time: bool,
    /// What lay between client and server.
    pub(crate) wiring: Wiring,
    /// How the programs were scheduled.
    pub(crate) scheduling: CpuScheduling,
}

/// The run's folder, which goes with it.
struct Folder(PathBuf);

impl Folder {
    fn make(path: &Path) -> Result<Self, LabError> {
        fs::create_dir_all(path).map_err(LabError::file(path))?;
        Ok(Self(path.to_owned()))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left lies in the laboratory's scratch folder, which goes too.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Checks that a scenario can be done in real time, and by a contender.
///
/// # Errors
/// The scenario is not of this world, or the contender cannot be run here or cannot do it.
pub(crate) fn check(
    scenario: &Scenario,
    contender: &dyn Contender,
    machine: &Machine,
    wiring: Wiring,
) -> Result<(), LabError> {
    unreal::check(scenario, wiring)?;
    let able = contender.availability(machine).and_then(|()| contender.accepts(scenario, wiring));
    able.map_err(|why| LabError::Unavailable { name: contender.name().to_owned(), why })
}

/// Runs a scenario with a contender once. May be called from several threads at once.
///
/// # Errors
/// Hosts or relay cannot be built, the scenario is not of this world, or it was told to stop. What goes wrong with the
/// contender is a result.
pub(crate) fn run(
    scenario: &Scenario,
    seed: u64,
    contender: &dyn Contender,
    bench: &Bench<'_>,
) -> Result<Ran, LabError> {
    check(scenario, contender, bench.machine, bench.wiring)?;
    let folder = Folder::make(bench.files)?;
    bench.qlog.map_or(Ok(()), |qlog| fs::create_dir_all(qlog).map_err(LabError::file(qlog)))?;
    let stand = Stand { scenario, seed, contender, bench, folder: &folder.0 };
    let played = match bench.wiring {
        Wiring::Namespaces(family) => stand.between_hosts(family),
        Wiring::Relay => stand.through_relay(),
    };
    // A terminal interrupts the tools that make hosts too: that they failed says nothing then.
    if bench.stop.load(Ordering::Relaxed) {
        return Err(LabError::Stopped);
    }
    let (result, record) = played?;
    Ok(judge(result, record, bench, scenario.time_limit))
}

/// A run that is about to be done.
struct Stand<'a> {
    scenario: &'a Scenario,
    seed: u64,
    contender: &'a dyn Contender,
    bench: &'a Bench<'a>,
    folder: &'a Path,
}

/// What the contender said, and what the loop saw.
type Played = (Result<Answer, RunFailure>, LinkRecord);

impl Stand<'_> {
    fn work(&self, ways: Vec<PathEnds>, listen: SocketAddr) -> Work {
        Work {
            load: self.scenario.load,
            ways,
            listen,
            endpoints: self.scenario.endpoints.clone(),
            files: self.folder.to_owned(),
            qlog: self.bench.qlog.map(Path::to_owned),
            time_limit: self.scenario.time_limit,
        }
    }

    fn between_hosts(&self, family: Family) -> Result<Played, LabError> {
        let layout = Layout::of(self.scenario, family);
        let (hosts, devices) = Hosts::build(&layout, self.folder)?;
        let work = self.work(hosts.ways.clone(), hosts.listen);
        self.contender.prepare(Some(&hosts), &work)?;
        let emulator = Emulator::start(self.scenario, self.seed, devices)?;
        let sites = (Site::Host(&hosts.client), Site::Host(&hosts.server));
        let beside = Beside::all(self.scenario, self.bench, &hosts, self.folder);
        let result = beside
            .and_then(|beside| with_others(&beside, &emulator, || play(sites, self.contender, &work, self.bench)));
        Ok((result, emulator.stop()))
    }

    fn through_relay(&self) -> Result<Played, LabError> {
        Site::check_here()?;
        let relay = Relay::open(self.scenario.paths.len(), self.scenario.endpoints.handshake.initial_path)?;
        let work = self.work(relay.ways(), relay.server());
        self.contender.prepare(None, &work)?;
        let emulator = Emulator::start(self.scenario, self.seed, relay)?;
        let result = play((Site::Here, Site::Here), self.contender, &work, self.bench);
        Ok((result, emulator.stop()))
    }
}

/// Does a transfer while others do theirs; it counts only if none of them failed.
fn with_others(
    others: &[Beside<'_>],
    emulator: &Emulator,
    transfer: impl FnOnce() -> Result<Answer, RunFailure>,
) -> Result<Answer, RunFailure> {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let running: Vec<_> = others.iter().map(|one| scope.spawn(|| one.run(emulator, &is_over))).collect();
        let result = transfer();
        is_over.store(true, Ordering::Relaxed);
        let ends = running.into_iter().filter_map(|one| one.join().ok());
        ends.collect::<Result<Vec<()>, _>>().and(result)
    })
}

/// Server up, client to its end, server down.
fn play(
    (client, server): (Site<'_>, Site<'_>),
    contender: &dyn Contender,
    work: &Work,
    bench: &Bench<'_>,
) -> Result<Answer, RunFailure> {
    let program = contender.server(work);
    let site = server;
    let mut server = Started::start(site, bench.scheduling, &program)?;
    server.wait_ready(site, &program.ready, bench.stop)?;
    let client = Started::start(client, bench.scheduling, &contender.client(work))?;
    let output = client.wait(work.time_limit, &server, bench.stop);
    let answer = match output.timed_out {
        true => Err(RunFailure::TimeLimit(work.time_limit)),
        false => contender.outcome(work, &output),
    };
    answer.map_err(|failure| server.explain(failure))
}

/// Reads the clocks.
fn judge(result: Result<Answer, RunFailure>, record: LinkRecord, bench: &Bench<'_>, time_limit: Duration) -> Ran {
    let lateness = Lateness {
        p50: record.lateness.quantile(0.5),
        p99: record.lateness.quantile(0.99),
        max: record.lateness.most(),
    };
    let is_late = lateness.p99 > LATE || lateness.max > LATE_ONCE || record.refused > 0;
    let (traffic, crossed, real_time) = (record.traffic, record.crossed, record.real_time);
    let elapsed = |answer: &Answer| match (answer.completion, record.first) {
        (Completion::At(at), Some(first)) => Some(at.since(first)),
        (Completion::LastPacket, Some(first)) => Some(record.last_payload?.since(first)),
        (_, None) => None,
    };
    let nothing = || RunFailure::Nonsense("it says it is done, and no packet was seen".to_owned());
    let timed = result.and_then(|answer| elapsed(&answer).map(|took| (answer, took)).ok_or_else(nothing));
    let (result, elapsed) = match timed {
        Ok((answer, elapsed)) => (Ok(answer), elapsed),
        Err(failure) => (Err(failure), time_limit),
    };
    let (wiring, scheduling) = (bench.wiring, bench.scheduling);
    Ran { result, elapsed, traffic, crossed, lateness, is_late, real_time, wiring, scheduling }
}
