//! The rules of the house, held by reading the source: room sizes, downward arrows, captions.

use std::collections::BTreeSet;
use std::fs;

use plait_tidy::house::{
    ENGINE_FLOORS, FLOORS, arrows, circles_between, circles_in, connection_size, crowded_names, public_density,
    terse_docs,
};
use plait_tidy::public::unnamed_items;
use plait_tidy::{Source, root};

use crate::ALL;

/// Larger rooms that are known; the list may only get shorter, its numbers only smaller.
const KNOWN_LARGE_FILES: &[(&str, usize)] = &[];
const KNOWN_LARGE_FUNCTIONS: &[(&str, &str, usize)] = &[];

const MAX_FILE_LINES: usize = 800;
const MAX_FUNCTION_LINES: usize = 70;
const MAX_STRUCT_FIELDS: usize = 16;

/// Public items of a crate that nothing outside it names. To reach: none but codes and types that a standard lists.
const UNNAMED_ITEMS: &[(&str, usize)] = &[("base", 5), ("schedule", 2), ("crypto", 6)];

/// Files of a crate that stand in circles of imports. To reach: none.
const FILES_IN_CIRCLES: &[(&str, usize)] = &[];

/// `pub` items in 1,000 lines from `base` to `engine`.
const MAX_PUBLIC_DENSITY: usize = 29;
/// Methods and fields of the engine's `Connection`.
const MAX_CONNECTION_METHODS: usize = 95;
const MAX_CONNECTION_FIELDS: usize = 11;

/// Documents that only their writers have, and how they are cited.
const PRIVATE_DOCUMENTS: &[&str] = &[
    "fact sheet",
    "house.md",
    "judges.md",
    "engine.md",
    "product.md",
    "multipath.md",
    "/work/",
    "MP 1.",
    "MP 2.",
    "MP 3.",
];

/// What lies in the crates' `src`.
fn sources() -> impl Iterator<Item = &'static Source> {
    ALL.iter().filter(|s| s.path.contains("/src/"))
}

fn report(what: &str, faults: Vec<String>) {
    assert!(faults.is_empty(), "{what}:\n  {}", faults.join("\n  "));
}

#[test]
fn files_are_small_rooms() {
    let allowed =
        |s: &Source| KNOWN_LARGE_FILES.iter().find(|(p, _)| *p == s.path).map_or(MAX_FILE_LINES, |(_, lines)| *lines);
    let faults = sources().filter(|s| !s.is_test() && s.lines.len() > allowed(s));
    report("files that are too long", faults.map(|s| format!("{}: {} lines", s.path, s.lines.len())).collect());
}

