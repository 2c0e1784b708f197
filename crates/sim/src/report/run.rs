//! The report of one run: its figures, how rate, window, RTT and queue of each path went, and what the scheduler did.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::host::app::Load;
use crate::host::decisions::{Logged, PathVerdict, Record};
use crate::plot::{Plot, Style};
use crate::policies::Chosen;
use crate::run::outcome::{End, Outcome, PathOutcome};
use crate::run::series::{CrossSample, PathSample, Sample, Series};
use crate::scenario::Scenario;

use super::Page;
use super::data::decision_text;

/// Decisions shown on the page; all are in the CSV.
const DECISIONS_SHOWN: usize = 200;
/// State changes shown.
const CHANGES_SHOWN: usize = 200;
/// Times at which the stacks of decisions are drawn.
const STACK_PLACES: usize = 80;

fn ms(time: Option<Duration>) -> String {
    time.map_or("-".into(), |time| format!("{:.1}", time.as_secs_f64() * 1e3))
}

fn seconds(at: plait_base::Instant) -> f64 {
    at.since_origin().as_secs_f64()
}

/// 20000000 as 20,000,000.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let group = |(i, c): (usize, char)| {
        let comma = i > 0 && (digits.len() - i).is_multiple_of(3);
        comma.then_some(',').into_iter().chain([c])
    };
    digits.chars().enumerate().flat_map(group).collect()
}

/// The report of one run.
pub fn run_page(scenario: &Scenario, seed: u64, outcome: &Outcome) -> Page {
    let mut page = Page::new(&scenario.name);
    page.text(&what(scenario, seed));
    page.tiles(&tiles(outcome));
    if !outcome.faults.is_empty() {
        page.notes(&outcome.faults.iter().map(|fault| format!("Rule broken: {fault}")).collect::<Vec<_>>());
    }
    page.heading("Paths").table(&PATH_COLUMNS, &path_rows(scenario, outcome));
    if let Some(series) = &outcome.series {
        let mut plots = over_time(series);
        plots.iter_mut().for_each(|plot| events(scenario, plot));
        page.heading("Over time").plots(&plots);
    }
    let mut spread = vec![shares(outcome)];
    spread.extend(outcome.series.as_ref().map(rtt_spread));
    if outcome.exchanges.len() > 1 {
        spread.splice(0..0, delays(scenario, outcome));
    }
    page.heading("Bytes, and how figures spread").plots(&spread);
    decisions(&mut page, scenario, outcome);
    let changes = outcome.changes.iter().take(CHANGES_SHOWN);
    let changes = changes.map(|c| {
        let path = c.scenario_path.map_or("-".into(), |path| path.to_string());
        vec![format!("{:.6}", seconds(c.at)), path, c.path.0.to_string(), c.state.name().to_owned()]
    });
    page.heading("Path states at the sender")
        .table(&["time, s", "path", "path id", "state"], &changes.collect::<Vec<_>>());
    page
}

/// What ran, in one line.
fn what(scenario: &Scenario, seed: u64) -> String {
    let load = match scenario.load {
        Load::Download { bytes } => format!("Download of {} bytes", grouped(bytes)),
        Load::Upload { bytes } => format!("Upload of {} bytes", grouped(bytes)),
        Load::DownloadFor { duration } => format!("Download for {} s", duration.as_secs_f64()),
        Load::Requests { request_bytes, response_bytes, interval, count } => format!(
            "{count} requests of {request_bytes} bytes each {} ms, answers of {response_bytes} bytes",
            interval.as_millis()
        ),
    };
    let ends = &scenario.endpoints;
    format!(
        "{load}; {} paths, path {} first; extension {}, scheduler {}, congestion control {}, acks by {}, protection {}; \
         seed {seed}.",
        scenario.paths.len(),
        ends.handshake.initial_path,
        format!("{:?}", ends.extension).to_lowercase(),
        ends.scheduler.name(),
        ends.congestion.as_ref().map_or("by default", Chosen::name),
        ends.ack_path,
        format!("{:?}", ends.protection).to_lowercase(),
    )
}

