//! Result files of shards put together into the file that one machine would have written.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::row::{Row, split_csv};
use super::store::{StoreError, io, table};

/// The stamp and rows of a result file.
///
/// # Errors
/// It cannot be read or is no result file.
pub fn read(path: &Path) -> Result<(String, Vec<Row>), StoreError> {
    let text = fs::read_to_string(path).map_err(io(path))?;
    let wrong = || StoreError::Merge(format!("{}: not a result file of plait sim", path.display()));
    let mut lines = text.lines();
    let stamp = lines.next().filter(|line| line.starts_with("# plait sim,")).ok_or_else(wrong)?.to_owned();
    let names = lines.next().map(split_csv).unwrap_or_default();
    let rows =
        lines.map(|line| Row::from_lines(&names, split_csv(line)).ok_or_else(wrong)).collect::<Result<_, _>>()?;
    Ok((stamp, rows))
}

/// One result file out of those of all shards; says how many rows it has.
///
/// # Errors
/// A file cannot be read, the files are of different campaigns or commits, or runs are missing or there twice.
pub fn merge(paths: &[impl AsRef<Path>], out: &Path) -> Result<usize, StoreError> {
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
    let total: Option<usize> = stamp.split(" of ").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok());
    if let Some(missing) = (0..total.unwrap_or(0)).find(|index| !rows.contains_key(index)) {
        return Err(StoreError::Merge(format!("run {missing} is in none of the files: is a shard missing?")));
    }
    let rows: Vec<Row> = rows.into_values().collect();
    fs::write(out, table(&stamp, &rows)).map_err(io(out))?;
    Ok(rows.len())
}
