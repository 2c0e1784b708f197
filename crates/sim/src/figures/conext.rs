//! CoNEXT 2017, sections 4.1 to 4.3: large and short downloads over WSP designs, and handover.

use crate::campaign::Row;
use crate::command::CommandError;
use crate::plot::{Plot, Scale, Style};
use crate::run::Watch;
use crate::stats::{Sorted, aggregation_benefit};

use super::claim::Reference;
use super::{Figure, FigureRequest, one, rows};

/// Bytes of the large download.
const LARGE_BYTES: u64 = 20_000_000;
/// Bytes of the short one.
const SHORT_BYTES: u64 = 256_000;
/// Runs of each combination where losses are drawn: chance alone moves a single run by half its time,
const SEEDS_WITH_LOSS: u64 = 5;
/// and a short one by several times its time.
const SHORT_SEEDS_WITH_LOSS: u64 = 151;

/// Settings of the paper's own runs over both paths where our defaults are others. Alone it had CUBIC, as we have.
const AS_PUBLISHED: [&str; 2] = ["endpoints.congestion=olia", "endpoints.ack_path=own"];

/// One point of a design: both paths alone, and both together from either initial path.
#[derive(Clone, Debug)]
pub(super) struct Point {
    /// Goodput of each path alone, Mbit/s.
    pub(super) single: [f64; 2],
    /// Goodput of both together, by initial path.
    pub(super) multipath: [f64; 2],
    /// The four rows in the same order; of several seeds, the one of median time.
    pub(super) rows: Vec<Row>,
}

impl Point {
    /// The path that is better alone.
    pub(super) fn best(&self) -> usize {
        usize::from(self.single[1] > self.single[0])
    }

    /// Benefit with this initial path.
    pub(super) fn benefit(&self, initial: usize) -> f64 {
        aggregation_benefit(self.multipath.get(initial).copied().unwrap_or(0.0), &self.single)
    }

    /// The benefit if each path carried, from the moment on at which it does so alone, what it carries alone at its full
    /// rate: as if both were the initial path. Start-up is not shared, so that it is below 1. No bound: a run may start the
    /// second path sooner. Only without losses.
    fn reckoned(&self) -> Option<f64> {
        let (mut bytes, mut early, mut rates) = (0.0, 0.0, 0.0);
        for (k, row) in self.rows.iter().take(2).enumerate() {
            bytes = row.number("bytes")?;
            let (seconds, wire) = (row.seconds()?, row.number(&format!("path{k}_down_bytes"))?);
            let rate = row.number(&format!("path.{k}.rate_mbps"))? * 1e6 / 8.0 * (bytes / wire);
            early += rate * (seconds - bytes / rate).max(0.0);
            rates += rate;
        }
        let seconds = (bytes + early) / rates;
        Some(aggregation_benefit(bytes * 8e-6 / seconds, &self.single))
    }
}

/// A campaign over a class of the CoNEXT design.
pub(super) fn scenario_text(class: &str, bytes: u64, points: Option<usize>, extensions: &[&str]) -> String {
    let points = points.map_or(String::new(), |points| format!(", points = {points}"));
    format!(
        "name = \"conext-{class}\"\n[[path]]\nrate_mbps = 1\n[[path]]\nrate_mbps = 1\n\
         [transfer]\nkind = \"download\"\nbytes = {bytes}\n[endpoints]\n\
         [sweep]\nwsp = {{ design = \"conext-{class}\"{points} }}\n\
         endpoints.extension = {extensions:?}\nendpoints.initial_path = [0, 1]\n"
    )
}

/// Runs a class; of each combination of a point, extension by extension and of these from either path, the run that counts.
fn median_runs(
    request: &FigureRequest<'_>,
    class: &str,
    bytes: u64,
    extensions: &[&str],
) -> Result<Vec<Row>, CommandError> {
    let text = scenario_text(class, bytes, request.points, extensions);
    let seeds = match has_losses(class) {
        false => 1,
        true if bytes <= SHORT_BYTES => SHORT_SEEDS_WITH_LOSS,
        true => SEEDS_WITH_LOSS,
    };
    let rows = rows(request, &folder(class, bytes, request.points), &text, seeds)?;
    Ok(rows.chunks(seeds as usize).filter_map(median_run).collect())
}

/// Mbit/s of a run; none at all where there is no such run.
fn goodput(row: Option<&Row>) -> f64 {
    row.and_then(|row| row.number("goodput_mbps")).unwrap_or(0.0)
}

