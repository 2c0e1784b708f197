//! Every scheduler with every controller over many networks: is there a pair that is best everywhere, and what do the defaults
//! lose where another is better?

use crate::campaign::Row;
use crate::command::CommandError;
use crate::design::{self, PROFILES};
use crate::plot::Plot;
use crate::stats::Sorted;

use super::claim::Reference;
use super::{Figure, FigureRequest, Table, rows};

/// Schedulers and controllers that are compared, the defaults first.
const SCHEDULERS: [&str; 5] = ["minrtt", "round-robin", "blest", "ecf", "peekaboo"];
const CONTROLLERS: [&str; 7] = ["auto", "cubic", "newreno", "bbr", "lia", "olia", "balia"];
const PAIRS: usize = SCHEDULERS.len() * CONTROLLERS.len();
/// Networks of the CoNEXT design beside the profiles: so many of each class, far apart in its list.
const DESIGN: [(&str, usize); 4] = [
    ("conext-low-bdp-no-loss", 3),
    ("conext-low-bdp-loss", 4),
    ("conext-high-bdp-no-loss", 3),
    ("conext-high-bdp-loss", 3),
];
const BYTES: u64 = 10_000_000;
const SEEDS: u64 = 3;
/// Goodputs that differ by less count as equal.
const EQUAL: f64 = 0.01;
/// A pair that is behind the best by no more is as good as it.
const GOOD: f64 = 0.03;

/// A network: its name, its tables and the settings over them.
struct Network {
    name: String,
    tables: String,
    settings: Vec<(String, String)>,
}

/// The sixteen profiles, then points of the design.
fn networks() -> Vec<Network> {
    let profiles = PROFILES.iter().map(|profile| Network {
        name: profile.name.to_owned(),
        tables: profile.network(),
        settings: Vec::new(),
    });
    let mut networks: Vec<Network> = profiles.collect();
    for (class, count) in DESIGN {
        let points = design::by_name(class, None).map_or(Vec::new(), |design| design.points);
        let stride = (points.len() / count).max(1);
        networks.extend(points.into_iter().step_by(stride).take(count).enumerate().map(|(at, settings)| Network {
            name: format!("{class}-{at}"),
            tables: "[[path]]\nrate_mbps = 1\n[[path]]\nrate_mbps = 1\n".to_owned(),
            settings,
        }));
    }
    networks
}

/// What every pair reached in a network, as a part of what the best one did: by scheduler, then by controller.
#[derive(Clone, Debug)]
struct Scores(Vec<f64>);

impl Scores {
    /// From the rows of the sweep; a run that did not complete reached nothing.
    fn new(rows: &[Row]) -> Self {
        let goodput = |row: &Row| row.seconds().and_then(|_| row.number("goodput_mbps")).unwrap_or(0.0);
        let median = |(scheduler, controller): (&str, &str)| {
            let is = |row: &&Row, key: &str, name: &str| row.cell(key) == Some(name);
            let runs = rows.iter().filter(|row| is(row, "endpoints.scheduler", scheduler));
            let runs = runs.filter(|row| is(row, "endpoints.congestion", controller));
            Sorted::new(runs.map(goodput)).median().unwrap_or(0.0)
        };
        let pairs = SCHEDULERS.iter().flat_map(|scheduler| CONTROLLERS.iter().map(move |other| (*scheduler, *other)));
        let medians: Vec<f64> = pairs.map(median).collect();
        let best = medians.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        Self(medians.into_iter().map(|median| median / best).collect())
    }

    fn of(&self, pair: usize) -> f64 {
        self.0.get(pair).copied().unwrap_or(0.0)
    }
}

fn name(pair: usize) -> String {
    let (scheduler, controller) = (pair / CONTROLLERS.len(), pair % CONTROLLERS.len());
    format!("{} with {}", SCHEDULERS[scheduler], CONTROLLERS[controller])
}

