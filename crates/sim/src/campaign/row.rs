//! One line of a result file: inputs and outcome of a run, as text that is the same on every machine.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Job;
use crate::run::outcome::{End, Outcome};

/// Columns that name a run.
pub(crate) const HEAD: [&str; 3] = ["run", "seed", "commit"];

/// A run in a result file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The run's place in its campaign.
    pub index: usize,
    /// Column names and values, in order.
    pub cells: Vec<(String, String)>,
}

fn millis(time: Option<Duration>) -> String {
    time.map_or(String::new(), |time| format!("{:.3}", time.as_secs_f64() * 1e3))
}

/// The value at `share` of sorted durations, ms.
fn percentile(sorted: &[Duration], share: f64) -> Option<Duration> {
    let last = sorted.len().checked_sub(1)?;
    sorted.get((last as f64 * share).round() as usize).copied()
}

impl Row {
    /// The row of a job; `inputs` are all values of its scenario by their keys.
    pub fn new(job: &Job, commit: &str, inputs: &BTreeMap<String, String>, outcome: &Outcome) -> Self {
        let mut cells: Vec<(String, String)> = Vec::new();
        let mut put = |name: &str, value: String| cells.push((name.to_owned(), value));
        put("run", job.index.to_string());
        put("seed", job.seed.to_string());
        put("commit", commit.to_owned());
        inputs.iter().filter(|(key, _)| *key != "seed").for_each(|(key, value)| put(key, value.clone()));
        put_end(&mut put, outcome);
        put_requests(&mut put, outcome);
        let decisions = &outcome.decisions;
        put("scheduler_waits_faster", decisions.waited_faster.to_string());
        put("scheduler_waits_busy", decisions.waited_busy.to_string());
        put("scheduler_waits_no_path", decisions.waited_no_path.to_string());
        put("scheduler_copies", decisions.copied.to_string());
        put("scheduler_idle_ms", millis(Some(decisions.idle_longest)));
        let (sent, arrived, lost) = outcome.around.datagrams;
        put("datagrams_sent", sent.to_string());
        put("datagrams_arrived", arrived.to_string());
        put("datagrams_lost", lost.to_string());
        put("faults", outcome.faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "));
        put("digest", format!("{:016x}", outcome.digest));
        put_paths(&mut put, outcome);
        put_shared(&mut cells, outcome);
        Self { index: job.index, cells }
    }

    /// A cell by its column.
    pub fn cell(&self, name: &str) -> Option<&str> {
        self.cells.iter().find(|(column, _)| column == name).map(|(_, value)| value.as_str())
    }

    /// A cell as a number.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.cell(name)?.parse().ok()
    }

    /// True when everything arrived.
    pub fn is_complete(&self) -> bool {
        self.cell("end") == Some("complete")
    }

    /// Completion time; none for runs that did not complete.
    pub fn seconds(&self) -> Option<f64> {
        self.number("seconds").filter(|_| self.is_complete())
    }

    /// The column names in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.cells.iter().map(|(name, _)| name.as_str())
    }

    /// The names as a CSV line.
    pub fn header(&self) -> String {
        csv_line(self.names())
    }

    /// The values as a CSV line.
    pub fn line(&self) -> String {
        csv_line(self.cells.iter().map(|(_, value)| value.as_str()))
    }

    /// A row from its names and values.
    pub(crate) fn from_lines(names: &[String], values: Vec<String>) -> Option<Self> {
        if names.len() != values.len() {
            return None;
        }
        let cells: Vec<_> = names.iter().cloned().zip(values).collect();
        let index = cells.iter().find(|(name, _)| name == "run")?.1.parse().ok()?;
        Some(Self { index, cells })
    }
}

