//! From a symmetric second path to one whose way up is a hundred times worse: where unpaired flows begin to pay.

use crate::campaign::Row;
use crate::command::CommandError;
use crate::plot::{Plot, Scale, Style};

use super::claim::Reference;
use super::{Figure, FigureRequest, Table, rows};

/// Factors along each axis, unless more are asked for: each a root of a hundred times the one before.
const POINTS: usize = 5;
const WORST: f64 = 100.0;
/// Both ways of the second path where the factor is 1: Mbit/s, ms.
const RATE: f64 = 50.0;
const DELAY: f64 = 10.0;
/// A queue of fewer packets turns the first flight into loss.
const QUEUE_BYTES_MIN: f64 = 15_000.0;
/// A way pays where it takes at most this part of the time.
const PAYS: f64 = 0.95;

/// What of the way up gets worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Axis {
    Delay,
    Rate,
}

impl Axis {
    fn name(self) -> &'static str {
        match self {
            Self::Delay => "delay",
            Self::Rate => "rate",
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Delay => "delay up / delay down",
            Self::Rate => "rate down / rate up",
        }
    }

    fn up(self, factor: f64) -> OneWay {
        match self {
            Self::Delay => OneWay { mbps: RATE, delay_ms: DELAY * factor },
            Self::Rate => OneWay { mbps: RATE / factor, delay_ms: DELAY },
        }
    }
}

/// One direction of the second path.
#[derive(Clone, Copy, Debug)]
struct OneWay {
    mbps: f64,
    delay_ms: f64,
}

impl OneWay {
    /// As a scenario has it; the queue holds one and a half times what a round trip of this delay does, as in the paper.
    fn text(self) -> String {
        let Self { mbps, delay_ms } = self;
        let queue = (1.5 * mbps * 1e6 / 8.0 * 2.0 * delay_ms / 1e3).max(QUEUE_BYTES_MIN);
        format!("{{ rate_mbps = {mbps:.6}, delay_ms = {delay_ms:.6}, queue_bytes = {} }}", queue as u64)
    }
}

/// Ways to use the paths: name and settings. The last is judged by the others.
const WAYS: [(&str, &str); 4] = [
    ("best path alone", "extension = \"none\"\n[sweep]\nendpoints.initial_path = [0, 1]\n"),
    ("RFC 10069, acks own", "extension = \"multipath\"\nack_path = \"own\"\n"),
    ("RFC 10069, acks fastest", "extension = \"multipath\"\nack_path = \"fastest\"\n"),
    ("uniflows", "extension = \"multiflow\"\nack_path = \"fastest\"\n"),
];

/// Seconds by each of [`WAYS`] at a factor; no numbers where a run did not complete.
#[derive(Clone, Copy, Debug)]
struct Point {
    factor: f64,
    seconds: [f64; WAYS.len()],
}

/// The initial path is that of the paper's Fig. 4, and so is the second one's way down.
fn scenario(up: OneWay, way: &str) -> String {
    let down = OneWay { mbps: RATE, delay_ms: DELAY };
    format!(
        "name = \"multiflow-sweep\"\n[[path]]\nrate_mbps = 10\nrtt_ms = 20\nqueue_bytes = 37500\n\
         [[path]]\ndown = {}\nup = {}\n[transfer]\nkind = \"download\"\nbytes = 10_000_000\n[endpoints]\n{way}",
        down.text(),
        up.text()
    )
}

fn measure(request: &FigureRequest<'_>, axis: Axis, factor: f64) -> Result<Point, CommandError> {
    let mut seconds = [f64::NAN; WAYS.len()];
    for (at, (_, way)) in WAYS.iter().enumerate() {
        let name = format!("multiflow-sweep-{}-{factor:.1}-{at}", axis.name());
        let rows = rows(request, &name, &scenario(axis.up(factor), way), 1)?;
        // Of the paths alone, the faster one.
        seconds[at] = rows.iter().filter_map(Row::seconds).fold(f64::NAN, f64::min);
    }
    Ok(Point { factor, seconds })
}

/// From which factor on uniflows pay next to a way, in words.
fn pays(points: &[Point], way: usize) -> String {
    let ratio = |point: &Point| point.seconds[WAYS.len() - 1] / point.seconds[way];
    let trailing = points.iter().rev().take_while(|point| ratio(point) <= PAYS).count();
    let Some(first) = points[points.len() - trailing..].first() else { return "not at the last factor".into() };
    let best = points.iter().map(ratio).fold(f64::NAN, f64::min);
    format!("from a factor of {:.1} on; takes {:.0} % of its time where it pays most", first.factor, 100.0 * best)
}

/// The sweep along both axes.
pub(super) fn sweep(request: &FigureRequest<'_>) -> Result<Figure, CommandError> {
    let mut figure = Figure::default();
    let count = request.points.unwrap_or(POINTS).max(2);
    let factors: Vec<f64> = (0..count).map(|at| WORST.powf(at as f64 / (count - 1) as f64)).collect();
    let head = ["seconds, the way up worse by".to_owned()].into_iter().chain(factors.iter().map(|f| format!("{f:.1}")));
    let mut table = Table { head: head.collect(), rows: Vec::new() };
    for axis in [Axis::Delay, Axis::Rate] {
        let points = factors.iter().map(|factor| measure(request, axis, *factor)).collect::<Result<Vec<_>, _>>()?;
        let title = format!("10 MB over 10 Mbit/s and 50 Mbit/s: {}", axis.label());
        let mut plot = Plot::new(title, axis.label(), "completion time, s").x_scale(Scale::Log).y_range(0.0, 1.0);
        for (at, (name, _)) in WAYS.into_iter().enumerate() {
            let curve: Vec<_> = points.iter().map(|point| (point.factor, point.seconds[at])).collect();
            let cells = points.iter().map(|point| format!("{:.3}", point.seconds[at]));
            table.rows.push([format!("{}: {name}", axis.name())].into_iter().chain(cells).collect());
            plot.curve(name, curve, Style::Line);
        }
        for (at, (name, _)) in WAYS.into_iter().enumerate().take(WAYS.len() - 1) {
            figure.claim(
                format!("{}: uniflows pay, next to {name}", axis.label()),
                Reference::none(),
                pays(&points, at),
            );
        }
        figure.plots.push(plot);
    }
    figure.tables.push(table);
    figure.notes.push(format!(
        "initial path 10 Mbit/s and 20 ms; second path 50 Mbit/s and 10 ms down, up the same at a factor of 1; a way pays \
         where it takes at most {:.0} % of the other's time, at that factor and all larger ones",
        100.0 * PAYS
    ));
    Ok(figure)
}
