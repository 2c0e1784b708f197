//! Runs of a campaign grouped by what was set: in the order that people expect, and chosen for plots so that every value
//! of a setting is seen.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::campaign::{Campaign, Row};

/// Groups that are shown one by one.
const GROUPS_MAX: usize = 40;
/// Curves of a plot: as many as there are schedulers, and colours that are told apart.
pub(super) const CURVES_MAX: usize = 8;
/// Rows of plots.
const PANELS_MAX: usize = 6;
/// Settings that people compare first.
const COMPARED: [&str; 4] =
    ["endpoints.scheduler", "endpoints.congestion", "endpoints.reinjection", "endpoints.ack_path"];

/// Runs that agree in what was set.
#[derive(Clone, Debug)]
pub struct Group {
    /// What was set.
    pub name: String,
    /// The runs of the group.
    pub rows: Vec<Row>,
    /// Keys and values of the name.
    settings: Vec<(String, String)>,
}

/// Groups that are drawn together: they differ in one setting.
#[derive(Clone, Debug)]
pub(super) struct Panel<'a> {
    /// What they agree in; empty where that is nothing.
    pub(super) name: String,
    /// Name and runs of each.
    pub(super) curves: Vec<(String, &'a [Row])>,
}

/// Settings of a row by their keys: those that only some groups differ in.
pub(super) fn settings<'a>(campaign: &'a Campaign, row: &Row) -> &'a [(String, String)] {
    campaign.jobs.get(row.index).map(|job| &job.settings[..]).unwrap_or_default()
}

/// The values of each setting of the campaign: numbers by size, words in the order of the file.
pub(super) fn values(campaign: &Campaign) -> BTreeMap<&str, Vec<&str>> {
    let mut values: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (key, value) in campaign.jobs.iter().flat_map(|job| job.settings.iter()) {
        let known = values.entry(key).or_default();
        if known.len() <= GROUPS_MAX && !known.contains(&value.as_str()) {
            known.push(value);
        }
    }
    values.values_mut().for_each(|known| known.sort_by(|a, b| by_size(a, b)));
    values
}

/// Numbers by their size; others are left as they stand.
fn by_size(a: &str, b: &str) -> Ordering {
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) => a.total_cmp(&b),
        _ => Ordering::Equal,
    }
}

/// Rows by their settings. Where there are too many points to tell apart, by those settings only that take few values.
pub fn groups(campaign: &Campaign, rows: &[Row]) -> Vec<Group> {
    let values = values(campaign);
    let few = |key: &str, most: usize| values.get(key).is_some_and(|values| (2..=most).contains(&values.len()));
    for most in [GROUPS_MAX, 8, 2, 0] {
        let mut groups: BTreeMap<Vec<usize>, Group> = BTreeMap::new();
        for row in rows {
            let kept: Vec<_> = settings(campaign, row).iter().filter(|(key, _)| few(key, most)).cloned().collect();
            let place = |(key, value): &(String, String)| {
                values.get(key.as_str()).and_then(|known| known.iter().position(|v| v == value)).unwrap_or(usize::MAX)
            };
            let places = kept.iter().map(place).collect();
            let group =
                groups.entry(places).or_insert_with(|| Group { name: named(&kept), rows: Vec::new(), settings: kept });
            group.rows.push(row.clone());
        }
        if groups.len() <= GROUPS_MAX {
            return groups.into_values().collect();
        }
    }
    vec![Group { name: String::new(), rows: rows.to_vec(), settings: Vec::new() }]
}

/// Settings as a name: `scheduler = blest, path.0.rtt_ms = 20`.
fn named(settings: &[(String, String)]) -> String {
    let words = settings.iter().map(|(key, value)| format!("{} = {}", short(key), value.trim_matches('"')));
    words.collect::<Vec<_>>().join(", ")
}

/// A key without the table that everybody knows it from.
pub(super) fn short(key: &str) -> &str {
    key.strip_prefix("endpoints.").or_else(|| key.strip_prefix("transfer.")).unwrap_or(key)
}

