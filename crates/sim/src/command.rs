//! What `plait sim` does, free of any command line: plans, runs, writes files and gives a summary for people.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use crate::campaign::store::{self, io};
use crate::campaign::{Campaign, CampaignError, Doing, Job, QlogFiles, Row, Shard, Store, StoreError};
use crate::files::{read_text, write_whole};
use crate::pcap::{self, Captures, PcapError};
use crate::plot::png;
use crate::policies::Policies;
use crate::report::{self, Page};
use crate::run::{Headway, Watch};
use crate::scenario::error::ScenarioError;
use crate::scenario::{Traces, Tree};

/// What becomes of the plots of a page besides the page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pictures {
    /// No pictures are written.
    #[default]
    None,
    /// Each is a PNG file too.
    Png,
}

/// `plait sim run`.
#[derive(Clone, Debug)]
pub struct RunRequest {
    /// The scenario file.
    pub file: PathBuf,
    /// Settings over the file's, as `key=value`.
    pub sets: Vec<String>,
    /// Runs of each point.
    pub seeds: u64,
    /// Runs that go on side by side.
    pub jobs: usize,
    /// Where results go; none prints the summary only.
    pub out: Option<PathBuf>,
    /// Whether to write a qlog file of each connection there.
    pub qlog: bool,
    /// Links of a single run to capture, as `path.0`, `link.NAME.down` or `all`.
    pub pcap: Vec<String>,
    /// What becomes of the plots besides the page.
    pub pictures: Pictures,
    /// Which part of the campaign.
    pub shard: Shard,
    /// What results belong to; results of different commits are never mixed.
    pub commit: String,
    /// Schedulers and controllers that the file may name.
    pub policies: Policies,
}

/// How far `plait sim run` is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RunNews {
    /// Runs of a campaign.
    Runs {
        /// Those that are done.
        done: usize,
        /// All of them.
        total: usize,
    },
    /// A single run.
    Within(Headway),
}

/// What a campaign or a run gave.
#[derive(Clone, Debug)]
pub struct RunSummary {
    /// What is printed for people.
    pub text: String,
    /// All rows of this shard.
    pub rows: Vec<Row>,
    /// The files that were written.
    pub files: Vec<PathBuf>,
    /// True when every run completed and no rule was broken.
    pub ok: bool,
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The file cannot be read.
    #[error("{0}: {1}; check the name of the scenario file")]
    File(PathBuf, std::io::Error),
    /// What was asked for is not there, or not so.
    #[error("{0}")]
    Usage(String),
    /// The campaign failed.
    #[error(transparent)]
    Campaign(#[from] CampaignError),
}

impl From<ScenarioError> for CommandError {
    fn from(error: ScenarioError) -> Self {
        Self::Campaign(error.into())
    }
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        Self::Campaign(error.into())
    }
}

impl From<PcapError> for CommandError {
    fn from(PcapError { path, error }: PcapError) -> Self {
        StoreError::Io { path, error }.into()
    }
}

impl CommandError {
    /// True when the fault is in what was typed or in the scenario file.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Usage(_) | Self::File(..) | Self::Campaign(CampaignError::Scenario(_)))
    }
}

/// Reads a scenario file with settings over it and plans its campaign.
///
/// # Errors
/// The file cannot be read or is wrong.
pub fn plan(file: &Path, sets: &[String], seeds: u64, policies: &Policies) -> Result<Campaign, CommandError> {
    let text = read_text(file).map_err(|error| CommandError::File(file.to_owned(), error))?;
    let mut tree = Tree::parse(&file.display().to_string(), &text)?;
    set_over(&mut tree, sets)?;
    Ok(Campaign::plan_with(tree, Traces::beside(file), seeds, policies.clone())?)
}

/// Puts settings, each of them key=value, over what a scenario says.
///
/// # Errors
/// One is not key=value, or the scenario has no such table.
pub fn set_over(tree: &mut Tree, sets: &[String]) -> Result<(), CommandError> {
    for set in sets {
        let wrong =
            || CommandError::Usage(format!("`{set}` is not a setting; accepted: key=value, such as path.0.loss=0.01"));
        let (key, value) = set.split_once('=').ok_or_else(wrong)?;
        tree.set(key.trim(), value.trim(), "--set")?;
    }
    Ok(())
}

