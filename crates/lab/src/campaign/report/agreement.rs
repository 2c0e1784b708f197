//! Do two worlds agree: the laboratory and the simulator, runs beside others and runs alone.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plait_sim::campaign::spread;
use plait_sim::figures::Figure;
use plait_sim::figures::claim::Reference;
use plait_sim::plot::{Plot, Scale, Style};
use plait_sim::run::{self, Watch};
use plait_sim::scenario::Extension;
use plait_sim::stats::Sorted;

use super::percent;
use crate::campaign::plan::{Company, Job};
use crate::campaign::results::Results;

/// Two times agree within this part of one another.
const CLOSE: f64 = 0.05;
/// Pairs that are told of one by one.
const FAR_MAX: usize = 8;
/// Where two times differ, the simulator is asked with so many other seeds, counted from so far behind the run's own.
const OTHER_SEEDS: u64 = 20;
const OTHER_SEEDS_FROM: u64 = 500;

/// A run in both worlds.
#[derive(Clone, Debug)]
struct TwoTimes<'a> {
    job: &'a Job,
    name: String,
    lab: f64,
    sim: f64,
}

impl TwoTimes<'_> {
    fn is_far(&self) -> bool {
        (self.lab / self.sim - 1.0).abs() > CLOSE
    }
}

/// Two times that differ, and what the simulator takes over other seeds.
#[derive(Clone, Debug)]
struct Far<'a> {
    times: TwoTimes<'a>,
    others: Sorted,
}

impl Far<'_> {
    /// True where the laboratory's time is one that the simulator takes too, with other packets lost.
    fn is_within(&self) -> bool {
        let ends = self.others.values().first().zip(self.others.values().last());
        ends.is_some_and(|(least, most)| (*least..=*most).contains(&self.times.lab))
    }

    fn words(&self) -> String {
        let TwoTimes { name, lab, sim, .. } = &self.times;
        let end = |value: Option<&f64>| value.map_or("-".to_owned(), |value| format!("{value:.3}"));
        let [least, most] = [self.others.values().first(), self.others.values().last()].map(end);
        format!(
            "{name}: {lab:.3} s in the laboratory, {sim:.3} s in the simulator, {least} to {most} s over its other seeds"
        )
    }
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

/// The same scenario in virtual time, with the job's seed or one so far behind it, seconds; none where it does not end, or is
/// no contender of ours.
fn simulated(results: &Results<'_>, job: &Job, turn: Duration, behind: u64) -> Option<f64> {
    let (mut scenario, seed) = results.plan.scenario(job).ok()?;
    match results.plan.contenders.get(job.contender)?.name() {
        "plait" => {}
        "plait-single" => scenario.endpoints.extension = Extension::None,
        _ => return None,
    }
    scenario.endpoints.turn = turn;
    let outcome = run::run(&scenario, seed + behind, Watch::default()).ok()?;
    outcome.is_complete().then_some(outcome.elapsed.as_secs_f64())
}

/// Completion times here and there, of our own contenders: how many are close to a simulator whose hosts take no time and to one
/// whose hosts take as much as real ones, and a plot of the latter.
pub(crate) fn agreement(results: &Results<'_>, compare: &Comparison<'_>, figure: &mut Figure) {
    let (mut pairs, mut far) = (Vec::new(), Vec::new());
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
        figure.claim(
            format!("completion times, laboratory and simulator {hosts}"),
            Reference::asked_for("within 5 % in 90 %"),
            ours,
        );
        far = far_ones(results, compare, turn, &pairs);
        if !far.is_empty() {
            let within = far.iter().filter(|one| one.is_within()).count();
            let what =
                format!("those that differ, within what {OTHER_SEEDS} other seeds take in the simulator {hosts}");
            figure.claim(what, Reference::none(), format!("{within} of {}", far.len()));
        }
    }
    let ratio = |one: &Far<'_>| (one.times.lab / one.times.sim).ln().abs();
    far.sort_by(|a, b| a.is_within().cmp(&b.is_within()).then(ratio(b).total_cmp(&ratio(a))));
    figure.notes.extend(far.iter().take(FAR_MAX).map(Far::words));
    let mut plot = Plot::new("Laboratory and simulator: the same scenario", "simulator, s", "laboratory / simulator")
        .x_scale(Scale::Log)
        .y_range(0.9, 1.1);
    plot.curve("runs", pairs.iter().map(|pair| (pair.sim, pair.lab / pair.sim)).collect(), Style::Dots);
    figure.plots.push(plot);
}

/// The pairs that differ, each with what the simulator takes over other seeds.
fn far_ones<'a>(
    results: &Results<'_>,
    compare: &Comparison<'_>,
    turn: Duration,
    pairs: &[TwoTimes<'a>],
) -> Vec<Far<'a>> {
    let far: Vec<&TwoTimes<'a>> = pairs.iter().filter(|pair| pair.is_far()).collect();
    let others = |pair: &&TwoTimes<'a>| {
        let seeds = OTHER_SEEDS_FROM..OTHER_SEEDS_FROM + OTHER_SEEDS;
        Sorted::new(seeds.filter_map(|behind| simulated(results, pair.job, turn, behind)))
    };
    let found = spread(&far, compare.jobs, compare.stop, others, |_, _| {});
    let of = |(pair, others): (&&TwoTimes<'a>, Option<Sorted>)| Some(Far { times: (*pair).clone(), others: others? });
    far.iter().zip(found).filter_map(of).collect()
}

/// Every run of our own contenders that ended in both worlds, in the order of starts.
fn both_worlds<'a>(results: &Results<'a>, compare: &Comparison<'_>, turn: Duration) -> Vec<TwoTimes<'a>> {
    let mut runs = Vec::new();
    for contender in ["plait", "plait-single"] {
        for start in results.starts() {
            runs.extend(results.runs(contender, start, Company::Beside));
        }
    }
    let runs: Vec<_> =
        runs.into_iter().filter_map(|(job, row)| Some((job, row.seconds()?, row.cell("name")?))).collect();
    let sims = spread(&runs, compare.jobs, compare.stop, |(job, ..)| simulated(results, job, turn, 0), |_, _| {});
    let pair = |((job, lab, name), sim): (&(&'a Job, f64, &str), Option<Option<f64>>)| {
        let contender = results.plan.contenders.get(job.contender)?.name();
        let name = format!("{name}, {contender}, path {} first", job.initial);
        Some(TwoTimes { job, name, lab: *lab, sim: sim.flatten()? })
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
        figure.claim(
            format!("beside others / alone, {contender}"),
            Reference::none(),
            format!("within 5 % in {close}; {}", ratios.summary()),
        );
        plot.cdf(contender, ratios.values().to_vec());
    }
    figure.plots = vec![plot.y_range(0.0, 1.0)];
    figure
}
