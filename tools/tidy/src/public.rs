//! Public items of a library crate, and which of them nobody outside it names.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;

use crate::items::{Keyword, Visibility, item, words};
use crate::{Source, root};

/// An item that says `pub`.
#[derive(Debug)]
pub struct PublicItem {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub keyword: Keyword,
    /// File and line.
    pub at: String,
}

/// Everything in the product of `krate` that says `pub` without bounds: functions, types, traits, constants, modules.
pub fn public_items(krate: &str, sources: &[Source]) -> Vec<PublicItem> {
    let mut found = Vec::new();
    for source in product_of(krate, sources) {
        for (line, code) in source.product_code() {
            if let Some(item) = item(code).filter(|i| i.visibility == Visibility::Public) {
                let at = format!("{}:{line}", source.path);
                found.push(PublicItem { name: item.name.to_owned(), keyword: item.keyword, at });
            }
        }
    }
    found
}

/// The public items of `krate` whose name no other crate, example, test folder or fuzz target writes.
///
/// Types count as named where what is public mentions them: their owner hands them out.
pub fn unnamed_items(krate: &str, sources: &[Source]) -> Vec<PublicItem> {
    let inside = format!("crates/{krate}/src/");
    let mut named: HashSet<&str> = HashSet::new();
    for source in sources.iter().filter(|s| !s.path.starts_with(&inside)) {
        named.extend(source.code.iter().flat_map(|line| words(line)));
    }
    let beside = files_beside();
    named.extend(beside.iter().flat_map(|source| &source.code).flat_map(|line| words(line)));
    let mentioned = mentioned_in_public(krate, sources);
    let is_type = |k| matches!(k, Keyword::Struct | Keyword::Enum | Keyword::Trait | Keyword::Type);
    let mut found = public_items(krate, sources);
    found.retain(|i| {
        let is_handed_out = is_type(i.keyword) && mentioned.get(i.name.as_str()).is_some_and(|n| *n > 1);
        !named.contains(i.name.as_str()) && !is_handed_out
    });
    found
}

/// Examples of the workspace, fuzz targets and the peers of the interop runs: crates that are no members.
fn files_beside() -> Vec<Source> {
    let mut found = Vec::new();
    for folder in ["examples", "fuzz/fuzz_targets", "interop/peers/rust/src"] {
        for entry in fs::read_dir(root().join(folder)).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|e| e == "rs")
                && let Ok(text) = fs::read_to_string(&path)
            {
                found.push(Source::new(format!("{folder}/{}", entry.file_name().to_string_lossy()), &text));
            }
        }
    }
    found
}

fn product_of<'a>(krate: &str, sources: &'a [Source]) -> impl Iterator<Item = &'a Source> {
    let inside = format!("crates/{krate}/src/");
    sources.iter().filter(move |s| s.path.starts_with(&inside) && !s.is_test())
}

/// How many lines of public signatures, fields, variants and traits hold each word.
fn mentioned_in_public<'a>(krate: &str, sources: &'a [Source]) -> HashMap<&'a str, usize> {
    let mut counts = HashMap::new();
    for source in product_of(krate, sources) {
        // The indentation of the public enum or trait, or of the public signature, that is open.
        let mut open: Option<usize> = None;
        for (_, code) in source.product_code() {
            let line = code.trim();
            let indent = code.len() - code.trim_start().len();
            let opens = line.starts_with("pub ") || line.starts_with("impl") || line.starts_with("type ");
            if opens || open.is_some() {
                let unique: BTreeSet<&str> = words(code).collect();
                unique.into_iter().for_each(|word| *counts.entry(word).or_insert(0) += 1);
            }
            let is_body = line.starts_with("pub enum ") || line.starts_with("pub trait ");
            match open {
                None if is_body && line.ends_with('{') || opens && line.ends_with('(') => open = Some(indent),
                Some(at) if indent <= at && line.starts_with(['}', ')']) => open = None,
                _ => {}
            }
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_names_is_found() {
        let file = |path: &str, text: &str| Source::new(path.to_owned(), text);
        let sources = [
            file(
                "crates/base/src/a.rs",
                "pub struct Shown;\npub struct Hidden;\npub fn give() -> Shown {\n    Shown\n}\n// Hidden\npub fn idle_hands_xyz() {\n}\n",
            ),
            file("crates/wire/src/b.rs", "fn f() {\n    plait_base::give();\n}\n"),
        ];
        let names: Vec<_> = unnamed_items("base", &sources).into_iter().map(|i| i.name).collect();
        assert_eq!(names, ["Hidden", "idle_hands_xyz"]);
    }
}
