//! Every public setter of the engine's configuration has a test of its name that holds it against the wire.

use plait_tidy::Source;

use crate::ALL;

/// Setters whose effect is the runtime's, with the tests that use them.
const OF_THE_RUNTIME: &[(&str, &str)] = &[("attempt_delay", "crates/plait/tests/api/race.rs")];

/// Names of functions that `is_wanted` by their first line.
fn functions(source: &Source, is_wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let name = |line: &String| {
        let line = line.trim();
        let rest = line.strip_prefix("pub fn ").or_else(|| line.strip_prefix("fn "))?;
        is_wanted(line).then(|| rest.split(['(', '<']).next().unwrap_or("").to_owned())
    };
    source.lines.iter().filter_map(name).collect()
}

#[test]
fn every_setter_is_held_against_the_wire() {
    let mut faults = Vec::new();
    let mut setters = 0;
    for config in ALL.iter().filter(|s| s.path.starts_with("crates/engine/src/config/") && !s.is_test()) {
        // `client.rs`, `endpoint.rs` and `server.rs` have their own file of tests; the transport's are in several.
        let own = ["client", "endpoint", "server"].iter().find(|name| config.path.ends_with(&format!("/{name}.rs")));
        let tests = ALL.iter().filter(|s| {
            let name = s.path.strip_prefix("crates/engine/tests/hostile/settings/").map(|n| n.trim_end_matches(".rs"));
            match own {
                Some(own) => name == Some(*own),
                None => name.is_some_and(|n| !["client", "endpoint", "server"].contains(&n)),
            }
        });
        let tested: Vec<String> = tests.flat_map(|s| functions(s, |line| line.ends_with("() {"))).collect();
        for setter in functions(config, |line| line.starts_with("pub fn ") && line.contains("&mut self")) {
            setters += 1;
            let elsewhere = OF_THE_RUNTIME.iter().filter(|(name, _)| *name == setter).any(|(name, path)| {
                let uses = |s: &Source| s.path == *path && s.lines.iter().any(|l| l.contains(&format!(".{name}(")));
                ALL.iter().any(uses)
            });
            if !tested.contains(&setter) && !elsewhere {
                faults.push(format!("{}: {setter}", config.path));
            }
        }
    }
    assert!(setters > 60, "the setters were not found: {setters}");
    assert!(
        faults.is_empty(),
        "setters without a test in crates/engine/tests/hostile/settings:\n  {}",
        faults.join("\n  ")
    );
}