#[test]
fn functions_are_small() {
    let mut faults = Vec::new();
    for source in sources().filter(|s| !s.is_test()) {
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
    let is_list = |name: &str| {
        ["Config", "Stats", "Statistics", "Parameters", "Args", "Summary"].iter().any(|w| name.contains(w))
    };
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
    let faults = sources().filter(|s| !s.lines.first().is_some_and(|l| l.starts_with("//! ")));
    report("files whose first line is not a caption", faults.map(|s| s.path.clone()).collect());
}

#[test]
fn arrows_point_down() {
    let floor = |krate: &str| FLOORS.iter().find(|(name, _)| *name == krate);
    let homeless = sources().filter(|s| floor(s.krate()).is_none());
    report("crates without a floor", homeless.map(|s| s.path.clone()).collect());
    let up =
        arrows(&ALL).into_iter().filter(|a| floor(&a.from).is_none_or(|(_, below)| !below.contains(&a.to.as_str())));
    report("arrows that point up", up.map(|a| format!("{} reaches for {}", a.at, a.to)).collect());
    report("circles of crates", circles_between(&ALL).iter().map(|c| c.join(", ")).collect());
}

#[test]
fn every_allowed_arrow_is_used() {
    let used: BTreeSet<(String, String)> = arrows(&ALL).into_iter().map(|a| (a.from, a.to)).collect();
    let is_used = |from: &str, to: &str| used.contains(&(from.to_owned(), to.to_owned()));
    let allowed = FLOORS.iter().flat_map(|(from, below)| below.iter().map(move |to| (*from, *to)));
    let idle = allowed.filter(|(from, to)| !is_used(from, to));
    report("arrows that no import uses", idle.map(|(from, to)| format!("{from} -> {to}")).collect());
    let mut faults = Vec::new();
    for (krate, _) in FLOORS {
        for to in dependencies(krate).into_iter().filter(|to| !is_used(krate, to)) {
            faults.push(format!("{krate} depends on {to}"));
        }
    }
    report("dependencies that no import uses", faults);
}

/// The crates of the workspace that a crate's manifest names under `[dependencies]`.
fn dependencies(krate: &str) -> Vec<String> {
    let manifest = |folder: &str| fs::read_to_string(root().join(folder).join(krate).join("Cargo.toml"));
    let text = manifest("crates").or_else(|_| manifest("tools")).expect("each crate has a manifest");
    let section = text.split("[dependencies]\n").nth(1).unwrap_or("");
    let names = section.lines().take_while(|l| !l.starts_with('[')).filter(|l| l.starts_with("plait"));
    names
        .map(|l| l.split(['.', ' ']).next().unwrap_or(l))
        .map(|n| n.strip_prefix("plait-").unwrap_or(n).to_owned())
        .collect()
}

/// Holds what was counted against what is known; a number that fell must be lowered in its list too.
fn hold(what: &str, known: &[(&str, usize)], found: &[(&str, Vec<String>)]) {
    for (krate, faults) in found {
        let ceiling = known.iter().find(|(name, _)| name == krate).map_or(0, |(_, n)| *n);
        let list = faults.join("\n  ");
        assert!(faults.len() <= ceiling, "{what} in {krate}: {} for {ceiling} that are known:\n  {list}", faults.len());
        if faults.len() < ceiling {
            eprintln!("{what} in {krate}: {} now; the ceiling of {ceiling} can come down", faults.len());
        }
    }
}

#[test]
fn public_items_are_named_outside_their_crate() {
    let libraries = FLOORS.iter().filter(|(krate, _)| !["sim", "plait", "cli", "fuzzing", "tidy"].contains(krate));
    let unnamed = |krate| unnamed_items(krate, &ALL).into_iter().map(|i| format!("{} {}", i.at, i.name)).collect();
    let found: Vec<(&str, Vec<String>)> = libraries.map(|(krate, _)| (*krate, unnamed(krate))).collect();
    hold("public items that nothing outside names", UNNAMED_ITEMS, &found);
    let (items, lines) = public_density(&ALL);
    let density = 1000 * items / lines;
    assert!(
        density <= MAX_PUBLIC_DENSITY,
        "{density} public items in 1,000 lines; the ceiling is {MAX_PUBLIC_DENSITY}"
    );
}

#[test]
fn files_stand_in_no_circle_of_imports() {
    let files = |krate| circles_in(krate, &ALL).into_iter().flatten().collect();
    let found: Vec<(&str, Vec<String>)> = FLOORS.iter().map(|(krate, _)| (*krate, files(krate))).collect();
    hold("files in circles of imports", FILES_IN_CIRCLES, &found);
}

#[test]
fn one_name_means_one_type() {
    let names = crowded_names(&ALL);
    assert!(names.is_empty(), "{} names with more than two types: {names:?}", names.len());
}

#[test]
fn documentation_says_more_than_two_words() {
    let terse = terse_docs(&ALL);
    assert!(terse.is_empty(), "{} short doc comments:\n  {}", terse.len(), terse.join("\n  "));
}

#[test]
fn the_connection_does_not_grow() {
    let size = connection_size(&ALL);
    assert!(size.methods > 50 && size.fields > 5, "the connection was not found: {size:?}");
    assert!(size.methods <= MAX_CONNECTION_METHODS && size.fields <= MAX_CONNECTION_FIELDS, "{size:?}");
}

#[test]
fn models_of_links_and_sockets_know_nothing_beside_them() {
    let mut faults = Vec::new();
    for (folder, below) in [("crates/netsim/src/link/", &["plait_base"][..]), ("crates/plait/src/net/", &[])] {
        let own = format!("crate::{}::", folder.trim_end_matches('/').rsplit('/').next().unwrap_or(""));
        for source in sources().filter(|s| s.path.starts_with(folder) && !s.is_test()) {
            for (line, code) in source.product_code() {
                let is_ours = |word: &&str| word.starts_with("plait_") && !below.contains(word);
                let stranger = plait_tidy::items::words(code).find(is_ours);
                if stranger.is_some() || code.replace(&own, "").contains("crate::") {
                    faults.push(format!("{}:{line} {}", source.path, code.trim()));
                }
            }
        }
    }
    report("imports of what lies outside the folder", faults);
}

#[test]
fn only_public_documents_are_cited() {
    let mut faults = Vec::new();
    let mut hold = |path: &str, lines: &mut dyn Iterator<Item = &str>| {
        for (i, line) in lines.enumerate() {
            if PRIVATE_DOCUMENTS.iter().any(|name| line.contains(name)) {
                faults.push(format!("{path}:{} {}", i + 1, line.trim()));
            }
        }
    };
    // The list above would find itself.
    for source in ALL.iter().filter(|s| s.path != "tools/tidy/tests/tree/house.rs") {
        hold(&source.path, &mut source.lines.iter().map(String::as_str));
    }
    for folder in [".", "docs", "docs/requirements", "interop", "examples"] {
        for entry in fs::read_dir(root().join(folder)).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|e| e == "md" || e == "toml")
                && let Ok(text) = fs::read_to_string(&path)
            {
                hold(&path.to_string_lossy(), &mut text.lines());
            }
        }
    }
    report("citations of documents that readers do not have", faults);
}

#[test]
fn lib_files_hold_only_docs_and_lists() {
    let faults = sources().filter(|s| s.path.ends_with("/src/lib.rs") && s.krate() != "tidy").flat_map(|s| {
        let code = |l: &&String| l.trim_start().starts_with("fn ") || l.contains(" fn ") && !l.trim().starts_with("//");
        s.product().iter().filter(code).map(|l| format!("{}: {}", s.path, l.trim())).collect::<Vec<_>>()
    });
    report("functions in lib.rs", faults.collect());
}

#[test]
fn the_engine_floors_forbid_unsafe_code() {
    let text = fs::read_to_string(root().join("Cargo.toml")).expect("the workspace manifest is there");
    assert!(text.contains("unsafe_code = \"forbid\""));
    for krate in ENGINE_FLOORS {
        let manifest = root().join("crates").join(krate).join("Cargo.toml");
        let text = fs::read_to_string(manifest).expect("each crate has a manifest");
        assert!(text.contains("[lints]\nworkspace = true"), "{krate} must inherit the workspace's lints");
    }
}

#[test]
fn every_pitfall_of_multipath_has_a_test_that_names_it() {
    // The 24 pitfalls are those of docs/testing.md.
    let named = |n: usize| {
        let name = format!("fn pitfall_{n:02}_");
        ALL.iter().any(|s| s.lines.iter().any(|l| l.trim_start().starts_with(&name)))
    };
    report("pitfalls without a test", (1..=24).filter(|&n| !named(n)).map(|n| n.to_string()).collect());
}
