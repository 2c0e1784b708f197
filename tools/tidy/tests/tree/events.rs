//! Every event that observers are told of is written to traces, or left out there by name.
//!
//! The compiler cannot ask for it: the enum is `non_exhaustive`, and the writer is of another crate.

use plait_tidy::Source;
use plait_tidy::items::{first_word, words};

use crate::ALL;

fn file(path: &str) -> &'static Source {
    ALL.iter().find(|s| s.path == path).unwrap_or_else(|| panic!("no {path}"))
}

/// Variants of the events' enum, by their indentation.
fn variants() -> Vec<&'static str> {
    let lines = file("crates/base/src/observe.rs").code.iter();
    let body =
        lines.skip_while(|line| !line.starts_with("pub enum TraceEvent")).skip(1).take_while(|line| *line != "}");
    let outer = body.filter_map(|line| line.strip_prefix("    "));
    outer.filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase())).map(first_word).collect()
}

#[test]
fn every_event_is_written_or_left_out_by_name() {
    let variants = variants();
    assert!(variants.len() > 10, "the events were not found: {variants:?}");
    let writer: Vec<&str> = file("crates/qlog/src/observer.rs").product_code().map(|(_, line)| line).collect();
    let is_named = |variant: &str| {
        let arm = format!("TraceEvent::{variant}");
        writer.iter().any(|line| line.contains(&arm) && words(line).any(|word| word == variant))
    };
    let faults: Vec<&&str> = variants.iter().filter(|variant| !is_named(variant)).collect();
    assert!(faults.is_empty(), "events without an arm in crates/qlog/src/observer.rs: {faults:?}");
}