fn put_end(put: &mut impl FnMut(&str, String), outcome: &Outcome) {
    let (end, error) = match &outcome.end {
        End::Complete => ("complete", String::new()),
        End::Unfinished(why) => ("unfinished", (*why).to_owned()),
        End::Failed(why) => ("failed", why.clone()),
    };
    put("end", end.to_owned());
    put("error", error);
    put("seconds", format!("{:.9}", outcome.elapsed.as_secs_f64()));
    put("bytes", outcome.verified_bytes.to_string());
    put("goodput_mbps", format!("{:.6}", outcome.goodput_bps() / 1e6));
    put("handshake_ms", millis(outcome.handshake));
    put("first_byte_ms", millis(outcome.first_byte));
    put("stalls", outcome.stalls.to_string());
    put("stall_longest_ms", millis(Some(outcome.stall_longest)));
}

/// Named links and cross traffic.
fn put_shared(cells: &mut Vec<(String, String)>, outcome: &Outcome) {
    for link in &outcome.around.links {
        let mut put = |name: &str, value: String| cells.push((format!("link_{}_{name}", link.name), value));
        put("up_bytes", link.traffic.up.forwarded_bytes.to_string());
        put("down_bytes", link.traffic.down.forwarded_bytes.to_string());
        put("down_queue_max_ms", millis(Some(link.traffic.down.queue_time_max)));
        put("down_dropped", link.traffic.down.drops_total().to_string());
    }
    for cross in &outcome.around.cross {
        let mut put = |name: &str, value: String| cells.push((format!("{}_{name}", cross.label), value));
        put("bytes", cross.bytes.to_string());
        put("goodput_mbps", format!("{:.6}", cross.goodput_bps() / 1e6));
        put("packets_sent", cross.packets_sent.to_string());
        put("packets_lost", cross.packets_lost.to_string());
        put("rtt_ms", millis(cross.rtt));
    }
}

fn put_paths(put: &mut impl FnMut(&str, String), outcome: &Outcome) {
    for (i, path) in outcome.paths.iter().enumerate() {
        let mut put = |name: &str, value: String| put(&format!("path{i}_{name}"), value);
        let sender = &path.sender;
        put("sent_bytes", sender.sent_bytes.to_string());
        put("packets_sent", sender.packets_sent.to_string());
        put("packets_lost", sender.packets_lost.to_string());
        put("probe_timeouts", sender.probe_timeouts.to_string());
        put("rtt_ms", millis(sender.rtt));
        put("rtt_min_ms", millis(sender.rtt_min));
        put("cwnd_bytes", sender.window_bytes.to_string());
        put("mtu_bytes", sender.mtu_bytes.to_string());
        put("mtu_falls", sender.mtu_falls.to_string());
        put("active_ms", millis(sender.active_at.map(|at| at.since_origin())));
        put("up_bytes", path.traffic.up.forwarded_bytes.to_string());
        put("down_bytes", path.traffic.down.forwarded_bytes.to_string());
        put("down_queue_max_ms", millis(Some(path.traffic.down.queue_time_max)));
        put("down_dropped", path.traffic.down.drops_total().to_string());
    }
}

fn put_requests(put: &mut impl FnMut(&str, String), outcome: &Outcome) {
    let mut delays = outcome.delays();
    delays.sort_unstable();
    put("requests", outcome.exchanges.len().to_string());
    put("unanswered", (outcome.exchanges.len() - delays.len()).to_string());
    put("delay_p50_ms", millis(percentile(&delays, 0.5)));
    put("delay_p95_ms", millis(percentile(&delays, 0.95)));
    put("delay_max_ms", millis(delays.last().copied()));
}

/// Values with commas, quotes or line ends are quoted.
pub(crate) fn csv_line<'a>(values: impl Iterator<Item = &'a str>) -> String {
    let quote = |value: &str| {
        if value.contains([',', '"', '\n', '\r']) {
            format!("\"{}\"", value.replace('"', "\"\"").replace(['\n', '\r'], " "))
        } else {
            value.to_owned()
        }
    };
    values.map(quote).collect::<Vec<_>>().join(",")
}

/// The values of a CSV line.
pub(crate) fn split_csv(line: &str) -> Vec<String> {
    let (mut values, mut value, mut quoted) = (Vec::new(), String::new(), false);
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                value.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => values.push(std::mem::take(&mut value)),
            c => value.push(c),
        }
    }
    values.push(value);
    values
}
