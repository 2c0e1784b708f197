//! Fairness at a shared bottleneck: what a connection with two paths takes, next to single-path flows beside it.

use crate::campaign::Row;
use crate::command::CommandError;
use crate::plot::Plot;
use crate::stats::Sorted;

use super::{Figure, FigureRequest, rows};

/// Seeds of each setting.
const SEEDS: u64 = 10;
/// Single-path NewReno flows beside the connection.
const OTHERS: usize = 4;
/// A coupled connection takes no more than this part of what a flow beside it gets, in the median.
const SHARE_MAX: f64 = 1.1;
/// Controllers that must hold it, and one that is not coupled.
const COUPLED: [&str; 3] = ["olia", "lia", "balia"];
const UNCOUPLED: &str = "newreno";
/// Where losses do not depend on who sends in bursts, as the controllers' analysis has it, and where they do.
const QUEUES: [&str; 2] = ["red", "drop-tail"];

/// The scenario: `others` flows and a connection with two paths through one queue.
pub(super) fn scenario(controller: &str, queue: &str, others: usize, rate_mbps: f64, seconds: f64) -> String {
    let path = "[[path]]\ndelay_ms = 5\nvia = [\"bottleneck\"]\n";
    let other = |i: usize| {
        let (rtt, start) = (9 + i % 3, 0.1 * i as f64);
        format!(
            "[[cross]]\nkind = \"flow\"\ncongestion = \"newreno\"\nlink = \"bottleneck\"\nrtt_ms = {rtt}\nstart_s = {start:.1}\n"
        )
    };
    let cross: String = (0..others).map(other).collect();
    format!(
        "name = \"fairness\"\n[[link]]\nname = \"bottleneck\"\nrate_mbps = {rate_mbps:.1}\ndelay_ms = 15\nqueue_ms = 60\n\
         aqm = \"{queue}\"\n{path}{path}{cross}[transfer]\nkind = \"bulk-for\"\nseconds = {seconds:.1}\n\
         [endpoints]\ncongestion = \"{controller}\"\nprotection = \"null\"\n"
    )
}

/// Bytes of the connection over the mean of the flows beside it.
pub(super) fn share(row: &Row) -> Option<f64> {
    let others: Vec<f64> = (0..).map_while(|i| row.number(&format!("cross{i}_bytes"))).collect();
    let mean = others.iter().sum::<f64>() / others.len() as f64;
    Some(row.number("bytes")? / mean)
}

/// The figure, and a gate: coupled controllers behind RED.
pub(super) fn fairness(request: &FigureRequest<'_>) -> Result<Figure, CommandError> {
    let mut figure = Figure::default();
    let mut plot = Plot::new("Two paths through one queue: bytes next to a single-path flow", "", "times");
    for queue in QUEUES {
        for controller in COUPLED.into_iter().chain([UNCOUPLED]) {
            let text = scenario(controller, queue, OTHERS, 10.0 * (OTHERS + 1) as f64, 40.0);
            let name = format!("fairness-{queue}-{controller}");
            let rows = rows(request, &name, &text, request.points.map_or(SEEDS, |n| n as u64))?;
            let shares = Sorted::new(rows.iter().filter_map(share));
            let median = shares.median().unwrap_or(f64::INFINITY);
            let gated = queue == "red" && controller != UNCOUPLED;
            figure.failed |= gated && median > SHARE_MAX;
            let wanted = match (controller, gated) {
                (UNCOUPLED, _) => "uncoupled: each path a flow of its own, twice as much",
                (_, true) => "no more than a flow beside it, within 10 %",
                (_, false) => "the same, where losses fall on whoever sends in bursts",
            };
            plot.boxed(format!("{controller}, {queue}"), shares.values().to_vec());
            figure.claim(
                format!("{controller}, {queue}"),
                wanted,
                format!("{} runs: {}", rows.len(), shares.summary()),
            );
        }
    }
    figure.notes.push(format!("{OTHERS} NewReno flows beside it, 10 Mbit/s for each, 40 s, queue of 60 ms"));
    figure.plots = vec![plot];
    Ok(figure)
}
