//! The ns-3 MPQUIC paper (WNS3 2023): its Table 1, as its code ran and as the paper prints it.

use crate::campaign::Row;
use crate::command::CommandError;
use crate::plot::{Plot, Style};
use crate::run::Watch;
use crate::stats::Sorted;

use super::claim::Reference;
use super::{Figure, FigureRequest, one, rows};

/// Rounds of each experiment.
const ROUNDS: u64 = 50;
const SCHEDULERS: &str = "[\"round-robin\", \"minrtt\", \"blest\", \"ecf\", \"peekaboo\"]";

/// Which rows of Table 1 the two paths take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    /// Settings 0 and 1.
    Stable,
    /// Settings 2 and 3.
    Unstable,
    /// Settings 0 and 1, swapped on the way.
    Swapped,
}

/// Where the settings of the paths come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Preset {
    /// The scripts that made the figures: delays in whole milliseconds, each byte of data lost alike.
    AsRun,
    /// Table 1: a share of packets lost that is drawn anew with rate and delay, both ways.
    AsPrinted,
}

const PRESETS: [(Preset, &str); 2] = [(Preset::AsRun, "as run"), (Preset::AsPrinted, "as printed")];

/// What the rate and the one-way delay of a path are drawn from, and what it loses.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Setting {
    rate_mbps: [f64; 2],
    delay_ms: [f64; 2],
    /// As printed the largest share of packets, as run the share of bytes.
    loss: f64,
}

const fn setting(rate_mbps: [f64; 2], delay_ms: [f64; 2], loss: f64) -> Setting {
    Setting { rate_mbps, delay_ms, loss }
}

const AS_PRINTED: [Setting; 4] = [
    setting([5.0, 5.5], [50.0, 55.0], 0.0008),
    setting([10.0, 11.0], [10.0, 11.0], 0.0008),
    setting([5.0, 5.5], [10.0, 11.0], 0.0001),
    setting([10.0, 11.0], [50.0, 55.0], 0.0001),
];

/// Figs. 9 to 13.
const AS_RUN: [Setting; 4] = [
    setting([5.0, 5.75], [50.0, 54.0], 8e-6),
    setting([10.0, 11.5], [10.0, 10.8], 8e-6),
    setting([5.0, 5.75], [10.0, 10.8], 1e-6),
    setting([10.0, 11.5], [50.0, 54.0], 1e-6),
];

/// Fig. 7 as run.
const SCALING_AS_RUN: Setting = setting([5.0, 6.0], [50.0, 55.0], 0.0);
/// Fig. 8 as run: nothing changes.
const WINDOWS_AS_RUN: Setting = setting([10.0, 10.0], [10.0, 10.0], 0.0);

/// When the paths swap, in seconds of the transfer: 5 s on the clock of the scripts, which starts the transfer at 1 s.
const SWAP_S: f64 = 4.0;

impl Preset {
    fn setting(self, row: usize) -> Setting {
        match self {
            Self::AsRun => AS_RUN[row % AS_RUN.len()],
            Self::AsPrinted => AS_PRINTED[row % AS_PRINTED.len()],
        }
    }

    /// What changes of a setting.
    fn vary(self, setting: Setting) -> String {
        let Setting { rate_mbps, delay_ms, loss } = setting;
        let rest = match self {
            Self::AsRun => "whole_ms = true".to_owned(),
            Self::AsPrinted => format!("loss = [0.0, {loss:.9}]"),
        };
        format!("vary = {{ interval_ms = 100, rate_mbps = {rate_mbps:?}, delay_ms = {delay_ms:?}, {rest} }}\n")
    }

    fn path(self, setting: Setting) -> String {
        // The code ran with the simulator's default traffic control above the device; the paper speaks of the queue alone.
        let queue = match self {
            Self::AsRun => "queue_packets = 10_340\naqm = { kind = \"fq-codel\", device_packets = 100 }",
            Self::AsPrinted => "queue_packets = 100",
        };
        let loss = match self {
            Self::AsRun => format!("down = {{ loss_model = {{ kind = \"per-byte\", p = {:.9} }} }}\n", setting.loss),
            Self::AsPrinted => String::new(),
        };
        format!("[[path]]\nrate_mbps = {:?}\n{queue}\n{loss}{}", setting.rate_mbps[1], self.vary(setting))
    }
}

