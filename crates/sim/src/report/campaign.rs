//! The report of a campaign: distributions over seeds and points, grouped by what was set, and pairs that differ in one
//! setting only.

use std::collections::BTreeMap;

use crate::campaign::{Campaign, Row};
use crate::plot::{Plot, Scale};
use crate::stats::Sorted;

use super::Page;

/// Groups that are shown one by one.
const GROUPS_MAX: usize = 40;
/// Curves of a plot.
const CURVES_MAX: usize = 7;
/// Values of a setting that are compared with its first.
const VALUES_MAX: usize = 12;
/// Runs listed that did not complete or broke a rule.
const BROKEN_MAX: usize = 500;

/// Settings of a row by their short names: those that only some groups differ in.
fn settings<'a>(campaign: &'a Campaign, row: &Row) -> &'a [(String, String)] {
    campaign.jobs.get(row.index).map(|job| &job.settings[..]).unwrap_or_default()
}

/// The values of each setting of the campaign.
fn values(campaign: &Campaign) -> BTreeMap<&str, Vec<&str>> {
    let mut values: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (key, value) in campaign.jobs.iter().flat_map(|job| &job.settings) {
        let known = values.entry(key).or_default();
        if known.len() <= GROUPS_MAX && !known.contains(&value.as_str()) {
            known.push(value);
        }
    }
    values
}

/// Rows by their settings. Where there are too many points to tell apart, by those settings only that take few values.
pub fn groups(campaign: &Campaign, rows: &[Row]) -> BTreeMap<String, Vec<Row>> {
    let values = values(campaign);
    let few = |key: &str, most: usize| values.get(key).is_some_and(|values| (2..=most).contains(&values.len()));
    for most in [GROUPS_MAX, 8, 2, 0] {
        let mut groups: BTreeMap<String, Vec<Row>> = BTreeMap::new();
        for row in rows {
            let kept = settings(campaign, row).iter().filter(|(key, _)| few(key, most));
            let name = kept.map(|(key, value)| format!("{} = {}", short(key), value.trim_matches('"')));
            groups.entry(name.collect::<Vec<_>>().join(", ")).or_default().push(row.clone());
        }
        if groups.len() <= GROUPS_MAX {
            return groups;
        }
    }
    BTreeMap::from([(String::new(), rows.to_vec())])
}

/// A key without the table that everybody knows it from.
fn short(key: &str) -> &str {
    key.strip_prefix("endpoints.").or_else(|| key.strip_prefix("transfer.")).unwrap_or(key)
}

fn number(x: Option<f64>) -> String {
    x.map_or("-".to_owned(), |x| format!("{x:.3}"))
}

fn interval(sorted: &Sorted) -> String {
    sorted.median_interval().map_or("-".to_owned(), |(a, b)| format!("{a:.3} - {b:.3}"))
}

/// Name, runs, complete ones, and figures of the completion time.
pub fn table_of_groups(groups: &BTreeMap<String, Vec<Row>>) -> Vec<Vec<String>> {
    let row = |(name, rows): (&String, &Vec<Row>)| {
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
const PAIR_COLUMNS: [&str; 8] =
    ["setting", "value", "against", "pairs", "both complete", "median time ratio", "95 % interval", "faster in"];

/// Runs that differ in one setting only, seed and all else alike: the time with each value over that with the first.
fn pairs(campaign: &Campaign, rows: &[Row]) -> Vec<Vec<String>> {
    let mut table = Vec::new();
    for (key, values) in values(campaign) {
        let Some((first, others)) = values.split_first().filter(|_| (2..=VALUES_MAX).contains(&values.len())) else {
            continue;
        };
        let mut by_rest: BTreeMap<String, BTreeMap<&str, &Row>> = BTreeMap::new();
        for row in rows {
            let settings = settings(campaign, row);
            let Some((_, value)) = settings.iter().find(|(name, _)| name == key) else { continue };
            let rest = settings.iter().filter(|(name, _)| name != key).map(|(name, value)| format!("{name}={value}"));
            let rest = rest.chain([format!("seed={}", row.cell("seed").unwrap_or(""))]).collect::<Vec<_>>().join(",");
            by_rest.entry(rest).or_default().insert(value, row);
        }
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
            ]);
        }
    }
    table
}

/// Mean bytes that each path carried towards the client, by group.
fn bytes_per_path(groups: &BTreeMap<String, Vec<Row>>) -> Plot {
    let mut plot = Plot::new("Bytes carried towards the client, mean of a run", "", "MB");
    let columns: Vec<String> = (0..8).map(|path| format!("path{path}_down_bytes")).collect();
    let paths =
        groups.values().flatten().next().map_or(0, |row| columns.iter().filter(|c| row.cell(c).is_some()).count());
    plot.bar_names((0..paths).map(|path| format!("path {path}")));
    for (name, rows) in groups.iter().take(CURVES_MAX) {
        let mean = |column: &String| Sorted::new(rows.iter().filter_map(|row| row.number(column))).mean();
        let name = if name.is_empty() { "all" } else { name };
        plot.bar_group(name, columns.iter().take(paths).map(|c| mean(c).unwrap_or(0.0) / 1e6).collect());
    }
    plot
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
    let share = "share of complete runs";
    let mut times = Plot::new("Completion time", "completion time, s", share).x_scale(Scale::Log).y_range(0.0, 1.0);
    let mut rates = Plot::new("Goodput", "goodput, Mbit/s", share).x_scale(Scale::Log).y_range(0.0, 1.0);
    let mut starts = Plot::new("First byte", "first byte after, ms", share).x_scale(Scale::Log).y_range(0.0, 1.0);
    for (name, rows) in groups.iter().take(CURVES_MAX) {
        let column = |name| rows.iter().filter(|row| row.is_complete()).filter_map(move |row| row.number(name));
        times.cdf(name.clone(), rows.iter().filter_map(Row::seconds));
        rates.cdf(name.clone(), column("goodput_mbps"));
        starts.cdf(name.clone(), column("first_byte_ms"));
    }
    let title = match groups.len() {
        count if count > CURVES_MAX => format!("Distributions (the first {CURVES_MAX} of {count} groups)"),
        _ => "Distributions".to_owned(),
    };
    page.heading(&title).plots(&[times, rates, starts, bytes_per_path(&groups)]);
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
