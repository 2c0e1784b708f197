//! Networks that no design draws and that broke a build once, from the files of `examples/off-design`: all paths next to the best
//! of them alone.

use crate::campaign::{Campaign, Job, Row};
use crate::command::CommandError;
use crate::scenario::Traces;
use crate::stats::Sorted;

use super::claim::Reference;
use super::paired::{SLOWER, percent, seconds, upper_median};
use super::{Figure, FigureRequest, Table, rows, tree};

/// Sweep keys that say over which path or paths a run goes; all others make networks of their own.
const EXTENSION: &str = "endpoints.extension";
const INITIAL_PATH: &str = "endpoints.initial_path";

/// A scenario file whose sweep runs each network over every path alone, and over all of them from each.
struct ScenarioFile {
    name: &'static str,
    text: &'static str,
    /// What it is, Mbit/s / RTT ms.
    title: &'static str,
    seeds: u64,
    /// The most that all paths took longer in the median of a network, before which commit.
    before: &'static str,
    /// The network of it that is not held, by what the sweep sets; an empty text where it sets nothing.
    not_held: Option<&'static str>,
}

macro_rules! scenario_file {
    ($name:literal, $title:literal, $seeds:literal, $before:literal $(, not held: $network:literal)?) => {
        ScenarioFile {
            name: $name,
            text: include_str!(concat!("../../../../examples/off-design/", $name, ".toml")),
            title: $title,
            seeds: $seeds,
            before: $before,
            not_held: scenario_file!(@known $($network)?),
        }
    };
    (@known) => { None };
    (@known $network:literal) => { Some($network) };
}

const FILES: [ScenarioFile; 20] = [
    scenario_file!(
        "window",
        "100/15 + 20/60 with a queue of 1 s, 50 MB, receive windows that bind",
        3,
        "+45.1 %, fe3db62"
    ),
    scenario_file!("window-far", "20/10 + 20/100 to 20/300, 10 MB, receive windows that bind", 1, "+89 %, fe3db62"),
    scenario_file!(
        "nat-rebinds",
        "20/40 + 10/60, 0.05 % lost, 20 MB; both NATs give another port twice, the client only receives",
        6,
        "never ended, fe3db62"
    ),
    scenario_file!("three-paths", "0.2/4 + 0.2/10 + 20/60, 1 MB", 5, "+71 %, 4e301c2"),
    scenario_file!(
        "first-dies",
        "50/20 + 20/40, 4 MB; the first is silent for 2 s",
        5,
        "+57.4 %, b189e70",
        not held: "event.0.at_s = 0.03"
    ),
    scenario_file!(
        "tiny-queue",
        "one queue of few packets at 40 Mbit/s for both, 14 and 50 ms, 4 MB",
        9,
        "+27.7 %, 1f26603"
    ),
    scenario_file!(
        "even-queue",
        "one queue of 9 packets at 21.3 Mbit/s for both, 50 ms, 8 MB",
        5,
        "+60.3 %, not mended",
        not held: ""
    ),
    scenario_file!(
        "lossy-requests",
        "20/5 that loses packets + 20/200, answers of 1 kB each 100 ms",
        45,
        "+268 %, 45aac06"
    ),
    scenario_file!(
        "window-shut",
        "19/57 + 0.66/6 with a queue of 1.4 s and a flow of CUBIC in it, 1 MB, a window of 326 kB",
        27,
        "+20.1 %, 76e910e"
    ),
    scenario_file!(
        "window-deep",
        "3.3/38, 0.65 % lost, + 0.8/22 with a queue of 0.76 s, 2 MB up, a window of 173 kB",
        9,
        "+13.5 %, 72e476c"
    ),
    scenario_file!(
        "thin-near-path",
        "130/340 + 1/7 up 0.13 with a queue of 0.33 s, 5 MB, a window of 1.07 MB",
        9,
        "+70.5 %, 410f3d5"
    ),
    scenario_file!(
        "thin-near-path-up",
        "180/51 + 0.62/4.5 up 0.75, 15.5 MB up, a window of 655 kB",
        9,
        "+124.0 %, 410f3d5"
    ),
    scenario_file!(
        "thin-near-lossy",
        "91/164 + 1.4/4 up 0.3 with a queue of 60 ms, 2.2 % lost, 12.8 MB",
        9,
        "+9.4 %, 8dca8e5"
    ),
    scenario_file!("three-thin", "155/74 + 0.62/20 + 0.53/360, 18.5 MB up", 9, "+18.9 %, 8dca8e5"),
    scenario_file!("thin-ways-up", "150/25 up 10 + 400/15 up 3, 50 MB", 9, "+7.9 %, 5b4fee6"),
    scenario_file!(
        "acks-go-home",
        "14/369 + 8/4 up 0.055, 2.4 % lost, with a queue of 28 ms, 9.2 MB up",
        9,
        "+28.0 %, 5a8f809"
    ),
    scenario_file!(
        "thin-way-back",
        "82/95 + 2.45/6 up 0.072, 0.3 % lost, with a queue of 0.65 s, 12 MB",
        45,
        "+17.0 %, 255a978"
    ),
    scenario_file!(
        "rate-steps",
        "20/60 + 100/20 that falls to 2 Mbit/s for half of each second, answers of 100 kB each 200 ms",
        5,
        "+32.8 %, 465e360"
    ),
    scenario_file!(
        "rtt-jumps",
        "30/50 + 80/30 with 120 ms for half of the time, answers of 30 kB each 200 ms",
        9,
        "+14.8 %, 465e360"
    ),
    scenario_file!(
        "varying-loss",
        "20/60 + 30/20 that loses up to a fifth, drawn each half second, answers of 30 kB each 200 ms",
        9,
        "+46.2 %, 465e360"
    ),
];

