//! What `cargo test` builds: one test program a crate, every test in one of them.

use std::collections::BTreeMap;
use std::fs;

use plait_tidy::{Source, root};

use crate::ALL;

/// A target of a manifest that says `test = false`.
struct Untested {
    /// The folder of its crate, with `/` behind it.
    folder: String,
    kind: Kind,
    name: String,
}

#[derive(PartialEq, Eq)]
enum Kind {
    Library,
    Binary,
    Test,
}

impl Untested {
    /// True for the files of this target.
    fn holds(&self, path: &str) -> bool {
        let Some(inner) = path.strip_prefix(&self.folder) else { return false };
        match self.kind {
            Kind::Library => inner.starts_with("src/"),
            Kind::Binary => inner == "src/main.rs" || inner == format!("src/bin/{}.rs", self.name),
            Kind::Test => inner.starts_with(&format!("tests/{}/", self.name)),
        }
    }
}

/// Targets of all manifests that `cargo test` leaves out.
fn untested() -> Vec<Untested> {
    let mut folders: Vec<String> = ALL.iter().filter_map(|s| folder(&s.path)).collect();
    folders.dedup();
    let mut found = Vec::new();
    for folder in folders {
        let manifest = fs::read_to_string(root().join(&folder).join("Cargo.toml")).expect("each crate has a manifest");
        for section in manifest.split("\n[").filter(|section| section.lines().any(|line| line == "test = false")) {
            let kind = match section.lines().next() {
                Some("lib]") => Kind::Library,
                Some("[bin]]") => Kind::Binary,
                Some("[test]]") => Kind::Test,
                other => panic!("{folder}: what is {other:?}?"),
            };
            let name = section.lines().find_map(|line| line.strip_prefix("name = ")).unwrap_or_default();
            found.push(Untested { folder: folder.clone(), kind, name: name.trim_matches('"').to_owned() });
        }
    }
    found
}

/// The folder of a file's crate, with `/` behind it.
fn folder(path: &str) -> Option<String> {
    let mut parts = path.split('/');
    Some(format!("{}/{}/", parts.next()?, parts.next()?))
}

/// The folder of the test program whose root this file is.
fn program(path: &str) -> Option<&str> {
    let (_, inner) = path.split_once("/tests/")?;
    let is_root = if path.contains("/src/") { false } else { !inner.contains('/') || inner.ends_with("/main.rs") };
    is_root.then(|| inner.trim_end_matches("/main.rs").trim_end_matches(".rs"))
}

#[test]
fn each_crate_has_one_test_program() {
    let untested = untested();
    let mut programs: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for source in ALL.iter().filter(|s| !untested.iter().any(|target| target.holds(&s.path))) {
        if let (Some(folder), Some(name)) = (folder(&source.path), program(&source.path)) {
            programs.entry(folder).or_default().push(name);
        }
    }
    assert!(programs.len() > 5, "{programs:?}");
    programs.retain(|_, names| names.len() > 1);
    assert!(programs.is_empty(), "make them modules of one program, each links the whole crate: {programs:?}");
}

#[test]
fn each_test_file_is_part_of_a_program() {
    let tests: Vec<&Source> = ALL.iter().filter(|s| s.path.contains("/tests/") && !s.path.contains("/src/")).collect();
    let is_lost = |source: &&&Source| {
        let stem = source.path.trim_end_matches("/mod.rs").trim_end_matches(".rs");
        let line = format!("mod {};", stem.rsplit('/').next().unwrap_or(stem));
        let declares = |other: &&Source| other.lines.iter().any(|l| l.trim_start_matches("pub ") == line);
        let mut neighbours = tests.iter().filter(|other| folder(&other.path) == folder(&source.path));
        program(&source.path).is_none() && !neighbours.any(declares)
    };
    let lost: Vec<&str> = tests.iter().filter(is_lost).map(|s| s.path.as_str()).collect();
    assert!(tests.len() > 50 && lost.is_empty(), "files that no test program declares: {lost:?}");
}

#[test]
fn what_is_not_tested_has_no_tests() {
    let mut targets = untested();
    targets.retain(|target| target.kind != Kind::Test);
    let is_forgotten = |s: &&Source| {
        targets.iter().any(|target| target.holds(&s.path)) && s.code.iter().any(|line| line.trim() == "#[test]")
    };
    let forgotten: Vec<&str> = ALL.iter().filter(is_forgotten).map(|s| s.path.as_str()).collect();
    assert!(!targets.is_empty() && forgotten.is_empty(), "their target says `test = false`: {forgotten:?}");
}
