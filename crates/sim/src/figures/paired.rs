//! Several paths next to the best of them alone, run by run: the same network, transfer and seed.

use std::fmt;

use plait_engine::config::NETWORK_DELAY;

use crate::campaign::{Row, spread};
use crate::command::CommandError;
use crate::stats::Sorted;

use super::claim::Reference;
use super::{Figure, FigureRequest, rows};

/// What slower by over so much is worth counting, and what is too much.
pub(super) const SLOWER: f64 = 0.03;
pub(super) const FAR_SLOWER: f64 = 0.15;
/// So many of the pairs, each network counted alike, may be.
const FAR_SLOWER_SHARE_MAX: f64 = 0.02;

/// What is carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Load {
    /// So many bytes to the client.
    Download(u64),
    /// So many bytes to the server.
    Upload(u64),
    /// A hundred answers of so many bytes, one each 200 ms.
    Requests(u64),
}

impl Load {
    fn text(self) -> String {
        match self {
            Self::Download(bytes) => format!("kind = \"download\"\nbytes = {bytes}\n"),
            Self::Upload(bytes) => format!("kind = \"upload\"\nbytes = {bytes}\n"),
            Self::Requests(bytes) => format!(
                "kind = \"request-response\"\nrequest_bytes = 500\nresponse_bytes = {bytes}\ninterval_ms = 200\ncount = 100\n"
            ),
        }
    }

    /// When the first byte can be back where it was asked for, as a run over a path alone shows it: with the end of the
    /// handshake, and a round trip after it. Answers to requests have no start in common.
    fn start(self, alone: &Row, path: usize) -> Option<f64> {
        let milliseconds = match self {
            Self::Download(_) => alone.number("first_byte_ms")?,
            Self::Upload(_) => {
                let handshake = alone.number("handshake_ms")?;
                // A run that left its path has no figures of it; the handshake was such a round trip too.
                handshake + alone.number(&format!("path{path}_rtt_min_ms")).map_or(handshake, |rtt| rtt.min(handshake))
            }
            Self::Requests(_) => 0.0,
        };
        Some(milliseconds / 1e3)
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Download(bytes) | Self::Upload(bytes) | Self::Requests(bytes)) = *self;
        let size = if bytes < 1_000_000 { format!("{} kB", bytes / 1000) } else { format!("{} MB", bytes / 1_000_000) };
        match self {
            Self::Download(_) => write!(f, "{size} down"),
            Self::Upload(_) => write!(f, "{size} up"),
            Self::Requests(_) => write!(f, "answers of {size}"),
        }
    }
}

/// A network with a transfer, to be run over either path and over both.
#[derive(Clone, Debug)]
pub(super) struct Contest {
    /// What it is counted with.
    pub(super) group: String,
    /// Its own name, fit for a folder.
    pub(super) name: String,
    /// The tables of paths, links and events of a scenario.
    pub(super) network: String,
    /// Lines of its table of endpoints.
    pub(super) endpoints: String,
    pub(super) load: Load,
    /// Runs of each kind; one is enough where nothing is drawn.
    pub(super) seeds: u64,
}

impl Contest {
    fn scenario(&self) -> String {
        format!(
            "name = \"{}\"\n{}[transfer]\n{}[endpoints]\n{}first_path_only = false\n[sweep]\n\
             endpoints.extension = [\"none\", \"multipath\"]\nendpoints.initial_path = [0, 1]\n",
            self.name,
            self.network,
            self.load.text(),
            self.endpoints
        )
    }
}

/// A run over both paths and one of the same seed over the better one alone, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pair {
    pub(super) seed: u64,
    /// Over the better path alone; no number where that run did not complete.
    pub(super) alone: f64,
    /// Over both; infinite where that run did not complete.
    pub(super) together: f64,
    /// By how much a start over the initial path is later than over the better one, as single runs of this seed show it, but by no
    /// more than a client waits before it tries the next path.
    pub(super) later_start: f64,
}

impl Pair {
    /// By which part of its time the better path alone was faster, below 0 both; infinite where one has no time.
    pub(super) fn raw(&self) -> f64 {
        self.slower(self.together)
    }

