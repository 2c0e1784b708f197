//! Times of a few networks side by side.

use plait_sim::figures::Figure;
use plait_sim::figures::claim::Reference;
use plait_sim::plot::Plot;
use plait_sim::stats::Sorted;

use super::{percent, seconds, table};
use crate::campaign::results::{Results, Start};

/// Multiflow QUIC's Fig. 4.
pub(crate) fn satellite(results: &Results<'_>) -> Figure {
    let mut figure = Figure::default();
    let start = Start { setup: 0, initial: 0 };
    let mut plot = Plot::new("10 MB over 10 Mbit/s, and beside it a satellite's way down", "", "completion time, s");
    let mut told = table(["", "runs", "complete", "seconds, median", "least", "most", "by the second path"]);
    for contender in results.contenders() {
        let rows = results.rows(contender, start);
        let times = Sorted::new(rows.iter().filter_map(|row| row.seconds()));
        let share = |row: &&plait_sim::campaign::Row| {
            let [first, second] = [0, 1].map(|path| row.number(&format!("path{path}_down_bytes")));
            Some(second? / (first? + second?))
        };
        let second = Sorted::new(rows.iter().filter_map(share));
        plot.boxed(contender, times.values().to_vec());
        let ends = [times.values().first().copied(), times.values().last().copied()].map(seconds);
        let [least, most] = ends;
        told.rows.push(vec![
            contender.to_owned(),
            rows.len().to_string(),
            times.len().to_string(),
            seconds(times.median()),
            least,
            most,
            second.median().map_or("-".to_owned(), percent),
        ]);
        let said = match contender {
            "plait" => Reference::asked_for("at most 5.0 s"),
            "plait:extension=multiflow" => {
                Reference { asked_for: "at most 1.6 s".into(), ..Reference::published("Multiflow 2021: about 1.5 s") }
            }
            "mptcp" => Reference::elsewhere("10.3 to 10.6 s"),
            "noq" => Reference::elsewhere("5.65 s"),
            "tcp" => Reference::elsewhere("8.37 s"),
            _ => Reference::none(),
        };
        figure.claim(format!("satellite, {contender}"), said, times.summary());
    }
    figure.plots = vec![plot];
    figure.tables.push(told);
    figure
}

/// The sixteen profiles: medians of each contender, the better path first and the worse.
pub(crate) fn profiles(results: &Results<'_>) -> Figure {
    let mut figure = Figure::default();
    let contenders = results.contenders();
    let head = ["profile, Mbit/s / RTT ms".to_owned(), "initial path".to_owned()];
    let names = contenders.iter().map(|name| format!("{name}, s"));
    let mut told = plait_sim::figures::Table { head: head.into_iter().chain(names).collect(), rows: Vec::new() };
    let mut plot = Plot::new("Sixteen pairs of paths: time of plait over that of others", "", "time ratio");
    let others: Vec<&str> = contenders.iter().copied().filter(|name| *name != "plait").collect();
    plot.bar_names(others.iter().map(|name| format!("plait / {name}")));
    for start in results.starts() {
        let Some(setup) = results.plan.setups.get(start.setup) else { continue };
        let mut row =
            vec![setup.group.clone(), ["first", "second"].get(start.initial).copied().unwrap_or("-").to_owned()];
        row.extend(contenders.iter().map(|name| seconds(results.seconds(name, start))));
        told.rows.push(row);
        if start.initial == 0 {
            let ours = results.seconds("plait", start).unwrap_or(f64::NAN);
            let ratio = |name: &&str| ours / results.seconds(name, start).unwrap_or(f64::NAN);
            plot.bar_group(
                setup.name.clone(),
                others.iter().map(ratio).map(|x| if x.is_finite() { x } else { 0.0 }).collect(),
            );
        }
    }
    for other in &others {
        let ratios = Sorted::new(results.ratios(other, "plait"));
        let faster = percent(ratios.share(|ratio| ratio > 1.0));
        figure.claim(
            format!("profiles, {other} / plait"),
            Reference::none(),
            format!("plait faster in {faster}; {}", ratios.summary()),
        );
    }
    figure.plots = vec![plot];
    figure.tables.push(told);
    figure
}