/// The groups to draw, and in words which they are: all in one panel where they fit; else a panel for each combination of
/// the other settings, with a curve for each value of the one that people compare.
pub(super) fn panels(groups: &[Group]) -> (String, Vec<Panel<'_>>) {
    if groups.len() <= CURVES_MAX {
        let curves = groups.iter().map(|group| (group.name.clone(), &group.rows[..]));
        return ("Distributions".to_owned(), vec![Panel { name: String::new(), curves: curves.collect() }]);
    }
    let key = compared(groups);
    let mut panels: Vec<Panel<'_>> = Vec::new();
    for group in groups {
        let (own, rest): (Vec<_>, Vec<_>) = group.settings.iter().cloned().partition(|(name, _)| *name == key);
        let (name, curve) = (named(&rest), (curve_name(&own), &group.rows[..]));
        match panels.iter_mut().find(|panel| panel.name == name) {
            Some(panel) => panel.curves.push(curve),
            None => panels.push(Panel { name, curves: vec![curve] }),
        }
    }
    let (all, widest) = (panels.len(), panels.iter().map(|panel| panel.curves.len()).max().unwrap_or(0));
    let mut panels = evenly(panels, PANELS_MAX);
    panels.iter_mut().for_each(|panel| panel.curves = evenly(std::mem::take(&mut panel.curves), CURVES_MAX));
    let mut title = format!("Distributions by {}", short(&key));
    if widest > CURVES_MAX {
        title += &format!(", {CURVES_MAX} of {widest} values evenly chosen");
    }
    if all > PANELS_MAX {
        title += &format!("; {PANELS_MAX} of the {all} combinations of the other settings, evenly chosen");
    } else if all > 1 {
        title += &format!(" for each of the {all} combinations of the other settings");
    }
    (title, panels)
}

/// The setting whose values are drawn together: the first of those that people compare, else the one with most values that
/// fit a plot, else the one with fewest.
fn compared(groups: &[Group]) -> String {
    let mut counts: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (key, value) in groups.iter().flat_map(|group| &group.settings) {
        let known = counts.entry(key).or_default();
        if !known.contains(&value.as_str()) {
            known.push(value);
        }
    }
    let fits = |key: &str| counts.get(key).is_some_and(|values| (2..=CURVES_MAX).contains(&values.len()));
    let favourite = COMPARED.into_iter().find(|key| fits(key));
    let fullest =
        || counts.iter().filter(|(key, _)| fits(key)).max_by_key(|(_, values)| values.len()).map(|(key, _)| *key);
    let fewest = || counts.iter().min_by_key(|(_, values)| values.len()).map(|(key, _)| *key);
    favourite.or_else(fullest).or_else(fewest).unwrap_or_default().to_owned()
}

/// Words speak for themselves; numbers need their key.
fn curve_name(own: &[(String, String)]) -> String {
    match own {
        [(_, value)] if value.trim_matches('"').parse::<f64>().is_err() => value.trim_matches('"').to_owned(),
        own => named(own),
    }
}

/// At most so many of them, first and last included, with equal steps between.
fn evenly<T>(items: Vec<T>, most: usize) -> Vec<T> {
    let count = items.len();
    if count <= most {
        return items;
    }
    let wanted: Vec<usize> = (0..most).map(|i| (i * (count - 1) + (most - 1) / 2) / (most - 1)).collect();
    items.into_iter().enumerate().filter(|(i, _)| wanted.contains(i)).map(|(_, item)| item).collect()
}

/// Runs by all that was set but `key`, each with its value of it: seed and the other settings are alike.
pub(super) fn by_rest<'a>(
    campaign: &'a Campaign,
    rows: &'a [Row],
    key: &str,
) -> BTreeMap<String, BTreeMap<&'a str, &'a Row>> {
    let mut by_rest: BTreeMap<String, BTreeMap<&str, &Row>> = BTreeMap::new();
    for row in rows {
        let settings = settings(campaign, row);
        let Some((_, value)) = settings.iter().find(|(name, _)| name == key) else { continue };
        let rest = settings.iter().filter(|(name, _)| name != key).map(|(name, value)| format!("{name}={value}"));
        let rest = rest.chain([format!("seed={}", row.cell("seed").unwrap_or(""))]).collect::<Vec<_>>().join(",");
        by_rest.entry(rest).or_default().insert(value, row);
    }
    by_rest
}

/// True for two runs with the same datagrams at the same times.
pub(super) fn is_same_run(a: &Row, b: &Row) -> bool {
    let digest = |row: &Row| row.cell("digest").filter(|digest| !digest.is_empty()).map(str::to_owned);
    digest(a).is_some() && digest(a) == digest(b)
}

