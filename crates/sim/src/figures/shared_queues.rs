//! `auto` behind queues of all kinds, and on links of its own; `bbr` and its coupled form; each next to one path in their place.

use crate::campaign::Row;
use crate::command::CommandError;
use crate::plot::Plot;
use crate::stats::Sorted;

use super::claim::Reference;
use super::fairness::{
    Bottleneck, JITTER_MS, SHARE_MAX, START_SHARE_MAX, beside, flow, is_unfair, path, share, share_after, verdict,
};
use super::{Figure, FigureRequest, Table, rows};

/// Seeds of a queue with one flow beside; with more flows, which take as many times as long, there are fewer.
const SEEDS: usize = 24;
/// Seconds from the start, and when what comes after them ends.
const SPANS_S: [f64; 2] = [40.0, 120.0];
/// Part of what one path of `bbr` has in the place of two of `coupled-bbr` that these have at most.
const PLACE_MAX: f64 = 1.1;
/// Seeds of a place that is gated, for each of another one: a median of 24 shares, or a ratio of two, is off by 5 % by chance.
const SEEDS_OF_PLACE: usize = 3;
/// Runs from which a ratio of medians is held to it.
const RUNS_FOR_RATIO: usize = 10;
/// Part of what uncoupled CUBIC has that `auto` should have on links of its own; nothing fails by it.
const APART_MIN: f64 = 0.98;

/// A queue that is shared with so many flows.
#[derive(Clone, Copy)]
struct Queue {
    aqm: &'static str,
    ms: u32,
    /// By how much packets come to it sooner or later, ms.
    jitter_ms: f64,
    others: usize,
}

const fn queue(aqm: &'static str, ms: u32, others: usize) -> Queue {
    Queue { aqm, ms, jitter_ms: JITTER_MS, others }
}

impl Queue {
    /// As tables and claims call it.
    fn name(self) -> String {
        let Self { aqm, ms, jitter_ms, .. } = self;
        if jitter_ms == JITTER_MS { format!("{aqm} {ms} ms") } else { format!("{aqm} {ms} ms, jitter {jitter_ms} ms") }
    }
}

/// The gate: `auto` is held to what is asked of it behind each.
const GATED: [Queue; 7] = [
    queue("drop-tail", 8, 1),
    queue("drop-tail", 60, 1),
    queue("drop-tail", 500, 1),
    queue("red", 60, 1),
    queue("codel", 60, 1),
    // A packet leaves each 0.6 ms: with so little jitter it is by their phase that packets meet a full queue or not.
    Queue { jitter_ms: 0.0, ..queue("drop-tail", 60, 1) },
    Queue { jitter_ms: 0.5, ..queue("drop-tail", 60, 1) },
];
/// Behind these it is only looked at. FQ-CoDel shares by flows itself.
const WATCHED: [Queue; 7] = [
    queue("drop-tail", 300, 1),
    queue("drop-tail", 1000, 1),
    queue("drop-tail", 60, 4),
    queue("red", 60, 4),
    queue("red", 60, 16),
    queue("codel", 60, 4),
    queue("fq-codel", 60, 1),
];

/// Two links with queues of their own.
struct Apart {
    name: &'static str,
    /// Mbit/s, one-way delay and queue in ms.
    links: [[f64; 3]; 2],
    aqm: &'static str,
    loss: f64,
    jitter_ms: f64,
    /// Flows on each of them, and their controller.
    others: usize,
    beside: &'static str,
}

const EQUAL: Apart = Apart {
    name: "equal, 60 ms",
    links: [[10.0, 15.0, 60.0]; 2],
    aqm: "drop-tail",
    loss: 0.0,
    jitter_ms: JITTER_MS,
    others: 0,
    beside: "cubic",
};
/// Unequal links, without a flow beside.
const UNEQUAL: Apart = Apart { name: "20 and 5 Mbit/s", links: [[20.0, 15.0, 60.0], [5.0, 40.0, 100.0]], ..EQUAL };
const SATELLITE: Apart =
    Apart { name: "satellite and cellular", links: [[20.0, 295.0, 100.0], [10.0, 25.0, 200.0]], ..EQUAL };

