//! Reads the source of every crate as text, so that tests can hold it to the rules of the house.
//!
//! It knows nothing of any other crate: it sees files, lines, functions and structs.

pub mod requirements;

use std::fs;
use std::path::{Path, PathBuf};

/// One Rust source file.
#[derive(Debug)]
pub struct Source {
    /// Path below the workspace root, with `/`.
    pub path: String,
    /// Its lines.
    pub lines: Vec<String>,
}

/// A function or struct with its size.
#[derive(Debug)]
pub struct Room {
    /// Its name.
    pub name: String,
    /// Line it starts on, from 1.
    pub line: usize,
    /// Lines of a function, fields of a struct.
    pub size: usize,
}

/// The workspace's root folder.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every `.rs` file below `crates/*/src` and `tools/*/src`, sorted by path.
pub fn sources() -> Vec<Source> {
    let mut found = all_sources();
    found.retain(|s| s.path.contains("/src/"));
    found
}

/// Every `.rs` file below `crates` and `tools`, tests and examples too, sorted by path.
pub fn all_sources() -> Vec<Source> {
    let root = root();
    let mut found = Vec::new();
    let mut pending = vec![root.join("crates"), root.join("tools")];
    while let Some(dir) = pending.pop() {
        let Ok(entries) = fs::read_dir(&dir) else { continue };
        for path in entries.flatten().map(|e| e.path()) {
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let Ok(text) = fs::read_to_string(&path) else { continue };
                let name = path.strip_prefix(&root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
                found.push(Source { path: name, lines: text.lines().map(str::to_owned).collect() });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

impl Source {
    /// The crate's folder name, as `base` in `crates/base/src/lib.rs`.
    pub fn krate(&self) -> &str {
        self.path.split('/').nth(1).unwrap_or("")
    }

    /// True for files that hold tests only.
    pub fn is_test(&self) -> bool {
        self.path.ends_with("tests.rs") || self.path.contains("/tests/") || self.path.contains("_tests")
    }

    /// Lines before the first `#[cfg(test)]`.
    pub fn product(&self) -> &[String] {
        let end = self.lines.iter().position(|l| l.trim() == "#[cfg(test)]").unwrap_or(self.lines.len());
        &self.lines[..end]
    }

    /// Functions of the product part, by brace depth as rustfmt lays them out.
    pub fn functions(&self) -> Vec<Room> {
        let is_start = |line: &str| {
            let line = line.trim_start();
            let words = line.split(" fn ").next().unwrap_or("");
            let qualifiers = ["pub", "pub(crate)", "pub(super)", "const", "async", "pub const", "pub async", ""];
            line.starts_with("fn ")
                || (line.contains(" fn ") && qualifiers.contains(&words.trim()))
                || line.starts_with("pub(crate) const fn ")
                || line.starts_with("pub(in ")
        };
        self.blocks(is_start, |body| body.len())
    }

    /// Structs of the product part with their number of fields.
    pub fn structs(&self) -> Vec<Room> {
        let is_start = |line: &str| {
            let line = line.trim_start();
            ["pub struct ", "pub(crate) struct ", "pub(super) struct ", "struct "].iter().any(|p| line.starts_with(p))
        };
        self.blocks(is_start, |body| {
            let field = |l: &&String| {
                let l = l.trim();
                !l.starts_with("//") && !l.starts_with('#') && l.ends_with(',') && l.contains(':')
            };
            body.iter().filter(field).count()
        })
    }

    fn blocks(&self, is_start: impl Fn(&str) -> bool, measure: impl Fn(&[String]) -> usize) -> Vec<Room> {
        let lines = self.product();
        let mut rooms = Vec::new();
        for (i, line) in lines.iter().enumerate().filter(|(_, l)| is_start(l)) {
            let indent = line.len() - line.trim_start().len();
            let close = format!("{}}}", " ".repeat(indent));
            let Some(open) = lines[i..].iter().position(|l| l.ends_with('{') || l.ends_with(';') || l.ends_with('}'))
            else {
                continue;
            };
            if !lines[i + open].ends_with('{') {
                continue;
            }
            let Some(len) = lines[i + open..].iter().position(|l| *l == close) else { continue };
            let name = line.trim().trim_end_matches('{').trim().to_owned();
            rooms.push(Room { name, line: i + 1, size: measure(&lines[i..=i + open + len]) });
        }
        rooms
    }
}
