//! Progress of a transfer: a bar for each path on a terminal, a line a second elsewhere.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use plait::Connection;
use tokio::sync::Notify;

use super::summary::{Interval, LoadInterval, PathSummary, WayInterval};
use super::{Format, Readership, eprint_line, print_event};
use crate::args::OutputArgs;
use crate::meter::Meter;
use crate::paths::PathTable;
use crate::units::{human_bytes, mbps, rounded};

/// Time between two lines, unless something else is said.
const PERIOD: Duration = Duration::from_secs(1);
/// By so large a part of it a look may come too soon.
const EARLY: f64 = 0.05;

/// How a transfer stands.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    /// Seconds since it began.
    pub(crate) at_s: f64,
    /// Bytes of bodies so far.
    pub(crate) bytes: u64,
    /// The paths of its connections.
    pub(crate) paths: Vec<PathSummary>,
    /// What a load has moved and done so far; none for downloads.
    pub(crate) load: Option<LoadCounts>,
}

/// What a load has moved and done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LoadCounts {
    /// Bytes that left; none where nothing is to leave.
    pub(crate) up: Option<u64>,
    /// Bytes that came; none where nothing is to come.
    pub(crate) down: Option<u64>,
    /// Requests, connections or datagrams; none of bytes without pause.
    pub(crate) count: Option<u64>,
}

impl LoadCounts {
    /// Bytes of both ways.
    pub(crate) fn bytes(&self) -> u64 {
        self.up.unwrap_or(0) + self.down.unwrap_or(0)
    }

    /// What an interval of so many seconds, since `before`, tells of it.
    fn interval(&self, before: &Self, seconds: f64) -> LoadInterval {
        let way = |now: Option<u64>, before: Option<u64>| {
            let bytes = now?;
            let rate = mbps(bytes.saturating_sub(before.unwrap_or(0)), seconds);
            Some(WayInterval { bytes, goodput_mbps: rounded(rate, 2) })
        };
        let of_count = |count: u64| count.saturating_sub(before.count.unwrap_or(0)) as f64 / seconds.max(1e-6);
        LoadInterval {
            up: way(self.up, before.up),
            down: way(self.down, before.down),
            count: self.count,
            per_second: self.count.map(|count| rounded(of_count(count), 2)),
        }
    }
}

impl LoadInterval {
    /// For people: the bytes of each way, and what was done.
    fn words(&self) -> String {
        let way = |way: WayInterval| format!("{:>9}  {:7.1} Mbit/s", human_bytes(way.bytes), way.goodput_mbps);
        let mut parts = Vec::new();
        match (self.up, self.down) {
            (Some(up), Some(down)) => parts.extend([format!("up {}", way(up)), format!("down {}", way(down))]),
            (Some(only), None) | (None, Some(only)) => parts.push(way(only)),
            (None, None) => {}
        }
        if let (Some(count), Some(per_second)) = (self.count, self.per_second) {
            parts.push(format!("{count} done  {per_second:.1} a second"));
        }
        parts.join("  ")
    }
}

impl Snapshot {
    /// How `connection` stands, whose paths are kept in `book`.
    pub(crate) fn of(book: &mut PathTable, connection: &Connection, meter: &Meter) -> Self {
        book.sample(connection);
        Self { at_s: meter.seconds(), bytes: meter.bytes(), paths: book.paths(), load: None }
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
    /// Time between two lines, or two objects; rates are those of the last one.
    period: Duration,
    bars: Bars,
    /// The end of the last interval, and of the one before it.
    last: Snapshot,
    before: Snapshot,
    reader_left: Arc<Notify>,
}

impl ProgressDisplay {
    /// Progress of a transfer, called `name` among several, of `total` bytes if that is known.
    pub(crate) fn new(args: OutputArgs, name: Option<&'static str>, total: Option<u64>) -> Self {
        let manner = match (args.quiet, std::io::stderr().is_terminal()) {
            (true, _) => Manner::Silent,
            (false, true) => Manner::Bars,
            (false, false) => Manner::Lines,
        };
        let bars = Bars { all: MultiProgress::new(), total, sum: None, by_path: Vec::new() };
        let (last, before) = Default::default();
        let (format, reader_left) = (Format::of(args), Arc::default());
        Self { manner, format, name, period: PERIOD, bars, last, before, reader_left }
    }

    /// A line, or an object, so often.
    pub(crate) fn every(mut self, period: Duration) -> Self {
        self.period = period;
        self
    }