/// Over the networks, how a pair does.
fn over_networks(all: &[Scores], pair: usize) -> Sorted {
    Sorted::new(all.iter().map(|scores| scores.of(pair)))
}

/// The figure over all networks, or the first ones.
pub(super) fn matrix(request: &FigureRequest<'_>) -> Result<Figure, CommandError> {
    let quoted = |names: &[&str]| names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
    let sweep = format!(
        "[transfer]\nkind = \"download\"\nbytes = {BYTES}\n[endpoints]\nprotection = \"null\"\n[sweep]\n\
         endpoints.scheduler = [{}]\nendpoints.congestion = [{}]\n",
        quoted(&SCHEDULERS),
        quoted(&CONTROLLERS)
    );
    let mut all = Vec::new();
    for network in networks().into_iter().take(request.points.unwrap_or(usize::MAX)) {
        let settings = network.settings.iter().map(|(key, value)| format!("{key}={value}"));
        let request = FigureRequest {
            sets: settings.chain(request.sets.iter().cloned()).collect(),
            out: request.out.clone(),
            commit: request.commit.clone(),
            ran: request.ran.clone(),
            policies: request.policies.clone(),
            ..*request
        };
        let text = format!("name = \"matrix-{}\"\n{}{sweep}", network.name, network.tables);
        let rows = rows(&request, &format!("matrix-{}", network.name), &text, SEEDS)?;
        all.push((network.name, Scores::new(&rows)));
    }
    Ok(figure(&all))
}

fn figure(all: &[(String, Scores)]) -> Figure {
    let (names, scores): (Vec<&str>, Vec<Scores>) =
        all.iter().map(|(name, scores)| (name.as_str(), scores.clone())).unzip();
    let networks = scores.len();
    let mut figure = Figure { tables: vec![ranks(&names, &scores), sameness(&scores)], ..Figure::default() };
    let everywhere = (0..PAIRS).filter(|pair| scores.iter().all(|s| s.of(*pair) >= 1.0 - GOOD)).count();
    figure.claim(
        "pairs of scheduler and controller within 3 % of the best in every network",
        Reference::none(),
        format!("{everywhere} of {PAIRS} over {networks} networks"),
    );
    let defaults = over_networks(&scores, 0);
    let behind = (1..PAIRS).filter(|pair| mean(&scores, *pair) > mean(&scores, 0)).count();
    figure.claim(
        format!("the defaults, {}: part of the best pair's goodput", name(0)),
        Reference::none(),
        format!("{}, rank {} of {PAIRS} by the mean", defaults.summary(), behind + 1),
    );
    figure.plots = plots(&scores);
    figure.notes.push(format!(
        "download of {} MB over two paths, medians of {SEEDS} seeds, acks by the fastest path, windows of 16 MB, no other traffic: \
         what a controller takes from others is in the figure `fairness`, for bbr in `shared-queues`",
        BYTES / 1_000_000
    ));
    figure.notes.push(
        "networks: the sixteen of the figure `profiles`, and thirteen points of the CoNEXT 2017 design".to_owned(),
    );
    figure
}

fn mean(all: &[Scores], pair: usize) -> f64 {
    over_networks(all, pair).mean().unwrap_or(0.0)
}

/// Every pair, the best first.
fn ranks(names: &[&str], scores: &[Scores]) -> Table {
    let mut table =
        Table::new(["scheduler", "controller", "mean", "within 3 % of the best", "least", "in the network"]);
    let mut ranked: Vec<usize> = (0..PAIRS).collect();
    ranked.sort_by(|a, b| mean(scores, *b).total_cmp(&mean(scores, *a)));
    for pair in ranked {
        let over = over_networks(scores, pair);
        let worst = names.iter().zip(scores).min_by(|a, b| a.1.of(pair).total_cmp(&b.1.of(pair)));
        let good = over.values().iter().filter(|part| **part >= 1.0 - GOOD).count();
        table.rows.push(vec![
            SCHEDULERS[pair / CONTROLLERS.len()].to_owned(),
            CONTROLLERS[pair % CONTROLLERS.len()].to_owned(),
            format!("{:.3}", mean(scores, pair)),
            format!("{good} of {}", scores.len()),
            format!("{:.3}", over.values().first().copied().unwrap_or(0.0)),
            worst.map_or("-", |(name, _)| name).to_owned(),
        ]);
    }
    table
}