/// The runs of a network over one path alone, or over all from that one, seed after seed.
#[derive(Clone, Debug, Default, PartialEq)]
struct Runs {
    initial: usize,
    /// What each took in seconds, infinite where it did not complete.
    seconds: Vec<f64>,
}

/// A network of a file.
#[derive(Clone, Debug, Default, PartialEq)]
struct Variant {
    /// What the sweep sets there.
    settings: String,
    alone: Vec<Runs>,
    together: Vec<Runs>,
}

/// What all paths took longer than the best one alone.
struct Compared {
    /// Median of the best path alone, seconds.
    alone: f64,
    /// Median over pairs of one seed, from the best path first and from the slowest other one, and the worst pair.
    best_first: f64,
    other_first: f64,
    worst: f64,
}

impl Variant {
    /// Notes a run; those of one kind come seed after seed.
    fn note(&mut self, job: &Job, row: &Row) {
        let setting = |name: &str| job.settings.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let initial = setting(INITIAL_PATH).and_then(|value| value.parse().ok()).unwrap_or_default();
        let is_alone = setting(EXTENSION).is_some_and(|extension| extension.contains("none"));
        let kind = if is_alone { &mut self.alone } else { &mut self.together };
        let seconds = seconds(row).unwrap_or(f64::INFINITY);
        match kind.iter_mut().find(|runs| runs.initial == initial) {
            Some(runs) => runs.seconds.push(seconds),
            None => kind.push(Runs { initial, seconds: vec![seconds] }),
        }
    }

    /// None where a reference is missing: then there is nothing to hold anything against.
    fn compare(&self) -> Option<Compared> {
        let median = |seconds: &[f64]| upper_median(&Sorted::new(seconds.iter().copied()));
        let best = self.alone.iter().min_by(|a, b| median(&a.seconds).total_cmp(&median(&b.seconds)))?;
        let pairs = |runs: &Runs| -> Vec<f64> {
            runs.seconds.iter().zip(&best.seconds).map(|(all, alone)| all / alone - 1.0).collect()
        };
        let is_complete = best.seconds.iter().all(|seconds| seconds.is_finite());
        let all: Vec<(usize, Vec<f64>)> = self.together.iter().map(|runs| (runs.initial, pairs(runs))).collect();
        let of = |is_best: bool| {
            let of = all.iter().filter(|(initial, _)| (*initial == best.initial) == is_best);
            of.map(|(_, pairs)| median(pairs)).max_by(f64::total_cmp)
        };
        let worst = all.iter().flat_map(|(_, pairs)| pairs).copied().max_by(f64::total_cmp)?;
        let (best_first, other_first) = of(true).zip(of(false)).filter(|_| is_complete)?;
        Some(Compared { alone: median(&best.seconds), best_first, other_first, worst })
    }
}

/// The networks of a file with their runs.
fn variants(request: &FigureRequest<'_>, file: &ScenarioFile) -> Result<Vec<Variant>, CommandError> {
    let seeds = request.seeds(file.seeds);
    let name = format!("off-design-{}", file.name);
    let tree = tree(request, file.name, file.text)?;
    let jobs = Campaign::plan_with(tree, Traces::default(), seeds, request.policies.clone())?.jobs;
    let mut variants: Vec<Variant> = Vec::new();
    for (job, row) in jobs.iter().zip(rows(request, &name, file.text, seeds)?) {
        let own = job.settings.iter().filter(|(key, _)| key != EXTENSION && key != INITIAL_PATH);
        let settings = own.map(|(key, value)| format!("{key} = {value}")).collect::<Vec<_>>().join(", ");
        let at = variants.iter().position(|known| known.settings == settings).unwrap_or(variants.len());
        if at == variants.len() {
            variants.push(Variant { settings, ..Variant::default() });
        }
        variants[at].note(job, &row);
    }
    Ok(variants)
}

