//! The rules of the house, held by reading the source: room sizes, downward arrows, captions.

use plait_tidy::{Source, all_sources, root, sources};

/// Larger rooms that are known; the list may only get shorter, its numbers only smaller.
const KNOWN_LARGE_FILES: &[(&str, usize)] = &[];
const KNOWN_LARGE_FUNCTIONS: &[(&str, &str, usize)] = &[];

const MAX_FILE_LINES: usize = 800;
const MAX_FUNCTION_LINES: usize = 70;
const MAX_STRUCT_FIELDS: usize = 16;

/// Floors from the ground up; a crate may depend on crates before it, and only on those listed.
const FLOORS: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("wire", &["base"]),
    ("congestion", &["base"]),
    ("schedule", &["base"]),
    ("qlog", &["base"]),
    ("crypto", &["base", "wire"]),
    ("stream", &["base", "wire"]),
    ("path", &["base", "wire", "crypto", "congestion"]),
    ("engine", &["base", "wire", "crypto", "stream", "congestion", "schedule", "path"]),
    ("netsim", &["base"]),
    ("sim", &["base", "netsim", "engine", "congestion", "schedule", "path", "qlog"]),
    ("plait", &["base", "congestion", "crypto", "stream", "schedule", "path", "engine"]),
    ("cli", &["plait", "base", "engine", "qlog", "netsim", "sim"]),
    ("fuzzing", &["base", "wire", "crypto", "stream", "path", "engine"]),
    ("tidy", &[]),
];

fn report(what: &str, faults: Vec<String>) {
    assert!(faults.is_empty(), "{what}:\n  {}", faults.join("\n  "));
}

#[test]
fn files_are_small_rooms() {
    let allowed =
        |s: &Source| KNOWN_LARGE_FILES.iter().find(|(p, _)| *p == s.path).map_or(MAX_FILE_LINES, |(_, lines)| *lines);
    let faults = sources().into_iter().filter(|s| !s.is_test() && s.lines.len() > allowed(s));
    report("files that are too long", faults.map(|s| format!("{}: {} lines", s.path, s.lines.len())).collect());
}

#[test]
fn functions_are_small() {
    let mut faults = Vec::new();
    for source in sources().iter().filter(|s| !s.is_test()) {
        for room in source.functions() {
            let known = KNOWN_LARGE_FUNCTIONS.iter().find(|(p, f, _)| *p == source.path && room.name.contains(f));
            if room.size > known.map_or(MAX_FUNCTION_LINES, |k| k.2) {
                faults.push(format!("{}:{} {} ({} lines)", source.path, room.line, room.name, room.size));
            }
        }
    }
    report("functions that are too long", faults);
}

#[test]
fn structs_have_few_fields() {
    // Settings and reports are lists of values by nature; state is not.
    let is_list = |name: &str| ["Config", "Stats", "Parameters", "Args", "Summary"].iter().any(|w| name.contains(w));
    let mut faults = Vec::new();
    for source in sources() {
        for room in source.structs() {
            if room.size > MAX_STRUCT_FIELDS && !is_list(&room.name) {
                faults.push(format!("{}:{} {} ({} fields)", source.path, room.line, room.name, room.size));
            }
        }
    }
    report("structs with too many fields", faults);
}

#[test]
fn every_file_has_a_caption() {
    let faults = sources().into_iter().filter(|s| !s.lines.first().is_some_and(|l| l.starts_with("//! ")));
    report("files whose first line is not a caption", faults.map(|s| s.path).collect());
}

#[test]
fn arrows_point_down() {
    let mut faults = Vec::new();
    for source in sources() {
        let Some((_, below)) = FLOORS.iter().find(|(name, _)| *name == source.krate()) else {
            faults.push(format!("{}: crate without a floor", source.path));
            continue;
        };
        for (i, line) in source.product().iter().enumerate().filter(|(_, l)| !l.trim().starts_with("//")) {
            for (name, _) in FLOORS {
                let used = line.contains(&format!("plait_{name}::"));
                if used && *name != source.krate() && !below.contains(name) {
                    faults.push(format!("{}:{} reaches for {name}", source.path, i + 1));
                }
            }
        }
    }
    report("arrows that point up", faults);
}

#[test]
fn lib_files_hold_only_docs_and_lists() {
    let faults =
        sources().into_iter().filter(|s| s.path.ends_with("/src/lib.rs") && s.krate() != "tidy").flat_map(|s| {
            let code =
                |l: &&String| l.trim_start().starts_with("fn ") || l.contains(" fn ") && !l.trim().starts_with("//");
            s.product().iter().filter(code).map(|l| format!("{}: {}", s.path, l.trim())).collect::<Vec<_>>()
        });
    report("functions in lib.rs", faults.collect());
}

#[test]
fn the_engine_floors_forbid_unsafe_code() {
    let text = std::fs::read_to_string(root().join("Cargo.toml")).expect("the workspace manifest is there");
    assert!(text.contains("unsafe_code = \"forbid\""));
    for krate in ["base", "wire", "crypto", "stream", "congestion", "schedule", "path", "engine"] {
        let manifest = root().join("crates").join(krate).join("Cargo.toml");
        let text = std::fs::read_to_string(manifest).expect("each crate has a manifest");
        assert!(text.contains("[lints]\nworkspace = true"), "{krate} must inherit the workspace's lints");
    }
}

#[test]
fn every_pitfall_of_multipath_has_a_test_that_names_it() {
    // The 24 pitfalls are those of docs/testing.md.
    let all = all_sources();
    let named = |n: usize| {
        let name = format!("fn pitfall_{n:02}_");
        all.iter().any(|s| s.lines.iter().any(|l| l.trim_start().starts_with(&name)))
    };
    report("pitfalls without a test", (1..=24).filter(|&n| !named(n)).map(|n| n.to_string()).collect());
}