fn paths(case: Case, preset: Preset) -> String {
    let path = |row| preset.path(preset.setting(row));
    match case {
        Case::Stable => path(0) + &path(1),
        Case::Unstable => path(2) + &path(3),
        Case::Swapped => {
            let event = |path: usize, row| {
                format!("[[event]]\nat_s = {SWAP_S:?}\npath = {path}\n{}", preset.vary(preset.setting(row)))
            };
            path(0) + &path(1) + &event(0, 1) + &event(1, 0)
        }
    }
}

/// What the endpoints of the scripts do: OLIA, and acks that leave by the path of what they acknowledge.
const TRANSFER: &str =
    "[transfer]\nkind = \"download\"\nbytes = 5_242_800\n[endpoints]\ncongestion = \"olia\"\nack_path = \"own\"\n";
/// What every figure of the paper fixes.
const FIXED: &str = "fixed: acks by the path of what they acknowledge, 5,242,800 bytes (Fig. 8: 49 s), OLIA but where NewReno is \
                     named; one seed a run, the same for every scheduler";
/// Where the published numbers come from.
const SOURCES: &str = "plot: medians read off the authors' plots, less the second at which their clock starts the transfer; of \
                       Figs. 9 and 10 they drop each seed with a run short of 5,000,000 bytes. Re-run: means of complete runs of \
                       their code, run again without that second; a tail of at most 550 bytes may lack";
/// Segments of the paper's windows, bytes.
const SEGMENT_BYTES: f64 = 1460.0;
/// Seconds of Fig. 8: up to 50 on a clock that starts the transfer at 1.
const WINDOWS_S: f64 = 49.0;
/// When the first slow start is over by far, in seconds of the transfer.
const SETTLED_S: f64 = 2.0;

/// Fig. 7: one, two and four paths under setting 0.
pub(super) fn scaling(request: &FigureRequest<'_>) -> Result<Figure, CommandError> {
    let mut figure = Figure::default();
    let mut plot = Plot::new("5 MB over paths of setting 0", "", "completion time, s");
    let published = [(1, ("8.67", "8.68")), (2, ("4.83", "4.84")), (4, ("3.43", "3.43"))];
    for (preset, word) in PRESETS {
        for (count, (plotted, run_again)) in published {
            let setting = if preset == Preset::AsRun { SCALING_AS_RUN } else { preset.setting(0) };
            let paths = preset.path(setting).repeat(count);
            let text = format!("name = \"ns3-fig7\"\n{paths}{TRANSFER}scheduler = \"round-robin\"\n");
            let name = format!("ns3-fig7-{}-{count}", word.replace(' ', "-"));
            let rows = rows(request, &name, &text, request.seeds(ROUNDS))?;
            let seconds = Sorted::new(rows.iter().filter_map(Row::seconds));
            plot.boxed(format!("{count}, {word}"), seconds.values().to_vec());
            let reference = plot_and_rerun(&format!("{plotted} s"), &format!("{run_again} s"));
            figure.claim(format!("{count} paths, {word}"), reference, with_mean(&seconds, rows.len()));
        }
    }
    figure.notes.extend([SOURCES.into(), FIXED.into()]);
    figure.plots = vec![plot];
    Ok(figure)
}

/// What stands before a time of the authors' code, run again.
const THEIRS_AGAIN: &str = "the authors' code, run again:";

/// What stands in the authors' plot, and what their code gives again.
fn plot_and_rerun(plot: &str, rerun: &str) -> Reference {
    let elsewhere = format!("{THEIRS_AGAIN} {rerun}");
    Reference { elsewhere, ..Reference::published(format!("plot {plot}")) }
}

fn with_mean(seconds: &Sorted, runs: usize) -> String {
    let (mean, deviation) = (seconds.mean().unwrap_or(f64::NAN), seconds.deviation().unwrap_or(f64::NAN));
    format!("mean {mean:.2} s, sd {deviation:.2}, complete {} of {runs}; {}", seconds.len(), seconds.summary())
}