/// Runs a class and puts the four runs of each point together.
pub(super) fn points(request: &FigureRequest<'_>, class: &str, bytes: u64) -> Result<Vec<Point>, CommandError> {
    let rows = median_runs(request, class, bytes, &["none", "multipath"])?;
    let point = |four: &[Row]| Point {
        single: [goodput(four.first()), goodput(four.get(1))],
        multipath: [goodput(four.get(2)), goodput(four.get(3))],
        rows: four.to_vec(),
    };
    Ok(rows.chunks(4).map(point).collect())
}

/// Where the rows of a class are kept: figures that ask for the same runs share them.
fn folder(class: &str, bytes: u64, points: Option<usize>) -> String {
    let points = points.map_or(String::new(), |points| format!("-{points}-points"));
    format!("conext-{class}-{bytes}{points}")
}

fn has_losses(class: &str) -> bool {
    !class.ends_with("no-loss")
}

/// Of the runs of one combination the one of median time; those that did not complete took forever.
fn median_run(runs: &[Row]) -> Option<Row> {
    let mut runs: Vec<&Row> = runs.iter().collect();
    let seconds = |row: &Row| row.seconds().unwrap_or(f64::INFINITY);
    runs.sort_by(|a, b| seconds(a).total_cmp(&seconds(b)));
    runs.get(runs.len() / 2).copied().cloned()
}

/// What the paper says, and what was asked, of the share of runs with a benefit in a class.
fn of_share(class: &str) -> Reference {
    match class {
        "low-bdp-no-loss" => Reference::published(
            "\"higher experimental bandwidth aggregation in 77%\" (of what, it does not say), either path first; MPTCP 45 %",
        ),
        "low-bdp-loss" => Reference::published("\"reduces download time compared to single-path over the best path\""),
        "high-bdp-no-loss" => Reference {
            asked_for: "90 %, of which runs was not said".into(),
            ..Reference::published("\"beneficial in 58% of the scenarios\", either path first; MPTCP 20 %")
        },
        _ => Reference::none(),
    }
}

/// Medians that others reach in a class in an emulator, best and worst path first, and what we asked of ours.
fn reached(class: &str) -> [Reference; 2] {
    let (best, worst, asked_for) = match class {
        "low-bdp-no-loss" => {
            ("noq 0.91, kernel MPTCP 0.80", "noq 0.65, kernel MPTCP 0.80", "median 0.95, not below 0 in 99 %")
        }
        "low-bdp-loss" => ("noq 1.15, kernel MPTCP 0.75", "noq 0.74, kernel MPTCP 0.20", "median 0.9"),
        "high-bdp-no-loss" => ("noq -0.06, kernel MPTCP 0.20", "noq -0.34, kernel MPTCP 0.12", ""),
        _ => ("kernel MPTCP 0.46", "kernel MPTCP 0.08", "median 0.8"),
    };
    [best, worst].map(|elsewhere| Reference { asked_for: asked_for.into(), ..Reference::elsewhere(elsewhere) })
}

/// What the paper says of MPQUIC next to MPTCP in a class: that half of its figure is not run here.
fn beside_tcp(class: &str, bytes: u64) -> Option<&'static str> {
    match class {
        _ if bytes == SHORT_BYTES => Some("\"MPQUIC outperforms MPTCP in most situations\""),
        "low-bdp-no-loss" => Some("MPQUIC faster in 89 %"),
        "low-bdp-loss" => Some("(MP)QUIC \"nearly always performs better\""),
        "high-bdp-loss" => Some("(MP)QUIC outperforms (MP)TCP"),
        _ => None,
    }
}

/// That each time and benefit is of a median run, where there are several.
fn of_seeds(class: &str) -> Option<String> {
    has_losses(class).then(|| format!("of {SEEDS_WITH_LOSS} seeds of each combination the run of median time counts"))
}

fn note_what_is_not_run(figure: &mut Figure, class: &str, bytes: u64) {
    if let Some(says) = beside_tcp(class, bytes) {
        figure.claim("next to TCP and MPTCP", Reference::published(says), "not run here");
    }
}

