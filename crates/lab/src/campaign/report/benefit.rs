//! Several paths against one: time ratios between families, and what the second path gives each of them.

use plait_sim::figures::Figure;
use plait_sim::figures::claim::Reference;
use plait_sim::plot::{Plot, Scale};
use plait_sim::stats::{Sorted, aggregation_benefit};

use super::{FAMILIES, StackFamily, percent, table};
use crate::campaign::results::{Results, Start};

/// A run over several paths is worse than the best of them alone where it takes so much of its time more.
const WORSE: f64 = 1.05;

/// Which initial path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    Best,
    Worst,
}

/// The benefits of a family: of the starts over the better or the worse path, by its own times alone.
fn benefits(results: &Results<'_>, family: &StackFamily, first: First) -> Vec<f64> {
    let benefit = |start: Start| {
        let alone = results.alone(family.one, start)?;
        let is_best = alone[0] <= alone[1];
        let rates = alone.map(|seconds| 1.0 / seconds);
        let wanted = is_best == (first == First::Best);
        let together = results.seconds(family.several, start)?;
        (wanted && rates.iter().any(|rate| *rate > 0.0)).then(|| aggregation_benefit(1.0 / together, &rates))
    };
    results.starts().into_iter().filter_map(benefit).collect()
}

/// In how many starts a family over several paths takes at most 5 % more than its better path alone.
struct NeverWorse {
    /// As the times were measured.
    raw: usize,
    /// A start over the worse path is later by what the first bytes of both paths alone show: that is allowed for.
    allowed: usize,
    starts: usize,
}

impl NeverWorse {
    fn of(results: &Results<'_>, family: &StackFamily) -> Self {
        let mut counts = Self { raw: 0, allowed: 0, starts: 0 };
        for start in results.starts() {
            let (Some(alone), Some(together)) =
                (results.alone(family.one, start), results.seconds(family.several, start))
            else {
                continue;
            };
            let best = alone[0].min(alone[1]);
            if !best.is_finite() {
                continue;
            }
            let later = if alone[0] > alone[1] { results.later_first_byte(family.one, start) } else { 0.0 };
            counts.starts += 1;
            counts.raw += usize::from(together <= WORSE * best);
            counts.allowed += usize::from(together - later <= WORSE * best);
        }
        counts
    }
}

/// What was published and asked for of MPQUIC next to MPTCP in a class.
fn beside_mptcp(class: &str) -> Reference {
    let with_bar = |text: &str| Reference { asked_for: "95 %".into(), ..Reference::published(text) };
    match class {
        "low-bdp-no-loss" => with_bar("CoNEXT'17: MPQUIC faster in 89 %"),
        "low-bdp-loss" => with_bar("CoNEXT'17: nearly always"),
        "high-bdp-loss" => with_bar("CoNEXT'17: MPQUIC outperforms"),
        "short" => Reference::published("CoNEXT'17: MPQUIC outperforms MPTCP in most situations"),
        _ => Reference::none(),
    }
}

/// What others' code gained in a class, best and worst path first.
fn benefit_elsewhere(class: &str) -> Reference {
    Reference::elsewhere(match class {
        "low-bdp-no-loss" => "MPTCP 0.68 to 0.80 / 0.76 to 0.80, noq 0.91 / 0.65",
        "low-bdp-loss" => "MPTCP 0.75 to 0.87 / 0.20 to 0.87, noq 1.15 / 0.74",
        "high-bdp-no-loss" => "MPTCP 0.04 to 0.20 / -0.11 to 0.12, noq -0.06 / -0.34",
        "high-bdp-loss" => "MPTCP 0.46 to 1.21 / 0.08 to 0.67",
        "asymmetric" => "MPTCP 0.82 / 0.75, noq 0.86 / 0.80",
        _ => "",
    })
}