/// Runs a scenario file: one run with its report, or a campaign.
///
/// # Errors
/// The file is wrong, results cannot be written, or it was interrupted.
pub fn run(
    request: &RunRequest,
    stop: &AtomicBool,
    news: &(dyn Fn(RunNews) + Sync),
) -> Result<RunSummary, CommandError> {
    let campaign = plan(&request.file, &request.sets, request.seeds, &request.policies)?;
    if campaign.jobs.len() == 1 && request.shard == Shard::WHOLE {
        return run_one(&campaign, request, stop, &|headway| news(RunNews::Within(headway)));
    }
    if !request.pcap.is_empty() {
        let runs = campaign.jobs.len();
        return Err(CommandError::Usage(format!("captures are of a single run, this is a campaign of {runs}")));
    }
    let store = request.out.as_deref();
    let store = store.map(|out| Store::open(out, &campaign, &request.commit, request.shard)).transpose()?;
    let doing = Doing {
        threads: request.jobs,
        shard: request.shard,
        commit: &request.commit,
        stop,
        qlog: qlog_folder(request),
        store: store.as_ref(),
        progress: &|done, total| news(RunNews::Runs { done, total }),
    };
    let rows = campaign.run(&doing)?;
    let mut files = Vec::new();
    if let (Some(store), Some(out)) = (&store, &request.out) {
        files.push(store.write(&rows)?);
        if request.shard == Shard::WHOLE {
            files.extend(write_page(out, "report", &report::campaign_page(&campaign, &rows), request.pictures)?);
        }
    }
    let groups = report::groups(&campaign, &rows);
    let text = campaign_text(&campaign, &rows, &report::table_of_groups(&groups), &files);
    let ok = rows.iter().all(|row| row.is_complete() && row.cell("faults") == Some(""));
    Ok(RunSummary { text, rows, files, ok })
}

/// Where qlog files go, if they are wanted.
fn qlog_folder(request: &RunRequest) -> Option<PathBuf> {
    request.out.as_ref().filter(|_| request.qlog).map(|out| out.join("qlog"))
}

/// The captures that are wanted of a run.
fn captures(campaign: &Campaign, request: &RunRequest, job: &Job) -> Result<Option<Captures>, CommandError> {
    let Some(out) = request.out.as_ref().filter(|_| !request.pcap.is_empty()) else { return Ok(None) };
    let ways = pcap::ways(&request.pcap, &campaign.scenario(job)?).map_err(CommandError::Usage)?;
    Ok(Some(Captures::open(&out.join("pcap"), ways)?))
}

fn run_one(
    campaign: &Campaign,
    request: &RunRequest,
    stop: &AtomicBool,
    headway: &dyn Fn(Headway),
) -> Result<RunSummary, CommandError> {
    let Some(job) = campaign.jobs.first() else { return Err(CommandError::Usage("there is nothing to run".into())) };
    let stamp = store::stamp(campaign, &request.commit);
    if let Some(out) = &request.out {
        store::make_folder(out)?;
        store::check(out, &stamp)?;
    }
    let (observers, logs) = QlogFiles::open(qlog_folder(request).as_deref(), job)?;
    let mut captures = captures(campaign, request, job)?;
    let watch = Watch {
        series: request.out.is_some(),
        observers,
        captures: captures.as_mut(),
        stop: Some(stop),
        headway: Some(headway),
    };
    let outcome = campaign.one(job, watch)?;
    if outcome.was_stopped() {
        return Err(CampaignError::Stopped.into());
    }
    logs.map(QlogFiles::finish).transpose()?;
    let row = campaign.row(job, &request.commit, &outcome)?;
    let scenario = campaign.scenario(job)?;
    let mut files = captures.map(Captures::finish).transpose()?.unwrap_or_default();
    if let Some(out) = &request.out {
        files.push(write(out, "runs.csv", &store::table(&stamp, std::slice::from_ref(&row)))?);
        files.extend(write_page(out, "report", &report::run_page(&scenario, job.seed, &outcome), request.pictures)?);
        if let Some(series) = &outcome.series {
            files.push(write(out, "series.csv", &report::series_csv(series))?);
        }
        if let Some(record) = &outcome.decisions.record {
            files.push(write(out, "decisions.csv", &report::decisions_csv(record))?);
        }
    }
    let text = run_text(&scenario.name, &row, scenario.paths.len(), &files);
    let ok = outcome.is_complete() && outcome.faults.is_empty();
    Ok(RunSummary { text, rows: vec![row], files, ok })
}