const APART: [Apart; 10] = [
    Apart { name: "equal, 8 ms", links: [[10.0, 15.0, 8.0]; 2], ..EQUAL },
    EQUAL,
    Apart { name: "equal, 500 ms", links: [[10.0, 15.0, 500.0]; 2], ..EQUAL },
    UNEQUAL,
    SATELLITE,
    Apart { name: "equal, 0.5 % lost, no jitter", loss: 0.005, jitter_ms: 0.0, ..EQUAL },
    Apart { name: "equal, 0.5 % lost", loss: 0.005, ..EQUAL },
    Apart { name: "equal, RED, a flow on each", aqm: "red", others: 1, ..EQUAL },
    Apart { name: "equal, CoDel, a flow on each", aqm: "codel", others: 1, ..EQUAL },
    Apart { name: "equal, 500 ms, a flow on each", links: [[10.0, 15.0, 500.0]; 2], others: 1, ..EQUAL },
];

/// Where BBR and its coupled form are compared.
const APART_BBR: [Apart; 8] = [
    Apart { name: "equal, 8 ms", links: [[10.0, 15.0, 8.0]; 2], ..EQUAL },
    EQUAL,
    Apart { name: "equal, 1 % lost", loss: 0.01, ..EQUAL },
    UNEQUAL,
    Apart { name: "20 and 5 Mbit/s, 1 % lost", loss: 0.01, ..UNEQUAL },
    Apart { name: "satellite and cellular, 1 % lost", loss: 0.01, ..SATELLITE },
    Apart { name: "equal, a flow of bbr on each", others: 1, beside: "bbr", ..EQUAL },
    Apart {
        name: "equal, 500 ms, a flow of bbr on each",
        links: [[10.0, 15.0, 500.0]; 2],
        others: 1,
        beside: "bbr",
        ..EQUAL
    },
];

/// Queues that BBR shares, and with whom.
const BBR_QUEUES: [(Queue, &str); 10] = [
    (queue("drop-tail", 60, 1), "bbr"),
    (queue("drop-tail", 60, 1), "cubic"),
    (queue("drop-tail", 300, 1), "bbr"),
    (queue("drop-tail", 300, 1), "cubic"),
    (queue("drop-tail", 8, 1), "bbr"),
    (queue("drop-tail", 8, 1), "cubic"),
    (queue("red", 60, 1), "bbr"),
    (queue("red", 60, 1), "cubic"),
    (queue("codel", 60, 1), "bbr"),
    (queue("codel", 60, 1), "cubic"),
];
/// So many of them are the gate.
const BBR_GATED: usize = 2;

impl Apart {
    fn scenario(&self, controller: &str) -> String {
        let Self { links, aqm, loss, jitter_ms, others, beside, .. } = self;
        let mut text = String::from("name = \"shared-queues\"\n");
        for (name, [mbps, delay_ms, queue_ms]) in ["a", "b"].iter().zip(links) {
            text += &format!(
                "[[link]]\nname = \"{name}\"\nrate_mbps = {mbps:.1}\ndelay_ms = {delay_ms:.1}\nqueue_ms = {queue_ms:.1}\n\
                 aqm = \"{aqm}\"\nloss = {loss:.3}\n"
            );
        }
        for (number, name) in ["a", "b"].into_iter().enumerate() {
            text += &path(name, number, *jitter_ms);
            text.extend((0..*others).map(|i| flow(beside, name, i, JITTER_MS)));
        }
        text + &transfer(controller, SPANS_S[0])
    }
}

fn transfer(controller: &str, seconds: f64) -> String {
    format!(
        "[transfer]\nkind = \"bulk-for\"\nseconds = {seconds:.1}\n\
         [endpoints]\ncongestion = \"{controller}\"\nprotection = \"null\"\n"
    )
}

/// Median and quartiles for a cell.
fn cell(values: &Sorted) -> String {
    let at = |share| values.quantile(share).unwrap_or(f64::NAN);
    format!("{:.2} ({:.2} to {:.2})", at(0.5), at(0.25), at(0.75))
}