fn tiles(outcome: &Outcome) -> Vec<(&'static str, String)> {
    let end = match &outcome.end {
        End::Complete => "complete".to_owned(),
        End::Unfinished(why) => format!("unfinished: {why}"),
        End::Failed(why) => format!("failed: {why}"),
    };
    let mut tiles = vec![
        ("end", end),
        ("time", format!("{:.3} s", outcome.elapsed.as_secs_f64())),
        ("goodput", format!("{:.3} Mbit/s", outcome.goodput_bps() / 1e6)),
        ("bytes intact and in order", grouped(outcome.verified_bytes)),
        ("handshake", format!("{} ms", ms(outcome.handshake))),
        ("first byte", format!("{} ms", ms(outcome.first_byte))),
        ("stalls (longest gap)", format!("{} ({} ms)", outcome.stalls, ms(Some(outcome.stall_longest)))),
    ];
    if outcome.exchanges.len() > 1 {
        let delays = crate::stats::Sorted::new(outcome.delays().iter().map(|d| d.as_secs_f64() * 1e3));
        let at = |share| delays.quantile(share).map_or("-".to_owned(), |ms| format!("{ms:.1}"));
        tiles.push(("delay: median / 95 % / worst", format!("{} / {} / {} ms", at(0.5), at(0.95), at(1.0))));
        tiles.push(("unanswered", (outcome.exchanges.len() - delays.len()).to_string()));
    }
    tiles
}

const PATH_COLUMNS: [&str; 12] = [
    "path",
    "link down",
    "link up",
    "sent, bytes",
    "packets",
    "lost",
    "RTT, ms",
    "least RTT, ms",
    "cwnd, bytes",
    "PTOs",
    "carried down, bytes",
    "dropped down",
];

fn path_rows(scenario: &Scenario, outcome: &Outcome) -> Vec<Vec<String>> {
    let row = |(i, path): (usize, &PathOutcome)| {
        let (sender, down) = (&path.sender, &path.traffic.down);
        let plan = scenario.paths.get(i);
        vec![
            i.to_string(),
            plan.map_or(String::new(), |plan| plan.own.down.summary()),
            plan.map_or(String::new(), |plan| plan.own.up.summary()),
            grouped(sender.sent_bytes),
            grouped(sender.packets_sent),
            grouped(sender.packets_lost),
            ms(sender.rtt),
            ms(sender.rtt_min),
            grouped(sender.window_bytes),
            sender.probe_timeouts.to_string(),
            grouped(down.forwarded_bytes),
            grouped(down.drops_total()),
        ]
    };
    outcome.paths.iter().enumerate().map(row).collect()
}

/// Marks the events of the scenario.
fn events(scenario: &Scenario, plot: &mut Plot) {
    for event in scenario.events.iter().take(8) {
        plot.mark(event.at.as_secs_f64(), event.summary(scenario));
    }
}

/// One figure of a path at a moment.
type Figure = fn(&PathSample) -> f64;

/// The same figure of cross traffic, which none may have.
type CrossFigure = fn(&CrossSample) -> f64;

/// Rate, window, RTT, queue and bytes of each path, and what is known of cross traffic.
fn over_time(series: &Series) -> Vec<Plot> {
    let mut rate = Plot::new("Rate carried by each path, and goodput", "time, s", "rate, Mbit/s").y_range(0.0, 0.1);
    let paths = series.samples.first().map_or(0, |sample| sample.paths.len());
    for path in 0..paths {
        let bytes = |s: &Sample| s.paths.get(path).map_or(0, |p| p.carried_bytes);
        rate.curve(format!("path {path}"), rates(series, bytes), Style::Line);
    }
    rate.curve("goodput", rates(series, |sample| sample.verified_bytes), Style::Line);
    for (index, label) in series.cross.iter().enumerate() {
        rate.curve(label, rates(series, |s| s.cross.get(index).map_or(0, |c| c.bytes)), Style::Line);
    }
    let mut plots = vec![rate];
    let known = |ms: f64| if ms > 0.0 { ms } else { f64::NAN };
    let figures: [(&str, &str, Figure, Option<CrossFigure>); 3] = [
        ("Congestion window", "cwnd, kB", |p| p.window_bytes as f64 / 1e3, Some(|c| c.window_bytes as f64 / 1e3)),
        ("Smoothed RTT", "RTT, ms", |p| p.rtt_ms, Some(|c| c.rtt_ms)),
        ("Wait in the queue towards the receiver", "wait, ms", |p| p.queue_ms, None),
    ];
    for (title, unit, figure, beside) in figures {
        let mut plot = Plot::new(title, "time, s", unit).y_range(0.0, 0.1);
        for path in 0..paths {
            let point = |s: &Sample| {
                let value = s.paths.get(path).map_or(f64::NAN, figure);
                // Before the first sample of the path there is neither a window nor an RTT.
                (seconds(s.at), if matches!(unit, "cwnd, kB" | "RTT, ms") { known(value) } else { value })
            };
            plot.curve(format!("path {path}"), series.samples.iter().map(point).collect(), Style::Line);
        }
        for (index, label) in series.cross.iter().enumerate() {
            let value = |s: &Sample| Some(known(beside?(s.cross.get(index)?)));
            let points = series.samples.iter().filter_map(|s| Some((seconds(s.at), value(s)?)));
            let points: Vec<_> = points.collect();
            // Packets at a rate have neither window nor RTT.
            if points.iter().any(|(_, value)| !value.is_nan()) {
                plot.curve(label, points, Style::Line);
            }
        }
        plots.push(plot);
    }
    plots.push(bytes_over_time(series, "Bytes carried so far", |p| p.carried_bytes));
    plots.push(bytes_over_time(series, "Bytes in flight", |p| p.in_flight_bytes));
    plots
}

