//! The gate `migration`: a change of address costs little more than one more slow start.

use plait_base::Random;

use crate::command::CommandError;
use crate::plot::Plot;
use crate::run::Watch;
use crate::run::outcome::End;
use crate::stats::Sorted;

use super::claim::Reference;
use super::{Figure, FigureRequest, one};

/// A change of address costs at most so many times what a fresh connection costs beyond its bytes at full rate.
const COST_MAX: f64 = 1.2;
/// Networks, each with every way to move.
const POINTS: usize = 24;
/// Seconds that the bytes of one transfer take at the full rate.
const TRANSFER_S: f64 = 6.0;
/// When the address changes, as parts of the transfer. Slow start leaves a queue by one loss more or less, after a change as at the
/// beginning, and some milliseconds earlier or later decide: one change says little.
const MOVES_AT: [f64; 5] = [0.3, 0.4, 0.5, 0.6, 0.7];

/// How the client's address changes, and who notices.
const WAYS: [(&str, &str, Notice); 3] = [
    ("the NAT gives another port", "rebind = \"port\"", Notice::Late),
    ("the NAT gives another address", "rebind = \"address\"", Notice::Late),
    ("the client moves to another interface", "interface = \"down\"", Notice::AtOnce),
];

/// When a client knows of the change.
#[derive(Clone, Copy, PartialEq)]
enum Notice {
    AtOnce,
    /// A NAT tells nobody. What is on its way is lost, and a client that only receives asks after a probe time-out.
    Late,
}

/// Round trips of a probe time-out where their variation is not known better (RFC 9002 5.3), and the delay of acks in it.
const TIMEOUT_RTTS: f64 = 3.0;
const ACK_DELAY_S: f64 = 0.025;

/// A network with one link to each of two interfaces, drawn from its number.
#[derive(Clone, Copy, Debug)]
struct Net {
    mbps: f64,
    rtt_ms: f64,
    queue_ms: f64,
    seed: u64,
}

impl Net {
    /// The first is the one that the gate was made for; the others are drawn.
    fn draw(number: usize) -> Self {
        let mut random = Random::from_u64(number as u64);
        let mut between = |low: f64, high: f64| low * (high / low).powf(random.unit());
        let (mbps, rtt_ms) = if number == 0 { (50.0, 100.0) } else { (between(8.0, 80.0), between(20.0, 200.0)) };
        let queue_ms = rtt_ms * if number == 0 { 1.0 } else { between(0.5, 2.0) };
        Self { mbps, rtt_ms, queue_ms, seed: number as u64 + 1 }
    }

    fn bytes(&self) -> u64 {
        (self.mbps * 1e6 / 8.0 * TRANSFER_S) as u64
    }

    /// A change is of an address, at a part of the transfer.
    fn scenario(&self, bytes: u64, change: Option<(&str, f64)>) -> String {
        let Self { mbps, rtt_ms, queue_ms, seed, .. } = self;
        let path = |nat: &str| {
            format!("[[path]]\nrate_mbps = {mbps:.3}\ndelay_ms = {:.3}\nqueue_ms = {queue_ms:.3}\n{nat}", rtt_ms / 2.0)
        };
        let (first, second) = (path("nat = { timeout_s = 300 }\n"), path(""));
        let event = change.map_or(String::new(), |(change, part)| {
            format!("[[event]]\nat_s = {:.3}\npath = 0\n{change}\n", part * TRANSFER_S)
        });
        format!(
            "name = \"migration\"\nseed = {seed}\ntime_limit_s = 120\n{first}{second}{event}\
             [transfer]\nkind = \"download\"\nbytes = {bytes}\n\
             [endpoints]\nextension = \"none\"\ncongestion = \"cubic\"\nprotection = \"null\"\n"
        )
    }

    fn text(&self) -> String {
        let Self { mbps, rtt_ms, queue_ms, .. } = self;
        format!("{mbps:.0} Mbit/s, {rtt_ms:.0} ms, queue {queue_ms:.0} ms, seed {}", self.seed)
    }
}

/// What changes of address cost, one for each of [`MOVES_AT`].
struct Cost {
    /// Seconds more than without it and than what is allowed for, over what a fresh start costs, in the median; infinite when a
    /// transfer did not end.
    ratio: f64,
    /// The largest one.
    most: f64,
    /// The median with nothing allowed for.
    raw: f64,
    way: usize,
    net: Net,
}

