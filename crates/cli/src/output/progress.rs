//! Progress of a transfer: a bar for each path on a terminal, a line a second elsewhere.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use plait::Connection;

use super::summary::{Interval, PathSummary};
use super::{Format, eprint_line, print_json};
use crate::args::OutputArgs;
use crate::meter::Meter;
use crate::paths::PathTable;
use crate::units::{human_bytes, mbps, rounded};

/// Time between two lines, unless something else is said.
const PERIOD: Duration = Duration::from_secs(1);
/// By so large a part of it a look may come too soon.
const EARLY: f64 = 0.05;

/// How a transfer stands.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    /// Seconds since it began.
    pub(crate) at_s: f64,
    /// Bytes of bodies so far.
    pub(crate) bytes: u64,
    /// The paths of its connection.
    pub(crate) paths: Vec<PathSummary>,
}

impl Snapshot {
    /// How `connection` stands, whose paths are kept in `book`.
    pub(crate) fn of(book: &mut PathTable, connection: &Connection, meter: &Meter) -> Self {
        book.sample(connection);
        Self { at_s: meter.seconds(), bytes: meter.bytes(), paths: book.paths() }
    }
}

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    Silent,
    Bars,
    Lines,
}

/// Shows the progress of one transfer.
#[derive(Debug)]
pub(crate) struct ProgressDisplay {
    manner: Manner,
    format: Format,
    name: Option<&'static str>,
    total: Option<u64>,
    /// Time between two lines, or two objects.
    period: Duration,
    bars: Bars,
    /// The last interval's end: time, bytes, and what each path had received and sent.
    last: (f64, u64, BTreeMap<u32, [u64; 2]>),
}

#[derive(Debug)]
struct Bars {
    all: MultiProgress,
    by_path: BTreeMap<u32, ProgressBar>,
}

impl ProgressDisplay {
    /// Progress of a transfer, called `name` among several, of `total` bytes if that is known.
    pub(crate) fn new(args: OutputArgs, name: Option<&'static str>, total: Option<u64>) -> Self {
        let manner = match (args.quiet, std::io::stderr().is_terminal()) {
            (true, _) => Manner::Silent,
            (false, true) => Manner::Bars,
            (false, false) => Manner::Lines,
        };
        let bars = Bars { all: MultiProgress::new(), by_path: BTreeMap::new() };
        Self { manner, format: Format::of(args), name, total, period: PERIOD, bars, last: (0.0, 0, BTreeMap::new()) }
    }

    /// A line, or an object, so often.
    pub(crate) fn every(mut self, period: Duration) -> Self {
        self.period = period;
        self
    }

    /// Shows how it stands: bars each time, lines and objects once a period.
    pub(crate) fn on_tick(&mut self, snapshot: &Snapshot) {
        if self.manner == Manner::Bars {
            self.bars.show(snapshot, self.total);
        }
        let (at_s, bytes, _) = self.last;
        let seconds = snapshot.at_s - at_s;
        if seconds < self.period.as_secs_f64() * (1.0 - EARLY) {
            return;
        }
        let goodput = mbps(snapshot.bytes.saturating_sub(bytes), seconds);
        if self.manner == Manner::Lines {
            eprint_line(&self.line(snapshot, seconds, goodput));
        }
        if self.format == Format::JsonStream {
            // What cannot be printed now cannot be at the end either, and is told then.
            let _ = print_json(&Interval {
                event: "interval",
                run: self.name,
                at_s: rounded(snapshot.at_s, 3),
                bytes: snapshot.bytes,
                goodput_mbps: rounded(goodput, 2),
                paths: &snapshot.paths,
            });
        }
        let by_path = snapshot.paths.iter().map(|path| (path.id, [path.received_bytes, path.sent_bytes])).collect();
        self.last = (snapshot.at_s, snapshot.bytes, by_path);
    }

    fn line(&self, snapshot: &Snapshot, seconds: f64, goodput: f64) -> String {
        let name = self.name.map(|name| format!("{name}: ")).unwrap_or_default();
        let mut line =
            format!("{name}{:6.1} s  {:>9}  {goodput:7.1} Mbit/s", snapshot.at_s, human_bytes(snapshot.bytes));
        for path in &snapshot.paths {
            let [received, sent] = self.last.2.get(&path.id).copied().unwrap_or_default();
            // The way that carries more: the other one has acknowledgements.
            let more = path.received_bytes.saturating_sub(received).max(path.sent_bytes.saturating_sub(sent));
            let rate = mbps(more, seconds);
            line += &format!("  path {} {} {rate:.1}", path.id, path.state);
        }
        line
    }

    /// Takes the bars away.
    pub(crate) fn finish(&self) {
        if self.manner == Manner::Bars {
            let _ = self.bars.all.clear();
        }
    }
}

impl Bars {
    fn show(&mut self, snapshot: &Snapshot, total: Option<u64>) {
        for path in &snapshot.paths {
            let all = &self.all;
            let bar = self.by_path.entry(path.id).or_insert_with(|| all.add(new_bar(total)));
            bar.set_prefix(format!("path {:>2} {}", path.id, path.local));
            let rtt = path.rtt_ms.map(|ms| format!("{ms:.0} ms ")).unwrap_or_default();
            let why = path.why_idle.map(|why| format!("({why})")).unwrap_or_default();
            bar.set_message(format!("{rtt}{} {why}", path.state));
            bar.set_position(path.stream_bytes_received);
        }
    }
}

fn new_bar(total: Option<u64>) -> ProgressBar {
    let (bar, template) = match total {
        Some(total) => {
            (ProgressBar::new(total), "{prefix:28} {bar:30} {decimal_bytes:>10} {decimal_bytes_per_sec:>12}  {msg}")
        }
        None => {
            (ProgressBar::new_spinner(), "{prefix:28} {spinner} {decimal_bytes:>10} {decimal_bytes_per_sec:>12}  {msg}")
        }
    };
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_every_path() {
        let mut progress = ProgressDisplay::new(OutputArgs::default(), Some("A+B"), None);
        progress.last = (1.0, 1_000_000, BTreeMap::from([(0, [500_000, 0])]));
        let path = |id, received_bytes| PathSummary { id, state: "active", received_bytes, ..PathSummary::default() };
        let paths = vec![path(0, 1_500_000), path(1, 250_000)];
        let line = progress.line(&Snapshot { at_s: 2.0, bytes: 2_250_000, paths }, 1.0, 10.0);
        assert_eq!(line, "A+B:    2.0 s     2.2 MB     10.0 Mbit/s  path 0 active 8.0  path 1 active 2.0");
    }
}
