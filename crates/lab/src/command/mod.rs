//! `plait lab run`: a scenario file, with one contender after the other.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plait_sim::Policies;
use plait_sim::campaign::Row;
use plait_sim::command::{CommandError, plan};
use plait_sim::scenario::{LinkPlan, PathPlan, Scenario};

use crate::contender;
use crate::error::LabError;
use crate::host::Family;
use crate::machine::Machine;
use crate::run::{self, Bench};
use crate::scratch::Scratch;

/// What is to be run.
#[derive(Clone, Debug)]
pub struct LabRunRequest {
    /// The scenario file.
    pub file: PathBuf,
    /// Settings over the file's, as `key=value`.
    pub sets: Vec<String>,
    /// Runs of each point and contender.
    pub seeds: u64,
    /// Who takes part, by name.
    pub contenders: Vec<String>,
    /// The longest that a run may take, where its scenario has no shorter limit.
    pub time_limit: Duration,
    /// Which addresses the hosts have.
    pub family: Family,
    /// What results belong to.
    pub commit: String,
}

/// What came of one run.
#[derive(Clone, Debug)]
pub struct LabRow {
    /// The name of the contender.
    pub contender: String,
    /// The columns of the simulator's row, and the laboratory's own behind them.
    pub row: Row,
    /// Whether the machine was too busy for it to count.
    pub is_late: bool,
}

/// What paths may have in sum on a machine of two cores, Mbit/s: the most that the doctor measures.
const MEASURED_MBPS: f64 = 200.0;

/// What the paths of a scenario carry in sum towards the client or towards the server, whichever is more, Mbit/s.
fn sum_mbps(scenario: &Scenario) -> f64 {
    let of = |way: fn(&PathPlan) -> &LinkPlan| -> f64 {
        scenario.paths.iter().filter_map(|path| way(path).rate.mean_bps()).map(|bps| bps as f64 / 1e6).sum()
    };
    of(|path| &path.own.up).max(of(|path| &path.own.down))
}

/// How far it is.
#[derive(Clone, Copy, Debug)]
pub enum RunStep<'a> {
    /// So many folders of laboratories that were killed have been taken away.
    Swept(usize),
    /// The paths carry more in sum, Mbit/s, than was ever measured to be exact.
    Beyond(f64),
    /// A run has ended.
    Run(&'a LabRow),
}

impl From<CommandError> for LabError {
    fn from(error: CommandError) -> Self {
        match error {
            CommandError::Campaign(campaign) => Self::Campaign(campaign),
            error => Self::Usage(error.to_string()),
        }
    }
}

/// Runs a scenario file: every point of its sweep, every seed, every contender in turn. `on` hears how far it is.
///
/// # Errors
/// The file is wrong or not of this world, a contender is not to be had here, or it was told to stop.
pub fn run(
    request: &LabRunRequest,
    stop: &AtomicBool,
    mut on: impl FnMut(RunStep<'_>),
) -> Result<Vec<LabRow>, LabError> {
    let campaign = plan(&request.file, &request.sets, request.seeds, &Policies::default())?;
    let contenders: Result<Vec<_>, _> = request.contenders.iter().map(|name| contender::by_name(name)).collect();
    let (contenders, machine, scratch) = (contenders?, Machine::look(), Scratch::make()?);
    if scratch.swept > 0 {
        on(RunStep::Swept(scratch.swept));
    }
    let mut rows = Vec::new();
    for job in &campaign.jobs {
        let mut scenario = campaign.scenario(job).map_err(LabError::Scenario)?;
        scenario.time_limit = scenario.time_limit.min(request.time_limit);
        if sum_mbps(&scenario) > MEASURED_MBPS {
            on(RunStep::Beyond(sum_mbps(&scenario)));
        }
        for contender in &contenders {
            let files = scratch.path().join(format!("run-{}", rows.len()));
            let bench = Bench { machine: &machine, family: request.family, files: &files, stop };
            let ran = run::run(&scenario, job.seed, contender.as_ref(), &bench)?;
            let mut row = campaign.row(job, &request.commit, &ran.told(&scenario)).map_err(LabError::Scenario)?;
            row.cells.insert(0, ("contender".to_owned(), contender.name().to_owned()));
            ran.note(&mut row);
            let found = LabRow { contender: contender.name().to_owned(), row, is_late: ran.is_late };
            on(RunStep::Run(&found));
            rows.push(found);
        }
    }
    Ok(rows)
}