/// Bytes of each path over time.
fn bytes_over_time(series: &Series, title: &str, bytes: fn(&PathSample) -> u64) -> Plot {
    let most = series.samples.iter().flat_map(|s| &s.paths).map(bytes).max().unwrap_or(0);
    let (unit, size) = unit_of(most);
    let mut plot = Plot::new(title, "time, s", unit).y_range(0.0, 0.1);
    for path in 0..series.samples.first().map_or(0, |sample| sample.paths.len()) {
        let point = |s: &Sample| (seconds(s.at), s.paths.get(path).map_or(0.0, |p| bytes(p) as f64 / size));
        plot.curve(format!("path {path}"), series.samples.iter().map(point).collect(), Style::Line);
    }
    plot
}

/// The unit that suits so many bytes, and its size.
fn unit_of(bytes: u64) -> (&'static str, f64) {
    if bytes >= 2_000_000 { ("MB", 1e6) } else { ("kB", 1e3) }
}

/// Mbit/s of a counter, over windows of a hundredth of the run and at least five samples.
fn rates(series: &Series, bytes: impl Fn(&Sample) -> u64) -> Vec<(f64, f64)> {
    let width = (series.samples.len() / 100).max(5);
    let starts = series.samples.iter().step_by(width);
    let pairs = starts.clone().zip(starts.skip(1).chain(series.samples.last()));
    let point = |(a, b): (&Sample, &Sample)| {
        let span = b.at.since(a.at).as_secs_f64();
        let more = bytes(b).saturating_sub(bytes(a));
        (span > 0.0).then(|| (f64::midpoint(seconds(a.at), seconds(b.at)), more as f64 * 8e-6 / span))
    };
    pairs.filter_map(point).collect()
}

fn delays(scenario: &Scenario, outcome: &Outcome) -> [Plot; 2] {
    let answered: Vec<(f64, f64)> = outcome
        .exchanges
        .iter()
        .filter_map(|e| Some((seconds(e.asked), e.answered?.since(e.asked).as_secs_f64() * 1e3)))
        .collect();
    let mut spread = Plot::new("Delay of answers: distribution", "delay, ms", "share of answers").y_range(0.0, 1.0);
    spread.cdf("delay", answered.iter().map(|(_, delay)| *delay));
    let mut plot = Plot::new("Delay of each answer", "asked at, s", "delay, ms").y_range(0.0, 0.1);
    plot.curve("delay", answered, Style::Dots);
    events(scenario, &mut plot);
    [plot, spread]
}

fn shares(outcome: &Outcome) -> Plot {
    let (unit, size) = unit_of(outcome.paths.iter().map(|path| path.sender.sent_bytes).max().unwrap_or(0));
    let mut plot = Plot::new("Bytes sent on each path", "", unit);
    for (i, path) in outcome.paths.iter().enumerate() {
        plot.bar(format!("path {i}"), path.sender.sent_bytes as f64 / size);
    }
    plot
}

/// Smoothed RTT by the share of time.
fn rtt_spread(series: &Series) -> Plot {
    let mut plot = Plot::new("Smoothed RTT: distribution over time", "RTT, ms", "share of time").y_range(0.0, 1.0);
    for path in 0..series.samples.first().map_or(0, |sample| sample.paths.len()) {
        let values = series.samples.iter().filter_map(|s| s.paths.get(path).map(|p| p.rtt_ms));
        plot.cdf(format!("path {path}"), values.filter(|ms| *ms > 0.0));
    }
    plot
}

