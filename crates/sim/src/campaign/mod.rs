//! Campaigns: many runs of one scenario over seeds and sweeps, on several threads, in an order that never varies.

pub mod merge;
pub mod qlog;
pub mod row;
pub mod store;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use plait_engine::crypto::Protection;

use crate::host::HostError;
use crate::policies::{Chosen, Policies};
use crate::run::outcome::Outcome;
use crate::run::{self, Watch};
use crate::scenario::read::SEED_MAX;
use crate::scenario::reader::Reader;
use crate::scenario::sweep::{Origins, Settings, Sweep, take_sweep};
use crate::scenario::{Endpoints, Extension, Scenario, ScenarioError, Traces, Tree};

pub use qlog::QlogFiles;
pub use row::Row;
pub use store::{Store, StoreError};

/// Runs of one campaign, at most: a list of them is kept.
const RUNS_MAX: u64 = 10_000_000;

/// One run of a campaign.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Its place in the campaign.
    pub index: usize,
    /// The point of the sweep, which all of its seeds share.
    pub settings: Arc<Settings>,
    /// The seed of the run.
    pub seed: u64,
}

/// All runs of one scenario file.
///
/// ```
/// use plait_sim::campaign::{Campaign, Doing, Shard};
/// use plait_sim::scenario::{Traces, Tree};
/// use std::sync::atomic::AtomicBool;
///
/// let text = r#"
/// [[path]]
/// rate_mbps = 10
/// rtt_ms = 20
/// [[path]]
/// rate_mbps = 5
/// rtt_ms = 40
/// [transfer]
/// kind = "download"
/// bytes = 50_000
/// [sweep]
/// endpoints.scheduler = ["minrtt", "round-robin"]
/// "#;
/// // Three seeds of each of two points, on two threads.
/// let campaign = Campaign::plan(Tree::parse("mine.toml", text)?, Traces::default(), 3)?;
/// let (stop, shard) = (AtomicBool::new(false), Shard::WHOLE);
/// let doing = Doing { threads: 2, shard, commit: "mine", stop: &stop, qlog: None, store: None, progress: &|_, _| {} };
/// let rows = campaign.run(&doing)?;
/// assert_eq!(rows.len(), 6);
/// assert!(rows.iter().all(|row| row.is_complete()));
/// assert_eq!(rows[5].cell("endpoints.scheduler"), Some("round-robin"));
/// # Ok::<(), plait_sim::campaign::CampaignError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Campaign {
    /// The scenario's name.
    pub name: String,
    /// The file without its sweep.
    tree: Tree,
    /// Where the values of the sweep were written.
    origins: Origins,
    traces: Traces,
    policies: Policies,
    /// The runs in order: points of the sweep first, seeds within.
    pub jobs: Vec<Job>,
}

/// Why a campaign could not be run.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// The scenario is wrong.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The hosts cannot be made.
    #[error(transparent)]
    Host(#[from] HostError),
    /// Results cannot be kept.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It was asked to stop.
    #[error(
        "interrupted after {done} of {total} runs; {}",
        if *kept { "the same command goes on from there" } else { "with --out DIR the same command would go on from there" }
    )]
    Interrupted {
        /// Runs with results.
        done: usize,
        /// Runs in all.
        total: usize,
        /// Whether there is a folder that keeps them.
        kept: bool,
    },
    /// A single run was asked to stop.
    #[error("interrupted before the run was done; it begins anew next time")]
    Stopped,
}

impl Campaign {
    /// Plans a campaign: `seeds` runs of every point of the sweep. Every point is checked before the first run.
    ///
    /// # Errors
    /// The scenario or its sweep is wrong.
    pub fn plan(tree: Tree, traces: Traces, seeds: u64) -> Result<Self, ScenarioError> {
        Self::plan_with(tree, traces, seeds, Policies::default())
    }

    /// As [`Campaign::plan`], with scenarios that may name any of `policies`.
    ///
    /// # Errors
    /// The scenario or its sweep is wrong.
    pub fn plan_with(mut tree: Tree, traces: Traces, seeds: u64, policies: Policies) -> Result<Self, ScenarioError> {
        let Sweep { points, origins } = take_sweep(&mut tree)?;
        let mut campaign = Self { name: String::new(), tree, origins, traces, policies, jobs: Vec::new() };
        let mut unused: Option<BTreeSet<usize>> = None;
        if (points.len() as u64).saturating_mul(seeds) > RUNS_MAX {
            let problem = format!("{seeds} seeds of each of {} points are more than {RUNS_MAX} runs", points.len());
            let accepted = "fewer in one campaign, and further ones from another `seed` on".to_owned();
            return Err(campaign.tree.complain("seed", problem, accepted));
        }
        for settings in points {
            let scenario = campaign.scenario_of(&settings)?;
            let links = scenario.unused_links();
            unused = Some(unused.map_or(links.clone(), |unused| &unused & &links));
            campaign.name.clone_from(&scenario.name);
            let first_max = SEED_MAX.saturating_sub(seeds.saturating_sub(1));
            if scenario.seed > first_max {
                let problem = format!("{} leaves no room for {seeds} seeds", scenario.seed);
                return Err(campaign.tree_of(&settings)?.complain("seed", problem, format!("0 to {first_max}")));
            }
            let settings = Arc::new(settings);
            for seed in 0..seeds.max(1) {
                let (index, settings) = (campaign.jobs.len(), Arc::clone(&settings));
                campaign.jobs.push(Job { index, settings, seed: scenario.seed + seed });
            }
        }
        // One that only some points use is meant.
        match unused.unwrap_or_default().first() {
            Some(link) => Err(unused_link(&campaign.tree, *link)?),
            None => Ok(campaign),
        }
    }

