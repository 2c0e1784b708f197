//! Results on disk while a campaign runs: each row is kept as it comes, and found again by the same campaign of the
//! same commit only.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::row::{HEAD, Row, csv_line, split_csv};
use super::{Campaign, Shard};
use crate::files::{Lines, remedy, write_whole};

/// How a stamp begins, and what stands before the commit in it.
pub(crate) const STAMP: &str = "# plait sim,";
const COMMIT: &str = ", commit ";

/// A folder of results.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    stamp: String,
    shard: Shard,
    journal: Mutex<File>,
}

/// Why results cannot be kept or used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file system refused.
    #[error("{path}: {error}; {}", remedy(error))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What it said.
        error: std::io::Error,
    },
    /// The folder for results cannot be made.
    #[error("--out {path}: {error}; {}", remedy(error))]
    Folder {
        /// The folder that was asked for.
        path: PathBuf,
        /// What the file system said.
        error: std::io::Error,
    },
    /// The folder holds results of something else.
    #[error("{path} holds results of another campaign or commit ({found}); this is {wanted}: choose another folder")]
    Foreign {
        /// The file with results.
        path: PathBuf,
        /// What it holds.
        found: String,
        /// What is wanted.
        wanted: String,
    },
    /// A file of that name that does not say what it belongs to.
    #[error("{path} does not say which campaign it belongs to: remove it, or choose another folder")]
    Damaged {
        /// The file of results.
        path: PathBuf,
    },
    /// Shards that do not make one campaign.
    #[error("{0}")]
    Merge(String),
    /// A plot that could not be drawn.
    #[error("a plot cannot be drawn: {0}")]
    Picture(String),
}

pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> StoreError + '_ {
    move |error| StoreError::Io { path: path.to_owned(), error }
}

/// Makes the folder for results, if it is not there.
pub(crate) fn make_folder(folder: &Path) -> Result<(), StoreError> {
    fs::create_dir_all(folder).map_err(|error| StoreError::Folder { path: folder.to_owned(), error })
}

impl Store {
    /// Opens or makes the folder for this campaign at this commit.
    ///
    /// # Errors
    /// The folder cannot be written, or holds results of another campaign or commit.
    pub fn open(folder: &Path, campaign: &Campaign, commit: &str, shard: Shard) -> Result<Self, StoreError> {
        Self::with_stamp(folder, stamp(campaign, commit), shard)
    }

    /// What the results in a folder belong to, as the first line of their journal says.
    ///
    /// # Errors
    /// It cannot be read, or has no end.
    pub fn stamp_in(folder: &Path) -> Result<String, StoreError> {
        let path = folder.join(journal_name(Shard::WHOLE));
        let line = Lines::open(&path).and_then(|mut lines| lines.next().transpose()).map_err(io(&path))?;
        Ok(String::from_utf8_lossy(&line.unwrap_or_default()).into_owned())
    }

    /// Opens or makes the folder for results of this stamp.
    ///
    /// # Errors
    /// The folder cannot be written, or holds results of another stamp.
    pub fn with_stamp(folder: &Path, stamp: String, shard: Shard) -> Result<Self, StoreError> {
        make_folder(folder)?;
        check(folder, &stamp)?;
        let path = folder.join(journal_name(shard));
        let mut journal = OpenOptions::new().create(true).append(true).open(&path).map_err(io(&path))?;
        if journal.metadata().map_err(io(&path))?.len() == 0 {
            writeln!(journal, "{stamp}").map_err(io(&path))?;
        } else {
            // A line that was cut off ends here.
            writeln!(journal).map_err(io(&path))?;
        }
        Ok(Self { folder: folder.to_owned(), stamp, shard, journal: Mutex::new(journal) })
    }

    /// Rows of an earlier, interrupted campaign.
    ///
    /// # Errors
    /// The journal cannot be read, or a row in it is of another commit.
    pub fn load(&self) -> Result<BTreeMap<usize, Row>, StoreError> {
        let path = self.folder.join(journal_name(self.shard));
        let total = runs_of(&self.stamp).unwrap_or(usize::MAX);
        let (mut rows, mut names) = (BTreeMap::new(), Vec::new());
        // Each row is written with its names and an end mark, so that a torn one is noticed.
        let whole = |line: &[u8]| Some(split_csv(std::str::from_utf8(line).ok()?.strip_suffix(",#")?));
        for line in Lines::open(&path).map_err(io(&path))?.skip(1) {
            let Some(values) = whole(&line.map_err(io(&path))?) else { continue };
            if values.first().is_some_and(|first| first == "run") {
                names = values;
            } else if let Some(row) = Row::from_lines(&names, values).filter(|row| row.index < total) {
                check_commit(&path, &self.stamp, &row)?;
                rows.insert(row.index, row);
            }
        }
        Ok(rows)
    }

    /// Keeps a row.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn keep(&self, row: &Row) -> Result<(), StoreError> {
        let text = format!("{},#\n{},#\n", row.header(), row.line());
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        journal.write_all(text.as_bytes()).map_err(io(&self.folder))
    }

    /// Writes the result file; rows in order.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, rows: &[Row]) -> Result<PathBuf, StoreError> {
        let path = self.folder.join(result_name(self.shard));
        write_whole(&path, table(&self.stamp, rows).as_bytes()).map_err(io(&path))?;
        Ok(path)
    }
}

