//! Fairness at a shared bottleneck: what a connection with two paths takes, next to single-path flows beside it.

use crate::campaign::Row;
use crate::command::CommandError;
use crate::plot::Plot;
use crate::stats::Sorted;

use super::claim::Reference;
use super::{Figure, FigureRequest, rows};

/// Seeds of each setting.
const SEEDS: u64 = 120;
/// Single-path flows beside the connection.
const OTHERS: [usize; 2] = [1, 4];
/// A coupled connection takes no more than this part of what a flow beside it gets, in the median.
pub(super) const SHARE_MAX: f64 = 1.1;
/// What one takes from the start on whose controller leaves slow start to each path.
pub(super) const START_SHARE_MAX: f64 = 1.15;
/// A median of so many runs is held to what is asked; of fewer, the lower end of its 95 % interval is.
const RUNS_FOR_MEDIAN: usize = 10;
/// Of fewer there is no such interval: all of four lie on one side of their median once in eight times.
const RUNS_FOR_INTERVAL: usize = 5;
/// Controllers with the flows beside them, and what is asked of them.
const SETTINGS: [(&str, &str, Claim); 7] = [
    ("olia", "newreno", Claim::Fair),
    ("lia", "newreno", Claim::Fair),
    ("balia", "newreno", Claim::Fair),
    ("newreno", "newreno", Claim::Uncoupled),
    ("auto", "cubic", Claim::FairLater),
    ("coupled-cubic", "cubic", Claim::Told),
    ("cubic", "cubic", Claim::Uncoupled),
];
const QUEUES: [&str; 2] = ["red", "drop-tail"];
/// How long each run lasts.
const SECONDS: f64 = 40.0;

/// What a controller is held to.
#[derive(Clone, Copy, PartialEq)]
enum Claim {
    Fair,
    /// The same but for slow start, which is not coupled.
    FairLater,
    /// No gate: a coupled controller that is there to be compared with, and takes what it takes.
    Told,
    Uncoupled,
}

impl Claim {
    fn text(self) -> &'static str {
        match self {
            Self::Fair => "no more than a flow beside it, within 10 %",
            Self::FairLater => "no more than a flow beside it, within 15 % from the start on",
            Self::Told => "about what a flow beside it takes",
            Self::Uncoupled => "each path a flow of its own: twice as much",
        }
    }

    /// The largest share.
    fn share_max(self) -> f64 {
        match self {
            Self::Fair => SHARE_MAX,
            Self::FairLater => START_SHARE_MAX,
            Self::Told | Self::Uncoupled => f64::INFINITY,
        }
    }
}

/// One queue, and who shares it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bottleneck<'a> {
    /// How many paths of the connection.
    pub(super) paths: usize,
    /// Controller of the connection, and of the flows beside it.
    pub(super) controller: &'a str,
    pub(super) beside: &'a str,
    pub(super) aqm: &'a str,
    pub(super) queue_ms: u32,
    /// By how much packets come to the queue sooner or later, those of the flows as well, milliseconds.
    pub(super) jitter_ms: f64,
    /// How many flows are beside it.
    pub(super) others: usize,
    pub(super) mbps: f64,
    pub(super) seconds: f64,
}

impl Bottleneck<'_> {
    /// The scenario: the flows and a connection whose paths go through one queue.
    pub(super) fn scenario(&self) -> String {
        let Self { paths, controller, beside, aqm, queue_ms, jitter_ms, others, mbps, seconds } = *self;
        let paths: String = (0..paths).map(|number| path("bottleneck", number, jitter_ms)).collect();
        let cross: String = (0..others).map(|i| flow(beside, "bottleneck", i, jitter_ms)).collect();
        format!(
            "name = \"fairness\"\n[[link]]\nname = \"bottleneck\"\nrate_mbps = {mbps:.1}\ndelay_ms = 15\nqueue_ms = {queue_ms}\n\
             aqm = \"{aqm}\"\n{paths}{cross}[transfer]\nkind = \"bulk-for\"\nseconds = {seconds:.1}\n\
             [endpoints]\ncongestion = \"{controller}\"\nprotection = \"null\"\n"
        )
    }
}

/// How late packets come to a queue that is shared, by up to so much to either side, milliseconds.
pub(super) const JITTER_MS: f64 = 4.0;

/// The path of this number of a connection, through `link`. All packets come to the queue there with a jitter of a few of its
/// packets, as from real machines: without it a full drop-tail queue hits the same flow again and again, by the phase of its
/// packets (Floyd and Jacobson, Computer Communication Review 1991), and who comes without it among others is hit less. So the
/// jitter is on the servers' side of the queue, as that of the flows is.
pub(super) fn path(link: &str, number: usize, jitter_ms: f64) -> String {
    format!(
        "[[link]]\nname = \"far{number}\"\nrate_mbps = 1000\ndelay_ms = 5\njitter_ms = {jitter_ms:.1}\n\
         [[path]]\nvia = [\"{link}\", \"far{number}\"]\n"
    )
}

