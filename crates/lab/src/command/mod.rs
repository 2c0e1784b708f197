//! `plait lab run`: a scenario file, with one contender after the other.

mod page;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plait_sim::Policies;
use plait_sim::campaign::store::stamp_of;
use plait_sim::campaign::{Campaign, CampaignError, Row, Shard, Store, hash_of};
use plait_sim::command::{CommandError, Pictures, plan, write_page};

use crate::contender::Contender;
use crate::error::LabError;
use crate::machine::Machine;
use crate::run::{self, Bench, CpuScheduling, Wiring, sum_mbps};
use crate::scratch::Scratch;
use crate::{contender, doctor};

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
    /// What lies between clients and servers.
    pub wiring: Wiring,
    /// How contenders' programs are scheduled, where the machine allows it.
    pub scheduling: CpuScheduling,
    /// Where rows and a report go, and what becomes of the report's plots besides; with none the rows are told alone.
    pub out: Option<(PathBuf, Pictures)>,
    /// Where our own programs write qlog, a folder for each run.
    pub qlog: Option<PathBuf>,
    /// What results belong to.
    pub commit: String,
}

/// What came of all runs.
#[derive(Clone, Debug)]
pub struct LabRuns {
    /// A row each.
    pub rows: Vec<LabRow>,
    /// The files that were written.
    pub files: Vec<PathBuf>,
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

/// How far it is.
#[derive(Clone, Copy, Debug)]
pub enum RunStep<'a> {
    /// A line that says that programs get no real-time priority here, and why.
    Inherited(&'a str),
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

/// Runs a scenario file: every point of its sweep, every seed, every contender in turn; what a folder has of it already is
/// not done again. `on` hears how far it is.
///
/// # Errors
/// The file is wrong or not of this world, a contender is not to be had here, or it was told to stop.
pub fn run(request: &LabRunRequest, stop: &AtomicBool, mut on: impl FnMut(RunStep<'_>)) -> Result<LabRuns, LabError> {
    let campaign = plan(&request.file, &request.sets, request.seeds, &Policies::default())?;
    let contenders = contender::by_names(&request.contenders)?;
    let (machine, scratch) = (Machine::look(), Scratch::make()?);
    let (scheduling, note) = request.scheduling.on(&machine);
    note.iter().for_each(|note| on(RunStep::Inherited(note)));
    if scratch.swept > 0 {
        on(RunStep::Swept(scratch.swept));
    }
    check(&campaign, &contenders, &machine, request.wiring)?;
    let total = campaign.jobs.len() * contenders.len();
    let open = |(out, _): &(PathBuf, Pictures)| {
        Store::with_stamp(out, stamp_of(request.hash(&campaign, scheduling), total, &request.commit), Shard::WHOLE)
    };
    let store = request.out.as_ref().map(open).transpose()?;
    let mut kept = store.as_ref().map(Store::load).transpose()?.unwrap_or_default();
    // Programs on the hosts may have another current folder.
    let absolute = |qlog: &PathBuf| std::path::absolute(qlog).map_err(LabError::file(qlog));
    let qlogs = request.qlog.as_ref().map(absolute).transpose()?;
    let mut rows = Vec::new();
    for job in &campaign.jobs {
        let mut scenario = campaign.scenario(job).map_err(LabError::Scenario)?;
        scenario.time_limit = scenario.time_limit.min(request.time_limit);
        if sum_mbps(&scenario) > doctor::measured_mbps() {
            on(RunStep::Beyond(sum_mbps(&scenario)));
        }
        for contender in &contenders {
            if let Some(row) = kept.remove(&rows.len()) {
                rows.push(LabRow::of(row));
                continue;
            }
            let files = scratch.path().join(format!("run-{}", rows.len()));
            let qlog = qlogs.as_ref().map(|qlogs| qlogs.join(format!("run-{}", rows.len())));
            let (wiring, qlog) = (request.wiring, qlog.as_deref());
            let bench = Bench { machine: &machine, wiring, scheduling, files: &files, qlog, stop };
            let ran = run::run(&scenario, job.seed, contender.as_ref(), &bench);
            let ran =
                ran.map_err(|error| if store.is_some() { interrupted(error, rows.len(), total) } else { error })?;
            let mut row = campaign.row(job, &request.commit, &ran.told(&scenario)).map_err(LabError::Scenario)?;
            row.index = rows.len();
            row.cells.iter_mut().filter(|(name, _)| name == "run").for_each(|(_, run)| *run = rows.len().to_string());
            row.cells.insert(1, (CONTENDER.to_owned(), contender.name().to_owned()));
            ran.note(&scenario, &mut row);
            store.as_ref().map(|store| store.keep(&row)).transpose()?;
            rows.push(LabRow::of(row));
            rows.last().into_iter().for_each(|found| on(RunStep::Run(found)));
        }
    }
    let mut files = Vec::new();
    if let (Some(store), Some((out, pictures))) = (&store, &request.out) {
        let plain: Vec<Row> = rows.iter().map(|found| found.row.clone()).collect();
        files.push(store.write(&plain)?);
        files.extend(write_page(out, "report", &page::page(&campaign.name, &plain, &machine), *pictures)?);
    }
    Ok(LabRuns { rows, files })
}

/// Checks every point of the sweep with every contender, so that nothing is refused when others have run already.
fn check(
    campaign: &Campaign,
    contenders: &[Box<dyn Contender>],
    machine: &Machine,
    wiring: Wiring,
) -> Result<(), LabError> {
    let mut before = None;
    for job in &campaign.jobs {
        if before.replace(&job.settings) == Some(&job.settings) {
            continue;
        }
        let scenario = campaign.scenario(job).map_err(LabError::Scenario)?;
        contenders.iter().try_for_each(|one| run::check(&scenario, one.as_ref(), machine, wiring))?;
    }
    Ok(())
}

/// The column of the contender's name.
const CONTENDER: &str = "contender";

/// What was done is kept.
fn interrupted(error: LabError, done: usize, total: usize) -> LabError {
    match error {
        LabError::Stopped => CampaignError::Interrupted { done, total, kept: true }.into(),
        error => error,
    }
}

impl LabRow {
    fn of(row: Row) -> Self {
        let contender = row.cell(CONTENDER).unwrap_or_default().to_owned();
        Self { contender, is_late: row.cell("lab_is_late") == Some("yes"), row }
    }
}

impl LabRunRequest {
    /// Of everything that decides the results but the program.
    fn hash(&self, campaign: &Campaign, scheduling: CpuScheduling) -> u64 {
        let more = format!("{:?} {:?} {}", self.wiring, self.time_limit, scheduling.name());
        let more = [more, campaign.hash().to_string()];
        hash_of(self.contenders.iter().cloned().chain(more))
    }
}
