//! The gate `never-worse`: several paths are never slower than the best of them alone.

use plait_base::Random;

use crate::command::CommandError;
use crate::design::{self, Drawn, PROFILES, SHAPES, Shape};
use crate::plot::Plot;

use super::paired::{self, Compared, Contest, Load, Tally};
use super::profiles::{contest, worst_of};
use super::{Figure, FigureRequest, Table};

/// Networks of each class and shape; where they are fewer than eight, some profiles are left out.
const POINTS: usize = 16;
/// So many times more are drawn where paths share a queue of a few packets: which packet meets a full one is a lottery, and few
/// networks do not show who loses in it.
const SHARED_QUEUE_TIMES: usize = 4;
/// Seeds of a short and of a long transfer where anything is drawn.
const SEEDS: (u64, u64) = (15, 5);
const SHORT_BYTES: u64 = 1_000_000;
/// Seed of what is drawn here.
const SEED: u64 = 10_069;
const CLASSES: [&str; 4] =
    ["conext-low-bdp-no-loss", "conext-low-bdp-loss", "conext-high-bdp-no-loss", "conext-high-bdp-loss"];
/// What each network carries in turn.
const TURNS: [[Load; 2]; 3] = [
    [Load::Download(256_000), Load::Upload(1_000_000)],
    [Load::Download(4_000_000), Load::Download(10_000)],
    [Load::Download(1_000_000), Load::Upload(256_000)],
];
/// What shows a window that binds for as long as a transfer lasts.
const LONG_TURNS: [Load; 2] = [Load::Download(16_000_000), Load::Upload(16_000_000)];
/// What is carried over each profile.
const PROFILE_LOADS: [Load; 5] = [
    Load::Download(10_000),
    Load::Download(1_000_000),
    Load::Download(10_000_000),
    Load::Upload(1_000_000),
    Load::Requests(10_000),
];

fn seeds(load: Load, is_random: bool) -> u64 {
    match load {
        _ if !is_random => 1,
        Load::Download(bytes) | Load::Upload(bytes) if bytes <= SHORT_BYTES => SEEDS.0,
        _ => SEEDS.1,
    }
}

/// Points of a class from all over the design, every other one a corner of it.
fn of_class(class: &str, points: usize) -> Vec<Contest> {
    let mut random = Random::from_u64(SEED);
    let mut all = design::by_name(class, None).map(|design| design.points).unwrap_or_default();
    let mut contests = Vec::new();
    for at in 0..points {
        let settings = match at % 2 {
            0 if !all.is_empty() => all.swap_remove(random.below(all.len() as u64) as usize),
            _ => design::conext_corner(class, random.below(256)),
        };
        let tables = settings.chunks(settings.len() / 2).map(|path| {
            let lines =
                path.iter().map(|(key, value)| format!("{} = {value}\n", key.rsplit('.').next().unwrap_or(key)));
            format!("[[path]]\n{}", lines.collect::<String>())
        });
        let drawn =
            Drawn { network: tables.collect(), endpoints: String::new(), is_random: !class.ends_with("no-loss") };
        contests.extend(in_turn(class, at, &drawn));
    }
    contests
}

/// A network with the loads whose turn it is.
fn in_turn(group: &str, at: usize, drawn: &Drawn) -> [Contest; 2] {
    TURNS[at / 2 % TURNS.len()].map(|load| contest_of(group, at, drawn, load))
}

fn contest_of(group: &str, at: usize, drawn: &Drawn, load: Load) -> Contest {
    Contest {
        group: group.to_owned(),
        name: format!("{group}-{at}-{load}").replace([' ', ','], "-"),
        network: drawn.network.clone(),
        endpoints: drawn.endpoints.clone(),
        load,
        seeds: seeds(load, drawn.is_random),
    }
}

/// Everything that is compared.
fn contests(points: usize) -> Vec<Contest> {
    let mut contests: Vec<Contest> = CLASSES.iter().flat_map(|class| of_class(class, points)).collect();
    for shape in SHAPES {
        let points = if shape == Shape::SharedQueue { SHARED_QUEUE_TIMES * points } else { points };
        contests.extend((0..points).flat_map(|at| in_turn(shape.name(), at, &shape.draw(SEED + at as u64))));
    }
    for at in 0..points {
        let drawn = Shape::Window.draw(SEED + at as u64);
        contests.extend(LONG_TURNS.map(|load| contest_of("window, long", at, &drawn, load)));
    }
    for profile in PROFILES.iter().take(2 * points) {
        let of =
            |load| Contest { group: "profiles".into(), ..contest(profile, load, seeds(load, profile.is_random())) };
        contests.extend(PROFILE_LOADS.map(of));
    }
    contests
}

/// The table of the groups, each with either path first, and whether they hold.
fn judge(compared: &[Compared], figure: &mut Figure) {
    let mut groups: Vec<(&str, bool)> = Vec::new();
    for compared in compared {
        let group = (compared.contest.group.as_str(), compared.is_best_first());
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    let mut table = Table::new(["networks", "initial path", "pairs", "median", "over +3 %", "over +15 %", "worst"]);
    let mut tallies = Vec::new();
    for (group, is_best_first) in groups {
        let of = |c: &&Compared| c.contest.group == group && c.is_best_first() == is_best_first;
        let tally = Tally::of(compared.iter().filter(of));
        let order = if is_best_first { "better" } else { "worse" };
        let mut row = vec![group.to_owned(), order.to_owned(), tally.count().to_string()];
        row.extend(tally.cells());
        table.rows.push(row);
        tallies.push((format!("{group}, {order} path first"), tally));
    }
    figure.tables.push(table);
    paired::hold(compared, &tallies, figure);
}

/// Compares everything, and fails where several paths are slower than the bars allow.
pub(super) fn never_worse(request: &FigureRequest<'_>) -> Result<Figure, CommandError> {
    let compared = paired::compare(request, "never-worse", &contests(request.points.unwrap_or(POINTS)))?;
    let mut figure = Figure::default();
    judge(&compared, &mut figure);
    figure.notes.extend(worst_of(&compared, 16));
    let mut plot = Plot::new("Slower than the best path alone", "part of its time", "share of runs").y_range(0.0, 1.0);
    for (name, is_best_first) in [("better path first", true), ("worse path first", false)] {
        let of = compared.iter().filter(|compared| compared.is_best_first() == is_best_first);
        plot.cdf(name, of.flat_map(|compared| &compared.pairs).map(|pair| pair.allowed().min(2.0)));
    }
    figure.plots = vec![plot.x_range(-0.6, 0.2)];
    Ok(figure)
}