/// Aggregation benefit over a class.
pub(super) fn benefit(request: &FigureRequest<'_>, class: &str) -> Result<Figure, CommandError> {
    let ours = points(request, class, LARGE_BYTES)?;
    let mut figure = benefit_figure(&ours, class, "20 MB");
    let sets = AS_PUBLISHED.iter().map(|set| (*set).to_owned());
    let request = FigureRequest {
        sets: sets.chain(request.sets.iter().cloned()).collect(),
        out: request.out.as_ref().map(|out| out.join("as-the-paper-set-it")),
        commit: request.commit.clone(),
        policies: request.policies.clone(),
        ran: request.ran.clone(),
        ..*request
    };
    let theirs = median_runs(&request, class, LARGE_BYTES, &["multipath"])?;
    let theirs: Vec<_> = ours.iter().zip(theirs.chunks(2)).collect();
    for (name, turn) in [("best", 0), ("worst", 1)] {
        // The single runs are the same: one path with CUBIC, whatever the route of acks.
        let benefit =
            |(point, two): &(&Point, &[Row])| aggregation_benefit(goodput(two.get(point.best() ^ turn)), &point.single);
        let benefits: Vec<f64> = theirs.iter().map(benefit).collect();
        let what = format!("{name} path first, as the paper set it");
        for plot in figure.plots.iter_mut().take(1) {
            plot.boxed(&what, benefits.clone());
        }
        for plot in figure.plots.iter_mut().skip(1) {
            plot.cdf(&what, benefits.clone());
        }
        let benefits = Sorted::new(benefits);
        let how = "(OLIA and acks on their own path over two, CUBIC over one)";
        figure.claim(format!("benefit, {what} {how}"), Reference::none(), benefits.summary());
    }
    // Of the others Figs. 3 and 5 tell it.
    if class == "high-bdp-loss" {
        note_what_is_not_run(&mut figure, class, LARGE_BYTES);
    }
    figure.notes.extend(of_seeds(class));
    figure
        .notes
        .push("as the paper set it differs in two things from what is above, controller and route of acks".into());
    Ok(figure)
}

fn benefit_figure(points: &[Point], class: &str, size: &str) -> Figure {
    let mut figure = Figure::default();
    let best: Vec<f64> = points.iter().map(|point| point.benefit(point.best())).collect();
    let worst: Vec<f64> = points.iter().map(|point| point.benefit(1 - point.best())).collect();
    let mut plot = Plot::new(format!("{class}, {size}"), "", "experimental aggregation benefit").y_range(-1.0, 1.2);
    plot.boxed("best path first", best.clone());
    plot.boxed("worst path first", worst.clone());
    let mut cdf = Plot::new(format!("{class}, {size}"), "experimental aggregation benefit", "share of scenarios");
    cdf.cdf("best path first", best.clone());
    cdf.cdf("worst path first", worst.clone());
    figure.plots = vec![plot, cdf.y_range(0.0, 1.0)];
    let (best, worst) = (Sorted::new(best), Sorted::new(worst));
    let [of_best, of_worst] = reached(class);
    figure.claim("benefit, best path first", of_best, best.summary());
    figure.claim("benefit, worst path first", of_worst, worst.summary());
    if !has_losses(class) {
        let reckoned = Sorted::new(points.iter().filter_map(Point::reckoned));
        let what = "reckoned, no bound: each path as if alone, from the start that it has as initial path";
        figure.claim(what, Reference::none(), reckoned.summary());
        let above = 100.0 * reckoned.share(|x| x > 0.0);
        figure.claim("share of points whose reckoned benefit is > 0", Reference::none(), format!("{above:.1} %"));
    }
    let all = Sorted::new(best.values().iter().chain(worst.values()).copied());
    let above = [&best, &worst, &all].map(|of| 100.0 * of.share(|x| x > 0.0));
    let above = format!("best path first {:.1} %, worst {:.1} %, both {:.1} %", above[0], above[1], above[2]);
    figure.claim("share of runs with benefit > 0", of_share(class), above);
    figure.claim(
        "share of runs with benefit >= -0.01",
        Reference::none(),
        format!("{:.1} %", 100.0 * all.share(|x| x >= -0.01)),
    );
    figure.claim(
        "runs with benefit > 1",
        Reference::none(),
        format!("{} of {}", all.values().iter().filter(|x| **x > 1.0).count(), all.len()),
    );
    figure.claim("runs with benefit <= 0", Reference::none(), without_benefit(points));
    let bad =
        points.iter().enumerate().flat_map(|(i, point)| [0, 1].map(|initial| (point.benefit(initial), i, initial)));
    let mut bad: Vec<_> = bad.filter(|(benefit, _, _)| *benefit < 0.0).collect();
    bad.sort_by(|a, b| a.0.total_cmp(&b.0));
    for (benefit, index, initial) in bad.iter().take(5) {
        figure.notes.push(format!(
            "point {index}, initial path {initial}: benefit {benefit:.3}; {}",
            describe(&points[*index])
        ));
    }
    figure.notes.extend(unfinished(points));
    figure
}

