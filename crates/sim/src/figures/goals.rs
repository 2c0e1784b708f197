//! The three goals of RFC 6356, for every kind of coupling: improve throughput, do no harm, balance congestion.

use crate::campaign::Row;
use crate::command::CommandError;
use crate::plot::Plot;
use crate::stats::Sorted;

use super::claim::Reference;
use super::fairness::{Bottleneck, JITTER_MS, flow, path, share};
use super::{Figure, FigureRequest, rows};

/// Seeds of each setting.
const SEEDS: u64 = 10;
/// How long each run lasts.
const SECONDS: f64 = 60.0;
/// Controllers, with the flows beside them.
const CONTROLLERS: [(&str, &str); 6] = [
    ("auto", "cubic"),
    ("cubic", "cubic"),
    ("coupled-bbr", "bbr"),
    ("lia", "newreno"),
    ("olia", "newreno"),
    ("balia", "newreno"),
];
/// Links of two paths, each with flows of its own beside it: Mbit/s and how many.
type Links = [(f64, usize); 2];
/// A good path and a poor one, each beside one flow.
const UNLIKE: Links = [(20.0, 1), (5.0, 1)];
/// Equal links, one of them with more flows.
const CROWDED: Links = [(20.0, 3), (20.0, 1)];

/// A connection over the first `paths` of two links with queues of their own.
fn scenario(controller: &str, beside: &str, links: &Links, paths: usize) -> String {
    let mut text = String::from("name = \"goals\"\n");
    for (name, (mbps, _)) in ["a", "b"].iter().zip(links) {
        text += &format!("[[link]]\nname = \"{name}\"\nrate_mbps = {mbps:.1}\ndelay_ms = 15\nqueue_ms = 60\n");
    }
    text.extend(["a", "b"].iter().take(paths).enumerate().map(|(number, name)| path(name, number, JITTER_MS)));
    for (name, (_, others)) in ["a", "b"].iter().zip(links) {
        text.extend((0..*others).map(|i| flow(beside, name, i, JITTER_MS)));
    }
    text + &format!(
        "[transfer]\nkind = \"bulk-for\"\nseconds = {SECONDS:.1}\n\
         [endpoints]\ncongestion = \"{controller}\"\nprotection = \"null\"\n"
    )
}

/// Part of the connection's bytes that came over the path with fewer flows.
fn on_the_freer(row: &Row) -> Option<f64> {
    let [crowded, free] = [row.number("path0_down_bytes")?, row.number("path1_down_bytes")?];
    Some(free / (crowded + free))
}

/// What one controller does about each goal.
struct Measured {
    /// Bytes over both paths over those of a connection that has the best path only.
    throughput: Sorted,
    /// Bytes of two paths through one queue over those of the flow beside them.
    harm: Sorted,
    /// Part of the bytes on the freer link.
    balance: Sorted,
}

fn measure(request: &FigureRequest<'_>, controller: &str, beside: &str) -> Result<Measured, CommandError> {
    let seeds = request.seeds(SEEDS);
    let run = |goal: &str, text: &str| rows(request, &format!("goals-{goal}-{controller}"), text, seeds);
    let both = run("both", &scenario(controller, beside, &UNLIKE, 2))?;
    let best = run("best", &scenario(controller, beside, &UNLIKE, 1))?;
    let gain = |(both, best): (&Row, &Row)| Some(both.number("bytes")? / best.number("bytes")?);
    let place = Bottleneck {
        controller,
        beside,
        aqm: "drop-tail",
        queue_ms: 60,
        jitter_ms: JITTER_MS,
        others: 1,
        mbps: 20.0,
        seconds: SECONDS,
        paths: 2,
    };
    let harm = run("harm", &place.scenario())?;
    let balance = run("balance", &scenario(controller, beside, &CROWDED, 2))?;
    Ok(Measured {
        throughput: Sorted::new(both.iter().zip(&best).filter_map(gain)),
        harm: Sorted::new(harm.iter().filter_map(share)),
        balance: Sorted::new(balance.iter().filter_map(on_the_freer)),
    })
}

/// The figure; no gate.
pub(super) fn goals(request: &FigureRequest<'_>) -> Result<Figure, CommandError> {
    let mut figure = Figure::default();
    let mut plots = [
        ("Improve throughput: both paths over the best one alone", "times"),
        ("Do no harm: two paths through one queue over the flow beside them", "times"),
        ("Balance congestion: part of the bytes on the link with fewer flows", "part"),
    ]
    .map(|(title, unit)| Plot::new(title, "", unit));
    for (controller, beside) in CONTROLLERS {
        let Measured { throughput, harm, balance } = measure(request, controller, beside)?;
        for ((plot, goal), values) in plots
            .iter_mut()
            .zip([
                ("improve throughput", "1 or more"),
                ("do no harm", "1 or less"),
                ("balance congestion", "more than uncoupled, which leaves two thirds there"),
            ])
            .zip([throughput, harm, balance])
        {
            plot.boxed(controller, values.values().to_vec());
            figure.claim(format!("{controller}: {}", goal.0), Reference::asked_for(goal.1), values.summary());
        }
    }
    figure.plots.extend(plots);
    figure.notes.push(
        "RFC 6356 2; 20 and 5 Mbit/s, each beside one flow; one queue of 20 Mbit/s beside one flow; 20 Mbit/s beside three flows and \
         beside one; RTT 40 ms, drop-tail queues of 60 ms, 60 s from the start"
            .to_owned(),
    );
    Ok(figure)
}
