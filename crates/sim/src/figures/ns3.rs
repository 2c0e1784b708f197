//! The ns-3 MPQUIC paper (WNS3 2023): its Table 1, as its code ran and as the paper prints it.

use crate::campaign::Row;
use crate::command::CommandError;
use crate::plot::{Plot, Style};
use crate::run::Watch;
use crate::stats::Sorted;

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

const TRANSFER: &str = "[transfer]\nkind = \"download\"\nbytes = 5_242_800\n[endpoints]\ncongestion = \"olia\"\n";

/// Fig. 7: one, two and four paths under setting 0.
pub(super) fn scaling(request: &FigureRequest<'_>) -> Result<Figure, CommandError> {
    let mut figure = Figure::default();
    let mut plot = Plot::new("5 MB over paths of setting 0", "", "completion time, s");
    let published = [(1, "8.68 s"), (2, "4.84 s"), (4, "3.43 s")];
    for (preset, word) in PRESETS {
        for (count, published) in published {
            let setting = if preset == Preset::AsRun { SCALING_AS_RUN } else { preset.setting(0) };
            let paths = preset.path(setting).repeat(count);
            let text = format!("name = \"ns3-fig7\"\n{paths}{TRANSFER}scheduler = \"round-robin\"\n");
            let name = format!("ns3-fig7-{}-{count}", word.replace(' ', "-"));
            let rows = rows(request, &name, &text, request.points.map_or(ROUNDS, |n| n as u64))?;
            let seconds = Sorted::new(rows.iter().filter_map(Row::seconds));
            plot.boxed(format!("{count}, {word}"), seconds.values().to_vec());
            figure.claim(format!("{count} paths, {word}"), published, with_mean(&seconds, rows.len()));
        }
    }
    figure.plots = vec![plot];
    Ok(figure)
}

fn with_mean(seconds: &Sorted, runs: usize) -> String {
    let (mean, deviation) = (seconds.mean().unwrap_or(f64::NAN), seconds.deviation().unwrap_or(f64::NAN));
    format!("mean {mean:.2} s, sd {deviation:.2}, complete {} of {runs}; {}", seconds.len(), seconds.summary())
}

/// Fig. 8: windows of both paths under setting 1 over 50 s.
pub(super) fn windows(request: &FigureRequest<'_>) -> Result<Figure, CommandError> {
    let mut figure = Figure::default();
    let stop = std::sync::atomic::Ordering::Relaxed;
    for controller in ["newreno", "olia"] {
        let text = format!(
            "name = \"ns3-fig8\"\n{}[transfer]\nkind = \"bulk-for\"\nseconds = 50\n\
             [endpoints]\nscheduler = \"round-robin\"\ncongestion = \"{controller}\"\n",
            Preset::AsRun.path(WINDOWS_AS_RUN).repeat(2)
        );
        if request.stop.load(stop) {
            break;
        }
        let outcome = one(request, "ns3-fig8", &text, Watch { series: true, ..Watch::default() })?;
        let Some(series) = &outcome.series else { continue };
        let mut plot = Plot::new(format!("Congestion window, {controller}"), "time, s", "kB");
        for index in 0..2 {
            let point = |sample: &crate::run::series::Sample| {
                let window = sample.paths.get(index).map_or(0.0, |path| path.window_bytes as f64 / 1e3);
                (sample.at.since_origin().as_secs_f64(), window)
            };
            plot.curve(format!("path {index}"), series.samples.iter().map(point).collect(), Style::Line);
        }
        figure.plots.push(plot);
        let goodput = outcome.verified_bytes as f64 * 8e-6 / outcome.elapsed.as_secs_f64();
        figure.claim(
            controller,
            "OLIA keeps smaller windows than NewReno",
            format!("goodput {goodput:.2} Mbit/s over both paths"),
        );
    }
    Ok(figure)
}

/// What the authors publish for each scheduler, in the order of [`SCHEDULERS`].
fn published(case: Case, preset: Preset) -> [&'static str; 5] {
    match (case, preset) {
        (Case::Stable, Preset::AsRun) => ["11.2", "10.7", "11.0", "10.5", "10.9"],
        (Case::Stable, Preset::AsPrinted) => ["3.42", "4.05", "4.26", "3.97", "5.05"],
        (Case::Unstable, Preset::AsRun) => ["4.46", "6.48", "6.40", "6.22", "7.20"],
        _ => ["-"; 5],
    }
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
    let rows = rows(request, &name, &text, request.points.map_or(ROUNDS, |n| n as u64))?;
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
        for ((name, rows), published) in runs.iter().zip(published(case, preset.0)) {
            let seconds = Sorted::new(rows.iter().filter_map(Row::seconds));
            plot.boxed(name.clone(), seconds.values().to_vec());
            figure.claim(format!("{name}, {}", preset.1), format!("{published} s"), with_mean(&seconds, rows.len()));
        }
        let minrtt = runs.iter().find(|(name, _)| name == "minrtt").map(|(_, rows)| &rows[..]).unwrap_or_default();
        for (name, rows) in runs.iter().filter(|(name, _)| name != "minrtt") {
            // The same seed draws the same network: a pair differs in its scheduler only.
            let ratios = rows.iter().zip(minrtt).filter_map(|(one, base)| Some(one.seconds()? / base.seconds()?));
            let what = format!("{name} / minrtt, same seed, {}", preset.1);
            figure.claim(what, "-", format!("time ratio: {}", Sorted::new(ratios).summary()));
        }
        figure.plots.push(plot);
    }
    figure.notes.push("published times are of complete runs of the paper's code re-run, with its 1 s start offset; of those as run only 28 to 32 of 50 completed".into());
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
                "-",
                format!("{}; {}", text.join(", "), with_mean(&seconds, rows.len())),
            );
        }
        figure.plots.push(plot);
    }
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
