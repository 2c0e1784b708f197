//! The gate `startup`: slow start sends little twice and costs no time, next to HyStart++ in the same run.

use plait_base::{Instant, PathId};
use plait_engine::congestion::Cubic;
use plait_engine::congestion::{CongestionController, ControllerFactory, SlowStart};

use crate::campaign::Row;
use crate::command::CommandError;
use crate::plot::Plot;
use crate::stats::Sorted;

use super::claim::Reference;
use super::{Figure, FigureRequest, rows};

/// Links: Mbit/s, RTT in ms, and queues in what the link holds.
const RATES: [f64; 4] = [10.0, 20.0, 50.0, 100.0];
const RTTS: [f64; 4] = [10.0, 20.0, 40.0, 80.0];
const QUEUES: [f64; 4] = [0.5, 1.0, 2.0, 3.0];
const ALL: usize = RATES.len() * RTTS.len() * QUEUES.len();
/// Points unless more are asked for.
const POINTS: usize = 16;
/// Prime to their number, so that the first points lie all over the grid.
const STRIDE: usize = 27;
/// A queue of fewer packets turns the first window's burst into loss.
const QUEUE_BYTES_MIN: f64 = 15_000.0;
/// At most this part of the packets is sent twice at any point,
const TWICE_MAX: f64 = 0.007;
/// and no point takes longer by more than this part of HyStart++'s time; the median takes no longer.
const SLOWER_MAX: f64 = 0.005;

/// CUBIC as it was, for comparison.
#[derive(Debug)]
struct Baseline(&'static str, SlowStart);

impl ControllerFactory for Baseline {
    fn name(&self) -> &'static str {
        self.0
    }

    fn build(&self, _path: PathId, _now: Instant, mss: u64) -> Box<dyn CongestionController> {
        Box::new(Cubic::new(mss, self.1))
    }
}

/// What the runs are called, the one that is judged first.
const WAYS: [&str; 4] = ["cubic", "cubic-hystart++", "cubic-linux-hystart", "cubic-until-loss"];

/// The part of its packets that a run sent twice.
fn twice(row: &Row) -> Option<f64> {
    Some(row.number("path0_packets_lost")? / row.number("path0_packets_sent")?)
}

fn scenario((rate, rtt, queue): (f64, f64, f64)) -> String {
    let queue_bytes = (rate * 1e6 / 8.0 * rtt / 1e3 * queue).max(QUEUE_BYTES_MIN) as u64;
    let ways = WAYS.map(|way| format!("\"{way}\"")).join(", ");
    format!(
        "name = \"startup\"\n[[path]]\nrate_mbps = {rate:.1}\nrtt_ms = {rtt:.1}\nqueue_bytes = {queue_bytes}\n\
         [transfer]\nkind = \"download\"\nbytes = 20_000_000\n[endpoints]\nprotection = \"null\"\n\
         [sweep]\nendpoints.congestion = [{ways}]\n"
    )
}

/// The gate over the grid, or its first points.
pub(super) fn startup(request: &FigureRequest<'_>) -> Result<Figure, CommandError> {
    let policies = request.policies.clone();
    let policies = policies.with_controller(Baseline(WAYS[1], SlowStart::HyStart));
    let policies = policies.with_controller(Baseline(WAYS[2], SlowStart::LinuxHyStart));
    let request = FigureRequest {
        sets: request.sets.clone(),
        out: request.out.clone(),
        commit: request.commit.clone(),
        ran: request.ran.clone(),
        policies: policies.with_controller(Baseline(WAYS[3], SlowStart::Standard)),
        ..*request
    };
    let mut shares: [Vec<f64>; 4] = Default::default();
    let mut ratios: [Vec<f64>; 3] = Default::default();
    let mut figure = Figure::default();
    for index in (0..request.points.unwrap_or(POINTS).min(ALL)).map(|i| i * STRIDE % ALL) {
        let point = (RATES[index % 4], RTTS[index / 4 % 4], QUEUES[index / 16]);
        let name = format!("startup-{}-{}-{}", point.0, point.1, point.2);
        let rows = rows(&request, &name, &scenario(point), 1)?;
        let seconds: Vec<f64> = rows.iter().map(|row| row.seconds().unwrap_or(f64::INFINITY)).collect();
        let [own, hystart, linux, standard] = seconds[..] else { continue };
        for (shares, row) in shares.iter_mut().zip(&rows) {
            shares.push(twice(row).unwrap_or(1.0));
        }
        for (ratios, other) in ratios.iter_mut().zip([hystart, linux, standard]) {
            ratios.push(own / other);
        }
        let share = rows.first().and_then(twice).unwrap_or(1.0);
        if share > TWICE_MAX || own > hystart * (1.0 + SLOWER_MAX) {
            figure.failed = true;
            let note = format!("{name}: {:.2} % sent twice, {own:.3} s; HyStart++ {hystart:.3} s", 100.0 * share);
            figure.notes.push(note);
        }
    }
    let [to_hystart, to_linux, to_standard] = ratios.map(Sorted::new);
    figure.failed |= to_hystart.median().is_none_or(|median| median > 1.0);
    let mut plot = Plot::new("Packets sent twice", "", "%");
    for (way, shares) in WAYS.into_iter().zip(shares) {
        let percent = Sorted::new(shares.iter().map(|share| 100.0 * share));
        let most = percent.values().last().copied().unwrap_or(f64::NAN);
        let goal = if way == WAYS[0] { "at most 0.7 % at every point" } else { "" };
        figure.claim(
            format!("{way}: packets sent twice, %"),
            Reference::asked_for(goal),
            format!("{}, most {most:.2}", percent.summary()),
        );
        plot.boxed(way, percent.values().to_vec());
    }
    let others = [("HyStart++", to_hystart), ("Linux's HyStart", to_linux), ("slow start until loss", to_standard)];
    for (against, ratios) in others {
        let most = ratios.values().last().copied().unwrap_or(f64::NAN);
        let goal = if against == "HyStart++" { "at most 1.005, median at most 1" } else { "" };
        figure.claim(
            format!("time over that with {against}"),
            Reference::asked_for(goal),
            format!("{}, most {most:.4}", ratios.summary()),
        );
    }
    figure.plots = vec![plot];
    Ok(figure)
}
