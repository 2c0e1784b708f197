//! What a figure runs: networks with a transfer each, as scenario files have them, and how large the transfer is.

use std::fmt::Write;
use std::time::Duration;

use plait_sim::design;

/// A network with a transfer, run by every contender.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Setup {
    /// A short name of its own.
    pub(crate) name: String,
    /// What it is reported with: a class of a design, the words of a profile.
    pub(crate) group: String,
    /// The scenario file, without sweep.
    pub(crate) text: String,
    /// Initial paths to run it from.
    pub(crate) initial_paths: Vec<usize>,
    /// Mbit/s that the emulator has to carry at most, of each path.
    pub(crate) load_mbps: [f64; 2],
}

/// Runs take no longer than this, done or not.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(60);
/// Bytes of a large download where every path is fast.
const LARGE_BYTES: f64 = 20e6;
/// Fewer are no large download.
const LARGE_BYTES_MIN: f64 = 200e3;
/// Aim for the time over all paths, and for that over the slowest alone, seconds.
const SECONDS_TOGETHER: f64 = 3.0;
const SECONDS_SLOWEST: f64 = 10.0;
/// Payload of a segment, and the constant of the formula of Mathis, Semke, Mahdavi and Ott (1997) for one loss event each 1/p.
const SEGMENT_BYTES: f64 = 1448.0;
const MATHIS: f64 = 1.22;

/// What one path can be expected to carry for a loss-based controller, Mbit/s: its rate, or less where losses hold it down.
fn expected_mbps(rate_mbps: f64, rtt_ms: f64, loss: f64) -> f64 {
    let by_loss = MATHIS * SEGMENT_BYTES * 8.0 / (rtt_ms.max(1.0) / 1e3 * loss.max(1e-9).sqrt()) / 1e6;
    rate_mbps.min(by_loss)
}

/// Bytes of a large download over paths that carry so much: as many as all together carry in 3 s or the slowest alone in
/// 10 s, whichever is less; 0.2 to 20 MB.
fn scaled_bytes(expected_mbps: &[f64]) -> u64 {
    let together: f64 = expected_mbps.iter().sum();
    let slowest = expected_mbps.iter().copied().fold(f64::INFINITY, f64::min);
    let bytes = (together * SECONDS_TOGETHER).min(slowest * SECONDS_SLOWEST) * 1e6 / 8.0;
    bytes.clamp(LARGE_BYTES_MIN, LARGE_BYTES) as u64
}

/// The head of a scenario file.
fn head(name: &str) -> String {
    format!("name = \"{name}\"\ntime_limit_s = {}\n", TIME_LIMIT.as_secs())
}

fn download(bytes: u64) -> String {
    format!("[transfer]\nkind = \"download\"\nbytes = {bytes}\n")
}

fn number(settings: &[(String, String)], key: &str) -> Option<f64> {
    settings.iter().find(|(known, _)| known == key)?.1.parse().ok()
}

/// The settings of a point as the tables of two paths.
fn path_tables(settings: &[(String, String)]) -> String {
    let mut text = String::new();
    for path in 0..2 {
        text.push_str("[[path]]\n");
        let prefix = format!("path.{path}.");
        for (key, value) in settings.iter().filter_map(|(key, value)| Some((key.strip_prefix(&prefix)?, value))) {
            let _ = writeln!(text, "{key} = {value}");
        }
    }
    text
}

/// The first points of a class of the CoNEXT design, with a download of so many bytes, or as large as each allows.
pub(crate) fn conext(class: &str, points: usize, bytes: Option<u64>) -> Vec<Setup> {
    let design = design::by_name(&format!("conext-{class}"), Some(points));
    let points = design.map(|design| design.points).unwrap_or_default();
    let setup = |(at, settings): (usize, &Vec<(String, String)>)| {
        let of = |path: usize, key: &str| number(settings, &format!("path.{path}.{key}")).unwrap_or_default();
        let expected = [0, 1].map(|path| expected_mbps(of(path, "rate_mbps"), of(path, "rtt_ms"), of(path, "loss")));
        let name = format!("{class}-{at}");
        let bytes = bytes.unwrap_or_else(|| scaled_bytes(&expected));
        Setup {
            text: head(&name) + &path_tables(settings) + &download(bytes),
            name,
            group: class.to_owned(),
            initial_paths: vec![0, 1],
            load_mbps: expected,
        }
    };
    points.iter().enumerate().map(setup).collect()
}

/// The first points of the asymmetric design of Multiflow QUIC, with its download of 10 MB.
pub(crate) fn asymmetric(points: usize) -> Vec<Setup> {
    let design = design::by_name("multiflow-asymmetric", Some(points));
    let points = design.map(|design| design.points).unwrap_or_default();
    let setup = |(at, settings): (usize, &Vec<(String, String)>)| {
        let rates = [0, 1].map(|path| number(settings, &format!("path.{path}.down.rate_mbps")).unwrap_or_default());
        let name = format!("asymmetric-{at}");
        Setup {
            text: head(&name) + &path_tables(settings) + &download(10_000_000),
            name,
            group: "asymmetric".to_owned(),
            initial_paths: vec![0, 1],
            load_mbps: rates,
        }
    };
    points.iter().enumerate().map(setup).collect()
}

/// Multiflow QUIC's Fig. 4: 10 Mbit/s and 20 ms, beside a satellite's way down.
pub(crate) fn satellite() -> Vec<Setup> {
    let name = "satellite".to_owned();
    let paths = "[[path]]\nrate_mbps = 10\nrtt_ms = 20\nqueue_bytes = 37500\n\
                 [[path]]\ndown = { rate_mbps = 50, delay_ms = 10, queue_bytes = 187500 }\n\
                 up = { rate_mbps = 0.01, delay_ms = 1000, queue_bytes = 3750 }\n";
    let text = head(&name) + paths + &download(10_000_000);
    vec![Setup { text, group: name.clone(), name, initial_paths: vec![0], load_mbps: [10.0, 50.0] }]
}