    /// Is told when nobody reads standard output any more.
    pub(crate) fn reader_left(&self) -> Arc<Notify> {
        Arc::clone(&self.reader_left)
    }

    /// Shows how it stands: bars each time, lines and objects once a period.
    pub(crate) fn on_tick(&mut self, snapshot: &Snapshot) {
        let seconds = snapshot.at_s - self.last.at_s;
        if seconds >= self.period.as_secs_f64() * (1.0 - EARLY) {
            self.on_period(snapshot, seconds);
            self.before = std::mem::replace(&mut self.last, snapshot.clone());
        }
        if self.manner == Manner::Bars {
            // Before the first period is over, rates are those of what there is of it.
            let from = if self.before.at_s < self.last.at_s { &self.before } else { &self.last };
            let until = if self.before.at_s < self.last.at_s { &self.last } else { snapshot };
            self.bars.show(snapshot, from, until);
        }
    }

    fn on_period(&self, snapshot: &Snapshot, seconds: f64) {
        let goodput = mbps(snapshot.bytes.saturating_sub(self.last.bytes), seconds);
        let load = snapshot.load.map(|load| load.interval(&self.last.load.unwrap_or_default(), seconds));
        if self.manner == Manner::Lines {
            eprint_line(&self.line(snapshot, seconds, goodput, load));
        }
        if self.format == Format::JsonStream {
            let reader = print_event(&Interval {
                event: "interval",
                run: self.name,
                at_s: rounded(snapshot.at_s, 3),
                bytes: snapshot.bytes,
                goodput_mbps: rounded(goodput, 2),
                load,
                paths: &snapshot.paths,
            });
            if reader == Readership::Gone {
                self.reader_left.notify_one();
            }
        }
    }

