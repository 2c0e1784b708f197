//! Results on disk while a campaign runs: each row is kept as it comes, and found again by the same campaign of the
//! same commit only.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::row::{Row, split_csv};
use super::{Campaign, Shard};

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
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What it said.
        error: std::io::Error,
    },
    /// The folder holds results of something else.
    #[error("{path} holds results of another campaign or commit ({found}); this is {wanted}: choose another folder")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it holds.
        found: String,
        /// What is wanted.
        wanted: String,
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

impl Store {
    /// Opens or makes the folder for this campaign at this commit.
    ///
    /// # Errors
    /// The folder cannot be written, or holds results of another campaign or commit.
    pub fn open(folder: &Path, campaign: &Campaign, commit: &str, shard: Shard) -> Result<Self, StoreError> {
        fs::create_dir_all(folder).map_err(io(folder))?;
        let stamp = stamp(campaign, commit);
        let path = folder.join(journal_name(shard));
        let found = first_line(&path);
        if let Some(found) = found.filter(|found| *found != stamp) {
            return Err(StoreError::Foreign { path, found, wanted: stamp });
        }
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
    /// The journal cannot be read.
    pub fn load(&self) -> Result<BTreeMap<usize, Row>, StoreError> {
        let path = self.folder.join(journal_name(self.shard));
        let file = File::open(&path).map_err(io(&path))?;
        let (mut rows, mut names) = (BTreeMap::new(), Vec::new());
        for line in BufReader::new(file).lines().skip(1) {
            let line = line.map_err(io(&path))?;
            // Each row is written with its names and an end mark, so that a torn one is noticed.
            match line.strip_suffix(",#").map(split_csv) {
                Some(values) if values.first().is_some_and(|first| first == "run") => names = values,
                Some(values) => rows.extend(Row::from_lines(&names, values).map(|row| (row.index, row))),
                None => {}
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
        fs::write(&path, table(&self.stamp, rows)).map_err(io(&path))?;
        Ok(path)
    }
}

/// What results belong to.
pub fn stamp(campaign: &Campaign, commit: &str) -> String {
    let runs = campaign.jobs.len();
    format!("# plait sim, campaign {:016x} of {runs} runs, commit {commit}", campaign.hash())
}

/// A result file.
pub(crate) fn table(stamp: &str, rows: &[Row]) -> String {
    let mut text = format!("{stamp}\n");
    if let Some(first) = rows.first() {
        text.push_str(&first.header());
        text.push('\n');
    }
    for row in rows {
        text.push_str(&row.line());
        text.push('\n');
    }
    text
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

pub(crate) fn first_line(path: &Path) -> Option<String> {
    BufReader::new(File::open(path).ok()?).lines().next()?.ok()
}
