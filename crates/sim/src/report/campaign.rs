//! The report of a campaign: distributions over seeds and points, grouped by what was set, and pairs that differ in one
//! setting only.

use crate::campaign::{Campaign, Row};
use crate::plot::{Plot, Scale};
use crate::stats::Sorted;

use super::Page;
use super::groups::{CURVES_MAX, Group, Panel, by_rest, equals, groups, is_same_run, panels, short, values};

/// Values of a setting that are compared with its first.
const VALUES_MAX: usize = 12;
/// Runs listed that did not complete or broke a rule.
const BROKEN_MAX: usize = 500;

fn number(x: Option<f64>) -> String {
    x.map_or("-".to_owned(), |x| format!("{x:.3}"))
}

fn interval(sorted: &Sorted) -> String {
    sorted.median_interval().map_or("-".to_owned(), |(a, b)| format!("{a:.3} - {b:.3}"))
}

/// Name, runs, complete ones, and figures of the completion time.
pub fn table_of_groups(groups: &[Group]) -> Vec<Vec<String>> {
    let row = |Group { name, rows, .. }: &Group| {
        let seconds = Sorted::new(rows.iter().filter_map(Row::seconds));
        vec![
            if name.is_empty() { "all".to_owned() } else { name.clone() },
            rows.len().to_string(),
            seconds.len().to_string(),
            number(seconds.median()),
            format!("{} - {}", number(seconds.quantile(0.25)), number(seconds.quantile(0.75))),
            interval(&seconds),
        ]
    };
    groups.iter().map(row).collect()
}

/// Columns of [`table_of_groups`].
const COLUMNS: [&str; 6] = ["settings", "n", "complete", "median, s", "IQR, s", "95 % interval of the median, s"];
/// Columns of [`pairs`].
const PAIR_COLUMNS: [&str; 9] = [
    "setting",
    "value",
    "against",
    "pairs",
    "both complete",
    "median time ratio",
    "95 % interval",
    "faster in",
    "the same run in",
];

/// Runs that differ in one setting only, seed and all else alike: the time with each value over that with the first.
fn pairs(campaign: &Campaign, rows: &[Row]) -> Vec<Vec<String>> {
    let mut table = Vec::new();
    for (key, values) in values(campaign) {
        let Some((first, others)) = values.split_first().filter(|_| (2..=VALUES_MAX).contains(&values.len())) else {
            continue;
        };
        let by_rest = by_rest(campaign, rows, key);
        for other in others {
            let both: Vec<_> = by_rest.values().filter_map(|rows| Some((rows.get(first)?, rows.get(other)?))).collect();
            let ratio = |(a, b): &(&&Row, &&Row)| Some(b.seconds()? / a.seconds()?);
            let ratios = Sorted::new(both.iter().filter_map(ratio));
            if both.is_empty() {
                continue;
            }
            table.push(vec![
                short(key).to_owned(),
                other.trim_matches('"').to_owned(),
                first.trim_matches('"').to_owned(),
                both.len().to_string(),
                ratios.len().to_string(),
                number(ratios.median()),
                interval(&ratios),
                format!("{:.1} %", 100.0 * ratios.share(|ratio| ratio < 1.0)),
                both.iter().filter(|(a, b)| is_same_run(a, b)).count().to_string(),
            ]);
        }
    }
    table
}

/// A title with what the panel has in common.
fn titled(title: &str, panel: &Panel<'_>) -> String {
    if panel.name.is_empty() { title.to_owned() } else { format!("{title}; {}", panel.name) }
}

/// Mean bytes that each path carried towards the client, by group.
fn bytes_per_path(panel: &Panel<'_>) -> Plot {
    let mut plot = Plot::new(titled("Bytes carried towards the client, mean", panel), "", "MB");
    let columns: Vec<String> = (0..8).map(|path| format!("path{path}_down_bytes")).collect();
    let first = panel.curves.iter().find_map(|(_, rows)| rows.first());
    let paths = first.map_or(0, |row| columns.iter().filter(|c| row.cell(c).is_some()).count());
    plot.bar_names((0..paths).map(|path| format!("path {path}")));
    for (name, rows) in panel.curves.iter().take(CURVES_MAX) {
        let mean = |column: &String| Sorted::new(rows.iter().filter_map(|row| row.number(column))).mean();
        let name = if name.is_empty() { "all" } else { name };
        plot.bar_group(name, columns.iter().take(paths).map(|c| mean(c).unwrap_or(0.0) / 1e6).collect());
    }
    plot
}

/// How times, rates and first bytes of the groups of a panel spread, and what each path carried.
fn distributions(panel: &Panel<'_>) -> [Plot; 4] {
    let share = "share of complete runs";
    let plot = |title, x| Plot::new(titled(title, panel), x, share).x_scale(Scale::Log).y_range(0.0, 1.0);
    let mut times = plot("Completion time", "completion time, s");
    let mut rates = plot("Goodput", "goodput, Mbit/s");
    let mut starts = plot("First byte", "first byte after, ms");
    for (name, rows) in &panel.curves {
        let column = |name| rows.iter().filter(|row| row.is_complete()).filter_map(move |row| row.number(name));
        times.cdf(name.clone(), rows.iter().filter_map(Row::seconds));
        rates.cdf(name.clone(), column("goodput_mbps"));
        starts.cdf(name.clone(), column("first_byte_ms"));
    }
    [times, rates, starts, bytes_per_path(panel)]
}

/// The report of a campaign.
pub fn campaign_page(campaign: &Campaign, rows: &[Row]) -> Page {
    let mut page = Page::new(&campaign.name);
    let groups = groups(campaign, rows);
    let complete = rows.iter().filter(|row| row.is_complete()).count();
    let is_broken = |row: &&Row| row.cell("faults").is_some_and(|faults| !faults.is_empty());
    page.tiles(&[
        ("runs", rows.len().to_string()),
        ("complete", complete.to_string()),
        ("unfinished or failed", (rows.len() - complete).to_string()),
        ("broke a rule", rows.iter().filter(is_broken).count().to_string()),
        ("commit", rows.first().and_then(|row| row.cell("commit")).unwrap_or("-").to_owned()),
    ]);
    page.heading("Completion time").table(&COLUMNS, &table_of_groups(&groups));
    let pairs = pairs(campaign, rows);
    if !pairs.is_empty() {
        page.heading("One setting at a time: pairs of runs with the same seed and all else alike");
        page.table(&PAIR_COLUMNS, &pairs);
    }
    page.notes(&equals(campaign, rows));
    let (title, panels) = panels(&groups);
    page.heading(&title);
    panels.iter().for_each(|panel| _ = page.plots(&distributions(panel)));
    let broken: Vec<Vec<String>> = rows
        .iter()
        .filter(|row| !row.is_complete() || is_broken(row))
        .map(|row| ["run", "seed", "end", "error", "faults"].map(|n| row.cell(n).unwrap_or("").to_owned()).to_vec())
        .take(BROKEN_MAX)
        .collect();
    if !broken.is_empty() {
        page.heading("Runs that did not complete or broke a rule");
        page.table(&["run", "seed", "end", "error", "faults"], &broken);
    }
    page
}