/// What the scheduler did with each path and why: over time, in sum, and one by one.
fn decisions(page: &mut Page, scenario: &Scenario, outcome: &Outcome) {
    let Some(record) = &outcome.decisions.record else { return };
    page.heading("Decisions of the sender's scheduler, with their reasons");
    page.text(
        "At each decision every path has a verdict: it carried the packet, it carried a copy, or it was left out for the \
         reason given.",
    );
    if let Some(series) = &outcome.series {
        let mut plots: Vec<Plot> =
            (0..scenario.paths.len()).take(8).map(|path| verdicts_over_time(series, path)).collect();
        plots.iter_mut().for_each(|plot| events(scenario, plot));
        page.plots(&plots);
        let last = series.samples.last();
        let count =
            |path: usize, place: usize| last.and_then(|s| s.paths.get(path)?.verdicts.get(place).copied()).unwrap_or(0);
        let rows = PathVerdict::ALL.iter().enumerate().map(|(place, verdict)| {
            let counts = (0..scenario.paths.len()).map(|path| grouped(count(path, place)));
            [format!("{} ({})", verdict.meaning(), verdict.name())].into_iter().chain(counts).collect::<Vec<_>>()
        });
        let rows: Vec<_> = rows.filter(|row| row.iter().skip(1).any(|count| count != "0")).collect();
        let names: Vec<String> = (0..scenario.paths.len()).map(|path| format!("path {path}")).collect();
        let header: Vec<&str> = ["verdict"].into_iter().chain(names.iter().map(String::as_str)).collect();
        page.table(&header, &rows);
    }
    let counts = &outcome.decisions;
    page.text(&format!(
        "{} packets were also copied; the scheduler waited {} times for a faster path, {} times because every path was \
         busy, {} times without any.",
        grouped(counts.copied),
        grouped(counts.waited_faster),
        grouped(counts.waited_busy),
        grouped(counts.waited_no_path)
    ));
    let paths: BTreeMap<u32, usize> =
        outcome.changes.iter().filter_map(|change| Some((change.path.0, change.scenario_path?))).collect();
    page.folded_table(
        &format!("The first {DECISIONS_SHOWN} decisions that differ (all are in decisions.csv)"),
        &["from, s", "until, s", "times", "decision", "paths, when it was first made"],
        &first_decisions(record, &paths),
    );
}

/// Shares of the verdicts on a path in each slice of time.
fn verdicts_over_time(series: &Series, path: usize) -> Plot {
    let width = series.samples.len().div_ceil(STACK_PLACES).max(1);
    let picked: Vec<&Sample> = series.samples.iter().step_by(width).chain(series.samples.last()).collect();
    let mut places = Vec::new();
    let mut layers: Vec<Vec<f64>> = vec![Vec::new(); PathVerdict::ALL.len()];
    for pair in picked.windows(2) {
        let (Some(a), Some(b)) = (pair[0].paths.get(path), pair[1].paths.get(path)) else { continue };
        let more = b.verdicts.iter().zip(&a.verdicts).map(|(b, a)| b.saturating_sub(*a) as f64);
        let more: Vec<f64> = more.collect();
        let total = more.iter().sum::<f64>().max(1.0);
        for end in [pair[0], pair[1]] {
            places.push(seconds(end.at));
            layers.iter_mut().zip(&more).for_each(|(layer, more)| layer.push(100.0 * more / total));
        }
    }
    let title = format!("Path {path}: verdict of each decision");
    let mut plot = Plot::new(title, "time, s", "% of decisions").y_range(0.0, 100.0);
    // Sent is green, full windows orange, preferred others violet: the same on every path.
    const COLOURS: [usize; PathVerdict::ALL.len()] = [2, 5, 1, 4, 3, 6, 7, 0, 0, 6, 6, 6, 8];
    let layers = layers.into_iter().zip(PathVerdict::ALL).zip(COLOURS);
    let layers = layers.filter(|((layer, _), _)| layer.iter().any(|share| *share > 0.0));
    let layers = layers.map(|((layer, verdict), colour)| (colour, verdict.meaning().to_owned(), layer));
    plot.stacked(&places, layers.collect());
    plot
}

fn first_decisions(record: &Record, paths: &BTreeMap<u32, usize>) -> Vec<Vec<String>> {
    let row = |line: &Logged| {
        let seen = line.paths.iter().map(|seen| {
            let path = paths.get(&seen.path.0).map_or(String::new(), |path| format!(" (path {path})"));
            format!(
                "id {}{path}: {}, RTT {} ms, {} of {} bytes in flight",
                seen.path.0,
                seen.verdict.map_or("closing", PathVerdict::meaning),
                ms(seen.rtt),
                grouped(seen.in_flight_bytes),
                grouped(seen.window_bytes)
            )
        });
        vec![
            format!("{:.6}", seconds(line.first)),
            format!("{:.6}", seconds(line.last)),
            line.count.to_string(),
            decision_text(line.decision),
            seen.collect::<Vec<_>>().join("; "),
        ]
    };
    record.log.iter().take(DECISIONS_SHOWN).map(row).collect()
}
