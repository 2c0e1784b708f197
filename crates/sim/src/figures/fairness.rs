//! Fairness at a shared bottleneck: what a connection with two paths takes, next to single-path flows beside it.

use crate::campaign::Row;
use crate::command::CommandError;
use crate::plot::Plot;
use crate::stats::Sorted;

use super::{Figure, FigureRequest, rows};

/// Seeds of each setting.
const SEEDS: u64 = 20;
/// Single-path flows beside the connection.
const OTHERS: [usize; 2] = [1, 4];
/// A coupled connection takes no more than this part of what a flow beside it gets, in the median (its 95 % interval).
const SHARE_MAX: f64 = 1.1;
/// Controllers with the flows beside them, and what is asked of them.
const SETTINGS: [(&str, &str, Claim); 7] = [
    ("olia", "newreno", Claim::Fair),
    ("lia", "newreno", Claim::Fair),
    ("balia", "newreno", Claim::Fair),
    ("newreno", "newreno", Claim::Uncoupled),
    ("auto", "cubic", Claim::Aim),
    ("coupled-cubic", "cubic", Claim::Aim),
    ("cubic", "cubic", Claim::Uncoupled),
];
const QUEUES: [&str; 2] = ["red", "drop-tail"];

/// What a controller is held to.
#[derive(Clone, Copy, PartialEq)]
enum Claim {
    Fair,
    /// The same, but not a gate: `auto` learns that it shares while it runs.
    Aim,
    Uncoupled,
}

impl Claim {
    fn text(self) -> &'static str {
        match self {
            Self::Fair => "no more than a flow beside it, within 10 %",
            Self::Aim => "about what a flow beside it takes",
            Self::Uncoupled => "each path a flow of its own: twice as much",
        }
    }
}

/// The scenario: `others` flows under `beside` and a connection with two paths through one queue. All packets come to it
/// with a jitter of a few of the queue's packets, as from real machines: without it a full drop-tail queue hits the same
/// flow again and again, by the phase of its packets (Floyd and Jacobson, Computer Communication Review 1991).
pub(super) fn scenario((controller, beside): (&str, &str), queue: &str, others: usize, mbps: f64, s: f64) -> String {
    let path = "[[path]]\ndelay_ms = 5\njitter_ms = 4\nvia = [\"bottleneck\"]\n";
    let other = |i: usize| {
        let (rtt, start) = (10 + i % 3, 0.1 * i as f64);
        format!(
            "[[cross]]\nkind = \"flow\"\ncongestion = \"{beside}\"\nlink = \"bottleneck\"\nrtt_ms = {rtt}\n\
             jitter_ms = 4\nstart_s = {start:.1}\n"
        )
    };
    let cross: String = (0..others).map(other).collect();
    format!(
        "name = \"fairness\"\n[[link]]\nname = \"bottleneck\"\nrate_mbps = {mbps:.1}\ndelay_ms = 15\nqueue_ms = 60\n\
         aqm = \"{queue}\"\n{path}{path}{cross}[transfer]\nkind = \"bulk-for\"\nseconds = {s:.1}\n\
         [endpoints]\ncongestion = \"{controller}\"\nprotection = \"null\"\n"
    )
}

/// Bytes of the connection over the mean of the flows beside it.
pub(super) fn share(row: &Row) -> Option<f64> {
    let others: Vec<f64> = (0..).map_while(|i| row.number(&format!("cross{i}_bytes"))).collect();
    let mean = others.iter().sum::<f64>() / others.len() as f64;
    Some(row.number("bytes")? / mean)
}

/// The figure, and a gate on the coupled controllers of the papers.
pub(super) fn fairness(request: &FigureRequest<'_>) -> Result<Figure, CommandError> {
    let mut figure = Figure::default();
    let seeds = request.points.map_or(SEEDS, |n| n as u64);
    for others in OTHERS {
        let title = format!("Two paths through one queue: bytes next to each of {others} flows beside them");
        let mut plot = Plot::new(&title, "", "times");
        for queue in QUEUES {
            for (controller, beside, claim) in SETTINGS {
                let text = scenario((controller, beside), queue, others, 10.0 * (others + 1) as f64, 40.0);
                let rows = rows(request, &format!("fairness-{others}-{queue}-{controller}"), &text, seeds)?;
                let shares = Sorted::new(rows.iter().filter_map(share));
                // A median of few runs is known roughly: the gate closes on what is unfair for sure.
                let least = shares.median_interval().map(|(least, _)| least);
                figure.failed |= claim == Claim::Fair && least.is_none_or(|least| least > SHARE_MAX);
                plot.boxed(format!("{controller}, {queue}"), shares.values().to_vec());
                figure.claim(
                    format!("{controller} beside {others} x {beside}, {queue}"),
                    claim.text(),
                    format!("{} runs: {}", rows.len(), shares.summary()),
                );
            }
        }
        figure.plots.push(plot);
    }
    figure
        .notes
        .push("10 Mbit/s for each flow, 40 s from the start, queue of 60 ms, RTT 40 ms, jitter 4 ms".to_owned());
    Ok(figure)
}