    fn line(&self, snapshot: &Snapshot, seconds: f64, goodput: f64, load: Option<LoadInterval>) -> String {
        let name = self.name.map(|name| format!("{name}: ")).unwrap_or_default();
        let moved = match load {
            Some(load) => load.words(),
            None => format!("{:>9}  {goodput:7.1} Mbit/s", human_bytes(snapshot.bytes)),
        };
        let mut line = format!("{name}{:6.1} s  {moved}", snapshot.at_s);
        for (index, path) in snapshot.paths.iter().enumerate() {
            let [received, sent] = moved_since(&self.last, index, path);
            // The way that carries more: the other one has acknowledgements.
            let rate = mbps(received.max(sent), seconds);
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

/// What `path`, one of so many in their order, received and sent since then.
fn moved_since(then: &Snapshot, index: usize, path: &PathSummary) -> [u64; 2] {
    let [received, sent] = then.paths.get(index).map_or([0; 2], |then| [then.received_bytes, then.sent_bytes]);
    [path.received_bytes.saturating_sub(received), path.sent_bytes.saturating_sub(sent)]
}

#[derive(Debug)]
struct Bars {
    all: MultiProgress,
    total: Option<u64>,
    /// Of a load as a whole.
    sum: Option<ProgressBar>,
    by_path: Vec<ProgressBar>,
}

/// A bar of something whose end is known, and that tells bytes by itself.
const BAR_OF_BYTES: &str = "{prefix:28} {bar:30} {decimal_bytes:>10} {decimal_bytes_per_sec:>12}  {msg}";
const BYTES_ALONE: &str = "{prefix:28} {spinner} {decimal_bytes:>10} {decimal_bytes_per_sec:>12}  {msg}";
/// A load as a whole, and one of its paths.
const LOAD_BAR: &str = "{prefix:28} {bar:30} {msg}";
const LOAD_ALONE: &str = "{prefix:28} {spinner} {msg}";

impl Bars {
    /// Shows how it stands; rates are those between two other looks.
    fn show(&mut self, now: &Snapshot, from: &Snapshot, until: &Snapshot) {
        let seconds = until.at_s - from.at_s;
        if let Some(load) = now.load {
            let (all, total) = (&self.all, self.total);
            let template = if total.is_some() { LOAD_BAR } else { LOAD_ALONE };
            let bar = self.sum.get_or_insert_with(|| all.add(new_bar(total, template)));
            bar.set_prefix(format!("{:6.1} s", now.at_s));
            let rates = until.load.unwrap_or_default().interval(&from.load.unwrap_or_default(), seconds);
            bar.set_message(with_counts(rates, load).words());
            bar.set_position(load.bytes());
        }
        for (index, path) in now.paths.iter().enumerate() {
            let (all, total) = (&self.all, self.total);
            if self.by_path.len() <= index {
                let template = match (now.load, total) {
                    (Some(_), _) => LOAD_ALONE,
                    (None, Some(_)) => BAR_OF_BYTES,
                    (None, None) => BYTES_ALONE,
                };
                self.by_path.push(all.add(new_bar(total, template)));
            }
            let Some(bar) = self.by_path.get(index) else { continue };
            bar.set_prefix(format!("path {:>2} {}", path.id, path.local));
            let rtt = path.rtt_ms.map(|ms| format!("{ms:.0} ms ")).unwrap_or_default();
            let why = path.why_idle.map(|why| format!("({why})")).unwrap_or_default();
            let state = format!("{rtt}{} {why}", path.state);
            match now.load {
                Some(load) => {
                    let moved = until.paths.get(index).map_or([0; 2], |path| moved_since(from, index, path));
                    bar.set_message(format!("{}  {state}", carried(load, path, moved, seconds)));
                }
                None => bar.set_message(state),
            }
            bar.set_position(path.stream_bytes_received);
        }
    }
}

/// The rates of an interval beside what there is now.
fn with_counts(rates: LoadInterval, now: LoadCounts) -> LoadInterval {
    let way = |rate: Option<WayInterval>, bytes: Option<u64>| {
        Some(WayInterval { bytes: bytes?, goodput_mbps: rate.map_or(0.0, |rate| rate.goodput_mbps) })
    };
    LoadInterval { up: way(rates.up, now.up), down: way(rates.down, now.down), count: now.count, ..rates }
}

/// What a path sent and received, UDP payload, of the ways that the load goes, and how fast.
fn carried(load: LoadCounts, path: &PathSummary, [received, sent]: [u64; 2], seconds: f64) -> String {
    let way = |name, bytes, moved| format!("{name} {} {:.1} Mbit/s", human_bytes(bytes), mbps(moved, seconds));
    let up = load.up.map(|_| way("sent", path.sent_bytes, sent));
    let down = load.down.map(|_| way("received", path.received_bytes, received));
    up.into_iter().chain(down).collect::<Vec<_>>().join("  ")
}

fn new_bar(total: Option<u64>, template: &str) -> ProgressBar {
    let bar = total.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(id: u32, received_bytes: u64, sent_bytes: u64) -> PathSummary {
        PathSummary { id, state: "active", received_bytes, sent_bytes, ..PathSummary::default() }
    }

    #[test]
    fn a_line_names_every_path() {
        let mut progress = ProgressDisplay::new(OutputArgs::default(), Some("A+B"), None);
        progress.last =
            Snapshot { at_s: 1.0, bytes: 1_000_000, paths: vec![path(0, 500_000, 0)], ..Snapshot::default() };
        let paths = vec![path(0, 1_500_000, 0), path(1, 250_000, 0)];
        let line = progress.line(&Snapshot { at_s: 2.0, bytes: 2_250_000, paths, load: None }, 1.0, 10.0, None);
        assert_eq!(line, "A+B:    2.0 s     2.2 MB     10.0 Mbit/s  path 0 active 8.0  path 1 active 2.0");
    }

    #[test]
    fn a_load_shows_each_way_and_what_was_done() {
        let before = LoadCounts { up: Some(1_000_000), down: Some(0), count: None };
        let now = LoadCounts { up: Some(2_000_000), down: Some(500_000), count: None };
        let both = now.interval(&before, 0.5);
        assert_eq!(both.up, Some(WayInterval { bytes: 2_000_000, goodput_mbps: 16.0 }));
        assert_eq!(both.words(), "up    2.0 MB     16.0 Mbit/s  down  500.0 kB      8.0 Mbit/s");
        let done = LoadCounts { count: Some(30), ..LoadCounts::default() };
        let counted = done.interval(&LoadCounts { count: Some(10), ..LoadCounts::default() }, 2.0);
        assert_eq!((counted.words().as_str(), counted.up), ("30 done  10.0 a second", None));
    }

    #[test]
    fn a_path_shows_what_the_load_sends_over_it() {
        let path = path(0, 198, 3_000_000);
        let up = LoadCounts { up: Some(0), ..LoadCounts::default() };
        assert_eq!(carried(up, &path, [100, 1_000_000], 1.0), "sent 3.0 MB 8.0 Mbit/s");
        let both = LoadCounts { up: Some(0), down: Some(0), count: None };
        assert_eq!(carried(both, &path, [0, 0], 1.0), "sent 3.0 MB 0.0 Mbit/s  received 198 B 0.0 Mbit/s");
    }
}
