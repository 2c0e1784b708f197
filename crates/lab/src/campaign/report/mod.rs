//! What a figure says: claims next to what was published and asked for, plots, tables.

mod agreement;
mod benefit;
mod delays;
mod times;

use plait_sim::figures::{Figure, Table};

use super::results::Results;

pub(crate) use agreement::{Comparison, agreement, company};
pub(crate) use benefit::{asymmetric, conext};
pub(crate) use delays::{handover, mobility};
pub(crate) use times::{profiles, satellite};

/// Several paths, the same stack over one, and what both are called.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StackFamily {
    pub(crate) several: &'static str,
    pub(crate) one: &'static str,
    pub(crate) name: &'static str,
}

/// Those that papers compare.
pub(crate) const FAMILIES: [StackFamily; 3] = [
    StackFamily { several: "plait", one: "plait-single", name: "MPQUIC (plait)" },
    StackFamily { several: "mptcp", one: "tcp", name: "MPTCP (Linux)" },
    StackFamily { several: "noq", one: "quinn", name: "MPQUIC (noq)" },
];

fn table<const N: usize>(head: [&str; N]) -> Table {
    Table { head: head.map(str::to_owned).to_vec(), rows: Vec::new() }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// Seconds, or that there is no end.
fn seconds(value: Option<f64>) -> String {
    match value {
        Some(value) if value.is_finite() => format!("{value:.3}"),
        Some(_) => "not done".to_owned(),
        None => "-".to_owned(),
    }
}

/// How it was run, and what did not end well.
pub(crate) fn circumstances(results: &Results<'_>, figure: &mut Figure) {
    figure.notes.extend(results.plan.notes.iter().cloned());
    for contender in results.contenders() {
        let rows = results.all(contender);
        let unfinished: Vec<_> = rows.iter().filter(|row| !row.is_complete()).collect();
        let late = rows.iter().filter(|row| row.cell("lab_is_late") == Some("yes")).count();
        let mut words = format!("{contender}: {} runs", rows.len());
        if let Some(first) = unfinished.first() {
            let why = [first.cell("end"), first.cell("error")].map(|cell| cell.unwrap_or("").to_owned()).join(" ");
            words += &format!(", {} not complete (the first: {})", unfinished.len(), why.trim());
        }
        if late > 0 {
            words += &format!(", {late} with the machine too busy even alone");
        }
        let retried = rows.iter().filter(|row| row.number("lab_retries").is_some_and(|n| n > 0.0)).count();
        if retried > 0 {
            words += &format!(", {retried} done again because the machine was too busy");
        }
        if contender == "mptcp" {
            let one = rows.iter().filter(|row| row.is_complete() && row.cell("lab_subflows") == Some("1")).count();
            words += &format!(", {one} in which no further subflow joined");
        }
        if let Some(control) = rows.iter().find_map(|row| row.cell("lab_congestion")) {
            words += &format!("; congestion control {control}");
        }
        figure.notes.push(words);
    }
}