/// The figure, and gates on `auto` and on `coupled-bbr`.
pub(super) fn shared_queues(request: &FigureRequest<'_>) -> Result<Figure, CommandError> {
    let mut figure = Figure::default();
    let seeds = request.points.unwrap_or(SEEDS).max(1);
    shared(request, &mut figure, seeds)?;
    apart(request, &mut figure, seeds)?;
    bbr_beside(request, &mut figure, seeds)?;
    bbr_apart(request, &mut figure, seeds)?;
    bbr_alone(request, &mut figure, seeds)?;
    figure.notes.push(
        "medians and quartiles; RTT 40 ms, jitter 4 ms where no other is named, 10 Mbit/s for each flow and for the connection; *one path* is one of CUBIC, or \
         of bbr, in the place of the two, which shows what the place is worth"
            .to_owned(),
    );
    Ok(figure)
}

/// What a connection takes next to the flows beside it, and what these have.
struct Spans {
    first: Sorted,
    after: Sorted,
    /// Bytes of a flow beside it, until the end of the second span.
    beside: Sorted,
}

/// Shares of a connection with so many paths in the first span and in the second.
fn spans(
    request: &FigureRequest<'_>,
    Queue { aqm, ms: queue_ms, jitter_ms, others }: Queue,
    controller: &str,
    paths: usize,
    seeds: u64,
) -> Result<Spans, CommandError> {
    let run = |seconds: f64| {
        let mbps = 10.0 * (others + 1) as f64;
        let place = Bottleneck { paths, controller, beside: "cubic", aqm, queue_ms, jitter_ms, others, mbps, seconds };
        let name = format!("shared-queues-{controller}-{paths}-{aqm}-{queue_ms}-{jitter_ms}-{others}-{seconds}");
        rows(request, &name, &place.scenario(), seeds)
    };
    let (short, long) = (run(SPANS_S[0])?, run(SPANS_S[1])?);
    let after = short.iter().zip(&long).filter_map(|(short, long)| share_after(short, long));
    Ok(Spans {
        first: Sorted::new(short.iter().filter_map(share)),
        after: Sorted::new(after),
        beside: Sorted::new(long.iter().filter_map(beside)),
    })
}

/// `auto` beside CUBIC flows behind one queue.
fn shared(request: &FigureRequest<'_>, figure: &mut Figure, seeds: usize) -> Result<(), CommandError> {
    let mut table = Table::new([
        "queue",
        "flows",
        "runs",
        "auto, first 40 s",
        "to 120 s",
        "one path, first",
        "to 120 s",
        "flow beside auto over beside one path",
    ]);
    let mut plot = Plot::new("Two paths under auto through one queue: bytes next to a flow beside them", "", "times");
    for (at, place) in GATED.into_iter().chain(WATCHED).enumerate() {
        let is_gated = at < GATED.len();
        let seeds = (seeds * 2 / (place.others + 1)).clamp(1, seeds) * if is_gated { SEEDS_OF_PLACE } else { 1 };
        let Spans { first, after, beside } = spans(request, place, "auto", 2, seeds as u64)?;
        let one = spans(request, place, "cubic", 1, seeds as u64)?;
        let name = place.name();
        if is_gated {
            figure.failed |= is_unfair(&first, START_SHARE_MAX) || is_unfair(&after, SHARE_MAX);
            for (span, shares, max) in [("first 40 s", &first, START_SHARE_MAX), ("40 to 120 s", &after, SHARE_MAX)] {
                let goal = format!("no more than {max} of what a flow beside it takes");
                figure.claim(
                    format!("auto, {name}, {span}"),
                    Reference::asked_for(goal),
                    format!("{} runs: {}: {}", shares.len(), shares.summary(), verdict(shares, max)),
                );
            }
        }
        plot.boxed(format!("{name}, {} flows", place.others), first.values().to_vec());
        let mut row = vec![name, place.others.to_string(), seeds.to_string()];
        row.extend([&first, &after, &one.first, &one.after].map(cell));
        let medians = beside.median().zip(one.beside.median());
        row.push(format!("{:.3}", medians.map_or(f64::NAN, |(beside, beside_one)| beside / beside_one)));
        table.rows.push(row);
    }
    figure.plots.push(plot);
    figure.tables.push(table);
    Ok(())
}

