//! Campaigns in real time: the papers' figures with kernels' stacks and others' beside ours.
//!
//! A figure is a list of networks with a transfer each (`setup`), every contender from every initial path, some
//! repetitions (`plan`). Runs are done in an order that a seed draws, so that contenders take turns; side by side as far
//! as `room` allows, each row kept as it comes (`doing`). Rows are those of the simulator (`row`), and so are plots and pages
//! (`report`).

mod doing;
mod plan;
mod report;
mod results;
mod room;
mod row;
mod setup;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plait_sim::command::{Pictures, write_page};
use plait_sim::figures::{self, Figure, FigureFiles};

use crate::error::LabError;
use crate::machine::Machine;
use crate::run::CpuScheduling;
use crate::scratch::Scratch;
use doing::Doing;
use plan::{Missing, Plan, Wanted};
use results::Results;
use setup::Setup;

/// How a figure is made.
pub struct LabFigureRequest<'a> {
    /// Points of a design, instead of the usual number.
    pub points: Option<usize>,
    /// Runs of each combination, instead of the usual number.
    pub repetitions: Option<usize>,
    /// Names of contenders, instead of the usual ones: then each must be there.
    pub contenders: Option<Vec<String>>,
    /// Settings over those of the figure, as `key=value`.
    pub sets: Vec<String>,
    /// Whether runs are done, or only told of.
    pub runs: RunsWanted,
    /// How contenders' programs are scheduled, where the machine allows it.
    pub scheduling: CpuScheduling,
    /// Seed of the order of runs.
    pub seed: u64,
    /// Runs side by side at most.
    pub jobs: usize,
    /// What the emulator may carry in sum, Mbit/s; a run with more has the machine for itself.
    pub budget_mbps: f64,
    /// What a real host takes from a datagram to its turn: the simulator is also asked with such hosts.
    pub host_turn: Duration,
    /// Where rows and report go.
    pub out: Option<PathBuf>,
    /// What becomes of the plots besides the page.
    pub pictures: Pictures,
    /// What results belong to.
    pub commit: String,
    /// Set it to end early.
    pub stop: &'a AtomicBool,
    /// Hears of the part, runs done and runs in all.
    pub progress: &'a (dyn Fn(&str, usize, usize) + Sync),
}

/// Whether runs are done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunsWanted {
    /// All that are not there yet.
    #[default]
    All,
    /// None: the report is of those that are there.
    SoFar,
}

/// A figure that can be made.
struct Kind {
    name: &'static str,
    title: &'static str,
    contenders: &'static [&'static str],
    repetitions: usize,
    /// Points of its design; 1 where it has none.
    points: usize,
    /// Each run beside others and alone.
    twice: bool,
    setups: fn(usize) -> Vec<Setup>,
    report: fn(&Results<'_>) -> Figure,
}

const FAMILIES: &[&str] = &["plait", "plait-single", "mptcp", "tcp"];
const MULTIPATH: &[&str] = &["plait", "plait-single", "mptcp", "noq"];

/// Bytes of the short download.
const SHORT_BYTES: u64 = 256_000;

/// Every figure that there is, in the order of the list.
const KINDS: &[Kind] = &[
    Kind {
        name: "handover",
        title: "CoNEXT'17 Fig. 11 in real time: the initial path dies under requests",
        contenders: &["plait", "mptcp", "noq", "tcp"],
        repetitions: 5,
        points: 1,
        twice: false,
        setups: |_| setup::handover(),
        report: report::handover,
    },
    Kind {
        name: "satellite",
        title: "Multiflow QUIC Fig. 4 in real time: a very asymmetric second path",
        contenders: &["plait", "plait:extension=multiflow", "plait-single", "mptcp", "tcp", "noq"],
        repetitions: 5,
        points: 1,
        twice: false,
        setups: |_| setup::satellite(),
        report: report::satellite,
    },
    Kind {
        name: "asymmetric",
        title: "Multiflow QUIC Fig. 5 in real time: paths that differ both ways",
        contenders: &["plait", "plait:extension=multiflow", "plait-single", "mptcp", "tcp"],
        repetitions: 3,
        points: 24,
        twice: false,
        setups: setup::asymmetric,
        report: report::asymmetric,
    },
    Kind {
        name: "low-bdp-no-loss",
        title: "CoNEXT'17 Figs. 3 and 4 in real time: low BDP, no loss",
        contenders: FAMILIES,
        repetitions: 3,
        points: 24,
        twice: false,
        setups: |points| setup::conext("low-bdp-no-loss", points, None),
        report: report::conext,
    },
    Kind {
        name: "low-bdp-loss",
        title: "CoNEXT'17 Figs. 5 and 6 in real time: low BDP, losses",
        contenders: FAMILIES,
        repetitions: 3,
        points: 24,
        twice: false,
        setups: |points| setup::conext("low-bdp-loss", points, None),
        report: report::conext,
    },
    Kind {
        name: "high-bdp-no-loss",
        title: "CoNEXT'17 Fig. 7 in real time: high BDP, no loss",
        contenders: FAMILIES,
        repetitions: 3,
        points: 24,
        twice: false,
        setups: |points| setup::conext("high-bdp-no-loss", points, None),
        report: report::conext,
    },
    Kind {
        name: "high-bdp-loss",
        title: "CoNEXT'17 Fig. 8 in real time: high BDP, losses",
        contenders: FAMILIES,
        repetitions: 3,
        points: 24,
        twice: false,
        setups: |points| setup::conext("high-bdp-loss", points, None),
        report: report::conext,
    },
    Kind {
        name: "short",
        title: "CoNEXT'17 Figs. 9 and 10 in real time: 256 KB, low BDP, no loss",
        contenders: FAMILIES,
        repetitions: 3,
        points: 24,
        twice: false,
        setups: |points| setup::conext("low-bdp-no-loss", points, Some(SHORT_BYTES)),
        report: report::conext,
    },
    Kind {
        name: "profiles",
        title: "Sixteen pairs of paths as hosts have them",
        contenders: MULTIPATH,
        repetitions: 3,
        points: 1,
        twice: false,
        setups: |_| setup::profiles(),
        report: report::profiles,
    },
    Kind {
        name: "mobility",
        title: "Wi-Fi fades, cellular stays, Wi-Fi returns",
        contenders: &["plait", "mptcp", "noq", "tcp"],
        repetitions: 3,
        points: 1,
        twice: false,
        setups: |_| setup::mobility(),
        report: report::mobility,
    },
    Kind {
        name: "company",
        title: "Runs beside others and alone: do they agree",
        contenders: &["plait", "mptcp"],
        repetitions: 1,
        points: 12,
        twice: true,
        setups: |points| setup::conext("low-bdp-no-loss", points, None),
        report: report::company,
    },
];