    /// The same with a later start allowed for: that excuses, and is no gain.
    pub(super) fn allowed(&self) -> f64 {
        let raw = self.raw();
        if raw > 0.0 { self.slower(self.together - self.later_start).max(0.0) } else { raw }
    }

    fn slower(&self, seconds: f64) -> f64 {
        if self.alone.is_nan() { f64::INFINITY } else { seconds / self.alone - 1.0 }
    }
}

/// The pairs of a contest from one initial path.
#[derive(Clone, Debug)]
pub(super) struct Compared {
    pub(super) contest: Contest,
    pub(super) initial: usize,
    /// The path whose median time alone is the smaller.
    pub(super) best: usize,
    pub(super) pairs: Vec<Pair>,
}

impl Compared {
    pub(super) fn is_best_first(&self) -> bool {
        self.initial == self.best
    }

    /// Whether a run over the better path alone, or over both, did not complete: then there is nothing to judge by.
    pub(super) fn is_missing(&self) -> bool {
        self.pairs.is_empty() || self.pairs.iter().any(|pair| pair.alone.is_nan())
    }

    /// Medians of the better path alone and of both, seconds.
    pub(super) fn medians(&self) -> (f64, f64) {
        let median = |time: fn(&Pair) -> f64| upper_median(&Sorted::new(self.pairs.iter().map(time)));
        (median(|pair| pair.alone), median(|pair| pair.together))
    }
}

/// Runs every contest; of each, the comparison from path 0 and that from path 1.
pub(super) fn compare(
    request: &FigureRequest<'_>,
    name: &str,
    contests: &[Contest],
) -> Result<Vec<Compared>, CommandError> {
    // Contests side by side: single runs of one differ too much in length to share threads well.
    let quiet = FigureRequest {
        jobs: 1,
        progress: &|_, _, _| {},
        sets: request.sets.clone(),
        out: request.out.as_ref().map(|out| out.join(name)),
        commit: request.commit.clone(),
        ran: request.ran.clone(),
        policies: request.policies.clone(),
        ..*request
    };
    let work = |contest: &Contest| {
        Ok::<_, CommandError>(pair_up(contest, &rows(&quiet, &contest.name, &contest.scenario(), contest.seeds)?))
    };
    let done = std::sync::atomic::AtomicUsize::new(0);
    let news = |_, result: &Result<_, _>| {
        if result.is_ok() {
            let count = done.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
            (request.progress)(name, count, contests.len());
        }
    };
    let results: Result<Vec<_>, _> =
        spread(contests, request.jobs, request.stop, work, news).into_iter().flatten().collect();
    let results = results?;
    if results.len() < contests.len() {
        let (done, total, kept) = (results.len(), contests.len(), request.out.is_some());
        return Err(crate::campaign::CampaignError::Interrupted { done, total, kept }.into());
    }
    Ok(results.into_iter().flatten().collect())
}

/// From the rows of a contest, seeds within initial paths within single and multipath, to its pairs.
fn pair_up(contest: &Contest, rows: &[Row]) -> Vec<Compared> {
    let runs: Vec<&[Row]> = rows.chunks(contest.seeds as usize).collect();
    let [first, second, from_first, from_second] = runs[..] else { return Vec::new() };
    let median =
        |rows: &[Row]| upper_median(&Sorted::new(rows.iter().map(|row| seconds(row).unwrap_or(f64::INFINITY))));
    let best = usize::from(median(second) < median(first));
    let alone = if best == 0 { first } else { second };
    let start = |row: &Row, path: usize| contest.load.start(row, path);
    let rtt = |row: &Row, path: usize| row.number(&format!("path{path}_rtt_min_ms"));
    let compared = |initial: usize, single: &[Row], both: &[Row]| {
        let pair = |((alone, single), both): ((&Row, &Row), &Row)| Pair {
            seed: both.number("seed").unwrap_or_default() as u64,
            alone: seconds(alone).unwrap_or(f64::NAN),
            together: seconds(both).unwrap_or(f64::INFINITY),
            later_start: start(single, initial).zip(start(alone, best)).map_or(0.0, |(ours, its)| {
                (ours - its).clamp(0.0, longest_wait(rtt(single, initial), rtt(alone, best)))
            }),
        };
        let pairs = alone.iter().zip(single).zip(both).map(pair).collect();
        Compared { contest: contest.clone(), initial, best, pairs }
    };
    vec![compared(0, first, from_first), compared(1, second, from_second)]
}

