//! The report of a scenario's runs: times and delays of each contender.

use plait_sim::campaign::Row;
use plait_sim::figures::{self, Figure, Table};
use plait_sim::plot::{Plot, Style};
use plait_sim::report::Page;
use plait_sim::stats::Sorted;

use super::CONTENDER;
use crate::machine::Machine;
use crate::run::read_delays;

/// The contenders, each with its rows, in the order of their first.
fn groups(rows: &[Row]) -> Vec<(&str, Vec<&Row>)> {
    let mut groups: Vec<(&str, Vec<&Row>)> = Vec::new();
    for row in rows {
        let name = row.cell(CONTENDER).unwrap_or_default();
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, group)) => group.push(row),
            None => groups.push((name, vec![row])),
        }
    }
    groups
}

/// The median of a column of those rows that have it, as a cell.
fn median(rows: &[&Row], column: &str, digits: usize) -> String {
    let values = Sorted::new(rows.iter().filter_map(|row| row.number(column)));
    values.median().map_or("-".to_owned(), |value| format!("{value:.digits$}"))
}

/// Tells of all runs.
pub(super) fn page(name: &str, rows: &[Row], machine: &Machine) -> Page {
    let head = ["", "runs", "complete", "seconds, median", "least", "most", "Mbit/s", "worst delay, ms", "too late"];
    let mut table = Table { head: head.map(str::to_owned).to_vec(), rows: Vec::new() };
    let mut times = Plot::new(format!("{name}: completion times"), "", "completion time, s");
    let mut delays = Plot::new(format!("{name}: delay of each answer, first runs"), "sent at, s", "delay, ms");
    let mut has_delays = false;
    for (contender, rows) in groups(rows) {
        let seconds = Sorted::new(rows.iter().filter_map(|row| row.seconds()));
        let end = |value: Option<&f64>| value.map_or("-".to_owned(), |value| format!("{value:.3}"));
        let late = rows.iter().filter(|row| row.cell("lab_is_late") == Some("yes")).count();
        table.rows.push(vec![
            contender.to_owned(),
            rows.len().to_string(),
            seconds.len().to_string(),
            end(seconds.median().as_ref()),
            end(seconds.values().first()),
            end(seconds.values().last()),
            median(&rows, "goodput_mbps", 2),
            median(&rows, "delay_max_ms", 1),
            late.to_string(),
        ]);
        times.boxed(contender, seconds.values().to_vec());
        let dots = rows.first().and_then(|row| row.cell("lab_delays_ms")).map(read_delays).unwrap_or_default();
        let dots: Vec<_> = dots.into_iter().filter(|(_, ms)| ms.is_finite()).map(|(at, ms)| (at / 1e3, ms)).collect();
        has_delays |= !dots.is_empty();
        delays.curve(contender, dots, Style::Dots);
    }
    let mut figure = Figure { plots: vec![times], tables: vec![table], ..Figure::default() };
    figure.plots.extend(has_delays.then_some(delays));
    let beyond = rows.iter().filter(|row| row.cell("lab_is_beyond") == Some("yes")).count();
    if beyond > 0 {
        figure.notes.push(format!("{beyond} runs have paths of more in sum than `plait lab doctor` measures"));
    }
    for row in rows.iter().filter(|row| !row.is_complete()) {
        let cell = |name| row.cell(name).unwrap_or_default();
        let words = [cell(CONTENDER), "seed", cell("seed"), cell("end"), cell("error")].join(" ");
        figure.notes.push(words.trim().to_owned());
    }
    let first = |name| rows.first().and_then(|row| row.cell(name)).unwrap_or_default();
    let (links, scheduling) = (first("lab_links"), first("lab_cpu_scheduling"));
    figure.notes.push(format!(
        "Linux {}, {} cores, links by {links}, programs scheduled by {scheduling}; the clock from the first packet to the last byte at the client's application",
        machine.kernel, machine.cores
    ));
    figures::page(name, None, &figure)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(contender: &str, end: &str, seconds: &str, delays: &str) -> Row {
        let cells = [
            (CONTENDER, contender),
            ("seed", "7"),
            ("end", end),
            ("seconds", seconds),
            ("lab_delays_ms", delays),
            ("lab_is_beyond", "yes"),
        ];
        Row { index: 0, cells: cells.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec() }
    }

    #[test]
    fn every_contender_has_its_line_and_what_failed_is_told() {
        let rows = [
            row("plait", "complete", "1.5", "0:20"),
            row("tcp", "failed", "60", ""),
            row("plait", "complete", "2.5", ""),
        ];
        assert_eq!(
            groups(&rows).iter().map(|(name, rows)| (*name, rows.len())).collect::<Vec<_>>(),
            [("plait", 2), ("tcp", 1)]
        );
        let html = page("two", &rows, &Machine::look()).html();
        for part in ["1.500", "2.500", "tcp seed 7 failed", "3 runs have paths of more", "delay of each answer"] {
            assert!(html.contains(part), "{part}: {html}");
        }
    }
}