/// CoNEXT'17 Fig. 11: the initial path dies at 3 s.
pub(crate) fn handover() -> Vec<Setup> {
    let name = "handover".to_owned();
    let rest = "[[path]]\nrate_mbps = 10\nrtt_ms = 15\n[[path]]\nrate_mbps = 10\nrtt_ms = 25\n\
                [[event]]\nat_s = 3.0\npath = 0\nloss = 1.0\n\
                [transfer]\nkind = \"request-response\"\nrequest_bytes = 750\nresponse_bytes = 750\n\
                interval_ms = 400\ncount = 25\n";
    let text = head(&name).replace("= 60", "= 20") + rest;
    vec![Setup { text, group: name.clone(), name, initial_paths: vec![0], load_mbps: [1.0, 1.0] }]
}

/// Wi-Fi fades from 2 s on and is gone at 4 s, cellular stays, Wi-Fi is back at 8 s: a download and requests.
pub(crate) fn mobility() -> Vec<Setup> {
    let event = |at: f64, values: &str| format!("[[event]]\nat_s = {at:?}\npath = 0\n{values}\n");
    let network = "[[path]]\nrate_mbps = 40\nrtt_ms = 10\nqueue_ms = 50\n\
                   [[path]]\nrate_mbps = 15\nrtt_ms = 50\nqueue_ms = 150\n"
        .to_owned()
        + &event(2.0, "rate_mbps = 15\nloss = 0.02")
        + &event(3.0, "rate_mbps = 4\nloss = 0.1")
        + &event(4.0, "loss = 1.0")
        + &event(8.0, "rate_mbps = 40\nloss = 0.0");
    let requests = "[transfer]\nkind = \"request-response\"\nrequest_bytes = 750\nresponse_bytes = 10000\n\
                    interval_ms = 100\ncount = 120\n";
    let setup = |name: &str, transfer: &str| Setup {
        name: name.to_owned(),
        group: "mobility".to_owned(),
        text: head(name) + &network + transfer,
        initial_paths: vec![0],
        load_mbps: [40.0, 15.0],
    };
    vec![setup("mobility-download", &download(35_000_000)), setup("mobility-requests", requests)]
}

/// The sixteen profiles, with a download as large as they allow.
pub(crate) fn profiles() -> Vec<Setup> {
    let setup = |profile: &design::Profile| {
        let network = profile.network();
        let of = |table: &str, key: &str| -> Option<f64> {
            let line = table.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "))?;
            line.parse().ok()
        };
        let tables = network.split("[[path]]\n").skip(1);
        let paths = tables.map(|table| (of(table, "rate_mbps"), of(table, "rtt_ms"), of(table, "loss")));
        let expected: Vec<f64> = paths
            .map(|(rate, rtt, loss)| expected_mbps(rate.unwrap_or(10.0), rtt.unwrap_or(20.0), loss.unwrap_or(0.0)))
            .collect();
        // A path that carries next to nothing is no reason for a small download: nobody waits for it alone.
        let sum: f64 = expected.iter().sum();
        let bytes = (sum * SECONDS_TOGETHER * 1e6 / 8.0).clamp(LARGE_BYTES_MIN, LARGE_BYTES) as u64;
        Setup {
            name: profile.name.to_owned(),
            group: profile.title.to_owned(),
            text: head(profile.name) + &network + &download(bytes),
            initial_paths: vec![0, 1],
            load_mbps: [0, 1].map(|path| expected.get(path).copied().unwrap_or_default()),
        }
    };
    design::PROFILES.iter().map(setup).collect()
}

#[cfg(test)]
mod tests {
    use plait_sim::scenario::{Scenario, Traces, Tree};

    use super::*;

    #[test]
    fn every_setup_is_a_scenario_that_ends_in_time() {
        let classes = ["low-bdp-no-loss", "low-bdp-loss", "high-bdp-no-loss", "high-bdp-loss"];
        let large = classes.iter().flat_map(|class| conext(class, 253, None));
        let rest = [asymmetric(139), satellite(), handover(), mobility(), profiles()];
        for setup in large.chain(rest.into_iter().flatten()) {
            let tree = Tree::parse(&setup.name, &setup.text).unwrap_or_else(|error| panic!("{error}\n{}", setup.text));
            let scenario = Scenario::read(&tree, &Traces::default()).unwrap_or_else(|error| panic!("{error}"));
            assert!(scenario.time_limit <= TIME_LIMIT && scenario.paths.len() == 2, "{}", setup.name);
            assert!(setup.load_mbps.iter().all(|mbps| *mbps > 0.0), "{}", setup.name);
        }
    }

    #[test]
    fn sizes_follow_what_paths_carry() {
        // 3 s of both, 10 s of the slower one, and the bounds.
        assert_eq!(scaled_bytes(&[10.0, 10.0]), 7_500_000);
        assert_eq!(scaled_bytes(&[80.0, 1.0]), 1_250_000);
        assert_eq!(scaled_bytes(&[100.0, 100.0]), 20_000_000);
        assert_eq!(scaled_bytes(&[100.0, 0.01]), 200_000);
        assert_eq!(expected_mbps(50.0, 20.0, 0.0), 50.0);
        let held_down = expected_mbps(50.0, 100.0, 0.01);
        assert!((1.3..1.5).contains(&held_down), "{held_down}");
    }
}