/// Runs of a controller on links of its own, one for each seed.
fn rows_apart(
    request: &FigureRequest<'_>,
    links: &Apart,
    controller: &str,
    seeds: u64,
) -> Result<Vec<Row>, CommandError> {
    let name = format!("shared-queues-apart-{controller}-{}", links.name.replace([' ', ',', '.', '%'], "-"));
    rows(request, &name, &links.scenario(controller), seeds)
}

/// `auto` on links of its own, next to uncoupled CUBIC.
fn apart(request: &FigureRequest<'_>, figure: &mut Figure, seeds: usize) -> Result<(), CommandError> {
    let mut table = Table::new(["links of its own", "runs", "auto over cubic", "cubic, Mbit/s"]);
    for links in &APART {
        let run = |controller: &str| rows_apart(request, links, controller, seeds as u64);
        let (auto, cubic) = (run("auto")?, run("cubic")?);
        let ratio = |(auto, cubic): (&Row, &Row)| Some(auto.number("bytes")? / cubic.number("bytes")?);
        let ratios = Sorted::new(auto.iter().zip(&cubic).filter_map(ratio));
        let mbps = Sorted::new(cubic.iter().filter_map(|row| row.number("goodput_mbps")));
        let word = if ratios.median().is_some_and(|median| median >= APART_MIN) { "reached" } else { "below" };
        figure.claim(
            format!("auto, {}", links.name),
            Reference::asked_for(format!("{APART_MIN} of uncoupled CUBIC, not gated")),
            format!("{}: {word}", ratios.summary()),
        );
        let ratio = [0.5, 0.0, 1.0].map(|share| ratios.quantile(share).unwrap_or(f64::NAN));
        let ratio = format!("{:.3} ({:.3} to {:.3})", ratio[0], ratio[1], ratio[2]);
        let mbps = format!("{:.2}", mbps.median().unwrap_or(f64::NAN));
        table.rows.push(vec![links.name.to_owned(), ratios.len().to_string(), ratio, mbps]);
    }
    figure.tables.push(table);
    Ok(())
}

/// BBR beside one flow of its kind, and beside one of CUBIC; `coupled-bbr` is held to the place of one path.
fn bbr_beside(request: &FigureRequest<'_>, figure: &mut Figure, seeds: usize) -> Result<(), CommandError> {
    let mut table = Table::new([
        "beside",
        "runs",
        "coupled-bbr, two paths",
        "bbr, two paths",
        "bbr, one path",
        "coupled-bbr over one path",
    ]);
    for (at, (queue, beside)) in BBR_QUEUES.into_iter().enumerate() {
        let Queue { aqm, ms: queue_ms, jitter_ms, others } = queue;
        let name = format!("{beside}, {}", queue.name());
        let is_gated = at < BBR_GATED;
        let seeds = if is_gated { seeds * SEEDS_OF_PLACE } else { seeds };
        let mut row = vec![name.clone(), seeds.to_string()];
        let mut medians = Vec::new();
        for (controller, paths) in [("coupled-bbr", 2), ("bbr", 2), ("bbr", 1)] {
            let (mbps, seconds) = (20.0, SPANS_S[0]);
            let place = Bottleneck { paths, controller, beside, aqm, queue_ms, jitter_ms, others, mbps, seconds };
            let name = format!("shared-queues-{controller}-{paths}-beside-{beside}-{aqm}-{queue_ms}");
            let shares = rows(request, &name, &place.scenario(), seeds as u64)?;
            let shares = Sorted::new(shares.iter().filter_map(share));
            row.push(cell(&shares));
            medians.push(shares.median().unwrap_or(f64::NAN));
        }
        let of_place = medians[0] / medians[2];
        row.push(format!("{of_place:.2}"));
        table.rows.push(row);
        // What cannot be compared is over it too.
        let is_over = of_place.is_nan() || of_place > PLACE_MAX;
        figure.failed |= is_gated && is_over && seeds >= RUNS_FOR_RATIO;
        let word = if is_over { "over" } else { "held" };
        figure.claim(
            format!("coupled-bbr beside {name}"),
            Reference::asked_for(format!(
                "{PLACE_MAX} of one path of bbr{}",
                if is_gated { "" } else { ", not gated" }
            )),
            format!("{of_place:.3} of it, medians of {seeds} runs: {word}"),
        );
    }
    figure.tables.push(table);
    Ok(())
}