fn seconds(request: &FigureRequest<'_>, text: &str) -> Result<f64, CommandError> {
    let outcome = one(request, "migration", text, Watch::default())?;
    Ok(if outcome.end == End::Complete { outcome.elapsed.as_secs_f64() } else { f64::INFINITY })
}

fn costs(request: &FigureRequest<'_>, net: Net) -> Result<Vec<Cost>, CommandError> {
    let bytes = net.bytes();
    let still = seconds(request, &net.scenario(bytes, None))?;
    let twice = seconds(request, &net.scenario(2 * bytes, None))?;
    // What the transfer took beyond its bytes at the rate of the second half.
    let fresh = 2.0 * still - twice;
    // One round trip with its queue is on its way.
    let unnoticed = ((1.0 + TIMEOUT_RTTS) * net.rtt_ms + net.queue_ms) / 1e3 + ACK_DELAY_S;
    let cost = |(way, (_, change, notice)): (usize, &(&str, &str, Notice))| {
        let allowed = if *notice == Notice::Late { unnoticed } else { 0.0 };
        let moved = |part| seconds(request, &net.scenario(bytes, Some((change, part))));
        let costs = Sorted::new(MOVES_AT.map(moved).into_iter().collect::<Result<Vec<_>, _>>()?);
        let over = |seconds: Option<f64>, allowed| (seconds.unwrap_or(f64::INFINITY) - still - allowed) / fresh;
        let most = over(costs.values().last().copied(), allowed);
        let median = |allowed| if most.is_finite() { over(costs.median(), allowed) } else { f64::INFINITY };
        Ok(Cost { ratio: median(allowed), most, raw: median(0.0), way, net })
    };
    WAYS.iter().enumerate().map(cost).collect()
}

/// The gate over networks and ways to move.
pub(super) fn migration(request: &FigureRequest<'_>) -> Result<Figure, CommandError> {
    let points = request.points.unwrap_or(POINTS);
    let mut figure = Figure::default();
    let mut all = Vec::new();
    for number in 0..points {
        (request.progress)("migration", number, points);
        all.extend(costs(request, Net::draw(number))?);
    }
    let mut plot = Plot::new("What a change of address costs", "fresh starts", "share of runs").y_range(0.0, 1.0);
    for (way, (title, ..)) in WAYS.iter().enumerate() {
        let costs = || all.iter().filter(|cost| cost.way == way);
        let ratios = || costs().map(|cost| cost.ratio);
        let (allowed, raw) = (Sorted::new(ratios()), Sorted::new(costs().map(|cost| cost.raw)));
        // What is raw in brackets where it differs.
        let cell = |of: &dyn Fn(&Sorted) -> Option<f64>| {
            let [allowed, raw] = [&allowed, &raw].map(|costs| format!("{:.2}", of(costs).unwrap_or(0.0)));
            if allowed == raw { allowed } else { format!("{allowed} ({raw})") }
        };
        plot.cdf((*title).to_owned(), ratios().map(|ratio| ratio.min(5.0)));
        figure.claim(
            *title,
            Reference::asked_for(format!("at most {COST_MAX} fresh starts")),
            format!(
                "{} networks: median {}, most {}; the most of a single change {:.2}",
                allowed.len(),
                cell(&Sorted::median),
                cell(&|costs| costs.values().last().copied()),
                costs().map(|cost| cost.most).fold(f64::NEG_INFINITY, f64::max)
            ),
        );
    }
    let mut above: Vec<&Cost> = all.iter().filter(|cost| cost.ratio.is_nan() || cost.ratio > COST_MAX).collect();
    above.sort_by(|a, b| b.ratio.total_cmp(&a.ratio));
    figure.failed = !above.is_empty();
    figure.claim(
        "all",
        Reference::asked_for("every one"),
        format!("{} of {}: {}", all.len() - above.len(), all.len(), if figure.failed { "NOT HELD" } else { "held" }),
    );
    let note = |cost: &&Cost| {
        format!("{:.2} fresh starts, at most {:.2}: {}, {}", cost.ratio, cost.most, WAYS[cost.way].0, cost.net.text())
    };
    figure.notes.extend(above.iter().take(12).map(note));
    figure.plots = vec![plot];
    Ok(figure)
}
