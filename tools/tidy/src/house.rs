//! The measures of the house: what each crate may import, and what the source amounts to today.

use std::collections::{BTreeMap, BTreeSet};

use crate::Source;
use crate::circles::circles;
use crate::items::{Keyword, item, words};
use crate::modules::Modules;
use crate::public::public_items;

/// Floors from the ground up; a crate may depend on crates before it, and only on those listed.
pub const FLOORS: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("wire", &["base"]),
    ("congestion", &["base"]),
    ("schedule", &["base"]),
    ("qlog", &["base"]),
    ("crypto", &["base"]),
    ("stream", &["base", "wire"]),
    ("path", &["base", "wire", "crypto", "congestion"]),
    ("engine", &["base", "wire", "crypto", "stream", "congestion", "schedule", "path"]),
    ("netsim", &["base"]),
    ("sim", &["base", "netsim", "engine", "qlog"]),
    ("lab", &["base", "netsim", "sim"]),
    ("plait", &["base", "congestion", "crypto", "stream", "schedule", "path", "engine"]),
    ("cli", &["plait", "base", "qlog", "netsim", "sim", "lab"]),
    ("fuzzing", &["base", "wire", "crypto", "stream", "path", "engine"]),
    ("tidy", &[]),
];

/// The crates from `base` to `engine`.
pub const ENGINE_FLOORS: &[&str] = &["base", "wire", "congestion", "schedule", "crypto", "stream", "path", "engine"];

/// An import of one crate of the workspace by another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arrow {
    /// The crate that imports.
    pub from: String,
    /// The crate that it imports.
    pub to: String,
    /// File and line.
    pub at: String,
}

/// Every line of product code that names another crate of the workspace.
pub fn arrows(sources: &[Source]) -> Vec<Arrow> {
    let mut found = Vec::new();
    for source in sources.iter().filter(|s| s.path.contains("/src/") && !s.is_test()) {
        for (line, code) in source.product_code() {
            for word in words(code) {
                let name = word.strip_prefix("plait_").unwrap_or(word);
                let is_crate = name != word || word == "plait" && code.contains("plait::");
                if is_crate && name != source.krate() && FLOORS.iter().any(|(floor, _)| *floor == name) {
                    let at = format!("{}:{line}", source.path);
                    found.push(Arrow { from: source.krate().to_owned(), to: name.to_owned(), at });
                }
            }
        }
    }
    found
}

/// Circles of imports between the files of one crate.
pub fn circles_in(krate: &str, sources: &[Source]) -> Vec<Vec<String>> {
    let modules = Modules::of(krate, sources);
    circles(&modules.edges()).into_iter().map(|c| c.into_iter().map(str::to_owned).collect()).collect()
}

/// Circles of imports between crates.
pub fn circles_between(sources: &[Source]) -> Vec<Vec<String>> {
    let arrows = arrows(sources);
    let mut edges: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for arrow in &arrows {
        edges.entry(&arrow.from).or_default().insert(&arrow.to);
    }
    circles(&edges).into_iter().map(|c| c.into_iter().map(str::to_owned).collect()).collect()
}

/// Files of the product: what is not a test and not one of the tools.
pub fn product(sources: &[Source]) -> impl Iterator<Item = &Source> {
    sources.iter().filter(|s| s.path.starts_with("crates/") && s.path.contains("/src/") && !s.is_test())
}

/// Names of structs, enums, traits and type aliases that are defined more than twice, with the number of definitions.
pub fn crowded_names(sources: &[Source]) -> BTreeMap<String, usize> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (_, code) in product(sources).flat_map(Source::product_code) {
        let is_type = |k| matches!(k, Keyword::Struct | Keyword::Enum | Keyword::Trait | Keyword::Type);
        // An indented `type` belongs to a trait.
        if let Some(item) = item(code).filter(|i| is_type(i.keyword) && !code.starts_with(' ')) {
            *counts.entry(item.name.to_owned()).or_default() += 1;
        }
    }
    counts.retain(|_, count| *count > 2);
    counts
}

/// Places of doc comments of fewer than three words.
pub fn terse_docs(sources: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    for source in product(sources) {
        let mut text = String::new();
        for (i, line) in source.product().iter().map(|l| l.trim()).chain([""]).enumerate() {
            if let Some(more) = line.strip_prefix("///") {
                text.push_str(more);
                text.push(' ');
            } else if !text.is_empty() {
                if text.split_whitespace().count() < 3 {
                    found.push(format!("{}:{i} {}", source.path, text.trim()));
                }
                text.clear();
            }
        }
    }
    found
}