/// What a run took: of requests the time that one answer in twenty exceeds, which people notice, else the completion time. None for
/// a run that did not complete.
pub(super) fn seconds(row: &Row) -> Option<f64> {
    let whole = row.seconds()?;
    let is_of_requests = row.cell("transfer.kind") == Some("request-response");
    if is_of_requests { row.number("delay_p95_ms").map(|ms| ms / 1e3) } else { Some(whole) }
}

/// By how much the initial path can delay a start at most, seconds, its least round trip and that of the next path in milliseconds.
/// Another handshake begins on the next path after [`NETWORK_DELAY`]. Where the one over the initial path is done before, request and
/// answer go that way too, and each is later by the difference of the two round trips, which is less than the delay then.
fn longest_wait(initial_rtt: Option<f64>, next_rtt: Option<f64>) -> f64 {
    let delay = NETWORK_DELAY.as_secs_f64();
    // A run that left its path has no figures of it.
    let is_late = initial_rtt.zip(next_rtt).is_some_and(|(initial, next)| (initial - next) / 1e3 > delay);
    if is_late { delay } else { 2.0 * delay }
}

/// Seeds from which the runs over one path alone show what chance does.
const SEEDS_FOR_CHANCE: usize = 10;

/// What chance alone does, in words: how the times over the better path alone and over both, that one first, lie about the median of
/// the first. None where no network has seeds enough.
fn chance(compared: &[Compared]) -> Option<String> {
    let has_seeds = |compared: &&Compared| compared.is_best_first() && compared.pairs.len() >= SEEDS_FOR_CHANCE;
    let sets: Vec<[Sorted; 2]> = compared
        .iter()
        .filter(has_seeds)
        .map(|compared| {
            let (median, _) = compared.medians();
            let about =
                |time: fn(&Pair) -> f64| Sorted::new(compared.pairs.iter().map(|pair| time(pair) / median - 1.0));
            [about(|pair| pair.alone), about(|pair| pair.together)]
        })
        .collect();
    let share = |kind: usize| {
        let shares: f64 = sets.iter().map(|set| set[kind].share(|slower| slower > FAR_SLOWER)).sum();
        format!("{:.1} %", 100.0 * shares / sets.len() as f64)
    };
    let is_worse = |[alone, both]: &&[Sorted; 2]| {
        let most = |set: &Sorted| set.values().last().map_or(f64::INFINITY, |slower| 1.0 + slower);
        most(both) > most(alone) * (1.0 + SLOWER)
    };
    let (worse, count) = (sets.iter().filter(is_worse).count(), sets.len());
    (count > 0).then(|| {
        format!(
            "what chance does, in the {count} settings with {SEEDS_FOR_CHANCE} seeds or more, the better path first: {} of the runs over that \
             path alone take over 15 % longer than its own median, {} of those over both; in {worse} the slowest run over both is over \
             +3 % next to the slowest alone",
            share(0),
            share(1)
        )
    })
}

/// How a set of comparisons came out, each of which counts the same, however many seeds it has.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    /// Of each comparison the pairs, as they are and with a later start allowed for.
    sets: Vec<[Sorted; 2]>,
}

/// What of a tally is asked for.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Raw,
    Allowed,
}

