//! The report of a campaign: distributions over seeds and points, grouped by what was set.

use std::collections::BTreeMap;

use crate::campaign::{Campaign, Row};
use crate::plot::{Plot, Scale};
use crate::stats::Sorted;

use super::Page;

/// Groups that are shown one by one.
const GROUPS_MAX: usize = 40;

/// Rows by their settings; one group for all where there are too many to tell apart.
pub fn groups(campaign: &Campaign, rows: &[Row]) -> BTreeMap<String, Vec<Row>> {
    let mut groups: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    for row in rows {
        let settings = campaign.jobs.get(row.index).map(|job| &job.settings[..]).unwrap_or_default();
        let name = settings.iter().map(|(key, value)| format!("{key} = {}", value.trim_matches('"')));
        groups.entry(name.collect::<Vec<_>>().join(", ")).or_default().push(row.clone());
    }
    if groups.len() > GROUPS_MAX {
        let name = format!("all {} points", groups.len());
        return BTreeMap::from([(name, rows.to_vec())]);
    }
    groups
}

/// Name, runs, complete ones, and figures of the completion time.
pub fn table_of_groups(groups: &BTreeMap<String, Vec<Row>>) -> Vec<Vec<String>> {
    let row = |(name, rows): (&String, &Vec<Row>)| {
        let seconds = Sorted::new(rows.iter().filter_map(Row::seconds));
        let text = |x: Option<f64>| x.map_or("-".to_owned(), |x| format!("{x:.3}"));
        let interval = seconds.median_interval();
        vec![
            if name.is_empty() { "all".to_owned() } else { name.clone() },
            rows.len().to_string(),
            seconds.len().to_string(),
            text(seconds.median()),
            format!("{} - {}", text(seconds.quantile(0.25)), text(seconds.quantile(0.75))),
            interval.map_or("-".to_owned(), |(a, b)| format!("{a:.3} - {b:.3}")),
        ]
    };
    groups.iter().map(row).collect()
}

/// Columns of [`table_of_groups`].
pub(crate) const COLUMNS: [&str; 6] =
    ["settings", "runs", "complete", "median s", "IQR s", "95 % interval of the median"];

/// The report of a campaign.
pub fn campaign_report(campaign: &Campaign, rows: &[Row]) -> String {
    let mut page = Page::new();
    let groups = groups(campaign, rows);
    page.table(&COLUMNS, &table_of_groups(&groups));
    let mut times = Plot::new("Completion time", "s", "share of runs").x_scale(Scale::Log).y_range(0.0, 1.0);
    let mut rates = Plot::new("Goodput", "Mbit/s", "share of runs").x_scale(Scale::Log).y_range(0.0, 1.0);
    for (name, rows) in groups.iter().take(7) {
        times.cdf(name.clone(), rows.iter().filter_map(Row::seconds));
        rates.cdf(name.clone(), rows.iter().filter_map(|row| row.number("goodput_mbps")));
    }
    page.heading("Distributions").plots(&[times, rates]);
    let broken: Vec<Vec<String>> = rows
        .iter()
        .filter(|row| !row.is_complete() || row.cell("faults").is_some_and(|faults| !faults.is_empty()))
        .map(|row| ["run", "seed", "end", "error", "faults"].map(|n| row.cell(n).unwrap_or("").to_owned()).to_vec())
        .take(500)
        .collect();
    if !broken.is_empty() {
        page.heading("Runs that did not complete or broke a rule");
        page.table(&["run", "seed", "end", "error", "faults"], &broken);
    }
    page.html(&campaign.name)
}