/// Fig. 8: windows of both paths, which never change, until 50 s on the paper's clock.
pub(super) fn windows(request: &FigureRequest<'_>) -> Result<Figure, CommandError> {
    let mut figure = Figure::default();
    let stop = std::sync::atomic::Ordering::Relaxed;
    let plotted = [
        ("newreno", "plot: 37 to 75 segments after slow start, 18 cuts, one each 2.7 s"),
        ("olia", "plot: 37 to 74 segments after slow start, 2 cuts, 27 s apart"),
    ];
    for (controller, published) in plotted {
        let text = format!(
            "name = \"ns3-fig8\"\n{}[transfer]\nkind = \"bulk-for\"\nseconds = {WINDOWS_S:?}\n\
             [endpoints]\nscheduler = \"round-robin\"\nack_path = \"own\"\ncongestion = \"{controller}\"\n",
            Preset::AsRun.path(WINDOWS_AS_RUN).repeat(2)
        );
        if request.stop.load(stop) {
            break;
        }
        let outcome = one(request, "ns3-fig8", &text, Watch { series: true, ..Watch::default() })?;
        let Some(series) = &outcome.series else { continue };
        let mut plot = Plot::new(format!("Congestion window, {controller}"), "time, s", "segments");
        let mut here = Vec::new();
        for index in 0..2 {
            let point = |sample: &crate::run::series::Sample| {
                let window = sample.paths.get(index).map_or(0.0, |path| path.window_bytes as f64 / SEGMENT_BYTES);
                (sample.at.since_origin().as_secs_f64(), window)
            };
            let points: Vec<(f64, f64)> = series.samples.iter().map(point).collect();
            here.push(format!("path {index}: {}", windows_in_words(&points)));
            plot.curve(format!("path {index}"), points, Style::Line);
        }
        figure.plots.push(plot);
        let goodput = outcome.verified_bytes as f64 * 8e-6 / outcome.elapsed.as_secs_f64();
        figure.claim(
            controller,
            Reference::published(published),
            format!("{}; goodput {goodput:.2} Mbit/s over both", here.join("; ")),
        );
    }
    figure.notes.extend([SOURCES.into(), FIXED.into()]);
    Ok(figure)
}

/// The span of a window after its first slow start, and how often it was cut.
fn windows_in_words(points: &[(f64, f64)]) -> String {
    let settled: Vec<f64> = points.iter().filter(|(at, _)| *at >= SETTLED_S).map(|(_, window)| *window).collect();
    let cuts = settled.windows(2).filter(|pair| pair[1] < 0.9 * pair[0]).count();
    let windows = Sorted::new(settled.iter().copied());
    let (least, most) = (windows.values().first().copied(), windows.values().last().copied());
    format!("{:.0} to {:.0} segments, {cuts} cuts", least.unwrap_or(f64::NAN), most.unwrap_or(f64::NAN))
}

/// What stands in the authors' plots for each scheduler, in the order of [`SCHEDULERS`], and what their code gives again.
fn of_schedulers(case: Case, preset: Preset) -> [Reference; 5] {
    let both = |times: [(&str, &str); 5]| {
        times.map(|(plot, rerun)| plot_and_rerun(&format!("{plot} s"), &format!("{rerun} s")))
    };
    let again = |seconds: [&str; 5]| seconds.map(|seconds| Reference::elsewhere(format!("{THEIRS_AGAIN} {seconds} s")));
    match (case, preset) {
        (Case::Stable, Preset::AsRun) => {
            both([("11.6", "11.2"), ("10.3", "10.7"), ("10.2", "11.0"), ("10.8", "10.5"), ("10.1", "10.9")])
        }
        (Case::Stable, Preset::AsPrinted) => again(["3.42", "4.05", "4.26", "3.97", "5.05"]),
        (Case::Unstable, Preset::AsRun) => {
            both([("4.1", "4.46"), ("6.2", "6.48"), ("6.3", "6.40"), ("6.1", "6.22"), ("7.3", "7.20")])
        }
        _ => std::array::from_fn(|_| Reference::none()),
    }
}

/// How many runs of the authors' code delivered everything, as run.
fn re_run(case: Case) -> Option<String> {
    let counts = match case {
        Case::Stable => {
            "of 250 runs 120 delivered every byte; 148, 28 to 32 of 50 a scheduler, with those that lack at most a tail of 550 bytes"
        }
        Case::Swapped => "of 150 runs 59 delivered every byte; 79 with those that lack at most a tail of 550 bytes",
        Case::Unstable => return None,
    };
    Some(format!("their code, run again as run: {counts}"))
}

/// All runs of a case under a preset, by scheduler.
fn by_scheduler(
    request: &FigureRequest<'_>,
    case: Case,
    preset: (Preset, &str),
) -> Result<Vec<(String, Vec<Row>)>, CommandError> {
    let (preset, word) = preset;
    let text =
        format!("name = \"ns3\"\n{}{TRANSFER}[sweep]\nendpoints.scheduler = {SCHEDULERS}\n", paths(case, preset));
    let name = format!("ns3-{}-{}", format!("{case:?}").to_lowercase(), word.replace(' ', "-"));
    let rows = rows(request, &name, &text, request.seeds(ROUNDS))?;
    let per = (rows.len() / 5).max(1);
    let named = |rows: &[Row]| {
        let name = rows.first().and_then(|row| row.cell("endpoints.scheduler")).unwrap_or("").to_owned();
        (name, rows.to_vec())
    };
    Ok(rows.chunks(per).map(named).collect())
}