impl Tally {
    pub(super) fn of<'a>(compared: impl IntoIterator<Item = &'a Compared>) -> Self {
        let sorted = |of: &Compared, kind: fn(&Pair) -> f64| Sorted::new(of.pairs.iter().map(kind));
        let both = |of: &Compared| [sorted(of, Pair::raw), sorted(of, Pair::allowed)];
        Self { sets: compared.into_iter().map(both).collect() }
    }

    /// Pairs in all.
    pub(super) fn count(&self) -> usize {
        self.sets.iter().map(|[raw, _]| raw.len()).sum()
    }

    fn kind(&self, kind: Kind) -> impl Iterator<Item = &Sorted> {
        self.sets.iter().map(move |[raw, allowed]| if matches!(kind, Kind::Raw) { raw } else { allowed })
    }

    fn median_of(&self, kind: Kind) -> f64 {
        upper_median(&Sorted::new(self.kind(kind).map(upper_median)))
    }

    fn share_of(&self, kind: Kind, limit: f64) -> f64 {
        let shares: f64 = self.kind(kind).map(|set| set.share(|slower| slower > limit)).sum();
        shares / self.sets.len().max(1) as f64
    }

    /// Median of the medians, a later start allowed for.
    pub(super) fn median(&self) -> f64 {
        self.median_of(Kind::Allowed)
    }

    /// Share of pairs that are slower by over `limit`, a later start allowed for.
    pub(super) fn share_over(&self, limit: f64) -> f64 {
        self.share_of(Kind::Allowed, limit)
    }

    /// Cells of a table: median, shares over both limits and the worst; what is raw in brackets where it differs.
    pub(super) fn cells(&self) -> Vec<String> {
        let cell = |of: &dyn Fn(Kind) -> String| {
            let (allowed, raw) = (of(Kind::Allowed), of(Kind::Raw));
            if allowed == raw { allowed } else { format!("{allowed} ({raw})") }
        };
        let worst = |kind| self.kind(kind).filter_map(|set| set.values().last()).copied().fold(f64::MIN, f64::max);
        vec![
            cell(&|kind| percent(self.median_of(kind))),
            cell(&|kind| format!("{:.1} %", 100.0 * self.share_of(kind, SLOWER))),
            cell(&|kind| format!("{:.1} %", 100.0 * self.share_of(kind, FAR_SLOWER))),
            cell(&|kind| percent(worst(kind))),
        ]
    }
}

/// Holds each of these groups and all of it against the bars; what is not held fails the figure and is named.
pub(super) fn hold(compared: &[Compared], groups: &[(String, Tally)], figure: &mut Figure) {
    for (name, tally) in groups.iter().filter(|(_, tally)| tally.median() > SLOWER) {
        figure.failed = true;
        figure.notes.push(format!("NOT HELD: {name}, median {}", percent(tally.median())));
    }
    for missing in compared.iter().filter(|compared| compared.is_missing()) {
        figure.failed = true;
        let problem = "a run over the better path alone did not complete";
        figure.notes.push(format!("NOT HELD: {}: {problem}", missing.contest.name));
    }
    let all = Tally::of(compared);
    figure.failed |= all.share_over(FAR_SLOWER) > FAR_SLOWER_SHARE_MAX || compared.is_empty();
    let [median, slower, far, worst] = &all.cells()[..] else { return };
    figure.claim(
        "all pairs, a later start over the worse path allowed for (raw)",
        Reference::asked_for("no group's median over +3 %; over +15 % at most 2 %"),
        format!(
            "{} pairs of {} settings: median {median}, over +3 % {slower}, over +15 % {far}, worst {worst}: {}",
            all.count(),
            compared.len() / 2,
            if figure.failed { "NOT HELD" } else { "held" }
        ),
    );
    figure.notes.extend(chance(compared));
}

/// The median, of an even number the greater of both in the middle: halfway to infinity is no number.
pub(super) fn upper_median(set: &Sorted) -> f64 {
    set.values().get(set.len() / 2).copied().unwrap_or(f64::INFINITY)
}

