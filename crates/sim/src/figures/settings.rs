//! What the runs of a figure were set to, as the runs themselves say it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use crate::campaign::Row;

/// The settings that a caption names, by their keys.
const NAMED: [(&str, &str); 5] = [
    ("scheduler", "endpoints.scheduler"),
    ("congestion control", "endpoints.congestion"),
    ("acks", "endpoints.ack_path"),
    ("reinjection", "endpoints.reinjection"),
    ("receive window, bytes", "endpoints.receive_window_bytes"),
];
/// Values of one setting that a caption lists.
const LISTED: usize = 6;

#[derive(Debug, Default)]
struct SettingsSeen {
    values: BTreeMap<&'static str, BTreeSet<String>>,
    seeds: BTreeSet<String>,
    runs: usize,
}

/// What the runs of a figure were set to so far; copies add to the same.
#[derive(Clone, Debug, Default)]
pub struct RanWith {
    seen: Arc<Mutex<SettingsSeen>>,
}

impl RanWith {
    /// Adds runs by their inputs.
    pub(super) fn note(&self, rows: &[Row]) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for row in rows {
            seen.runs += 1;
            seen.seeds.extend(row.cell("seed").map(str::to_owned));
            for (name, key) in NAMED {
                if let Some(value) = row.cell(key).filter(|value| !value.is_empty()) {
                    seen.values.entry(name).or_default().insert(value.to_owned());
                }
            }
        }
    }

    /// Takes what was seen, on one line; none where nothing ran.
    pub(super) fn take(&self) -> Option<String> {
        let seen = std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner));
        if seen.runs == 0 {
            return None;
        }
        let listed = |values: &BTreeSet<String>| match values.len() {
            ..=LISTED => values.iter().cloned().collect::<Vec<_>>().join(", "),
            more => format!("{more} values"),
        };
        let named = NAMED.iter().filter_map(|(name, _)| Some(format!("{name}: {}", listed(seen.values.get(name)?))));
        let runs = format!("{} runs, seeds: {}", seen.runs, seen.seeds.len());
        Some(named.chain([runs]).collect::<Vec<_>>().join("; "))
    }
}
