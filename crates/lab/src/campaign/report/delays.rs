//! Requests at an interval while a path goes away: how long each answer took.

use plait_sim::figures::Figure;
use plait_sim::figures::claim::Reference;
use plait_sim::plot::{Plot, Style};
use plait_sim::stats::Sorted;

use super::{seconds, table};
use crate::campaign::results::{Results, Start};
use crate::run::read_delays;

/// What becomes of requests when a path goes.
#[derive(Clone, Debug, Default)]
struct Answered {
    runs: usize,
    unanswered: usize,
    /// The worst delay of each run after the path went, ms, and the worst but that one.
    worst: Vec<f64>,
    later: Vec<f64>,
}

/// The delays of a contender from a start, those of requests from `from_ms` on told apart.
fn answered(results: &Results<'_>, contender: &str, start: Start, from_ms: f64) -> Answered {
    let mut all = Answered::default();
    for row in results.rows(contender, start) {
        let delays = read_delays(row.cell("lab_delays_ms").unwrap_or_default());
        all.runs += 1;
        if delays.is_empty() {
            all.unanswered += 1;
            all.worst.push(f64::INFINITY);
            continue;
        }
        all.unanswered += delays.iter().filter(|(_, delay)| delay.is_infinite()).count();
        let mut after: Vec<f64> = delays.iter().filter(|(at, _)| *at >= from_ms).map(|(_, delay)| *delay).collect();
        after.sort_by(f64::total_cmp);
        all.worst.extend(after.pop());
        all.later.extend(after.pop());
    }
    all
}

fn ms(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |ms| if ms.is_finite() { format!("{ms:.1}") } else { "never".to_owned() })
}

/// Dots of the first run of each contender.
fn plot_of(results: &Results<'_>, start: Start, title: &str) -> Plot {
    let mut plot = Plot::new(title, "sent at, s", "delay, ms");
    for contender in results.contenders() {
        let rows = results.rows(contender, start);
        let delays = rows.first().and_then(|row| row.cell("lab_delays_ms")).map(read_delays).unwrap_or_default();
        let dots = delays.into_iter().filter(|(_, delay)| delay.is_finite()).map(|(at, delay)| (at / 1e3, delay));
        plot.curve(contender, dots.collect(), Style::Dots);
    }
    plot
}

/// CoNEXT'17 Fig. 11.
pub(crate) fn handover(results: &Results<'_>) -> Figure {
    const DIES_MS: f64 = 3_000.0;
    let mut figure = Figure::default();
    let start = Start { setup: 0, initial: 0 };
    let mut told =
        table(["", "runs", "unanswered", "worst delay, ms: median", "most", "worst but one: median", "most"]);
    for contender in results.contenders() {
        let all = answered(results, contender, start, DIES_MS - 500.0);
        let (worst, later) = (Sorted::new(all.worst), Sorted::new(all.later));
        told.rows.push(vec![
            contender.to_owned(),
            all.runs.to_string(),
            all.unanswered.to_string(),
            ms(worst.median()),
            ms(worst.values().last().copied()),
            ms(later.median()),
            ms(later.values().last().copied()),
        ]);
        let said = match contender {
            "plait" => Reference::asked_for("none unanswered, worst at most 100 ms, later ones at most 30 ms"),
            "mptcp" => Reference::elsewhere("worst 433 to 481 ms, then 27"),
            "noq" => Reference::elsewhere("1.7 s with a path idle time-out of 1.5 s, without never"),
            "tcp" => Reference::elsewhere("never"),
            _ => Reference::none(),
        };
        let ours = format!(
            "{} runs: {} unanswered, worst {} ms (most {}), then {} ms (most {})",
            all.runs,
            all.unanswered,
            ms(worst.median()),
            ms(worst.values().last().copied()),
            ms(later.median()),
            ms(later.values().last().copied()),
        );
        figure.claim(format!("handover, {contender}"), said, ours);
    }
    let mut plot = plot_of(results, start, "Handover: delay of each answer, the first path dies at 3 s");
    plot.mark(DIES_MS / 1e3, "path 0 dies");
    figure.plots = vec![plot];
    figure.tables.push(told);
    figure
}

/// Wi-Fi fades, cellular stays, Wi-Fi returns.
pub(crate) fn mobility(results: &Results<'_>) -> Figure {
    let mut figure = Figure::default();
    let (download, requests) = (Start { setup: 0, initial: 0 }, Start { setup: 1, initial: 0 });
    let mut told = table(["", "35 MB, s", "requests unanswered", "delay p50, ms", "p95", "worst: median", "most"]);
    for contender in results.contenders() {
        let all = answered(results, contender, requests, 0.0);
        let rows = results.rows(contender, requests);
        let of = |column: &str| Sorted::new(rows.iter().filter_map(|row| row.number(column))).median();
        let worst = Sorted::new(all.worst);
        told.rows.push(vec![
            contender.to_owned(),
            seconds(results.seconds(contender, download)),
            all.unanswered.to_string(),
            ms(of("delay_p50_ms")),
            ms(of("delay_p95_ms")),
            ms(worst.median()),
            ms(worst.values().last().copied()),
        ]);
    }
    let mut plot = plot_of(results, requests, "Wi-Fi fades and returns: delay of each answer");
    for (at, what) in [(2.0, "fades"), (4.0, "gone"), (8.0, "back")] {
        plot.mark(at, what);
    }
    figure.plots = vec![plot];
    figure.tables.push(told);
    figure
}
