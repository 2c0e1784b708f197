//! Sweeps: which settings a campaign tries, as the product of lists or as points that fill a space.

use std::collections::{BTreeMap, BTreeSet};

use super::error::ScenarioError;
use super::origin::Origin;
use super::reader::{Reader, number_of, refuse};
use super::tree::{Node, Tree, Value};
use crate::design;

/// Points of a sweep, at most.
const POINTS_MAX: usize = 1_000_000;

/// Keys and values of one point.
pub type Settings = Vec<(String, String)>;

/// What a `[sweep]` says.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The points of the design, each with its settings.
    pub points: Vec<Settings>,
    /// Where their values were written.
    pub origins: Origins,
}

/// Where the values of a sweep were written.
#[derive(Clone, Debug)]
pub struct Origins {
    /// Where each value of a list is, and each range, whose value is empty here.
    places: BTreeMap<(String, String), Origin>,
    /// For all else.
    sweep: Origin,
}

impl Origins {
    /// Where this value of this key comes from.
    pub(crate) fn of(&self, key: &str, value: &str) -> Origin {
        let at = |value: &str| self.places.get(&(key.to_owned(), value.to_owned()));
        at(value).or_else(|| at("")).unwrap_or(&self.sweep).clone()
    }
}

/// Takes the `[sweep]` out of a tree: every point of it, or one without settings where there is none.
///
/// # Errors
/// The table does not describe a sweep.
pub fn take_sweep(tree: &mut Tree) -> Result<Sweep, ScenarioError> {
    let mut origins = Origins { places: BTreeMap::new(), sweep: tree.0.origin.clone() };
    let Some(node) = tree.take("sweep") else { return Ok(Sweep { points: vec![Vec::new()], origins }) };
    origins.sweep = node.origin.clone();
    let reader = Reader::new(&node, "sweep")?;
    let spaces = reader.table("wsp")?.map(|wsp| read_wsp(wsp, &mut origins)).transpose()?;
    let mut points = spaces.unwrap_or_else(|| vec![Vec::new()]);
    let mut lists = Vec::new();
    for (key, node) in reader.entries().filter(|(key, _)| *key != "wsp") {
        flatten(key, node, &mut lists)?;
    }
    for (key, items) in lists {
        let values: Vec<String> = items.iter().map(Node::text).collect();
        let mut meanings = BTreeSet::new();
        for (item, value) in items.iter().zip(&values) {
            let before = origins.places.insert((key.clone(), value.clone()), item.origin.clone());
            if before.is_some() || !meanings.insert(meaning(item)) {
                return Err(refuse(
                    item,
                    &format!("sweep.{key}"),
                    format!("{value} is there twice"),
                    "each value once",
                ));
            }
        }
        let full = points.len().saturating_mul(values.len());
        if full > POINTS_MAX {
            let problem = format!("with it the sweep has {full} points");
            let at = items.first().unwrap_or(&node);
            return Err(refuse(at, &format!("sweep.{key}"), problem, format!("at most {POINTS_MAX}")));
        }
        let with = |point: &Settings, value: &String| {
            let mut point = point.clone();
            point.push((key.clone(), value.clone()));
            point
        };
        points = points.iter().flat_map(|point| values.iter().map(move |value| with(point, value))).collect();
    }
    Ok(Sweep { points, origins })
}

/// What a value says, however it is written: 1 and 1.0 are one number.
fn meaning(value: &Node) -> String {
    match value.value {
        Value::Float(number) if number.fract() == 0.0 => format!("{number:.0}"),
        _ => value.text(),
    }
}

/// Every list in a table of tables, under its dotted key.
fn flatten<'a>(key: &str, node: &'a Node, lists: &mut Vec<(String, &'a [Node])>) -> Result<(), ScenarioError> {
    match &node.value {
        Value::Array(items) if items.is_empty() => {
            Err(refuse(node, &format!("sweep.{key}"), "is an empty list", "at least one value"))
        }
        Value::Array(items) => {
            lists.push((key.to_owned(), items));
            Ok(())
        }
        Value::Table(table) => table.iter().try_for_each(|(next, node)| flatten(&format!("{key}.{next}"), node, lists)),
        _ => {
            let accepted = "a list of values, such as [1, 10, 100], or wsp = { points = 100, ... }";
            Err(refuse(node, &format!("sweep.{key}"), format!("is {}", node.kind()), accepted))
        }
    }
}

/// One dimension of a space.
struct Dimension {
    key: String,
    low: f64,
    high: f64,
    log: bool,
}

impl Dimension {
    fn at(&self, unit: f64) -> String {
        let value = if self.log {
            (self.low.ln() + unit * (self.high.ln() - self.low.ln())).exp()
        } else {
            self.low + unit * (self.high - self.low)
        };
        format!("{value:.6}")
    }
}

fn read_wsp(wsp: Reader<'_>, origins: &mut Origins) -> Result<Vec<Settings>, ScenarioError> {
    let count = wsp.whole("points", 1..=5_000, "points")?;
    if let Some(name) = wsp.word("design", &design::NAMES)? {
        wsp.finish()?;
        let design = design::by_name(name, count.map(|count| count as usize));
        return Ok(design.map(|design| design.points).unwrap_or_default());
    }
    let seed = wsp.whole("seed", 0..=i64::MAX as u64, "")?.unwrap_or(1);
    let mut dimensions = Vec::new();
    for (key, node) in wsp.entries().filter(|(key, _)| !["points", "seed", "design"].contains(&key.as_str())) {
        read_dimensions(key, node, &mut dimensions, origins)?;
    }
    if dimensions.is_empty() {
        let accepted = "keys with ranges, such as path.0.rate_mbps = { min = 1, max = 100 }, or a design";
        return Err(wsp.complain("points", "there is nothing to vary", accepted));
    }
    let cube = design::wsp(count.unwrap_or(100) as usize, dimensions.len(), seed);
    let settings =
        |point: &Vec<f64>| dimensions.iter().zip(point).map(|(d, unit)| (d.key.clone(), d.at(*unit))).collect();
    Ok(cube.points.iter().map(settings).collect())
}

fn read_dimensions(
    key: &str,
    node: &Node,
    dimensions: &mut Vec<Dimension>,
    origins: &mut Origins,
) -> Result<(), ScenarioError> {
    let full = format!("sweep.wsp.{key}");
    let Value::Table(table) = &node.value else {
        return Err(refuse(node, &full, format!("is {}", node.kind()), "{ min = .., max = .. }"));
    };
    if !table.contains_key("min") {
        let mut below = table.iter().map(|(next, node)| (format!("{key}.{next}"), node));
        return below.try_for_each(|(next, node)| read_dimensions(&next, node, dimensions, origins));
    }
    let reader = Reader::new(node, &full)?;
    let everything = f64::MIN..=f64::MAX;
    let end = |key: &'static str| {
        let value = table.get(key).ok_or_else(|| reader.complain(key, "is missing", "a number"))?;
        number_of(value, &format!("{full}.{key}"), &everything, "")
    };
    let (low, high) = (end("min")?, end("max")?);
    let log = reader.word("scale", &["linear", "log"])? == Some("log");
    reader.number("min", everything.clone(), "")?;
    reader.number("max", everything.clone(), "")?;
    reader.finish()?;
    if low > high || (log && low <= 0.0) {
        return Err(refuse(
            node,
            &full,
            format!("{low} to {high} is no range"),
            "min <= max, and min > 0 on a log scale",
        ));
    }
    origins.places.insert((key.to_owned(), String::new()), node.origin.clone());
    dimensions.push(Dimension { key: key.to_owned(), low, high, log });
    Ok(())
}