/// How many runs have no benefit, and how many of them begin on a slow path.
fn without_benefit(points: &[Point]) -> String {
    const SLOW_RTT_MS: f64 = 200.0;
    let runs = points.iter().flat_map(|point| [0, 1].map(|initial| (point, initial)));
    let (mut all, mut none, mut slow) = (0, 0, 0);
    for (point, initial) in runs {
        all += 1;
        if point.benefit(initial) <= 0.0 {
            none += 1;
            let rtt_ms = point.rows.first().and_then(|row| row.number(&format!("path.{initial}.rtt_ms")));
            slow += usize::from(initial != point.best() && rtt_ms.is_some_and(|rtt| rtt >= SLOW_RTT_MS));
        }
    }
    let slow = if slow > 0 {
        format!("; {slow} of them start on the worse path, with an RTT of 200 ms or more")
    } else {
        String::new()
    };
    format!("{none} of {all}{slow}")
}

/// The inputs of a point on one line.
pub(super) fn describe(point: &Point) -> String {
    let Some(row) = point.rows.first() else { return String::new() };
    let inputs =
        row.cells.iter().filter(|(name, _)| name.starts_with("path.")).map(|(name, value)| format!("{name}={value}"));
    let times = point.rows.iter().map(|row| row.cell("seconds").unwrap_or("-").to_owned());
    format!("{}; seconds {}", inputs.collect::<Vec<_>>().join(" "), times.collect::<Vec<_>>().join(" "))
}

fn unfinished(points: &[Point]) -> Option<String> {
    let rows = points.iter().flat_map(|point| &point.rows);
    let (mut all, mut complete) = (0, 0);
    rows.for_each(|row| {
        all += 1;
        complete += usize::from(row.is_complete());
    });
    (complete < all).then(|| {
        format!("{} of {all} runs did not complete: their goodput counts as 0, their time has no end", all - complete)
    })
}

/// Completion times over a class.
pub(super) fn times(request: &FigureRequest<'_>, class: &str) -> Result<Figure, CommandError> {
    let points = points(request, class, LARGE_BYTES)?;
    let mut figure = times_figure(&points, class, "20 MB");
    note_what_is_not_run(&mut figure, class, LARGE_BYTES);
    figure.notes.extend(of_seeds(class));
    Ok(figure)
}

fn times_figure(points: &[Point], class: &str, size: &str) -> Figure {
    let mut figure = Figure::default();
    let seconds = |places: [usize; 2]| -> Vec<f64> {
        points
            .iter()
            .flat_map(|p| places.map(|i| p.rows.get(i).and_then(Row::seconds).unwrap_or(f64::INFINITY)))
            .collect()
    };
    let (single, multi) = (seconds([0, 1]), seconds([2, 3]));
    let mut plot = Plot::new(format!("{class}, {size}"), "completion time, s", "share of runs")
        .x_scale(Scale::Log)
        .y_range(0.0, 1.0);
    plot.cdf("QUIC", single.clone());
    plot.cdf("MPQUIC", multi.clone());
    let ratios: Vec<f64> = single.iter().zip(&multi).map(|(one, two)| one / two).collect();
    let mut ratio = Plot::new("QUIC over its initial path / MPQUIC from it", "time ratio", "share of runs")
        .x_scale(Scale::Log)
        .y_range(0.0, 1.0);
    ratio.cdf("ratio", ratios.clone());
    figure.plots = vec![plot, ratio];
    figure.claim("QUIC, seconds", Reference::none(), Sorted::new(single).summary());
    figure.claim("MPQUIC, seconds", Reference::none(), Sorted::new(multi).summary());
    let ratios = Sorted::new(ratios);
    figure.claim("time ratio, same initial path", Reference::none(), ratios.summary());
    figure.claim(
        "share of runs in which MPQUIC is faster",
        Reference::none(),
        format!("{:.1} %", 100.0 * ratios.share(|x| x > 1.0)),
    );
    figure.notes.extend(unfinished(points));
    figure
}