    /// The scenario of a job.
    ///
    /// # Errors
    /// The scenario is wrong.
    pub fn scenario(&self, job: &Job) -> Result<Scenario, ScenarioError> {
        self.scenario_of(&job.settings)
    }

    fn scenario_of(&self, settings: &Settings) -> Result<Scenario, ScenarioError> {
        Scenario::read_with(&self.tree_of(settings)?, &self.traces, &self.policies)
    }

    fn tree_of(&self, settings: &Settings) -> Result<Tree, ScenarioError> {
        let mut tree = self.tree.clone();
        settings.iter().try_for_each(|(key, value)| tree.set_at(key, value, &self.origins.of(key, value)))?;
        Ok(tree)
    }

    /// The row of a job: all its inputs, those that nobody set included, and what it gave.
    ///
    /// # Errors
    /// The scenario is wrong.
    pub fn row(&self, job: &Job, commit: &str, outcome: &Outcome) -> Result<Row, ScenarioError> {
        let mut inputs = self.tree_of(&job.settings)?.leaves();
        let scenario = self.scenario(job)?;
        // What the engine takes where nothing is said.
        let several = scenario.endpoints.extension != Extension::None && scenario.paths.len() > 1;
        let usual = if several { "auto" } else { "cubic" };
        let Endpoints {
            handshake,
            extension,
            scheduler,
            congestion,
            ack_path,
            reinjection,
            path_policy,
            protection,
            receive_window_bytes,
            duplicate_until_rtt,
            ..
        } = scenario.endpoints;
        let mut note = |key: &str, value: String| _ = inputs.entry(format!("endpoints.{key}")).or_insert(value);
        note("initial_path", handshake.initial_path.to_string());
        note("extension", format!("{extension:?}").to_lowercase());
        note("scheduler", scheduler.name().to_owned());
        note("congestion", congestion.as_ref().map_or(usual, Chosen::name).to_owned());
        note("ack_path", ack_path.to_owned());
        note("reinjection", reinjection.to_owned());
        note("path_policy", path_policy.to_owned());
        note("protection", if protection == Protection::Tls { "tls" } else { "null" }.to_owned());
        note("receive_window_bytes", receive_window_bytes.to_string());
        note("duplicate_until_rtt", duplicate_until_rtt.to_string());
        Ok(Row::new(job, commit, &inputs, outcome))
    }

    /// A hash over everything that decides the results but the program itself.
    pub fn hash(&self) -> u64 {
        let mut hash = Fnv::default();
        hash.absorb(&self.tree.canonical());
        for job in &self.jobs {
            job.settings.iter().for_each(|(key, value)| {
                hash.absorb(key);
                hash.absorb(value);
            });
            hash.absorb(&job.seed.to_string());
        }
        // Planning has read every trace that a point names.
        for (name, text) in self.traces.known() {
            hash.absorb(&name);
            hash.absorb(&text);
        }
        hash.0
    }
}

/// A complaint about a named link that nothing goes through.
fn unused_link(tree: &Tree, link: usize) -> Result<ScenarioError, ScenarioError> {
    let tables = Reader::new(&tree.0, "")?.tables("link")?;
    let table = tables.get(link).ok_or_else(|| tree.complain("link", "is missing".into(), "tables [[link]]".into()))?;
    let problem = format!("no path and no cross traffic goes through `{}`", table.text("name")?.unwrap_or_default());
    Ok(table.complain("name", problem, "the `via` of a path, or the `link` or `via` of a [[cross]], with this name"))
}

/// A hash over texts in their order.
pub fn hash_of(texts: impl IntoIterator<Item = String>) -> u64 {
    let mut hash = Fnv::default();
    texts.into_iter().for_each(|text| hash.absorb(&text));
    hash.0
}

/// FNV-1a over texts, each with an end.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn absorb(&mut self, text: &str) {
        for byte in text.bytes().chain([0xff]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// Which jobs of a campaign this process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Number of the shard, counted from 0.
    pub index: usize,
    /// How many there are.
    pub count: usize,
}

impl Shard {
    /// The whole campaign.
    pub const WHOLE: Self = Self { index: 0, count: 1 };

