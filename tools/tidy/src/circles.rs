//! Circles of imports: files, or crates, that need each other.

use std::collections::{BTreeMap, BTreeSet};

/// The groups of two and more that reach each other along the edges, each sorted.
pub fn circles<'a>(edges: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> Vec<Vec<&'a str>> {
    let reach: BTreeMap<&str, BTreeSet<&str>> = edges.keys().map(|&from| (from, reached(edges, from))).collect();
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for (&from, there) in &reach {
        if !there.contains(from) || seen.contains(from) {
            continue;
        }
        let back = |to: &&&str| reach.get(**to).is_some_and(|r| r.contains(from));
        let circle: Vec<&str> = there.iter().filter(back).copied().collect();
        seen.extend(circle.iter().copied());
        found.push(circle);
    }
    found
}

fn reached<'a>(edges: &BTreeMap<&'a str, BTreeSet<&'a str>>, from: &str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut pending: Vec<&str> = edges.get(from).into_iter().flatten().copied().collect();
    while let Some(next) = pending.pop() {
        if found.insert(next) {
            pending.extend(edges.get(next).into_iter().flatten().copied());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_are_told_from_chains() {
        let edges = BTreeMap::from([
            ("a", BTreeSet::from(["b"])),
            ("b", BTreeSet::from(["c"])),
            ("c", BTreeSet::from(["a", "d"])),
            ("d", BTreeSet::from(["e"])),
            ("e", BTreeSet::from([])),
        ]);
        assert_eq!(circles(&edges), [["a", "b", "c"]]);
    }
}