/// Every figure: name and what it shows.
pub fn list() -> impl Iterator<Item = (&'static str, &'static str)> {
    KINDS.iter().map(|kind| (kind.name, kind.title))
}

/// Makes a figure: does its runs, those that are there already not again, and writes the report.
///
/// # Errors
/// There is no such figure or contender, the machine refuses something, results cannot be written, or it was interrupted.
pub fn figure(name: &str, request: &LabFigureRequest<'_>) -> Result<FigureFiles, LabError> {
    let kind = KINDS.iter().find(|kind| kind.name == name).ok_or_else(|| {
        let names: Vec<_> = list().map(|(name, _)| name).collect();
        LabError::Usage(format!("there is no figure `{name}`; accepted: {}", names.join(", ")))
    })?;
    let machine = Machine::look();
    let usual = || kind.contenders.iter().map(|name| (*name).to_owned()).collect();
    let contenders: Vec<String> = request.contenders.clone().unwrap_or_else(usual);
    let missing = if request.contenders.is_some() { Missing::Refused } else { Missing::LeftOut };
    let repetitions = request.repetitions.unwrap_or(kind.repetitions);
    // Rows that are there are of the scheduling that they were asked for, whatever this machine allows.
    let (scheduling, note) = match request.runs {
        RunsWanted::All => request.scheduling.on(&machine),
        RunsWanted::SoFar => (request.scheduling, None),
    };
    let (twice, sets) = (kind.twice, request.sets.as_slice());
    let wanted = Wanted { contenders: &contenders, missing, repetitions, twice, sets, scheduling };
    let mut plan = Plan::new((kind.setups)(request.points.unwrap_or(kind.points)), &wanted, &machine)?;
    plan.notes.extend(note);
    let scratch = Scratch::make()?;
    let out = request.out.as_ref().map(|out| out.join(kind.name));
    let progress = |done, total| (request.progress)(kind.name, done, total);
    let doing = Doing {
        jobs: request.jobs,
        budget_mbps: request.budget_mbps,
        seed: request.seed,
        commit: &request.commit,
        out: out.as_deref(),
        scratch: scratch.path(),
        stop: request.stop,
        progress: &progress,
    };
    let rows = match (request.runs, &out) {
        (RunsWanted::SoFar, Some(out)) => plan.rows_so_far(out)?,
        (RunsWanted::SoFar, None) => return Err(LabError::Usage("runs so far are in a folder: --out DIR".into())),
        (RunsWanted::All, _) => plan.run(&doing, &machine)?,
    };
    let results = Results::new(&plan, &rows);
    let mut figure = (kind.report)(&results);
    let compare = report::Comparison { host_turn: request.host_turn, jobs: request.jobs, stop: request.stop };
    report::agreement(&results, &compare, &mut figure);
    report::circumstances(&results, &mut figure);
    let beside = rows.iter().filter_map(|row| row.number("lab_beside")).fold(0.0, f64::max);
    figure.notes.push(format!(
        "Linux {}, {} cores; {} of {} runs: {} setups, {repetitions} runs of each combination, medians of them, with up to \
         {beside} others beside them; the clock from the first packet to the last byte at the client's application",
        machine.kernel,
        machine.cores,
        rows.len(),
        plan.jobs.len(),
        plan.setups.len(),
    ));
    let mut files = Vec::new();
    if let Some(out) = &request.out {
        let page = figures::page(kind.title, None, &figure);
        files.extend(write_page(out, kind.name, &page, request.pictures)?);
    }
    Ok(FigureFiles { name: kind.name, title: kind.title, settings: None, figure, files })
}
