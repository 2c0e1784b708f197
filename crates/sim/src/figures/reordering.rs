//! The gate `reordering`: packets that come late on a path that loses none cost a download little, whatever the controller.

use crate::campaign::Row;
use crate::command::CommandError;
use crate::plot::Plot;
use crate::stats::Sorted;

use super::claim::Reference;
use super::{Figure, FigureRequest, Table, rows};

/// Goodput over that of the same path in order, in the median over seeds and in each run.
const SHARE_MIN: f64 = 0.9;
const SHARE_EVER: f64 = 0.8;
/// Seeds of each setting. What fewer do not hold is judged by all of them: runs of one setting differ by as much as a sixth, by
/// whether slow start ends before a queue is full, and the median of three of them is a lottery.
const SEEDS: u64 = 10;
/// Rates, Mbit/s, and round trips, ms.
const NETWORKS: [(u32, u32); 5] = [(50, 40), (10, 10), (10, 100), (100, 10), (100, 100)];
/// Seconds that the download would take at the full rate.
const SECONDS: u64 = 4;
/// Packets that are late, of a hundred, and by how many milliseconds, each way.
type Disorder = (u32, u32);
const DISORDERS: [Disorder; 2] = [(10, 10), (25, 5)];

fn scenario(controller: &str, (mbps, rtt_ms): (u32, u32), disorder: Option<Disorder>) -> String {
    let bytes = u64::from(mbps) * 125_000 * SECONDS;
    let late = disorder.map_or(String::new(), |(percent, ms)| {
        format!("reorder = {:.2}\nreorder_ms = {ms}\n", f64::from(percent) / 100.0)
    });
    format!(
        "name = \"reordering\"\n[[path]]\nrate_mbps = {mbps}\nrtt_ms = {rtt_ms}\n{late}\
         [transfer]\nkind = \"download\"\nbytes = {bytes}\n[endpoints]\ncongestion = \"{controller}\"\n"
    )
}

fn goodputs(rows: &[Row]) -> Sorted {
    Sorted::new(rows.iter().map(|row| row.number("goodput_mbps").unwrap_or(0.0)))
}

/// Goodput of each seed under each disorder, over the median without.
pub(super) fn shares(
    request: &FigureRequest<'_>,
    controller: &str,
    network: (u32, u32),
    seeds: u64,
) -> Result<Vec<(Disorder, Sorted)>, CommandError> {
    let run = |disorder: Option<Disorder>| {
        let kind = disorder.map_or("in-order".to_owned(), |(percent, ms)| format!("{percent}-by-{ms}"));
        let name = format!("reordering-{controller}-{}-{}-{kind}", network.0, network.1);
        rows(request, &name, &scenario(controller, network, disorder), seeds)
    };
    let orderly = goodputs(&run(None)?).median().unwrap_or(f64::NAN);
    let shares = |disorder| {
        let late = goodputs(&run(Some(disorder))?);
        Ok((disorder, Sorted::new(late.values().iter().map(|mbps| mbps / orderly))))
    };
    DISORDERS.into_iter().map(shares).collect()
}

/// Whether these are enough.
pub(super) fn holds(shares: &Sorted) -> bool {
    let median = shares.median().is_some_and(|median| median >= SHARE_MIN);
    median && shares.values().iter().all(|share| *share >= SHARE_EVER)
}

/// Median and least share, %, and whether they are enough.
fn verdict(shares: &Sorted) -> String {
    let percent = |share: Option<f64>| 100.0 * share.unwrap_or(0.0);
    let (median, least) = (percent(shares.median()), percent(shares.values().first().copied()));
    let held = if holds(shares) { "" } else { ": NOT HELD" };
    format!("{median:.1} ({least:.1}){held}")
}

/// The gate: every controller over the networks, with `points` seeds of each, or all where these are not enough.
pub(super) fn reordering(request: &FigureRequest<'_>) -> Result<Figure, CommandError> {
    let mut figure = Figure::default();
    let seeds = request.seeds(SEEDS);
    let mut plot = Plot::new("Goodput next to the same path in order", "", "share").y_range(0.0, 1.1);
    let settings = NETWORKS.iter().flat_map(|network| DISORDERS.map(|disorder| (network, disorder)));
    let name = |((mbps, rtt_ms), (percent, ms)): (&(u32, u32), Disorder)| {
        format!("{mbps} Mbit/s, {rtt_ms} ms, {percent} % late by {ms} ms")
    };
    let mut table =
        Table { head: vec!["median (least), %".to_owned()], rows: settings.map(|s| vec![name(s)]).collect() };
    let (mut medians, mut all, mut held) = (Vec::new(), Vec::new(), 0);
    for controller in crate::CONTROLLERS {
        table.head.push(controller.to_owned());
        let mut of_controller = Vec::new();
        let mut rows = table.rows.iter_mut();
        for network in NETWORKS {
            let mut found = shares(request, controller, network, seeds)?;
            if seeds < SEEDS && !found.iter().all(|(_, shares)| holds(shares)) {
                found = shares(request, controller, network, SEEDS)?;
            }
            for ((_, shares), row) in found.into_iter().zip(&mut rows) {
                held += usize::from(holds(&shares));
                row.push(verdict(&shares));
                medians.extend(shares.median());
                of_controller.extend_from_slice(shares.values());
            }
        }
        plot.boxed(controller, of_controller.clone());
        all.append(&mut of_controller);
    }
    let wanted = crate::CONTROLLERS.len() * table.rows.len();
    figure.failed = held < wanted;
    let least = |values: &[f64]| 100.0 * values.iter().copied().fold(f64::INFINITY, f64::min);
    figure.claim(
        "goodput over that of the orderly path",
        Reference::asked_for("at least 90 % in the median of each setting, 80 % in each run"),
        format!(
            "{held} of {wanted} settings held; least median {:.1} %, least of {} runs {:.1} %",
            least(&medians),
            all.len(),
            least(&all)
        ),
    );
    figure.notes.push("nothing is lost but by full queues; data and acks are late alike".to_owned());
    figure.tables.push(table);
    figure.plots = vec![plot];
    Ok(figure)
}