/// The `i`th flow beside a connection, over `link`: their RTTs lie around that of the connection, and all begin with it, since
/// who is later by a tenth of a second finds a queue there and has less for half a minute.
pub(super) fn flow(congestion: &str, link: &str, i: usize, jitter_ms: f64) -> String {
    let rtt = [10, 11, 9][i % 3];
    format!(
        "[[cross]]\nkind = \"flow\"\ncongestion = \"{congestion}\"\nlink = \"{link}\"\nrtt_ms = {rtt}\n\
         jitter_ms = {jitter_ms:.1}\n"
    )
}

/// Bytes of the connection, and the mean of the flows beside it.
fn bytes(row: &Row) -> Option<[f64; 2]> {
    let others: Vec<f64> = (0..).map_while(|i| row.number(&format!("cross{i}_bytes"))).collect();
    let mean = others.iter().sum::<f64>() / others.len() as f64;
    Some([row.number("bytes")?, mean])
}

/// Bytes of the connection over the mean of the flows beside it.
pub(super) fn share(row: &Row) -> Option<f64> {
    bytes(row).map(|[own, other]| own / other)
}

/// [`share`] of what came after a shorter run with the same seed.
pub(super) fn share_after(short: &Row, long: &Row) -> Option<f64> {
    let ([own, other], [own_before, other_before]) = (bytes(long)?, bytes(short)?);
    Some((own - own_before) / (other - other_before))
}

/// Mean of the bytes of the flows beside the connection.
pub(super) fn beside(row: &Row) -> Option<f64> {
    bytes(row).map(|[_, other]| other)
}

/// True where the median of shares is above `max`, as far as so many runs tell, or there are none.
pub(super) fn is_unfair(shares: &Sorted, max: f64) -> bool {
    let least = shares.median_interval().map(|(least, _)| least);
    match shares.len() {
        0 => true,
        runs if runs < RUNS_FOR_INTERVAL => false,
        runs => (if runs < RUNS_FOR_MEDIAN { least } else { shares.median() }).is_none_or(|share| share > max),
    }
}

/// How shares stand against `max`, in words.
pub(super) fn verdict(shares: &Sorted, max: f64) -> &'static str {
    match is_unfair(shares, max) {
        _ if max.is_infinite() => "not gated",
        true => "NOT HELD",
        false if shares.len() < RUNS_FOR_INTERVAL => "too few to judge",
        false => "held",
    }
}

/// The figure, and a gate on the coupled controllers.
pub(super) fn fairness(request: &FigureRequest<'_>) -> Result<Figure, CommandError> {
    let mut figure = Figure::default();
    let seeds = request.seeds(SEEDS);
    let mut all: [Vec<f64>; SETTINGS.len()] = Default::default();
    for others in OTHERS {
        let title = format!("Two paths through one queue: bytes next to each of {others} flows beside them");
        let mut plot = Plot::new(&title, "", "times");
        for aqm in QUEUES {
            for ((controller, beside, claim), all) in SETTINGS.into_iter().zip(&mut all) {
                let mbps = 10.0 * (others + 1) as f64;
                let place = Bottleneck {
                    controller,
                    beside,
                    aqm,
                    queue_ms: 60,
                    jitter_ms: JITTER_MS,
                    others,
                    mbps,
                    seconds: SECONDS,
                    paths: 2,
                };
                let name = format!("fairness-{others}-{aqm}-{controller}");
                let rows = rows(request, &name, &place.scenario(), seeds)?;
                let shares = Sorted::new(rows.iter().filter_map(share));
                figure.failed |= is_unfair(&shares, claim.share_max());
                all.extend(shares.values());
                plot.boxed(format!("{controller}, {aqm}"), shares.values().to_vec());
                figure.claim(
                    format!("{controller} beside {others} x {beside}, {aqm}"),
                    Reference::asked_for(claim.text()),
                    format!("{} runs: {}: {}", rows.len(), shares.summary(), verdict(&shares, claim.share_max())),
                );
            }
        }
        figure.plots.push(plot);
    }
    for ((controller, _, claim), shares) in SETTINGS.into_iter().zip(all) {
        let shares = Sorted::new(shares);
        figure.failed |= is_unfair(&shares, claim.share_max());
        let here = format!("{}: {}", shares.summary(), verdict(&shares, claim.share_max()));
        figure.claim(format!("{controller}, all of these queues"), Reference::asked_for(claim.text()), here);
    }
    figure.notes.push("10 Mbit/s for each flow, from the start, queue of 60 ms, RTT 40 ms, jitter 4 ms".to_owned());
    figure.notes.push(
        "`auto` is allowed 15 % where the others are allowed 10 %, since it does not couple slow start".to_owned(),
    );
    Ok(figure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_of_many_runs_is_held_to_the_limit() {
        let of = |shares: &[f64]| is_unfair(&Sorted::new(shares.iter().copied()), SHARE_MAX);
        let mixed = [0.9, 0.95, 1.0, 1.05, 1.11, 1.12, 1.13, 1.14, 1.15, 1.16];
        assert!(of(&mixed), "the median of ten runs is over the limit");
        assert!(!of(&mixed.map(|share| share - 0.1)));
        assert!(!of(&mixed[2..7]), "of five runs the interval reaches below it");
        assert!(!of(&[1.2, 1.3, 1.4]), "three say nothing");
        assert!(of(&[1.2, 1.3, 1.4, 1.5, 1.6]) && of(&[]));
    }
}