/// What results belong to.
pub fn stamp(campaign: &Campaign, commit: &str) -> String {
    stamp_of(campaign.hash(), campaign.jobs.len(), commit)
}

/// What results of so many runs belong to, by a hash over everything that decides them but the program.
pub fn stamp_of(hash: u64, runs: usize, commit: &str) -> String {
    format!("{STAMP} campaign {hash:016x} of {runs} runs{COMMIT}{commit}")
}

/// A result file: rows under the columns of all of them, whatever order they came in; what a row lacks is empty.
pub(crate) fn table(stamp: &str, rows: &[Row]) -> String {
    let columns = columns(rows);
    let mut text = format!("{stamp}\n");
    if !rows.is_empty() {
        text.push_str(&csv_line(columns.iter().copied()));
        text.push('\n');
    }
    for row in rows {
        if row.names().eq(columns.iter().copied()) {
            text.push_str(&row.line());
        } else {
            let cells: HashMap<&str, &str> =
                row.cells.iter().map(|(name, cell)| (name.as_str(), cell.as_str())).collect();
            text.push_str(&csv_line(columns.iter().map(|name| cells.get(name).copied().unwrap_or(""))));
        }
        text.push('\n');
    }
    text
}

/// Every column of these rows: what names the run, inputs by name, outcomes as rows have them, each path's together.
fn columns(rows: &[Row]) -> Vec<&str> {
    let (mut known, mut columns) = (HashSet::new(), Vec::new());
    let mut before: Option<&Row> = None;
    for row in rows {
        if before.is_none_or(|before| !before.names().eq(row.names())) {
            let outcomes = row.names().position(|name| name == "end").unwrap_or(0);
            let more = row.names().enumerate().filter(|(_, name)| known.insert(*name));
            columns.extend(more.map(|(at, name)| (place(at, outcomes, name), name)));
        }
        before = Some(row);
    }
    // Outcomes keep the order of the rows.
    columns.sort_by_key(|(place, _)| *place);
    columns.into_iter().map(|(_, name)| name).collect()
}

/// Where a column belongs: its group, its number in it, and its name where names decide.
fn place(at: usize, outcomes: usize, name: &str) -> (usize, usize, &str) {
    let numbered = |prefix: &str| name.strip_prefix(prefix)?.split('_').next()?.parse::<usize>().ok();
    let head = HEAD.iter().position(|head| *head == name);
    match (head, numbered("path"), numbered("cross")) {
        (Some(head), ..) => (0, head, ""),
        _ if at < outcomes => (1, 0, name),
        (_, Some(path), _) => (3, path, ""),
        (_, _, Some(cross)) => (5, cross, ""),
        _ if name.starts_with("link_") => (4, 0, ""),
        _ => (2, 0, ""),
    }
}

fn journal_name(shard: Shard) -> String {
    if shard == Shard::WHOLE {
        "journal.csv".into()
    } else {
        format!("journal-{}-of-{}.csv", shard.index + 1, shard.count)
    }
}

fn result_name(shard: Shard) -> String {
    if shard == Shard::WHOLE { "runs.csv".into() } else { format!("runs-{}-of-{}.csv", shard.index + 1, shard.count) }
}

/// Refuses a folder with results of another campaign or commit, in whole or of any shard.
pub(crate) fn check(folder: &Path, stamp: &str) -> Result<(), StoreError> {
    let is_ours = |name: &str| {
        let shard = ["runs", "journal"].iter().find_map(|kind| name.strip_prefix(kind)?.strip_suffix(".csv"));
        shard.is_some_and(|shard| shard.is_empty() || shard.starts_with('-') && shard.contains("-of-"))
    };
    let entries = fs::read_dir(folder).map_err(io(folder))?.flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(is_ours));
    paths.sort();
    for path in paths {
        let found = Lines::open(&path).map_err(io(&path))?.next().transpose().map_err(io(&path))?.unwrap_or_default();
        let found = String::from_utf8_lossy(&found).trim_end().to_owned();
        if found.is_empty() && path.metadata().is_ok_and(|meta| meta.len() == 0) {
            // Killed before its first line.
            continue;
        }
        if !found.starts_with(STAMP) || !found.contains(COMMIT) {
            return Err(StoreError::Damaged { path });
        }
        if found != stamp {
            return Err(StoreError::Foreign { path, found, wanted: stamp.to_owned() });
        }
    }
    Ok(())
}

/// How many runs a stamp says that there are.
pub(crate) fn runs_of(stamp: &str) -> Option<usize> {
    stamp.split(" of ").nth(1)?.split(' ').next()?.parse().ok()
}

/// The commit in a stamp.
fn commit_of(stamp: &str) -> &str {
    stamp.split_once(COMMIT).map_or("", |(_, commit)| commit)
}

/// Refuses a row of another commit than the file that it is in.
pub(crate) fn check_commit(path: &Path, stamp: &str, row: &Row) -> Result<(), StoreError> {
    let (found, wanted) = (row.cell("commit").unwrap_or(""), commit_of(stamp));
    if found == wanted {
        return Ok(());
    }
    let found = format!("run {} of commit {found}", row.index);
    Err(StoreError::Foreign { path: path.to_owned(), found, wanted: format!("commit {wanted}") })
}