/// Figs. 9 and 10: completion time by scheduler.
pub(super) fn schedulers(request: &FigureRequest<'_>, case: Case) -> Result<Figure, CommandError> {
    let mut figure = Figure::default();
    for preset in PRESETS {
        let mut plot = Plot::new(format!("{case:?}, {}", preset.1), "", "completion time, s");
        let runs = by_scheduler(request, case, preset)?;
        for ((name, rows), reference) in runs.iter().zip(of_schedulers(case, preset.0)) {
            let seconds = Sorted::new(rows.iter().filter_map(Row::seconds));
            plot.boxed(name.clone(), seconds.values().to_vec());
            figure.claim(format!("{name}, {}", preset.1), reference, with_mean(&seconds, rows.len()));
        }
        let minrtt = runs.iter().find(|(name, _)| name == "minrtt").map(|(_, rows)| &rows[..]).unwrap_or_default();
        for (name, rows) in runs.iter().filter(|(name, _)| name != "minrtt") {
            // The same seed draws the same network: a pair differs in its scheduler only.
            let ratios = rows.iter().zip(minrtt).filter_map(|(one, base)| Some(one.seconds()? / base.seconds()?));
            let what = format!("{name} / minrtt, same seed, {}", preset.1);
            figure.claim(what, Reference::none(), format!("time ratio: {}", Sorted::new(ratios).summary()));
        }
        figure.plots.push(plot);
    }
    figure.notes.extend([SOURCES.into(), FIXED.into()]);
    figure.notes.extend(re_run(case));
    let queues = "as run, the device's 100 packets stand behind FQ-CoDel as in the simulator's defaults; as printed, 100 packets and their tail";
    figure.notes.push(queues.into());
    Ok(figure)
}

/// Figs. 11 to 13: bytes received on each path.
pub(super) fn shares(request: &FigureRequest<'_>, case: Case) -> Result<Figure, CommandError> {
    let mut figure = Figure::default();
    // As printed a transfer is over before the paths swap: nothing but the stable case would be seen.
    let presets = if case == Case::Swapped { &PRESETS[..1] } else { &PRESETS[..] };
    let (mut swapped, mut runs) = (0, 0);
    for &preset in presets {
        let mut plot = Plot::new(format!("{case:?}, {}: bytes carried by each path", preset.1), "", "MB");
        plot.bar_names((0..2).map(|path| format!("path {path}")));
        for (name, rows) in by_scheduler(request, case, preset)? {
            let (mut text, mut means) = (Vec::new(), Vec::new());
            for path in 0..2 {
                let bytes = rows.iter().filter_map(|row| row.number(&format!("path{path}_down_bytes")));
                let mean = Sorted::new(bytes).mean().unwrap_or(0.0) / 1e6;
                means.push(mean);
                text.push(format!("path {path} {mean:.2} MB"));
            }
            plot.bar_group(name.clone(), means);
            let seconds = Sorted::new(rows.iter().filter_map(Row::seconds));
            swapped += rows.iter().filter(|row| row.seconds().is_none_or(|end| end > SWAP_S)).count();
            runs += rows.len();
            figure.claim(
                format!("{name}, {}", preset.1),
                Reference::none(),
                format!("{}; {}", text.join(", "), with_mean(&seconds, rows.len())),
            );
        }
        figure.plots.push(plot);
    }
    figure.notes.push(FIXED.into());
    figure.notes.extend(re_run(case));
    figure
        .notes
        .push("the authors plot one seed each: 133 in Fig. 11, 2 in Fig. 12, 79 in Fig. 13; here are means".into());
    if case == Case::Swapped {
        figure.notes.push(format!(
            "the paths swap {SWAP_S} s into the transfer, 5 s on the paper's clock; {swapped} of {runs} runs lasted longer. As \
             printed, with few losses, a transfer ends before: that half would be Fig. 11 again and is left out"
        ));
    } else {
        figure
            .notes
            .push("the runs of this figure are those of its completion times: Figs. 9 and 11, Figs. 10 and 13".into());
    }
    Ok(figure)
}
