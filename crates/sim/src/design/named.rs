//! The designs of the papers: CoNEXT 2017 (Table 1, 253 points, four classes) and Multiflow QUIC (139 points).

use std::sync::OnceLock;

use super::wsp::{Points, wsp};

/// Points of the CoNEXT 2017 design.
pub const CONEXT_POINTS: usize = 253;
/// Points of the Multiflow design.
pub const MULTIFLOW_POINTS: usize = 139;
/// Seed of the points: one set for all, so that classes can be compared point by point.
const SEED: u64 = 2017;
/// The points take longer to find than a short campaign takes to run, and figures ask for them time and again.
static CONEXT_CUBE: OnceLock<Points> = OnceLock::new();
static MULTIFLOW_CUBE: OnceLock<Points> = OnceLock::new();

/// Every name that [`by_name`] knows.
pub const NAMES: [&str; 5] = [
    "conext-low-bdp-no-loss",
    "conext-low-bdp-loss",
    "conext-high-bdp-no-loss",
    "conext-high-bdp-loss",
    "multiflow-asymmetric",
];

/// Points as settings of a scenario with two paths.
#[derive(Clone, Debug, PartialEq)]
pub struct Design {
    /// The name that scenarios call it by.
    pub name: &'static str,
    /// Least distance between two points of the unit cube.
    pub distance_min: f64,
    /// Key and value of each point.
    pub points: Vec<Vec<(String, String)>>,
}

/// From the name of a design and a point of the unit cube to settings.
type MakePoint = fn(&str, &[f64]) -> Vec<(String, String)>;

/// A design by its name, cut to its first `limit` points.
pub fn by_name(name: &str, limit: Option<usize>) -> Option<Design> {
    let name = *NAMES.iter().find(|known| **known == name)?;
    let (cube, make): (_, MakePoint) = match name {
        "multiflow-asymmetric" => (MULTIFLOW_CUBE.get_or_init(|| wsp(MULTIFLOW_POINTS, 8, SEED)), multiflow),
        _ => (CONEXT_CUBE.get_or_init(|| wsp(CONEXT_POINTS, 8, SEED)), conext),
    };
    let points = cube.points.iter().take(limit.unwrap_or(usize::MAX)).map(|point| make(name, point)).collect();
    Some(Design { name, distance_min: cube.distance_min, points })
}

/// A corner of a class of the CoNEXT design, where each of the eight values is the least or the largest: as the bits of
/// `corner` say. No point of the design lies in one.
pub fn conext_corner(name: &str, corner: u64) -> Vec<(String, String)> {
    let point: Vec<f64> = (0..8).map(|bit| (corner >> bit & 1) as f64).collect();
    conext(name, &point)
}

/// A number as a scenario file would have it, six digits.
fn setting(key: &str, value: f64) -> (String, String) {
    (key.to_owned(), format!("{value:.6}"))
}

/// Between two ends.
fn between(unit: f64, low: f64, high: f64) -> f64 {
    low + unit * (high - low)
}

/// Table 1: capacity 0.1-100 Mbit/s, RTT 0-50 or 0-400 ms, queuing delay 0-100 or 0-2000 ms, loss 0-2.5 %.
fn conext(name: &str, point: &[f64]) -> Vec<(String, String)> {
    let (rtt_max, queue_max) = if name.contains("low-bdp") { (50.0, 100.0) } else { (400.0, 2000.0) };
    let loss_max = if name.ends_with("no-loss") { 0.0 } else { 0.025 };
    let mut settings = Vec::new();
    for (path, values) in point.chunks_exact(4).enumerate() {
        let [rate, rtt, queue, loss] = values else { continue };
        settings.push(setting(&format!("path.{path}.rate_mbps"), between(*rate, 0.1, 100.0)));
        settings.push(setting(&format!("path.{path}.rtt_ms"), between(*rtt, 0.0, rtt_max)));
        settings.push(setting(&format!("path.{path}.queue_ms"), between(*queue, 0.0, queue_max)));
        settings.push(setting(&format!("path.{path}.loss"), between(*loss, 0.0, loss_max)));
    }
    settings
}

/// 5-50 Mbit/s and 2.5-25 ms one way, up and down apart; the queue of a direction holds 1.5 x rate x twice its delay.
fn multiflow(_: &str, point: &[f64]) -> Vec<(String, String)> {
    let mut settings = Vec::new();
    for (path, values) in point.chunks_exact(4).enumerate() {
        let [rate_up, rate_down, delay_up, delay_down] = values else { continue };
        for (side, rate, delay) in [("up", rate_up, delay_up), ("down", rate_down, delay_down)] {
            let (rate, delay) = (between(*rate, 5.0, 50.0), between(*delay, 2.5, 25.0));
            settings.push(setting(&format!("path.{path}.{side}.rate_mbps"), rate));
            settings.push(setting(&format!("path.{path}.{side}.delay_ms"), delay));
            let queue = 1.5 * rate * 1e6 / 8.0 * 2.0 * delay / 1e3;
            settings.push((format!("path.{path}.{side}.queue_bytes"), format!("{}", queue as u64)));
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_its_points() {
        for name in NAMES {
            let design = by_name(name, Some(5)).unwrap();
            assert_eq!((design.name, design.points.len()), (name, 5));
        }
        assert!(by_name("conext", None).is_none());
    }

    #[test]
    fn classes_without_loss_are_the_same_points() {
        let [lossy, clean] = ["conext-low-bdp-loss", "conext-low-bdp-no-loss"].map(|n| by_name(n, None).unwrap());
        assert_eq!((lossy.points.len(), clean.points.len()), (253, 253));
        for (a, b) in lossy.points.iter().zip(&clean.points) {
            assert!(a.iter().zip(b).all(|(x, y)| x == y || x.0.ends_with(".loss")));
        }
        assert!(clean.distance_min > 0.5, "{}", clean.distance_min);
    }
}