/// Time ratios between families, and their benefits.
fn compared(results: &Results<'_>, class: &str) -> Figure {
    let mut figure = Figure::default();
    let mut ratio = Plot::new(format!("{class}: TCP's time over QUIC's"), "time ratio", "share of runs");
    let pairs = [
        ("TCP / QUIC, one path", "tcp", "plait-single"),
        ("MPTCP / MPQUIC", "mptcp", "plait"),
        ("noq / plait, all paths", "noq", "plait"),
    ];
    for (name, slower, faster) in pairs {
        let ratios = Sorted::new(results.ratios(slower, faster));
        if ratios.is_empty() {
            continue;
        }
        ratio.cdf(name, ratios.values().to_vec());
        let said = if slower == "mptcp" { beside_mptcp(class) } else { Reference::none() };
        let share = percent(ratios.share(|ratio| ratio > 1.0));
        figure.claim(format!("time ratio, {name}"), said, format!("above 1 in {share}; {}", ratios.summary()));
    }
    let mut boxes = Plot::new(format!("{class}: what the second path gives"), "", "experimental aggregation benefit");
    let mut told = table([
        "family",
        "starts",
        "best path first",
        "worst first",
        "above 0",
        "at most 5 % worse than the best path alone",
        "the same, a later first byte of the initial path allowed for",
    ]);
    for family in FAMILIES.iter().filter(|family| results.has(family.several) && results.has(family.one)) {
        let [best, worst] = [First::Best, First::Worst].map(|first| Sorted::new(benefits(results, family, first)));
        boxes.boxed(format!("{}, best", family.several), best.values().to_vec());
        boxes.boxed(format!("{}, worst", family.several), worst.values().to_vec());
        let middle = |sorted: &Sorted| sorted.median().map_or("-".to_owned(), |median| format!("{median:.2}"));
        let all = Sorted::new(best.values().iter().chain(worst.values()).copied());
        let NeverWorse { raw, allowed, starts } = NeverWorse::of(results, family);
        told.rows.push(vec![
            family.name.to_owned(),
            all.len().to_string(),
            middle(&best),
            middle(&worst),
            percent(all.share(|benefit| benefit > 0.0)),
            format!("{raw} of {starts}"),
            format!("{allowed} of {starts}"),
        ]);
        let said = if family.several == "plait" { benefit_elsewhere(class) } else { Reference::none() };
        let ours = format!("{} / {}", best.summary(), worst.summary());
        figure.claim(format!("benefit, {}, best / worst path first", family.name), said, ours);
    }
    figure.tables.push(told);
    figure.plots = vec![ratio.x_scale(Scale::Log).y_range(0.0, 1.0), boxes.y_range(-1.0, 1.5)];
    figure
}

/// A class of the CoNEXT design.
pub(crate) fn conext(results: &Results<'_>) -> Figure {
    let class = results.plan.setups.first().map_or("", |setup| setup.group.as_str()).to_owned();
    let mut figure = compared(results, &class);
    let mut times = Plot::new(format!("{class}: completion time"), "completion time, s", "share of runs");
    for contender in results.contenders() {
        let of = |start| results.seconds(contender, start);
        times.cdf(contender, results.starts().into_iter().filter_map(of).collect::<Vec<_>>());
    }
    figure.plots.push(times.x_scale(Scale::Log).y_range(0.0, 1.0));
    figure
}

/// The asymmetric design of Multiflow QUIC.
pub(crate) fn asymmetric(results: &Results<'_>) -> Figure {
    let mut figure = compared(results, "asymmetric");
    let mut plot = Plot::new("Time over the initial path / time over both", "speed-up", "share of runs");
    let multiflow =
        StackFamily { several: "plait:extension=multiflow", one: "plait-single", name: "Multiflow (plait)" };
    for family in FAMILIES.iter().chain([&multiflow]) {
        let speedups = Sorted::new(results.ratios(family.one, family.several));
        if speedups.is_empty() {
            continue;
        }
        plot.cdf(family.name, speedups.values().to_vec());
        let gain = speedups.median().map_or(f64::NAN, |ratio| 100.0 * (ratio - 1.0));
        let ours = format!("median {gain:.1} %; ratios: {}", speedups.summary());
        let said = "Multiflow 2021: uniflows 83.5 %, MPQUIC 73 %, MPTCP 75 %, the clock from the request on";
        figure.claim(format!("gain of the second path, {}", family.name), Reference::published(said), ours);
    }
    figure.plots.push(plot.y_range(0.0, 1.0));
    figure
}