/// With each controller the number of networks in which schedulers reach the same, all of them and each next to the default.
fn sameness(scores: &[Scores]) -> Table {
    let [default, others @ ..] = SCHEDULERS;
    let mut table = Table::new(["no difference of 1 % with", "all five", others[0], others[1], others[2], others[3]]);
    for (at, controller) in CONTROLLERS.iter().enumerate() {
        let of = |scores: &Scores, scheduler: usize| scores.of(scheduler * CONTROLLERS.len() + at);
        let is_same = |a: f64, b: f64| (a - b).abs() <= EQUAL * a.max(b);
        let all = |scores: &&Scores| {
            let (least, most) = (0..SCHEDULERS.len())
                .map(|s| of(scores, s))
                .fold((f64::MAX, 0.0_f64), |(least, most), part| (least.min(part), most.max(part)));
            is_same(least, most)
        };
        let mut row = vec![format!("{controller} ({default} and)"), scores.iter().filter(all).count().to_string()];
        for scheduler in 1..SCHEDULERS.len() {
            row.push(scores.iter().filter(|s| is_same(of(s, 0), of(s, scheduler))).count().to_string());
        }
        table.rows.push(row);
    }
    table
}

fn plots(scores: &[Scores]) -> Vec<Plot> {
    let mut by_scheduler = Plot::new("Schedulers, with the controller auto", "", "part of the best pair's goodput");
    for (at, scheduler) in SCHEDULERS.iter().enumerate() {
        by_scheduler.boxed(*scheduler, over_networks(scores, at * CONTROLLERS.len()).values().to_vec());
    }
    let mut by_controller = Plot::new("Controllers, with the scheduler minrtt", "", "part of the best pair's goodput");
    for (at, controller) in CONTROLLERS.iter().enumerate() {
        by_controller.boxed(*controller, over_networks(scores, at).values().to_vec());
    }
    vec![by_scheduler.y_range(0.0, 1.05), by_controller.y_range(0.0, 1.05)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_ranked_by_the_part_of_the_best() {
        assert_eq!(networks().len(), 29);
        // The defaults reach all in one network and half in the other; a pair that reaches 0.9 twice is before them.
        let mut first = vec![0.5; PAIRS];
        let mut second = vec![0.25; PAIRS];
        (first[0], second[0]) = (1.0, 0.5);
        (first[9], second[9]) = (0.9, 0.9);
        second[3] = 1.0;
        let figure = figure(&[("one".to_owned(), Scores(first)), ("two".to_owned(), Scores(second))]);
        let [ranks, sameness] = &figure.tables[..] else { panic!("two tables") };
        assert_eq!(ranks.rows[0], ["round-robin", "newreno", "0.900", "0 of 2", "0.900", "one"]);
        assert_eq!(ranks.rows[1], ["minrtt", "auto", "0.750", "1 of 2", "0.500", "two"]);
        assert_eq!(ranks.rows.len(), PAIRS);
        assert_eq!(figure.claims[0].ours, "0 of 35 over 2 networks");
        assert!(figure.claims[1].ours.ends_with("rank 2 of 35 by the mean"), "{}", figure.claims[1].ours);
        assert_eq!(sameness.rows[0][1..], ["0", "0", "0", "0", "0"], "auto: minrtt alone reaches more");
        assert_eq!(sameness.rows[2][1..], ["0", "0", "2", "2", "2"], "newreno: round-robin alone differs");
        assert_eq!(sameness.rows[6][1..], ["2", "2", "2", "2", "2"]);
    }
}
