//! The gate `never-worse`: several paths are never slower than the best of them alone.

use crate::campaign::Row;
use crate::command::CommandError;
use crate::plot::Plot;
use crate::stats::Sorted;

use super::conext::{self, Point, describe};
use super::{Figure, FigureRequest};

/// A run may be slower by so much.
const SLOWER_MAX: f64 = 0.03;
/// And in so many runs by more than that.
const SHARE_MAX: f64 = 0.01;
/// But never by more than this.
const SLOWER_EVER: f64 = 0.15;
/// Points of each class and size: with both initial paths 512 networks.
const POINTS: usize = 32;
/// Bytes of the transfers: short ones count too.
const SIZES: [u64; 2] = [256_000, 4_000_000];
const CLASSES: [&str; 4] = ["low-bdp-no-loss", "low-bdp-loss", "high-bdp-no-loss", "high-bdp-loss"];

/// One run judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// By how much it was slower than the best path alone, the allowance taken off; below 0 it was faster.
    pub slower: f64,
    /// Seconds allowed for the start over the given initial path.
    pub allowance: f64,
    /// Where to find it again.
    pub name: String,
}

/// All runs judged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GateResult {
    /// Each run with its judgement.
    pub runs: Vec<Judged>,
}

impl GateResult {
    /// Share of runs that are slower than they may be.
    pub fn share_slower(&self) -> f64 {
        self.runs.iter().filter(|run| run.slower > SLOWER_MAX).count() as f64 / self.runs.len().max(1) as f64
    }

    /// The largest slowdown of a run, as [`Self::runs`] have it.
    pub fn worst(&self) -> f64 {
        self.runs.iter().map(|run| run.slower).fold(f64::MIN, f64::max)
    }

    /// Whether the gate holds.
    pub fn holds(&self) -> bool {
        self.share_slower() <= SHARE_MAX && self.worst() <= SLOWER_EVER
    }
}

/// Judges the two multipath runs of a point. What is allowed: where the initial path is not the best one, a handshake
/// over it instead of over the best, one more round trip of it with a padded datagram, before which the server takes nothing
/// on other paths, and one of the best path to validate it.
pub(super) fn judge_point(point: &Point, name: &str) -> Vec<Judged> {
    let best = point.best();
    let alone = point.rows.get(best);
    let Some(best_seconds) = alone.and_then(Row::seconds) else { return Vec::new() };
    let handshake = |row: Option<&Row>| row.and_then(|row| row.number("handshake_ms")).unwrap_or(0.0) / 1e3;
    let judged = |initial: usize| {
        let row = point.rows.get(2 + initial);
        let rtt = |path: usize| row.and_then(|row| row.number(&format!("path.{path}.rtt_ms"))).unwrap_or(0.0) / 1e3;
        // RFC 9000 14.1: the end of the handshake is a datagram of 1200 bytes too, which takes its time on a thin path.
        let rate = row.and_then(|row| row.number(&format!("path.{initial}.rate_mbps"))).filter(|mbps| *mbps > 0.0);
        let padded = rate.map_or(0.0, |mbps| 1200.0 * 8.0 / (mbps * 1e6));
        let start = (handshake(row) - handshake(alone)).max(0.0) + rtt(initial) + padded + rtt(best);
        let allowance = if initial == best { 0.0 } else { start };
        let slower = match row.and_then(Row::seconds) {
            Some(seconds) => (seconds - allowance) / best_seconds - 1.0,
            None => f64::INFINITY,
        };
        Judged { slower, allowance, name: format!("{name}, initial path {initial}: {}", describe(point)) }
    };
    vec![judged(0), judged(1)]
}

/// Judges a whole set of points.
pub fn judge(runs: Vec<Judged>) -> GateResult {
    GateResult { runs }
}

/// The gate over four classes and two sizes.
pub(super) fn never_worse(request: &FigureRequest<'_>) -> Result<Figure, CommandError> {
    let request = FigureRequest {
        points: request.points.or(Some(POINTS)),
        sets: request.sets.clone(),
        out: request.out.clone(),
        pictures: request.pictures,
        commit: request.commit.clone(),
        policies: request.policies.clone(),
        ..*request
    };
    let mut figure = Figure::default();
    let mut plot = Plot::new("Slower than the best path alone", "share of its time", "share of runs").y_range(0.0, 1.0);
    let mut all = Vec::new();
    for class in CLASSES {
        for bytes in SIZES {
            let points = conext::points(&request, class, bytes)?;
            let runs: Vec<Judged> = points
                .iter()
                .enumerate()
                .flat_map(|(i, point)| judge_point(point, &format!("{class}, {bytes} bytes, point {i}")))
                .collect();
            plot.cdf(format!("{class} {} kB", bytes / 1000), runs.iter().map(|run| run.slower.min(2.0)));
            let allowed = Sorted::new(runs.iter().map(|run| run.allowance * 1e3).filter(|ms| *ms > 0.0));
            let part = judge(runs.clone());
            figure.claim(
                format!("{class}, {bytes} bytes"),
                "slower by over 3 % in at most 1 % of runs, never by over 15 %",
                format!(
                    "{} runs: {:.1} % slower by over 3 %, worst {:+.1} %, median {:+.1} %; allowance where the initial path \
                     is the worse: median {:.0} ms, most {:.0} ms",
                    part.runs.len(),
                    100.0 * part.share_slower(),
                    100.0 * part.worst(),
                    100.0 * Sorted::new(part.runs.iter().map(|run| run.slower)).median().unwrap_or(0.0),
                    allowed.median().unwrap_or(0.0),
                    allowed.values().last().copied().unwrap_or(0.0),
                ),
            );
            all.extend(runs);
        }
    }
    let mut result = judge(all);
    figure.claim(
        "all",
        "at most 1 % and 15 %",
        format!(
            "{} runs: {:.1} % slower by over 3 %, worst {:+.1} %: {}",
            result.runs.len(),
            100.0 * result.share_slower(),
            100.0 * result.worst(),
            if result.holds() { "held" } else { "NOT HELD" }
        ),
    );
    figure.failed = !result.holds();
    result.runs.sort_by(|a, b| b.slower.total_cmp(&a.slower));
    let worst = result.runs.iter().take_while(|run| run.slower > SLOWER_MAX).take(12);
    figure.notes.extend(worst.map(|run| format!("{:+.1} %: {}", 100.0 * run.slower, run.name)));
    figure.plots = vec![plot.x_range(-0.6, 0.2)];
    Ok(figure)
}