/// The gate: in the median of each network and order no more than the best path alone takes, but for those that are known.
pub(super) fn off_design(request: &FigureRequest<'_>) -> Result<Figure, CommandError> {
    let mut figure = Figure::default();
    let mut table = Table::new([
        "file of `examples/off-design`",
        "network, Mbit/s / RTT ms",
        "seeds",
        "best path alone",
        "all, best first",
        "another first",
        "worst run",
        "most, before the commit that mended it",
        "",
    ]);
    let (mut count, mut held, mut known) = (0, 0, 0);
    for file in &FILES {
        for (at, network) in variants(request, file)?.iter().enumerate() {
            let compared = network.compare();
            let is_held = compared.as_ref().is_some_and(|c| c.best_first.max(c.other_first) <= SLOWER);
            let is_known = file.not_held == Some(network.settings.as_str());
            count += 1;
            held += usize::from(is_held);
            known += usize::from(!is_held && is_known);
            let verdict = match (is_held, is_known) {
                (true, _) => "held",
                (false, true) => "**not held**, as known",
                (false, false) => "NOT HELD",
            };
            let cells = compared.map_or_else(
                || ["none ended", "", "", ""].map(str::to_owned),
                |c| {
                    let [best, other, worst] = [c.best_first, c.other_first, c.worst].map(percent);
                    [format!("{:.3} s", c.alone), best, other, worst]
                },
            );
            let title = if at == 0 { file.title } else { "the same" };
            let title = [title, network.settings.as_str()].into_iter().filter(|part| !part.is_empty());
            let mut row = vec![format!("`{}`", file.name), title.collect::<Vec<_>>().join("; ")];
            row.push(request.seeds(file.seeds).to_string());
            row.extend(cells);
            row.push(if at == 0 { file.before } else { "" }.to_owned());
            row.push(verdict.to_owned());
            table.rows.push(row);
        }
    }
    figure.failed = held + known < count;
    figure.claim(
        "networks whose median is at most 3 % over the best path alone, from any path",
        Reference::asked_for("every one"),
        format!(
            "{held} of {count}, {known} known not to be: {}",
            if figure.failed { "NOT HELD" } else { "held but for those" }
        ),
    );
    figure.tables.push(table);
    Ok(figure)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::scenario::Tree;

    fn runs(initial: usize, seconds: &[f64]) -> Runs {
        Runs { initial, seconds: seconds.to_vec() }
    }

    #[test]
    fn all_paths_are_held_against_the_best_one_of_the_same_seed() {
        let alone = vec![runs(0, &[4.0, 9.0, 9.0]), runs(1, &[2.0, 3.0, 4.0]), runs(2, &[8.0, 8.0, 8.0])];
        let together = vec![runs(0, &[3.0, 3.0, 4.0]), runs(1, &[1.0, 3.0, 5.0]), runs(2, &[2.0, 6.0, 4.0])];
        let network = Variant { settings: String::new(), alone, together };
        let compared = network.compare().unwrap();
        assert_eq!((compared.alone, compared.best_first, compared.other_first, compared.worst), (3.0, 0.0, 0.0, 1.0));
        let mut unfinished = network.clone();
        unfinished.alone[1].seconds[0] = f64::INFINITY;
        assert!(unfinished.compare().is_none(), "without a reference nothing is held");
        let mut stuck = network;
        stuck.together[2].seconds = vec![f64::INFINITY; 3];
        assert_eq!(stuck.compare().unwrap().other_first, f64::INFINITY);
    }

    #[test]
    fn each_file_has_every_path_alone_and_all_from_each() {
        let names: BTreeSet<_> = FILES.iter().map(|file| file.name).collect();
        assert_eq!(names.len(), FILES.len());
        for file in &FILES {
            let tree = Tree::parse(file.name, file.text).unwrap();
            let campaign = Campaign::plan(tree, Traces::default(), 1).unwrap();
            let of = |key: &str| -> BTreeSet<String> {
                let settings = campaign.jobs.iter().flat_map(|job| job.settings.iter());
                settings.filter(|(known, _)| known == key).map(|(_, value)| value.clone()).collect()
            };
            let paths = campaign.scenario(&campaign.jobs[0]).unwrap().paths.len();
            assert_eq!((of(EXTENSION).len(), of(INITIAL_PATH).len()), (2, paths), "{}", file.name);
        }
    }
}