    /// Whether the job is one of this shard's.
    pub fn has(self, job: usize) -> bool {
        job % self.count.max(1) == self.index
    }
}

impl std::str::FromStr for Shard {
    type Err = String;

    /// `i/n` with i from 1 to n.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a shard; accepted: i/n with 1 <= i <= n, such as 2/8");
        let (index, count) = text.split_once('/').ok_or_else(wrong)?;
        let (index, count): (usize, usize) = (index.parse().map_err(|_| wrong())?, count.parse().map_err(|_| wrong())?);
        if index == 0 || index > count { Err(wrong()) } else { Ok(Self { index: index - 1, count }) }
    }
}

/// Does `work` for each of `items` on up to `threads` threads and gives the results in the order of the items.
/// `news` hears of each result as it comes, in any order. Work ends early once `stop` is set: then results are missing.
pub fn spread<T: Sync, R: Send>(
    items: &[T],
    threads: usize,
    stop: &AtomicBool,
    work: impl Fn(&T) -> R + Sync,
    news: impl Fn(usize, &R) + Sync,
) -> Vec<Option<R>> {
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<R>>> = items.iter().map(|_| Mutex::new(None)).collect();
    let worker = || {
        while !stop.load(Ordering::Relaxed) {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let (Some(item), Some(place)) = (items.get(at), results.get(at)) else { return };
            let result = work(item);
            news(at, &result);
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.max(1) {
            scope.spawn(worker);
        }
        worker();
    });
    results.into_iter().map(|place| place.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}

/// How a campaign is done.
pub struct Doing<'a> {
    /// Runs that go on side by side.
    pub threads: usize,
    /// Which part of the campaign is run.
    pub shard: Shard,
    /// What results belong to.
    pub commit: &'a str,
    /// Set it to end early.
    pub stop: &'a AtomicBool,
    /// Folder for qlog files, a folder a run in it.
    pub qlog: Option<PathBuf>,
    /// Where results are kept and found again.
    pub store: Option<&'a Store>,
    /// Hears of runs done and runs in all.
    pub progress: &'a (dyn Fn(usize, usize) + Sync),
}

impl Campaign {
    /// Does every job of the shard that has no result yet; gives all rows of the shard in order.
    ///
    /// # Errors
    /// A scenario is wrong, results cannot be kept, or it was interrupted.
    pub fn run(&self, doing: &Doing<'_>) -> Result<Vec<Row>, CampaignError> {
        let mine: Vec<&Job> = self.jobs.iter().filter(|job| doing.shard.has(job.index)).collect();
        let kept = doing.store.map(Store::load).transpose()?.unwrap_or_default();
        let is_done = |job: &Job| kept.contains_key(&job.index) && qlog::is_logged(doing.qlog.as_deref(), job);
        let todo: Vec<&Job> = mine.iter().copied().filter(|job| !is_done(job)).collect();
        let (done, halt) = (AtomicUsize::new(mine.len() - todo.len()), AtomicBool::new(false));
        let results = spread(
            &todo,
            doing.threads,
            doing.stop,
            |job| match halt.load(Ordering::Relaxed) {
                true => Ok(None),
                // What cannot be written will not be writable for the next run either.
                false => self.do_job(job, doing).inspect_err(|_| halt.store(true, Ordering::Relaxed)),
            },
            |_, result| {
                if matches!(result, Ok(Some(_))) {
                    (doing.progress)(done.fetch_add(1, Ordering::Relaxed) + 1, mine.len());
                }
            },
        );
        let mut rows = kept;
        rows.retain(|index, _| doing.shard.has(*index));
        todo.iter().for_each(|job| _ = rows.remove(&job.index));
        for row in results.into_iter().flatten() {
            rows.extend(row?.map(|row| (row.index, row)));
        }
        if rows.len() < mine.len() {
            let kept = doing.store.is_some();
            return Err(CampaignError::Interrupted { done: rows.len(), total: mine.len(), kept });
        }
        Ok(rows.into_values().collect())
    }

    /// Runs a job and keeps its row; none where it was told to stop.
    fn do_job(&self, job: &Job, doing: &Doing<'_>) -> Result<Option<Row>, CampaignError> {
        let (observers, files) = QlogFiles::open(doing.qlog.as_deref(), job)?;
        let outcome = self.one(job, Watch { observers, stop: Some(doing.stop), ..Watch::default() })?;
        if outcome.was_stopped() {
            return Ok(None);
        }
        files.map(QlogFiles::finish).transpose()?;
        let row = self.row(job, doing.commit, &outcome)?;
        doing.store.map(|store| store.keep(&row)).transpose()?;
        Ok(Some(row))
    }

    /// One job.
    ///
    /// # Errors
    /// The scenario is wrong, or the hosts cannot be made.
    pub fn one(&self, job: &Job, watch: Watch<'_>) -> Result<Outcome, CampaignError> {
        Ok(run::run(&self.scenario(job)?, job.seed, watch)?)
    }
}
