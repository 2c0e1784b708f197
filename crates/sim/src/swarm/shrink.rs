//! From a scenario that fails to a small one that fails in the same way.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use super::usable::is_usable;
use super::{Failure, judge_scenario};
use crate::scenario::tree::{Node, Value};
use crate::scenario::{Scenario, Traces, Tree};

/// Runs that shrinking may take.
pub(super) const RUNS_MAX: usize = 400;
/// Lists whose tables may be left out.
const LISTS: [&str; 5] = ["event", "rule", "cross", "path", "link"];

/// What is left of a scenario.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The scenario as text.
    pub text: String,
    /// How it fails.
    pub failure: Failure,
    /// Runs that it took.
    pub runs: usize,
}

/// The smallest scenario found that fails as `failure` does.
pub fn shrink(tree: &Tree, failure: &Failure) -> Shrunk {
    shrink_until(tree, failure, &AtomicBool::new(false), &mut |_| {})
}

/// As [`shrink`], but what was found so far once `stop` is set; `told` hears of the smallest one after each run.
pub(super) fn shrink_until(tree: &Tree, failure: &Failure, stop: &AtomicBool, told: &mut dyn FnMut(&Shrunk)) -> Shrunk {
    // A run that does not complete has failed only where the network lets it.
    let must = read(tree).is_some_and(|scenario| is_usable(&scenario));
    let judge = &mut |tree: &Tree| {
        let scenario = read(tree).filter(|scenario| !must || is_usable(scenario))?;
        judge_scenario(&scenario, stop)
    };
    shrink_with(tree, failure, judge, told)
}

/// What `plait sim run` takes, which is no link that nothing goes through.
fn read(tree: &Tree) -> Option<Scenario> {
    Scenario::read(tree, &Traces::default()).ok().filter(|scenario| scenario.unused_links().is_empty())
}

fn shrink_with(
    tree: &Tree,
    failure: &Failure,
    judge: &mut dyn FnMut(&Tree) -> Option<Failure>,
    told: &mut dyn FnMut(&Shrunk),
) -> Shrunk {
    let best = Shrunk { text: tree.document(), failure: failure.clone(), runs: 0 };
    told(&best);
    let mut best = Shrinking { tree: tree.clone(), best, judge, told };
    loop {
        let before = best.tree.canonical();
        best.leave_out_tables();
        best.leave_out_keys();
        best.round_numbers();
        if best.tree.canonical() == before || best.best.runs >= RUNS_MAX {
            break;
        }
    }
    best.best
}

struct Shrinking<'a> {
    tree: Tree,
    best: Shrunk,
    judge: &'a mut dyn FnMut(&Tree) -> Option<Failure>,
    told: &'a mut dyn FnMut(&Shrunk),
}

impl Shrinking<'_> {
    /// Keeps a change where the scenario still fails in the same way.
    fn keeps(&mut self, candidate: Option<Tree>) -> bool {
        let Some(candidate) = candidate.filter(|_| self.best.runs < RUNS_MAX) else { return false };
        self.best.runs += 1;
        let found = (self.judge)(&candidate).filter(|failure| failure.kind == self.best.failure.kind);
        let kept = found.is_some();
        if let Some(failure) = found {
            self.best = Shrunk { text: candidate.document(), failure, runs: self.best.runs };
            self.tree = candidate;
        }
        (self.told)(&self.best);
        kept
    }

    fn leave_out_tables(&mut self) {
        for list in LISTS {
            let count = list_of(&self.tree, list).map_or(0, Vec::len);
            // All of them at once, then one after the other from the end.
            if list != "path" && self.keeps(without_list(&self.tree, list)) {
                continue;
            }
            for index in (0..count).rev() {
                self.keeps(without_item(&self.tree, list, index));
            }
        }
    }

    fn leave_out_keys(&mut self) {
        for place in places(&self.tree.0, &[]) {
            let mut candidate = self.tree.clone();
            let left_out = remove_at(&mut candidate.0, &place);
            self.keeps(left_out.then_some(candidate));
        }
    }

    fn round_numbers(&mut self) {
        for place in places(&self.tree.0, &[]) {
            if place.last().is_some_and(|step| *step == Step::Key("seed".into())) {
                continue;
            }
            let mut candidate = self.tree.clone();
            let rounded = node_at(&mut candidate.0, &place).is_some_and(round_node);
            self.keeps(rounded.then_some(candidate));
        }
    }
}

/// One step down a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Key(String),
    Item(usize),
}

/// Every value below a node that is under a key, outer ones first.
fn places(node: &Node, at: &[Step]) -> Vec<Vec<Step>> {
    let below = |step: Step, child: &Node| {
        let mut place = at.to_owned();
        place.push(step);
        let deeper = places(child, &place);
        (place, deeper)
    };
    let mut all = Vec::new();
    match &node.value {
        Value::Table(table) => {
            for (key, child) in table {
                let (place, deeper) = below(Step::Key(key.clone()), child);
                all.push(place);
                all.extend(deeper);
            }
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(i, child)| all.extend(below(Step::Item(i), child).1));
        }
        _ => {}
    }
    all
}

fn node_at<'a>(node: &'a mut Node, place: &[Step]) -> Option<&'a mut Node> {
    let Some((step, rest)) = place.split_first() else { return Some(node) };
    let child = match (step, &mut node.value) {
        (Step::Key(key), Value::Table(table)) => table.get_mut(key)?,
        (Step::Item(index), Value::Array(items)) => items.get_mut(*index)?,
        _ => return None,
    };
    node_at(child, rest)
}

