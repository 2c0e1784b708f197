//! Sixteen pairs of paths as hosts have them: what a second path gives, and whether it ever costs.

use crate::command::CommandError;
use crate::design::{PROFILES, Profile};
use crate::plot::Plot;
use crate::stats::Sorted;

use super::paired::{self, Compared, Contest, Load, Tally, percent, upper_median};
use super::{Figure, FigureRequest, Table};

/// What is carried over each pair, with the seeds where something is drawn.
const LOADS: [(Load, u64); 9] = [
    (Load::Download(10_000), 60),
    (Load::Download(100_000), 60),
    (Load::Download(1_000_000), 30),
    (Load::Download(10_000_000), 10),
    (Load::Download(50_000_000), 5),
    (Load::Upload(10_000), 60),
    (Load::Upload(1_000_000), 30),
    (Load::Upload(10_000_000), 10),
    (Load::Requests(10_000), 20),
];
/// The transfer that times are told of.
const TOLD: Load = Load::Download(10_000_000);

/// A profile with a transfer.
pub(super) fn contest(profile: &Profile, load: Load, seeds: u64) -> Contest {
    Contest {
        group: profile.title.to_owned(),
        name: format!("{}-{load}", profile.name).replace(' ', "-"),
        network: profile.network(),
        endpoints: String::new(),
        load,
        seeds: if profile.is_random() { seeds } else { 1 },
    }
}

/// The gate: every profile with every load, both initial paths.
pub(super) fn profiles(request: &FigureRequest<'_>) -> Result<Figure, CommandError> {
    let seeds_max = request.points.unwrap_or(usize::MAX) as u64;
    let contests =
        PROFILES.iter().flat_map(|profile| LOADS.map(|(load, seeds)| contest(profile, load, seeds.min(seeds_max))));
    let compared = paired::compare(request, "profiles", &contests.collect::<Vec<_>>())?;
    let mut figure = Figure::default();
    let mut told = Table::new([
        "profile, Mbit/s / RTT ms",
        "10 MB, better path alone",
        "both",
        "gain",
        "median",
        "over +3 %",
        "over +15 %",
        "worst",
    ]);
    let mut plot = Plot::new("Both paths against the better one alone", "", "part of its time more").y_range(-0.6, 0.2);
    for profile in &PROFILES {
        let of = || compared.iter().filter(|compared| compared.contest.group == profile.title);
        let mut row = vec![profile.title.to_owned()];
        row.extend(times(of()));
        row.extend(Tally::of(of()).cells());
        told.rows.push(row);
        let slower = of().flat_map(|compared| &compared.pairs).map(|pair| pair.allowed().min(2.0));
        plot.boxed(profile.name, slower);
    }
    figure.tables.push(told);
    let (table, tallies) = by_load(&compared);
    figure.tables.push(table);
    paired::hold(&compared, &tallies, &mut figure);
    figure.notes.extend(worst_of(&compared, 12));
    figure.plots = vec![plot];
    Ok(figure)
}

/// Seconds of the better path alone and of both, the better one first, and what is gained.
fn times<'a>(compared: impl Iterator<Item = &'a Compared>) -> Vec<String> {
    let told: Vec<&Compared> = compared.filter(|compared| compared.contest.load == TOLD).collect();
    let Some(best_first) = told.iter().find(|compared| compared.is_best_first()) else { return vec!["-".into(); 3] };
    let (alone, both) = best_first.medians();
    vec![format!("{alone:.2} s"), format!("{both:.2} s"), percent(alone / both - 1.0)]
}

/// By load and order of paths, all profiles together: a table, and what is held against the bars.
fn by_load(compared: &[Compared]) -> (Table, Vec<(String, Tally)>) {
    let mut tallies = Vec::new();
    let mut table = Table::new(["transfer", "initial path", "pairs", "median", "over +3 %", "over +15 %", "worst"]);
    for (load, _) in LOADS {
        for (order, is_best_first) in [("better", true), ("worse", false)] {
            let of = |c: &&Compared| c.contest.load == load && c.is_best_first() == is_best_first;
            let tally = Tally::of(compared.iter().filter(of));
            let mut row = vec![load.to_string(), order.to_owned(), tally.count().to_string()];
            row.extend(tally.cells());
            table.rows.push(row);
            tallies.push((format!("{load}, {order} path first"), tally));
        }
    }
    (table, tallies)
}

/// How many comparisons have a median over the limit; of these the largest, each on a line.
pub(super) fn worst_of(compared: &[Compared], count: usize) -> Vec<String> {
    let median = |c: &Compared, of: fn(&paired::Pair) -> f64| upper_median(&Sorted::new(c.pairs.iter().map(of)));
    let mut order: Vec<&Compared> =
        compared.iter().filter(|c| median(c, paired::Pair::allowed) > paired::SLOWER).collect();
    order.sort_by(|a, b| median(b, paired::Pair::allowed).total_cmp(&median(a, paired::Pair::allowed)));
    let line = |c: &&Compared| {
        let (alone, both) = c.medians();
        let (allowed, raw) = (median(c, paired::Pair::allowed), median(c, paired::Pair::raw));
        let order = if c.is_best_first() { "better" } else { "worse" };
        format!(
            "median {} (raw {}), n {}: {}, {}, path {} first, the {order}: {alone:.4} s alone, {both:.4} s",
            percent(allowed),
            percent(raw),
            c.pairs.len(),
            c.contest.name,
            c.contest.group,
            c.initial
        )
    };
    let told = format!(
        "the median of {} of {} comparisons is over +3 %, each of one network and transfer",
        order.len(),
        compared.len()
    );
    let told = if order.len() > count { format!("{told}; the worst {count}:") } else { told };
    std::iter::once(told).chain(order.iter().take(count).map(line)).collect()
}