/// Writes a file of a result folder.
///
/// # Errors
/// The file system refuses.
pub(crate) fn write(folder: &Path, name: &str, text: &str) -> Result<PathBuf, StoreError> {
    let path = folder.join(name);
    write_whole(&path, text.as_bytes()).map_err(io(&path))?;
    Ok(path)
}

/// Writes a page, and its plots as files beside it where that is wanted.
///
/// # Errors
/// The file system refuses, or a plot cannot be drawn.
pub fn write_page(folder: &Path, name: &str, page: &Page, pictures: Pictures) -> Result<Vec<PathBuf>, StoreError> {
    let mut files = vec![write(folder, &format!("{name}.html"), &page.html())?];
    for (title, svg) in page.pictures().iter().filter(|_| pictures == Pictures::Png) {
        let path = folder.join(format!("{name}-{title}.png"));
        let bytes = png::png(svg).map_err(|error| StoreError::Picture(error.to_string()))?;
        write_whole(&path, &bytes).map_err(io(&path))?;
        files.push(path);
    }
    Ok(files)
}

/// A decimal number without the zeros at its end: `12.5` of `12.500000`, `120` of `120.000000`.
fn trimmed(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

fn run_text(name: &str, row: &Row, paths: usize, files: &[PathBuf]) -> String {
    let cell = |name: &str| row.cell(name).unwrap_or("").to_owned();
    let ms = |name: &str| match row.cell(name) {
        None | Some("") => "-".to_owned(),
        Some(time) => format!("{time} ms"),
    };
    let mut text = format!(
        "{name}, seed {}: {} after {} s, {} bytes, {} Mbit/s\n",
        cell("seed"),
        cell("end"),
        trimmed(&cell("seconds")),
        cell("bytes"),
        cell("goodput_mbps"),
    );
    if !cell("error").is_empty() {
        text.push_str(&format!("  error       {}\n", cell("error")));
    }
    text.push_str(&format!("  handshake   {}, first byte {}\n", ms("handshake_ms"), ms("first_byte_ms")));
    if row.number("requests").is_some_and(|count| count > 1.0) {
        text.push_str(&format!(
            "  requests    {} ({} unanswered), delay p50 {}, p95 {}, max {}\n",
            cell("requests"),
            cell("unanswered"),
            ms("delay_p50_ms"),
            ms("delay_p95_ms"),
            ms("delay_max_ms")
        ));
    }
    for path in 0..paths {
        let of = |name: &str| cell(&format!("path{path}_{name}"));
        text.push_str(&format!(
            "  path {path}      {} bytes sent in {} packets, {} lost, RTT {} (least {}), cwnd {} bytes, MTU {} ({} falls)\n",
            of("sent_bytes"),
            of("packets_sent"),
            of("packets_lost"),
            ms(&format!("path{path}_rtt_ms")),
            ms(&format!("path{path}_rtt_min_ms")),
            of("cwnd_bytes"),
            of("mtu_bytes"),
            of("mtu_falls")
        ));
    }
    text.push_str(&format!(
        "  scheduler   {} waits for a faster path, {} copies; {} stalls\n",
        cell("scheduler_waits_faster"),
        cell("scheduler_copies"),
        cell("stalls")
    ));
    if !cell("faults").is_empty() {
        text.push_str(&format!("  BROKEN      {}\n", cell("faults")));
    }
    files.iter().for_each(|file| text.push_str(&format!("  wrote       {}\n", file.display())));
    text
}

fn campaign_text(campaign: &Campaign, rows: &[Row], table: &[Vec<String>], files: &[PathBuf]) -> String {
    let complete = rows.iter().filter(|row| row.is_complete()).count();
    let broken = rows.iter().filter(|row| row.cell("faults").is_some_and(|faults| !faults.is_empty())).count();
    let mut text = format!("{}: {} runs, {complete} complete, {broken} broke a rule\n", campaign.name, rows.len());
    for row in table {
        let [name, runs, complete, median, quartiles, interval] = &row[..] else { continue };
        text.push_str(&format!(
            "  {name}: n {runs}, complete {complete}, median {median} s, IQR {quartiles}, 95 % {interval}\n"
        ));
    }
    report::equals(campaign, rows).iter().for_each(|note| text.push_str(&format!("  {note}\n")));
    files.iter().for_each(|file| text.push_str(&format!("  wrote {}\n", file.display())));
    text
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn numbers_end_with_a_digit() {
        let numbers = ["120.000000", "0.250000", "10", "100.5", "0.000000"].map(trimmed);
        assert_eq!(numbers, ["120", "0.25", "10", "100.5", "0"]);
    }

    #[test]
    fn captures_are_of_a_single_run() {
        let home = std::env::temp_dir().join(format!("plait-sim-command-{}", std::process::id()));
        fs::create_dir_all(&home).unwrap();
        let file = home.join("x.toml");
        fs::write(&file, "[[path]]\nrate_mbps = 10\n[transfer]\nkind = \"download\"\nbytes = 10_000\n").unwrap();
        let request = |seeds, link: &str| RunRequest {
            file: file.clone(),
            sets: Vec::new(),
            seeds,
            jobs: 1,
            out: Some(home.join("out")),
            qlog: false,
            pcap: vec![link.to_owned()],
            pictures: Pictures::None,
            shard: Shard::WHOLE,
            commit: "x".into(),
            policies: Policies::new(),
        };
        let result = |seeds, link| run(&request(seeds, link), &AtomicBool::new(false), &|_| ());
        for (seeds, link, says) in [(2, "all", "this is a campaign of 2"), (1, "path.1", "accepted: all, path.0,")] {
            let error = result(seeds, link).unwrap_err();
            assert!(error.is_usage() && error.to_string().contains(says), "{error}");
        }
        let beneath = RunRequest { out: Some(file.join("out")), pcap: Vec::new(), ..request(2, "") };
        let error = run(&beneath, &AtomicBool::new(false), &|_| ()).unwrap_err().to_string();
        assert!(
            error.starts_with("--out ") && error.ends_with("check that its folder exists and may be written"),
            "{error}"
        );
        #[cfg(target_os = "linux")]
        {
            let full = home.join("full");
            fs::create_dir_all(&full).unwrap();
            std::os::unix::fs::symlink("/dev/full", full.join("series.csv")).unwrap();
            let no_room = RunRequest { out: Some(full), pcap: Vec::new(), ..request(1, "") };
            let error = run(&no_room, &AtomicBool::new(false), &|_| ()).unwrap_err().to_string();
            assert!(
                error.contains("series.csv: No space left") && error.contains("; make room on its disk"),
                "{error}"
            );
        }
        let missing = RunRequest { file: home.join("nothing.toml"), ..request(1, "") };
        let error = run(&missing, &AtomicBool::new(false), &|_| ()).unwrap_err().to_string();
        assert!(error.ends_with("check the name of the scenario file"), "{error}");
        let files = result(1, "path.0.up").unwrap().files;
        let captured = ["path0.pcapng", "keys.log"].map(|name| home.join("out/pcap").join(name));
        assert!(files.starts_with(&captured) && files.iter().all(|file| file.is_file()), "{files:?}");
        fs::remove_dir_all(&home).unwrap();
    }

    #[test]
    fn what_is_not_known_has_no_unit() {
        let cells =
            [("seed", "1"), ("end", "failed"), ("seconds", "120.000000"), ("handshake_ms", ""), ("first_byte_ms", "")];
        let cells = cells.map(|(column, text)| (column.to_owned(), text.to_owned()));
        let text = run_text("x", &Row { index: 0, cells: cells.to_vec() }, 0, &[]);
        assert!(text.contains("failed after 120 s") && text.contains("handshake   -, first byte -\n"), "{text}");
    }
}