fn remove_at(node: &mut Node, place: &[Step]) -> bool {
    let Some((Step::Key(key), above)) = place.split_last() else { return false };
    match node_at(node, above).map(|node| &mut node.value) {
        Some(Value::Table(table)) => table.remove(key).is_some(),
        _ => false,
    }
}

/// Fewer digits, then a smaller number of bytes or seconds; false where nothing changed.
fn round_node(node: &mut Node) -> bool {
    match &mut node.value {
        Value::Float(x) => {
            let rounded: f64 = format!("{x:.0e}").parse().unwrap_or(*x);
            let changed = rounded != *x;
            *x = rounded;
            changed
        }
        Value::Integer(i) if *i >= 10 => {
            let scale = 10i64.pow(i.ilog10());
            let rounded = *i / scale * scale;
            let smaller = if rounded == *i { *i / 2 } else { rounded };
            *i = smaller;
            true
        }
        _ => false,
    }
}

fn list_of<'a>(tree: &'a Tree, list: &str) -> Option<&'a Vec<Node>> {
    let Value::Table(top) = &tree.0.value else { return None };
    match &top.get(list)?.value {
        Value::Array(items) => Some(items),
        _ => None,
    }
}

fn without_list(tree: &Tree, list: &str) -> Option<Tree> {
    let mut tree = tree.clone();
    tree.take(list)?;
    if list == "link" {
        each_table(&mut tree, "path", |table| {
            table.remove("via");
            true
        });
        for other in ["event", "rule", "cross"] {
            each_table(&mut tree, other, |table| !table.contains_key("link"));
        }
    }
    Some(tree)
}

/// Without one table; what speaks of a path that is gone goes too, and later paths move up.
fn without_item(tree: &Tree, list: &str, index: usize) -> Option<Tree> {
    let mut tree = tree.clone();
    let Value::Table(top) = &mut tree.0.value else { return None };
    let Value::Array(items) = &mut top.get_mut(list)?.value else { return None };
    if index >= items.len() {
        return None;
    }
    items.remove(index);
    if items.is_empty() {
        top.remove(list);
    }
    if list == "path" {
        for other in ["event", "rule", "cross"] {
            each_table(&mut tree, other, |table| move_up(table, "path", index));
        }
        if let Some(Value::Table(endpoints)) = match &mut tree.0.value {
            Value::Table(top) => top.get_mut("endpoints").map(|node| &mut node.value),
            _ => None,
        } && !move_up(endpoints, "initial_path", index)
        {
            return None;
        }
    }
    Some(tree)
}

/// Keeps tables of a list for which `keep` says so.
fn each_table(tree: &mut Tree, list: &str, mut keep: impl FnMut(&mut BTreeMap<String, Node>) -> bool) {
    let Value::Table(top) = &mut tree.0.value else { return };
    if let Some(Node { value: Value::Array(items), .. }) = top.get_mut(list) {
        items.retain_mut(|item| match &mut item.value {
            Value::Table(table) => keep(table),
            _ => true,
        });
    }
}

/// Counts a path index down past `gone`; false where it is the one that is gone.
fn move_up(table: &mut BTreeMap<String, Node>, key: &str, gone: usize) -> bool {
    let Some(Node { value: Value::Integer(path), .. }) = table.get_mut(key) else { return true };
    let gone = gone as i64;
    if *path == gone {
        return false;
    }
    *path -= i64::from(*path > gone);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_matters_is_left() {
        let failure = Failure { kind: "it".into(), story: "it".into() };
        for seed in 0..60 {
            let tree = Tree::parse("drawn", &super::super::draw(seed)).unwrap();
            let fails = |tree: &Tree| {
                let scenario = Scenario::read(tree, &Traces::default()).ok()?;
                let lossy = scenario.paths.iter().any(|path| path.own.down.loss != plait_netsim::link::Loss::None);
                lossy.then(|| failure.clone())
            };
            if fails(&tree).is_none() {
                continue;
            }
            let (mut runs, mut lines) = (Vec::new(), usize::MAX);
            let shrunk = shrink_with(&tree, &failure, &mut |tree| fails(tree), &mut |best| {
                runs.push(best.runs);
                lines = lines.min(best.text.lines().count());
            });
            assert!(runs.iter().copied().eq(0..=shrunk.runs), "each run is told of: {runs:?}");
            assert_eq!(lines, shrunk.text.lines().count());
            let again = Tree::parse("shrunk", &shrunk.text).unwrap();
            assert!(fails(&again).is_some(), "{}", shrunk.text);
            assert!(shrunk.text.lines().count() <= 9, "seed {seed}:\n{}", shrunk.text);
        }
    }

    #[test]
    fn paths_that_go_take_their_events_along() {
        let text = "endpoints = { initial_path = 2 }\n[[path]]\nrate_mbps = 1\n[[path]]\nrate_mbps = 2\n[[path]]\nrate_mbps = 3\n\
                    [[event]]\nat_s = 1\npath = 1\nloss = 1\n[[event]]\nat_s = 2\npath = 2\nloss = 1\n[transfer]\nkind = \"upload\"";
        let tree = Tree::parse("x", text).unwrap();
        let less = without_item(&tree, "path", 1).unwrap();
        let scenario = Scenario::read(&less, &Traces::default()).unwrap();
        assert_eq!((scenario.paths.len(), scenario.events.len(), scenario.endpoints.handshake.initial_path), (2, 1, 1));
        assert_eq!(scenario.events[0].place.0, 1);
        assert!(without_item(&tree, "path", 2).is_none(), "the initial path stays");
    }
}