/// A type's size: what an object that does too much is known by.
#[derive(Clone, Copy, Debug, Default)]
pub struct TypeSize {
    /// Fields of the struct.
    pub fields: usize,
    /// Functions in its own `impl` blocks.
    pub methods: usize,
    /// Files that hold these blocks.
    pub files: usize,
}

/// The size of the engine's `Connection`.
pub fn connection_size(sources: &[Source]) -> TypeSize {
    let mut size = TypeSize::default();
    for source in product(sources).filter(|s| s.path.starts_with("crates/engine/src/")) {
        let own = source.structs().into_iter().find(|s| s.name == "pub struct Connection");
        size.fields += own.map_or(0, |s| s.size);
        let mut is_inside = false;
        let before = size.methods;
        for (_, code) in source.product_code() {
            if code.starts_with("impl Connection {") {
                is_inside = true;
            } else if code.starts_with('}') {
                is_inside = false;
            } else if is_inside && code.starts_with("    ") && !code.starts_with("     ") {
                size.methods += usize::from(item(code).is_some_and(|i| i.keyword == Keyword::Fn));
            }
        }
        size.files += usize::from(size.methods > before);
    }
    size
}

/// The table that `cargo run -p plait-tidy --bin house` prints.
pub fn table(sources: &[Source]) -> String {
    let files: Vec<&Source> = product(sources).collect();
    let mut sizes: Vec<usize> = files.iter().map(|s| s.lines.len()).collect();
    sizes.sort_unstable();
    let lines: usize = sizes.iter().sum();
    let biggest = files.iter().max_by_key(|s| s.lines.len()).map_or("", |s| s.path.as_str());
    let longest = files.iter().flat_map(|s| s.functions()).map(|f| f.size).max().unwrap_or(0);
    let connection = connection_size(sources);
    let (public, engine_lines) = public_density(sources);
    let (docs, inline) = comment_lines(&files);
    let circle_of = |(krate, _): &(&str, &[&str])| {
        let sizes: Vec<String> = circles_in(krate, sources).iter().map(|c| c.len().to_string()).collect();
        (!sizes.is_empty()).then(|| format!("{krate} {}", sizes.join("+")))
    };
    let inside: Vec<String> = FLOORS.iter().filter_map(circle_of).collect();
    let percent = |part: usize| 100.0 * part as f64 / lines as f64;
    let rows = [
        ("product files / lines / median file", format!("{} / {lines} / {}", sizes.len(), sizes[sizes.len() / 2])),
        ("biggest file / longest function", format!("{} ({biggest}) / {longest}", sizes[sizes.len() - 1])),
        (
            "`Connection`: fields / methods / files",
            format!("{} / {} / {}", connection.fields, connection.methods, connection.files),
        ),
        (
            "`pub` items per 1,000 lines, base..engine",
            format!("{:.0} ({public})", 1000.0 * public as f64 / engine_lines as f64),
        ),
        ("doc / inline-comment lines", format!("{:.1} % / {:.1} %", percent(docs), percent(inline))),
        ("import circles between crates", circles_between(sources).len().to_string()),
        ("files in import circles inside crates", if inside.is_empty() { "0".to_owned() } else { inside.join(", ") }),
        ("type names with more than two definitions", crowded_names(sources).len().to_string()),
        ("doc comments of fewer than three words", terse_docs(sources).len().to_string()),
    ];
    let line = |(what, value): (&str, String)| format!("| {what} | {value} |\n");
    format!("| measure | today |\n|---|---|\n{}", rows.map(line).concat())
}

/// Public items from `base` to `engine`, and the lines of these crates.
pub fn public_density(sources: &[Source]) -> (usize, usize) {
    let items = ENGINE_FLOORS.iter().map(|krate| public_items(krate, sources).len()).sum();
    let own = product(sources).filter(|s| ENGINE_FLOORS.contains(&s.krate()));
    (items, own.map(|s| s.lines.len()).sum())
}

/// Lines of documentation, and lines of comments inside the code.
fn comment_lines(files: &[&Source]) -> (usize, usize) {
    let all = files.iter().flat_map(|s| s.product()).map(|l| l.trim_start()).filter(|l| l.starts_with("//"));
    let is_doc = |l: &&str| l.starts_with("///") || l.starts_with("//!");
    let (docs, inline): (Vec<&str>, Vec<&str>) = all.partition(is_doc);
    (docs.len(), inline.len())
}