/// `coupled-bbr` on two links of its own, next to uncoupled BBR.
fn bbr_apart(request: &FigureRequest<'_>, figure: &mut Figure, seeds: usize) -> Result<(), CommandError> {
    let mut table =
        Table::new(["links of its own", "runs", "coupled-bbr over bbr", "coupled-bbr, part of both rates", "bbr"]);
    for links in &APART_BBR {
        let run = |controller: &str| rows_apart(request, links, controller, seeds as u64);
        let (coupled, uncoupled) = (run("coupled-bbr")?, run("bbr")?);
        let ratio = |(coupled, bbr): (&Row, &Row)| Some(coupled.number("bytes")? / bbr.number("bytes")?);
        let ratios = Sorted::new(coupled.iter().zip(&uncoupled).filter_map(ratio));
        let rate: f64 = links.links.iter().map(|link| link[0]).sum();
        let of_rate = |rows: &[Row]| {
            let parts = rows.iter().filter_map(|row| Some(row.number("goodput_mbps")? / rate));
            format!("{:.3}", Sorted::new(parts).median().unwrap_or(f64::NAN))
        };
        figure.claim(
            format!("coupled-bbr, {}", links.name),
            Reference::asked_for("as much as bbr, not gated"),
            ratios.summary(),
        );
        let ratio = [0.5, 0.0, 1.0].map(|share| ratios.quantile(share).unwrap_or(f64::NAN));
        let ratio = format!("{:.3} ({:.3} to {:.3})", ratio[0], ratio[1], ratio[2]);
        let parts = [of_rate(&coupled), of_rate(&uncoupled)];
        let mut row = vec![links.name.to_owned(), ratios.len().to_string(), ratio];
        row.extend(parts);
        table.rows.push(row);
    }
    figure.tables.push(table);
    Ok(())
}

/// One path alone on links of many kinds, with losses and without.
fn bbr_alone(request: &FigureRequest<'_>, figure: &mut Figure, seeds: usize) -> Result<(), CommandError> {
    const SECONDS: f64 = 20.0;
    let mut table = Table::new(["one path, 18 links", "lost", "runs", "median share of the rate", "least"]);
    for controller in ["bbr", "coupled-bbr", "cubic"] {
        for loss in [0.0, 0.01] {
            let text = format!(
                "name = \"shared-queues\"\n[[path]]\nrate_mbps = 2.0\nrtt_ms = 5.0\nqueue_ms = 10.0\nloss = {loss:.2}\n{}[sweep]\n\
                 path.0.rate_mbps = [2.0, 20.0, 100.0]\npath.0.rtt_ms = [5.0, 50.0, 200.0]\npath.0.queue_ms = [10.0, 100.0]\n",
                transfer(controller, SECONDS)
            );
            let name = format!("shared-queues-alone-{controller}-{loss}");
            let rows = rows(request, &name, &text, seeds.div_ceil(5) as u64)?;
            let share = |row: &Row| Some(row.number("bytes")? * 8e-6 / SECONDS / row.number("path.0.rate_mbps")?);
            let shares = Sorted::new(rows.iter().filter_map(share));
            let at = |share| shares.quantile(share).unwrap_or(f64::NAN);
            let percent = format!("{:.0} %", 100.0 * loss);
            figure.claim(format!("{controller}, one path, {percent} lost"), Reference::none(), shares.summary());
            let numbers = [at(0.5), at(0.0)].map(|share| format!("{share:.2}"));
            let mut row = vec![controller.to_owned(), percent, shares.len().to_string()];
            row.extend(numbers);
            table.rows.push(row);
        }
    }
    figure.tables.push(table);
    Ok(())
}