/// A part with its sign; `+inf %` for what has no end.
pub(super) fn percent(part: f64) -> String {
    format!("{:+.1} %", 100.0 * part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contest(load: Load) -> Contest {
        let (group, name) = ("group".to_owned(), "contest".to_owned());
        Contest { group, name, network: String::new(), endpoints: String::new(), load, seeds: 2 }
    }

    /// A run that took so many seconds and began after so many milliseconds.
    fn row(seconds: f64, first_byte_ms: f64) -> Row {
        let cells = [("seconds", seconds), ("first_byte_ms", first_byte_ms), ("seed", 1.0)];
        let mut cells: Vec<_> = cells.map(|(name, value)| (name.to_owned(), value.to_string())).to_vec();
        cells.push(("end".into(), if seconds.is_finite() { "complete" } else { "unfinished" }.into()));
        Row { index: 0, cells }
    }

    #[test]
    fn pairs_are_held_against_the_better_path_of_the_same_seed() {
        // Path 1 alone is the better one; from path 0 a run begins 15 ms later.
        let (slow, fast) = ([row(0.9, 115.0), row(0.95, 115.0)], [row(0.2, 100.0), row(0.3, 100.0)]);
        let (from_slow, from_fast) =
            ([row(0.215, 115.0), row(0.325, 115.0)], [row(0.1, 100.0), row(f64::INFINITY, 100.0)]);
        let rows: Vec<Row> = [slow, fast, from_slow, from_fast].concat();
        let compared = pair_up(&contest(Load::Download(1000)), &rows);
        let [worse_first, best_first] = &compared[..] else { panic!("{compared:?}") };
        assert!(!worse_first.is_best_first() && best_first.is_best_first());
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(near(worse_first.pairs[0].raw(), 0.075) && near(worse_first.pairs[0].allowed(), 0.0));
        assert!(near(worse_first.pairs[1].allowed(), 0.1 / 3.0));
        assert_eq!((best_first.pairs[0].raw(), best_first.pairs[0].allowed()), (-0.5, -0.5));
        assert_eq!(best_first.pairs[1].raw(), f64::INFINITY, "what does not complete is no better than what does");
        assert_eq!(Tally::of(&compared).cells()[1], "50.0 % (75.0 %)");
    }

    #[test]
    fn a_path_that_does_not_answer_in_time_excuses_the_wait_for_the_next_one() {
        let with_rtt = |path: usize, mut row: Row, ms: f64| {
            row.cells.push((format!("path{path}_rtt_min_ms"), ms.to_string()));
            row
        };
        // The handshake over 50 ms, begun after 10, is done before the one over 61 ms, and after the one over 60.
        for (rtt_ms, later) in [(61.0, 0.01), (60.0, 0.02)] {
            let (slow, fast) = (with_rtt(0, row(9.0, 1200.0), rtt_ms), with_rtt(1, row(2.0, 100.0), 50.0));
            let rows = [slow, fast, row(2.8, 400.0), row(1.0, 100.0)];
            let compared = pair_up(&Contest { seeds: 1, ..contest(Load::Download(1000)) }, &rows);
            let pair = compared[0].pairs[0];
            assert_eq!(pair.later_start, later);
            assert!((pair.allowed() - (0.8 - later) / 2.0).abs() < 1e-9, "{pair:?}");
        }
    }

    #[test]
    fn what_chance_does_is_told_where_seeds_are_enough() {
        let compared = |seeds: u64| Compared {
            contest: contest(Load::Download(1000)),
            initial: 0,
            best: 0,
            pairs: (0..seeds)
                .map(|seed| Pair {
                    seed,
                    alone: if seed < 2 { 1.2 } else { 1.0 },
                    together: if seed < 1 { 1.25 } else { 0.9 },
                    later_start: 0.0,
                })
                .collect(),
        };
        assert_eq!(chance(&[compared(9)]), None);
        let text = chance(&[compared(9), compared(10)]).unwrap();
        assert!(text.contains("in the 1 settings") && text.contains("20.0 % of the runs over that"), "{text}");
        assert!(text.contains("10.0 % of those over both; in 1 the slowest"), "{text}");
    }

    #[test]
    fn without_a_reference_a_pair_counts_as_slower() {
        let rows: Vec<Row> =
            [f64::INFINITY, f64::INFINITY, 1.0, 1.0].iter().flat_map(|s| [row(*s, 1.0), row(*s, 1.0)]).collect();
        let compared = pair_up(&contest(Load::Download(1000)), &rows);
        assert!(compared.iter().flat_map(|c| &c.pairs).all(|pair| pair.raw() == f64::INFINITY));
    }
}
