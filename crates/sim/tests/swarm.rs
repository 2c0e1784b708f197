//! What a swarm found and what was mended since, and a few seeds of its own.

use std::path::Path;

use plait_sim::scenario::Tree;
use plait_sim::swarm::{draw, draw_with_workers, judge};

#[test]
fn what_was_found_stays_mended() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/swarm");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let tree = Tree::parse(&file.display().to_string(), &text).unwrap();
        let failure = judge(&tree).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(failure, None, "{}", file.display());
    }
}

#[test]
fn a_few_seeds() {
    for seed in 0..12 {
        let tree = Tree::parse(&format!("swarm-{seed}"), &draw(seed)).unwrap();
        let failure = judge(&tree).unwrap();
        assert_eq!(failure, None, "seed {seed}:\n{}", draw(seed));
    }
}

#[test]
fn a_few_seeds_with_workers() {
    for seed in 0..24 {
        let text = draw_with_workers(seed);
        let tree = Tree::parse(&format!("swarm-{seed}"), &text).unwrap();
        assert_eq!(judge(&tree).unwrap(), None, "seed {seed}, workers:\n{text}");
    }
}

#[test]
fn a_few_seeds_with_uniflows() {
    for seed in 0..12 {
        let mut tree = Tree::parse(&format!("swarm-{seed}"), &draw(seed)).unwrap();
        tree.set("endpoints.extension", "multiflow", "the test").unwrap();
        assert_eq!(judge(&tree).unwrap(), None, "seed {seed}, multiflow:\n{}", draw(seed));
    }
}