/// Completion times of 256 KB.
pub(super) fn short_times(request: &FigureRequest<'_>) -> Result<Figure, CommandError> {
    let points = points(request, "low-bdp-no-loss", SHORT_BYTES)?;
    let mut figure = times_figure(&points, "low-bdp-no-loss", "256 KB");
    figure.claim(
        "median of 256 KB",
        Reference::elsewhere("TCP 0.30 s, MPTCP 0.29, noq one path 0.28, two 0.23"),
        "see above",
    );
    note_what_is_not_run(&mut figure, "low-bdp-no-loss", SHORT_BYTES);
    Ok(figure)
}

/// Benefit for 256 KB.
pub(super) fn short_benefit(request: &FigureRequest<'_>) -> Result<Figure, CommandError> {
    let points = points(request, "low-bdp-no-loss", SHORT_BYTES)?;
    let mut figure = benefit_figure(&points, "low-bdp-no-loss", "256 KB");
    // What was published is of large files but for the first two, the benefits of both orders.
    let published = ["\"not really desirable for short transfers\"", "the same"].map(Reference::published);
    let references = published.into_iter().chain(std::iter::repeat(Reference::none()));
    for (claim, reference) in figure.claims.iter_mut().zip(references) {
        claim.reference = reference;
    }
    Ok(figure)
}

/// Handover as in Fig. 11 and its variations.
pub(super) fn handover(request: &FigureRequest<'_>) -> Result<Figure, CommandError> {
    let with = |event: String| {
        format!(
            "name = \"handover\"\n[[path]]\nrate_mbps = 10\nrtt_ms = 15\n[[path]]\nrate_mbps = 10\nrtt_ms = 25\n{event}\
             [transfer]\nkind = \"request-response\"\nrequest_bytes = 750\nresponse_bytes = 750\ninterval_ms = 400\n\
             count = 40\n[endpoints]\n"
        )
    };
    let loss = |path: usize, at: f64, loss: f64| format!("[[event]]\nat_s = {at}\npath = {path}\nloss = {loss}\n");
    let dies = || loss(0, 3.0, 1.0);
    let cases = [
        ("path 0 dies at 3 s", with(dies())),
        ("path 0 dies at 3 s, no reinjection", with(dies()) + "reinjection = \"none\"\n"),
        ("path 1 dies too at 8 s, path 0 is back at 6 s", with(dies() + &loss(0, 6.0, 0.0) + &loss(1, 8.0, 1.0))),
        ("path 0 loses 5 % from 3 s", with(loss(0, 3.0, 0.05))),
        ("path 0 loses 25 % from 3 s", with(loss(0, 3.0, 0.25))),
        ("path 0 loses 50 % from 3 s", with(loss(0, 3.0, 0.5))),
    ];
    let seeds = request.points.unwrap_or(20) as u64;
    let mut figure = Figure::default();
    let mut plot = Plot::new("Delay of each answer", "sent at, s", "delay, ms");
    for (name, text) in cases {
        let outcome = one(request, "handover", &text, Watch::default())?;
        let answered = outcome.exchanges.iter().filter_map(|e| {
            Some((e.asked.since_origin().as_secs_f64(), e.answered?.since(e.asked).as_secs_f64() * 1e3))
        });
        plot.curve(name, answered.collect(), Style::Dots);
        let rows = rows(request, &format!("handover-{}", name.replace([' ', ',', '%'], "-")), &text, seeds)?;
        let figure_of = |column: &str| Sorted::new(rows.iter().filter_map(|row| row.number(column)));
        let worst = |column: &str| figure_of(column).values().last().copied().unwrap_or(f64::NAN);
        figure.claim(
            name,
            Reference {
                asked_for: "worst at most 100 ms, p95 at most 60 ms".into(),
                ..Reference::elsewhere("MPTCP worst 433 to 481 ms, then 27; noq 1.7 s, or no answer")
            },
            format!(
                "{} seeds: unanswered {}, worst delay median {:.1} ms and at most {:.1} ms, p95 at most {:.1} ms",
                rows.len(),
                worst("unanswered"),
                figure_of("delay_max_ms").median().unwrap_or(f64::NAN),
                worst("delay_max_ms"),
                worst("delay_p95_ms"),
            ),
        );
    }
    figure.plots = vec![plot];
    figure.notes.push("reinjection `tail`, the default, copies a request to the other path before any time-out".into());
    Ok(figure)
}