/// Values of a setting with which every run was the same, in words.
pub fn equals(campaign: &Campaign, rows: &[Row]) -> Vec<String> {
    let mut notes = Vec::new();
    for (key, values) in values(campaign).into_iter().filter(|(_, values)| (2..=GROUPS_MAX).contains(&values.len())) {
        let by_rest = by_rest(campaign, rows, key);
        let mut classes: Vec<(Vec<&str>, usize)> = Vec::new();
        for value in values {
            let like = |known: &str| {
                let both = by_rest.values().filter_map(|rows| Some((rows.get(known)?, rows.get(value)?)));
                both.map(|(a, b)| is_same_run(a, b))
                    .try_fold(0, |count, same| same.then_some(count + 1))
                    .filter(|n| *n > 0)
            };
            match classes.iter_mut().find_map(|class| like(class.0[0]).map(|count| (class, count))) {
                Some((class, count)) => {
                    class.0.push(value);
                    class.1 = count;
                }
                None => classes.push((vec![value], 0)),
            }
        }
        for (alike, count) in classes.into_iter().filter(|(alike, _)| alike.len() > 1) {
            let alike = alike.iter().map(|value| value.trim_matches('"')).collect::<Vec<_>>().join(", ");
            let runs = if count == 1 { "the one run".to_owned() } else { format!("all {count} runs") };
            notes.push(format!(
                "{}: {alike} did not differ; {runs} with each were the same, datagram for datagram",
                short(key)
            ));
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Traces, Tree};

    fn campaign(sweep: &str) -> Campaign {
        let text = format!(
            "[[path]]\nrate_mbps = 10\nrtt_ms = 20\n[transfer]\nkind = \"download\"\nbytes = 1000\n[sweep]\n{sweep}\n"
        );
        Campaign::plan(Tree::parse("x.toml", &text).unwrap(), Traces::default(), 1).unwrap()
    }

    fn rows(campaign: &Campaign, digest: impl Fn(&[(String, String)]) -> u64) -> Vec<Row> {
        let row = |job: &crate::campaign::Job| {
            let cells = [("seed", "1".to_owned()), ("digest", digest(&job.settings).to_string())];
            Row { index: job.index, cells: cells.map(|(name, value)| (name.to_owned(), value)).to_vec() }
        };
        campaign.jobs.iter().map(row).collect()
    }

    #[test]
    fn numbers_stand_in_their_order() {
        let campaign = campaign("path.0.rtt_ms = [200, 5, 80, 20]");
        let names: Vec<_> = groups(&campaign, &rows(&campaign, |_| 0)).into_iter().map(|group| group.name).collect();
        assert_eq!(names, ["5", "20", "80", "200"].map(|ms| format!("path.0.rtt_ms = {ms}")));
    }

    #[test]
    fn every_scheduler_is_drawn() {
        let schedulers = r#"endpoints.scheduler = ["minrtt", "redundant", "ecf", "blest", "weighted", "backup"]"#;
        let campaign = campaign(&format!("{schedulers}\npath.0.rtt_ms = [5, 20, 80]"));
        let groups = groups(&campaign, &rows(&campaign, |_| 0));
        let (title, panels) = panels(&groups);
        assert_eq!(
            (groups.len(), title.as_str()),
            (18, "Distributions by scheduler for each of the 3 combinations of the other settings")
        );
        for panel in &panels {
            let names: Vec<_> = panel.curves.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(names, ["minrtt", "redundant", "ecf", "blest", "weighted", "backup"], "{}", panel.name);
        }
        let names: Vec<_> = panels.iter().map(|panel| panel.name.as_str()).collect();
        assert_eq!(names, ["path.0.rtt_ms = 5", "path.0.rtt_ms = 20", "path.0.rtt_ms = 80"]);
    }

    #[test]
    fn what_is_left_out_is_said() {
        let list = (1..=20).map(|i| i.to_string()).collect::<Vec<_>>().join(", ");
        let campaign = campaign(&format!("path.0.rtt_ms = [{list}]"));
        let groups = groups(&campaign, &rows(&campaign, |_| 0));
        let (title, panels) = panels(&groups);
        assert_eq!(title, "Distributions by path.0.rtt_ms, 8 of 20 values evenly chosen");
        let names: Vec<_> = panels[0].curves.iter().map(|(name, _)| name.rsplit(' ').next().unwrap()).collect();
        assert_eq!((names.len(), names[0], names[7]), (8, "1", "20"));
        assert_eq!(evenly((0..5).collect(), 3), [0, 2, 4]);
    }

    #[test]
    fn runs_that_did_not_differ_are_said_to_be_equal() {
        let campaign = campaign("endpoints.scheduler = [\"minrtt\", \"blest\", \"ecf\"]\npath.0.rtt_ms = [5, 20]");
        let of = |settings: &[(String, String)], key: &str| {
            settings.iter().find(|(name, _)| name == key).map(|(_, value)| value.trim_matches('"').to_owned()).unwrap()
        };
        let rows = rows(&campaign, |settings| {
            let rtt: u64 = of(settings, "path.0.rtt_ms").parse().unwrap();
            rtt + if of(settings, "endpoints.scheduler") == "ecf" { 1000 } else { 0 }
        });
        let notes = equals(&campaign, &rows);
        assert_eq!(
            notes,
            ["scheduler: minrtt, blest did not differ; all 2 runs with each were the same, datagram for datagram"]
        );
    }
}
