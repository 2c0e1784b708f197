//! Do two worlds agree: the laboratory and the simulator, runs beside others and runs alone.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plait_sim::campaign::spread;
use plait_sim::figures::Figure;
use plait_sim::plot::{Plot, Scale, Style};
use plait_sim::run::{self, Watch};
use plait_sim::scenario::Extension;
use plait_sim::stats::Sorted;

use super::{claim, percent};
use crate::campaign::plan::{Company, Job};
use crate::campaign::results::Results;

/// Two times agree within this part of one another.
const CLOSE: f64 = 0.05;
/// Pairs that are told of one by one.
const FAR_MAX: usize = 8;

/// A run in both worlds.
#[derive(Clone, Debug)]
struct TwoTimes {
    name: String,
    lab: f64,
    sim: f64,
}

/// How the simulator is asked.
pub(crate) struct Comparison<'a> {
    /// What a real host takes from a datagram to its turn.
    pub(crate) host_turn: Duration,
    /// Simulations side by side.
    pub(crate) jobs: usize,
    /// Set it to end early.
    pub(crate) stop: &'a AtomicBool,
}

/// The same scenario and seed in virtual time, seconds; none where it does not end, or is no contender of ours.
fn simulated(results: &Results<'_>, job: &Job, turn: Duration) -> Option<f64> {
    let (mut scenario, seed) = results.plan.scenario(job).ok()?;
    match results.plan.contenders.get(job.contender)?.name() {
        "plait" => {}
        "plait-single" => scenario.endpoints.extension = Extension::None,
        _ => return None,
    }
    scenario.endpoints.turn = turn;
    let outcome = run::run(&scenario, seed, Watch::default()).ok()?;
    outcome.is_complete().then_some(outcome.elapsed.as_secs_f64())
}

/// Completion times here and there, of our own contenders: how many are close to a simulator whose hosts take no time and to one
/// whose hosts take as much as real ones, and a plot of the latter.
pub(crate) fn agreement(results: &Results<'_>, compare: &Comparison<'_>, figure: &mut Figure) {
    let mut pairs = Vec::new();
    for turn in [Duration::ZERO, compare.host_turn] {
        pairs = both_worlds(results, compare, turn);
        if pairs.is_empty() {
            return;
        }
        let ratios = Sorted::new(pairs.iter().map(|pair| pair.lab / pair.sim));
        let close = ratios.share(|ratio| (1.0 - CLOSE..=1.0 + CLOSE).contains(&ratio));
        let ours =
            format!("{} runs, within 5 % in {}; lab / simulator: {}", pairs.len(), percent(close), ratios.summary());
        let hosts = match turn.is_zero() {
            true => "as it is".to_owned(),
            false => format!("with turn_ms = {}", turn.as_secs_f64() * 1e3),
        };
        claim(
            figure,
            format!("completion times, laboratory and simulator {hosts}"),
            "asked for: within 5 % in 90 %",
            ours,
        );
    }
    let mut far: Vec<&TwoTimes> = pairs.iter().filter(|pair| (pair.lab / pair.sim - 1.0).abs() > CLOSE).collect();
    far.sort_by(|a, b| (b.lab / b.sim).ln().abs().total_cmp(&(a.lab / a.sim).ln().abs()));
    for pair in far.iter().take(FAR_MAX) {
        let note = format!("{}: {:.3} s in the laboratory, {:.3} s in the simulator", pair.name, pair.lab, pair.sim);
        figure.notes.push(note);
    }
    let mut plot = Plot::new("Laboratory and simulator: the same scenario", "simulator, s", "laboratory / simulator")
        .x_scale(Scale::Log)
        .y_range(0.9, 1.1);
    plot.curve("runs", pairs.iter().map(|pair| (pair.sim, pair.lab / pair.sim)).collect(), Style::Dots);
    figure.plots.push(plot);
}

/// Every run of our own contenders that ended in both worlds, in the order of starts.
fn both_worlds(results: &Results<'_>, compare: &Comparison<'_>, turn: Duration) -> Vec<TwoTimes> {
    let mut runs = Vec::new();
    for contender in ["plait", "plait-single"] {
        for start in results.starts() {
            runs.extend(results.runs(contender, start, Company::Beside));
        }
    }
    let runs: Vec<_> =
        runs.into_iter().filter_map(|(job, row)| Some((job, row.seconds()?, row.cell("name")?))).collect();
    let sims = spread(&runs, compare.jobs, compare.stop, |(job, ..)| simulated(results, job, turn), |_, _| {});
    let pair = |((job, lab, name), sim): (&(&Job, f64, &str), Option<Option<f64>>)| {
        let contender = results.plan.contenders.get(job.contender)?.name();
        let name = format!("{name}, {contender}, path {} first", job.initial);
        Some(TwoTimes { name, lab: *lab, sim: sim.flatten()? })
    };
    runs.iter().zip(sims).filter_map(pair).collect()
}

/// Runs beside others over the same runs alone.
pub(crate) fn company(results: &Results<'_>) -> Figure {
    let mut figure = Figure::default();
    let mut plot = Plot::new("Beside others and alone", "time beside others / time alone", "share of runs");
    for contender in results.contenders() {
        let ratio = |start| {
            let middle = |company| {
                let runs = results.runs(contender, start, company);
                Sorted::new(runs.into_iter().filter_map(|(_, row)| row.seconds())).median()
            };
            Some(middle(Company::Beside)? / middle(Company::Alone)?)
        };
        let ratios = Sorted::new(results.starts().into_iter().filter_map(ratio));
        let close = percent(ratios.share(|ratio| (1.0 - CLOSE..=1.0 + CLOSE).contains(&ratio)));
        claim(
            &mut figure,
            format!("beside others / alone, {contender}"),
            "-",
            format!("within 5 % in {close}; {}", ratios.summary()),
        );
        plot.cdf(contender, ratios.values().to_vec());
    }
    figure.plots = vec![plot.y_range(0.0, 1.0)];
    figure
}
