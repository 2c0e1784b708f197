//! The report of one run: its figures, and how rate, window, RTT and queue of each path went.

use std::time::Duration;

use crate::plot::{Plot, Style};
use crate::run::outcome::{End, Outcome};
use crate::run::series::{PathSample, Series};
use crate::scenario::Scenario;

use super::Page;

fn ms(time: Option<Duration>) -> String {
    time.map_or("-".into(), |time| format!("{:.1}", time.as_secs_f64() * 1e3))
}

/// The report of one run.
pub fn run_report(scenario: &Scenario, seed: u64, outcome: &Outcome) -> String {
    let mut page = Page::new();
    let end = match &outcome.end {
        End::Complete => "complete".to_owned(),
        End::Unfinished(why) => format!("unfinished: {why}"),
        End::Failed(why) => format!("failed: {why}"),
    };
    let facts = [
        ("seed", seed.to_string()),
        ("end", end),
        ("time, s", format!("{:.3}", outcome.elapsed.as_secs_f64())),
        ("bytes", outcome.verified_bytes.to_string()),
        ("goodput, Mbit/s", format!("{:.3}", outcome.goodput_bps() / 1e6)),
        ("handshake, ms", ms(outcome.handshake)),
        ("first byte, ms", ms(outcome.first_byte)),
        ("stalls", format!("{} (longest {} ms)", outcome.stalls, ms(Some(outcome.stall_longest)))),
        ("scheduler", scenario.endpoints.scheduler.to_owned()),
        ("congestion control", scenario.endpoints.congestion.unwrap_or("by default").to_owned()),
        ("acks by", scenario.endpoints.ack_path.to_owned()),
        ("protection", format!("{:?}", scenario.endpoints.protection)),
        ("rules broken", outcome.faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")),
    ];
    let facts: Vec<_> = facts.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect();
    page.table(&["", ""], &facts);
    page.heading("Paths").table(
        &["path", "sent bytes", "packets", "lost", "RTT ms", "least RTT ms", "cwnd", "PTOs", "down bytes", "dropped"],
        &path_rows(outcome),
    );
    if let Some(series) = &outcome.series {
        page.heading("Over time").plots(&over_time(series));
    }
    if outcome.exchanges.len() > 1 {
        page.heading("Requests").plots(&[delays(outcome)]);
    }
    page.heading("Shares and decisions").plots(&[shares(outcome), decisions(outcome)]);
    let changes = outcome.changes.iter().take(200);
    let changes = changes.map(|c| vec![format!("{}", c.at), c.path.0.to_string(), c.state.name().to_owned()]);
    page.heading("Path states at the sender").table(&["at", "path id", "state"], &changes.collect::<Vec<_>>());
    page.html(&scenario.name)
}

fn path_rows(outcome: &Outcome) -> Vec<Vec<String>> {
    let row = |(i, path): (usize, &crate::run::outcome::PathOutcome)| {
        let (sender, down) = (&path.sender, &path.traffic.down);
        vec![
            i.to_string(),
            sender.sent_bytes.to_string(),
            sender.packets_sent.to_string(),
            sender.packets_lost.to_string(),
            ms(sender.rtt),
            ms(sender.rtt_min),
            sender.window_bytes.to_string(),
            sender.probe_timeouts.to_string(),
            down.forwarded_bytes.to_string(),
            down.drops_total().to_string(),
        ]
    };
    outcome.paths.iter().enumerate().map(row).collect()
}

/// One figure of a path at a moment.
type Figure = fn(&PathSample) -> f64;

/// Rate, window, RTT and queue of each path.
fn over_time(series: &Series) -> Vec<Plot> {
    let mut rate = Plot::new("Rate carried by each path", "s", "Mbit/s");
    let paths = series.samples.first().map_or(0, |sample| sample.paths.len());
    for path in 0..paths {
        rate.curve(
            format!("path {path}"),
            rates(series, |s| s.paths.get(path).map_or(0, |p| p.carried_bytes)),
            Style::Line,
        );
    }
    rate.curve("goodput", rates(series, |sample| sample.verified_bytes), Style::Line);
    let mut plots = vec![rate];
    let figures: [(&str, &str, Figure); 3] = [
        ("Congestion window", "kB", |p| p.window_bytes as f64 / 1e3),
        ("Smoothed RTT", "ms", |p| p.rtt_ms),
        ("Wait in the queue", "ms", |p| p.queue_ms),
    ];
    for (title, unit, figure) in figures {
        let mut plot = Plot::new(title, "s", unit);
        for path in 0..paths {
            let point = |s: &crate::run::series::Sample| {
                (s.at.since_origin().as_secs_f64(), s.paths.get(path).map_or(0.0, figure))
            };
            plot.curve(format!("path {path}"), series.samples.iter().map(point).collect(), Style::Line);
        }
        plots.push(plot);
    }
    plots
}

/// Mbit/s of a counter, over windows of a hundredth of the run and at least five samples.
fn rates(series: &Series, bytes: impl Fn(&crate::run::series::Sample) -> u64) -> Vec<(f64, f64)> {
    let width = (series.samples.len() / 100).max(5);
    let starts = series.samples.iter().step_by(width);
    let pairs = starts.clone().zip(starts.skip(1).chain(series.samples.last()));
    let point = |(a, b): (&crate::run::series::Sample, &crate::run::series::Sample)| {
        let seconds = b.at.since(a.at).as_secs_f64();
        let more = bytes(b).saturating_sub(bytes(a));
        (seconds > 0.0).then(|| (b.at.since_origin().as_secs_f64(), more as f64 * 8e-6 / seconds))
    };
    pairs.filter_map(point).collect()
}

fn delays(outcome: &Outcome) -> Plot {
    let mut plot = Plot::new("Delay of each answer", "s", "ms");
    let answered = outcome
        .exchanges
        .iter()
        .filter_map(|e| Some((e.asked.since_origin().as_secs_f64(), e.answered?.since(e.asked).as_secs_f64() * 1e3)));
    plot.curve("delay", answered.collect(), Style::Dots);
    plot
}

fn shares(outcome: &Outcome) -> Plot {
    let mut plot = Plot::new("Bytes sent on each path", "", "MB");
    for (i, path) in outcome.paths.iter().enumerate() {
        plot.bar(format!("path {i}"), path.sender.sent_bytes as f64 / 1e6);
    }
    plot
}

fn decisions(outcome: &Outcome) -> Plot {
    let mut plot = Plot::new("Decisions of the sender's scheduler", "", "count");
    let counts = &outcome.decisions;
    counts.sent.iter().for_each(|(id, count)| plot.bar(format!("path id {id}"), *count as f64));
    plot.bar("copied", counts.copied as f64);
    plot.bar("wait: faster", counts.waited_faster as f64);
    plot.bar("wait: busy", counts.waited_busy as f64);
    plot.bar("wait: no path", counts.waited_no_path as f64);
    plot
}

/// The samples of a run, one line each.
pub fn series_csv(series: &Series) -> String {
    let paths = series.samples.first().map_or(0, |sample| sample.paths.len());
    let mut text = String::from("at_s,verified_bytes");
    for path in 0..paths {
        for name in ["carried_bytes", "cwnd_bytes", "in_flight_bytes", "rtt_ms", "queue_ms"] {
            text.push_str(&format!(",path{path}_{name}"));
        }
    }
    text.push('\n');
    for sample in &series.samples {
        text.push_str(&format!("{:.6},{}", sample.at.since_origin().as_secs_f64(), sample.verified_bytes));
        for p in &sample.paths {
            let (rtt, queue) = (p.rtt_ms, p.queue_ms);
            text.push_str(&format!(
                ",{},{},{},{rtt:.3},{queue:.3}",
                p.carried_bytes, p.window_bytes, p.in_flight_bytes
            ));
        }
        text.push('\n');
    }
    text
}
