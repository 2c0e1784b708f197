//! Result files of shards put together into the file that one machine would have written.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::row::{Row, split_csv};
use super::store::{STAMP, StoreError, check_commit, io, runs_of, table};
use crate::files::{Lines, write_whole};

/// The stamp and rows of a result file.
///
/// # Errors
/// It cannot be read or is no result file.
pub fn read(path: &Path) -> Result<(String, Vec<Row>), StoreError> {
    let wrong = || StoreError::Merge(format!("{}: not a result file of plait sim", path.display()));
    let mut lines = Lines::open(path).map_err(io(path))?;
    let mut next = || match lines.next() {
        Some(line) => String::from_utf8(line.map_err(io(path))?).map(Some).map_err(|_| wrong()),
        None => Ok(None),
    };
    let stamp = next()?.filter(|line| line.starts_with(STAMP)).ok_or_else(wrong)?;
    let total =
        runs_of(&stamp).ok_or_else(|| StoreError::Merge(format!("`{stamp}` does not say how many runs there are")))?;
    let names = next()?.as_deref().map(split_csv).unwrap_or_default();
    if names.iter().collect::<BTreeSet<_>>().len() < names.len() {
        return Err(StoreError::Merge(format!("{}: a column is there twice", path.display())));
    }
    let mut rows = Vec::new();
    while let Some(line) = next()? {
        let row = Row::from_lines(&names, split_csv(&line)).ok_or_else(wrong)?;
        check_commit(path, &stamp, &row)?;
        if row.index >= total || rows.len() == total {
            let problem = format!("run {} is beyond the {total} runs of the campaign", row.index);
            return Err(StoreError::Merge(format!("{}: {problem}", path.display())));
        }
        rows.push(row);
    }
    Ok((stamp, rows))
}

/// One result file out of those of all shards; says how many rows it has.
///
/// # Errors
/// A file cannot be read, the files are of different campaigns or commits, or runs are missing or there twice.
pub fn merge(paths: &[impl AsRef<Path>], out: &Path) -> Result<usize, StoreError> {
    let place = |path: &Path| path.canonicalize().ok();
    if let Some(input) = paths.iter().find(|path| place(out).is_some() && place(path.as_ref()) == place(out)) {
        return Err(StoreError::Merge(format!("{} is read: write to another file", input.as_ref().display())));
    }
    let mut rows: BTreeMap<usize, Row> = BTreeMap::new();
    let mut stamp: Option<String> = None;
    for path in paths {
        let path = path.as_ref();
        let (found, more) = read(path)?;
        if let Some(wanted) = stamp.clone().filter(|stamp| *stamp != found) {
            return Err(StoreError::Foreign { path: path.to_owned(), found, wanted });
        }
        stamp = Some(found);
        for row in more {
            if let Some(twice) = rows.insert(row.index, row) {
                return Err(StoreError::Merge(format!("{}: run {} is there twice", path.display(), twice.index)));
            }
        }
    }
    let stamp = stamp.ok_or_else(|| StoreError::Merge("no result file was given".into()))?;
    if let Some(missing) = (0..runs_of(&stamp).unwrap_or(0)).find(|index| !rows.contains_key(index)) {
        return Err(StoreError::Merge(format!("run {missing} is in none of the files: is a shard missing?")));
    }
    let rows: Vec<Row> = rows.into_values().collect();
    write_whole(out, table(&stamp, &rows).as_bytes()).map_err(io(out))?;
    Ok(rows.len())
}
